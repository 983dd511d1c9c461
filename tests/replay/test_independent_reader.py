"""FORMAT.md and SPEC.md are enough: a reader written from them alone agrees tile for tile."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.model import CONTROL_STREAM, Naming
from gcspy_replay.file import MemorySource, MemoryStore, Recording, repack
from gcspy_replay.file.layout import FORMAT_VERSION, WIRE_VERSION
from hypothesis import given
from hypothesis import strategies as st

from tests.replay import independent_frames, independent_reader, independent_records
from tests.replay.independent_reader import Reader
from tests.replay.recorded import RULES, Recorder, Small

SAMPLES = Path(__file__).resolve().parents[2] / "replay" / "samples"


def assert_agrees(reader: Reader, session: ClientInterpreter) -> None:
    """Assert that both know the same."""
    welcome = session.welcome
    assert welcome is not None
    assert [kind["name"] for kind in reader.welcome.get("events", [])] == [
        kind.name for kind in welcome.events
    ]
    assert reader.welcome["server"] == welcome.server
    assert reader.said[0x12]["epoch"] == session.epoch
    assert tuple(reader.said.get(0x30, ())) == tuple(session.counters)
    assert reader.said[0x31]["state"] == session.state.value
    assert reader.said.get(0x34, {}).get("total", 0) == session.missed_total
    assert set(reader.spaces) == set(session.spaces)
    for space_id, state in session.spaces.items():
        space = reader.spaces[space_id]
        assert (space.told["name"], space.count, space.info) == (
            state.space.name,
            state.count,
            state.info,
        )
        for tile in range(0, state.count, max(1, state.count // 50)):
            extent = state.names.extent(tile)
            if state.space.naming is Naming.STRINGS:
                assert reader.names.get(space_id, {}).get(tile, str(tile)) == state.names.name(tile)
            elif state.space.naming is Naming.EXTENTS:
                assert extent == (int(space.bases[tile]), int(space.sizes[tile]))
            elif state.space.naming is Naming.UNIFORM:
                assert extent == (
                    (space.base + tile * space.tile_bytes) % (1 << 64),
                    space.tile_bytes,
                )
        for stream_id, stream in {**state.streams, CONTROL_STREAM: state.control}.items():
            other = space.streams[stream_id]
            assert other.sequence == stream.sequence
            if not stream.sequence:
                continue
            known = np.ones(state.count, np.bool_) if stream.known is None else stream.known
            assert np.array_equal(other.known, known)
            assert np.array_equal(other.values[known], stream.values[known])
            assert other.occurrence == stream.occurrence
            if stream.summary is not None:
                assert (other.covered, other.summary) == (
                    stream.summary.covered,
                    tuple(stream.summary.values),
                )


def assert_agree_everywhere(data: bytes) -> int:
    """Assert that both readers report the same of each event, and return how many there are."""
    reader, recording = Reader(), Recording([MemorySource(data)])
    cursor = recording.cursor()
    numbers = []
    for number, event in reader.events(data):
        session = cursor.seek(number)
        ours: Any = session.last_event
        assert (event["event"], event["occurrence"], event["sequence"], event["time"], event["gather"], event["held"]) == (
            ours.event, ours.occurrence, ours.sequence, ours.time_nanos, ours.gather_nanos, ours.held_nanos,
        )  # fmt: skip
        assert event.get("cause", "") == ours.cause
        assert_agrees(reader, session)
        numbers.append(number)
    assert numbers == recording.events["number"].tolist()
    return len(numbers)


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.gcspy")), ids=lambda path: path.stem)
@pytest.mark.parametrize("closed", [True, False])
def test_it_agrees_on_the_samples(path: Path, closed: bool) -> None:
    data = path.read_bytes()
    assert assert_agree_everywhere(data if closed else data[:-1]) >= 30


@pytest.mark.parametrize("level", [None, 9], ids=["recorded", "packed"])
def test_it_agrees_on_a_sample_that_is_written_again(level: int | None) -> None:
    store = MemoryStore()
    with Recording.open(SAMPLES / "demo-cpython-3.11.gcspy") as recording:
        repack(recording, store, level=level)
    assert assert_agree_everywhere(bytes(store.data)) == 40


@given(st.data(), RULES, st.integers(1, 12), st.booleans())
def test_it_agrees_on_any_session(data: st.DataObject, rule: Any, steps: int, tapped: bool) -> None:
    store = MemoryStore()
    version = data.draw(st.sampled_from((WIRE_VERSION, FORMAT_VERSION)))
    recorder = Recorder(data.draw, store, rule, tapped=tapped, version=version)
    recorder.run(steps)
    if store.data:
        assert assert_agree_everywhere(bytes(store.data)) == len(recorder.seen.events)


def test_it_reads_what_a_kill_left() -> None:
    store = MemoryStore()
    Small(store).events(30)
    assert assert_agree_everywhere(bytes(store.data[:-5])) == 29


@pytest.mark.parametrize("module", [independent_frames, independent_reader, independent_records])
def test_it_shares_nothing_with_the_product_and_is_short(module: ModuleType) -> None:
    source = Path(module.__file__ or "").read_text()
    assert sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(source))) < 224
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            name = node.module or ""
            own = name.startswith("tests.replay.independent_")
            names.add(name if own else name.partition(".")[0])
    assert names <= {
        "__future__",
        "struct",
        "zlib",
        "collections",
        "dataclasses",
        "typing",
        "msgpack",
        "numpy",
        "zstandard",
        "tests.replay.independent_frames",
        "tests.replay.independent_records",
    }
