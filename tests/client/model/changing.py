"""A space whose tiles come, go, move and change, with what is true of it after each event."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gcspy_protocol import messages as m
from gcspy_protocol.interpreter import ClientInterpreter, EventChange, SpaceState
from gcspy_protocol.messages import Message
from gcspy_protocol.model import (
    CONTROL_STREAM,
    Control,
    EventKind,
    Mode,
    Naming,
    PauseActsOn,
    Space,
    Stream,
)

STREAM = Stream(id=0, name="Used", dtype="i4", maximum=249)
"""A value is its paint code less LOW."""


def runs_of(old: list[int], new: list[int]) -> list[tuple[int, int, int]]:
    """How the tiles that are in both went from their old places to the new ones."""
    place = {key: i for i, key in enumerate(old)}
    runs: list[tuple[int, int, int]] = []
    for i, key in enumerate(new):
        if key not in place:
            continue
        if runs and runs[-1][0] + runs[-1][2] == place[key] and runs[-1][1] + runs[-1][2] == i:
            runs[-1] = (*runs[-1][:2], runs[-1][2] + 1)
        else:
            runs.append((place[key], i, 1))
    return runs


@dataclass(repr=False)
class Changing:
    """The server, the interpreter that follows it, and the truth.

    Attributes:
        naming: EXTENTS: any keys in any order; UNIFORM: keys are 0 to before the count.
        truth: For each event the value of each tile by key.
    """

    naming: Naming = Naming.EXTENTS
    stream: Stream = STREAM
    truth: list[dict[int, int]] = field(default_factory=list)
    changes: list[EventChange] = field(default_factory=list)
    sequence: int = 0
    keys: list[int] = field(default_factory=list)
    interpreter: ClientInterpreter = field(default_factory=ClientInterpreter)
    messages: list[Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        welcome = m.Welcome(
            server="test",
            session="one",
            client_id=1,
            controller=True,
            mode=Mode.PASSIVE,
            pause_acts_on=PauseActsOn.SAMPLING,
            events=(EventKind(id=0, name="Clock"), EventKind(id=1, name="Collection")),
        )
        space = Space(id=1, name="Heap", naming=self.naming, streams=(self.stream,))
        for message in (welcome, m.SpaceDefined(space=space), m.EpochEnd(epoch=1)):
            self._say(message)

    def __repr__(self) -> str:
        return f"<{self.naming} {self.truth}>"

    @property
    def space(self) -> SpaceState:
        """The space as the interpreter knows it."""
        return self.interpreter.spaces[1]

    def _say(self, message: Message) -> EventChange | None:
        self.messages.append(message)
        return self.interpreter.apply(message)

    def _resize(self, keys: list[int]) -> None:
        runs = np.array(runs_of(self.keys, keys), dtype=np.uint32).reshape(-1, 3)
        known = set(self.keys)
        new = [key for key in keys if key not in known]
        extents = self.naming is Naming.EXTENTS
        self._say(
            m.Tiles(
                space=1,
                count=len(keys),
                old_starts=runs[:, 0],
                new_starts=runs[:, 1],
                lengths=runs[:, 2],
                naming=self.naming,
                base=0,
                tile_bytes=0 if extents else 1,
                bases=np.array(new, dtype=np.uint64) if extents else None,
                sizes=np.ones(len(new), dtype=np.uint64) if extents else None,
            )
        )

    def event(
        self,
        values: dict[int, int],
        *,
        kind: int = 0,
        gathered: bool = True,
        delta: bool = False,
        unknown: Collection[int] = (),
    ) -> EventChange:
        """An event after which the tiles have these values, by key in the order of the tiles; those of some are not known."""
        self.sequence += 1
        stamp: dict[str, Any] = {
            "space": 1,
            "sequence": self.sequence,
            "time_nanos": self.sequence * 1000,
        }
        of_event: dict[str, Any] = {"event": kind, "occurrence": self.sequence}
        keys, before = list(values), self._known()
        resized = keys != self.keys
        if resized:
            self._resize(keys)
        now = np.array(list(values.values()), dtype="<" + self.stream.dtype)
        if resized or self.sequence == 1:
            control = np.full(len(keys), Control.USED, dtype=np.uint8)
            self._say(m.StreamKey(stream=CONTROL_STREAM, values=control, **stamp, **of_event))
        if gathered and delta and not resized:
            changed = np.array(
                [i for i, key in enumerate(keys) if before.get(key) != values[key]], dtype=np.int64
            )
            base = self.space.stream(self.stream.id).sequence
            self._say(
                m.StreamDelta(
                    stream=self.stream.id,
                    base_sequence=base,
                    count=len(keys),
                    indices=changed,
                    values=now[changed],
                    **stamp,
                    **of_event,
                )
            )
        elif gathered:
            known = np.array([key not in unknown for key in keys]) if unknown else None
            self._say(
                m.StreamKey(stream=self.stream.id, values=now, known=known, **stamp, **of_event)
            )
        self.keys = keys
        event = m.Event(
            sequence=self.sequence,
            time_nanos=self.sequence * 1000,
            epoch=1,
            keyframe=resized or not delta,
            **of_event,
        )
        change = self._say(event)
        assert change is not None
        self.truth.append(dict(values) if gathered else {})
        self.changes.append(change)
        return change

    def _known(self) -> dict[int, int]:
        """Return the client's known values, by key."""
        stream = self.space.stream(self.stream.id)
        return {key: int(stream.values[i]) for i, key in enumerate(self.keys) if stream.is_known(i)}
