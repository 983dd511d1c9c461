"""The timeline: every event of a session in one strip, to look where one is and to go elsewhere.

At the top the flags of bookmarks and the handles of the range; then memory over the whole session as
areas, with collections by their cost; then one lane for each kind of event, so that kinds differ in
place as well as in colour; then the axis.

    click                go there            wheel, + −       closer, farther
    drag over memory     choose a range      Shift + wheel    move along
    drag over lanes      go along            double click, 0  the whole session
    drag a handle        change the range    Shift + arrows   choose a range

Knows an `EventTimeline` and the position in it; does not know who plays it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from gcspy_protocol.model import EventFilter
from gcspy_protocol.text.visible import Lines
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QNativeGestureEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QGestureEvent, QPinchGesture, QSizePolicy, QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.model.playback.memory_track import MemoryTrack
from gcspy_client.model.playback.strip import (
    TimelineInterval,
    UnrecordedEvents,
    moment_text,
    ticks_in,
)
from gcspy_client.model.playback.timeline import EventTimeline, Overview, TimelineAxis
from gcspy_client.model.text import duration
from gcspy_client.view.plain.text import (
    draw_text,
    draw_text_at,
    elided,
    hide_tip,
    set_accessible_name,
    show_tip,
)
from gcspy_client.view.theme import small_font, tokens
from gcspy_client.view.time.lanes import Lanes, draw_lanes, kind_colour
from gcspy_client.view.time.memory_layer import MemoryLayer

__all__ = ["TimelineFlag", "StripFacts", "TimelineStrip"]

_LEAST_SPAN_NANOS = 1_000_000

_FLAGS_HEIGHT = 13
_AXIS_HEIGHT = 17
_LANE_HEIGHT = 13
_LANES_HEIGHT = 52
"""Greatest height of all lanes together; with more kinds the lanes are thinner."""

_PLOT_SHARE = 0.085
_LEAST_PLOT, _MOST_PLOT = 40, 120
"""Height of the memory, as a share of the window's, and its limits: 61 pixels at 720."""

_BARS_ONLY = 28
"""Height of the plot if only collections are known."""

_GAP = 2
"""Between memory and lanes."""

_NAMED_LANE = 12
"""A lane as high as this has its name beside it."""

_NARROW_GUTTER, _WIDE_GUTTER = 92, 168
"""Room for names of kinds at the left: as much as they need, between the two."""

_MARGIN = 9
_REACH = 5
"""Logical pixels within which the mouse takes hold of a handle or a flag."""

_BRUSH_PIXELS = 4
"""A press that moves less is a click."""

_ZOOM = 0.8
_FAR_EVENTS = 10

_TICK_WIDTH = 96

_REST_MILLIS = 300
"""Between two drawings of a live timeline that only grows: each costs 2 ms."""

_STEPS = {
    Qt.Key.Key_Left: -1,
    Qt.Key.Key_Right: 1,
    Qt.Key.Key_Down: -_FAR_EVENTS,
    Qt.Key.Key_Up: _FAR_EVENTS,
}
"""Events."""

_ZOOM_KEYS = {
    Qt.Key.Key_Plus: _ZOOM,
    Qt.Key.Key_Equal: _ZOOM,
    Qt.Key.Key_Minus: 1 / _ZOOM,
    Qt.Key.Key_0: 0.0,
}
"""Factors; 0: the whole session."""

_PENNANT = QPolygonF([QPointF(0, 1), QPointF(8, 4), QPointF(0, 7.5)])
_FIRED = QPolygonF(
    [
        QPointF(-3.5, 0),
        QPointF(1.5, 0),
        QPointF(-0.2, 4),
        QPointF(2.8, 4),
        QPointF(-2.6, 10.5),
        QPointF(-1, 5.6),
        QPointF(-4.2, 5.6),
    ]
)
"""A bookmark's flag, to the right of its event; a trigger's flash, upon it."""


def _is_own(event: QKeyEvent) -> bool:
    """Whether a key that the window knows too means the timeline while that has the keyboard."""
    shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
    key = Qt.Key(event.key())
    return key in _ZOOM_KEYS or (shift and key in (Qt.Key.Key_Home, Qt.Key.Key_End))


