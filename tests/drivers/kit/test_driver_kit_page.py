"""docs/driver-kit.md: every block runs, one after the other, and every public name is described."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import gcspy_drivers.kit
import gcspy_drivers.remote
import pytest

from tests.house.rooms import ROOT

PAGE = ROOT / "docs" / "driver-kit.md"
TEXT = PAGE.read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[int]:
    """Return the number of a Python process that has a file open."""
    path = tmp_path / "words"
    path.write_bytes(b"WORDS and more")
    with subprocess.Popen(
        [sys.executable, "-c", f"file = open({str(path)!r}); print(1, flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_every_block_runs(target: int, tmp_path: Path) -> None:
    """As one program, with each block at the line at which it stands on the page."""
    assert len(BLOCKS) >= 14
    assert all("assert " in block or "class " in block for block in BLOCKS), "a block shows nothing"
    inside, lines = False, []
    for line in TEXT.splitlines():
        inside = line == "```python" or (inside and line != "```")
        lines.append(line if inside and line != "```python" else "")
    program = tmp_path / "page.py"
    program.write_text("\n".join(lines) + "\n")
    runpy.run_path(str(program), init_globals={"pid": target})


@pytest.mark.parametrize("module", [gcspy_drivers.kit, gcspy_drivers.remote])
def test_every_public_name_is_there_and_described(module: ModuleType) -> None:
    names = vars(module)["__all__"]
    assert len(names) > 20
    for name in names:
        assert getattr(module, name) is not None
        assert re.search(rf"\b{name}\b", TEXT), f"{name} is not described"
    missing = "no_such_name"
    with pytest.raises(AttributeError, match=missing):
        getattr(module, missing)


@pytest.mark.parametrize("module", ["gcspy_drivers.kit", "gcspy_drivers.remote"])
def test_a_door_loads_what_is_asked_for_only(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, {module}; print('numpy' in sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "False\n"
