"""One playback and the clients that see it: its owner, and the followers.

    clients ──commands──▶ ┌ the playback_session's task, one thing after the other ┐ ──pictures, state──▶ every viewer's queue
    the clock ──due─────▶ └ reading and decoding in a worker thread ────────┘

The leader, who owns the playback, gets every event, however slowly it reads: the playback waits for
it. A follower that does not keep up misses events, and gets a keyframe, as in a live session.

Knows one playback and its viewers; `commands` knows the requests of clients.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

import trio
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode
from gcspy_protocol.errors import RecordingError
from gcspy_protocol.messages import Error, ErrorCode, Message, State
from gcspy_protocol.model import ControlState, EventFilter, Space

from gcspy_replay.playback import Move, RecordingPlayback, Sender, keyframe_of
from gcspy_replay.player.leader import LeaderOf
from gcspy_replay.player.picture import PlayedPicture
from gcspy_session.client import Behind, ClientConnection
from gcspy_session.controller_watchdog import ControllerWatchdog
from gcspy_session.interest import Interest

if TYPE_CHECKING:
    from gcspy_replay.player.host import PlaybackHost

__all__ = ["Begin", "PlaybackSession", "Work", "nanos_now"]

Work = Callable[[RecordingPlayback, int], Move | None]
"""An operation on a playback, one at a time, in a worker thread; the events that it shows are sent to the viewers."""

Begin = Callable[[], tuple[RecordingPlayback, Work]]
"""Makes a playback and returns the first event to show; in a worker thread."""

log = logging.getLogger("gcspy.server")

_AHEAD_EVENTS = 8
_AHEAD_BYTES = 8 << 20
"""Data queued for the leader before the playback waits: enough to keep a connection busy."""

_MOST_JOBS = 256
"""Commands that wait for a leader that sends and does not read."""


class _Job(NamedTuple):
    """A requested operation: on the playback, or, with the playback at rest, in the loop's thread."""

    client: ClientConnection | None
    work: Work | None
    call: Callable[[], None] | None = None


class _Facts(NamedTuple):
    """Fields of PLAYBACK, except the client that is followed."""

    first: int
    last: int
    growing: bool
    manner: m.SetPlayback
    filters: tuple[EventFilter, ...]


def nanos_now() -> int:
    """The time that playbacks go by: that of the loop."""
    return int(trio.current_time() * 1e9)


