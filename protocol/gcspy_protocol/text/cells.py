"""Texts in tables for spreadsheets: a text that a spreadsheet would run as a formula is made harmless.

A name in a session comes from a stranger. A spreadsheet runs a cell of a CSV file as a formula if
it begins with one of a few characters, with or without quotation marks. An apostrophe before it
makes it a text.

Knows cells; does not know files.
"""

from __future__ import annotations

import re

__all__ = ["cell_text", "table_cell"]

_FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")
r"""First characters of a formula (OWASP, "CSV Injection", 2024), after any apostrophes, so that
cells and texts correspond one to one. In some languages the wide signs begin one, too."""

_NUMBER = re.compile(r"[+-]?[0-9][0-9,]*(\.[0-9]+)?( ?%)?")
"""A number as people write it; a sign does not make it a formula."""


def table_cell(value: object) -> object:
    """The content of a cell: a text that begins like a formula gets an apostrophe in front.

    Args:
        value: A text, or anything else, which is unchanged. A text that is a number, such as
            ``-12``, is unchanged, too.
    """
    if not isinstance(value, str) or not _FORMULA.match(value) or _NUMBER.fullmatch(value):
        return value
    return "'" + value


def cell_text(cell: str) -> str:
    """The original text of a cell."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
