"""`DriverServer`: the server of a session as one of its drivers sees it.

Several drivers may share a session. Each numbers its own kinds of event and settings freely; this
class maps them to those of the session. All share one clock: the first that asks begins its event,
and it is finished after each had its turn. Knows the calls of a server and which driver makes them;
does not know why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from gcspy_protocol.errors import LocalProtocolError
from gcspy_protocol.settings import Setting

from gcspy_server.interpreter.core import EventForecast
from gcspy_server.interpreter.cost_accounting import LEVEL
from gcspy_server.interpreter.gather_request import GatherRequest
from gcspy_server.names import TileNames
from gcspy_server.server import Server
from gcspy_server.spaces import ServerSpace

__all__ = ["CLOCK", "SessionClock", "DriverServer", "Share"]

CLOCK = 0
"""Number of the clock's kind of event, in every driver and in the session."""

_FIRST_OF_OTHERS = 1000
"""Settings whose number another driver has already get numbers from here on."""


class SessionClock(Protocol):
    """The clock that the drivers of a session share."""

    def ask(self) -> GatherRequest | None:
        """Return the request for the clock's event of this tick; the session is asked once per tick."""
        ...

    def take_part(self) -> None:
        """Note that a driver counts the clock's event of this tick."""
        ...

    def leave_out(self) -> None:
        """Note that a driver skips the clock's event of this tick, since that would take too long."""
        ...

    def gather_with(self, member: DriverServer, request: GatherRequest) -> None:
        """Let the others gather at the event of one driver, if configured."""
        ...


@dataclass(kw_only=True)
class Share:
    """One driver's share of the session.

    Attributes:
        name: The driver's name.
        events: The session's number of each of its kinds of event.
        holds: Whether the target of a pause stands still at its events other than the clock's,
            unless it says otherwise.
        levels: Number of its levels; 0: none.
        fixed: Settings of the session that it does not own, and the value that it sees instead.
        suffix: Appended to the names of its spaces, if another driver has one of that name.
        always_suffix: Whether it is appended to all of them.
        leads: Whether its main space is the session's.
    """

    name: str
    events: tuple[int, ...]
    holds: bool = True
    levels: int = 0
    fixed: dict[int, int] = field(default_factory=dict)
    suffix: str = ""
    always_suffix: bool = False
    leads: bool = True


