"""What takes seconds to make is made once a run: the first test that needs it makes it, and tests of other workers wait for it."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from gcspy_compiled.machine_code import VARIABLE, cache_folder

__all__ = ["compiled_once"]

Loops = TypeVar("Loops")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep every other process out that asks for the same file."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


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
