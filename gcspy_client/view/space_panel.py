"""One space: a header that says what it is, and its tiles.

The frame of the active space is drawn in the accent colour, twice as thick; that of a space
as it was in the past is broken.
"""

from __future__ import annotations

from gcspy_protocol.interpreter import EventChange
from gcspy_protocol.messages import Event
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollBar, QSizePolicy, QVBoxLayout, QWidget

from gcspy_client.model.panels import wanted_height
from gcspy_client.model.picture import LABEL_HEIGHT, LABEL_WIDTH, Picture
from gcspy_client.model.text import summary_text
from gcspy_client.view.canvas import TileCanvas
from gcspy_client.view.elided import ElidedLabel

__all__ = ["SpacePanel"]

_MARGIN = 8


class SpacePanel(QFrame):
    """The panel of one space.

    Signals:
        activated: The user turned to this space: its id.
        hovered: Space id, and the tile under the mouse or -1.
        picked: Space id, and the tile that was selected.

    Args:
        picture: What it shows.
    """

    activated = Signal(int)
    hovered = Signal(int, int)
    picked = Signal(int, int)

    def __init__(self, picture: Picture, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("panel", "true")
        self.setProperty("active", "false")
        self.setProperty("past", "false")
        self.canvas = TileCanvas(picture)
        self._name = ElidedLabel(picture.space.space.name)
        font = self._name.font()
        font.setBold(True)
        self._name.setFont(font)
        self._count = QLabel()
        self._count.setProperty("dim", "true")
        self._view = ElidedLabel()
        self._view.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._view.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._stale = QLabel("stale")
        self._stale.setProperty("chip", "true")
        self._stale.setProperty("tone", "warning")
        # No higher than the name beside it: when it comes or goes, no tile may lose its place or its label.
        self._stale.setFixedHeight(self._name.sizeHint().height())
        self._stale.hide()
        self._bar = QScrollBar(Qt.Orientation.Vertical)
        self._bar.hide()
        self._bar.valueChanged.connect(self._scrolled)
        header = QHBoxLayout()
        header.setSpacing(9)
        header.addWidget(self._name)
        header.addWidget(self._count)
        header.addWidget(self._view, 1)
        header.addWidget(self._stale)
        body = QHBoxLayout()
        body.setSpacing(2)
        body.addWidget(self.canvas, 1)
        body.addWidget(self._bar)
        column = QVBoxLayout(self)
        column.setContentsMargins(_MARGIN, _MARGIN - 3, _MARGIN, _MARGIN)
        column.setSpacing(4)
        column.addLayout(header)
        column.addLayout(body, 1)
        space_id = self.space_id
        self.canvas.entered.connect(lambda: self.activated.emit(space_id))
        self.canvas.hovered.connect(lambda tile: self.hovered.emit(space_id, tile))
        self.canvas.picked.connect(lambda tile: self.picked.emit(space_id, tile))
        self.setToolTip(picture.space.space.description)

    @property
    def space_id(self) -> int:
        """The id of its space."""
        return self.canvas.picture.space.space.id

    def follow(self, change: EventChange) -> None:
        """Take an event into the picture."""
        self.canvas.follow(change)

    def mark(self, *, active: bool, past: bool) -> None:
        """Mark the panel as the active space's, and as one that shows the past, or not."""
        wanted = {"active": "true" if active else "false", "past": "true" if past else "false"}
        if any(self.property(name) != text for name, text in wanted.items()):
            for name, text in wanted.items():
                self.setProperty(name, text)
            self.style().unpolish(self)
            self.style().polish(self)

    def refresh(self, event: Event | None) -> None:
        """Say anew what the header says."""
        picture = self.canvas.picture
        stream = picture.space.stream(picture.stream_id)
        count = picture.space.count
        per_pixel = picture.layout.per_pixel
        shared = f" · {per_pixel:,} per pixel" if per_pixel > 1 else ""
        self._count.setText(f"{count:,} {'tile' if count == 1 else 'tiles'}{shared}")
        summary = "" if stream.summary is None or not count else summary_text(stream.schema, stream.summary)
        self._view.setText(f"{stream.schema.name}  {summary}".rstrip())
        self._stale.setVisible(event is not None and stream.sequence > 0 and not stream.is_fresh(event))
        if stream.sequence:
            self._stale.setToolTip(
                f"gathered at occurrence {stream.occurrence:,} of an earlier event, not at the latest"
            )
        self._sync_bar()

    def height_for(self, width: int) -> int | None:
        """The height it needs in a width, or None when it takes what it gets."""
        tiles = wanted_height(
            self.canvas.picture.space.count,
            width - 2 * _MARGIN - 4,
            cell_width=LABEL_WIDTH,
            cell_height=LABEL_HEIGHT,
        )
        if tiles is None or self.canvas.picture.space.space.row_width:
            return None
        return tiles + self.minimumSizeHint().height() - self.canvas.minimumHeight()

    def trimmed(self, width: int, height: int) -> int:
        """How much of a height its tiles really cover: cells are whole pixels, so some may be left."""
        chrome = self.minimumSizeHint().height() - self.canvas.minimumHeight()
        covered = self.canvas.picture.height_in(width - 2 * _MARGIN - 4, height - chrome)
        return min(height, covered + chrome + 1)

    def _sync_bar(self) -> None:
        layout = self.canvas.picture.layout
        self._bar.blockSignals(True)
        self._bar.setRange(0, max(0, layout.rows - layout.seen_rows))
        self._bar.setPageStep(max(1, layout.seen_rows))
        self._bar.setValue(layout.first_row)
        self._bar.blockSignals(False)
        self._bar.setVisible(layout.scrolls)

    def _scrolled(self, row: int) -> None:
        self.canvas.picture.scroll_to(row)
        self.canvas.update()