@dataclass(frozen=True, kw_only=True, slots=True)
class TimelineFlag:
    """A mark on an event, as the strip shows it: a bookmark, a fired trigger, or a letter.

    Attributes:
        number: Number of the event.
        title: Text of the tooltip.
        fired: Whether a trigger fired there.
        letter: Letter of the event that others are compared with; otherwise empty.
    """

    number: int
    title: str
    fired: bool = False
    letter: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class StripFacts:
    """Facts that the timeline displays.

    Attributes:
        kinds: Names of the kinds of event, by id.
        number: Number of the event on display; 0: none.
        live: Whether the display follows the newest event.
        ended: Whether the target has ended.
        of_process: Whether the target is a process, which has memory.
        growing: Whether events are still coming.
        chosen: First and last event of the chosen range.
        looping: Whether the range is played over and over.
        flags: Bookmarks, and where triggers fired.
        filters: Filters that hide events of a playback.
        filtered: Kinds of which a filter hid some when they were recorded.
        wall_offset_nanos: Add to a time for nanoseconds since 1970.
    """

    kinds: tuple[str, ...] = ()
    number: int = 0
    live: bool = False
    ended: bool = False
    of_process: bool = False
    growing: bool = False
    chosen: tuple[int, int] | None = None
    looping: bool = False
    flags: tuple[TimelineFlag, ...] = ()
    filters: tuple[EventFilter, ...] = ()
    filtered: frozenset[int] = frozenset()
    wall_offset_nanos: int = 0


