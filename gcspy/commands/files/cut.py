"""`gcspy cut`: a range of events as a file of its own."""

from __future__ import annotations

from pathlib import Path

import click
from gcspy_protocol.errors import CommandError, RecordingError

from gcspy.options import files_argument, new_file_option, range_options
from gcspy.output.progress import progress_bar
from gcspy.output.terminal import say
from gcspy.recorder.named_recordings import opened
from gcspy.recorder.new_file import new_file

__all__ = ["command"]


@click.command()
@files_argument
@new_file_option("File to write.")
@range_options
def command(
    files: tuple[Path, ...], output: Path, force: bool, first: int | None, last: int | None
) -> None:
    """Copy a range of events to a new file.

    Events keep their numbers: event 120 is event 120 in the new file, too. Bookmarks in the range are copied. A split recording or a ring becomes one file.
    """
    from gcspy_replay.file import FileStore, carry_sidecar, cut, sidecar_of, sidecar_path

    if output.exists() and any(path.is_file() and output.samefile(path) for path in files):
        raise CommandError(f"{output} is the recording itself: name another file")
    with opened(files) as recording:
        try:
            low, high = recording.range_of(first, last)
        except RecordingError as error:
            raise CommandError(str(error)) from None
        with new_file(output, replace=force) as part, progress_bar(f"writing {output}") as progress:
            events = cut(recording, FileStore(part), first, last, progress=progress)
        left = ""
        try:
            marks = carry_sidecar(
                sidecar_of(files), sidecar_path(output), recording.facts.recording, low, high
            )
            carried = f", {marks} bookmark{'s' if marks > 1 else ''}" if marks else ""
        except RecordingError as error:
            carried, left = "", f"  bookmarks were not copied: {error}"
    say(f"{output}: {events:,} events, {output.stat().st_size:,} bytes{carried}")
    if left:
        say(left)
