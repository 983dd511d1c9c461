"""`gcspy lesson`: what it says of lessons, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcspy.cli import main
from gcspy.exit_codes import ExitCode

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
