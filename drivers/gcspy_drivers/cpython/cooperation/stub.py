"""The stub: what runs inside a program that cooperates; it reports each collection and stands still while it is read.

One file of plain Python, 3.9 to 3.15, that imports nothing but the standard library: it is loaded into other people's
programs. It knows a socket and the collector's callbacks; what the news means, and who looks, it does not know.

While it stands still it must keep the interpreter's lock (GIL), or other threads would change the heap that is read. An
interpreter gives its lock away, and runs handlers of signals, only *between* instructions of Python code, and not between
all. So everything from the news to the end of the waiting is one instruction: ``True in steps`` over calls of the C library
through `ctypes.pythonapi`, which does not release the lock; and the next one leaves. A signal that came meanwhile is handled in the
program, where what its handler raises belongs. In a callback it would be swallowed by the collector. Hence also the generator:
a signal that is waiting when the callback begins is handled at its first instruction, which is inside ``try`` only when a
generator goes on. What was caught so is raised in the program afterwards.

What bounds the waiting is a timer (timerfd) that the sidecar winds up again and again, and the end of the sidecar's
socket. So a sign of life wakes nobody here, a signal cannot prolong anything, and a sidecar that is stopped lets go by itself. An event
that it has not answered by then is the last that is told until it does: until then the program is not held again, and events are counted.

Told to the sidecar, little-endian, each in a packet (`gcspy_drivers.cooperative`)::

    hello   8s magic, u16 protocol, u16 flags, u32 process, u64 first argument of the poll in which it waits;
            with two descriptors: the timer, the shared page (flag 1: it waits for one byte before its program begins;
            flag 2: it tells only, and the program never waits)
    event   u8 kind (0 start, 1 end), u8 generation, 2 bytes 0, u32 thread, u64 number, u64 monotonic ns,
            i64 collected, i64 uncollectable; with flag 2, what the collector then says of itself (`NUMBERS`)

From the event on until it sleeps in that poll its interpreter still allocates; the sidecar reads when it sleeps, and answers
each event with one byte. The shared page, u64 each: number of starts, of ends (the stub writes);
one in so many starts, ends is to be told, 0 none; not before this monotonic time in ns; 1 to leave (the sidecar writes).

A Python without a lock cannot be made to stand still by keeping it. There the stub tells only: events, and those numbers.

Source: CPython Modules/gcmodule.c (Python/gc.c), invoke_gc_callback; Python/ceval.c, eval_breaker; timerfd_create(2).
"""

from __future__ import annotations

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
if TYPE_CHECKING:  # typing would be a large import for a program that has none
    from typing import Any

__all__ = ["NUMBERS", "PROTOCOL", "Stub", "connect", "let_read", "peer_of", "unmap"]

PROTOCOL = 2
SEALS = True
"""Its page is sealed; an injected stub of an older gcspy, which a program may have yet, is replaced."""
MAGIC = b"gcspystb"
HELLO = struct.Struct("<8sHHIQ")
EVENT = struct.Struct("<BB2xIQQqq")
DEADLINE_SECS = 2
"""The longest silence of the sidecar after which the program goes on."""

NUMBERS = struct.Struct("<15q")
"""``gc.get_count()``, ``gc.get_threshold()``, and of ``gc.get_stats()`` collections, collected and uncollectable of each generation."""

_WAITS, _TELLS = 1, 2
_PR_SET_PTRACER = 0x59616D61
_LOOK_EVERY = (
    64  # collections that nobody wants, after which it is looked whether the sidecar is there
)

_MANY = (
    1 << 22
)  # interruptions of one wait by signals; it is a bound for what cannot happen (a poll that always fails)
# Made once: each such object is a reference cycle, and would be garbage for the collector that is watched.
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
_send.argtypes = _recv.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_poll.argtypes = (ctypes.c_void_p, ctypes.c_ulong, ctypes.c_int)
_settime.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_later.argtypes = (ctypes.c_ulong, ctypes.py_object)

