"""Finding single objects and following one: connects the panel "Objects" with the rest of the window.

While an object is followed, the tile in which it lies is selected at each event, in whichever space that is. The server determines which
questions it can answer: a player of an object trace answers, a recording alone does not.

Knows the parts of the window that it connects; the model knows where an object is at an event.
"""

from __future__ import annotations

from gcspy_protocol.details import Answer, AnswerState, Query
from gcspy_protocol.interpreter import SpaceState
from gcspy_protocol.messages import Message
from gcspy_protocol.model import Naming
from gcspy_protocol.text.visible import Lines
from PySide6.QtCore import Qt

from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.one_object import FollowedObject, address_of, tile_at
from gcspy_client.model.panels.tile_questions import SOUGHT, QuestionSubject, TileQuestions
from gcspy_client.model.session import tile_title
from gcspy_client.view.actions import Action
from gcspy_client.view.desk import Desk
from gcspy_client.view.panels.objects import FOUND, LIFE, NEIGHBOURS, ObjectsPanel
from gcspy_client.view.part import Part

__all__ = ["ObjectTracker"]

_OBJECTS, _LIFE, _NEIGHBOURS = SOUGHT
_FIRST_FOUND, _FIRST_NEAR, _FIRST_LIFE = 1 << 24, 2 << 24, 3 << 24
"""Each kind of question has numbers of its own: the answers come over one connection."""

_NONE_HERE = Lines(
    "This session has no data on single objects.", "Open an object trace: gcspy replay TRACE."
)
_FOLLOW_FIRST = Lines("No object is followed.", "Find objects, then press Enter on one.")


