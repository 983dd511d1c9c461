"""`rows_as_text`: rows of a table for the clipboard, with tabs or as CSV.

Knows texts; does not know what they are about.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from gcspy_protocol.text.cells import table_cell
from gcspy_protocol.text.visible import visible

__all__ = ["rows_as_text"]


def rows_as_text(rows: Iterable[Sequence[str]], *, comma: bool = False) -> str:
    """Return a line for each row, whatever stands in it: with tabs, or as CSV.

    A text that a spreadsheet would run gets an apostrophe, as both are pasted into them (`table_cell`).
    """
    lines = [[str(table_cell(visible(text))) for text in row] for row in rows]
    if not comma:
        return "\n".join("\t".join(line) for line in lines)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()
