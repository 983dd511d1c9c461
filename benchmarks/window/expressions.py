"""Cost of evaluating an expression on 1,000,000 tiles: all of them known, and some of them unused or unknown.

A trigger is evaluated at each event, and its time is reported as gathering.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from gcspy_protocol.expression import Evaluator, EventFacts, bind, parse
from gcspy_protocol.model import Space, Stream
from numpy.typing import NDArray

from benchmarks.harness.figures import tell

__all__ = ["main"]

_HEAP = Space(
    id=1,
    name="heap",
    streams=(
        Stream(id=0, name="Used", dtype="u4"),
        Stream(id=1, name="Size", dtype="u4"),
        Stream(id=2, name="Age", dtype="i8"),
    ),
)

_EXPRESSIONS = (
    "sum(Used)",
    "sum(Used) > 1.2 * was(sum(Used))",
    "sum(Used) / sum(Size) > 50%",
    "share(Used < 30% * Size) > 0.5",
    "count(Used > 100 and Size < 200) > 5",
    "mean(Age * Used)",
    "Used / Size",
)


class _Heap:
    """One event of a heap."""

    def __init__(self, tiles: int, *, masked: bool) -> None:
        random = np.random.default_rng(1)
        self.facts = EventFacts(event="clock", occurrence=1)
        self._values: list[NDArray[Any]] = [
            random.integers(0, 4096, tiles).astype("<u4"),
            random.integers(1, 4096, tiles).astype("<u4"),
            random.integers(-(1 << 40), 1 << 40, tiles),
        ]
        self._known = random.random(tiles) > 0.01 if masked else None
        self._used = random.random(tiles) > 0.2 if masked else None

    def is_fresh(self, _space: int, _stream: int) -> bool:
        """Whether it was gathered now."""
        return True

    def stream(self, _space: int, stream: int) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """Values, and which are known."""
        return self._values[stream], self._known

    def used(self, _space: int) -> NDArray[np.bool_] | None:
        """Which tiles are used."""
        return self._used

    def summary(self, _space: int, _stream: int) -> tuple[tuple[int, ...], int]:
        """None: it is unknown."""
        return (), 0


def _median_millis(evaluator: Evaluator, event: _Heap, times: int) -> float:
    spans = []
    for _ in range(times):
        began = time.process_time()
        evaluator.evaluate(event)
        spans.append((time.process_time() - began) * 1e3)
    return sorted(spans)[len(spans) // 2]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiles", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=15)
    options = parser.parse_args()
    print(f"{options.tiles:,} tiles; milliseconds of processor time, median of {options.times}")
    print(f"{'':45}{'all count':>12}{'some do not':>14}")
    for text in _EXPRESSIONS:
        bound = bind(parse(text), [_HEAP])
        found = [
            _median_millis(Evaluator(bound), _Heap(options.tiles, masked=masked), options.times)
            for masked in (False, True)
        ]
        print(f"{text:45}{found[0]:12.2f}{found[1]:14.2f}")
        tell(f"expression {text}", found[1], "ms")


if __name__ == "__main__":
    main()
