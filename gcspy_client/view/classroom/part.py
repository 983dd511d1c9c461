"""A class in a window: sends the place of this window while it leads, and shows the leader's place while it follows.

While it follows, changes by the user last until the leader's place changes; to keep them, the user can roam.

Connects the parts of the window; the server knows the participants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from gcspy_protocol.attendance import PERSON_CHARS, Focus, LessonPlace, person_name
from gcspy_protocol.interpreter import EventChange
from gcspy_protocol.messages import Attend, Clients, HandOver, Look, Looked, Message, NameSuccessor
from gcspy_protocol.playback import Seek
from PySide6.QtCore import Qt, QTimer, Signal

from gcspy_client.model.attendance import (
    ClassOptions,
    Moments,
    Participant,
    leader_of,
    login_name,
    place_of,
    roster,
)
from gcspy_client.model.palette import Theme
from gcspy_client.model.view_states import TABLE, TILES
from gcspy_client.view.actions import Action
from gcspy_client.view.classroom.join_line import JoinSheet
from gcspy_client.view.classroom.panel import ClassPanel
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part
from gcspy_client.view.plain.dialogs import ask_one_of, ask_text
from gcspy_client.view.spaces.views import known_renderers

__all__ = ["ClassPart"]

_MENU = "&Session/&Class"
_NAME = "class.name"
_LOOK_MILLIS = 50
"""The shortest time between two places that are sent: dragging a selection is one movement."""

_NOBODY_ELSE = "there are no other participants"
_NOT_OURS = "only the client in control may do that"


class ClassPart(Part):
    """The class of a window; made when all panels are there, of which it notices which is in front.

    Signals:
        lesson_led: The leader whom this window follows is at this `LessonPlace`; None: in no lesson, or nobody is followed.
        roster_changed: The participants, or their answers, changed.

    Attributes:
        panel: The participants.
        following: Whether this window follows the leader.
        addresses: The addresses for students.
        front: Name of the panel that came to the front last, while it can be seen; else empty.
        lesson_place: Returns where this window is in a lesson, for those who follow.
        heir: Name of the person who shall be the successor as soon as present; empty: none in
            particular.
    """

    lesson_led = Signal(object)
    roster_changed = Signal()

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.panel = ClassPanel(desk.theme)
        self.lesson_place: Callable[[], LessonPlace | None] = lambda: None
        self._answers: tuple[int | None, tuple[int, ...]] = None, ()
        self.following = False
        self.addresses: tuple[str, ...] = ()
        self.heir = ""
        self._moments = Moments()
        self._identity = ""
        self._told: Focus | None = None
        self._told_as = False
        self.front = ""
        self._obeying = self._stopped = False
        self._handed_by: int | None = None
        self._controller: int | None = None
        self._sheet: JoinSheet | None = None
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self._tell_place)
        side = Qt.DockWidgetArea.RightDockWidgetArea
        about = "class: participants, followers, delays"
        desk.docks.add("class", "Class", self.panel, side, keys=("Shift+L",), about=about)
        panel = self.panel
        panel.opened.connect(self.show_roster)
        panel.handed.connect(self.hand_over)
        panel.named.connect(lambda number: self.choose_successor(None if number < 0 else number))
        panel.follow_toggled.connect(self.toggle_following)
        panel.name_asked.connect(self.ask_name)
        panel.line_asked.connect(self.show_line)
        desk.link.person = self.name
        desk.updater.applied.connect(self._came)
        desk.updater.spoken.connect(self.look_soon)
        desk.navigator.moved.connect(self.look_soon)
        for name in desk.docks:
            if name != "class":
                desk.docks[name].seen.connect(partial(self._panel_seen, name))

    def stop(self) -> None:
        """Stop sending; no timer is left."""
        self._stopped = True
        self._soon.stop()
        if self._sheet is not None:
            self._sheet.close()

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self.panel.set_theme(theme)

    # ------------------------------------------------------------------------ own name

    def class_options(self, class_options: ClassOptions) -> None:
        """Set the initial options; before it connects."""
        if class_options.person:
            self.call(class_options.person, remember=False)
        self.heir, self.addresses = person_name(class_options.successor), class_options.addresses
        self.follow(class_options.following)

    @property
    def name(self) -> str:
        """The name that others see: the user's choice, else the login."""
        return person_name(self._desk.settings.text(_NAME)) or login_name()

    def call(self, name: str, *, remember: bool = True) -> None:
        """Be called otherwise.

        Args:
            name: The name; made fit, and the login's where nothing is left.
            remember: Whether other windows, too, have it from now on.
        """
        if remember:
            self._desk.settings.store(_NAME, person_name(name))
        self._desk.link.person = person_name(name) or self.name
        self._attend()

    def ask_name(self) -> None:
        """Ask the user for a name."""
        now = self._desk.link.person
        name = ask_text(
            self._desk.frame,
            "Your name",
            f"Name shown to others, up to {PERSON_CHARS} letters:",
            now,
        )
        if name is not None:
            self.call(name)

    def follow(self, wanted: bool) -> None:
        """Look where the leader looks from now on, or roam."""
        self.following = wanted
        self._attend()
        self.show_roster()
        if not wanted:
            self.lesson_led.emit(None)

    def toggle_following(self) -> None:
        """Follow, or roam."""
        self.follow(not self.following)

    def _attend(self) -> None:
        link = self._desk.link
        link.follows = self.following
        step, tries = self._answers
        link.send(Attend(person=link.person, following=self.following, step=step, tries=tries))

    def answer(self, step: int, tries: tuple[int, ...]) -> None:
        """Tell the leader which step this window is at, and the answers to its question."""
        if (step, tries) != self._answers:
            self._answers = step, tries
            self._attend()

    # ------------------------------------------------------------------------ participants

    @property
    def participants(self) -> list[Participant]:
        """The participants."""
        connected = self._desk.link.status.phase.connected
        return roster(self._desk.session.live) if connected else []

    @property
    def leads(self) -> bool:
        """Whether this window is whom the others follow."""
        live = self._desk.session.live
        return (
            live.welcome is not None
            and leader_of(live) == live.welcome.client_id
            and live.is_controller()
        )

    @property
    def may_hand(self) -> bool:
        """Whether this window has control that it may hand over."""
        return self._desk.link.status.phase.connected and self._desk.session.live.is_controller()

    @property
    def others(self) -> list[Participant]:
        """The other participants."""
        return [participant for participant in self.participants if not participant.ours]

    def hand_over(self, number: int) -> None:
        """Hand over control and the lead; a client that leads no longer follows."""
        self._desk.link.send(HandOver(client=number))
        if self.leads:
            self.follow(True)

    def choose_successor(self, number: int | None) -> None:
        """Name another successor, whatever was requested when the window was opened."""
        self.heir = ""
        self.name_successor(number)

    def name_successor(self, number: int | None) -> None:
        """Name the client that inherits control when this connection is lost; None: none."""
        self._desk.link.send(NameSuccessor(client=number))

    def hand_back(self) -> None:
        """Give control back to who had it before."""
        if self._handed_by is not None:
            self.hand_over(self._handed_by)

    @property
    def may_hand_back(self) -> bool:
        """Whether control came from a client that is still present."""
        return self.may_hand and any(
            participant.number == self._handed_by for participant in self.others
        )

    def ask_heir(self, title: str, question: str) -> int | None:
        """Ask for one of the others; the chosen row of the panel first."""
        others = self.others
        names = [participant.name for participant in others]
        chosen = next(
            (
                i
                for i, participant in enumerate(others)
                if participant.number == self.panel.chosen_number
            ),
            0,
        )
        number = ask_one_of(self._desk.frame, title, question, names, chosen)
        return None if number is None else others[number].number

    def ask_hand_over(self) -> None:
        """Ask to whom control goes."""
        number = self.ask_heir("Hand over control", "New controller and leader:")
        if number is not None:
            self.hand_over(number)

    def ask_successor(self) -> None:
        """Ask who inherits control."""
        number = self.ask_heir("Successor", "Successor if this connection is lost:")
        if number is not None:
            self.choose_successor(number)

    def show_roster(self) -> None:
        """Update the list of participants, if it is visible."""
        if self.panel.isVisible():
            self.panel.tell(
                self.participants,
                following=self.following,
                may_hand=self.may_hand,
            )

    def show_line(self) -> JoinSheet:
        """Show the line to join with."""
        if self._sheet is not None:
            self._sheet.close()
            self._sheet.deleteLater()
        self._sheet = JoinSheet(self.addresses, self._desk.frame)
        self._sheet.show()
        return self._sheet

    # ------------------------------------------------------------------------ messages

    def _came(self, change: EventChange) -> None:
        self._moments.add(change.event)

    def take(self, messages: list[Message]) -> None:
        """Follow messages that the session has taken already."""
        live = self._desk.session.live
        identity = "" if live.welcome is None else live.welcome.session
        if identity != self._identity:
            self._identity = identity
            self._moments.clear()
            self._told, self._handed_by, self._controller = None, None, None
        looked: Looked | None = None
        for message in messages:
            if isinstance(message, Clients):
                self._roles(message)
            elif isinstance(message, Looked):
                looked = message
        if looked is not None and self.following and not self.leads:
            self.obey(looked.at)
            self.lesson_led.emit(looked.at.lesson)
        if any(isinstance(message, Clients) for message in messages):
            self.show_roster()
            self.look_soon()
            if self.leads:  # the leader has gone, and this window is the successor
                self.lesson_led.emit(None)
            self.roster_changed.emit()

    @property
    def teaches(self) -> bool:
        """Whether this window leads and somebody follows it."""
        return self.leads and any(participant.following for participant in self.others)

    def _roles(self, clients: Clients) -> None:
        """Note from whom control came."""
        live = self._desk.session.live
        ours = None if live.welcome is None else live.welcome.client_id
        if clients.controller == ours and self._controller not in (None, ours):
            self._handed_by = self._controller
        self._controller = clients.controller
        self._desk.link.beat(quickly=clients.controller == ours and clients.successor is not None)
        if self.heir and self.may_hand:
            heirs = [
                participant
                for participant in self.others
                if participant.name.casefold() == self.heir.casefold()
            ]
            if len(heirs) == 1 and not heirs[0].succeeds:
                self.name_successor(heirs[0].number)

    # ------------------------------------------------------------------------ own view

    def _panel_seen(self, name: str, seen: bool) -> None:
        if seen:
            self.front = name
        elif self.front == name:
            self.front = ""
        self.look_soon()

    def look_soon(self) -> None:
        """Send the place of this window, soon, if it leads."""
        self.refresh_role()
        if not self._soon.isActive() and self._matters():
            self._soon.start(_LOOK_MILLIS if self._told is not None else 0)

    def refresh_role(self) -> None:
        """A window that has lost the lead has to send its place again when it leads again."""
        if self._told_as != self.leads:
            self._told_as = self.leads
            self._told = None

    def _matters(self) -> bool:
        live = self._desk.session.live
        return (
            not self._stopped and self.leads and not self._obeying and len(live.clients.clients) > 1
        )

    def _tell_place(self) -> None:
        if not self._matters():
            return
        at = replace(place_of(self._desk.session, self.front), lesson=self.lesson_place())
        if at != self._told:
            self._told = at
            self._desk.link.send(Look(at=at))

    def obey(self, at: Focus) -> None:
        """Look there, as far as it is here."""
        self._obeying = True
        try:
            self._go_to(at)
            self._look_at(at)
            if (
                at.panel
                and at.panel in self._desk.docks
                and not self._desk.docks[at.panel].in_sight
            ):
                self._desk.docks.show(at.panel)
        finally:
            self._obeying = False

    def _go_to(self, at: Focus) -> None:
        """Go to the leader's event; a playback is there already."""
        desk = self._desk
        if desk.session.is_playback:
            return
        if at.sequence is None:
            if desk.navigator.looks_back:
                desk.navigator.last()
            return
        time_nanos = self._moments.time_of(at.sequence)
        if time_nanos is None:
            desk.say(
                f"The leader is at event {at.sequence:,}, which is older than this connection."
            )
        elif desk.navigator.usable:
            desk.navigator.playing.seek(Seek(time_nanos=time_nanos))

    def _look_at(self, at: Focus) -> None:
        desk, session = self._desk, self._desk.session
        space = None if at.space is None else session.interpreter.spaces.get(at.space)
        if space is None or space.space.id not in desk.spaces.panels:
            return
        number = space.space.id
        session.activate(number)
        if at.stream in space.streams and session.chosen_stream(number) != at.stream:
            session.choose_stream(number, at.stream)
            desk.spaces.show_stream(number)
        look = session.looks.of(number)
        if (
            at.view
            and at.view != look.view
            and (at.view in (TILES, TABLE) or at.view in known_renderers())
        ):
            session.looks.by_space[number] = replace(look, view=at.view)
            desk.spaces.show_look(number)
        if at.key is None:
            session.select(number, None)
        else:
            session.select_key(number, at.key)
        desk.spaces.select(number)
        desk.spaces.reveal(desk.spaces.panels[number])
        desk.updater.refresh()

    def actions(self) -> tuple[Action, ...]:
        """The actions of a class."""
        return (
            Action(
                name="class.follow",
                menu=_MENU,
                text="&Follow the leader",
                about="follow the leader's view, or move freely",
                run=self.toggle_following,
                keys=("Shift+F",),
                checked=lambda: self.following,
            ),
            Action(
                name="class.hand-over",
                menu=_MENU,
                text="&Hand over control…",
                run=self.ask_hand_over,
                keys=("Ctrl+Shift+H",),
                enabled=lambda: self.may_hand and bool(self.others),
                why_not=f"{_NOT_OURS}, and {_NOBODY_ELSE}",
                begins_group=True,
            ),
            Action(
                name="class.hand-back",
                menu=_MENU,
                text="Hand control &back",
                about="hand control back to the previous controller",
                run=self.hand_back,
                keys=("Ctrl+Shift+B",),
                enabled=lambda: self.may_hand_back,
                why_not="no participant handed control over",
            ),
            Action(
                name="class.successor",
                menu=_MENU,
                text="Name a &successor…",
                about="choose who receives control if this connection is lost",
                run=self.ask_successor,
                enabled=lambda: self.may_hand and bool(self.others),
                why_not=f"{_NOT_OURS}, and {_NOBODY_ELSE}",
            ),
            Action(
                name="class.name",
                menu=_MENU,
                text="Your &name…",
                run=self.ask_name,
                begins_group=True,
            ),
            Action(
                name="class.line",
                menu=_MENU,
                text="&Join line…",
                about="show the join line in large type, to be copied",
                run=self.show_line,
                keys=("Ctrl+Shift+J",),
            ),
        )
