"""Loads a library into a running program that was not prepared for it, at a point where its thread is in no allocator; else refuses.

    a thread waits for the outside world ─▶ stopped ─▶ code written where nothing is ─▶ next instruction set ─▶ released
                                                       saves all, dlopen, restores all, waits again ◀─ the thread itself

`dlopen` allocates, and takes the loader's lock, so a thread that is inside the allocator or the loader would wait for itself for ever.
One that waits in the kernel for a socket, a pipe, a clock or a child is in neither, unless it is in the handler of a signal that
interrupted it there: so its stack is searched for a frame of a signal. Other threads run on all the time.

The thread needs us no more from the moment when it is released, and before that nothing of it is changed: whoever kills us at any moment,
the program goes on. The code stays where it was written, behind the end of the code of a library, in a page of the process's own.

Knows threads, registers and the C library's `dlopen`; does not know what is loaded. Source: ptrace(2), PTRACE_SETREGS; the kernel's
arch/x86/kernel/signal.c, restart of system calls; Intel SDM, XSAVE.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import signal
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gcspy_protocol.errors import NotPermitted, TargetError, Unsupported

from gcspy_drivers.remote.address import PAGE_BYTES
from gcspy_drivers.remote.elf.image import Image, open_image
from gcspy_drivers.remote.mapping_table import EXECUTE, Mapping, MappingTable, read_mapping_table
from gcspy_drivers.remote.memory import Memory
from gcspy_drivers.remote.memory_writer import write
from gcspy_drivers.remote.process import Process, permission_remedy

__all__ = ["load_library"]

_TRY_SECS: Final = 3.0
"""How long a thread at a safe point is looked for."""

_REST_SECS: Final = 0.02
_STOP_SECS: Final = 0.5
_LOOK_SECS: Final = 0.0002
_LEAST_STACK_BYTES: Final = 192 << 10
_MOST_SEARCHED_BYTES: Final = 1 << 20
_BELOW_BYTES: Final = 4096
"""Between the thread's stack and ours: the red zone, and the path."""

_XSAVE_BYTES: Final = 16 << 10
_RED_ZONE_BYTES: Final = 128

# Numbers of system calls, x86-64. Of these a thread waits for the outside world, whatever the descriptor.
_WAITS: Final = {7, 23, 34, 35, 61, 128, 130, 230, 232, 247, 270, 271, 281, 441}
# poll, select, pause, nanosleep, wait4, rt_sigtimedwait, rt_sigsuspend, clock_nanosleep, epoll_wait, waitid, pselect6, ppoll, epoll_pwait, epoll_pwait2
_WAITS_FOR_FILE: Final = {0, 43, 45, 47, 288}
# read, accept, recvfrom, recvmsg, accept4
_EPOLL: Final = {232, 281, 441}
_RESTART: Final = 219
_OUTSIDE: Final = re.compile(r"^(socket:|pipe:|anon_inode:|/dev/(pts/|tty|null))")

_SYSCALL: Final = b"\x0f\x05"
_SIGNAL_RETURN: Final = bytes.fromhex("48c7c00f0000000f05")
"""``mov $15, %rax; syscall``: where the frame of a signal's handler returns to."""

_SEIZE, _INTERRUPT, _DETACH, _GETREGS, _SETREGS, _POKETEXT = 0x4206, 0x4207, 17, 12, 13, 4
_EVENT_STOP: Final = 128
_WALL: Final = 0x40000000
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_PTRACE: Final = _LIBC.ptrace
_PTRACE.restype = ctypes.c_long
_PTRACE.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_C_LIBRARY: Final = re.compile(r"/libc([.-][^/]*)?\.so[^/]*$")
_DL_LIBRARY: Final = re.compile(r"/libdl([.-][^/]*)?\.so[^/]*$")
_NOW: Final = 2
_INSIDE: Final = 0x80000000
"""``__RTLD_DLOPEN``, which `__libc_dlopen_mode` needs."""


_REGISTER_NAMES: Final = (
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi", "orig_rax", "rip", "cs", "eflags",
    "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs",
)  # fmt: skip


