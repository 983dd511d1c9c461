"""Lets a visualiser of GCspy 1.0 watch a session: an ordinary client of the session on one side, a server of GCspy 1.0 on the other.

It listens on this machine only, and serves one visualiser at a time; another one is refused at once.
A visualiser that does not read is dropped. Whatever it does, the session and its target only see a
client that comes and goes.

Knows links and sockets; `gcspy_original` translates.
"""

from __future__ import annotations

import logging
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from gcspy_protocol.errors import CommandError, GCspyError, LinkError, RemoteProtocolError

from gcspy.exit_codes import ExitCode

if TYPE_CHECKING:
    from gcspy_original.outgoing import OutgoingSession
    from gcspy_original.wire import Message
    from gcspy_protocol.interpreter import ClientInterpreter, EventChange
    from gcspy_protocol.messages import Pause, Resume, Step

    from gcspy.connection.link import Link

__all__ = ["OriginalGateway", "original_gateway"]

_LOOK_SECS: Final = 0.05
_GREETING_SECS: Final = 10.0
_SEND_SECS: Final = 10.0
_LEAVE_SECS: Final = 5.0
_READ_BYTES: Final = 1 << 16
_NAME_PAGES: Final = 4
_MOST_FRAME_BYTES: Final = 4 << 20
"""The buffer of the visualiser, which fails with a larger frame."""

_log = logging.getLogger("gcspy")


class _Gone(Exception):
    """The visualiser has left, or does not read."""


class _Step(Enum):
    """A step that the visualiser asked for: which event came since."""

    ASKED = auto()
    HIDDEN = auto()
    """One that its filters do not pass."""
    SHOWN = auto()


class OriginalGateway:
    """Listens for visualisers, in a thread of its own.

    Args:
        session: Address of the session.
        port: TCP port of this machine; 0: any.
        token: The session's token, if its address is TCP.

    Attributes:
        port: The port.

    Raises:
        LinkError: The port cannot be listened on.
    """

    def __init__(self, session: str, port: int, token: str = "") -> None:
        self._session, self._token = session, token
        try:
            self._listening = socket.create_server(("127.0.0.1", port))
        except OSError as error:
            raise LinkError(
                f"cannot listen on 127.0.0.1:{port}: {error.strerror or error}"
            ) from error
        self.port: int = self._listening.getsockname()[1]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gcspy666", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening, and leave the visualiser."""
        self._stop.set()
        self._thread.join()
        self._listening.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            client = self._accepted(_LOOK_SECS)
            if client is None:
                continue
            with closing(client):
                try:
                    _Visualiser(client, self._session, self._token, self._busy).serve()
                except _Gone:
                    continue
                except GCspyError as error:
                    _log.warning("a visualiser of GCspy 1.0 was dropped: %s", error)

    def _accepted(self, secs: float) -> socket.socket | None:
        if not select.select([self._listening], [], [], secs)[0]:
            return None
        with suppress(OSError):
            return self._listening.accept()[0]
        return None

    def _busy(self) -> bool:
        """Refuse further visualisers; return whether the gateway stops."""
        while (other := self._accepted(0)) is not None:
            other.close()
        return self._stop.is_set()


