"""The state of a playback's viewer, compared with the recording."""

from __future__ import annotations

from typing import Any

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.connection import Connection
from gcspy_protocol.interpreter import ClientInterpreter, SpaceState, StreamState
from gcspy_protocol.messages import Message
from gcspy_protocol.model import Role
from gcspy_replay.file import Recording
from gcspy_replay.playback import Move, Sender, Transition


def _stream(state: StreamState) -> dict[str, Any]:
    known = np.ones(len(state.values), dtype=np.bool_) if state.known is None else state.known
    values = [int(v) if k else None for v, k in zip(state.values, known, strict=True)]
    stamp = (state.sequence, state.time_nanos, state.event, state.occurrence)
    return {"values": values, "dtype": state.values.dtype, "stamp": stamp, "summary": state.summary}


def _space(state: SpaceState) -> dict[str, Any]:
    names = [
        (state.names.name(i), state.names.key(i), state.names.missing(i))
        for i in range(state.count)
    ]
    streams = {number: _stream(stream) for number, stream in state.streams.items()}
    return {
        "space": state.space,
        "count": state.count,
        "info": state.info,
        "names": names,
        "control": _stream(state.control),
        "streams": streams,
    }


def told(session: ClientInterpreter) -> dict[str, Any]:
    """All that a viewer knows of the heap, as plain values that can be compared."""
    return {
        "spaces": [_space(state) for state in session.spaces.values()],
        "epoch": session.epoch,
        "counters": session.counters,
    }


def assert_same_state(viewer: ClientInterpreter, recorded: ClientInterpreter) -> None:
    """A viewer knows what the recording's own viewer knew, and no more."""
    assert told(viewer) == told(recorded)
    mine, theirs = viewer.last_event, recorded.last_event
    assert mine is not None
    assert theirs is not None
    for name in (
        "sequence",
        "time_nanos",
        "event",
        "occurrence",
        "gather_nanos",
        "held_nanos",
        "cause",
        "program_clock",
    ):
        assert getattr(mine, name) == getattr(theirs, name)


class Screen:
    """A viewer at the end of a connection that is fed passages.

    Args:
        recording: The played recording.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._server, self._client = Connection(Role.SERVER), Connection(Role.CLIENT)
        self.state = ClientInterpreter()
        self.sender = Sender()
        self.heard: list[Message] = []
        self._hear(self._server.preamble() + self._server.send(recording.welcome))

    def _hear(self, data: bytes) -> None:
        self._client.receive_data(data)
        for message in self._client.messages():
            self.heard.append(message)
            self.state.apply(message)

    def take(self, passage: Transition) -> None:
        """Get the bytes of a passage."""
        self._hear(passage.schema + passage.event_bytes())

    def show(self, move: Move) -> Transition:
        """Get what is sent of a move, and compare with the recording."""
        passage = self.sender.passage(move)
        self.take(passage)
        assert self.state.position == move.number
        assert_same_state(self.state, self._recording.seek(move.number))
        return passage

    def seen(self, kind: type[m.Message]) -> list[Message]:
        """Messages of a kind that came."""
        return [message for message in self.heard if isinstance(message, kind)]
