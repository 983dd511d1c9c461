"""The common base of the views of a space, a picture or a table: the tile under the mouse, and its text.

Knows signals and tiles; does not know how anything is shown.
"""

from __future__ import annotations

from gcspy_protocol.interpreter import EventChange, SpaceState
from PySide6.QtCore import QEvent, Signal
from PySide6.QtWidgets import QWidget

from gcspy_client.model.palette import Theme
from gcspy_client.model.palettes import PaletteChoice
from gcspy_client.model.tile_source import TileSource
from gcspy_client.model.view_states import SpaceViewState

__all__ = ["SpaceView"]


class SpaceView(QWidget):
    """A view of one space.

    Signals:
        hovered: The tile under the mouse; -1 for none.
        picked: A tile was clicked or reached with the keyboard.
        marked: Tiles that the user marks or unmarks: first, last, and whether they are marked.
        entered: A button of the mouse was pressed in it.
        moved: The visible part was changed with the mouse; the previous one.
        failed: Why it failed, as text.
        changed: Its description changed, such as how many tiles share a place.
        tip_wanted: The tooltip is about to be shown: now is the time to say what it says.

    Attributes:
        selected: The selected tile.
        under_mouse: The tile under the mouse.
        marks: Marked tiles.
        painted: Whether tiles were painted yet.
        keeps_height: Whether it gets the height that tiles would have; otherwise it takes all available height.
        has_strip: Whether it can show all tiles in a strip, in place of the strip of tiles.
        how_to_enlarge: Text that tells users how to give it room.
    """

    keeps_height = False
    has_strip = False

    hovered = Signal(int)
    picked = Signal(int)
    marked = Signal(int, int, bool)
    entered = Signal()
    moved = Signal(object)
    failed = Signal(str)
    changed = Signal()
    tip_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.selected: int | None = None
        self.under_mouse: int | None = None
        self.painted = False
        self.marks: list[int] = []
        self.how_to_enlarge = ""

    def event(self, event: QEvent) -> bool:
        """Let the tooltip say what is under the mouse."""
        if event.type() is QEvent.Type.ToolTip:
            self.tip_wanted.emit()
        return super().event(event)

    def follow(self, change: EventChange) -> None:
        """Take an event, right after the interpreter did."""

    def use_space(self, space: SpaceState) -> None:
        """Show another state of the space."""

    def show_source(self, source: TileSource) -> None:
        """Show other numbers."""

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of another theme."""

    def use_palettes(self, palettes: PaletteChoice) -> None:
        """Use the user's palettes, now and after changes."""

    def set_look(self, look: SpaceViewState) -> None:
        """Apply another state of the same view."""

    def select(self, tile: int | None) -> None:
        """Mark a tile as the selected one."""
        self.selected = tile
        self.update()

    def mark_tiles(self, tiles: list[int]) -> None:
        """Show these tiles as marked."""
        self.marks = tiles
        self.update()

    def show_strip(self, *, on: bool) -> None:
        """Show all tiles in a strip, or not; only if it `has_strip`."""

    def reveal(self, tile: int) -> None:
        """Scroll no more than it takes to see a tile, if it scrolls."""

    def zoom_to_tiles(self) -> None:
        """Zoom in until each tile has its own place."""

    def zoom(self, step: int) -> None:
        """Zoom in (1), out (-1), or show all (0)."""

    def place(self) -> object:
        """Visible part and zoom, for `use_place`."""
        return None

    def use_place(self, place: object) -> None:
        """Show a part that `place` returned; a place of another kind of view is ignored."""

    def refresh(self) -> None:
        """Update texts: names may have arrived."""

    def say(self) -> str:
        """The text beside the number of tiles, such as how many share a place."""
        return ""

    def wants_names(self) -> list[tuple[int, int]]:
        """First and one beyond the last of tiles that are shown by name."""
        return []

    def second(self) -> TileSource | None:
        """The second stream of two that share a colour."""
        return None

    def legend_words(self) -> str:
        """Explanation of the picture besides its colours."""
        return ""

    @property
    def maximum(self) -> int | None:
        """Value that is painted in the colour of the maximum now; None if the view does not know it."""
        return None

    def settle(self) -> None:
        """Apply delayed updates now."""

    def stop(self) -> None:
        """Show nothing any more; no thread and no timer is left."""
