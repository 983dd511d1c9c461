"""Pictures of recorded events, from one window off screen.

The caller shows each event of a recording to the camera and takes pictures of the requested ones;
between two of them nothing is laid out or painted. So the graph in a picture includes every event,
also those without a picture.

Knows the window; does not know files or recordings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np
from gcspy_protocol.errors import CommandError
from gcspy_protocol.interpreter import ClientInterpreter, EventChange
from numpy.typing import NDArray
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtGui import QImage, QPixmap
from PySide6.QtWidgets import QLayout, QVBoxLayout, QWidget

from gcspy_client.app import LARGE_HEIGHT, application
from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.chart import Chart
from gcspy_client.model.session import ClientSession
from gcspy_client.model.shell.link_status import LinkPhase, LinkStatus
from gcspy_client.model.spaces.picture import LARGEST_CELL, SpacePicture
from gcspy_client.model.tile_source import StreamSource
from gcspy_client.view.panels.chart_view import ChartView
from gcspy_client.view.plain.widgets import PlainLabel
from gcspy_client.view.png_file import write_png
from gcspy_client.view.shell.event_bar import EventBar
from gcspy_client.view.spaces.legend import Legend
from gcspy_client.view.spaces.space_panel import SpacePanel
from gcspy_client.view.theme import dress, tokens
from gcspy_client.view.window import MainWindow

__all__ = ["Camera", "chart_picture", "filling_cell"]

_LARGEST = 72
"""Largest side of a cell when a space has a picture to itself: beyond it few tiles look like a mistake."""
_SUITS = 0.7


class _Scene(Protocol):
    """A widget that can be shown events."""

    def follow(self, interpreter: ClientInterpreter, change: EventChange) -> None:
        """Take an event."""

    def settle(self) -> None:
        """Say everything now that would be said a moment later."""

    def fill(self) -> None:
        """Lay tiles out again, now that everything has its place."""


class _WindowScene(MainWindow):
    """The whole window, without what only a living one needs: menu, buttons, and where the link stands."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        # Nothing here is late or lost: no banner, and so no room for one.
        self.link.status = LinkStatus(phase=LinkPhase.LIVE)
        self._turn_to_page()
        self.menuBar().hide()
        self.session_part.footer.hide()
        self.time_panel.hide()

    def follow(self, interpreter: ClientInterpreter, change: EventChange) -> None:
        """Take an event."""
        session = self.session
        if session.interpreter is not interpreter:
            self.updater.restart()
            session.live = session.interpreter = interpreter
        session.history.follow(interpreter, change.event)
        session.events_seen += 1
        self.updater.show(change)

    def fill(self) -> None:
        """Tiles have the room that the window gives them."""


class _SpaceScene(QWidget):
    """One space: the target and the event, its tiles, its legend."""

    def __init__(self, theme: Theme, space: str, stream: str | None) -> None:
        super().__init__()
        self._theme, self._space_name, self._stream_name = theme, space, stream
        self._session = ClientSession()
        self._panel: SpacePanel | None = None
        self._fitted = (0, 0, 0)
        self._bar = EventBar(self._session)
        self._legend = Legend()
        self._absent = PlainLabel(f"There is no space {space} at this event.")
        self._absent.setProperty("dim", "true")
        self._absent.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(10, 6, 10, 9)
        self._column.setSpacing(8)
        self._column.addWidget(self._bar)
        self._column.addWidget(self._absent, 1)
        self._column.addWidget(self._legend)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)

    def follow(self, interpreter: ClientInterpreter, change: EventChange) -> None:
        """Take an event."""
        session = self._session
        session.live = session.interpreter = interpreter
        space = next(
            (s for s in interpreter.spaces.values() if s.space.name == self._space_name), None
        )
        panel = self._panel
        if panel is not None and (space is None or panel.canvas.picture.space is not space):
            self._column.removeWidget(panel)
            panel.setParent(None)
            panel.deleteLater()
            panel = self._panel = None
        self._absent.setVisible(space is None)
        if space is None:
            return
        if panel is not None:
            panel.follow(change)
            source = panel.canvas.picture.source
            if (
                source.schema.names_from is not None
                and source.schema != space.stream(source.schema.id).schema
            ):
                panel.show_source(StreamSource(space.stream(source.schema.id).schema))
            return
        streams = {state.schema.name: stream_id for stream_id, state in space.streams.items()}
        chosen = (
            session.chosen_stream(space.space.id)
            if self._stream_name is None
            else streams.get(self._stream_name)
        )
        if chosen is None:
            raise CommandError(
                f"the space {self._space_name!r} has no stream {self._stream_name!r}; it has: {', '.join(streams)}"
            )
        self._fitted = (0, 0, 0)
        # A picture does not depend on the events before it.
        self._panel = SpacePanel(SpacePicture(space, chosen, self._theme), trend=False)
        self._column.insertWidget(1, self._panel, 1)

    def settle(self) -> None:
        """Update all texts."""
        self._bar.refresh()
        self._legend.setVisible(self._panel is not None)
        if self._panel is None:
            return
        picture = self._panel.canvas.picture
        self._panel.refresh(self._session.interpreter.last_event)
        self._legend.show_source(
            picture.source, picture.palette, picture.maximum, picture.space.space.unused_text
        )

    def fill(self) -> None:
        """Have few tiles fill the room, where the window would leave it to other spaces."""
        if self._panel is None:
            return
        canvas = self._panel.canvas
        picture = canvas.picture
        scale = canvas.devicePixelRatioF()
        fitted = (picture.space.count, canvas.width(), canvas.height())
        if fitted == self._fitted:
            return
        # Tiles may stay where they were while more or fewer of them come, not when the room for them is another.
        before = picture.zoom if fitted[1:] == self._fitted[1:] else None
        self._fitted = fitted
        picture.set_zoom(None)
        if not picture.layout.labelled and picture.space.space.row_width is None:
            size = filling_cell(
                fitted[0], round(fitted[1] * scale), round(fitted[2] * scale), before
            )
            if size > LARGEST_CELL * scale:
                picture.set_zoom(size)
        canvas.update()


