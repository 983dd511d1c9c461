"""`Recognition`: a driver's statement about a process, and where the installed drivers are announced.

Apart from the drivers' base class, so that a list of processes loads neither the server nor numpy.
Knows names of entry points; does not know any driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import cast

__all__ = [
    "ENTRY_POINT_GROUP",
    "RECOGNITION_GROUP",
    "Recogniser",
    "Recognition",
    "Specificity",
    "find_drivers",
    "find_recognisers",
    "installed_entry_points",
]

ENTRY_POINT_GROUP = "gcspy.drivers"
"""Entry point group for drivers."""

RECOGNITION_GROUP = "gcspy.driver_recognition"
"""Entry point group for functions that recognise a driver's processes: the driver's name to a `Recogniser`
in a module that loads quickly.

With one, a list of processes does not load the driver, and `Driver.recognise` is not called. A
driver without one is loaded."""

_OURS = "gcspy_drivers."


class Specificity(IntEnum):
    """How specific a driver's knowledge of a process is; of several drivers, the most specific is the default."""

    ANY_PROCESS = 0
    """Properties of every process: its memory map, its C library's heap."""
    LIBRARY = 10
    """A library in the program: a database, an allocator."""
    RUNTIME = 20
    """The runtime that runs the program."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recognition:
    """A driver's statement about a process, from a quick check.

    Attributes:
        runtime: The runtime found: ``CPython``; empty if the driver does not know it.
        version: Its version, as far as known.
        detail: More for a human, such as the executable.
        program: The program, if the command line does not show it well, such as a main class. May
            be empty.
        modes: The modes in which it can be monitored, as values of its option ``mode``; none: not
            stated.
        supported: Whether `Driver.attach` may succeed.
        why_not: If not, the reason, for a human.
        specificity: How specific it is: see `Specificity`; a driver may choose a number between
            those.
    """

    runtime: str = ""
    version: str = ""
    detail: str = ""
    program: str = ""
    modes: tuple[str, ...] = ()
    supported: bool = False
    why_not: str = ""
    specificity: int = Specificity.LIBRARY


Recogniser = Callable[[int], Recognition]
"""Determines cheaply what runs in a process: as `Driver.recognise`."""


@cache
def find_drivers() -> Mapping[str, EntryPoint]:
    """The installed drivers by name, not yet imported; found once, since that reads a file of every installed package."""
    return _announced(ENTRY_POINT_GROUP)


@cache
def find_recognisers() -> Mapping[str, EntryPoint]:
    """The announced recognisers by driver, each from the package that announces the driver itself; not yet imported."""
    drivers = find_drivers()
    return {
        name: entry
        for name, entry in _announced(RECOGNITION_GROUP).items()
        if name in drivers and entry.value.split(".")[0] == drivers[name].value.split(".")[0]
    }


@cache
def installed_entry_points() -> EntryPoints:
    """The entry points of all groups, read once: to look through the installed packages for one group takes as long."""
    return cast(EntryPoints, entry_points())  # before 3.12 of another class, with the same `select`


def _announced(group: str) -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for entry in installed_entry_points().select(group=group):
        # GCspy's own drivers keep their names, even if another package uses one.
        if entry.name not in found or entry.value.startswith(_OURS):
            found[entry.name] = entry
    return found
