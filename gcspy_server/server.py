"""`Server`: the interface for a driver (paper section 5.1 and appendix C).

Calls come from the driver's own thread: any thread, one at a time. `gcspy_server.interpreter`
implements them. `gcspy_session` has the clients, in a thread of its own. Knows the order of the
calls; does not know sockets.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Sequence
from types import TracebackType

from gcspy_protocol.details import Answer, Query
from gcspy_protocol.errors import LocalProtocolError
from gcspy_protocol.limits import CLIENT_LIMITS
from gcspy_protocol.messages import Event, Welcome
from gcspy_protocol.model import EventFilter, EventKind, Mode, PauseActsOn, Space
from gcspy_protocol.settings import Setting
from gcspy_protocol.triggers import Trigger

from gcspy_server.clock_pace import Progress
from gcspy_server.heap_question import Investigator
from gcspy_server.interpreter.core import Core, EventForecast
from gcspy_server.interpreter.gather_request import GatherRequest
from gcspy_server.memory_report import Explainer
from gcspy_server.names import StringNames, TileNames
from gcspy_server.spaces import ServerSpace
from gcspy_session.options import SessionOptions

__all__ = ["ServedSession", "Server"]


class ServedSession:
    """A session that clients can join, until it is closed; made by `Server.serve`.

    Attributes:
        addresses: Addresses for clients, in the order given to `serve`; a port of 0 is replaced by
            the real one, TLS has its fingerprint.
        pages: Addresses of its page, for web browsers; set by the host that serves them.
    """

    def __init__(self, addresses: tuple[str, ...], close: Callable[[], None]) -> None:
        self.addresses = addresses
        self.pages: tuple[str, ...] = ()
        self._close = close

    def close(self) -> None:
        """Send goodbye to every client and stop listening; a held target continues."""
        self._close()

    def __enter__(self) -> ServedSession:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Server:
    """A server interpreter: its kinds of event, its spaces, and its clients.

    Args:
        name: Name of the target, as clients see it.
        events: Names of the kinds of event; a kind's number is its index.
        mode: How the target is monitored.
        pause_acts_on: Activity that a pause stops.
        general_info: Text about the whole target.
        target: Free facts: ``pid``, ``runtime``, ``version`` ….
        time_nanos: Monotonic clock of all times.
        longest_hold_secs: Longest single stop of the target; None: unlimited.
        budget: Allowed share of the target's time for monitoring, in thousandths, until the
            controller changes it; 1000: all of it. None: there is no budget, and every requested
            event is gathered.
        processors: How many processors the target may use; by default those of this process.
        waited_nanos: Total time that the target's threads have waited for a processor so far; None
            if unknown. A running target can have lost no more than that to a process that reads it.
        pairs: Kinds of event that are start and end of the same thing, such as a collection: the
            budget leaves out both or neither.
    """

    def __init__(
        self,
        name: str,
        *,
        events: Sequence[str | EventKind],
        mode: Mode = Mode.EMBEDDED,
        pause_acts_on: PauseActsOn = PauseActsOn.PROGRAM,
        general_info: str = "",
        target: dict[str, str] | None = None,
        time_nanos: Callable[[], int] | None = None,
        longest_hold_secs: float | None = None,
        budget: int | None = None,
        processors: int | None = None,
        waited_nanos: Callable[[], int | None] | None = None,
        pairs: Sequence[tuple[int, int]] = (),
    ) -> None:
        if not 0 < len(events) <= CLIENT_LIMITS.events:
            raise LocalProtocolError(
                f"{len(events)} kinds of event; a server has 1 to {CLIENT_LIMITS.events}"
            )
        self.name = name
        self.events = tuple(
            kind if isinstance(kind, EventKind) else EventKind(id=number, name=kind)
            for number, kind in enumerate(events)
        )
        if [kind.id for kind in self.events] != list(range(len(self.events))):
            raise LocalProtocolError("the ids of kinds of event are their places: 0, 1, 2 …")
        self.mode = mode
        self.pause_acts_on = pause_acts_on
        self.general_info = general_info
        self.target = dict(target or {})
        self._core = Core(
            [kind.name for kind in self.events],
            time_nanos=time_nanos or time.monotonic_ns,
            longest_hold_secs=longest_hold_secs,
            budget=budget,
            holds=pause_acts_on is PauseActsOn.PROGRAM,
            processors=processors or len(os.sched_getaffinity(0)),
            waited_nanos=waited_nanos,
            pairs=pairs,
        )
        self._next_space = 1
        self._listening: ServedSession | None = None

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
        """Add a space; clients get it with the next event.

        Args:
            name: Name of the space.
            names: Names and number of its tiles; None: none yet, and texts later.
            driver: The driver that makes it.
            tile_title: Title of a tile, with a trailing space.
            unused_text: Description of an unused tile.
            main: Whether the client should make it the active space at first.
            row_width: Tiles in a row for a 2-D space.
            description: One sentence.
            details: Kinds of questions about a tile, and the whole space: see
                `ServerSpace.answer_with`.

        Raises:
            LocalProtocolError: There are too many spaces.
        """
        names = StringNames(()) if names is None else names
        schema = Space(
            id=self._next_space,
            name=name,
            driver=driver,
            tile_title=tile_title,
            unused_text=unused_text,
            naming=names.naming,
            main=main,
            row_width=row_width,
            description=description,
            details=details,
        )
        space = ServerSpace(schema, names)
        self._core.add_space(space)
        self._next_space += 1
        return space

    def remove_space(self, space: ServerSpace) -> None:
        """Remove a space, between events; its id is never reused.

        Raises:
            LocalProtocolError: It is not a space of this server, or an event is being gathered.
        """
        self._core.remove_space(space)

    @property
    def spaces(self) -> tuple[ServerSpace, ...]:
        """The spaces, in order of their ids."""
        return self._core.spaces

    # ------------------------------------------------------------------- events

    def should_transmit(
        self, event: int, happened_nanos: int | None = None
    ) -> GatherRequest | None:
        """Ask whether the event that happens now is requested; counts nothing.

        Args:
            event: Number of the kind of event.
            happened_nanos: When it happened, by the server's clock, if it was recorded then and is
                gathered from the record; None: now.

        Returns:
            The gathering to do before `finish`, or None: no client is connected, the event is
            filtered out, or all clients requested a lower rate. The time until `finish` is
            reported to clients as gathering.
        """
        if not self._core.live:
            return None
        return self._core.request(event, happened_nanos)

    def finish(
        self,
        event: int,
        cause: str = "",
        program_clock: tuple[str, int] | None = None,
        *,
        holds: bool = True,
    ) -> None:
        """Count the event and, if `should_transmit` requested it, send it; blocks while delayed, paused, or waiting for a lossless client.

        Args:
            event: Number of the kind of event.
            cause: Its cause, if the runtime reports it.
            program_clock: Name and value of a clock of the program, such as allocated bytes.
            holds: Whether the target of a pause stands still during this event. If not, nothing is
                held after it, and a pause takes effect after the next event that is sent.
        """
        self._core.finish(event, cause, program_clock, holds=holds)

    def discard(self) -> None:
        """Discard the data filled since `should_transmit`, for example because the target continued during the read.

        `finish` then sends the event without it: clients see every stream as of an earlier event.
        Data that was filled between events stays; a space is sent again when it is filled again.

        Raises:
            LocalProtocolError: No event is being gathered.
        """
        self._core.discard()

    def skip(self, event: int, times: int = 1, *, untold: bool = False) -> None:
        """Only count an event, or several of a kind.

        Args:
            event: Number of the kind of event.
            times: Their number.
            untold: Whether `should_transmit` was not called for them although `outlook` gave a
                period: because it predicted that they would be refused, or because the driver could
                not. Those that the budget did not leave out count as missed.

        Raises:
            LocalProtocolError: This event is being gathered: finish it.
        """
        self._core.skip(event, times, untold=untold)

    def leave_out(self, event: int) -> None:
        """Only count an event that the driver skips, since it would take too long now.

        In a session with a limiting budget it counts as left out by the budget, otherwise as
        missed.

        Raises:
            LocalProtocolError: This event is being gathered: finish it.
        """
        self._core.leave_out(event)

    def lighten(self, level: int) -> None:
        """Set a maximum level for the current event, so that its cost is not attributed to a higher level."""
        self._core.lighten(level)

    def held(self, nanos: int) -> None:
        """Report that the target was stopped for reading.

        Between `should_transmit` and `finish` the time belongs to this event, which then reports it
        to clients; at other times it only counts against the budget. Do not report: the time from
        `should_transmit` to `finish` if the target of a pause stands still in it, which counts
        anyway; and the time of a pause or delay.

        Args:
            nanos: How long, in nanoseconds; several reports add up.
        """
        self._core.say_held(nanos)

    def outlook(self, event: int) -> EventForecast:
        """Predict which events of a kind `should_transmit` would accept, so that a stub can skip the rest.

        It changes with clients, filters and control flow: ask again, several times a second.
        """
        return self._core.outlook(event)

    def may_hold(self, event: int) -> bool:
        """Whether the target may have to be held after an event of this kind: for a pause, a delay, or a trigger.

        A client that must not miss an event is no reason: recorded events wait for it.
        """
        return self._core.may_hold(event)

    @property
    def has_room(self) -> bool:
        """Whether an event that is finished now is not left out because the session has too many to send."""
        return self._core.has_room

    @property
    def progress(self) -> Progress:
        """Counts that show whether anything happens in the session; see `ClockPace`."""
        return self._core.progress

    def slow_clock(self, period_nanos: int) -> None:
        """Tell clients how long the clock waits between two ticks while nothing changes; 0: it has its full rate."""
        self._core.flow.slow(period_nanos)

    def enabled(self, event: int) -> bool:
        """Whether the filter of a kind of event passes any, regardless of clients and budget."""
        return self._core.filters[event].enabled

    def event_filter(self, event: int) -> EventFilter:
        """The filter of a kind of event, for a driver whose target filters events itself."""
        return self._core.filters[event]

    @property
    def pausing(self) -> bool:
        """Whether the target is held after the next event that is sent."""
        return self._core.flow.pausing

    @property
    def holding(self) -> bool:
        """Whether the driver's thread is held now; for other threads."""
        return self._core.flow.held or self._core.room.held

    def counts(self) -> tuple[int, ...]:
        """Number of occurrences of each kind of event, including filtered ones."""
        return tuple(self._core.counts)

    def set_trigger(self, trigger: Trigger) -> None:
        """Set, replace or remove a trigger, as a controller does; without an expression it is removed.

        Raises:
            ExpressionError: Its expression is not a condition.
            LocalProtocolError: There are too many.
        """
        self._core.set_trigger(trigger)

    def add_setting(self, setting: Setting, *, refusal: Callable[[int], str] | None = None) -> None:
        """Add a setting for the controller; before `serve`.

        Args:
            setting: The setting, with the initial value.
            refusal: Why a value is impossible now; empty: it is possible. Called in the session's
                thread when a controller chooses: it must be quick.

        Raises:
            LocalProtocolError: There are too many, its number is taken, or it contradicts itself.
        """
        self._core.settings.add(setting, refusal=refusal)

    def set_setting(self, ident: int, value: int) -> None:
        """Choose a value, as a controller does.

        Raises:
            LocalProtocolError: There is no such setting, or the value is invalid.
        """
        self._core.set_setting(ident, value)

    def take_setting(self, ident: int) -> int:
        """Return the chosen value, for the event that the driver is about to request.

        Everything gathered until the next call was gathered with this value, and its cost is the
        value's.
        """
        return self._core.settings.take(ident)

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All settings as sent to clients."""
        return self._core.settings.announcement().settings

    def add_observer(
        self,
        observer: Callable[[Event], None],
        reads: Callable[[ServerSpace], bool] | None = None,
        *,
        exact: bool = True,
    ) -> None:
        """Call a function at each event, in the driver's thread, when the arrays are filled.

        An observer counts as a client. For programs that examine their own spaces, and for tests and
        benchmarks of drivers.

        Args:
            observer: The function.
            reads: Whether it reads a space; None: it reads all of them. What neither it nor a client
                reads is not gathered.
            exact: Whether every event is gathered for it, whatever the budget is.
        """
        self._core.add_observer(observer, reads, exact=exact)

    def ask(self, query: Query) -> Answer:
        """Answer a question like a client's: about the latest event at which the space was gathered. In any thread."""
        return self._core.details.answer(query)

    def investigate_with(self, investigator: Investigator | None) -> None:
        """Set the function that answers the controller's questions about objects and the references between them; None: they are refused.

        It runs in a thread of its own, one call at a time. It gets a function to report its
        progress, which raises when no client waits for the answer any more.
        """
        self._core.investigator = investigator

    def explain_memory_with(self, explainer: Explainer | None) -> None:
        """Set the function that answers the controller's question what memory is used for and what grows; None: it is refused.

        See `investigate_with`; of both kinds one question is answered at a time.
        """
        self._core.explainer = explainer

    def let_go_when(self, why: Callable[[], str]) -> None:
        """Stop holding the target once this function returns a reason: it is called every half second of a delay or pause."""
        self._core.flow.let_go_when(why)

    def tell(self, notice: str) -> None:
        """Tell every client why no event comes; empty: the problem is over. May be called in any thread."""
        self._core.flow.tell(notice)

    def end(self, reason: str, *, driver_failed: bool = False) -> None:
        """End the session: the target is gone, or the driver failed. Clients keep their data.

        Args:
            reason: Why, for a human.
            driver_failed: Whether the driver is faulty, so that the target may still run.
        """
        self._core.end(reason, driver_failed=driver_failed)

    # ----------------------------------------------------------------- sessions

    def serve(
        self,
        *addresses: str,
        token: str | None = None,
        options: SessionOptions | None = None,
    ) -> ServedSession:
        """Serve clients, from a thread of its own.

        Args:
            addresses: ``unix:/path``, ``tcp:HOST:PORT`` (port 0: any), ``tls:HOST:PORT``.
            token: The token for TCP clients; required for TCP and TLS.
            options: Limits and deadlines of the session.

        Returns:
            The served session with its addresses; closing it ends the session.

        Raises:
            LinkError: An address is in use, or listening at it is not allowed.
            LocalProtocolError: The server already listens.
        """
        # only a server with clients loads trio
        from gcspy_server.clients.session import Introduction, Session
        from gcspy_session.thread import SessionThread

        if self._listening is not None:
            raise LocalProtocolError(
                "this server is already listening: give all addresses in one call of serve"
            )
        self._core.publish()
        introduction = Introduction(
            server=self.name,
            events=self.events,
            mode=self.mode,
            pause_acts_on=self.pause_acts_on,
            general_info=self.general_info,
            target=self.target,
            wall_offset_nanos=time.time_ns() - time.monotonic_ns(),
        )
        granted = options or SessionOptions()
        thread = SessionThread(
            lambda: Session(introduction, self._core, token=token, options=granted),
            addresses,
            token=token,
        )
        found = thread.start()

        def close() -> None:
            self._listening = None
            thread.stop()

        self._listening = ServedSession(found, close)
        return self._listening

    def deliver_to(self, take: Callable[[bytes], None], *, wall_offset_nanos: int = 0) -> None:
        """Pass all sent bytes to a function of this process, in the driver's thread, instead of serving; every event is requested.

        For computed data, such as a trace: it can be recorded as fast as it is gathered.

        Args:
            take: Receives the bytes that a client would get, from the preamble on.
            wall_offset_nanos: Add to a time of this server for nanoseconds since 1970; 0: its times
                are unrelated to the wall clock.

        Raises:
            LocalProtocolError: The server already listens.
        """
        from gcspy_server.interpreter.in_process_client import InProcessClient

        if self._listening is not None:
            raise LocalProtocolError(
                "this server is already listening: call this method before serve, or connect to it"
            )
        welcome = Welcome(
            server=self.name,
            session=secrets.token_hex(8),
            client_id=1,
            controller=False,
            mode=self.mode,
            pause_acts_on=self.pause_acts_on,
            events=self.events,
            general_info=self.general_info,
            target=self.target,
            wall_offset_nanos=wall_offset_nanos,
        )
        InProcessClient(self._core, welcome, take)

    def wait_for_leaders(self) -> None:
        """Hold also while nobody has control: of a simulated program for a class, which must not run ahead of its teacher."""
        self._core.flow.wait_for_leaders()

    def wait_for_client(self, timeout_secs: float | None = None) -> bool:
        """Wait until a client is connected; False if none connected in time."""
        return self._core.wait_for_client(timeout_secs)

    def close(self) -> None:
        """End the session, if there is one."""
        if self._listening is not None:
            self._listening.close()
