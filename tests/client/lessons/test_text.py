"""Reading lessons: what is shipped is right, and what is wrong is said with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from gcspy_protocol.errors import CommandError

from gcspy_client.lessons import find_lesson, lesson_names, read_lesson, shipped_lessons
from gcspy_client.lessons.text import parse_lesson

HEAD = '+++\ntitle = "T"\ngoal = "G"\n[simulation]\ncollector = "marksweep"\n+++\n'
STEP = "## One\ntext\n```step\nuntil = \"event == 'A'\"\n```\n"
ASK = '```question\nask = "?"\nchoices = ["a", "b"]\nanswer = 2\n```\n'


def test_a_lesson_has_steps_with_text_actions_and_questions() -> None:
    lesson = parse_lesson(
        HEAD + STEP + ASK + "## Two\n```\n## no heading\n```\n", name="n", path="p.md"
    )
    one, two = lesson.steps
    assert (one.title, one.text, one.until, one.line) == ("One", "text", "event == 'A'", 7)
    assert one.question is not None
    assert (one.question.choices, one.question.answer) == (("a", "b"), 1)
    assert "## no heading" in two.text
    assert two.question is None


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        ("# no head", 1, "begins with a line"),
        ('+++\ntitle = "T"\n', 1, "not closed"),
        ('+++\ntitle = "T\n+++\n', 2, ""),
        (HEAD.replace('goal = "G"\n', "") + STEP, 2, "no goal"),
        (HEAD.replace("collector", "collektor") + STEP, 5, "no 'collektor'"),
        (HEAD.replace('"marksweep"', "3") + STEP, 5, "give a text"),
        (HEAD, 7, "no step"),
        (HEAD + "lost\n" + STEP, 7, "before the first step"),
        (HEAD + STEP.replace("event ==", "event =="[:-1]), 10, "until"),
        (HEAD + STEP.replace("until", "untill"), 10, "no 'untill'"),
        (HEAD + STEP.removesuffix("```\n"), 9, "not closed"),
        (HEAD + STEP + STEP.split("\n", 2)[2], 12, "one block"),
        (HEAD + STEP + ASK.replace("2", "3"), 15, "1 to 2"),
        (HEAD + STEP + ASK.replace(', "b"', ""), 14, "two texts"),
        (HEAD + STEP + ASK.replace("answer = 2\n", ""), 13, "no answer"),
        (HEAD + STEP + ASK.replace("answer", 'feedback = ["a"]\nanswer'), 15, "feedback has 1"),
        (HEAD + '## S\n```exercise\ntask = "T"\n```\n', 9, "no check"),
        (
            HEAD + '## S\n```exercise\ntask = "T"\ncheck = "1 >"\nsolution = { A = 1 }\n```\n',
            10,
            "check: ",
        ),
        (HEAD + '## S\n```claims\n"S" = "1 >"\n```\n', 9, "the claim 'S'"),
        (HEAD + '## S\n```claims\n"S" = 3\n```\n', 9, "give a condition"),
        (HEAD + '## S\n```claims\n"S" = { always = "1 > 0" }\n```\n', 9, "needs since"),
        (HEAD + '## S\n```claims\n"S" = { holds = "1 > 0", at = 0 }\n```\n', 9, "from 1"),
        (HEAD + '## S\n```step\nview = { spaze = "H" }\n```\n', 9, "no 'spaze'"),
        (HEAD + '## S\n```step\nview = { history = ["H"] }\n```\n', 9, "pairs"),
        (HEAD + "## S\n```step\nfilters = [{ period = 2 }]\n```\n", 9, "name of an event"),
        (HEAD + "## S\n```step\nset = { Level = 1.5 }\n```\n", 9, "whole number"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(source: str, line: int, words: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_lesson(source, name="n", path="p.md")
    assert str(caught.value).startswith(f"p.md:{line}: ")
    assert words in str(caught.value)


def test_every_shipped_lesson_can_be_read_and_is_found_by_its_name() -> None:
    lessons = shipped_lessons()
    assert [one.name for one in lessons] == list(lesson_names())
    for one in lessons:
        assert find_lesson(one.name) == one
        assert one.goal
        assert any(step.question is not None for step in one.steps), f"{one.name} asks nothing"


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    for content, words in ((b"\xff\xfe", "UTF-8"), (b"+" * ((1 << 20) + 1), "not a lesson")):
        path = tmp_path / "a.md"
        path.write_bytes(content)
        with pytest.raises(CommandError, match=words):
            read_lesson(path)
    with pytest.raises(CommandError, match="cannot be read"):
        find_lesson(str(tmp_path / "none.md"))
    with pytest.raises(CommandError, match="--list"):
        find_lesson("none")
