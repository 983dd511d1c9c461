"""`page_of`: a report on many recordings as one HTML file, with pictures in SVG and no request to anybody.

Colours are those of the window, so that they can be told apart with any colour vision. Every text that
comes from a recording is escaped. Knows the report; does not know recordings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gcspy.fleet.report import MEASURES, FleetChange, FleetReport, Measure, program_of
from gcspy.fleet.report_text import number_in_words
from gcspy_client.model.text import size_in_words

__all__ = ["page_of"]

_WIDTH: Final = 900
_LEFT: Final = 190
_ROW: Final = 26
_MOST_PROGRAMS: Final = 30
_STYLE: Final = """
:root { color-scheme: light dark; --text: #1d2125; --dim: #5a636d; --line: #d4d8dd; --ground: #ffffff; --usual: #2f6db5; --far: #b4480f; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e8eaed; --dim: #a4acb5; --line: #3a4048; --ground: #16181c; --usual: #6db1ff; --far: #ff9a5c; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--ground); max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.dim, figcaption { color: var(--dim); }
.wide { overflow-x: auto; } figure { margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; }
th, td { text-align: left; padding: 0.25rem 0.8rem 0.25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
td.number, th.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
svg { width: 100%; height: auto; } svg text { fill: var(--text); font: 12px system-ui, sans-serif; } svg .dim { fill: var(--dim); }
.axis { stroke: var(--line); } .usual { fill: var(--usual); fill-opacity: 0.75; } .far { fill: var(--far); }
.box { fill: var(--usual); fill-opacity: 0.3; stroke: var(--usual); } .box.after { fill: var(--far); stroke: var(--far); }
.median { stroke: var(--text); stroke-width: 2; } .whisker { stroke: var(--dim); }
"""


def page_of(report: FleetReport, name: str, *, most: int) -> str:
    """Return the page.

    Args:
        report: What it shows.
        name: Name of the table it was made of.
        most: Rows of each table.
    """
    anomalies = ", ".join(f"{escape(key)}: {count:,}" for key, count in report.anomalies.items())
    parts = [
        f"<h1>{len(report.rows):,} recordings of {len(report.programs):,} programs</h1>",
        f'<p class="dim">{escape(name)}{"; " if anomalies else ""}{anomalies}</p>',
    ]
    if report.unread:
        parts.append(f"<h2>Cannot be read: {len(report.unread):,}</h2>")
        parts.append(
            _table(
                ("Recording", "Reason"),
                [(row.file, row.error or "") for row in report.unread[:most]],
                numbers=0,
            )
        )
    parts.append(f"<h2>Growing: {len(report.growing):,}</h2>")
    if report.growing:
        parts.append(
            _table(
                ("Recording", "Program", "Largest type", "Resident", "Grew a minute"),
                [
                    (
                        row.file,
                        row.program or "",
                        row.type_names[0] if row.type_names else "",
                        "" if row.resident_last is None else size_in_words(row.resident_last),
                        ""
                        if row.growth_per_minute is None
                        else size_in_words(row.growth_per_minute),
                    )
                    for row in report.growing[:most]
                ],
                numbers=2,
                left_out=len(report.growing) - most,
            )
        )
    parts.append(f"<h2>Outliers: {len(report.outliers):,}</h2>")
    parts += [_strips(report, measure) for measure in MEASURES]
    if report.outliers:
        parts.append(
            _table(
                ("Recording", "Number", "Here", "Median"),
                [
                    (
                        one.row.file,
                        one.measure.title,
                        number_in_words(one.value, one.measure),
                        number_in_words(one.median, one.measure),
                    )
                    for one in report.outliers[:most]
                ],
                numbers=2,
                left_out=len(report.outliers) - most,
            )
        )
    if report.deployed is not None:
        parts.append(f"<h2>Before and after {report.deployed:%Y-%m-%d %H:%M} UTC</h2>")
        changes = sorted(report.changes, key=lambda one: one.p)[:most]
        parts += [_boxes(one) for one in changes]
        if not changes:
            parts.append("<p>No program has enough recordings on either side.</p>")
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>GCspy: {escape(name)}</title><style>{_STYLE}</style></head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int, left_out: int = 0
) -> str:
    """Return a table; the last columns are numbers."""
    first = len(heads) - numbers
    kind = ["" if at < first else ' class="number"' for at in range(len(heads))]
    head = "".join(f"<th{kind[at]}>{escape(text)}</th>" for at, text in enumerate(heads))
    lines = "\n".join(
        "<tr>"
        + "".join(f"<td{kind[at]}>{escape(text)}</td>" for at, text in enumerate(row))
        + "</tr>"
        for row in rows
    )
    more = f'<p class="dim">{left_out:,} more are not listed.</p>' if left_out > 0 else ""
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{lines}\n</tbody></table></div>{more}'


def _x(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Return places along an axis from `low` to `high`."""
    span = high - low or 1.0
    return _LEFT + (values - low) / span * (_WIDTH - _LEFT - 20)


def _scale(low: float, high: float, y: float, measure: Measure) -> str:
    """Return an axis with its two ends."""
    right = _WIDTH - 20
    return (
        f'<line class="axis" x1="{_LEFT}" y1="{y}" x2="{right}" y2="{y}"/>'
        f'<text class="dim" x="{_LEFT}" y="{y + 16}">{escape(number_in_words(low, measure))}</text>'
        f'<text class="dim" x="{right}" y="{y + 16}" text-anchor="end">{escape(number_in_words(high, measure))}</text>'
    )


def _label(text: str, y: float) -> str:
    short = text if len(text) <= 26 else text[:25] + "…"
    return f'<text x="0" y="{y}">{escape(short)}</text>'


def _strips(report: FleetReport, measure: Measure) -> str:
    """Return a dot for each recording, a row for each program that has outliers in a number."""
    far = {one.row.file for one in report.outliers if one.measure is measure}
    if not far:
        return ""
    groups: dict[str, list[tuple[float, bool, str]]] = defaultdict(list)
    for row in report.rows:
        value = getattr(row, measure.column)
        if row.error is None and value is not None:
            groups[program_of(row)].append((float(value), row.file in far, row.file))
    shown = {name: group for name, group in sorted(groups.items()) if any(one[1] for one in group)}
    shown = dict(list(shown.items())[:_MOST_PROGRAMS])
    every = np.array([one[0] for group in shown.values() for one in group])
    low, high = float(min(every.min(), 0)), float(every.max())
    marks = []
    for number, (name, group) in enumerate(shown.items()):
        y = 16 + number * _ROW
        marks.append(_label(name, y + 4))
        places = _x(np.array([one[0] for one in group]), low, high)
        for (value, is_far, file), x in zip(group, places.tolist(), strict=True):
            title = f"{file}: {number_in_words(value, measure)}"
            shape = (
                f'<path class="far" d="M{x:.1f} {y - 6}l6 6l-6 6l-6 -6z">'
                if is_far
                else f'<circle class="usual" cx="{x:.1f}" cy="{y}" r="4">'
            )
            marks.append(
                f"{shape}<title>{escape(title)}</title></{'path' if is_far else 'circle'}>"
            )
    height = 16 + len(shown) * _ROW + 24
    return (
        f'<figure><svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(measure.title)}, by program">'
        + "".join(marks)
        + _scale(low, high, height - 24, measure)
        + f"</svg><figcaption>{escape(measure.title)}: a dot for each recording, a diamond for an outlier; "
        "point at one for its name.</figcaption></figure>"
    )


def _boxes(change: FleetChange) -> str:
    """Return quartiles, median and range of a number before and after."""
    both = np.concatenate((change.before, change.after))
    low, high = float(both.min()), float(both.max())
    marks = []
    for number, (label, values) in enumerate((("before", change.before), ("after", change.after))):
        y = 18 + number * _ROW
        least, first, median, third, most = _x(
            np.quantile(values, [0, 0.25, 0.5, 0.75, 1]), low, high
        ).tolist()
        marks.append(_label(f"{label} ({len(values)})", y + 4))
        marks.append(f'<line class="whisker" x1="{least:.1f}" y1="{y}" x2="{most:.1f}" y2="{y}"/>')
        marks.append(
            f'<rect class="box {label}" x="{first:.1f}" y="{y - 8}" width="{max(third - first, 1):.1f}" height="16"/>'
        )
        marks.append(
            f'<line class="median" x1="{median:.1f}" y1="{y - 8}" x2="{median:.1f}" y2="{y + 8}"/>'
        )
    height = 18 + 2 * _ROW + 24
    p = "p < 0.001" if change.p < 0.001 else f"p = {change.p:.3f}"
    title = f"{change.program}: {change.measure.title}"
    return (
        f'<figure><svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        + "".join(marks)
        + _scale(low, high, height - 24, change.measure)
        + f"</svg><figcaption>{escape(title)}: median, quartiles and range; later recordings are larger in "
        f"{100 * change.larger:.0f} % of pairs ({p}).</figcaption></figure>"
    )
