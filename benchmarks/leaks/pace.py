"""`growing`: the pace of a program that leaks: it grows at once by `FIRST_BYTES`, then by `BYTES_A_SECOND` until `MOST_BYTES`, and waits.

It prints ``begun`` at the first step and ``grown`` after the first growth, and ends the program when its parent has ended.

Knows the process's own resident set; knows nothing of what leaks. Linux only, as `gcspy why` is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

__all__ = ["BYTES_A_SECOND", "FIRST_BYTES", "MOST_BYTES", "growing"]

FIRST_BYTES = 16 << 20
BYTES_A_SECOND = 2 << 20
MOST_BYTES = 150 << 20
"""Growth of the resident set since the first step."""

_REST_SECS = 0.05


def growing(check_every: int = 1) -> Iterator[int]:
    """Yield the numbers of steps, as many as the pace allows; endless, and without numbers at the end.

    Args:
        check_every: Steps from one look at the resident set to the next; some 100 KiB of growth.
    """
    parent, before, began = os.getppid(), _resident_bytes(), 0.0
    print("begun", flush=True)
    for step in count():
        yield step
        while step % check_every == 0 and (grown := _resident_bytes() - before) > FIRST_BYTES:
            if not began:
                began = time.monotonic()
                print("grown", flush=True)
            allowed = FIRST_BYTES + BYTES_A_SECOND * (time.monotonic() - began)
            if grown < min(allowed, MOST_BYTES):
                break
            if os.getppid() != parent:
                raise SystemExit
            time.sleep(_REST_SECS)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
