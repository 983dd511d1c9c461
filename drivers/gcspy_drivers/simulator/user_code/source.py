"""Loads a Python file of a student and checks the functions that it must have.

The file is run: it is the user's own, as any script is. Knows files and functions; knows neither heaps nor collectors.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from gcspy_protocol.errors import CommandError

from gcspy_drivers.simulator.user_code.guard import StepGuard

__all__ = ["UserFile", "is_user_file"]


def is_user_file(name: str) -> bool:
    """Whether a name of a collector or a program is that of a file."""
    return name.endswith(".py")


class _Loader(SourceFileLoader):
    """Leaves no compiled file behind, and takes none: the file may have been changed within a second."""

    def path_stats(self, path: str) -> Mapping[str, object]:
        """Report that nothing is known of the file, so that nothing is kept of it.

        Raises:
            OSError: Always.
        """
        raise OSError(path)


class UserFile:
    """A Python file of a user, loaded.

    Args:
        path: The file.
        what: What it is for, in messages: ``collector``, ``program``.
        lets_through: Errors that are no mistakes of the file.

    Attributes:
        path: As given.
        guard: Runs its code.
        module: What it defines.

    Raises:
        CommandError: There is no such file, or it has an error; with the line.
    """

    def __init__(
        self, path: str, what: str, lets_through: tuple[type[BaseException], ...] = ()
    ) -> None:
        self.path, self._what = Path(path), what
        self.guard = StepGuard(self.path, lets_through)
        try:
            source = self.path.read_text(encoding="utf-8")
        except OSError as error:
            raise CommandError(
                f"{path} cannot be read: {error.strerror}; `gcspy lesson template {what} -o {path}` writes one to begin with"
            ) from None
        except UnicodeDecodeError as error:
            raise CommandError(
                f"{path} is not UTF-8 text, at byte {error.start:,}: save it as UTF-8"
            ) from None
        try:
            ast.parse(source, str(self.path))
        except SyntaxError as error:
            raise CommandError(f"{path}:{error.lineno or 1}: {error.msg}") from None
        except ValueError as error:
            raise CommandError(f"{path}:1: {error}") from None
        self.module = ModuleType(self.path.stem)
        self.module.__file__ = str(self.path)
        with self.guard.watching():
            _Loader(self.path.stem, str(self.path)).exec_module(self.module)

    @property
    def title(self) -> str:
        """Its name, as a title."""
        return self.path.stem.replace("_", " ").capitalize()

    @property
    def about(self) -> str:
        """The text at its top."""
        return inspect.getdoc(self.module) or ""

    def has(self, name: str) -> bool:
        """Whether it defines a function of this name."""
        return inspect.isfunction(getattr(self.module, name, None))

    def function(self, name: str, *arguments: str) -> Callable[..., Any]:
        """A function of the file that takes these arguments.

        Raises:
            CommandError: There is none, or it takes others.
        """
        wanted = f"def {name}({', '.join(arguments)}):"
        found = getattr(self.module, name, None)
        if not inspect.isfunction(found):
            raise CommandError(
                f"{self.path}:1: the {self._what} has no function {name}: write {wanted}"
            )
        try:
            inspect.signature(found).bind(*arguments)
        except TypeError:
            raise CommandError(
                f"{self.path}:{found.__code__.co_firstlineno}: {name} takes {_counted(found)}: write {wanted}"
            ) from None
        return found

    def steps(self, name: str, *arguments: str) -> Callable[..., Any]:
        """A generator function of the file that takes these arguments.

        Raises:
            CommandError: There is none, it takes others, or it has no ``yield``.
        """
        found = self.function(name, *arguments)
        if not inspect.isgeneratorfunction(found):
            raise CommandError(
                f"{self.path}:{found.__code__.co_firstlineno}: {name} has no yield: write one where it may be paused, in its innermost loop"
            )
        return found


def _counted(function: Callable[..., Any]) -> str:
    names = list(inspect.signature(function).parameters)
    return ", ".join(names) if names else "no argument"
