"""The data of a tile as text: to be copied into a letter or a bug report, and for its tooltip.

Knows the session; does not know clipboards.
"""

from __future__ import annotations

from gcspy_protocol.details import ColumnKind, DetailTable
from gcspy_protocol.interpreter import SpaceState
from gcspy_protocol.messages import Event
from gcspy_protocol.model import Control
from gcspy_protocol.text.rest import rest_words
from gcspy_protocol.text.visible import Lines

from gcspy_client.model.session import ClientSession, summary_is_stale, tile_rows, tile_title
from gcspy_client.model.text import short_number, summary_text
from gcspy_client.model.tile_source import TileSource

__all__ = ["tile_text", "tile_tip", "types_line"]

_TYPES_TOLD = 4


def tile_tip(
    space: SpaceState, tile: int, source: TileSource, event: Event | None, together: int = 1
) -> str:
    """A tile in a few lines: name, the value of each stream, and the displayed value of its neighbours.

    Args:
        space: The space.
        tile: Its number now.
        source: The displayed numbers.
        event: The displayed event.
        together: How many tiles share its place in the picture.
    """
    lines = [tile_title(space, tile)]
    if together > 1:
        lines[0] += f" and {together - 1:,} more in this pixel"
    lines += [
        f"{row.name}: {row.text}" + ("" if row.fresh else " (stale)")
        for row in tile_rows(space, tile, event)
    ]
    beside = [
        f"{side} {_brief(space, number, source)}"
        for side, number in (("before", tile - 1), ("after", tile + 1))
        if 0 <= number < space.count
    ]
    if beside:
        lines.append(f"Neighbours: {', '.join(beside)}")
    return Lines(*lines)


def types_line(table: DetailTable) -> str:
    """The most important types of a tile in one line: how many objects, and their bytes.

    Args:
        table: The answer to a question about types: a name first, then numbers.
    """
    if not table.rows:
        return f"Types: {table.note or 'none'}"
    kinds = [column.kind for column in table.columns]
    number = kinds.index(ColumnKind.NUMBER) if ColumnKind.NUMBER in kinds else None
    size = kinds.index(ColumnKind.BYTES) if ColumnKind.BYTES in kinds else None
    told = []
    for row in table.rows[:_TYPES_TOLD]:
        words = str(row[0])
        if number is not None and isinstance(count := row[number], int):
            words += f" × {count:,}"
        if size is not None and isinstance(taken := row[size], int):
            words += f" ({short_number(taken, 1024)}B)"
        told.append(words)
    rest = len(table.rows) - len(told) + table.rest
    if rest:
        told.append(rest_words(rest))
    return f"Types: {', '.join(told)}"


def _brief(space: SpaceState, tile: int, source: TileSource) -> str:
    if int(space.control.values[tile]) & Control.USED:
        return source.short(space, tile)
    return space.space.unused_text


def tile_text(session: ClientSession, space_id: int, tile: int) -> str:
    """Target, event, space, tile, and each stream's value, one line each.

    Args:
        session: The displayed state.
        space_id: Of the space.
        tile: Its number now.
    """
    shown = session.interpreter
    space, event, welcome = shown.spaces[space_id], shown.last_event, session.live.welcome
    heads = [("Target", "unknown" if welcome is None else welcome.server)]
    if event is not None:
        number = f"event {session.number:,}, " if session.number else ""
        heads.append(("Event", f"{number}{shown.event_name(event.event)} #{event.occurrence:,}"))
    heads.append(("Space", f"{space.space.name}, {space.count:,} tiles"))
    heads.append(("Tile", f"{tile:,}: {tile_title(space, tile)}"))
    rows = [
        (row.name, row.text + ("" if row.fresh else "  (stale: gathered at an earlier event)"))
        for row in tile_rows(space, tile, event)
    ]
    wholes = []
    for stream in (
        space.streams[row.stream] for row in tile_rows(space, tile, event) if row.stream >= 0
    ):
        fresh = stream.summary is not None and (
            event is None or not summary_is_stale(stream, event)
        )
        wholes.append(
            (
                stream.schema.name,
                summary_text(stream.schema, stream.summary) + ("" if fresh else "  (stale)"),
            )
        )
    wide = max(len(name) for name, _text in (*heads, *rows, *wholes))
    lines = [f"{name:<{wide}}  {text}" for name, text in heads]
    lines += ["", *(f"{name:<{wide}}  {text}" for name, text in rows)]
    lines += ["", "Whole space", *(f"{name:<{wide}}  {text}" for name, text in wholes)]
    return "\n".join(lines) + "\n"
