"""Libraries of loops in C as a test needs them: built of the sources as they are, or the ones with sanitizers that another test has built."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from gcspy_compiled.c_loops import CLibrary, CLoop
from gcspy_compiled.libraries import VARIABLE, load_library
from tests.house.rooms import ROOT

__all__ = ["c_loop", "check_accesses", "need_c", "without_c"]

_SANITIZED = "GCSPY_TEST_C_FOLDER"
"""Names a folder with libraries that check each access."""


def _load_hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    return hook


def need_c(library: CLibrary, patch: pytest.MonkeyPatch) -> None:
    """Have the loops of a library in C until the patch is undone; skip the test where they cannot be built."""
    patch.delenv(VARIABLE, raising=False)
    folder = os.environ.get(_SANITIZED)
    if folder is not None:
        (path,) = Path(folder).glob(f"{library.name}-*.so")
        loaded = load_library(path)
        assert loaded is not None, f"{path} cannot be loaded"
        patch.setattr(library, "_library", loaded)
        return
    hook = _load_hook()
    why_not = str(hook.build_loops(hook.Loops(library.name, library.folder)))
    if why_not:
        pytest.skip(f"{library.name} is not built: {why_not}")
    if library._library is None:
        del library._library


@cache
def c_loop(library: CLibrary, name: str, signature: str) -> CLoop | None:
    """Return one loop of a library in C, None where it cannot be built; see `need_c`."""
    with pytest.MonkeyPatch.context() as patched:
        try:
            need_c(library, patched)
        except pytest.skip.Exception:
            return None
        return library.loop(name, signature)


def without_c(patch: pytest.MonkeyPatch) -> None:
    """Have no loops in C until the patch is undone."""
    patch.setenv(VARIABLE, "no")


def check_accesses(library: CLibrary, folder: Path, *tests: Path) -> None:
    """Run tests in another process with a library that checks each access and each operation.

    Args:
        library: The library.
        folder: An empty folder.
        tests: Files of tests that call `need_c`.
    """
    hook = _load_hook()
    compiler = hook.find_compiler()
    if compiler is None:
        pytest.skip("there is no C compiler")
    flags = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    why_not = hook.build_loops(
        hook.Loops(library.name, library.folder), folder, (*hook.LOOP_FLAGS, *flags)
    )
    if why_not:
        pytest.skip(f"no sanitizers: {why_not}")
    runtime = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-m", "not soak", *map(str, tests)],
        env=os.environ
        | {_SANITIZED: str(folder), "LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert " passed" in done.stdout
