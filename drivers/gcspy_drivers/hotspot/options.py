"""The options of the driver for HotSpot; in a module of its own, because help lists them without loading the driver."""

from __future__ import annotations

from typing import Final

from gcspy_server.driver_options import DriverOption

__all__ = ["OPTIONS"]

OPTIONS: Final = (
    DriverOption(
        name="inject",
        default="",
        about="How to load the agent into the JVM, for exact events. Empty: no agent.",
        choices=("", "auto", "agent"),
    ),
    DriverOption(
        name="mode",
        default="passive",
        about="A JVM is read while it runs. It cannot be stopped.",
        choices=("passive",),
    ),
    DriverOption(
        name="count",
        default="",
        about="Count how often each allocation site of the program's classes runs, by counters in their code, which an agent in Java puts there. "
        "wide and definite are the same. Empty: do not.",
        choices=("", "wide", "definite"),
    ),
)
