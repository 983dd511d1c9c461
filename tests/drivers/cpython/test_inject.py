"""A stub that gdb brings in: never into a program that does not come to it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from gcspy_drivers.cpython.cooperation.gdb_call import OLD_GDB
from gcspy_drivers.cpython.cooperation.injection import bring_in
from gcspy_drivers.cpython.target import Target
from gcspy_protocol.errors import TargetError, Unsupported

from tests.drivers.cpython.answering import running, skipped_with_old_gdb

pytestmark = pytest.mark.skipif(
    shutil.which("gdb") is None, reason="there is no gdb here: bringing a stub in is not tested"
)

READING = "import sys; print(1, flush=True); sys.stdin.readline(); print(2, flush=True); sys.stdin.readline()"


def test_a_target_that_is_blocked_in_reading_is_told_of_and_runs_on(python: str) -> None:
    with (
        skipped_with_old_gdb(),
        running(python, READING) as process,
        Target(process.pid) as target,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        with pytest.raises(TargetError, match=r"is blocked|older than this") as raised:
            bring_in(target, "gdb", secs=0.2)
        if OLD_GDB in str(raised.value):
            raise raised.value
        process.stdin.write("go on\n")
        process.stdin.flush()
        assert process.stdout.readline() == "2\n", "what it was left with does nothing"


def test_without_gdb_it_says_what_else_there_is(
    own_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(own_python, READING) as process, Target(process.pid) as target:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        monkeypatch.setenv("PATH", "")
        with pytest.raises(Unsupported, match="gdb is not installed"):
            bring_in(target, "gdb", secs=0.2)


COPIED = """
import ctypes, os, shutil, sys, tempfile
folder = tempfile.mkdtemp()
path = folder + "/library.so"
source = [line.split()[-1] for line in open("/proc/self/maps") if "/libdl" in line or "/libm." in line or "/libc." in line][0]
shutil.copy(source, path)
library = ctypes.CDLL(path)
os.unlink(path)
os.mkfifo(path)
print(folder, flush=True)
while True:
    sys.intern("x")
"""
"""Has a library mapped whose name now is a pipe's: opening it blocks for ever."""


def test_gdb_opens_no_file_that_the_target_names(own_python: str) -> None:
    with (
        skipped_with_old_gdb(),
        running(own_python, COPIED) as process,
        Target(process.pid) as target,
    ):
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        try:
            with bring_in(target, "gdb", secs=60) as connection:
                assert connection.recv(8) == b"gcspystb"
        finally:
            shutil.rmtree(folder)


def _put_gdb(folder: Path, monkeypatch: pytest.MonkeyPatch, each: str, end: str) -> Path:
    """Put a program of the name gdb on PATH; return the file in which it writes its arguments.

    Args:
        folder: Where.
        monkeypatch: For PATH.
        each: Command for each argument, ``$word``.
        end: Its last command.
    """
    told = folder / "told"
    gdb = folder / "gdb"
    gdb.write_text(
        f"""#!/bin/sh
told={told}
for word; do
    echo "$word" >> $told
    {each}
done
{end}
"""
    )
    gdb.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return told


def test_what_gdb_copies_into_the_target_is_no_file_that_the_target_could_exchange(
    own_python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root's gdb would copy whatever root may read, behind a link as well."""
    told = _put_gdb(
        tmp_path,
        monkeypatch,
        """case "$word" in "restore "*) set -- $word; cat "$2" >> $told.lines;; esac""",
        "echo '$1 = 1'; echo '$2 = 0'",
    )
    with running(own_python, READING) as process, Target(process.pid) as target:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        with pytest.raises(TargetError, match="is blocked"):
            bring_in(target, "gdb", secs=0.2)
    words = told.read_text().splitlines()
    assert "set sysroot /proc/self/fdinfo/none" in words
    assert not Path("/proc/self/fdinfo/none").exists()
    assert not [word for word in words if "/root" in word or "/tmp" in word]
    assert b"_gcspy_file.read()" in Path(f"{told}.lines").read_bytes()


def test_a_gdb_that_cannot_write_all_registers_never_sees_the_target(
    own_python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would leave a system call of the target with an error of the kernel's own, 512."""
    told = _put_gdb(
        tmp_path,
        monkeypatch,
        ":",
        """echo "Couldn't write extended state status: Bad address." >&2""",
    )
    with running(own_python, READING) as process, Target(process.pid) as target:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        for _ in range(2):
            with pytest.raises(TargetError, match=OLD_GDB):
                bring_in(target, "gdb", secs=0.2)
        words = told.read_text().splitlines()
        assert words.count("-p") == 1, "one rehearsal is enough"
        assert words[words.index("-p") + 1] != str(process.pid)
        assert process.poll() is None
