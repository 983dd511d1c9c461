"""The roots of a dump, and threads with their frames.

References of a thread's frames count as references of the thread, so that the thread is the holder.

Knows roots and stack traces; knows no objects but by their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy_objects.hprof.layout import Sub

__all__ = ["ROOT_NAMES", "StackFrame", "FrameTable", "RootTable", "read_roots"]

ROOT_NAMES: Final = {
    Sub.JNI_GLOBAL: "JNI global reference",
    Sub.JNI_LOCAL: "JNI local reference",
    Sub.JAVA_FRAME: "a running method",
    Sub.NATIVE_STACK: "native stack",
    Sub.STICKY_CLASS: "class of the JVM",
    Sub.THREAD_BLOCK: "thread block",
    Sub.MONITOR: "monitor in use",
    Sub.THREAD: "thread",
    Sub.UNKNOWN: "the JVM itself",
}
_OF_THREADS: Final = (Sub.JAVA_FRAME, Sub.JNI_LOCAL, Sub.NATIVE_STACK, Sub.THREAD_BLOCK)
_MOST_FRAMES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class StackFrame:
    """A method that runs.

    Attributes:
        method: Identifier of its name.
        class_serial: Serial number of its class.
    """

    method: int
    class_serial: int


class FrameTable:
    """Frames of stack traces, looked up on demand.

    Args:
        data: (b,) the dump.
        width: Bytes of an identifier.
        frames: (f, 3) identifier, name of the method, serial number of the class.
        traces: (t, 3) serial number, place of the frames, their number.
    """

    def __init__(
        self,
        data: NDArray[np.uint8],
        width: int,
        frames: NDArray[np.int64],
        traces: NDArray[np.int64],
    ) -> None:
        self._data, self._width = data, width
        self._frames = frames[np.argsort(frames[:, 0], kind="stable")]
        self._traces = {serial: (place, count) for serial, place, count in traces.tolist()}

    def frame(self, trace: int, depth: int) -> StackFrame | None:
        """Return a frame of a trace, 0 the innermost; None: not in the dump."""
        place, count = self._traces.get(trace, (0, 0))
        if not 0 <= depth < min(count, _MOST_FRAMES):
            return None
        at = place + depth * self._width
        wanted = int.from_bytes(
            self._data[at : at + self._width].tobytes(), "big", signed=self._width == 8
        )
        row = int(np.searchsorted(self._frames[:, 0], wanted))
        if row == len(self._frames) or self._frames[row, 0] != wanted:
            return None
        return StackFrame(int(self._frames[row, 1]), int(self._frames[row, 2]))


@dataclass(frozen=True, eq=False)
class RootTable:
    """Roots of a dump.

    Attributes:
        node: (r,) objects that are held from outside, each once.
        kind: By object: its first kind of root.
        thread: By object: serial number and trace of the threads that were running.
        local: (l, 2) thread's object, target of a reference on its stack; ascending.
        frame: By thread's object and target: kind of root, number of its frame; -1: unknown.
    """

    node: NDArray[np.int32]
    kind: dict[int, Sub]
    thread: dict[int, tuple[int, int]]
    local: NDArray[np.int64]
    frame: dict[tuple[int, int], tuple[Sub, int]]


def read_roots(
    data: NDArray[np.uint8],
    width: int,
    place: NDArray[np.int64],
    address: NDArray[np.int64],
) -> tuple[RootTable, int]:
    """Read the roots.

    Args:
        data: (b,) the dump.
        width: Bytes of an identifier.
        place: (r,) where each root's sub-record begins.
        address: (n,) objects, ascending.

    Returns:
        The roots, and how many lead to objects that are not in the dump.
    """
    kinds = data[place]
    ids = numbers_at(data, place + 1, width)
    at = np.minimum(np.searchsorted(address, ids), max(0, len(address) - 1))
    there = address[at] == ids if len(address) else np.zeros(len(ids), dtype=np.bool_)
    missing = int((~there & (ids != 0)).sum())
    place, kinds, nodes = place[there], kinds[there], at[there]
    thread: dict[int, tuple[int, int]] = {}
    by_serial: dict[int, int] = {}
    for row in np.flatnonzero(kinds == Sub.THREAD).tolist():
        serial, trace = _two(data, int(place[row]) + 1 + width)
        thread.setdefault(int(nodes[row]), (serial, trace))
        by_serial.setdefault(serial, int(nodes[row]))
    kind: dict[int, Sub] = {}
    frame: dict[tuple[int, int], tuple[Sub, int]] = {}
    order = np.argsort(kinds != Sub.STICKY_CLASS, kind="stable")
    for row in order.tolist():
        sub, node = Sub(int(kinds[row])), int(nodes[row])
        if sub in _OF_THREADS:
            first = int(place[row]) + 1 + width
            serial = int.from_bytes(data[first : first + 4].tobytes(), "big")
            holder = by_serial.get(serial)
            if holder is not None:
                depth = -1
                if sub in (Sub.JAVA_FRAME, Sub.JNI_LOCAL):
                    depth = int.from_bytes(
                        data[first + 4 : first + 8].tobytes(), "big", signed=True
                    )
                if holder != node:
                    frame.setdefault((holder, node), (sub, depth))
                continue
        kind.setdefault(node, sub)
    local = np.array(sorted(frame), dtype=np.int64).reshape(-1, 2)
    found = np.array(list(kind), dtype=np.int32)
    return RootTable(found, kind, thread, local, frame), missing


def numbers_at(data: NDArray[np.uint8], place: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Return (k,) the identifiers at some places."""
    found = data[place[:, None] + np.arange(width)]
    return np.ascontiguousarray(found).view(">i8" if width == 8 else ">u4")[:, 0].astype(np.int64)


def _two(data: NDArray[np.uint8], at: int) -> tuple[int, int]:
    found = data[at : at + 8].tobytes()
    return int.from_bytes(found[:4], "big"), int.from_bytes(found[4:], "big")
