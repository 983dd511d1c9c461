"""Values of a stream in the original's types: signed, and 32 bits at most.

Amounts that do not fit are divided by 1,024 or a power of it, and the unit says so. What is not
zero never becomes zero by that. Categories become names.

Knows numbers and the definition of a stream; does not know messages.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from gcspy_protocol.model import PaintStyle, Presentation, Stream
from numpy.typing import NDArray

from gcspy_original.outgoing.text import ascii_text
from gcspy_original.wire.limits import MOST_ENUM_NAMES
from gcspy_original.wire.schema import StreamDefinition

__all__ = ["OutgoingStream"]

_GREATEST: Final = (1 << 31) - 1
_LEAST: Final = -(1 << 31)
_STEP_BITS: Final = 10
_UNITS: Final = ("", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_OF_BYTES: Final = ("bytes", "byte", "B")
_SAME_TYPE: Final = {"i1": "i1", "i2": "i2", "i4": "i4", "u1": "i2", "u2": "i4"}
_COLOURS: Final = (
    (255, 0, 0), (0, 200, 0), (0, 120, 255), (255, 200, 0), (200, 0, 255), (0, 200, 200), (255, 120, 160), (160, 160, 0),
)  # fmt: skip
"""For streams without a colour of their own, which the original always has."""

_OTHER: Final = "other"


class OutgoingStream:
    """One stream, as the original has it.

    Args:
        schema: Our definition.
        number: Its number on the wire.

    Attributes:
        shift: Values are divided by 2 to this power; it only grows.
        number: Its number on the wire.
    """

    def __init__(self, schema: Stream, number: int) -> None:
        self.schema = schema
        self.number = number
        self.shift = 0
        self._names: list[str] = []
        self._places: dict[int, int] = {}
        if schema.presentation is Presentation.ENUM and schema.names_from is None:
            self._names = [ascii_text(name) for name in schema.enum_names[:MOST_ENUM_NAMES]]
            if len(schema.enum_names) > MOST_ENUM_NAMES:
                self._names[-1] = _OTHER

    @property
    def named(self) -> bool:
        """Whether values are names on the wire."""
        return self.schema.names_from is not None or self.schema.presentation is Presentation.ENUM

    def unknown(self, values: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Return the tiles whose value is no name; None: there is none."""
        if not self.named or self.schema.names_from is not None or not len(values):
            return None
        outside = (values < 0) | (values >= len(self.schema.enum_names))
        return outside if outside.any() else None

    def learn(
        self,
        values: NDArray[Any],
        known: NDArray[np.bool_] | None,
        names: tuple[str, ...],
        parts: int,
    ) -> None:
        """Look at values before they are translated: greater ones need another unit, new ones names.

        Args:
            values: Shape (groups,).
            known: Shape (groups,); None: all.
            names: For categories: the text of each value.
            parts: How many tiles' values are added in one.
        """
        seen = values if known is None else values[known]
        if self.schema.names_from is not None:
            self._learn_names(seen, names)
            return
        if self.named:
            return
        greatest = 0
        if len(seen) and self.schema.presentation is not Presentation.PLUS:
            greatest = max(int(seen.max()), -int(seen.min()))
        if self.schema.presentation in (Presentation.PERCENT, Presentation.PLUS):
            greatest = max(greatest, abs(self.schema.maximum) * parts)
        while -(-greatest >> self.shift) > _GREATEST:
            self.shift += _STEP_BITS

    def _learn_names(self, seen: NDArray[Any], names: tuple[str, ...]) -> None:
        for value in np.unique(seen).tolist():
            if value not in self._places:
                if len(self._names) >= MOST_ENUM_NAMES - 1:
                    self._places[value] = MOST_ENUM_NAMES - 1
                    if len(self._names) < MOST_ENUM_NAMES:
                        self._names.append(_OTHER)
                else:
                    self._places[value] = len(self._names)
                    self._names.append(
                        ascii_text(names[value]) if 0 <= value < len(names) else str(value)
                    )
        if not self._names:
            self._names = [_OTHER]

    def definition(self, parts: int, max_stream: OutgoingStream | None) -> StreamDefinition:
        """Return the definition for the wire.

        Args:
            parts: How many tiles' values are added in one.
            max_stream: The stream that is 100 %, if it has one that is sent.
        """
        schema = self.schema
        presentation = Presentation.ENUM if self.named else schema.presentation
        if presentation is Presentation.PERCENT_VAR and max_stream is None:
            presentation = Presentation.PLAIN
        names = tuple(self._names) if self.named else ()
        categories = schema.names_from is not None
        return StreamDefinition(
            id=self.number,
            name=ascii_text(schema.name),
            dtype=self._dtype(parts),
            minimum=0 if categories else self.number_of(schema.minimum),
            maximum=len(names) - 1 if categories else self.number_of(schema.maximum * parts),
            zero=0 if categories else self.number_of(schema.zero),
            default=self._default(parts),
            prefix=ascii_text(schema.prefix),
            suffix=self._suffix(),
            presentation=int(presentation),
            paint_style=int(
                PaintStyle.PLAIN if schema.names_from is not None else schema.paint_style
            ),
            max_stream=0 if max_stream is None else max_stream.number,
            colour=schema.colour or _COLOURS[self.number % len(_COLOURS)],
            enum_names=names,
        )

    def _dtype(self, parts: int) -> str:
        if self.schema.names_from is not None:
            return "i2"
        if self.shift or parts > 1:
            return "i4"
        return _SAME_TYPE.get(self.schema.dtype, "i4")

    def _default(self, parts: int) -> int:
        if self.named:
            inside = self.schema.names_from is None and 0 <= self.schema.default < len(self._names)
            return self.schema.default if inside else 0
        bounds = np.iinfo(self._dtype(parts))
        return min(max(self.number_of(self.schema.default), int(bounds.min)), int(bounds.max))

    def _suffix(self) -> str:
        suffix = self.schema.suffix
        if not self.shift:
            return ascii_text(suffix)
        if suffix.strip() in _OF_BYTES:
            return " " + _UNITS[self.shift // _STEP_BITS]
        return ascii_text(f" x 2^{self.shift}{suffix}")

    def number_of(self, number: int) -> int:
        """Return a number in the unit of the wire, rounded away from zero; one that does not fit becomes the limit."""
        scaled = -(-number >> self.shift) if number > 0 else number >> self.shift
        return min(max(scaled, _LEAST), _GREATEST)

    def sum_of(self, number: int) -> int | None:
        """Return a sum in the unit of the wire; None: it does not fit."""
        scaled = (number + (1 << self.shift >> 1)) >> self.shift
        return scaled if _LEAST <= scaled <= _GREATEST else None

    def translated(
        self, values: NDArray[Any], known: NDArray[np.bool_] | None, parts: int
    ) -> NDArray[Any]:
        """Return values for the wire, shape (groups,); an unknown one is the default."""
        dtype = self._dtype(parts)
        if self.schema.names_from is not None:
            found = self._places_of(values)
        elif self.named:
            last = len(self._names) - 1
            found = np.clip(values, 0, last).astype(dtype)
        else:
            found = self._scaled(values).astype(dtype)
        if known is not None:
            found[~known] = self._default(parts)
        return found

    def _places_of(self, values: NDArray[Any]) -> NDArray[Any]:
        found = np.zeros(len(values), dtype=np.int16)
        seen, where = np.unique(values, return_inverse=True)
        places = np.array([self._places.get(value, 0) for value in seen.tolist()], dtype=np.int16)
        if len(seen):
            found[:] = places[where]
        return found

    def _scaled(self, values: NDArray[Any]) -> NDArray[Any]:
        if not self.shift:
            if values.dtype.itemsize < np.dtype("i4").itemsize or values.dtype == np.dtype("i4"):
                return values.copy()
            least = 0 if values.dtype.kind == "u" else _LEAST
            clipped: NDArray[Any] = np.clip(values, least, _GREATEST)
            return clipped
        if values.dtype.kind == "u":
            wide: NDArray[Any] = values.astype(np.uint64)
            rest = wide & np.uint64((1 << self.shift) - 1)
            scaled: NDArray[Any] = np.minimum(
                (wide >> np.uint64(self.shift)) + (rest != 0), np.uint64(_GREATEST)
            )
            return scaled
        signed = values.astype(np.int64)
        size = np.abs(np.maximum(signed, -((1 << 63) - 1)))
        found = (size >> self.shift) + (size & ((1 << self.shift) - 1) != 0)
        both: NDArray[Any] = np.clip(np.where(signed < 0, -found, found), _LEAST, _GREATEST)
        return both
