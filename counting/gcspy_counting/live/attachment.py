"""Counting in a process that is monitored: the line to the one that monitors it, at the start of a program or while it runs.

`begin_attached` is run from this text alone in a program that runs already: its package is given as texts, and leaves nothing in `sys.modules`. So this module
imports nothing of its package when it is loaded.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import socket
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is a large import for a program that does not use it
    from collections.abc import Callable, Mapping, Sequence
    from types import CodeType, ModuleType
    from typing import Any

__all__ = ["begin_attached", "begin_started"]

_PACKAGE = "gcspy_counting"
_PARTS = ("live.count_line", "import_hook", "planner", "program", "live.running_program", "sites")
_OLDEST, _NEWEST = (3, 11), (3, 14)


def _can_count() -> bool:
    # Without the interpreter's lock counters are not exact.
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    return sys.implementation.name == "cpython" and _OLDEST <= sys.version_info[:2] <= _NEWEST


def begin_started(
    sites: str, include: Sequence[str], hot_secs: float = 0.0
) -> tuple[int, Callable[[CodeType], CodeType] | None]:
    """Count what a program loads from now on.

    Args:
        sites: As in `gcspy_counting.sites.SiteChoice`.
        include: Names of library modules that are counted in, too.
        hot_secs: As in `gcspy_counting.live.running_program`; not 0: counting begins then.

    Returns:
        The other end of the line, and what instruments a code object; -1 and None: nothing is counted in this version.
    """
    if not _can_count():
        return -1, None
    ours, theirs = socket.socketpair()
    is_running = bool(hot_secs)
    line, instrument = _line(
        _modules(), ours, sites, include, is_running=is_running, hot_secs=hot_secs
    )
    line.start()
    return theirs.detach(), _unchanged if is_running else instrument


def begin_attached(
    texts: Mapping[str, str],
    sites: str,
    include: Sequence[str],
    share: float | None = None,
    hot_secs: float = 0.0,
) -> int:
    """Give counters to the functions of a program that runs, and count.

    Args:
        texts: Source of each module of the package, by its name.
        sites: See `begin_started`.
        include: See `begin_started`.
        share: Maximum share of the program's time that answers may take; None: the usual one.
        hot_secs: See `begin_started`.

    Returns:
        The other end of the line; -1: nothing is counted in this version.
    """
    if not _can_count():
        return -1
    ours, theirs = socket.socketpair()

    def begin() -> None:
        try:
            line, _ = _line(
                _loaded(texts),
                ours,
                sites,
                include,
                is_running=True,
                share=share,
                hot_secs=hot_secs,
            )
            line.start()
        except BaseException:
            ours.close()
            raise

    threading.Thread(target=begin, name="gcspy-counters", daemon=True).start()
    return theirs.detach()


def _line(
    modules: Mapping[str, ModuleType],
    connection: socket.socket,
    sites: str,
    include: Sequence[str],
    *,
    is_running: bool,
    share: float | None = None,
    hot_secs: float = 0.0,
) -> tuple[Any, Callable[[CodeType], CodeType]]:
    program = modules["program"].CountedProgram(choice=modules["sites"].SiteChoice(sites))
    hook = modules["import_hook"].ImportHook(program.instrument, include)
    if not is_running:
        hook.install()
    line = modules["live.count_line"].CountLine(
        connection,
        program,
        modules["planner"].Planner(program),
        modules["live.running_program"].RunningProgram(program, hook, hot_secs),
        is_running=is_running,
        share=modules["live.count_line"].LARGEST_SHARE if share is None else share,
    )
    return line, program.instrument


def _unchanged(code: CodeType) -> CodeType:
    return code


def _modules() -> dict[str, ModuleType]:
    return {part: importlib.import_module(f"{_PACKAGE}.{part}") for part in _PARTS}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds the modules of the package in texts."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def find_spec(
        self, name: str, _path: object, _target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in self._texts:
            return None
        return importlib.util.spec_from_loader(name, self, origin=f"<{name}>")

    def is_package(self, name: str) -> bool:
        return any(each.startswith(name + ".") for each in self._texts)

    def get_source(self, name: str) -> str:
        return self._texts[name]


def _loaded(texts: Mapping[str, str]) -> dict[str, ModuleType]:
    """Import the package from texts, and leave `sys.modules` and `sys.meta_path` as they were."""
    before = {name: module for name, module in tuple(sys.modules.items()) if _is_ours(name)}
    finder = _Finder(texts)
    for name in before:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        return _modules()
    finally:
        sys.meta_path.remove(finder)
        for name in [each for each in tuple(sys.modules) if _is_ours(each)]:
            del sys.modules[name]
        sys.modules.update(before)


def _is_ours(name: str) -> bool:
    return name == _PACKAGE or name.startswith(_PACKAGE + ".")
