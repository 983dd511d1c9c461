"""The program with a heap is that of the tests of native heaps."""

from __future__ import annotations

from tests.drivers.native_heap.conftest import _removed_programs, malloc_program

__all__ = ["_removed_programs", "malloc_program"]
