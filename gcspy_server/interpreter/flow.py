"""Control flow: running, about to pause, paused, ended; and how the driver's thread is held (paper section 5.2).

    RUNNING ──pause──▶ PAUSING ──after the next transmission──▶ PAUSED ──resume──▶ RUNNING
                          ▲                                        │
                          └───────────────── step ─────────────────┘

A target is held only while there is a controller: otherwise nobody could release it. A held thread
does not wait for a fixed time: it waits while the session's loop shows signs of life, and continues
when they stop. Knows clocks and one condition; does not know clients or data.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from gcspy_protocol.messages import State
from gcspy_protocol.model import ControlState, EventFilter

__all__ = ["Flow"]

_NANOS = 1_000_000_000
_LOOK_SECS = 0.5
"""How often a held thread checks whether the session's loop is still alive."""


class Flow:
    """The state of the control flow, shared by the driver's thread and the session's.

    Args:
        post: Sends a new state to every client, in order.
        longest_hold_secs: Longest single stop; None: unlimited.
        silence_secs: The session's loop counts as dead when it has not pulsed for this long.

    Attributes:
        moves: How often the state was to change.
    """

    def __init__(
        self,
        post: Callable[[State], None],
        *,
        longest_hold_secs: float | None,
        silence_secs: float = 5.0,
    ) -> None:
        self._post = post
        self._longest_hold = None if longest_hold_secs is None else int(longest_hold_secs * _NANOS)
        self._silence = int(silence_secs * _NANOS)
        self._changed = threading.Condition(threading.Lock())
        self._state = State(state=ControlState.RUNNING)
        self._controlled = self._waits = False
        self._pulse_nanos = 0
        self._resumes = 0
        self._held = False
        self._let_go: Callable[[], str] = str
        self._notice = ""
        self._slowed_nanos = 0
        self.moves = 0

    def wait_for_leaders(self) -> None:
        """Hold also while there is no controller: of a simulation, which nobody misses while it stands."""
        self._controlled = self._waits = True

    def let_go_when(self, why: Callable[[], str]) -> None:
        """Add a function that is called while the driver's thread is held: once it returns a reason, nothing is held any more."""
        self._let_go = why

    @property
    def held(self) -> bool:
        """Whether the driver's thread is held now, by a delay or a pause."""
        return self._held

    @property
    def state(self) -> State:
        """The current state, with its reason, or with the current notice."""
        return self._told()

    @property
    def pausing(self) -> bool:
        """Whether the target is held after the next transmission; such a transmission must not be left out."""
        return self._state.state is ControlState.PAUSING

    @property
    def ended(self) -> bool:
        """Whether the target is gone."""
        return self._state.state is ControlState.ENDED

    @property
    def silent(self) -> bool:
        """Whether the session's loop has shown no sign of life for too long."""
        return time.monotonic_ns() - self._pulse_nanos > self._silence

    def must_let_go(self) -> bool:
        """Whether nothing may be held any more: the target is gone, the loop is silent, or an added function has a reason."""
        return self.ended or self.silent or bool(self._let_go())

    def tell(self, notice: str) -> None:
        """Send every client, as the reason of the state, why the next event does not come; empty: the problem is over."""
        with self._changed:
            self._notice = notice
            if not self.ended:
                self._post(self._told())

    def slow(self, period_nanos: int) -> None:
        """Tell every client how long the clock waits between two ticks while nothing changes; 0: it has its full rate."""
        with self._changed:
            self._slowed_nanos = period_nanos
            if self._state.state is ControlState.RUNNING:
                self._post(self._told())

    def _told(self) -> State:
        if self._notice and not self.ended:
            return State(state=self._state.state, reason=self._notice)
        if self._slowed_nanos and self._state.state is ControlState.RUNNING:
            period = f"{self._slowed_nanos / _NANOS:g} s"
            return State(
                state=ControlState.RUNNING,
                reason=f"nothing changes: read every {period}",
                slowed_nanos=self._slowed_nanos,
            )
        return self._state

    def pulse(self) -> None:
        """Note that the session's loop is alive."""
        self._pulse_nanos = time.monotonic_ns()

    def set_controlled(self, controlled: bool, *, reason: str = "") -> None:
        """Set whether there is a controller; without one every hold ends at once, unless it waits for leaders."""
        if self._waits:
            return
        with self._changed:
            self._controlled = controlled
            if not controlled:
                self._move(
                    (ControlState.PAUSING, ControlState.PAUSED), ControlState.RUNNING, reason
                )
                self._changed.notify_all()

    def pause(self, reason: str = "") -> None:
        """Pause after the next transmission."""
        with self._changed:
            self._move((ControlState.RUNNING,), ControlState.PAUSING, reason)

    def resume(self, reason: str = "") -> None:
        """Continue; this also ends a delay."""
        with self._changed:
            self._resumes += 1
            self._changed.notify_all()
            self._move((ControlState.PAUSING, ControlState.PAUSED), ControlState.RUNNING, reason)

    def step(self) -> None:
        """Continue until after the next transmission."""
        with self._changed:
            self._move((ControlState.RUNNING, ControlState.PAUSED), ControlState.PAUSING, "step")

    def end(self, reason: str, *, driver_failed: bool = False) -> None:
        """End the session: the target is gone, or the driver failed."""
        with self._changed:
            before = (ControlState.RUNNING, ControlState.PAUSING, ControlState.PAUSED)
            self._move(before, ControlState.ENDED, reason, driver_failed=driver_failed)

    def will_hold(self, event_filter: EventFilter, *, trigger: str = "") -> bool:
        """Decide, before an event is posted, whether the target is paused after it.

        Args:
            event_filter: The filter that applied.
            trigger: Why a trigger requires it; empty: none does.
        """
        with self._changed:
            return self._controlled and (self.pausing or event_filter.pause or bool(trigger))

    def hold(self, event_filter: EventFilter, *, pause: bool, trigger: str = "") -> int:
        """Hold the driver's thread after a transmission: first the delay, then the pause.

        Args:
            event_filter: The filter that applied.
            pause: The decision of `will_hold`, before the event was posted.
            trigger: Why a trigger requires the pause; empty: none does.

        Returns:
            Nanoseconds that it was held.
        """
        if not pause and not event_filter.delay_millis:
            return 0
        start = time.monotonic_ns()
        with self._changed:
            self._held = True
            try:
                self._hold(start, event_filter, pause=pause, trigger=trigger)
            finally:  # also when a Ctrl-C ends the waiting
                self._held = False
        return time.monotonic_ns() - start

    def _hold(self, start: int, event_filter: EventFilter, *, pause: bool, trigger: str) -> None:
        self._delay(start, event_filter.delay_millis * 1_000_000)
        # Resumed during the delay: then only the event's own filter and triggers still require the
        # pause.
        if pause and self._controlled and (self.pausing or event_filter.pause or trigger):
            reason = trigger or (self._state.reason if self.pausing else "event filter")
            if self._move(
                (ControlState.RUNNING, ControlState.PAUSING), ControlState.PAUSED, reason
            ):
                self._wait_while_paused(start)

    def _delay(self, start: int, delay_nanos: int) -> None:
        if self._longest_hold is not None:
            delay_nanos = min(delay_nanos, self._longest_hold)
        resumes = self._resumes
        while self._controlled and not self.ended and self._resumes == resumes:
            left = start + delay_nanos - time.monotonic_ns()
            if left <= 0:
                return
            self._changed.wait(min(left / _NANOS, _LOOK_SECS))
            if self.silent or self._let_go():
                return

    def _wait_while_paused(self, start: int) -> None:
        while self._state.state is ControlState.PAUSED:
            left = self._silence
            if self._longest_hold is not None:
                left = start + self._longest_hold - time.monotonic_ns()
                if left <= 0:
                    reason = f"held for the maximum time allowed, {self._longest_hold / _NANOS:g} s"
                    self._move((ControlState.PAUSED,), ControlState.RUNNING, reason)
                    return
            self._changed.wait(min(left / _NANOS, _LOOK_SECS))
            if reason := self._let_go():
                self._move((ControlState.PAUSED,), ControlState.RUNNING, reason)
            elif self.silent:
                self._move(
                    (ControlState.PAUSED,),
                    ControlState.RUNNING,
                    "the server's event loop does not respond",
                )

    def _move(
        self,
        before: tuple[ControlState, ...],
        after: ControlState,
        reason: str,
        *,
        driver_failed: bool = False,
    ) -> bool:
        """Change the state, with the condition held, if the transition is allowed."""
        self.moves += 1
        if self._state.state not in before:
            return False
        self._slowed_nanos = 0
        self._state = State(state=after, reason=reason, driver_failed=driver_failed)
        self._post(self._state)
        self._changed.notify_all()
        return True
