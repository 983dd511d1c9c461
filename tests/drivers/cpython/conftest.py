"""The loops that the tests of graphs and of allocation sites share."""

from __future__ import annotations

import pytest
from gcspy_drivers.cpython.graph import machine_code
from gcspy_drivers.cpython.graph.machine_code import Loops

from tests.once import compiled_once


@pytest.fixture(scope="session", name="compiled")
def _compiled() -> Loops:
    """The loops as machine code, or as they are written where there is no numba."""
    return compiled_once(machine_code.load)
