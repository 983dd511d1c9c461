"""The frames of questions for detail and their answers (SPEC.md section 8.11).

Knows their bytes; does not know who may send them, or when.
"""

from __future__ import annotations

from typing import Any

from gcspy_protocol.details import (
    MOST_COLUMNS,
    MOST_ROWS,
    Answer,
    AnswerState,
    Cell,
    ColumnKind,
    DetailColumn,
    DetailTable,
    Query,
)
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.frames.fields import Fields, pack_map
from gcspy_protocol.frames.frame import Frame, Header, pack_frame
from gcspy_protocol.limits import Limits
from gcspy_protocol.messages import FrameType

__all__ = ["pack_details", "read_details"]

_I64 = (1 << 63) - 1
_U64 = (1 << 64) - 1
_U32 = (1 << 32) - 1


def pack_details(message: Query | Answer) -> Frame:
    """The frame of a message.

    Raises:
        LocalProtocolError: A number does not fit its field.
    """
    match message:
        case Query():
            fields: dict[str, Any] = {
                "number": message.number,
                "kind": message.kind,
                "key": message.key,
                "most": message.most,
                **({"text": message.text} if message.text else {}),
                **({"held": True} if message.held else {}),
            }
            return pack_frame(FrameType.QUERY, pack_map(fields), space=message.space)
        case Answer():
            fields = {
                "number": message.number,
                "state": message.state.value,
                "reason": message.reason,
            }
            if message.table.columns:
                fields |= _table(message.table)
            if message.done or message.total:
                fields |= {"done": message.done, "total": message.total}
            return pack_frame(
                FrameType.ANSWER, pack_map(fields), space=message.space, sequence=message.sequence
            )


def _table(table: DetailTable) -> dict[str, Any]:
    return {
        "columns": [
            {"name": one.name, "kind": one.kind.value, "about": one.about} for one in table.columns
        ],
        "rows": [list(row) for row in table.rows],
        "rest": table.rest,
        "rest_cells": list(table.rest_cells),
        "note": table.note,
    }


def read_details(header: Header, payload: bytes, limits: Limits) -> Query | Answer:
    """The message of a frame of one of these types, after decompression.

    Raises:
        RemoteProtocolError: The payload is not what its type promises.
    """
    kind = FrameType(header.type)
    what = kind.name.lower()
    fields = Fields.unpack(payload or pack_map({}), what, text_chars=limits.text_chars)
    number = fields.integer("number", 0, _U32)
    if kind is FrameType.QUERY:
        return Query(
            number=number,
            space=header.space,
            kind=fields.text("kind"),
            key=fields.optional_integer("key", 0, _U64),
            most=fields.integer("most", 1, MOST_ROWS, 100),
            text=fields.text("text", ""),
            held=fields.flag("held", False),
        )
    return Answer(
        number=number,
        space=header.space,
        sequence=header.sequence,
        state=fields.choice("state", AnswerState),
        reason=fields.text("reason", ""),
        table=_read_table(fields, what, limits.text_chars),
        done=fields.integer("done", 0, _I64, 0),
        total=fields.integer("total", 0, _I64, 0),
    )


def _read_table(fields: Fields, what: str, text_chars: int) -> DetailTable:
    columns = tuple(
        DetailColumn(
            name=one.text("name"), kind=one.choice("kind", ColumnKind), about=one.text("about", "")
        )
        for one in fields.maps("columns", MOST_COLUMNS)
    )
    rest = fields.items("rest_cells", MOST_COLUMNS)
    return DetailTable(
        columns=columns,
        rows=tuple(
            _cells(row, columns, what, text_chars) for row in fields.items("rows", MOST_ROWS)
        ),
        rest=fields.integer("rest", 0, _I64, 0),
        rest_cells=_cells(rest, columns, what, text_chars) if rest else (),
        note=fields.text("note", ""),
    )


def _cells(
    row: object, columns: tuple[DetailColumn, ...], what: str, text_chars: int
) -> tuple[Cell, ...]:
    """One row: one cell per column, each unknown or of the column's kind."""
    if not isinstance(row, list) or len(row) != len(columns):
        raise RemoteProtocolError(
            f"{what}: a row that has not one cell for each of {len(columns)} columns"
        )
    for cell, column in zip(row, columns, strict=True):
        wanted = str if column.kind is ColumnKind.TEXT else int
        if cell is None:
            continue
        if (
            not isinstance(cell, wanted)
            or isinstance(cell, bool)
            or (isinstance(cell, str) and len(cell) > text_chars)
        ):
            raise RemoteProtocolError(
                f"{what}: a cell of column {column.name!r} that is no {column.kind.value}"
            )
    return tuple(row)
