"""`StoppedMode`: whether a driver stops the process while it reads, as the controller chooses.

Knows holds and the setting "Mode"; does not know what is read.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

from gcspy_protocol.errors import TargetError

from gcspy_drivers.remote.process import Process
from gcspy_drivers.remote.process_hold import Hold, held
from gcspy_server.api import MODE, AttachOptions, Mode, Server

__all__ = ["LONGEST_HOLD_SECS", "StoppedMode"]

LONGEST_HOLD_SECS: Final = 2.0
"""The process continues after this time, whether it was read or not: a gigabyte is copied in a third of that."""


class StoppedMode:
    """The choice between reading a process while it runs and while all of its threads are stopped.

    The driver declares an option ``mode`` with the choices ``passive`` and ``stopped``.

    Args:
        process: The process.
        options: The user's choices.

    Attributes:
        on: Whether the process is stopped while it is read.
    """

    modes: Final = (Mode.PASSIVE, Mode.STOPPED)
    """Values of the setting "Mode"."""

    def __init__(self, process: Process, options: AttachOptions) -> None:
        self.on = options.text("mode") == Mode.STOPPED.value
        self._process = process

    @property
    def mode(self) -> Mode:
        """The mode in use."""
        return self.modes[self.on]

    def held(self) -> AbstractContextManager[Hold]:
        """Stop the process for the body of the `with`, for at most `LONGEST_HOLD_SECS`.

        Raises:
            TargetError: It cannot be stopped.
        """
        return held(self._process, longest_secs=LONGEST_HOLD_SECS)

    def check(self) -> None:
        """Stop the process once, for a moment, if it is to be stopped.

        Raises:
            TargetError: It cannot be stopped.
        """
        if self.on:
            with self.held():
                pass

    def follow(self, server: Server) -> None:
        """Apply the controller's choice. Call it between events."""
        self.on = self.modes[server.take_setting(MODE)] is Mode.STOPPED

    def refusal(self, mode: Mode) -> str:
        """Why the process cannot be monitored in a mode; empty: it can. May be called in any thread."""
        if mode is not Mode.STOPPED or self.on:
            return ""
        try:
            with self.held():
                return ""
        except TargetError as error:
            return str(error)
