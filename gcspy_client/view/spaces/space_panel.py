"""One space: a header with its description, and its tiles; or one line with a strip of tiles.

The frame of the active space is drawn in the accent colour, twice as thick; that of a space in the
past is broken.
"""

from __future__ import annotations

from gcspy_protocol.interpreter import EventChange, SpaceState
from gcspy_protocol.messages import Event
from gcspy_protocol.text.visible import Lines
from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QColor, QCursor, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QHBoxLayout,
    QScrollBar,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.model.history.summaries import SummaryHistory
from gcspy_client.model.layout import scale_words
from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.cost import age_nanos, looks_old
from gcspy_client.model.spaces.panel_heights import PanelForm, PanelNeeds, wanted_height
from gcspy_client.model.spaces.picture import LABEL_HEIGHT, LABEL_WIDTH, SpacePicture
from gcspy_client.model.spaces.tile_text import tile_tip
from gcspy_client.model.spaces.trend import SummaryTrend
from gcspy_client.model.text import duration, summary_heading, summary_short
from gcspy_client.model.tile_source import TileSource
from gcspy_client.view.plain.text import set_tip, show_tip, tip_is_shown
from gcspy_client.view.plain.widgets import PlainLabel
from gcspy_client.view.spaces.canvas import TileCanvas
from gcspy_client.view.spaces.minimap import Minimap
from gcspy_client.view.spaces.space_toolbar import SpaceToolbar
from gcspy_client.view.spaces.space_view import SpaceView
from gcspy_client.view.spaces.veil import Veil
from gcspy_client.view.theme import tokens
from gcspy_client.view.widgets.elided_label import ElidedLabel
from gcspy_client.view.widgets.fold_button import FoldButton
from gcspy_client.view.widgets.limits import NO_LIMIT

__all__ = ["SpacePanel"]

_MARGIN = 8
_LINE_MARGIN = 4
_STRIP_HEIGHT = 16
_LEAST_CANVAS = 24
_MOST_NAME_PERCENT = 28
"""Of the width of a line."""
_LEAST_NAME_WIDTH, _LEAST_SUMMARY_WIDTH = 130, 84
"""Of a heading, in logical pixels."""
_NAME_WIDTH, _MOST_NAME_WIDTH = 190, 240
"""Of a line. The latter bounds the width that a wide line demands, so that it can become narrow again."""
_MOST_SUMMARY_WIDTH = 250
_MOST_TREND_WIDTH = 130


_HOW_TO_ENLARGE = {
    PanelForm.LINE: "",
    PanelForm.OPEN: "Click here to make this space the large one.",
    PanelForm.LARGE: "Close panels, or make the window larger.",
}
"""Remedies that a view without room shows."""


