"""The player: a recording, the clients that have joined, and the playbacks that they see.

Runs in the trio thread, like a session, and admits clients in the same way. Every playback reads
the recording through files of its own, so that none waits for another.

Knows the clients and which playback each sees; the playback_sessions know the events.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial

import trio
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode
from gcspy_protocol.errors import RecordingError
from gcspy_protocol.messages import Error, Message
from gcspy_protocol.model import EventFilter, Mode, PauseActsOn
from gcspy_protocol.playback import Seek, SetPlayback
from gcspy_protocol.trigger_set import TriggerSet

from gcspy_replay.file import Recording
from gcspy_replay.playback import Move, RecordingPlayback, Timetable
from gcspy_replay.player import commands
from gcspy_replay.player.class_of import ClassOf
from gcspy_replay.player.playback_session import Begin, PlaybackSession, Work
from gcspy_replay.player.questions import TraceQueryService
from gcspy_session.attendance import Attendance, client_message
from gcspy_session.client import ClientConnection, log
from gcspy_session.controller_watchdog import ControllerWatchdog, watch_controllers
from gcspy_session.network.transport import Transport
from gcspy_session.options import SessionOptions
from gcspy_session.questions import Questions
from gcspy_session.reception import Reception

__all__ = ["PlaybackStart", "Player"]

_LOOK_SECS = 0.2
"""How often a growing recording is checked."""

_SILENT_SECS = 30.0
"""A recording that was not closed and has not grown for this long is no longer waited for; it is still checked."""

_PAGE_ROWS = 8192
"""Events in a page of the timeline: some 300 kB before compression, so that an event behind it does not wait long."""

_MOST_HELD = 256
"""Commands of a client that goes to another playback; it sends them there before it has come."""

_FAREWELL_SECS = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PlaybackStart:
    """How a playback begins for a client that joins.

    Attributes:
        manner: How it is played.
        loops: Whether all that there is, is played over and over; the manner may name a range instead.
        running: Whether it runs.
        number: Number of the first event; None: the first, or backwards the last.
        filters: Event filters; missing kinds pass.
    """

    manner: SetPlayback = field(default_factory=SetPlayback)
    loops: bool = False
    running: bool = True
    number: int | None = None
    filters: tuple[EventFilter, ...] = ()


class Player:
    """Serves a recording.

    Args:
        recording: The recording; the player closes it.
        token: The token for clients whose transport does not identify them; None: such clients are
            refused.
        options: Limits and deadlines.
        beginning: How each playback begins.
        growing: Whether a recorder may still write it; None: if it was not closed.
        query_service: Answers questions about tiles; None: there is none.

    Attributes:
        recording: The recording, as opened; playbacks have copies.
        timetable: Its events.
        options: Limits and deadlines.
        welcomed: Clients that got their bootstrap, by number.
        growing: Whether more events may come.
        query_service: Answers questions about tiles.
        questions: Questions of clients.
        attendance: The participants, and what the leaders of playbacks are viewing.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        token: str | None = None,
        options: SessionOptions | None = None,
        beginning: PlaybackStart | None = None,
        growing: bool | None = None,
        query_service: TraceQueryService | None = None,
    ) -> None:
        self.recording = recording
        self.query_service = query_service
        self.timetable = Timetable(recording)
        self.options = options or SessionOptions()
        self.welcomed: dict[int, ClientConnection] = {}
        self.growing = not recording.finished if growing is None else growing
        self._beginning = beginning or PlaybackStart()
        self._id = secrets.token_hex(8)
        self._clients: dict[int, ClientConnection] = {}
        self.questions = Questions(self._clients.keys, rest=0)  # an answer slows down no program
        self._playback_sessions: dict[int, PlaybackSession] = {}
        self._told_rows: dict[int, int] = {}
        self._moving: dict[int, list[Message]] = {}
        self.attendance = Attendance(self)
        self._class = ClassOf(self)
        self._reception = Reception(
            self.options,
            token,
            admit=self._admit,
            handle=self._handle,
            drained=self._drained,
            remove=self._remove,
        )
        self._lock = (
            threading.Lock()
        )  # copies are made in worker threads, while another may read new data
        self._nursery: trio.Nursery | None = None
        self._gone = trio.Event()

    # ------------------------------------------------------------------ its loops

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the playbacks, until cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._look_loop)
                nursery.start_soon(self.attendance.run)
                nursery.start_soon(self.questions.run)
                nursery.start_soon(watch_controllers, self._watchdogs)
                task_status.started()
        finally:
            self._nursery = None
            self.recording.close()

    async def _look_loop(self) -> None:
        """Check whether the recorder has written more, until it has closed the recording."""
        grown_at = trio.current_time() if self.growing else float("-inf")
        finished = self.recording.finished
        while not finished:
            await trio.sleep(_LOOK_SECS)
            try:
                grown = await trio.to_thread.run_sync(self._refresh)
            except RecordingError as error:
                log.warning("new events of the recording cannot be read: %s", error)
                break
            now = trio.current_time()
            grown_at = now if grown else grown_at
            finished = self.recording.finished
            growing = not finished and now - grown_at < _SILENT_SECS
            if grown or growing != self.growing:
                self._grow(growing)
        if self.growing:
            self._grow(False)
        await trio.sleep_forever()  # playbacks run in the same nursery

    def _refresh(self) -> bool:
        with self._lock:
            grown = self.recording.refresh()
            return self.timetable.refresh() or grown

    def _again(self) -> Recording:
        """A copy of the recording for one playback; in a worker thread."""
        with self._lock:
            return self.recording.again()

    def _grow(self, growing: bool) -> None:
        """There is more, or nothing more will come."""
        self.growing = growing
        for playback_session in self.playback_sessions:
            playback_session.later(None, partial(_settle, playback_session, growing))
        for client in self.welcomed.values():
            self.tell_timeline(client)

    # ------------------------------------------------------------------ clients

    def _watchdogs(self) -> list[ControllerWatchdog]:
        """One for each playback that can be seen."""
        return [
            playback_session.watchdog
            for playback_session in self.playback_sessions
            if playback_session.ready
        ]

    @property
    def playback_sessions(self) -> set[PlaybackSession]:
        """All playbacks."""
        return set(self._playback_sessions.values())

    def playback_session_of(self, number: int) -> PlaybackSession | None:
        """The playback that a client sees."""
        return self._playback_sessions.get(number)

    async def serve(self, transport: Transport) -> None:
        """Serve one connection to its end."""
        await self._reception.serve(transport)

    def _admit(self, client: ClientConnection, hello: m.Hello) -> Error | None:
        """Admit a client, or reply why not; it is welcomed when its first event is ready."""
        refusal = self._reception.refusal_of(client, hello, present=len(self._clients))
        self.attendance.greeted(client, hello)
        if refusal is not None:
            return refusal
        self._clients[client.number] = client
        if hello.wants_control:
            self._class.offers(client)
        leading = self._class.playback_session
        if client.presence.following and leading is not None:
            self._playback_sessions[client.number] = leading
            self.welcome(client, leading)
            leading.add(client, told=True)
            self.tell_clients()
            self.attendance.bring(client, leading.leader)
            log.info("%s connected, and follows", client)
            return None
        beginning = self._beginning
        if hello.pause_at_connect:
            beginning = replace(beginning, running=False)
        self._start(client, partial(self._begin, beginning))
        log.info("%s connected", client)
        return None

    def _start(self, client: ClientConnection, begin: Begin) -> None:
        """Give a client a playback of its own."""
        assert self._nursery is not None, "clients come while it runs"
        playback_session = PlaybackSession(self, client, begin)
        self._playback_sessions[client.number] = playback_session
        self._nursery.start_soon(playback_session.run)

    def _begin(self, beginning: PlaybackStart) -> tuple[RecordingPlayback, Work]:
        """A playback for a client that joins; in a worker thread."""
        manner = beginning.manner
        if beginning.loops and len(self.timetable):
            manner = replace(manner, loop=(self.timetable.first, self.timetable.last))
        playback = RecordingPlayback(
            self._again(),
            timetable=self.timetable,
            manner=manner,
            filters=beginning.filters,
            running=beginning.running,
            growing=self.growing,
            triggers=_triggers(),
        )
        return playback, partial(_first_picture, beginning.number)

    def welcome(self, client: ClientConnection, playback_session: PlaybackSession) -> None:
        """Answer a greeting: the session, and its content."""
        recorded = self.recording.welcome
        target = {
            **recorded.target,
            "recorded mode": recorded.mode.value,
            "recorded pause": recorded.pause_acts_on.value,
        }
        welcome = replace(
            recorded,
            session=self._id,
            client_id=client.number,
            controller=client is playback_session.leader,
            mode=Mode.PLAYBACK,
            pause_acts_on=PauseActsOn.PLAYBACK,
            target=target,
        )
        self.welcomed[client.number] = client
        self._class.choose()
        client.greet_back([welcome, *playback_session.bootstrap(client)])
        self.tell_timeline(client)

    def tell_timeline(self, client: ClientConnection) -> None:
        """Send a client more of the timeline, unless its queue is long."""
        # A page that goes into the socket at once leaves the queue empty, and this is not called again.
        while not client.crowded:
            told = self._told_rows.get(client.number)
            page = self.timetable.page(told or 0, _PAGE_ROWS, fresh=told is None)
            if page is None:
                return
            self._told_rows[client.number] = page.first + len(page.rows) - 1
            client.push_message(encode(page).data)

    def _handle(self, client: ClientConnection, message: Message) -> None:
        playback_session = self._playback_sessions[client.number]
        if client.number not in self.welcomed:
            playback_session.later(
                client, partial(self._handle, client, message)
            )  # not before it is greeted back
            return
        held = self._moving.get(client.number)
        if held is not None and not isinstance(message, m.Ping):
            self._hold(client, held, message)
            return
        refusal = commands.obey(self, playback_session, client, message)
        if refusal is not None:
            client.send(refusal)

    def _drained(self, client: ClientConnection) -> None:
        if client.number in self.welcomed:
            self._playback_sessions[client.number].drained(client)
            self.tell_timeline(client)

    def _remove(self, client: ClientConnection) -> None:
        if self._clients.pop(client.number, None) is None:
            return
        self._told_rows.pop(client.number, None)
        self._moving.pop(client.number, None)
        self.attendance.forget(client)
        playback_session = self._playback_sessions.pop(client.number)
        self._class.leaves(client, playback_session)
        playback_session.remove(client)
        if self.welcomed.pop(client.number, None) is not None:
            self.tell_clients()
        if not self._clients:
            self._gone.set()

    def _hold(self, client: ClientConnection, held: list[Message], message: Message) -> None:
        if len(held) >= _MOST_HELD:
            why = f"{len(held)} commands are pending"
            client.end(
                f"too slow: {why}",
                last_words=Error(code=m.ErrorCode.TOO_SLOW, message=why, fatal=True),
            )
            return
        held.append(message)

    def move(self, client: ClientConnection, go: Callable[[], Error | None]) -> None:
        """Move a client to another playback, after its earlier requests to this one; later ones are for the other."""
        self._moving[client.number] = []
        self._playback_sessions[client.number].later(client, partial(self._move, client, go))

    def _move(self, client: ClientConnection, go: Callable[[], Error | None]) -> None:
        held = self._moving.pop(client.number, [])
        refusal = go()
        if refusal is not None:
            client.send(refusal)
        for message in held:
            self._handle(client, message)
        self.gather()

    def follow(self, client: ClientConnection, playback_session: PlaybackSession) -> None:
        """A client sees another playback from now on."""
        self._leave(client)
        self._playback_sessions[client.number] = playback_session
        playback_session.add(client)
        self.tell_clients()
        self.attendance.bring(client, playback_session.leader)

    def part(self, client: ClientConnection, playback: RecordingPlayback) -> None:
        """Give a former follower a playback of its own, at the other's position."""
        begin = partial(
            self._copy, playback.number, playback.state, playback.manner, playback.filters
        )
        self._leave(client)
        self._start(client, begin)

    def _copy(
        self, number: int, state: m.State, manner: SetPlayback, filters: tuple[EventFilter, ...]
    ) -> tuple[RecordingPlayback, Work]:
        """A playback at the position of another, with the same parameters; in a worker thread."""
        playback = RecordingPlayback(
            self._again(),
            timetable=self.timetable,
            manner=manner,
            filters=filters,
            growing=self.growing,
            triggers=_triggers(),
        )
        return playback, partial(_same_picture, number, state)

    def _leave(self, client: ClientConnection) -> None:
        before = self._playback_sessions[client.number]
        self._class.leaves(client, before)
        before.farewell(client)
        before.remove(client)

    def clients_for(self, playback_session: PlaybackSession, *, answers: bool = False) -> m.Clients:
        """The clients, for the viewers of a playback: its leader, and its successor.

        Args:
            answers: Whether their answers are included: for the leader of the class.
        """
        clients = tuple(
            client_message(client, answers=answers) for client in self.welcomed.values()
        )
        owner, heir = playback_session.leader, playback_session.heir
        return m.Clients(
            clients=clients,
            controller=None if owner is None else owner.number,
            successor=None if heir is None else heir.number,
            leader=self._class.leader,
        )

    def tell_clients(self) -> None:
        """Send all clients the list of clients and of the playbacks that they see, a few times a second at most."""
        self.attendance.changed_for_all()

    # ------------------------------------------------------------------ as a class (`attendance.Room`)

    def present(self) -> Collection[ClientConnection]:
        """All welcomed clients."""
        return self.welcomed.values()

    def followers_of(self, leader: ClientConnection) -> Collection[ClientConnection]:
        """The clients that receive what this client is viewing: the followers that see its playback."""
        playback_session = self._playback_sessions.get(leader.number)
        if playback_session is None or playback_session.leader is not leader:
            return ()
        return [
            one for one in playback_session.viewers if one.presence.following and one is not leader
        ]

    def shared_until(self, client: ClientConnection) -> int:
        """How many pictures the playback that it sees has shown."""
        return self._playback_sessions[client.number].shown

    def tell_present(self, clients: Collection[ClientConnection]) -> Collection[ClientConnection]:
        """Send these clients the list of participants; return those without room for it now."""
        lists: dict[PlaybackSession, bytes] = {}
        crowded: list[ClientConnection] = []
        for client in clients:
            playback_session = self._playback_sessions[client.number]
            if not playback_session.ready:
                continue  # it is sent with the first event
            if client.number == self._class.leader:
                own = encode(self.clients_for(playback_session, answers=True)).data
                if not client.push_if_room(own):
                    crowded.append(client)
                continue
            if playback_session not in lists:
                lists[playback_session] = encode(self.clients_for(playback_session)).data
            if not client.push_if_room(lists[playback_session]):
                crowded.append(client)
        return crowded

    def attend(self, client: ClientConnection, message: m.Attend) -> None:
        """Note a client's name, and whether it follows the class; one that no longer does gets a playback of its own."""
        followed = client.presence.following
        self.attendance.attend(client, message)
        if followed and not message.following and client.number not in self._moving:
            self.move(client, partial(self._class.part, client))
        self.gather()

    def gather(self) -> None:
        """Move followers to the leader's playback."""
        leading = self._class.playback_session
        for client in list(self.welcomed.values()):
            elsewhere = (
                leading is not None and self._playback_sessions[client.number] is not leading
            )
            if client.presence.following and elsewhere and client.number not in self._moving:
                self.move(client, partial(self._class.join, client))

    def hand_over(self, playback_session: PlaybackSession, heir: ClientConnection) -> None:
        """Pass a playback to another client, which then sees it."""
        if self._playback_sessions.get(heir.number) is playback_session:
            self.take_over(playback_session, heir)
        elif heir.number not in self._moving:
            self.move(heir, partial(self._class.come, heir, playback_session))

    def take_over(self, playback_session: PlaybackSession, heir: ClientConnection) -> None:
        """One who sees a playback leads it."""
        self._class.passes(playback_session, heir)
        playback_session.lead(heir)
        self.tell_clients()

    async def close(self, reason: str) -> None:
        """Send goodbye to all clients, and let them read their queues, within two seconds."""
        self._reception.closing = True
        for playback_session in self.playback_sessions:
            playback_session.stop()
        for client in list(self._clients.values()):
            if client.number in self.welcomed:
                client.send(m.Goodbye(reason=reason))
                client.close_when_sent()
            else:
                client.end(reason, normal=True)
        with trio.move_on_after(_FAREWELL_SECS):
            while self._clients:
                self._gone = trio.Event()
                await self._gone.wait()


def _triggers() -> TriggerSet:
    """Make a set of triggers with a time limit for evaluation, since any client may set some."""
    return TriggerSet(time_nanos=time.thread_time_ns)


def _settle(playback_session: PlaybackSession, growing: bool) -> None:
    playback_session.playback.growing = growing
    playback_session.playback.settle()


def _first_picture(number: int | None, playback: RecordingPlayback, now_nanos: int) -> Move | None:
    if number is not None and len(playback.timetable):
        return playback.seek(Seek(number=number), now_nanos)
    return playback.advance(now_nanos)


def _same_picture(
    number: int, state: m.State, playback: RecordingPlayback, now_nanos: int
) -> Move | None:
    move = playback.go(number, now_nanos) if number else None
    playback.state = state
    return move
