"""The stub inside a cooperating program: it reports each collection, and holds the program while its memory is read.

One file of plain Python, 3.9 to 3.15. It imports only the standard library, because it is loaded
into other people's programs. It knows a socket and the collector's callbacks; it does not know what
the sidecar does with an event.

While the program is held, this thread must keep the global interpreter lock (GIL). Otherwise other
threads would change the heap that is being read. The interpreter releases the GIL and runs signal
handlers only *between* instructions of Python code, and not between all of them. So everything from
sending an event to the end of the wait is one instruction: ``True in steps`` over calls of C
functions through `ctypes.pythonapi`, which does not release the GIL. The next instruction leaves
the callback. A signal that arrives in between is handled in the program, and the program gets the
exception that its handler raises; in a callback the collector would swallow that exception. This
is also why `_listen` is a generator: a signal that is pending when the callback begins is handled
at the callback's first instruction, and only in a resumed generator is that instruction inside
``try``. Exceptions caught in this way are raised in the program afterwards.

The wait is bounded by a timer (timerfd), which the sidecar re-arms again and again, and by the end
of file on the sidecar's socket. So re-arming wakes nothing here, a signal cannot prolong the wait,
and if the sidecar is stopped the program continues. An event that the sidecar has not answered by
then is the last one reported until it answers: until then the program is not held, and events are
only counted.

Packets to the sidecar, little-endian (`gcspy_drivers.cooperative`)::

    hello   8s magic, u16 protocol, u16 flags, u32 process, u64 first argument of the poll that waits;
            with two descriptors: the timer, the shared page (flag 1: the stub waits for one byte before
            its program begins; flag 2: the stub only reports, and never holds the program; flag 8: with a
            userfaultfd as the next descriptor; flag 16: with a line to what counts allocation sites as the
            last one, see `gcspy_counting.live.count_line`)
    event   u8 kind (0 start, 1 end), u8 generation, u8 (0; 1: it is recorded as well, 2: it was left out; both
            wait for the pages only), 1 byte 0, u32 thread, u64 number, u64 monotonic ns,
            i64 collected, i64 uncollectable; with flag 2, followed by the collector's statistics (`NUMBERS`)

Between sending an event and sleeping in that poll the interpreter still allocates. The sidecar
reads once the thread sleeps, and answers each event with one byte. The shared page holds twelve u64.
The stub writes the number of starts and the number of ends. The sidecar writes the period of the
starts to report, the period of the ends (0: none), the monotonic time in ns before which nothing is
reported, 1 to make the stub disconnect, 1 to make it record events instead of reporting them, and 1
if an end is to be recorded just when its start was. A ninth word, if not 0, is 1 + the youngest
generation whose collections are always reported. They are not recorded, unless a tenth word is 1: then such an
event is recorded or left out as any other, and reported as well, and the program waits only until the sidecar has
seen to the pages. An eleventh is the least time in ns from one recorded start to the next (from any recorded event
to the next, where ends do not follow starts), except up to the number in the twelfth: the sidecar sees
them later than they happen.

A stub that got a library (``compiled/collect.c``) shares another descriptor, with flag 4: a memory in
which the library *records* events, with a copy of what the sidecar would read. Nothing waits for the
sidecar then. An event that finds this memory full is reported as above, and waits, or is left out,
as the sidecar wants.

With the userfaultfd the sidecar sees which pages are written (`gcspy_drivers.remote.pages`). The
stub keeps no copy of it: when the sidecar ends, the kernel removes all protection.

A free-threaded Python cannot be held by keeping a lock. There the stub only reports events and these
statistics.

Source: CPython Modules/gcmodule.c (Python/gc.c), invoke_gc_callback; Python/ceval.c, eval_breaker; timerfd_create(2);
userfaultfd(2).
"""

from __future__ import annotations

import _ctypes
import ctypes
import functools
import gc
import itertools
import mmap
import operator
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is a large import for a program that does not use it
    from typing import Any