def filling_cell(count: int, width: int, height: int, now: int | None) -> int:
    """Side of the square cells with which this many tiles fill a picture; unchanged while that suits well.

    Args:
        count: Tiles.
        width: Pixels there are.
        height: Pixels there are.
        now: Side of the cells in the picture before, so that tiles do not move at each event.

    Returns:
        The side, at most `_LARGEST`.
    """
    sizes = range(1, max(2, min(width, height, _LARGEST) + 1))
    best = max((size for size in sizes if (width // size) * (height // size) >= count), default=1)
    return now if now is not None and best * _SUITS <= now <= best else best


class Camera:
    """Takes pictures of events.

    Args:
        size: Width and height of each picture in pixels.
        theme: For which canvas.
        space: Only the tiles of the space of this name, with title and legend; None: the whole window.
        stream: With `space`: the stream in which it is painted; None: its most important one.

    Attributes:
        widget: The widget to photograph.
    """

    def __init__(
        self,
        *,
        size: tuple[int, int],
        theme: Theme = Theme.DARK,
        space: str | None = None,
        stream: str | None = None,
    ) -> None:
        self._application = application(scale=2.0 if size[1] >= LARGE_HEIGHT else None)
        self._size = size
        scene = _WindowScene(theme) if space is None else _SpaceScene(theme, space, stream)
        dress(scene, theme)
        scene.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
        layout = scene.layout()
        assert layout is not None
        layout.setSizeConstraint(
            QLayout.SizeConstraint.SetNoConstraint
        )  # the user's size, also where words do not fit it
        scale = scene.devicePixelRatioF()
        scene.resize(round(size[0] / scale), round(size[1] / scale))
        scene.show()
        self.widget: QWidget = scene
        self._scene: _Scene = scene

    def follow(self, interpreter: ClientInterpreter, change: EventChange) -> None:
        """Take an event.

        Args:
            interpreter: A viewer's state right after the event; it may change in place from event
                to event.
            change: The event and its changes.

        Raises:
            CommandError: The requested space does not have the requested stream.
        """
        self._scene.follow(interpreter, change)

    def pixels(self) -> NDArray[np.uint32]:
        """A picture of the event that came last, shape (height, width), each 0x00RRGGBB."""
        plain = self.take().convertToFormat(QImage.Format.Format_RGB32)
        rows = np.frombuffer(plain.constBits(), dtype=np.uint32).reshape(
            plain.height(), plain.bytesPerLine() // 4
        )
        result: NDArray[np.uint32] = rows[:, : plain.width()] & np.uint32(0xFFFFFF)
        return result

    def save(self, path: Path) -> None:
        """Write a picture of the event that came last to a PNG file.

        Raises:
            OSError: The file cannot be written.
        """
        write_png(self.take(), path)

    def take(self) -> QImage:
        """A picture of the event that came last."""
        self._scene.settle()
        self._application.processEvents()
        self._scene.fill()
        self._scene.settle()  # a new layout may change texts: how many tiles a pixel, say
        image = self.widget.grab().toImage()
        if (
            image.width(),
            image.height(),
        ) != self._size:  # a scale that is no whole number may be a pixel off
            image = image.scaled(*self._size)
        image.setDevicePixelRatio(1.0)
        return image

    def close(self) -> None:
        """Close the window."""
        self.widget.close()
        self.widget.deleteLater()
        # Without a running loop no other code deletes them, and each picture would leave its
        # widgets behind.
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        self._application.processEvents()


def chart_picture(
    chart: Chart | None, title: str, *, size: tuple[int, int], theme: Theme
) -> QPixmap:
    """A picture of a chart alone, with its title and legend.

    Args:
        chart: The chart to draw; None: nothing, which the picture says.
        title: Above it.
        size: Width and height in pixels.
        theme: The theme of its colours.
    """
    application()
    view = ChartView(tokens(theme))
    view.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
    dress(view, theme)
    view.resize(*size)
    if chart is None:
        view.show_words("There is nothing to draw.", title)
    else:
        view.show_chart(chart, title)
    view.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
    view.show()
    QCoreApplication.processEvents()
    image = view.grab()
    view.close()
    view.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    return image
