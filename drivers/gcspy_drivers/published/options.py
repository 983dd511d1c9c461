"""The options of the driver for `gcspy.h`; in a module of its own, because help lists them without loading the driver."""

from __future__ import annotations

from typing import Final

from gcspy_server.driver_options import DriverOption

__all__ = ["MANAGER", "OPTIONS"]

MANAGER: Final = "manager"
"""Name of the option that chooses among several memory managers of one process."""

OPTIONS: Final = (
    DriverOption(
        name=MANAGER,
        default="",
        about="Name of the memory manager, where a program shows several. Empty: the first one.",
    ),
)
