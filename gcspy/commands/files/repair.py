"""`gcspy repair`: save the undamaged parts of a recording."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import click
from gcspy_protocol.errors import CommandError, RecordingError

from gcspy.options import file_argument, new_file_option
from gcspy.output.progress import progress_bar
from gcspy.output.terminal import say
from gcspy.recorder.named_recordings import loss_lines
from gcspy.recorder.new_file import new_file

__all__ = ["command"]

_LAST = 2**62


@click.command()
@file_argument
@new_file_option("File to write.")
def command(file: Path, output: Path, force: bool) -> None:
    """Recover a damaged recording into a new file.

    The damaged file is not changed. Events keep their numbers. All bookmarks are copied, even those of lost events.
    """
    from gcspy_replay.file import FileStore, open_source, repair

    if output.exists() and os.path.samefile(file, output):
        raise CommandError(f"{output} is the damaged file itself: name another file")
    with (
        closing(open_source(file)) as source,
        new_file(output, replace=force) as part,
        progress_bar(f"reading {file}") as progress,
    ):
        saved = repair(source, FileStore(part), progress=progress)
    say(f"{output}: {saved.events:,} events recovered")
    _carry(file, output)
    for number in saved.states:
        say(f"  event {number}: its values start at the next keyframe")
    for line in loss_lines(saved.lost):
        say(f"  {line}")
    for finding in saved.findings:
        say(f"  bytes {finding.start:,} to {finding.end:,}: {finding.what}")
    if not saved.findings:
        say("  no damage found; the new file has an index")


def _carry(file: Path, output: Path) -> None:
    """Copy the bookmarks of the damaged file to the repaired one."""
    from gcspy_replay.file import Recording, carry_sidecar, sidecar_path

    try:
        with Recording.open(output) as recording:
            marks = carry_sidecar(
                sidecar_path(file), sidecar_path(output), recording.facts.recording, 1, _LAST
            )
    except RecordingError as error:
        say(f"  bookmarks were not copied: {error}")
        return
    if marks:
        say(f"  bookmarks copied: {marks}")
