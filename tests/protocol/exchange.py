"""A handshake between two ends with fixed nonces: what golden vectors, fuzz inputs and tests are made of."""

from __future__ import annotations

from dataclasses import dataclass

from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode
from gcspy_protocol.connection import Connection
from gcspy_protocol.handshake.credentials import Channel, Credentials
from gcspy_protocol.model import Mode, PauseActsOn, Role

TOKEN = "correct horse battery staple"
CLIENT_NONCE = bytes(range(32))
SERVER_NONCE = bytes(range(32, 64))

KNOWN = Credentials(TOKEN, Channel.PLAIN_TCP)

WELCOME = m.Welcome(server="s", session="x", client_id=1, controller=False, mode=Mode.PASSIVE,
                    pause_acts_on=PauseActsOn.SAMPLING, events=())  # fmt: skip


def an_end(role: Role, token: str = TOKEN, channel: Channel = Channel.PLAIN_TCP) -> Connection:
    """One end that knows a token."""
    return Connection(role, credentials=Credentials(token, channel))


@dataclass(frozen=True)
class Exchange:
    """The bytes that both ends sent.

    Attributes:
        greeting: Preamble and HELLO of the client.
        answer: Preamble, CHALLENGE and PROOF of the server.
        proof: PROOF of the client.
        welcome: WELCOME of the server.
    """

    greeting: bytes
    answer: bytes
    proof: bytes
    welcome: bytes


def exchange(token: str = TOKEN, *, client: bytes = CLIENT_NONCE) -> Exchange:
    """A whole handshake over plain TCP."""
    ours, theirs = an_end(Role.CLIENT, token), an_end(Role.SERVER, token)
    hello = Credentials(token, Channel.PLAIN_TCP).greeting(
        m.Hello(client="minimal", codecs=()), nonce=client
    )
    greeting = ours.preamble() + ours.send(hello)
    theirs.receive_data(greeting)
    assert list(theirs.messages()) == [hello]
    answer = theirs.preamble() + theirs.prove(nonce=SERVER_NONCE)
    ours.receive_data(answer)
    came = list(ours.messages())
    assert isinstance(came[0], m.Challenge)
    assert isinstance(came[1], m.Proof)
    proof = ours.prove()
    theirs.receive_data(proof)
    assert [type(message) for message in theirs.messages()] == [m.Proof]
    return Exchange(greeting, answer, proof, theirs.send(WELCOME))


REFUSAL = m.Error(
    code=m.ErrorCode.TOKEN,
    message="you did not prove that you know the token",
    remedy="connect again, with the token of this session",
    fatal=True,
)


def vectors() -> list[tuple[str, str, bytes, bool]]:
    """Name, meaning, bytes, and whether encoding gives them, of the golden vectors of a handshake."""
    made = exchange()
    challenge, proof = made.answer[12:72], made.answer[72:]
    said = f"over plain TCP with the token {TOKEN!r}"
    return [
        ("hello-nonce", "A client with a token offers to prove that it knows it.", made.greeting[12:], True),
        ("challenge", "The server's nonce.", challenge, True),
        ("proof-server", f"The server's proof in the handshake of session-proof-*, {said}.", proof, True),
        ("proof-client", "The client's proof in the same handshake.", made.proof, True),
        ("proof-trailing", "PROOF with bytes of a later version behind the payload.", _longer(made.proof), False),
        ("error-unproven", "A client's proof was wrong.", encode(REFUSAL).data, True),
        (
            "session-proof-client",
            f"All that a client sends in a handshake {said}: preamble (version 2 to 2), HELLO, PROOF.",
            made.greeting + made.proof,
            False,
        ),
        (
            "session-proof-server",
            "All that the server sends in it: preamble (version 2 to 2), CHALLENGE, PROOF, WELCOME.",
            made.answer + made.welcome,
            False,
        ),
    ]  # fmt: skip


def _longer(frame: bytes) -> bytes:
    return (len(frame) - 28 + 5).to_bytes(4, "little") + frame[4:] + b"later"