class DriverServer(Server):
    """A server that calls another one, in the numbers of one driver.

    Args:
        session: The session's server.
        share: This driver's share.
        clock: The shared clock; None: it is alone, and the clock is an ordinary event.
    """

    def __init__(self, session: Server, share: Share, clock: SessionClock | None) -> None:
        self._session = session
        self._core = session._core
        self.name, self.events, self.mode = session.name, session.events, session.mode
        self.pause_acts_on, self.target = session.pause_acts_on, session.target
        self.general_info = session.general_info
        self.share = share
        self.own_spaces: list[ServerSpace] = []
        self.open_event: int | None = None
        self.calls = 0
        self._clock = clock
        self._settings: dict[int, int] = {}
        self._request: GatherRequest | None = None

    # ------------------------------------------------------------------- spaces

    def add_space(
        self,
        name: str,
        *,
        names: TileNames | None = None,
        driver: str = "",
        tile_title: str = "Tile ",
        unused_text: str = "unused",
        main: bool = False,
        row_width: int | None = None,
        description: str = "",
        details: tuple[str, ...] = (),
    ) -> ServerSpace:
        """Add a space of this driver; see `Server.add_space`."""
        if self.share.always_suffix or any(
            space.name == name for space in self._session.spaces if space not in self.own_spaces
        ):
            name += self.share.suffix
        space = self._session.add_space(
            name,
            names=names,
            driver=driver or self.share.name,
            tile_title=tile_title,
            unused_text=unused_text,
            main=main and self.share.leads,
            row_width=row_width,
            description=description,
            details=details,
        )
        self.own_spaces.append(space)
        return space

    def remove_space(self, space: ServerSpace) -> None:
        """Remove a space of this driver; see `Server.remove_space`."""
        self._session.remove_space(space)
        self.own_spaces = [one for one in self.own_spaces if one is not space]

    @property
    def spaces(self) -> tuple[ServerSpace, ...]:
        """The spaces of this driver."""
        return tuple(self.own_spaces)

    def leave_session(self) -> None:
        """Cut the driver off from the session: it hangs, and may continue at any time.

        The session keeps copies of its spaces; the driver's calls go to a server without clients.
        """
        self.own_spaces = [self._core.detach_space(space) for space in self.own_spaces]
        self._session = Server(self.name, events=self.events)
        self._core = self._session._core
        self._clock = self._request = self.open_event = None

    # ------------------------------------------------------------------- events

    def should_transmit(
        self, event: int, happened_nanos: int | None = None
    ) -> GatherRequest | None:
        """Ask whether an event is requested; see `Server.should_transmit`."""
        if self.open_event is not None:
            raise LocalProtocolError(
                f"event {self._named(event)} begins, and event {self._named(self.open_event)} was not finished"
            )
        self.calls += 1
        number = self._number(event)
        if event == CLOCK and self._clock is not None:
            request = self._clock.ask()
        else:
            request = self._session.should_transmit(number, happened_nanos)
        if request is not None:
            self.open_event, self._request = event, request
        return request

    def finish(
        self,
        event: int,
        cause: str = "",
        program_clock: tuple[str, int] | None = None,
        *,
        holds: bool = True,
    ) -> None:
        """Count the event and send it if requested; see `Server.finish`."""
        self.calls += 1
        number = self._number(event)
        request = self._request if self.open_event == event else None
        if request is not None:
            self.check_values()
        if event == CLOCK and self._clock is not None:
            self._clock.take_part()
        else:
            if request is not None and self._clock is not None:
                self._clock.gather_with(self, request)
            self._session.finish(number, cause, program_clock, holds=holds and self.share.holds)
        self.open_event = self._request = None

    def check_values(self) -> None:
        """Refuse values outside of the declared range of the streams.

        Raises:
            LocalProtocolError: There is one; the message names space, stream and tile.
        """
        for space in self.own_spaces:
            for stream in space.streams:
                stream.check()

    def discard(self) -> None:
        """Discard the filled data; see `Server.discard`."""
        if self.open_event is None:
            raise LocalProtocolError("no event is being gathered: there is nothing to discard")
        if self._clock is None:
            self._session.discard()
        else:
            self.discard_own()

    def discard_own(self) -> None:
        """Discard the data in the spaces of this driver."""
        for space in self.own_spaces:
            space._discard()

    def skip(self, event: int, times: int = 1, *, untold: bool = False) -> None:
        """Only count an event; see `Server.skip`."""
        self.calls += 1
        number = self._number(event)
        if event != CLOCK or self._clock is None:
            self._session.skip(number, times, untold=untold)

    def leave_out(self, event: int) -> None:
        """Only count an event that the driver skips; see `Server.leave_out`."""
        self.calls += 1
        number = self._number(event)
        if event == CLOCK and self._clock is not None:
            self._clock.leave_out()
        else:
            self._session.leave_out(number)

    def outlook(self, event: int) -> EventForecast:
        """Predict which events will be requested; see `Server.outlook`."""
        return self._session.outlook(self._number(event))

    def may_hold(self, event: int) -> bool:
        """Return whether the target may have to be held after an event: also where other drivers gather the same event."""
        return self._clock is not None or self._session.may_hold(self._number(event))

    @property
    def has_room(self) -> bool:
        """Whether the session keeps up; see `Server.has_room`."""
        return self._session.has_room

    def enabled(self, event: int) -> bool:
        """Return whether the filter of a kind of event passes any."""
        return self._session.enabled(self._number(event))

    def counts(self) -> tuple[int, ...]:
        """Return how often each of this driver's kinds of event has happened."""
        counts = self._session.counts()
        return tuple(counts[number] for number in self.share.events)

    # ----------------------------------------------------------------- settings

    def add_setting(self, setting: Setting, *, refusal: Callable[[int], str] | None = None) -> None:
        """Add a setting of this driver; see `Server.add_setting`."""
        taken = {one.id for one in self._session.settings}
        number = setting.id
        if number in taken:
            number = next(
                n for n in range(_FIRST_OF_OTHERS, 2 * _FIRST_OF_OTHERS) if n not in taken
            )
        self._session.add_setting(replace(setting, id=number), refusal=refusal)
        self._settings[setting.id] = number

    def set_setting(self, ident: int, value: int) -> None:
        """Choose a value; see `Server.set_setting`."""
        self._session.set_setting(self._settings.get(ident, ident), value)

    def take_setting(self, ident: int) -> int:
        """Return the chosen value; see `Server.take_setting`."""
        if ident in self.share.fixed:
            return self.share.fixed[ident]
        value = self._session.take_setting(self._settings.get(ident, ident))
        return min(value, self.share.levels) if ident == LEVEL and self.share.levels else value

    def _number(self, event: int) -> int:
        if not 0 <= event < len(self.share.events):
            raise LocalProtocolError(
                f"event {event}: this driver has the kinds 0 to {len(self.share.events) - 1} ({self._kinds()})"
            )
        return self.share.events[event]

    def _named(self, event: int) -> str:
        return repr(self.events[self._number(event)].name)

    def _kinds(self) -> str:
        return ", ".join(self.events[number].name for number in self.share.events)
