"""The handshake without sockets: what each end believes, and what it refuses."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.address import parse_address
from gcspy_protocol.codec import encode
from gcspy_protocol.connection import Connection, ConnectionState, preamble
from gcspy_protocol.errors import (
    LocalProtocolError,
    ProtocolError,
    RemoteProtocolError,
    Unproven,
    VersionMismatch,
)
from gcspy_protocol.frames.frame import HEADER, pack_frame
from gcspy_protocol.handshake.credentials import Channel, Credentials, channel_of, new_nonce
from gcspy_protocol.messages import FrameType
from gcspy_protocol.model import Role

from tests.protocol.exchange import (
    CLIENT_NONCE,
    SERVER_NONCE,
    TOKEN,
    WELCOME,
    Exchange,
    an_end,
    exchange,
)
from tests.protocol.vectors import stored

MADE = exchange()
KNOWN = Credentials(TOKEN, Channel.PLAIN_TCP)


def client() -> Connection:
    """A client that has sent the greeting of `MADE`."""
    found = an_end(Role.CLIENT)
    hello = KNOWN.greeting(m.Hello(client="minimal", codecs=()), nonce=CLIENT_NONCE)
    assert found.preamble() + found.send(hello) == MADE.greeting
    return found


def server(greeting: bytes = MADE.greeting, token: str = TOKEN) -> Connection:
    """A server that has answered a greeting."""
    found = an_end(Role.SERVER, token)
    found.receive_data(greeting)
    list(found.messages())
    found.prove(nonce=SERVER_NONCE)
    return found


def test_a_proof_is_what_the_specification_says() -> None:
    key = hashlib.sha256(TOKEN.encode()).digest()
    challenge = MADE.answer[:-60]
    said = hashlib.sha256(MADE.greeting).digest() + hashlib.sha256(challenge).digest()
    assert MADE.answer[-32:] == hmac.digest(key, b"GCspy server 2\r\n" + said, "sha256")
    said = hashlib.sha256(MADE.greeting).digest() + hashlib.sha256(MADE.answer).digest()
    assert MADE.proof[-32:] == hmac.digest(key, b"GCspy client 2\r\n" + said, "sha256")


def test_neither_the_token_nor_its_hash_is_in_what_is_sent() -> None:
    said = MADE.greeting + MADE.answer + MADE.proof + MADE.welcome
    digest = hashlib.sha256(TOKEN.encode()).digest()
    for secret in (TOKEN.encode(), digest, digest.hex().encode()):
        assert secret not in said
    assert TOKEN not in repr(KNOWN)


def test_both_ends_are_open_at_the_end() -> None:
    one, other = client(), an_end(Role.SERVER)
    other.receive_data(MADE.greeting)
    assert isinstance(other.next_message(), m.Hello)
    one.receive_data(other.preamble() + other.prove())
    came = list(one.messages())
    assert isinstance(came[0], m.Challenge)
    assert isinstance(came[1], m.Proof)
    other.receive_data(one.prove())
    assert isinstance(other.next_message(), m.Proof)
    one.receive_data(other.send(WELCOME))
    assert one.next_message() == WELCOME
    for end in (one, other):
        assert (end.our_state, end.their_state) == (ConnectionState.OPEN, ConnectionState.OPEN)
        assert end.version == 2


def test_the_golden_session_is_taken_whole_and_any_cut_of_it_is_cut_short() -> None:
    by_name = {vector.name: vector.data for vector in stored()}
    data = by_name["session-proof-server"]
    assert data == MADE.answer + MADE.welcome
    assert by_name["session-proof-client"] == MADE.greeting + MADE.proof
    for size in range(len(data) + 1):
        end = client()
        end.receive_data(data[: min(size, len(MADE.answer))])
        if any(isinstance(message, m.Proof) for message in end.messages()):
            assert end.prove() == MADE.proof
        end.receive_data(data[len(MADE.answer) : size])
        if size == len(data):
            end.receive_eof()
            assert list(end.messages()) == [WELCOME]
        else:
            with pytest.raises(RemoteProtocolError):
                end.receive_eof()


def test_bytes_of_a_later_version_behind_a_proof_are_skipped() -> None:
    end = server()
    end.receive_data({vector.name: vector.data for vector in stored()}["proof-trailing"])
    assert isinstance(end.next_message(), m.Proof)


def altered(made: Exchange) -> list[bytes]:
    """A server's answer with one byte changed, at each place but in a length."""
    found = []
    for at in range(len(made.answer)):
        if at in range(12, 16) or at in range(72, 76):
            continue
        data = bytearray(made.answer)
        data[at] ^= 1
        found.append(bytes(data))
    return found


