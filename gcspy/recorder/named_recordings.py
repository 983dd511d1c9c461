"""Recordings that the user names: distinguishes them from addresses and PIDs, and opens them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gcspy_protocol.errors import CommandError

from gcspy.objects.trace_conversion import names_trace
from gcspy.output.progress import progress_bar
from gcspy.output.terminal import say_aside
from gcspy.recorder.original_traces import named_original, original_recording

if TYPE_CHECKING:
    from gcspy_replay.file import Loss, Recording

__all__ = ["loss_lines", "names_recording", "opened"]


@contextmanager
def opened(paths: Iterable[Path | str]) -> Iterator[Recording]:
    """A recording, closed when the block ends; a progress bar shows the scan of one without an index.

    A stored trace of the original GCspy is converted first.

    Raises:
        RecordingError: It is not a recording, or cannot be read.
        CommandError: It is an object trace.
    """
    from gcspy_replay.file import Recording
    from gcspy_replay.file.parts.addresses import is_address

    given = list(paths)
    if any(map(is_address, given)):
        with progress_bar("looking for chunks") as progress:
            recording = Recording.open(*given, progress=progress)
        with recording:
            yield recording
        return
    named = [Path(path) for path in given]
    trace = next((path for path in named if names_trace(path)), None)
    if trace is not None:
        raise CommandError(
            f"{trace} is an object trace: gcspy replay plays it, gcspy objects queries it, gcspy convert converts it to a recording"
        )
    with ExitStack() as stack:
        original = named_original(named)
        if original is not None:
            with progress_bar(f"converting {original.name}") as progress:
                file, notes = stack.enter_context(
                    original_recording(original, lambda _what, done, total: progress(done, total))
                )
            for note in notes:
                say_aside(note)
            named = [file]
        with progress_bar("looking for chunks") as progress:
            recording = Recording.open(*named, progress=progress)
        yield stack.enter_context(recording)


def loss_lines(lost: Sequence[Loss]) -> list[str]:
    """The losses, for people: each range of events, and the total if there are several."""
    lines = []
    for one in lost:
        which = (
            f"events {one.first:,} to {one.last:,}"
            if one.last > one.first
            else f"event {one.first:,}"
        )
        time = (
            "of unknown duration"
            if one.nanos is None
            else f"{one.nanos / 1e9:,.3f} s without values"
        )
        lines.append(f"lost: {which}, {time}")
    if len(lost) > 1:
        known = sum(one.nanos or 0 for one in lost) / 1e9
        more = " or more" if any(one.nanos is None for one in lost) else ""
        lines.append(
            f"lost in total: {sum(one.events for one in lost):,} events, {known:,.3f} s{more}"
        )
    return lines


def names_recording(source: str) -> bool:
    """Whether this is a file or folder of a recording; otherwise it is a PID or an address.

    A number is a PID, unless a recording has that name. Any other existing file or folder is taken
    for a recording, so that the error says what is wrong with it.

    Raises:
        CommandError: It has the suffix of a recording, and does not exist.
    """
    from gcspy_replay.file import PACKED_SUFFIX, SUFFIX

    path = Path(source)
    if path.is_file():
        return not source.isdecimal() or _begins_like_one(path)
    if path.is_dir():
        return not source.isdecimal() or any(path.glob("*" + SUFFIX))
    if source.endswith((SUFFIX, SUFFIX + PACKED_SUFFIX)) and not source.startswith("unix:"):
        raise CommandError(f"there is no file {source}")
    return False


def _begins_like_one(path: Path) -> bool:
    from gcspy_protocol.errors import RecordingError
    from gcspy_replay.file import open_source
    from gcspy_replay.file.layout import MAGIC

    try:
        with closing(open_source(path)) as source:
            return source.read_at(0, len(MAGIC)) == MAGIC
    except RecordingError:
        return False
