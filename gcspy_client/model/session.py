"""One session, as one window sees it: its data, and the user's choices.

The user's choices outlive the data: after a reconnect to the same session the active space, the
streams and the selected tiles are unchanged, and after a resize the selection is on the same
address.

*Live* is the latest state; *shown* may be an earlier event of the time shift. The link updates the
one, views draw the other; the controller and the state of the target always come from the live one.

Knows the interpreter; does not know sockets or widgets. Nothing here is a singleton: two sessions
can be shown side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

from gcspy_protocol.interpreter import ClientInterpreter, EventChange, SpaceState, StreamState
from gcspy_protocol.messages import Event, Message, TileNamesRequest, Welcome
from gcspy_protocol.messages import Timeline as TimelinePage
from gcspy_protocol.model import Mode, Stream

from gcspy_client.model.history.summaries import SummaryHistory
from gcspy_client.model.palettes import PaletteChoice
from gcspy_client.model.playback.timeline import EventTimeline
from gcspy_client.model.text import control_words, long_value
from gcspy_client.model.tile_source import TileSource, top_of
from gcspy_client.model.view_states import SpaceViewStates

__all__ = [
    "NAMES_PAGE",
    "ClientSession",
    "TileRow",
    "event_words",
    "ordered_streams",
    "summary_is_stale",
    "tile_rows",
    "tile_title",
    "top_of",
]

NAMES_PAGE = 256
"""Tile names requested at a time."""


@dataclass(frozen=True, slots=True)
class TileRow:
    """One stream's value of one tile.

    Attributes:
        stream: The stream's id.
        name: Its name.
        text: The value in words.
        fresh: Whether it is not older than is usual for it.
    """

    stream: int
    name: str
    text: str
    fresh: bool


def ordered_streams(space: SpaceState) -> list[Stream]:
    """The streams of a space, the most important first."""
    return sorted((s.schema for s in space.streams.values()), key=lambda s: (s.order, s.id))


def tile_title(space: SpaceState, tile: int) -> str:
    """Name of a tile: title and name, ``Pool [0x7f…, 0x7f…)``."""
    return f"{space.space.tile_title.strip()} {space.names.name(tile)}".strip()


def tile_rows(space: SpaceState, tile: int, event: Event | None) -> list[TileRow]:
    """All streams' values of a tile, the most important first.

    An unused tile has no values: its only row says so.
    """
    words = control_words(int(space.control.values[tile]), space.space.unused_text)
    rows = []
    if words:
        rows.append(TileRow(-1, "State", words, event is None or not space.control.is_stale(event)))
    for schema in ordered_streams(space):
        state: StreamState = space.streams[schema.id]
        text = long_value(
            schema,
            int(state.values[tile]),
            known=state.is_known(tile),
            top=top_of(space, schema, tile),
        )
        rows.append(
            TileRow(schema.id, schema.name, text, event is None or not state.is_stale(event))
        )
    return rows


def summary_is_stale(state: StreamState, event: Event) -> bool:
    """Whether the summary of a stream is not of an event, and older than is usual for it."""
    summary = state.summary
    if summary is None or summary.sequence == event.sequence:
        return False
    return state.is_fresh(event) or state.is_stale(event)


def event_words(session: ClientInterpreter, number: int) -> str:
    """An event in words: number, kind and occurrence."""
    event = session.last_event
    if event is None:
        return "no event"
    name = f"{session.event_name(event.event)} #{event.occurrence:,}"
    return f"event {number:,}, {name}" if number else name


class ClientSession:
    """The data of a server and the user's choices.

    Args:
        timeline: Table of events of a live session: the time shift adds to it. A player's pages
            replace them.

    Attributes:
        live: The latest state of the server.
        interpreter: The state that is shown: `live`, or an earlier one.
        timeline: Which events can be gone to.
        active: Id of the space that the user made active; None: no choice yet.
        events_seen: Events applied since the session was joined.
        looks: The view of each space.
        palettes: The palettes of streams.
    """

    def __init__(self, timeline: EventTimeline | None = None) -> None:
        self.live = ClientInterpreter()
        self.interpreter = self.live
        self.timeline = EventTimeline() if timeline is None else timeline
        self.active: int | None = None
        self.events_seen = 0
        self.looks = SpaceViewStates()
        self.palettes = PaletteChoice()
        self._history = SummaryHistory()
        self._past: SummaryHistory | None = None
        self._number = 0
        self._behind = self._seen = (
            0  # events behind the displayed one, when that was chosen, and events seen then
        )
        self._chosen: dict[int, int] = {}
        self._selected: dict[int, int] = {}
        self._asked: set[tuple[int, int]] = set()
        self._identity = ""

    def restart(self) -> None:
        """Prepare for a new connection: its bootstrap comes again, the user's choices are kept.

        A user who looks at the past continues to do so.
        """
        was_live = self.is_live
        self.live = ClientInterpreter()
        if was_live:
            self.interpreter = self.live
        self._asked.clear()

    def apply(self, message: Message) -> EventChange | None:
        """Follow a message.

        Returns:
            The change in `live`, if the message ends an event.

        Raises:
            RemoteProtocolError: It contradicts earlier messages.
        """
        change = self.live.apply(message)
        if isinstance(message, Welcome) and message.session != self._identity:
            self._identity = message.session
            self._history = SummaryHistory()
            self.active = None
            self.events_seen = 0
            self._chosen.clear()
            self.looks.clear()
            self._selected.clear()
            self.go_live()
            if self.is_playback:
                self.timeline.clear()
        elif isinstance(message, TimelinePage):
            self.timeline.take(message)
        if change is not None:
            self.events_seen += 1
            self._history.follow(self.live, change.event)
            for space in change.resized:
                self._asked = {key for key in self._asked if key[0] != space}
        return change

    # ------------------------------------------------------------------------- when

    @property
    def is_live(self) -> bool:
        """Whether the displayed state is the latest (for a playback: its position)."""
        return self.interpreter is self.live

    @property
    def is_playback(self) -> bool:
        """Whether the server is a player: its events are those of a recording."""
        return self.live.welcome is not None and self.live.welcome.mode is Mode.PLAYBACK

    @property
    def number(self) -> int:
        """Number of the displayed event; 0 if there is none, or events have no numbers."""
        if not self.is_live:
            return self._number
        return self.live.position if self.is_playback else self.timeline.last

    @property
    def behind(self) -> int:
        """Number of events that arrived after the displayed one."""
        if self.is_live:
            return 0
        # Events count even if they are no longer stored, and so not in the timeline.
        return self._behind + self.events_seen - self._seen

    @property
    def history(self) -> SummaryHistory:
        """The summaries around the displayed event."""
        return self._history if self._past is None else self._past

    def show(self, interpreter: ClientInterpreter, number: int) -> None:
        """Show an earlier state; new messages are still applied to the live one.

        Args:
            interpreter: The state; it may be the displayed one, changed in place.
            number: Number of its event.
        """
        if interpreter is self.live:
            self.go_live()
            return
        if self._past is None:
            self._past = self._history.copy()
        self._keep_places(interpreter)
        self.interpreter, self._number = interpreter, number
        self._behind, self._seen = self.timeline.after(number), self.events_seen
        if interpreter.last_event is not None:
            self._past.follow(interpreter, interpreter.last_event)

    def _keep_places(self, past: ClientInterpreter) -> None:
        """Let names have the colours in an earlier state that they have now, as far as that serves."""
        for space_id, space in past.spaces.items():
            live = self.live.spaces.get(space_id)
            for stream_id, stream in space.streams.items():
                if (
                    stream.names
                    and not stream.places
                    and live is not None
                    and stream_id in live.streams
                ):
                    stream.places = live.streams[stream_id].places

    def go_live(self) -> None:
        """Show the latest state, and follow it."""
        self.interpreter, self._number, self._past = self.live, 0, None

    # ------------------------------------------------------------ views

    def active_space(self) -> SpaceState | None:
        """The active space: the user's choice, else the main one, else the first."""
        spaces = self.interpreter.spaces
        if self.active in spaces:
            return spaces[self.active]
        main = (space for space in spaces.values() if space.space.main)
        return next(main, next(iter(spaces.values()), None))

    def activate(self, space: int) -> None:
        """Make a space the active one."""
        if space in self.interpreter.spaces:
            self.active = space

    def activate_next(self, step: int) -> None:
        """Make the next (1) or previous (-1) space the active one."""
        ids = list(self.interpreter.spaces)
        now = self.active_space()
        if now is not None:
            self.active = ids[(ids.index(now.space.id) + step) % len(ids)]

    def chosen_stream(self, space: int) -> int | None:
        """The stream in which a space is painted: the user's choice, else the most important one."""
        state = self.interpreter.spaces[space]
        chosen = self._chosen.get(space)
        if chosen in state.streams:
            return chosen
        streams = ordered_streams(state)
        return streams[0].id if streams else None

    def chosen_source(self, space: int) -> TileSource | None:
        """The numbers that a space is painted with: those of the chosen stream, or of a derived one."""
        state = self.interpreter.spaces[space]
        made = self.looks.source(state, self.looks.chosen.get(space, 0))
        if made is not None and made.schema.id < 0:
            return made
        stream = self.chosen_stream(space)
        return None if stream is None else self.looks.source(state, stream)

    def choose_stream(self, space: int, stream: int) -> None:
        """Paint a space in another stream; one that the user made has a number below 0.

        A derived stream leaves the chosen stream of displays that cannot show it, such as the
        summary over time, unchanged.
        """
        self.looks.chosen.pop(space, None)
        if stream < 0:
            self.looks.chosen[space] = stream
        else:
            self._chosen[space] = stream

    def select(self, space: int, tile: int | None) -> None:
        """Select a tile, by its stable key; None selects none."""
        if tile is None:
            self._selected.pop(space, None)
        else:
            self._selected[space] = self.interpreter.spaces[space].names.key(tile)

    def select_key(self, space: int, key: int) -> None:
        """Select a tile by its stable key, whether or not it is there now."""
        self._selected[space] = key

    def selected(self, space: int) -> int | None:
        """The selected tile's number now; None when none is selected or it is gone."""
        key = self._selected.get(space)
        state = self.interpreter.spaces.get(space)
        return None if key is None or state is None else state.names.index_of(key)

    def selected_key(self, space: int) -> int | None:
        """The selected tile's stable key, whether or not it is there; None when none is selected."""
        return self._selected.get(space)

    def selection_gone(self, space: int) -> bool:
        """Whether the selected tile no longer exists."""
        return space in self._selected and self.selected(space) is None

    def missing_names(self, space: int, first: int, last: int) -> list[TileNamesRequest]:
        """The requests for names of the tiles from `first` to before `last`; each page once.

        Nothing while the past is shown: the server's answer would be of now.
        """
        if not self.is_live:
            return []
        state = self.interpreter.spaces[space]
        requests = []
        for page in range(first // NAMES_PAGE, -(-last // NAMES_PAGE)):
            start = page * NAMES_PAGE
            count = min(NAMES_PAGE, state.count - start)
            if (
                count <= 0
                or (space, page) in self._asked
                or not state.names.missing(max(first, start))
            ):
                continue
            self._asked.add((space, page))
            requests.append(TileNamesRequest(space=space, first=start, count=count))
        return requests
