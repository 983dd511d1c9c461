"""`verdict`: the sentences that answer whether much memory is a leak of the program or kept by malloc, and what keeps it.

Knows sums; does not know where they come from.
"""

from __future__ import annotations

from typing import Final

from gcspy_drivers.native_heap.layout import least_sizes
from gcspy_drivers.native_heap.summary import ArenaSummary, HeapSummary

__all__ = ["bytes_text", "causes", "verdict"]

_MUCH: Final = 0.25
_SOME: Final = 0.1
_LEAST_BYTES: Final = 1 << 20
_FEW_PINS: Final = 64
_MANY_ARENAS: Final = 9
_POOL_CHUNK_BYTES: Final = 4096
_POOL_SHARE: Final = 0.5


def bytes_text(size: int) -> str:
    """Write a number of bytes for people: ``205 MiB``, ``1.5 GiB``, ``640 bytes``."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << shift:
            amount = size / (1 << shift)
            return f"{amount:.1f} {unit}" if amount < 10 else f"{amount:,.0f} {unit}"
    return f"{size} bytes"


def verdict(found: HeapSummary, anonymous_bytes: int | None) -> str:
    """Write the sentence that sums a heap up.

    Args:
        found: Its sums.
        anonymous_bytes: Bytes of the process that are in memory and belong to no file; None: not known.
    """
    totals = found.totals
    system = totals["system"] + (found.mapped or 0)
    count = len(found.arenas)
    arenas = "1 arena" if count == 1 else f"{count} arenas"
    parts = [f"{bytes_text(totals['free'])} of {bytes_text(system)} are free in {arenas}"]
    if found.reclaimable is None:
        parts.append("which pages are in memory is not known")
    else:
        parts.append(f"trimming would return {bytes_text(found.reclaimable)}")
    pinned = _kept_by_few(found)
    if pinned is not None:
        chunks = "1 chunk" if pinned.used_chunks == 1 else f"{pinned.used_chunks} chunks"
        parts.append(f"arena {pinned.index} ({bytes_text(pinned.system)}) is pinned by {chunks}")
    text = "; ".join(parts)
    share = (totals["used"] + (found.mapped or 0)) / system if system else 0.0
    if system >= _LEAST_BYTES and share >= 1 - _MUCH:
        text += f". The program itself holds {share:.0%}: malloc does not keep it"
    if anonymous_bytes and system < anonymous_bytes * _MUCH and anonymous_bytes > _LEAST_BYTES:
        text += f". Only {bytes_text(system)} of {bytes_text(anonymous_bytes)} of anonymous memory are malloc's: another manager has the rest"
    return text + "."


def causes(found: HeapSummary) -> list[str]:
    """Name what keeps memory, each in a sentence; none: nothing remarkable."""
    totals = found.totals
    system = max(totals["system"], 1)
    said = []
    if totals["pinned"] > _MUCH * system and system >= _LEAST_BYTES:
        said.append(
            f"Fragmentation: {bytes_text(totals['pinned'])} are free beside chunks in use on the same pages; trimming cannot return them."
        )
    many = [arena for arena in found.arenas if not arena.used_chunks or arena.free > arena.used]
    if len(found.arenas) >= _MANY_ARENAS and 2 * len(many) >= len(found.arenas):
        kept = sum(arena.free for arena in many)
        said.append(
            f"Many arenas: {len(many)} of {len(found.arenas)} are mostly free and keep {bytes_text(kept)}; MALLOC_ARENA_MAX=2 limits them."
        )
    if totals["fast"] > _SOME * system or totals["fast_chunks"] > 50_000:
        said.append(
            f"Fast bins: {totals['fast_chunks']:,} freed chunks ({bytes_text(totals['fast'])}) were never joined with their neighbours; trimming joins them."
        )
    if totals["cached"] > _SOME * system:
        said.append(
            f"Thread caches: {totals['cached_chunks']:,} freed chunks ({bytes_text(totals['cached'])}) are kept by threads; trimming does not return them."
        )
    tops = sum(arena.top_resident or 0 for arena in found.arenas[1:])
    if tops > _SOME * system and tops >= _LEAST_BYTES:
        said.append(
            f"Tops of arenas: {bytes_text(tops)} above the last chunks of arenas of threads are in memory; trimming does not return them."
        )
    return [*said, *_pools(found)]


def _kept_by_few(found: HeapSummary) -> ArenaSummary | None:
    """Return the largest arena of mostly free memory that few chunks in use keep."""
    kept = [
        arena
        for arena in found.arenas
        if 0 < arena.used_chunks <= _FEW_PINS
        and arena.system >= _LEAST_BYTES
        and arena.free > arena.used
        and not arena.unknown
    ]
    return max(kept, key=lambda arena: arena.system, default=None)


def _pools(found: HeapSummary) -> list[str]:
    """Say that large chunks hold most: a manager of the program divides them, and nobody sees how."""
    large = [least >= _POOL_CHUNK_BYTES for least in least_sizes()]
    total = int(found.class_bytes.sum())
    held = int(found.class_bytes[large].sum())
    chunks = int(found.class_counts[large].sum())
    if not total or held < _POOL_SHARE * total or held < _LEAST_BYTES // 8:
        return []
    return [
        f"Large chunks: {held / total:.0%} of the bytes in use are in {chunks:,} chunks of 4 KiB or more. If they are pools of the program's own manager, how it divides them cannot be seen here."
    ]
