"""The report of `gcspy malloc`: reads a process once, and writes what its malloc keeps as text or JSON.

Knows sums of a native heap; does not know malloc's structures.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from gcspy_drivers.native_heap.figures import Mallinfo
from gcspy_drivers.native_heap.layout import class_names
from gcspy_drivers.native_heap.malloc_reader import MallocReader, MallocReading
from gcspy_drivers.native_heap.summary import ArenaSummary, HeapSummary
from gcspy_drivers.native_heap.verdict import bytes_text, causes, verdict
from gcspy_drivers.remote import Hold, Process, held
from gcspy_protocol.errors import TargetError

from gcspy.output.terminal import say

__all__ = ["MallocReport", "print_malloc", "report_of_malloc"]

_LONGEST_HOLD_SECS: Final = 5.0
_MOST_HOLDS: Final = 3
_ALL: Final = 4
_MOST_ROWS: Final = 16
_MOST_PINS: Final = 3


@dataclass(frozen=True)
class MallocReport:
    """One reading of a process.

    Attributes:
        pid: The process.
        name: Its name.
        library: The file with malloc.
        resident_bytes: Its resident set; None: not known.
        anonymous_bytes: The part of it that belongs to no file; None: not known.
        reading: The reading.
        found: Its sums.
        hold: The hold; None: the process ran.
    """

    pid: int
    name: str
    library: str
    resident_bytes: int | None
    anonymous_bytes: int | None
    reading: MallocReading
    found: HeapSummary
    hold: Hold | None

    @property
    def consistent(self) -> bool:
        """Whether all is of one moment."""
        stopped = self.hold is not None and not self.hold.expired
        found = self.found
        torn = found.totals["unknown"] + found.changed + found.missed_caches + found.torn_fast_bins
        return stopped and not torn

    def sentence(self) -> str:
        """Return the sentence that sums it up."""
        return verdict(self.found, self.anonymous_bytes)

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON."""
        found, parameters = self.found, self.reading.parameters
        names = class_names()
        return {
            "pid": self.pid,
            "name": self.name,
            "library": self.library,
            "sentence": self.sentence(),
            "causes": causes(found),
            "consistent": self.consistent,
            "held_millis": None if self.hold is None else round(self.hold.nanos / 1e6, 3),
            "resident_bytes": self.resident_bytes,
            "anonymous_bytes": self.anonymous_bytes,
            "system_bytes": found.totals["system"],
            "used_bytes": found.totals["used"],
            "cached_bytes": found.totals["cached"],
            "fast_bytes": found.totals["fast"],
            "binned_bytes": found.totals["binned"],
            "top_bytes": found.totals["top"],
            "mapped_bytes": found.mapped,
            "free_bytes": found.totals["free"],
            "pinned_bytes": found.totals["pinned"],
            "reclaimable_bytes": found.reclaimable,
            "unknown_bytes": found.totals["unknown"],
            "mallinfo2": None if found.mallinfo is None else asdict(found.mallinfo),
            "parameters": None if parameters is None else asdict(parameters),
            "mapped_chunks": found.mapped_chunks,
            "mapped_chunks_found": found.mapped_found,
            "threads": found.threads,
            "threads_with_known_cache": found.found_threads,
            "thread_caches_not_read_whole": found.missed_caches,
            "fast_bins_not_read_whole": found.torn_fast_bins,
            "thread_caches": [
                {
                    "thread": cache.thread,
                    "arena": self._index_of(cache.arena),
                    "chunks": cache.chunks,
                    "bytes": int((cache.counts * cache.sizes).sum())
                    if (cache.counts[cache.sizes == 0] == 0).all()
                    else None,
                }
                for cache in self.reading.caches
            ],
            "size_classes": [
                {"name": names[index], "chunks": int(count), "bytes": int(size)}
                for index, (count, size) in enumerate(
                    zip(found.class_counts, found.class_bytes, strict=True)
                )
                if count
            ],
            "arenas": [_arena_as_json(arena) for arena in found.arenas],
        }

    def _index_of(self, address: int) -> int | None:
        return next((one.index for one in self.found.arenas if one.address == address), None)


def report_of_malloc(pid: int, *, hold: bool) -> MallocReport:
    """Read the malloc of a process once.

    Args:
        pid: The process.
        hold: Whether to stop it meanwhile.

    Raises:
        TargetError: It is gone, not permitted, or has no malloc of glibc.
    """
    with Process(pid) as process:
        reader = MallocReader(process)
        stopped: Hold | None = None
        try:
            reader.read(1)  # what is looked for only once needs no hold
            if hold:
                for _ in range(_MOST_HOLDS):  # a thread may have been stopped inside malloc
                    with held(process, longest_secs=_LONGEST_HOLD_SECS) as stopped:
                        reading = reader.read(_ALL, bins=False)
                    if reading.is_whole:
                        break
            else:
                reading = reader.read(_ALL, bins=False)
        finally:
            reader.close()
        process.check()
        if not reading.arenas:
            raise TargetError(
                f"process {pid}: its arenas changed during the read: try again, or add --hold"
            )
        return MallocReport(
            pid=pid,
            name=process.name,
            library=reader.location.path,
            resident_bytes=process.resident_bytes(),
            anonymous_bytes=reader.anonymous_bytes(),
            reading=reading,
            found=HeapSummary.of(reading),
            hold=stopped,
        )


