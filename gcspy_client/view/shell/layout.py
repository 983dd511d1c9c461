"""The layout of a window: where its panels stand, and where it stands on the screen; stored when it closes.

Layouts for kinds of work open the panels that these need, at their default places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from gcspy_protocol.errors import CommandError
from PySide6.QtCore import QByteArray

from gcspy_client.model.palette import Theme
from gcspy_client.model.shell.work_layout import (
    LAYOUT_SUFFIX,
    LAYOUTS,
    MOST_OWN,
    WorkLayout,
    layout_content,
    layout_of,
    read_layout,
    write_layout,
)
from gcspy_client.view.actions import Action
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part
from gcspy_client.view.plain.dialogs import ask_file, ask_new_file, ask_one_of, ask_text
from gcspy_client.view.shell.command_palette import PaletteEntry

__all__ = ["LayoutPart"]

_MENU = "&View/La&youts"
_OWN = "layout.own"
_HIDDEN = "spaces.hidden"
_MOST_HIDDEN = 1_000
_LONGEST_NAME = 60
_KINDS = f"Layouts (*{LAYOUT_SUFFIX})"


class LayoutPart(Part):
    """The layout of a window."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._restored = self._stored = False

    def restore_place(self) -> None:
        """Stand on the screen where the last window stood; before it is shown."""
        settings = self._desk.settings
        stored = settings.data("layout.window") if settings.flag("layout.restore", True) else b""
        if stored:
            self._desk.frame.restoreGeometry(QByteArray(stored))

    def restore(self) -> bool:
        """Lay the panels out, once the size of the window is known.

        Returns:
            Whether it was done now, and not before.
        """
        if self._restored:
            return False
        self._restored = True
        self._desk.docks.restore(self._desk.settings)
        if self._desk.settings.flag("layout.restore", True):
            self._desk.spaces.use_hidden(self._desk.settings.texts(_HIDDEN))
        return True

    def store(self) -> None:
        """Remember the layout; once, and only if the window was ever shown."""
        if self._stored or not self._restored:
            return
        self._stored = True
        settings = self._desk.settings
        self._desk.docks.store(settings)
        settings.store(_HIDDEN, list(self._desk.spaces.hidden_names)[:_MOST_HIDDEN])
        settings.store_data("layout.window", bytes(self._desk.frame.saveGeometry().data()))
        settings.write()

    def set_theme(self, theme: Theme) -> None:
        """Draw in the colours of a theme."""
        self._desk.docks.set_theme(theme)

    def use(self, layout: WorkLayout) -> None:
        """Open the panels and the spaces of a layout, and close all others."""
        desk = self._desk
        before, opened, hidden = (
            desk.docks.state(),
            desk.spaces.opened,
            desk.spaces.hidden_names,
        )
        desk.docks.open_only(layout.panels)
        desk.spaces.use_opened(dict(layout.opened))
        after = hidden if layout.hidden is None else layout.hidden
        desk.spaces.use_hidden(after)
        desk.undo.done(
            f"layout {layout.name}",
            partial(self._put, desk.docks.state(), dict(layout.opened), after),
            partial(self._put, before, opened, hidden),
        )

    def _put(self, state: bytes, opened: dict[str, bool], hidden: tuple[str, ...]) -> None:
        self._desk.docks.use_state(state)
        self._desk.spaces.use_opened(opened)
        self._desk.spaces.use_hidden(hidden)

    def current(self) -> WorkLayout:
        """The layout as it is now."""
        desk = self._desk
        return WorkLayout(
            "",
            panels=desk.docks.open_names,
            opened=desk.spaces.opened,
            hidden=desk.spaces.hidden_names,
        )

    # ----------------------------------------------------------------- under own names

    def own(self) -> dict[str, WorkLayout]:
        """The layouts that the user keeps, by their names; damaged ones are left out."""
        kept = {}
        for name, content in list(self._desk.settings.mapping(_OWN).items())[:MOST_OWN]:
            if name.strip() and len(name) <= _LONGEST_NAME:
                with suppress(CommandError):
                    kept[name] = layout_of(content, name)
        return kept

    def keep(self, name: str) -> None:
        """Keep the present layout under a name; one of that name is replaced."""
        name, kept = name.strip()[:_LONGEST_NAME], self.own()
        if not name:
            return
        if name not in kept and len(kept) >= MOST_OWN:
            self._desk.say(f"Not kept: the limit is {MOST_OWN} layouts. Forget one first.")
            return
        kept[name] = self.current()
        self._store_own(kept)
        self._desk.say(f"Layout kept: {name}")

    def forget(self, name: str) -> None:
        """Keep a layout no more."""
        kept = self.own()
        kept.pop(name, None)
        self._store_own(kept)

    def _store_own(self, kept: dict[str, WorkLayout]) -> None:
        contents: dict[str, object] = {name: layout_content(one) for name, one in kept.items()}
        self._desk.settings.store(_OWN, contents)
        self._desk.settings.write()

    def _ask_keep(self) -> None:
        name = ask_text(self._desk.frame, "Keep layout", "Name of this layout:")
        if name is not None:
            self.keep(name)

    def _ask_use(self) -> None:
        name = self._ask_own("Own layouts", "Layout to use:")
        if name is not None:
            self.use(self.own()[name])

    def _ask_forget(self) -> None:
        name = self._ask_own("Forget layout", "Layout to forget:")
        if name is not None:
            self.forget(name)

    def _ask_own(self, title: str, question: str) -> str | None:
        names = list(self.own())
        chosen = ask_one_of(self._desk.frame, title, question, names)
        return None if chosen is None else names[chosen]

    def entries(self) -> Sequence[PaletteEntry]:
        """The user's own layouts."""
        return [
            PaletteEntry("Layout", name, partial(self.use, layout))
            for name, layout in self.own().items()
        ]

    def _save(self) -> None:
        path = ask_new_file(self._desk.frame, "Save layout", _KINDS, f"layout{LAYOUT_SUFFIX}")
        if path is not None:
            self._tell(lambda: write_layout(Path(path), self.current()), f"Layout saved: {path}")

    def _open(self) -> None:
        path = ask_file(self._desk.frame, "Open layout", _KINDS)
        if path is not None:
            self._tell(lambda: self.use(read_layout(Path(path))), "")

    def _tell(self, work: Callable[[], None], done: str) -> None:
        try:
            work()
        except CommandError as error:
            done = str(error)
        if done:
            self._desk.say(done)

    def actions(self) -> Sequence[Action]:
        """The menus of panels and layouts."""
        kinds = tuple(
            Action(
                name=f"layout.{layout.name.lower()}",
                menu=_MENU,
                text=f"&{layout.name}",
                about=f"layout {layout.name}: {layout.about}",
                run=partial(self.use, layout),
                keys=(f"F{number}",),
            )
            for number, layout in enumerate(LAYOUTS, 2)
        )
        files = (
            Action(
                name="layout.save",
                menu=_MENU,
                text="&Save layout…",
                about="save the open panels and spaces as a file, for yourself or others",
                run=self._save,
                begins_group=True,
            ),
            Action(
                name="layout.open",
                menu=_MENU,
                text="Open la&yout…",
                about="open the panels and spaces that a file names",
                run=self._open,
            ),
        )
        own = (
            Action(
                name="layout.keep",
                menu=_MENU,
                text="&Keep layout…",
                about="keep the open panels and spaces under a name of your own",
                run=self._ask_keep,
                keys=("Shift+F8",),
                begins_group=True,
            ),
            Action(
                name="layout.own",
                menu=_MENU,
                text="&Own layouts…",
                about="use a layout that you kept",
                run=self._ask_use,
                keys=("F8",),
                enabled=lambda: bool(self.own()),
                why_not="no layout is kept: Shift+F8 keeps this one",
            ),
            Action(
                name="layout.forget",
                menu=_MENU,
                text="&Forget layout…",
                about="forget a layout that you kept",
                run=self._ask_forget,
                enabled=lambda: bool(self.own()),
                why_not="no layout is kept",
            ),
        )
        return (*self._desk.docks.actions(), *kinds, *own, *files)
