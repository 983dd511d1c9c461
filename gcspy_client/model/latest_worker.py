"""Runs jobs in one thread, one at a time; a job that has not begun is replaced by a later one of the same kind.

A window asks faster than answers can be worked out: a mouse passes over many tiles, a drag over many events. Only the
latest request of each kind matters.

Knows threads; does not know the purpose of the jobs, nor Qt.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from time import monotonic
from typing import Generic, TypeVar, cast

__all__ = ["LatestWorker", "Outcome"]

T = TypeVar("T")

_LEAST_REST_SECS = 0.002
"""A shorter wait only costs a switch of threads."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """The outcome of a job.

    Attributes:
        value: Its result; None if it failed.
        failure: Its exception; None if it succeeded.
    """

    value: T | None
    failure: Exception | None = None

    def result(self) -> T:
        """Return the job's result.

        Raises:
            Exception: The job's exception.
        """
        if self.failure is not None:
            raise self.failure
        return cast(T, self.value)


class LatestWorker(Generic[T]):
    """A thread that runs the latest job of each kind; it starts with the first job and ends with `stop`.

    Args:
        name: Name of the thread.
        notify: Called in the thread after each job; never after `stop`. It must not raise.
        rest_share: Of the time that a job took, the thread rests this share before the next one, so that
            requests in quick succession do not use a whole processor.
        most_rest_secs: The longest rest.
        at_end: Called once after the last job, in the thread, or by `stop` if there was no job:
            closes the resources of the jobs.
    """

    def __init__(
        self,
        name: str,
        notify: Callable[[], None],
        *,
        rest_share: float = 0.0,
        most_rest_secs: float = 0.0,
        at_end: Callable[[], None] | None = None,
    ) -> None:
        self._name, self._notify, self._at_end = name, notify, at_end
        self._rest_share, self._most_rest_secs = rest_share, most_rest_secs
        self._gate = threading.Condition()
        self._ordered: dict[Hashable, Callable[[], T]] = {}  # run before the others
        self._waiting: dict[Hashable, Callable[[], T]] = {}
        self._outcomes: dict[Hashable, Outcome[T]] = {}
        self._busy = self._stopped = False
        self._thread: threading.Thread | None = None

    def submit(self, job: Callable[[], T], *, kind: Hashable = None) -> None:
        """Run a job soon, instead of one of the same kind that has not begun; it keeps that one's turn."""
        with self._gate:
            if not self._stopped:
                self._waiting[kind] = job
                self._wake()

    def submit_ordered(self, job: Callable[[], T]) -> None:
        """Run a job that no other replaces: in the order of submission, before all jobs of `submit`."""
        with self._gate:
            if not self._stopped:
                self._ordered[object()] = job
                self._wake()

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._gate.notify_all()

    @property
    def idle(self) -> bool:
        """Whether no job is waiting or running."""
        with self._gate:
            return self._is_idle()

    def take(self, kind: Hashable = None) -> Outcome[T] | None:
        """Remove and return the latest outcome of a kind; None: there is none since the last call."""
        with self._gate:
            return self._outcomes.pop(kind, None)

    def take_all(self) -> list[Outcome[T]]:
        """Remove and return the latest outcome of each kind."""
        with self._gate:
            outcomes, self._outcomes = self._outcomes, {}
        return list(outcomes.values())

    def forget(self, kind: Hashable = None) -> None:
        """Drop the job of a kind that has not begun, and its outcome."""
        with self._gate:
            self._waiting.pop(kind, None)
            self._outcomes.pop(kind, None)
            self._gate.notify_all()

    def settle(self, timeout_secs: float) -> bool:
        """Wait until no job is waiting or running; return whether that is so."""
        with self._gate:
            return self._gate.wait_for(self._is_idle, timeout_secs)

    def stop(self) -> None:
        """Begin no further job; the thread ends after the job that it is running. `join` waits for that."""
        with self._gate:
            first, self._stopped = not self._stopped, True
            self._ordered.clear()
            self._waiting.clear()
            self._outcomes.clear()
            self._gate.notify_all()
            thread = self._thread
        if first and thread is None and self._at_end is not None:
            self._at_end()

    def join(self, timeout_secs: float | None = None) -> None:
        """Wait until the thread has ended, at most so long; `stop` comes first."""
        if self._thread is not None:
            self._thread.join(timeout_secs)

    # ------------------------------------------------------------------ called in the thread

    def _is_idle(self) -> bool:
        return not (self._busy or self._ordered or self._waiting)

    def _run(self) -> None:
        goes_on = True
        while goes_on:
            kind, job = self._next()
            goes_on = job is not None and self._run_job(kind, job)
        if self._at_end is not None:
            self._at_end()

    def _next(self) -> tuple[Hashable, Callable[[], T] | None]:
        """Wait for a job; None: the worker was stopped."""
        with self._gate:
            self._gate.wait_for(lambda: self._stopped or not self._is_idle())
            if self._stopped:
                return None, None
            jobs = self._ordered or self._waiting
            kind, job = next(iter(jobs.items()))
            del jobs[kind]
            self._busy = True
            return kind, job

    def _run_job(self, kind: Hashable, job: Callable[[], T]) -> bool:
        """Run a job, then rest; return whether to go on."""
        begun = monotonic()
        outcome: Outcome[T]
        try:
            outcome = Outcome(job())
        except Exception as error:  # noqa: BLE001  # the receiver of the outcome handles it
            outcome = Outcome(None, error)
        with self._gate:
            self._busy = False
            self._gate.notify_all()
            if self._stopped:
                return False
            self._outcomes[kind] = outcome
            self._notify()
            rest_secs = min(self._most_rest_secs, self._rest_share * (monotonic() - begun))
            if rest_secs > _LEAST_REST_SECS:
                self._gate.wait_for(lambda: self._stopped, rest_secs)
        return True
