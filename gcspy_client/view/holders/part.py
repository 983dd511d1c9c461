"""Holders in a window: sends queries about the selection, and goes from a holder to its tile and back.

The server answers from a copy of the process's memory that it makes for the question; so it is asked on request, and
never at events.

Connects the parts of the window; the model knows the questions and builds the tree.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from gcspy_protocol.interpreter import SpaceState
from gcspy_protocol.text.visible import Lines
from PySide6.QtCore import Qt

from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.growth import growing_space
from gcspy_client.model.panels.heap_inquiry import DOMINATORS, HOLDERS, HeapInquiry, HeapSubject
from gcspy_client.model.panels.holder_tree import HolderNode
from gcspy_client.model.panels.one_object import tile_at
from gcspy_client.model.session import tile_title
from gcspy_client.model.text import age_words
from gcspy_client.view.actions import Action
from gcspy_client.view.desk import Desk
from gcspy_client.view.holders.inquiry_part import InquiryPart, as_sentence
from gcspy_client.view.holders.panel import HolderPanel

__all__ = ["HolderPart"]

_HEIGHT = 260
"""Initial height of the panel in pixels: seven rows."""

_NOTHING = HeapSubject(DOMINATORS, "What keeps most of the heap alive")

_HOW = Lines(
    "Select a tile or a type, and press W: who holds its objects?",
    "With nothing selected: what keeps most of the heap alive?",
)


class HolderPart(InquiryPart):
    """The panel of a window.

    Args:
        desk: The window's desk.
        chosen_type: The type of the selected row in the table with the keyboard focus; empty: there
            is none.

    Attributes:
        asking: The question and the answer.
        panel: The panel.
    """

    def __init__(self, desk: Desk, chosen_type: Callable[[], str]) -> None:
        self.asking = HeapInquiry(desk.link.send, monotonic)
        super().__init__(desk, self.asking)
        self._chosen_type = chosen_type
        self.panel = HolderPanel(desk.theme)
        about = "who holds the selected objects: a tree of holders"
        bottom = Qt.DockWidgetArea.BottomDockWidgetArea
        desk.docks.add(
            "holders", "Who holds it", self.panel, bottom, keys=("Shift+W",), about=about
        )
        self.panel.opened.connect(self._opened)
        self.panel.closed.connect(self._age.stop)
        self.panel.asked.connect(self.ask_again)
        self.panel.chosen.connect(self.show_tile)

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self.panel.set_theme(theme)

    def _opened(self) -> None:
        if not self._stopped:
            self._age.start()
            self.refresh()

    # ------------------------------------------------------------------------------- asking

    def ask(self) -> None:
        """Open the panel and ask about what is selected; an earlier answer is shown."""
        found = self._subject()
        self._show()
        if isinstance(found, str):
            self._desk.say(found)
        elif not self.asking.turn_to(found):
            self._send(found)
        self.refresh()

    def ask_type(self, type_name: str) -> None:
        """Open the panel and ask who holds the objects of a type."""
        subject = HeapSubject(HOLDERS, f"Who holds {type_name}", type_name=type_name)
        self._show()
        if not self.asking.turn_to(subject):
            self._send(subject)
        self.refresh()

    def _show(self) -> None:
        """Open the panel, and high enough for a few rows."""
        self._desk.docks.show("holders")
        if self.panel.height() < _HEIGHT:
            self._desk.docks.give_height("holders", _HEIGHT)

    def ask_again(self) -> None:
        """Ask again about the same; at first about the selection."""
        subject = self.asking.subject
        if subject is None:
            self.ask()
        else:
            self._send(subject)
            self.refresh()

    def _send(self, subject: HeapSubject) -> None:
        self.asking.ask(subject, held=self.panel.held.isChecked())

    def _subject(self) -> HeapSubject | str:
        """The selection; or the reason why it cannot be queried."""
        type_name = self._chosen_type()
        session = self._desk.session
        space = session.active_space()
        tile = None if space is None else session.selected(space.space.id)
        if not type_name and (space is None or tile is None):
            return _NOTHING
        if not type_name and space is not None and tile is not None:
            types = growing_space(session.interpreter)
            if types is None or types.space.id != space.space.id:
                return self._tile_subject(space, tile)
            type_name = space.names.name(tile)
        return HeapSubject(HOLDERS, f"Who holds {type_name}", type_name=type_name)

    @staticmethod
    def _tile_subject(space: SpaceState, tile: int) -> HeapSubject | str:
        title = tile_title(space, tile)
        if space.names.extent(tile) is None:
            return f"{title} of {space.space.name} has no addresses: select a tile of another space, a type, or nothing (Esc)"
        key = space.names.key(tile)
        return HeapSubject(HOLDERS, f"Who holds what is in {title}", space.space.id, key)

    # ------------------------------------------------------------------------------ telling

    def refresh(self) -> None:
        """Update all visible texts."""
        if self._stopped or not self.panel.isVisible():
            return
        asking, told = self.asking, self.asking.told
        connected = self._desk.link.status.phase.connected
        title = "Who holds it" if asking.subject is None else asking.subject.title
        again = "Ask" if told is None else "Ask again"
        self.panel.offer(ask=again, can_ask=connected and not asking.waits)
        when = self._progress() if asking.waits else ""
        if told is None:
            self.panel.head(title, "")
            self.panel.say(when or (as_sentence(asking.failure) if asking.failure else _HOW))
            return
        age = asking.age_secs
        when = when or ("" if age is None else age_words(age))
        failure = f"Asked again, but: {asking.failure}" if asking.failure else ""
        self.panel.head(title, when, note=failure or told.table.note, failed=bool(failure))
        if told.table.rows:
            self._mark()
            self.panel.tell(told.table)
        else:
            self.panel.say(told.table.note or "Nothing holds it.")

    # ------------------------------------------------------------------------ tiles and rows

    def _selected_extent(self) -> tuple[int, int] | None:
        """First address and end of the selected tile; None: there is none, or it has no addresses."""
        session = self._desk.session
        space = session.active_space()
        tile = None if space is None else session.selected(space.space.id)
        extent = None if space is None or tile is None else space.names.extent(tile)
        return None if extent is None else (extent[0], extent[0] + extent[1])

    def _mark(self) -> None:
        """Emphasise the rows whose holder is in the selected tile."""
        extent = self._selected_extent()
        self.panel.tree.mark(
            lambda node: (
                extent is not None
                and node.address is not None
                and extent[0] <= node.address < extent[1]
            )
        )

    def show_tile(self, node: HolderNode) -> None:
        """Select the tile in which the holder of a row is."""
        if node.address is None:
            self._desk.say("This row stands for several holders: choose one below it")
            return
        session = self._desk.session
        active = session.active_space()
        spaces = sorted(
            session.interpreter.spaces.values(),
            key=lambda one: (one is not active, not one.space.main, one.space.id),
        )
        for space in spaces:
            tile = tile_at(space, node.address)
            if tile is not None:
                self._desk.selection.activate(space.space.id)
                self._desk.selection.select(space.space.id, tile)
                panel = self._desk.spaces.panels.get(space.space.id)
                if panel is not None:
                    self._desk.spaces.reveal(panel)
                self.refresh()
                return
        self._desk.say(f"No space shows the address {node.address:#x}")

    def show_row(self) -> None:
        """Select the row whose holder is in the selected tile."""
        extent = self._selected_extent()
        node = None
        if extent is not None:
            begin, end = extent
            node = self.panel.tree.first_row(
                lambda one: one.address is not None and begin <= one.address < end
            )
        if node is None:
            self._desk.say("No holder of this answer is in the selected tile")
            return
        self._desk.docks.show("holders")
        self.panel.tree.choose(node)
        self.panel.tree.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def actions(self) -> tuple[Action, ...]:
        """The actions of holders."""
        menu = "&View/&Who holds it"

        def has_rows() -> bool:
            return bool(self.panel.tree.top) and not self.panel.said

        return (
            Action(
                name="holders.ask",
                menu=menu,
                text="Who &holds the selection",
                about="ask who holds the objects of the selected tile or type; nothing selected: what keeps most alive",
                run=self.ask,
                keys=("W",),
                enabled=lambda: self._desk.link.status.phase.connected,
                why_not="there is no connection",
            ),
            Action(
                name="holders.again",
                menu=menu,
                text="Ask &again",
                about="ask who holds the same objects again",
                run=self.ask_again,
                keys=("Ctrl+W",),
                enabled=lambda: (
                    self._desk.link.status.phase.connected and self.asking.subject is not None
                ),
                why_not="nothing was asked yet: press W",
            ),
            Action(
                name="holders.tile",
                menu=menu,
                text="&Tile of the holder",
                about="select the tile in which the chosen holder is",
                run=self.panel.to_tile.click,
                enabled=lambda: has_rows() and self.panel.tree.current() is not None,
                why_not="no holder is chosen: ask who holds the selection (W)",
            ),
            Action(
                name="holders.row",
                menu=menu,
                text="Holder in the &selected tile",
                about="go to the holder that is in the selected tile",
                run=self.show_row,
                keys=("Ctrl+Shift+W",),
                enabled=has_rows,
                why_not="there is no answer yet: ask who holds the selection (W)",
            ),
        )
