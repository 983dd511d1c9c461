"""Runs code of a student's file one step at a time: a loop without end is ended, and every error is told with the line of the file.

Knows files and generators; knows neither heaps nor collectors.
"""

from __future__ import annotations

import difflib
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final

from gcspy_protocol.errors import CommandError, GCspyError

__all__ = ["MOST_LINES", "Mistake", "StepGuard", "line_in"]

MOST_LINES: Final = 300_000
"""Lines of the file that one step may run: a step that needs so many has no ``yield`` in a loop."""

_LOOK_LINES: Final = 1_000
_HAS_LINE: Final = re.compile(r"[^\n]+\.py:\d+: ")
"""A message that names a line already: of a collector that a program in another file called, say."""


class Mistake(Exception):
    """A mistake of the student's code, in its terms; the guard adds file and line."""


class _EndlessLoop(BaseException):
    """Raised within the student's code: not an `Exception`, so that it is not caught there."""


class _Stopped(BaseException):
    """The session ends while the student's code runs."""


def line_in(path: Path) -> int:
    """The line of a file that is running now, in the innermost call; 0: none is."""
    frame: FrameType | None = sys._getframe(1)
    name = str(path)
    while frame is not None and frame.f_code.co_filename != name:
        frame = frame.f_back
    return 0 if frame is None else frame.f_lineno


class StepGuard:
    """Runs steps of the code of one file.

    Args:
        path: The file.
        lets_through: Errors that are no mistakes of the file, such as a full heap.

    Attributes:
        path: As given.
        stopped: Whether the session is to end; asked now and then while a step runs.
    """

    def __init__(self, path: Path, lets_through: tuple[type[BaseException], ...] = ()) -> None:
        self.path = path
        self._lets_through = lets_through
        self.stopped: Callable[[], bool] = lambda: False
        self._lines = 0

    def step(self, steps: Iterator[object]) -> bool:
        """Run a generator to its next ``yield``.

        Returns:
            Whether there was one; False: the generator has ended.

        Raises:
            CommandError: The code has a mistake; with file and line.
        """
        with self.watching():
            try:
                next(steps)
            except StopIteration:
                return False
        return True

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Run code of the file in the body of the `with`; errors in it are told with its line.

        Raises:
            CommandError: See `step`.
        """
        self._lines = 0
        before = sys.gettrace()
        handlers = _default_handlers()
        sys.settrace(self._on_call)
        try:
            if self.stopped():  # by a signal that came just before
                raise _Stopped
            yield
        except (KeyboardInterrupt, SystemExit):
            raise
        except _Stopped:
            raise CommandError(f"{self.path}: stopped") from None
        except _EndlessLoop as error:
            line = self._line_of(error.__traceback__)
            raise CommandError(
                f"{self.path}:{line}: {MOST_LINES:,} lines ran without a yield: a loop here does not end, or needs a yield in it"
            ) from None
        except BaseException as error:
            if isinstance(error, self._lets_through) or (
                isinstance(error, GCspyError) and _HAS_LINE.match(str(error))
            ):
                raise
            line = self._line_of(error.__traceback__)
            if not line:
                raise
            raise CommandError(f"{self.path}:{line}: {_told(error)}") from error
        finally:
            sys.settrace(before)
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _on_call(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        """Trace the lines of functions of the file, and nothing else."""
        return self._on_line if frame.f_code.co_filename == str(self.path) else None

    def _on_line(self, _frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            self._lines += 1
            if self._lines > MOST_LINES:
                raise _EndlessLoop
            if self._lines % _LOOK_LINES == 0 and self.stopped():
                raise _Stopped
        return self._on_line

    def _line_of(self, traceback: TracebackType | None) -> int:
        """The line of the file in which an error came up: the innermost."""
        found = 0
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == str(self.path):
                found = traceback.tb_lineno
            traceback = traceback.tb_next
        return found


def _default_handlers() -> dict[int, Any]:
    """Have SIGTERM and Ctrl-C end the process; return what they did before.

    A loop of Python's own, such as the sum of an endless iterator, runs neither handlers in Python nor a trace function, and lets no thread run that
    could end it. In other threads than the main one nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {
        number: signal.signal(number, signal.SIG_DFL)
        for number in (signal.SIGTERM, signal.SIGINT)
        if callable(signal.getsignal(number))
    }


def _told(error: BaseException) -> str:
    """An error of Python in a sentence, with what it may have been meant to be."""
    match error:
        case Mistake() | GCspyError():
            return str(error)
        case RecursionError():
            return "a function calls itself too often: keep a list of what is left to do instead"
        case AttributeError() if error.obj is None:
            return (
                f"None has no {error.name!r}: a field may hold nothing; references leaves those out"
            )
        case AttributeError() if isinstance(error.name, str):
            names = [name for name in dir(error.obj) if not name.startswith("_")]
            what = type(error.obj).__name__
            return f"{what} has no {error.name!r}{_meant(error.name, names)}: it has {', '.join(names[:20])}"
        case NameError() if isinstance(error.name, str):
            return f"the name {error.name!r} is not defined{_meant(error.name, _names_at(error))}"
        case MemoryError():
            return "there is no memory left: does a list grow without end?"
        case _:
            return f"{type(error).__name__}: {error}"


def _names_at(error: BaseException) -> list[str]:
    """The names that the innermost frame knows."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return []
    return [*traceback.tb_frame.f_locals, *traceback.tb_frame.f_globals]


def _meant(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
