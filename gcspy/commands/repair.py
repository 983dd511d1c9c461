"""`gcspy repair`: what can be saved of a damaged recording."""

from __future__ import annotations

import os
from pathlib import Path

import click
from gcspy_protocol.errors import CommandError
from gcspy_replay.file import FileSource, FileStore, repair

from gcspy.options import file_argument, new_file_option
from gcspy.progress import progress_bar

__all__ = ["command"]


@click.command()
@file_argument
@new_file_option("Where what can be saved is written.")
def command(file: Path, output: Path, force: bool) -> None:
    """Write what can be saved of a damaged recording to a new file, and say what was lost.

    The damaged file is not changed. Events keep their numbers.
    """
    if output.exists() and os.path.samefile(file, output):
        raise CommandError(f"{output} is the damaged file itself: name another")
    with FileSource(file) as source, progress_bar(f"reading {file}") as progress:
        saved = repair(source, FileStore(output, replace=force), progress=progress)
    click.echo(f"{output}: {saved.events:,} events saved")
    for number in saved.states:
        click.echo(f"  event {number}: its picture, from the next keyframe")
    for first, last in saved.lost:
        click.echo(f"  lost: events {first} to {last}" if last > first else f"  lost: event {first}")
    for finding in saved.findings:
        click.echo(f"  bytes {finding.start:,} to {finding.end:,}: {finding.what}")
    if not saved.findings:
        click.echo("  nothing was damaged; the new file has its index")
