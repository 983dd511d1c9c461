"""The requests of a client of a player, and their effect (SPEC.md 8.5).

Knows the meaning of each command and who may send it; does not know sockets.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from gcspy_protocol import messages as m
from gcspy_protocol.attendance import Focus
from gcspy_protocol.details import HEAP_KINDS, MEMORY_KIND
from gcspy_protocol.limits import CLIENT_LIMITS
from gcspy_protocol.messages import Error, ErrorCode, Message
from gcspy_protocol.model import Naming

from gcspy_replay.playback import Move, RecordingPlayback
from gcspy_replay.player import questions
from gcspy_session.client import Behind, ClientConnection
from gcspy_session.interest import Interest

if TYPE_CHECKING:
    from gcspy_replay.player.playback_session import PlaybackSession
    from gcspy_replay.player.player import Player

__all__ = ["obey"]

_NANOS = 1_000_000_000


def obey(
    player: Player, playback_session: PlaybackSession, client: ClientConnection, message: Message
) -> Error | None:
    """Execute a client's request, or reply why not."""
    match message:
        case m.Ping():
            client.send(m.Pong(number=message.number))
        case m.Subscribe():
            playback_session.later(client, partial(_subscribe, playback_session, client, message))
        case m.TileNamesRequest():
            playback_session.later(client, partial(_tile_names, playback_session, client, message))
        case m.Follow():
            client.presence.following = (
                False  # from now on it sees this client, whoever leads the class
            )
            player.move(client, partial(_follow, player, client, message.client))
        case m.TakeControl():
            client.presence.following = False
            player.move(client, partial(_follow, player, client, None))
        case m.Attend():
            player.attend(client, message)
        case m.Pong():
            player.attendance.ponged(client, message.number)
        case m.Query():
            _query(player, playback_session, client, message)
        case m.Lossless():
            playback_session.wait_for(client, message.deadline_millis / 1000)
        case m.SetSetting():
            return _bad("SetSetting: the settings of a recording cannot be changed")
        case (
            m.Pause()
            | m.Resume()
            | m.Step()
            | m.SetFilters()
            | m.SetPlayback()
            | m.Seek()
            | m.Trigger()
            | m.HandOver()
            | m.NameSuccessor()
            | m.Look()
        ):
            if client is not playback_session.leader:
                return _not_controller(playback_session, message)
            if isinstance(message, m.HandOver | m.NameSuccessor | m.Look):
                return _lead(player, playback_session, client, message)
            playback_session.ask(client, partial(_command, message))
        case _:
            pass  # non-fatal errors need nothing; unknown frames are of a later version
    return None


def _command(message: Message, playback: RecordingPlayback, now_nanos: int) -> Move | None:
    """Execute the leader's request; in a worker thread.

    Raises:
        RecordingError: It names something that does not exist; it had no effect.
    """
    match message:
        case m.Pause():
            playback.pause(now_nanos)
        case m.Resume():
            return playback.resume(now_nanos)
        case m.Step():
            return playback.step(now_nanos)
        case m.Seek():
            return playback.seek(message, now_nanos)
        case m.SetPlayback():
            playback.set_manner(message)
        case m.Trigger():
            playback.set_trigger(message)
        case m.SetFilters():
            playback.set_filters(message.filters)
        case _:
            raise AssertionError(f"{type(message).__name__} is not a command of a leader")
    return None


def _lead(
    player: Player,
    playback_session: PlaybackSession,
    client: ClientConnection,
    message: m.HandOver | m.NameSuccessor | m.Look,
) -> Error | None:
    """A message of the owner of a playback to its viewers."""
    match message:
        case m.Look():
            player.attendance.look(client, _place(playback_session, message.at))
        case m.HandOver():
            heir = player.welcomed.get(message.client)
            if heir is None or heir is client:
                return _bad(
                    f"control for client {message.client}: it is not another connected client"
                )
            player.hand_over(playback_session, heir)
        case m.NameSuccessor():
            if message.client == client.number or message.client not in (
                None,
                *playback_session.numbers,
            ):
                return _bad(
                    f"client {message.client} as successor: it is not another client of this playback"
                )
            playback_session.successor = message.client
            player.tell_clients()
    return None


