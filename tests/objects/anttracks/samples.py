"""The real traces that ship with this, unpacked once for all tests of a process."""

from __future__ import annotations

import atexit
import functools
import shutil
import tarfile
import tempfile
from pathlib import Path

from tests.house.rooms import ROOT

__all__ = ["FOLDER", "SAMPLES", "sample"]

FOLDER = ROOT / "objects/samples/anttracks"
SAMPLES = ("churn", "compressed", "list", "pointers", "promote", "threads")


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="gcspy-traces-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def sample(name: str) -> Path:
    """Return the folder of a trace, with what the program and the VM's log say of it."""
    with tarfile.open(FOLDER / f"{name}.tar.xz") as archive:
        archive.extractall(_folder(), filter="data")
    return _folder() / name