def test_a_change_anywhere_in_the_servers_answer_is_noticed() -> None:
    for answer in altered(MADE):
        end = client()
        end.receive_data(answer)
        try:
            list(end.messages())
        except ProtocolError:
            with pytest.raises(LocalProtocolError):
                end.prove()
        else:  # it was in the head of PROOF, which the client does not check: the server notices
            far = server()
            far.receive_data(end.prove())
            with pytest.raises(Unproven):
                list(far.messages())


def test_a_change_anywhere_in_the_greeting_is_noticed_by_the_client() -> None:
    changed = 0
    for at in range(len(MADE.greeting)):
        data = bytearray(MADE.greeting)
        data[at] ^= 1
        try:
            other = server(bytes(data))
        except ProtocolError:
            continue  # it makes no sense any more, or asks for no proof
        changed += 1
        again = an_end(Role.SERVER)
        again.receive_data(bytes(data))
        list(again.messages())
        end = client()
        end.receive_data(again.preamble() + again.prove())
        with pytest.raises(Unproven):
            list(end.messages())
        other.receive_data(MADE.proof)
        with pytest.raises(Unproven):
            list(other.messages())
    assert changed > 60


def test_a_proof_of_another_connection_is_refused() -> None:
    other = exchange(client=bytes(32))
    end = client()
    end.receive_data(other.answer)
    with pytest.raises(Unproven, match="answers another connection"):
        list(end.messages())
    far = server()
    far.receive_data(other.proof)
    with pytest.raises(Unproven):
        list(far.messages())
    fresh = an_end(Role.SERVER)
    fresh.receive_data(MADE.greeting)
    list(fresh.messages())
    assert fresh.prove() != MADE.answer[12:]  # the nonce is another each time
    fresh.receive_data(MADE.proof)
    with pytest.raises(Unproven):
        list(fresh.messages())


def test_a_proof_that_is_sent_back_is_refused() -> None:
    far = server()
    far.receive_data(MADE.answer[-60:])
    with pytest.raises(Unproven):
        list(far.messages())
    end = client()
    end.receive_data(MADE.answer[:-60] + MADE.proof)
    with pytest.raises(Unproven):
        list(end.messages())


def test_an_echo_of_the_greeting_is_no_server() -> None:
    end = client()
    end.receive_data(MADE.greeting)
    with pytest.raises(RemoteProtocolError, match="a server in state greeting may not send HELLO"):
        list(end.messages())


def test_a_welcome_of_a_server_that_has_not_proved_itself_is_refused() -> None:
    for data in (preamble((2, 2)) + MADE.welcome, MADE.answer[:-60] + MADE.welcome):
        end = client()
        end.receive_data(data)
        with pytest.raises(Unproven, match="sent a welcome without"):
            list(end.messages())


def test_a_welcome_before_our_proof_is_refused() -> None:
    end = client()
    end.receive_data(MADE.answer + MADE.welcome)
    with pytest.raises(RemoteProtocolError, match="a welcome before our proof"):
        list(end.messages())


@pytest.mark.parametrize("versions", [(1, 1), (0, 1)])
def test_version_1_is_refused_with_the_reason(versions: tuple[int, int]) -> None:
    end = client()
    end.receive_data(preamble(versions))
    with pytest.raises(VersionMismatch, match="would send the token in the clear"):
        end.next_message()