def print_malloc(report: MallocReport) -> None:
    """Print a report on one screen."""
    found = report.found
    totals = found.totals
    say(f"{report.name} (process {report.pid}), malloc of {report.library}")
    say(report.sentence())
    for cause in causes(found):
        say(f"  {cause}")
    say()
    _print_sums(report)
    say()
    _print_arenas(found)
    notes = _notes(report)
    if notes:
        say()
        say("; ".join(notes))
    if found.mallinfo is not None and totals["unknown"] == 0:
        say(f"mallinfo2: {_mallinfo_text(found.mallinfo)}")


def _print_sums(report: MallocReport) -> None:
    found = report.found
    totals = found.totals
    system = totals["system"] + (found.mapped or 0)
    rows = [
        ("in use", totals["used"], f"{totals['used_chunks']:,} chunks"),
        (
            "mapped chunks",
            found.mapped,
            f"{found.mapped_chunks:,} chunks, in use, each with a mapping of its own",
        ),
        (
            "thread caches",
            totals["cached"],
            f"{totals['cached_chunks']:,} chunks of {found.found_threads} of {found.threads} threads",
        ),
        ("fast bins", totals["fast"], f"{totals['fast_chunks']:,} chunks"),
        (
            "bins",
            totals["binned"],
            f"{totals['free_chunks']:,} chunks; the largest hole has {bytes_text(max((one.largest_hole for one in found.arenas), default=0))}",
        ),
        ("top", totals["top"], "above the last chunk of each arena"),
        ("unknown", totals["unknown"], "changed during the read") if totals["unknown"] else None,
        ("all of malloc", system, ""),
        (
            "reclaimable",
            found.reclaimable,
            "whole free pages in memory: what malloc_trim would return",
        ),
        ("pinned", totals["pinned"], "free, on pages with chunks in use"),
        (
            "resident set",
            report.resident_bytes,
            f"{bytes_text(report.anonymous_bytes)} of it in no file"
            if report.anonymous_bytes
            else "",
        ),
    ]
    for row in filter(None, rows):
        name, size, about = row
        text = "unknown" if size is None else bytes_text(size)
        share = (
            f"{size / system:4.0%}"
            if size is not None and system and name != "resident set"
            else "    "
        )
        say(f"{name:>14}  {text:>10}  {share}  {about}".rstrip())


def _print_arenas(found: HeapSummary) -> None:
    header = (
        "arena",
        "threads",
        "system",
        "in use",
        "cached",
        "free",
        "reclaimable",
        "largest hole",
        "pinned by",
    )
    rows = [
        _arena_row(arena)
        for arena in sorted(found.arenas, key=lambda one: -one.system)[:_MOST_ROWS]
    ]
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    for row in [header, *rows]:
        cells = [cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        say("  ".join([*cells, row[-1]]).rstrip())
    if len(found.arenas) > _MOST_ROWS:
        say(f"and {len(found.arenas) - _MOST_ROWS} smaller arenas")


def _arena_row(arena: ArenaSummary) -> tuple[str, ...]:
    name = "main" if not arena.index else str(arena.index)
    threads = "?" if arena.threads is None else str(arena.threads)
    pins = ""
    if arena.pins and arena.free > arena.used:
        listed = [f"{size} bytes at {chunk:#x}" for chunk, size in arena.pins[:_MOST_PINS]]
        more = arena.used_chunks - len(listed)
        pins = ", ".join(listed) + (f" and {more} more" if more > 0 else "")
    reclaimable = "unknown" if arena.reclaimable is None else bytes_text(arena.reclaimable)
    return (
        name,
        threads,
        bytes_text(arena.system),
        bytes_text(arena.used),
        bytes_text(arena.cached),
        bytes_text(arena.free),
        reclaimable,
        bytes_text(arena.largest_hole),
        pins,
    )


def _notes(report: MallocReport) -> list[str]:
    found = report.found
    notes = []
    if report.hold is not None:
        notes.append(
            f"{'1 thread was' if report.hold.threads == 1 else f'{report.hold.threads} threads were'} held for {report.hold.nanos / 1e6:.1f} ms"
        )
        if report.hold.expired:
            notes.append("they were resumed before all was read")
    else:
        notes.append("read while the program ran")
    if found.changed:
        notes.append(f"{found.changed} of {len(found.arenas)} arenas changed during the read")
    if found.mapped_found != found.mapped_chunks:
        notes.append(f"{found.mapped_found} of {found.mapped_chunks} mapped chunks were found")
    if found.found_threads < found.threads:
        notes.append(
            f"caches of {found.threads - found.found_threads} threads were not found: their chunks count as in use"
        )
    if found.missed_caches:
        notes.append(
            f"{found.missed_caches} thread caches changed during the read: some of their chunks count as in use"
        )
    if found.torn_fast_bins:
        notes.append(
            f"{found.torn_fast_bins} fast bins changed during the read: some of their chunks count as in use"
        )
    return notes


def _mallinfo_text(figures: Mallinfo) -> str:
    return ", ".join(f"{name} {value}" for name, value in asdict(figures).items())


def _arena_as_json(arena: ArenaSummary) -> dict[str, Any]:
    found = asdict(arena) | {"free": arena.free, "address": f"{arena.address:#x}"}
    found["pins"] = [{"address": f"{chunk:#x}", "bytes": size} for chunk, size in arena.pins]
    chunk, size = arena.last_used
    found["last_used"] = {"address": f"{chunk:#x}", "bytes": size}
    return found
