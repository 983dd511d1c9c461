"""The options of the driver for malloc; in a module of its own, because help lists them without loading the driver."""

from __future__ import annotations

from typing import Final

from gcspy_server.driver_options import DriverOption

__all__ = ["AGES", "MODE", "OPTIONS"]

MODE: Final = DriverOption(
    name="mode",
    default="passive",
    about="passive: read while the program runs. stopped: stop all threads while the heap is read.",
    choices=("passive", "stopped"),
)

AGES: Final = DriverOption(
    name="ages",
    default="off",
    about="on: show for how long chunks in use were not accessed, in a program that notes its accesses (gcspy_accesses.c). In another, for "
    "how long their pages were not written: a small library is loaded into it, and first writes to pages cost it up to 2 % of its time.",
    choices=("off", "on"),
)

OPTIONS: Final = (MODE, AGES)
