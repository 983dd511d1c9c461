"""The explained stream: what each line says, that nothing wrong is passed over, and that nothing escapes."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.codec import encode, encode_event
from gcspy_protocol.connection import Connection, preamble
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.frames.explain import Explainer, explain, main
from gcspy_protocol.frames.frame import HEADER, pack_frame
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import FrameType
from gcspy_protocol.model import CONTROL_STREAM, Naming, Role, Space, Stream
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.session import Session, server_streams
from tests.protocol.strategies import BY_TYPE, damaged, tiles_of
from tests.protocol.vectors import stored
from tests.waiting import PATIENCE_SECS

SPACE = Space(
    id=1, name="Heap", streams=(Stream(id=2, name="Used"), Stream(id=3, name="Age", dtype="u8"))
)

STAMP: dict[str, Any] = {
    "space": 1,
    "sequence": 7,
    "time_nanos": 1_500_000,
    "event": 1,
    "occurrence": 9,
}

EVENT = m.Event(
    sequence=7,
    time_nanos=1_500_000,
    event=1,
    occurrence=9,
    epoch=1,
    gather_nanos=250_000,
    cause="full",
)

TILES = tiles_of(1, Naming.UNIFORM, [None] * 300, base=0x1000, tile_bytes=64)

START = (
    preamble() + encode(Session.welcome).data + encode(m.SpaceDefined(space=SPACE)).data
    + encode(m.EpochEnd(epoch=1)).data
)  # fmt: skip


def key(values: Any, *, stream: int = 2, known: Any = None) -> m.StreamKey:
    return m.StreamKey(**STAMP, stream=stream, values=values, known=known)


def change(indices: list[int], base: int = 7) -> m.StreamDelta:
    return m.StreamDelta(**{**STAMP, "sequence": 8}, stream=2, base_sequence=base, count=300,
                         indices=np.array(indices), values=np.array(indices, dtype="<i4"))  # fmt: skip


def after_start(data: bytes) -> list[str]:
    lines = list(explain(START + data))
    assert [line.split()[1] for line in lines[:4]] == [
        "PREAMBLE",
        "WELCOME",
        "SPACE_DEFINED",
        "EPOCH_END",
    ]
    return [" ".join(line.split()[1:]) for line in lines[4:]]


def test_an_event_is_told_frame_by_frame_with_the_names_of_the_schema() -> None:
    known = np.ones(300, dtype=bool)
    known[:2] = False
    frames = [
        encode(TILES),
        encode(key(np.arange(300, dtype="<i4"), known=known)),
        encode(key(np.full(300, 1, dtype="u1"), stream=CONTROL_STREAM)),
        encode(m.Summary(**{k: STAMP[k] for k in ("space", "sequence", "time_nanos")}, stream=3, values=(5,), covered=4)),
        encode(m.SpaceInfo(space=1, sequence=7, time_nanos=1, text="half\x1b[31m")),
        pack_frame(0x2B, b"later", space=1),
    ]  # fmt: skip
    sizes = [len(frame.data) - HEADER.size for frame in frames]
    lines = after_start(encode_event(EVENT, frames))
    assert lines == [
        f"TILES {sizes[0]} B 'Heap' (1): 300 tiles, 0 kept in 0 runs, 300 new, uniform from 0x1000, 64 bytes each",
        f"STREAM_KEY {sizes[1]} B (1254 raw) #7 t=0.001500 s 'Heap' (1) 'Used' (2): 300 tiles, 2 unknown, 2 to 299",
        f"STREAM_KEY {sizes[2]} B #7 t=0.001500 s 'Heap' (1) control: 300 tiles, 1 to 1",
        f"SUMMARY {sizes[3]} B #7 t=0.001500 s 'Heap' (1) 'Age' (3): [5], covers 4 tiles",
        f"SPACE_INFO {sizes[4]} B #7 t=0.000000 s 'Heap' (1): text 'half\\x1b[31m'",
        "unknown 0x2b 5 B of a later version: skipped",
        (
            f"EVENT {40 + 12} B #7 t=0.001500 s 'kind 1' (1), occurrence 9, epoch 1, gathered 0.250 ms, held 0.000 ms, "
            "cause 'full', 6 frames, CRC ok"
        ),
    ]


def test_an_event_tells_for_how_long_anybody_waited_or_stood_still() -> None:
    event = replace(EVENT, cause="", held_nanos=1_500_000, waited_nanos=2_000, stopped_nanos=3_000)
    (line,) = after_start(encode_event(event, []))
    assert (
        "held 1.500 ms, waited 0.002 ms for lossless clients in all, "
        "the target was stopped for 0.003 ms, 0 frames" in line
    )


def test_a_delta_tells_how_much_changed() -> None:
    first = encode_event(EVENT, [encode(TILES), encode(key(np.arange(300, dtype="<i4")))])
    lines = after_start(first + encode_event(replace(EVENT, cause=""), [encode(change([3, 299]))]))
    assert lines[3].endswith("'Used' (2): 2 of 300 tiles changed since #7, 3 to 299")


def test_each_line_begins_with_the_offset_of_its_frame() -> None:
    offsets = [int(line[:10]) for line in explain(START)]
    assert offsets[:2] == [0, 12]
    assert offsets[2] == 12 + len(encode(Session.welcome).data)
    assert len(START) == offsets[-1] + len(encode(m.EpochEnd(epoch=1)).data)


@pytest.mark.parametrize(
    ("data", "errors"),
    [
        (encode_event(EVENT, [encode(change([1], 6)), encode(TILES)]), ["values of 300 tiles, the space has 0"]),
        (encode_event(EVENT, [encode(TILES), encode(change([1], 6))]), ["since snapshot 6, here are those of 0"]),
        (encode_event(replace(EVENT, epoch=4), []), ["schema epoch 4, here is 1"]),
        (encode_event(EVENT, [])[:-1] + b"x", ["damaged event"]),
        (encode(TILES).data, ["in the middle of an event: 1 frames"]),
        (encode(TILES).data + encode(m.Counters(counts=())).data,
         ["COUNTERS in the middle of an event", "in the middle of an event: 1 frames"]),
        (encode(m.Pause()).data + encode(m.Ping(number=1)).data, ["PAUSE is not sent by a server"]),
        (encode(m.Ping(number=1)).data[:30], ["in the middle of PING: 30 of 37 bytes"]),
        (encode(m.Ping(number=1)).data[:20], ["in the middle of a header: 20 of 28 bytes"]),
        (pack_frame(FrameType.PING, b"\xc1").data + encode(m.Ping(number=1)).data, ["ping: not msgpack"]),
        (HEADER.pack(1 << 31, 1, 0, 0, 0, 0, 0, 0) + bytes(99), ["claims 2147483648 bytes, over the limit of"]),
        (HEADER.pack(3, FrameType.PING, 1, 0, 0, 0, 0, 0) + b"abc", ["not a zstd payload"]),
        (encode(m.SpaceDefined(space=SPACE)).data, ["space 1 is defined twice"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_a_line_with_its_offset(data: bytes, errors: list[str]) -> None:
    explainer = Explainer()
    lines = [line for line in explainer.lines(START + data) if " error: " in line]
    assert explainer.errors == len(lines) == len(errors)
    for line, error in zip(lines, errors, strict=True):
        assert error in line
        assert len(START) <= int(line[:10]) <= len(START + data)


def test_after_an_error_the_following_frames_are_still_told() -> None:
    data = pack_frame(FrameType.PING, b"\xc1").data + encode(m.Ping(number=5)).data
    assert after_start(data)[-1] == "PING 9 B number 5"


def test_the_secret_of_a_hello_is_never_shown() -> None:
    (line,) = explain(encode(m.Hello(client="c", token="hunter2")).data)
    assert "hunter2" not in line
    assert line.endswith("with token")
    (line,) = explain(encode(m.Hello(client="c")).data)
    assert line.endswith("no token")


def test_the_sender_is_seen_or_given() -> None:
    pause = encode(m.Pause()).data
    assert not Explainer().errors
    for sender, data, wrong in (
        (None, pause + encode(m.Goodbye()).data, 0),
        (Role.CLIENT, pause, 0),
        (Role.SERVER, pause, 1),
        (None, pause + encode(m.Counters(counts=())).data, 1),
    ):
        explainer = Explainer(sender=sender)
        list(explainer.lines(data))
        assert explainer.errors == wrong


def test_preambles_of_other_versions_and_cut_ones_are_errors() -> None:
    other = Connection(Role.CLIENT, versions=(3, 4)).preamble()
    assert "versions 3 to 4" in next(explain(other))
    explainer = Explainer()
    assert "none of them" in list(explainer.lines(other))[1]
    for size in range(1, 12):
        explainer = Explainer()
        assert len(list(explainer.lines(preamble()[:size]))) == 1
        assert explainer.errors == 1
    assert list(explain(b"")) == []


def test_every_golden_vector_can_be_explained() -> None:
    for vector in stored():
        explainer = Explainer()
        lines = list(explainer.lines(vector.data))
        assert len(lines) == len(vector.messages) + explainer.errors + vector.name.startswith(
            "session-"
        )
        alone = 0x20 <= vector.data[4] < 0x2F and vector.messages[-1]["is"] != "Event"
        assert explainer.errors == alone, lines


@pytest.mark.parametrize("frame_type", sorted(BY_TYPE), ids=lambda t: FrameType(t).name)
@given(data=st.data())
def test_any_message_is_one_printable_line(frame_type: FrameType, data: st.DataObject) -> None:
    message = data.draw(BY_TYPE[frame_type])
    frame = encode_event(message, []) if isinstance(message, m.Event) else encode(message).data
    line = next(explain(frame))
    assert frame_type.name in line
    assert line.isprintable()


@given(server_streams())
def test_a_right_stream_has_no_errors_and_a_line_for_each_frame(stream: bytes) -> None:
    explainer = Explainer()
    lines = list(explainer.lines(stream))
    assert explainer.errors == 0, lines
    frames, at = 0, 12
    while at < len(stream):
        at += HEADER.size + HEADER.unpack_from(stream, at)[0]
        frames += 1
    assert len(lines) == frames + 1


@given(st.data())
def test_garbage_is_explained_and_whatever_a_connection_refuses_is_an_error(
    data: st.DataObject,
) -> None:
    stream = data.draw(damaged(data.draw(server_streams())) | st.binary(max_size=100))
    limits = Limits(payload_bytes=1 << 14, raw_bytes=1 << 16, tiles=1 << 10, values_bytes=1 << 20)
    explainer = Explainer(sender=Role.SERVER, limits=limits)
    lines = list(explainer.lines(stream))
    assert all(line.isprintable() for line in lines)
    connection = Connection(Role.CLIENT, limits=limits)
    connection.receive_data(stream)
    try:
        connection.receive_eof()
    except RemoteProtocolError as error:
        refused = "before" not in str(error) and "state greeting" not in str(error)
        refused &= "not a GCspy peer" not in str(error) and "EVENT frame is compressed" not in str(
            error
        )
    else:
        refused = False
    assert explainer.errors or not refused


# ----------------------------------------------------------------- the command


def test_the_command_exits_with_0_for_right_1_for_wrong_2_for_unreadable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_bytes(START)
    wrong.write_bytes(START[:-1])
    assert main([str(right)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert main([str(right), "--from", "client"]) == 1
    assert "WELCOME is not sent by a client" in capsys.readouterr().out
    assert main([str(wrong), "--limit", "1"]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == ["3 more lines; 1 errors in all"]
    assert main([str(tmp_path / "nothing")]) == 2
    assert "cannot read" in capsys.readouterr().err
    with pytest.raises(SystemExit) as usage:
        main(["--from", "nobody"])
    assert usage.value.code == 2


def test_the_command_reads_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(START)))
    assert main(["-"]) == 0
    assert "PREAMBLE" in capsys.readouterr().out


def test_the_module_runs_and_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    many = tmp_path / "many"
    many.write_bytes(START + encode(m.Ping(number=1)).data * 20_000)
    with subprocess.Popen(
        [sys.executable, "-m", "gcspy_protocol.frames.explain", str(many)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"PREAMBLE" in process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(PATIENCE_SECS) == 0