_POLLFD = struct.Struct("<ihh")
_POLLFDS_AT, _TIMER_AT, _EVENT_AT, _ROOM_BYTES = 0, 16, 48, 96 + NUMBERS.size


class _Callback(functools.partial[object]):
    """What stands in ``gc.callbacks``; no Python code of its own, so that nothing can be raised before ours is in its ``try``.

    ``min(phase, info, key=generator.send)``: `min` calls its key with one argument and then the other.
    """

    line: _Line


class Stub:
    """A program's end of the connection; ``gcspy.listen`` and injected code hold it.

    Args:
        connection: A connected socket of packets (SOCK_SEQPACKET); its descriptor is taken over.
        waits: Whether `wait` is called before anything else: then the sidecar says when it may go on.
    """

    def __init__(self, connection: socket.socket, *, waits: bool = False) -> None:
        self._line = line = _Line(connection, _WAITS if waits else 0)
        listener = _listen(line)
        next(listener)
        callback = _Callback(min, key=listener.send)
        callback.line = line
        gc.callbacks.append(callback)

    def wait(self) -> bool:
        """Wait until the sidecar is ready, or has gone; other threads run meanwhile.

        Returns:
            Whether it is ready.
        """
        return bool(self._line.first_answer())

    def close(self) -> None:
        """Take it out of the callbacks, and tell the sidecar; may be called twice, and in any thread."""
        if _take_out(self._line) is not None:
            self._line.hang_up()

    @property
    def connected(self) -> bool:
        """Whether it still stands in the callbacks."""
        return any(_is_of(one, self._line) for one in gc.callbacks)


class _Line:
    """The connection and all that is needed for an event, made beforehand.

    Its descriptors live as long as it does: one of them that was closed while a call is on its way, and
    given out again, would be somebody else's file. So nobody closes them, and the last reference does.
    """

    def __init__(self, connection: socket.socket, flags: int) -> None:
        self._fds: tuple[int, ...] = ()
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
        try:
            os.truncate(memory, mmap.PAGESIZE)
            # Neither end can cut it short under the other's feet; the sidecar takes no other.
            if _fcntl(memory, _F_ADD_SEALS, _F_SEAL_SHRINK) != 0:
                raise OSError("gcspy: the shared page cannot be sealed")
            self._words = memoryview(mmap.mmap(memory, mmap.PAGESIZE)).cast("Q")
            hello = HELLO.pack(MAGIC, PROTOCOL, flags, os.getpid(), at + _POLLFDS_AT)
            socket.send_fds(connection, [hello], [timer, memory])
        finally:
            os.close(memory)
        connection.setblocking(True)
        fd = connection.detach()
        self._fds = (timer, fd)
        _POLLFD.pack_into(room, _POLLFDS_AT, fd, 1, 0)  # POLLIN; an end of file is told anyway
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
        self._over = frozenset(
            (1, 2)
        ).__contains__  # so many descriptors are ready; -1: a signal came, go on waiting
        self._told = False
        self._pid = os.getpid()

    def __del__(self) -> None:
        for fd in self._fds:
            os.close(fd)

    def steps(self, phase: str, info: dict[str, int]) -> Iterator[bool] | tuple[()] | None:
        """Return the calls to make at an event, as an iterator that is yet to run; None: there is nobody to talk to any more."""
        if os.getpid() != self._pid:
            return None  # a child, which has copies of everything
        if self._told:
            # The answer to the last event is looked at now: nothing may run between the hold and the program.
            answered = self._answer()
            if answered == 0:
                return None
            # Without one the sidecar was silent for too long: it is not waited for again before it has answered.
            self._told = answered != 1
        kind = 0 if phase == "start" else 1
        words = self._words
        if words[5]:
            return None
        number = words[kind] = words[kind] + 1
        if self._told:
            return ()
        period = words[2 + kind]
        wanted = period and number % period == 0
        if not (wanted and self._holds) and number % _LOOK_EVERY == 0 and self._answer() == 0:
            return None
        if not wanted:
            return ()
        now = time.monotonic_ns()
        if now < words[4]:
            return ()
        get = info.get
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
            stats = gc.get_stats()
            totals = [
                one[name] for name in ("collections", "collected", "uncollectable") for one in stats
            ]
            NUMBERS.pack_into(
                self._room, _EVENT_AT + EVENT.size, *gc.get_count(), *gc.get_threshold(), *totals
            )
            return map(self._over, map(functools.partial.__call__, self._begin[1:]))
        self._told = True
        calls = itertools.chain(self._begin, itertools.repeat(self._wait, _MANY))
        return map(self._over, map(functools.partial.__call__, calls))

    def raising(self, kinds: list[type[BaseException]]) -> Iterator[bool]:
        """Return the calls that have exceptions of these kinds raised in this thread's program; as `steps`."""
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
        """Tell the sidecar that it is over."""
        if os.getpid() != self._pid:
            return  # in a child: the connection is the parent's
        let_read(0)
        connection = socket.socket(fileno=os.dup(self._fds[-1]))
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the sidecar has gone before
        finally:
            connection.close()


