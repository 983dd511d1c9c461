"""`gcspy lesson check`: run lessons to their end, and check what their texts say and whether answers can be guessed."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from gcspy_protocol.text.visible import Lines

from gcspy.exit_codes import ExitCode
from gcspy.options import json_option
from gcspy.output.terminal import say

if TYPE_CHECKING:
    from gcspy_client.lessons import Lesson
    from gcspy_client.lessons.claims import CheckedClaim

__all__ = ["command"]


@click.command()
@click.argument("lesson", nargs=-1, required=True)
@json_option
@click.pass_context
def command(context: click.Context, lesson: tuple[str, ...], as_json: bool) -> None:
    """Run lessons and check their texts.

    Each lesson is run to its end. The conditions in its blocks `claims` must hold at their events;
    each step needs one. Questions are checked for right answers that can be guessed: by their
    place, their length, or words of the question. The exit code is 1 if anything is wrong.
    """
    from gcspy_client.lessons import find_lesson
    from gcspy_client.lessons.lint import lint_lessons

    found = [find_lesson(name) for name in lesson]
    checked = {one.path: _checked(one) for one in found}
    problems = lint_lessons(found)
    wrong = [claim for claims in checked.values() for claim in claims if not claim.holds]
    if as_json:
        say(json.dumps(_as_json(found, checked, problems)))
    else:
        lines = [line for one in found for line in _told(one, checked[one.path])]
        say(Lines(*lines, *problems, f"{len(wrong)} wrong claims, {len(problems)} problems"))
    context.exit(ExitCode.FAILED if wrong or problems else ExitCode.OK)


def _checked(lesson: Lesson) -> list[CheckedClaim]:
    """Run a lesson, and check its claims."""
    from gcspy_replay.file import Recording

    from gcspy.recorder.lesson_recorder import record_lesson
    from gcspy_client.lessons.claims import check_claims

    with tempfile.TemporaryDirectory(prefix="gcspy-lesson-") as folder:
        path = Path(folder) / "lesson.gcspy"
        reached = record_lesson(lesson, path)
        with Recording.open(path) as recording:
            return list(check_claims(lesson, recording, list(reached)))


def _told(lesson: Lesson, claims: list[CheckedClaim]) -> list[str]:
    """A line for each claim."""
    lines = [f"{lesson.name}: {lesson.title}"]
    for one in claims:
        word = "true " if one.holds else "WRONG"
        place = f"step {one.step + 1}, event {one.event}"
        lines.append(f"  {word}  {place}: {one.claim.text!r}: {one.values or 'no value is known'}")
    return lines


def _as_json(
    lessons: list[Lesson], checked: dict[str, list[CheckedClaim]], problems: list[str]
) -> dict[str, Any]:
    return {
        "lessons": [
            {
                "name": lesson.name,
                "claims": [
                    {
                        "step": one.step + 1,
                        "event": one.event,
                        "text": one.claim.text,
                        "condition": one.claim.condition,
                        "holds": one.holds,
                        "values": one.values,
                    }
                    for one in checked[lesson.path]
                ],
            }
            for lesson in lessons
        ],
        "problems": problems,
    }
