"""Fixtures of the tests of JVMs: every JVM on this machine, one process for the tests of a module."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.drivers.hotspot.jvms import HOMES, compile_program, find_javas


@pytest.fixture(scope="session")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the compiled program."""
    return compile_program(tmp_path_factory.mktemp("java"))


@pytest.fixture(scope="session", params=find_javas() or [""])
def java(request: pytest.FixtureRequest) -> str:
    """Return the launcher of each JVM that was found."""
    if not request.param:
        pytest.skip(f"no java on PATH or in {HOMES}: JVMs are not tested here")
    return str(request.param)
