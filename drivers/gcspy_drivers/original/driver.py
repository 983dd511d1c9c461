"""The driver of a running server of GCspy 1.0: it is a client of it, and its session has all tools of ours.

Events are pushed. The program stands still only where the server holds it, so a pause is one when
the server has said so; after a step it is one at the event, since the server says nothing then.

    session is to pause ──PauseRequest──▶ … Event, Paused ──▶ the event ends, held
    session goes on     ──Restart──▶      session steps ──PlayOne──▶ Event ──▶ the event ends, held

Filters go to the server: kinds of event that nobody wants are off there, and gather nothing. Periods
stay here, since a server of GCspy 1.0 with a period gathers at one event and sends at the next.

Knows messages of the original and the server's API; `line` knows the connection.
"""

from __future__ import annotations

import time
from collections import deque
from enum import Enum, auto
from typing import Final

from gcspy_original.wire import (
    ClientGreeting,
    Command,
    Connection,
    Event,
    EventFilter,
    EventFilters,
    Message,
    Paused,
    PauseRequest,
    PlayOne,
    Restart,
    Shutdown,
    ShutdownRequest,
    Side,
    encode,
)
from gcspy_protocol.errors import ProtocolError, TargetError, TargetGone, Unsupported

from gcspy_drivers.original.line import OriginalLine
from gcspy_drivers.original.spaces import OriginalSpaces, clean_text
from gcspy_drivers.original.stored_session import DRIVER
from gcspy_server.api import (
    AttachOptions,
    Mode,
    PauseActsOn,
    Recognition,
    Server,
    ServerDescription,
    WaitingDriver,
)

__all__ = ["OriginalDriver"]

_ANSWER_SECS: Final = 10.0
"""How long a server may take to describe itself."""

_PAUSE_SECS: Final = 2.0
"""How long an event waits for the word that the server pauses after it, beyond the delay of its filter."""

_MILLION: Final = 1_000_000
_LONGEST_DELAY_MILLIS: Final = (1 << 31) - 1


class _Target(Enum):
    """State of the program, as far as it is known."""

    RUNS = auto()
    IS_TO_PAUSE = auto()
    PAUSED = auto()
    STEPS = auto()