__all__ = ["NUMBERS", "PROTOCOL", "Stub", "connect", "let_read", "peer_of", "unmap"]

PROTOCOL = 2
RECORDS = True
"""It can record events."""
PAGES = True
"""It shares a userfaultfd."""
COUNTS = True
"""It passes on a line to what counts allocation sites. An injected stub of an older gcspy, which a program may still contain, is replaced."""
MAGIC = b"gcspystb"
HELLO = struct.Struct("<8sHHIQ")
EVENT = struct.Struct("<BB2xIQQqq")
DEADLINE_SECS = 2
"""Silence of the sidecar after which the program continues."""

NUMBERS = struct.Struct("<15q")
"""``gc.get_count()``, ``gc.get_threshold()``, and of ``gc.get_stats()`` collections, collected and uncollectable of each generation."""

_WAITS, _TELLS, _RECORDS, _PAGES, _COUNTS = 1, 2, 4, 8, 16
_RING_BYTES = 64 << 20
"""Memory is taken only for what is used of it: 8 MiB at most, unless written pages are recorded."""
_PR_SET_PTRACER = 0x59616D61
# Collections that are not reported, between two checks that the sidecar is connected.
_LOOK_EVERY = 64
# Most interruptions of one wait by signals: a bound in case the poll always fails, which should not happen.
_MANY = 1 << 22

# Made once: each such object is a reference cycle, and would be garbage for the monitored collector.
_create, _settime = ctypes.pythonapi["timerfd_create"], ctypes.pythonapi["timerfd_settime"]
_send, _recv, _poll = ctypes.pythonapi["send"], ctypes.pythonapi["recv"], ctypes.pythonapi["poll"]
_unmap = ctypes.pythonapi["munmap"]
_unmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_fcntl = ctypes.pythonapi["fcntl"]
_fcntl.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int)
_F_ADD_SEALS, _F_SEAL_SHRINK = 1033, 2
_prctl = ctypes.pythonapi["prctl"]
_prctl.argtypes = (ctypes.c_int,) + (ctypes.c_ulong,) * 4
_later = ctypes.pythonapi["PyThreadState_SetAsyncExc"]
_syscall = ctypes.pythonapi["syscall"]
_syscall.argtypes = (ctypes.c_long, ctypes.c_long)
_USERFAULTFD = {"x86_64": 323, "aarch64": 282}
_USER_MODE_ONLY = 1
_send.argtypes = _recv.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_poll.argtypes = (ctypes.c_void_p, ctypes.c_ulong, ctypes.c_int)
_settime.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_later.argtypes = (ctypes.c_ulong, ctypes.py_object)
_Function = type(_send)

_POLLFD = struct.Struct("<ihh")
_POLLFDS_AT, _TIMER_AT, _EVENT_AT, _CALL_AT, _ROOM_BYTES = 0, 16, 48, 256, 512
_CALL = struct.Struct("<QQQQQQiiII")
_HELD, _RECORDED, _LEFT_OUT = 0, 1, 2
"""Results of the library: see `compiled/collect.c`."""
_ASIDE_AT = 2
"""Place of the result in an event that is reported as well."""


class _Callback(functools.partial[object]):
    """The entry in ``gc.callbacks``. It has no Python code, so that no exception can be raised before `_listen` is in its ``try``.

    ``min(phase, info, key=generator.send)``: `min` calls its key with one argument and then the other.
    """

    line: _Line


