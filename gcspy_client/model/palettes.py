"""The palette of each stream: one for all, another for some, the driver's own hues if chosen.

Knows choices; `palette` knows the colours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gcspy_protocol.model import Presentation, Stream

from gcspy_client.model.palette import Palette, Ramp, Theme, names_palette, sequential

__all__ = ["PaletteChoice"]


@dataclass
class PaletteChoice:
    """The user's choices; the default is the behaviour without choices.

    Attributes:
        ramp: For streams without a choice or a hint of their own.
        hints: Whether a stream's colour hint decides its hue.
        by_stream: Choices for single streams, by names of space and stream.
    """

    ramp: Ramp = Ramp.VIOLET
    hints: bool = True
    by_stream: dict[tuple[str, str], Ramp] = field(default_factory=dict)

    def palette(self, space: str, stream: Stream, theme: Theme) -> Palette:
        """The palette of a stream.

        Args:
            space: Name of its space.
        """
        if stream.presentation is Presentation.ENUM:
            return names_palette(stream, theme)
        own = self.by_stream.get((space, stream.name))
        ramp = self.ramp if own is None else own
        hint = stream.colour if self.hints and own is None else None
        return sequential(theme, hint, ramp, quiet_above=stream.is_exceeded_normally)

    def choose(self, ramp: Ramp | None, *, space: str = "", stream: str = "") -> None:
        """Choose a ramp for one stream (None: as the others), or without names for all that have none of their own."""
        if not stream:
            self.ramp = ramp or Ramp.VIOLET
        elif ramp is None:
            self.by_stream.pop((space, stream), None)
        else:
            self.by_stream[space, stream] = ramp

    def to_dict(self) -> dict[str, Any]:
        """Return the choice in the form of preferences: texts, lists and dictionaries only."""
        own = [
            [space, stream, ramp.value] for (space, stream), ramp in sorted(self.by_stream.items())
        ]
        return {"ramp": self.ramp.value, "hints": self.hints, "streams": own}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> PaletteChoice:
        """The result of `to_dict`, or a damaged one: invalid parts are ignored."""
        choice = cls(
            ramp=_ramp(data.get("ramp")) or Ramp.VIOLET, hints=data.get("hints") is not False
        )
        streams = data.get("streams")
        for row in streams if isinstance(streams, list) else []:
            if (
                isinstance(row, list)
                and len(row) == 3
                and isinstance(row[0], str)
                and isinstance(row[1], str)
            ):
                ramp = _ramp(row[2])
                if ramp is not None:
                    choice.by_stream[row[0], row[1]] = ramp
        return choice


def _ramp(name: object) -> Ramp | None:
    return next((ramp for ramp in Ramp if ramp.value == name), None)
