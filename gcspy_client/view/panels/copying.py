"""Copying what is known of a tile: Ctrl+C, and the menu of the right mouse button over tiles and over the panel that tells of them.

Knows which tile is meant; what is said of it is the model's.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint, Qt
from PySide6.QtWidgets import QWidget

from gcspy_client.model.spaces.tile_text import tile_text
from gcspy_client.view.actions import Action
from gcspy_client.view.plain.text import copy_text
from gcspy_client.view.plain.widgets import PlainMenu

if TYPE_CHECKING:
    from gcspy_client.view.window import MainWindow

__all__ = ["Copying", "actions_of_copying"]


class Copying(QObject):
    """Copies tiles as text.

    Args:
        window: Whose tiles.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        for part in (window.spaces, window.details.tile):
            part.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
            part.customContextMenuRequested.connect(partial(self._open, part))

    def tile(self) -> int | None:
        """The tile that is meant: the selected one of the active space, else the one under the mouse."""
        space = self._window.session.active_space()
        if space is None:
            return None
        selected = self._window.session.selected(space.space.id)
        panel = self._window.spaces.panels.get(space.space.id)
        tile = panel.shown.under_mouse if selected is None and panel is not None else selected
        return tile if tile is not None and 0 <= tile < space.count else None

    def copy(self) -> None:
        """Copy what is known of the tile that is meant."""
        space, tile = self._window.session.active_space(), self.tile()
        if space is not None and tile is not None:
            copy_text(tile_text(self._window.session, space.space.id, tile))

    def menu(self) -> PlainMenu:
        """What can be done with the tile that is meant."""
        made = PlainMenu(self._window)
        tile = self.tile()
        for words, do, can in (
            ("Copy tile information", self.copy, tile is not None),
            ("Select no tile", self._window.deselect, tile is not None),
        ):
            made.add(words, do).setEnabled(can)
        return made

    def _open(self, part: QWidget, place: QPoint) -> None:
        menu = self.menu()
        menu.exec(part.mapToGlobal(place))
        menu.deleteLater()


def actions_of_copying(window: MainWindow) -> tuple[Action, ...]:
    """What can be copied."""
    return (
        Action(
            name="view.copy-tile",
            menu="&View",
            text="&Copy tile information",
            about="copy what is known of the selected tile, or of the one under the mouse, as text",
            run=window.copying.copy,
            keys=("Ctrl+C",),
            enabled=lambda: window.copying.tile() is not None,
            why_not="no tile is selected, and none is under the mouse",
        ),
    )
