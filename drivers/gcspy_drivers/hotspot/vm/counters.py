"""The performance counters that a JVM keeps for ``jstat``: collections by collector, their time and cause, metaspace, the command.

They are in memory of the VM (shared with the file ``hsperfdata``, which need not be found or readable), each at a place that does not move
once it is there; a JVM with ``-XX:-UsePerfData`` has none. Knows their form and none of their names.

Source: OpenJDK src/hotspot/share/runtime/perfMemory.hpp (``PerfDataPrologue``, ``PerfDataEntry``), format 2.0.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np

from gcspy_drivers.hotspot.vm.tables import VmTables
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.pieces import Gather

__all__ = ["PerfCounters", "find_counters"]

_MAGIC: Final = 0xCAFEC0C0
_PROLOGUE: Final = struct.Struct("<IBBBBiiqii")
_ENTRY: Final = struct.Struct("<iiiBBBBi")
_LITTLE_ENDIAN: Final = 1
_MOST_BYTES: Final = 4 << 20  # 32 KiB unless PerfDataMemorySize says otherwise
_MOST_ENTRIES: Final = 8192
_TEXT, _NUMBER = ord("B"), ord("J")


@dataclass(frozen=True, slots=True)
class _Place:
    """Place of a value, and bytes of its text; 0: it is a number."""

    address: int
    text_bytes: int


class PerfCounters:
    """The counters that one JVM had at the time of the search.

    Args:
        memory: The target's memory.
        places: Place of each value, by name.
    """

    def __init__(self, memory: Memory, places: dict[str, _Place]) -> None:
        self._memory = memory
        self._places = places
        self._gathers: dict[tuple[str, ...], Gather] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def __len__(self) -> int:
        return len(self._places)

    def names(self, begin: str, end: str) -> list[str]:
        """List the names that begin and end so, sorted."""
        return sorted(
            name for name in self._places if name.startswith(begin) and name.endswith(end)
        )

    def text(self, name: str) -> str:
        """Return a text; empty if there is no such counter."""
        place = self._places.get(name)
        if place is None or not place.text_bytes:
            return ""
        found = self._memory.try_read(place.address, place.text_bytes) or b""
        return found.partition(b"\0")[0].decode("utf-8", "replace")

    def number(self, name: str) -> int | None:
        """Return a number; None if there is no such counter."""
        return self.numbers(name)[0]

    def numbers(self, *names: str) -> tuple[int | None, ...]:
        """Return several numbers with one read; None for each that is not there."""
        there = tuple(
            name for name in names if name in self._places and not self._places[name].text_bytes
        )
        gather = self._gathers.get(there)
        if gather is None:
            addrs = np.array([self._places[name].address for name in there], dtype=np.uint64)
            gather = self._gathers[there] = Gather(self._memory.process, addrs, 8)
        gather.read()
        values = gather.data.view("<i8")[:, 0].tolist() if there else []
        found = {
            name: value
            for name, value, ok in zip(there, values, gather.ok.tolist(), strict=True)
            if ok
        }
        return tuple(found.get(name) for name in names)


def find_counters(memory: Memory, tables: VmTables) -> PerfCounters:
    """Find the counters of a JVM; there are none if it keeps none, or they are invalid.

    Raises:
        TargetGone: The target has ended.
    """
    places = [tables.static("PerfMemory", name) for name in ("_start", "_end")]
    if None in places:
        return PerfCounters(memory, {})
    first, end = (_word(memory, place) for place in places if place is not None)
    size_bytes = end - first
    if not first or not _PROLOGUE.size <= size_bytes <= _MOST_BYTES:
        return PerfCounters(memory, {})
    found = memory.try_read(first, size_bytes)
    return PerfCounters(memory, {} if found is None else _parse(found, first))


def _word(memory: Memory, addr: int) -> int:
    return int.from_bytes(memory.try_read(addr, 8) or b"", "little")


def _parse(found: bytes, first: int) -> dict[str, _Place]:
    magic, order, _, _, _, used, _, _, entry_offset, entries = _PROLOGUE.unpack_from(found)
    # The magic is written so that it reads the same in a hex dump of any machine.
    if magic != int.from_bytes(_MAGIC.to_bytes(4, "big"), "little") or order != _LITTLE_ENDIAN:
        return {}
    if not _PROLOGUE.size <= entry_offset <= used <= len(found) or not 0 < entries <= _MOST_ENTRIES:
        return {}
    places = {}
    at = entry_offset
    for _ in range(entries):
        if at + _ENTRY.size > used:
            break
        length, name_offset, vector, kind, _, _, _, data_offset = _ENTRY.unpack_from(found, at)
        if (
            length < _ENTRY.size
            or not _ENTRY.size <= name_offset < length
            or not name_offset < data_offset < length
            or length > used - at
        ):
            break  # one that is incomplete, or invalid; those behind it are not known
        name = (
            found[at + name_offset : at + data_offset]
            .partition(b"\0")[0]
            .decode("utf-8", "replace")
        )
        if kind == _NUMBER and not vector and data_offset + 8 <= length:
            places[name] = _Place(first + at + data_offset, 0)
        elif kind == _TEXT and 0 < vector <= length - data_offset:
            places[name] = _Place(first + at + data_offset, vector)
        at += length
    return places
