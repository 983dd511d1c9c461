"""Copies the data of a tile: Ctrl+C, and the menu of the right mouse button over tiles and over the panel that describes them.

Knows the tile; the model knows its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QObject, QPoint, Qt
from PySide6.QtWidgets import QWidget

from gcspy_client.model.spaces.tile_text import tile_text
from gcspy_client.view.desk import Desk
from gcspy_client.view.plain.text import copy_text
from gcspy_client.view.plain.widgets import PlainMenu

__all__ = ["TileCopy"]


class TileCopy(QObject):
    """Copies tiles as text.

    Args:
        desk: The services of the window.
        widgets: Open the menu at a click of the right mouse button.
    """

    def __init__(self, desk: Desk, widgets: Sequence[QWidget]) -> None:
        super().__init__(desk.frame)
        self._desk = desk
        for widget in widgets:
            widget.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
            widget.customContextMenuRequested.connect(partial(self._open, widget))

    def tile(self) -> int | None:
        """Return the selected tile of the active space, or else the one under the mouse."""
        space = self._desk.session.active_space()
        if space is None:
            return None
        selected = self._desk.session.selected(space.space.id)
        panel = self._desk.spaces.panels.get(space.space.id)
        tile = panel.shown.under_mouse if selected is None and panel is not None else selected
        return tile if tile is not None and 0 <= tile < space.count else None

    def copy(self) -> None:
        """Copy the data of the tile."""
        space, tile = self._desk.session.active_space(), self.tile()
        if space is not None and tile is not None:
            copy_text(tile_text(self._desk.session, space.space.id, tile))

    def menu(self) -> PlainMenu:
        """Make the context menu of the tile that `tile` returns."""
        made = PlainMenu(self._desk.frame)
        tile = self.tile()
        for words, do, can in (
            ("Copy tile information", self.copy, tile is not None),
            ("Clear the selection", self._desk.selection.deselect, tile is not None),
        ):
            made.add(words, do).setEnabled(can)
        return made

    def _open(self, part: QWidget, place: QPoint) -> None:
        menu = self.menu()
        menu.exec(part.mapToGlobal(place))
        menu.deleteLater()