@pytest.mark.parametrize("kind", [FrameType.CHALLENGE, FrameType.PROOF])
@pytest.mark.parametrize(
    ("length", "flags", "about"), [(1025, 0, "over the limit of 1024"), (40, 1, "is compressed")]
)
def test_a_frame_of_a_handshake_is_judged_by_its_header(
    kind: FrameType, length: int, flags: int, about: str
) -> None:
    end = client()
    end.receive_data(MADE.answer[: 72 if kind is FrameType.PROOF else 12])
    end.receive_data(HEADER.pack(length, kind, flags, 0, 0, 0, 0, 0))
    with pytest.raises(RemoteProtocolError, match=about):
        list(end.messages())


def test_who_is_not_proved_yet_is_believed_little() -> None:
    end = client()
    end.receive_data(MADE.answer[:12] + HEADER.pack(70_000, FrameType.ERROR, 0, 0, 0, 0, 0, 0))
    with pytest.raises(RemoteProtocolError, match="claims 70000 bytes, over the limit of 65536"):
        end.next_message()


@pytest.mark.parametrize("kind", [FrameType.CHALLENGE, FrameType.PROOF])
@pytest.mark.parametrize("role", Role)
def test_what_nobody_asked_for_is_refused(role: Role, kind: FrameType) -> None:
    """By an end without a token, by one that is not so far, and by one that is long welcome."""
    frame = pack_frame(kind, bytes(32), compress=False).data
    greeting = encode(m.Hello(client="c") if role is Role.SERVER else WELCOME).data
    for end in (Connection(role), an_end(role), an_end(role, channel=Channel.LOCAL)):
        end.receive_data(preamble((1, 2)) + frame)
        with pytest.raises(RemoteProtocolError, match=f"may not send {kind.name}"):
            list(end.messages())
    end = Connection(role)
    end.receive_data(preamble() + greeting + frame)
    with pytest.raises(RemoteProtocolError, match=f"may not send {kind.name}"):
        list(end.messages())


def test_a_server_lets_nobody_in_before_the_proof() -> None:
    for end in (an_end(Role.SERVER), server()):
        end.receive_data(MADE.greeting)
        with pytest.raises(LocalProtocolError, match="before the client has proved itself"):
            end.send(WELCOME)


def test_a_client_sends_no_token_over_plain_tcp_and_no_greeting_without_a_nonce() -> None:
    with pytest.raises(LocalProtocolError, match="never sent over plain TCP"):
        an_end(Role.CLIENT).send(m.Hello(client="c", token=TOKEN, nonce=new_nonce()))
    with pytest.raises(LocalProtocolError, match="needs a nonce"):
        an_end(Role.CLIENT).send(m.Hello(client="c"))


@pytest.mark.parametrize(
    ("address", "channel", "versions", "token", "nonce"),
    [
        ("unix:/x", Channel.LOCAL, (1, 2), False, True),
        ("tls:h:1", Channel.TLS, (1, 2), True, False),
        ("127.0.0.1:1", Channel.PLAIN_TCP, (2, 2), False, True),
    ],
)
def test_what_is_sent_depends_on_the_way(
    address: str, channel: Channel, versions: tuple[int, int], token: bool, nonce: bool
) -> None:
    assert channel_of(parse_address(address)) is channel
    known = Credentials(TOKEN, channel)
    hello = known.greeting(m.Hello(client="c"))
    assert known.versions == versions
    assert (hello.token == TOKEN, len(hello.nonce) == 32) == (token, nonce)
    nothing = Credentials("", channel)
    assert nothing.versions == (1, 2)
    assert nothing.greeting(m.Hello(client="c")) == m.Hello(client="c")


@pytest.mark.parametrize("versions", [(1, 1), (1, 2)])
def test_over_a_unix_socket_a_server_need_not_prove_anything(versions: tuple[int, int]) -> None:
    end = an_end(Role.CLIENT, channel=Channel.LOCAL)
    far = Connection(Role.SERVER, versions=versions)
    hello = Credentials(TOKEN, Channel.LOCAL).greeting(m.Hello(client="c"))
    far.receive_data(end.preamble() + end.send(hello))
    assert far.next_message() == hello
    end.receive_data(far.preamble() + far.send(WELCOME))
    assert end.next_message() == WELCOME
    far.receive_data(end.send(m.Ping(number=1)))
    assert far.next_message() == m.Ping(number=1)


def test_nonces_are_new_each_time() -> None:
    assert len({new_nonce() for _ in range(100)}) == 100
