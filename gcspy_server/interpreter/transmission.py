"""Encodes filled arrays into frames: the transmission of an event, and the keyframe for clients that join late.

A `SpaceSender` remembers for each space the data sent last. Encoding happens in the driver's
thread; the result never changes, so that the trio thread and all clients share it. Knows spaces and
the codec; does not know clients.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from gcspy_protocol.codec import decode, encode, encode_event, join_event
from gcspy_protocol.compiled.space_encoder import (
    NO_SUMMARY,
    CompiledEncoder,
    EncodedSpace,
    EncodedStream,
    StreamJob,
    SummaryKind,
    SummaryPlan,
)
from gcspy_protocol.compiled.stream_library import streams_library
from gcspy_protocol.frames.frame import HEADER, Frame, Header, inflate
from gcspy_protocol.frames.transcoding import without_zstd
from gcspy_protocol.limits import CLIENT_LIMITS
from gcspy_protocol.messages import Counters, Event, NewNames, SpaceInfo, Summary, Tiles
from gcspy_protocol.model import CONTROL_STREAM, Control
from gcspy_protocol.streams.tiles import pack_tiles
from gcspy_protocol.streams.values import Stamp, StreamEncoder, pack_key
from numpy.typing import NDArray

from gcspy_server.interpreter.gather_request import GatherRequest
from gcspy_server.interpreter.summaries import counted_tiles, plan_of, summary_of
from gcspy_server.names import ExtentNames, Runs, StringNames, TileNames, UniformNames, runs_between
from gcspy_server.spaces import ServerSpace, ServerStream
from gcspy_session.interest import Interest

__all__ = [
    "KeyframeSource",
    "Snapshot",
    "SnapshotPart",
    "SpaceSender",
    "SpaceStreams",
    "copy_keyframe",
    "parts_of",
]

_KEPT_BYTES = 64 << 10
"""The frames of a space are kept whole, for its summaries, if they have no more bytes."""

_NO_RUNS = Runs(*(np.empty(0, dtype=np.uint32) for _ in range(3)))


class SnapshotPart(NamedTuple):
    """A frame, its space and its stream; stream None: the space as a whole."""

    space: int
    stream: int | None
    frame: Frame

    @property
    def data(self) -> bytes:
        """Its bytes."""
        return self.frame.data

    @property
    def crcs(self) -> bytes:
        """Its CRC."""
        return self.frame.crc.to_bytes(4, "little")


class SpaceStreams(NamedTuple):
    """The frames of all streams of a space, as one piece."""

    space: int
    encoded: EncodedSpace

    @property
    def data(self) -> bytes:
        """Their bytes, one behind the other."""
        return self.encoded.data

    @property
    def crcs(self) -> bytes:
        """Their CRCs, as u32s."""
        return self.encoded.crcs


_Piece: TypeAlias = SnapshotPart | SpaceStreams


def parts_of(pieces: Iterable[SnapshotPart | SpaceStreams]) -> list[SnapshotPart]:
    """Take pieces apart, for who needs some of their frames."""
    found: list[SnapshotPart] = []
    for piece in pieces:
        if isinstance(piece, SnapshotPart):
            found.append(piece)
            continue
        for number, one in zip(piece.encoded.order, piece.encoded.streams, strict=True):
            # The control stream belongs to the space: a client that subscribes to any of its
            # streams needs it.
            stream = None if number == CONTROL_STREAM else number
            found.append(SnapshotPart(piece.space, stream, one.frame))
            if one.summary is not None:
                found.append(SnapshotPart(piece.space, stream, one.summary))
    return found


@dataclass(eq=False)
class Snapshot:
    """A transmitted event, encoded once for all clients.

    Attributes:
        event: The event that ends it.
        pieces: Its frames, in order.
        counts: Occurrences of every kind at that time.
        names: Tile names by space, for the spaces that it resizes.
        must: Whether the controller must get it, because the target is held after it.
        lost: `Core.lost` at that time.
    """

    event: Event
    pieces: list[SnapshotPart | SpaceStreams]
    counts: tuple[int, ...] = ()
    names: dict[int, TileNames] = field(default_factory=dict)
    must: bool = False
    lost: int = 0
    _bytes: dict[Interest, bytes] = field(default_factory=dict)
    _plain: dict[Interest, bytes] = field(default_factory=dict)

    @property
    def sequence(self) -> int:
        """Its number."""
        return self.event.sequence

    @property
    def parts(self) -> list[SnapshotPart]:
        """Its frames, one by one."""
        return parts_of(self.pieces)

    @property
    def frame_bytes(self) -> int:
        """Bytes of its frames."""
        return sum([len(piece.data) for piece in self.pieces])

    @property
    def moment_nanos(self) -> int:
        """When it happened."""
        return self.event.time_nanos

    def bytes_for(self, wants: Interest, *, zstd: bool = True) -> bytes:
        """All bytes of the event, and the counters, for clients with that subscription: one object for all of them.

        Clients without zstd have another, made from the first on request.
        """
        if not zstd:
            plain = self._plain.get(wants)
            if plain is None:
                plain = self._plain[wants] = without_zstd(self.bytes_for(wants))
            return plain
        found = self._bytes.get(wants)
        if found is None:
            if wants.spaces is None:
                pieces = self.pieces
                crcs = b"".join([piece.crcs for piece in pieces])
                data = join_event(self.event, [piece.data for piece in pieces], crcs)
            else:
                frames = [part.frame for part in self.parts if wants.has(part.space, part.stream)]
                data = encode_event(self.event, frames)
            counters = encode(Counters(counts=self.counts)).data if self.counts else b""
            found = self._bytes[wants] = data + counters
        return found


class SpaceSender:
    """The data sent last of one space: tile names, text, and the values of each stream.

    Args:
        space: The driver's space.
    """

    def __init__(self, space: ServerSpace) -> None:
        self.space = space
        self.names: TileNames | None = None
        self.info = ""
        self.encoders: dict[int, StreamEncoder] = {}
        self._summarised: dict[int, EncodedSpace | Frame] = {}
        self._plans: dict[int, SummaryPlan] = {}
        self._jobs: dict[int, StreamJob] = {}
        library = streams_library()
        self._compiled = None if library is None else CompiledEncoder(library, space.id)

    def encode(self, request: GatherRequest, stamp: Stamp) -> tuple[list[_Piece], bool]:
        """The frames that update a client to the driver's data.

        Returns:
            The frames, and whether the tiles changed.
        """
        space = self.space
        if not request.sends(space):
            return [], False
        parts: list[_Piece] = []
        if space.withheld:
            if space.told_info != space.info:
                self._encode_info(parts, stamp)
            return parts, False
        resized = self._resize(parts, stamp)
        jobs: list[StreamJob] = []
        if resized or space._control_touched or CONTROL_STREAM not in self.encoders:
            jobs.append(self._job(CONTROL_STREAM, space._control))
        everything = request.audience.spaces is None
        for stream in space._streams:
            if stream.gathered and (everything or request.sends(space, stream)):
                job = self._job(stream.schema.id, stream._values)
                job.known, job.summary = stream._known, self._plan(stream)
                jobs.append(job)
        if jobs:
            parts.append(SpaceStreams(space.id, self._encode_streams(jobs, stamp)))
        self._encode_info(parts, stamp)
        return parts, resized

    def _job(self, number: int, values: NDArray[Any]) -> StreamJob:
        job = self._jobs.get(number)
        if job is None:
            job = self._jobs[number] = StreamJob(number, self._encoder(number), values)
        job.values = values
        return job

    def _encode_streams(self, jobs: list[StreamJob], stamp: Stamp) -> EncodedSpace:
        found = None
        if self._compiled is not None:
            found = self._compiled.encode(jobs, self.space._control, stamp)
        if found is None:
            order = tuple([job.stream for job in jobs])
            found = EncodedSpace.of(order, [self._encode_stream(job, stamp) for job in jobs])
        if len(found.data) <= _KEPT_BYTES:
            self._summarised.update(
                [(job.stream, found) for job in jobs if job.summary is not NO_SUMMARY]
            )
        else:  # only the summaries are kept
            for number, one in zip(found.order, found.streams, strict=True):
                if one.summary is not None:
                    self._summarised[number] = one.summary
        return found

    def _encode_stream(self, job: StreamJob, stamp: Stamp) -> EncodedStream:
        """Encode a stream and its summary without machine code."""
        frame = job.encoder.encode(job.values, job.known, stamp)
        if job.summary.kind is SummaryKind.NONE:
            return EncodedStream(frame, None)
        return EncodedStream(frame, encode(self._summarise(self.space.streams[job.stream], stamp)))

    def _plan(self, stream: ServerStream) -> SummaryPlan:
        schema = stream.schema
        found = self._plans.get(schema.id)
        if found is None and schema.names_from is not None:
            found = self._plans[schema.id] = NO_SUMMARY  # a sum of numbers of names is meaningless
        if stream._summary is not None and found is not NO_SUMMARY:
            numbers, covered = stream._summary
            return SummaryPlan(SummaryKind.GIVEN, len(numbers), numbers, covered)
        if schema.max_stream is not None and found is not NO_SUMMARY:
            other = self.space.streams[schema.max_stream]
            if (
                found is None
                or found.maxima is not other._values
                or found.maxima_known is not other._known
            ):
                found = plan_of(schema, other._values, other._known)
        elif found is None:
            found = plan_of(schema, None)
        self._plans[schema.id] = found
        return found

    def _encode_info(self, parts: list[_Piece], stamp: Stamp) -> None:
        info = self.space.told_info
        if info != self.info:
            self.info = info
            parts.append(
                SnapshotPart(self.space.id, None, encode(_info_of(self.space.id, info, stamp)))
            )

    def _resize(self, parts: list[_Piece], stamp: Stamp) -> bool:
        names = self.space.names
        if self.names is names or self.names == names:
            return False
        runs = _NO_RUNS if self.names is None else runs_between(self.names, names)
        frame = pack_tiles(
            _tiles_of(self.space.id, names, runs),
            sequence=stamp.sequence,
            time_nanos=stamp.time_nanos,
        )
        parts.append(SnapshotPart(self.space.id, None, frame))
        parts += _new_names(self.space.id, names, runs, stamp)
        for encoder in self.encoders.values():
            encoder.remap(runs.old_starts, runs.new_starts, runs.lengths, names.count)
        self.names = names
        return True

    def _encoder(self, number: int) -> StreamEncoder:
        encoder = self.encoders.get(number)
        if encoder is None:
            if number == CONTROL_STREAM:
                dtype, default = "u1", int(Control.USED)
            else:
                schema = self.space.streams[number].schema
                dtype, default = schema.dtype, schema.default
            encoder = self.encoders[number] = StreamEncoder(
                self.space.id, number, dtype=dtype, default=default, count=self.space.count
            )
        return encoder

    def summary(self, stream: int, stamp: Stamp) -> Summary:
        """The summary of a gathered stream, whether it was sent or not."""
        found = self._summary_frame(stream)
        if found is not None and _header_of(found).sequence == stamp.sequence:
            return _summary_in(found)
        return self._summarise(self.space.streams[stream], stamp)

    def summary_frames(self) -> list[Frame]:
        """The latest summary of each stream, as sent."""
        found = [self._summary_frame(stream) for stream in self._summarised]
        return [one for one in found if one is not None]

    def _summary_frame(self, stream: int) -> Frame | None:
        encoded = self._summarised.get(stream)
        if encoded is None or isinstance(encoded, Frame):
            return encoded
        return encoded.streams[encoded.order.index(stream)].summary

    def _summarise(self, stream: ServerStream, stamp: Stamp) -> Summary:
        counted: NDArray[np.bool_] | None = None
        other = None
        if stream._summary is None or stream._summary[1] is None:
            counted = counted_tiles(self.space._control, stream._known)
        if stream._summary is None:
            if stream.schema.max_stream is not None:
                other = self.space.streams[stream.schema.max_stream]
                if other._known is not None:  # unknown values have no share
                    counted = other._known if counted is None else counted & other._known
            maxima = None if other is None else other._values
            values, covered = summary_of(stream.schema, stream._values, counted, maxima)
        else:
            values, given = stream._summary
            all_of_them = len(stream._values) if counted is None else int(np.count_nonzero(counted))
            covered = all_of_them if given is None else given
        return Summary(
            space=self.space.id,
            stream=stream.schema.id,
            sequence=stamp.sequence,
            time_nanos=stamp.time_nanos,
            values=values,
            covered=covered,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Values:
    """A copy of the data sent last of one stream."""

    space: int
    stream: int
    stamp: Stamp
    values: NDArray[Any]
    known: NDArray[np.bool_] | None


@dataclass(eq=False)
class KeyframeSource:
    """A copy of all data sent last, to be encoded as a keyframe outside of every lock.

    Attributes:
        event: The latest event, marked as keyframe and cached; None if there was none yet.
        snapshot: The encoded keyframe, after `encode`.
    """

    event: Event | None
    _spaces: list[tuple[int, TileNames, str]]
    _values: dict[int, list[_Values]]
    _summaries: list[Frame]
    snapshot: Snapshot | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def sequence(self) -> int:
        """Number of the snapshot that it repeats; 0 if there is none."""
        return 0 if self.event is None else self.event.sequence

    def encode(self) -> Snapshot:
        """Encode it, once, in any thread; if two threads call it at the same time, the second waits for the first.

        Raises:
            AssertionError: There is no event to repeat.
        """
        with self._lock:
            if self.snapshot is None:
                assert self.event is not None
                stamp = Stamp(
                    sequence=self.event.sequence,
                    time_nanos=self.event.time_nanos,
                    event=self.event.event,
                    occurrence=self.event.occurrence,
                )
                parts: list[_Piece] = []
                for space, names, info in self._spaces:
                    parts.extend(self._encode_space(space, names, info, stamp))
                self.snapshot = Snapshot(self.event, parts)
                self._spaces, self._values, self._summaries = [], {}, []
            return self.snapshot

    def _encode_space(
        self, space: int, names: TileNames, info: str, stamp: Stamp
    ) -> Iterable[SnapshotPart]:
        tiles = _tiles_of(space, names, _NO_RUNS)
        yield SnapshotPart(
            space, None, pack_tiles(tiles, sequence=stamp.sequence, time_nanos=stamp.time_nanos)
        )
        yield from _new_names(space, names, _NO_RUNS, stamp)
        for one in self._values[space]:
            stream = None if one.stream == CONTROL_STREAM else one.stream
            yield SnapshotPart(
                space, stream, pack_key(space, one.stream, one.stamp, one.values, one.known)
            )
        for summary in self._summaries:
            if summary.space == space:
                yield SnapshotPart(space, summary.stream, summary)
        yield SnapshotPart(space, None, encode(_info_of(space, info, stamp)))


def copy_keyframe(
    event: Event | None, epoch: int, senders: Iterable[SpaceSender]
) -> KeyframeSource:
    """Copy the data sent last, under the current schema; nothing else, because encoders wait meanwhile."""
    spaces: list[tuple[int, TileNames, str]] = []
    values: dict[int, list[_Values]] = {}
    summaries: list[Frame] = []
    for sender in senders:
        if sender.names is None:
            continue
        number = sender.space.id
        spaces.append((number, sender.names, sender.info))
        values[number] = [
            _Values(
                number,
                stream,
                e.stamp,
                e.values.copy(),
                None if e.known is None else e.known.copy(),
            )
            for stream, e in sender.encoders.items()
            if e.stamp is not None
        ]
        summaries.extend(sender.summary_frames())
    repeated = None if event is None else replace(event, epoch=epoch, keyframe=True, cached=True)
    return KeyframeSource(repeated, spaces, values, summaries)


def _tiles_of(space: int, names: TileNames, runs: Runs) -> Tiles:
    bases = sizes = None
    if isinstance(names, ExtentNames):
        new = runs.new_tiles(names.count)
        bases, sizes = names.bases[new], names.sizes[new]
    return Tiles(
        space=space,
        count=names.count,
        old_starts=runs.old_starts,
        new_starts=runs.new_starts,
        lengths=runs.lengths,
        naming=names.naming,
        base=names.base if isinstance(names, UniformNames) else 0,
        tile_bytes=names.tile_bytes if isinstance(names, UniformNames) else 0,
        bases=bases,
        sizes=sizes,
    )


def _new_names(space: int, names: TileNames, runs: Runs, stamp: Stamp) -> list[SnapshotPart]:
    """The texts of new tiles, if the space is small enough to send them all; those of a large one are requested."""
    if not isinstance(names, StringNames) or not 0 < names.count <= CLIENT_LIMITS.names_page:
        return []
    new = runs.new_tiles(names.count)
    if not len(new):
        return []
    first, last = int(new[0]), int(new[-1])
    message = NewNames(
        space=space,
        sequence=stamp.sequence,
        time_nanos=stamp.time_nanos,
        first=first,
        names=names.names[first : last + 1],
    )
    return [SnapshotPart(space, None, encode(message))]


def _header_of(frame: Frame) -> Header:
    return Header._make(HEADER.unpack_from(frame.data))


def _summary_in(frame: Frame) -> Summary:
    """The message of a frame that was encoded here."""
    header = _header_of(frame)
    payload = inflate(header, frame.data[HEADER.size :], CLIENT_LIMITS, 0)
    message = decode(header, payload, CLIENT_LIMITS)
    assert isinstance(message, Summary)
    return message


def _info_of(space: int, text: str, stamp: Stamp) -> SpaceInfo:
    return SpaceInfo(space=space, sequence=stamp.sequence, time_nanos=stamp.time_nanos, text=text)
