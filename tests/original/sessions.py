"""Random sessions of ours, as a driver makes them, for the way to the original's wire and back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gcspy_drivers.original.stored_session import StoredSession
from gcspy_original.outgoing import OutgoingSession
from gcspy_original.wire import Connection as OriginalConnection
from gcspy_original.wire import Side, commands, encode
from gcspy_protocol import Connection
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Hello
from gcspy_protocol.model import Control, PaintStyle, Presentation, Role
from hypothesis import strategies as st
from numpy.typing import NDArray

from gcspy_server.api import ExtentNames, Server, ServerSpace, StringNames, TileNames, UniformNames


class Viewer:
    """A viewer of ours, fed with a server's bytes."""

    def __init__(self, server: Server) -> None:
        self.state = ClientInterpreter()
        self._connection = Connection(Role.CLIENT)
        self._connection.send(Hello(client="test"))
        self.changes: list[Any] = []
        server.deliver_to(self._take)

    def _take(self, data: bytes) -> None:
        self._connection.receive_data(data)
        for message in self._connection.messages():
            change = self.state.apply(message)
            if change is not None:
                self.changes.append(change)


@dataclass
class ThereAndBack:
    """Our session on the original's wire, and what a session made of that shows."""

    here: Viewer
    bytes_sent: int = 0
    outgoing: OutgoingSession | None = None
    there: Viewer | None = None
    session: StoredSession | None = None
    wire: OriginalConnection = field(default_factory=lambda: OriginalConnection(Side.SERVER))
    most_tiles: int = 60_000
    together: bool = False
    step: int = 1 << 20

    def send(self) -> None:
        """Send the latest event."""
        state, change = self.here.state, self.here.changes[-1]
        data = b""
        if self.outgoing is None:
            self.outgoing = OutgoingSession(state, most_tiles=self.most_tiles)
            data = b"".join(map(encode, self.outgoing.bootstrap(state)))
            found = self.outgoing.event(state, change, everything=True)
        else:
            found = self.outgoing.event(state, change)
        data += commands(found) if self.together else b"".join(map(encode, found))
        self.bytes_sent += len(data)
        for start in range(0, len(data), self.step):
            self.wire.receive_data(data[start : start + self.step])
            for message in self.wire.messages():
                if self.wire.described and self.session is None:
                    self.session = StoredSession(self.wire)
                    self.there = Viewer(self.session.server)
                if self.session is not None:
                    self.session.take(message)


_PRESENTATIONS = (
    Presentation.PLAIN, Presentation.PLUS, Presentation.MAX_VAR, Presentation.PERCENT,
    Presentation.PERCENT_VAR, Presentation.ENUM,
)  # fmt: skip
_TEXTS = st.text(st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), max_size=8)


@st.composite
def tiles(draw: st.DrawFn, kind: str) -> TileNames:
    count = draw(st.integers(1, 7))
    if kind == "uniform":
        return UniformNames(
            draw(st.integers(0, 3)) * 4096, draw(st.sampled_from([16, 4096])), count
        )
    if kind == "extents":
        gaps = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
        bases = np.cumsum(np.array(gaps) + 10) * 16
        return ExtentNames(bases, np.full(count, 16 * draw(st.integers(1, 10))))
    return StringNames.by_text(
        draw(st.lists(_TEXTS.map("t".__add__), min_size=count, max_size=count))
    )


@st.composite
def values(draw: st.DrawFn, dtype: str, count: int, names: int) -> NDArray[Any]:
    bounds = np.iinfo(dtype)
    few = st.integers(0, min(int(bounds.max), 50))
    if names:
        few = st.integers(0, names - 1)
        any_of = few
    else:
        any_of = st.one_of(few, few, st.integers(int(bounds.min), int(bounds.max)))
    found = draw(st.lists(any_of, min_size=count, max_size=count))
    return np.array(found, dtype=dtype)


@st.composite
def with_streams(draw: st.DrawFn, server: Server, name: str) -> ServerSpace:
    """Add a space with some streams."""
    kind = draw(st.sampled_from(["uniform", "extents", "strings"]))
    space = server.add_space(
        name,
        names=draw(tiles(kind)),
        driver=draw(_TEXTS),
        tile_title="Tile ",
        unused_text="idle",
        main=draw(st.booleans()),
        description=draw(_TEXTS),
    )
    for number in range(draw(st.integers(1, 3))):
        presentation = draw(st.sampled_from(_PRESENTATIONS))
        if presentation is Presentation.PERCENT_VAR and not number:
            presentation = Presentation.PERCENT
        dtype = draw(st.sampled_from(["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]))
        top = int(np.iinfo(dtype).max)
        space.add_stream(
            f"s{number}",
            dtype=dtype,
            max_stream=space.streams[0] if presentation is Presentation.PERCENT_VAR else None,
            maximum=draw(st.sampled_from([min(100, top), top])),
            presentation=presentation,
            paint_style=draw(st.sampled_from(PaintStyle)),
            enum_names=("a", "b", "c") if presentation is Presentation.ENUM else (),
            colour=draw(st.sampled_from([None, (1, 2, 3)])),
            suffix=draw(st.sampled_from(["", " bytes"])),
        )
    return space


@st.composite
def fills(draw: st.DrawFn, space: ServerSpace) -> None:
    """Fill some streams of a space, as at an event; perhaps after a resize."""
    if draw(st.integers(0, 3)) == 0:
        space.resize(draw(tiles(str(space.names.naming))))
    chosen = [one for one in space.streams if draw(st.integers(0, 4))]
    if chosen:
        space.reset(*chosen)
    for stream in chosen:
        names = len(stream.schema.enum_names)
        stream.data[:] = draw(values(stream.schema.dtype, space.count, names))
        if draw(st.booleans()):
            stream.set_unknown(
                np.array(draw(st.lists(st.booleans(), min_size=space.count, max_size=space.count)))
            )
    if draw(st.booleans()):
        flags = [Control.USED, Control.UNUSED, Control.BACKGROUND, Control.USED | Control.SEPARATOR]
        space.control[:] = draw(
            st.lists(st.sampled_from(flags), min_size=space.count, max_size=space.count)
        )
    space.info = draw(_TEXTS)
