"""`Trace`: the interface of a reader of any format, and `open_trace`, which finds the reader for a path.

A second format is a package beside `anttracks` that makes a `Trace`, and a line in `open_trace`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from gcspy_objects.gctrace.layout import MAGIC, SUFFIX
from gcspy_objects.names import Causes, Flaw, Sites, Threads, Types
from gcspy_objects.records import ReadPosition, RecordBatch

__all__ = ["Trace", "is_gctrace", "open_trace"]


class Trace(Protocol):
    """A trace that is open for reading. Its events can be read repeatedly, from the beginning or from any earlier batch.

    Attributes:
        name: Name for people.
        types: All types.
        sites: All allocation sites.
        causes: All causes of collections.
        threads: The threads of the batches that were read so far.
    """

    name: str
    types: Types
    sites: Sites
    causes: Causes
    threads: Threads

    @property
    def size_bytes(self) -> int:
        """Bytes of all its files of events; `position_bytes` of a place is the position in them."""
        ...

    @property
    def has_pointers(self) -> bool:
        """Whether it contains pointers."""
        ...

    @property
    def contiguous(self) -> bool:
        """Whether objects of a space follow each other without holes when a collection starts, and when it has ended."""
        ...

    def batches(self, place: ReadPosition | None = None) -> Iterator[RecordBatch]:
        """Yield the records, from the beginning or from `place` (`RecordBatch.place` or `.after` of a batch of this trace).

        Memory in use depends on the size of a batch, not on the length of the trace.

        Raises:
            TraceError: The rest is not a valid trace; all valid records before have been yielded.
        """
        ...

    def find_flaws(self) -> Sequence[Flaw]:
        """Check its types, sites and causes for contradictions; examines all of them."""
        ...

    def position_bytes(self, place: ReadPosition) -> int:
        """Return how many of `size_bytes` lie before `place`: progress."""
        ...

    def close(self) -> None:
        """Close its files."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def open_trace(path: Path | str) -> Trace:
    """Open the object trace at `path`: a folder with the files of one run, an archive (``.tar.xz`` and its like) of one, or a trace file.

    Raises:
        TraceError: There is none, or its names cannot be read. Errors in its events are raised by
            `Trace.batches`.
    """
    path = Path(path)
    if is_gctrace(path):
        from gcspy_objects.gctrace.reader import GCspyTrace

        return GCspyTrace(path)
    from gcspy_objects.anttracks.reader import AntTracksTrace

    return AntTracksTrace(path)


def is_gctrace(path: Path) -> bool:
    """Whether a path is an object trace of ours: a file that begins as one, or a folder that has one. It may still be damaged."""
    try:
        if path.is_dir():
            path = next((one for one in sorted(path.iterdir()) if one.suffix == SUFFIX), path)
        if not path.is_file():  # opening a pipe would wait for its writer
            return False
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False
