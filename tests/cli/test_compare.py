"""`gcspy compare` and `gcspy replay --compare`, on real files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_replay.file import MemoryStore, Recording, RecordingWriter
from gcspy_replay.player import PlaybackStart, serve_recording
from pytestqt.qtbot import QtBot

from gcspy.cli import main
from gcspy.connection.link import connect
from gcspy.exit_codes import ExitCode
from gcspy_client.app import run_window
from gcspy_client.view.window import MainWindow
from gcspy_server.api import Server, StringNames, UniformNames
from tests.cli.conftest import Run
from tests.replay.recorded import small
from tests.server.viewer import Viewer

SAMPLES = Path(__file__).parents[2] / "replay" / "samples"


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Twelve events; tile i of nine has i * n at event n."""
    path = tmp_path / "a.gcspy"
    path.write_bytes(small(12))
    return path


def compared(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    assert main(["compare", *(str(one) for one in arguments), "--json"]) == ExitCode.OK
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_two_events_of_one_recording_are_compared_stream_by_stream(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = compared(capsys, recorded, recorded, "--event", "2", "--other", "5")
    assert found["tiles_by"] == "address", "one session"
    (space,) = found["spaces"]
    used = space["streams"][0]
    assert (used["name"], used["net"], used["more"], used["less"], used["same"]) == (
        "Used",
        3 * 36,
        8,
        0,
        1,
    )
    back = compared(capsys, recorded, recorded, "--event", "5", "--other", "2")["spaces"]
    assert back[0]["streams"][0]["net"] == -3 * 36


def test_by_default_the_last_events_are_compared_and_equal_ones_differ_in_nothing(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "b.gcspy"
    shutil.copy(recorded, other)
    found = compared(capsys, recorded, other)
    assert [found[side]["event"] for side in ("a", "b")] == [12, 12]
    for space in found["spaces"]:
        for stream in space["streams"]:
            assert (stream["changed"], stream["came"], stream["went"]) == (0, 0, 0)


def recorded_types(
    path: Path, names: list[str], tiles: list[int], unknown: tuple[int, ...] = ()
) -> None:
    """Record one event of a program that numbers its types as they come."""
    server = Server("types", events=("event",))
    types = server.add_space("Types", names=StringNames(names))
    types.add_stream("Objects")
    heap = server.add_space("Heap", names=UniformNames(0x1000, 0x100, len(tiles)))
    top = heap.add_stream("Top type", dtype="u4", names_from=types.id)
    store, session = MemoryStore(), ClientInterpreter()
    writer = RecordingWriter(store, session)
    with server.serve(f"unix:{path}.sock") as listening:
        viewer = Viewer(connect(listening.addresses[0], client="test", wants_control=False))
        server.wait_for_client()
        assert server.should_transmit(0) is not None
        types.reset()
        heap.reset()
        top.data[:] = tiles
        if unknown:
            top.set_unknown(list(unknown))
        server.finish(0)
        viewer.until_events(1)
        for message in (viewer.link.welcome, *viewer.diary):
            session.apply(message)
            writer.add(message)
        viewer.link.close()
    writer.close()
    path.write_bytes(store.data)


def test_types_of_two_sessions_are_compared_by_their_names_whatever_their_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "a.gcspy", tmp_path / "b.gcspy"
    recorded_types(one, ["", "dict", "list", "Node"], [1, 2, 3, 1, 2])
    recorded_types(two, ["", "list", "Node", "dict", "str"], [3, 1, 2, 1, 4], unknown=(2,))
    found = compared(capsys, one, two)
    (heap,) = (space for space in found["spaces"] if space["name"] == "Heap")
    assert (heap["only_a"], heap["only_b"]) == ([], [])
    (top,) = heap["streams"]
    assert (top["same"], top["changed"], top["unknown"]) == (2, 2, 1)
    assert (top["net"], top["more"], top["less"]) == (None, None, None), (
        "a name is no more than another"
    )
    counted = [dict(zip(top["names"], counts, strict=True)) for counts in top["summary"]]
    assert counted[0] == {"": 0, "dict": 2, "list": 2, "Node": 1, "str": 0}
    assert counted[1] == {"": 0, "dict": 1, "list": 2, "Node": 0, "str": 1}


@pytest.mark.parametrize(("by", "wanted"), [("number", 7), ("kind", 7), ("clock", 7), ("wall", 7)])
def test_the_event_of_b_that_belongs_to_that_of_a_is_found(
    recorded: Path, tmp_path: Path, by: str, wanted: int, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "b.gcspy"
    shutil.copy(recorded, other)
    found = compared(capsys, recorded, other, "--event", "7", "--by", by)
    assert found["b"]["event"] == wanted


@pytest.mark.parametrize(
    ("options", "wanted"),
    [([], [1, 12]), (["--event", "7"], [7, 12]), (["--other", "7"], [1, 7])],
)
def test_two_events_of_one_file_are_not_the_same_one_by_default(
    recorded: Path, options: list[str], wanted: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    found = compared(capsys, recorded, recorded, *options)
    assert [found[side]["event"] for side in ("a", "b")] == wanted


def test_as_text_each_line_says_what_became_of_a_stream(recorded: Path, here: Run) -> None:
    done = here("compare", str(recorded), str(recorded), "--event", "2", "--other", "5")
    assert done.returncode == ExitCode.OK, done.stderr
    assert done.stdout.startswith("A  event 2, ")
    assert "  Used             +108" in done.stdout
    assert "8 more, 0 less; 1 the same" in done.stdout


def test_what_only_one_has_is_told_and_two_sessions_are_paired_by_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = compared(capsys, SAMPLES / "semispace.gcspy", SAMPLES / "demo-cpython-3.11.gcspy")
    assert found["only_a"] == ["Semispaces"]
    assert "pymalloc arenas" in found["only_b"]
    assert (found["spaces"], found["tiles_by"]) == ([], "place")


def test_what_cannot_be_compared_is_refused(recorded: Path, here: Run, tmp_path: Path) -> None:
    a = str(recorded)
    absent = here("compare", a, a, "--event", "99")
    assert absent.returncode == ExitCode.USAGE
    assert "A has no event 99: it has 1 to 12" in absent.stderr
    beyond = here("compare", a, a, "--other", "99")
    assert "B has no event 99: it has 1 to 12" in beyond.stderr
    assert (
        here("compare", a, a, "--event", "1", "--other", "2", "--by", "kind").returncode
        == ExitCode.USAGE
    )
    assert "give --event" in here("compare", a, a, "--by", "kind").stderr
    assert "are the same" in here("compare", a, a, "--event", "1", "--by", "kind").stderr
    assert here("compare", a).returncode == ExitCode.USAGE
    wrong = tmp_path / "wrong.gcspy"
    wrong.write_text("no recording")
    assert here("compare", a, str(wrong)).returncode == ExitCode.RECORDING
    alone = here("replay", a, "--compare", a, "--no-window")
    assert alone.returncode == ExitCode.USAGE
    assert "use gcspy compare" in alone.stderr


def test_a_window_begins_with_the_other_recording_beside(
    recorded: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    other = tmp_path / "b.gcspy"
    shutil.copy(recorded, other)
    seen: list[str] = []

    def ready(window: MainWindow) -> None:
        def look() -> None:
            beside = window.compare.beside
            if beside is not None and beside.comparison is not None:
                seen.append(beside.other.name)
                window.close()

        window.updater.spoken.connect(look)

    address = f"unix:{tmp_path}/p.sock"
    with serve_recording(Recording.open(recorded), address, beginning=PlaybackStart(running=True)):
        assert run_window(address, recording=[recorded], compare=[other], on_ready=ready) == 0
    assert seen == ["b.gcspy"]
