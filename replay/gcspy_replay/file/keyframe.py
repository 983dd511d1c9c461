"""Encodes the keyframe for a client that joins from the state of another client.

The head of each chunk is this, so that a chunk is a wire stream that begins as a
connection does: welcome, schema, notices, keyframe. The player sends the same to a
viewer that jumps.

Knows the client interpreter and the codec; does not know files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode, encode_event
from gcspy_protocol.errors import LocalProtocolError
from gcspy_protocol.frames.frame import Frame
from gcspy_protocol.interpreter import ClientInterpreter, SpaceState, StreamState
from gcspy_protocol.limits import CLIENT_LIMITS
from gcspy_protocol.messages import Message
from gcspy_protocol.model import CONTROL_STREAM, Naming
from gcspy_protocol.streams.values import Stamp, pack_key

__all__ = [
    "encode_keyframe",
    "keyframe_frames",
    "name_pages",
    "names_in_event",
    "new_names",
    "schema_messages",
    "tiles_of",
]

_NO_RUNS = np.empty(0, dtype="<u4")


def schema_messages(session: ClientInterpreter) -> list[Message]:
    """Welcome, spaces, epoch, and the latest notices, as a bootstrap.

    The list of clients is left out: it is private to the session.

    Raises:
        LocalProtocolError: There was no welcome yet.
    """
    if session.welcome is None:
        raise LocalProtocolError("a session without a welcome cannot be stored: connect first")
    # As for a client that joins now: the mode may have changed since the welcome.
    messages: list[Message] = [replace(session.welcome, mode=session.mode or session.welcome.mode)]
    messages += [m.SpaceDefined(space=state.space) for state in session.spaces.values()]
    messages.append(m.EpochEnd(epoch=session.epoch))
    if session.filters:
        messages.append(m.Filters(filters=tuple(session.filters.values())))
    messages.append(
        m.State(
            state=session.state,
            reason=session.state_reason,
            driver_failed=session.driver_failed,
        )
    )
    messages.append(m.Counters(counts=session.counters))
    if session.triggers.triggers or session.triggers.fired:
        messages.append(session.triggers)
    if session.settings.settings:
        messages.append(session.settings)
    if session.budget is not None:
        messages.append(session.budget)
    if session.missed_total:
        messages.append(m.Missed(events=0, total=session.missed_total))
    return messages


def tiles_of(state: SpaceState) -> m.Tiles:
    """The tiles of a space in a keyframe: all new."""
    table, naming = state.names, state.space.naming
    base, tile_bytes = table.uniform
    bases, sizes = table.extents() or (None, None)
    return m.Tiles(
        space=state.space.id,
        count=state.count,
        old_starts=_NO_RUNS,
        new_starts=_NO_RUNS,
        lengths=_NO_RUNS,
        naming=naming,
        base=0 if bases is not None else base,
        tile_bytes=0 if bases is not None else tile_bytes,
        bases=bases,
        sizes=sizes,
    )


def names_in_event(state: SpaceState) -> bool:
    """Whether a keyframe has the names of a space, because it is small enough; those of others follow as pages."""
    return state.space.naming is Naming.STRINGS and state.count <= CLIENT_LIMITS.names_page


def new_names(state: SpaceState, event: m.Event | None) -> Iterator[m.NewNames]:
    """The texts that are here of a space whose names are part of events."""
    if names_in_event(state):
        sequence, time_nanos = (event.sequence, event.time_nanos) if event else (0, 0)
        for first, names in _runs(state, CLIENT_LIMITS.names_page):
            yield m.NewNames(
                space=state.space.id,
                sequence=sequence,
                time_nanos=time_nanos,
                first=first,
                names=names,
            )


def name_pages(
    session: ClientInterpreter, *, page: int = CLIENT_LIMITS.names_page, large_only: bool = False
) -> Iterator[m.TileNames]:
    """The texts of tiles that are here, as pages.

    Args:
        session: Where.
        page: Most texts of a page.
        large_only: Leave out the spaces whose names a keyframe has.
    """
    sequence = session.last_event.sequence if session.last_event else 0
    for space_id, state in session.spaces.items():
        if state.space.naming is not Naming.STRINGS or (large_only and names_in_event(state)):
            continue
        for first, names in _runs(state, page):
            yield m.TileNames(space=space_id, sequence=sequence, first=first, names=names)


def _runs(state: SpaceState, page: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The texts of a space: the first tile of each unbroken run of them, and its texts."""
    texts = state.names.texts()
    run: list[str] = []
    start = 0
    for tile in sorted(texts):
        if run and (tile != start + len(run) or len(run) == page):
            yield start, tuple(run)
            run = []
        if not run:
            start = tile
        run.append(texts[tile])
    if run:
        yield start, tuple(run)


def _key(space: int, stream: int, state: StreamState) -> Frame:
    stamp = Stamp(
        sequence=state.sequence,
        time_nanos=state.time_nanos,
        event=state.event,
        occurrence=state.occurrence,
    )
    return pack_key(space, stream, stamp, state.values, state.known)


def keyframe_frames(session: ClientInterpreter) -> list[Frame]:
    """The frames of a keyframe of the client's current state; each stream keeps the stamp of its values."""
    frames: list[Frame] = []
    event = session.last_event
    stamp = (event.sequence, event.time_nanos) if event else (0, 0)
    for space_id, state in session.spaces.items():
        frames.append(encode(tiles_of(state)))
        frames += map(encode, new_names(state, event))
        if state.control.sequence:
            frames.append(_key(space_id, CONTROL_STREAM, state.control))
        for stream_id, stream in state.streams.items():
            if stream.sequence:
                frames.append(_key(space_id, stream_id, stream))
            if stream.told is not None:
                frames.append(encode(stream.told))
        if state.info:
            info = m.SpaceInfo(
                space=space_id, sequence=stamp[0], time_nanos=stamp[1], text=state.info
            )
            frames.append(encode(info))
    return frames


def encode_keyframe(session: ClientInterpreter, *, cached: bool) -> bytes:
    """All bytes of a keyframe event of the client's latest event, under the schema of now.

    Args:
        session: The client's state right after an event.
        cached: Whether the event is repeated; otherwise it keeps its own mark.

    Raises:
        LocalProtocolError: There was no event yet.
    """
    event = session.last_event
    if event is None:
        raise LocalProtocolError("there is no event yet from which to make a keyframe")
    repeated = replace(event, epoch=session.epoch, keyframe=True, cached=cached or event.cached)
    return encode_event(repeated, keyframe_frames(session))
