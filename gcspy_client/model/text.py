"""Values as text, in the presentation of their stream (paper section 3.6).

Long forms are exact and go into tables; short forms round and go onto tiles,
headers and axes.

Knows presentations and units; does not know fonts or colours.
"""

from __future__ import annotations

from math import nan

from gcspy_protocol.messages import Summary
from gcspy_protocol.model import Control, Presentation, Stream
from gcspy_protocol.streams.named_stream import NamedStream

__all__ = [
    "UNKNOWN_TEXT",
    "age_words",
    "control_words",
    "counted_names",
    "duration",
    "is_bytes",
    "long_value",
    "short_amount",
    "short_number",
    "short_value",
    "summary_heading",
    "summary_share",
    "summary_short",
    "summary_text",
]

UNKNOWN_TEXT = "unknown"

_NAMES_IN_TEXT = 5

_BYTE_SUFFIXES = frozenset({"b", "byte", "bytes"})


def long_value(stream: Stream, value: int, *, known: bool = True, top: int | None = None) -> str:
    """A value in full.

    Args:
        stream: Its schema.
        value: The value.
        known: Whether it is known.
        top: For PERCENT_VAR what 100 % is in this tile; None where that is unknown.
    """
    if not known:
        return UNKNOWN_TEXT
    match stream.presentation:
        case Presentation.ENUM:
            if 0 <= value < len(stream.enum_names):
                return stream.enum_names[value]
            return UNKNOWN_TEXT if isinstance(stream, NamedStream) else f"{value} (has no name)"
        case Presentation.PLUS if value > stream.maximum:
            return f"{_united(stream, stream.maximum)}+"
        case Presentation.PERCENT:
            return _share(stream, value, stream.maximum)
        case Presentation.PERCENT_VAR:
            return UNKNOWN_TEXT if top is None else _share(stream, value, top)
        case _:
            return _united(stream, value)


def short_value(stream: Stream, value: int, *, known: bool = True, top: int | None = None) -> str:
    """A value in a few characters, for a tile or an axis."""
    if not known:
        return "?"
    match stream.presentation:
        case Presentation.ENUM:
            return long_value(stream, value)
        case Presentation.PLUS if value > stream.maximum:
            return f"{short_number(stream.maximum)}+"
        case Presentation.PERCENT:
            return _percent(value, stream.maximum)
        case Presentation.PERCENT_VAR:
            return "?" if top is None else _percent(value, top)
        case _:
            return short_amount(stream, value)


def short_amount(stream: Stream, value: int) -> str:
    """A number with its unit, rounded: ``1.2 MiB``, ``340 k objects``."""
    if is_bytes(stream):
        return f"{stream.prefix}{short_number(value, 1024)}B"
    return f"{stream.prefix}{short_number(value)}{stream.suffix}"


def is_bytes(stream: Stream) -> bool:
    """Whether values are bytes, which are counted by 1024."""
    return stream.suffix.strip().lower() in _BYTE_SUFFIXES


def short_number(value: int, base: int = 1000) -> str:
    """A number with at most four digits and a unit prefix: ``12 k``; with base 1024 ``12 Ki``, ``7 ``."""
    units = (
        ("", "k", "M", "G", "T", "P", "E")
        if base == 1000
        else ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
    )
    if abs(value) < (10_000 if base == 1000 else 1024):
        return f"{value:,}" if base == 1000 else f"{value} "
    step = 0
    size = float(value)
    while abs(size) >= base and step < len(units) - 1:
        size /= base
        step += 1
    digits = 0 if abs(size) >= 100 else 1
    text = f"{size:.{digits}f}"
    return f"{text} {units[step]}"


def size_in_words(size: int) -> str:
    """A number of bytes, rounded: ``12.3 MiB``, ``-4.0 KiB``, ``512 bytes``."""
    return f"{size} bytes" if abs(size) < 1024 else f"{short_number(size, 1024).strip()}B"


def _united(stream: Stream, value: int) -> str:
    return f"{stream.prefix}{value:,}{stream.suffix}"


def _percent(value: int, top: int) -> str:
    if top <= 0:
        return "0 %" if value == 0 else "> 100 %"
    share = 100.0 * value / top
    if 0 < share < 0.1:
        return "< 0.1 %"
    if 99.9 < share < 100:
        return "> 99.9 %"
    return f"{share:.0f} %" if share in (0.0, 100.0) else f"{share:.1f} %"


