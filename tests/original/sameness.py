"""A space of ours beside what came of it by the original's wire: equal but for what `docs/original.md` lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from gcspy_protocol.interpreter import SpaceState, StreamState
from gcspy_protocol.model import Control, Presentation
from gcspy_protocol.streams.names import TileNameTable
from numpy.typing import NDArray

__all__ = ["assert_same_space"]

_UNSHOWN = np.uint8(Control.UNUSED | Control.BACKGROUND)
_UNITS = {"": 0, " KiB": 10, " MiB": 20, " GiB": 30, " TiB": 40, " PiB": 50, " EiB": 60}


def _shift_of(here: StreamState, there: StreamState) -> int:
    suffix = there.defined.suffix
    if suffix == here.defined.suffix:
        return 0
    if suffix.startswith(" x 2^"):
        return int(suffix.removeprefix(" x 2^"))
    return _UNITS[suffix]


def _names(names: TileNameTable, count: int) -> list[str]:
    return [names.name(tile) for tile in range(count)]


def _assert_same_stream(
    here: StreamState, there: StreamState, control: NDArray[Any], *, whole_is_there: bool
) -> None:
    schema, back = here.defined, there.defined
    shift = _shift_of(here, there)
    if schema.presentation is not Presentation.PERCENT_VAR or whole_is_there:
        assert back.presentation is schema.presentation
    assert back.paint_style is schema.paint_style
    assert back.enum_names == schema.enum_names
    assert schema.colour is None or back.colour == schema.colour
    assert np.iinfo(back.dtype).bits <= 32
    shown = control & _UNSHOWN == 0
    known = np.ones(len(here.values), np.bool_) if here.known is None else here.known
    # An unknown value is never shown as a number.
    assert not (shown & ~known & (there.sequence > 0)).any()
    for tile in np.flatnonzero(shown & known).tolist():
        value, found = int(here.values[tile]), int(there.values[tile])
        away = -(-abs(value) >> shift) * (-1 if value < 0 else 1)
        if schema.presentation is Presentation.PLUS:
            away = max(min(away, (1 << 31) - 1), -(1 << 31))
        assert found == away, (schema, value, found, shift)
        assert (found == 0) == (value == 0)
    if here.told is not None and there.told is not None and here.told.covered == len(known):
        half = (1 << shift) >> 1
        sums = tuple((one + half) >> shift for one in here.told.values)
        if all(-(1 << 31) <= one < 1 << 31 for one in sums):  # else the info says it
            assert there.told.values == sums[: len(there.told.values)]


def assert_same_space(here: SpaceState, there: SpaceState) -> None:
    assert there.count == here.count
    assert there.space.driver == (here.space.driver or "original")
    assert there.space.main == here.space.main
    assert there.space.description == here.space.description
    assert there.space.unused_text in ("idle", "idle or unknown")
    assert _names(there.names, there.count) == _names(here.names, here.count)
    control = there.control.values
    unshown = here.control.values & _UNSHOWN != 0
    assert (control[unshown] == here.control.values[unshown]).all()
    assert (control & Control.SEPARATOR == here.control.values & Control.SEPARATOR).all()
    streams = {one.defined.name: one for one in there.streams.values()}
    # Unused for no other reason than a value that is not known.
    unknown = np.zeros(here.count, dtype=np.bool_)
    for one in here.streams.values():
        if one.defined.name in streams and one.known is not None:
            unknown |= ~one.known
    assert ((control & _UNSHOWN != 0) <= (unshown | unknown)).all()
    for one in here.streams.values():
        if one.defined.name in streams:
            whole = one.defined.max_stream
            _assert_same_stream(
                one,
                streams[one.defined.name],
                control,
                whole_is_there=whole is not None and here.streams[whole].defined.name in streams,
            )
        else:  # left out until it has a value
            assert one.known is not None
            assert not one.known.any()
