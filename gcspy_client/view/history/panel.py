"""History graphs in the window, one above the other on one axis of events, over all events that can be displayed.

The first shows the active space in its chosen stream; others keep their space and stream. They are
filled from the time shift, or from the files of the played recording; if those are not known, from
new events while they are open. They grow with the recording, whatever the window shows meanwhile.
The timeline determines the visible interval.

Knows the session, its recording and the parts below; does not know how rows are stored or pixels made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from gcspy_protocol.errors import RecordingError
from gcspy_protocol.interpreter import EventChange
from gcspy_protocol.model import Stream
from gcspy_replay.file import Recording
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSplitter, QVBoxLayout, QWidget

from gcspy_client.model.history.graph import HistoryGraph
from gcspy_client.model.history.painter import HistoryDrawn
from gcspy_client.model.history.pooling import Pooling
from gcspy_client.model.history.tracks import FOLLOWS, TrackSpec, graphed
from gcspy_client.model.history.value import TileAt
from gcspy_client.model.history.view import AUTOMATIC, HitResult
from gcspy_client.model.palette import Palette, Theme
from gcspy_client.model.playback.time_shift import TimeShift
from gcspy_client.model.playback.timeline import TimelineAxis
from gcspy_client.model.session import ClientSession
from gcspy_client.model.text import duration
from gcspy_client.view.history.axis import HistoryAxis
from gcspy_client.view.history.canvas import HistoryCanvas
from gcspy_client.view.history.feed import HistoryFeed
from gcspy_client.view.history.series import HistorySeries
from gcspy_client.view.history.time import HistoryTime
from gcspy_client.view.history.track import HistoryTrack
from gcspy_client.view.plain.widgets import PlainPushButton
from gcspy_client.view.time.timeline import TimelineStrip
from gcspy_client.view.widgets.elided_label import ElidedLabel

__all__ = ["HistoryPanel"]

_UNKNOWN_FILES = (
    "the recording's files are not available here: the graph begins with the next event"
)

_BUDGET_BYTES = 192 << 20
"""Memory for the rows of all graphs together; a magnified part may take as much again."""

_MOST_BUDGET = 128 << 20
"""Most memory of one graph, in bytes."""

MOST_TRACKS = 8

_READ_BEFORE = 0.9

_MOST_ENDED = 2
"""Feeds whose threads may still be at something when another begins."""


class HistoryPanel(QWidget):
    """History graphs, their axis, and the text about them.

    Signals:
        event_asked: The number of an event that was clicked.
        tile_asked: Id of a space, and the key of a tile that was clicked.
        tracks_changed: Graphs were added, removed, moved, or changed.
        renaming: The user wants to rename chosen tiles; their graph and their `Brush`.
        stopped: It was closed.
        tiles_changed: The user scrolled or zoomed the tiles of a graph.

    Args:
        session: The active space and stream.
        shift: The kept events of a live session.
        files: The files of the recording that is played; none where they are not known.
        theme: The theme of its colours.

    Attributes:
        tracks: The graphs, from top to bottom.
        time: The stretch of time that is seen.
    """

    event_asked = Signal(int)
    tile_asked = Signal(int, object)
    tracks_changed = Signal()
    renaming = Signal(object, object)
    stopped = Signal()
    tiles_changed = Signal()

    def __init__(
        self,
        session: ClientSession,
        shift: TimeShift,
        files: Callable[[], tuple[Path, ...]],
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._session, self._shift, self._files, self._theme = session, shift, files, theme
        self._identity: tuple[object, ...] = ()
        self._feed: HistoryFeed | None = None
        self._ended: list[HistoryFeed] = []
        self._failure = self._word = ""
        self._pointed: HistoryTrack | None = None
        self._was_read = False
        self.time = HistoryTime(self)
        self.tracks: list[HistoryTrack] = []
        self.said = ElidedLabel()
        self.bar = QHBoxLayout()
        self.axis = HistoryAxis(theme)
        self._splitter = QSplitter(Qt.Orientation.Vertical)
        self._build()
        self.add_track(FOLLOWS)

    def _build(self) -> None:
        self.said.setProperty("dim", "true")
        self.bar.setSpacing(6)
        self.bar.addWidget(self.said, 1)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setHandleWidth(7)
        self._splitter.setFrameShape(QFrame.Shape.NoFrame)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 4, 10, 4)
        column.setSpacing(4)
        column.addLayout(self.bar)
        column.addWidget(self._splitter, 1)
        column.addWidget(self.axis)

    def share_time(self, strip: TimelineStrip) -> None:
        """Show the interval of the timeline, and pass changes here on to it."""
        strip.looked.connect(lambda: self.time.follow(strip.span, by_time=strip.by_time))
        self.time.chosen.connect(strip.show_span)
        self.time.follow(strip.span, by_time=strip.by_time)

    def add_button(self, button: PlainPushButton) -> None:
        """Have a button at the right end of the first line."""
        self.bar.addWidget(button)

    # ------------------------------------------------------------------------- graphs

    @property
    def first(self) -> HistoryTrack:
        """The graph at the top; there always is one."""
        return self.tracks[0]

    @property
    def graph(self) -> HistoryGraph | None:
        """The source of the graph at the top; None while there is nothing to graph, or the panel is closed."""
        return self.first.graph

    @property
    def canvas(self) -> HistoryCanvas:
        """The picture at the top."""
        return self.first.canvas

    @property
    def series(self) -> HistorySeries:
        """The series of the graph at the top."""
        return self.first.series

    def add_track(self, spec: TrackSpec) -> HistoryTrack | None:
        """Add a graph below the others; None when there are enough."""
        if len(self.tracks) >= MOST_TRACKS:
            return None
        track = HistoryTrack(spec, self.time, self._theme)
        track.colours = self._colours
        if self.tracks:
            before = self.tracks[-1].canvas
            track.canvas.every, track.canvas.at_kind, track.canvas.marks = (
                before.every,
                before.at_kind,
                before.marks,
            )
        self.tracks.append(track)
        self._splitter.addWidget(track)
        track.pointed.connect(partial(self._track_pointed, track))
        track.picked.connect(partial(self._picked, track))
        track.closed.connect(partial(self.remove_track, track))
        track.moved.connect(partial(self.move_track, track))
        track.renaming.connect(partial(self.renaming.emit, track))
        track.brushes_changed.connect(self._share_height)
        track.canvas.looked.connect(self.tiles_changed)
        self._settle_tracks()
        return track

    def remove_track(self, track: HistoryTrack) -> None:
        """Close a graph; the last one stays."""
        if len(self.tracks) < 2 or track not in self.tracks:
            return
        self.tracks.remove(track)
        track.stop()
        track.setParent(None)
        track.deleteLater()
        if self._pointed is track:
            self._pointed = None
        self._settle_tracks()

    def move_track(self, track: HistoryTrack, by: int) -> None:
        """Move a graph down by a number of places."""
        place = self.tracks.index(track) + by
        if 0 <= place < len(self.tracks):
            self.tracks.remove(track)
            self.tracks.insert(place, track)
            self._splitter.insertWidget(place, track)
            self._settle_tracks()

    def _settle_tracks(self) -> None:
        for place, track in enumerate(self.tracks):
            track.set_place(place, len(self.tracks))
            track.set_budget(self._budget())
        self.axis.use(self.tracks[-1].canvas)
        self._share_height()
        self.refresh()
        self.tracks_changed.emit()

    def _share_height(self) -> None:
        """Let all pictures be equally high, whatever stands below them."""
        below = [track.height_below for track in self.tracks]
        each = max(1, (self._splitter.height() - sum(below)) // len(below))
        self._splitter.setSizes([each + more for more in below])

    def _budget(self) -> int:
        return min(_MOST_BUDGET, _BUDGET_BYTES // max(1, len(self.tracks)))

    def set_pooling(self, pooling: Pooling) -> None:
        """Let a pixel show the greatest, the mean or the least of what is under it."""
        for track in self.tracks:
            if track.spec.pooling is not pooling:
                track.spec = replace(track.spec, pooling=pooling)
        self.refresh()
        self.tracks_changed.emit()

    def set_tile_pixels(self, pixels: float | None) -> None:
        """Set the height of tiles in pixels; None: all fit."""
        for track in self.tracks:
            track.canvas.set_tile_pixels(pixels)
        self.tracks_changed.emit()

    def set_lines(self, *, every: int | None = None, at_kind: int | None = AUTOMATIC) -> None:
        """Draw lines.

        Args:
            every: Number of tiles between lines, 0 for none, or `AUTOMATIC`; None: unchanged.
            at_kind: Before each event of this kind, None for none; `AUTOMATIC`: as before.
        """
        for track in self.tracks:
            if every is not None:
                track.canvas.every = every
            if at_kind != AUTOMATIC:
                track.canvas.at_kind = at_kind
            track.canvas.request()
        self.tracks_changed.emit()

    def set_marks(self, marks: bool) -> None:
        """Mark pixels that hide changes, or do not."""
        for track in self.tracks:
            track.canvas.marks = marks
            track.canvas.request()
        self.tracks_changed.emit()

    def zoom_tiles(self, factor: float) -> None:
        """Larger tiles (below 1) or smaller ones, in all graphs."""
        for track in self.tracks:
            track.canvas.zoom_tiles(factor)

    def forget_brushes(self) -> None:
        """Plot no tiles."""
        for track in self.tracks:
            track.forget_brushes()

    def refuse(self, why: str) -> None:
        """Say what became of a request, until something else is to be said."""
        self._word = why
        self._say()

    def fit(self) -> None:
        """Show all events and all tiles."""
        for track in self.tracks:
            track.canvas.fit()
        self.tracks_changed.emit()

    # ------------------------------------------------------------------ the display

    def refresh(self) -> None:
        """Keep up with what the window shows: another space or stream is another graph."""
        if not self.isVisible():
            return
        welcome = self._session.live.welcome
        if welcome is None:
            self._leave()
            return
        identity = welcome.session, self._session.is_playback, self._files()
        if identity != self._identity:
            self._leave()
            self._identity = identity
            self._begin()
        feed = self._feed
        assert feed is not None
        event = self._session.interpreter.last_event
        above = None
        for track in self.tracks:
            self._refresh_track(track, feed)
            space = None if track.graphed is None else track.graphed.space
            track.separator.setVisible(
                above is not None and space != above
            )  # as between the spaces of one graph
            above = space
            track.canvas.show_marks(
                None if event is None else event.sequence, self._selected(track)
            )

    def _refresh_track(self, track: HistoryTrack, feed: HistoryFeed) -> None:
        found = graphed(track.spec, self._session, track.graphed)
        if found is None:
            if track.graph is not None:
                track.leave()
            track.canvas.words = (
                "the space does not exist now" if track.spec.space else "no event yet"
            )
            return
        now = track.graphed
        pooling = None if track.graph is None else track.graph.pooling
        if now is not None and now.identity == found.identity and pooling is track.spec.pooling:
            return
        if now is not None and now.identity != found.identity:
            track.forget_brushes()
            track.canvas.tiles = None
        track.begin(found, feed, self._recorded(), budget_bytes=self._budget())
        if not feed.reads:
            track.canvas.words = _UNKNOWN_FILES
        track.canvas.request()

    def _selected(self, track: HistoryTrack) -> int | None:
        space = (
            None
            if track.graphed is None
            else self._session.interpreter.spaces.get(track.graphed.space)
        )
        selected = None if space is None else self._session.selected(space.space.id)
        return None if space is None or selected is None else space.names.key(selected)

    def _begin(self) -> None:
        recorded = self._recorded()
        feed = self._feed = HistoryFeed(
            None if recorded is None else partial(self._open, recorded), self
        )
        self._was_read = False
        feed.grew.connect(self._grown)
        feed.drawn.connect(self._show_drawn)
        feed.failed.connect(self._failed)

    def _recorded(self) -> Callable[[], Recording] | None:
        """Opens what is recorded; None where that is not known."""
        if not self._session.is_playback:
            return self._shift.recording
        files = self._files()
        return partial(Recording.open, *files) if files else None

    def _open(self, recorded: Callable[[], Recording]) -> Recording | None:
        """In the filling thread: open it, or report that there is nothing yet."""
        try:
            return recorded()
        except RecordingError:
            if not self._session.is_playback and not self._shift.last:
                return None
            raise

    def _colours(self, space: int, stream: Stream, theme: Theme) -> Palette:
        """In which colours the user wants a stream."""
        state = self._session.interpreter.spaces.get(space) or self._session.live.spaces.get(space)
        return self._session.palettes.palette(
            "" if state is None else state.space.name, stream, theme
        )

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self._theme = theme
        self.axis.set_theme(theme)
        for track in self.tracks:
            track.set_theme(theme)

    def follow(self, change: EventChange) -> None:
        """Take an event that came, where none is recorded."""
        if self._feed is None or self._feed.reads:
            return
        for track in self.tracks:
            space = (
                None
                if track.graphed is None
                else self._session.live.spaces.get(track.graphed.space)
            )
            if track.follow(space, change):
                track.canvas.request_soon()

    def _grown(self) -> None:
        self._was_read |= self.read >= 1
        for track in self.tracks:
            track.canvas.request_soon()
        self._say()

    def _show_drawn(self, drawn: HistoryDrawn) -> None:
        track = next((one for one in self.tracks if one.graph is drawn.graph), None)
        if track is None:
            return
        view, events = drawn.picture.view, drawn.picture.events
        if drawn.look.span is None:
            ends = (view.first, view.last)
            self.time.whole = (
                ends
                if view.by_time
                else (events.number_at_place(ends[0]), events.number_at_place(ends[1]))
            )
        track.show_drawn(drawn)
        if track is self.first and len(events) and len(drawn.picture.rows.begins):
            numbers = events.numbers[
                [drawn.picture.rows.begins[0], drawn.picture.rows.ends[-1] - 1]
            ].tolist()
            if self._feed is not None and all(numbers):
                self._feed.look_at(*numbers)
        self._say()

    def _failed(self, why: str) -> None:
        self._failure = why
        for track in self.tracks:
            track.canvas.words = why
        self._say()

    def _leave(self) -> None:
        """Forget what was read and drawn; no timer is left, and the threads end."""
        feed, self._feed = self._feed, None
        for track in self.tracks:
            track.stop()
        if feed is not None:
            feed.end()
            self._ended.append(feed)
            while len(self._ended) > _MOST_ENDED:  # has ended long ago
                self._close_oldest()
        self._identity, self._failure, self._word, self._pointed = (), "", "", None
        self.said.setText("")

    # --------------------------------------------------------------------- pointing

    def _number(self, track: HistoryTrack, place: int) -> int | None:
        """The number of an event that is so manieth in a graph."""
        drawn = track.canvas.drawn
        if drawn is None:
            return None
        number = int(drawn.events.numbers[place])
        return number or self._session.timeline.number_at(
            int(drawn.events.times[place]), TimelineAxis.TIME
        )

    def _picked(self, track: HistoryTrack, place: int, key: int) -> None:
        number = self._number(track, place)
        if number is not None and track.graphed is not None:
            self.tile_asked.emit(track.graphed.space, key)
            self.event_asked.emit(number)

    def _track_pointed(self, track: HistoryTrack) -> None:
        if track.under is not None:
            self._pointed = track
        elif self._pointed is track:
            self._pointed = None
        self._say()

    def _say(self) -> None:
        """The text for the place under the mouse; without a mouse the amount of data."""
        track = self._pointed
        if track is not None and track.under is not None and track.canvas.drawn is not None:
            self._word = ""
            self.said.setText(self._words(track, track.under))
        else:
            self.said.setText(self._failure or self._word or self._whole(self.first))

    @property
    def read(self) -> float:
        """How much of what there is was read, 0 to 1."""
        return 0.0 if self._feed is None else self._feed.progress

    def _whole(self, track: HistoryTrack) -> str:
        drawn = track.canvas.drawn
        if drawn is None:
            return ""
        # Live data is read a moment later: that needs no message.
        more = (
            ""
            if self.read > (_READ_BEFORE if self._was_read else 1 - 1e-9)
            else f" · {self.read:.0%} read"
        )
        return f"{len(drawn.events):,} events · {len(drawn.keys):,} tiles{more}"

    def _words(self, track: HistoryTrack, under: HitResult) -> str:
        drawn, graphed_now = track.canvas.drawn, track.graphed
        if drawn is None or graphed_now is None:
            return ""
        place, events = under.events[-1], drawn.events
        number = self._number(track, place)
        name = self._session.live.event_name(int(events.kinds[place]))
        since = duration(int(events.times[place]) - int(events.times[0]))
        words = f"event {number or 0:,} · {name} #{int(events.occurrences[place]):,} · {since}"
        if len(under.events) > 1:
            words = f"{len(under.events)} events to {words}"
        title, text = f"tile {under.tiles[0]:,}", "…" if track.reads_values else ""
        value = (
            track.ask_value(TileAt(number, graphed_now.space, under.keys[0])) if number else None
        )
        if value is not None:
            title, text = value.title or title, value.text
        if len(under.tiles) > 1:
            title = f"{title}, the first of {len(under.tiles):,}"
        return f"{words} · {title}: {text}" if text else f"{words} · {title}"

    # ----------------------------------------------------------------------- closing

    def showEvent(self, event: QShowEvent) -> None:
        """Begin."""
        super().showEvent(event)
        self.refresh()

    def hideEvent(self, event: QHideEvent) -> None:
        """Drop everything when it is closed; a minimised window continues."""
        super().hideEvent(event)
        if not event.spontaneous():
            self._leave()

    def stop(self) -> None:
        """Read and draw no more; no thread and no timer is left."""
        self._leave()
        while self._ended:
            self._close_oldest()
        self.stopped.emit()

    def _close_oldest(self) -> None:
        feed = self._ended.pop(0)
        feed.close()
        feed.deleteLater()
