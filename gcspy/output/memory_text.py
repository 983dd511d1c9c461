"""The report on the use and growth of memory, as text and as JSON.

Knows reports, and the sentence about growth; does not know processes.
"""

from __future__ import annotations

from typing import Any

from gcspy_protocol.details import Cell, DetailTable

from gcspy.output.detail_text import print_table, rows_as_json, without_empty_columns
from gcspy.output.terminal import say
from gcspy_client.model.growth_sentence import GrownPart, Growth, growth_sentence
from gcspy_client.model.panels.site_inquiry import with_short_paths
from gcspy_client.model.text import duration, size_in_words
from gcspy_server.api import MemoryReport

__all__ = [
    "NOTHING_GREW",
    "print_first",
    "print_later",
    "print_sites",
    "report_as_json",
    "sentence_of",
]

NOTHING_GREW = "Memory does not grow"


def print_first(report: MemoryReport, name: str) -> None:
    """Print the report of one sample.

    Args:
        report: The report.
        name: Name of the process.
    """
    say(f"{name}: resident set {size_in_words(report.resident)}")
    say("")
    say("What the memory is for")
    print_table(report.memory, rounded=True)
    say("")
    say("What holds most of it")
    print_table(report.holders, rounded=True)
    print_sites(report.sites)
    _print_note(report)


def print_later(report: MemoryReport, first: MemoryReport) -> None:
    """Print the growth since the first sample.

    Args:
        report: The growth.
        first: The report of the first sample, which has been printed.
    """
    say("")
    say(sentence_of(report) or f"{NOTHING_GREW}: {_changed(report)}.")
    if not sentence_of(report):
        _print_note(report)
        return
    say("")
    say("What grew most")
    print_table(_growing(report.memory), rounded=True)
    if report.holders.rows:
        say("")
        say("What holds it")
        print_table(report.holders, rounded=True)
    if report.sites.rows or report.sites.note != first.sites.note:
        print_sites(report.sites, "Allocation sites of new objects")
    _print_note(report)


def report_as_json(first: MemoryReport, later: MemoryReport | None) -> dict[str, Any]:
    """Return the reports, for one JSON object; sizes in bytes, unknown is null."""
    data: dict[str, Any] = {
        "resident": first.resident,
        "memory": rows_as_json(first.memory),
        "holders": rows_as_json(first.holders),
        "allocated": rows_as_json(first.sites),
        "owner_not_known": first.unsure,
        "note": first.note,
        "growth": None,
    }
    if later is not None:
        data["growth"] = {
            "seconds": round(later.secs, 3),
            "resident": later.resident,
            "grew": later.grew,
            "owner_not_known_grew": later.unsure_grew,
            "sentence": sentence_of(later),
            "memory": rows_as_json(later.memory),
            "holders": rows_as_json(later.holders),
            "allocated": rows_as_json(later.sites),
            "note": later.note,
        }
    return data


def sentence_of(report: MemoryReport) -> str:
    """Return why memory grew, in a sentence; empty: nothing grew."""
    return growth_sentence(
        Growth(
            secs=report.secs,
            resident=report.resident,
            grew=report.grew or 0,
            parts=_parts(report.memory),
            holders=_parts(report.holders),
            unsure=report.unsure_grew,
        )
    )


def _parts(table: DetailTable) -> list[GrownPart]:
    """Return the rows of a table with their growth, and the sum of those left out, which has no name."""
    names = [column.name for column in table.columns]
    at = names.index("Grew")
    count = names.index("Objects")
    parts = [
        GrownPart(str(row[0]), _number(row[at]), of_objects=row[count] is not None)
        for row in table.rows
    ]
    if table.rest_cells:
        parts.append(GrownPart("", _number(table.rest_cells[at])))
    return parts


def _growing(table: DetailTable) -> DetailTable:
    """Return a table without the rows that did not grow."""
    at = [column.name for column in table.columns].index("Grew")
    rows = tuple(row for row in table.rows if _number(row[at]) > 0)
    return DetailTable(columns=table.columns, rows=rows)


def _changed(report: MemoryReport) -> str:
    grew = report.grew or 0
    sign = "+" if grew > 0 else "-" if grew < 0 else ""
    return f"{sign}{size_in_words(abs(grew))} of {size_in_words(report.resident)} in {duration(int(report.secs * 1e9))}"


def print_sites(sites: DetailTable, title: str = "Allocation sites") -> None:
    """Print allocation sites, or why these are not known.

    Args:
        sites: The sites; in their note, why there are none.
        title: Of which objects.
    """
    say("")
    if sites.rows:
        say(title)
        print_table(with_short_paths(without_empty_columns(sites)), rounded=True)
    else:
        say(f"Allocation sites are not known: {sites.note}")


def _print_note(report: MemoryReport) -> None:
    if report.note:
        say("")
        say(report.note)


def _number(cell: Cell) -> int:
    return cell if isinstance(cell, int) else 0
