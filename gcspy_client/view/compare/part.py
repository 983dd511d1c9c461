"""Comparing in the window: a stored event A with the displayed one, or this session with another beside it.

Knows which part of the window does what; does not know how differences are worked out or painted.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gcspy_protocol.address import Address
from gcspy_protocol.interpreter import ClientInterpreter, SpaceState
from gcspy_protocol.streams.named_stream import same_meaning
from PySide6.QtCore import Qt

from gcspy_client.model.compare.comparison import TilePairing
from gcspy_client.model.compare.difference_source import DifferenceSource
from gcspy_client.model.compare.pairs import EventMatching
from gcspy_client.model.palette import Theme
from gcspy_client.model.session import ClientSession, event_words
from gcspy_client.model.text import duration
from gcspy_client.model.tile_source import TileSource
from gcspy_client.view.actions import Action
from gcspy_client.view.compare.difference_painter import DifferencePainter
from gcspy_client.view.compare.other_session import Other, OtherLive, OtherRecording
from gcspy_client.view.compare.panel import CompareFacts, ComparePanel
from gcspy_client.view.compare.side_by_side import SideBySide
from gcspy_client.view.desk import Desk
from gcspy_client.view.panels.details import Details
from gcspy_client.view.part import Part
from gcspy_client.view.plain.dialogs import ask_files
from gcspy_client.view.plain.text import set_window_title
from gcspy_client.view.start.connect_dialog import ConnectDialog
from gcspy_client.view.time.timeline import TimelineFlag

__all__ = ["ComparePart", "ReferenceEvent"]

_MENU = "&Compare"


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceEvent:
    """An event that was set aside, with all that was known then.

    Attributes:
        state: A copy, which never changes.
        number: Of the event.
        identity: Of the session that it is of.
    """

    state: ClientInterpreter
    number: int
    identity: str

    @property
    def words(self) -> str:
        """Its name."""
        return event_words(self.state, self.number)

    def state_of(
        self, space: SpaceState, source: TileSource
    ) -> tuple[SpaceState, TileSource] | str:
        """The space at A, and the same stream."""
        then = self.state.spaces.get(space.space.id)
        if then is None or then.space.name != space.space.name:
            return f"There was no space {space.space.name!r} at A: set another event as A."
        stream = source.schema.id
        if stream >= 0 and (
            stream not in then.streams
            or not same_meaning(then.streams[stream].schema, source.schema)
        ):
            return f"There was no stream {source.schema.name!r} at A, or it had another meaning."
        return then, copy(source)

    def pairing(self) -> TilePairing:
        """Tiles are those of the same key; a space that was removed is reported."""
        return TilePairing()


class ComparePart(Part):
    """Comparing in a window.

    Attributes:
        moment: The event that is A; None: no event is.
        differencing: Paints the differences to it.
        beside: Another session beside this one; None: there is none.
        panel: Says what changed.
    """

    def __init__(self, desk: Desk, details: Details) -> None:
        super().__init__(desk)
        self._details = details
        self.moment: ReferenceEvent | None = None
        self._given_up: ReferenceEvent | None = None  # one: it holds a whole heap
        self.beside: SideBySide | None = None
        self.painter = DifferencePainter(desk.session, desk.spaces, self)
        self.panel = ComparePanel(desk.theme)
        desk.docks.add(
            "compare",
            "Comparison",
            self.panel,
            Qt.DockWidgetArea.BottomDockWidgetArea,
            keys=("Shift+A",),
            about="comparison: largest changes between two events",
        )
        desk.navigator.more_flags.append(self.flags)
        self.painter.compared.connect(self._compared)
        self.panel.set_asked.connect(self.set_a)
        self.panel.go_asked.connect(self.go_to_a)
        self.panel.swap_asked.connect(self.swap)
        self.panel.leave_asked.connect(self.give_up)
        self.panel.tile_asked.connect(self._select)
        self.panel.space_asked.connect(self._activate)
        desk.sides.bar.closed.connect(self.leave)

    @property
    def on(self) -> bool:
        """Whether an event is compared, or another session is beside this one."""
        return self.painter.on or self.beside is not None

    @property
    def _session(self) -> ClientSession:
        return self._desk.session

    # ------------------------------------------------------------------- actions of users

    @property
    def can_set(self) -> bool:
        """Whether there is an event to set as A."""
        there = (
            self._session.interpreter.last_event is not None
            and self._session.live.welcome is not None
        )
        return there and self.beside is None

    def set_a(self) -> None:
        """Set the displayed event as A: later ones are compared with it."""
        welcome = self._session.live.welcome
        if not self.can_set or welcome is None:
            return
        self._given_up = None
        self.moment = ReferenceEvent(
            self._session.interpreter.copy(), self._session.number, welcome.session
        )
        self.painter.begin(self.moment)
        self._desk.docks.show("compare")
        self._desk.navigator.refresh()
        self._say()

    def go_to_a(self) -> None:
        """Show A."""
        if self.moment is not None and self.may_go:
            self._desk.navigator.go_to(self.moment.number)

    @property
    def may_go(self) -> bool:
        """Whether A can be gone to."""
        return (
            self.moment is not None
            and self.moment.number > 0
            and self.moment.number in self._session.timeline
        )

    def swap(self) -> None:
        """Show A, and compare it with the previously displayed event."""
        moment = self.moment
        if moment is None or not self.may_go:
            return
        self.set_a()
        self._desk.navigator.go_to(moment.number)

    def leave(self) -> None:
        """Compare no longer; another session is closed."""
        self.moment = None
        self.painter.end()
        if self.beside is not None:
            beside, self.beside = self.beside, None
            beside.end()
            beside.deleteLater()
        self._details.show_difference(None, self._desk.theme)
        self._desk.navigator.refresh()
        self._say()

    def give_up(self) -> None:
        """Leave, as the user wants; an event that was set aside can be had again with Undo, as long as no other was."""
        if self.moment is not None:
            self._given_up = self.moment
            self._desk.undo.do("leave the comparison", self.leave, self._return)
        else:
            self.leave()

    def _return(self) -> None:
        moment, welcome = self._given_up, self._session.live.welcome
        if (
            moment is None
            or welcome is None
            or welcome.session != moment.identity
            or self.beside is not None
        ):
            return
        self.moment = moment
        self.painter.begin(moment)
        self._desk.navigator.refresh()
        self._say()

    def escape(self) -> None:
        """Show no difference any more; where none is shown, select no tile. Another session stays beside this one."""
        if self.painter.on:
            self.give_up()
        elif self.beside is not None and self.beside.painter.on:
            self._desk.sides.bar.difference.setChecked(False)
        else:
            self._desk.selection.deselect()

    # ------------------------------------------------------------------- another session

    def put_beside(self, other: Other, *, difference: bool = True) -> None:
        """Show another session beside this one.

        Args:
            other: It.
            difference: Whether the difference is shown at its side from the beginning.
        """
        self.leave()
        self._desk.sides.bar.difference.setChecked(difference)
        self.beside = SideBySide(self._desk, other)
        self.beside.changed.connect(self._say)
        self.beside.compared.connect(self._say)
        self._desk.docks.show("compare")
        self._say()

    def open_recording(self, *paths: Path) -> None:
        """Show a recording beside this session."""
        self.put_beside(OtherRecording(paths))

    def open_soon(self, *paths: Path) -> None:
        """Show a recording beside this session as soon as this one has an event."""
        self._soon(partial(self.open_recording, *paths))

    def join_soon(self, address: Address) -> None:
        """Show the other of two simulations that keep step beside this one, by the clock of their program, as soon as this one has an event."""
        self._soon(partial(self._join, address))

    def _soon(self, show: Callable[[], None]) -> None:
        if self.may_open:
            show()
        else:
            self._desk.updater.event_shown.connect(
                lambda _event: show(), Qt.ConnectionType.SingleShotConnection
            )

    def _join(self, address: Address) -> None:
        self.put_beside(OtherLive(address), difference=False)
        by = self._desk.sides.bar.by
        by.setCurrentIndex(list(EventMatching).index(EventMatching.PROGRAM))
        self._desk.docks["compare"].close()  # of a difference, which does not exist here

    def ask_recording(self) -> None:
        """Ask which recording to show beside this session."""
        paths = ask_files(
            self._desk.frame, "Compare with a recording", "Recordings (*.gcspy);;All files (*)"
        )
        if paths:
            self.open_recording(*(Path(path) for path in paths))

    def ask_session(self) -> None:
        """Ask which live session to show beside this one."""
        dialog = ConnectDialog("", self._desk.frame)
        set_window_title(dialog, "Compare with a session")
        dialog.control.hide()
        if dialog.exec() and dialog.address is not None:
            self.put_beside(OtherLive(dialog.address, token=dialog.token.text() or None))
        dialog.deleteLater()

    @property
    def may_open(self) -> bool:
        """Whether there is a session to compare another with."""
        return self._session.interpreter.last_event is not None

    def toggle_difference(self) -> None:
        """Show the difference to the other session at its side, or the other session itself."""
        self._desk.sides.bar.difference.toggle()

    def _select(self, space: int, key: int) -> None:
        if self.beside is not None:
            self.beside.select(space, key)
        else:
            self._desk.selection.select_key(space, key)

    def _activate(self, space: int) -> None:
        if self.beside is None:
            self._desk.selection.activate(space)

    # ------------------------------------------------------------------- how it stands

    def flags(self) -> tuple[TimelineFlag, ...]:
        """Return the timeline's mark of event A."""
        if self.moment is None or not self.moment.number:
            return ()
        return (TimelineFlag(number=self.moment.number, title="reference event A", letter="A"),)

    def refresh(self) -> None:
        """Update all texts; the other session is unchanged."""
        welcome = self._session.live.welcome
        if (
            self.moment is not None
            and welcome is not None
            and welcome.session != self.moment.identity
        ):
            self.leave()
        if self.beside is not None:
            self.beside.refresh()
        self._say()

    def _say(self) -> None:
        facts = CompareFacts(can_set=self.can_set)
        moment, shown = self.moment, self._session.interpreter
        if moment is not None:
            note = ""
            gone = [
                one.space.name
                for number, one in moment.state.spaces.items()
                if number not in shown.spaces
            ]
            if gone:
                note = f"Only at A, not compared: {', '.join(gone)}."
            facts = CompareFacts(
                left=moment.words,
                right=event_words(shown, self._session.number),
                apart=self._apart(moment),
                may_go=self.may_go and moment.number != self._session.number,
                can_set=self.can_set,
                note=note,
            )
        if self.beside is not None:
            facts = self._facts_beside(self.beside)
        self.panel.show_facts(facts)
        if self.beside is not None:
            self.panel.show_comparison(self.beside.comparison, self._active_id())
        elif moment is not None:
            self.panel.show_comparison(self.painter.comparison, self._active_id())
        self._say_legend()

    def _active_id(self) -> int | None:
        active = self._session.active_space()
        return None if active is None else active.space.id

    def _facts_beside(self, beside: SideBySide) -> CompareFacts:
        other = beside.other
        return CompareFacts(
            left=event_words(self._session.interpreter, self._session.number),
            right=f"{other.name}: {event_words(other.session.interpreter, other.session.number)}",
            note=beside.note(),
        )

    def _apart(self, moment: ReferenceEvent) -> str:
        then, now = moment.state.last_event, self._session.interpreter.last_event
        if then is None or now is None:
            return ""
        nanos = now.time_nanos - then.time_nanos
        return f"{'−' if nanos < 0 else '+'}{duration(abs(nanos))}"

    def _compared(self) -> None:
        self._say()

    def _say_legend(self) -> None:
        active = self._session.active_space()
        self._details.show_difference(
            None if active is None else self.source_of(active.space.id), self._desk.theme
        )

    def source_of(self, space: int) -> DifferenceSource | None:
        """The difference of a space of this session to A; None where it is not compared."""
        comparison = self.painter.comparison
        found = None if comparison is None else comparison.spaces.get(space)
        return None if found is None else found.source

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self.panel.set_theme(theme)
        if self.beside is not None:
            self.beside.set_theme(theme)
        self._say_legend()

    def settle(self) -> bool:
        """Show everything now that would be shown a moment later."""
        if self.beside is not None:
            return self.beside.settle()
        return not self.on or self.painter.settle()

    def stop(self) -> None:
        """Compare nothing any more; no thread and no timer is left."""
        self.painter.stop()
        if self.beside is not None:
            self.leave()

    def actions(self) -> tuple[Action, ...]:
        """The actions of comparing."""
        return (
            Action(
                name="compare.set",
                menu=_MENU,
                text="Set this event as &A",
                about="set the current event as A, and compare later events with it",
                run=self.set_a,
                keys=("A",),
                enabled=lambda: self.can_set,
            ),
            Action(
                name="compare.go",
                menu=_MENU,
                text="&Go to A",
                run=self.go_to_a,
                enabled=lambda: self.may_go,
            ),
            Action(
                name="compare.swap",
                menu=_MENU,
                text="&Swap A and B",
                run=self.swap,
                keys=("Ctrl+Shift+A",),
                enabled=lambda: self.may_go,
            ),
            Action(
                name="compare.leave",
                menu=_MENU,
                text="&Leave the comparison",
                about="leave the comparison, or else clear the selection",
                run=self.escape,
                keys=("Esc",),
            ),
            Action(
                name="compare.recording",
                menu=_MENU,
                text="With a &recording…",
                about="compare this session with a recording",
                run=self.ask_recording,
                enabled=lambda: self.may_open,
                begins_group=True,
            ),
            Action(
                name="compare.session",
                menu=_MENU,
                text="With a &live session…",
                about="compare this session with another live session",
                run=self.ask_session,
                enabled=lambda: self.may_open,
            ),
            Action(
                name="compare.difference",
                menu=_MENU,
                text="&Difference of the two sessions",
                run=self.toggle_difference,
                keys=("D",),
                enabled=lambda: self.beside is not None,
                checked=self._desk.sides.bar.difference.isChecked,
            ),
            Action(
                name="compare.close",
                menu=_MENU,
                text="&Close the other session",
                run=self.leave,
                enabled=lambda: self.beside is not None,
            ),
        )
