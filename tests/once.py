"""What takes seconds to make is made once a run: the first test that needs it makes it, and tests of other workers wait for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from gcspy_compiled.libraries import find_library
from gcspy_compiled.machine_code import VARIABLE, cache_folder

__all__ = ["RUN_FOLDER", "compiled_once", "made_once", "machine_code_allowed"]

RUN_FOLDER = "GCSPY_TESTS_FOLDER"
"""Environment variable: the folder that the workers of a run share, removed with the run."""

Loops = TypeVar("Loops")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep every other process out that asks for the same file."""
    import fcntl  # a system without it has no tests that ask

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder of the run, filled by the first test that asks for it; nobody may change it.

    Args:
        name: Its name, other for other content.
        make: Fills a folder.
    """
    folder = Path(os.environ[RUN_FOLDER], name)
    with _alone(folder.with_name(f"{name}.lock")):
        if not folder.exists():
            new = folder.with_name(f"{name}.new")
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            make(new)
            new.rename(folder)
    return folder


def compiled_once(load: Callable[[], Loops]) -> Loops:
    """Compile loops as machine code, which takes up to 12 s of processor time, or load what another worker has compiled.

    Args:
        load: Compiles them, or loads them from the cache.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv(VARIABLE, raising=False)
        folder = cache_folder()
        if folder is None:
            return load()
        with _alone(folder / "tests.lock"):
            return load()


def machine_code_allowed(patch: pytest.MonkeyPatch) -> None:
    """Let loops run as machine code until the patch is undone, as users' do: as Python runs them they take minutes.

    Loops in C run without it. Where they are built nothing changes, so that no command loads numba,
    or compiles what its short life does not need.
    """
    from gcspy_drivers.cpython.graph import machine_code as graph
    from gcspy_drivers.hotspot.copied import machine_code as copied
    from gcspy_objects.graph import kernels
    from gcspy_objects.hprof import machine_code as hprof

    libraries = (graph.LIBRARY, copied.LIBRARY, kernels.LIBRARY, hprof.LIBRARY)
    if any(find_library(library.name, library.folder) is None for library in libraries):
        patch.delenv(VARIABLE, raising=False)
