"""Clients of a player that stall, lie or vanish, and recordings that do: no other client notices, nothing hangs."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest
import trio
from gcspy_protocol import messages as m
from gcspy_protocol.connection import Connection
from gcspy_protocol.errors import RecordingError, Refused
from gcspy_protocol.frames.frame import HEADER
from gcspy_protocol.messages import ErrorCode, FrameType
from gcspy_protocol.model import Role
from gcspy_protocol.playback import Pace, Seek, SetPlayback
from gcspy_replay.file import WIRE_VERSION, ChunkRule, MemorySource, Recording
from gcspy_replay.playback import END
from gcspy_replay.player import PlaybackStart, Player, PlayerThread

from gcspy.connection.link import connect
from gcspy_session.options import RequestLimits, SessionOptions
from tests.replay.recorded import Small, small
from tests.replay.remote import PATIENCE_SECS, served
from tests.replay.watching import Watcher
from tests.server.conftest import EndLog
from tests.server.test_flood import told_while_flooding
from tests.server.test_hostile import flood, raw, read_to_end

Play = Callable[..., PlayerThread]
Watch = Callable[..., Watcher]

STILL = PlaybackStart(running=False)
RUSH = PlaybackStart(manner=SetPlayback(pace=Pace.FIXED, interval_millis=0), loops=True)
RUSH_ONCE = PlaybackStart(manner=SetPlayback(pace=Pace.FIXED, interval_millis=0))
LARGE = small(12, rule=ChunkRule(events=4, weight=0), tiles=120_000, version=WIRE_VERSION)
"""Frames as they came, so that the player hands events out faster than a slow follower reads them."""


def greeted(sock: socket.socket) -> Connection:
    """Greet properly, so that what follows comes from a client that was let in."""
    connection = Connection(Role.CLIENT)
    sock.sendall(connection.preamble() + connection.send(m.Hello(client="stranger")))
    wanted: type[m.Message] = m.Position
    while True:
        if any(isinstance(message, wanted) for message in connection.messages()):
            if wanted is m.Pong:
                return connection
            wanted = m.Pong  # what else there was to say has been said then
            sock.sendall(connection.send(m.Ping(number=1)))
        connection.receive_data(sock.recv(65536))


def notices_nothing(witness: Watcher) -> None:
    """The witness goes where it likes."""
    for number in (9, 3, 12):
        witness.seek(number)
        witness.send(m.Ping(number=number))


def test_garbage_before_and_after_a_greeting(play: Play, watch: Watch, ended: EndLog) -> None:
    playing = play(beginning=STILL)
    witness = watch(playing)
    with raw(playing.addresses[0]) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        (error,) = read_to_end(sock, Connection(Role.CLIENT))
        assert isinstance(error, m.Error)
    with raw(playing.addresses[0]) as sock:
        connection = greeted(sock)
        sock.sendall(bytes(range(256)) * 4)
        assert any(isinstance(message, m.Error) for message in read_to_end(sock, connection))
    with raw(playing.addresses[0]) as sock:
        connection = greeted(sock)
        sock.sendall(HEADER.pack(0xFFFFFFFF, FrameType.SEEK, 0, 0, 0, 0, 0, 0))
        assert any(isinstance(message, m.Error) for message in read_to_end(sock, connection))
    notices_nothing(witness)
    assert len(ended.abnormal(3)) == 3


def test_a_peer_that_never_greets(play: Play, watch: Watch, ended: EndLog) -> None:
    playing = play(beginning=STILL, options=SessionOptions(handshake_secs=0.5))
    witness = watch(playing)
    with raw(playing.addresses[0]) as sock:
        (told,) = read_to_end(sock, Connection(Role.CLIENT))
    assert isinstance(told, m.Error)
    assert told.message == "this client did not greet within 0.5 s"
    notices_nothing(witness)
    assert "did not greet" in ended.abnormal()[0]


def test_one_client_too_many_is_told_so(play: Play, watch: Watch) -> None:
    playing = play(beginning=STILL, options=SessionOptions(max_clients=1))
    witness = watch(playing)
    with pytest.raises(Refused, match="1 clients are connected"):
        connect(playing.addresses[0])
    notices_nothing(witness)


def test_a_leader_that_stops_reading_is_waited_for_and_then_ended(
    play: Play, watch: Watch, ended: EndLog
) -> None:
    playing = play(LARGE, RUSH, SessionOptions(stall_secs=1.0))
    with raw(playing.addresses[0]) as stalled:
        greeted(stalled)
        # Its own playback waits for it; that of others does not.
        witness = watch(playing, LARGE)
        witness.until(lambda: witness.positions.count(12) == 2)
        assert witness.positions[:13] == [*range(1, 13), 1]
        (line,) = ended.abnormal()
    assert "stalled: read nothing for 1 s" in line
    assert int(line.split(" events of ")[0].split()[-1]) <= 8, "not much was piled up for it"
    witness.until(lambda: len(witness.state.clients.clients) == 1)


def test_a_slow_leader_misses_nothing_and_a_slow_follower_does(play: Play, watch: Watch) -> None:
    playing = play(LARGE, STILL, SessionOptions(queued_events=2))
    leader, follower = watch(playing, LARGE), watch(playing, LARGE)
    leader.until_position(1)
    follower.until_position(1)
    follower.send(m.Follow(client=leader.number))
    follower.until(lambda: follower.state.clients.controller == leader.number)
    follower.sync()
    leader.send(SetPlayback(pace=Pace.FIXED, interval_millis=0, loop=(1, 12)))
    leader.send(m.Resume())
    leader.until(lambda: leader.positions.count(12) == 4)
    leader.send(m.Pause())
    leader.until(lambda: leader.state.state.value == "paused" and len(leader.positions) > 20)
    assert leader.state.missed_total == 0
    numbers = leader.positions[1:]
    assert all(b == a % 12 + 1 for a, b in pairwise(numbers))
    leader.assert_as_recorded()
    follower.until(lambda: follower.state.missed_total > 0)
    follower.until_position(leader.positions[-1])


def test_commands_without_end_from_one_that_does_not_read(
    play: Play, watch: Watch, ended: EndLog
) -> None:
    playing = play(LARGE, STILL)
    witness = watch(playing, LARGE)
    with raw(playing.addresses[0]) as sock:
        connection = greeted(sock)
        seeks = b"".join(connection.send(Seek(number=number)) for number in (1, 12))
        with pytest.raises(OSError, match=r"(?i)pipe|reset"):
            flood(sock, seeks * 1000)
    notices_nothing(witness)
    assert "too slow: 256 commands are pending" in ended.abnormal()[0]


@pytest.mark.parametrize("kind", ["ping", "subscribe", "take control", "follow", "attend"])
def test_who_floods_a_player_is_told_and_ended(
    play: Play, watch: Watch, ended: EndLog, kind: str
) -> None:
    limits = RequestLimits(patience_secs=0.5)
    playing = play(beginning=STILL, options=SessionOptions(requests=limits, queued_messages=10_000))
    witness = watch(playing)
    with raw(playing.addresses[0]) as sock:
        found = told_while_flooding(sock, greeted(sock), kind, partial(notices_nothing, witness))
    assert [one.fatal for one in found] == [False, True]
    (line,) = ended.abnormal()
    assert "too much: this client asks for more than" in line
    notices_nothing(witness)


def _sees_playback_of(witness: Watcher, other: int) -> bool:
    return witness.state.clients.controller == other


def test_a_client_that_vanishes_while_others_follow_it(play: Play, watch: Watch) -> None:
    playing = play(beginning=STILL)
    witness = watch(playing)
    for _ in range(5):
        with raw(playing.addresses[0]) as sock:
            connection = greeted(sock)
            witness.until(lambda: len(witness.state.clients.clients) == 2)
            other = witness.state.clients.clients[-1].id
            witness.send(m.Follow(client=other))
            witness.until(partial(_sees_playback_of, witness, other))
            sock.sendall(connection.send(Seek(number=30)) * 3)
        witness.until(witness.state.is_controller)
        witness.until(lambda: len(witness.state.clients.clients) == 1)
    notices_nothing(witness)


def test_who_follows_each_other_at_once_is_told_no(play: Play, watch: Watch) -> None:
    playing = play(beginning=STILL)
    one, other = watch(playing), watch(playing)
    one.sync()
    one.send(m.Follow(client=other.number))
    one.until(lambda: one.state.clients.controller == other.number)
    other.send(m.Follow(client=one.number))
    assert other.next(m.Error).code is ErrorCode.BAD_REQUEST
    other.seek(5)
    one.until_position(5)


# ------------------------------------------------------------------ hostile recordings


async def seen(data: bytes) -> tuple[list[int], list[str]]:
    """Serve bytes to one viewer, to their end.

    Returns:
        Numbers of the events that it saw, each checked by formula, and the losses reported to it.
    """
    player = Player(Recording([MemorySource(data)]), beginning=RUSH_ONCE, growing=False)
    with trio.fail_after(PATIENCE_SECS):
        async with served(player) as connect_to:
            remote = connect_to()
            await remote.greet()
            await remote.until(lambda: remote.state.state_reason == END)
            told = [message.reason for message in remote.heard if isinstance(message, m.State)]
            if remote.positions:
                values = remote.state.spaces[1].streams[0].values
                assert values.tolist() == Small.values(remote.positions[-1], len(values)).tolist()
            await remote.close()
            return remote.positions, told
    raise AssertionError("the nursery swallowed the end")


def checked(data: bytes) -> list[int]:
    """Serve bytes that may be anything: an error of ours, or the undamaged rest."""
    try:
        numbers, _ = trio.run(seen, data)
    except RecordingError:
        return []
    return numbers


TINY = small(7, rule=ChunkRule(events=3, weight=0), tiles=3)


def _places(every: int) -> list[int]:
    return list(range(0, len(TINY), every))


def test_a_small_recording_is_served_whole() -> None:
    assert trio.run(seen, TINY) == (list(range(1, 8)), ["", END])


def flip(at: int) -> list[int]:
    """Flip each bit of one byte in turn; all shown events are in order and true."""
    seen_numbers = []
    for bit in (0, 6):
        data = bytearray(TINY)
        data[at] ^= 1 << bit
        numbers = checked(bytes(data))
        assert numbers == sorted(set(numbers))
        assert set(numbers) <= set(range(1, 8))
        seen_numbers.append(len(numbers))
    return seen_numbers


def test_a_byte_flipped_anywhere_is_an_error_of_ours_or_the_undamaged_rest() -> None:
    counts = [count for at in _places(101) for count in flip(at)]
    assert max(counts) == 7
    assert sum(count >= 4 for count in counts) > len(counts) / 2, (
        "damage costs its chunk, not the recording"
    )


def test_a_recording_cut_anywhere_is_an_error_of_ours_or_what_is_left() -> None:
    last = 0
    for size in _places(41):
        numbers = checked(TINY[:size])
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= last
        last = len(numbers)
    assert last >= 6


@pytest.mark.soak
def test_every_byte_flipped_and_every_cut() -> None:
    for at in _places(1):
        flip(at)
        numbers = checked(TINY[:at])
        assert numbers == list(range(1, len(numbers) + 1))
