"""HotSpot's own data about its heap: tops of spaces and class histograms, read from its log.

It is that of JDK 8 with ``-XX:+PrintHeapAtGC`` and ``-XX:+PrintClassHistogramAfterFullGC``. A trace and this log come from one run and from different code of the VM, so that a heap rebuilt from the one can be held against the other.
Numbers are kept by the count of collections that the log gives ("invocations"), which is the trace's number of a collection.

Knows the log's lines of the Parallel collector; knows no heap. Other lines are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from gcspy_protocol.errors import TraceError

from gcspy_objects.archive import FileSpan, is_archive, members

__all__ = ["Histogram", "LoggedCollection", "LoggedSpace", "find_log", "read_log"]

Histogram: TypeAlias = dict[str, tuple[int, int]]
"""The VM's name of a class to the number of its instances, and their bytes."""

MOST_COLLECTIONS: Final = 1_000_000
_MOST_BYTES: Final = 64 << 20
_HEAP: Final = re.compile(r"^\{?Heap (before|after) GC invocations=(\d{1,9})")
_SPACE: Final = re.compile(
    r"^\s+(eden|from|to|object)\s+space .*\[0x([0-9a-f]{1,16}), ?0x([0-9a-f]{1,16}), ?0x([0-9a-f]{1,16})\)"
)
_HISTOGRAM: Final = re.compile(r"^ num +#instances +#bytes ")
_CLASS: Final = re.compile(r"^\s*\d+:\s+(\d{1,18})\s+(\d{1,18})\s+(\S+)")


@dataclass(frozen=True, slots=True)
class LoggedSpace:
    """A space as the log has it.

    Attributes:
        name: eden, from, to or object.
        start: First address.
        top: Address behind the last object.
        end: Address behind the space.
    """

    name: str
    start: int
    top: int
    end: int


@dataclass(slots=True)
class LoggedCollection:
    """The log's data about one collection.

    Attributes:
        before: The spaces at its start.
        after: The spaces at its end.
        histogram: All classes, after a full one; empty where the log has none.
    """

    before: list[LoggedSpace] = field(default_factory=list)
    after: list[LoggedSpace] = field(default_factory=list)
    histogram: Histogram = field(default_factory=dict)


def find_log(path: Path) -> list[str] | None:
    """Return the lines of the log beside a trace, as ``gc.log`` in its folder or archive; None if there is none, or only a large one."""
    try:
        if path.is_file():
            with path.open("rb") as file, ExitStack() as opened:
                archive = FileSpan(file, 0, path.stat().st_size, path.name)
                if is_archive(archive):
                    logs = (one for one in members(archive, opened) if one.name.endswith("/gc.log"))
                    log = next(logs, None)
                    return None if log is None else _lines(log)
        beside = (path if path.is_dir() else path.parent) / "gc.log"
        if not beside.is_file():
            return None
        with beside.open("rb") as file:
            return _lines(FileSpan(file, 0, beside.stat().st_size, beside.name))
    except (OSError, TraceError):
        return None  # the reader reports errors of the archive


def _lines(log: FileSpan) -> list[str] | None:
    if log.size > _MOST_BYTES:
        return None
    return log.read(0, log.size).decode("utf-8", "replace").splitlines()


def read_log(lines: Iterable[str]) -> dict[int, LoggedCollection]:
    """Read a log, line by line; return its data of each collection, by the VM's count of them."""
    found: dict[int, LoggedCollection] = {}
    current, spaces, counting = None, None, False
    for line in lines:
        if heap := _HEAP.match(line):
            number = int(heap[2])
            if number not in found and len(found) >= MOST_COLLECTIONS:
                break
            current = found.setdefault(number, LoggedCollection())
            spaces, counting = (current.before if heap[1] == "before" else current.after), False
        elif (space := _SPACE.match(line)) and spaces is not None:
            spaces.append(
                LoggedSpace(space[1], int(space[2], 16), int(space[3], 16), int(space[4], 16))
            )
        elif _HISTOGRAM.match(line):
            counting, spaces = True, None
        elif counting and current is not None and (one := _CLASS.match(line)):
            instances, size = current.histogram.get(one[3], (0, 0))
            current.histogram[one[3]] = instances + int(one[1]), size + int(one[2])
        elif line.startswith("Total"):
            counting = False
    return found
