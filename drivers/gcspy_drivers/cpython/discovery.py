"""Checks whether a process is a CPython, of which version, and whether it can be monitored; quickly, for lists of processes.

Maps and files are mostly enough: a mapped libpython, or an executable that exports CPython's
runtime. Four bytes of the target's memory are read at the end, to check our permission. Knows names
and versions; does not know structures.

Source: CPython Include/cpython/pylifecycle.h and patchlevel.h (``Py_Version``, from 3.11), configure.ac (names of libraries and
the ABI flag "t"), PEP 703.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from gcspy_protocol.errors import NotPermitted, TargetError, TargetGone, Unsupported

from gcspy_drivers.cpython.layouts import debug_offsets, is_known, known_text
from gcspy_drivers.kit.runtime_discovery import RuntimeDiscovery
from gcspy_drivers.remote.address import Addr
from gcspy_drivers.remote.elf.file import MACHINE_X86_64
from gcspy_drivers.remote.elf.image import Image, open_image
from gcspy_drivers.remote.mapping_table import EXECUTE, Mapping, MappingTable, read_mapping_table
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.process import Process

__all__ = [
    "FREE_THREADED_RUNTIME",
    "RuntimeFound",
    "find_runtime",
    "look",
    "pymalloc_setting",
    "version_from_hex",
    "without_pymalloc",
]

FREE_THREADED_RUNTIME: Final = "CPython (free-threaded)"
"""Names of a build without a GIL."""

_LIBRARY = re.compile(r"/libpython(\d)\.(\d+)([a-z]*)\.so[^/]*$")
_PROGRAM = re.compile(r"/python(\d)\.(\d+)([a-z]*)$")
_SETTING = re.compile(rb"(?:^|\0)PYTHONMALLOC=([^\0]*)")
_MOST_BYTES: Final = 8 << 20  # of an environment; the kernel takes 6 MB
_WITHOUT_PYMALLOC: Final = ("malloc", "malloc_debug", "mimalloc", "mimalloc_debug")

# An executable's exports do not change, and a host runs many processes of few executables.
_PROGRAMS_SEEN: dict[tuple[str, int], bool] = {}


@dataclass(frozen=True, eq=False)
class RuntimeFound:
    """CPython in a process.

    Attributes:
        path: The executable or library that it is in.
        image: That file as the process has it mapped; None if the version is too old to have the
            required symbols.
        version: Its version as far as names and constants show it.
        free_threaded: Whether it was built to run without a GIL.
    """

    path: str
    image: Image | None
    version: tuple[int, ...]
    free_threaded: bool

    @property
    def name(self) -> str:
        """Its name for people."""
        return FREE_THREADED_RUNTIME if self.free_threaded else "CPython"

    def exported(self, name: str) -> Addr:
        """Return where a symbol is.

        Raises:
            TargetError: The image does not export it.
        """
        found = None if self.image is None else self.image.exported(name)
        if found is None:
            raise TargetError(f"{self.path} does not export {name}: it is not a supported CPython")
        return found

    def refuse_unsupported(self) -> None:
        """Refuse builds and versions that cannot be read.

        Raises:
            Unsupported: The build is not supported; the error names it, and the supported ones.
        """
        found = f"{self.name} {'.'.join(map(str, self.version))}"
        if self.free_threaded:
            raise Unsupported(
                debug_offsets.FREE_THREADED,
                found=found,
                known=debug_offsets.with_gil(self.version[:2]),
            )
        if not is_known(self.version):
            raise Unsupported(
                "this version of Python cannot be read", found=found, known=known_text()
            )
        if self.image is not None and self.image.file.machine != MACHINE_X86_64:
            raise Unsupported(
                "the offsets known here are for x86-64",
                found=f"ELF machine {self.image.file.machine}",
                known=MACHINE_X86_64,
            )

    def close(self) -> None:
        """Let the file go."""
        if self.image is not None:
            self.image.close()


@dataclass(frozen=True)
class _Candidate:
    path: str
    version: tuple[int, ...]
    flags: str


def look(pid: int) -> RuntimeDiscovery:
    """Check a process without attaching to it.

    Args:
        pid: The process.

    Returns:
        The result; a process that cannot be monitored has the reason.

    Raises:
        TargetGone: There is no such process.
    """
    with Process(pid) as process:
        try:
            return _look_at(process)
        except NotPermitted as error:
            return _found(process, why_not=str(error))


def find_runtime(process: Process, memory: Memory, maps: MappingTable) -> RuntimeFound | None:
    """Find the image that CPython is in.

    Args:
        process: The process.
        memory: Its memory.
        maps: Its mappings.

    Returns:
        The runtime, whose image the caller closes; None when the process has none.

    Raises:
        TargetError: Its files are damaged.
        TargetGone: It has ended.
    """
    for candidate in _candidates(process, maps):
        image = open_image(process, memory, maps, candidate.path)
        if image.exported("_PyRuntime") is not None:
            threaded = "t" in candidate.flags or image.exported("_Py_DecRefShared") is not None
            return RuntimeFound(
                image.path, image, _exact_version(image, candidate.version), threaded
            )
        image.close()
        if candidate.version:
            # Before 3.7 there was no _PyRuntime; the name is enough to refuse it.
            return RuntimeFound(candidate.path, None, candidate.version, free_threaded=False)
    return None


def version_from_hex(number: int) -> tuple[int, int, int]:
    """Return major, minor and micro version of a ``PY_VERSION_HEX``."""
    return number >> 24 & 0xFF, number >> 16 & 0xFF, number >> 8 & 0xFF


def pymalloc_setting(process: Process) -> str:
    """Return the initial value of ``PYTHONMALLOC``; empty if it was not set, or we may not know."""
    try:
        found = _SETTING.search(process.read_file("environ", most_bytes=_MOST_BYTES))
    except TargetError:
        return ""
    return "" if found is None else found[1].decode("utf-8", "replace")


def without_pymalloc(setting: str) -> bool:
    """Return whether a ``PYTHONMALLOC`` asks for another allocator."""
    return setting in _WITHOUT_PYMALLOC


def _look_at(process: Process) -> RuntimeDiscovery:
    maps = read_mapping_table(process)
    memory = Memory(process)
    try:
        runtime = find_runtime(process, memory, maps)
    except (NotPermitted, TargetGone):
        raise
    except TargetError as error:
        return _found(process, why_not=str(error))
    if runtime is None:
        return _found(process, why_not="not a Python process")
    try:
        return _judge(process, memory, runtime)
    finally:
        runtime.close()


def _judge(process: Process, memory: Memory, runtime: RuntimeFound) -> RuntimeDiscovery:
    try:
        runtime.refuse_unsupported()
        memory.read(runtime.exported("_PyRuntime"), 8)
    except TargetGone:
        raise
    except TargetError as error:
        return _found(process, runtime=runtime, why_not=str(error))
    setting = pymalloc_setting(process)
    note = f"pymalloc is disabled (PYTHONMALLOC={setting})" if without_pymalloc(setting) else ""
    return _found(process, runtime=runtime, note=note)


def _found(
    process: Process, *, runtime: RuntimeFound | None = None, why_not: str = "", note: str = ""
) -> RuntimeDiscovery:
    if runtime is None:
        return RuntimeDiscovery(start_ticks=process.start_ticks, why_not=why_not)
    return RuntimeDiscovery(
        start_ticks=process.start_ticks,
        runtime=runtime.name,
        version=".".join(map(str, runtime.version)),
        numbers=runtime.version,
        image=runtime.path,
        facts=(f"{runtime.path} ({note})" if note else runtime.path,),
        modes=() if runtime.free_threaded else ("passive", "stopped"),
        why_not=why_not,
    )


def _candidates(process: Process, maps: MappingTable) -> list[_Candidate]:
    """List files that may contain CPython, the likeliest first: a library's name shows it, a program has to be examined."""
    code = [row for row in maps.rows if row.permissions & EXECUTE and row.inode]
    libraries = []
    for row in code:
        match = _LIBRARY.search(row.file)
        if match is not None:
            libraries.append(_Candidate(row.path, (int(match[1]), int(match[2])), match[3]))
    if libraries:
        return libraries
    program = process.read_link("exe")
    for row in code:
        if row.path == program:
            match = _PROGRAM.search(row.file)
            if match is not None:
                return [_Candidate(program, (int(match[1]), int(match[2])), match[3])]
            return [_Candidate(program, (), "")] if _may_export(process, maps, row) else []
    return []


def _may_export(process: Process, maps: MappingTable, row: Mapping) -> bool:
    """Return whether a program of any name contains CPython; looked up once for each file."""
    key = row.device, row.inode
    if key not in _PROGRAMS_SEEN:
        with_image = open_image(process, Memory(process), maps, row.path)
        try:
            _PROGRAMS_SEEN[key] = with_image.exported("_PyRuntime") is not None
        finally:
            with_image.close()
    return _PROGRAMS_SEEN[key]


def _exact_version(image: Image, named: tuple[int, ...]) -> tuple[int, ...]:
    """Return the version from a constant in the file (from 3.11), else from its name."""
    symbol = image.file.exported("Py_Version")
    found = None if symbol is None else image.file.bytes_at(symbol.vaddr, 4)
    return named if found is None else version_from_hex(int.from_bytes(found, "little"))
