"""The data for viewers at a move: the recorded bytes where they apply, otherwise the difference from the viewers' state.

    the next event          its recorded frames, and the messages before it
    hidden events between   the tiles that any of them changed, as they are now
    a jump                  the tiles that differ
    the first, or unknown   everything

Recorded control flow, filters and missed events are not sent: a playback has its own. Each stream
keeps the stamp of its values, so that stale data stays stale.

Knows the client interpreter, the codec and moves; does not know clients or sockets.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode, encode_event
from gcspy_protocol.frames.frame import HEADER, Frame, Header
from gcspy_protocol.interpreter import ClientInterpreter, SpaceState, StreamState
from gcspy_protocol.messages import Event, FrameType, Summary
from gcspy_protocol.model import CONTROL_STREAM, Space
from gcspy_protocol.streams.values import Stamp, key_is_cheaper, pack_delta, pack_key
from numpy.typing import NDArray

from gcspy_replay.file import name_pages, names_in_event, new_names, tiles_of
from gcspy_replay.playback.playback import Move, ViewerState

__all__ = ["DifferencePart", "Transition", "Sender", "Wanted", "keyframe_of"]

Wanted = Callable[[int, int | None], bool]
"""Whether a space, or one of its streams, is subscribed to."""

_OWN = frozenset(
    {
        FrameType.STATE,
        FrameType.FILTERS,
        FrameType.MISSED,
        FrameType.TRIGGERS,
        FrameType.FIRED,
        FrameType.SETTINGS,
        FrameType.BUDGET,
        FrameType.WELCOME,
    }
)
"""Notices of which a playback has its own."""

_SCHEMA = frozenset({FrameType.SPACE_DEFINED, FrameType.SPACE_REMOVED, FrameType.EPOCH_END})


class DifferencePart(NamedTuple):
    """A frame, its space and its stream; stream None: the space as a whole."""

    space: int
    stream: int | None
    frame: Frame


@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """The data that bring viewers from the previous event to this one.

    Attributes:
        number: Number of the event in the recording.
        event: The event.
        schema: Frames that every viewer must get, also one that misses the event.
        before: Frames between the schema and the event.
        parts: Frames of the event.
        data: The recorded event, if its bytes apply unchanged.
        after: Frames behind the event: its number, and names of tiles.
        spaces: The schema that viewers then have.
        epoch: Its number.
    """

    number: int
    event: Event
    schema: bytes
    before: bytes
    parts: tuple[DifferencePart, ...]
    data: bytes | None
    after: bytes
    spaces: tuple[Space, ...]
    epoch: int

    def event_bytes(self, wants: Wanted | None = None) -> bytes:
        """All bytes but the schema's.

        Args:
            wants: A viewer's subscription; None: everything.
        """
        if wants is None and self.data is not None:
            return self.before + self.data + self.after
        frames = [
            part.frame for part in self.parts if wants is None or wants(part.space, part.stream)
        ]
        return self.before + encode_event(self.event, frames) + self.after


class Sender:
    """Makes transitions from moves; remembers the schema that viewers have.

    Attributes:
        spaces: The schema that viewers have, by id, in order.
        epoch: Its number; 0 before the first passage.
    """

    def __init__(self) -> None:
        self.spaces: dict[int, Space] = {}
        self.epoch = 0

    def passage(self, move: Move) -> Transition:
        """The transition for a move."""
        if move.direct and move.had is not None:
            return self._recorded(move)
        session = move.session
        schema, kept = self._schema(move)
        told = _Telling(move, kept)
        parts = tuple(part for state in session.spaces.values() for part in told.parts(state))
        before = b""
        if move.had is None or _counters_of(move.had) != session.counters:
            before = encode(m.Counters(counts=session.counters)).data
        event = replace(move.event, epoch=session.epoch, keyframe=move.had is None)
        after = _position(move.number) + b"".join(encode(page).data for page in told.pages())
        return Transition(
            move.number, event, schema, before, parts, None, after, *_schema_of(session)
        )

    def _recorded(self, move: Move) -> Transition:
        (step,) = move.steps
        notices = [
            (header, data) for header, data in _cut(step.notice_data) if header.type not in _OWN
        ]
        said = b"".join(data for _, data in notices)
        changed = any(header.type in _SCHEMA for header, _ in notices)
        self._remember(move.session)
        parts = tuple(_parts_of(step.data))
        schema, before = (said, b"") if changed else (b"", said)
        after, now = _position(move.number), _schema_of(move.session)
        return Transition(move.number, move.event, schema, before, parts, step.data, after, *now)

    def _remember(self, session: ClientInterpreter) -> None:
        self.spaces = {space_id: state.space for space_id, state in session.spaces.items()}
        self.epoch = session.epoch

    def _schema(self, move: Move) -> tuple[bytes, set[int]]:
        """The frames that change the schema, and the spaces whose data viewers keep."""
        session = move.session
        kept: set[int] = set()
        if move.had is not None:
            same = [
                number for number, space in self.spaces.items() if _is_same(move, number, space)
            ]
            # Spaces are in the order of their definition: one that comes back precedes those behind
            # it.
            for old, new in zip(same, session.spaces, strict=False):
                if old != new:
                    break
                kept.add(old)
        gone = [number for number in self.spaces if number not in kept]
        new_ones = [state.space for number, state in session.spaces.items() if number not in kept]
        messages: list[m.Message] = [m.SpaceRemoved(space=number) for number in gone]
        messages += [m.SpaceDefined(space=space) for space in new_ones]
        if messages or session.epoch != self.epoch:
            messages.append(m.EpochEnd(epoch=session.epoch))
        self._remember(session)
        return b"".join(encode(message).data for message in messages), kept


def _is_same(move: Move, number: int, space: Space) -> bool:
    """Whether viewers can continue with their data of a space."""
    state = move.session.spaces.get(number)
    if state is None or move.had is None:
        return False
    before = move.had.session
    if before is None:
        return state.space is space
    old = before.spaces.get(number)
    # No message revokes values, a summary or a text: only a new definition does.
    return (
        old is not None
        and state.space == space
        and not any(
            (a.sequence and not b.sequence) or (a.told is not None and b.told is None)
            for a, b in zip(_streams(old), _streams(state), strict=True)
        )
    )


def _streams(state: SpaceState) -> Iterator[StreamState]:
    yield state.control
    yield from state.streams.values()


def _counters_of(had: ViewerState) -> tuple[int, ...]:
    return had.counters if had.session is None else had.session.counters


def _schema_of(session: ClientInterpreter) -> tuple[tuple[Space, ...], int]:
    return tuple(state.space for state in session.spaces.values()), session.epoch


def _position(number: int) -> bytes:
    return encode(m.Position(number=number)).data


# ------------------------------------------------------------------ differences


@dataclass(frozen=True, slots=True, eq=False)
class _Telling:
    """The data about each space after a move.

    Attributes:
        move: The move.
        kept: Spaces whose data viewers keep; others are new to them.
        resized: Those of them whose tiles are sent again; filled by `parts`.
    """

    move: Move
    kept: set[int]
    resized: set[int] = field(default_factory=set)

    def parts(self, state: SpaceState) -> Iterator[DifferencePart]:
        """The frames of a space."""
        number, had = state.space.id, self.move.had
        if had is None or number not in self.kept:
            # A space without tiles from any event stays without them.
            yield from _whole(state, self.move.event)
            return
        old = None if had.session is None else had.session.spaces[number]
        whole = self._is_resized(number) if old is None else not state.names.goes_on_from(old.names)
        if whole:
            self.resized.add(number)
            yield DifferencePart(number, None, encode(tiles_of(state)))
            yield from (
                DifferencePart(number, None, encode(names))
                for names in new_names(state, self.move.event)
            )
        for stream_id, stream in _by_id(state):
            before = None if old is None else old.stream(stream_id)
            yield from self._stream(number, stream_id, stream, before, whole=whole)
        if state.info != (had.infos[number] if old is None else old.info):
            yield _info(state, self.move.event)

    def _stream(
        self,
        space: int,
        stream_id: int,
        stream: StreamState,
        before: StreamState | None,
        *,
        whole: bool,
    ) -> Iterator[DifferencePart]:
        """The frames of a stream of a space that viewers keep."""
        had = self.move.had
        assert had is not None
        tag = None if stream_id == CONTROL_STREAM else stream_id
        base = had.sequences[space, stream_id] if before is None else before.sequence
        if before is None:
            changed, touched = self._walked(space, stream_id)
        else:
            touched = (before.sequence, before.time_nanos, before.event, before.occurrence) != (
                stream.sequence,
                stream.time_nanos,
                stream.event,
                stream.occurrence,
            )
            changed = None if whole else _places(before, stream)
            touched = touched or changed is None or bool(len(changed))
        if stream.sequence and (whole or touched):
            if (
                whole
                or not base
                or changed is None
                or key_is_cheaper(len(changed), len(stream.values), stream.dtype.itemsize)
            ):
                frame = pack_key(space, stream_id, _stamp(stream), stream.values, stream.known)
            else:
                frame = _delta(space, stream_id, stream, base, changed)
            yield DifferencePart(space, tag, frame)
        summary: Summary | None = None
        if tag is not None:
            summary = had.summaries[space, stream_id] if before is None else before.told
        if stream.told is not None and stream.told != summary:
            yield DifferencePart(space, tag, encode(stream.told))

    def _is_resized(self, space: int) -> bool:
        return any(space in step.change.resized for step in self.move.steps)

    def _walked(self, space: int, stream: int) -> tuple[NDArray[np.int64] | None, bool]:
        """The tiles that any of several events changed, None for all; and whether there were any such events."""
        found = [
            step.change.changed[space, stream]
            for step in self.move.steps
            if (space, stream) in step.change.changed
        ]
        some = [tiles for tiles in found if tiles is not None]
        if len(some) < len(found):
            return None, True
        if len(some) < 2:
            return (some[0] if some else None), bool(some)
        return np.unique(np.concatenate(some)), True

    def pages(self) -> Iterator[m.TileNames]:
        """The texts of tiles that viewers have not got."""
        had, session = self.move.had, self.move.session
        for page in name_pages(session):
            in_event = names_in_event(session.spaces[page.space])
            if in_event and (
                had is None or page.space not in self.kept or page.space in self.resized
            ):
                continue  # they came with its tiles
            if had is None or page.space not in self.kept or page.space in self.resized:
                yield page
            elif had.session is not None:
                names = had.session.spaces[page.space].names
                if any(names.missing(page.first + i) for i in range(len(page.names))):
                    yield page
            elif any(
                isinstance(one, m.TileNames) and one.space == page.space for one in self._said()
            ):
                yield page

    def _said(self) -> Iterator[m.Message]:
        return (message for step in self.move.steps for message in step.notices)


def _by_id(state: SpaceState) -> Iterator[tuple[int, StreamState]]:
    yield CONTROL_STREAM, state.control
    yield from state.streams.items()


def _stamp(stream: StreamState) -> Stamp:
    return Stamp(
        sequence=stream.sequence,
        time_nanos=stream.time_nanos,
        event=stream.event,
        occurrence=stream.occurrence,
    )


def _delta(
    space: int, stream_id: int, stream: StreamState, base: int, changed: NDArray[np.int64]
) -> Frame:
    known = None if stream.known is None else stream.known[changed]
    return pack_delta(
        space,
        stream_id,
        _stamp(stream),
        base_sequence=base,
        count=len(stream.values),
        indices=changed,
        values=stream.values[changed],
        known=None if known is None or bool(known.all()) else known,
    )


def _places(before: StreamState, now: StreamState) -> NDArray[np.int64]:
    """The tiles of which a viewer would see something else: shape (changed,)."""
    differs: NDArray[np.bool_] = before.values != now.values
    if before.known is not None or now.known is not None:
        was: Any = np.True_ if before.known is None else before.known
        known: Any = np.True_ if now.known is None else now.known
        differs &= known  # an unknown value cannot have changed; only its being known can
        differs |= np.not_equal(was, known)
    return np.flatnonzero(differs)


# ------------------------------------------------------------------ everything


def _whole(state: SpaceState, event: Event) -> Iterator[DifferencePart]:
    number = state.space.id
    yield DifferencePart(number, None, encode(tiles_of(state)))
    yield from (DifferencePart(number, None, encode(names)) for names in new_names(state, event))
    for stream_id, stream in _by_id(state):
        tag = None if stream_id == CONTROL_STREAM else stream_id
        if stream.sequence:
            yield DifferencePart(
                number,
                tag,
                pack_key(number, stream_id, _stamp(stream), stream.values, stream.known),
            )
        if stream.told is not None:
            yield DifferencePart(number, tag, encode(stream.told))
    yield _info(state, event)  # also an empty one: who missed events may have another


def _info(state: SpaceState, event: Event) -> DifferencePart:
    number = state.space.id
    info = m.SpaceInfo(
        space=number, sequence=event.sequence, time_nanos=event.time_nanos, text=state.info
    )
    return DifferencePart(number, None, encode(info))


def keyframe_of(session: ClientInterpreter, number: int) -> Transition:
    """Everything, for a viewer that has the schema: one that comes late, or missed events.

    Args:
        session: The viewers' state at the event.
        number: Number of the event in the recording.
    """
    event = session.last_event
    assert event is not None, "there is an event that can be repeated"
    repeated = replace(event, epoch=session.epoch, keyframe=True, cached=True)
    parts = tuple(part for state in session.spaces.values() for part in _whole(state, event))
    before = encode(m.Counters(counts=session.counters)).data
    after = _position(number) + b"".join(
        encode(page).data for page in name_pages(session, large_only=True)
    )
    return Transition(number, repeated, b"", before, parts, None, after, *_schema_of(session))


# ------------------------------------------------------------------ recorded bytes


def _cut(data: bytes) -> Iterator[tuple[Header, bytes]]:
    """Frames of bytes that were checked."""
    at = 0
    while at < len(data):
        header = Header._make(HEADER.unpack_from(data, at))
        end = at + HEADER.size + header.length
        yield header, data[at:end]
        at = end


def _parts_of(data: bytes) -> Iterable[DifferencePart]:
    """The frames of an event but for EVENT."""
    for header, frame in _cut(data):
        if header.type != FrameType.EVENT:
            of_space = (
                header.type in (FrameType.TILES, FrameType.SPACE_INFO, FrameType.NEW_NAMES)
                or header.stream == CONTROL_STREAM
            )
            yield DifferencePart(
                header.space,
                None if of_space else header.stream,
                Frame(frame, zlib.crc32(frame), header.space, header.stream),
            )
