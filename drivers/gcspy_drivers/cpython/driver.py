"""The driver for CPython: with a stub where one was asked for, and without one where that is not possible."""

from __future__ import annotations

from gcspy_drivers.cpython.cooperative_driver import CooperativeDriver
from gcspy_drivers.cpython.passive_driver import COLLECTIONS, PassiveDriver
from gcspy_drivers.kit.sampled_driver import CLOCK
from gcspy_drivers.kit.stubbed_driver import attach_exactly_or_else
from gcspy_server.api import AttachOptions

__all__ = ["CLOCK", "COLLECTIONS", "CPythonDriver"]


class CPythonDriver(PassiveDriver):
    """Watches one CPython process."""

    has_stub = True

    @classmethod
    def attach(cls, pid: int, options: AttachOptions) -> PassiveDriver:
        """Attach with a stub if the options say so; see `CooperativeDriver` and `PassiveDriver`.

        Raises:
            TargetError: The process cannot be watched so.
        """
        return attach_exactly_or_else(CooperativeDriver, PassiveDriver, pid, options)
