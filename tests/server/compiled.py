"""The library of loops over streams as a test needs it: built of the sources as they are, wherever there is a compiler."""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from gcspy_protocol.compiled.stream_library import FOLDER, NAME

from gcspy_compiled.libraries import Library, find_library, load_library
from tests.house.rooms import ROOT

__all__ = ["SANITIZED", "load_hook", "need_library"]


def load_hook() -> ModuleType:
    """Return hatch_build.py as a module."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    return hook


SANITIZED = "GCSPY_TEST_LIBRARY"
"""Names a library that a test has built with sanitizers, for the tests that it runs in another process."""


@cache
def _build() -> tuple[Library | None, str]:
    given = os.environ.get(SANITIZED)
    if given is not None:
        return load_library(Path(given)), f"{given} cannot be loaded"
    hook = load_hook()
    why_not = str(hook.build_loops(hook.Loops(NAME, FOLDER)))
    path = find_library(NAME, FOLDER)
    return (None if path is None else load_library(path)), why_not


def need_library() -> Library:
    """Return the library of these sources; skip the test where it cannot be built."""
    library, why_not = _build()
    if library is None:
        pytest.skip(f"{NAME} is not built: {why_not or 'libraries are disabled'}")
    return library
