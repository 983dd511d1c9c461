"""Spaces of the original as spaces of a session: definitions, resizes, values.

A server of the original pushes values and then the event to which they belong. So values are kept
until their event, and written into the session's spaces if somebody wants it.

Knows messages of the original and the server's API; does not know where the messages come from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gcspy_original.wire import (
    Command,
    ControlValues,
    EventCounts,
    SpaceChanged,
    SpaceDefinition,
    SpaceInfo,
    StreamDefinition,
    StreamValues,
    Summary,
)
from gcspy_original.wire.schema import ENUM, PERCENT_VAR
from numpy.typing import NDArray

from gcspy_drivers.original.tiles import tiles_of_space
from gcspy_server.api import (
    Control,
    GatherRequest,
    PaintStyle,
    Presentation,
    Server,
    ServerSpace,
    ServerStream,
)

__all__ = ["OriginalSpaces", "clean_text"]


def clean_text(text: str) -> str:
    """Return a text of the original without what cannot be sent on: bytes that are no UTF-8, and the blanks around it."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").strip()


def _plain(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


@dataclass(eq=False)
class _Space:
    """One space: its definition, its counterpart, and what arrived since the last event."""

    definition: SpaceDefinition
    server_space: ServerSpace
    streams: dict[int, ServerStream]
    values: dict[int, NDArray[Any]] = field(default_factory=dict)
    summaries: dict[int, tuple[int, ...]] = field(default_factory=dict)
    control: NDArray[Any] | None = None
    info: str | None = None


class OriginalSpaces:
    """All spaces of one server of the original.

    Args:
        server: The session's server, to which they are added.
        driver: Name of the driver, for spaces that name none.
    """

    def __init__(self, server: Server, *, driver: str) -> None:
        self._server = server
        self._driver = driver
        self._spaces: dict[int, _Space] = {}
        self._counts: tuple[int, ...] = ()

    def add(self, definition: SpaceDefinition) -> None:
        """Add a space.

        Raises:
            LocalProtocolError: The session has no room for it.
        """
        space = self._server.add_space(
            _plain(definition.name),
            names=tiles_of_space(definition),
            driver=_plain(definition.driver) or self._driver,
            tile_title=_plain(definition.tile_title) or "Tile ",
            unused_text=_plain(definition.unused_text) or "unused",
            main=definition.main,
            description=clean_text(definition.block_info),
        )
        streams: dict[int, ServerStream] = {}
        for stream in _references_last(definition.streams):
            streams[stream.id] = _add_stream(space, stream, streams)
        self._spaces[definition.id] = _Space(definition, space, streams)

    def take(self, message: Command) -> None:
        """Keep what belongs to the next event; apply a resize at once.

        Raises:
            LocalProtocolError: The session has no room for a space.
        """
        match message:
            case StreamValues():
                self._spaces[message.space].values[message.stream] = message.values
            case ControlValues():
                self._spaces[message.space].control = message.values
            case Summary():
                self._spaces[message.space].summaries[message.stream] = message.values
            case SpaceInfo():
                self._spaces[message.space].info = clean_text(message.text)
            case EventCounts():
                self._counts = message.counts
            case SpaceChanged():
                self._change(message.space)
            case _:
                return

    def count_up_to(self, event: int) -> None:
        """Count the events that happened unseen, so that the next one of this kind has the number that the original gave it."""
        for kind, (theirs, ours) in enumerate(
            zip(self._counts, self._server.counts(), strict=False)
        ):
            unseen = theirs - ours - (kind == event)
            if unseen > 0:
                self._server.skip(kind, unseen)

    def fill(self, request: GatherRequest) -> None:
        """Write what arrived since the last event into the session's spaces; values that are not requested are kept until they are."""
        for space in self._spaces.values():
            target = space.server_space
            for number in [
                one for one in space.values if request.wants(target, space.streams[one])
            ]:
                stream = space.streams[number]
                stream.data[:] = space.values.pop(number)
                summary = space.summaries.pop(number, None)
                if summary is not None and len(summary) == stream.schema.summary_length:
                    stream.set_summary(*summary)
        self.leave_out()

    def leave_out(self) -> None:
        """Pass an event that nobody wants.

        Its values are kept: a server may send only what changed, so that they still hold at the next event.
        """
        for space in self._spaces.values():
            if space.info is not None:
                space.server_space.info = space.info
            # The flags of tiles hold until the next ones, also if they came with an event that nobody wanted.
            if space.control is not None:
                space.server_space.control[:] = space.control & np.uint8(sum(Control))
            space.control = space.info = None

    def _change(self, definition: SpaceDefinition) -> None:
        space = self._spaces[definition.id]
        tiles = tiles_of_space(definition)
        same = (
            space.definition.without_tiles == definition.without_tiles
            and space.server_space.names.naming is tiles.naming
            and clean_text(definition.block_info) == space.server_space.schema.description
        )
        if not same:
            info = space.server_space.info if space.info is None else space.info
            self._server.remove_space(space.server_space)
            self.add(definition)
            self._spaces[definition.id].server_space.info = info
            return
        if tiles != space.server_space.names:
            space.server_space.resize(tiles)
        # Values of the old tiles do not fit the new ones.
        self._spaces[definition.id] = _Space(
            definition, space.server_space, space.streams, info=space.info
        )


def _references_last(streams: tuple[StreamDefinition, ...]) -> list[StreamDefinition]:
    """Streams in their order, but those that are percents of others behind the others."""
    return sorted(streams, key=lambda one: one.presentation == PERCENT_VAR)


def _add_stream(
    space: ServerSpace, stream: StreamDefinition, others: dict[int, ServerStream]
) -> ServerStream:
    presentation = Presentation(stream.presentation)
    names = tuple(map(_plain, stream.enum_names)) if stream.presentation == ENUM else ()
    whole = others.get(stream.max_stream) if presentation is Presentation.PERCENT_VAR else None
    if (presentation is Presentation.ENUM and not names) or (
        presentation is Presentation.PERCENT_VAR and whole is None
    ):
        presentation = Presentation.PLAIN
    bounds = np.iinfo(stream.dtype)
    return space.add_stream(
        _unused_name(_plain(stream.name), {one.name for one in others.values()}),
        dtype=stream.dtype,
        max_stream=whole,
        minimum=stream.minimum,
        maximum=max(stream.minimum, stream.maximum),
        zero=stream.zero,
        default=min(max(stream.default, int(bounds.min)), int(bounds.max)),
        prefix=_plain(stream.prefix),
        suffix=_plain(stream.suffix),
        presentation=presentation,
        paint_style=PaintStyle.ZERO if stream.paint_style == PaintStyle.ZERO else PaintStyle.PLAIN,
        enum_names=names,
        colour=stream.colour,
        order=stream.id,
    )


def _unused_name(name: str, used: set[str]) -> str:
    """A name that no other stream of the space has."""
    found, number = name, 1
    while found in used:
        number += 1
        found = f"{name} ({number})"
    return found
