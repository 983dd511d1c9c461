"""Help: the command palette, the guide, and the sheet of keys.

Knows where the table of actions is read; does not know what any of them does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from gcspy_client.guide import pages
from gcspy_client.model.palette import Theme
from gcspy_client.view.actions import Action
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part
from gcspy_client.view.shell.command_palette import CommandPalette, PaletteEntry
from gcspy_client.view.shell.guide_window import GuideWindow
from gcspy_client.view.shell.key_sheet import KeyRow, KeySheet
from gcspy_client.view.theme import tokens

__all__ = ["HelpPart"]

_HELP = "&Help"


class HelpPart(Part):
    """Help in a window.

    Args:
        desk: The window's desk.
        entries: The entries of the command palette.
        key_rows: Returns all keys and their actions.

    Attributes:
        palette: The command palette.
    """

    def __init__(
        self,
        desk: Desk,
        entries: Callable[[], Sequence[PaletteEntry]],
        key_rows: Callable[[], Sequence[KeyRow]],
    ) -> None:
        super().__init__(desk)
        self._key_rows = key_rows
        self._keys: KeySheet | None = None
        self._guide: GuideWindow | None = None
        self.palette = CommandPalette(entries, tokens(desk.theme), desk.frame)

    def show_keys(self) -> None:
        """Show all keys."""
        if self._keys is None:
            self._keys = KeySheet(self._key_rows(), self._desk.frame)
        self._keys.show()
        self._keys.raise_()
        self._keys.activateWindow()

    def show_guide(self, page: str = "") -> GuideWindow:
        """Show the guide, at a page."""
        if self._guide is None:
            keys = [(row.menu, row.keys, row.about) for row in self._key_rows()]
            self._guide = GuideWindow(pages(), keys, self._desk.frame)
        self._guide.show_page(page)
        self._guide.show()
        self._guide.raise_()
        self._guide.activateWindow()
        return self._guide

    def set_theme(self, theme: Theme) -> None:
        """Draw in the colours of a theme."""
        self.palette.set_colours(tokens(theme))

    def stop(self) -> None:
        """The window closes."""
        if self._keys is not None:
            self._keys.close()

    def actions(self) -> tuple[Action, ...]:
        """The actions of help."""
        return (
            Action(
                name="help.palette",
                menu=_HELP,
                text="&Command palette…",
                about="find any action by typing",
                run=self.palette.open,
                keys=("Ctrl+K",),
            ),
            Action(
                name="help.guide",
                menu=_HELP,
                text="&Guide",
                about="the guide",
                run=partial(self.show_guide),
                keys=("F1",),
            ),
            Action(
                name="help.keys",
                menu=_HELP,
                text="&Keys",
                about="this sheet",
                run=self.show_keys,
                keys=("?",),
            ),
        )