class ObjectTracker(Part):
    """The panel of a window, and the object that it follows.

    Attributes:
        panel: The panel.
        followed: The object; None: none is followed.
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.panel = ObjectsPanel(desk.theme)
        self.followed: FollowedObject | None = None
        self._found = TileQuestions(desk.link.send, first=_FIRST_FOUND)
        self._near = TileQuestions(desk.link.send, first=_FIRST_NEAR)
        self._life_number = _FIRST_LIFE
        self._awaits_life = False
        self._view = FOUND
        self._text: str | None = None
        self._marked: tuple[int, int] | None = None
        self._stopped = False
        bottom = Qt.DockWidgetArea.BottomDockWidgetArea
        about = "objects of an object trace: find them, follow one from birth to death"
        desk.docks.add("objects", "Objects", self.panel, bottom, keys=("Shift+O",), about=about)
        self.panel.sought.connect(self._seek)
        self.panel.turned.connect(self.turn)
        self.panel.chosen.connect(self._choose)
        self.panel.opened.connect(self.refresh)
        desk.link.welcomed.connect(self._begin)
        desk.link.received.connect(self._take)
        desk.updater.spoken.connect(self._mark)  # then the event's number has come, too

    def stop(self) -> None:
        """Ask nothing any more."""
        self._stopped = True

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self.panel.set_theme(theme)

    def _begin(self) -> None:
        self._found.forget()
        self._near.forget()
        self._awaits_life = False
        self.release()

    # -------------------------------------------------------------------------- actions of users

    def open(self) -> None:
        """Open the panel and write what is sought."""
        self._desk.docks.show("objects")
        self.turn(FOUND)
        self.panel.text.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.panel.text.selectAll()

    def turn(self, view: int) -> None:
        """Show what was found, the life of the followed object, or its neighbours."""
        self._view = view
        self.panel.turn(view)
        self.refresh()

    def release(self) -> None:
        """Follow no object any more."""
        self.followed, self._marked = None, None
        if self._view != FOUND:
            self.turn(FOUND)

    def follow(self, address: int) -> None:
        """Follow the object that has an address at the event that is shown."""
        space = self._space_of(_LIFE)
        if space is not None and not self._awaits_life:
            self._awaits_life = True
            self._life_number += 1
            self._desk.link.send(
                Query(
                    number=self._life_number, space=space.space.id, kind=_LIFE, text=f"{address:#x}"
                )
            )

    def follow_chosen(self) -> None:
        """Follow the object of the row that is chosen in the panel."""
        self._choose(self.panel.chosen_row())

    def step(self, step: int) -> None:
        """Go to the next (1) or previous (-1) event at which something happens to the followed object."""
        number = (
            None
            if self.followed is None
            else self.followed.event_beside(self._desk.session.number, step)
        )
        if number is not None:
            self._desk.navigator.go_to(number)

    def _seek(self) -> None:
        self._text = self.panel.text.text().strip()
        self.turn(FOUND)

    def _choose(self, cells: dict[str, str]) -> None:
        if self._view == LIFE:
            event = cells.get("Event", "").replace(",", "")
            if event.isdecimal():
                self._desk.navigator.go_to(int(event))
            return
        address = address_of(cells.get("Address"))
        event_now = self._desk.session.interpreter.last_event
        answer = (
            None
            if event_now is None
            else (self._found if self._view == FOUND else self._near).answer(
                event_now.sequence, live=False
            )
        )
        if (
            address is not None and answer is not None
        ):  # an address of another event may be another object's now
            self.follow(address)

    # ------------------------------------------------------------------------------- telling

    def refresh(self) -> None:
        """Update all visible texts."""
        if self._stopped or not self.panel.isVisible():
            return
        if self._space_of(_OBJECTS) is None:
            self.panel.say(_NONE_HERE)
        elif self._view == FOUND:
            self._tell_found()
        elif self.followed is None:
            self.panel.say(_FOLLOW_FIRST)
        elif self._view == LIFE:
            self.panel.tell(LIFE, self.followed.table, "Object history", "")
            self.panel.select_row(self._desk.session.number)
        else:
            self._tell_neighbours(self.followed)

    def _space_of(self, kind: str) -> SpaceState | None:
        """A space about the whole heap: one of names, whose tiles are all objects of a type."""
        spaces = [
            one
            for one in self._desk.session.interpreter.spaces.values()
            if kind in one.space.details
        ]
        return next(
            (one for one in spaces if one.space.naming is Naming.STRINGS), next(iter(spaces), None)
        )

    def _subject(self, space: SpaceState, kind: str, key: int | None, text: str) -> QuestionSubject:
        welcome = self._desk.session.live.welcome
        return QuestionSubject(
            "" if welcome is None else welcome.session, space.space.id, kind, key, text
        )

    def _tell_found(self) -> None:
        session = self._desk.session
        if self._text is None:
            self.panel.say(
                Lines(
                    "Type a search, then press Enter.",
                    "Empty search: all objects, largest first.",
                )
            )
            return
        scope = self.panel.scope.currentIndex()
        space = self._space_of(_OBJECTS) if scope == 0 else session.active_space()
        if space is None or _OBJECTS not in space.space.details:
            self.panel.say(
                "The active space has no data on single objects: choose the whole heap, or another space (N)."
            )
            return
        tile = session.selected(space.space.id) if scope == 2 else None
        if scope == 2 and tile is None:
            self.panel.say("Select a tile to search the objects in it.", space.space.name)
            return
        title = (
            "Objects in the heap"
            if scope == 0
            else f"Objects in {space.space.name}"
            if tile is None
            else f"Objects in {tile_title(space, tile)}"
        )
        key = None if tile is None else space.names.key(tile)
        self._tell(self._found, FOUND, self._subject(space, _OBJECTS, key, self._text), title)

    def _tell_neighbours(self, followed: FollowedObject) -> None:
        number = self._desk.session.number
        place, space = followed.place_at(number), self._space_of(_NEIGHBOURS)
        if place is None or space is None:
            self.panel.say(
                "The object does not exist at this event: go to an event between its birth and its death.",
                "Neighbours from the same site",
            )
            return
        self._tell(
            self._near,
            NEIGHBOURS,
            self._subject(space, _NEIGHBOURS, None, f"{place.address:#x}"),
            "Neighbours from the same site",
        )

    def _tell(self, asking: TileQuestions, view: int, subject: QuestionSubject, title: str) -> None:
        session = self._desk.session
        event = session.interpreter.last_event
        if event is None:
            return
        asking.request(subject, event.sequence, exact=True)
        answer = asking.answer(event.sequence, live=session.is_live)
        if answer is None:
            self.panel.say("Asking…", title)
        elif answer.state is AnswerState.ANSWERED:
            self.panel.tell(
                view,
                answer.table,
                title,
                "" if answer.sequence == event.sequence else "from another event: updating…",
            )
        else:
            self.panel.say(answer.reason, title)

    def _take(self, messages: list[Message]) -> None:
        answers = [message for message in messages if isinstance(message, Answer)]
        for answer in answers:
            self._found.take(answer)
            self._near.take(answer)
            if answer.number == self._life_number and self._awaits_life:
                self._awaits_life = False
                self._take_life(answer)
        if answers:
            self.refresh()

    def _take_life(self, answer: Answer) -> None:
        if answer.state is not AnswerState.ANSWERED:
            self._desk.say(answer.reason)
            return
        self.followed = FollowedObject(answer.table)
        self._marked = None
        self._view = LIFE
        self.panel.turn(LIFE)
        self._mark()

    # ------------------------------------------------------------------------ its place

    def _mark(self) -> None:
        """Select the tile in which the followed object is now."""
        if self.followed is None or self._stopped:
            return
        session = self._desk.session
        place = self.followed.place_at(session.number)
        space = (
            None
            if place is None
            else next(
                (
                    one
                    for one in session.interpreter.spaces.values()
                    if one.space.name == place.space
                ),
                None,
            )
        )
        tile = None if place is None or space is None else tile_at(space, place.address)
        mark = None if space is None or tile is None else (space.space.id, space.names.key(tile))
        if mark == self._marked:
            return
        before, self._marked = self._marked, mark
        if (
            before is not None
            and before[0] in session.interpreter.spaces
            and (mark is None or mark[0] != before[0])
        ):
            session.select(before[0], None)
            self._desk.spaces.select(before[0])
        if mark is not None:
            self._desk.selection.select(mark[0], tile)
            panel = self._desk.spaces.panels.get(mark[0])
            if panel is not None and (before is None or before[0] != mark[0]):
                self._desk.spaces.reveal(panel)

    def actions(self) -> tuple[Action, ...]:
        """The actions of single objects."""
        menu, nobody = "&View/Ob&jects", "no object is followed"

        def follows() -> bool:
            return self.followed is not None

        return (
            Action(
                name="objects.find",
                menu=menu,
                text="&Find objects…",
                about="find single objects of an object trace by type, site, size or address",
                run=self.open,
                keys=("Ctrl+F",),
            ),
            Action(
                name="objects.follow",
                menu=menu,
                text="F&ollow the selected object",
                about="follow the object selected in the panel from birth to death",
                run=self.follow_chosen,
                enabled=lambda: bool(self.panel.chosen_row()),
                why_not="no object is selected: find objects (Ctrl+F)",
            ),
            Action(
                name="objects.next",
                menu=menu,
                text="&Next event of the object",
                about="go to the next event that affects the followed object",
                run=lambda: self.step(1),
                keys=("Ctrl+.",),
                enabled=follows,
                why_not=nobody,
            ),
            Action(
                name="objects.previous",
                menu=menu,
                text="&Previous event of the object",
                about="go to the previous event that affected the followed object",
                run=lambda: self.step(-1),
                keys=("Ctrl+Shift+.", "Ctrl+>"),
                enabled=follows,
                why_not=nobody,
            ),
            Action(
                name="objects.life",
                menu=menu,
                text="Its &life",
                about="history of the followed object from birth to death",
                run=lambda: self.turn(LIFE),
                enabled=follows,
                why_not=nobody,
            ),
            Action(
                name="objects.neighbours",
                menu=menu,
                text="Its nei&ghbours",
                about="what happened to the neighbouring objects from the same site",
                run=lambda: self.turn(NEIGHBOURS),
                enabled=follows,
                why_not=nobody,
            ),
            Action(
                name="objects.release",
                menu=menu,
                text="Stop following the o&bject",
                run=self.release,
                enabled=follows,
                why_not=nobody,
            ),
        )
