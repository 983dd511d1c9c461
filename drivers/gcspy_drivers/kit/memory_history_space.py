"""The space "Memory over time": one tile, the process; its streams are the resident set and the memory of each memory manager.

It is small and cheap, so every session has it from its first event on, and every recording. Knows
numbers and streams; does not know processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gcspy_drivers.kit.streams import add_bytes, hide_all
from gcspy_server.api import Server, ServerStream, StringNames

__all__ = ["HeapBytes", "MemoryHistorySpace"]

_MOST_LISTED = 8


@dataclass(frozen=True, slots=True)
class HeapBytes:
    """Memory of a memory manager; None: not known.

    Attributes:
        used: Bytes in use, as counted by the manager.
        committed: Bytes that it has taken from the system, and may use.
    """

    used: int | None
    committed: int | None


class MemoryHistorySpace:
    """The memory of a process in a few numbers.

    Args:
        server: The server to add the space to.
        driver: The driver that adds it.
        managers: Names of the memory managers, for people: ``pymalloc``.
    """

    def __init__(self, server: Server, *, driver: str, managers: Sequence[str]) -> None:
        self.space = server.add_space(
            "Memory over time",
            names=StringNames(["process"]),
            driver=driver,
            description="Resident set of the process, and what memory managers have of it",
        )
        about = "Resident set: bytes of the process that are in memory"
        self._resident = add_bytes(self.space, "Resident set", about, order=0)
        self._heaps: dict[str, tuple[ServerStream, ServerStream]] = {}
        for place, name in enumerate(managers):
            committed = f"Bytes that {name} has taken from the system"
            self._heaps[name] = (
                add_bytes(
                    self.space, f"{name} used", f"Bytes in use in {name}", order=2 * place + 1
                ),
                add_bytes(self.space, f"{name} committed", committed, order=2 * place + 2),
            )

    def fill(
        self, resident: int | None, heaps: Mapping[str, HeapBytes], children: Sequence[int] = ()
    ) -> None:
        """Fill the space; missing values are unknown.

        Args:
            resident: Bytes of the resident set.
            heaps: Memory of each manager, by its name.
            children: Ids of the child processes, whose memory is not part of this.
        """
        self.space.reset()
        self.space.info = _words(children)
        _show(self._resident, resident)
        for name, (used, committed) in self._heaps.items():
            heap = heaps.get(name, HeapBytes(None, None))
            _show(used, heap.used)
            _show(committed, heap.committed)


def _words(children: Sequence[int]) -> str:
    if not children:
        return ""
    listed = ", ".join(map(str, children[:_MOST_LISTED]))
    if len(children) > _MOST_LISTED:
        listed += f" and {len(children) - _MOST_LISTED:,} more"
    if len(children) == 1:
        return f"a child process is not part of this: {listed}"
    return f"{len(children):,} child processes are not part of this: {listed}"


def _show(stream: ServerStream, value: int | None) -> None:
    if value is None:
        hide_all([stream])
    else:
        stream.data[:] = value
