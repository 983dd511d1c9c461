"""A machine that drives two connected ends: any session, cut anyhow, leaves the client with the truth."""

from __future__ import annotations

from collections import deque

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.frames.frame import pack_frame
from gcspy_protocol.interpreter import EventChange
from gcspy_protocol.messages import Message
from gcspy_protocol.model import CONTROL_STREAM
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.protocol.sameness import same
from tests.protocol.session import Joined, Session, Tile, Truth, assert_equal, read_stream
from tests.protocol.strategies import COMMANDS

PIECE = st.one_of(st.integers(1, 40), st.integers(1, 4000), st.just(1 << 30))
"""How many bytes arrive at a time."""


class TwoEnds(RuleBasedStateMachine):
    """A session, one client that has been there from the start, and others that come late."""

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self.session = Session(data.draw)
        self.us = Joined(self.session)
        self.truths: deque[Truth] = deque()
        self.sent: list[Message] = []
        self.taken: list[Message] = []
        self.shown: dict[tuple[int, int], list[Tile]] = {}
        for message in self.session.add_space():
            self.us.downstream += self.us.server.send(message)

    # ------------------------------------------------------------ the server

    @rule()
    def add_space(self) -> None:
        for message in self.session.add_space():
            self.us.downstream += self.us.server.send(message)

    @precondition(lambda self: len(self.session.truth.spaces) > 1)
    @rule()
    def remove_space(self) -> None:
        for message in self.session.remove_space():
            self.us.downstream += self.us.server.send(message)

    @rule()
    def say(self) -> None:
        for message in self.session.notice():
            self.us.downstream += self.us.server.send(message)

    @rule(kind=st.sampled_from((0x0E, 0x4F, 0x54, 0x60, 0xFF)), payload=st.binary(max_size=9))
    def say_what_only_a_later_version_knows(self, kind: int, payload: bytes) -> None:
        self.us.downstream += pack_frame(kind, payload).data

    @rule()
    def transmit(self) -> None:
        self.us.downstream += self.us.server.send_event(self.session.event())
        self.truths.append(self.session.snapshot())

    @rule()
    def transmit_again(self) -> None:
        """Two rules, so that most steps of a session are events, as they are in life."""
        self.transmit()

    @rule(events=st.integers(1, 3))
    def drop_events_and_send_a_keyframe(self, events: int) -> None:
        for _ in range(events):
            self.session.event()
        missed = m.Missed(events=events, total=events)
        self.session.truth.said[m.Missed] = missed
        self.us.downstream += self.us.server.send(missed)
        self.us.downstream += self.us.server.send_event(self.session.keyframe())
        self.truths.append(self.session.snapshot())

    # ------------------------------------------------------------ the client

    @rule(command=COMMANDS)
    def command(self, command: Message) -> None:
        self.us.upstream += self.us.client.send(command)
        self.sent.append(command)

    @rule(size=PIECE)
    def server_reads(self, size: int) -> None:
        self.us.server.receive_data(self.us.upstream[:size])
        del self.us.upstream[:size]
        self.taken += [c for c in self.us.server.messages() if not isinstance(c, m.Hello)]
        assert all(same(a, b) for a, b in zip(self.sent, self.taken, strict=False))
        assert len(self.taken) <= len(self.sent)

    @rule(size=PIECE)
    def client_reads(self, size: int) -> None:
        self.us.client.receive_data(self.us.downstream[:size])
        del self.us.downstream[:size]
        for message in self.us.client.messages():
            change = self.us.interpreter.apply(message)
            if change is not None:
                assert_equal(self.us.interpreter, self.truths.popleft())
                self._changes_are_told(change)

    def _changes_are_told(self, change: EventChange) -> None:
        """A view that redraws only what the change names shows what a view that redraws all shows."""
        shown = {}
        for space_id, space in self.us.interpreter.spaces.items():
            for stream_id in (*space.streams, CONTROL_STREAM):
                key = space_id, stream_id
                shown[key] = read_stream(space.stream(stream_id))
                told = change.changed.get(key, np.empty(0, dtype=np.int64))
                if space_id in change.resized or told is None:
                    continue
                before = self.shown.get(key, [])
                assert len(before) == len(shown[key])
                assert {i for i, v in enumerate(shown[key]) if v != before[i]} <= set(told.tolist())
        self.shown = shown

    @rule()
    def somebody_comes_late(self) -> None:
        late = Joined(self.session)
        late.client.receive_data(late.downstream + self.session.keyframe())
        events = [late.interpreter.apply(message) for message in late.client.messages()]
        assert any(events) == (self.session.truth.sequence > 0)
        if any(events):
            assert_equal(late.interpreter, self.session.truth)

    def teardown(self) -> None:
        if not hasattr(self, "us"):
            return  # start itself failed
        self.server_reads(1 << 30)
        assert len(self.taken) == len(self.sent)
        self.client_reads(1 << 30)
        assert not self.truths
        self.us.server.receive_eof()
        self.us.client.receive_eof()


TestTwoEnds = TwoEnds.TestCase
