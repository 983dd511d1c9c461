"""The handshake of version 2 against real servers and a real player, by a client that has nothing of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gcspy_protocol.address import TcpAddress, parse_address
from gcspy_replay.file import Recording
from gcspy_replay.player import serve_recording

from gcspy.connection.link import connect
from gcspy_server.api import ServedSession, SessionOptions
from tests.house.rooms import ROOT
from tests.protocol.exchange import CLIENT_NONCE, SERVER_NONCE, TOKEN
from tests.server import independent_client
from tests.server.conftest import EndLog
from tests.server.independent_client import (
    CHALLENGE,
    HEADER,
    MAGIC,
    PREAMBLE_BYTES,
    PROOF,
    WELCOME,
    IndependentClient,
    pack_frame,
    proof_of,
)
from tests.server.target import START, Target

Serve = Callable[..., ServedSession]
Dial = Callable[[str], IndependentClient]


@pytest.fixture
def dial() -> Iterator[Dial]:
    opened: list[IndependentClient] = []

    def start(address: str) -> IndependentClient:
        place = parse_address(address)
        assert isinstance(place, TcpAddress)
        opened.append(IndependentClient(place.host, place.port))
        return opened[-1]

    yield start
    for client in opened:
        client.close()


@pytest.fixture
def address(serve: Serve) -> str:
    return serve(Target(), "127.0.0.1:0", token=TOKEN).addresses[0]


def test_it_knows_nothing_of_ours() -> None:
    source = Path(independent_client.__file__).read_text(encoding="utf-8")
    imported = {line.split()[1].split(".")[0] for line in source.splitlines()
                if line.startswith(("import ", "from "))}  # fmt: skip
    assert imported <= {"__future__", "collections", "hashlib", "hmac", "os", "socket", "struct"}


def test_it_makes_the_golden_proofs() -> None:
    def golden(name: str) -> bytes:
        return (ROOT / "protocol/vectors" / f"{name}.bin").read_bytes()

    client, server = golden("session-proof-client"), golden("session-proof-server")
    hello, said = client[:-60], server[: PREAMBLE_BYTES + 60]
    assert CLIENT_NONCE.hex().encode() in hello
    assert said.endswith(SERVER_NONCE)
    assert pack_frame(PROOF, proof_of(TOKEN, b"GCspy server 2\r\n", hello, said)) == golden(
        "proof-server"
    )
    assert server[len(said) :].startswith(golden("proof-server"))
    answer = proof_of(TOKEN, b"GCspy client 2\r\n", hello, said + golden("proof-server"))
    assert pack_frame(PROOF, answer) == golden("proof-client") == client[-60:]


def test_a_client_written_from_the_specification_is_welcomed_by_a_server(
    serve: Serve, dial: Dial
) -> None:
    target = Target()
    client = dial(serve(target, "127.0.0.1:0", token=TOKEN).addresses[0])
    client.prove(TOKEN)
    kind, payload = client.frame()
    assert kind == WELCOME
    assert b"session" in payload
    target.event(START)
    while client.frame()[0] != 0x2F:
        pass
    assert TOKEN.encode() not in client.sent + client.received


def test_and_by_a_player(dial: Dial) -> None:
    sample = ROOT / "tests/replay/golden"
    path = next(iter(sorted(sample.glob("*.gcspy"))))
    recording = Recording.open(path)
    with serve_recording(recording, "127.0.0.1:0", token=TOKEN) as playing:
        client = dial(playing.addresses[0])
        client.prove(TOKEN)
        assert client.frame()[0] == WELCOME
        stranger = dial(playing.addresses[0])
        stranger.challenged()
        stranger.send(pack_frame(PROOF, bytes(32)))
        assert "did not prove that you know the token" in stranger.refusal()


def test_nothing_of_the_heap_comes_before_the_proof(address: str, dial: Dial) -> None:
    client = dial(address)
    client.challenged()
    client.end()
    client.refusal()
    kinds, at = [], PREAMBLE_BYTES
    while at < len(client.received):
        length, kind, *_ = HEADER.unpack_from(client.received, at)
        kinds.append(kind)
        at += HEADER.size + length
    assert kinds == [CHALLENGE, PROOF, 3]


def wrong(client: IndependentClient) -> None:
    client.challenged()
    client.send(pack_frame(PROOF, bytes(32)))


def another_token(client: IndependentClient) -> None:
    client.challenged()
    proof = proof_of(TOKEN + "x", b"GCspy client 2\r\n", client.sent, client.received)
    client.send(pack_frame(PROOF, proof))


def reflected(client: IndependentClient) -> None:
    _, proof = client.challenged()
    client.send(pack_frame(PROOF, proof))


def truncated(client: IndependentClient) -> None:
    client.challenged()
    client.send(pack_frame(PROOF, bytes(31)))


def oversized(client: IndependentClient) -> None:
    client.challenged()
    client.send(HEADER.pack(1025, PROOF, 0, 0, 0, 0, 0, 0))


def compressed(client: IndependentClient) -> None:
    client.challenged()
    client.send(HEADER.pack(32, PROOF, 1, 0, 0, 0, 0, 0))


def cut(client: IndependentClient) -> None:
    client.challenged()
    client.send(pack_frame(PROOF, bytes(32))[:40])
    client.end()


def gone(client: IndependentClient) -> None:
    client.challenged()
    client.end()


def unasked(client: IndependentClient) -> None:
    client.send(MAGIC + b"\x02\0\x02\0" + pack_frame(PROOF, bytes(32)))


def command_first(client: IndependentClient) -> None:
    client.challenged()
    client.send(pack_frame(0x41, b""))


def short_nonce(client: IndependentClient) -> None:
    client.greet({"client": "x", "nonce": "00"})


def no_nonce(client: IndependentClient) -> None:
    client.greet({"client": "x"})


def in_the_clear(client: IndependentClient) -> None:
    client.greet({"client": "x", "token": TOKEN})


def in_the_clear_of_both_versions(client: IndependentClient) -> None:
    client.greet({"client": "x", "token": TOKEN}, versions=(1, 2))


def in_the_clear_with_a_nonce(client: IndependentClient) -> None:
    client.greet({"client": "x", "token": TOKEN, "nonce": "0" * 64})


def version_1(client: IndependentClient) -> None:
    client.greet({"client": "x", "token": TOKEN}, versions=(1, 1))


@pytest.mark.parametrize(
    ("misbehave", "about"),
    [
        (wrong, "did not prove that you know the token"),
        (another_token, "did not prove that you know the token"),
        (reflected, "did not prove that you know the token"),
        (truncated, "31 bytes, 32 needed"),
        (oversized, "claims 1025 bytes, over the limit of 1024"),
        (compressed, "it is compressed"),
        (cut, "closed the connection in the middle of a frame: 40 bytes"),
        (gone, "closed the connection in the middle of the handshake"),
        (unasked, "may not send PROOF"),
        (command_first, "a client in state proving may not send PAUSE"),
        (short_nonce, "64 hexadecimal digits"),
        (no_nonce, "no token"),
        (in_the_clear, "was sent over plain TCP, where others can read it"),
        (in_the_clear_of_both_versions, "was sent over plain TCP, where others can read it"),
        (in_the_clear_with_a_nonce, "was sent over plain TCP, where others can read it"),
        (version_1, "would send the token in the clear over plain TCP"),
    ],
)
def test_who_does_not_prove_it_is_refused_with_the_reason(
    address: str,
    dial: Dial,
    ended: EndLog,
    misbehave: Callable[[IndependentClient], None],
    about: str,
) -> None:
    client = dial(address)
    misbehave(client)
    reason = client.refusal()
    assert about in reason
    assert TOKEN not in reason
    (line,) = ended.abnormal()
    assert TOKEN not in line
    connect(address, token=TOKEN).close()  # no other client is worse off


def test_a_proof_that_was_overheard_is_worth_nothing(address: str, dial: Dial) -> None:
    first = dial(address)
    first.prove(TOKEN)
    assert first.frame()[0] == WELCOME
    second = dial(address)
    second.send(first.sent)
    assert "did not prove that you know the token" in second.refusal()
    assert second.received[:PREAMBLE_BYTES] == first.received[:PREAMBLE_BYTES]
    assert (
        second.received[PREAMBLE_BYTES : PREAMBLE_BYTES + 60]
        != first.received[PREAMBLE_BYTES : PREAMBLE_BYTES + 60]
    )


def test_a_peer_that_stalls_is_told_when_its_time_is_over(serve: Serve, dial: Dial) -> None:
    options = SessionOptions(handshake_secs=1.0)
    address = serve(Target(), "127.0.0.1:0", token=TOKEN, options=options).addresses[0]
    client = dial(address)
    client.challenged()
    assert "did not prove that it knows the token within 1 s" in client.refusal()


def test_many_at_once_prove_it_and_a_wrong_one_among_them_changes_nothing(
    address: str, dial: Dial
) -> None:
    clients = [dial(address) for _ in range(8)]
    for client in clients:
        client.challenged()
    for number, client in enumerate(clients):
        said = client.received
        proof = proof_of(TOKEN, b"GCspy client 2\r\n", client.sent, said)
        client.send(pack_frame(PROOF, bytes(32) if number == 3 else proof))
    for number, client in enumerate(clients):
        kind = client.frame()[0]
        assert kind == (3 if number == 3 else WELCOME)
