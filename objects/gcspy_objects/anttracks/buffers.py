"""Buffers of trace files: walked over, unpacked where they are compressed, and gathered to chunks that are decoded at once.

Knows the layout of buffers in a file; does not know events.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from gcspy_protocol.errors import TraceError
from numpy.typing import NDArray

from gcspy_compiled.c_loops import CLibrary
from gcspy_compiled.machine_code import Loop
from gcspy_objects.anttracks import lzw
from gcspy_objects.anttracks.layout import BUFFER_HEADER_BYTES, MAX_PAYLOAD_BYTES
from gcspy_objects.archive import FileSpan

__all__ = ["CHUNK_BYTES", "LIBRARY", "Chunk", "read_chunk"]

CHUNK_BYTES: Final = 1 << 20
"""Payload that is decoded at once, some KiB more or less: 262,144 events at most."""

LIBRARY: Final = CLibrary("gcspy-anttracks", Path(__file__).parent / "compiled")
"""The loops of this folder in C."""

_UNPACK: Final = Loop(lzw.unpack, lzw.SIGNATURE, LIBRARY)
_READ_BYTES: Final = 1 << 16

_MOST_RATIO: Final = 64
_FREE_BYTES: Final = 256 << 10
"""A payload may unpack to this many bytes for each of its own, plus this many. The VM's buffers
have 24 KiB at most; of one repeated event they become 98 times smaller."""

_SAID: Final = {
    lzw.LzwDamage.NO_END: "ends before its end code",
    lzw.LzwDamage.NO_ENTRY: "has a code that no entry was made for",
    lzw.LzwDamage.TOO_LONG: f"unpacks to more than {_MOST_RATIO} times as many and {_FREE_BYTES:,}, or more than {MAX_PAYLOAD_BYTES:,} bytes",
    lzw.LzwDamage.TOO_WIDE: "has codes of more than 31 bits",
    lzw.LzwDamage.TRAILING: "continues after its end code",
}


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Some consecutive buffers of a file, b of them.

    Attributes:
        words: (w,) their payloads, unpacked.
        bounds: (b + 1,) where in `words` each begins, and the end.
        owners: (b) address of each one's thread.
        positions: (b,) where in the file each begins, bytes.
        modes: (b,) `records.BufferMode`.
        end: Where the next buffer begins in the file.
        error: The error in the next buffer; None if none is known.
    """

    words: NDArray[np.int32]
    bounds: NDArray[np.int64]
    owners: list[int]
    positions: NDArray[np.int64]
    modes: NDArray[np.uint8]
    end: int
    error: TraceError | None


def read_chunk(
    span: FileSpan, position: int, buffer: int, *, chunk_bytes: int = CHUNK_BYTES
) -> Chunk:
    """Read the buffers from `position` on, until they are `chunk_bytes`, or the file ends.

    Args:
        span: The file.
        position: Where a buffer begins in it.
        buffer: Number of that buffer over all files, for messages.
        chunk_bytes: Payload to gather.
    """
    payloads: list[bytes] = []
    owners, positions, modes, lengths = [], [], [], []
    gathered = 0
    error = None
    window = _Window(span)
    while gathered < chunk_bytes and position < span.size:
        try:
            owner, mode, payload, after = _read_buffer(window, position, buffer + len(payloads))
        except TraceError as found:
            error = found
            break
        payloads.append(payload)
        owners.append(owner)
        positions.append(position)
        modes.append(mode)
        lengths.append(len(payload) // 4)
        gathered += len(payload) + BUFFER_HEADER_BYTES
        position = after
    # The file's byte order, whatever this machine's is.
    words = np.frombuffer(bytearray().join(payloads), "<i4").astype(np.int32, copy=False)
    bounds = np.zeros(len(payloads) + 1, np.int64)
    np.cumsum(lengths, out=bounds[1:])
    return Chunk(
        words,
        bounds,
        owners,
        np.array(positions, np.int64),
        np.array(modes, np.uint8),
        position,
        error,
    )


class _Window:
    """Reads a span in larger steps than buffers are."""

    def __init__(self, span: FileSpan) -> None:
        self.span = span
        self._start = 0
        self._data = b""

    def read(self, position: int, count: int) -> bytes:
        at = position - self._start
        if at < 0 or at + count > len(self._data):
            self._data = self.span.read(position, max(count, _READ_BYTES))
            self._start, at = position, 0
        return self._data[at : at + count]


def _read_buffer(window: _Window, position: int, buffer: int) -> tuple[int, int, bytes, int]:
    """Return a buffer's owner, mode and unpacked payload, and where the next one begins."""
    span = window.span

    def damaged(what: str) -> TraceError:
        return TraceError(
            f"{span.name}: damaged at byte {position:,} (buffer {buffer:,}): {what}",
            file=span.name,
            offset=position,
            buffer=buffer,
        )

    left = span.size - position
    header = window.read(position, BUFFER_HEADER_BYTES)
    if len(header) < BUFFER_HEADER_BYTES:
        raise damaged(
            f"the file ends after {left} bytes of it; expected a header of {BUFFER_HEADER_BYTES} bytes"
        )
    owner, word = int.from_bytes(header[:8], "little"), int.from_bytes(header[8:], "little")
    size, mode, packed = word & 0x1FFFFFFF, word >> 29 & 3, word >> 31
    if size > MAX_PAYLOAD_BYTES:
        raise damaged(f"a payload of {size:,} bytes; expected at most {MAX_PAYLOAD_BYTES:,}")
    if size > left - BUFFER_HEADER_BYTES:
        missing = size - left + BUFFER_HEADER_BYTES
        raise damaged(
            f"a payload of {size:,} bytes; the file ends {missing:,} bytes before that: cut off, or the program was killed while it wrote"
        )
    if mode == 3 or (packed and mode):
        raise damaged(
            f"mode {mode}{', compressed' if packed else ''}; expected 0, 1 or 2, and only buffers of mode 0 compressed"
        )
    payload = window.read(position + BUFFER_HEADER_BYTES, size)
    if len(payload) < size:
        raise damaged(
            f"a payload of {size:,} bytes, of which {len(payload):,} could be read: the file became shorter meanwhile"
        )
    if packed:
        found = _unpack(payload)
        if isinstance(found, lzw.LzwDamage):
            raise damaged(f"its compressed payload of {size:,} bytes {_SAID[found]}")
        payload = found
    if len(payload) % 4:
        raise damaged(f"a payload of {len(payload):,} bytes; expected whole words of 4 bytes")
    return owner, mode, payload, position + BUFFER_HEADER_BYTES + size


def _unpack(payload: bytes) -> bytes | lzw.LzwDamage:
    most = min(_MOST_RATIO * len(payload) + _FREE_BYTES, MAX_PAYLOAD_BYTES)
    if _UNPACK.machine is None:
        return lzw.unpack_plainly(payload, most)
    codes = len(payload) + 1
    # Twenty times the length is usually enough; a longer one is unpacked again, with the maximum
    # room.
    for room in (min(len(payload) * 20, most), most):
        out = np.empty(room, np.uint8)
        packed = np.frombuffer(
            bytearray(payload), np.uint8
        )  # numba does not accept read-only arrays
        written = int(
            _UNPACK.machine(packed, out, np.empty(codes, np.int64), np.empty(codes, np.int64))
        )
        if written >= 0:
            return out[:written].tobytes()
        if written != lzw.LzwDamage.TOO_LONG:
            break
    return lzw.LzwDamage(written)
