"""Stream values on the wire: KEY (all of them) and DELTA (those that changed).

A DELTA lists the distances between changed tiles in 16 bits and then the new values. Under zstd-1
that was the smallest and among the fastest of eleven encodings in all nine measured cases (SPEC.md
section 6, with the numbers).

Knows arrays and bytes; does not know the schema: the frame contains the dtype.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcspy_protocol.compiled.stream_changes import list_tiles
from gcspy_protocol.errors import LocalProtocolError, RemoteProtocolError
from gcspy_protocol.frames.frame import Frame, Header, pack_frame
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import FrameType, StreamDelta, StreamKey
from gcspy_protocol.model import DTYPES
from gcspy_protocol.streams.remap import Remap

__all__ = [
    "HEAD_BYTES",
    "Stamp",
    "StreamEncoder",
    "decode_delta",
    "decode_key",
    "key_is_cheaper",
    "needed_bytes",
    "pack_delta",
    "pack_key",
]

_KEY = struct.Struct("<HBBIQ")
"""KEY payload, before the arrays.

    offset size  field
    0      2     event id
    2      1     dtype number
    3      1     flags: 1 a validity bitmap follows
    4      4     count: tiles
    8      8     occurrence of the event
    16           bitmap: ceil(count / 8) bytes, tile 0 in bit 0; 1 is known
                 values: count x itemsize
"""

_DELTA = struct.Struct("<HBBIQQII")
"""DELTA payload, before the arrays.

    offset size  field
    0      2     event id
    2      1     dtype number
    3      1     flags: 1 a validity bitmap follows
    4      4     count: tiles of the space
    8      8     occurrence of the event
    16     8     base sequence: of the values to which this applies
    24     4     changed: tiles listed
    28     4     gaps: 16-bit gaps listed, escapes included
    32           gaps: gaps x 2; a gap g < 0xFFFF moves on by g + 1 tiles (from -1) and lists
                 the tile; 0xFFFF moves on by 65,535 and lists none
                 bitmap: ceil(changed / 8) bytes, if flagged
                 values: changed x itemsize