class SpacePanel(QFrame):
    """The panel of one space.

    Signals:
        activated: The user activated this space: its id.
        hovered: Space id, and the tile under the mouse or -1.
        picked: Space id, and the tile that was selected.
        marked: Space id, the first and the last tile that the user marks, and whether they are
            marked from now on.
        moved: Space id, and the previous visible part.
        failed: Space id, and why its view failed.
        opened: Space id, and whether the user opens the line (True) or folds the panel.

    Args:
        picture: The picture of the space.
        parent: Its parent.
        trend: Whether the change of the summary is shown beside it.

    Attributes:
        canvas: Its tiles; hidden while another view is shown.
        view: Replaces the tiles; None: nothing does.
        minimap: Shows which part of all tiles is seen, while that is not all.
        toolbar: Chooses the view.
        veil: Covers the display while it is old.
        form: Whether it is a line, open, or the large one.
        is_put_away: Whether the user hid it.
    """

    activated = Signal(int)
    hovered = Signal(int, int)
    picked = Signal(int, int)
    marked = Signal(int, int, int, bool)
    moved = Signal(int, object)
    failed = Signal(int, str)
    opened = Signal(int, bool)

    def __init__(
        self, picture: SpacePicture, parent: QWidget | None = None, *, trend: bool = True
    ) -> None:
        super().__init__(parent)
        self.setProperty("panel", "true")
        self.setProperty("active", "false")
        self.setProperty("past", "false")
        self.canvas = TileCanvas(picture)
        self.view: SpaceView | None = None
        self.toolbar = SpaceToolbar()
        self._has_toolbar = True
        self._event: Event | None = None
        self._more: tuple[int | None, str] = (None, "")
        self.form = PanelForm.LARGE
        self.is_put_away = False
        self._trend_of = SummaryTrend() if trend else None
        self._click = QTimer(self)  # opens a line, unless the click becomes a double click
        self._click.setSingleShot(True)
        self._click.setInterval(QApplication.doubleClickInterval())
        self._click.timeout.connect(lambda: self.opened.emit(self.space_id, True))
        self._fold = FoldButton()
        self._fold.clicked.connect(self._toggle)
        self._fold.hide()
        self._make_labels(picture.space.space.name)
        self._note = ElidedLabel()
        self._note.setProperty("tone", "error")
        self._note.hide()
        self._bar = QScrollBar(Qt.Orientation.Vertical)
        self._bar.hide()
        self._bar.valueChanged.connect(self._scrolled)
        self.minimap = Minimap(self.canvas)
        self.minimap.hide()
        self.minimap.moved.connect(lambda place: self.moved.emit(self.space_id, place))
        self.canvas.seen_changed.connect(self._sync_bar)
        self._header = header = QHBoxLayout()
        header.setSpacing(9)
        header.addWidget(self._fold)
        header.addWidget(self._name)
        header.addWidget(self._count)
        header.addWidget(self._view, 1)
        header.addWidget(self._trend)
        header.addWidget(self._stale)
        header.addWidget(self.toolbar)
        self._body = body = QHBoxLayout()
        body.setSpacing(2)
        body.addWidget(self.canvas, 1)
        body.addWidget(self._bar)
        body.addWidget(self.minimap)
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(_MARGIN, _MARGIN - 3, _MARGIN, _MARGIN)
        column.setSpacing(4)
        column.addLayout(header)
        column.addWidget(self._note)
        column.addLayout(body, 1)
        self.veil = Veil(self)
        self.veil.lie_over(self.canvas)
        self.veil.use_ground(QColor(tokens(picture.theme).canvas))
        self._connect(self.canvas)
        set_tip(self, picture.space.space.description)
        self._keep_heading()

    def _make_labels(self, name: str) -> None:
        self._name = ElidedLabel(name)
        font = self._name.font()
        font.setBold(True)
        self._name.setFont(font)
        self._count = ElidedLabel()
        self._count.setProperty("dim", "true")
        self._view = ElidedLabel()
        self._view.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._view.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._trend = ElidedLabel()
        self._trend.setProperty("dim", "true")
        self._stale = PlainLabel("stale")
        self._stale.setProperty("chip", "true")
        self._stale.setProperty("tone", "warning")
        # No higher than the name beside it: when it comes or goes, no tile may lose its place or its label.
        self._stale.setFixedHeight(self._name.sizeHint().height())
        # Nor may the summary of a line move: in a header there is room beside it.
        policy = self._stale.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self._stale.setSizePolicy(policy)
        self._stale.hide()

    @property
    def space_id(self) -> int:
        """The id of its space."""
        return self.canvas.picture.space.space.id

    @property
    def source(self) -> TileSource:
        """The numbers that it shows."""
        return self.canvas.picture.source

    @property
    def shown(self) -> TileCanvas | SpaceView:
        """The display: the tiles, or the view in their place."""
        view = self.view
        if view is None or (self.form is PanelForm.LINE and not view.has_strip):
            return self.canvas
        return view

    @property
    def maximum(self) -> int:
        """Value that is painted in the colour of the maximum now."""
        found = None if self.view is None else self.view.maximum
        return self.canvas.picture.maximum if found is None else found

    def follow(self, change: EventChange) -> None:
        """Apply an event to the display."""
        self.shown.follow(change)
        if self.shown is self.canvas:
            self.minimap.follow()

    def renew(self, source: TileSource) -> None:
        """Show the space as it is now, after events that went by."""
        self.show_source(source)
        if self.view is not None:
            self.view.use_space(self.canvas.picture.space)
        self.minimap.follow()

    def set_form(self, form: PanelForm) -> None:
        """Become a line, an open panel, or the large one."""
        if form is self.form:
            return
        was_line, self.form = self.form is PanelForm.LINE, form
        line = form is PanelForm.LINE
        self._fold.setVisible(form is not PanelForm.LARGE)
        self._fold.point(down=not line)
        if self.view is not None:
            self.view.how_to_enlarge = _HOW_TO_ENLARGE[form]
        if line is was_line:
            return
        keyboard = self.has_keyboard()
        self._click.stop()
        self._count.setVisible(not line)
        self._trend.setVisible(line or self.has_trend)
        self.toolbar.setVisible(not line and self._has_toolbar)
        self._header.setStretchFactor(self._view, 0 if line else 1)
        margin = _LINE_MARGIN if line else _MARGIN - 3
        self._column.setContentsMargins(_MARGIN, margin, _MARGIN, margin if line else _MARGIN)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if line else Qt.FocusPolicy.NoFocus)
        if line:
            self._bar.hide()
        else:
            for part in (self._name, self._view, self._trend):
                part.setMinimumWidth(0)
                part.setMaximumWidth(NO_LIMIT)
                text = part.text()
                part.setText("")  # a label remembers the width that it had to have
                part.setText(text)
            self._keep_heading()
        self._put_display()
        if self.shown is self.canvas and self.view is not None:
            self.canvas.picture.show(self.source)  # events went by it
        elif self.view is not None:
            self.view.use_space(self.canvas.picture.space)
        if keyboard:
            (self if line else self.shown).setFocus(Qt.FocusReason.OtherFocusReason)

    def _put_display(self) -> None:
        """Put what is shown into the line, or below the header; the rest is hidden."""
        line = self.form is PanelForm.LINE
        view, shown = self.view, self.shown
        if view is not None:
            view.how_to_enlarge = _HOW_TO_ENLARGE[self.form]
            (self.canvas if shown is view else view).hide()
        for strip in (self.canvas, *((view,) if view is not None and view.has_strip else ())):
            strip.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents, line)
            strip.setFocusPolicy(Qt.FocusPolicy.NoFocus if line else Qt.FocusPolicy.StrongFocus)
            strip.setMinimumHeight(_LEAST_CANVAS)
            strip.setMaximumHeight(NO_LIMIT)
            strip.show_strip(on=line)
        if line:
            self._header.removeWidget(
                shown
            )  # it may stand there, and then the summary moves up by one
            self._header.insertWidget(self._header.indexOf(self._view), shown, 1)
            self._keep_strip_height()
        else:
            self._body.insertWidget(0, shown, 1)
        shown.show()
        self.veil.lie_over(shown)
        if shown is self.canvas:
            self.canvas.refit()

    def put_away(self, *, on: bool) -> None:
        """Hide it for the user, or show it again."""
        self.is_put_away = on
        self.setVisible(not on)

    def release_height(self) -> None:
        """Take whatever height it is given."""
        self.setMinimumHeight(0)
        self.setMaximumHeight(NO_LIMIT)

    def has_keyboard(self) -> bool:
        """Whether it, or anything in it, has the keyboard."""
        focused = QApplication.focusWidget()
        return focused is not None and (focused is self or self.isAncestorOf(focused))

    def hide_toolbar(self) -> None:
        """Show no toolbar: the view is chosen elsewhere."""
        self._has_toolbar = False
        self.toolbar.hide()

    @property
    def has_trend(self) -> bool:
        """Whether its summary changed lately."""
        return bool(self._trend.text())

    def column_widths(self) -> tuple[int, int, int]:
        """Widths that the name, the summary and its trend want in a line."""
        return (
            min(
                max(_NAME_WIDTH, self.width() * _MOST_NAME_PERCENT // 100),
                _MOST_NAME_WIDTH,
                self._name.sizeHint().width(),
            ),
            min(_MOST_SUMMARY_WIDTH, self._view.sizeHint().width()),
            min(_MOST_TREND_WIDTH, self._trend.sizeHint().width()),
        )

    def use_column_widths(self, name: int, summary: int, trend: int) -> None:
        """Use the same widths as the other lines."""
        for part, width in ((self._name, name), (self._view, summary), (self._trend, trend)):
            if (part.minimumWidth(), part.maximumWidth()) != (width, width):
                part.setFixedWidth(width)

    def _keep_heading(self) -> None:
        """Have the number of tiles shortened first where there is little room, then the summary, then the name."""
        self._name.setMinimumWidth(min(_LEAST_NAME_WIDTH, self._name.sizeHint().width()))
        self._view.setMinimumWidth(_LEAST_SUMMARY_WIDTH)

    def _keep_strip_height(self) -> None:
        self.shown.setFixedHeight(round(_STRIP_HEIGHT * self.canvas.picture.enlarged))

    def _toggle(self) -> None:
        self._click.stop()
        self.opened.emit(self.space_id, self.form is PanelForm.LINE)

    def _describe(self) -> None:
        """Describe the tile under the mouse in the tooltip; only when it is shown, as that takes a moment."""
        set_tip(self.shown, self._tip())

    def _tip(self) -> str:
        picture, tile = self.canvas.picture, self.shown.under_mouse
        if tile is None or not 0 <= tile < picture.space.count:
            return ""
        together = picture.layout.per_pixel if self.view is None else 1
        text = tile_tip(picture.space, tile, picture.source, self._event, together)
        known = self._more[0] == picture.space.names.key(tile)
        return Lines(text, self._more[1]) if known else text

    def add_to_tip(self, key: int, words: str) -> None:
        """Say more of a tile in its tooltip, also if that is shown already.

        Args:
            key: Stable key of the tile.
            words: One line.
        """
        if (key, words) == self._more:
            return
        self._more = key, words
        if tip_is_shown(self.shown):
            show_tip(QCursor.pos(), self._tip(), self.shown)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Open a line, a moment later."""
        if event.button() is Qt.MouseButton.LeftButton and self.form is PanelForm.LINE:
            self._click.start()
        else:
            super().mousePressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Make it the large one."""
        self._click.stop()
        if event.button() is Qt.MouseButton.LeftButton and self.form is not PanelForm.LARGE:
            self.activated.emit(self.space_id)
        else:
            super().mouseDoubleClickEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Return opens a line, and makes an open panel the large one."""
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            super().keyPressEvent(event)
        elif self.form is PanelForm.LINE:
            self.opened.emit(self.space_id, True)
        elif self.form is PanelForm.OPEN:
            self.activated.emit(self.space_id)

    def show_view(self, view: SpaceView | None) -> None:
        """Show another view in place of the tiles; None shows the tiles."""
        before, self.view = self.view, view
        if before is view:
            return
        had_focus = (before or self.canvas).hasFocus()
        selected = self.canvas.selected
        if before is not None:
            before.stop()
            before.setParent(None)
            before.deleteLater()
        if view is not None:
            view.setParent(self)  # a line does not put it into its layout
            self._connect(view)
            view.select(selected)
            view.mark_tiles(self.canvas.marks)
            self._bar.hide()
        elif before is not None:
            self.canvas.picture.show(self.source)  # events went by it
        self._put_display()
        if self.shown is self.canvas:
            self._sync_bar()
        if had_focus:
            self.shown.setFocus(Qt.FocusReason.OtherFocusReason)

    def _connect(self, view: SpaceView | TileCanvas) -> None:
        space_id = self.space_id
        view.entered.connect(lambda: self.activated.emit(space_id))
        view.hovered.connect(lambda tile: self.hovered.emit(space_id, tile))
        view.tip_wanted.connect(self._describe)
        view.picked.connect(lambda tile: self.picked.emit(space_id, tile))
        view.marked.connect(lambda first, last, on: self.marked.emit(space_id, first, last, on))
        view.moved.connect(lambda place: self.moved.emit(space_id, place))
        view.moved.connect(self._sync_bar)
        if isinstance(view, SpaceView):
            view.failed.connect(lambda why: self.failed.emit(space_id, why))

    def show_source(self, source: TileSource) -> None:
        """Show other numbers."""
        self.canvas.picture.show(source)
        self.canvas.update()
        if self.view is not None:
            self.view.show_source(source)

    def use_space(self, space: SpaceState, theme: Theme) -> None:
        """Show another state of the same space, with cells and place as they are."""
        before = self.canvas.picture
        picture = SpacePicture(space, before.source, theme, before.palettes)
        picture.zoom, picture.enlarged = before.zoom, before.enlarged
        picture.is_strip = before.is_strip
        self.canvas.use(picture)
        picture.scroll_to(before.layout.first_row)
        if self.view is not None:
            self.view.use_space(space)

    def set_theme(self, theme: Theme) -> None:
        """Paint for another ground."""
        self.canvas.picture.set_theme(theme)
        self.canvas.update()
        self.toolbar.set_theme(theme)
        self.veil.use_ground(QColor(tokens(theme).canvas))
        if self.view is not None:
            self.view.set_theme(theme)

    def select(self, tile: int | None) -> None:
        """Frame a tile, or none."""
        self.canvas.selected = tile
        self.canvas.update()
        if self.view is not None:
            self.view.select(tile)

    def mark_tiles(self, tiles: list[int]) -> None:
        """Show these tiles as marked."""
        self.canvas.mark_tiles(tiles)
        if self.view is not None:
            self.view.mark_tiles(tiles)

    def use_place(self, place: object) -> None:
        """See the part that was seen, of the view that is shown; a place of another kind of view is not used."""
        self.shown.use_place(place)
        self._sync_bar()

    def note(self, text: str) -> None:
        """Show an error; an empty text removes it."""
        self._note.setText(text)
        self._note.setVisible(bool(text))

    def settle(self) -> None:
        """Show everything now that would be shown a moment later."""
        layout = self.layout()
        if self.view is not None and layout is not None:
            layout.activate()  # a view that was just put in has its size now, and not with the next events
            self.view.settle()

    def stop(self) -> None:
        """Show nothing any more; no thread and no timer is left."""
        self._click.stop()
        self.minimap.stop()
        if self.view is not None:
            self.view.stop()

    def mark(self, *, active: bool, past: bool) -> None:
        """Mark the panel as the active space's, and as one that shows the past, or not."""
        wanted = {"active": "true" if active else "false", "past": "true" if past else "false"}
        if any(self.property(name) != text for name, text in wanted.items()):
            for name, text in wanted.items():
                self.setProperty(name, text)
            self.style().unpolish(self)
            self.style().polish(self)

    def refresh(self, event: Event | None, history: SummaryHistory | None = None) -> None:
        """Update the header.

        Args:
            event: The displayed one.
            history: The summaries of earlier events, of which the trend is told.
        """
        self._event = event
        picture = self.canvas.picture
        schema, space = picture.source.schema, picture.space
        stream = space.streams.get(schema.id)
        count = space.count
        if self.view is None:
            shared = scale_words(picture.layout)
        else:
            shared = "" if self.form is PanelForm.LINE else self.view.say()
        tiles = f"{count:,} {'tile' if count == 1 else 'tiles'}"
        self._count.setText(f"{tiles} · {shared}" if shared else tiles)
        has_summary = stream is not None and stream.summary is not None and count > 0
        line = self.form is PanelForm.LINE
        brief = summary_short if line else summary_heading
        summary = brief(schema, stream.summary) if stream is not None and has_summary else ""
        self._view.setText(f"{schema.name}  {summary}".rstrip())
        if self._trend_of is not None:
            if history is not None and not self._trend_of.follows(schema):
                self._trend_of.begin(schema, history.series(self.space_id, schema.id))
            self._trend_of.look(schema, None if stream is None else stream.summary)
            change, sentence = self._trend_of.words()
            self._trend.setText(change)
            set_tip(self._trend, sentence)
        self._trend.setVisible(self.has_trend or self.form is PanelForm.LINE)
        stale = event is not None and picture.source.is_stale(space, event)
        self._stale.setVisible(stale and (stream is None or stream.sequence > 0))
        age = age_nanos(space, schema.id, event)
        self._stale.setText(f"stale · {duration(age)}" if age and not line else "stale")
        self.veil.setVisible(stale and looks_old(age))
        if stream is not None and stream.sequence:
            set_tip(
                self._stale,
                f"Gathered at occurrence {stream.occurrence:,} of an earlier event, {duration(age)} before this one",
            )
        if self.view is None:
            self._sync_bar()
        else:
            self.view.refresh()

    def enlarge(self, factor: float) -> None:
        """Draw cells, labels and frames larger than usual; 1: as usual."""
        self.canvas.picture.enlarge(factor)
        if self.form is PanelForm.LINE:
            self._keep_strip_height()
        self.canvas.update()

    def needs(self, width: int, opened: bool | None) -> PanelNeeds:
        """The heights that suit it.

        Args:
            width: Pixels there are.
            opened: Whether the user opened or folded it.
        """
        picture = self.canvas.picture
        strip = max(
            round(_STRIP_HEIGHT * picture.enlarged),
            self._name.sizeHint().height(),
            self._fold.sizeHint().height(),
        )
        return PanelNeeds(
            wanted=self._wanted_height(width),
            line=strip + 2 * _LINE_MARGIN + 2,
            # A space must double or halve before its panel moves the others.
            count=1 << picture.space.count.bit_length(),
            kind=tuple(sorted(stream.schema.name for stream in picture.space.streams.values())),
            opened=opened,
        )

    def _wanted_height(self, width: int) -> int | None:
        """The height that it needs in a width, or None when it takes what it gets."""
        picture = self.canvas.picture
        if (self.view is not None and not self.view.keeps_height) or picture.space.space.row_width:
            return None
        tiles = wanted_height(
            picture.space.count,
            width - 2 * _MARGIN - 4,
            cell_width=round(LABEL_WIDTH * picture.enlarged),
            cell_height=round(LABEL_HEIGHT * picture.enlarged),
        )
        if tiles is None:
            return None
        header = max(self._name.sizeHint().height(), self.toolbar.sizeHint().height())
        note = 0 if self._note.isHidden() else self._note.sizeHint().height() + 4
        return tiles + header + note + 2 * _MARGIN + 3

    def _sync_bar(self) -> None:
        if self.view is not None or self.form is PanelForm.LINE:
            self.minimap.hide()
            return
        layout = self.canvas.picture.layout
        self._bar.blockSignals(True)
        self._bar.setRange(0, max(0, layout.rows - layout.seen_rows))
        self._bar.setPageStep(max(1, layout.seen_rows))
        self._bar.setValue(layout.first_row)
        self._bar.blockSignals(False)
        self._bar.setVisible(layout.scrolls)
        self.minimap.setVisible(layout.scrolls)
        self.minimap.update()

    def _scrolled(self, row: int) -> None:
        self.canvas.picture.scroll_to(row)
        self.canvas.update()
