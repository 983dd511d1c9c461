"""The driver for HotSpot: with our agent where one was asked for, and without one where that is not possible."""

from __future__ import annotations

from gcspy_protocol.errors import Unsupported

from gcspy_drivers.hotspot.cooperative_driver import CooperativeHotSpotDriver
from gcspy_drivers.hotspot.passive_driver import COLLECTIONS, PassiveDriver
from gcspy_drivers.kit.sampled_driver import CLOCK
from gcspy_drivers.kit.stubbed_driver import attach_exactly_or_else
from gcspy_server.api import AttachOptions

__all__ = ["CLOCK", "COLLECTIONS", "HotSpotDriver"]


class HotSpotDriver(PassiveDriver):
    """Watches one JVM."""

    has_stub = True

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> PassiveDriver:
        """Attach with the agent if the options say so; see `CooperativeHotSpotDriver` and `PassiveDriver`.

        Raises:
            Unsupported: A JVM cannot be held while it is read.
            TargetError: The process cannot be watched so.
        """
        if options.rung == "stopped":
            raise Unsupported(
                "a JVM cannot be held while it is read", found="stopped", known="passive"
            )
        return attach_exactly_or_else(CooperativeHotSpotDriver, PassiveDriver, pid, options)