class PlaybackSession:
    """One playback and its viewers.

    Args:
        player: Its player.
        leader: Its owner.
        begin: Makes the playback.

    Attributes:
        leader: Its owner; None when all have left.
        ready: Whether the first picture was shown, so that others may follow.
        successor: Number of the follower that inherits it; None: the first.
        silent: Number of the viewer that lost the lead by its silence; None: there is none.
        watchdog: Whether the leader lives.
    """

    def __init__(self, player: PlaybackHost, leader: ClientConnection, begin: Begin) -> None:
        self.leader: ClientConnection | None = leader
        self.ready = False
        self.successor: int | None = None
        self.silent: int | None = None
        self._player = player
        self._begin = begin
        self._viewers: dict[int, ClientConnection] = {leader.number: leader}
        self._opened: RecordingPlayback | None = None
        self._sender = Sender()
        self._spaces: tuple[Space, ...] = ()
        self._epoch = 0
        self._jobs: deque[_Job] = deque()
        self._wakeup = trio.Event()
        self._scope = trio.CancelScope()
        self._shown = 0
        self._moment_nanos = 0
        self._facts: _Facts | None = None
        self._state: State | None = None
        self._filters: tuple[EventFilter, ...] = ()
        self._told_triggers = 0
        self._settings = m.Settings(settings=())
        self._budget: m.Budget | None = None
        self._lossless: dict[int, float] = {}
        self._full_since: float | None = None
        self.watchdog = ControllerWatchdog(
            LeaderOf(player, self),
            silence_secs=player.options.silence_secs,
            succession_secs=player.options.succession_secs,
        )

    @property
    def playback(self) -> RecordingPlayback:
        """The playback; not to be touched while a worker thread has it: only in a job."""
        assert self._opened is not None, "it was opened"
        return self._opened

    @property
    def viewers(self) -> Iterable[ClientConnection]:
        """The clients that see it, the leader first."""
        return self._viewers.values()

    @property
    def numbers(self) -> Collection[int]:
        """Their numbers."""
        return self._viewers.keys()

    @property
    def shown(self) -> int:
        """Number of displayed events."""
        return self._shown

    def viewer(self, number: int | None) -> ClientConnection | None:
        """A viewer; None: there is no such viewer."""
        return self._viewers.get(number or 0)

    @property
    def heir(self) -> ClientConnection | None:
        """The client that inherits it: the leader's successor, else the first follower that has not just gone silent."""
        named = self._viewers.get(self.successor or 0)
        others = [one for one in self._viewers.values() if one is not self.leader]
        heard = [one for one in others if one.number != self.silent]
        return named or next(iter(heard or others), None)

    @property
    def spaces(self) -> tuple[Space, ...]:
        """The schema, as sent to every viewer."""
        return self._spaces

    # ------------------------------------------------------------------ its task

    async def run(self) -> None:
        """Play, until the last viewer has left."""
        try:
            with self._scope:
                await self._open()
                while True:
                    await self._turn()
        except RecordingError as error:
            self._fail(f"the recording cannot be read: {error}")
        except Exception as error:
            log.exception("a playback ended because of an internal error")
            self._fail(f"internal error: {error!r}")
        finally:
            if self._opened is not None:
                self._opened.recording.close()

    def stop(self) -> None:
        """End it."""
        self._scope.cancel()

    def _fail(self, why: str) -> None:
        for client in list(self.viewers):
            client.end(why, last_words=Error(code=ErrorCode.BAD_REQUEST, message=why, fatal=True))

    async def _open(self) -> None:
        """Open the recording, show the first event, and welcome the waiting client."""
        now, wants = nanos_now(), self._wants()

        def begin() -> tuple[RecordingPlayback, PlayedPicture | None]:
            playback, work = self._begin()
            try:
                return playback, self._picture(work(playback, now), wants)
            except BaseException:
                playback.recording.close()
                raise

        playback, picture = await trio.to_thread.run_sync(begin)
        self._opened = playback
        if picture is not None:
            self._spaces, self._epoch = picture.passage.spaces, picture.passage.epoch
        self._state, self._filters, self._facts = (
            playback.state,
            playback.filters,
            self._facts_now(),
        )
        self._settings, self._budget = playback.session.settings, playback.session.budget
        self.ready = True
        leader = self.leader
        if leader is None:
            return
        if leader.number in self._player.welcomed:
            self._tell_everything(leader)
        else:
            self._player.welcome(leader, self)
        leader.nothing_yet()
        if picture is not None:
            self._share(picture, must=True, bootstrapped=True)
        self._player.tell_clients()

    def bootstrap(self, client: ClientConnection) -> list[Message]:
        """Schema, filters, state and manner of playing, as a client must know them before its first picture."""
        messages: list[Message] = [m.SpaceDefined(space=space) for space in self._spaces]
        messages.append(m.EpochEnd(epoch=self._epoch))
        messages.append(m.Filters(filters=self.playback.filters))
        messages.append(self._state or State(state=ControlState.RUNNING))
        messages.append(self._player.clients_for(self))
        messages.append(m.Counters(counts=self.playback.session.counters))
        messages.append(self._playback_message(client))
        triggers = self.playback.triggers.announcement()
        messages += [triggers] if triggers.triggers else []
        # Of the recorded session, at the displayed event.
        messages += [self._settings] if self._settings.settings else []
        messages += [self._budget] if self._budget is not None else []
        return messages

    def _tell_everything(self, client: ClientConnection) -> None:
        """Send a client everything that it needs before it gets events of this playback."""
        for message in self.bootstrap(client):
            schema = isinstance(message, (m.SpaceDefined, m.EpochEnd))
            client.push_message(encode(message).data, schema=schema)

    async def _turn(self) -> None:
        """Do one thing, or wait for one."""
        full = self._is_full()
        job = self._next_job(full=full)
        if job is not None:
            await self._do(job)
            return
        if any(client.waiting for client in self.viewers):
            await self._send_keyframes()
            return
        due = self.playback.due_nanos
        if due is None:
            await self._wait(float("inf"))
        elif full:
            await self._wait(self._patience())
        elif (early := due - nanos_now()) > 0:
            await self._wait(early / 1e9)
        else:
            await self._advance()

    def _next_job(self, *, full: bool) -> _Job | None:
        """The next operation; requests of the leader wait until it has read the results of earlier ones, other requests do not wait for it."""
        for i, job in enumerate(self._jobs):
            if not full or (job.client is not None and job.client is not self.leader):
                del self._jobs[i]
                return job
        return None

    async def _wait(self, secs: float) -> None:
        with trio.move_on_after(secs):
            await self._wakeup.wait()
        self._wakeup = trio.Event()

    def wake(self) -> None:
        """Something may have changed."""
        self._wakeup.set()

    # ------------------------------------------------------------------ work

    def ask(self, client: ClientConnection | None, work: Work) -> None:
        """Queue an operation on the playback, in the order of the requests."""
        self._enqueue(_Job(client, work))

    def later(self, client: ClientConnection | None, call: Callable[[], None]) -> None:
        """Call a function in the loop's thread, with the playback at rest, after earlier requests."""
        self._enqueue(_Job(client, None, call))

    def _enqueue(self, job: _Job) -> None:
        if job.client is not None and len(self._jobs) >= _MOST_JOBS:
            why = f"{len(self._jobs)} commands are pending, and their results are not read"
            job.client.end(
                f"too slow: {why}",
                last_words=Error(code=ErrorCode.TOO_SLOW, message=why, fatal=True),
            )
            return
        self._jobs.append(job)
        self.wake()

    async def _do(self, job: _Job) -> None:
        """Execute a command and send its results."""
        if job.client is not None and job.client.number not in self._viewers:
            return  # it has gone meanwhile
        if job.call is not None:
            job.call()
        if job.work is not None:
            work, playback, now, wants = job.work, self.playback, nanos_now(), self._wants()
            try:
                picture = await trio.to_thread.run_sync(
                    lambda: self._picture(work(playback, now), wants)
                )
            except RecordingError as error:
                picture = None
                if job.client is not None:
                    job.client.send(Error(code=ErrorCode.BAD_REQUEST, message=str(error)))
            if picture is not None:
                self._share(picture, must=True)
        self._tell_changes()

    async def _advance(self) -> None:
        """Show what is due; several events in one visit to a worker thread, if they are due already."""
        playback, now, wants = self.playback, nanos_now(), self._wants()
        most = 1 if self.leader is None else max(1, _AHEAD_EVENTS - self.leader.waiting_events)

        def advance() -> list[PlayedPicture]:
            found: list[PlayedPicture] = []
            state = playback.state
            while len(found) < most:
                picture = self._picture(playback.advance(now), wants)
                if picture is not None:
                    found.append(picture)
                due = playback.due_nanos
                if picture is None or playback.state is not state or due is None or due > now:
                    break
            return found

        self._full_since = None
        for picture in await trio.to_thread.run_sync(advance):
            self._share(picture, must=False)
        self._tell_changes()

    def _picture(self, move: Move | None, wants: Iterable[Interest]) -> PlayedPicture | None:
        """The data to send for a move; in a worker thread."""
        if move is None:
            return None
        picture = PlayedPicture(self._sender.passage(move), fired=move.fired)
        picture.prepare(wants)
        return picture

    def _wants(self) -> set[Interest]:
        return {client.wants for client in self.viewers}

    # ------------------------------------------------------------------ telling

    def _share(self, picture: PlayedPicture, *, must: bool, bootstrapped: bool = False) -> None:
        """Give a picture to every viewer.

        Args:
            picture: The event.
            must: It was requested, so that the leader gets it whatever its rate.
            bootstrapped: The viewers have the schema already.
        """
        self._shown += 1
        self._moment_nanos = nanos_now()
        picture.sequence, picture.moment_nanos = self._shown, self._moment_nanos
        passage = picture.passage
        self._spaces, self._epoch = passage.spaces, passage.epoch
        for client in list(self.viewers):
            if passage.schema and not bootstrapped:
                client.push_message(passage.schema, schema=True)
            leads = client is self.leader
            wanted = must or client.is_due(picture)
            if client.offer(picture, must=leads and (wanted or bool(picture.fired))):
                client.waiting = True
        for fired in picture.fired:
            data = encode(fired).data
            for client in list(self.viewers):
                (client.push_message if fired.pauses else client.push_if_room)(data)

    def _tell_changes(self) -> None:
        """Send the viewers changes of the state and the parameters."""
        playback = self.playback
        if playback.state != self._state:
            self._state = playback.state
            if not playback.running:
                self._bring_up_to_date()
            self.tell_all(playback.state)
        if playback.filters != self._filters:
            self._filters = playback.filters
            self.tell_all(m.Filters(filters=playback.filters))
        if playback.triggers.changes != self._told_triggers:
            self._told_triggers = playback.triggers.changes
            self.tell_all(playback.triggers.announcement())
        settings, budget = playback.session.settings, playback.session.budget
        if settings != self._settings:
            self._settings = settings
            self.tell_all(settings)
        if budget is not None and budget != self._budget:
            self._budget = budget
            self.tell_all(budget)
        facts = self._facts_now()
        if facts != self._facts:
            self._facts = facts
            for client in self.viewers:
                client.send(self._playback_message(client))

    def _bring_up_to_date(self) -> None:
        """When a playback stops, send the current event to viewers with a lower rate."""
        for client in self.viewers:
            if client.behind is Behind.RATE:
                client.defer()
                client.waiting = True

    def tell_all(self, message: Message) -> None:
        """Queue a message for every viewer."""
        data = encode(message).data
        for client in list(self.viewers):
            client.push_message(data)

    def _facts_now(self) -> _Facts:
        playback = self.playback
        table = playback.timetable
        filters = tuple(playback.session.filters.values())
        return _Facts(table.first, table.last, playback.growing, playback.manner, filters)

    def _playback_message(self, client: ClientConnection) -> m.Playback:
        facts = self._facts or self._facts_now()
        follows = None if self.leader is None or client is self.leader else self.leader.number
        return m.Playback(**facts._asdict(), follows=follows)

    async def _send_keyframes(self) -> None:
        """Send viewers that joined late, or missed events, a keyframe."""
        playback = self.playback
        if not playback.number:
            for client in self.viewers:
                if client.waiting:
                    client.nothing_yet()
            return
        wants = {client.wants for client in self.viewers if client.waiting}

        def encoded() -> PlayedPicture:
            picture = PlayedPicture(keyframe_of(playback.session, playback.number))
            picture.prepare(wants)
            return picture

        picture = await trio.to_thread.run_sync(encoded)
        for client in list(self.viewers):
            if client.waiting:
                entry = client.place_keyframe(self._shown, self._moment_nanos)
                client.fill(entry, picture.bytes_for(client.wants, zstd=client.takes_zstd))

    # ------------------------------------------------------------------ who sees it

    def add(self, client: ClientConnection, *, told: bool = False) -> None:
        """Add a follower; it has no spaces, unless it got the schema already."""
        self._viewers[client.number] = client
        if not told:
            self._tell_everything(client)
        client.behind = Behind.NEW
        client.waiting = True
        self.wake()

    def remove(self, client: ClientConnection) -> None:
        """A viewer leaves; if it was the leader a follower inherits: the named one, else the first."""
        if self._viewers.pop(client.number, None) is None:
            return
        self._lossless.pop(client.number, None)
        if client is self.leader:
            self.lead(self.heir)
        elif client.number == self.successor:
            self.successor = None
        self.wake()

    def lead(self, heir: ClientConnection | None) -> None:
        """Pass it to another viewer; None: it ends."""
        self.leader = heir
        if heir is None:
            self.stop()
            return
        if heir.number == self.successor:
            self.successor = None
        if self.ready:
            for viewer in self.viewers:
                viewer.send(self._playback_message(viewer))
        self.wake()

    def farewell(self, client: ClientConnection) -> None:
        """Take the schema back from a client that goes to another playback."""
        for space in self._spaces:
            client.push_message(encode(m.SpaceRemoved(space=space.id)).data, schema=True)

    def wait_for(self, client: ClientConnection, deadline_secs: float) -> None:
        """Wait for a lossless follower, up to a limit at one event; 0 ends it."""
        if deadline_secs:
            self._lossless[client.number] = deadline_secs
        else:
            self._lossless.pop(client.number, None)

    def drained(self, client: ClientConnection) -> None:
        """A viewer has read everything."""
        if client.behind is Behind.SLOW:
            client.waiting = True
        self.wake()

    def _is_full(self) -> bool:
        """Whether the leader, or a lossless follower in its time, has enough to read."""
        if self.leader is not None and _has_enough(self.leader):
            return True
        lagging = [
            self._lossless[number]
            for number in self._lossless
            if _has_enough(self._viewers[number])
        ]
        if not lagging:
            self._full_since = None
            return False
        now = trio.current_time()
        if self._full_since is None:
            self._full_since = now
        return now - self._full_since < max(lagging)

    def _patience(self) -> float:
        if self._full_since is None:
            return float("inf")
        return max(
            0.0, self._full_since + max(self._lossless.values(), default=0.0) - trio.current_time()
        )


def _has_enough(client: ClientConnection) -> bool:
    return client.waiting_events >= _AHEAD_EVENTS or client.waiting_bytes >= _AHEAD_BYTES
