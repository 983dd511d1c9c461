"""The options of the driver for malloc; in a module of its own, because help lists them without loading the driver."""

from __future__ import annotations

from typing import Final

from gcspy_server.driver_options import DriverOption

__all__ = ["MODE", "OPTIONS"]

MODE: Final = DriverOption(
    name="mode",
    default="passive",
    about="passive: read while the program runs. stopped: stop all threads while the heap is read.",
    choices=("passive", "stopped"),
)

OPTIONS: Final = (MODE,)
