"""Frames of all streams of a space and their summaries, from one call of ``encode.c``.

The bytes are those of `gcspy_protocol.streams.values.StreamEncoder.encode` and of a `Summary`. What
C cannot do is left to them: `CompiledEncoder.encode` then returns None, and nothing was changed.

Knows arrays and their addresses; does not know what a stream means.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcspy_compiled.libraries import Library
from gcspy_protocol.frames.frame import COMPRESS_FROM_BYTES, HEADER, Frame, pack_frame
from gcspy_protocol.messages import FrameType
from gcspy_protocol.model import DTYPES
from gcspy_protocol.streams.values import Stamp, StreamEncoder

__all__ = [
    "NO_SUMMARY",
    "CompiledEncoder",
    "EncodedSpace",
    "EncodedStream",
    "StreamJob",
    "SummaryKind",
    "SummaryPlan",
]

_BLOCK: Final = 32
"""Tiles that C compares at a time."""

_ROOM_BYTES: Final = 64 << 10
"""First size of the buffer for frames."""

_KEPT_BYTES: Final = 1 << 20
"""A larger buffer is not kept for the next event, unless it has at most a byte for each tile: without room all is compared twice."""

_LONG_TILES: Final = 1 << 17
"""From this many values on a call takes so long that other threads may run meanwhile."""

_CHANGED_AT: Final = 24
"""Where a DELTA has the number of its changes."""

_U16, _U32, _U64 = (1 << 16) - 1, (1 << 32) - 1, (1 << 64) - 1
_I64 = (1 << 63) - 1
_LEAST_MAXIMUM: Final = -(1 << 31)
"""Times the tiles of a space it is a number of 64 bits."""


class SummaryKind(IntEnum):
    """How a summary is made; as in ``encode.c``."""

    NONE = 0
    GIVEN = 1
    SUM = 2
    PERCENT = 3
    PERCENT_VAR = 4
    NAMES = 5


class SummaryPlan(NamedTuple):
    """The summary of a stream.

    Attributes:
        kind: How it is made.
        length: Number of its numbers.
        numbers: GIVEN: the numbers.
        covered: GIVEN: how many tiles it covers; None: those that are used and known.
        maximum: PERCENT: 100 % of one tile.
        maxima: PERCENT_VAR: shape (tiles,), 100 % of each tile.
        maxima_known: PERCENT_VAR: shape (tiles,), or None.
    """

    kind: SummaryKind
    length: int = 1
    numbers: tuple[int, ...] = ()
    covered: int | None = None
    maximum: int = 0
    maxima: NDArray[Any] | None = None
    maxima_known: NDArray[np.bool_] | None = None


NO_SUMMARY: Final = SummaryPlan(SummaryKind.NONE, 0)
"""No summary is sent."""


@dataclass(slots=True, eq=False)
class StreamJob:
    """A stream to be sent; the same object may be used again, with other values.

    Attributes:
        stream: Stream id, or CONTROL_STREAM.
        encoder: What was sent before; updated.
        values: Shape (tiles,), in the stream's dtype.
        known: Shape (tiles,), or None: all are known.
        summary: Its summary.
    """

    stream: int
    encoder: StreamEncoder
    values: NDArray[Any]
    known: NDArray[np.bool_] | None = None
    summary: SummaryPlan = NO_SUMMARY


class EncodedStream(NamedTuple):
    """The frames of a stream."""

    frame: Frame
    summary: Frame | None


class EncodedSpace:
    """The frames of the streams of a space, one behind the other, each with its summary behind it.

    Most clients get all of them, as one piece; they are taken apart only for those that do not.

    Args:
        order: The streams, in order.
        data: The frames.
        crcs: Their CRCs, as u32s.
        streams: Frames of each stream; None: they are taken from `data`.
        places: Where they are in `data`: a ``struct stream`` for each stream.
        changed: Whether a client sees any tile differently.
    """

    __slots__ = ("_places", "_streams", "changed", "crcs", "data", "order")

    def __init__(
        self,
        order: tuple[int, ...],
        data: bytes,
        crcs: bytes,
        *,
        streams: list[EncodedStream] | None = None,
        places: bytes = b"",
        changed: bool = True,
    ) -> None:
        self.order, self.data, self.crcs = order, data, crcs
        self.changed = changed
        self._streams = streams
        self._places = places

    @classmethod
    def of(cls, order: tuple[int, ...], streams: list[EncodedStream]) -> EncodedSpace:
        """Put frames that were made one by one together."""
        frames = [frame for stream in streams for frame in stream if frame is not None]
        crcs = struct.pack(f"<{len(frames)}I", *[frame.crc for frame in frames])
        changed = any(_changes_some(stream.frame) for stream in streams)
        data = b"".join([frame.data for frame in frames])
        return cls(order, data, crcs, streams=streams, changed=changed)

    @property
    def streams(self) -> list[EncodedStream]:
        """The frames of each stream."""
        if self._streams is None:
            self._streams = self._divide()
        return self._streams

    def _divide(self) -> list[EncodedStream]:
        found = []
        crcs = struct.iter_unpack("<I", self.crcs)
        at = 0
        for raw in (_Stream * len(self.order)).from_buffer_copy(self._places):
            both: list[Frame | None] = []
            for size in (raw.frame_bytes, raw.summary_bytes):
                data = self.data[at : at + size]
                at += size
                if not size:
                    both.append(None)
                    continue
                header = HEADER.unpack_from(data)
                both.append(Frame(data, next(crcs)[0], header[3], header[4]))
            frame, summary = both
            assert frame is not None
            found.append(EncodedStream(frame, summary))
        return found


class _Stream(ctypes.Structure):
    """``struct stream``."""

    _fields_ = (
        ("values", ctypes.c_void_p),
        ("known", ctypes.c_void_p),
        ("before", ctypes.c_void_p),
        ("before_known", ctypes.c_void_p),
        ("maxima", ctypes.c_void_p),
        ("maxima_known", ctypes.c_void_p),
        ("numbers", ctypes.c_void_p),
        ("base_sequence", ctypes.c_uint64),
        ("maximum", ctypes.c_int64),
        ("covered", ctypes.c_int64),
        ("frame_at", ctypes.c_uint64),
        ("frame_bytes", ctypes.c_uint64),
        ("summary_at", ctypes.c_uint64),
        ("summary_bytes", ctypes.c_uint64),
        ("frame_crc", ctypes.c_uint32),
        ("summary_crc", ctypes.c_uint32),
        ("number_count", ctypes.c_uint32),
        ("stream", ctypes.c_uint16),
        ("type", ctypes.c_uint8),
        ("maxima_type", ctypes.c_uint8),
        ("summary", ctypes.c_uint8),
        ("first", ctypes.c_uint8),
        ("all_known", ctypes.c_uint8),
        ("is_key", ctypes.c_uint8),
    )


class _Event(ctypes.Structure):
    """``struct event``."""

    _fields_ = (
        ("sequence", ctypes.c_uint64),
        ("time_nanos", ctypes.c_uint64),
        ("occurrence", ctypes.c_uint64),
        ("event", ctypes.c_uint16),
        ("space", ctypes.c_uint16),
        ("compresses", ctypes.c_uint8),
    )


class _Slot:
    """A stream of the call, with the arrays whose addresses it has: they stay alive and are looked up once."""

    __slots__ = ("before", "maxima", "number_room", "plan", "raw", "stamp", "tracks", "values")

    def __init__(self, raw: _Stream) -> None:
        self.raw = raw
        self.values: NDArray[Any] | None = None
        self.before: NDArray[Any] | None = None
        self.maxima: NDArray[Any] | None = None
        self.plan: SummaryPlan | None = None
        self.stamp: Stamp | None = None
        self.tracks = False  # whether some values are, or were, unknown
        self.number_room: ctypes.Array[ctypes.c_int64] = (ctypes.c_int64 * 0)()

    def set_arrays(self, job: StreamJob, tiles: int) -> bool:
        """Set the addresses of a stream's values; False: C cannot read them."""
        values, before = job.values, job.encoder.values
        self.values = self.before = None
        if not (_is_plain(values, tiles) and _is_plain(before, tiles)):
            return False
        name = values.dtype.str[1:]
        if name not in DTYPES or values.dtype != before.dtype:
            return False
        self.raw.values, self.raw.before = _address(values), _address(before)
        self.raw.type = DTYPES[name]
        self.values, self.before = values, before
        return True

    def set_summary(self, plan: SummaryPlan, tiles: int) -> bool:
        """Set how the summary is made; False: C cannot make it."""
        if plan is self.plan:
            return True
        self.plan = None
        raw = self.raw
        raw.summary = plan.kind
        if plan.kind is SummaryKind.NONE:
            self.plan = plan
            return True
        if plan.length != len(self.number_room):
            self.number_room = (ctypes.c_int64 * plan.length)()
            raw.numbers, raw.number_count = ctypes.addressof(self.number_room), plan.length
        if plan.kind is SummaryKind.GIVEN:
            if len(plan.numbers) != plan.length or not 0 <= (plan.covered or 0) <= _U32:
                return False
            if any(not -_I64 - 1 <= number <= _I64 for number in plan.numbers):
                return False
            self.number_room[:] = list(plan.numbers)
            raw.covered = -1 if plan.covered is None else plan.covered
        elif plan.kind is SummaryKind.PERCENT:
            if not _LEAST_MAXIMUM <= plan.maximum <= _I64:
                return False
            raw.maximum = plan.maximum
        elif plan.kind is SummaryKind.PERCENT_VAR:
            return self._set_maxima(plan, tiles)
        self.plan = plan
        return True

    def _set_maxima(self, plan: SummaryPlan, tiles: int) -> bool:
        maxima, known = plan.maxima, plan.maxima_known
        if maxima is not self.maxima:
            if maxima is None or not _is_plain(maxima, tiles) or maxima.dtype.str[1:] not in DTYPES:
                return False
            self.raw.maxima, self.raw.maxima_type = (
                _address(maxima),
                DTYPES[maxima.dtype.str[1:]],
            )
            self.maxima = maxima
        self.raw.maxima_known = None
        if known is not None:
            if known.dtype != np.bool_ or not _is_plain(known, tiles):
                return False
            self.raw.maxima_known = _address(known)
        self.plan = plan
        return True

    def set_known(self, job: StreamJob) -> None:
        """Set what is known, and what was; the arrays were checked."""
        before = job.encoder.room_for_known(job.known)
        self.raw.known = None if job.known is None else _address(job.known)
        self.raw.before_known = None if before is None else _address(before)
        self.tracks = before is not None

    def set_base(self, stamp: Stamp | None) -> None:
        """Set what was sent before, if that was not by the last call."""
        self.raw.first = stamp is None
        self.raw.base_sequence = 0 if stamp is None else stamp.sequence


