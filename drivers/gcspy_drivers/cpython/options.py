"""The options of the driver for CPython; in a module of its own, because help lists them without loading the driver."""

from __future__ import annotations

from typing import Final

from gcspy_server.driver_options import DriverOption

__all__ = ["ACCESSES", "INJECT", "MODE", "OPTIONS"]

INJECT: Final = DriverOption(
    name="inject",
    default="",
    about="How to load a stub into the process, for exact events. Empty: no stub.",
    choices=("", "auto", "remote-exec", "gdb"),
)

MODE: Final = DriverOption(
    name="mode",
    default="passive",
    about="passive: read while the program runs. stopped: stop all threads while pools are copied.",
    choices=("passive", "stopped"),
)

ACCESSES: Final = DriverOption(
    name="accesses",
    default="full",
    about="With a stub: show which memory the program accessed since its last collection of the oldest generation (full), "
    "of the middle or the oldest one (middle), or of any (all). off: do not.",
    choices=("full", "middle", "all", "off"),
)

OPTIONS: Final = (INJECT, MODE, ACCESSES)
