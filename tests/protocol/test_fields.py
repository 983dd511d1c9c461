"""Reading the maps of a stranger: each field is taken as it should be, or named in the error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import Enum, IntEnum
from typing import Any

import msgpack
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode
from gcspy_protocol.connection import Connection, preamble
from gcspy_protocol.errors import LocalProtocolError, RemoteProtocolError
from gcspy_protocol.frames.fields import Fields, pack_map
from gcspy_protocol.frames.frame import pack_frame
from gcspy_protocol.messages import FrameType
from gcspy_protocol.model import Role
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.session import Session
from tests.protocol.strategies import damaged

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


class Word(Enum):
    ONE = "one"
    TWO = "two"


class Number(IntEnum):
    ONE = 1


def fields(**values: Any) -> Fields:
    return Fields(values, "thing", text_chars=5)


@given(st.dictionaries(st.text(max_size=4), PLAIN, max_size=4), st.binary(max_size=5))
def test_a_packed_map_is_read_back_whatever_follows(values: dict[str, Any], behind: bytes) -> None:
    packed = pack_map(values)
    assert packed == msgpack.packb(values)
    assert Fields.unpack(packed + behind, "thing", text_chars=1000)._values == values


@given(st.dictionaries(st.text(max_size=4), PLAIN, min_size=1, max_size=3))
def test_a_map_cut_short_is_refused_at_every_length(values: dict[str, Any]) -> None:
    packed = pack_map(values)
    for size in range(len(packed)):
        with pytest.raises(RemoteProtocolError, match="not msgpack"):
            Fields.unpack(packed[:size], "thing", text_chars=1000)


@given(st.binary(max_size=60) | damaged(pack_map({"a": [1, {"b": "text"}], "c": 2.5, "d": b"raw"})))
def test_garbage_is_read_or_blamed_on_the_peer(payload: bytes) -> None:
    with suppress(RemoteProtocolError):
        Fields.unpack(payload, "thing", text_chars=100)


def test_each_kind_of_field_is_read() -> None:
    f = fields(
        i=3, f=2.5, t="text", b=True, l=["a", "b"], n=[1, 2], m={"k": "v"}, w="two", none=None
    )
    assert f.integer("i", 0, 3) == 3
    assert f.integer("absent", 0, 3, 2) == 2
    assert f.optional_integer("none", 0, 3) is None
    assert f.optional_integer("i", 0, 3) == 3
    assert f.optional_number("f", 0, 3) == 2.5
    assert type(f.optional_number("i", 0, 3)) is float
    assert f.optional_number("absent", 0, 3) is None
    assert f.flag("b") is True
    assert f.flag("absent", False) is False
    assert f.text("t") == "text"
    assert f.text("none", "x") == "x"
    assert f.texts("l", 2) == ("a", "b")
    assert f.texts("absent", 2) == ()
    assert f.integers("n", 2, 1, 2) == (1, 2)
    assert f.text_map("m", 1) == {"k": "v"}
    assert f.choice("w", Word) is Word.TWO
    assert f.choice("absent", Word, Word.ONE) is Word.ONE
    assert "i" in f
    assert "none" not in f
    assert "absent" not in f


@pytest.mark.parametrize(
    "take",
    [
        lambda f: f.integer("x", 0, 9),
        lambda f: f.optional_integer("x", 0, 9),
        lambda f: f.optional_number("x", 0, 9),
        lambda f: f.flag("x"),
        lambda f: f.text("x"),
        lambda f: f.texts("x", 2),
        lambda f: f.integers("x", 2, 0, 9),
        lambda f: f.text_map("x", 2),
        lambda f: f.choice("x", Word),
        lambda f: f.choice("x", Number),
    ],
)
@pytest.mark.parametrize(
    "value",
    [10, -1, 1 << 63, float("nan"), "too long", b"raw", [[]], [10, -1], [True, False], {"a": 1}, {"a": "too long"},
     ["a", "b", "c"], [b"a"], [None]],
    ids=repr,
)  # fmt: skip
def test_a_field_of_another_kind_or_beyond_its_bounds_is_refused(
    take: Callable[[Fields], Any], value: object
) -> None:
    with pytest.raises(RemoteProtocolError, match=r"^thing: field 'x' should be .*, got "):
        take(fields(x=value))


@pytest.mark.parametrize("value", [True, 1.0], ids=repr)
def test_true_and_one_point_nought_are_not_the_integer_one(value: object) -> None:
    f = fields(x=value, l=[value])
    for take in (
        lambda: f.integer("x", 0, 9),
        lambda: f.choice("x", Number),
        lambda: f.integers("l", 2, 0, 9),
    ):
        with pytest.raises(RemoteProtocolError):
            take()


def test_maps_are_named_by_their_place() -> None:
    (inner,) = fields(things=[{"a": 1}]).maps("things", 1)
    with pytest.raises(RemoteProtocolError, match=r"thing\.things: field 'b'"):
        inner.text("b")
    with pytest.raises(RemoteProtocolError, match=r"thing\.things: expected a map, got int"):
        fields(things=[1]).maps("things", 1)


def test_the_error_stays_one_line_whatever_was_sent() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in ("line\nline", "x" * 100_000, [1] * 100_000, deep):
        with pytest.raises(RemoteProtocolError) as caught:
            fields(x=value).flag("x")
        assert len(str(caught.value)) < 150
        assert "\n" not in str(caught.value)
    while deep:  # freeing it all at once would recurse
        deep = deep.pop()


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc0",
        b"\x81\x01\x02",  # an integer as key: it could be chosen to collide with others
        b"\x81\xa1a\x81\x01\x02",
        b"\x81\xa1a\xc7\x08\x05" + bytes(8),  # an extension type
        b"\x81\xa1a\xdb\xff\xff\xff\xff",
        b"\x81\xa1a\xdf\xff\xff\xff\xff",
        b"\x81\xa1a\xdd\x00\x02\x00\x01" + bytes(0x20001),
        b"\x81\xa1a\xa2\xc3\x28",
        b"\x81\xa1a" + b"\x91" * 100_000,
    ],
)
def test_what_is_no_map_of_plain_values_is_refused(payload: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        Fields.unpack(payload, "thing", text_chars=1 << 16)


def test_an_integer_beyond_64_bits_is_our_own_fault() -> None:
    with pytest.raises(LocalProtocolError, match="64 bits"):
        pack_map({"a": 1 << 64})


def test_a_file_name_that_is_no_unicode_is_sent_with_question_marks() -> None:
    assert Fields.unpack(pack_map({"a": "x\udcff"}), "thing", text_chars=9).text("a") == "x?"


def set_playback(**fields: Any) -> m.Message:
    """Return the message that a server decodes when a client sends SET_PLAYBACK with these fields."""
    server = Connection(Role.SERVER)
    server.send(Session.welcome)
    hello = encode(m.Hello(client="test")).data
    asked = pack_frame(FrameType.SET_PLAYBACK, pack_map(fields), compress=False).data
    server.receive_data(preamble() + hello + asked)
    *_, told = server.messages()
    return told


@pytest.mark.parametrize("loop", [[5, 5], [5, 6], [0, (1 << 63) - 1]])
def test_a_loop_is_a_first_event_and_a_last_one_not_before_it(loop: list[int]) -> None:
    told = set_playback(loop=loop)
    assert isinstance(told, m.SetPlayback)
    assert told.loop == tuple(loop)


@pytest.mark.parametrize("loop", [[5], [6, 5], [1, 0]])
def test_a_loop_without_end_or_that_ends_before_it_begins_is_blamed_on_the_peer(
    loop: list[int],
) -> None:
    with pytest.raises(RemoteProtocolError, match="first and last event of a range"):
        set_playback(loop=loop)


def test_a_trigger_that_tells_only_what_it_must_has_never_fired() -> None:
    least = pack_frame(
        FrameType.TRIGGERS, pack_map({"triggers": [{"id": 1, "state": "armed"}]}), compress=False
    ).data
    client = Connection(Role.CLIENT)
    client.send(m.Hello(client="test"))
    client.receive_data(preamble() + encode(Session.welcome).data + least)
    *_, told = client.messages()
    assert isinstance(told, m.Triggers)
    assert told.fired == 0
    (status,) = told.triggers
    assert (status.fired, status.sequence, status.event, status.occurrence) == (0, 0, 0, 0)
    assert (status.operands, status.why) == ((), "")
