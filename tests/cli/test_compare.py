"""`gcspy compare` and `gcspy replay --compare`, on real files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from gcspy_replay.file import Recording
from gcspy_replay.player import Beginning, serve_recording
from pytestqt.qtbot import QtBot

from gcspy.cli import main
from gcspy.exit_codes import ExitCode
from gcspy_client.app import run_window
from gcspy_client.view.window import MainWindow
from tests.cli.conftest import Run
from tests.replay.recorded import small

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
    assert (used["name"], used["net"], used["more"], used["less"], used["same"]) == ("Used", 3 * 36, 8, 0, 1)
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


@pytest.mark.parametrize(("by", "wanted"), [("number", 7), ("kind", 7), ("clock", 7), ("wall", 7)])
def test_the_event_of_b_that_belongs_to_that_of_a_is_found(
    recorded: Path, by: str, wanted: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = compared(capsys, recorded, recorded, "--event", "7", "--by", by)
    assert found["b"]["event"] == wanted


def test_as_text_each_line_says_what_became_of_a_stream(recorded: Path, here: Run) -> None:
    done = here("compare", str(recorded), str(recorded), "--event", "2", "--other", "5")
    assert done.returncode == ExitCode.OK, done.stderr
    assert done.stdout.startswith("A  event 2, ")
    assert "  Used             +108" in done.stdout
    assert "8 more, 0 less; 1 the same" in done.stdout


def test_what_only_one_has_is_told_and_two_sessions_are_paired_by_place(capsys: pytest.CaptureFixture[str]) -> None:
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
    assert here("compare", a, a, "--event", "1", "--other", "2", "--by", "kind").returncode == ExitCode.USAGE
    assert here("compare", a).returncode == ExitCode.USAGE
    wrong = tmp_path / "wrong.gcspy"
    wrong.write_text("no recording")
    assert here("compare", a, str(wrong)).returncode == ExitCode.RECORDING
    alone = here("replay", a, "--compare", a, "--no-window")
    assert alone.returncode == ExitCode.USAGE
    assert "use gcspy compare" in alone.stderr


def test_a_window_begins_with_the_other_recording_beside(recorded: Path, tmp_path: Path, qtbot: QtBot) -> None:
    other = tmp_path / "b.gcspy"
    shutil.copy(recorded, other)
    seen: list[str] = []

    def ready(window: MainWindow) -> None:
        def look() -> None:
            beside = window.comparing.beside
            if beside is not None and beside.comparison is not None:
                seen.append(beside.other.name)
                window.close()

        window.following.spoken.connect(look)

    address = f"unix:{tmp_path}/p.sock"
    with serve_recording(Recording.open(recorded), address, beginning=Beginning(running=True)):
        assert run_window(address, recording=[recorded], compare=[other], on_ready=ready) == 0
    assert seen == ["b.gcspy"]