"""

HEAD_BYTES = _DELTA.size
"""Bytes of a KEY or DELTA payload that determine its length."""

_HAS_BITMAP = 1
_ESCAPE = 0xFFFF
_DTYPE_NAMES = {number: name for name, number in DTYPES.items()}

_GAP_BYTES = 2


def key_is_cheaper(changed: int, count: int, itemsize: int) -> bool:
    """Whether all values cost less than the changed ones.

    A DELTA has a gap and a value for each change, a KEY a value for each tile, and the time of zstd
    depends on the bytes before compression. So the KEY is faster from about 1/3 of 8-bit tiles
    changed, 1/2 of 16-bit, 2/3 of 32-bit and 4/5 of 64-bit ones. It is smaller from 1/4 of the
    8-bit ones, and for wider ones only if nearly all changed. Source:
    `benchmarks/server/encoding.py --sweep`. (A limit of 30 % for all widths, an earlier
    extrapolation, cost twice the bytes and the time for wider values.)
    """
    return changed * (_GAP_BYTES + itemsize) > count * itemsize


@dataclass(frozen=True, kw_only=True, slots=True)
class Stamp:
    """The event and time at which values were gathered."""

    sequence: int
    time_nanos: int
    event: int
    occurrence: int


def _wire(values: NDArray[Any]) -> tuple[int, NDArray[Any]]:
    """Dtype number and the values as contiguous little-endian."""
    name = values.dtype.str[1:]
    if name not in DTYPES:
        raise LocalProtocolError(
            f"values of type {values.dtype} cannot travel; use one of {', '.join(DTYPES)}"
        )
    return DTYPES[name], np.ascontiguousarray(values, dtype="<" + name)


def _bitmap(known: NDArray[np.bool_] | None) -> bytes:
    return b"" if known is None else np.packbits(known, bitorder="little").tobytes()


def pack_key(
    space: int,
    stream: int,
    stamp: Stamp,
    values: NDArray[Any],
    known: NDArray[np.bool_] | None = None,
    *,
    compress: bool = True,
) -> Frame:
    """A frame with all values of a stream.

    Args:
        values: Shape (tiles,), an integer dtype of `DTYPES`.
        known: Shape (tiles,), or None when all are known.
        compress: Whether zstd may be used.
    """
    number, wire = _wire(values)
    head = _KEY.pack(
        stamp.event, number, 0 if known is None else _HAS_BITMAP, len(wire), stamp.occurrence
    )
    payload = b"".join((head, _bitmap(known), wire.data if len(wire) else b""))
    return pack_frame(
        FrameType.STREAM_KEY,
        payload,
        space=space,
        stream=stream,
        sequence=stamp.sequence,
        time_nanos=stamp.time_nanos,
        compress=compress,
    )


def pack_delta(
    space: int,
    stream: int,
    stamp: Stamp,
    *,
    base_sequence: int,
    count: int,
    indices: NDArray[np.int64],
    values: NDArray[Any],
    known: NDArray[np.bool_] | None = None,
    compress: bool = True,
) -> Frame:
    """A frame with the changed values of a stream.

    Args:
        base_sequence: Sequence of the values that it applies to.
        count: Tiles of the space.
        indices: Shape (changed,), strictly increasing.
        values: Shape (changed,).
        known: Shape (changed,), or None when all of them are known.
        compress: Whether zstd may be used.
    """
    number, wire = _wire(values)
    gaps = _gaps(indices)
    head = _DELTA.pack(
        stamp.event,
        number,
        0 if known is None else _HAS_BITMAP,
        count,
        stamp.occurrence,
        base_sequence,
        len(wire),
        len(gaps),
    )
    payload = b"".join((head, gaps.tobytes(), _bitmap(known), wire.tobytes()))
    return pack_frame(
        FrameType.STREAM_DELTA,
        payload,
        space=space,
        stream=stream,
        sequence=stamp.sequence,
        time_nanos=stamp.time_nanos,
        compress=compress,
    )


def _gaps(indices: NDArray[np.int64]) -> NDArray[np.uint16]:
    """Distances between strictly increasing tile numbers, minus one, with escapes for long ones."""
    if not len(indices):
        return np.empty(0, dtype="<u2")
    gaps = np.diff(indices, prepend=-1) - 1
    if int(gaps.max()) < _ESCAPE:
        return gaps.astype("<u2")
    escapes = gaps // _ESCAPE
    places = np.arange(len(gaps)) + np.cumsum(escapes)
    out = np.full(len(gaps) + int(escapes.sum()), _ESCAPE, dtype="<u2")
    out[places] = gaps % _ESCAPE
    return out


def _places(marks: NDArray[np.bool_], marked: int) -> NDArray[np.int64]:
    """Indices of set marks, like `np.flatnonzero`, which takes 1.4 ms for 1 in 10 of 1,000,000; this takes 0.6.

    It examines eight marks as one word first. Words with a mark are so dense that numpy takes its
    branchless path, instead of mispredicting a branch at each mark.

    Args:
        marks: Shape (tiles,), contiguous.
        marked: Number of marks.
    """
    if 10 * marked > len(marks):
        return np.flatnonzero(marks)
    whole = len(marks) & ~7
    words = marks[:whole].view(np.uint64)
    busy = np.flatnonzero(words != 0)
    inner = np.flatnonzero(words[busy].view(np.bool_))
    places = busy[inner >> 3]
    places <<= 3
    places += inner & 7
    tail = np.flatnonzero(marks[whole:])
    return np.concatenate((places, tail + whole)) if len(tail) else places


def _indices(gaps: NDArray[np.uint16]) -> NDArray[np.int64]:
    """Inverse of `_gaps`."""
    steps = gaps.astype(np.int64)
    listed = gaps != _ESCAPE
    if bool(listed.all()):  # no escapes, the usual case: half the time
        steps += 1
        steps[:1] -= 1
        return np.cumsum(steps, out=steps)
    steps += listed
    places: NDArray[np.int64] = np.cumsum(steps, dtype=np.int64)
    places -= 1
    indices: NDArray[np.int64] = places[listed]
    return indices


class _Reader:
    """Cuts arrays off a payload, and checks each length against the rest."""

    def __init__(self, payload: bytes, start: int, what: str) -> None:
        self._payload, self._at, self._what = payload, start, what

    def array(self, dtype: str, count: int) -> NDArray[Any]:
        size = np.dtype(dtype).itemsize * count
        if len(self._payload) - self._at < size:
            raise RemoteProtocolError(
                f"{self._what}: {count} values of {dtype} need {size} bytes, {len(self._payload) - self._at} are left"
            )
        array = np.frombuffer(self._payload, dtype=dtype, count=count, offset=self._at)
        self._at += size
        return array

    def bitmap(self, count: int) -> NDArray[np.bool_]:
        packed = self.array("u1", (count + 7) // 8)
        return np.unpackbits(packed, count=count, bitorder="little").view(np.bool_)


def _head(layout: struct.Struct, payload: bytes, what: str) -> tuple[int, ...]:
    if len(payload) < layout.size:
        raise RemoteProtocolError(f"{what}: {len(payload)} bytes, at least {layout.size} needed")
    return layout.unpack_from(payload)


def _dtype_name(number: int, what: str) -> str:
    name = _DTYPE_NAMES.get(number)
    if name is None:
        raise RemoteProtocolError(f"{what}: dtype number {number} is none of 1 to {len(DTYPES)}")
    return "<" + name


def _check_count(count: int, limits: Limits, what: str) -> None:
    if count > limits.tiles:
        raise RemoteProtocolError(f"{what}: {count} tiles, over the limit of {limits.tiles}")


def _check_changes(changed: int, gap_count: int, count: int, what: str) -> None:
    if changed > count or gap_count > changed + count // _ESCAPE:
        raise RemoteProtocolError(
            f"{what}: {changed} changes in {gap_count} gaps do not fit {count} tiles"
        )


def needed_bytes(header: Header, head: bytes, limits: Limits) -> int:
    """Bytes that a KEY or DELTA payload needs, from its first bytes.

    Args:
        header: Of the frame.
        head: The first `HEAD_BYTES` of the payload, or all of a shorter one.
        limits: Limits on what the peer may send.

    Raises:
        RemoteProtocolError: It is too short, or names an impossible type or count.
    """
    delta = header.type == FrameType.STREAM_DELTA
    what = f"{'delta' if delta else 'key'} of space {header.space} stream {header.stream}"
    fields = _head(_DELTA if delta else _KEY, head, what)
    number, flags, count = fields[1], fields[2], fields[3]
    _check_count(count, limits, what)
    size = _KEY.size
    if delta:
        _check_changes(fields[6], fields[7], count, what)
        count, size = fields[6], _DELTA.size + _GAP_BYTES * fields[7]
    return (
        size
        + ((count + 7) // 8 if flags & _HAS_BITMAP else 0)
        + np.dtype(_dtype_name(number, what)).itemsize * count
    )


def decode_key(header: Header, payload: bytes, limits: Limits) -> StreamKey:
    """Read a KEY payload; the arrays are views of it.

    Raises:
        RemoteProtocolError: It is too short, or names an impossible type or count.
    """
    what = f"key of space {header.space} stream {header.stream}"
    event, number, flags, count, occurrence = _head(_KEY, payload, what)
    _check_count(count, limits, what)
    reader = _Reader(payload, _KEY.size, what)
    known = reader.bitmap(count) if flags & _HAS_BITMAP else None
    values = reader.array(_dtype_name(number, what), count)
    return StreamKey(
        space=header.space,
        stream=header.stream,
        sequence=header.sequence,
        time_nanos=header.time_nanos,
        event=event,
        occurrence=occurrence,
        values=values,
        known=known,
    )


def decode_delta(header: Header, payload: bytes, limits: Limits) -> StreamDelta:
    """Read a DELTA payload; `values` is a view of it.

    Raises:
        RemoteProtocolError: It is too short, or its gaps and counts contradict each other.
    """
    what = f"delta of space {header.space} stream {header.stream}"
    event, number, flags, count, occurrence, base_sequence, changed, gap_count = _head(
        _DELTA, payload, what
    )
    _check_count(count, limits, what)
    _check_changes(changed, gap_count, count, what)
    reader = _Reader(payload, _DELTA.size, what)
    gaps = reader.array("<u2", gap_count)
    indices = list_tiles(gaps, changed)
    if indices is None:
        indices = _indices(gaps)
    if len(indices) != changed:
        raise RemoteProtocolError(f"{what}: {len(indices)} tiles listed, {changed} promised")
    if changed and int(indices[-1]) >= count:
        raise RemoteProtocolError(f"{what}: tile {int(indices[-1])} changed, there are {count}")
    known = reader.bitmap(changed) if flags & _HAS_BITMAP else None
    values = reader.array(_dtype_name(number, what), changed)
    return StreamDelta(
        space=header.space,
        stream=header.stream,
        sequence=header.sequence,
        time_nanos=header.time_nanos,
        event=event,
        occurrence=occurrence,
        base_sequence=base_sequence,
        count=count,
        indices=indices,
        values=values,
        known=known,
    )


class StreamEncoder:
    """The sender's state of one stream: the values that every up-to-date client has.

    Args:
        space: Space id.
        stream: Stream id, or CONTROL_STREAM.
        dtype: The stream's dtype.
        default: Value of a tile that was not sent yet.
        count: Tiles.
    """

    def __init__(self, space: int, stream: int, *, dtype: str, default: int, count: int) -> None:
        self._space, self._stream = space, stream
        self._default = default
        self._values: NDArray[Any] = np.full(count, default, dtype="<" + dtype)
        self._known: NDArray[np.bool_] | None = None
        self._stamp: Stamp | None = None

    @property
    def stamp(self) -> Stamp | None:
        """Stamp of the values sent last; None before the first."""
        return self._stamp

    @property
    def values(self) -> NDArray[Any]:
        """Shape (tiles,): the values sent last. The encoder's own array: do not change it."""
        return self._values

    @property
    def known(self) -> NDArray[np.bool_] | None:
        """Shape (tiles,): which values are known; None when all are."""
        return self._known

    def encode(
        self,
        values: NDArray[Any],
        known: NDArray[np.bool_] | None,
        stamp: Stamp,
        *,
        compress: bool = True,
    ) -> Frame:
        """The frame that updates a client to these values.

        Args:
            values: Shape (tiles,), in the stream's dtype; copied only where they changed.
            known: Shape (tiles,), or None.
            stamp: Stamp of their event.
            compress: Whether zstd may be used.

        Returns:
            A DELTA, or a KEY if it is the first frame or too much changed.
        """
        if len(values) != len(self._values):
            raise LocalProtocolError(
                f"{len(values)} values for {len(self._values)} tiles: resize the space first"
            )
        if values.dtype != self._values.dtype:
            raise LocalProtocolError(
                f"values are {values.dtype}, the stream is {self._values.dtype}"
            )
        if known is not None and bool(known.all()):
            known = None
        before = self._stamp
        self._stamp = stamp
        if before is not None:
            differs = self._differs(values, known)
            changed = int(np.count_nonzero(differs))
            if not key_is_cheaper(changed, len(values), values.itemsize):
                return self._delta(
                    _places(differs, changed), values, known, before.sequence, compress=compress
                )
        np.copyto(self._values, values)
        self._known = None if known is None else known.copy()
        return self.key(compress=compress)

    def room_for_known(self, known: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
        """Return the array of what is known, for code that compares and updates it; made if it will be needed.

        Args:
            known: What is known of the values to be sent.
        """
        if known is not None and self._known is None:
            self._known = np.ones(len(self._values), dtype=np.bool_)
        return self._known

    def note_sent(self, stamp: Stamp, *, all_known: bool) -> None:
        """Note that such code has sent values, and updated `values` and `known`."""
        self._stamp = stamp
        if all_known:
            self._known = None

    def _delta(
        self,
        changed: NDArray[np.int64],
        values: NDArray[Any],
        known: NDArray[np.bool_] | None,
        base_sequence: int,
        *,
        compress: bool,
    ) -> Frame:
        """Store the changed values and make their frame."""
        assert self._stamp is not None
        new = values[changed]
        self._values[changed] = new
        new_known = None if known is None else known[changed]
        if known is None:
            self._known = None
        elif self._known is None:
            self._known = known.copy()
        else:
            self._known[changed] = new_known
        if new_known is not None and bool(new_known.all()):
            new_known = None
        return pack_delta(
            self._space,
            self._stream,
            self._stamp,
            base_sequence=base_sequence,
            count=len(values),
            indices=changed,
            values=new,
            known=new_known,
            compress=compress,
        )

    def _differs(self, values: NDArray[Any], known: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """Return the tiles at which a client would see a difference: shape (tiles,)."""
        differs: NDArray[np.bool_] = values != self._values
        if known is not None or self._known is not None:
            before = np.True_ if self._known is None else self._known
            now = np.True_ if known is None else known
            # An unknown value cannot have changed; only its being known can.
            differs &= np.asarray(now)
            differs |= np.not_equal(before, now)
        return differs

    def key(self, *, compress: bool = True) -> Frame:
        """A KEY of the values sent last, with their stamp.

        Raises:
            LocalProtocolError: Nothing was sent yet.
        """
        if self._stamp is None:
            raise LocalProtocolError(f"space {self._space} stream {self._stream}: no values yet")
        return pack_key(
            self._space, self._stream, self._stamp, self._values, self._known, compress=compress
        )

    def remap(
        self,
        old_starts: NDArray[np.uint32],
        new_starts: NDArray[np.uint32],
        lengths: NDArray[np.uint32],
        count: int,
    ) -> None:
        """Apply a resize: kept tiles keep their values, new tiles are unknown until a value is sent.

        The client does the same with the same runs, so deltas still apply after a resize.
        """
        remap = Remap(old_starts, new_starts, lengths, count)
        self._values = remap.values(self._values, self._default)
        self._known = remap.known(self._known)