class Stub:
    """The program's end of the connection; ``gcspy.listen`` and injected code keep a reference to it.

    Args:
        connection: A connected packet socket (SOCK_SEQPACKET). The stub takes over its descriptor.
        waits: Whether `wait` is called first: the program then begins when the sidecar is ready.
        library: Path of the library that records events; empty: there is none.
        counts: A descriptor that is passed on to the sidecar, and closed; -1: none.
    """

    def __init__(
        self,
        connection: socket.socket,
        *,
        waits: bool = False,
        library: str = "",
        counts: int = -1,
    ) -> None:
        self._line = line = _Line(connection, _WAITS if waits else 0, library, counts)
        listener = _listen(line)
        next(listener)
        callback = _Callback(min, key=listener.send)
        callback.line = line
        gc.callbacks.append(callback)

    def wait(self) -> bool:
        """Wait until the sidecar is ready or has disconnected; other threads run meanwhile.

        Returns:
            Whether the sidecar is ready.
        """
        return bool(self._line.first_answer())

    def close(self) -> None:
        """Remove the callback and disconnect from the sidecar; may be called twice, and in any thread."""
        if _take_out(self._line) is not None:
            self._line.hang_up()

    @property
    def connected(self) -> bool:
        """Whether the stub's callback is registered."""
        return any(_is_of(one, self._line) for one in gc.callbacks)


