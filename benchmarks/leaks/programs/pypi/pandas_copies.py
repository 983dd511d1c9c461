r"""A pipeline that keeps a copy of its frame after each step, to be able to undo it.

Cause: copies of a DataFrame are kept in a list; their columns are numpy buffers
Holder: __main__\.PIPELINE\.undo
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.leaks.pace import growing


class Pipeline:
    """Steps on a frame, each of which can be undone."""

    def __init__(self) -> None:
        numbers = np.arange(120_000, dtype=np.float64).reshape(20_000, 6)
        self.frame = pd.DataFrame(numbers, columns=list("abcdef"))
        self.undo: list[pd.DataFrame] = []

    def scale(self, factor: float) -> None:
        """Multiply a column."""
        self.undo.append(self.frame.copy())
        self.frame["a"] = self.frame["a"] * factor


PIPELINE = Pipeline()


def main() -> None:
    """Take steps that nobody undoes."""
    for step in growing():
        PIPELINE.scale(1 + step % 3)


if __name__ == "__main__":
    main()
