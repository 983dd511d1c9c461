"""`gcspy export` and `gcspy lesson --html`: recordings and lessons as one HTML file each, for any web browser, without a server."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gcspy_protocol.errors import CommandError

from gcspy.output.progress import progress_bar
from gcspy.output.terminal import say
from gcspy.recorder.new_file import need_place, new_file

if TYPE_CHECKING:
    from gcspy_replay.file import Recording

    from gcspy_client.lessons import Lesson
    from gcspy_client.page import PageSelection

__all__ = ["write_lesson_page", "write_page"]


def write_page(
    recording: Recording,
    output: Path,
    *,
    title: str,
    selection: PageSelection | None = None,
    lesson: Lesson | None = None,
    reached: Sequence[int] = (),
    replace: bool,
) -> None:
    """Write the page of a recording, and say how large it is and what was left out.

    Args:
        recording: The recording; one of a lesson that comes with GCspy becomes the page of the lesson.
        output: The file.
        title: Title of the page.
        selection: What of the recording.
        lesson: The lesson that it is of, if that is known.
        reached: For each step of `lesson` the number of its event.
        replace: Whether a file of that name may be replaced.

    Raises:
        CommandError: The file cannot be written, or one event alone is too large.
        RecordingError: The range is invalid, or the recording is damaged in it.
    """
    from gcspy_client.page import page_of_recording

    need_place(output, replace=replace)
    if lesson is None and (selection is None or selection.is_whole):
        lesson, reached = _lesson_of(recording)
    with (
        new_file(output, replace=replace) as part,
        progress_bar(f"writing {output}") as progress,
    ):
        page = page_of_recording(
            recording,
            title=title if lesson is None else lesson.title,
            selection=selection,
            lesson=lesson,
            reached=reached,
            progress=progress,
        )
        part.write_bytes(page.data)
    say(f"{output}: {page.events:,} events, {len(page.data):,} bytes")
    if page.left_out:
        say(
            f"gcspy: {page.left_out:,} events were left out, evenly by kind, so that the page stays small; the page says so, too. "
            "--first, --last, --space and --stream choose a part",
            err=True,
        )


def _lesson_of(recording: Recording) -> tuple[Lesson | None, Sequence[int]]:
    """The lesson that a recording is of, if it comes with GCspy and all its steps are in the recording."""
    from gcspy_client.lessons import find_lesson, lesson_names
    from gcspy_client.lessons.claims import events_of_steps

    name = recording.welcome.target.get("lesson", "")
    if name not in lesson_names():
        return None, ()
    lesson = find_lesson(name)
    try:
        return lesson, events_of_steps(lesson, recording)
    except CommandError as error:
        say(f"gcspy: the page has no questions: {error}", err=True)
        return None, ()


def write_lesson_page(name: str, output: Path, *, replace: bool) -> None:
    """Write the page of a lesson.

    Args:
        name: A lesson that comes with GCspy, or the file of another, which is run to its end for that.
        output: The file.
        replace: Whether a file of that name may be replaced.

    Raises:
        CommandError: There is no such lesson, a step's event never comes, or the file cannot be written.
        RecordingError: The recording of the lesson is damaged.
    """
    from gcspy_replay.file import Recording
    from gcspy_replay.samples import lesson_recording

    from gcspy_client.lessons import find_lesson, lesson_names
    from gcspy_client.lessons.claims import events_of_steps

    need_place(output, replace=replace)
    lesson = find_lesson(name)
    path = lesson_recording(name) if name in lesson_names() else None
    if path is not None:
        with Recording.open(path) as recording:
            reached = events_of_steps(lesson, recording)
            write_page(
                recording,
                output,
                title=lesson.title,
                lesson=lesson,
                reached=reached,
                replace=replace,
            )
        return
    from gcspy.recorder.lesson_recorder import record_lesson

    with tempfile.TemporaryDirectory(prefix="gcspy-lesson-") as folder:
        made = Path(folder) / "lesson.gcspy"
        say(f"gcspy: running {lesson.path} to its end", err=True)
        numbers = record_lesson(lesson, made)
        with Recording.open(made) as recording:
            write_page(
                recording,
                output,
                title=lesson.title,
                lesson=lesson,
                reached=numbers,
                replace=replace,
            )