class _Recorder:
    """The library, and the memory in which it records events.

    It is unloaded with this object. All of its calls are made with the lock, so none is running then.

    Args:
        path: The library.

    Raises:
        OSError: It cannot be loaded, or there is no such memory.
        AttributeError: It is another version.
    """

    def __init__(self, path: str) -> None:
        self.memory = -1
        self._ring: Any = None
        # Not `ctypes.PyDLL`, which makes a class for each library, and so reference cycles.
        self._handle = _ctypes.dlopen(path, os.RTLD_NOW)
        try:
            record = _Function(_ctypes.dlsym(self._handle, "gcspy_collect_1"))
            report = _Function(_ctypes.dlsym(self._handle, "gcspy_collect_and_report"))
            self._forget = _Function(_ctypes.dlsym(self._handle, "gcspy_forget"))
            self.memory = os.memfd_create("gcspy", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.truncate(self.memory, _RING_BYTES)
            if _fcntl(self.memory, _F_ADD_SEALS, _F_SEAL_SHRINK) != 0:
                raise OSError("gcspy: the ring cannot be sealed")
            self._ring = mmap.mmap(self.memory, _RING_BYTES)
        except BaseException:
            self.close()
            raise
        self._calls = record, report

    def prepare(
        self, room: bytearray, room_at: int, counts_at: int, connection: int
    ) -> tuple[Callable[[], int], Callable[[], int]]:
        """Return the call that records the event in a buffer, and one that does so for an event that is reported as well.

        Args:
            room: The buffer.
            room_at: Its address.
            counts_at: Address of the two counts in the shared page.
            connection: The socket, whose end tells that the sidecar has gone.
        """
        ring_at = ctypes.addressof(ctypes.c_char.from_buffer(self._ring))
        file = os.fstat(self.memory)
        places = ring_at, _RING_BYTES, room_at + _EVENT_AT, counts_at
        files = file.st_dev, file.st_ino, self.memory, connection
        _CALL.pack_into(room, _CALL_AT, *places, *files, 0, _RECORDED)
        record, report = self._calls
        call = ctypes.c_void_p(room_at + _CALL_AT)
        return functools.partial(record, call), functools.partial(report, call)

    def close(self) -> None:
        """Unload the library."""
        if self._ring is not None:
            self._forget()
        if self.memory >= 0:
            os.close(self.memory)
        self.memory, self._ring = -1, None
        _ctypes.dlclose(self._handle)


def _recorder(path: str) -> _Recorder | None:
    """Load the library; None: there is none, or this system does not load it."""
    try:
        return _Recorder(path) if path else None
    except (OSError, AttributeError):
        return None


def _userfaultfd() -> int:
    """Make a userfaultfd of this process; -1: the system has none, or does not allow it."""
    number = _USERFAULTFD.get(os.uname().machine, 0)
    if not number:
        return -1
    return int(_syscall(number, os.O_CLOEXEC | os.O_NONBLOCK | _USER_MODE_ONLY))


class _Line:
    """The connection, and all objects that an event needs, made in advance.

    The descriptors are closed when the last reference to this object is dropped, and not before. If
    one were closed during a call and its number used again, the call would act on another file.
    """

    def __init__(
        self, connection: socket.socket, flags: int, library: str = "", counts: int = -1
    ) -> None:
        self._fds: tuple[int, ...] = ()
        self._recorder: _Recorder | None = None
        self._holds = getattr(sys, "_is_gil_enabled", lambda: True)()
        flags |= 0 if self._holds else _TELLS
        timer = _create(time.CLOCK_MONOTONIC, os.O_CLOEXEC)
        if timer < 0:
            raise OSError("gcspy: the system has no timerfd")
        self._fds = (timer,)
        self._room = room = bytearray(_ROOM_BYTES)
        self._pinned = ctypes.c_char.from_buffer(room)
        at = ctypes.addressof(self._pinned)
        memory = os.memfd_create("gcspy", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        pages = _userfaultfd() if self._holds else -1
        try:
            os.truncate(memory, mmap.PAGESIZE)
            # Neither end can shrink it while the other uses it; the sidecar accepts no page without this seal.
            if _fcntl(memory, _F_ADD_SEALS, _F_SEAL_SHRINK) != 0:
                raise OSError("gcspy: the shared page cannot be sealed")
            page = mmap.mmap(memory, mmap.PAGESIZE)
            self._words = memoryview(page).cast("Q")
            self._record: Callable[[], int] | None = None
            self._record_too: Callable[[], int] | None = None
            shared = [timer, memory]
            self._recorder = _recorder(library) if self._holds else None
            if self._recorder is not None:
                counts_at = ctypes.addressof(ctypes.c_char.from_buffer(page))
                calls = self._recorder.prepare(room, at, counts_at, connection.fileno())
                self._record, self._record_too = calls
                flags |= _RECORDS
                shared.append(self._recorder.memory)
            if pages >= 0:
                flags |= _PAGES
                shared.append(pages)
            if counts >= 0:
                flags |= _COUNTS
                shared.append(counts)
            hello = HELLO.pack(MAGIC, PROTOCOL, flags, os.getpid(), at + _POLLFDS_AT)
            socket.send_fds(connection, [hello], shared)
        finally:
            os.close(memory)
            for fd in (pages, counts):
                if fd >= 0:
                    os.close(fd)
        connection.setblocking(True)
        fd = connection.detach()
        self._fds = (timer, fd)
        _POLLFD.pack_into(room, _POLLFDS_AT, fd, 1, 0)  # POLLIN; poll reports an end of file anyway
        _POLLFD.pack_into(room, _POLLFDS_AT + _POLLFD.size, timer, 1, 0)
        struct.pack_into("<4q", room, _TIMER_AT, 0, 0, DEADLINE_SECS, 0)
        at_once = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
        self._begin = (
            functools.partial(_settime, timer, 0, at + _TIMER_AT, None),
            functools.partial(
                _send,
                fd,
                at + _EVENT_AT,
                EVENT.size + (0 if self._holds else NUMBERS.size),
                at_once,
            ),
        )
        self._wait = functools.partial(_poll, at + _POLLFDS_AT, 2, -1)
        self._answer = functools.partial(_recv, fd, at + _EVENT_AT, EVENT.size, at_once)
        # The wait ends when one or two descriptors are ready; -1: a signal interrupted it, so wait again.
        self._over = frozenset((1, 2)).__contains__
        self._told = False
        # Whether the start of this collection was reported or recorded.
        self._reported = False
        # Nothing is recorded before this time.
        self._rests_until = 0
        # The library's result for the last event that it was asked to record.
        self._result = memoryview(room)[_CALL_AT + _CALL.size - 4 :][:4].cast("I")
        self._result[0] = _RECORDED
        self._pid = os.getpid()

    def __del__(self) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds = ()
        if self._recorder is not None:
            self._record = self._record_too = None
            self._recorder.close()

    def steps(self, phase: str, info: dict[str, int]) -> Iterator[bool] | tuple[()] | None:
        """Return the calls to make at an event, as an iterator that has not run yet; None: the sidecar has disconnected."""
        if os.getpid() != self._pid:
            return None  # a child process, which has copies of everything
        if not self._connected():
            return None
        kind = 0 if phase == "start" else 1
        words = self._words
        if words[5]:
            return None
        number = words[kind] = words[kind] + 1
        if self._told:
            return ()
        get = info.get
        always = 0 < words[8] <= get("generation", 0) + 1
        period = words[2 + kind]
        wanted = bool(period and number % period == 0)
        records = bool(words[6]) and self._record is not None
        aside = always and records and bool(words[9])
        if always and not aside:
            wanted, records = True, False
        ends = records and kind == 1 and bool(words[7])
        if ends:
            wanted = self._reported and self._result[0] != _LEFT_OUT
        looks = records or not (wanted and self._holds)
        if looks and number % _LOOK_EVERY == 0 and self._answer() == 0:
            return None
        self._reported = False
        if not (wanted or aside):
            return ()
        now = time.monotonic_ns()
        early = self._is_early(number, now, rests=wanted and records and not ends)
        if early and not (ends or (always and not aside)):
            if not aside:
                return ()
            wanted = False
        numbers = (
            get("generation", 0),
            threading.get_native_id(),
            number,
            now,
            get("collected", 0),
            get("uncollectable", 0),
        )
        EVENT.pack_into(self._room, _EVENT_AT, kind, *numbers)
        if not self._holds:
            return self._telling()
        begin: tuple[Callable[[], int], ...] = self._begin
        self._reported = wanted
        self._result[0] = _RECORDED
        if aside and wanted and self._record_too is not None:
            begin = (self._record_too, *begin)
            self._told = True
        elif records and self._record is not None and not aside:
            begin = (self._record, *begin)  # which ends the calls when the event is recorded
        else:
            self._room[_EVENT_AT + _ASIDE_AT] = _LEFT_OUT if aside else 0
            self._told = True
        waits = itertools.repeat(self._wait, _MANY)
        calls: Iterator[Any] = itertools.chain(begin, waits)
        return map(self._over, map(functools.partial.__call__, calls))

    def _is_early(self, number: int, now: int, *, rests: bool) -> bool:
        """Return whether it is too early for an event; `rests`: whether the next one is, for a while, if this is not."""
        words = self._words
        early = now < words[4] or (rests and now < self._rests_until and number > words[11])
        if rests and not early:
            self._rests_until = now + words[10]
        return early

    def _connected(self) -> bool:
        """Read the answer to the last event, if it was reported; return whether the sidecar is there.

        It is read only at the next event: nothing may run between the hold and the program.
        """
        if self._told or self._result[0] == _HELD:
            answered = self._answer()
            if answered == 0:
                return False
            # No answer: the sidecar was silent for too long. Do not wait for it again before it has answered.
            self._told = answered != 1
            if self._result[0] == _HELD:
                self._result[0] = _RECORDED
        return True

    def _telling(self) -> Iterator[bool]:
        """Return the calls that report an event with the collector's statistics, and do not wait."""
        stats = gc.get_stats()
        totals = [
            one[name] for name in ("collections", "collected", "uncollectable") for one in stats
        ]
        NUMBERS.pack_into(
            self._room, _EVENT_AT + EVENT.size, *gc.get_count(), *gc.get_threshold(), *totals
        )
        return map(self._over, map(functools.partial.__call__, self._begin[1:]))

    def raising(self, kinds: list[type[BaseException]]) -> Iterator[bool]:
        """Return the calls that raise exceptions of these types in this thread of the program; an iterator, as in `steps`."""
        return map(operator.not_, map(_later, itertools.repeat(threading.get_ident()), kinds))

    def first_answer(self) -> bytes:
        connection = socket.socket(fileno=os.dup(self._fds[-1]))
        try:
            return connection.recv(1)
        except OSError:
            return b""
        finally:
            connection.close()

    def hang_up(self) -> None:
        """Disconnect from the sidecar."""
        if os.getpid() != self._pid:
            return  # in a child: the connection is the parent's
        let_read(0)
        connection = socket.socket(fileno=os.dup(self._fds[-1]))
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the sidecar has disconnected already
        finally:
            connection.close()


def _listen(line: _Line) -> Generator[int, Any, None]:
    """Receive phase and info of each event in turn: a generator that ends only when it is deleted.

    Args:
        line: The connection.
    """
    phase: Any = "stop"
    raised: list[type[BaseException]] = []
    steps: Any = ()
    while True:
        try:  # around the loop, and around each part: an exception of a handler must not end the generator
            while True:
                try:
                    # The hold. No other instruction runs between it and the return.
                    True in steps  # noqa: B015  # evaluated for the effects of its calls
                    phase = yield 0
                except GeneratorExit:
                    return
                except BaseException as error:  # noqa: BLE001  # a signal was pending: its exception came instead of the phase
                    phase = "stop" if phase == "start" else "start"
                    raised = [type(error)]
                try:
                    info = yield 0
                    steps = line.steps(phase, info)
                    if steps is None:
                        steps = ()
                        _leave(line, phase, info)
                except GeneratorExit:
                    return
                except BaseException as error:  # noqa: BLE001  # raised by a signal handler; or a defect of this file, which removes the stub
                    steps = ()
                    if _is_ours(error):
                        _take_out(line)
                    else:
                        raised.append(type(error))
                if raised:
                    steps = itertools.chain(line.raising(raised), steps)
                    raised = []
        except GeneratorExit:
            return
        except BaseException as error:  # noqa: BLE001  # a signal between the two parts
            raised = [type(error)]


def _leave(line: _Line, phase: Any, info: Any) -> None:
    """Remove the callback while callbacks run. The collector would then skip the next one, so this function calls it."""
    place = _take_out(line)
    line.hang_up()
    if place is None or place >= len(gc.callbacks):
        return
    following = gc.callbacks[place]
    try:
        following(phase, info)
    except BaseException:  # noqa: BLE001  # reported as the collector would report it
        shown: Callable[..., Any] = sys.UnraisableHookArgs
        sys.unraisablehook(shown((*sys.exc_info(), None, following)))


def _is_of(callback: object, line: _Line) -> bool:
    return type(callback) is _Callback and callback.line is line


def _take_out(line: _Line) -> int | None:
    """Remove the stub's callback; return its index, or None if there was none."""
    for place, one in enumerate(gc.callbacks):
        if _is_of(one, line):
            del gc.callbacks[place]
            return place
    return None


def _is_ours(error: BaseException) -> bool:
    """Return whether code of this file raised an exception, and not a signal handler."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return (
        isinstance(error, Exception) and trace is not None and trace.tb_frame.f_globals is globals()
    )


def let_read(pid: int) -> None:
    """Permit a process and its descendants to read this one; 0: withdraw the permission.

    If kernel.yama.ptrace_scope is 1, only the ancestors of a process may read it without this
    permission, and a sidecar is no ancestor. Kernels without Yama ignore the call and need no permission.
    """
    _prctl(_PR_SET_PTRACER, pid, 0, 0, 0)


def peer_of(connection: socket.socket) -> int:
    """Return the id of the process that opened the other end; 0 if that process is in another container."""
    return int(
        struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    )


def unmap(address: int, size_bytes: int) -> None:
    """Free memory that the injection of this file had mapped."""
    _unmap(address, size_bytes)


def connect(path: str, library: str = "", counts: int = -1) -> Stub:
    """Connect to the sidecar that listens at a path, and start the stub.

    Args:
        path: The socket.
        library: Path of the library that records events; empty: there is none.
        counts: See `Stub`.

    Raises:
        OSError: No sidecar listens there.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(path)
        return Stub(connection, library=library, counts=counts)
    finally:
        connection.close()
