"""`Server`: what a driver calls (paper section 5.1 and appendix C).

Calls come from the driver's own thread: any thread, one at a time. What happens
in them is in `gcspy_server.interpreter`; who listens is in `gcspy_session`,
in a thread of its own. Knows the order of the calls; knows no socket.
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
from gcspy_protocol.model import EventKind, Mode, PauseActsOn, Space
from gcspy_protocol.settings import Setting
from gcspy_protocol.triggers import Trigger

from gcspy_server.heap_question import Investigator
from gcspy_server.interpreter.core import Core, EventForecast
from gcspy_server.interpreter.gather_request import GatherRequest
from gcspy_server.names import StringNames, TileNames
from gcspy_server.spaces import ServerSpace
from gcspy_session.options import SessionOptions

__all__ = ["ServedSession", "Server"]


class ServedSession:
    """A session that can be joined, until it is closed; made by `Server.serve`.

    Attributes:
        addresses: What a client joins with, in the order given to `serve`; a port of 0 is the real one,
            TLS has its fingerprint.
    """

    def __init__(self, addresses: tuple[str, ...], close: Callable[[], None]) -> None:
        self.addresses = addresses
        self._close = close

    def close(self) -> None:
        """Say goodbye to every client and stop listening; a held target goes on."""
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
    """A server interpreter: its kinds of event, its spaces, and who watches them.

    Args:
        name: What is visualised, as clients see it.
        events: Names of the kinds of event; a kind's number is its place.
        mode: How the target is watched.
        pause_acts_on: What a pause stops.
        general_info: Text about the whole target.
        target: Free facts: ``pid``, ``runtime``, ``version`` ….
        time_nanos: Monotonic clock of all times.
        longest_hold_secs: Longest single stop of the target; None: unlimited.
        budget: What watching may take of the target's time, in thousandths of it, until the controller chooses
            otherwise; 1000: all of it. None: there is no budget, and every event that is wanted is gathered.
        processors: How many processors the target may use; those of this process, if not said.
        waited_nanos: How long the target's threads have waited for a processor so far, all together; None when it cannot be
            said. The target can have lost no more than that to whoever reads it while it runs.
        pairs: Kinds of event that are start and end of the same, such as of a collection: the budget leaves out both or neither.
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
        """Add a space; clients learn of it with the next event.

        Args:
            name: Name of the space.
            names: What its tiles are called, and how many there are; None: none yet, and texts later.
            driver: The driver that makes it.
            tile_title: What a tile is called, with a trailing space.
            unused_text: What an unused tile is.
            main: Whether the client should make it the active space at first.
            row_width: Tiles in a row for a 2-D space.
            description: One sentence.
            details: What can be asked of a tile, and of the whole space: see `ServerSpace.answer_with`.

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
        """Remove a space, between events; its id is never used again.

        Raises:
            LocalProtocolError: It is not one of this server's, or an event is being gathered.
        """
        self._core.remove_space(space)

    @property
    def spaces(self) -> tuple[ServerSpace, ...]:
        """The spaces, in order of their ids."""
        return self._core.spaces

    # ------------------------------------------------------------------- events

    def should_transmit(self, event: int) -> GatherRequest | None:
        """Ask whether anybody wants the event that happens now; counts nothing.

        Returns:
            What to gather before `finish`, or None: nobody is connected, the event is filtered out, or
            nobody wants one so soon. The time until `finish` is told to clients as gathering.
        """
        if not self._core.live:
            return None
        return self._core.request(event)

    def finish(
        self,
        event: int,
        cause: str = "",
        program_clock: tuple[str, int] | None = None,
        *,
        holds: bool = True,
    ) -> None:
        """Count the event and, if `should_transmit` asked for it, send it; blocks while delayed, paused, or waiting for a lossless client.

        Args:
            event: Number of the kind of event.
            cause: Its cause, where the runtime tells it.
            program_clock: Name and value of a clock of the program, such as allocated bytes.
            holds: Whether what a pause acts on stands still during this event. If not, nothing is held after it,
                and what would have paused here pauses after the next event that is sent.
        """
        self._core.finish(event, cause, program_clock, holds=holds)

    def discard(self) -> None:
        """Say that what was filled in since `should_transmit` is worth nothing: the target went on while it was read, say.

        `finish` then sends the event without it: clients see every stream as of an earlier event. What spaces are given between events
        stays as it was filled; a space is sent again when it is filled again.

        Raises:
            LocalProtocolError: No event is being gathered.
        """
        self._core.discard()

    def skip(self, event: int, times: int = 1, *, untold: bool = False) -> None:
        """Only count an event, or several of a kind.

        Args:
            event: Number of the kind of event.
            times: How many.
            untold: Whether nobody asked `should_transmit` for them though `outlook` gave a period: because it said that it would be in vain
                so soon, or because the driver could not. What the budget did not leave out counts as missed.

        Raises:
            LocalProtocolError: This event is being gathered: finish it.
        """
        self._core.skip(event, times, untold=untold)

    def leave_out(self, event: int) -> None:
        """Only count an event that the driver does not take, as that would take too long now.

        Of a session with a budget that limits it counts among what the budget left out, else as missed.

        Raises:
            LocalProtocolError: This event is being gathered: finish it.
        """
        self._core.leave_out(event)

    def lighten(self, level: int) -> None:
        """Say that the event that is being gathered is gathered at this level at most, so that its cost is not taken for that of a higher one."""
        self._core.lighten(level)

    def held(self, nanos: int) -> None:
        """Say that the target was kept from going on for so long, so that it could be read.

        Between `should_transmit` and `finish` it was for this event, which then says so to clients; at other times it only counts
        against the budget. Not to be said: the time from `should_transmit` to `finish` where what a pause acts on stands still
        in it, which counts by itself; and what a pause or delay holds.

        Args:
            nanos: How long, in nanoseconds; what is said several times adds up.
        """
        self._core.say_held(nanos)

    def outlook(self, event: int) -> EventForecast:
        """Say beforehand which events of a kind `should_transmit` would want, so that others need not even be told to us.

        It changes with clients, filters and control flow: ask again, several times a second.
        """
        return self._core.outlook(event)

    def enabled(self, event: int) -> bool:
        """Whether the filter of a kind of event lets any through, whoever is there and whatever the budget says."""
        return self._core.filters[event].enabled

    @property
    def pausing(self) -> bool:
        """Whether everything is held after the next event that is sent."""
        return self._core.flow.pausing

    @property
    def holding(self) -> bool:
        """Whether the driver's thread is held now; to be asked by another thread."""
        return self._core.flow.held or self._core.room.held

    def counts(self) -> tuple[int, ...]:
        """How often each kind of event has happened, filtered ones too."""
        return tuple(self._core.counts)

    def set_trigger(self, trigger: Trigger) -> None:
        """Set, replace or remove a trigger, as a controller does; without an expression it is removed.

        Raises:
            ExpressionError: Its expression is no condition.
            LocalProtocolError: There are too many.
        """
        self._core.set_trigger(trigger)

    def add_setting(self, setting: Setting, *, refusal: Callable[[int], str] | None = None) -> None:
        """Add something that the controller may choose; before `serve`.

        Args:
            setting: It, with the value to begin with.
            refusal: Why it cannot have a value now; empty: it can. Asked in the session's thread when a controller chooses: it must be quick.

        Raises:
            LocalProtocolError: There are too many, its number is taken, or it contradicts itself.
        """
        self._core.settings.add(setting, refusal=refusal)

    def set_setting(self, ident: int, value: int) -> None:
        """Choose a value, as a controller does.

        Raises:
            LocalProtocolError: There is no such setting, or it cannot have the value.
        """
        self._core.set_setting(ident, value)

    def take_setting(self, ident: int) -> int:
        """Return what was chosen, for the event that the driver is about to ask for.

        What is gathered from now on, until it is asked again, was gathered with this value, and what that takes is its cost.
        """
        return self._core.settings.take(ident)

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All settings as they are told to clients."""
        return self._core.settings.announcement().settings

    def add_observer(self, observer: Callable[[Event], None]) -> None:
        """Have a function called at each event, in the driver's thread, when the arrays are filled.

        An observer counts as somebody who wants everything: for programs that look at their own
        spaces, for tests and benchmarks of drivers.
        """
        self._core.add_observer(observer)

    def ask(self, query: Query) -> Answer:
        """Answer a question as a client's is answered: about the latest event at which the space was gathered. In any thread."""
        return self._core.details.answer(query)

    def investigate_with(self, investigator: Investigator | None) -> None:
        """Answer the controller's questions about objects and the references between them with a function; None: they are refused.

        It is called in a thread of its own, once at a time, and is given a function to call with how far it is, which raises
        when nobody waits for the answer any more.
        """
        self._core.investigator = investigator

    def let_go_when(self, why: Callable[[], str]) -> None:
        """Hold the target no more once this gives a reason: it is asked every half second of a delay or pause."""
        self._core.flow.let_go_when(why)

    def tell(self, notice: str) -> None:
        """Tell every client why no event comes; empty: it comes again. May be called in any thread."""
        self._core.flow.tell(notice)

    def end(self, reason: str, *, driver_failed: bool = False) -> None:
        """Say that the target is gone, or that the driver failed; clients keep what they have.

        Args:
            reason: Why, for a human.
            driver_failed: Whether the driver made a mistake, and the target may run on.
        """
        self._core.end(reason, driver_failed=driver_failed)

    # ----------------------------------------------------------------- sessions

    def serve(
        self,
        *addresses: str,
        token: str | None = None,
        options: SessionOptions | None = None,
    ) -> ServedSession:
        """Let clients in, from a thread of its own.

        Args:
            addresses: ``unix:/path``, ``tcp:HOST:PORT`` (port 0: any), ``tls:HOST:PORT``.
            token: What TCP clients must know; needed for TCP and TLS.
            options: Limits and deadlines of the session.

        Returns:
            The addresses that clients join with; closing it ends the session.

        Raises:
            LinkError: An address is taken, or may not be listened at.
            LocalProtocolError: The server listens already.
        """
        # trio is loaded only by a server that serves
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
        """Hand all that is sent to a function of this process, in the driver's thread, in place of serving it; every event is wanted.

        For a program that is not watched but computed again, such as a trace: it can be recorded as fast as it is gathered.

        Args:
            take: Is given the bytes that a client would get, from the preamble on.
            wall_offset_nanos: Add to a time of this server for nanoseconds since 1970; 0: its times are not of this world's clocks.

        Raises:
            LocalProtocolError: The server listens already.
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

    def wait_for_client(self, timeout_secs: float | None = None) -> bool:
        """Wait until a client is connected; False when none came in time."""
        return self._core.wait_for_client(timeout_secs)

    def close(self) -> None:
        """End the session, if there is one."""
        if self._listening is not None:
            self._listening.close()
