"""The options of the driver for CPython; in a module of its own, because help lists them without loading the driver."""

from __future__ import annotations

from typing import Final

from gcspy_server.driver_options import DriverOption

__all__ = ["INJECT", "MODE", "OPTIONS"]

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

OPTIONS: Final = (INJECT, MODE)
