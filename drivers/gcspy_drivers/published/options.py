"""The options of the driver for `gcspy.h`; in a module of its own, because help lists them without loading the driver."""

from __future__ import annotations

from typing import Final

from gcspy_server.driver_options import DriverOption

__all__ = ["ALLOCATOR", "INJECT", "MANAGER", "OPTIONS"]

MANAGER: Final = "manager"
"""Name of the option that chooses among several memory managers of one process."""

INJECT: Final = "inject"
ALLOCATOR: Final = "allocator"

OPTIONS: Final = (
    DriverOption(
        name=INJECT,
        default="",
        about="allocator: load a small library into the program that shows its jemalloc, mimalloc or tcmalloc. It stays there. Empty: load nothing.",
        choices=("", ALLOCATOR),
    ),
    DriverOption(
        name=MANAGER,
        default="",
        about="Name of the memory manager, where a program shows several. Empty: the first one.",
    ),
)