class _Registers(ctypes.Structure):
    """``struct user_regs_struct``."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in _REGISTER_NAMES)


class _NotHere(Exception):
    """A thread is not at a safe point."""


def load_library(process: Process, path: str, *, secs: float = 10.0) -> None:
    """Load a library into a process.

    Args:
        process: The process.
        path: The library, as the process sees it.
        secs: How long it may take, once a thread is on its way.

    Raises:
        Unsupported: It cannot be done in this process: another processor, no `dlopen`, a sandbox.
        NotPermitted: The system does not let us.
        TargetError: No thread was at a safe point for some seconds, or the library did not appear.
    """
    if os.uname().machine != "x86_64":
        raise _refusal(process, f"processor {os.uname().machine}", "x86-64")
    memory, maps = Memory(process), read_mapping_table(process)
    opener, flags, errno_at = _functions(process, memory, maps)
    give_up = time.monotonic() + _TRY_SECS
    why = "it has no thread"
    while True:
        for tid in process.thread_ids():
            try:
                _send(process, memory, tid, (opener, flags, errno_at), path)
            except _NotHere as error:
                why = f"thread {tid}: {error}"
                continue
            _await(process, path, secs)
            return
        process.check()
        if time.monotonic() > give_up:
            raise TargetError(
                f"process {process.pid}: no thread was at a point where it is certainly in no allocator, for {_TRY_SECS:g} s ({why}): "
                "loading a library there could make it wait for itself for ever. Try again, or start the program with the library preloaded"
            )
        time.sleep(_REST_SECS)


def _refusal(process: Process, found: str, known: str) -> Unsupported:
    return Unsupported(
        f"no library can be loaded into process {process.pid} ({process.name}) while it runs",
        found=found,
        known=f"{known}; or start the program with the library preloaded",
    )


def _functions(process: Process, memory: Memory, maps: MappingTable) -> tuple[int, int, int]:
    """Return the addresses of `dlopen` and `__errno_location`, and the flags for the former."""
    found: dict[str, int] = {}
    for path in dict.fromkeys(maps.path):
        if _C_LIBRARY.search(path) or _DL_LIBRARY.search(path):
            image = open_image(process, memory, maps, path)
            try:
                for name in ("dlopen", "__libc_dlopen_mode", "__errno_location"):
                    if (place := image.exported(name)) is not None:
                        found.setdefault(name, int(place))
            finally:
                image.close()
    if "__errno_location" not in found or len(found) < 2:
        raise _refusal(process, "no dlopen of glibc", "programs that are linked to glibc")
    if "dlopen" in found:
        return found["dlopen"], _NOW, found["__errno_location"]
    return found["__libc_dlopen_mode"], _NOW | _INSIDE, found["__errno_location"]


def _send(
    process: Process, memory: Memory, tid: int, calls: tuple[int, int, int], path: str
) -> None:
    """Send one thread to load the library.

    Raises:
        _NotHere: It is not at a safe point.
    """
    _check_waits(process, tid)  # without touching it
    failed: list[BaseException] = []

    def send() -> None:
        try:
            with _stopped(process, tid):
                _direct(process, memory, tid, calls, path)
        except BaseException as error:  # noqa: BLE001  # raised again by the thread that waits for this one
            failed.append(error)

    # A thread of its own: the kernel releases what it has attached to when it ends, in whatever way.
    sender = threading.Thread(target=send, name="gcspy load", daemon=True)
    sender.start()
    sender.join()
    if failed:
        raise failed[0]


def _direct(
    process: Process, memory: Memory, tid: int, calls: tuple[int, int, int], path: str
) -> None:
    before = _Registers()
    _ask(process, _GETREGS, tid, 0, ctypes.addressof(before))
    maps = read_mapping_table(process)
    resumed_at, result = _way_back(process, memory, before)
    _check_stack(memory, maps, before.rsp)
    place = before.rsp - _BELOW_BYTES
    code = _code(calls, place, result, resumed_at)
    room = _room_for(process, memory, maps, len(code))
    write(process, place, os.fsencode(path) + b"\0")
    for offset in range(0, len(code), 8):
        (word,) = struct.unpack_from("<Q", code, offset)
        _ask(process, _POKETEXT, tid, room + offset, word)
    if memory.try_read(room, len(code)) != code:
        raise _NotHere("its code could not be written")
    after = _Registers.from_buffer_copy(before)
    after.rip, after.orig_rax = room, (1 << 64) - 1
    _ask(process, _SETREGS, tid, 0, ctypes.addressof(after))


def _check_waits(process: Process, tid: int) -> None:
    """Check that a thread waits for the outside world, in no sandbox."""
    try:
        words = process.read_file(f"task/{tid}/syscall").decode("ascii", "replace").split()
        status = process.read_file(f"task/{tid}/status").decode("ascii", "replace")
    except TargetError as error:
        process.check()
        raise _NotHere("it has ended") from error
    if len(words) < 8:
        raise _NotHere("it works")
    _check_call(process, int(words[0]), int(words[1], 16))
    if re.search(r"^Seccomp:\s*[12]", status, re.MULTILINE):
        raise _refusal(process, "a sandbox (seccomp)", "programs that may open files")


def _check_call(process: Process, number: int, first: int) -> None:
    if number in _WAITS:
        return
    if number not in _WAITS_FOR_FILE:
        raise _NotHere(f"it is in system call {number}")
    link = process.read_link(f"fd/{first & 0xFFFFFFFF}") or ""
    if not _OUTSIDE.search(link):
        raise _NotHere(f"it reads {link or 'a file'}")


def _way_back(process: Process, memory: Memory, registers: _Registers) -> tuple[int, int]:
    """Return where the thread goes on afterwards, and with which value in rax: its system call begins again."""
    result = ctypes.c_int64(registers.rax).value
    number = ctypes.c_int64(registers.orig_rax).value
    if number < 0 or memory.try_read(registers.rip - 2, 2) != _SYSCALL:
        raise _NotHere("it works")
    _check_call(process, number, registers.rdi)
    again = {-512: number, -513: number, -514: number, -516: _RESTART}
    if number in _EPOLL:
        again[-errno.EINTR] = number  # it would learn of a signal that never came
    if result in again:
        return registers.rip - 2, again[result]
    return registers.rip, registers.rax


def _check_stack(memory: Memory, maps: MappingTable, top: int) -> None:
    """Check that a stack has room, and no frame of a signal's handler."""
    row = _row_of(maps, top)
    if row is None or (row.path != "[stack]" and top - row.start < _LEAST_STACK_BYTES):
        raise _NotHere("its stack has too little room")
    if top - _BELOW_BYTES < row.start:
        raise _NotHere("its stack has too little room")
    size = min(row.end - top, _MOST_SEARCHED_BYTES) // 8 * 8
    raw = memory.try_read(top, size)
    if raw is None:
        raise _NotHere("its stack cannot be read")
    returns = {struct.pack("<Q", place) for place in _signal_returns(memory, maps)}
    if not returns:
        raise _NotHere("frames of signals cannot be recognised")
    if any(raw[at : at + 8] in returns for at in range(0, size, 8)):
        raise _NotHere("it may be in the handler of a signal")


