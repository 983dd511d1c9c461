"""Two simulations of the same program and seed on one clock of allocated bytes: one leads, the other follows it.

The follower never does a step of the program that the leader has not done, and has caught up at each event of the leader's clock. A pause, a step and a setting of the leader apply to both: the
follower applies a setting before the same step of the program, so that the programs stay the same.

Knows bytes, steps and names of settings; does not know collectors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Lockstep"]

_LOOK_SECS = 0.2


@dataclass(frozen=True, slots=True)
class _Choice:
    """A setting that the leader took before its step of this number."""

    step: int
    name: str
    value: int


class Lockstep:
    """Shared state of two simulations that run in two threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._asked = self._reached = 0
        self._led = self._followed = True
        self._choices: list[_Choice] = []

    def lead(self, allocated: int, stopped: Callable[[], bool]) -> None:
        """Report the leader's position, and wait until the follower has reached it or has ended."""
        with self._changed:
            self._asked = allocated
            self._changed.notify_all()
            while self._followed and self._reached < allocated and not stopped():
                self._changed.wait(_LOOK_SECS)

    def follow(self, allocated: int, stopped: Callable[[], bool]) -> None:
        """Report the follower's position, and wait until the leader goes further or has ended."""
        with self._changed:
            self._reached = allocated
            self._changed.notify_all()
            while self._led and allocated >= self._asked and not stopped():
                self._changed.wait(_LOOK_SECS)

    def choose(self, step: int, name: str, value: int) -> None:
        """Report a setting that the leader applies before its step of this number."""
        with self._changed:
            self._choices.append(_Choice(step, name, value))

    def due(self, step: int) -> list[tuple[str, int]]:
        """Return the settings that the follower must apply before its step of this number, and forget them."""
        with self._changed:
            found = [(one.name, one.value) for one in self._choices if one.step <= step]
            self._choices = [one for one in self._choices if one.step > step]
            return found

    def end(self, *, leader: bool) -> None:
        """Report that one of the two has ended, so that the other waits for it no longer."""
        with self._changed:
            if leader:
                self._led = False
            else:
                self._followed = False
            self._changed.notify_all()
