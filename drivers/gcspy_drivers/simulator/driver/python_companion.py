"""A real Python beside a simulated collector: the same program with real objects, in a process of its own, which keeps step by allocated bytes.

The process (`programs.python_process`) is asked at each step of the simulation; its answers are checked, and shown as a space of the session. So a lesson, a recording, a page
or a class sees the collector of CPython beside the simulated one.

Knows a process, lines of numbers and a space; does not know the session.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from typing import IO, Final

from gcspy_protocol.errors import LocalProtocolError

from gcspy_drivers.simulator.driver.options import SimulationOptions
from gcspy_drivers.simulator.driver.other_spaces import GenerationSpace
from gcspy_drivers.simulator.facts import Generations
from gcspy_drivers.simulator.heap import WORD_BYTES
from gcspy_drivers.simulator.plan import Plan
from gcspy_server.api import GatherRequest, Server

__all__ = ["PYTHON", "PythonCompanion"]

PYTHON: Final = "python"
"""What stands in the place of a second collector."""
_PATIENCE_SECS: Final = 30.0
_MOST_ANSWER_BYTES: Final = 1 << 16
_MODULE: Final = "gcspy_drivers.simulator.programs.python_process"
_NAMES: Final = ("generation 0", "generation 1", "generation 2")
_NUMBERS: Final = 16
"""Three each of objects, counts, thresholds, collections and objects collected; and other containers."""


class PythonCompanion:
    """A real Python that runs the program of a simulation.

    Args:
        options: Options of the simulation.
        roots: Root slots.
        server: Whose space it gets.
        plan: The simulated collector, whose thresholds it gets if they are CPython's.

    Attributes:
        over: Why the program or the process ended; empty: it has not.

    Raises:
        LocalProtocolError: The program has threads.
    """

    def __init__(
        self, options: SimulationOptions, *, roots: int, server: Server, plan: Plan
    ) -> None:
        if options.threads != 1:
            raise LocalProtocolError(
                f"a program with {options.threads} threads cannot run beside Python: use one thread"
            )
        generations = plan.generations()
        self.over = ""
        self._knobs: dict[str, int | str] = {}
        self._sent = self._wanted = 0
        self._last: Generations | None = None
        self._partial = b""
        self.names = generations.names if generations else _NAMES
        self._space = GenerationSpace(
            server,
            plan,
            prefix="Real Python: ",
            source=lambda: self._last,
            names=self.names,
        )
        self._process = subprocess.Popen(
            [sys.executable, "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._send(
            json.dumps(
                {
                    "heap_bytes": options.heap_bytes,
                    "slots": roots,
                    "seed": options.seed,
                    "align_words": max(1, options.align_bytes // WORD_BYTES),
                    "program": options.program,
                    "program_options": dict(options.program_options),
                    "thresholds": list(generations.thresholds) if generations else [],
                }
            )
        )

    def turn(self, name: str, value: int | str) -> None:
        """Set a knob of its program as the first one's was."""
        if self._knobs.get(name) != value and not self.over:
            self._read_state()
            self._knobs[name] = value
            self._send(json.dumps({name: value}))

    def follow(self, allocated_words: int) -> None:
        """Note how far the simulation is: the process runs that far when it is asked for its state."""
        self._wanted = allocated_words

    def _read_state(self) -> None:
        """Run until as much was allocated as by the simulation, and read what the interpreter says then."""
        allocated_words = self._wanted
        if self.over or (allocated_words == self._sent and self._last is not None):
            return
        self._sent = allocated_words
        self._send(f"{allocated_words}")
        try:
            *found, over = self._read().split(" ", _NUMBERS)
            if len(found) != _NUMBERS:
                raise ValueError("too few numbers")
            *values, others = (int(one) for one in found)
            columns = [tuple(values[at : at + 3]) for at in range(0, len(values), 3)]
            self._last = Generations(self.names, *columns)
            self.over = over
        except (ValueError, OSError) as error:
            self.end(f"Python gave no answer: {error}")
            return
        self._space.space.info = (
            f"{others} more containers are the names and scopes that the program works with"
        )

    def gather(self, request: GatherRequest, level: int) -> None:
        """Fill its space."""
        if level >= 2 and request.wants(self._space.space):
            self._read_state()
            self._space.gather(request)

    def close(self) -> None:
        """End the process."""
        self.end(self.over or "closed")

    def end(self, why: str) -> None:
        """End the process, and say why."""
        self.over = why
        self._last = None
        self._space.space.info = why
        process = self._process
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None and not pipe.closed:
                try:
                    pipe.close()
                except OSError:
                    pass  # what was not written yet has no reader

    def _send(self, line: str) -> None:
        pipe: IO[bytes] | None = self._process.stdin
        assert pipe is not None
        try:
            if self.over:
                return
            pipe.write(line.encode() + b"\n")
            pipe.flush()
        except OSError as error:
            self.end(f"Python has ended: {error.strerror}")

    def _read(self) -> str:
        """Read a line; raise ValueError if none comes, or a strange one."""
        pipe = self._process.stdout
        assert pipe is not None
        until = time.monotonic() + _PATIENCE_SECS
        with selectors.DefaultSelector() as ready:
            ready.register(pipe, selectors.EVENT_READ)
            while b"\n" not in self._partial:
                left = until - time.monotonic()
                if left <= 0 or len(self._partial) > _MOST_ANSWER_BYTES:
                    raise ValueError("no line within 30 s, or one that is too long")
                if ready.select(left):
                    data = os.read(pipe.fileno(), 1 << 16)
                    if not data:
                        raise ValueError("it has ended")
                    self._partial += data
        line, _, self._partial = self._partial.partition(b"\n")
        return line.decode()
