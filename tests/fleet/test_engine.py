"""Engines: names that are none are errors that say what to write; `tests/soak/test_fleet.py` has those that are."""

from __future__ import annotations

import pytest
from gcspy_protocol.errors import CommandError

from gcspy.fleet.engine import engine_of


@pytest.mark.parametrize("name", ["ray", "dask://", "dask", "http://127.0.0.1:1"])
def test_a_name_of_no_engine_is_refused(name: str) -> None:
    with pytest.raises(CommandError, match="write local, dask://HOST:PORT"), engine_of(name, 1):
        pass
