"""A session of ours, event by event, as a server of the original sends it.

What the original cannot say is left out: `docs/original.md` lists it. Spaces keep their number by
their name, since the original's client has no new ones after its description: a space that is
defined again takes the place of its predecessor.

Knows the state of a client interpreter; does not know where it comes from or who receives bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from gcspy_protocol.interpreter import ClientInterpreter, EventChange, SpaceState

from gcspy_original.outgoing.space import OutgoingSpace
from gcspy_original.outgoing.text import ascii_lines, ascii_text
from gcspy_original.outgoing.tile_groups import MOST_TILES
from gcspy_original.wire import (
    Bootstrap,
    Command,
    Event,
    EventCounts,
    Message,
    ServerGreeting,
    SpaceAdded,
)
from gcspy_original.wire.limits import MOST_EVENTS, MOST_SPACES

__all__ = ["OutgoingSession"]

_GREATEST: Final = (1 << 31) - 1
_NANOS: Final = 1_000_000
_NAMED_SPACES: Final = 20

SpaceKey = tuple[str, int]
"""Name of a space, and its place among those of the same name."""


class OutgoingSession:
    """The session as one client of the original knows it.

    Args:
        state: The session at the moment at which it is described.
        further: Names of spaces that come later, for which places are kept.
        most_tiles: More tiles of a space are merged.

    Attributes:
        left_out: Names of spaces that came too late for the client, or are too many; the first
            space's text names them.
    """

    def __init__(
        self,
        state: ClientInterpreter,
        *,
        further: Iterable[SpaceKey] = (),
        most_tiles: int = MOST_TILES,
    ) -> None:
        keys = list(dict.fromkeys([*_by_key(state), *further]))[:MOST_SPACES]
        self._places = {
            key: OutgoingSpace(number, most_tiles=most_tiles) for number, key in enumerate(keys)
        }
        self._waiting = {key for key in keys if key not in _by_key(state)}
        self.left_out: set[str] = set()
        self._end_nanos: int | None = None
        self._sent_millis = 0
        self._passed_nanos = 0

    def bootstrap(self, state: ClientInterpreter) -> list[Message]:
        """Return the greeting and the description of the session."""
        welcome = state.welcome
        name = "" if welcome is None else welcome.server
        kinds = () if welcome is None else welcome.events[:MOST_EVENTS]
        spaces = _by_key(state)
        found: list[Message] = [
            ServerGreeting(name=ascii_text(name)),
            Bootstrap(
                spaces=len(self._places),
                general_info=ascii_lines(self._general_info(state)),
                events=tuple(ascii_text(kind.name) for kind in kinds),
            ),
        ]
        for key, place in self._places.items():
            found.append(SpaceAdded(space=place.define(spaces.get(key))))
        return found

    @staticmethod
    def _general_info(state: ClientInterpreter) -> str:
        welcome = state.welcome
        if welcome is None:
            return ""
        facts = [f"{name}: {value}" for name, value in sorted(welcome.target.items())]
        return "\n".join([welcome.general_info, *facts]).strip()

    def event(
        self,
        state: ClientInterpreter,
        change: EventChange,
        *,
        everything: bool = False,
        shown: bool = True,
        named: Collection[int] = (),
    ) -> list[Command]:
        """Return what the original sends at an event.

        Args:
            state: The session after the event.
            change: What it changed.
            everything: Whether all values are sent, to a client that has none yet.
            shown: Whether the event itself is sent; otherwise its values belong to the next one.
            named: Spaces of which texts of tiles have come since the event before.
        """
        event = change.event
        found: list[Command] = []
        spaces = _by_key(state)
        self.left_out |= {name for (name, place) in spaces if (name, place) not in self._places}
        note = self._note()
        for key, place in self._places.items():
            space = spaces.get(key)
            if space is None and key in self._waiting:
                continue
            self._waiting.discard(key)
            number = -1 if space is None else space.space.id
            found += place.update(
                space,
                {stream for at, stream in change.changed if at == number},
                renamed=everything
                or number in change.resized
                or number in change.renamed
                or number in named,
                everything=everything,
                note=note if not place.number else "",
            )
        if state.welcome is not None:
            # The counters of an event come behind it; its own number comes with it.
            counts = [*state.counters, *[0] * len(state.welcome.events)]
            counts = counts[: len(state.welcome.events)]
            if event.event < len(counts):
                counts[event.event] = event.occurrence
            found.append(
                EventCounts(counts=tuple(min(one, _GREATEST) for one in counts[:MOST_EVENTS]))
            )
        if shown and event.event < MOST_EVENTS:
            found.append(self._timed(change))
        return found

    def _note(self) -> str:
        """Return the text of the first space about those that are left out."""
        if not self.left_out:
            return ""
        names = ", ".join(sorted(self.left_out)[:_NAMED_SPACES])
        more = ", ..." if len(self.left_out) > _NAMED_SPACES else ""
        return f"Not shown, since GCspy 1.0 takes {MOST_SPACES} spaces, and none after its greeting: {names}{more}"

    def _timed(self, change: EventChange) -> Event:
        """The event with its time since the one before, without pauses; rounding does not add up."""
        event = change.event
        gathered = max(0, event.stopped_nanos)
        end = event.time_nanos + gathered
        before = event.time_nanos if self._end_nanos is None else self._end_nanos
        self._passed_nanos += max(0, end - before - event.held_nanos)
        self._end_nanos = end
        millis = (self._passed_nanos + _NANOS // 2) // _NANOS
        elapsed = millis - self._sent_millis
        self._sent_millis = millis
        return Event(
            event=event.event,
            elapsed_millis=min(elapsed, _GREATEST),
            compensation_millis=min((gathered + _NANOS // 2) // _NANOS, elapsed, _GREATEST),
        )


def _by_key(state: ClientInterpreter) -> dict[SpaceKey, SpaceState]:
    """The spaces of a session by name."""
    found: dict[SpaceKey, SpaceState] = {}
    for space in state.spaces.values():
        place = 0
        while (space.space.name, place) in found:
            place += 1
        found[space.space.name, place] = space
    return found
