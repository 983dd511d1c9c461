"""Stored traces of the original at the command line: replayed, summarised, converted, exported, and refused with a reason."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from gcspy_original.wire import Connection, Event, Side
from gcspy_replay.file import Recording

from gcspy.cli import main
from gcspy.exit_codes import ExitCode
from tests.original.captures import of_server


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "gui.trace"
    path.write_bytes(gzip.compress(of_server("gui")))
    return path


Run = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command, and return its output and its messages."""

    def runs(*arguments: str | Path, code: ExitCode = ExitCode.OK) -> str:
        assert main(list(map(str, arguments))) == code
        said = capsys.readouterr()
        return said.out if code is ExitCode.OK else said.err

    return runs


def test_a_trace_is_summarised(trace: Path, run: Run) -> None:
    facts = json.loads(run("info", "--json", trace))
    assert facts["server"] == "GCSPY@DUMMY"
    assert facts["events_by_name"] == {"Start GC": 5, "End GC": 4}
    assert facts["not_recorded"] == {"Start GC": 0, "End GC": 0}
    assert [one["name"] for one in facts["spaces"]] == ["Image Space", "Main Space"]
    assert facts["start_wall_nanos"] is None


def test_a_trace_is_converted_and_exported_and_shows_the_same(
    trace: Path, tmp_path: Path, run: Run
) -> None:
    recording, again, second = (tmp_path / name for name in ("a.gcspy", "b.gcspy666", "b.gcspy"))
    facts = json.loads(run("convert", trace, "-o", recording, "--json"))
    assert facts["events"] == 9
    run("export", recording, "-o", again)
    run("convert", again, "-o", second)
    with Recording.open(str(recording)) as one, Recording.open(str(second)) as other:
        # The wire has no dates: only the time between events is kept.
        shift = int(other.events["time_nanos"][0]) - int(one.events["time_nanos"][0])
        for (step, left), (_, right) in zip(one.steps(), other.steps(), strict=True):
            event = right.last_event
            assert event is not None
            assert event.time_nanos == step.change.event.time_nanos + shift
            assert (event.event, event.occurrence) == (
                step.change.event.event,
                step.change.event.occurrence,
            )
            for mine, theirs in zip(left.spaces.values(), right.spaces.values(), strict=True):
                assert mine.info == theirs.info
                for a, b in zip(mine.streams.values(), theirs.streams.values(), strict=True):
                    assert a.defined == b.defined
                    assert a.values.tolist() == b.values.tolist()
                    assert a.told is not None
                    assert b.told is not None
                    assert a.told.values == b.told.values


def test_an_export_is_what_a_server_sends(tmp_path: Path, run: Run) -> None:
    """A recording of ours, by the option and from the middle."""
    path = tmp_path / "some.gz"
    sample = Path(__file__).parents[2] / "replay/samples/semispace.gcspy"
    run("export", sample, "-o", path, "--gcspy666", "--first", "3", "--last", "6")
    wire = Connection(Side.SERVER)
    wire.receive_data(gzip.decompress(path.read_bytes()))
    assert sum(isinstance(one, Event) for one in wire.messages()) == 4
    wire.receive_eof()
    refused = run("export", sample, "-o", f"{path}.gcspy666", "--tiles", code=ExitCode.USAGE)
    assert "does not apply to a trace of GCspy 1.0" in refused


def test_what_is_damaged_is_converted_as_far_as_it_goes(tmp_path: Path, run: Run) -> None:
    path, made = tmp_path / "cut.gcspy666", tmp_path / "made.gcspy"
    path.write_bytes(of_server("gui")[:200_000])
    said = run("convert", path, "-o", made, code=ExitCode.RECORDING)
    assert "ends within a frame" in said
    path.write_bytes(gzip.compress(of_server("gui"))[:40_000])
    assert json.loads(run("info", "--json", path))["events"] > 1


def test_a_trace_of_serialised_objects_is_named(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "java.gz"
    path.write_bytes(gzip.compress(b"\xac\xed\x00\x05w\x04"))
    assert "serialised objects of Java" in run("info", path, code=ExitCode.RECORDING)
