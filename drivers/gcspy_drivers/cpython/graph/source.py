"""`GraphSource`: the source of the graph of a process's references."""

from __future__ import annotations

from typing import NamedTuple

from gcspy_drivers.cpython.collector.interpreters import Interpreter
from gcspy_drivers.cpython.graph.memory_copy import MemoryCopy
from gcspy_drivers.cpython.layouts import VersionLayout
from gcspy_drivers.cpython.objects.types import TypeTable
from gcspy_drivers.remote.memory import Memory

__all__ = ["GraphSource"]


class GraphSource(NamedTuple):
    """A copy of a process's memory, and the information for reading it.

    Attributes:
        memory: The process's memory, for names that were not copied.
        copy: Its writable memory.
        types: Its known types.
        layout: Offsets of its version, with a graph's.
        interpreters: Its interpreters, the main one first.
        list_heads: Addresses of the heads of the collector's lists.
        held_nanos: How long it was held; 0: it ran while it was copied.
        expired: Whether it was released before all of it was copied.
    """

    memory: Memory
    copy: MemoryCopy
    types: TypeTable
    layout: VersionLayout
    interpreters: tuple[Interpreter, ...]
    list_heads: tuple[int, ...]
    held_nanos: int
    expired: bool
