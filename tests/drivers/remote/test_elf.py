"""Symbols of running programs: by file and by memory the same, for programs with fixed addresses and without."""

from __future__ import annotations

import ast
import io
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.hash import GNUHashTable
from elftools.elf.sections import SymbolTableSection
from gcspy_drivers.remote.elf.file import MACHINE_X86_64, ElfFile, Symbol
from gcspy_drivers.remote.elf.image import Image, open_file, open_image
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


@contextmanager
def mapped_image_of(pid: int, ending: str, patch: pytest.MonkeyPatch) -> Iterator[Image]:
    """Give the image as it is when the file cannot be opened."""

    def refuse(process: Process, name: str) -> int:
        raise NotPermitted("no", remedy="none")

    with patch.context() as patched:
        patched.setattr(Process, "follow", refuse)
        with image_of(pid, ending) as (image, _, _):
            yield image


def library_or_program(pid: int) -> str:
    with Process(pid) as process:
        names = [name for name in read_maps(process).path if "/libpython" in name]
        return os.path.basename(names[0] if names else process.read_link("exe") or "")


def test_exported_symbols_are_the_same_in_file_and_memory(
    python: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = start(python, WAIT)
    child.read_line()
    name = library_or_program(child.pid)
    tells_version = "3.9" not in name and "3.10" not in name  # exported since 3.11
    with (
        image_of(child.pid, name) as (image, memory, maps),
        mapped_image_of(child.pid, name, monkeypatch) as mapped,
    ):
        assert (image.from_memory, mapped.from_memory) == (False, True)
        assert mapped.file.machine == image.file.machine == MACHINE_X86_64
        assert (mapped.bias, mapped.writable) == (image.bias, image.writable)
        assert mapped.static("arenas") is None, "that is in sections, which are not mapped"
        for symbol in (
            "_PyRuntime",
            "PyObject_Malloc",
            "PyGC_Collect",
            *(("Py_Version",) if tells_version else ()),
        ):
            addr = image.exported(symbol)
            assert addr is not None
            assert maps.cover(addr, 4)
            assert mapped.exported(symbol) == addr
            assert mapped.file.exported(symbol) == image.file.exported(symbol)
        for symbol in (
            "no_such_symbol",
            "",
            "malloc",
            "é",
        ):  # malloc is only imported, not exported
            assert image.exported(symbol) is None
            assert mapped.exported(symbol) is None
        version = image.exported("Py_Version")
        assert (version is not None) is tells_version
        if version is not None:
            constant = image.file.bytes_at(version - image.bias, 4)
            assert (
                constant == mapped.file.bytes_at(version - image.bias, 4) == memory.read(version, 4)
            )
            assert constant is not None
            assert constant[3] == 3
        runtime = image.exported("_PyRuntime")
        assert runtime is not None
        assert any(first <= runtime < end for first, end in image.writable)
        last = image.writable[-1][1]
        assert image.file.bytes_at(last - image.bias - 1, 2) is None, (
            "beyond the end of the file's data"
        )


def test_a_program_with_fixed_addresses_has_no_bias(
    stripped_python: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = start(stripped_python, WAIT)
    child.read_line()
    name = os.path.basename(stripped_python)
    with (
        image_of(child.pid, name) as (image, memory, _),
        mapped_image_of(child.pid, name, monkeypatch) as mapped,
    ):
        version = image.exported("Py_Version")
        assert version is not None
        assert memory.read(version, 4)[2:] == b"\x0b\x03"
        assert image.exported("_PyRuntime") == mapped.exported("_PyRuntime")
        assert image.static("arenas") is None, "a stripped program names nothing"


def test_each_exported_symbol_is_found_by_its_name(own_python: str, start: Start) -> None:
    """By hash, one by one, against all of them as a list."""
    child = start(own_python, WAIT)
    child.read_line()
    with image_of(child.pid, library_or_program(child.pid)) as (image, _, _):
        with open(image.path, "rb") as file:
            table = ELFFile(file).get_section_by_name(".dynsym")
            assert isinstance(table, SymbolTableSection)
            symbols = [
                symbol for symbol in table.iter_symbols() if symbol["st_shndx"] != "SHN_UNDEF"
            ]
        assert len(symbols) > 1000
        for symbol in symbols[::10]:
            assert image.file.exported(symbol.name) == Symbol(symbol["st_value"], symbol["st_size"])


@pytest.mark.parametrize("style", ["gnu", "sysv"])
def test_both_kinds_of_hash_tables_are_searched(style: str, tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    names = [f"variable_{number}" for number in range(40)]
    source, library = tmp_path / "names.c", tmp_path / "libnames.so"
    source.write_text("".join(f"int {name} = {at};\n" for at, name in enumerate(names, 1)))
    subprocess.run(
        ["gcc", "-shared", f"-Wl,--hash-style={style}", "-o", library, source], check=True
    )
    with ElfFile(io.FileIO(library), str(library)) as file:
        for at, name in enumerate(names, 1):
            symbol = file.exported(name)
            assert symbol is not None
            assert symbol.size_bytes == 4
            assert file.bytes_at(symbol.vaddr, 4) == at.to_bytes(4, "little")
            assert file.exported(name + "0000") is None


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
        # A name that several source files have belongs to none of them.
        with open(image.path, "rb") as file:
            symbols = ELFFile(file).get_section_by_name(".symtab")
            assert isinstance(symbols, SymbolTableSection)
            count = {
                name: len(symbols.get_symbol_by_name(name) or ())
                for name in ("_parser.0", "kwlist.0", "module_methods")
            }
        assert max(count.values()) > 1
        assert [image.static(name) is None for name in count] == [
            number != 1 for number in count.values()
        ]


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
            assert not image.from_memory
            assert image.path == str(copy)
            assert memory.read(image.bias, 4) == b"\x7fELF" or image.bias == 0
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize(
    "damage",
    [
        "empty",
        "short",
        "not elf",
        "32 bits",
        "big end first",
        "a core",
        "too many segments",
        "segments beyond the end",
    ],
)
def test_a_damaged_file_is_refused_in_words(tmp_path: Path, damage: str) -> None:
    data = bytearray(Path("/bin/cat").read_bytes())
    if damage in ("empty", "short"):
        del data[0 if damage == "empty" else 20 :]
    elif damage == "not elf":
        data[:4] = b"#!ab"
    elif damage == "32 bits":
        data[4] = 1
    elif damage == "big end first":
        data[5] = 2
    elif damage == "a core":
        data[16] = 4
    elif damage == "too many segments":
        data[56:58] = b"\xff\xff"
    else:
        data[32:40] = (len(data) - 10).to_bytes(8, "little")
    path = tmp_path / "damaged"
    path.write_bytes(data)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(TargetError, match=str(path)):
        ElfFile(io.FileIO(path), str(path))
    assert len(os.listdir("/proc/self/fd")) == before


def tables_of(data: bytes) -> tuple[int, dict[str, int]]:
    """Return where the dynamic segment of a file is, and its GNU hash table and symbols."""
    elf = ELFFile(io.BytesIO(data))
    dynamic = next(
        segment for segment in elf.iter_segments() if isinstance(segment, DynamicSegment)
    )
    return dynamic["p_offset"], {
        name: dynamic.get_table_offset(name)[1] or 0
        for name in ("DT_GNU_HASH", "DT_SYMTAB", "DT_STRTAB")
    }


def ask(data: bytes) -> None:
    """Ask a file what attaching asks; whatever is in it, we get an answer or our own error."""
    with suppress(TargetError), ElfFile(io.BytesIO(data), "damaged") as file:
        for name in ("_PyRuntime", "Py_Version"):
            symbol = file.exported(name)
            if symbol is not None:
                file.bytes_at(symbol.vaddr, 4)
            file.static(name)


@pytest.fixture(scope="module")
def library() -> bytes:
    """Return the bytes of a libpython, or of a program that has one inside."""
    python = find_python("3.11") or find_python("3.12") or find_python("3.13")
    if python is None:
        pytest.skip("no Python 3.11 to 3.13 on PATH or in ~/.pyenv/versions")
    found = subprocess.run(
        [python, "-c", "import os, sys; print([l.split()[-1] for l in open('/proc/self/maps') if 'libpython' in l] or [os.path.realpath(sys.executable)])"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return Path(ast.literal_eval(found.stdout)[0]).read_bytes()


@pytest.mark.parametrize("seed", range(8))
def test_any_damage_ends_in_an_answer_or_in_our_error(library: bytes, seed: int) -> None:
    rng = np.random.default_rng(seed)
    dynamic, tables = tables_of(library)
    sections = ELFFile(io.BytesIO(library))["e_shoff"]
    places = [
        (0, 64),
        (64, 14 * 56),
        (dynamic, 40 * 16),
        (sections, 30 * 64),
        *((offset, 4096) for offset in tables.values()),
    ]
    for _ in range(12):
        data = bytearray(library)
        for _ in range(rng.integers(1, 6)):
            begin, size = places[rng.integers(len(places))]
            at = begin + 4 * int(rng.integers(size // 4))
            data[at : at + 4] = rng.choice(
                [b"\xff\xff\xff\xff", b"\0\0\0\0", rng.bytes(4), b"\0\0\0\x80"]
            )
        ask(bytes(data))
        ask(bytes(data[: rng.integers(len(data))]))


@pytest.mark.parametrize("field", ["buckets", "bloom words", "no buckets", "no bloom words"])
def test_sizes_that_are_not_true_are_given_up(library: bytes, field: str) -> None:
    data = bytearray(library)
    _, tables = tables_of(library)
    at = tables["DT_GNU_HASH"] + (0 if field.endswith(" buckets") or field == "buckets" else 8)
    data[at : at + 4] = bytes(4) if field.startswith("no") else (0x7FFFFFFF).to_bytes(4, "little")
    with (
        ElfFile(io.BytesIO(bytes(data)), "damaged") as file,
        pytest.raises(TargetError, match="damaged"),
    ):
        file.exported("_PyRuntime")


def test_a_chain_without_an_end_is_given_up(library: bytes) -> None:
    """Each symbol of the chain has the requested hash except for the bit that ends it, and another name."""
    dynamic, tables = tables_of(library)
    begin = tables["DT_GNU_HASH"]
    buckets, first, bloom, _ = np.frombuffer(library, dtype="<u4", count=4, offset=begin).tolist()
    bucket_table = begin + 16 + 8 * bloom
    words = np.frombuffer(library[: len(library) & ~3], dtype="<u4").copy()
    words[begin // 4 + 4 : bucket_table // 4] = 0xFFFFFFFF  # the filter lets every name pass
    words[bucket_table // 4 :][:buckets] = first
    kept = slice(dynamic // 4, dynamic // 4 + 200)  # what says where the tables are
    entries = words[kept].copy()
    words[bucket_table // 4 + buckets :] = GNUHashTable.gnu_hash("no_such_symbol") & ~1
    words[kept] = entries
    data = words.view(np.uint8)
    with (
        ElfFile(io.BytesIO(data.tobytes()), "damaged") as file,
        pytest.raises(TargetError, match="damaged"),
    ):
        file.exported("no_such_symbol")


def test_what_is_not_mapped_has_no_image() -> None:
    with Process(os.getpid()) as process:
        maps = parse_maps(b"")
        assert open_file(process, maps, "/bin/cat") is None
        with pytest.raises(TargetError, match="has not mapped /bin/cat"):
            open_image(process, Memory(process), maps, "/bin/cat")


def test_a_file_that_is_only_read_is_not_taken_for_the_program(
    own_python: str, start: Start
) -> None:
    """A process that reads a library's file through mmap has it mapped twice; the loader's mapping is the one."""
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
