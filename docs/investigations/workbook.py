"""A service that reads a workbook and keeps a few prices of it: openpyxl.

    python workbook.py ROWS [read-only]

Makes a workbook with a number of rows, reads it, and keeps one price in forty. With ``read-only``
it reads as openpyxl advises for large workbooks. Waits for a line before it begins and before it
ends; at the end it prints its own figures of its memory.
"""

import gc
import random
import sys
import tempfile
from pathlib import Path

import openpyxl
from own_figures import tell

_KEPT_EVERY = 40
_COLUMNS = 8


def make(path: Path, rows: int) -> None:
    """Write a workbook of prices."""
    random.seed(1)
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    for row in range(rows):
        sheet.append(
            [f"article {row % 997}", *(random.random() * 100 for _ in range(_COLUMNS - 1))]
        )
    book.save(path)


def prices_of(path: Path, *, read_only: bool) -> list[float]:
    """Read it, and return every fortieth price."""
    book = openpyxl.load_workbook(path, read_only=read_only)
    sheet = book.active
    found = [
        row[1]
        for number, row in enumerate(sheet.iter_rows(values_only=True))
        if number % _KEPT_EVERY == 0
    ]
    book.close()
    return found


def main() -> None:
    """Read, and report."""
    rows, read_only = int(sys.argv[1]), "read-only" in sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "prices.xlsx")
        make(path, rows)
        gc.collect()
        print("ready", flush=True)
        sys.stdin.readline()
        prices = prices_of(path, read_only=read_only)
    gc.collect()
    tell(kept=len(prices))
    sys.stdin.readline()


if __name__ == "__main__":
    main()
