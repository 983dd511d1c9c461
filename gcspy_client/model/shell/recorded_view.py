"""`RecordedView`: how a recording was viewed when its window was closed; kept in the settings, never in the recording.

Settings may be damaged, or written by another program: what is not exactly as expected is refused.

Knows names and numbers; does not know widgets, or where settings are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["MOST_KEPT", "RecordedView", "SpaceView", "latest_last", "read_view"]

MOST_KEPT: Final = 64
"""Recordings whose views are kept; the one that was opened longest ago is forgotten first."""

_MOST_SPACES: Final = 64
_MOST_PANELS: Final = 64
_LONGEST: Final = 200
_GREATEST: Final = 1 << 53
_FARTHEST, _NEAREST = -(1 << 30), 1024
"""Scales of tiles: below 0 so many share a pixel, above it the pixels of one."""

Place = tuple[int | float | None, ...]
"""The visible part of a view, as the view itself describes it."""


@dataclass(frozen=True, slots=True)
class SpaceView:
    """How one space was viewed.

    Attributes:
        view: Name of the view.
        stream: Name of the displayed stream; empty: that of a user, or none.
        place: The visible part.
    """

    view: str = ""
    stream: str = ""
    place: Place = ()


@dataclass(frozen=True, slots=True)
class RecordedView:
    """How a recording was viewed.

    Attributes:
        panels: Names of the open panels.
        opened: Spaces that the user opened (True) or folded (False), by their names.
        active: Name of the active space.
        number: Number of the displayed event.
        spaces: The view of each space, by its name.
        hidden: Names of the spaces that the user hid.
    """

    panels: tuple[str, ...] = ()
    opened: Mapping[str, bool] = field(default_factory=dict)
    active: str = ""
    number: int = 0
    spaces: Mapping[str, SpaceView] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """For settings: texts, numbers, lists and dictionaries only; what is too long or too many is left out."""
        return {
            "panels": [name for name in self.panels if len(name) <= _LONGEST][:_MOST_PANELS],
            "opened": dict(
                [one for one in self.opened.items() if len(one[0]) <= _LONGEST][:_MOST_SPACES]
            ),
            "hidden": [name for name in self.hidden if len(name) <= _LONGEST][:_MOST_SPACES],
            "active": self.active[:_LONGEST],
            "number": self.number,
            "spaces": {
                name: {"view": one.view, "stream": one.stream, "place": list(one.place)}
                for name, one in list(self.spaces.items())[:_MOST_SPACES]
                if max(len(name), len(one.view), len(one.stream)) <= _LONGEST
            },
        }


def read_view(found: object) -> RecordedView | None:
    """The result of `RecordedView.to_dict`; None if it is anything else."""
    match found:
        case {
            "panels": list(panels),
            "opened": dict(opened),
            "active": str(active),
            "number": int(number),
            "spaces": dict(spaces),
            **others,
        }:
            hidden = others.get("hidden", [])  # those of an earlier GCspy have none
        case _:
            return None
    if not isinstance(hidden, list):
        return None
    views = {name: _space_view(one) for name, one in spaces.items()}
    fits = (
        len(panels) <= _MOST_PANELS
        and max(len(opened), len(views), len(hidden)) <= _MOST_SPACES
        and all(map(_is_name, (*panels, *opened, *views, *hidden, active)))
        and all(isinstance(on, bool) for on in opened.values())
        and not isinstance(number, bool)
        and 0 <= number < _GREATEST
    )
    kept = {name: one for name, one in views.items() if one is not None}
    if not fits or len(kept) != len(views):
        return None
    return RecordedView(tuple(panels), opened, active, number, kept, tuple(hidden))


def _space_view(found: object) -> SpaceView | None:
    match found:
        case {"view": str(view), "stream": str(stream), "place": list(place)}:
            if _is_name(view) and _is_name(stream) and _is_place(place):
                return SpaceView(view, stream, tuple(place))
    return None


def _is_name(found: Any) -> bool:
    return isinstance(found, str) and len(found) <= _LONGEST


def _is_place(found: Sequence[object]) -> bool:
    """Whether a visible part is one that a view may have: none, tiles, or a picture."""
    match found:
        case []:
            return True
        case [int() | None as zoom, int(row)] if not isinstance(row, bool):
            near = zoom is None or (not isinstance(zoom, bool) and _FARTHEST <= zoom <= _NEAREST)
            return near and 0 <= row < _GREATEST
        case [float(zoom), float(left), float(top)]:
            # Not so for what is no number.
            return 1 <= zoom <= _NEAREST and all(0 <= one < _GREATEST for one in (left, top))
    return False


def latest_last(identities: Sequence[str], identity: str) -> tuple[list[str], list[str]]:
    """Recordings whose views are kept, with one more as the latest; and those to be forgotten."""
    order = [one for one in identities if one != identity] + [identity]
    return order[-MOST_KEPT:], order[:-MOST_KEPT]
