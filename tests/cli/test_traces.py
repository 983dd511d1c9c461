"""Object traces on the command line: converted, played and asked, as real processes and over real sockets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gcspy_protocol import messages as m
from gcspy_protocol.details import AnswerState, Query
from gcspy_protocol.playback import Seek
from gcspy_replay.file import Recording

from gcspy.cli import main
from gcspy.connection.link import connect
from gcspy.exit_codes import ExitCode
from gcspy.objects.trace_conversion import named_trace, names_trace
from tests.server.viewer import Viewer
from tests.waiting import PATIENCE_SECS

SAMPLES = Path(__file__).parents[2] / "objects" / "samples" / "anttracks"
LIST = SAMPLES / "list.tar.xz"
COARSE = ("--tile-size", "256KiB", "--every", "4MiB")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sample, unpacked."""
    place = tmp_path_factory.mktemp("trace")
    with tarfile.open(LIST) as archive:
        archive.extractall(place, filter="data")
    return place / "list"


def test_a_folder_a_file_and_an_archive_are_taken_for_a_trace_and_a_recording_is_not(
    folder: Path, tmp_path: Path
) -> None:
    assert all(names_trace(one) for one in (folder, folder / "trace", LIST))
    recording = Path(__file__).parents[2] / "replay" / "samples" / "semispace.gcspy"
    assert not names_trace(recording)
    assert not names_trace(recording.parent)
    assert not names_trace(tmp_path / "nothing")
    assert named_trace([recording]) is None


def test_a_trace_is_converted_to_a_recording_that_all_commands_read(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "list.gcspy"
    assert main(["convert", str(folder), "-o", str(made), "--json", *COARSE]) == ExitCode.OK
    facts = json.loads(capsys.readouterr().out)
    with Recording.open(made) as recording:
        assert facts["events"] == len(recording)
        kinds = [kind.name for kind in recording.welcome.events]
        names = [kinds[row["event"]] for row in recording.events]
    assert facts["bytes"] == made.stat().st_size
    assert (names.count("GC start"), names.count("GC end")) == (
        facts["collections"],
        facts["collections"],
    )
    assert main(["verify", str(made)]) == ExitCode.OK
    assert main(["convert", str(folder), "-o", str(made)]) == ExitCode.USAGE, "it exists already"


def test_a_trace_is_converted_to_one_of_ours_and_asked(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "list.gctrace"
    assert main(["convert", str(folder), "-o", str(made), "--json"]) == ExitCode.OK
    facts = json.loads(capsys.readouterr().out)
    assert facts["bytes"] == made.stat().st_size < facts["bytes_before"] / 10
    assert names_trace(made)
    answers = []
    for path in (folder, made):
        assert main(["objects", "collections", str(path), "--json"]) == ExitCode.OK
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1]
    back = tmp_path / "back"
    words = ["convert", str(made), "-o", str(back), "--to", "anttracks", "--json"]
    assert main(words) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["events"] == facts["events"]
    assert (back / "trace").stat().st_size <= (folder / "trace").stat().st_size
    assert main(words) == ExitCode.USAGE


def test_a_trace_that_was_cut_is_converted_as_far_as_it_goes(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut"
    cut.mkdir()
    (cut / "symbols").write_bytes((folder / "symbols").read_bytes())
    (cut / "trace").write_bytes((folder / "trace").read_bytes()[:-100_000])
    made = tmp_path / "cut.gcspy"
    assert main(["convert", str(cut), "-o", str(made), *COARSE]) == ExitCode.RECORDING
    assert "cut off" in capsys.readouterr().err
    assert main(["verify", str(made)]) == ExitCode.OK


def test_a_command_for_recordings_says_what_to_do_with_a_trace(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["info", str(LIST)]) == ExitCode.USAGE
    assert "gcspy convert converts it to a recording" in capsys.readouterr().err


def test_what_is_no_trace_is_refused_and_leaves_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "trace"
    bad.write_bytes(bytes.fromhex("eeffc000") + bytes(40))
    assert main(["convert", str(bad), "-o", str(tmp_path / "out.gcspy")]) not in (
        ExitCode.OK,
        ExitCode.FAILED,
    )
    assert "not an object trace" in capsys.readouterr().err
    assert main(["replay", "--no-window", str(bad)]) not in (ExitCode.OK, ExitCode.FAILED)
    assert [one.name for one in tmp_path.iterdir()] == ["trace"]


@pytest.fixture
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    """A viewer of a trace that a process plays; the process and its files are removed afterwards."""
    place = tmp_path_factory.mktemp("played")
    address = f"unix:{place}/s"
    command = [
        sys.executable,
        "-m",
        "gcspy",
        "replay",
        "--no-window",
        "--paused",
        "--listen",
        address,
        str(LIST),
        *COARSE,
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(place)}
    ) as process:
        assert process.stdout is not None
        try:
            lines: list[str] = []
            while not (lines and "join with" in lines[-1]):
                lines.append(process.stdout.readline())
                assert lines[-1], lines
            assert [one.name for one in place.glob("gcspy-trace-*/*")] == ["list.gcspy"]
            made = Viewer(connect(address, client="test", wants_control=True))
            yield made
            made.link.close()
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_SECS) == 0
    assert not list(place.glob("gcspy-trace-*"))


