"""`Heap`: the heap of a trace at any event, its collections, and the lives of its objects.

A trace is read once from end to end (`Heap.index`), which gives the collections, findings and a bounded number of checkpoints; whatever is
asked for later starts at the checkpoint before it. Memory in use depends on how large the traced heap was, not on how long the trace is.

Knows records (`gcspy_objects.records`) and no format. Not to be used from two threads at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from gcspy_protocol.errors import TraceError

from gcspy_objects.heap.checkpoints import Keep
from gcspy_objects.heap.findings import Findings
from gcspy_objects.heap.views import Collections, Life, Lives, Snapshot, Step
from gcspy_objects.trace import Trace

__all__ = ["Heap", "Progress"]

Progress: TypeAlias = Callable[[int, int], None]
"""Is told how many bytes of the trace were read, and how many there are."""


class Heap:
    """The heap that a trace tells of.

    What is asked for first reads the whole trace once, unless `index` did. A trace that ends in the midst of something, is damaged, or
    contradicts itself too often is rebuilt as far as it goes: look at `ended` and `findings` before you believe what you show.

    Args:
        trace: An open trace; it stays open, and is closed by whoever opened it.
        keep: How many checkpoints; None: some dozens.

    Attributes:
        trace: The trace.
        findings: What was found to contradict itself, once the trace was read.
    """

    def __init__(self, trace: Trace, *, keep: Keep | None = None) -> None:
        self.trace = trace
        self.findings = Findings()
        self._keep = keep or Keep()

    def index(self, progress: Progress | None = None) -> None:
        """Read the trace from end to end, once; later calls do nothing."""
        raise NotImplementedError

    @property
    def collections(self) -> Collections:
        """All collections that began and ended."""
        raise NotImplementedError

    @property
    def events(self) -> int:
        """How many events the heap was rebuilt from; `at` takes 0 up to this number."""
        raise NotImplementedError

    @property
    def ended(self) -> TraceError | None:
        """Why the heap was not rebuilt to the end of the trace; None: it was."""
        raise NotImplementedError

    def at(self, event: int) -> Snapshot:
        """Return the heap before an event.

        In the midst of a collection it is the heap at the collection's start.

        Raises:
            LocalProtocolError: There is no such event.
        """
        raise NotImplementedError

    def at_collection(self, number: int, *, end: bool = False) -> Snapshot:
        """Return the heap at a collection's start, or at its end.

        Raises:
            LocalProtocolError: There is no such collection.
        """
        raise NotImplementedError

    def steps(self, first: int = 1, last: int | None = None) -> Iterator[Step]:
        """Yield collections with the heap before and after them, from number `first` to `last`."""
        raise NotImplementedError

    def lives(self, progress: Progress | None = None) -> Iterator[Lives]:
        """Yield the lives of all objects: those that died, by collection, then those that are there at the end."""
        raise NotImplementedError

    def follow(self, birth: int) -> Life:
        """Return the life of the object that was allocated by event `birth`.

        Raises:
            LocalProtocolError: That event allocates no object.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Forget the checkpoints."""
        raise NotImplementedError