def _listen(line: _Line) -> Generator[int, Any, None]:
    """Be told phase and info of each event, in turn; a generator, which never ends but by being deleted.

    Args:
        line: The connection.
    """
    phase: Any = "stop"
    raised: list[type[BaseException]] = []
    steps: Any = ()
    while True:
        try:  # around all, and once more around each: what a handler raised must not end the generator
            while True:
                try:
                    # The hold. There is no other instruction between it and the way out.
                    True in steps  # noqa: B015  # it is done for what its calls do
                    phase = yield 0
                except GeneratorExit:
                    return
                except BaseException as error:  # noqa: BLE001  # a signal was waiting: it has come instead of the phase
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
                except BaseException as error:  # noqa: BLE001  # a signal's handler; or a fault of ours, which ends it
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
        except BaseException as error:  # noqa: BLE001  # a signal between the two
            raised = [type(error)]


def _leave(line: _Line, phase: Any, info: Any) -> None:
    """Take it out from within the callbacks; the collector would then leave out the next one, so that is called here."""
    place = _take_out(line)
    line.hang_up()
    if place is None or place >= len(gc.callbacks):
        return
    following = gc.callbacks[place]
    try:
        following(phase, info)
    except BaseException:  # noqa: BLE001  # the collector shows it so, too
        shown: Callable[..., Any] = sys.UnraisableHookArgs
        sys.unraisablehook(shown((*sys.exc_info(), None, following)))


def _is_of(callback: object, line: _Line) -> bool:
    return type(callback) is _Callback and callback.line is line


def _take_out(line: _Line) -> int | None:
    """Remove the stub from the callbacks; return where it was, None if nowhere."""
    for place, one in enumerate(gc.callbacks):
        if _is_of(one, line):
            del gc.callbacks[place]
            return place
    return None


def _is_ours(error: BaseException) -> bool:
    """Return whether an exception was raised by this file, and not by a signal's handler."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return (
        isinstance(error, Exception) and trace is not None and trace.tb_frame.f_globals is globals()
    )


def let_read(pid: int) -> None:
    """Let a process, and those that it starts, read this one; 0: no other than the system lets anyway.

    Where kernel.yama.ptrace_scope is 1, only a process's ancestors may read it otherwise, which a sidecar is not. Elsewhere
    the kernel does not know this, and it is not needed.
    """
    _prctl(_PR_SET_PTRACER, pid, 0, 0, 0)


def peer_of(connection: socket.socket) -> int:
    """Return the process that made the other end of a connection; 0 when it is in another container."""
    return int(
        struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    )


def unmap(address: int, size_bytes: int) -> None:
    """Give memory back that whoever brought this in needed for that."""
    _unmap(address, size_bytes)


def connect(path: str) -> Stub:
    """Connect to a sidecar that listens at a path, and begin.

    Raises:
        OSError: Nobody listens there.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(path)
        return Stub(connection)
    finally:
        connection.close()
