"""Counters in a program that runs already: exact from then on, at any moment, and gone without a trace."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.counting.attached_program import ROUNDS, THREADS
from tests.counting.test_random_programs import FOLDER, _python
from tests.matrix import matrix

PROGRAM = Path(__file__).parent / "attached_program.py"
RAISING = len(range(0, ROUNDS, 3))


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_functions_get_counters_and_give_them_back(version: str) -> None:
    done = subprocess.run(
        [_python(version), "-B", str(PROGRAM), str(FOLDER)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    found = {name: n for name, n in told["found"].items() if not name.startswith("Counts.")}
    expected = {
        "pair list": THREADS * (ROUNDS + ROUNDS - RAISING),
        "pair set": THREADS * ROUNDS,
        "items list": THREADS * ROUNDS * 4,
        "items generator": THREADS * ROUNDS,
        "grown.<locals>.<genexpr> generator": THREADS * ROUNDS,
        "grown function": THREADS * ROUNDS,
        "outer function": THREADS * ROUNDS,
        "outer tuple": THREADS * ROUNDS,  # of cells
        "outer.<locals>.inner tuple": THREADS * ROUNDS + 1,
    }
    if version == "3.14":
        # `tuple(...)` of a generator is a loop of the caller's own, and annotations are a function.
        expected |= {"grown list": THREADS * ROUNDS, "grown tuple": THREADS * ROUNDS}
        expected["outer function"] *= 2
    assert found == expected
    assert told["contradictions"] == 0
    assert told["broken"] == []
    assert told["instrumented"] == [True, True]
    assert told["left"] == []
    assert told["finders"] == []


@pytest.mark.parametrize(
    ("version", "how"),
    matrix(
        [
            (version, how)
            for version in ("3.11", "3.12", "3.13", "3.14")
            for how in ("--attached", "--started")
        ],
        usual=[("3.11", "--attached"), ("3.12", "--started")],
    ),
)
def test_only_functions_that_run_get_counters_if_that_is_wanted(version: str, how: str) -> None:
    done = subprocess.run(
        [_python(version), "-B", str(PROGRAM.with_name("hot_program.py")), str(FOLDER), how],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["counted"]["hot"] == 100
    assert told["counted"]["made_by.<locals>.inner"] == 100, "its maker got counters with it"
    assert sorted(told["changed"]) == ["hot", "made_by"]
    assert "cold" not in told["counted"]
    assert told["cold"] > 0
