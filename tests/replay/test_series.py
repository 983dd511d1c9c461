"""A recording in a script: `gcspy.open`, events, moments, series and matrices."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gcspy_protocol.errors import NotARecording, RecordingError
from gcspy_replay.file import ChunkRule, Recording, compensated_nanos
from gcspy_replay.file.series import summaries, summary_columns

import gcspy
from tests.replay.recorded import Small, small

EVENTS = 30


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.gcspy"
    path.write_bytes(small(EVENTS, rule=ChunkRule(weight=99, most_events=7)))
    return path


def test_a_moment_has_the_tiles_by_name(path: Path) -> None:
    with gcspy.open(path) as rec:
        assert len(rec) == len(rec.events) == EVENTS
        assert rec.event_names == ["clock", "collection"]
        then = rec.at(12)
        assert (then.number, then.event.occurrence) == (12, 12)
        assert list(then) == ["heap"]
        assert list(then["heap"]) == ["Used", "Kind"]
        assert then["heap"].tiles == 9
        assert np.array_equal(then["heap"]["Used"].values, Small.values(12))
        assert "30 events, 1 to 30" in repr(rec)


def test_names_that_are_wrong_are_answered_with_those_there_are(path: Path) -> None:
    with gcspy.open(path) as rec:
        with pytest.raises(RecordingError, match="no space 'nursery' at event 3; there are: heap"):
            rec.at(3)["nursery"]
        with pytest.raises(RecordingError, match="no stream 'Free'; it has: Used, Kind"):
            rec.at(3)["heap"]["Free"]
        with pytest.raises(RecordingError, match="no stream 'Free'"):
            rec.series("heap", "Free")
        with pytest.raises(RecordingError, match="no event 31: there are 1 to 30"):
            rec.at(31)
        with pytest.raises(RecordingError, match="no events 3 to 31"):
            rec.matrix("heap", "Used", 3, 31)


def test_a_series_is_the_summary_of_each_event(path: Path) -> None:
    with gcspy.open(path) as rec:
        series = rec.series("heap", "Used")
        assert series.shape == (EVENTS, 2)
        assert series[:, 0].tolist() == [int(Small.values(n).sum()) for n in range(1, EVENTS + 1)]
        assert set(series[:, 1].tolist()) == {900}
        kind = rec.series("heap", "Kind")
        assert np.ma.getmaskarray(kind).all(), "no event brought a summary of it"


def test_a_matrix_has_a_row_an_event(path: Path) -> None:
    with gcspy.open(path) as rec:
        matrix = rec.matrix("heap", "Used", 5, 20)
        assert len(matrix) == 16
        assert np.array_equal(matrix[-1], Small.values(20))
        assert np.array_equal(matrix[3], Small.values(8))
        assert np.array_equal(matrix.to_array(), [Small.values(n) for n in range(5, 21)])
        with pytest.raises(IndexError):
            matrix[16]


def test_values_of_an_earlier_event_are_masked_unless_asked_for(path: Path) -> None:
    with gcspy.open(path) as rec:
        fresh = rec.matrix("heap", "Kind", 1, 4).to_array()
        assert np.ma.getmaskarray(fresh).any(axis=1).tolist() == [False, True, True, True]
        assert not np.ma.getmaskarray(rec.matrix("heap", "Kind", 1, 4, stale=True).to_array()).any()
        assert rec.matrix("nursery", "Used", 1, 4).to_array().shape == (4, 0)


def test_program_time_is_without_gathering_and_holds(path: Path) -> None:
    with gcspy.open(path) as rec:
        nanos = rec.program_nanos
        # Events are 100 ms apart; before each 10 ns were held, and the one before took 1000 ns to gather.
        assert nanos.tolist() == [n * (100_000_000 - 1010) for n in range(EVENTS)]
    assert len(compensated_nanos(rec.events[:0])) == 0


def test_what_is_no_recording_is_named(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("hello")
    with pytest.raises(
        NotARecording, match=r"b\.txt: not a GCspy recording: it begins with b'hello'"
    ):
        gcspy.open(tmp_path / "b.txt")
    with pytest.raises(RecordingError, match="cannot read"):
        gcspy.open(tmp_path / "none.gcspy")


def test_importing_gcspy_loads_no_reader() -> None:
    program = "import sys, gcspy; print(sorted(n for n in sys.modules if n.startswith(('numpy', 'gcspy_'))))"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"


def test_columns_of_summaries_are_the_summaries_of_each_event(path: Path) -> None:
    wanted = (("heap", "Kind"), ("heap", "Used"), ("heap", "Nothing"))
    with Recording.open(path) as recording:
        pieces = [summary_columns(recording, at, wanted) for at in recording.chunks]
        assert len(pieces) > 2, "several chunks, of which each begins with a keyframe"
        columns = np.concatenate(pieces)
        told = {row.number: row.summary for row in summaries(recording, "heap", "Used")}
    assert columns.shape == (EVENTS, 3, 3)
    for number in range(1, EVENTS + 1):
        wanted_row = [told[number].covered, *told[number].values]
        assert columns[number - 1, 1].tolist() == wanted_row
    assert (columns[:, [0, 2]] == -1).all(), "no event brought a summary of these"
