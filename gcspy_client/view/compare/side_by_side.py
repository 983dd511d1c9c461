"""Comparing session with session in the window: another one beside it, on one timeline, and the difference of the two.

The window's session is A and leads: for each of its displayed events the other one, B, shows the
matching event. Spaces are paired by name, tiles by address or by place; unpaired ones are listed.

Knows which part does what; does not know how either session is got at.
"""

from __future__ import annotations

from copy import copy

from gcspy_protocol.interpreter import SpaceState
from PySide6.QtCore import QObject, Signal

from gcspy_client.model.compare.comparison import Comparison, TilePairing
from gcspy_client.model.compare.pairs import (
    ComparedSession,
    EventMatching,
    Pair,
    counterpart,
    pair_spaces,
    pair_streams,
    same_process,
)
from gcspy_client.model.palette import Theme
from gcspy_client.model.playback.program_clock import ProgramClock
from gcspy_client.model.session import event_words
from gcspy_client.model.tile_source import StreamSource, TileSource
from gcspy_client.view.compare.difference_painter import DifferencePainter
from gcspy_client.view.compare.other_session import Other
from gcspy_client.view.desk import Desk
from gcspy_client.view.spaces.sides import OtherPane

__all__ = ["SideBySide"]


class SideBySide(QObject):
    """Another session beside the window's.

    Attributes:
        other: The other session.
        pane: Its side.
        differencing: Paints the differences, at its side.
        pairs: Which space belongs to which, by their ids; left is the window's.
        requested: Number of the event that matches the displayed one; None: there is none.

    Signals:
        changed: Other spaces and streams are compared, or cannot be compared.
        compared: A new comparison was computed.
        failed: The other session is not available; the reason as text.

    Args:
        desk: Of the window, whose session is A.
        other: B.
    """

    changed = Signal()
    compared = Signal()
    failed = Signal(str)

    def __init__(self, desk: Desk, other: Other) -> None:
        super().__init__(desk.frame)
        self._desk, self.other = desk, other
        self.pane = OtherPane(other.session, desk.theme)
        self.painter = DifferencePainter(other.session, self.pane.spaces, self)
        self.pairs: list[Pair] = []
        self.requested: int | None = None
        self.by_place = False
        self._at: tuple[object, ...] = ()
        self._ready = False
        bar = desk.sides.bar
        desk.sides.show_other(self.pane)
        bar.aligned.connect(self._realigned)
        bar.paired.connect(self._repaired)
        bar.difference_wanted.connect(self._difference)
        other.ready.connect(self._begin)
        other.moved.connect(self._moved)
        other.grown.connect(self._grown)
        other.failed.connect(self._failed)
        desk.spaces.picked.connect(self._picked_left)
        self.pane.spaces.picked.connect(self._picked_right)
        self.pane.spaces.activated.connect(self._activated)
        self.painter.compared.connect(self._compared)
        self._say()

    # ---------------------------------------------------------------------- content

    @property
    def comparison(self) -> Comparison | None:
        """The latest result."""
        return self.painter.comparison

    def _left_side(self) -> ComparedSession:
        session = self._desk.session
        welcome = session.live.welcome
        return ComparedSession(
            session.timeline,
            () if welcome is None else welcome.events,
            0 if welcome is None else welcome.wall_offset_nanos,
            ProgramClock.of(session.interpreter.last_event),
        )

    def _begin(self) -> None:
        """The other session is known: tiles of one process are paired by their addresses, those of two by place."""
        self._ready = True
        mine, theirs = self._desk.session.live.welcome, self.other.session.interpreter.welcome
        self.by_place = not same_process(mine, theirs)
        self._desk.sides.bar.choose_pairing(by_place=self.by_place)
        self.pane.spaces.sync()
        self._moved()
        self.refresh()
        if self._desk.sides.bar.difference.isChecked():
            self._difference(True)

    def _failed(self, why: str) -> None:
        if not self._ready:
            self.pane.say(why)
        self.failed.emit(why)

    # --------------------------------------------------------------------------- following

    def refresh(self) -> None:
        """Follow the window: another event may be displayed, spaces may have been added, another stream may be chosen."""
        if not self._ready:
            return
        session = self._desk.session
        event = session.interpreter.last_event
        at = (session.number, 0 if event is None else event.sequence)
        self.pairs = pair_spaces(
            [state.space for state in session.interpreter.spaces.values()],
            [state.space for state in self.other.session.interpreter.spaces.values()],
        )
        moved = at != self._at
        self._at = at
        self._align(moved=moved)
        self._follow_active()
        self._follow_streams()
        self._say()

    def _align(self, *, moved: bool) -> None:
        session = self._desk.session
        self.requested = counterpart(
            self._left_side(), self.other.side, session.number, self._desk.sides.bar.alignment
        )
        if self.requested is None:
            return
        if self.requested != self.other.requested:
            self.other.show(self.requested)
        elif moved and self.other.shows_what_was_requested:
            self.painter.ask()

    def _grown(self) -> None:
        """There are more events of B: one of them may belong to the one that is shown."""
        before = self.requested
        self._align(moved=False)
        if self.requested != before:
            self._say()

    def _realigned(self, _alignment: object) -> None:
        self._align(moved=True)
        self._say()

    def _repaired(self, by_place: bool) -> None:
        self.by_place = by_place
        self.painter.ask()

    def _moved(self) -> None:
        """B shows another event."""
        spaces = self.pane.spaces
        spaces.sync()
        for panel in spaces.panels.values():
            panel.hide_toolbar()  # the view of spaces is chosen at A's side
        spaces.refresh()
        spaces.mark_active()
        self.painter.ask()
        self._say()

    def _follow_active(self) -> None:
        """Have the same space large, and the same ones open, as A's side."""
        active = self._desk.session.active_space()
        left = None if active is None else active.space.id
        right = next((pair.right for pair in self.pairs if pair.left == left), None)
        if right is not None:
            self.other.session.activate(right)
        self.pane.spaces.use_opened(self._desk.spaces.opened)
        self.pane.spaces.mark_active()

    def _follow_streams(self) -> None:
        """Show the same streams, in the same views, as A's side."""
        mine, theirs = self._desk.session, self.other.session
        for pair in self.pairs:
            if pair.left is None or pair.right is None or pair.right not in self.pane.spaces.panels:
                continue
            left, right = mine.interpreter.spaces[pair.left], theirs.interpreter.spaces[pair.right]
            chosen = mine.chosen_stream(pair.left)
            stream = next(
                (one.right for one in pair_streams(left.space, right.space) if one.left == chosen),
                None,
            )
            if stream is not None and stream != theirs.chosen_stream(pair.right):
                theirs.choose_stream(pair.right, stream)
                self.pane.spaces.show_stream(pair.right)
                self.pane.spaces.refresh()
            look = mine.looks.of(pair.left)
            if look.order is None and look.view != theirs.looks.of(pair.right).view:
                theirs.looks.by_space[pair.right] = look
                self.pane.spaces.show_look(pair.right)

    # ------------------------------------------------------------------------- difference

    def _difference(self, wanted: bool) -> None:
        if wanted and self._ready:
            self.painter.begin(self)
        elif not wanted:
            self.painter.end()
            self.pane.legend.hide()
        self.changed.emit()

    def state_of(
        self, space: SpaceState, source: TileSource
    ) -> tuple[SpaceState, TileSource] | str:
        """A's space for one of B's, and the same stream."""
        number = next((pair.left for pair in self.pairs if pair.right == space.space.id), None)
        left = None if number is None else self._desk.session.interpreter.spaces.get(number)
        if left is None:
            return f"A has no space like {space.space.name!r}."
        streams = pair_streams(left.space, space.space)
        stream = next((one.left for one in streams if one.right == source.schema.id), None)
        if stream is None:
            return f"A has no stream {source.schema.name!r} in {left.space.name!r}, or it has another meaning."
        return left.copy(), copy(StreamSource(left.streams[stream].schema))

    def pairing(self) -> TilePairing:
        """How tiles are paired, and which spaces are alone."""
        return TilePairing(self.by_place, *self.alone())

    def alone(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the spaces that only one side has: A's, and B's."""
        mine, theirs = (
            self._desk.session.interpreter.spaces,
            self.other.session.interpreter.spaces,
        )
        left = tuple(
            mine[one.left].space.name
            for one in self.pairs
            if one.left in mine and one.right is None
        )
        right = tuple(
            theirs[one.right].space.name
            for one in self.pairs
            if one.right in theirs and one.left is None
        )
        return left, right

    def _compared(self) -> None:
        found = self.comparison
        active = self.other.session.active_space()
        source = None if found is None or active is None else found.spaces.get(active.space.id)
        if source is not None:
            self.pane.legend.show_difference(source.source, self._desk.theme)
        self.pane.legend.setVisible(source is not None)
        self.pane.spaces.refresh()
        self.compared.emit()

    # -------------------------------------------------------------------------- selecting

    def _picked_left(self, space: int, tile: int) -> None:
        number = next((pair.right for pair in self.pairs if pair.left == space), None)
        there = None if number is None else self.other.session.interpreter.spaces.get(number)
        if number is None or there is None or number not in self.pane.spaces.panels:
            return
        names = self._desk.session.interpreter.spaces[space].names
        found = (
            (tile if tile < there.count else None)
            if self.by_place
            else there.names.index_of(names.key(tile))
        )
        self.other.session.select(number, found)
        self.pane.spaces.select(number)

    def _picked_right(self, space: int, tile: int) -> None:
        self.other.session.select(space, tile)
        self.pane.spaces.select(space)
        number = next((pair.left for pair in self.pairs if pair.right == space), None)
        here = None if number is None else self._desk.session.interpreter.spaces.get(number)
        if number is None or here is None or number not in self._desk.spaces.panels:
            return
        names = self.other.session.interpreter.spaces[space].names
        found = (
            (tile if tile < here.count else None)
            if self.by_place
            else here.names.index_of(names.key(tile))
        )
        if found is not None:
            self._desk.selection.select(number, found)

    def _activated(self, space: int) -> None:
        self.other.session.activate(space)
        left = next((pair.left for pair in self.pairs if pair.right == space), None)
        if left is not None:
            self._desk.selection.activate(left)
        self.pane.spaces.mark_active()
        self._compared()

    def select(self, space: int, key: int) -> None:
        """Select a tile of B by its key, and the one that belongs to it."""
        self.other.session.activate(space)
        state = self.other.session.interpreter.spaces.get(space)
        tile = None if state is None else state.names.index_of(key)
        if tile is not None and space in self.pane.spaces.panels:
            self._picked_right(space, tile)

    # ------------------------------------------------------------------------------ words

    def _say(self) -> None:
        session, other = self._desk.session, self.other.session
        server = session.live.welcome.server if session.live.welcome is not None else "this session"
        self._desk.sides.head.say(server, event_words(session.interpreter, session.number))
        self.pane.head.say(
            self.other.title, event_words(other.interpreter, other.number) if self._ready else ""
        )
        if not self._ready:
            self.changed.emit()
            return
        if self.requested is None:
            bar = self._desk.sides.bar
            matching = bar.by.currentText()
            clocks = (self._left_side().clock, self.other.clock)
            if bar.alignment.by is EventMatching.PROGRAM and (
                len({one.name for one in clocks if one}) != 1 or not all(clocks)
            ):
                self.pane.say(
                    "The two sessions do not report the same program clock. Choose another matching."
                )
                self.changed.emit()
                return
            last = other.timeline.last
            self.pane.say(
                f"B has no event that matches event {session.number:,} of A by {matching}: "
                f"it has events {other.timeline.first:,} to {last:,}. Choose another matching, or another offset."
            )
        else:
            self.pane.say("")
        self.changed.emit()

    def note(self) -> str:
        """The parts that could not be paired; empty where all were."""
        left, right = self.alone()
        parts = [f"only in A: {', '.join(left)}"] if left else []
        parts += [f"only in B: {', '.join(right)}"] if right else []
        return f"Not compared – {'; '.join(parts)}." if parts else ""

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self.pane.spaces.set_theme(theme)
        self._compared()

    def settle(self) -> bool:
        """Show everything now that would be shown a moment later; whether that could be done."""
        self.refresh()
        if not self.other.settle():
            return False
        self.refresh()
        return not self.painter.on or self.painter.settle()

    def end(self) -> None:
        """Leave the other session."""
        for signal, slot in (
            (self._desk.sides.bar.aligned, self._realigned),
            (self._desk.sides.bar.paired, self._repaired),
            (self._desk.sides.bar.difference_wanted, self._difference),
            (self._desk.spaces.picked, self._picked_left),
        ):
            signal.disconnect(slot)
        self.painter.stop()
        self.other.stop()
        self.pane.spaces.stop()
        self._desk.sides.show_other(None)
