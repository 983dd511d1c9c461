"""`gcspy ps` learns cheaply what a process is, and why it cannot be watched."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from gcspy_drivers.cpython.discovery import RuntimeFound, find_runtime, look, version_from_hex
from gcspy_drivers.cpython.driver import CPythonDriver
from gcspy_drivers.cpython.layouts import debug_offsets, layout_for
from gcspy_drivers.cpython.target import Target
from gcspy_drivers.remote.elf.image import Image
from gcspy_drivers.remote.maps import read_maps
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import TargetError, Unsupported

from gcspy_server.api import AttachOptions
from tests.drivers.conftest import Start
from tests.drivers.targets import find_python

WAIT = "print(sys.version.split()[0], flush=True); sys.stdin.readline()"


def test_each_version_is_recognised_with_its_exact_number(python: str, start: Start) -> None:
    child = start(python, WAIT)
    version = child.read_line()
    if version.startswith(("3.9.", "3.10.")):
        version = version.rpartition(".")[0]  # before 3.11 only names show it, and they are gone
    found = look(child.pid)
    assert (found.runtime, found.version, found.why_not) == ("CPython", version, "")
    assert found.image.startswith("/")
    recognised = CPythonDriver.recognise(child.pid)
    assert (recognised.runtime, recognised.version, recognised.supported) == (
        "CPython",
        version,
        True,
    )
    with Target(child.pid, start_ticks=found.start_ticks) as target:
        assert target.version == found.numbers


def test_an_executable_of_any_name_is_looked_into(stripped_python: str, tmp_path: Path) -> None:
    copy = tmp_path / "my-application"
    shutil.copy(stripped_python, copy)
    child = subprocess.Popen(
        [copy, "-S", "-c", "print(1, flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        child.stdout.readline()
        found = look(child.pid)
        assert (found.runtime, found.numbers[:2], found.image) == (
            "CPython",
            (3, 11),
            str(copy),
        )
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("version", ["3.6", "3.8"])
def test_an_unsupported_version_is_named(version: str, start: Start) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"no Python {version} on PATH or in ~/.pyenv/versions")
    child = start(python, "print(1); sys.stdout.flush(); sys.stdin.readline()")
    child.read_line()
    found = CPythonDriver.recognise(child.pid)
    assert (found.runtime, found.supported) == ("CPython", False)
    assert (
        f"found CPython {version}; supported: CPython 3.9, 3.10, 3.11, 3.12, 3.13, 3.14, 3.15"
        in found.why_not
    )
    with pytest.raises(Unsupported, match=f"CPython {version}"):
        CPythonDriver.attach(child.pid, AttachOptions())


def test_a_build_without_a_gil_is_refused_by_its_name_and_by_its_own_word(start: Start) -> None:
    found = RuntimeFound("/usr/lib/libpython3.13t.so.1.0", None, (3, 13, 1), free_threaded=True)
    with pytest.raises(
        Unsupported,
        match=r"free-threaded.*CPython \(free-threaded\) 3\.13\.1.*start the program with python3\.13, not python3\.13t",
    ):
        found.refuse_unsupported()
    python = find_python("3.13")
    if python is None:
        pytest.skip("no Python 3.13 on PATH or in ~/.pyenv/versions")
    child = start(python, WAIT)
    child.read_line()
    with Target(child.pid) as target:
        table = bytearray(target._memory.read(target._runtime, debug_offsets.TABLE_BYTES))
    layout = layout_for((3, 13))
    assert debug_offsets.apply(layout, bytes(table)) == layout, (
        "the process says the same as our table"
    )
    table[16] = 1
    with pytest.raises(
        Unsupported, match=r"free-threaded.*start the program with python3\.13, not python3\.13t"
    ):
        debug_offsets.apply(layout, bytes(table))


def test_the_processs_own_offsets_are_preferred_and_checked(start: Start) -> None:
    python = find_python("3.13")
    if python is None:
        pytest.skip("no Python 3.13 on PATH or in ~/.pyenv/versions")
    child = start(python, WAIT)
    child.read_line()
    with Target(child.pid) as target:
        table = target._memory.read(target._runtime, debug_offsets.TABLE_BYTES)
    wrong = replace(
        layout_for((3, 13)),
        interpreters_head=0,
        interpreter_next=8,
        interpreter_id=16,
        interpreter_gc=24,
    )
    assert debug_offsets.apply(wrong, table) == layout_for((3, 13))
    for damaged in (
        b"notdebug" + table[8:],
        table[:8] + b"\0\0\x0c\x03" + table[12:],
        table[:80] + b"\xff" * 8 + table[88:],
    ):
        with pytest.raises(TargetError):
            debug_offsets.apply(layout_for((3, 13)), damaged)


def test_a_build_without_a_gil_is_known_by_what_it_exports(
    own_python: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = start(own_python, WAIT)
    child.read_line()
    real = Image.exported
    monkeypatch.setattr(
        Image,
        "exported",
        lambda self, name: real(self, "_PyRuntime" if name == "_Py_DecRefShared" else name),
    )
    found = look(child.pid)
    assert found.runtime == "CPython (free-threaded)"
    assert "free-threaded" in found.why_not


def test_a_library_that_was_replaced_is_found_in_memory(
    own_python: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade removed the file, and we may not use the kernel's handle on it: symbols come from the target."""
    child = start(own_python, WAIT)
    child.read_line()
    with Process(child.pid) as process:
        memory, maps = Memory(process), read_maps(process)
        with_file = find_runtime(process, memory, maps)
        monkeypatch.setattr(
            "gcspy_drivers.remote.elf.image.open_file", lambda process, maps, path: None
        )
        without = find_runtime(process, memory, maps)
        assert with_file is not None
        assert with_file.image is not None
        assert not with_file.image.from_memory
        assert without is not None
        assert without.image is not None
        assert without.image.from_memory
        assert without.version == with_file.version
        assert without.exported("_PyRuntime") == with_file.exported("_PyRuntime")
        with_file.close()
        without.close()
    with Target(child.pid) as target:
        assert target.interpreters()


def test_versions_are_read_from_their_number() -> None:
    assert version_from_hex(0x030B07F0) == (3, 11, 7)
    assert version_from_hex(0x030D00A1) == (3, 13, 0)


def test_our_own_process_is_a_python_like_any_other() -> None:
    assert look(os.getpid()).runtime == "CPython"