def _signal_returns(memory: Memory, maps: MappingTable) -> Iterator[int]:
    for row in maps.rows:
        if row.permissions & EXECUTE and _C_LIBRARY.search(row.path):
            text = memory.try_read(row.start, row.end - row.start) or b""
            for found in re.finditer(re.escape(_SIGNAL_RETURN), text):
                yield row.start + found.start()


def _row_of(maps: MappingTable, place: int) -> Mapping | None:
    return next((row for row in maps.rows if row.start <= place < row.end), None)


def _room_for(process: Process, memory: Memory, maps: MappingTable, size: int) -> int:
    """Return an address behind the end of the code of a library, in its last page, where zeros are."""
    for path in dict.fromkeys(row.path for row in maps.rows if row.permissions & EXECUTE):
        if not path.startswith("/"):
            continue
        try:
            image = open_image(process, memory, maps, path)
        except TargetError:
            process.check()
            continue
        try:
            found = _room_in(image, memory, maps, path, size)
        finally:
            image.close()
        if found:
            return found
    raise _NotHere("there is no room for code behind that of any library")


def _room_in(image: Image, memory: Memory, maps: MappingTable, path: str, size: int) -> int:
    for load in image.file.loads:
        end = image.bias + load.vaddr + load.memory_bytes
        edge = -(-end // PAGE_BYTES) * PAGE_BYTES
        row = _row_of(maps, edge - 1)
        if not load.executable or row is None or row.end != edge or row.path != path:
            continue
        tail = memory.try_read(end, edge - end) if edge > end else b""
        used = len((tail or b"\1").rstrip(b"\0"))  # by an earlier library
        place = -(-(end + used + 1) // 16) * 16
        if tail is not None and place + size <= edge:
            return place
    return 0


def _code(calls: tuple[int, int, int], place: int, result: int, resumed_at: int) -> bytes:
    """Machine code that saves everything, calls `dlopen`, restores everything, and goes on."""
    opener, flags, errno_at = calls
    every = "b8ffffffff baffffffff"  # mov $-1, %eax; mov $-1, %edx
    text = (
        f"488da424 {struct.pack('<i', -_BELOW_BYTES).hex()}"  # lea -BELOW(%rsp), %rsp
        "9c 50 51 52 53 55 56 57 4150 4151 4152 4153 4154 4155 4156 4157 fc"  # pushfq; push …; cld
        f"4889e5 4881ec {struct.pack('<i', _XSAVE_BYTES).hex()} 4883e4c0 4889e3"  # mov %rsp, %rbp; sub; and $-64, %rsp; mov %rsp, %rbx
        "31c0 488dbb00020000 b908000000 f348ab"  # zeros in the header of the area
        f"{every} 480fae23"  # xsave64 (%rbx)
        f"48b8{_word(errno_at)} ffd0 4989c4 448b28"  # %r12 = __errno_location(); %r13d = errno
        f"48bf{_word(place)} be{struct.pack('<I', flags).hex()} 48b8{_word(opener)} ffd0"  # dlopen(path, flags)
        "45892c24"  # errno = %r13d
        f"{every} 480fae2b 4889ec"  # xrstor64 (%rbx); mov %rbp, %rsp
        "415f 415e 415d 415c 415b 415a 4159 4158 5f 5e 5d 5b 5a 59 58 9d"  # pop …; popfq
        f"488da424 {struct.pack('<i', _BELOW_BYTES).hex()}"
        f"48b8{_word(result)} ff2500000000 {_word(resumed_at)}"  # mov, %rax; jmp
    )
    code = bytes.fromhex(text.replace(" ", ""))
    return code + b"\x90" * (-len(code) % 8)


def _word(number: int) -> str:
    return struct.pack("<Q", number & (1 << 64) - 1).hex()


def _await(process: Process, path: str, secs: float) -> None:
    until = time.monotonic() + secs
    while not any(one == path for one in read_mapping_table(process).path):
        process.check()
        if time.monotonic() > until:
            raise TargetError(
                f"process {process.pid} did not load {path} within {secs:g} s: it may be unable to open files (a sandbox, another file system), "
                "or its thread waits for a lock of the loader"
            )
        time.sleep(_REST_SECS)


@contextmanager
def _stopped(process: Process, tid: int) -> Iterator[None]:
    """Stop one thread for the block.

    Raises:
        _NotHere: It does not stop, or has ended.
    """
    for request in (_SEIZE, _INTERRUPT):
        _ask(process, request, tid, 0, 0)
    until = time.monotonic() + _STOP_SECS
    while True:
        try:
            found, status = os.waitpid(tid, os.WNOHANG | _WALL)
        except ChildProcessError as error:
            raise _NotHere("it has ended") from error
        if found:
            break
        if time.monotonic() > until:
            raise _NotHere("it does not stop")
        time.sleep(_LOOK_SECS)
    if not os.WIFSTOPPED(status):
        raise _NotHere("it has ended")
    number, by_event = os.WSTOPSIG(status), status >> 16 == _EVENT_STOP
    try:
        if number != signal.SIGTRAP or not by_event:
            raise _NotHere("it is stopped" if by_event else "a signal came")
        yield
    finally:
        _PTRACE(_DETACH, tid, None, ctypes.c_void_p(0 if by_event else number))


def _ask(process: Process, request: int, tid: int, address: int, data: int) -> None:
    ctypes.set_errno(0)
    if _PTRACE(request, tid, ctypes.c_void_p(address), ctypes.c_void_p(data)) == 0:
        return
    number = ctypes.get_errno()
    process.check()
    if number in (errno.EPERM, errno.EACCES):
        raise NotPermitted(
            f"no permission to stop process {process.pid}, or a debugger is attached to it",
            remedy=permission_remedy(process.pid),
        )
    raise _NotHere(f"{os.strerror(number)} (errno {number})")
