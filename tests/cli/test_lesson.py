"""`gcspy lesson`: what it says of lessons, and its exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gcspy.cli import main
from gcspy.exit_codes import ExitCode

GREEDY = "def work(stack, dice):\n    sum(iter(int, 1))\n    yield\n"
"""A program in a loop of Python's own, in which neither a trace function nor a signal handler runs."""

LESSON = """\
+++
title = "T"
goal = "G"
[simulation]
heap = "16KiB"
pace = 0
+++
## One
The heap is empty.
```claims
"heap is empty" = 'sum("Heap"."Used space") == 0'
```
## Two
It is full.
```step
until = "event == 'Full collection starts'"
```
```claims
"It is full" = 'sum("Heap"."Used space") > 15KiB'
```
"""


def checked(path: Path, source: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    path.write_text(source)
    code = main(["lesson", "check", str(path)])
    return code, capsys.readouterr().out


def test_a_lesson_whose_claims_are_true_is_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = checked(tmp_path / "good.md", LESSON, capsys)
    assert code == ExitCode.OK
    assert "true   step 1, event 1: 'heap is empty': sum(Heap.\"Used space\") is 0" in out
    assert "0 wrong claims, 0 problems" in out


def test_a_wrong_claim_and_a_step_without_one_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.md"
    source = LESSON.replace("> 15KiB", "> 17KiB") + "## Three\nNothing is claimed.\n"
    code, out = checked(path, source, capsys)
    assert code == ExitCode.FAILED
    assert "WRONG  step 2" in out
    assert f"{path}:21: step 3, 'Three': nothing of its text is checked" in out
    assert main(["lesson", "check", "--json", str(path)]) == ExitCode.FAILED
    found = json.loads(capsys.readouterr().out)
    assert [one["holds"] for one in found["lessons"][0]["claims"]] == [True, False]
    assert len(found["problems"]) == 1


def test_a_template_can_be_shown_and_verified_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for what, command in (("collector", "verify"), ("program", "verify"), ("lesson", "check")):
        path = tmp_path / f"my_{what}{'.md' if what == 'lesson' else '.py'}"
        assert main(["lesson", "template", what, "-o", str(path)]) == ExitCode.OK
        assert main(["lesson", command, str(path)]) == ExitCode.OK
    out = capsys.readouterr().out
    assert "my_collector.py with rings: " in out
    assert "0 wrong claims, 0 problems" in out
    assert main(["lesson", "template", "lesson", "-o", str(path)]) == ExitCode.USAGE
    assert "exists already" in capsys.readouterr().err


def test_a_wrong_collector_is_found_and_marked_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, report = tmp_path / "my.py", tmp_path / "ada.json"
    main(["lesson", "template", "collector", "-o", str(path)])
    path.write_text(path.read_text().replace("            grey.extend(x.references)\n", ""))
    arguments = ["lesson", "verify", str(path), "--report", str(report), "--student", "=Ada"]
    assert main(arguments) == ExitCode.FAILED
    out = capsys.readouterr().out
    assert "my.py:28: object " in out
    assert "is reachable from `stack[" in out
    assert main(["lesson", "mark", "--json", str(tmp_path)]) == ExitCode.OK
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["student"], row["code"]) == ("=Ada", 5)
    assert row["code right"] < 5
    assert row["remarks"].startswith("my.py: ")
    forged = json.loads(report.read_text())
    forged["code"][0] |= {"right": 5, "problem": ""}
    report.write_text(json.dumps(forged))
    main(["lesson", "mark", "--run", "--csv", str(report)])
    cells = capsys.readouterr().out.splitlines()[1].split(",")
    assert cells[0] == "'=Ada", "no formula for a spreadsheet"
    assert int(cells[7]) < 5, "what a student claims is not trusted with --run"
    assert "my.py:28: object " in cells[8]


def test_what_is_no_report_is_named_and_the_others_are_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = '{"gcspy report": 1, "student": "Bo", "lesson": "tiles"}'
    for name, text in (
        ("a", "{"),
        ("b", "[1]"),
        ("c", '{"gcspy report": 1, "student": 3}'),
        ("d", '{"gcspy report": 1, "questions": [{"step": -1}]}'),
        ("e", "[" * 100_000),
        ("f", good),
    ):
        (tmp_path / f"{name}.json").write_text(text)
    assert main(["lesson", "mark", str(tmp_path), "--lesson", "tiles"]) == ExitCode.OK
    done = capsys.readouterr()
    assert [name for name in "abcdef" if f"{name}.json is not a report" in done.err] == list(
        "abcde"
    )
    assert done.out.splitlines()[1].split()[:2] == ["Bo", "tiles"]
    assert "another version" in done.out


@pytest.mark.usefixtures("real_starts")
def test_a_loop_in_which_no_handler_runs_ends_on_sigterm(tmp_path: Path) -> None:
    path = tmp_path / "greedy.py"
    path.write_text(GREEDY)
    code = (
        "import sys; from gcspy.hosts.simulation_host import *; from gcspy.hosts.stop_signals import *\n"
        f"options = SimulatingOptions(simulation={{'program': {str(path)!r}}}, listen=('unix:{tmp_path}/s',), wait=False)\n"
        "simulate(options, stop=stop_at_signals(), on_ready=lambda *_: print('ready', flush=True))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        os.kill(child.pid, signal.SIGTERM)
        child.wait(60)
    assert child.returncode in (-signal.SIGTERM, 0), (
        "0: the signal came before the program's first step"
    )
