"""The heap, rebuilt from the records of a trace: which objects were where, at any event.

    heap = Heap(open_trace("promote.tar.xz"))
    heap.collections[3].objects_died
    heap.at(100_000).address

`RebuiltHeap` is the entry point; its results are defined in `views`. `docs/object-traces.md` has
the rules for rebuilding.
"""

from gcspy_objects.heap.findings import Finding, Findings, Rule
from gcspy_objects.heap.heap import Progress, RebuiltHeap
from gcspy_objects.heap.index.checkpoints import Keep
from gcspy_objects.heap.views import (
    COLUMNS,
    CollectionStep,
    Columns,
    Fate,
    HeapSnapshot,
    Life,
    Lives,
    ObjectFlag,
    Placement,
    Spaces,
    TraceCollection,
    TraceCollections,
    TraceSpace,
)

__all__ = [
    "COLUMNS",
    "TraceCollection",
    "TraceCollections",
    "Columns",
    "Fate",
    "Finding",
    "Findings",
    "RebuiltHeap",
    "Keep",
    "Life",
    "Lives",
    "ObjectFlag",
    "Progress",
    "Rule",
    "HeapSnapshot",
    "TraceSpace",
    "Spaces",
    "Placement",
    "CollectionStep",
]
