"""One space of ours, as a server of the original sends it.

Knows the state of a space that a client interpreter has; does not know events.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from gcspy_protocol.interpreter import SpaceState, StreamState
from gcspy_protocol.model import Control, Presentation
from numpy.typing import NDArray

from gcspy_original.outgoing.text import ascii_lines, ascii_text
from gcspy_original.outgoing.tile_groups import MOST_TILES, TileGroups
from gcspy_original.outgoing.values import OutgoingStream
from gcspy_original.wire import (
    Command,
    ControlValues,
    SpaceChanged,
    SpaceDefinition,
    SpaceInfo,
    StreamDefinition,
    StreamValues,
    Summary,
)
from gcspy_original.wire.limits import MOST_STREAMS

__all__ = ["OutgoingSpace"]

_FLAGS: Final = np.uint8(sum(Control))
_OR_UNKNOWN: Final = " or unknown"
_MOST_STREAM_BYTES: Final = 768 << 10
"""Of all streams' descriptions: with at most 3 MiB of names, a definition stays below the client's buffer of 4 MiB."""

_SHORT_CHARS: Final = 24
_Known = NDArray[np.bool_] | None


class OutgoingSpace:
    """A place for a space on the wire; what it sent last.

    Args:
        number: Its number on the wire.
        most_tiles: More tiles are merged.
    """

    def __init__(self, number: int, *, most_tiles: int = MOST_TILES) -> None:
        self.number = number
        self._most_tiles = most_tiles
        self._state: SpaceState | None = None
        self._streams: dict[int, OutgoingStream] = {}
        self._definition: SpaceDefinition | None = None
        self._control: NDArray[np.uint8] | None = None
        self._info = ""
        self._has_unknown = False
        self._names: tuple[int, bytes] | None = None

    def define(self, state: SpaceState | None) -> SpaceDefinition:
        """Return the definition for the description of the session; None: the space is not there."""
        self._definition, _, _ = self._look(state)
        return self._definition

    def update(
        self,
        state: SpaceState | None,
        changed: set[int],
        *,
        renamed: bool,
        everything: bool,
        note: str = "",
    ) -> list[Command]:
        """Return what brings the original's client from what was sent last to this state.

        Args:
            state: The space; None: it was removed, and has no tiles any more.
            changed: Streams whose values came with this event.
            renamed: Whether tiles or their names may have changed.
            everything: Whether all values are sent.
            note: Further text about the space.
        """
        if renamed or state is not self._state:
            self._names = None
        before = self._definition
        definition, values, control = self._look(state)
        self._definition = definition
        found: list[Command] = []
        if before != definition:
            found.append(SpaceChanged(space=definition))
            everything, self._control = True, None
        totals: list[str] = []
        for number, one in values.items():
            if state is not None and (everything or number in changed):
                stream = self._streams[number]
                found.append(StreamValues(space=self.number, stream=stream.number, values=one))
                found += self._summary(state.streams[number], stream, one, control)
            if state is not None:
                totals += self._too_large(state.streams[number], self._streams[number])
        if everything or self._control is None or not np.array_equal(self._control, control):
            self._control = control
            found.append(ControlValues(space=self.number, values=control))
        about = ["removed"] if state is None else [state.info, *totals]
        info = "\n".join([*about, note]).strip()
        if everything or info != self._info:
            self._info = info
            found.append(SpaceInfo(space=self.number, text=ascii_lines(info)))
        return found

    def _look(
        self, state: SpaceState | None
    ) -> tuple[SpaceDefinition, dict[int, NDArray[Any]], NDArray[np.uint8]]:
        """The definition, the values of each stream by our number, and the flags."""
        if state is None:
            self._state = None
            gone = self._definition or SpaceDefinition(id=self.number, name=f"space {self.number}")
            empty = SpaceDefinition(
                id=self.number, name=gone.name, driver=gone.driver, streams=gone.streams
            )
            return empty, {}, np.empty(0, dtype=np.uint8)
        if state is not self._state and (self._state is None or state.space != self._state.space):
            self._streams, self._has_unknown = {}, False
        self._state = state
        groups = TileGroups.of(state.count, self._most_tiles)
        shown = self._shown(state)
        merged: dict[int, tuple[NDArray[Any], _Known]] = {}
        for number in shown:
            merged[number] = self._merged(state.streams[number], self._streams[number], groups)
        self._share_units(shown, state)
        definition = self._define(state, groups, shown)
        control = self._flags(state, groups, merged, definition)
        values = {
            number: self._streams[number].translated(
                one, known, self._parts(self._streams[number], groups)
            )
            for number, (one, known) in merged.items()
        }
        if self._has_unknown and not definition.unused_text.endswith(_OR_UNKNOWN):
            definition = self._define(state, groups, shown)
        return definition, values, control

    def _shown(self, state: SpaceState) -> list[int]:
        """The streams that have values: the others would be shown as zero. If none has, all are shown, in unused tiles."""
        with_values = [
            number
            for number, one in state.streams.items()
            if number in self._streams or one.known is None or bool(one.known.any())
        ]
        shown = (with_values or list(state.streams))[:MOST_STREAMS]
        if list(self._streams) != shown:
            before = self._streams
            self._streams = {}
            for place, number in enumerate(shown):
                stream = before.get(number) or OutgoingStream(state.streams[number].defined, place)
                stream.number = place
                self._streams[number] = stream
        return shown

    @staticmethod
    def _parts(stream: OutgoingStream, groups: TileGroups) -> int:
        return groups.size if not stream.named and groups.adds(stream.schema.presentation) else 1

    def _merged(
        self, state: StreamState, stream: OutgoingStream, groups: TileGroups
    ) -> tuple[NDArray[Any], _Known]:
        values, known = state.values, state.known
        outside = stream.unknown(values)
        if outside is not None:
            known = ~outside if known is None else known & ~outside
        presentation = Presentation.ENUM if stream.named else stream.schema.presentation
        found, known = groups.values(values, presentation), groups.known(known)
        stream.learn(found, known, state.names, self._parts(stream, groups))
        return found, known

    def _share_units(self, shown: list[int], state: SpaceState) -> None:
        """A stream that is percents of another one has the same unit."""
        for _ in shown:
            for number in shown:
                whole = state.streams[number].defined.max_stream
                if whole in self._streams and not self._streams[whole].named:
                    both = self._streams[number], self._streams[whole]
                    both[0].shift = both[1].shift = max(one.shift for one in both)

    def _define(self, state: SpaceState, groups: TileGroups, shown: list[int]) -> SpaceDefinition:
        space = state.space
        if self._names is None or self._names[0] != groups.size:
            self._names = groups.size, groups.names(state.names, space.naming)
        streams = []
        for number in shown:
            stream = self._streams[number]
            whole = self._streams.get(
                -1 if stream.schema.max_stream is None else stream.schema.max_stream
            )
            streams.append(stream.definition(self._parts(stream, groups), whole))
        about = space.description
        if groups.size > 1:
            about = f"{about}\n{groups.size:,} neighbouring tiles are shown as one: the space has {groups.tiles:,}".strip()
        return SpaceDefinition(
            id=self.number,
            name=ascii_text(space.name),
            driver=ascii_text(space.driver),
            tile_title=ascii_text(space.tile_title),
            block_info=ascii_lines(about),
            tiles=groups.count,
            unused_text=ascii_text(space.unused_text) + (_OR_UNKNOWN if self._has_unknown else ""),
            main=space.main,
            streams=_within_frame(streams),
            names=self._names[1],
        )

    def _flags(
        self,
        state: SpaceState,
        groups: TileGroups,
        merged: dict[int, tuple[NDArray[Any], _Known]],
        definition: SpaceDefinition,
    ) -> NDArray[np.uint8]:
        flags = groups.control(state.control.values.astype(np.uint8)) & _FLAGS
        unknown = np.zeros(definition.tiles, dtype=np.bool_)
        for _, known in merged.values():
            if known is not None:
                unknown |= ~known
        # What is unused anyway needs no values.
        unknown &= flags & np.uint8(Control.UNUSED | Control.BACKGROUND) == 0
        if unknown.any():
            self._has_unknown = True
            flags[unknown] = (flags[unknown] & ~np.uint8(Control.USED)) | np.uint8(Control.UNUSED)
        return flags

    def _summary(
        self,
        state: StreamState,
        stream: OutgoingStream,
        values: NDArray[Any],
        control: NDArray[np.uint8],
    ) -> list[Command]:
        told = state.told
        if stream.named:
            names = len(stream.definition(1, None).enum_names)
            if told is not None and len(told.values) == names:
                numbers: list[int | None] = [stream.sum_of(one) for one in told.values]
            else:
                used = control & np.uint8(Control.UNUSED | Control.BACKGROUND) == 0
                numbers = list(np.bincount(values[used], minlength=names).tolist())
        elif told is None:
            return []
        else:
            # Percents of a stream that is not sent yet are shown as plain numbers, which have one sum.
            whole = stream.schema.max_stream
            most = 1 if whole is not None and whole not in self._streams else None
            numbers = [stream.sum_of(one) for one in told.values[:most]]
        sent = tuple(one for one in numbers if one is not None)
        if len(sent) < len(numbers):
            return []
        return [Summary(space=self.number, stream=stream.number, values=sent)]

    @staticmethod
    def _too_large(state: StreamState, stream: OutgoingStream) -> list[str]:
        """Sums that do not fit 32 bits, as text."""
        if state.told is None or stream.named:
            return []
        if all(stream.sum_of(one) is not None for one in state.told.values):
            return []
        return [f"{stream.schema.name}: {state.told.values[0]:,}{stream.schema.suffix} in all"]


def _within_frame(streams: list[StreamDefinition]) -> tuple[StreamDefinition, ...]:
    """Return the definitions with texts so short that one frame has room for all."""
    found = tuple(streams)
    if sum(map(_text_bytes, found)) <= _MOST_STREAM_BYTES:
        return found
    return tuple(
        replace(
            one,
            name=one.name[: 2 * _SHORT_CHARS],
            prefix=one.prefix[: 2 * _SHORT_CHARS],
            suffix=one.suffix[: 2 * _SHORT_CHARS],
            enum_names=tuple(name[:_SHORT_CHARS] for name in one.enum_names),
        )
        for one in found
    )


def _text_bytes(stream: StreamDefinition) -> int:
    texts = (stream.name, stream.prefix, stream.suffix, *stream.enum_names)
    return sum(map(len, texts)) + len(texts)
