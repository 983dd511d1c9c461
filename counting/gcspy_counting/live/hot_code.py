"""Code that runs often enough to be seen: what all threads execute, looked at now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import CodeType, FrameType

__all__ = ["hot_code"]

_STEP_SECS = 0.01


def hot_code(secs: float, waits: Callable[[float], bool]) -> dict[int, CodeType]:
    """Return the code objects that some thread was executing, or had called from, at some moment, by `id`.

    Args:
        secs: For how long threads are looked at.
        waits: Waits for some seconds, and says whether to continue.
    """
    seen: dict[int, CodeType] = {}
    end = time.monotonic() + secs
    while time.monotonic() < end and waits(_STEP_SECS):
        for top in sys._current_frames().values():
            frame: FrameType | None = top
            while frame is not None:
                seen[id(frame.f_code)] = frame.f_code
                frame = frame.f_back
        del top, frame  # no frame of the program is kept
    return seen
