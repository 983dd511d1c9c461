"""The loops that the tests of graphs and of allocation sites share."""

from __future__ import annotations

import pytest
from gcspy_drivers.cpython.graph import machine_code
from gcspy_drivers.cpython.graph.machine_code import Loops

from gcspy_compiled.machine_code import VARIABLE


@pytest.fixture(scope="session", name="compiled")
def _compiled() -> Loops:
    """The loops as machine code, or as they are written where there is no numba."""
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv(VARIABLE, raising=False)
        return machine_code.load()
