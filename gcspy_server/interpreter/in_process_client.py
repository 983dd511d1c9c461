"""Passes all that a server sends to code in the same process: no sockets, no threads, nothing left out.

A program that records computed data does not have to wait for a connection. It gets exactly the
bytes that a client with a full subscription would get, from the preamble on.

Knows the handoff_queue and the codec; does not know the use of the bytes.
"""

from __future__ import annotations

from collections.abc import Callable

from gcspy_protocol.codec import encode
from gcspy_protocol.connection import preamble
from gcspy_protocol.messages import (
    Counters,
    EpochEnd,
    Event,
    Filters,
    Message,
    SpaceDefined,
    Welcome,
)

from gcspy_server.interpreter.core import Core, Item, SchemaChange, SettingsChanged, TriggersChanged
from gcspy_server.interpreter.transmission import KeyframeSource, Snapshot
from gcspy_session.interest import EVERYTHING

__all__ = ["InProcessClient"]


class InProcessClient:
    """Takes the entries of the handoff_queue after each event, in the driver's thread.

    Args:
        core: The driver's side; its handoff_queue must not be open.
        welcome: Description of the session.
        take: Receives the bytes.
    """

    def __init__(self, core: Core, welcome: Welcome, take: Callable[[bytes], None]) -> None:
        self._core, self._take = core, take
        core.publish()
        opened = core.open_queue(_nobody_sleeps)
        core.add_observer(self._after)
        bootstrap: list[Message] = [welcome]
        bootstrap += [SpaceDefined(space=space) for space in opened.schema.spaces]
        bootstrap += [
            EpochEnd(epoch=opened.schema.epoch),
            Filters(filters=core.filters),
            core.flow.state,
        ]
        bootstrap += [Counters(counts=tuple(core.counts))]
        settings = core.settings.announcement()
        bootstrap += [settings] if settings.settings else []
        take(preamble() + b"".join(encode(message).data for message in bootstrap))

    def _after(self, _event: Event) -> None:
        for item in self._core.handoff_queue.take():
            data = self._bytes_of(item)
            if data:
                self._take(data)

    def _bytes_of(self, item: Item) -> bytes:
        match item:
            case Snapshot():
                return item.bytes_for(EVERYTHING)
            case SchemaChange():
                return b"".join(encode(message).data for message in item.messages)
            case SettingsChanged():
                return encode(self._core.settings.announcement()).data
            case TriggersChanged():
                return encode(self._core.triggers.announcement()).data
            case KeyframeSource():
                return b""  # no client joins late
            case _:
                return encode(item).data


def _nobody_sleeps() -> None:
    """Entries are taken at once: there is no thread to wake."""
