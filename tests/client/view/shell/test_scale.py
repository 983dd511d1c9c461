"""On screens of a higher density tiles are drawn in their pixels, and found under the mouse."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.matrix import matrix


@pytest.mark.parametrize("scale", matrix(["1.5", "2", "3"], usual=["1.5"]))
def test_tiles_have_their_colours_at_every_scale(scale: str) -> None:
    # A process of its own: Qt reads the scale once, when it starts.
    done = subprocess.run(
        [sys.executable, "-m", "tests.client.scaled_window"],
        env=os.environ | {"QT_SCALE_FACTOR": scale},
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        check=True,
    )
    ratio, finer, wrong = done.stdout.split()
    assert float(ratio) == float(scale)
    assert finer == "True"
    assert wrong == "0"
