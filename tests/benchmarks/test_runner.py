"""Running all benchmarks: one that fails or hangs hides no figure of the others, and leaves no process behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import benchmarks.__main__ as runner
from benchmarks.cpython.programs import contents_of
from benchmarks.harness.figures import VARIABLE, Figure, tell, told_in
from tests.waiting import PATIENCE_SECS

SAMPLES = Path(__file__).parents[2] / "replay" / "samples"

TELLS = (
    "from benchmarks.harness.figures import tell; tell('speed', 3, 'furlongs/fortnight', '>= 2'); "
)


def run(program: str, *, most_secs: float = 60.0) -> runner.Outcome:
    return runner.run([sys.executable, "-c", program], "one", most_secs=most_secs, to_stderr=True)


def test_a_benchmark_that_fails_keeps_what_it_told_before() -> None:
    fine, fails = run(TELLS), run(TELLS + "raise SystemExit(3)")
    assert fine.problem == ""
    assert fails.problem == "exit code 3"
    assert (
        fine.figures
        == fails.figures
        == (Figure(what="speed", value=3.0, unit="furlongs/fortnight", budget=">= 2"),)
    )
    shown = runner.summary([fails, fine]).splitlines()
    assert shown[0] == "one  speed  3 furlongs/fortnight  >= 2"
    assert shown[-1] == "not complete: one, exit code 3"


def test_one_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    child = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    program = f"import subprocess, sys; {TELLS} subprocess.run([sys.executable, '-c', {child!r}])"
    outcome = run(program, most_secs=5.0)
    assert outcome.problem == "ended after 0 minutes"
    assert len(outcome.figures) == 1
    try:
        left = psutil.Process(int(pid.read_text()))
        while (
            left.status() != psutil.STATUS_ZOMBIE
        ):  # it was killed: it ends when the system gets to it
            left.wait(timeout=PATIENCE_SECS)
    except psutil.NoSuchProcess:
        pass


def test_what_was_half_written_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "figures"
    assert told_in(path) == []
    monkeypatch.setenv(VARIABLE, str(path))
    tell("a", 1)
    tell("b", 2, "ms", "<= 3")
    path.write_text(path.read_text() + '{"what": "c", "va')
    assert [str(figure) for figure in told_in(path)] == ["1", "2 ms"]


def test_alone_a_benchmark_tells_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    tell("a", 1)
    assert not list(tmp_path.iterdir())


def test_one_that_is_not_there_is_refused_before_anything_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "speed"],
        capture_output=True,
        text=True,
        check=False,
        cwd=SAMPLES.parents[1],
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no benchmark speed" in done.stderr


def test_options_of_a_benchmark_are_handed_to_it_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands: list[list[str]] = []

    def outcome(command: list[str], name: str, **_options: object) -> runner.Outcome:
        commands.append(command)
        return runner.Outcome(name=name, problem="", seconds=1.0, load=1.0, figures=())

    monkeypatch.setattr(runner, "run", outcome)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "leaks", "--only", "closure", "--json"])
    assert runner.main() == 0
    assert commands[0][2:] == ["benchmarks.leaks.leaks", "--only", "closure"]
    monkeypatch.setattr(sys, "argv", ["benchmarks", "cost", "leaks", "--only", "closure"])
    with pytest.raises(SystemExit):
        runner.main()
    assert "--only is no option of all" in capsys.readouterr().err


def test_all_are_told_of_as_one_object(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def outcome(command: list[str], name: str, **_options: object) -> runner.Outcome:
        problem = "exit code 1" if name == "cost" else ""
        return runner.Outcome(
            name=name, problem=problem, seconds=1.0, load=os.getloadavg()[0], figures=()
        )

    monkeypatch.setattr(runner, "run", outcome)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--json"])
    assert runner.main() == 1
    told = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in told["benchmarks"]] == list(runner.BENCHMARKS)
    assert [one["name"] for one in told["benchmarks"] if one["problem"]] == ["cost"]


def test_a_line_of_the_table_is_what_is_in_the_file() -> None:
    path = SAMPLES / "demo-cpython-3.11.gcspy"
    found = contents_of(path)
    assert found.file_bytes == path.stat().st_size
    assert found.events >= found.at_collections > 0
    assert sum(found.collections) >= found.at_collections - 1, (
        "those before the first event are not counted"
    )
    assert found.spaces == 4
    # The streams of pymalloc's arenas alone are more than four bytes a tile.
    assert found.whole_bytes > 4 * found.tiles
    assert found.gzip_bytes < found.whole_bytes
    assert found.resident_bytes > 10e6


def test_every_program_that_measures_can_be_run_by_its_name() -> None:
    root = Path(runner.__file__).parent
    measuring = {
        ".".join(("benchmarks", *path.relative_to(root).with_suffix("").parts))
        for folder in ("server", "recording", "cpython", "jvm", "leaks", "objects", "window")
        for path in (root / folder).glob("*.py")
        if path.stem != "__init__"
    }
    named = {**runner.BENCHMARKS, **runner.BY_NAME_ONLY}
    assert all(module.rpartition(".")[2] == name for name, module in named.items())
    # Windows that other benchmarks start, and parts of one.
    assert measuring - set(named.values()) == {
        "benchmarks.leaks.answers",
        "benchmarks.leaks.leak_programs",
        "benchmarks.leaks.pace",
        "benchmarks.window.first_picture",
        "benchmarks.window.measured_window",
        "benchmarks.window.user_actions",
    }