def _share(stream: Stream, value: int, top: int) -> str:
    return f"{_percent(value, top)}  ({stream.prefix}{value:,} of {top:,}{stream.suffix})"


def summary_text(stream: Stream, summary: Summary | None) -> str:
    """A stream's summary as text; an en dash if there is none, and no number if it covers no tile."""
    if summary is None:
        return "–"
    if not summary.covered:
        return UNKNOWN_TEXT
    values = summary.values
    if stream.presentation is Presentation.ENUM:
        named = [
            f"{name} {count:,}" for name, count in counted_names(stream, summary, _NAMES_IN_TEXT)
        ]
        return ", ".join(named) or "none"
    if len(values) == 2:
        return f"{_percent(values[0], values[1])}  ({short_amount(stream, values[0])} of {short_amount(stream, values[1])})"
    return _united(stream, values[0])


def counted_names(stream: Stream, summary: Summary, most: int) -> list[tuple[str, int]]:
    """The names that occur, with their tiles: for an enum in its order; for growing names the most frequent first, and the others together.

    Args:
        stream: An enum, with names that grow or not.
        summary: Of the stream.
        most: Maximum growing names listed one by one.
    """
    found = [
        (name, count)
        for name, count in zip(stream.enum_names, summary.values, strict=True)
        if count
    ]
    if not isinstance(stream, NamedStream):
        return found
    found.sort(key=lambda one: -one[1])
    rest = found[most:]
    return [
        *found[:most],
        *([(f"{len(rest):,} others", sum(count for _, count in rest))] if rest else []),
    ]


def summary_heading(stream: Stream, summary: Summary | None) -> str:
    """A stream's summary for a heading: as text, but an amount in its unit, ``46.5 MiB``, not to the last byte."""
    if (
        summary is None
        or not summary.covered
        or len(summary.values) != 1
        or stream.presentation is Presentation.ENUM
    ):
        return summary_text(stream, summary)
    return short_amount(stream, summary.values[0])


def summary_short(stream: Stream, summary: Summary | None) -> str:
    """A stream's summary in a few characters; an en dash if there is none, and no number if it covers no tile."""
    if summary is None:
        return "–"
    if not summary.covered:
        return UNKNOWN_TEXT
    values = summary.values
    if stream.presentation is Presentation.ENUM:
        most = max(range(len(values)), key=lambda i: values[i], default=None)
        return (
            "none"
            if most is None or not values[most]
            else f"{stream.enum_names[most]}: {short_number(values[most])}"
        )
    if len(values) == 2:
        return _percent(values[0], values[1])
    return short_amount(stream, values[0])


def summary_share(stream: Stream, summary: Summary) -> float:
    """A summary as one number for a plot: a sum, percent of a total, or for names how many there are.

    The share of an unknown total is NaN.
    """
    values = summary.values
    if stream.presentation in (Presentation.PERCENT, Presentation.PERCENT_VAR):
        return 100.0 * values[0] / values[1] if values[1] > 0 else nan
    return float(sum(values)) if stream.presentation is Presentation.ENUM else float(values[0])


def control_words(flags: int, unused_text: str) -> str:
    """The control stream's text for a tile; empty for a tile that is simply used."""
    words = []
    if flags & Control.BACKGROUND:
        words.append("background")
    elif flags & Control.UNUSED or not flags & Control.USED:
        words.append(unused_text or "unused")
    if flags & Control.SEPARATOR:
        words.append("separator before")
    if flags & Control.LINK:
        words.append("linked to the next")
    return ", ".join(words)


def age_words(secs: float) -> str:
    """How long ago something was, as it changes once a second at most: ``just now``, ``12 s ago``, ``4 min ago``."""
    if secs < 1.5:
        return "just now"
    if secs < 60:
        return f"{round(secs)} s ago"
    minutes = int(secs // 60)
    return f"{minutes} min ago" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min ago"


def duration(nanos: int) -> str:
    """A time span with three digits: ``1.25 ms``, ``12.3 s``, ``4 min 05 s``."""
    if nanos < 1_000:
        return f"{nanos} ns"
    for unit, size in (("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)):
        amount = nanos / size
        if amount < (60 if unit == "s" else 999.5):
            digits = 0 if amount >= 99.95 else 1 if amount >= 9.995 else 2
            return f"{amount:.{digits}f} {unit}"
    minutes, seconds = divmod(nanos // 1_000_000_000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"
