"""The requests of a client, and their effect.

Knows the meaning of each command and who may send it; does not know sockets.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from gcspy_protocol import messages as m
from gcspy_protocol.attendance import Focus
from gcspy_protocol.details import HEAP_KINDS, MEMORY_KIND
from gcspy_protocol.errors import ExpressionError, LocalProtocolError
from gcspy_protocol.limits import CLIENT_LIMITS
from gcspy_protocol.messages import Error, ErrorCode, Message

from gcspy_server.names import StringNames
from gcspy_session.client import Behind, ClientConnection
from gcspy_session.interest import Interest

if TYPE_CHECKING:
    from gcspy_server.clients.session import Session

__all__ = ["obey"]

_NANOS = 1_000_000_000


def obey(session: Session, client: ClientConnection, message: Message) -> Error | None:
    """Execute a request of a client, or reply why not."""
    match message:
        case m.Ping():
            client.send(m.Pong(number=message.number))
        case m.Subscribe():
            return _subscribe(session, client, message)
        case m.TileNamesRequest():
            return _tile_names(session, client, message)
        case m.Attend():
            session.attendance.attend(client, message)
            if message.following:
                session.attendance.bring(client, session.controller)
        case m.Pong():
            session.attendance.ponged(client, message.number)
        case m.Query() if message.kind in (*HEAP_KINDS, MEMORY_KIND):
            controls = session.roles.controller == client.number
            session.heap_questions.ask(client, message, controls=controls)
        case m.Query():
            session.questions.ask(client, message, partial(session.core.details.answer, message))
        case m.Lossless():
            return session.lossless.ask(client, message.deadline_millis)
        case m.TakeControl():
            return _take_control(session, client)
        case (
            m.Pause()
            | m.Resume()
            | m.Step()
            | m.SetFilters()
            | m.SetSetting()
            | m.Trigger()
            | m.HandOver()
            | m.NameSuccessor()
            | m.Look()
        ):
            if session.roles.controller != client.number:
                return _not_controller(session, type(message).__name__)
            return _control(session, client, message)
        case _:
            pass  # non-fatal errors need no answer; unknown frames are of a later version
    return None


def _control(session: Session, client: ClientConnection, message: Message) -> Error | None:
    """A command of the controller."""
    flow = session.core.flow
    match message:
        case m.Pause():
            flow.pause()
        case m.Resume():
            flow.resume()
        case m.Step():
            flow.step()
        case m.SetFilters():
            kinds = len(session.core.filters)
            unknown = sorted({one.event for one in message.filters if one.event >= kinds})
            if unknown:
                return _bad(
                    f"filters for events {unknown}: there are {kinds} kinds, 0 to {kinds - 1}"
                )
            session.tell_all(m.Filters(filters=session.core.set_filters(message.filters)))
        case m.SetSetting():
            try:
                session.core.set_setting(message.id, message.value)
            except LocalProtocolError as error:
                return _bad(str(error))
        case m.Look():
            session.attendance.look(client, _place(session, message.at))
        case m.Trigger():
            return _set_trigger(session, message)
        case m.HandOver():
            if message.client not in session.client_numbers:
                return _bad(f"control for client {message.client}: it is not connected")
            session.roles.hand_over(message.client)
            session.tell_clients()
        case m.NameSuccessor():
            if message.client == client.number or message.client not in (
                None,
                *session.client_numbers,
            ):
                return _bad(
                    f"client {message.client} as successor: it is not another connected client"
                )
            session.roles.name_successor(message.client)
            session.tell_clients()
        case _:
            raise AssertionError(f"{type(message).__name__} is not a command of a controller")
    return None


def _place(session: Session, at: Focus) -> Focus:
    """A place as sent to followers: a space or an event that does not exist (any more) is left out."""
    space = next((one for one in session.schema.spaces if one.id == at.space), None)
    if space is None:
        at = replace(at, space=None, stream=None, key=None)
    elif all(one.id != at.stream for one in space.streams):
        at = replace(at, stream=None)
    if at.sequence is not None and at.sequence > session.sequence:
        at = replace(at, sequence=None)
    return at


def _set_trigger(session: Session, trigger: m.Trigger) -> Error | None:
    try:
        session.core.set_trigger(trigger, session.schema.spaces)
    except (ExpressionError, LocalProtocolError) as error:
        return _bad(str(error))
    return None


def _take_control(session: Session, client: ClientConnection) -> Error | None:
    if session.roles.controller == client.number:
        return None
    if not session.roles.take(client.number):
        return _not_controller(session, "TakeControl")
    session.core.flow.set_controlled(True)
    session.tell_clients()
    return None


def _subscribe(session: Session, client: ClientConnection, message: m.Subscribe) -> Error | None:
    known = {space.id: {stream.id for stream in space.streams} for space in session.schema.spaces}
    for one in message.spaces or ():
        if one.space not in known:
            return _bad(f"subscription to space {one.space}: it does not exist")
        missing = sorted(set(one.streams or ()) - known[one.space])
        if missing:
            return _bad(
                f"subscription to streams {missing} of space {one.space}: they do not exist"
            )
    wanted = Interest.of(message.spaces), _interval_nanos(message.max_rate_hz)
    if wanted == (client.wants, client.interval_nanos):
        return None
    client.wants, client.interval_nanos = wanted
    session.refresh_audience()
    # Deltas of newly subscribed streams have no base here: begin with a keyframe.
    client.behind = Behind.OTHER
    session.want_keyframe(client)
    return None


def _interval_nanos(max_rate_hz: float | None) -> int:
    return 0 if max_rate_hz is None else int(_NANOS / max_rate_hz)


def _tile_names(
    session: Session, client: ClientConnection, message: m.TileNamesRequest
) -> Error | None:
    sequence, names = session.names.get(message.space, (0, None))
    if not isinstance(names, StringNames):
        return _bad(
            f"names of tiles of space {message.space}: its tiles have no string names, or it has no event yet"
        )
    if message.first >= names.count:
        return _bad(
            f"names from tile {message.first} on: space {message.space} has {names.count} tiles"
        )
    page = names.names[message.first : message.first + min(message.count, CLIENT_LIMITS.names_page)]
    client.send(
        m.TileNames(space=message.space, sequence=sequence, first=message.first, names=page)
    )
    return None


def _not_controller(session: Session, command: str) -> Error:
    controller = session.roles.controller
    if controller is None:
        remedy = "the session has no controller: take control first"
    else:
        remedy = f"client {controller} controls the session: ask it to hand over"
    return Error(
        code=ErrorCode.NOT_CONTROLLER,
        message=f"{command} is reserved for the controller",
        remedy=remedy,
    )


def _bad(message: str) -> Error:
    return Error(code=ErrorCode.BAD_REQUEST, message=message)
