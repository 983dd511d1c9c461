"""Finds the drivers that can monitor a process: every installed driver is asked, and none can block the others.

A faulty driver (an entry point that cannot be imported, a class that is not a driver, a `recognise`
that raises, hangs or returns nonsense) is reported once, in one line with the package's name, and
is not asked again. A driver that announces a recogniser is not loaded to be asked. Knows drivers by
name; does not know any driver, and loads neither numpy nor the server before it loads one.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar, cast

from gcspy_protocol.errors import DriverError, TargetError, Unsupported

from gcspy_server.driver_options import DriverOption, announced_by
from gcspy_server.driver_recognition import (
    Recogniser,
    Recognition,
    Specificity,
    find_drivers,
    find_recognisers,
)
from gcspy_server.hosting.fault_text import fault_text, label_of
from gcspy_server.hosting.slow_watch import told_when_slow

if TYPE_CHECKING:
    from gcspy_server.drivers import AttachOptions, Driver

__all__ = ["Candidate", "DriverBench", "package_of"]

_LOAD_SECS = 10.0
"""Time limit for importing a driver's package."""

_RECOGNISE_SECS = 8.0
"""Time limit for a driver's check of one process."""

_IDLE_SECS = 0.25
"""Time after which a thread that calls drivers ends."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One driver's statement about a process."""

    name: str
    recognition: Recognition

    @property
    def order(self) -> tuple[int, int, str]:
        """The best first: supported ones first, then the most specific, then by name.

        A driver that can monitor any process comes behind one that knows the runtime and does not support it: the user
        learns why, and may name the other.
        """
        found = self.recognition
        if found.supported:
            rank = 0 if found.specificity > Specificity.ANY_PROCESS else 2
        else:
            rank = 1 if found.runtime and found.specificity >= Specificity.RUNTIME else 3
        return rank, -found.specificity, self.name


