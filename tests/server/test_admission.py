"""Admission, and the messages of refusals: each refusal ends the connection and gives the reason."""

from __future__ import annotations

import pytest
import trio.testing
from gcspy_protocol.handshake.credentials import Channel
from gcspy_protocol.messages import Error, ErrorCode, Hello

from gcspy_session.admission import has_to_prove, refusal_of
from gcspy_session.network.transport import Transport

NOBODY = Hello(client="x")
KNOWS = Hello(client="x", token="sesame")
OFFERS = Hello(client="x", nonce=bytes(32))


def transport(channel: Channel, refusal: str = "") -> Transport:
    stream, _ = trio.testing.memory_stream_pair()
    return Transport(stream, "somebody", channel=channel, refusal=refusal)


def judged(
    channel: Channel,
    hello: Hello = NOBODY,
    *,
    token: str | None = "sesame",
    refusal: str = "",
    proven: bool = False,
    closing: bool = False,
    clients: int = 0,
) -> Error | None:
    return refusal_of(
        transport(channel, refusal),
        hello,
        token=token,
        proven=proven,
        closing=closing,
        clients=clients,
        most_clients=3,
    )


def test_these_come_in() -> None:
    assert judged(Channel.LOCAL) is None
    assert judged(Channel.LOCAL, KNOWS, token="another") is None, "who it is needs no token"
    assert judged(Channel.LOCAL, clients=2) is None
    assert judged(Channel.TLS, KNOWS) is None
    assert judged(Channel.PLAIN_TCP, OFFERS, proven=True) is None


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (judged(Channel.LOCAL, refusal="of another user"), ErrorCode.TOKEN, "of another user"),
        (judged(Channel.LOCAL, closing=True), ErrorCode.BUSY, "the session is ending"),
        (judged(Channel.LOCAL, clients=3), ErrorCode.BUSY, "3 clients are connected"),
        (judged(Channel.LOCAL, clients=4), ErrorCode.BUSY, "4 clients are connected"),
        (judged(Channel.TLS), ErrorCode.TOKEN, "no token"),
        (judged(Channel.TLS, KNOWS, token="sesam"), ErrorCode.TOKEN, "wrong token"),
        (judged(Channel.TLS, KNOWS, token=None), ErrorCode.TOKEN, "wrong token"),
        (judged(Channel.PLAIN_TCP, KNOWS), ErrorCode.TOKEN, "was sent over plain TCP"),
        (judged(Channel.PLAIN_TCP, OFFERS), ErrorCode.TOKEN, "no token"),
    ],
)
def test_these_do_not_and_are_let_go(error: Error | None, code: ErrorCode, said: str) -> None:
    assert error is not None
    assert (error.code, error.fatal) == (code, True)
    assert said in error.message


def test_who_may_prove_that_it_knows_the_token_has_to() -> None:
    assert has_to_prove(transport(Channel.PLAIN_TCP), OFFERS, "sesame")
    assert has_to_prove(transport(Channel.TLS), OFFERS, "sesame")
    assert not has_to_prove(transport(Channel.LOCAL), OFFERS, "sesame")
    assert not has_to_prove(transport(Channel.PLAIN_TCP), OFFERS, "")
    assert not has_to_prove(transport(Channel.PLAIN_TCP), NOBODY, "sesame")
    assert not has_to_prove(transport(Channel.PLAIN_TCP, "why"), OFFERS, "sesame")
    both = Hello(client="x", nonce=bytes(32), token="sesame")
    assert not has_to_prove(transport(Channel.TLS), both, "sesame")