def ask(viewer: Viewer, space: str, kind: str, text: str = "", key: int | None = None) -> m.Answer:
    number = next(ident for ident, one in viewer.state.spaces.items() if one.space.name == space)
    viewer.send(Query(number=1, space=number, kind=kind, key=key, text=text))
    return viewer.next(m.Answer)


def test_a_played_trace_tells_of_single_objects_at_the_event_that_is_shown(viewer: Viewer) -> None:
    viewer.event()
    viewer.send(Seek(name="GC end"))
    viewer.event()
    found = ask(viewer, "Types", "objects", "type:java.lang.String size:24")
    assert found.state is AnswerState.ANSWERED
    names = [column.name for column in found.table.columns]
    one = dict(zip(names, found.table.rows[0], strict=True))
    assert (one["Size"], one["Type"]) == (24, "java.lang.String")
    life = ask(viewer, "Types", "life", str(one["Address"]))
    events = [int(row[1] or 0) for row in life.table.rows]
    assert events == sorted(events)
    assert str(life.table.rows[0][0]) == "born"
    assert str(one["Address"]) in [row[2] for row in life.table.rows]
    assert "java.lang.String, 24 bytes, allocated by" in life.table.note
    near = ask(viewer, "Types", "neighbours", str(one["Address"]))
    assert near.state is AnswerState.ANSWERED
    distances = [abs(int(row[2] or 0)) for row in near.table.rows]
    assert distances == sorted(distances)
    assert ask(viewer, "Types", "life", "0x10").state is AnswerState.UNKNOWN
    wrong = ask(viewer, "Types", "objects", "colour:red")
    assert "say type, site" in wrong.reason


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """Return a command's output as JSON."""
    assert main(["objects", *arguments, "--json"]) == ExitCode.OK
    return json.loads(capsys.readouterr().out)


def test_objects_are_found_at_a_time_and_one_is_followed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    trace = str(SAMPLES / "promote.tar.xz")
    trees = told(capsys, "find", trace, "--type", "=Promote$Tree", "--at", "gc:4:end", "--top", "3")
    assert trees["objects"] == 32704, "as the program says of itself: live@before1 in truth.txt"
    assert (len(trees["rows"]), trees["rest"]["rows"]) == (3, 32701)
    old = told(capsys, "find", trace, "--type", "=Promote$Tree[]", "--at", "gc:4:end")["rows"][0]
    at = ["--address", old["address"], "--at", "gc:4:end"]
    life = told(capsys, "life", trace, *at)["life"]
    assert [row["what"].split(" by ")[0] for row in life["rows"]][:2] == ["born", "moved"]
    (then,) = [row for row in life["rows"] if row["what"].startswith("promoted")]
    assert (then["address"], then["space"], then["age"]) == (old["address"], "Old", 4)
    # Where it was at any of its events, it is found by that address and that event.
    for row in life["rows"][:: max(1, len(life["rows"]) // 3)]:
        if row["address"]:
            (found,) = told(
                capsys, "find", trace, "--address", row["address"], "--at", str(row["event"])
            )["rows"]
            assert (found["type"], found["space"], found["size"]) == (
                "Promote$Tree[]",
                row["space"],
                272,
            )
    assert main(["objects", "life", trace, *at]) == ExitCode.OK
    assert "64 elements, allocated by main" in capsys.readouterr().out
    for wrong in (["--address", "0x10"], ["--address", old["address"], "--at", "gc:99"]):
        assert main(["objects", "life", trace, *wrong]) == ExitCode.USAGE
        assert capsys.readouterr().err.startswith("gcspy: ")
