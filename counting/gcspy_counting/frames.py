"""Frames that are in the middle of instrumented code: of all threads, and of suspended generators and coroutines."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterator, Mapping
from types import FrameType

from gcspy_counting.instrumented_code import HOOK_CODE, InstrumentedCode, Position

__all__ = ["frames_in_code", "is_handler_entered"]


def _frames() -> Iterator[FrameType]:
    """Yield each frame of the process that runs or is suspended, once."""
    seen: set[int] = set()
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        while frame is not None and id(frame) not in seen:
            seen.add(id(frame))
            yield frame
            frame = frame.f_back
    for each in gc.get_objects():
        kind = type(each)
        suspended: FrameType | None
        if kind is types.GeneratorType:
            suspended = each.gi_frame
        elif kind is types.CoroutineType:
            suspended = each.cr_frame
        elif kind is types.AsyncGeneratorType:
            suspended = each.ag_frame
        else:
            continue
        if suspended is not None and id(suspended) not in seen:
            seen.add(id(suspended))
            yield suspended


def is_handler_entered() -> bool:
    """Say whether another thread is just counting an exception, so that its counts are not complete."""
    mine = sys._getframe()
    return any(
        frame.f_code is HOOK_CODE for frame in sys._current_frames().values() if frame is not mine
    )


def frames_in_code(
    by_code: Mapping[int, InstrumentedCode],
) -> dict[int, dict[Position, int]]:
    """Return how many frames are where, for each instrumented code object.

    Args:
        by_code: Instrumented code by the `id` of its code object.

    Returns:
        By the same `id`: number of frames by position.
    """
    found: dict[int, dict[Position, int]] = {}
    for frame in _frames():
        key = id(frame.f_code)
        instrumented = by_code.get(key)
        if instrumented is None:
            continue
        position = instrumented.position_of_frame(frame.f_lasti)
        if position is not None:
            mine = found.setdefault(key, {})
            mine[position] = mine.get(position, 0) + 1
    return found
