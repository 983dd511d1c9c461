"""The effective flags of a JVM: collector, heap size, layout of objects.

Read from the VM's own table of flags, not from the command line: most are chosen by the VM itself.
Knows names and widths of the requested flags; does not know their meaning.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from gcspy_protocol.errors import TargetError

from gcspy_drivers.hotspot.vm.tables import VmTables, read_texts
from gcspy_drivers.remote.memory import Memory

__all__ = ["Flags", "read_flags"]

_MOST_FLAGS: Final = 8192  # JDK 8 to 25 have up to 1,900
_MOST_STRIDE: Final = 128


class Flags:
    """The flags of one JVM.

    Args:
        memory: The target's memory.
        places: Place of each value, by name.
    """

    def __init__(self, memory: Memory, places: dict[str, int]) -> None:
        self._memory = memory
        self._places = places

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def on(self, name: str) -> bool:
        """Return whether a flag of type ``bool`` is there and set."""
        return self._read(name, 1) not in (None, b"\0")

    def number(self, name: str, size_bytes: int = 8) -> int | None:
        """Return an unsigned number; None when this version has no such flag.

        Args:
            name: The flag.
            size_bytes: Its width: 8 for ``size_t``, ``uintx`` and ``intx``, 4 for ``uint`` and ``int``.
        """
        found = self._read(name, size_bytes)
        return None if found is None else int.from_bytes(found, "little")

    def text(self, name: str) -> str:
        """Return a text; empty when this version has no such flag, or it has none."""
        where = self.number(name)
        return (
            read_texts(self._memory, np.array([where], dtype=np.uint64)).get(where, "")
            if where
            else ""
        )

    def _read(self, name: str, size_bytes: int) -> bytes | None:
        place = self._places.get(name)
        return None if place is None else self._memory.try_read(place, size_bytes)


def read_flags(memory: Memory, tables: VmTables) -> Flags:
    """Find the flags of a JVM.

    Raises:
        TargetError: Their table is invalid.
        TargetGone: The target has ended.
    """
    kind = "JVMFlag" if "JVMFlag" in tables.types else "Flag"  # until JDK 8
    first = int.from_bytes(memory.read(tables.need_static(kind, "flags"), 8), "little")
    count = int.from_bytes(memory.read(tables.need_static(kind, "numFlags"), 8), "little")
    stride = tables.size_of(kind) or 0
    name, addr = tables.need_offset(kind, "_name"), tables.need_offset(kind, "_addr")
    if (
        not 0 < count <= _MOST_FLAGS
        or not 16 <= stride <= _MOST_STRIDE
        or max(name, addr) > stride - 8
    ):
        raise TargetError(
            f"process {memory.process.pid}: {count} flags of {stride} bytes at {first:#x}: it is starting, or it is not a supported HotSpot"
        )
    entries = np.frombuffer(memory.read(first, count * stride), dtype=np.uint8).reshape(
        count, stride
    )
    names = entries[:, name : name + 8].copy().view("<u8")[:, 0]
    addrs = entries[:, addr : addr + 8].copy().view("<u8")[:, 0]
    filled = (names != 0) & (addrs != 0)  # the last one is empty
    texts = read_texts(memory, names[filled])
    return Flags(
        memory,
        {
            texts[where]: place
            for where, place in zip(names[filled].tolist(), addrs[filled].tolist(), strict=True)
            if where in texts
        },
    )
