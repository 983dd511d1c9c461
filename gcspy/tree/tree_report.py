"""The report on a tree of processes, as text and as JSON; knows what was seen, not how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gcspy_protocol.details import Cell, ColumnKind, DetailColumn, DetailTable

from gcspy.output.detail_text import print_table
from gcspy.output.memory_text import print_later, report_as_json
from gcspy.output.terminal import say
from gcspy.tree.tree_question import Explained, WatchedProcess
from gcspy_client.model.text import duration, size_in_words

__all__ = ["print_explained", "print_watched", "tree_as_json", "verdict"]


def print_watched(watched: Sequence[WatchedProcess], secs: float, most: int) -> None:
    """Print a table of the processes, and a sentence about those that grow."""
    say(verdict(watched, secs))
    say("")
    cells: list[tuple[Cell, ...]] = [_row(one) for one in watched]
    columns = (
        DetailColumn(name="Process", kind=ColumnKind.TEXT),
        DetailColumn(name="Growth", kind=ColumnKind.TEXT),
        DetailColumn(name="Resident", kind=ColumnKind.BYTES),
        DetailColumn(name="Private", kind=ColumnKind.BYTES),
        DetailColumn(name="Grew", kind=ColumnKind.BYTES),
        DetailColumn(name="Grew a minute", kind=ColumnKind.BYTES),
    )
    print_table(
        DetailTable(columns=columns, rows=tuple(cells[:most]), rest=max(0, len(cells) - most)),
        rounded=True,
    )
    memory = _memory(watched)
    if memory is not None:
        say(
            f"The tree takes {size_in_words(memory)}: pages that several processes share count once."
        )


def verdict(watched: Sequence[WatchedProcess], secs: float) -> str:
    """Return a sentence: which processes grow."""
    growing = [one for one in watched if one.grows]
    alive = sum(not one.ended for one in watched)
    turnover = [
        f"{count:,} {word}"
        for count, word in (
            (sum(one.came for one in watched), "came"),
            (sum(one.ended for one in watched), "ended"),
        )
        if count
    ]
    text = f"{alive:,} processes" if alive != 1 else "1 process"
    if turnover:
        text += f" ({', '.join(turnover)})"
    if not secs:
        return f"{text}, one sample."
    if not growing:
        return f"{text}, none of them grew in {duration(round(secs * 1e9))}."
    named = ", ".join(f"{one.process.name} {one.process.pid}" for one in growing)
    return f"{text}, {len(growing):,} of them grew in {duration(round(secs * 1e9))}: {named}."


def print_explained(found: Explained) -> None:
    """Print why one process grows."""
    say("")
    if found.first is not None and found.later is not None:
        say(f"Process {found.pid}")
        print_later(found.later, found.first)
    else:
        say(f"Process {found.pid}: {found.problem or 'it has not been examined twice'}")


def tree_as_json(
    root: int, watched: Sequence[WatchedProcess], explained: Sequence[Explained]
) -> dict[str, Any]:
    """Return the report for one JSON object; sizes in bytes, unknown is null."""
    return {
        "pid": root,
        "memory": _memory(watched),
        "processes": [
            {
                "pid": one.process.pid,
                "parent": one.process.parent,
                "name": one.process.name,
                "growth": one.growth.state.name.lower(),
                "resident": one.process.resident,
                "private": None if one.apart is None else one.apart[0],
                "share_of_shared": None if one.apart is None else one.apart[1],
                "grew": one.growth.grew,
                "bytes_per_minute": one.growth.bytes_per_minute,
                "came": one.came,
                "ended": one.ended,
            }
            for one in watched
        ],
        "explained": [
            {
                "pid": one.pid,
                "problem": one.problem,
                **({} if one.first is None else report_as_json(one.first, one.later)),
            }
            for one in explained
        ],
    }


def _row(one: WatchedProcess) -> tuple[Cell, ...]:
    state = "ended" if one.ended else one.growth.state.name.lower()
    return (
        f"{one.process.name} {one.process.pid}",
        f"{state}, new" if one.came else state,
        one.process.resident,
        None if one.apart is None else one.apart[0],
        one.growth.grew,
        one.growth.bytes_per_minute,
    )


def _memory(watched: Sequence[WatchedProcess]) -> int | None:
    """Private bytes and shares of all that run; None: of one it is not known."""
    total = 0
    for one in watched:
        if one.ended:
            continue
        if one.apart is None:
            return None
        total += sum(one.apart)
    return total
