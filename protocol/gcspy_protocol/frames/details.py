"""The frames of questions for detail and their answers (SPEC.md section 8.11).

Knows their bytes; does not know who may send them, or when.
"""

from __future__ import annotations

from typing import Any

from gcspy_protocol.details import (
    LONGEST_OVER_MILLIS,
    MOST_COLUMNS,
    MOST_ROWS,
    MOST_SAMPLE_BYTES,
    Answer,
    AnswerState,
    Cell,
    ColumnKind,
    DetailColumn,
    DetailTable,
    MemoryReport,
    Query,
)
from gcspy_protocol.errors import RemoteProtocolError
from gcspy_protocol.frames.fields import Fields, pack_map
from gcspy_protocol.frames.frame import Frame, Header
from gcspy_protocol.frames.map_frame import pack_map_frame
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
                **({"over": message.over_millis} if message.over_millis else {}),
                **({"sample": message.sample_bytes} if message.sample_bytes else {}),
            }
            return pack_map_frame(FrameType.QUERY, fields, space=message.space)
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
            if message.report is not None:
                fields["report"] = _report(message.report)
            return pack_map_frame(
                FrameType.ANSWER, fields, space=message.space, sequence=message.sequence
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


def _report(report: MemoryReport) -> dict[str, Any]:
    return {
        "millis": round(report.secs * 1000),
        "resident": report.resident,
        "grew": report.grew,
        "unsure": report.unsure,
        "unsure_grew": report.unsure_grew,
        "note": report.note,
        "memory": _table(report.memory),
        "holders": _table(report.holders),
        "sites": _table(report.sites),
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
            over_millis=fields.integer("over", 0, LONGEST_OVER_MILLIS, 0),
            sample_bytes=fields.integer("sample", 0, MOST_SAMPLE_BYTES, 0),
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
        report=_read_report(fields.map("report"), what, limits.text_chars),
    )


def _read_report(fields: Fields | None, what: str, text_chars: int) -> MemoryReport | None:
    if fields is None:
        return None

    def table(key: str) -> DetailTable:
        found = fields.map(key)
        return DetailTable() if found is None else _read_table(found, f"{what}.{key}", text_chars)

    return MemoryReport(
        secs=fields.integer("millis", 0, _I64, 0) / 1000,
        resident=fields.integer("resident", 0, _I64),
        grew=fields.optional_integer("grew", -_I64, _I64),
        memory=table("memory"),
        holders=table("holders"),
        sites=table("sites"),
        unsure=fields.integer("unsure", -_I64, _I64, 0),
        unsure_grew=fields.integer("unsure_grew", -_I64, _I64, 0),
        note=fields.text("note", ""),
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
