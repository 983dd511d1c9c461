"""The golden files, both ways, and that nobody regenerates them."""

from __future__ import annotations

from pathlib import Path

import pytest
from gcspy_protocol.codec import encode
from gcspy_protocol.connection import MAGIC, Connection, preamble
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.frames.transcoding import without_zstd
from gcspy_protocol.messages import Event, FrameType, Hello, Unknown
from gcspy_protocol.model import Role

from tests.protocol import exchange, vectors
from tests.protocol.sameness import all_same
from tests.protocol.session import Session
from tests.protocol.vectors import (
    Vector,
    cases,
    decoded,
    encoded,
    frames_of,
    message_of,
    message_to_json,
    stored,
)

STORED = stored()


@pytest.mark.parametrize("vector", STORED, ids=lambda v: v.name)
def test_golden_bytes_are_read_as_they_always_were(vector: Vector) -> None:
    messages = decoded(vector.data)
    assert [message_to_json(message) for message in messages] == vector.messages
    assert all_same([message_of(value) for value in vector.messages], messages)


@pytest.mark.parametrize("vector", [v for v in STORED if v.exact], ids=lambda v: v.name)
def test_golden_bytes_are_written_as_they_always_were(vector: Vector) -> None:
    assert encoded([message_of(value) for value in vector.messages]) == vector.data


@pytest.mark.parametrize("vector", [v for v in STORED if not v.exact], ids=lambda v: v.name)
def test_what_is_not_written_so_today_is_read_like_what_is(vector: Vector) -> None:
    messages = [message for message in decoded(vector.data) if not isinstance(message, Unknown)]
    assert all_same(decoded(encoded(messages)), messages)


_OF_HANDSHAKES = {name for name, *_ in exchange.vectors() if name != "error-unproven"}
"""They fit one connection: `test_handshake.py` gives them to it."""


@pytest.mark.parametrize(
    "vector", [v for v in STORED if v.name not in _OF_HANDSHAKES], ids=lambda v: v.name
)
def test_a_connection_takes_a_vector_and_any_cut_of_it_is_cut_short(vector: Vector) -> None:
    first = next(frames_of(vector.data))[0].type
    client = first in (
        FrameType.HELLO,
        *(
            t
            for t in FrameType
            if t >= FrameType.SET_FILTERS and t not in (FrameType.SETTINGS, FrameType.ANSWER)
        ),
    )
    greeting = encode(Hello(client="c") if client else Session.welcome).data
    start = preamble() + (b"" if first in (FrameType.HELLO, FrameType.WELCOME) else greeting)
    start = b"" if vector.data.startswith(MAGIC) else start
    ends = {len(start)} if start.endswith(greeting) else set()
    ends |= {len(start) + len(vector.data)}
    for size in range(len(start), len(start + vector.data) + 1):
        connection = Connection(Role.SERVER if client else Role.CLIENT)
        connection.receive_data((start + vector.data)[:size])
        whole_event = first < 0x20 or first >= 0x2F or decoded(vector.data)[-1].__class__ is Event
        if size in ends and (whole_event or size == len(start)):
            connection.receive_eof()
            assert list(connection.messages())
        else:
            with pytest.raises(RemoteProtocolError):
                connection.receive_eof()


def test_there_is_a_vector_for_every_type_of_frame() -> None:
    kinds = {header.type for vector in STORED for header, _ in frames_of(vector.data)}
    assert kinds >= set(FrameType)
    assert kinds - set(FrameType) == {0x7F, 0x2A}


def test_the_two_forms_of_an_event_are_made_of_each_other() -> None:
    by_name = {vector.name: vector for vector in STORED}
    with_zstd, plain = by_name["event-zstd"], by_name["event-plain"]
    assert without_zstd(with_zstd.data) == plain.data != with_zstd.data
    assert with_zstd.messages == plain.messages


def test_every_case_has_its_file_and_today_it_would_be_written_the_same() -> None:
    stored_data = {vector.name: vector for vector in STORED}
    for case in cases():
        assert case.name in stored_data, (
            f"run python -m tests.protocol.vectors to write {case.name}"
        )
        if case.exact:
            assert stored_data[case.name].data == case.data
    assert sorted(path.stem for path in vectors.FOLDER.glob("*.bin")) == sorted(stored_data)


def test_a_file_that_is_there_is_never_written_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(vectors, "FOLDER", tmp_path)
    kept = tmp_path / "ping.bin"
    kept.write_bytes(b"as it was")
    written = vectors.write_missing()
    assert len(written) == len(list(cases())) - 1
    assert "ping" not in written
    assert kept.read_bytes() == b"as it was"
    assert not (tmp_path / "ping.json").exists()
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert vectors.write_missing() == []
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
