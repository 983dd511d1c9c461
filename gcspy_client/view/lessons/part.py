"""What a lesson is in a window: its panel, what it looks at, the curtains over what must not be seen yet, and actions.

A session says in its facts which lesson it is of: so a recording of a lesson that is played finds its text by itself.

Knows which part of the window does what; does not know how a lesson goes on.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gcspy_protocol.errors import CommandError
from PySide6.QtCore import QObject, Qt, QTimer

from gcspy_client.lessons import Lesson, View, find_lesson, lesson_names, read_lesson
from gcspy_client.lessons.lesson import TRIGGER
from gcspy_client.model.history.tracks import TrackSpec
from gcspy_client.model.palette import Theme
from gcspy_client.view.actions import Action
from gcspy_client.view.lessons.curtain import Curtain
from gcspy_client.view.lessons.leading import Leading
from gcspy_client.view.lessons.panel import MOST_CHOICES, LessonPanel
from gcspy_client.view.plain.dialogs import ask_file
from gcspy_client.view.theme import tokens

if TYPE_CHECKING:
    from gcspy_client.view.window import MainWindow

__all__ = ["LessonPart", "actions_of_lessons"]

_LESSON = "&Lesson"
_HIDDEN = "What comes next is hidden until the question is answered."
_HISTORY_SHARE = 0.5
_LAID_OUT_MILLIS = 120


class LessonPart(QObject):
    """Lessons in a window.

    Attributes:
        leading: Where one is.
        panel: The text.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._of = ""
        self.leading = Leading(window.session, window.link, self)
        self.panel = LessonPanel(self.leading, window.theme)
        self.panel.guide_asked.connect(window.show_guide)
        about = "the lesson: its text and questions"
        window.docks.add(
            "lesson", "Lesson", self.panel, Qt.DockWidgetArea.LeftDockWidgetArea, about=about
        )
        colours = tokens(window.theme)
        self._over_now = [
            Curtain(one, _HIDDEN, colours)
            for one in (window.sides, window.event_bar, window.details.tile, window.details.trend)
        ]
        self._over_time = [
            Curtain(one, _HIDDEN, colours) for one in (window.history, window.time_panel)
        ]
        self.leading.changed.connect(self.refresh)
        self.leading.view_wished.connect(self.look)
        self.leading.event_wished.connect(self._go_to)
        window.triggers.triggering.fired.connect(self.leading.fired)

    @property
    def over_tiles(self) -> Curtain:
        """The one over the tiles."""
        return self._over_now[0]

    @property
    def curtains(self) -> tuple[Curtain, ...]:
        """All of them."""
        return (*self._over_now, *self._over_time)

    # ------------------------------------------------------------------- what users do

    def open(self, lesson: Lesson | None) -> None:
        """Begin a lesson in this session, or put it away."""
        self.leading.open(lesson)
        quiet = self._window.triggers.quiet
        if lesson is None:
            quiet.discard(TRIGGER)
        else:
            quiet.add(TRIGGER)
            self._window.docks.show("lesson")
            # By event: a lesson stands still for as long as it is read.
            axis = self._window.time_panel.transport.axis
            axis.setCurrentIndex(axis.findData(False))
            axis.activated.emit(axis.currentIndex())

    def ask_file(self) -> None:
        """Ask for a lesson of the user's own."""
        name = ask_file(self._window, "Open a lesson", "Lessons (*.md)")
        if name:
            try:
                self.open(read_lesson(Path(name)))
            except CommandError as error:
                self._window.say(str(error))

    # ------------------------------------------------------------------------ what comes

    def refresh(self) -> None:
        """Follow the session, and say everything anew."""
        self._find()
        self.leading.follow()
        self.panel.refresh()
        limit = self.leading.limit
        session = self._window.session
        beyond = limit is not None and session.number > limit
        known = limit is not None and (session.is_playback or session.timeline.last > limit)
        for curtain in self._over_now:
            curtain.draw(closed=beyond)
        for curtain in self._over_time:
            curtain.draw(closed=known)

    def _find(self) -> None:
        """Open the lesson that another session is of, if it is one that is here."""
        welcome = self._window.session.live.welcome
        if welcome is None or welcome.session == self._of:
            return
        self._of = welcome.session
        name = welcome.target.get("lesson", "")
        if self.leading.lesson is not None and self.leading.lesson.name == name:
            self.leading.restarted()
        elif name in lesson_names():
            self.open(find_lesson(name))

    def _go_to(self, number: int) -> None:
        window = self._window
        if number == 0:
            if not window.session.is_live:
                window.timing.last()
        elif window.session.number != number:
            window.timing.go_to(number)

    def look(self, view: View) -> None:
        """Look at what a step is about."""
        window = self._window
        for name in view.close:
            if name in window.docks and window.docks.is_open(name):
                window.docks[name].close()
        found = next(
            (
                one
                for one in window.session.interpreter.spaces.values()
                if one.space.name == view.space
            ),
            None,
        )
        if found is not None:
            number = found.space.id
            stream = next((one.id for one in found.space.streams if one.name == view.stream), None)
            if stream is not None:
                window.choose_stream(number, stream)
            window.turn_to(number)
            if view.renderer:
                window.looking.choose_view(view.renderer, number)
            if view.tile is not None and view.tile < found.count:
                window.select(number, view.tile)
        for name in view.panels:
            if name in window.docks:
                window.docks.show(name)
        if view.history or "history" in view.panels:
            self._show_history(view)

    def _show_history(self, view: View) -> None:
        window = self._window
        there = {(track.spec.space, track.spec.stream) for track in window.history.tracks}
        for space, stream in view.history:
            if (space, stream) not in there:
                window.history.add_track(TrackSpec(space, stream))
        if not window.docks.is_open("history"):
            window.docks.show("history")
        # When Qt has laid it out: before, it has no border that could be moved.
        QTimer.singleShot(_LAID_OUT_MILLIS, self, self._give_history_room)
        QTimer.singleShot(2 * _LAID_OUT_MILLIS, self, self._bring_into_view)

    def _give_history_room(self) -> None:
        docks = self._window.docks
        wanted = int(docks.area.height() * _HISTORY_SHARE)
        if docks.is_open("history") and docks["history"].height() < wanted * 3 // 4:
            docks.give_height("history", wanted)

    def _bring_into_view(self) -> None:
        """Scroll to the active space, which the history graph may have left no room."""
        active = self._window.session.active_space()
        panel = None if active is None else self._window.spaces.panels.get(active.space.id)
        if panel is not None:
            self._window.spaces.ensureWidgetVisible(panel)

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        for curtain in self.curtains:
            curtain.set_colours(tokens(theme))

    def stop(self) -> None:
        """Follow nothing any more."""
        self.leading.blockSignals(True)


