"""The agent that tells the objects of a JVM, and the JVMs that it is for.

Knows command lines of java; does not know what the agent does.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from gcspy_protocol.errors import CommandError, Unsupported

from gcspy.exit_codes import ExitCode

__all__ = ["java_agent"]

_AGENT: Final = "hotspot/gcspy-hotspot-trace-*.so"
_CONCURRENT: Final = ("-XX:+UseZGC", "-XX:+UseShenandoahGC", "-XX:+UseEpsilonGC")
"""Collectors that do not say at the end of a pause who is dead, or never."""


def java_agent(arguments: Sequence[str]) -> Path:
    """Return the path of the agent for a JVM with these arguments.

    Raises:
        CommandError: It was not built.
        Unsupported: The JVM's collector does not clear weak references in its pauses.
    """
    for one in arguments:
        if one in _CONCURRENT:
            raise Unsupported(
                "the JVM cannot be traced: deaths are read at the end of pauses",
                found=one,
                known="the collectors Serial, Parallel and G1; --native traces its malloc",
            )
    rooms = find_spec("gcspy_drivers")
    places = (rooms.submodule_search_locations or []) if rooms else []
    # Built with the agents of the driver (hatch_build.py), whose code is not needed here.
    built = [one for place in places for one in Path(place).glob(_AGENT)]
    if not built:
        raise CommandError(
            "programs of java cannot be traced: the agent is not built; apt-get install gcc libc6-dev default-jdk-headless, and install gcspy again",
            exit_code=ExitCode.MISSING_PART,
        )
    return max(built, key=lambda path: path.stat().st_mtime)
