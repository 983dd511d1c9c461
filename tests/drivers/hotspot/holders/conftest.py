"""One JVM of each version for the tests of holders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from gcspy_objects.hprof import machine_code
from gcspy_objects.hprof.machine_code import Loops

from tests.drivers.hotspot.holders.planted import compile_planted, running
from tests.once import compiled_once


@pytest.fixture(scope="session")
def planted_classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the compiled program."""
    return compile_planted(tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="session")
def planted(java: str, planted_classes: Path) -> Iterator[int]:
    """Return the number of a JVM that runs it, of each version."""
    with running(java, planted_classes) as pid:
        yield pid


@pytest.fixture(scope="session", name="compiled")
def _compiled() -> Loops:
    """The loops as machine code, or as they are written where there is no numba."""
    return compiled_once(machine_code.load)
