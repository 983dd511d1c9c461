"""Moving between spaces, streams and tiles, copying a tile as text, and taking back changes of the view.

Knows the selection and the views; does not know how anything is drawn.
"""

from __future__ import annotations

from functools import partial

from gcspy_client.model.session import ordered_streams
from gcspy_client.view.actions import Action, Gesture
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part
from gcspy_client.view.shell.command_palette import PaletteEntry
from gcspy_client.view.spaces.tile_copy import TileCopy
from gcspy_client.view.spaces.view_controller import ViewController

__all__ = ["SpacesPart"]

_VIEW = "&View"


class SpacesPart(Part):
    """Spaces in a window.

    Args:
        desk: The window's desk.
        views: Zooms.
        tile_copy: Copies tiles.
    """

    def __init__(self, desk: Desk, views: ViewController, tile_copy: TileCopy) -> None:
        super().__init__(desk)
        self._views, self._tile_copy = views, tile_copy

    def zoom(self, step: int) -> None:
        """Larger tiles (1) in the active space, smaller ones (-1), or all in view (0)."""
        space = self._desk.session.active_space()
        if space is not None and space.space.id in self._desk.spaces.panels:
            self._views.zoom(space.space.id, step)

    def stop(self) -> None:
        """Paint nothing any more."""
        self._desk.spaces.stop()

    def gestures(self) -> tuple[Gesture, ...]:
        """The keys over tiles."""
        return (
            Gesture(_VIEW, "Arrows, Page up / down", "move the selection"),
            Gesture(_VIEW, "Ctrl+Home, Ctrl+End", "select the first or the last tile"),
        )

    def entries(self) -> list[PaletteEntry]:
        """Every space and every stream."""
        entries = []
        selection = self._desk.selection
        for space_id, space in self._desk.session.interpreter.spaces.items():
            entries.append(
                PaletteEntry("Space", space.space.name, partial(selection.turn_to, space_id))
            )
            for stream in ordered_streams(space):
                name = f"{space.space.name} · {stream.name}"
                entries.append(
                    PaletteEntry("Stream", name, partial(self._look_at, space_id, stream.id))
                )
        return entries

    def _look_at(self, space_id: int, stream_id: int) -> None:
        self._desk.selection.turn_to(space_id)
        self._desk.selection.choose_stream(space_id, stream_id)

    def actions(self) -> tuple[Action, ...]:
        """The actions of spaces and their tiles."""
        return (*self._undo_actions(), *self._steps(), *self._tile_actions())

    def _undo_actions(self) -> tuple[Action, ...]:
        undo = self._desk.undo
        return (
            Action(
                name="view.undo",
                menu=_VIEW,
                text="&Undo",
                about="undo the last change of the view",
                run=undo.undo,
                keys=("Ctrl+Z",),
                enabled=lambda: undo.can_undo,
                why_not="nothing to undo",
                words_now=lambda: f"&Undo {undo.next_words[0]}",
            ),
            Action(
                name="view.redo",
                menu=_VIEW,
                text="Re&do",
                about="redo the last undone change",
                run=undo.redo,
                keys=("Ctrl+Shift+Z", "Ctrl+Y"),
                enabled=lambda: undo.can_redo,
                why_not="nothing to redo",
                words_now=lambda: f"Re&do {undo.next_words[1]}",
            ),
        )

    def _steps(self) -> tuple[Action, ...]:
        selection = self._desk.selection
        return (
            Action(
                name="view.next-space",
                menu=_VIEW,
                text="&Next space",
                run=partial(selection.next_space, 1),
                keys=("N",),
                begins_group=True,
            ),
            Action(
                name="view.previous-space",
                menu=_VIEW,
                text="&Previous space",
                run=partial(selection.next_space, -1),
                keys=("P",),
            ),
            Action(
                name="view.open-spaces",
                menu=_VIEW,
                text="Open or fold all spaces",
                about="open all spaces below the large one, or fold each to a line",
                run=self._desk.spaces.open_all,
                keys=("E",),
            ),
            Action(
                name="view.hide-space",
                menu=_VIEW,
                text="&Hide this space",
                about="hide the active space; it comes back when it is chosen, or with all",
                run=selection.hide_space,
                keys=("Shift+H",),
                enabled=lambda: selection.can_hide,
                why_not="no other space would remain",
            ),
            Action(
                name="view.show-spaces",
                menu=_VIEW,
                text="Sho&w hidden spaces",
                run=selection.show_all_spaces,
                keys=("Shift+U",),
                enabled=lambda: bool(self._desk.spaces.hidden),
                why_not="no space is hidden",
            ),
            Action(
                name="view.next-stream",
                menu=_VIEW,
                text="Next &stream",
                about="next stream of the active space",
                run=partial(selection.next_stream, 1),
                keys=("]",),
            ),
            Action(
                name="view.previous-stream",
                menu=_VIEW,
                text="Previous s&tream",
                about="previous stream of the active space",
                run=partial(selection.next_stream, -1),
                keys=("[",),
            ),
        )

    def _tile_actions(self) -> tuple[Action, ...]:
        return (
            Action(
                name="view.copy-tile",
                menu=_VIEW,
                text="&Copy tile information",
                about="copy the values of the selected tile, or of the tile under the mouse, as text",
                run=self._tile_copy.copy,
                keys=("Ctrl+C",),
                enabled=lambda: self._tile_copy.tile() is not None,
                why_not="no tile is selected or under the mouse",
            ),
            Action(
                name="view.fullest",
                menu=_VIEW,
                text="Select the &fullest tile",
                about="select the tile with the greatest value of the current stream",
                run=self._desk.selection.select_greatest,
                keys=("X",),
                enabled=lambda: self._desk.session.active_space() is not None,
                why_not="there are no tiles yet",
            ),
            Action(
                name="view.no-tile",
                menu=_VIEW,
                text="Clear the selection",
                run=self._desk.selection.deselect,
            ),
            Action(
                name="view.larger",
                menu=_VIEW,
                text="&Larger tiles",
                run=partial(self.zoom, 1),
                keys=("+",),
                begins_group=True,
            ),
            Action(
                name="view.smaller",
                menu=_VIEW,
                text="S&maller tiles",
                run=partial(self.zoom, -1),
                keys=("-",),
            ),
            Action(
                name="view.all-tiles",
                menu=_VIEW,
                text="&All tiles in view",
                run=partial(self.zoom, 0),
                keys=("0",),
            ),
        )
