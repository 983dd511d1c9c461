"""Triggers as a controller sets them, over a session of three spaces: setting, evaluating and reporting break no rule.

An input is lines. One that begins with ``!`` is an event, whose bytes are the values of the streams; each other line sets a trigger:

    id TAB flags TAB space TAB note TAB expression

The report about the triggers goes over the wire and is decoded unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode
from gcspy_protocol.connection import Connection, preamble
from gcspy_protocol.errors import ExpressionError, LocalProtocolError
from gcspy_protocol.expression.evaluation import EventFacts
from gcspy_protocol.model import Naming, Presentation, Role, Space, Stream
from gcspy_protocol.trigger_set import TriggerSet, pause_reason
from gcspy_protocol.triggers import Trigger, TriggerAction
from numpy.typing import NDArray

__all__ = ["TRIGGER_SEEDS", "triggers"]

_TILES = 4
_MOST_LINES = 40
_ACTIONS = tuple(TriggerAction)


def _space(number: int, name: str, *streams: Stream) -> Space:
    return Space(id=number, name=name, naming=Naming.UNIFORM, streams=streams)


_SPACES = (
    _space(1, "Heap", Stream(id=0, name="Used"), Stream(id=1, name="Live %", presentation=Presentation.PERCENT)),
    _space(2, "Old", Stream(id=0, name="Used"), Stream(id=1, name="State", presentation=Presentation.ENUM, enum_names=("free", "used", "pinned"))),
    _space(3, "Heap", Stream(id=0, name="Age")),
)  # fmt: skip


class _Values:
    """An event whose values are the bytes of an input: 255 is unknown."""

    def __init__(self, data: bytes, number: int) -> None:
        self._data, self._number = data or b"\0", number

    @property
    def facts(self) -> EventFacts:
        """The event."""
        return EventFacts(
            event="GC end",
            occurrence=self._number,
            gather_nanos=self._data[0] << 20,
            cause=self._data[:8].decode("utf-8", "replace"),
        )

    def is_fresh(self, space: int, stream: int) -> bool:
        """Whether it was gathered."""
        return self._at(space, stream, 9) % 4 > 0

    def stream(self, space: int, stream: int) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
        """Values and where they are known."""
        count = self._at(space, 0, 7) % (_TILES + 1)
        found = np.array([self._at(space, stream, tile) for tile in range(count)], dtype=np.int64)
        found[found == 254] = np.iinfo(np.int64).max
        known = found < 255
        return found, None if known.all() else known

    def used(self, space: int) -> NDArray[np.bool_] | None:
        """Which tiles are used."""
        count = self._at(space, 0, 7) % (_TILES + 1)
        return None if space == 1 else np.arange(count) % 2 == 0

    def summary(self, space: int, stream: int) -> tuple[tuple[int, ...], int]:
        """Three numbers over all tiles."""
        at = [self._at(space, stream, tile) for tile in range(3)]
        return tuple(at), at[0] % 3

    def _at(self, space: int, stream: int, tile: int) -> int:
        return self._data[(space * 5 + stream * 3 + tile) % len(self._data)]


def _told(triggers: TriggerSet) -> None:
    message = triggers.announcement()
    connection = Connection(Role.CLIENT)
    connection.receive_data(preamble() + _greeting() + encode(message).data)
    *_, back = connection.messages()
    assert isinstance(back, m.Triggers)
    assert [replace(one, operands=()) for one in back.triggers] == [
        replace(one, operands=()) for one in message.triggers
    ]
    assert [len(one.operands) for one in back.triggers] == [
        len(one.operands) for one in message.triggers
    ]


def _greeting() -> bytes:
    from tests.replay.recorded import WELCOME

    return encode(WELCOME).data


@contextmanager
def _quiet() -> Iterator[None]:
    """Numbers that overflow are the expression's to answer for, not numpy's to warn of."""
    with np.errstate(all="raise"):
        yield


def triggers(data: bytes) -> None:
    """Set, evaluate and report, one line at a time."""
    held = TriggerSet()
    for number, line in enumerate(data.split(b"\n")[:_MOST_LINES], 1):
        if line.startswith(b"!"):
            held.bind(_SPACES)
            event = m.Event(sequence=number, time_nanos=number, event=0, occurrence=number, epoch=1)
            fired, changed = held.look(_Values(line[1:], number), event)
            assert changed or not fired
            assert len(pause_reason(fired)) < 5000
            for one in held.announcement().triggers:
                assert not one.why.startswith(("AssertionError", "TypeError", "AttributeError")), (
                    one
                )
                assert not one.why.startswith(("IndexError", "KeyError", "Runtime")), one
            if fired:
                encode(fired[0])
            continue
        parts = line.split(b"\t")
        if len(parts) < 5:
            continue
        flags = int.from_bytes(parts[1][:2], "little")
        set_one = Trigger(
            id=int.from_bytes(parts[0][:4], "little"),
            expression=parts[4].decode("utf-8", "replace"),
            space=parts[2].decode("utf-8", "replace"),
            action=_ACTIONS[flags % len(_ACTIONS)],
            once=bool(flags & 4),
            enabled=not flags & 8,
            note=parts[3].decode("utf-8", "replace"),
        )
        with suppress(ExpressionError, LocalProtocolError):
            held.set(set_one, _SPACES)
    held.reset()
    _told(held)


TRIGGER_SEEDS = (
    b"1\t0\tHeap\twhy\tsum(Age) > 3\n!abc\n!\0\0\0\n!abc",
    b'1\t4\t\t\tsum("Old".Used) > was(sum("Old".Used))\n!123456\n!923456',
    b'1\t0\tOld\t\tsummary(State, "used") > 1 or share(State == 2) > 0.5\n!abcdefgh\n!\xff\xff\xfe',
    b'1\t8\t\t\tmean("Live %") < 50 and gather_ms > 1\n2\t0\t\t\toccurrence % 3 == 0\n!abc\n1\t0\t\t\t\n!abc',
    b'1\t0\t\t\ttotal("Live %") >= 1e3\n2\t0\t\t\tcovered(Age) != 4\n!zyx\n!\xfe\xfe',
)
