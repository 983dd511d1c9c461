"""The frames of a space are the same bytes whether C or numpy makes them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gcspy_protocol.compiled.space_encoder import CompiledEncoder, StreamJob
from gcspy_protocol.compiled.stream_library import FOLDER, NAME, streams_library
from gcspy_protocol.errors import LocalProtocolError
from gcspy_protocol.frames.frame import FLAG_ZSTD
from gcspy_protocol.model import DTYPES, Control, EventFilter
from gcspy_protocol.streams.values import Stamp
from hypothesis import given
from hypothesis import strategies as st

from gcspy_server.api import Presentation, Server, ServerSpace, ServerStream, UniformNames
from gcspy_server.interpreter.gather_request import GatherRequest
from gcspy_server.interpreter.transmission import SnapshotPart, SpaceSender, parts_of
from gcspy_session.interest import EVERYTHING
from tests.house.rooms import ROOT
from tests.server.compiled import SANITIZED, load_hook, need_library

_OTHERS = [
    ROOT / "tests/protocol/test_compiled_decoding.py",
    ROOT / "tests/protocol/test_stream_changes.py",
]
ENUM = ("none", "some", "all")
INFO = {name: np.iinfo(name) for name in DTYPES}


def plain(known: np.ndarray[Any, np.dtype[np.bool_]] | None) -> list[bool] | None:
    return None if known is None else known.tolist()


class Twins:
    """A space, and two senders of it: one in C, the other in numpy."""

    def __init__(self, tiles: int) -> None:
        self.space = Server("x", events=["tick"]).add_space("s", names=UniformNames(0, 16, tiles))
        self.sequence = 0

    def begin(self) -> None:
        self.compiled, self.plain = SpaceSender(self.space), SpaceSender(self.space)
        self.compiled._compiled = CompiledEncoder(need_library(), self.space.id)
        self.plain._compiled = None

    def stamp(self) -> Stamp:
        return Stamp(
            sequence=self.sequence,
            time_nanos=self.sequence << 40,
            event=0,
            occurrence=(1 << 64) - self.sequence,
        )

    def send(self) -> list[SnapshotPart]:
        """Encode what was filled with both, compare everything, and return the parts."""
        self.sequence += 1
        request = GatherRequest(0, self.sequence, 1, EventFilter(event=0), EVERYTHING)
        pieces, resized = self.compiled.encode(request, self.stamp())
        parts, joined = parts_of(pieces), b"".join(piece.data for piece in pieces)
        assert joined == b"".join(part.frame.data for part in parts)
        assert b"".join(piece.crcs for piece in pieces) == b"".join(
            part.frame.crc.to_bytes(4, "little") for part in parts
        )
        expected, expected_resized = self.plain.encode(request, self.stamp())
        assert parts == parts_of(expected)
        assert resized == expected_resized
        for number, mine in self.compiled.encoders.items():
            theirs = self.plain.encoders[number]
            assert np.array_equal(mine.values, theirs.values)
            assert plain(mine.known) == plain(theirs.known)
            assert mine.stamp == theirs.stamp
        for stream in self.space.streams:
            if stream.gathered and stream.schema.names_from is None:
                number = stream.schema.id
                told = self.compiled.summary(number, self.stamp())
                assert told == self.plain.summary(number, self.stamp())
        self.space._begin_event()
        return parts


@st.composite
def streams(draw: st.DrawFn, space: ServerSpace) -> ServerStream:
    dtype = draw(st.sampled_from(sorted(DTYPES)))
    info, number = INFO[dtype], len(space.streams)
    presentation = draw(st.sampled_from(list(Presentation)))
    if presentation is Presentation.PERCENT_VAR and not number:
        presentation = Presentation.PLAIN
    maximum = draw(st.integers(0, int(info.max)))
    return space.add_stream(
        f"stream {number}",
        dtype=dtype,
        maximum=2 if presentation is Presentation.ENUM else maximum,
        default=draw(st.integers(int(info.min), int(info.max))),
        presentation=presentation,
        enum_names=ENUM if presentation is Presentation.ENUM else (),
        max_stream=space.streams[draw(st.integers(0, number - 1))]
        if presentation is Presentation.PERCENT_VAR
        else None,
        accumulates=draw(st.booleans()),
        names_from=0 if draw(st.integers(0, 9)) == 0 and number else None,
    )


def fill(data: st.DataObject, stream: ServerStream) -> None:
    """Change some, many or no values, make some unknown, and give a summary or none."""
    values = stream.data
    info, tiles = INFO[stream.schema.dtype], len(values)
    random = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    share = data.draw(st.sampled_from((0.0, 0.01, 0.2, 0.5, 1.0)))
    which = random.random(tiles) < share
    low, high = (0, 3) if data.draw(st.booleans()) else (int(info.min), int(info.max))
    values[which] = random.integers(low, high, int(which.sum()), dtype=values.dtype, endpoint=True)
    unknown = data.draw(st.sampled_from((None, 0.0, 0.1, 1.0)))
    if unknown is not None:
        stream.set_unknown(random.random(tiles) < unknown)
    elif data.draw(st.booleans()):
        stream._known = None
    if stream.schema.names_from is None and data.draw(st.integers(0, 3)) == 0:
        numbers = st.integers(-(1 << 63), (1 << 63) - 1)
        stream.set_summary(
            *(data.draw(numbers) for _ in range(stream.schema.summary_length)),
            covered=data.draw(st.sampled_from((None, 0, 1, (1 << 32) - 1))),
        )


@given(st.data())
def test_whatever_is_filled_the_frames_are_those_of_numpy(data: st.DataObject) -> None:
    twins = Twins(data.draw(st.sampled_from((0, 1, 7, 8, 31, 32, 33, 100, 700))))
    for _ in range(data.draw(st.integers(1, 4))):
        data.draw(streams(twins.space))
    twins.begin()
    for _ in range(data.draw(st.integers(1, 5))):
        if data.draw(st.integers(0, 3)) == 0:
            base = 16 * data.draw(st.integers(0, 5))
            twins.space.resize(UniformNames(base, 16, data.draw(st.integers(0, 300))))
        if data.draw(st.booleans()):
            control = twins.space.control
            random = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
            control[:] = random.choice(
                [Control.USED, Control.UNUSED, Control.USED | Control.SEPARATOR], len(control)
            )
        for stream in twins.space.streams:
            if data.draw(st.booleans()):
                fill(data, stream)
        twins.send()


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize("unknown", [False, True])
def test_gaps_with_escapes_and_large_payloads_are_those_of_numpy(dtype: str, unknown: bool) -> None:
    tiles = 200_000
    twins = Twins(tiles)
    stream = twins.space.add_stream("a", dtype=dtype, maximum=100)
    twins.begin()
    stream.data[:] = np.arange(tiles) % 100
    twins.send()
    for places in (
        [0],
        [65_534],
        [65_535],
        [65_536],
        [0, 65_536, 131_072],
        [tiles - 1],
        [65_535, 131_071, 196_607],
        list(range(0, tiles, 3)),
        list(range(0, tiles, 97)),
    ):
        stream.data[places] += 1
        if unknown:
            stream.set_unknown(places[::2])
        twins.send()


def test_a_payload_that_shrinks_is_compressed_and_a_summary_too() -> None:
    twins = Twins(3000)
    stream = twins.space.add_stream(
        "a",
        dtype="u2",
        maximum=99,
        presentation=Presentation.ENUM,
        enum_names=tuple(map(str, range(100))),
    )
    twins.begin()
    stream.data[:] = 7
    parts = twins.send()
    assert [part.frame.data[5] & FLAG_ZSTD for part in parts if part.stream == 0] == [1, 1]


@pytest.mark.parametrize(
    ("dtype", "value", "sums"),
    [
        ("i8", (1 << 63) - 1, (1 << 63) - 1),
        ("i8", -(1 << 63), -(1 << 63) + 1),
        ("u8", (1 << 64) - 1, (1 << 63) - 1),
        ("u4", (1 << 32) - 1, 5000 * ((1 << 32) - 1)),
        ("i4", -(1 << 31), -5000 * (1 << 31)),
    ],
)
def test_sums_do_not_overflow(dtype: str, value: int, sums: int) -> None:
    twins = Twins(5000)
    stream = twins.space.add_stream("a", dtype=dtype, maximum=100)
    twins.begin()
    stream.data[:] = value
    twins.send()
    assert twins.compiled.summary(0, twins.stamp()).values == (sums,)


@pytest.mark.parametrize("number", [1 << 63, -(1 << 63) - 1])
def test_a_summary_that_does_not_fit_is_refused_as_by_numpy(number: int) -> None:
    twins = Twins(4)
    stream = twins.space.add_stream("a", dtype="i4", maximum=100)
    twins.begin()
    stream.set_summary(number)
    twins.sequence = 1
    request = GatherRequest(0, 1, 1, EventFilter(event=0), EVERYTHING)
    for sender in (twins.compiled, twins.plain):
        with pytest.raises(LocalProtocolError, match="does not fit"):
            sender.encode(request, twins.stamp())


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(4, dtype=">i4"),
        np.zeros(8, dtype="i4")[::2],
        np.frombuffer(b"\0" * 17, dtype="i4", count=4, offset=1),
        np.zeros(5, dtype="i4"),
        np.zeros((2, 2), dtype="i4"),
        np.zeros(4, dtype="f4"),
    ],
)
def test_arrays_that_c_cannot_read_are_left_to_numpy(values: Any) -> None:
    twins = Twins(4)
    stream = twins.space.add_stream("a", dtype="i4", maximum=100)
    twins.begin()
    stream.data[:] = 1
    twins.send()
    encoder = twins.compiled._compiled
    assert encoder is not None
    job = StreamJob(0, twins.compiled.encoders[0], values)
    assert encoder.encode([job], twins.space._control, twins.stamp()) is None
    assert twins.compiled.encoders[0].values.tolist() == [1] * 4
    stream.data[1] = 2
    twins.send()  # the next event is encoded as if nothing had been asked


def test_the_choice_is_made_once_and_can_be_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCSPY_C_CODE", "no")
    streams_library.cache_clear()
    try:
        space = Server("x", events=["tick"]).add_space("s", names=UniformNames(0, 16, 4))
        assert SpaceSender(space)._compiled is None
    finally:
        streams_library.cache_clear()


@pytest.mark.soak
def test_no_access_is_out_of_bounds_and_nothing_is_undefined(tmp_path: Path) -> None:
    """Run the tests above, and those of decoding, with a library that checks each access."""
    hook = load_hook()
    compiler = hook.find_compiler()
    if compiler is None:
        pytest.skip("there is no C compiler")
    flags = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    why_not = hook.build_loops(hook.Loops(NAME, FOLDER), tmp_path, (*hook.LOOP_FLAGS, *flags))
    if why_not:
        pytest.skip(f"no sanitizers: {why_not}")
    (library,) = tmp_path.glob("*.so")
    runtime = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-m",
            "not soak",
            __file__,
            *map(str, _OTHERS),
        ],
        env=os.environ
        | {SANITIZED: str(library), "LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert " passed" in done.stdout
