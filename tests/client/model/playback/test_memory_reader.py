"""Reading the memory of recordings: real files, one that grows, one that is damaged."""

from __future__ import annotations

import shutil
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gcspy_replay.file import Recording

from gcspy_client.model.memory_history import MemoryStreams, latest_summaries, memory_source
from gcspy_client.model.playback.memory_reader import MemoryReader
from gcspy_client.model.playback.memory_samples import MemorySamples, sample_of

SAMPLES = Path(__file__).parents[4] / "replay" / "samples"
_PATIENCE_SECS = 60.0


def source_of(path: Path) -> MemoryStreams:
    with Recording.open(path) as recording:
        return memory_source(recording.seek(recording.last))


def read(path: Path, source: MemoryStreams, events: int) -> MemorySamples:
    """Read a file until this many events are there."""
    samples = MemorySamples(len(source.quantities) + 1)
    told = threading.Event()
    reader = MemoryReader(partial(Recording.open, path), source, told.set)
    try:
        while len(samples) < events or reader.progress < 1:
            assert told.wait(_PATIENCE_SECS)
            told.clear()
            for piece in reader.take():
                samples.put(*piece)
            if reader.error is not None:
                raise reader.error
    finally:
        reader.close()
    return samples


@pytest.mark.parametrize("name", ["demo-cpython-3.11.gcspy", "semispace.gcspy"])
def test_each_event_has_what_a_viewer_would_see_there(name: str) -> None:
    path = SAMPLES / name
    source = source_of(path)
    with Recording.open(path) as recording:
        samples = read(path, source, recording.last)
        wanted = []
        for _, session in recording.steps():
            wanted.append(sample_of(source, latest_summaries(session, source.wanted)))
    columns = np.stack(wanted, axis=1)
    assert columns.shape[1] == len(samples) > 30
    for quantity in range(len(columns)):
        first, values = samples.row(quantity)
        assert first == 1
        assert values.tolist() == columns[quantity].tolist()
    assert (columns[0] > 0).any()


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    told = threading.Event()
    source = source_of(SAMPLES / "semispace.gcspy")
    reader = MemoryReader(partial(Recording.open, tmp_path / "none.gcspy"), source, told.set)
    assert told.wait(_PATIENCE_SECS)
    reader.close()
    assert "none.gcspy" in str(reader.error)


def test_a_damaged_chunk_leaves_a_gap_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "damaged.gcspy"
    shutil.copy(SAMPLES / "demo-cpython-3.11.gcspy", path)
    source = source_of(path)
    with Recording.open(path) as recording:
        last = recording.last
        chunks = [at.place for at in recording.chunks if at.place.events]
        assert len(chunks) > 2
        place = chunks[len(chunks) // 2]
    data = bytearray(path.read_bytes())
    data[place.offset + place.size // 2] ^= 0xFF
    path.write_bytes(data)
    samples = read(path, source, last)
    _, values = samples.row(0)
    inside = slice(place.first - 1, place.first - 1 + place.events)
    assert (values[inside] < 0).all(), "what was read before the damage is not trusted"
    rest = np.delete(values, inside)
    assert (rest >= 0).any()


def test_a_recording_that_grows_is_followed(tmp_path: Path) -> None:
    whole = (SAMPLES / "demo-cpython-3.11.gcspy").read_bytes()
    source = source_of(SAMPLES / "demo-cpython-3.11.gcspy")
    path = tmp_path / "growing.gcspy"
    path.write_bytes(whole[: len(whole) // 2])
    with Recording.open(path) as recording:
        assert not recording.finished
        before = recording.last
    with Recording.open(SAMPLES / "demo-cpython-3.11.gcspy") as recording:
        last = recording.last
    assert 0 < before < last
    samples = MemorySamples(len(source.quantities) + 1)
    told = threading.Event()
    reader = MemoryReader(partial(Recording.open, path), source, told.set)
    try:
        for events in (before, last):
            while len(samples) < events:
                assert told.wait(_PATIENCE_SECS)
                told.clear()
                for piece in reader.take():
                    samples.put(*piece)
            if events == before:
                with path.open("ab") as file:
                    file.write(whole[len(whole) // 2 :])
    finally:
        reader.close()
    assert (samples.row(0)[1] >= 0).any()
