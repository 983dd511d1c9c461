"""Libraries in C are built from their sources, found by them, and missed without harm."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from gcspy_compiled.libraries import _warn_of_old_build, find_library, hash_of_sources, load_library
from tests.house.rooms import ROOT

SOURCE = """
#include "more.h"
__attribute__((visibility("default"))) long twice(long n) { return MORE * n; }
long hidden(long n) { return n; }
"""


@pytest.fixture
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("GCSPY_C_CODE", raising=False)
    (tmp_path / "loops.c").write_text(SOURCE)
    (tmp_path / "more.h").write_text("#define MORE 2\n")
    return tmp_path


def build(hook: ModuleType, folder: Path) -> str:
    if hook.find_compiler() is None:
        pytest.skip("there is no C compiler")
    return str(hook.build_loops(hook.Loops("gcspy-loops", folder)))


def test_a_library_is_built_found_and_called(hook: ModuleType, folder: Path) -> None:
    assert find_library("gcspy-loops", folder) is None
    assert build(hook, folder) == ""
    path = find_library("gcspy-loops", folder)
    assert path is not None
    assert hash_of_sources(folder) in path.name
    library = load_library(path)
    assert library is not None
    assert library.held.twice(21) == library.released.twice(21) == 42
    assert not hasattr(library.held, "hidden")


def test_a_library_of_other_sources_is_told_not_taken_and_removed_by_the_next_build(
    hook: ModuleType, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _warn_of_old_build.cache_clear()
    assert build(hook, folder) == ""
    before = find_library("gcspy-loops", folder)
    assert not caplog.messages
    (folder / "more.h").write_text("#define MORE 3\n")
    assert find_library("gcspy-loops", folder) is None
    assert find_library("gcspy-loops", folder) is None
    (told,) = caplog.messages
    assert told.startswith("gcspy-loops was built from other sources"), "its handler says gcspy"
    assert build(hook, folder) == ""
    after = find_library("gcspy-loops", folder)
    assert [after] == list(folder.glob("*.so"))
    assert after != before


def test_a_library_that_is_there_is_not_built_again(hook: ModuleType, folder: Path) -> None:
    assert build(hook, folder) == ""
    path = find_library("gcspy-loops", folder)
    assert path is not None
    made = path.stat().st_ino
    assert build(hook, folder) == ""
    assert path.stat().st_ino == made


def test_machine_code_can_be_disabled(
    hook: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert build(hook, folder) == ""
    monkeypatch.setenv("GCSPY_C_CODE", "no")
    assert find_library("gcspy-loops", folder) is None


def test_without_a_compiler_there_is_a_reason_and_no_file(
    hook: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CC", raising=False)
    assert hook.build_loops(hook.Loops("gcspy-loops", folder)) == "there is no C compiler"
    assert find_library("gcspy-loops", folder) is None


def test_sources_that_do_not_compile_say_why_and_leave_no_file(
    hook: ModuleType, folder: Path
) -> None:
    (folder / "more.h").write_text("#define MORE not defined\n")
    assert "failed" in build(hook, folder)
    assert not list(folder.glob("*.so*"))


def test_each_missing_part_of_the_agent_that_counts_is_told_in_one_line(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two folders stand for JDKs; neither knows the library of Java 24 and later, and the second one has no ASM."""
    monkeypatch.setattr(hook, "find_jdks", lambda: [tmp_path / "first", tmp_path / "second"])
    for number, name in enumerate(("first", "second")):
        compiler = tmp_path / name / "bin/javac"
        compiler.parent.mkdir(parents=True)
        refused = "ClassFileSites" if number == 0 else "ClassFileSites|AsmSites"
        compiler.write_text(
            f"""#!/bin/sh
echo "$*" | grep -qE "{refused}" && {{ echo "X.java:1: error: no such package\n  import" >&2; exit 1; }}
mkdir -p "$2/gcspy"; for one; do case $one in *.java) touch "$2/gcspy/$(basename $one .java).class";; esac; done
"""
        )
        compiler.chmod(0o755)
    line = (
        f"Java 24 and later: {tmp_path}/second/bin/javac failed: X.java:1: error: no such package"
    )
    assert hook.build_counting_agent(tmp_path) == [line]
    (agent,) = tmp_path.glob("gcspy-counting-*.jar")
    with zipfile.ZipFile(agent) as jar:
        assert "gcspy/AsmSites.class" in jar.namelist()
    again = ["Java 24 and later: no JDK here compiles its part"]
    assert hook.build_counting_agent(tmp_path) == again, "also when it is there already"
    monkeypatch.setattr(hook, "find_jdks", lambda: [tmp_path / "second"])
    told = hook.build_counting_agent(tmp_path)
    assert [each.partition(":")[0] for each in told] == ["Java 8 to 23", "Java 24 and later"]
    monkeypatch.setattr(hook, "find_jdks", list)
    assert hook.build_counting_agent(tmp_path) == ["any version of Java: there is no JDK"]


def test_a_file_that_is_no_library_is_not_loaded(folder: Path) -> None:
    wrong = folder / "gcspy-loops-0-0.so"
    wrong.write_bytes(b"\x7fELF of another machine")
    assert load_library(wrong) is None


@pytest.mark.parametrize("choice", ["yes", "no"])
def test_the_version_says_what_is_done_in_c(choice: str) -> None:
    built = find_library("gcspy-streams", ROOT / "protocol/gcspy_protocol/compiled") is not None
    followed = (
        find_library("gcspy-graph", ROOT / "objects/gcspy_objects/graph/compiled") is not None
    )
    said = subprocess.run(
        [sys.executable, "-m", "gcspy", "--version"],
        env={**os.environ, "GCSPY_C_CODE": choice},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert ("are encoded in C\n" in said) == (built and choice == "yes")
    assert ("are encoded by numpy" in said) == (not built or choice == "no")
    assert ("are followed in C\n" in said) == (followed and choice == "yes")
    assert ("are followed by loops" in said) == (not followed or choice == "no")
