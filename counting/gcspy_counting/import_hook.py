"""Modules instrumented as they are imported: those of the program, and those asked for by name."""

from __future__ import annotations

import importlib.machinery
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any

from gcspy_counting.code_replacement import functions, replace_code

__all__ = ["ImportHook"]

_OWN_MODULES = ("gcspy_counting", "gcspy_stub")
_OWN_FILE = globals().get("__file__")
"""This file; None where the package was loaded from texts."""
_OWN_FOLDER = os.path.join(os.path.dirname(os.path.realpath(_OWN_FILE)), "") if _OWN_FILE else None


def _library_folders() -> tuple[str, ...]:
    """Return the folders of the standard library and of installed packages."""
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {
        each for each in sys.path if os.path.basename(each) in ("site-packages", "dist-packages")
    }
    return tuple(os.path.join(os.path.realpath(each), "") for each in sorted(folders))


def _module_of(function: FunctionType) -> str:
    """Return the name of a function's module, which programs may set to anything; empty: it has none."""
    module: object = function.__module__
    return module if isinstance(module, str) else ""


class ImportHook:
    """Gives code objects of modules to a function before they run.

    Files of bytecode are read and written as ever: what is in them has no counters.

    Args:
        instrument: Returns the code to run instead.
        include: Names of modules or packages of libraries that are instrumented, too; "*" for all.
    """

    def __init__(
        self, instrument: Callable[[CodeType], CodeType], include: Iterable[str] = ()
    ) -> None:
        self._instrument = instrument
        self._include = tuple(include)
        self._libraries = _library_folders()
        self._removed = False
        self._replaced: tuple[Any, Any] | None = None

    def install(self) -> None:
        """Instrument what is imported from now on, and loaded modules that were asked for by name."""
        self.follow_imports()
        self._instrument_loaded()

    def follow_imports(self) -> None:
        """Instrument what is imported from now on."""
        loader: Any = importlib.machinery.SourceFileLoader
        original = loader.get_code
        hook = self

        def get_code(self: importlib.machinery.SourceFileLoader, fullname: str) -> CodeType | None:
            code: CodeType | None = original(self, fullname)
            if code is None or hook._removed or not hook.wants(fullname, self.path):
                return code
            return hook._instrument(code)

        self._replaced = original, get_code
        loader.get_code = get_code

    def remove(self) -> None:
        """Instrument nothing more. If somebody else has extended imports since, what was added here stays, and does nothing."""
        self._removed = True
        loader: Any = importlib.machinery.SourceFileLoader
        if self._replaced is not None and loader.get_code is self._replaced[1]:
            loader.get_code = self._replaced[0]

    def _instrument_loaded(self) -> None:
        if not self._include:
            return
        new: dict[int, CodeType] = {}
        for each in functions():
            old = each.__code__
            if id(old) not in new and self.wants(_module_of(each), old.co_filename):
                new[id(old)] = self._instrument(old)
        replace_code(new)

    def wants_function(self, function: FunctionType) -> bool:
        """Say whether a function that is there already is instrumented; what was made from a text is, only if that is the program."""
        path = function.__code__.co_filename
        module = _module_of(function)
        if path.startswith("<") and module != "__main__":
            return False
        return self.wants(module, path)

    def wants(self, module: str, path: str) -> bool:
        """Say whether a module is instrumented; what counts never counts itself."""
        if module.partition(".")[0] in _OWN_MODULES:
            return False
        if _OWN_FOLDER is not None and os.path.realpath(path).startswith(_OWN_FOLDER):
            return False
        for name in self._include:
            if name == "*" or module == name or module.startswith(name + "."):
                return True
        return not path.startswith("<frozen") and not os.path.realpath(path).startswith(
            self._libraries
        )