def actions_of_lessons(window: MainWindow) -> tuple[Action, ...]:
    """What can be done with lessons."""
    part = window.lessons
    leading = part.leading
    return (
        Action(
            name="lesson.open",
            menu=_LESSON,
            text="&Open a lesson…",
            about="a lesson of your own, from its file",
            run=part.ask_file,
        ),
        Action(
            name="lesson.close",
            menu=_LESSON,
            text="&Put the lesson away",
            run=partial(part.open, None),
            enabled=lambda: leading.lesson is not None,
            why_not="there is no lesson",
        ),
        Action(
            name="lesson.next",
            menu=_LESSON,
            text="&Next step",
            run=leading.next,
            keys=("Alt+Right",),
            enabled=lambda: not leading.why_not_next,
            why_not="there is no lesson, its last step is shown, or a question waits for its answer",
            begins_group=True,
        ),
        Action(
            name="lesson.back",
            menu=_LESSON,
            text="Step &before",
            run=leading.back,
            keys=("Alt+Left",),
            enabled=lambda: leading.lesson is not None and leading.at > 0,
            why_not="there is no lesson, or its first step is shown",
        ),
        *(
            Action(
                name=f"lesson.answer-{number + 1}",
                menu=_LESSON,
                text=f"Answer &{number + 1}",
                about=f"answer the question with choice {number + 1}",
                run=partial(leading.answer, number),
                keys=(f"Alt+{number + 1}",),
                enabled=partial(_may_answer, part, number),
                why_not="no question with so many choices waits for an answer",
                begins_group=number == 0,
            )
            for number in range(MOST_CHOICES)
        ),
    )


def _may_answer(part: LessonPart, number: int) -> bool:
    step = part.leading.step
    return (
        part.leading.asks
        and step is not None
        and step.question is not None
        and number < len(step.question.choices)
    )
