"""A process that no driver recognises: it has no libraries, and so no memory manager."""

from __future__ import annotations

import platform
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_PAUSE = bytes.fromhex("b822000000 0f05 ebf7")
"""Machine code of x86-64: pause(), again and again."""
_BASE = 0x400000


def _program_without_memory() -> bytes:
    """Return an executable of x86-64 without libraries, and so without any memory manager."""
    start = 64 + 56
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, _BASE + start, 64, 0, 0, 64, 56, 1, 0, 0, 0
    )
    size = start + len(_PAUSE)
    return header + struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 4096) + _PAUSE


@contextmanager
def unknown_process(folder: Path, name: str = "pause") -> Iterator[int]:
    """Run it under a name; it is killed at the end."""
    if platform.machine() != "x86_64":
        pytest.skip("the program without a memory manager is machine code of x86-64")
    program = folder / name
    program.write_bytes(_program_without_memory())
    program.chmod(0o755)
    with subprocess.Popen([program]) as process:
        try:
            yield process.pid
        finally:
            process.kill()