class CompiledEncoder:
    """Encodes the streams of one space.

    Args:
        library: The loaded library.
        space: Space id.
    """

    def __init__(self, library: Library, space: int) -> None:
        self._library = library
        self._space = space
        self._array: ctypes.Array[_Stream] = (_Stream * 0)()
        self._slots: list[_Slot] = []
        self._order: tuple[int, ...] = ()
        self._dirty: ctypes.Array[ctypes.c_uint32] = (ctypes.c_uint32 * 1)()
        self._crcs: ctypes.Array[ctypes.c_uint32] = (ctypes.c_uint32 * 0)()
        self._tiles = 0
        self._room = bytearray()

    def encode(
        self,
        jobs: Sequence[StreamJob],
        control: NDArray[np.uint8],
        stamp: Stamp,
        *,
        compress: bool = True,
    ) -> EncodedSpace | None:
        """Encode streams of one event.

        Args:
            jobs: The streams, in order.
            control: Shape (tiles,), control flags.
            stamp: Stamp of the event.
            compress: Whether zstd may be used.

        Returns:
            The frames; None: C cannot encode them, and nothing was done.
        """
        tiles = len(control)
        event = self._event(stamp, compress=compress)
        if event is None or control.dtype != np.uint8 or not _is_plain(control, tiles):
            return None
        self._prepare(tuple([job.stream for job in jobs]), tiles)
        for slot, job in zip(self._slots, jobs, strict=True):
            if (
                job.values is not slot.values or job.encoder.values is not slot.before
            ) and not slot.set_arrays(job, tiles):
                return None
            known = job.known
            if known is not None and (known.dtype != np.bool_ or not _is_plain(known, tiles)):
                return None
            if job.summary is not slot.plan and not slot.set_summary(job.summary, tiles):
                return None
        for slot, job in zip(self._slots, jobs, strict=True):
            encoder = job.encoder
            if slot.tracks or job.known is not None or encoder.known is not None:
                slot.set_known(job)
            if encoder.stamp is not slot.stamp or slot.stamp is None:
                slot.set_base(encoder.stamp)
        return self._call(jobs, control, event, stamp, compress=compress)

    def _event(self, stamp: Stamp, *, compress: bool) -> _Event | None:
        """Return the event's part of all frames; None: a number does not fit, which packing it will say."""
        fits = (
            0 <= stamp.sequence <= _U64
            and 0 <= stamp.time_nanos <= _U64
            and 0 <= stamp.occurrence <= _U64
            and 0 <= stamp.event <= _U16
            and 0 <= self._space <= _U16
        )
        if not fits:
            return None
        return _Event(
            stamp.sequence, stamp.time_nanos, stamp.occurrence, stamp.event, self._space, compress
        )

    def _prepare(self, order: tuple[int, ...], tiles: int) -> None:
        """Make a slot for each stream, unless the last event had the same."""
        if order != self._order:
            self._array = (_Stream * len(order))()
            self._slots = [_Slot(one) for one in self._array]
            self._order = order
            for slot, stream in zip(self._slots, order, strict=True):
                slot.raw.stream = stream
            self._crcs = (ctypes.c_uint32 * (2 * len(order)))()
        if tiles != self._tiles:
            self._tiles = tiles
            self._dirty = (ctypes.c_uint32 * (tiles // _BLOCK + 1))()
            for slot in self._slots:
                slot.values = slot.plan = None  # their lengths are checked again

    def _call(
        self,
        jobs: Sequence[StreamJob],
        control: NDArray[np.uint8],
        event: _Event,
        stamp: Stamp,
        *,
        compress: bool,
    ) -> EncodedSpace:
        tiles, count = len(control), len(jobs)
        long = tiles * count >= _LONG_TILES
        function = (self._library.released if long else self._library.held).gcspy_encode
        used, frames, changes = ctypes.c_uint64(), ctypes.c_uint32(), ctypes.c_uint64()
        room, needed = self._room, _ROOM_BYTES
        found: list[EncodedStream] = []
        while True:
            if len(room) < needed:
                room = bytearray(needed)
            first = len(found)
            buffer = (ctypes.c_char * len(room)).from_buffer(room)
            done = function(
                self._array,
                ctypes.c_uint32(first),
                ctypes.c_uint32(count),
                ctypes.c_uint64(tiles),
                ctypes.c_void_p(_address(control)),
                ctypes.byref(event),
                buffer,
                ctypes.c_uint64(len(room)),
                self._dirty,
                ctypes.byref(used),
                self._crcs,
                ctypes.byref(frames),
                ctypes.byref(changes),
            )
            for slot, job in zip(self._slots[first:done], jobs[first:done], strict=True):
                all_known = not slot.tracks or bool(slot.raw.all_known)
                job.encoder.note_sent(stamp, all_known=all_known)
                slot.stamp = stamp
            with memoryview(room) as view:
                if done == count and not first and frames.value:
                    crcs = bytes(self._crcs)[: 4 * frames.value]
                    data = view[: used.value].tobytes()
                    self._keep(room)
                    return EncodedSpace(
                        self._order,
                        data,
                        crcs,
                        places=bytes(self._array),
                        changed=changes.value > 0,
                    )
                found += [
                    self._frames(slot.raw, view, stamp, compress=compress)
                    for slot in self._slots[first:done]
                ]
            if done == count:
                self._keep(room)
                return EncodedSpace.of(self._order, found)
            needed = used.value

    def _keep(self, room: bytearray) -> None:
        most = max(_KEPT_BYTES, self._tiles)
        self._room = room if len(room) <= most else bytearray()

    def _frames(
        self, raw: _Stream, view: memoryview, stamp: Stamp, *, compress: bool
    ) -> EncodedStream:
        data = view[raw.frame_at : raw.frame_at + raw.frame_bytes].tobytes()
        if compress and len(data) >= HEADER.size + COMPRESS_FROM_BYTES:
            kind = FrameType.STREAM_KEY if raw.is_key else FrameType.STREAM_DELTA
            frame = self._packed(kind, data, raw.stream, stamp)
        else:
            frame = Frame(data, raw.frame_crc, self._space, raw.stream)
        if not raw.summary_bytes:
            return EncodedStream(frame, None)
        data = view[raw.summary_at : raw.summary_at + raw.summary_bytes].tobytes()
        if len(data) >= HEADER.size + COMPRESS_FROM_BYTES:
            return EncodedStream(frame, self._packed(FrameType.SUMMARY, data, raw.stream, stamp))
        return EncodedStream(frame, Frame(data, raw.summary_crc, self._space, raw.stream))

    def _packed(self, kind: FrameType, data: bytes, stream: int, stamp: Stamp) -> Frame:
        """Compress a frame that C has written, if that makes it smaller."""
        return pack_frame(
            kind,
            data[HEADER.size :],
            space=self._space,
            stream=stream,
            sequence=stamp.sequence,
            time_nanos=stamp.time_nanos,
        )


def _changes_some(frame: Frame) -> bool:
    """Whether a frame of values is more than a DELTA that lists no tile."""
    _, kind, flags, *_ = HEADER.unpack_from(frame.data)
    if kind != FrameType.STREAM_DELTA or flags:
        return True
    at = HEADER.size + _CHANGED_AT
    return frame.data[at : at + 4] != bytes(4)


def _is_plain(array: NDArray[Any], tiles: int) -> bool:
    """Whether C may read an array as `tiles` numbers."""
    return array.shape == (tiles,) and array.flags.c_contiguous and array.flags.aligned


def _address(array: NDArray[Any]) -> int:
    found: int = array.__array_interface__["data"][0]
    return found
