"""Programs that tests trace, compiled once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the programs, compiled."""
    compilers = [shutil.which(one) for one in ("cc", "c++")]
    if None in compilers:
        pytest.skip("no compiler for C++ here")
    folder = tmp_path_factory.mktemp("programs")
    subprocess.run(
        [str(compilers[1]), "-O1", "-g", "-std=c++17", "-pthread", str(PROGRAMS / "own_log.cpp"), "-o", str(folder / "own_log"), "-ldl"],
        check=True,
    )  # fmt: skip
    subprocess.run(
        [str(compilers[0]), "-shared", "-fPIC", str(PROGRAMS / "plugin.c"), "-o", str(folder / "plugin.so")],
        check=True,
    )  # fmt: skip
    return folder
