"""`gcspy pack`: make a recording smaller, to keep or to send."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click
from gcspy_protocol.errors import CommandError, RecordingError

from gcspy.options import file_argument
from gcspy.output.progress import progress_bar
from gcspy.output.terminal import say
from gcspy.recorder.named_recordings import opened
from gcspy.recorder.new_file import new_file

__all__ = ["command"]

_LAST = 2**62
_PACKED = ".packed"
"""Before the suffix of a packed recording."""


@click.command()
@file_argument
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write. Default: NAME.packed.gcspy; with --undo the name without that.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--undo", is_flag=True, help="Unpack a packed recording.")
@click.option(
    "--level",
    type=click.IntRange(1, 19),
    default=9,
    show_default=True,
    help="Compression level: higher is smaller and slower.",
)
def command(file: Path, output: Path | None, force: bool, undo: bool, level: int) -> None:
    """Compress a recording, to keep or to send it.

    All commands and the window read packed files directly. Bookmarks are copied. A damaged byte
    costs at most 512 events. Files that earlier versions packed (.zst) are packed again, and
    smaller. Join a split recording or a ring with `gcspy cut` first.
    """
    from gcspy_replay.file import (
        FileStore,
        carry_sidecar,
        open_source,
        repack,
        sidecar_path,
        unpack,
    )
    from gcspy_replay.file.parts.packed_source import is_packed

    old = is_packed(file)
    with opened([file]) as recording:
        if undo and not (recording.packed or old):
            raise CommandError(f"{file} is not packed")
        if recording.packed and not undo:
            raise CommandError(f"{file} is already packed: --undo unpacks it")
        if output is None:
            output = _name_for(file, undo=undo)
        if output.exists() and output.samefile(file):
            raise CommandError(f"{output} is the recording itself: name another file")
        with (
            new_file(output, replace=force) as part,
            progress_bar(f"writing {output}") as progress,
        ):
            if undo and old:
                with closing(open_source(file)) as source, part.open("xb") as out:
                    unpack(source, out, progress=progress)
            else:
                repack(recording, FileStore(part), level=None if undo else level, progress=progress)
    left = ""
    try:
        marks = carry_sidecar(
            sidecar_path(file), sidecar_path(output), recording.facts.recording, 1, _LAST
        )
        carried = f"; {marks} bookmark{'s' if marks > 1 else ''} copied" if marks else ""
    except RecordingError as error:
        carried, left = "", f"  bookmarks were not copied: {error}"
    before, now = file.stat().st_size, output.stat().st_size
    ratio = f", {before / now:.1f} times smaller" if now < before else ""
    say(f"{output}: {now:,} bytes{ratio}{carried}")
    if left:
        say(left)


def _name_for(file: Path, *, undo: bool) -> Path:
    """The name of the output file.

    Raises:
        CommandError: It cannot be derived from the input's name.
    """
    from gcspy_replay.file import PACKED_SUFFIX, SUFFIX

    name = file.name.removesuffix(PACKED_SUFFIX).removesuffix(SUFFIX)
    plain = name.removesuffix(_PACKED)
    if not undo:
        return file.with_name(plain + _PACKED + SUFFIX)
    if plain + SUFFIX == file.name:
        raise CommandError(f"{file} does not end in {_PACKED}{SUFFIX}: name the new file with -o")
    return file.with_name(plain + SUFFIX)