class _Visualiser:
    """One visualiser, while it is connected."""

    def __init__(
        self, client: socket.socket, session: str, token: str, busy: Callable[[], bool]
    ) -> None:
        from gcspy_original.wire import Connection, EventFilter, Side

        client.settimeout(_SEND_SECS)
        self._client, self._session, self._token, self._busy = client, session, token, busy
        self._wire = Connection(Side.CLIENT)
        self._link: Link | None = None
        self._greeted = self._described = self._pause_at_start = self._leaves = False
        self._controls = self._paused = False
        self._step: _Step | None = None
        self._subscribed = True
        self._pings = self._pongs = 0
        self._last_shown = 0
        self._filters: tuple[EventFilter, ...] = ()
        self._asked: set[tuple[int, int]] = set()
        self._named: set[int] = set()

    def serve(self) -> None:
        """Serve until it leaves or the session ends.

        Raises:
            _Gone: It has left.
            GCspyError: The session cannot be joined, or the visualiser breaks the protocol.
        """
        from gcspy.connection.link import connect

        give_up = time.monotonic() + _GREETING_SECS
        while not self._greeted:
            self._hear(_LOOK_SECS)
            if self._busy() or time.monotonic() > give_up:
                return
        with connect(
            self._session,
            token=self._token,
            client="visualiser of GCspy 1.0",
            wants_control=True,
            pause_at_connect=self._pause_at_start,
        ) as link:
            try:
                self._follow(link)
            except LinkError as error:
                _log.info("the session of a visualiser of GCspy 1.0 ended: %s", error)
        self._say_goodbye()

    def _follow(self, link: Link) -> None:
        from gcspy_original.outgoing import OutgoingSession
        from gcspy_protocol.interpreter import ClientInterpreter
        from gcspy_protocol.messages import Pong, TileNames

        self._link = link
        state = ClientInterpreter()
        outgoing: OutgoingSession | None = None
        while not (self._leaves or link.closed or self._busy()):
            message = link.receive(_LOOK_SECS)
            change = None if message is None else state.apply(message)
            self._controls = state.is_controller()
            if isinstance(message, TileNames):
                self._named.add(message.space)
            elif isinstance(message, Pong):
                self._pongs = message.number
            if change is not None:
                if outgoing is None:
                    outgoing = OutgoingSession(state)
                    self._send(outgoing.bootstrap(state))
                    self._described = True
                    self._last_shown = change.event.sequence
                    self._send(outgoing.event(state, change, everything=True))
                else:
                    self._show(outgoing, state, change)
                self._ask_names(state, change)
            self._tell_pause(state)
            self._hear(0)
            self._subscribe()

    def _show(
        self, outgoing: OutgoingSession, state: ClientInterpreter, change: EventChange
    ) -> None:
        """Send an event that the visualiser's filter passes; what it does not pass is sent with the next one."""
        from gcspy_protocol.messages import Pause

        event = change.event
        one = self._filters[event.event] if event.event < len(self._filters) else None
        passes = one is None or (one.enabled and event.occurrence % max(1, one.period) == 0)
        # Events that were on their way when it subscribed again have no values. An event that comes again has them.
        again = event.sequence == self._last_shown
        passes = passes and self._pongs == self._pings and not again
        # Streams that come with this event only would be missed: just the event itself is left out.
        self._send(outgoing.event(state, change, shown=passes, named=self._named))
        if self._step is not None:
            self._step = _Step.SHOWN if passes or self._step is _Step.SHOWN else _Step.HIDDEN
        if passes:
            self._last_shown = event.sequence
        if passes and one is not None and one.pause:
            self._ask(Pause())

    def _tell_pause(self, state: ClientInterpreter) -> None:
        """Tell the beginning of a pause. After a step the original says nothing, and goes on until its filters pass an event."""
        from gcspy_original.wire import Paused
        from gcspy_protocol.messages import Step
        from gcspy_protocol.model import ControlState

        if not self._described:
            return  # nothing may come before the greeting
        paused = state.state is ControlState.PAUSED
        if paused and not self._paused:
            if self._step is _Step.HIDDEN:
                self._step = _Step.ASKED
                self._ask(Step())
            elif self._step is _Step.SHOWN:
                self._step = None
            else:
                self._step = None
                self._send([Paused()])
        self._paused = paused

    def _subscribe(self) -> None:
        """Subscribe to nothing while the visualiser wants no event at all, so that nothing is gathered for it."""
        from gcspy_protocol.messages import Ping, Subscribe

        if self._link is None or not self._described:
            return  # its greeting needs an event
        wanted = not self._filters or any(one.enabled for one in self._filters)
        if wanted != self._subscribed:
            self._subscribed = wanted
            self._link.send(Subscribe(spaces=None if wanted else ()))
            self._pings += 1
            self._link.send(Ping(number=self._pings))

    def _ask_names(self, state: ClientInterpreter, change: EventChange) -> None:
        """Ask for missing texts of tiles, a few pages an event: they are sent with a later event."""
        from gcspy_protocol.limits import CLIENT_LIMITS
        from gcspy_protocol.messages import TileNamesRequest
        from gcspy_protocol.model import Naming

        page = CLIENT_LIMITS.names_page
        moved = {*change.resized, *change.renamed, *self._named}
        self._asked = {(number, first) for number, first in self._asked if number not in moved}
        self._named.clear()
        left = _NAME_PAGES
        for number, space in state.spaces.items():
            texts = space.names.texts()
            if space.space.naming is not Naming.STRINGS or len(texts) >= space.count:
                continue
            for first in range(0, space.count, page):
                count = min(page, space.count - first)
                if (number, first) in self._asked or all(
                    tile in texts for tile in range(first, first + count)
                ):
                    continue
                if not left or self._link is None:
                    return
                left -= 1
                self._asked.add((number, first))
                self._link.send(TileNamesRequest(space=number, first=first, count=count))

    def _ask(self, message: Pause | Resume | Step) -> None:
        """Ask something of the session, which only its controller may do."""
        if self._link is not None and self._controls:
            self._link.send(message)

    def _hear(self, secs: float) -> None:
        """Do what the visualiser asks for; without control of the session only what concerns itself."""
        if not select.select([self._client], [], [], secs)[0]:
            return
        try:
            data = self._client.recv(_READ_BYTES)
        except OSError as error:
            raise _Gone from error
        if not data:
            raise _Gone
        self._wire.receive_data(data)
        for message in self._wire.messages():
            self._obey(message)

    def _obey(self, message: Message) -> None:
        from gcspy_original import wire
        from gcspy_protocol.messages import Pause, Resume, Step

        match message:
            case wire.ClientGreeting():
                self._greeted, self._pause_at_start = True, message.pause_at_start
            case wire.ShutdownRequest():
                self._leaves = True
            case wire.EventFilters():
                self._filters = message.filters
                # At once: what it asks for next, such as a pause, comes behind it at the session, too.
                self._subscribe()
            case wire.PauseRequest():
                self._ask(Pause())
            case wire.Restart():
                self._step = None
                self._ask(Resume())
            case wire.PlayOne():
                self._step = _Step.ASKED
                self._ask(Step())
            case _:
                return

    def _send(self, messages: Sequence[Message]) -> None:
        from gcspy_original.wire import encode

        for message in messages:
            frame = encode(message)
            if len(frame) > _MOST_FRAME_BYTES:
                raise RemoteProtocolError(
                    f"a frame of {len(frame):,} bytes is more than a visualiser of GCspy 1.0 takes"
                )
            try:
                self._client.sendall(frame)
            except OSError as error:
                raise _Gone from error

    def _say_goodbye(self) -> None:
        """Answer a request to leave, or leave by ourselves; the visualiser closes."""
        from gcspy_original.wire import Shutdown

        if not self._described:
            return  # it waits for a greeting, and nothing else may come first
        self._send([Shutdown()])
        self._client.settimeout(_LEAVE_SECS)
        with suppress(OSError):
            while self._client.recv(_READ_BYTES):
                pass


@contextmanager
def original_gateway(session: str, port: int | None, token: str | None) -> Iterator[None]:
    """A gateway during the block; port None: there is none.

    Raises:
        CommandError: The port cannot be listened on.
    """
    if port is None:
        yield
        return
    try:
        gateway = OriginalGateway(session, port, token or "")
    except LinkError as error:
        raise CommandError(
            f"--listen-gcspy666: {error}", exit_code=ExitCode.NO_CONNECTION
        ) from error
    try:
        yield
    finally:
        gateway.close()
