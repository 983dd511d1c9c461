"""The user's actions, in one table: menus, the shortcut sheet and other lists of commands are made from it.

An action has a name that never changes, texts, keys, a condition, and a function. Keys that
belong to one widget only, such as arrows over tiles, are reported by the sheet as *gestures*.

Knows tables and Qt's actions; does not know what any of them does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu, QMenuBar

from gcspy_client.view.plain.widgets import menu_action, say_action
from gcspy_client.view.shell.command_palette import PaletteEntry
from gcspy_client.view.shell.key_sheet import KeyRow

__all__ = ["Action", "Actions", "Gesture"]


def _always() -> bool:
    return True


@dataclass(frozen=True, kw_only=True, slots=True)
class Action:
    """One thing the user can do.

    Attributes:
        name: Its name for programs, ``menu.verb``.
        menu: Title of its menu; behind a slash that of a menu in it: ``&View/&Panels``.
        text: Its words in the menu, with an ampersand before the letter that chooses it.
        run: Runs the action.
        keys: Its shortcuts, as Qt writes them.
        about: Its words in the sheet of shortcuts; by default those of the menu.
        enabled: Whether it can be done now.
        checked: Whether it is on now; None: it is nothing that is on or off.
        begins_group: Whether a line stands before it in the menu.
        why_not: Why it cannot be done while `enabled` says no.
        words_now: Its words in the menu, where they depend on how things are; `text` are its words in general.
    """

    name: str
    menu: str
    text: str
    run: Callable[[], object]
    keys: tuple[str, ...] = ()
    about: str = ""
    enabled: Callable[[], bool] = _always
    checked: Callable[[], bool] | None = None
    begins_group: bool = False
    words_now: Callable[[], str] | None = None
    why_not: str = "it cannot be done now"

    @property
    def words(self) -> str:
        """Its name where no letter is marked."""
        return self.text.replace("&", "").removesuffix("…")


@dataclass(frozen=True, slots=True)
class Gesture:
    """Keys or a movement that one widget understands by itself.

    Attributes:
        menu: Title of its section in the list of shortcuts.
        keys: The keys.
        about: A description of the action.
    """

    menu: str
    keys: str
    about: str


class Actions:
    """The table.

    Args:
        parent: Owns Qt's actions, and is where their keys are heard.
        table: The actions, in the order of the menus.
        gestures: Further entries of the list of shortcuts.
    """

    def __init__(
        self, parent: QObject, table: Sequence[Action], gestures: Sequence[Gesture] = ()
    ) -> None:
        self._table = {action.name: action for action in table}
        self._gestures = tuple(gestures)
        self._made: dict[str, QAction] = {}
        assert len(self._table) == len(table), "two actions of one name"
        for action in table:
            made = menu_action(action.text, parent)
            made.setObjectName(action.name)
            made.setShortcuts([QKeySequence(keys) for keys in action.keys])
            made.setCheckable(action.checked is not None)
            made.triggered.connect(partial(self._triggered, action.name))
            self._made[action.name] = made

    def __iter__(self) -> Iterator[Action]:
        return iter(self._table.values())

    def __getitem__(self, name: str) -> Action:
        return self._table[name]

    def made(self) -> Iterator[QAction]:
        """Qt's actions, in the order of the table."""
        return iter(self._made.values())

    def run(self, name: str) -> bool:
        """Do something, if it can be done now.

        Returns:
            Whether it could.
        """
        action = self._table[name]
        can = action.enabled()
        if can:
            action.run()
        made = self._made[name]
        if action.checked is not None:
            made.setChecked(action.checked())
        return can

    def tip(self, name: str, about: str = "") -> str:
        """The tooltip of a button for it: its words and its first key."""
        action = self._table[name]
        words = about or action.about or action.words
        return f"{words}  ({action.keys[0]})" if action.keys else words

    def fill(self, bar: QMenuBar) -> None:
        """Make the menus."""
        menus: dict[str, QMenu] = {}  # not kept: what Python refers to outlives the window
        for action in self:
            new = action.menu not in menus
            menu = self._menu(bar, menus, action.menu)
            if action.begins_group and not new:
                menu.addSeparator()
            menu.addAction(self._made[action.name])

    def _menu(self, bar: QMenuBar, menus: dict[str, QMenu], path: str) -> QMenu:
        if path not in menus:
            over, _, title = path.rpartition("/")
            made = menus[path] = (
                self._menu(bar, menus, over).addMenu(title) if over else bar.addMenu(title)
            )
            made.aboutToShow.connect(partial(self._opening, path))
            made.aboutToHide.connect(self._closed)
        return menus[path]

    def key_rows(self) -> list[KeyRow]:
        """All keys and what they do, menu by menu."""
        titles = list(
            dict.fromkeys([action.menu for action in self] + [one.menu for one in self._gestures])
        )
        rows = []
        for title in titles:
            words = menu_words(title)
            rows += [
                KeyRow(
                    words,
                    " or ".join(shown_keys(keys) for keys in action.keys),
                    _sentence(action.about or action.words),
                )
                for action in self
                if action.menu == title and action.keys
            ]
            rows += [
                KeyRow(words, one.keys, _sentence(one.about))
                for one in self._gestures
                if one.menu == title
            ]
        return rows

    def entries(self) -> list[PaletteEntry]:
        """All actions, for the command palette."""
        return [
            PaletteEntry(
                menu_words(action.menu),
                action.words if action.words_now is None else action.words_now().replace("&", ""),
                partial(self.run, action.name),
                shown_keys(action.keys[0]) if action.keys else "",
                "" if action.enabled() else action.why_not,
            )
            for action in self
        ]

    def _triggered(self, name: str, _checked: bool = False) -> None:
        self.run(name)

    def _opening(self, title: str) -> None:
        """A menu shows the actions that are possible now; its keys work whatever it shows."""
        for action in self:
            if action.menu == title:
                self._made[action.name].setEnabled(action.enabled())
                if action.words_now is not None:
                    say_action(self._made[action.name], action.words_now())
                if action.checked is not None:
                    self._made[action.name].setChecked(action.checked())

    def _closed(self) -> None:
        for made in self._made.values():
            made.setEnabled(True)


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def menu_words(path: str) -> str:
    """The title of a menu, without those of the menus it is in."""
    return path.rpartition("/")[2].replace("&", "")


def shown_keys(keys: str) -> str:
    """A shortcut as the system writes it."""
    return QKeySequence(keys).toString(QKeySequence.SequenceFormat.NativeText)
