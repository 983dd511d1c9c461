"""One connected client: its greeting, its two loops, and the one log line about its end.

    run ─▶ greet ─▶ ┌ receive loop ─▶ session.handle
                    └ send loop   ◀─ queue ◀─ push_message / push_event
        ◀─ end(reason): by either loop, or by the session; the first reason counts

Nothing that a client does, or fails to do, makes `run` raise. Knows one connection; knows the
others only through its session.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import trio
from gcspy_protocol.connection import Connection, ConnectionState
from gcspy_protocol.errors import RemoteProtocolError, Unproven, VersionMismatch
from gcspy_protocol.frames.transcoding import without_zstd
from gcspy_protocol.handshake.credentials import Credentials
from gcspy_protocol.messages import Error, ErrorCode, Goodbye, Hello, Message, Missed, Proof
from gcspy_protocol.model import Role

from gcspy_session.admission import has_to_prove
from gcspy_session.allowance import Allowance, Bucket
from gcspy_session.capacity import Capacity
from gcspy_session.interest import EVERYTHING, Interest
from gcspy_session.lossless import Grant
from gcspy_session.network.transport import Transport
from gcspy_session.options import SessionOptions
from gcspy_session.queue import ClientQueue, EntryKind, QueueEntry, TooSlow
from gcspy_session.queued_bytes import QueuedBytes

__all__ = ["Behind", "ClientConnection", "Presence", "SharedEvent", "log"]

log = logging.getLogger("gcspy.server")

_CHUNK = 256 << 10
"""Bytes passed to the transport at once: a client that takes this much in `stall_secs` is alive."""

_LAST_WORDS_SECS = 1.0

_FAREWELL_READS = 64
"""Number of reads of up to 64 KiB, whose bytes are dropped, after the last message."""


class SharedEvent(Protocol):
    """An event as shared among clients: encoded once for all with the same subscription."""

    @property
    def sequence(self) -> int:
        """Its number among the shared events, increasing."""

    @property
    def moment_nanos(self) -> int:
        """When it is shown, on one clock; a client's rate is about the time between two of them."""

    def bytes_for(self, wants: Interest, *, zstd: bool = True) -> bytes:
        """All its bytes, for clients with that subscription, with or without zstd."""


class Behind(Enum):
    """Why a client lacks the latest snapshot."""

    NO = "no"
    NEW = "it has just connected"
    OTHER = "it changed its subscription"
    SLOW = "it is too slow"
    RATE = "it requested fewer events"


@dataclass(frozen=True, slots=True)
class _Ending:
    """Why a client's connection ends."""

    reason: str
    normal: bool
    last_words: Message | None


@dataclass(slots=True)
class Presence:
    """A client's own data about its user, and how far it has read.

    Attributes:
        person: Name for the others; empty: not given.
        following: Whether it follows the leader.
        attends: Whether it ever sent such data: then it is pinged.
        behind: Events that it had not read at the last check; None: unknown.
        stalled: Whether it has read nothing for seconds.
        step: Place of the step of a lesson that it is at; None: at none.
        tries: The choices that were taken at its question.
    """

    person: str = ""
    following: bool = False
    attends: bool = False
    behind: int | None = None
    stalled: bool = False
    step: int | None = None
    tries: tuple[int, ...] = ()


