"""Fixtures of the driver tests: one interpreter of each version, and targets that are always ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest

from tests.drivers.targets import VERSIONS, StillTarget, find_python, find_stripped_python

Start = Callable[..., StillTarget]


@pytest.fixture(params=VERSIONS)
def python(request: pytest.FixtureRequest) -> str:
    """Return an interpreter of each version that the driver reads."""
    found = find_python(request.param)
    if found is None:
        pytest.skip(
            f"no Python {request.param} on PATH or in ~/.pyenv/versions: its layout is not tested here"
        )
    return found


@pytest.fixture
def own_python() -> str:
    """Return the interpreter that runs the tests, where the version does not matter."""
    found = find_python("3.11") or find_python("3.12") or find_python("3.13")
    if found is None:
        pytest.skip("no Python 3.11 to 3.13 on PATH or in ~/.pyenv/versions")
    return found


@pytest.fixture
def stripped_python() -> str:
    """Return a 3.11 whose variables have no names."""
    found = find_stripped_python()
    if found is None:
        pytest.skip("no stripped Python 3.11 on this system: only the simulated one is tested")
    return found


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts a target: interpreter, program, environment."""
    started: list[StillTarget] = []

    def start_one(python: str, source: str, env: Mapping[str, str] | None = None) -> StillTarget:
        target = StillTarget(python, source, env)
        started.append(target)
        return target

    yield start_one
    for target in started:
        target.end()