class OriginalDriver(WaitingDriver):
    """A client of one server.

    Args:
        host: Name or address of its machine.
        port: Its TCP port.

    Raises:
        TargetError: It cannot be reached, does not answer, or is something else.
    """

    name = DRIVER

    def __init__(self, host: str, port: int) -> None:
        self.where = f"gcspy666://{host}:{port}"
        self._wire = Connection(Side.SERVER)
        self._left: deque[Message] = deque()
        self._line = OriginalLine(host, port, encode(ClientGreeting()))
        self._server: Server | None = None
        self._target = _Target.RUNS
        self._sent: tuple[EventFilter, ...] = ()
        self._event: Event | None = None
        self._event_until = 0.0
        try:
            self._await_description()
            everything = EventFilters(filters=tuple(EventFilter() for _ in self._wire.event_names))
            # With all events filtered out, or paused, a server never gets to say goodbye.
            self._line.set_farewell(encode(everything) + encode(ShutdownRequest()))
        except BaseException:
            self._line.close()
            raise

    @classmethod
    def recognise(cls, pid: int) -> Recognition:
        """Recognise no process: a server of GCspy 1.0 is named by its address."""
        del pid
        return Recognition()

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> OriginalDriver:
        """Refuse: see `recognise`.

        Raises:
            Unsupported: Always.
        """
        raise Unsupported(
            f"process {pid}: a server of GCspy 1.0 is named by its address, gcspy666://HOST:PORT",
            found=f"level {options.level}",
            known="addresses",
        )

    def _await_description(self) -> None:
        deadline = time.monotonic() + _ANSWER_SECS
        while not self._wire.described:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TargetError(
                    f"{self.where} does not answer for {_ANSWER_SECS:g} s: a server of GCspy 1.0 serves one client at a time"
                )
            self._read(left)

    def _read(self, secs: float) -> None:
        """Read what the server sends, up to some time, and keep its messages.

        Raises:
            TargetGone: It has closed.
            TargetError: It broke the protocol.
        """
        try:
            data = self._line.receive(secs)
            if data is None:
                return
            self._wire.receive_data(data)
            for message in self._wire.messages():
                if isinstance(message, Shutdown):
                    self._line.answered()
                if isinstance(message, Command):
                    self._left.append(message)
        except ProtocolError as error:
            raise TargetError(f"{self.where}: {error}") from error

    # ------------------------------------------------------------------- the session

    def describe(self) -> ServerDescription:
        """Return the description of the session."""
        names = tuple(clean_text(name) or "Event" for name in self._wire.event_names)
        return ServerDescription(
            name=clean_text(self._wire.server_name) or self.where,
            events=names or ("Event",),
            mode=Mode.EMBEDDED,
            pause_acts_on=PauseActsOn.PROGRAM,
            general_info=clean_text(self._wire.general_info),
            target={"runtime": "GCspy 1.0", "address": self.where, "driver": self.name},
        )

    def open(self, server: Server) -> None:
        """Add the spaces.

        Raises:
            TargetError: The session has no room for them.
        """
        self._server = server
        self._spaces = OriginalSpaces(server, driver=self.name)
        try:
            for space in self._wire.spaces.values():
                self._spaces.add(space)
        except ProtocolError as error:
            raise TargetError(f"{self.where}: {error}") from error

    @property
    def server(self) -> Server:
        """The session's server, from `open` on."""
        if self._server is None:
            raise AssertionError("open comes first")
        return self._server

    def tick(self) -> None:
        """Take what the server has sent."""
        self.wait(0.0)

    def wait(self, secs: float) -> None:
        """Take what the server sends until the time is over, or an event was finished.

        Raises:
            TargetGone: The server has closed, or said goodbye.
            TargetError: It broke the protocol.
        """
        until = time.monotonic() + secs
        while True:
            self._direct()
            if not self._left:
                self._read(min(secs, until - time.monotonic(), self._until_event_ends()))
            try:
                ended = self._take_some()
            except ProtocolError as error:
                raise TargetError(f"{self.where}: {error}") from error
            if ended or time.monotonic() >= until:
                self._direct()
                return

    def alive(self) -> bool:
        """Return whether the server has not closed."""
        return not self._line.ended

    def close(self) -> None:
        """Leave the server, whose program keeps running."""
        self._line.close()

    # ------------------------------------------------------------------- events

    def _until_event_ends(self) -> float:
        if self._event is None:
            return _PAUSE_SECS
        return max(0.0, self._event_until - time.monotonic())

    def _take_some(self) -> bool:
        """Take messages up to the end of an event.

        Returns:
            Whether an event was finished.
        """
        if self._event is not None and not self._left:
            if time.monotonic() < self._event_until:
                return False
            self._finish(holds=False)
            return True
        while self._left:
            message = self._left.popleft()
            if self._event is not None:
                self._finish(holds=isinstance(message, Paused))
                if not isinstance(message, Paused):
                    self._left.appendleft(message)
                return True
            if self._take(message):
                return True
        return False

    def _take(self, message: Message) -> bool:
        """Take one message; return whether it finished an event."""
        match message:
            case Event():
                self._event = message
                if self._target is _Target.STEPS:
                    self._finish(holds=True)
                    return True
                one = self._filter_of(message.event)
                if self._target is not _Target.IS_TO_PAUSE and not one.pause:
                    self._finish(holds=False)
                    return True
                # The word that it pauses follows, if it does.
                self._event_until = time.monotonic() + _PAUSE_SECS + one.delay_millis / 1000
            case Paused():
                self._target = _Target.PAUSED
            case Shutdown():
                raise TargetGone(f"the server at {self.where} has said goodbye")
            case _ if isinstance(message, Command):
                self._spaces.take(message)
        return False

    def _filter_of(self, event: int) -> EventFilter:
        return self._sent[event] if event < len(self._sent) else EventFilter()

    def _finish(self, *, holds: bool) -> None:
        """Finish the event that came.

        Args:
            holds: Whether the program stands still after it, until it is told to go on.
        """
        event, self._event = self._event, None
        if event is None:
            return
        if holds:
            self._target = _Target.PAUSED
        server = self.server
        self._spaces.count_up_to(event.event)
        request = server.should_transmit(event.event)
        if request is None:
            self._spaces.leave_out()
        else:
            self._spaces.fill(request)
            server.held(max(0, event.compensation_millis) * _MILLION)
        server.finish(event.event, holds=holds)

    # ------------------------------------------------------------------- control

    def _direct(self) -> None:
        """Tell the server what the session wants of it.

        Raises:
            TargetGone: It has ended.
        """
        # Read first: whoever pauses has subscribed before, so the event at which it holds passes the filters.
        pausing = self.server.pausing
        filters = tuple(self._wanted_filter(event) for event in range(len(self._wire.event_names)))
        if filters != self._sent:
            self._line.send(encode(EventFilters(filters=filters)))
            self._sent = filters
        if self._target is _Target.PAUSED and self._event is None:
            self._line.send(encode(PlayOne() if pausing else Restart()))
            self._target = _Target.STEPS if pausing else _Target.RUNS
        elif self._target is _Target.RUNS and pausing:
            self._line.send(encode(PauseRequest()))
            self._target = _Target.IS_TO_PAUSE

    def _wanted_filter(self, event: int) -> EventFilter:
        """The filter for the server: off if nobody wants the events; delays and pauses for the events that pass our period."""
        if not self.server.outlook(event).period:
            return EventFilter(enabled=False)
        ours = self.server.event_filter(event)
        if not ours.wants(self.server.counts()[event] + 1):
            return EventFilter()
        return EventFilter(
            delay_millis=min(ours.delay_millis, _LONGEST_DELAY_MILLIS), pause=ours.pause
        )