def _place(playback_session: PlaybackSession, at: Focus) -> Focus:
    """A place as sent to followers: a space that does not exist is left out; the playback has the position."""
    space = next((one for one in playback_session.spaces if one.id == at.space), None)
    if space is None:
        return replace(at, space=None, stream=None, key=None, sequence=None)
    known = any(one.id == at.stream for one in space.streams)
    return replace(at, stream=at.stream if known else None, sequence=None)


def _follow(player: Player, client: ClientConnection, number: int | None) -> Error | None:
    """See another playback, or get one's own; while the current one is at rest."""
    playback_session = player.playback_session_of(client.number)
    assert playback_session is not None, "the sender is connected"
    if number is None:
        if client is not playback_session.leader:
            player.part(client, playback_session.playback)
        return None
    other = player.playback_session_of(number)
    if number == client.number:
        return _bad(
            "a client cannot follow itself: name another client, or none for its own playback"
        )
    if other is None or not other.ready or number not in player.welcomed:
        return _bad(f"follow client {number}: it is not connected")
    if other.leader is None or other.leader.number != number:
        return _bad(f"follow client {number}: it follows another client itself")
    if other is not playback_session:
        player.follow(client, other)
    return None


def _query(
    player: Player, playback_session: PlaybackSession, client: ClientConnection, message: m.Query
) -> None:
    """Answer a question about the displayed event; the playback continues meanwhile."""
    query_service = player.query_service
    about_all = message.kind in (*HEAP_KINDS, MEMORY_KIND)
    if query_service is None or message.kind == MEMORY_KIND:
        client.send((questions.no_process if about_all else questions.not_recorded)(message))
        return
    shown_by = questions.shown_to_all if about_all else questions.shown_by

    def at_rest() -> None:
        shown = shown_by(playback_session.playback, message)
        if isinstance(shown, m.Answer):
            client.send(shown)
        else:
            player.questions.ask(
                client, message, partial(questions.answer, query_service, message, shown)
            )

    playback_session.later(client, at_rest)


def _subscribe(
    playback_session: PlaybackSession, client: ClientConnection, message: m.Subscribe
) -> None:
    known = {space.id: {stream.id for stream in space.streams} for space in playback_session.spaces}
    for one in message.spaces or ():
        if one.space not in known:
            client.send(_bad(f"subscription to space {one.space}: it does not exist"))
            return
        missing = sorted(set(one.streams or ()) - known[one.space])
        if missing:
            client.send(
                _bad(f"subscription to streams {missing} of space {one.space}: they do not exist")
            )
            return
    interval_nanos = 0 if message.max_rate_hz is None else int(_NANOS / message.max_rate_hz)
    wanted = Interest.of(message.spaces), interval_nanos
    if wanted == (client.wants, client.interval_nanos):
        return
    client.wants, client.interval_nanos = wanted
    # Deltas of newly subscribed streams have no base here: begin with a keyframe.
    client.behind = Behind.OTHER
    client.waiting = True


def _tile_names(
    playback_session: PlaybackSession, client: ClientConnection, message: m.TileNamesRequest
) -> None:
    session = playback_session.playback.session
    state = session.spaces.get(message.space)
    if state is None or state.space.naming is not Naming.STRINGS or session.last_event is None:
        client.send(
            _bad(
                f"names of tiles of space {message.space}: its tiles have no string names, or it has no event yet"
            )
        )
        return
    if message.first >= state.count:
        client.send(
            _bad(
                f"names from tile {message.first} on: space {message.space} has {state.count} tiles"
            )
        )
        return
    last = min(message.first + min(message.count, CLIENT_LIMITS.names_page), state.count)
    # A text that the recorder never requested is not in the recording: then its number is its name.
    names = tuple(state.names.name(tile) for tile in range(message.first, last))
    client.send(
        m.TileNames(
            space=message.space,
            sequence=session.last_event.sequence,
            first=message.first,
            names=names,
        )
    )


def _not_controller(playback_session: PlaybackSession, message: Message) -> Error:
    whose = (
        "another client"
        if playback_session.leader is None
        else f"client {playback_session.leader.number}"
    )
    remedy = "take control or stop following to get your own playback"
    what = f"{type(message).__name__}: this client follows the playback of {whose}"
    return Error(code=ErrorCode.NOT_CONTROLLER, message=what, remedy=remedy)


def _bad(message: str) -> Error:
    return Error(code=ErrorCode.BAD_REQUEST, message=message)
