"""Memory of malloc that is no object belongs to the object in C that refers to it, and to nobody if none does."""

from __future__ import annotations

import sys

import pytest
from gcspy_drivers.cpython.driver import CPythonDriver

from gcspy_server.api import MemoryQuestion, MemoryReport
from tests.drivers.conftest import Start
from tests.once import machine_code_allowed

BUFFERS = """
import ctypes
BUFFERS = [ctypes.create_string_buffer(300_000) for _ in range(20)]
for each in BUFFERS: ctypes.memset(each, 1, 300_000)
SMALL = [ctypes.create_string_buffer(2_000) for _ in range(500)]
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
LOST = [libc.malloc(200_000) for _ in range(10)]
for each in LOST: ctypes.memset(each, 1, 200_000)
tell()
"""

ARRAYS = """
import numpy
SMALL = [numpy.arange(13) for _ in range(20_000)]
EMPTY = [numpy.zeros(1, "i1") for _ in range(10_000)]
LARGE = [numpy.ones(50_000) for _ in range(10)]
VIEWS = [LARGE[0][1:] for _ in range(1_000)]
tell()
"""


def report_of(pid: int) -> MemoryReport:
    with pytest.MonkeyPatch.context() as patched:
        machine_code_allowed(patched)
        (report,) = CPythonDriver.explain_memory(
            pid, MemoryQuestion(over_secs=0, most=1000), lambda *_: None
        )
    return report


def sizes_of(report: MemoryReport) -> dict[str, int]:
    names = [each.name for each in report.memory.columns]
    what, size = names.index("What"), names.index("Bytes")
    return {str(row[what]): int(str(row[size])) for row in report.memory.rows}


@pytest.mark.timeout(300)
def test_buffers_belong_to_their_objects_and_lost_memory_to_nobody(
    start: Start, python: str
) -> None:
    target = start(python, BUFFERS)
    target.wait_still()
    report = report_of(target.pid)
    sizes = sizes_of(report)
    assert sum(sizes.values()) == report.resident
    assert 20 * 300_000 <= sizes["c_char_Array_300000"] < 20 * 305_000
    assert 500 * 2_000 <= sizes["c_char_Array_2000"] < 500 * 2_300
    assert 10 * 200_000 <= sizes["malloc: memory of C code, owner not known"] < 3_000_000
    assert min(sizes.values()) > -65536
    holder, *_ = report.holders.rows
    names = [each.name for each in report.holders.columns]
    assert holder[0] == "__main__.BUFFERS"
    assert int(str(holder[names.index("Retained")])) > 20 * 300_000, "freed with their list"


@pytest.mark.timeout(300)
def test_arrays_have_their_data_extents_and_strides(start: Start) -> None:
    pytest.importorskip("numpy")
    target = start(sys.executable, ARRAYS)
    target.wait_still()
    report = report_of(target.pid)
    sizes = sizes_of(report)
    assert sum(sizes.values()) == report.resident
    # Of each: the object, extents and strides, and data of its own.
    expected = 20_000 * (96 + 32 + 112) + 10_000 * (96 + 32 + 32) + 10 * 400_000 + 1_000 * 128
    assert sizes["numpy.ndarray"] == pytest.approx(expected, rel=0.03)
    unknown = sum(size for name, size in sizes.items() if "owner not known" in name)
    assert unknown < 0.05 * report.resident
    assert min(sizes.values()) > -65536
