"""Results about objects, as a table for people, as JSON for scripts, as Parquet, or as a picture.

Knows results and number formats; does not know how they were computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcspy_protocol.text.rest import rest_heading
from gcspy_protocol.text.visible import visible

from gcspy.gui import require_gui
from gcspy.output.terminal import say, say_json
from gcspy.recorder.new_file import need_place, new_file

if TYPE_CHECKING:
    from gcspy_objects.analysis.findings import Cell, Column, QueryResult
    from gcspy_objects.analysis.store import LifeStore

__all__ = ["Output", "draw", "prepare", "show", "show_result"]

_PIPE_COLUMNS = 400
_PICTURE_PIXELS = 1100, 560


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """The destination of results, and their number.

    Attributes:
        as_json: One JSON object instead of a table.
        parquet: Write all rows to this file too.
        plot: Draw a picture into this file too.
        theme: ``dark`` or ``light``: its colours.
        force: Overwrite existing files.
        in_bytes: Of columns that come in objects and in bytes, show bytes; JSON and Parquet have both.
    """

    as_json: bool = False
    parquet: Path | None = None
    plot: Path | None = None
    theme: str = "light"
    force: bool = False
    in_bytes: bool = False


def prepare(output: Output) -> None:
    """Refuse impossible options, before the trace is read.

    Raises:
        CommandError: A file exists already, or the plotting library is not installed.
    """
    for path in (output.parquet, output.plot):
        if path is not None:
            need_place(path, replace=output.force)
    if output.plot is not None:
        require_gui()


def show(
    findings: QueryResult,
    store: LifeStore,
    output: Output,
    *,
    drawn: tuple[str, QueryResult] | None = None,
) -> None:
    """Print results, and write the requested files.

    Args:
        findings: The results.
        store: Their source.
        output: Their destination.
        drawn: For `Output.plot`: the kind of chart (`gcspy_client.model.panels.chart`), and its
            data.

    Raises:
        CommandError: A file exists already, or cannot be written.
    """
    if output.parquet is not None:
        with new_file(output.parquet, replace=output.force) as part:
            store.write(findings, part)
    if output.plot is not None and drawn is not None:
        draw(*drawn, output.plot, output)
    show_result(findings, output)
    if output.as_json:
        return
    if output.plot is not None:
        say(f"{output.plot}: {output.plot.stat().st_size:,} bytes", err=True)
    if output.parquet is not None:
        say(
            f"{output.parquet}: {len(findings.rows) + findings.rest:,} rows, {output.parquet.stat().st_size:,} bytes",
            err=True,
        )


def show_result(findings: QueryResult, output: Output) -> None:
    """Print results as a table with notes, or as JSON."""
    if output.as_json:
        _print_json(findings)
        return
    _print_table(findings, output)
    for note in findings.notes:
        say(note)


def draw(kind: str, findings: QueryResult, path: Path, output: Output) -> None:
    """Draw a chart into a PNG file."""
    from gcspy_drivers.traced.whole import table_of

    from gcspy_client.model.palette import Theme
    from gcspy_client.model.panels.chart import chart_of
    from gcspy_client.pictures import chart_picture
    from gcspy_client.view.png_file import write_png

    chart = chart_of(kind, table_of(findings, len(findings.rows)), in_bytes=output.in_bytes)
    image = chart_picture(chart, findings.title, size=_PICTURE_PIXELS, theme=Theme(output.theme))
    with new_file(path, replace=output.force) as part:
        write_png(image.toImage(), part)


def _print_json(findings: QueryResult) -> None:
    names = [one.name for one in findings.columns]
    data: dict[str, Any] = {
        "title": findings.title,
        "columns": [
            {"name": one.name, "unit": one.unit.value, "about": one.about or one.heading}
            for one in findings.columns
        ],
        "rows": findings.records(),
        "notes": list(findings.notes),
    }
    if findings.rest:
        sums = zip(names, findings.rest_cells, strict=True)
        data["rest"] = {
            "rows": findings.rest,
            **{name: value for name, value in sums if value is not None},
        }
    say_json(data)


def _print_table(findings: QueryResult, output: Output) -> None:
    # rich takes 60 ms to import; only a human waits for a table.
    from gcspy_objects.analysis.findings import Unit
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    say(findings.title)
    if not findings.rows:
        say("nothing")
        return
    places = _places(findings.columns, in_bytes=output.in_bytes)
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = [findings.columns[place] for place in places]
    for one in columns:
        left = one.unit is Unit.TEXT
        # A name is cut in a terminal, never in a pipe: there it may be searched for.
        table.add_column(
            escape(one.heading),
            justify="left" if left else "right",
            no_wrap=True,
            overflow="ellipsis",
            min_width=None if left else len(one.heading),
        )
    for row in findings.rows:
        table.add_row(*(escape(_words(row[place], findings.columns[place])) for place in places))
    if findings.rest:
        cells = [findings.rest_cells[place] for place in places]
        others = [
            "" if cell is None else _words(cell, one)
            for cell, one in zip(cells, columns, strict=True)
        ]
        table.add_row(rest_heading(findings.rest), *others[1:], style="dim")
    console = Console(highlight=False)
    (console if console.is_terminal else Console(highlight=False, width=_PIPE_COLUMNS)).print(table)


def _places(columns: Sequence[Column], *, in_bytes: bool) -> list[int]:
    """The columns for people: a quantity in objects and in bytes is shown in one of them, except for allocations."""
    names = {one.name for one in columns}
    left_out = "_objects" if in_bytes else "_bytes"
    kept = "_bytes" if in_bytes else "_objects"
    return [
        place
        for place, one in enumerate(columns)
        if not (
            one.name.endswith(left_out)
            and one.name.removesuffix(left_out) + kept in names
            and not one.name.startswith("allocated")
        )
    ]


def _words(cell: Cell, column: Column) -> str:
    from gcspy_objects.analysis.findings import Unit

    if cell is None:
        return "unknown"
    if isinstance(cell, str):
        return visible(cell)
    if column.unit is Unit.SHARE:
        return f"{100 * cell:.2f}"
    return f"{cell:,}"
