"""Random programs: the counts of all sites are those of one counter a site, with every plan, at any moment, on every version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gcspy_counting
import pytest

from tests.drivers.targets import find_python

_AT_A_TIME = 500
"""Programs of one process."""
HERE = Path(__file__).parent
FOLDER = Path(gcspy_counting.__file__).parents[1]


def _python(version: str) -> str:
    found = find_python(version)
    if found is None:
        pytest.skip(f"no Python {version} on PATH or in ~/.pyenv/versions")
    return str(found)


def compare(python: str, first: int, last: int, *sizes: str) -> dict[str, Any]:
    command = [python, "-B", str(HERE / "plan_comparison.py"), str(FOLDER)]
    done = subprocess.run(
        [*command, str(first), str(last), *sizes],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("version", "programs"), [("3.11", 6), ("3.12", 3), ("3.13", 3), ("3.14", 3)]
)
def test_every_plan_counts_as_one_counter_a_site(version: str, programs: int) -> None:
    first = int.from_bytes(os.urandom(4), "big")
    found = compare(_python(version), first, first + programs)
    assert found["differing"] == []
    assert found["increments"]["tree"] < found["increments"]["site"]


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_known_programs(version: str) -> None:
    """Programs of these seeds were once counted wrongly: delegation into which an exception is thrown, `async for` that raises, or that ends a function by exceptions only."""
    for seed in (0, 16, 1017):
        found = compare(_python(version), seed, seed + 1)
        assert found["differing"] == []
        assert found["raises"] > 0


@pytest.mark.soak
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_many_programs(version: str) -> None:
    """Compare small programs of consecutive seeds, on all processors. ``GCSPY_SOAK_PROGRAMS=34000`` makes more than 100,000 of all versions."""
    seed = int(os.environ.get("GCSPY_SOAK_SEED", "1"))
    programs = int(os.environ.get("GCSPY_SOAK_PROGRAMS", "3000"))
    first = seed * 1_000_000
    python = _python(version)

    def some(begin: int) -> dict[str, Any]:
        return compare(python, begin, min(begin + _AT_A_TIME, first + programs), "small")

    increments: Counter[str] = Counter()
    with ThreadPoolExecutor(os.cpu_count()) as processors:
        for found in processors.map(some, range(first, first + programs, _AT_A_TIME)):
            assert found["differing"] == []
            increments.update(found["increments"], raises=found["raises"])
    print(version, programs, dict(increments), file=sys.stderr)


@pytest.mark.soak
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_large_programs(version: str) -> None:
    """Compare programs of up to five functions, nested four deep."""
    first = int(os.environ.get("GCSPY_SOAK_SEED", "1")) * 1_000_000
    assert compare(_python(version), first, first + 200)["differing"] == []