class ClientConnection:
    """One connection.

    Args:
        number: Its number in `Clients`.
        transport: Its byte stream.
        options: Limits and deadlines.
        shared: The bucket of all clients together.
        memory: The data queued for all clients together.
        token: The session's token; None: there is none.

    Attributes:
        transport: Its byte stream.
        name: Name of the program, from its greeting.
        proven: Whether it has proved that it knows the token.
        wants: Its subscription.
        takes_zstd: Whether compressed frames may be sent to it.
        interval_nanos: The shortest interval between events that it requests.
        behind: Whether and why it lacks the latest snapshot.
        waiting: Whether it waits for a keyframe that is being copied.
        last_heard: When it last sent anything, by the loop's clock.
        last_taken: When it last read anything.
        grant: Its grant, if it is a lossless client.
        refused_event: Whether it had no room for the latest event.
        presence: Its user.
    """

    def __init__(
        self,
        number: int,
        transport: Transport,
        options: SessionOptions,
        shared: Bucket,
        *,
        memory: QueuedBytes,
        token: str | None,
    ) -> None:
        self.number = number
        self.name = ""
        self.proven = False
        self.wants: Interest = EVERYTHING
        self.takes_zstd = True
        self.interval_nanos = 0
        self.behind = Behind.NEW
        self.waiting = False
        self.last_heard = 0.0
        self.last_taken = 0.0
        self.grant: Grant | None = None
        self.refused_event = False
        self.presence = Presence()
        self.transport = transport
        self._options = options
        self._allowance = Allowance(options.requests, shared)
        self._charged = (0, 0)
        self._token = token or ""
        self._connection = Connection(
            Role.SERVER, credentials=Credentials(self._token, transport.channel)
        )
        self._queue = ClientQueue(
            events=options.queued_events,
            event_bytes=options.queued_bytes,
            messages=options.queued_messages,
            memory=memory,
        )
        self._memory = memory
        self._more = trio.Event()
        self._idle = False
        self._cut = False
        self._closing = False
        self._received_any = False
        self._scope = trio.CancelScope()
        self._reading = trio.CancelScope()
        self._ending: _Ending | None = None
        self._missed = 0
        self._missed_total = 0
        self._missed_sequence = 0
        self._lost_events = 0
        self._server_lost = 0
        self._last_moment_nanos: int | None = None
        self._deferred: list[bytes] | None = None
        self._must_keyframe = False

    def __str__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        return f"client {self.number}{name} ({self.transport.who})"

    # ------------------------------------------------------------------ its life

    async def run(
        self,
        admit: Callable[[ClientConnection, Hello], Error | None],
        handle: Callable[[ClientConnection, Message], None],
        on_drained: Callable[[ClientConnection], None],
    ) -> None:
        """Serve the client until it ends; never raises because of the client. `close` follows.

        Args:
            admit: Called with the greeting; returns why not, or has queued Welcome and bootstrap.
            handle: Called with every message after that.
            on_drained: Called when everything is sent.
        """
        self.last_taken = trio.current_time()
        self._memory.join(self)
        with self._scope:
            if await self._read(lambda: self._greet(admit)):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._guard, lambda: self._send_loop(on_drained))
                    await self._read(lambda: self._receive_loop(handle))

    async def close(self) -> None:
        """Tell the client why it was disconnected, and close its transport, also when cancelled."""
        self._queue.clear()
        self._memory.leave(self)
        with trio.CancelScope(shield=True):
            await self._last_words()
            await self.transport.close()

    async def _read(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Run a part that reads; it stops at once when the client is ended. Returns whether it ended normally."""
        with trio.CancelScope() as self._reading:
            return self._ending is None and await self._guard(work)
        return False

    def end(self, reason: str, *, normal: bool = False, last_words: Message | None = None) -> None:
        """End the connection; only the first reason counts.

        Args:
            reason: For the log.
            normal: Whether this is not an error.
            last_words: The message for the client. The frame that is being sent is finished first,
                because nothing can be sent within it: for a second at most.
        """
        if self._ending is not None:
            return
        self._ending = _Ending(reason, normal, last_words)
        self._queue.clear()
        if last_words is None:
            self._scope.cancel()
            return
        self._reading.cancel()
        self._more.set()
        self._scope.deadline = trio.current_time() + _LAST_WORDS_SECS

    def _end_too_slow(self, error: TooSlow) -> None:
        self.end(
            f"too slow: {error}",
            last_words=Error(code=ErrorCode.TOO_SLOW, message=str(error), fatal=True),
        )

    def end_for_memory(self, waiting: int, most: int) -> None:
        """End it, because too much data is queued for all clients together."""
        waits = f"{waiting:,} bytes wait for all clients, of at most {most:,}"
        self._end_too_slow(TooSlow(f"{waits}, and this one has read nothing for the longest time"))

    def lose_events(self) -> None:
        """Drop the queued events that may be dropped: they count as missed."""
        if self.grant is None:
            sequence = self._queue.last_event
            dropped = self._queue.drop_events()
            if dropped:
                self.miss(sequence, dropped, Behind.SLOW)

    def close_when_sent(self) -> None:
        """End the connection after its queue."""
        self._closing = True
        self._more.set()

    async def _guard(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Run one part of the client's life; return whether it ended normally. An error ends the client."""
        try:
            await work()
        except VersionMismatch as error:
            self.end(f"version mismatch: {error}", last_words=_protocol_error(error))
        except Unproven as error:
            self.end(
                f"did not prove that it knows the token: {error}",
                last_words=Error(
                    code=ErrorCode.TOKEN,
                    message=f"you did not prove that you know the token: {error}",
                    remedy="connect again, with the token of this session",
                    fatal=True,
                ),
            )
        except RemoteProtocolError as error:
            if self._received_any:
                self.end(
                    f"broke the protocol at byte {error.offset}: {error}",
                    last_words=_protocol_error(error),
                )
            else:
                self.end("closed the connection without a goodbye", normal=True)
        except TooSlow as error:
            self._end_too_slow(error)
        except trio.TooSlowError:
            self.end(
                f"stalled: read nothing for {self._options.stall_secs:g} s, {self._queue.waiting}"
            )
        except trio.BrokenResourceError as error:
            self._lost(error)
        except Exception as error:
            log.exception("%s: internal error", self)
            self.end(f"internal error: {error!r}")
        return self._ending is None

    def _lost(self, error: trio.BrokenResourceError) -> None:
        """Handle a broken transport: usually a viewer that was killed, unless it was in the middle of a message."""
        cause = error.__cause__ or error
        normal = not isinstance(cause, ssl.SSLError)
        try:
            self._connection.receive_eof()
        except RemoteProtocolError as cut:
            if self._received_any:
                self.end(f"connection lost ({cause}): {cut}")
        self.end(f"connection lost: {cause}", normal=normal)

    async def _last_words(self) -> None:
        """Tell the client why it is disconnected, and wait a little until it has closed its end.

        Closing a TCP connection with unread bytes resets it, and a reset destroys data that the
        peer has not read yet: the reason.
        """
        ending = self._ending
        if ending is None or ending.last_words is None or self._cut or not self._may_send:
            return
        with trio.move_on_after(_LAST_WORDS_SECS):
            try:
                await self.transport.send_all(self._connection.send(ending.last_words))
                await self.transport.send_eof()
                for _ in range(_FAREWELL_READS):
                    if not await self.transport.receive_some():
                        return
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return  # it does not read any more

    @property
    def _may_send(self) -> bool:
        """Whether anything may follow the data sent or queued: nothing follows a goodbye."""
        return self._connection.our_state is not ConnectionState.CLOSED

    def log_end(self) -> None:
        """Log in one line how it ended; called when nothing counts it among the clients any more."""
        ending = self._ending or _Ending("the session ended", True, None)
        level = logging.INFO if ending.normal else logging.WARNING
        log.log(level, "%s ended: %s", self, ending.reason)

    # ------------------------------------------------------------------ greeting

    async def _greet(self, admit: Callable[[ClientConnection, Hello], Error | None]) -> None:
        awaited = "begin with TLS"
        with trio.move_on_after(self._options.handshake_secs) as deadline:
            await self.transport.start()
            awaited = "greet"
            await self._send_preamble()
            hello = await self._read_hello()
            self.takes_zstd = "zstd" in hello.codecs
            if has_to_prove(self.transport, hello, self._token):
                awaited = "prove that it knows the token"
                await self.transport.send_all(self._connection.prove())
                self.proven = await self._read_proof()
            refusal = admit(self, hello) if self._ending is None else None
            if refusal is not None:
                self.end(f"refused: {refusal.message}", last_words=refusal)
        if deadline.cancelled_caught:
            what = f"did not {awaited} within {self._options.handshake_secs:g} s"
            code = ErrorCode.PROTOCOL if awaited == "greet" else ErrorCode.TOKEN
            late = Error(
                code=code,
                message=f"this client {what}",
                remedy="connect again; if it happens again, look whether the network is slow",
                fatal=True,
            )
            # Nothing can be sent before the TLS handshake.
            self.end(what, last_words=None if awaited == "begin with TLS" else late)

    async def _send_preamble(self) -> None:
        try:
            await self.transport.send_all(self._connection.preamble())
        except trio.BrokenResourceError:
            return  # it is gone, but its earlier data can still be read, and blamed

    async def _read_hello(self) -> Hello:
        while True:
            message = self._connection.next_message()
            if isinstance(message, Hello):
                return message
            if message is not None:
                raise RemoteProtocolError(f"{type(message).__name__} instead of a greeting")
            await self._receive()

    async def _read_proof(self) -> bool:
        """Wait for the client's proof, which the connection checks; False: it has gone instead."""
        while True:
            message = self._connection.next_message()
            if isinstance(message, Proof):
                return True
            if isinstance(message, Goodbye):
                self.end("said goodbye before it proved that it knows the token", normal=True)
                return False
            if isinstance(message, Error):
                self.end(f"reported an error: {message.message}")
                return False
            await self._receive()

    async def _receive(self) -> bool:
        """Receive data of the client; False at its end."""
        data = await self.transport.receive_some()
        self.last_heard = trio.current_time()
        if not data:
            self._connection.receive_eof()
            return False
        self._received_any = True
        self._connection.receive_data(data)
        return True

    # ----------------------------------------------------------------- receiving

    async def _receive_loop(self, handle: Callable[[ClientConnection, Message], None]) -> None:
        while True:
            while (message := self._connection.next_message()) is not None:
                if isinstance(message, Goodbye):
                    self.end(f"said goodbye{message.reason and f': {message.reason}'}", normal=True)
                    return
                if isinstance(message, Error) and message.fatal:
                    self.end(f"reported an error: {message.message}")
                    return
                handle(self, message)
                await self._pay(message)
            await self._pay(None)
            if not await self._receive():
                self.end("closed", normal=True)
                return
            self._allowance.received(self._backlog)

    @property
    def _backlog(self) -> int:
        """Bytes that the client has sent and that were not examined yet."""
        return self._connection.unread_bytes + self.transport.unread_bytes

    async def _pay(self, message: Message | None) -> None:
        """Wait until the next request may be served; a client that floods is ended."""
        before, self._charged = self._charged, self._connection.read_so_far
        frames, size = self._charged[0] - before[0], self._charged[1] - before[1]
        if not frames:
            return
        now = trio.current_time()
        allowance, limits = self._allowance, self._options.requests
        wait = allowance.charge(message, frames, size, now)
        if wait < 0:
            return
        excess = allowance.excess_secs(self._backlog, now)
        if excess is not None:
            what = f"this client asks for more than {allowance.exceeded} a second"
            if excess >= limits.patience_secs:
                why = f"{what}, for {limits.patience_secs:g} s"
                last_words = Error(code=ErrorCode.TOO_MUCH, message=why, fatal=True)
                self.end(f"too much: {why}", last_words=last_words)
            elif allowance.may_tell(now):
                log.info("%s: %s: reading more slowly", self, what)
                remedy = "wait for answers before sending more requests, or the connection will be closed"
                self.send(Error(code=ErrorCode.TOO_MUCH, message=what, remedy=remedy))
        await trio.sleep(wait)

    # ------------------------------------------------------------------- sending

    async def _send_loop(self, on_drained: Callable[[ClientConnection], None]) -> None:
        try:
            await self._send_queued(on_drained)
        except trio.BrokenResourceError:
            # The receive loop finds out why, if there is more to find out than that it is gone.
            await trio.sleep(_LAST_WORDS_SECS)
            raise

    async def _send_queued(self, on_drained: Callable[[ClientConnection], None]) -> None:
        while self._ending is None:
            entry = self._queue.pop()
            if entry is not None:
                self._idle = False
                if self.grant is not None:
                    self.grant.on_change()
                await self._send(entry.data or b"")
            elif self._closing and not len(self._queue):
                self.end("the session ended", normal=True)
                return
            else:
                self._more = trio.Event()
                self._idle = not len(self._queue)
                if self._idle:
                    on_drained(self)
                await self._more.wait()

    async def _send(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        self._cut = True
        while len(view):
            with trio.fail_after(self._options.stall_secs):
                await self.transport.send_all(view[:_CHUNK])
            view = view[_CHUNK:]
            self.last_taken = trio.current_time()
            if self.grant is not None:
                self.grant.waived = False
        self._cut = False

    def greet_back(self, messages: list[Message]) -> None:
        """Queue the answer to the greeting and the bootstrap: one entry, however many spaces there are."""
        self._queue.add_message(
            b"".join(self._form(self._connection.send(message)) for message in messages)
        )

    def send(self, message: Message) -> None:
        """Queue a message for this client alone."""
        if self._may_send:
            self.push_message(self._connection.send(message))

    def push_message(self, data: bytes, *, schema: bool = False) -> None:
        """Queue an encoded message; too many of them end the client."""
        if self._ending is not None:
            return
        if self._deferred is not None and not schema:
            self._deferred.append(data)
            return
        data = self._form(data)
        if self._sends_now(data, EntryKind.MESSAGE, 0):
            return
        try:
            self._queue.add_message(data)
        except TooSlow as error:
            self._end_too_slow(error)
        self._memory.relieve()
        self._more.set()

    def _form(self, data: bytes) -> bytes:
        """Frames in the form that this client accepts."""
        return data if self.takes_zstd else without_zstd(data)

    def push_if_room(self, data: bytes) -> bool:
        """Queue a message that a later one supersedes, unless others wait already; return whether it did."""
        if self._queue.crowded:
            return False
        self.push_message(data)
        return True

    def _sends_now(self, data: bytes, kind: EntryKind, sequence: int) -> bool:
        """Send directly past the empty queue; return whether the socket took all, or the rest is queued."""
        if not self._idle or len(self._queue):
            return False
        sent = self.transport.send_now(data)
        if sent:
            self.last_taken = trio.current_time()
        if sent == len(data):
            return True
        if sent == 0:
            return False
        self._cut = True
        self._queue.add_rest(kind, memoryview(data)[sent:], sequence)
        self._memory.relieve()
        self._more.set()
        return True

    # -------------------------------------------------------------------- events

    def is_due(self, snapshot: SharedEvent) -> bool:
        """Whether this client requests an event this soon after its last one."""
        last = self._last_moment_nanos
        return last is None or snapshot.moment_nanos - last >= self.interval_nanos

    def push_event(self, snapshot: SharedEvent, *, must: bool) -> None:
        """Queue an event, or drop it and the queued ones if there are too many."""
        if self._ending is not None:
            return
        sequence = snapshot.sequence
        data = snapshot.bytes_for(self.wants, zstd=self.takes_zstd)
        self._last_moment_nanos = snapshot.moment_nanos
        if self._sends_now(data, EntryKind.MUST if must else EntryKind.EVENT, sequence):
            return
        try:
            dropped = self._queue.add_event(data, sequence, must=must, keep=self.grant is not None)
        except TooSlow as error:
            self._end_too_slow(error)
            return
        if dropped:
            self.refused_event = self.grant is not None
            self.miss(sequence, dropped, Behind.SLOW)
        self._memory.relieve()
        self._more.set()

    def capacity(self) -> Capacity | None:
        """Its free capacity, if it is to be waited for: not while it waits for a keyframe anyway."""
        grant = self.grant
        if (
            grant is None
            or grant.waived
            or self.behind is not Behind.NO
            or self._ending is not None
        ):
            return None
        events, size = self._queue.room()
        if events and size:
            grant.full_since = None
        elif grant.full_since is None:
            grant.full_since = trio.current_time()
        return Capacity(events, size, int(grant.deadline_secs * 1_000_000_000))

    def offer(self, snapshot: SharedEvent, *, must: bool) -> bool:
        """Queue an event if it is in step and requests it, or note that it misses it.

        Args:
            must: Whether it must get this event regardless of its subscription and speed.

        Returns:
            Whether it needs a keyframe now.
        """
        if self.behind is Behind.NO:
            if must or self.is_due(snapshot):
                self.push_event(snapshot, must=must)
            else:
                self.miss(snapshot.sequence, 1, Behind.RATE)
            return False
        self.miss(snapshot.sequence, 1, self.behind)
        if must:
            self.defer()
            return True
        return self.behind is Behind.RATE and self.is_due(snapshot)

    @property
    def waiting_events(self) -> int:
        """Number of its queued events."""
        return self._queue.events

    @property
    def waiting_bytes(self) -> int:
        """Bytes of those."""
        return self._queue.event_bytes

    @property
    def own_bytes(self) -> int:
        """Bytes that are queued for it, or being sent to it, and to no other client."""
        return self._queue.own_bytes

    @property
    def holds_any(self) -> bool:
        """Whether anything is queued for it, or being sent to it."""
        return self._queue.holds_any

    @property
    def crowded(self) -> bool:
        """Whether messages that can wait should wait."""
        return self._queue.crowded

    def miss(self, sequence: int, events: int, why: Behind) -> None:
        """Note that it does not get the snapshot with this number, and how many in all."""
        if self.behind is Behind.NEW:
            return  # it did not miss events from before it joined
        self._missed += events
        self._missed_sequence = sequence
        if self.behind is Behind.NO:
            self.behind = why

    def follow_lost(self, lost: int) -> None:
        """Count the events that the server itself lost since the last call; a client in step is informed now, others with their keyframe.

        Args:
            lost: See `Core.lost`.
        """
        more, self._server_lost = max(0, lost - self._server_lost), max(lost, self._server_lost)
        if more and self.behind is not Behind.NEW:
            self._lost_events += more
            if self.behind is Behind.NO:
                self._tell_missed()

    def _tell_missed(self) -> None:
        """Send how many events it has missed since the last message, if any."""
        events, self._missed, self._lost_events = self._missed + self._lost_events, 0, 0
        if events:
            self._missed_total += events
            self.send(Missed(events=events, total=self._missed_total))

    @property
    def lags(self) -> bool:
        """Whether it joined before the latest event and does not have that."""
        return self.behind not in (Behind.NO, Behind.NEW) and self._ending is None

    def defer(self) -> None:
        """Hold everything but schema back until a keyframe: the target is held, and PAUSED must follow its data."""
        if self._deferred is None:
            self._deferred = []
        self._must_keyframe = True

    def place_keyframe(self, sequence: int, moment_nanos: int) -> QueueEntry:
        """Send what was missed, reserve the place of a keyframe, and release what was held back for it."""
        self._missed += self._queue.drop_events(keyframes=True)
        if self._missed and self._missed_sequence == sequence:
            self._missed -= 1  # the keyframe is of this one
        deferred, self._deferred = self._deferred or [], None
        self._tell_missed()
        self._last_moment_nanos = moment_nanos
        entry = self._queue.add_place(sequence, must=self._must_keyframe)
        self._must_keyframe = False
        self._in_step(deferred)
        return entry

    def fill(self, entry: QueueEntry, data: bytes) -> None:
        """Insert the finished keyframe."""
        if entry.dropped or self._ending is not None:
            return
        self._queue.fill(entry, data)
        self._memory.relieve()
        self._more.set()

    def nothing_yet(self) -> None:
        """Note that there is no snapshot yet: the first will need no earlier frame."""
        deferred, self._deferred = self._deferred or [], None
        self._in_step(deferred)

    def _in_step(self, deferred: list[bytes]) -> None:
        self.behind = Behind.NO
        self.waiting = False
        if self.grant is not None:
            self.grant.on_change()
        for data in deferred:
            self.push_message(data)


def _protocol_error(error: RemoteProtocolError) -> Error:
    remedy = (
        "install the same release of GCspy at both ends"
        if isinstance(error, VersionMismatch)
        else ""
    )
    return Error(code=ErrorCode.PROTOCOL, message=str(error), remedy=remedy, fatal=True)
