"""A thread that plans counters anew while the program runs: soon after the start, then less and less often, within a share of the time."""

from __future__ import annotations

import threading
import time

from gcspy_counting.program import CountedProgram, Replanned

__all__ = ["Planner"]

_FIRST_SECS = 0.5
_FACTOR = 2.5
_LARGEST_SHARE = 0.03
"""Maximum share of the program's time that planning may take."""


class Planner:
    """Plans anew until it is stopped.

    Args:
        program: The program's counters.

    Attributes:
        history: What each planning changed; those that changed nothing are left out.
    """

    def __init__(self, program: CountedProgram) -> None:
        self._program = program
        self._stopped = threading.Event()
        self.history: list[Replanned] = []
        self._thread = threading.Thread(target=self._run, name="gcspy-planner", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; returns when no planning is under way."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        begin = time.perf_counter()
        wait = _FIRST_SECS
        spent = 0.0
        while not self._stopped.wait(wait):
            if spent <= _LARGEST_SHARE * (time.perf_counter() - begin):
                done = self._program.replan()
                spent += done.seconds
                if done.code_objects:
                    self.history.append(done)
            wait *= _FACTOR
