"""Sizes, durations and shares as users write them on a command line: ``200MB``, ``90s``, ``2h``, ``5%``.

Knows text; does not know its use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import click

__all__ = ["Kept", "amount_of", "budget_of", "deadline_of", "kept_of", "patience_of", "size_of"]

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)")
_BYTES = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_SECS = {"s": 1.0, "min": 60.0, "h": 3600.0}
_LONGEST_DEADLINE_SECS = 60.0
_LEAST_BYTES = 10_000
"""A part of a recording has at least one chunk with its keyframe: a smaller size would be impossible."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """The capacity of a ring: a number of bytes or a duration.

    Attributes:
        size_bytes: Maximum bytes; None: no limit.
        nanos: Minimum duration; None: none.
    """

    size_bytes: int | None = None
    nanos: int | None = None


def _split(text: str) -> tuple[float, str]:
    found = _NUMBER.fullmatch(text.strip())
    return (float(found[1]), found[2]) if found else (0.0, "?")


def size_of(text: str) -> int:
    """A number of bytes: ``500kB``, ``200MB``, ``1GiB``.

    Raises:
        click.BadParameter: It is not a size, or too small for a part of a recording.
    """
    number, unit = _split(text)
    size = int(number * _BYTES.get(unit.lower(), 0))
    if size < _LEAST_BYTES:
        raise click.BadParameter(
            f"{text!r} is not a size of {_LEAST_BYTES // 1000} kB or more, such as 500kB, 200MB or 1GiB"
        )
    return size


def amount_of(text: str) -> int:
    """A number of bytes, however small: ``512``, ``64kB``, ``1MiB``.

    Raises:
        click.BadParameter: It is not a size.
    """
    number, unit = _split(text)
    size = int(number * {"": 1, "b": 1, **_BYTES}.get(unit.lower(), 0))
    if size < 1:
        raise click.BadParameter(f"{text!r} is not a number of bytes, such as 512, 64kB or 1MiB")
    return size


def kept_of(text: str) -> Kept:
    """The capacity of a ring: ``90s``, ``10min``, ``2h``, or a size.

    Raises:
        click.BadParameter: It is neither.
    """
    number, unit = _split(text)
    if unit.lower() in _SECS and number > 0:
        return Kept(nanos=int(number * _SECS[unit.lower()] * 1e9))
    if unit.lower() in _BYTES:
        return Kept(size_bytes=size_of(text))
    raise click.BadParameter(
        f"{text!r} is neither a duration such as 90s, 10min or 2h, nor a size such as 200MB"
    )


def budget_of(text: str) -> int:
    """A share of the target's time in thousandths: ``5%``, ``0.5%``; ``off`` is all of it.

    Raises:
        click.BadParameter: It is not a share.
    """
    if text.strip().lower() == "off":
        return 1000
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*%", text.strip())
    thousandths = round(float(found[1]) * 10) if found else 0
    if not 1 <= thousandths <= 1000:
        raise click.BadParameter(
            f"{text!r} is not a share from 0.1% to 100%, such as 5%; off: no limit"
        )
    return thousandths


def deadline_of(text: str) -> float:
    """Seconds of a deadline, to a minute: ``500ms``, ``2s``.

    Raises:
        click.BadParameter: It is not a duration.
    """
    number, unit = _split(text)
    secs = number * {"ms": 0.001, **_SECS}.get(unit.lower(), 0.0)
    if not 0.001 <= secs <= _LONGEST_DEADLINE_SECS:
        raise click.BadParameter(
            f"{text!r} is not a deadline from 1ms to 60s, such as 500ms or 2s; to omit the deadline, write ADDRESS or PID before the option"
        )
    return secs


def patience_of(text: str) -> float:
    """Seconds to try something: ``30s``, ``5min``, or a bare number of seconds.

    Raises:
        click.BadParameter: It is not a duration.
    """
    number, unit = _split(text)
    secs = number * {"": 1.0, **_SECS}.get(unit.lower(), 0.0)
    if not secs > 0:
        raise click.BadParameter(
            f"{text!r} is not a time such as 30s or 5min; to omit the time, write ADDRESS or PID before the option"
        )
    return secs
