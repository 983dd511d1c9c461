"""`try_pages`: whether this kernel can say which pages were written, by trying on pages of our own.

Versions and configurations of a kernel say less than a trial: `clear_refs` accepts a request for soft-dirty
bits on a kernel that has none. Knows our own process only.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import platform
import time
from dataclasses import dataclass
from typing import Final

import numpy as np
from gcspy_protocol.errors import TargetError

from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.pages.page_ranges import Bits, PageRanges
from gcspy_drivers.remote.pages.protection import ProtectedPages
from gcspy_drivers.remote.pages.soft_dirty import SoftDirtyPages
from gcspy_drivers.remote.process import Process

__all__ = ["CALL_NUMBERS", "PageTrial", "try_pages", "try_soft_dirty"]

CALL_NUMBERS: Final = {"x86_64": 323, "aarch64": 282}
"""Number of the system call userfaultfd, by machine."""

_USER_MODE_ONLY: Final = 1
_PAGES: Final = 256
_TRIED: Final = (3, 5, 6, 200)
_ROUNDS: Final = 5


@dataclass(frozen=True)
class PageTrial:
    """Result of a trial.

    Attributes:
        works: Whether exactly the pages that were written were reported.
        refusal: Why not; empty if it works.
        fault_nanos: What the first write to a page costs who writes it.
    """

    works: bool
    refusal: str = ""
    fault_nanos: int = 0


@functools.cache
def try_pages() -> PageTrial:
    """Try write protection without a handler, once; see `protection`."""
    number = CALL_NUMBERS.get(platform.machine())
    if number is None:
        return PageTrial(works=False, refusal=f"not known on this machine ({platform.machine()})")
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(number, os.O_CLOEXEC | os.O_NONBLOCK | _USER_MODE_ONLY)
    if fd < 0:
        why = os.strerror(ctypes.get_errno())
        return PageTrial(works=False, refusal=f"this system allows no userfaultfd ({why})")
    try:
        with Process(os.getpid()) as process:
            source = ProtectedPages(process, fd)
            try:
                return _try(source)
            finally:
                source.close()
    except TargetError as error:
        return PageTrial(works=False, refusal=str(error))


@functools.cache
def try_soft_dirty() -> PageTrial:
    """Try soft-dirty bits, once; see `soft_dirty`."""
    try:
        with Process(os.getpid()) as process:
            source = SoftDirtyPages(process)
            try:
                return _try(source)
            finally:
                source.close()
    except TargetError as error:
        return PageTrial(works=False, refusal=str(error))


def _try(source: ProtectedPages | SoftDirtyPages) -> PageTrial:
    with mmap.mmap(-1, _PAGES * PAGE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        data = np.frombuffer(memory, dtype=np.uint8)
        try:
            data[::PAGE_BYTES] = 1
            ranges = PageRanges.of(
                np.array([data.ctypes.data], dtype=np.uint64), _PAGES * PAGE_BYTES
            )
            if not source.follow(ranges).all():
                return PageTrial(works=False, refusal="this kernel protects no private memory")
            source.written(ranges, protect=True)
            for page in _TRIED:
                data[page * PAGE_BYTES] = 2
            wanted: Bits = np.zeros(_PAGES, dtype=np.bool_)
            wanted[list(_TRIED)] = True
            if not np.array_equal(source.written(ranges, protect=True), wanted):
                return PageTrial(
                    works=False, refusal="this kernel does not say which pages were written"
                )
            costs = []
            for _ in range(_ROUNDS):
                source.written(ranges, protect=True)
                costs.append(_touch(data) - _touch(data))
            return PageTrial(works=True, fault_nanos=max(0, min(costs)) // _PAGES)
        finally:
            del data


def _touch(data: np.ndarray) -> int:
    begin = time.thread_time_ns()
    data[::PAGE_BYTES] = 3
    return time.thread_time_ns() - begin
