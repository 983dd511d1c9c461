"""The installed drivers, and what they say about processes; loads a driver only if it announces no recogniser."""

from __future__ import annotations

import logging
from functools import cache

from gcspy_server.driver_recognition import Recognition
from gcspy_server.hosting.recognition import DriverBench

__all__ = ["driver_bench", "options_of", "recognise"]

_log = logging.getLogger("gcspy")


@cache
def driver_bench(names: tuple[str, ...] = ()) -> DriverBench:
    """Return the installed drivers, or some of them; a faulty one is reported once, and is not asked again."""
    return DriverBench(_log.warning, names)


def recognise(pid: int) -> list[tuple[str, Recognition]]:
    """Each installed driver's statement about a process, the best first.

    Returns:
        Driver name and its recognition; drivers that do not know it are left out.
    """
    return [(one.name, one.recognition) for one in driver_bench().recognise(pid)]


def options_of(name: str) -> tuple[dict[str, object], ...]:
    """Return a driver's options, as plain values: ``driver``, ``name``, ``default``, ``about``, ``bounds``, ``choices``."""
    return tuple(
        {
            "driver": name,
            "name": one.name,
            "default": one.default_text,
            "about": one.about,
            "bounds": one.bounds_text,
            "choices": list(one.names),
        }
        for one in driver_bench().options(name)
    )
