"""The plotting library is loaded in a thread when nothing of Qt's bindings is left to make."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from gcspy_client.view.panels.plot_library import made_bindings
steps = sum(1 for _ in made_bindings())
before = {name for name in sys.modules if name.startswith("PySide6.")}
import gcspy_client.view.panels.plot
print(steps, *sorted({name for name in sys.modules if name.startswith("PySide6.")} - before))
"""


def test_it_loads_no_module_of_the_bindings_that_was_not_loaded_before() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=120
    )
    steps, *loaded = ran.stdout.split()
    assert int(steps) > 700
    assert loaded == []
