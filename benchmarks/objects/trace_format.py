"""Our own object traces: bytes an event, and nanoseconds of processor time to write, read and rebuild one.

    python -m benchmarks.objects.trace_format [TRACE...] [--events N]

A synthetic native program allocates and frees from lists of free blocks by size, as malloc does, in N events (default 2,000,000); TRACEs
are measured beside it: `.gctrace` files of real programs, or AntTracks traces, which are converted first.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
from gcspy_objects.gctrace.address_model import AddressParameters
from gcspy_objects.gctrace.conversion import convert_trace
from gcspy_objects.gctrace.events import EventColumns
from gcspy_objects.gctrace.writer import TraceWriter
from gcspy_objects.heap import RebuiltHeap
from gcspy_objects.records import RecordKind
from gcspy_objects.trace import Trace, open_trace

from benchmarks.harness.figures import tell

__all__ = ["main"]

_BLOCK = 1 << 16
_GLIBC = AddressParameters(4, 24, 8)


def synthetic_events(count: int, seed: int = 1) -> EventColumns:
    """Return the events of a program with some ten thousand live blocks, a third of them short-lived."""
    random = np.random.default_rng(seed)
    dice, sizes, sites = (
        random.random(count),
        random.integers(8, 600, count),
        random.integers(1, 200, count),
    )
    picks = random.integers(0, 1 << 30, count)
    kind, address = np.zeros(count, np.uint8), np.zeros(count, np.int64)
    free: dict[int, list[int]] = {}
    live: list[tuple[int, int]] = []
    top = 0x5555_0000_0000
    for event in range(count):
        if live and dice[event] < 0.5 - 1000 / (1000 + len(live)) * 0.1:
            row = len(live) - 1 if dice[event] < 0.3 else int(picks[event]) % len(live)
            live[row], live[-1] = live[-1], live[row]
            address[event], cls = live.pop()
            free.setdefault(cls, []).append(int(address[event]))
            kind[event] = RecordKind.FREE
        else:
            cls = (max(int(sizes[event]), 24) + 8 + 15) >> 4
            lists = free.get(cls)
            if lists:
                place = lists.pop()
            else:
                place, top = top, top + 16 * cls
            live.append((place, cls))
            address[event], kind[event] = place, RecordKind.ALLOCATE
    allocates = kind == RecordKind.ALLOCATE
    none = np.zeros(count, np.int64)
    return EventColumns(
        kind, none.astype(np.uint8), none.astype(np.uint8), None, address, none, np.where(allocates, sizes, 0), none.astype(np.int32),
        np.where(allocates, sites, 0).astype(np.int32), none.astype(np.int32), none,
    )  # fmt: skip


def part_of(events: EventColumns, low: int, high: int) -> EventColumns:
    """Return some of the events."""
    names = ("kind", "detail", "flags", "address", "to", "size", "type", "site", "length", "stamp")
    columns = {name: getattr(events, name)[low:high] for name in names}
    return EventColumns(thread=None, **columns)


def report(what: str, text: str) -> None:
    """Print a line."""
    print(f"{what}: {text}")


def nanos(work: Callable[[], int]) -> float:
    """Return processor nanoseconds an event of something that returns a number of events."""
    begun = time.process_time_ns()
    count = work()
    return (time.process_time_ns() - begun) / max(count, 1)


def measure_write(parameters: AddressParameters | None, events: EventColumns) -> None:
    """Write the synthetic program with one kind of columns."""
    file = io.BytesIO()

    def write() -> int:
        writer = TraceWriter(file, {"deaths": "told"}, parameters)
        for low in range(0, len(events), _BLOCK):
            writer.write(part_of(events, low, low + _BLOCK), thread=1)
        return writer.events

    took = nanos(write)
    name = "predicted" if parameters else "differences"
    tell(f"{name} of a synthetic program", len(file.getvalue()) / len(events), "B an event")
    report(
        f"synthetic, {name}",
        f"{len(file.getvalue()) / len(events):.2f} B an event, written at {took:.0f} ns an event",
    )


def converted_events(trace: Trace, file: IO[bytes]) -> int:
    """Convert a trace; return how many events it has."""
    return convert_trace(trace, file).events


def measure_read(name: str, trace: Trace) -> None:
    """Read and rebuild a trace."""
    read = nanos(lambda: sum(map(len, trace.batches())))
    with RebuiltHeap(trace) as heap:

        def index() -> int:
            heap.index()
            return heap.events

        rebuilt = nanos(index)
        report(
            name,
            f"{heap.events:,} events, {trace.size_bytes / max(heap.events, 1):.2f} B an event, "
            f"read at {read:.0f} ns, read and rebuilt at {rebuilt:.0f} ns an event",
        )


def main() -> None:
    """Measure all, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--events", type=int, default=2_000_000)
    chosen = parser.parse_args()
    events = synthetic_events(chosen.events)
    for parameters in (None, _GLIBC):
        measure_write(parameters, events)
    with tempfile.TemporaryDirectory(prefix="gcspy-bench-") as folder:
        path = Path(folder) / "made.gctrace"
        with path.open("wb") as file:
            writer = TraceWriter(file, {"deaths": "told"}, _GLIBC)
            for low in range(0, len(events), _BLOCK):
                writer.write(part_of(events, low, low + _BLOCK), thread=1)
            writer.end()
        with open_trace(path) as trace:
            measure_read("synthetic", trace)
        for given in chosen.traces:
            with open_trace(given) as trace:
                if given.suffix == ".gctrace":
                    measure_read(given.name, trace)
                    continue
                with path.open("wb") as file:
                    took = nanos(partial(converted_events, trace, file))
                report(
                    given.name, f"{trace.size_bytes:,} bytes, converted at {took:.0f} ns an event"
                )
            with open_trace(path) as converted:
                measure_read(f"{given.name} converted", converted)


if __name__ == "__main__":
    main()