class DriverBench:
    """The installed drivers, each loaded on first use.

    Args:
        tell: Called with each line about a faulty driver.
        names: Only these drivers; none: all installed ones.
    """

    def __init__(self, tell: Callable[[str], None], names: Sequence[str] = ()) -> None:
        self._tell = tell
        self._entries = find_drivers()
        for name in names:
            if name not in self._entries:
                raise Unsupported(
                    "no such driver is installed",
                    found=name,
                    known=", ".join(sorted(self._entries)),
                )
        self._names = tuple(names) or tuple(sorted(self._entries))
        self._loaded: dict[str, type[Driver] | None] = {}
        self._recognisers: dict[str, Recogniser | None] = {}
        self._options: dict[str, tuple[DriverOption, ...]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the drivers in use."""
        return self._names

    def package(self, name: str) -> str:
        """Return the package of a driver, with its version."""
        return package_of(self._entries[name])

    def load(self, name: str) -> type[Driver]:
        """Import a driver.

        Raises:
            DriverError: It cannot be imported, or is no driver.
        """
        from gcspy_server.drivers import Driver  # with the server and numpy

        entry = self._entries[name]
        found = self._imported(name, entry)
        label = self._label(name)
        if not (inspect.isclass(found) and issubclass(found, Driver)):
            raise DriverError(
                f"{label}: {entry.value} is not a class derived from gcspy_server.api.Driver"
            )
        missing = sorted(getattr(found, "__abstractmethods__", ()))
        if missing:
            raise DriverError(f"{label}: {entry.value} does not define {', '.join(missing)}")
        return found

    def attach(self, name: str, pid: int, options: AttachOptions) -> Driver:
        """Attach a driver to a process.

        Raises:
            TargetError: See `Driver.attach`.
            DriverError: The driver is faulty.
        """
        from gcspy_server.drivers import Driver

        driver = self.load(name)
        label = self._label(name)
        try:
            with told_when_slow(f"{label}: attach", self._tell):
                found: object = driver.attach(pid, options)
        except TargetError:
            raise
        except (Exception, SystemExit) as error:
            raise DriverError(f"{label}: {fault_text('attach', error)}") from error
        if not isinstance(found, Driver):
            raise DriverError(f"{label}: attach returned {_kind_of(found)}, not a driver")
        return found

    def recognise(self, pid: int) -> list[Candidate]:
        """Ask every driver about a process.

        Returns:
            The statements of drivers that know it, the best first.
        """
        found = []
        for name in self._names:
            recognition = self._ask(name, pid)
            if recognition is not None and recognition.runtime:
                found.append(Candidate(name, recognition))
        return sorted(found, key=lambda one: one.order)

    def _ask(self, name: str, pid: int) -> Recognition | None:
        recognise = self._recogniser(name)
        if recognise is None:
            return None
        try:
            found = _within(_RECOGNISE_SECS, lambda: recognise(pid))
        except _Slow:
            self._drop(name, f"recognise takes longer than {_RECOGNISE_SECS:g} s (process {pid})")
            return None
        except Exception as error:  # noqa: BLE001  # somebody else's code: whatever it raises is its mistake
            self._drop(name, f"{fault_text('recognise', error)} (process {pid})")
            return None
        wrong = _wrong_with(found)
        if wrong:
            self._drop(name, f"recognise returned {wrong} (process {pid})")
            return None
        return found

    def options(self, name: str) -> tuple[DriverOption, ...]:
        """Return a driver's options; of one that announces a recogniser those that it announces, without loading it."""
        if name not in self._options:
            self._options[name] = self._find_options(name)
        return self._options[name]

    def _find_options(self, name: str) -> tuple[DriverOption, ...]:
        if name in find_recognisers():
            announced = announced_by(name, self._entries[name])
            if announced is not None:
                return announced
        driver = self.load_or_tell(name)
        return driver.declared_options if driver is not None else ()

    def _recogniser(self, name: str) -> Recogniser | None:
        """Return the function that a driver announces for it, or the driver's own; None: it is faulty, and that was reported."""
        entry = find_recognisers().get(name)
        if entry is None:
            driver = self.load_or_tell(name)
            return None if driver is None else driver.recognise
        if name not in self._recognisers:
            try:
                self._recognisers[name] = self._imported(name, entry)
            except DriverError as error:
                self._recognisers[name] = None
                self._tell(str(error))
        return self._recognisers[name]

    def load_or_tell(self, name: str) -> type[Driver] | None:
        """Return a driver's class; None: it is faulty, and that was reported."""
        if name not in self._loaded:
            try:
                self._loaded[name] = self.load(name)
            except DriverError as error:
                self._loaded[name] = None
                self._tell(str(error))
        return self._loaded[name]

    def _imported(self, name: str, entry: EntryPoint) -> Any:
        """Import what an entry point of a driver names.

        Raises:
            DriverError: It cannot be imported, or not in time.
        """
        try:
            return _within(_LOAD_SECS, entry.load)
        except _Slow:
            raise DriverError(
                f"{self._label(name)}: importing {entry.value} takes longer than {_LOAD_SECS:g} s"
            ) from None
        except Exception as error:
            raise DriverError(
                f"{self._label(name)}: {fault_text(f'importing {entry.value}', error)}"
            ) from error

    def _label(self, name: str) -> str:
        return label_of(name, self.package(name))

    def _drop(self, name: str, text: str) -> None:
        self._loaded[name] = self._recognisers[name] = None
        self._tell(f"{self._label(name)}: {text}; it will not be called again")


@cache
def package_of(entry: EntryPoint) -> str:
    """Return the package that announces an entry point, with its version; empty: it is not known."""
    if entry.dist is None:
        return ""
    found = entry.dist.metadata  # parsed at each use
    return f"{found['Name']} {found['Version']}"


def _wrong_with(found: object) -> str:
    """Error in the result of `recognise`; empty: none."""
    if not isinstance(found, Recognition):
        return "None" if found is None else f"a {type(found).__name__}, not a Recognition"
    kinds: dict[str, tuple[type, ...]] = {
        "supported": (bool,),
        "specificity": (int,),
        "modes": (tuple,),
    }
    for field in fields(found):
        value = getattr(found, field.name)
        if not isinstance(value, kinds.get(field.name, (str,))):
            return f"a Recognition whose {field.name} is {value!r}"
    return ""


def _kind_of(found: object) -> str:
    return "None" if found is None else f"a {type(found).__name__}"


class _Slow(Exception):
    """The driver took too long."""


def _delay_secs(thread: threading.Thread) -> float:
    """How long a thread has been ready without a processor; 0 where the system does not tell.

    Source: Documentation/scheduler/sched-stats.rst of Linux.
    """
    try:
        text = Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text()
        return int(text.split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


class _CallThread:
    """A thread that calls one function after the other, since starting one takes longer than most calls; ends when it is not used."""

    def __init__(self) -> None:
        self._functions: SimpleQueue[tuple[Callable[[], Any], SimpleQueue[_Outcome]]] = (
            SimpleQueue()
        )
        self._abandoned = False
        self._thread = threading.Thread(target=self._run, name="gcspy driver", daemon=True)
        self._thread.start()

    def call(self, function: Callable[[], T], secs: float) -> T:
        """Call a function, and wait for it up to a time limit.

        Raises:
            _Slow: It has not returned; this thread is not to be used again.
        """
        outcome: SimpleQueue[_Outcome] = SimpleQueue()
        until, left = time.monotonic() + secs, secs
        self._functions.put((function, outcome))
        found: _Outcome | None = None
        while found is None:
            if left <= 0:
                self._abandoned = True
                raise _Slow
            try:
                found = outcome.get(timeout=left)
            except Empty:
                left = until + _delay_secs(self._thread) - time.monotonic()
        _idle.append(self)
        result, error = found
        if error is None:
            return cast("T", result)
        if isinstance(error, Exception):
            raise error
        raise RuntimeError(f"it raised {type(error).__name__}: {error}") from error

    def _run(self) -> None:
        while not self._abandoned:
            try:
                function, outcome = self._functions.get(timeout=_IDLE_SECS)
            except Empty:
                with suppress(ValueError):  # somebody has just taken it
                    _idle.remove(self)
                    return
                continue
            try:
                outcome.put((function(), None))
            except BaseException as error:  # noqa: BLE001  # handed to who waits: a SystemExit too
                outcome.put((None, error))
            del function, outcome


_Outcome = tuple[Any, BaseException | None]
_idle: list[_CallThread] = []
"""Threads that can be used."""


def _within(secs: float, function: Callable[[], T]) -> T:
    """Call a function in a thread, and wait for it up to a time limit, not counting the time without a processor.

    Raises:
        _Slow: It has not returned; its thread is abandoned.
    """
    try:
        thread = _idle.pop()
    except IndexError:
        thread = _CallThread()
    return thread.call(function, secs)
