"""The user's selection: the active space, the stream with which a space is painted, the selected tile.

Knows the session, its tiles and what can be taken back; does not know panels.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Qt

from gcspy_client.model.renderers.order import greatest_tile
from gcspy_client.model.session import ClientSession
from gcspy_client.view.live_updater import LiveUpdater
from gcspy_client.view.shell.view_undo import ViewUndo
from gcspy_client.view.spaces.spaces import Spaces

__all__ = ["Selection"]


class Selection(QObject):
    """Activates spaces, chooses streams, selects tiles.

    Args:
        session: The session that keeps the selection.
        spaces: The tiles.
        updater: Updates texts.
        undo: Takes back changes of the view.
        parent: Its owner.
    """

    def __init__(
        self,
        session: ClientSession,
        spaces: Spaces,
        updater: LiveUpdater,
        undo: ViewUndo,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._session, self._spaces = session, spaces
        self._updater, self._undo = updater, undo
        spaces.activated.connect(self.activate)
        spaces.picked.connect(self.select)

    def activate(self, space_id: int) -> None:
        """Make a space the active one."""
        before = self._session.active_space()
        self._session.activate(space_id)
        if before is None or before.space.id != space_id:
            self._updater.refresh()

    def turn_to(self, space_id: int) -> None:
        """Make a space the active one, bring it into view, and give it the keyboard."""
        if space_id in self._spaces.panels:
            self._session.activate(space_id)
            panel = self._spaces.panels[space_id]
            panel.shown.setFocus(Qt.FocusReason.ShortcutFocusReason)
            self._spaces.reveal(panel)
            self._updater.refresh()

    def next_space(self, step: int) -> None:
        """Make the next (1) or previous (-1) space the active one."""
        before = self._session.active_space()
        self._step(step)
        space = self._session.active_space()
        if space is not None and before is not None:
            again = partial(self.turn_to, space.space.id)
            back = partial(self.turn_to, before.space.id)
            self._undo.do("space " + space.space.name, again, back, "space")

    def _step(self, step: int) -> None:
        """Activate the next space that is not hidden."""
        for _ in self._session.interpreter.spaces:
            self._session.activate_next(step)
            space = self._session.active_space()
            if space is None or not self._spaces.is_hidden(space.space.id):
                return

    @property
    def can_hide(self) -> bool:
        """Whether another space remains when the active one is hidden."""
        space = self._session.active_space()
        return space is not None and self._spaces.can_hide(space.space.id)

    def hide_space(self) -> None:
        """Show the active space no more, and make the next one active; the last one stays."""
        space = self._session.active_space()
        if space is None or not self._spaces.can_hide(space.space.id):
            return
        name, before = space.space.name, space.space.id
        self._undo.do(f"hide {name}", partial(self._hide, before), partial(self._show, before))

    def _hide(self, space_id: int) -> None:
        space = self._session.active_space()
        if space is not None and space.space.id == space_id:
            self._step(1)
            self._spaces.mark_active()
        self._spaces.hide_space(space_id)
        self._updater.refresh()

    def _show(self, space_id: int) -> None:
        self._spaces.show_space(space_id)
        self.turn_to(space_id)

    def show_all_spaces(self) -> None:
        """Show the hidden spaces again."""
        self._spaces.show_all()

    def choose_stream(self, space_id: int, stream_id: int) -> None:
        """Paint a space in another stream."""
        before = self._session.chosen_source(space_id)
        now = self._session.looks.source(self._session.interpreter.spaces[space_id], stream_id)
        paint = partial(self._paint_stream, space_id)
        if now is None or before is None or before.schema.id == stream_id:
            paint(stream_id)
        else:
            text, back = f"view of {now.schema.name}", partial(paint, before.schema.id)
            self._undo.do(text, partial(paint, stream_id), back, ("stream", space_id))

    def _paint_stream(self, space_id: int, stream_id: int) -> None:
        space = self._session.interpreter.spaces.get(space_id)
        there = space is not None and self._session.looks.source(space, stream_id) is not None
        if there and space_id in self._spaces.panels:
            self._session.choose_stream(space_id, stream_id)
            self._spaces.show_stream(space_id)
            self._updater.refresh()

    def next_stream(self, step: int) -> None:
        """Paint the active space in the next (1) or previous (-1) stream."""
        space = self._session.active_space()
        source = None if space is None else self._session.chosen_source(space.space.id)
        if space is None or source is None:
            return
        ids = [one.schema.id for one in self._session.looks.sources(space)]
        now = source.schema.id
        place = ids.index(now) if now in ids else 0
        self.choose_stream(space.space.id, ids[(place + step) % len(ids)])

    def select(self, space_id: int, tile: int | None) -> None:
        """Select a tile; None: no tile."""
        self._session.activate(space_id)
        self._session.select(space_id, tile)
        self._spaces.select(space_id)
        self._updater.refresh()

    def select_key(self, space_id: int, key: int) -> None:
        """Select a tile by its key; the tile may be absent from the event that is shown."""
        self._session.activate(space_id)
        self._session.select_key(space_id, key)
        if space_id in self._spaces.panels:
            self._spaces.select(space_id)
        self._updater.refresh()

    def select_greatest(self) -> bool:
        """Select the tile of the active space with the greatest value of its stream; whether there is one."""
        space = self._session.active_space()
        source = None if space is None else self._session.chosen_source(space.space.id)
        tile = None if space is None or source is None else greatest_tile(space, source)
        if space is None or tile is None:
            return False
        self.select(space.space.id, tile)
        self._spaces.reveal_tile(space.space.id, tile)
        return True

    def deselect(self) -> None:
        """Select no tile of the active space."""
        space = self._session.active_space()
        if space is not None and space.space.id in self._spaces.panels:
            self.select(space.space.id, None)
