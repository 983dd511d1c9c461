"""Symbols of running programs: by file and by memory the same, for programs with fixed addresses and without."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gcspy_drivers.remote.elf import MACHINE_X86_64, ElfFile, Image, open_file, open_image
from gcspy_drivers.remote.maps import Maps, parse_maps, read_maps
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process
from gcspy_protocol.errors import NotPermitted, TargetError

from tests.drivers.conftest import Start
from tests.drivers.targets import find_python

WAIT = "print(1, flush=True); sys.stdin.readline()"


@contextmanager
def image_of(pid: int, ending: str) -> Iterator[tuple[Image, Memory, Maps]]:
    with Process(pid) as process:
        memory, maps = Memory(process), read_maps(process)
        (path,) = {name for name in maps.path if name.removesuffix(" (deleted)").endswith(ending)}
        image = open_image(process, memory, maps, path)
        try:
            yield image, memory, maps
        finally:
            image.close()


def library_or_program(pid: int) -> str:
    with Process(pid) as process:
        names = [name for name in read_maps(process).path if "/libpython" in name]
        return os.path.basename(names[0] if names else process.read_link("exe") or "")


def test_exported_symbols_are_the_same_in_file_and_memory(python: str, start: Start) -> None:
    child = start(python, WAIT)
    child.read_line()
    with image_of(child.pid, library_or_program(child.pid)) as (image, memory, maps):
        assert image.file is not None
        assert image.file.machine == MACHINE_X86_64
        for name in ("_PyRuntime", "Py_Version", "PyObject_Malloc", "PyGC_Collect"):
            addr = image.exported(name)
            assert addr is not None
            assert maps.cover(addr, 4)
            assert image._exported_from_memory(name) == addr
        assert image.exported("no_such_symbol") is None
        assert image._exported_from_memory("no_such_symbol") is None
        version = image.exported("Py_Version")
        assert version is not None
        constant = image.file.bytes_at(version - image.bias, 4)
        assert constant == memory.read(version, 4)
        assert constant is not None
        assert constant[3] == 3
        runtime = image.exported("_PyRuntime")
        assert runtime is not None
        assert any(first <= runtime < end for first, end in image.writable)


def test_a_program_with_fixed_addresses_has_no_bias(stripped_python: str, start: Start) -> None:
    child = start(stripped_python, WAIT)
    child.read_line()
    with image_of(child.pid, os.path.basename(stripped_python)) as (image, memory, _):
        version = image.exported("Py_Version")
        assert version is not None
        assert memory.read(version, 4)[2:] == b"\x0b\x03"
        assert image.exported("_PyRuntime") == image._exported_from_memory("_PyRuntime")
        assert image.static("arenas") is None, "a stripped program names nothing"


def test_static_variables_are_found_whole_and_not_by_their_tails(start: Start) -> None:
    python = find_python("3.11")
    if python is None:
        pytest.skip("no Python 3.11 on PATH or in ~/.pyenv/versions")
    child = start(python, WAIT)
    child.read_line()
    with image_of(child.pid, library_or_program(child.pid)) as (image, memory, maps):
        arenas, length = image.static("arenas"), image.static("maxarenas")
        if arenas is None or length is None:
            pytest.skip("this Python 3.11 is stripped")
        # "arenas" is the end of "maxarenas" and shares its letters in the file.
        assert arenas != length
        assert int.from_bytes(memory.read(length, 4), "little") == 16
        assert maps.cover(int.from_bytes(memory.read(arenas, 8), "little"), 16 * 48)
        assert image.static("no_such_variable") is None
        assert image.file is not None
        # A name that several source files have is nobody's.
        shared = [name for name in ("_parser.0", "kwlist.0", "_kwtuple.0", "module_methods") if len(set(image.file._named(name, 2))) > 1]
        assert shared
        assert [image.file.static(name) for name in shared] == [None] * len(shared)


def test_a_program_that_was_deleted_is_still_read(own_python: str, tmp_path: Path) -> None:
    copy = tmp_path / "deleted-python"
    shutil.copy(os.path.realpath(own_python), copy)
    child = subprocess.Popen([copy, "-S", "-c", "print(1, flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env={**os.environ, "PYTHONHOME": str(Path(os.path.realpath(own_python)).parents[1])})  # fmt: skip
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"1\n"
        copy.unlink()
        copy.write_text("something else by now")
        with image_of(child.pid, "deleted-python") as (image, memory, _):
            assert image.file is not None
            assert image.path == str(copy)
            assert memory.read(image.bias, 4) == b"\x7fELF" or image.bias == 0
    finally:
        child.kill()
        child.communicate()


def test_a_file_that_cannot_be_opened_is_read_from_memory(own_python: str, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    child = start(own_python, WAIT)
    child.read_line()
    name = library_or_program(child.pid)
    with image_of(child.pid, name) as (image, _, _):
        expected, writable = image.exported("_PyRuntime"), image.writable

    def refuse(self: Process, name: str) -> int:
        raise NotPermitted("no", remedy="none")

    monkeypatch.setattr(Process, "open_file", lambda self, path: real(self, path) if path in ("maps", "stat", "exe") else refuse(self, path))
    with image_of(child.pid, name) as (image, _, _):
        assert image.file is None
        assert image.exported("_PyRuntime") == expected
        assert image.writable == writable
        assert image.static("arenas") is None


real = Process.open_file


@pytest.mark.parametrize("damage", ["short", "not elf", "32 bits", "sections beyond the end"])
def test_a_damaged_file_is_refused_in_words(tmp_path: Path, damage: str) -> None:
    data = bytearray(Path("/bin/cat").read_bytes())
    if damage == "short":
        del data[20:]
    elif damage == "not elf":
        data[:4] = b"#!ab"
    elif damage == "32 bits":
        data[4] = 1
    else:
        data[40:48] = (len(data) - 10).to_bytes(8, "little")
    path = tmp_path / "damaged"
    path.write_bytes(data)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(TargetError, match=str(path)):
        ElfFile(os.open(path, os.O_RDONLY), str(path))
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_is_not_mapped_has_no_image() -> None:
    with Process(os.getpid()) as process:
        maps = parse_maps(b"")
        assert open_file(process, maps, "/bin/cat") is None
        with pytest.raises(TargetError, match="has not mapped /bin/cat"):
            open_image(process, Memory(process), maps, "/bin/cat")


def test_a_file_that_is_only_read_is_not_taken_for_the_program(own_python: str, start: Start) -> None:
    """Somebody who reads a library's file through mmap has it mapped twice; the loader's mapping is the one."""
    child = start(
        own_python,
        "import mmap\n"
        "names = [l.split()[-1] for l in open('/proc/self/maps') if 'libpython' in l]\n"
        "name = names[0] if names else os.path.realpath(sys.executable)\n"
        "code = [int(l.split()[2], 16) for l in open('/proc/self/maps') if l.rstrip().endswith(name) and ' r-xp ' in l]\n"
        "keep = [mmap.mmap(os.open(name, os.O_RDONLY), 4096, prot=mmap.PROT_READ, offset=o) for o in [0, *code] for _ in range(20)]\n"
        + WAIT,
    )
    child.read_line()
    with image_of(child.pid, library_or_program(child.pid)) as (image, memory, _):
        version = image.exported("Py_Version")
        assert version is not None
        assert memory.read(version, 4)[3] == 3
