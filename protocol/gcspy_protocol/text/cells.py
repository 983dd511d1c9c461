"""Texts in tables for spreadsheets: a text that a spreadsheet would take for a formula is made harmless.

A name in a session is a stranger's. A spreadsheet runs a cell of a CSV file as a formula when it begins with
one of a few characters, whether or not it stands in quotation marks. An apostrophe before it makes it a text.

Knows cells; does not know files.
"""

from __future__ import annotations

import re

__all__ = ["cell_text", "table_cell"]

_FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")
r"""What begins a formula (OWASP, "CSV Injection", 2024), behind any apostrophes: so each text has one cell, and each cell
one text. In some languages the wide signs begin one, too."""

_NUMBER = re.compile(r"[+-]?[0-9][0-9,]*(\.[0-9]+)?( ?%)?")
"""A number as people read it: it is none the less a number for its sign."""


def table_cell(value: object) -> object:
    """What is written into a cell: a text that begins like a formula has an apostrophe before it.

    Args:
        value: A text, or anything else, which stays as it is. A text that is a number, such as ``-12``, stays, too.
    """
    if not isinstance(value, str) or not _FORMULA.match(value) or _NUMBER.fullmatch(value):
        return value
    return "'" + value


def cell_text(cell: str) -> str:
    """The text that a cell was written of."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
