"""The session: the clients, the controller, and the messages to each client, in one order.

Runs in the trio thread. All data of the driver come out of the core's handoff_queue, complete; here
they are only distributed, so that a slow client costs the others nothing. Knows clients and the
core; does not know sockets.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial

import trio
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode
from gcspy_protocol.messages import Error, Message, State
from gcspy_protocol.model import ControlState, EventKind, Mode, PauseActsOn

from gcspy_server.clients import commands
from gcspy_server.clients.heap_questions import HeapQuestions
from gcspy_server.interpreter.core import (
    Audience,
    Core,
    Item,
    SchemaChange,
    SettingsChanged,
    TriggersChanged,
)
from gcspy_server.interpreter.transmission import KeyframeSource, Snapshot
from gcspy_server.names import TileNames
from gcspy_session.attendance import Attendance, client_message
from gcspy_session.client import Behind, ClientConnection, log
from gcspy_session.controller_watchdog import ControllerWatchdog, watch_controllers
from gcspy_session.interest import NOTHING, Interest, union_of
from gcspy_session.lossless import LosslessClients
from gcspy_session.network.transport import Transport
from gcspy_session.options import SessionOptions
from gcspy_session.questions import Questions
from gcspy_session.queue import QueueEntry
from gcspy_session.reception import Reception
from gcspy_session.roles import Roles

__all__ = ["Introduction", "Session"]

_PULSE_SECS = 1.0
_KEYFRAME_LOOK_SECS = 0.005
_FAREWELL_SECS = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Introduction:
    """Description of the session in Welcome; see `gcspy_server.server.Server`."""

    server: str
    events: tuple[EventKind, ...]
    mode: Mode
    pause_acts_on: PauseActsOn
    general_info: str = ""
    target: dict[str, str] = field(default_factory=dict)
    wall_offset_nanos: int = 0


class Session:
    """All clients of one server.

    Args:
        introduction: Description of the session.
        core: The driver's side.
        token: The token for clients whose connection does not identify them; None: such clients are
            refused.
        options: Limits and deadlines.

    Attributes:
        roles: The controller and its successor.
        names: Tile names by space, as of the latest snapshot, with its number.
        schema: The spaces, as last sent to clients.
        lossless: The clients that the driver's thread waits for.
        questions: The questions of clients.
        heap_questions: The controller's questions about objects and the references between them.
        attendance: The participants, and what the controller is viewing.
        watchdog: Watches whether the controller is alive.
        sequence: Sequence of the latest distributed snapshot.
    """

    def __init__(
        self, introduction: Introduction, core: Core, *, token: str | None, options: SessionOptions
    ) -> None:
        self.roles = Roles()
        self.core = core
        self.options = options
        self.names: dict[int, tuple[int, TileNames]] = {}
        self.lossless = LosslessClients(
            core.room.tell,
            introduction.pause_acts_on,
            lambda: self.roles.controller,
            silence_secs=options.silence_secs,
        )
        self._introduction = introduction
        self._id = secrets.token_hex(8)
        self._clients: dict[int, ClientConnection] = {}
        self.questions = Questions(self._clients.keys)
        self.heap_questions = HeapQuestions(
            self._clients.keys,
            lambda: core.investigator,
            lambda: core.explainer,
            lambda space: self.names.get(space, (0, None))[1],
            lambda: self.sequence,
        )
        self.attendance = Attendance(self)
        self.watchdog = ControllerWatchdog(
            self, silence_secs=options.silence_secs, succession_secs=options.succession_secs
        )
        self._reception = Reception(
            self.options,
            token,
            admit=self._admit,
            handle=self._handle,
            drained=self._drained,
            remove=self._remove,
        )
        self._wakeup = trio.Event()
        self._keyframe_wanted = trio.Event()
        self._told_counts: tuple[int, ...] = ()
        self._triggers_late = False
        self._state = core.flow.state
        self._gone = trio.Event()
        token_of_loop = trio.lowlevel.current_trio_token()
        opened = core.open_queue(partial(_wake, token_of_loop, self._wake))
        self.schema = opened.schema
        self.names = {space: (opened.sequence, one) for space, one in opened.names.items()}
        self._any_snapshot = opened.sequence > 0
        self.sequence = opened.sequence
        self._nursery: trio.Nursery | None = None

    # ------------------------------------------------------------------ its loops

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Distribute the driver's data, until cancelled."""
        self.core.flow.pulse()
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._pulse_loop)
                nursery.start_soon(self._keyframe_loop)
                nursery.start_soon(self.questions.run)
                nursery.start_soon(self.heap_questions.run)
                nursery.start_soon(self.attendance.run)
                nursery.start_soon(watch_controllers, lambda: (self.watchdog,))
                task_status.started()
                while True:
                    await self._wakeup.wait()
                    self._wakeup = trio.Event()
                    for item in self.core.handoff_queue.take():
                        self._share(item)
        finally:
            self.core.handoff_queue.close()
            self.core.room.tell(0, ())
            self.core.set_audience(Audience())
            self.core.flow.set_controlled(False, reason="the session ended")

    def _wake(self) -> None:
        self._wakeup.set()

    async def _pulse_loop(self) -> None:
        """Once a second: send a sign of life for a held target, and counters of filtered events."""
        while True:
            await trio.sleep(_PULSE_SECS)
            self.core.flow.pulse()
            counts = tuple(self.core.counts)
            if counts != self._told_counts:
                self._told_counts = counts
                data = encode(m.Counters(counts=counts)).data
                for client in self._clients.values():
                    client.push_if_room(data)
            self._tell_lost(self.core.lost)
            if self._triggers_late:
                self._tell_triggers_soon()
            self.lossless.check()

    async def _keyframe_loop(self) -> None:
        while True:
            await self._keyframe_wanted.wait()
            self._keyframe_wanted = trio.Event()
            # In a worker thread, since it may wait for the driver's thread, which may be encoding.
            await trio.to_thread.run_sync(self.core.post_keyframe, abandon_on_cancel=True)

    def want_keyframe(self, client: ClientConnection) -> None:
        """Send the client a keyframe of the latest snapshot as soon as one is copied."""
        if not client.waiting:
            client.waiting = True
            self._keyframe_wanted.set()

    # ---------------------------------------------------------------- distribution

    def _share(self, item: Item) -> None:
        match item:
            case Snapshot():
                self._share_snapshot(item)
            case State():
                self._state = item
                self._tell_lost(self.core.lost)
                if item.state is ControlState.ENDED:
                    self._bring_up()
                self.tell_all(item)
            case SchemaChange():
                self.schema = item
                living = {space.id for space in item.spaces}
                self.names = {space: name for space, name in self.names.items() if space in living}
                for message in item.messages:
                    data = encode(message).data
                    for client in self._clients.values():
                        client.push_message(data, schema=True)
            case KeyframeSource():
                self._share_keyframe(item)
            case m.Fired():
                data = encode(item).data
                for client in self._clients.values():
                    # No event follows a pause before a client resumes; without a pause events could
                    # fill any queue.
                    (client.push_message if item.pauses else client.push_if_room)(data)
            case TriggersChanged():
                self._tell_triggers_soon()
            case m.Budget():
                self.tell_all(item)
            case SettingsChanged():
                self.tell_all(self.core.settings.announcement())

    def _share_snapshot(self, snapshot: Snapshot) -> None:
        self._told_counts = snapshot.counts
        self._any_snapshot = True
        self.sequence = snapshot.event.sequence
        for space, names in snapshot.names.items():
            self.names[space] = (snapshot.event.sequence, names)
        self._tell_lost(snapshot.lost)
        controller = self.roles.controller
        for client in self._clients.values():
            if client.offer(snapshot, must=snapshot.must and client.number == controller):
                self.want_keyframe(client)
        self.lossless.shared(snapshot.event.sequence)

    def _tell_lost(self, lost: int) -> None:
        """Report to all clients how many events the server itself has lost, before the next event."""
        for client in self._clients.values():
            client.follow_lost(lost)

    def _share_keyframe(self, source: KeyframeSource) -> None:
        waiting = [client for client in self._clients.values() if client.waiting]
        if source.event is None:
            for client in waiting:
                client.nothing_yet()
            return
        places = [
            (client, client.place_keyframe(source.sequence, source.event.time_nanos), client.wants)
            for client in waiting
        ]
        if places and self._nursery is not None:
            self._nursery.start_soon(self._fill, source, places)

    async def _fill(
        self, source: KeyframeSource, places: list[tuple[ClientConnection, QueueEntry, Interest]]
    ) -> None:
        snapshot = await trio.to_thread.run_sync(source.encode, abandon_on_cancel=True)
        for client, entry, wants in places:
            client.fill(entry, snapshot.bytes_for(wants, zstd=client.takes_zstd))

    def _bring_up(self) -> bool:
        """Send clients that are behind the latest event and the number of events that they missed, before anything that follows.

        Returns:
            Whether there are such clients.
        """
        lagging = [client for client in self._clients.values() if client.lags]
        for client in lagging:
            client.defer()
            self.want_keyframe(client)
        return bool(lagging)

    def _drained(self, client: ClientConnection) -> None:
        if client.behind is Behind.SLOW:
            self.want_keyframe(client)

    def tell_all(self, message: Message) -> None:
        """Queue a message for every client."""
        data = encode(message).data
        for client in self._clients.values():
            client.push_message(data)

    def _tell_triggers_soon(self) -> None:
        """Send the state of the triggers to all clients with room in their queues, and to the others within a second."""
        data = encode(self.core.triggers.announcement()).data
        crowded = [client for client in self._clients.values() if not client.push_if_room(data)]
        self._triggers_late = bool(crowded)

    # -------------------------------------------------------------------- clients

    @property
    def client_numbers(self) -> Iterable[int]:
        """Numbers of the connected clients."""
        return self._clients.keys()

    async def serve(self, transport: Transport) -> None:
        """Serve one connection to its end."""
        await self._reception.serve(transport)

    def _admit(self, client: ClientConnection, hello: m.Hello) -> Error | None:
        """Admit a client: answer its greeting and queue the bootstrap; or reply why not."""
        refusal = self._reception.refusal_of(client, hello, present=len(self._clients))
        self.attendance.greeted(client, hello)
        if refusal is not None:
            return refusal
        self._clients[client.number] = client
        controls = hello.wants_control and self.roles.take(client.number)
        introduction = self._introduction
        welcome = m.Welcome(
            server=introduction.server,
            session=self._id,
            client_id=client.number,
            controller=controls,
            mode=self.core.settings.mode or introduction.mode,
            pause_acts_on=introduction.pause_acts_on,
            events=introduction.events,
            general_info=introduction.general_info,
            target=introduction.target,
            wall_offset_nanos=introduction.wall_offset_nanos,
            clock_resolution_nanos=max(1, int(time.get_clock_info("monotonic").resolution * 1e9)),
        )
        bootstrap: list[Message] = [welcome]
        bootstrap += [m.SpaceDefined(space=space) for space in self.schema.spaces]
        bootstrap += [
            m.EpochEnd(epoch=self.schema.epoch),
            m.Filters(filters=self.core.filters),
            self._state,
            self._clients_message(),
            m.Counters(counts=tuple(self.core.counts)),
        ]
        triggers = self.core.triggers.announcement()
        bootstrap += [triggers] if triggers.triggers else []
        settings = self.core.settings.announcement()
        bootstrap += [settings] if settings.settings else []
        budget = self.core.spending.message
        bootstrap += [] if budget is None else [budget]
        client.greet_back(bootstrap)
        client.follow_lost(self.core.lost)  # events lost before it joined do not count as missed
        self.attendance.changed_for_all(but=client)
        if controls:
            # Before the audience changes: a program that waits for a client may begin at once, and
            # must be held at its first event.
            self.core.flow.set_controlled(True)
            if hello.pause_at_connect:
                self.core.flow.pause()
        self.refresh_audience()
        if self._any_snapshot:
            self.want_keyframe(client)
        else:
            client.nothing_yet()
        if client.presence.following:
            self.attendance.bring(client, self.controller)
        log.info("%s connected%s", client, " as the controller" if controls else "")
        return None

    def _remove(self, client: ClientConnection) -> None:
        if self._clients.pop(client.number, None) is None:
            return
        self.lossless.forget(client)
        self.attendance.forget(client)
        if self.roles.leave(client.number) and self.roles.controller is None:
            self.core.flow.set_controlled(False, reason="the controller is gone")
        self.refresh_audience()
        self.tell_clients()
        if not self._clients:
            self._gone.set()

    def tell_clients(self) -> None:
        """Send all clients the list of clients and the controller, a few times a second at most."""
        self.lossless.roles_changed()
        self.attendance.changed_for_all()

    def _clients_message(self, *, answers: bool = False) -> m.Clients:
        clients = tuple(
            client_message(client, answers=answers) for client in self._clients.values()
        )
        return m.Clients(
            clients=clients, controller=self.roles.controller, successor=self.roles.successor
        )

    # ------------------------------------------------------------------ as a class (`attendance.Room`)

    @property
    def controller(self) -> ClientConnection | None:
        """The controller."""
        return self.client(self.roles.controller)

    def client(self, number: int | None) -> ClientConnection | None:
        """A connected client; None: there is no such client."""
        return self._clients.get(number or 0)

    @property
    def fallback(self) -> int | None:
        """None: a target continues if no successor is named."""
        return None

    @property
    def held(self) -> bool:
        """Whether the target is held for the controller."""
        return self.core.flow.held

    def present(self) -> Collection[ClientConnection]:
        """All connected clients."""
        return self._clients.values()

    def followers_of(self, leader: ClientConnection) -> Collection[ClientConnection]:
        """The clients that receive what this client is viewing: the followers, if it is the controller."""
        if leader is not self.controller:
            return ()
        return [
            one for one in self._clients.values() if one.presence.following and one is not leader
        ]

    def shared_until(self, client: ClientConnection) -> int:
        """Number of the latest snapshot; 0 for a client that is not connected."""
        return self.sequence if client.number in self._clients else 0

    def tell_present(self, clients: Collection[ClientConnection]) -> Collection[ClientConnection]:
        """Send these clients the list of participants; return those without room for it now."""
        leader = self.controller
        data = encode(self._clients_message()).data
        crowded = [
            client for client in clients if client is not leader and not client.push_if_room(data)
        ]
        if leader is not None and leader in clients:
            own = encode(self._clients_message(answers=True)).data
            crowded += [] if leader.push_if_room(own) else [leader]
        return crowded

    def refresh_audience(self) -> None:
        """Pass the clients and their subscriptions to the driver's side."""
        clients = self._clients.values()
        wants = union_of(client.wants for client in clients) if clients else NOTHING
        interval = min((client.interval_nanos for client in clients), default=0)
        self.core.set_audience(Audience(len(clients), wants, interval))

    def _handle(self, client: ClientConnection, message: Message) -> None:
        refusal = commands.obey(self, client, message)
        if refusal is not None:
            client.send(refusal)

    async def close(self, reason: str) -> None:
        """Send goodbye to all clients, and let them read their queues, within two seconds."""
        self._reception.closing = True
        self.core.flow.set_controlled(False, reason=reason)
        for client in self._clients.values():
            self.lossless.leave(client)
        for item in self.core.handoff_queue.take():
            self._share(item)
        with trio.move_on_after(_FAREWELL_SECS):
            while self._bring_up():
                await trio.sleep(_KEYFRAME_LOOK_SECS)
        for client in list(self._clients.values()):
            client.send(m.Goodbye(reason=reason))
            client.close_when_sent()
        with trio.move_on_after(_FAREWELL_SECS):
            while self._clients:
                self._gone = trio.Event()
                await self._gone.wait()


def _wake(token: trio.lowlevel.TrioToken, wake: Callable[[], None]) -> None:
    """Wake the session's loop from any thread, if it has not ended."""
    try:
        token.run_sync_soon(wake, idempotent=True)
    except trio.RunFinishedError:
        pass  # the loop ended between the check and the call: nothing reads what was posted
