"""Guides mutations by coverage: an input that reaches a new edge between two lines of ours is kept and mutated in turn.

An input breaks the rules when it raises an error that is not ours, makes the process take much
memory, or runs more lines than its length allows. Lines are counted, not seconds, so that a run
with a seed repeats itself on any machine. C code is not counted: decompressors are bounded by tests
of their own.

Why not atheris? It would be ten times as fast, and is one more thing to install; this needs nothing.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from gcspy_protocol.errors import GCspyError

from tests.house.rooms import ROOT

if TYPE_CHECKING:
    from _typeshed import TraceFunction

__all__ = ["Broken", "Fuzzer", "Outcome", "load", "shortest", "watch"]

_OURS = tuple(
    str(ROOT / folder) + "/"
    for folder in (
        "protocol",
        "replay",
        "objects",
        "original",
        "drivers",
        "gcspy_client",
        "gcspy_server",
    )
)
_FREE_LINES = 300_000
_LINES_A_BYTE = 3_000
"""A run may execute this many lines of ours for each byte of its input, plus a fixed number."""

_MOST_MEMORY = 256 << 10
"""KiB by which the largest memory of the process may grow with one input."""

_LONGEST = 1 << 16
_INTERESTING = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, (1 << 63) - 1)

Edge = tuple[CodeType, int, int]


class Broken(Exception):
    """An input broke a rule.

    Attributes:
        data: The input.
    """

    def __init__(self, what: str, data: bytes) -> None:
        super().__init__(f"{what} (an input of {len(data)} bytes: {data[:80].hex()})")
        self.data = data


@dataclass(slots=True)
class Outcome:
    """Effect of an input.

    Attributes:
        edges: Pairs of lines that followed each other, by function.
        lines: How many lines of the project ran.
        refused: Whether it ended in one of the project's errors.
    """

    edges: set[Edge] = field(default_factory=set)
    lines: int = 0
    refused: bool = False


class _TooMuch(BaseException):
    """An input ran too many lines; no `except` of ours catches it."""


def watch(run: Callable[[bytes], object], data: bytes) -> Outcome:
    """Run an input and note what it reaches.

    Raises:
        Broken: It broke a rule.
    """
    outcome = Outcome()
    edges, most = outcome.edges, _FREE_LINES + _LINES_A_BYTE * len(data)

    def local(before: int) -> TraceFunction:
        last = before

        def trace(frame: FrameType, event: str, argument: Any) -> TraceFunction:
            nonlocal last
            if event == "line":
                outcome.lines += 1
                if outcome.lines > most:
                    raise _TooMuch
                edges.add((frame.f_code, last, frame.f_lineno))
                last = frame.f_lineno
            return trace

        return trace

    def called(frame: FrameType, event: str, argument: Any) -> TraceFunction | None:
        return local(0) if frame.f_code.co_filename.startswith(_OURS) else None

    before, peak = sys.gettrace(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.settrace(called)
    try:
        run(data)
    except GCspyError:
        outcome.refused = True
    except _TooMuch:
        raise Broken(f"more than {most} lines ran", data) from None
    except Exception as error:
        raise Broken(f"{type(error).__name__}: {error}", data) from error
    finally:
        sys.settrace(before)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    if grown > _MOST_MEMORY:
        raise Broken(f"{grown >> 10} MB more memory", data)
    return outcome


class Fuzzer:
    """Mutates inputs of one decoder.

    Args:
        run: The decoder.
        seeds: Inputs to begin with.
        seed: Of all choices.

    Attributes:
        kept: Inputs, each of which reached something new when it was tried.
        edges: All that was reached.
        executions: Inputs that were tried.
        seconds: Processor time that they took.
    """

    def __init__(self, run: Callable[[bytes], object], seeds: Iterable[bytes], seed: int) -> None:
        self._run, self._chance = run, random.Random(seed)
        self.kept: list[bytes] = []
        self.edges: set[Edge] = set()
        self.executions = 0
        self.seconds = 0.0
        for one in sorted(set(seeds), key=lambda data: (len(data), data)):
            self.attempt(one)
        if not self.kept:
            self.kept.append(b"")

    def attempt(self, data: bytes) -> bool:
        """Try an input; whether it is kept.

        Raises:
            Broken: It broke a rule.
        """
        begun = time.process_time()
        self.executions += 1
        try:
            outcome = watch(self._run, data)
        finally:
            self.seconds += time.process_time() - begun
        new = not outcome.edges <= self.edges
        if new:
            self.edges |= outcome.edges
            self.kept.append(data)
        return new

    def step(self) -> None:
        """Try a mutation of an input that was kept.

        Raises:
            Broken: It broke a rule.
        """
        data = bytearray(self._chance.choice(self.kept))
        for _ in range(self._chance.choice((1, 1, 2, 3, 8))):
            self._mutate(data)
        self.attempt(bytes(data[:_LONGEST]))

    def _mutate(self, data: bytearray) -> None:
        chance = self._chance
        at = chance.randrange(len(data) + 1)
        match chance.randrange(9):
            case 0 if data:
                data[at % len(data)] ^= 1 << chance.randrange(8)
            case 1 if data:
                data[at % len(data)] = chance.randrange(256)
            case 2:
                data[at:at] = chance.randbytes(chance.randint(1, 8))
            case 3:
                del data[at : at + chance.randint(1, 16)]
            case 4:
                size = chance.choice((1, 2, 4, 8))
                number = chance.choice(_INTERESTING) & ((1 << 8 * size) - 1)
                data[at : at + size] = number.to_bytes(size, "little")
            case 5:
                other = chance.choice(self.kept)
                begin = chance.randrange(len(other) + 1)
                data[at : at + chance.randrange(64)] = other[begin : begin + chance.randrange(64)]
            case 6:
                piece = data[at : at + chance.randint(1, 32)]
                data[at:at] = piece * chance.randint(1, 4)
            case 7:
                del data[at:]
            case _:
                size = chance.choice((1, 2, 4))
                number = int.from_bytes(data[at : at + size], "little")
                number += chance.choice((-1, 1, -16, 16))
                data[at : at + size] = (number & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def shortest(run: Callable[[bytes], object], inputs: Iterable[bytes]) -> list[bytes]:
    """The inputs, shortest first, that reach all that any of them does."""
    reached: set[Edge] = set()
    needed: list[bytes] = []
    for data in sorted(set(inputs), key=lambda one: (len(one), one)):
        edges = watch(run, data).edges
        if not edges <= reached:
            reached |= edges
            needed.append(data)
    return needed


def load(folder: Path) -> list[bytes]:
    """The inputs that are kept in a folder."""
    return [path.read_bytes() for path in sorted(folder.glob("*")) if path.is_file()]
