"""Modules instrumented as they are imported: those of the program, and those asked for by name."""

from __future__ import annotations

import gc
import importlib.machinery
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any

__all__ = ["ImportHook"]

_OWN_FOLDER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "")


def _library_folders() -> tuple[str, ...]:
    """Return the folders of the standard library and of installed packages."""
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {
        each for each in sys.path if os.path.basename(each) in ("site-packages", "dist-packages")
    }
    return tuple(os.path.join(os.path.realpath(each), "") for each in sorted(folders))


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

    def install(self) -> None:
        """Instrument what is imported from now on."""
        loader: Any = importlib.machinery.SourceFileLoader
        original = loader.get_code
        hook = self

        def get_code(self: importlib.machinery.SourceFileLoader, fullname: str) -> CodeType | None:
            code: CodeType | None = original(self, fullname)
            if code is None or not hook.wants(fullname, self.path):
                return code
            return hook._instrument(code)

        self._instrument_loaded()
        loader.get_code = get_code

    def _instrument_loaded(self) -> None:
        """Instrument the functions of modules that were asked for by name and are loaded already."""
        if not self._include:
            return
        files = {
            path
            for name, module in tuple(sys.modules.items())
            if isinstance(path := getattr(module, "__file__", None), str) and self.wants(name, path)
        }
        instrumented: dict[CodeType, CodeType] = {}
        for each in gc.get_objects():
            if type(each) is FunctionType and each.__code__.co_filename in files:
                old = each.__code__
                if old not in instrumented:
                    instrumented[old] = self._instrument(old)
                each.__code__ = instrumented[old]

    def wants(self, module: str, path: str) -> bool:
        """Say whether a module is instrumented; what counts never counts itself."""
        if os.path.realpath(path).startswith(_OWN_FOLDER):
            return False
        for name in self._include:
            if name == "*" or module == name or module.startswith(name + "."):
                return True
        return not os.path.realpath(path).startswith(self._libraries)