class TimelineStrip(QWidget):
    """Draws a `EventTimeline`.

    Signals:
        scrubbed: The user went to an event; its number.
        stepped: The user steps by this many events (negative: back).
        range_chosen: First and last event of the range that the user drew.
        range_forgotten: The user wants no range.
        looked: The visible part changed.
        laid_out: The range or the visible part has another place in the widget.

    Args:
        theme: The theme of its colours.
    """

    scrubbed = Signal(int)
    stepped = Signal(int)
    range_chosen = Signal(int, int)
    range_forgotten = Signal()
    looked = Signal()
    laid_out = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._timeline = EventTimeline()
        self._facts = StripFacts()
        self._by_time = True
        self._stretch: TimelineInterval | None = None  # None: the whole, as it grows
        self._raster: QImage | None = None
        self._drawn: tuple[object, ...] = ()
        self._overview: Overview | None = None
        self._unrecorded = UnrecordedEvents()
        self._hover: float | None = None
        self._drag: Callable[[float], None] | None = None
        self._range_from = 0
        self._pressed_at = 0.0
        self._brushes = False
        self._anchor: tuple[int, int] | None = None  # of a range by keys: fixed end, moving end
        self._layer = MemoryLayer(theme)
        self._window: QWidget | None = None
        self._end_before = 0.0
        self._gutter = _NARROW_GUTTER
        self._waits = False
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.timeout.connect(self._rested)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.grabGesture(Qt.GestureType.PinchGesture)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        set_accessible_name(self, "Timeline")

    # ------------------------------------------------------------------ what it shows

    @property
    def by_time(self) -> bool:
        """Whether the axis is time; else the number of the event."""
        return self._by_time

    @property
    def zoomed(self) -> bool:
        """Whether only a part is in view."""
        return self._stretch is not None

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self._theme = theme
        self._layer.theme = theme
        self.update()

    @property
    def layer(self) -> MemoryLayer:
        """The memory behind the events."""
        return self._layer

    def show_memory(self, track: MemoryTrack) -> None:
        """Draw this memory behind the events."""
        before = self.sizeHint()
        self._layer.track = track
        track.follow(self._timeline, self._facts.kinds)
        self._gutter = self._room_for_names()
        if self.sizeHint() != before:
            self.updateGeometry()
            self.laid_out.emit()
        self.update()

    def set_by_time(self, by_time: bool) -> None:
        """Let the axis be time, or the number of the event."""
        if by_time != self._by_time:
            self._by_time = by_time
            self._stretch = None
            self.looked.emit()
            self.update()

    def show_timeline(self, timeline: EventTimeline, facts: StripFacts) -> None:
        """Draw this, from now on."""
        if timeline is not self._timeline:
            self._timeline = timeline
            self._look(None)
            self._unrecorded.clear()
        if not facts.growing and facts.filtered != self._facts.filtered:
            self._unrecorded.clear()  # which filters there were is known of the whole recording at once
        self._unrecorded.follow(timeline.numbers, timeline.rows, facts.filtered)
        self._layer.track.follow(timeline, facts.kinds)
        before = self.sizeHint()
        other_kinds = facts.kinds != self._facts.kinds
        moved = facts.number != self._facts.number
        if facts.chosen != self._facts.chosen and facts.chosen != self._ends_of_anchor():
            self._anchor = None
        self._facts = facts
        if other_kinds:
            self._gutter = self._room_for_names()
        if self.sizeHint() != before:
            self.updateGeometry()
        if self._stretch is not None:
            self._keep_up(moved)
        self._end_before = self._whole()[1]
        self.laid_out.emit()
        if other_kinds or not facts.live:
            self.update()
        elif not self._rest.isActive():  # only the end moves, and nobody reads that so often
            self.update()
            self._rest.start(_REST_MILLIS)
        else:
            self._waits = True

    def _rested(self) -> None:
        if self._waits:
            self._waits = False
            self.update()
            self._rest.start(_REST_MILLIS)

    def stop(self) -> None:
        """Draw no more: the window closes."""
        self._waits = False
        self._rest.stop()

    def _keep_up(self, moved: bool) -> None:
        """Move the part in view with the newest event, or with the one on display."""
        assert self._stretch is not None
        whole = self._whole()
        if self._facts.live and self._stretch.end >= self._end_before:
            self._look(self._stretch.showing(whole[1], whole))
        elif moved and self._drag is None and self._facts.number:
            self._look(self._stretch.showing(self._place_of(self._facts.number), whole))

    def show_whole(self) -> None:
        """Show the whole session, as it grows."""
        self._look(None)

    @property
    def span(self) -> tuple[float, float] | None:
        """The ends of the part in view, in nanoseconds or event numbers; None: the whole, as it grows."""
        return None if self._stretch is None else (self._stretch.start, self._stretch.end)

    def show_span(self, span: tuple[float, float] | None) -> None:
        """Show a part, as far as there is one; None: the whole."""
        whole = self._whole()
        if span is not None and span[1] - span[0] < (whole[1] - whole[0]) * 0.999:
            start, end = max(span[0], whole[0]), min(span[1], whole[1])
            if end > start:
                self._look(
                    TimelineInterval(start, end, max(1, int(self._lanes().width())), self._by_time)
                )
                return
        self._look(None)

    def _look(self, stretch: TimelineInterval | None) -> None:
        """Set the visible part, and notify others that show the same."""
        if stretch != self._stretch:
            self._stretch = stretch
            self.looked.emit()
            self.laid_out.emit()
            self.update()

    def sizeHint(self) -> QSize:
        """Return the height of its contents; it takes any width."""
        return QSize(400, round(self._lanes().bottom()) + _AXIS_HEIGHT)

    def minimumSizeHint(self) -> QSize:
        """Return the least size: it may become narrower, not lower."""
        return QSize(_NARROW_GUTTER + 120, self.sizeHint().height())

    # ------------------------------------------------------------------------- places

    @property
    def _axis(self) -> TimelineAxis:
        return TimelineAxis.TIME if self._by_time else TimelineAxis.NUMBER

    def _room_for_names(self) -> int:
        metrics = QFontMetrics(small_font(self.font()))
        wanted = (
            max((metrics.horizontalAdvance(name) for name in self._facts.kinds), default=0) + 28
        )
        wanted = max(wanted, self._layer.wanted_gutter(metrics))
        return max(_NARROW_GUTTER, min(wanted, _WIDE_GUTTER, self.width() // 5))

    def _lanes_height(self) -> int:
        kinds = max(1, len(self._facts.kinds))
        return max(2 * _LANE_HEIGHT, min(_LANES_HEIGHT, kinds * _LANE_HEIGHT))

    def _plot_height(self) -> int:
        # Of a process also before its memory is known: tiles and panels keep their places when it comes.
        if self._layer.track.has_memory or self._facts.of_process:
            share = round(self.window().height() * _PLOT_SHARE)
            return max(_LEAST_PLOT, min(share, _MOST_PLOT))
        return _BARS_ONLY if self._layer.track.costs.kinds.pairs else 0

    def _whole(self) -> tuple[float, float]:
        start, stop = self._timeline.span(self._axis)
        # A lone event has room around it, and one that more will follow; what is over within a moment has all the room.
        short = self._facts.growing or stop - start < _LEAST_SPAN_NANOS
        least = (1e9 if short else 0.0) if self._by_time else 1.0
        return float(start), float(max(stop, start + least))

    def plot(self) -> QRectF:
        """Return the rectangle of the memory, in the widget; its height is 0 if no memory is known."""
        width = max(1, self.width() - self._gutter - _MARGIN)
        return QRectF(self._gutter, _FLAGS_HEIGHT, width, self._plot_height())

    def _lanes(self) -> QRectF:
        """Return the rectangle of the lanes, in the widget."""
        plot = self.plot()
        top = plot.bottom() + (_GAP if plot.height() else 0)
        return QRectF(plot.left(), top, plot.width(), self._lanes_height())

    @property
    def body(self) -> QRectF:
        """Memory and lanes together, in the widget."""
        lanes = self._lanes()
        return QRectF(lanes.left(), _FLAGS_HEIGHT, lanes.width(), lanes.bottom() - _FLAGS_HEIGHT)

    def stretch(self) -> TimelineInterval:
        """The visible part; its pixels are logical ones."""
        pixels = max(1, int(self._lanes().width()))
        if self._stretch is not None:
            if self._stretch.pixels != pixels:
                self._stretch = TimelineInterval(
                    self._stretch.start, self._stretch.end, pixels, self._by_time
                )
            return self._stretch
        start, end = self._whole()
        return TimelineInterval(start, end, pixels, self._by_time)

    def _place_of(self, number: int) -> float:
        return float(self._timeline.place_of(number, self._axis))

    def x_of(self, number: int) -> float:
        """Return the x coordinate of an event, in the widget."""
        middle = 0.0 if self._by_time else 0.5
        return self._gutter + self.stretch().pixel_of(self._place_of(number) + middle)

    def range_in_view(self, first: int, last: int) -> tuple[float, float] | None:
        """Left and right edge of a range of events in the widget, as far as visible; None: nothing of it is."""
        lanes = self._lanes()
        left, right = self.x_of(first), self.x_of(last)
        if right < lanes.left() or left > lanes.right():
            return None
        return max(left, lanes.left()), min(right, lanes.right())

    def show_events(self, first: int, last: int) -> None:
        """Show these events, with a little room at both ends."""
        low, high = self._place_of(first), self._place_of(last) + (0.0 if self._by_time else 1.0)
        room = (high - low) * 0.02
        self.show_span((low - room, high + room))

    def number_at(self, x: float) -> int | None:
        """The event nearest to a place in the widget; None if there is none."""
        place = self.stretch().place_at(x - self._gutter)
        return self._timeline.number_at(int(place), self._axis)

    # ----------------------------------------------------------------------- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """Memory, lanes and axis from the raster, everything that moves over it."""
        plot, lanes, body = self.plot(), self._lanes(), self.body
        with QPainter(self) as painter:
            painter.setFont(small_font(self.font()))
            painter.fillRect(lanes, QColor(tokens(self._theme).canvas))
            painter.fillRect(plot, QColor(tokens(self._theme).canvas))
            if len(self._timeline):
                painter.drawImage(lanes.topLeft(), self._image())
                if plot.height():
                    assert self._overview is not None
                    self._layer.paint(painter, plot, self._overview, self._facts.kinds)
                self._paint_axis(painter, lanes)
                self._paint_names(painter, lanes)
                self._paint_range(painter, body)
                self._paint_hover(painter, body)
                self._paint_flags(painter, body)
                self._paint_playhead(painter, body)
                if plot.height():
                    self._layer.paint_words(painter, plot, self._gutter, self._number_shown())
            else:
                painter.setPen(QColor(tokens(self._theme).dim))
                draw_text(painter, body, Qt.AlignmentFlag.AlignCenter, "events will appear here")
            if self.hasFocus():
                painter.setPen(QPen(QColor(tokens(self._theme).accent), 1))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRect(body.adjusted(-1, -1, 1, 1))

    def _number_shown(self) -> int:
        """The event on display: live, the newest, even before that is announced."""
        return self._timeline.last if self._facts.live else self._facts.number

    def _image(self) -> QImage:
        """The lanes, in device pixels; made again only if their appearance changed."""
        scale = self.devicePixelRatioF()
        stretch = self.stretch()
        facts = self._facts
        look = (facts.kinds, facts.filters, facts.filtered, self._theme)
        state = (self._timeline, self._timeline.version, stretch, scale, *look)
        if self._raster is None or state != self._drawn:
            self._drawn = state
            self._raster = self._draw_lanes(stretch, scale)
        return self._raster

    def _draw_lanes(self, stretch: TimelineInterval, scale: float) -> QImage:
        facts = self._facts
        overview = self._timeline.overview(
            stretch.pixels,
            axis=self._axis,
            start=int(stretch.start),
            stop=int(np.ceil(stretch.end)),
            filters=facts.filters,
        )
        self._overview = overview
        lanes = Lanes(
            overview=overview,
            hidden=self._unrecorded.in_view(stretch),
            colours=tuple(
                kind_colour(kind, len(facts.kinds), self._theme)
                for kind in range(max(1, len(facts.kinds)))
            ),
            off=frozenset(one.event for one in facts.filters if not one.enabled),
        )
        return draw_lanes(lanes, self._theme, self._lanes_height(), scale)

    def _paint_names(self, painter: QPainter, lanes: QRectF) -> None:
        kinds = self._facts.kinds
        height = lanes.height() / max(1, len(kinds))
        painter.setPen(QColor(tokens(self._theme).dim))
        if height < _NAMED_LANE:
            text = f"{len(kinds)} kinds of event"
            draw_text(
                painter,
                QRectF(0, lanes.top(), self._gutter - 8, lanes.height()),
                Qt.AlignmentFlag.AlignCenter,
                text,
            )
            return
        for lane, name in enumerate(kinds):
            row = QRectF(0, lanes.top() + lane * height, self._gutter - 8, height)
            painter.fillRect(
                QRectF(2, row.center().y() - 4, 8, 8), kind_colour(lane, len(kinds), self._theme)
            )
            text = elided(
                painter.fontMetrics(), name, Qt.TextElideMode.ElideMiddle, int(row.width()) - 16
            )
            draw_text(
                painter,
                row.adjusted(16, 0, 0, 0),
                int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter),
                text,
            )

    def _paint_axis(self, painter: QPainter, lanes: QRectF) -> None:
        t = tokens(self._theme)
        stretch = self.stretch()
        origin = self._whole()[0] if self._by_time else 0.0
        ticks, step = ticks_in(stretch, max(1, int(lanes.width() / _TICK_WIDTH)), origin)
        for place in ticks.tolist():
            x = lanes.left() + stretch.pixel_of(place + (0.0 if self._by_time else 0.5))
            if not lanes.left() <= x <= lanes.right():
                continue
            painter.setPen(QPen(QColor(t.border), 1))
            painter.drawLine(QPointF(x, lanes.bottom()), QPointF(x, lanes.bottom() + 3))
            text = moment_text(place - origin, step) if self._by_time else f"{place:,.0f}"
            wide = painter.fontMetrics().horizontalAdvance(text)
            left = min(max(lanes.left(), x - wide / 2), lanes.right() - wide)
            painter.setPen(QColor(t.dim))
            draw_text_at(
                painter, QPointF(left, lanes.bottom() + 3 + painter.fontMetrics().ascent()), text
            )

    def _paint_range(self, painter: QPainter, lanes: QRectF) -> None:
        if self._facts.chosen is None:
            return
        colour = QColor(tokens(self._theme).accent)
        left, right = (
            min(max(self.x_of(n), lanes.left()), lanes.right()) for n in self._facts.chosen
        )
        right = max(right, left + 1)
        veil = QColor(tokens(self._theme).window)
        veil.setAlpha(150)
        painter.fillRect(
            QRectF(lanes.left(), lanes.top(), left - lanes.left(), lanes.height()), veil
        )
        painter.fillRect(QRectF(right, lanes.top(), lanes.right() - right, lanes.height()), veil)
        bar = QRectF(left, _FLAGS_HEIGHT - 4, right - left, 3)
        if self._facts.looping:
            painter.fillRect(bar, colour)
        else:
            painter.setPen(QPen(colour, 1, Qt.PenStyle.DotLine))
            painter.drawLine(bar.bottomLeft(), bar.bottomRight())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        for x in (left, right):
            painter.drawRoundedRect(QRectF(x - 3, _FLAGS_HEIGHT - 6, 6, 8), 2, 2)
            painter.fillRect(QRectF(x - 0.75, lanes.top(), 1.5, lanes.height()), colour)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)

    def _paint_hover(self, painter: QPainter, lanes: QRectF) -> None:
        if self._hover is not None:
            painter.setPen(QPen(QColor(tokens(self._theme).dim), 1, Qt.PenStyle.DotLine))
            painter.drawLine(
                QPointF(self._hover, lanes.top()), QPointF(self._hover, lanes.bottom())
            )

    def _paint_flags(self, painter: QPainter, lanes: QRectF) -> None:
        t = tokens(self._theme)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for flag in self._facts.flags:
            x = self.x_of(flag.number)
            if not lanes.left() - 1 <= x <= lanes.right() + 1:
                continue
            colour = QColor(t.accent if flag.letter else t.error if flag.fired else t.warning)
            painter.setPen(QPen(colour, 1.2))
            painter.drawLine(QPointF(x, 1), QPointF(x, lanes.bottom()))
            painter.setBrush(colour)
            painter.setPen(Qt.PenStyle.NoPen)
            if flag.letter:
                box = QRectF(x - 6, 0, 12, _FLAGS_HEIGHT - 1)
                painter.drawRoundedRect(box, 2, 2)
                painter.setPen(QColor(t.on_accent))
                draw_text(painter, box, Qt.AlignmentFlag.AlignCenter, flag.letter)
            else:
                painter.drawPolygon(
                    _FIRED.translated(x, 0) if flag.fired else _PENNANT.translated(x, 0)
                )
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)

    def _paint_playhead(self, painter: QPainter, lanes: QRectF) -> None:
        if (
            self._facts.growing
            and not self._facts.live
            and lanes.left() <= self.x_of(self._timeline.last) <= lanes.right() + 2
        ):
            self._paint_live_end(painter, lanes)
        number = self._number_shown()
        if not number:
            return
        t = tokens(self._theme)
        x = self.x_of(number)
        if not lanes.left() - 2 <= x <= lanes.right() + 2:
            return
        x = min(x, lanes.right())
        colour = QColor(
            t.dim
            if self._facts.live and self._facts.ended
            else t.good
            if self._facts.live
            else t.accent
        )
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(t.surface), 4))
        painter.drawLine(QPointF(x, lanes.top()), QPointF(x, lanes.bottom()))
        painter.setPen(QPen(colour, 2))
        painter.drawLine(QPointF(x, lanes.top() - 4), QPointF(x, lanes.bottom() + 1))
        painter.setPen(QPen(QColor(t.surface), 1))
        painter.setBrush(colour)
        top = _FLAGS_HEIGHT - 10.0
        painter.drawPolygon(
            QPolygonF(
                [
                    QPointF(x - 6, top),
                    QPointF(x + 6, top),
                    QPointF(x + 6, top + 4),
                    QPointF(x, top + 10),
                    QPointF(x - 6, top + 4),
                ]
            )
        )
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)

    def _paint_live_end(self, painter: QPainter, lanes: QRectF) -> None:
        """Paint the line at the live end of the session, while the display shows an earlier event."""
        colour = QColor(tokens(self._theme).good)
        x = min(self.x_of(self._timeline.last), lanes.right())
        painter.setPen(QPen(colour, 2, Qt.PenStyle.DotLine))
        painter.drawLine(QPointF(x, lanes.top()), QPointF(x, lanes.bottom()))
        painter.setPen(colour)
        width = painter.fontMetrics().horizontalAdvance("LIVE")
        draw_text_at(
            painter, QPointF(min(x - width / 2, self.width() - width - 1), lanes.top() - 3), "LIVE"
        )

    # -------------------------------------------------------------------------- mouse

    def _handle_at(self, x: float) -> int | None:
        """0 for the left handle of the range, 1 for the right one."""
        if self._facts.chosen is None:
            return None
        distances = [abs(self.x_of(number) - x) for number in self._facts.chosen]
        nearer = int(distances[1] <= distances[0])
        return nearer if distances[nearer] <= _REACH else None

    def _flag_at(self, position: QPointF) -> TimelineFlag | None:
        if position.y() > _FLAGS_HEIGHT:
            return None
        near = [
            flag
            for flag in self._facts.flags
            if -_REACH <= position.x() - self.x_of(flag.number) <= 2 * _REACH
        ]
        return near[-1] if near else None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Take hold of a handle, draw a range, move along, or go there."""
        x = event.position().x()
        number = self.number_at(x)
        if number is None:
            return
        if event.button() is Qt.MouseButton.MiddleButton:
            self._range_from = round(x)
            self._drag = self._move_along
            return
        if event.button() is not Qt.MouseButton.LeftButton:
            return
        handle, flag = self._handle_at(x), self._flag_at(event.position())
        self._brushes = False
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._range_from = number
            self._drag = self._draw_range
        elif handle is not None and self._facts.chosen is not None:
            self._range_from = self._facts.chosen[1 - handle]
            self._drag = self._draw_range
        elif flag is not None:
            self.scrubbed.emit(flag.number)
        elif self.plot().contains(event.position()):
            self._range_from, self._pressed_at, self._brushes = number, x, True
            self._drag = self._brush
        else:
            self._drag = self._scrub
            self._scrub(x)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Continue a drag, or show the text for the point under the mouse."""
        x = event.position().x()
        lanes = self._lanes()
        self._hover = x if lanes.left() <= x <= lanes.right() else None
        if self._drag is not None:
            self._drag(x)
        elif self._handle_at(x) is not None:
            self.setCursor(Qt.CursorShape.SizeHorCursor)
        else:
            self.unsetCursor()
        words = self.words_at(event.position())
        if words:
            show_tip(self.mapToGlobal(QPoint(round(x) + 8, -8)), words, self)
        else:
            hide_tip()
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """End a drag; a press on memory that did not become a range goes there."""
        if self._brushes:
            self._scrub(event.position().x())
        self._brushes = False
        self._drag = None

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Show the whole session."""
        self.show_whole()

    def leaveEvent(self, event: object) -> None:
        """Nothing is under the mouse."""
        self._hover = None
        self.update()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Closer or farther; with Shift, or sideways, along."""
        turned = event.angleDelta()
        if turned.x() or event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.move_along(-(turned.x() or turned.y()) / 2)
        elif turned.y():
            self.zoom_at(_ZOOM if turned.y() > 0 else 1 / _ZOOM, event.position().x())
        event.accept()

    def event(self, event: QEvent) -> bool:
        """Zoom by pinching, and take the keys that elsewhere are those of tiles."""
        if isinstance(event, QNativeGestureEvent):
            if event.gestureType() is Qt.NativeGestureType.ZoomNativeGesture:
                self.zoom_at(1 / max(0.1, 1 + event.value()), event.position().x())
                return True
        elif isinstance(event, QGestureEvent):
            pinch = event.gesture(Qt.GestureType.PinchGesture)
            if isinstance(pinch, QPinchGesture) and pinch.scaleFactor() > 0:
                centre = self.mapFromGlobal(pinch.centerPoint().toPoint())
                self.zoom_at(1 / pinch.scaleFactor(), centre.x())
                return True
        elif (
            event.type() is QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and _is_own(event)
        ):
            event.accept()
            return True
        return super().event(event)

    def showEvent(self, event: QShowEvent) -> None:
        """Follow the height of the window."""
        super().showEvent(event)
        window = self.window()
        if window is not self._window:
            if self._window is not None:
                self._window.removeEventFilter(self)
            self._window = window
            window.installEventFilter(self)
        self.updateGeometry()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Memory has a share of the window's height."""
        if event.type() is QEvent.Type.Resize and watched is self._window:
            self.updateGeometry()
        return False

    def zoom_at(self, factor: float, x: float) -> None:
        """Zoom in (below 1) or out around a point of the widget."""
        if not len(self._timeline):
            return
        whole = self._whole()
        stretch = self.stretch().zoomed(factor, x - self._gutter, whole)
        self._look(
            None if stretch.end - stretch.start >= (whole[1] - whole[0]) * 0.999 else stretch
        )

    def move_along(self, pixels: float) -> None:
        """Scroll right by this many pixels."""
        if self._stretch is not None:
            self._look(self.stretch().moved(pixels, self._whole()))

    def _scrub(self, x: float) -> None:
        number = self.number_at(x)
        if number is not None:
            self.scrubbed.emit(number)

    def _brush(self, x: float) -> None:
        """Draw a range once the mouse has moved far enough not to be a click."""
        if abs(x - self._pressed_at) >= _BRUSH_PIXELS:
            self._brushes = False
            self._drag = self._draw_range
            self._draw_range(x)

    def _draw_range(self, x: float) -> None:
        number = self.number_at(x)
        if number is not None:
            self.range_chosen.emit(min(number, self._range_from), max(number, self._range_from))

    def _move_along(self, x: float) -> None:
        self.move_along(self._range_from - x)
        self._range_from = round(x)

    # --------------------------------------------------------------------------- keys

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows go to events, with Shift they choose a range; page keys go a tenth of the visible part."""
        key = Qt.Key(event.key())
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        shown = self._number_shown()
        if key in _ZOOM_KEYS and len(self._timeline):
            self._zoom_by_key(_ZOOM_KEYS[key])
        elif key in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace) and self._facts.chosen is not None:
            self.range_forgotten.emit()
        elif shift:
            if not self._extend(key):
                super().keyPressEvent(event)
        elif key in _STEPS:
            self.stepped.emit(_STEPS[key])
        elif key in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown) and shown:
            self._scrub(self.x_of(shown) + self._page(key))
        else:
            super().keyPressEvent(event)

    def _zoom_by_key(self, factor: float) -> None:
        """Zoom around the event on display, or the middle if that is not visible; 0: show the whole session."""
        if not factor:
            self.show_whole()
            return
        lanes, shown = self._lanes(), self._number_shown()
        x = self.x_of(shown) if shown else lanes.center().x()
        self.zoom_at(factor, x if lanes.left() <= x <= lanes.right() else lanes.center().x())

    def _page(self, key: Qt.Key) -> float:
        tenth = self._lanes().width() / 10
        return -tenth if key is Qt.Key.Key_PageUp else tenth

    def _ends_of_anchor(self) -> tuple[int, int] | None:
        return None if self._anchor is None else (min(self._anchor), max(self._anchor))

    def _extend(self, key: Qt.Key) -> bool:
        """Move one end of the range by a key; the other is where the first such key found the display."""
        shown = self._number_shown()
        if not len(self._timeline) or not shown:
            return False
        fixed, moving = self._anchor or (shown, shown)
        if key in _STEPS:
            numbers = self._timeline.numbers
            place = int(np.searchsorted(numbers, np.uint64(moving))) + _STEPS[key]
            moving = int(numbers[min(max(place, 0), len(numbers) - 1)])
        elif key in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            there = self.number_at(self.x_of(moving) + self._page(key))
            moving = moving if there is None else there
        elif key in (Qt.Key.Key_Home, Qt.Key.Key_End):
            moving = self._timeline.first if key is Qt.Key.Key_Home else self._timeline.last
        else:
            return False
        self._anchor = fixed, moving
        self.range_chosen.emit(min(fixed, moving), max(fixed, moving))
        return True

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Draw for the new width."""
        super().resizeEvent(event)
        self._gutter = self._room_for_names()
        self.laid_out.emit()
        self.update()

    # -------------------------------------------------------------------------- words

    def words_at(self, position: QPointF) -> str:
        """Return the tooltip at a place: the event, the number of events in its pixel, and the missing events."""
        flag = self._flag_at(position)
        number = self.number_at(position.x()) if flag is None else flag.number
        lanes = self._lanes()
        if number is None or not lanes.left() - _REACH <= position.x() <= lanes.right() + _REACH:
            return ""
        row = self._timeline.row(number)
        lines = [flag.title] if flag is not None and flag.title else []
        if row is None:
            return Lines(*lines, f"event {number:,} is no longer kept")
        name = self._kind_name(int(row["event"]))
        since = int(row["time_nanos"]) - self._timeline.span(TimelineAxis.TIME)[0]
        lines.append(
            f"{name} #{int(row['occurrence']):,}  ·  event {number:,}  ·  {moment_text(since, 1e7)}"
        )
        facts = f"gathered in {duration(int(row['gather_nanos']))}"
        if row["held_nanos"]:
            facts += f", held {duration(int(row['held_nanos']))}"
        lines.append(facts)
        lines += self._layer.track.words_at(number)
        lines += self._pooled_words(position.x() - lanes.left())
        if row["missed"]:
            lines.append(f"{int(row['missed']):,} events were missed just before it")
        return Lines(*lines)

    def _pooled_words(self, pixel: float) -> list[str]:
        overview = self._overview
        if overview is None or not 0 <= int(pixel) < len(overview.counts):
            return []
        column = int(pixel)
        there = [
            f"{int(overview.by_kind[i, column]):,} {self._kind_name(kind)}"
            for i, kind in enumerate(overview.kinds)
            if overview.by_kind[i, column]
        ]
        words = [f"this pixel: {', '.join(there)}"] if overview.counts[column] > 1 else []
        words += self._layer.pooled_words(column)
        if overview.gaps[column]:
            count = int(overview.missed[column])
            words.append(
                f"{count:,} events missed here"
                if count
                else "an unknown number of events is missing here"
            )
        return words

    def _kind_name(self, kind: int) -> str:
        return self._facts.kinds[kind] if kind < len(self._facts.kinds) else f"event kind {kind}"

    @property
    def flags(self) -> Sequence[TimelineFlag]:
        """The marks it shows."""
        return self._facts.flags
