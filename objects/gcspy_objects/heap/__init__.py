"""The heap, rebuilt from the records of a trace: which objects were where, at any event.

    heap = Heap(open_trace("promote.tar.xz"))
    heap.collections[3].objects_died
    heap.at(100_000).address

`Heap` is the door; what it hands out is in `views`. The rules by which it is rebuilt are in `docs/object-traces.md`.
"""

from gcspy_objects.heap.checkpoints import Keep
from gcspy_objects.heap.findings import Finding, Findings, Rule
from gcspy_objects.heap.heap import Heap, Progress
from gcspy_objects.heap.views import (
    COLUMNS,
    Collection,
    Collections,
    Columns,
    Fate,
    Life,
    Lives,
    ObjectFlag,
    Placement,
    Snapshot,
    Space,
    Spaces,
    Step,
)

__all__ = [
    "COLUMNS",
    "Collection",
    "Collections",
    "Columns",
    "Fate",
    "Finding",
    "Findings",
    "Heap",
    "Keep",
    "Life",
    "Lives",
    "ObjectFlag",
    "Progress",
    "Rule",
    "Snapshot",
    "Space",
    "Spaces",
    "Placement",
    "Step",
]
