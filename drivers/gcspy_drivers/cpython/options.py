"""The options of the driver for CPython; in a module of its own, because help lists them without loading the driver."""

from __future__ import annotations

from typing import Final

from gcspy_server.driver_options import DriverOption

__all__ = ["ACCESSES", "COUNT", "COUNT_HOT", "COUNT_IN", "INJECT", "MODE", "OPTIONS"]

INJECT: Final = DriverOption(
    name="inject",
    default="",
    about="How to load a stub into the process, for exact events. Empty: no stub.",
    choices=("", "auto", "remote-exec", "gdb", "library"),
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

COUNT: Final = DriverOption(
    name="count",
    default="",
    about="With a stub: count how often each allocation site of the program runs, by counters in its code. wide: also calls, iterators and operators. "
    "definite: only what always allocates. Empty: do not. CPython 3.11 to 3.14.",
    choices=("", "wide", "definite"),
)

COUNT_IN: Final = DriverOption(
    name="count-in",
    default="",
    about="Modules or packages of libraries whose sites are counted, too, with commas between; * for all.",
)

COUNT_HOT: Final = DriverOption(
    name="count-hot",
    default=0.0,
    minimum=0.0,
    maximum=3600.0,
    about="Seconds for which the stacks of all threads are watched; then only functions that were on one are counted. 0: all functions are counted.",
)

OPTIONS: Final = (INJECT, MODE, ACCESSES, COUNT, COUNT_IN, COUNT_HOT)
