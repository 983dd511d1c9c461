"""A lesson in a window: its panel, its views, the curtains over later events, and actions.

A session says in its facts which lesson it is of: so a recording of a lesson that is played finds its text by itself.

Connects the parts of the window; does not know the course of a lesson.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from gcspy_protocol.attendance import LessonPlace
from gcspy_protocol.errors import CommandError
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QWidget

from gcspy_client.lessons import Lesson, View, find_lesson, lesson_names, read_lesson
from gcspy_client.lessons.lesson import TRIGGER
from gcspy_client.lessons.lesson_translation import translated_lesson
from gcspy_client.lessons.report import read_report, write_report
from gcspy_client.model.class_answers import ClassAnswers, Tally
from gcspy_client.model.history.tracks import TrackSpec
from gcspy_client.model.palette import Theme
from gcspy_client.translation import translate
from gcspy_client.view.actions import Action
from gcspy_client.view.classroom.part import ClassPart
from gcspy_client.view.desk import Desk
from gcspy_client.view.history.panel import HistoryPanel
from gcspy_client.view.lessons.curtain import Curtain
from gcspy_client.view.lessons.panel import MOST_CHOICES, LessonPanel
from gcspy_client.view.lessons.progress import LessonProgress
from gcspy_client.view.part import Part
from gcspy_client.view.plain.dialogs import ask_file, ask_new_file
from gcspy_client.view.plain.text import shown
from gcspy_client.view.spaces.view_controller import ViewController
from gcspy_client.view.theme import tokens
from gcspy_client.view.triggers.part import TriggerPart

__all__ = ["LessonPart"]

_LESSON = "&Lesson"
_HISTORY_SHARE = 0.5
_LAID_OUT_MILLIS = 120
_LOW = 880
"""A window of fewer pixels has no room for a lesson and a timeline."""


class LessonPart(Part):
    """Lessons in a window.

    Args:
        desk: The window's desk.
        triggers: Wait for the events of a lesson.
        views: How spaces are drawn.
        history: The history graphs.
        show_guide: Shows a page of the guide.
        over_now: Widgets that show the event of now; hidden while a question waits.
        over_time: Widgets that show later events as well.
        classroom: The class of the window.
        gives_room: Widget that is hidden during a lesson in a low window, so that text, question and buttons are in sight.

    Attributes:
        progress: The progress in the lesson.
        panel: The text.
    """

    def __init__(
        self,
        desk: Desk,
        *,
        triggers: TriggerPart,
        views: ViewController,
        history: HistoryPanel,
        show_guide: Callable[[str], object],
        over_now: Sequence[QWidget],
        over_time: Sequence[QWidget],
        classroom: ClassPart,
        gives_room: QWidget,
    ) -> None:
        super().__init__(desk)
        self._triggers, self._views, self._history = triggers, views, history
        self._of = ""
        self._gives_room, self._classroom = gives_room, classroom
        self.answers = ClassAnswers()
        desk.docks.area.resized.connect(self._share_room)
        self.progress = LessonProgress(desk.session, desk.link, self)
        self.panel = LessonPanel(self.progress, desk.theme)
        self.panel.guide_asked.connect(show_guide)
        self.panel.spoken.connect(self._speak)
        about = "the lesson: its text and questions"
        desk.docks.add(
            "lesson", "Lesson", self.panel, Qt.DockWidgetArea.LeftDockWidgetArea, about=about
        )
        colours = tokens(desk.theme)
        hidden = translate("The rest is hidden until you answer the question.")
        self._over_now = [Curtain(one, hidden, colours) for one in over_now]
        self._over_time = [Curtain(one, hidden, colours) for one in over_time]
        self.progress.changed.connect(self.refresh)
        self.progress.view_requested.connect(self.look)
        self.progress.event_requested.connect(self._go_to)
        triggers.manager.fired.connect(self.progress.fired)
        classroom.lesson_place = lambda: self.progress.place
        classroom.lesson_led.connect(self.lead)
        classroom.roster_changed.connect(self._count)
        self.progress.changed.connect(self._tell_class)

    def _share_room(self) -> None:
        """Follow the height of the window."""
        low = self._desk.frame.height() < _LOW
        self._gives_room.setVisible(self.progress.lesson is None or not low)

    @property
    def curtains(self) -> tuple[Curtain, ...]:
        """All of them."""
        return (*self._over_now, *self._over_time)

    # ------------------------------------------------------------------- actions of users

    def open(self, lesson: Lesson | None) -> None:
        """Begin a lesson in this session, in the reader's language, or put it away."""
        self.progress.open(None if lesson is None else self._in_language(lesson))
        quiet = self._triggers.quiet
        if lesson is None:
            quiet.discard(TRIGGER)
        else:
            quiet.add(TRIGGER)
            self._desk.docks.show("lesson")
            # By event: a lesson stands still for as long as it is read.
            self._desk.navigator.show_by_event()

    def _in_language(self, lesson: Lesson) -> Lesson:
        try:
            return translated_lesson(lesson)
        except CommandError as error:
            self._desk.say(str(error))
            return lesson

    def ask_file(self) -> None:
        """Ask for a lesson of the user's own."""
        name = ask_file(self._desk.frame, "Open a lesson", "Lessons (*.md)")
        if name:
            try:
                self.open(read_lesson(Path(name)))
            except CommandError as error:
                self._desk.say(str(error))

    def lead(self, place: LessonPlace | None) -> None:
        """Go to where the leader of the class is, in the leader's lesson."""
        there = self.progress.lesson
        if place is not None and (there is None or there.name != place.lesson):
            if place.lesson not in lesson_names():
                self._desk.say(
                    f"The leader is in the lesson {place.lesson!r}, whose file is not here: Lesson ▸ Open a lesson…"
                )
                return
            self.progress.led = place
            self.open(find_lesson(place.lesson))
        self.progress.lead(place)

    def _tell_class(self) -> None:
        """Tell followers where this window is, or the leader what its user answered."""
        progress = self.progress
        if progress.led is not None:
            self._classroom.answer(progress.at, progress.tries.get(progress.at, ()))
        self._count()
        self._classroom.look_soon()

    def _count(self) -> None:
        """Count the answers of the class."""
        progress = self.progress
        progress.teach(progress.lesson is not None and self._classroom.teaches)
        if not progress.teaches:
            return
        now = time.monotonic()
        if progress.arrived:
            self.answers.ask(progress.at, now)
        clients = self._desk.session.live.clients.clients
        self.answers.take(clients, now)
        self.panel.counts = Tally.of(clients, progress.at, progress.attempts.get(progress.at, 1))
        self.panel.refresh()

    def ask_answers(self) -> None:
        """Ask for a file, and write the answers of the class into it."""
        kinds = "Tables (*.csv);;JSON (*.json)"
        name = ask_new_file(self._desk.frame, "Save the answers", kinds, "answers.csv")
        if name:
            self.save_answers(Path(name))

    def save_answers(self, path: Path) -> None:
        """Write the answers of the class: as JSON if the name ends so, else as CSV."""
        lesson = self.progress.lesson
        if lesson is None:
            return
        rows = self.answers.rows(lesson)
        text = (
            json.dumps(rows, indent=1, ensure_ascii=False)
            if path.suffix == ".json"
            else self.answers.as_csv(lesson)
        )
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            self._desk.say(f"{path} cannot be written: {error.strerror}")
        else:
            self._desk.say(f"{len(rows)} answers were saved as {path}")

    def ask_report(self) -> None:
        """Ask for a file, and write the report of this lesson into it."""
        name = ask_new_file(self._desk.frame, "Save a report", "Reports (*.json)", "report.json")
        if name:
            self.save_report(Path(name))

    def save_report(self, path: Path) -> None:
        """Write the report of this lesson; own code that is in the file already stays in it."""
        report = self.progress.report(self._desk.link.person)
        try:
            if path.exists():
                report = replace(report, code=read_report(path).code)
            write_report(report, path)
        except CommandError as error:
            self._desk.say(str(error))
        else:
            self._desk.say(f"The report of {report.student} was saved as {path}")

    # ------------------------------------------------------------------------ messages

    def refresh(self) -> None:
        """Follow the session, and update all texts."""
        self._find()
        self.progress.follow()
        self.panel.refresh()
        self._share_room()
        limit = self.progress.limit
        session = self._desk.session
        beyond = limit is not None and session.number > limit
        known = limit is not None and (session.is_playback or session.timeline.last > limit)
        for curtain in self._over_now:
            curtain.draw(closed=beyond)
        for curtain in self._over_time:
            curtain.draw(closed=known)

    def _speak(self, text: str) -> None:
        """Have a screen reader say what came of an answer."""
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self.panel, shown(text)))

    def _find(self) -> None:
        """Open the lesson that another session is of, if it is one that is here."""
        welcome = self._desk.session.live.welcome
        if welcome is None or welcome.session == self._of:
            return
        self._of = welcome.session
        name = welcome.target.get("lesson", "")
        if self.progress.lesson is not None and self.progress.lesson.name == name:
            self.progress.restarted()
        elif name in lesson_names():
            self.open(find_lesson(name))
        elif self.progress.lesson is None and self._desk.docks.is_open("lesson"):
            # From the layout of an earlier session: there is nothing to read here.
            self._desk.docks["lesson"].close()

    def _go_to(self, number: int) -> None:
        desk = self._desk
        if number == 0:
            if not desk.session.is_live:
                desk.navigator.last()
        elif desk.session.number != number:
            desk.navigator.go_to(number)

    def look(self, view: View) -> None:
        """Show the view of a step."""
        desk = self._desk
        for name in view.close:
            if name in desk.docks and desk.docks.is_open(name):
                desk.docks[name].close()
        found = next(
            (
                one
                for one in desk.session.interpreter.spaces.values()
                if one.space.name == view.space
            ),
            None,
        )
        if found is not None:
            number = found.space.id
            stream = next((one.id for one in found.space.streams if one.name == view.stream), None)
            if stream is not None:
                desk.selection.choose_stream(number, stream)
            desk.selection.turn_to(number)
            if view.renderer:
                self._views.choose_view(view.renderer, number)
            if view.tile is not None and view.tile < found.count:
                desk.selection.select(number, view.tile)
        for name in view.panels:
            if name in desk.docks:
                desk.docks.show(name)
        if view.history or "history" in view.panels:
            self._show_history(view)

    def _show_history(self, view: View) -> None:
        desk = self._desk
        there = {(track.spec.space, track.spec.stream) for track in self._history.tracks}
        for space, stream in view.history:
            if (space, stream) not in there:
                self._history.add_track(TrackSpec(space, stream))
        if not desk.docks.is_open("history"):
            desk.docks.show("history")
        # When Qt has laid it out: before, it has no border that could be moved.
        QTimer.singleShot(_LAID_OUT_MILLIS, self, self._give_history_room)
        QTimer.singleShot(2 * _LAID_OUT_MILLIS, self, self._bring_into_view)

    def _give_history_room(self) -> None:
        docks = self._desk.docks
        wanted = int(docks.area.height() * _HISTORY_SHARE)
        if docks.is_open("history") and docks["history"].height() < wanted * 3 // 4:
            docks.give_height("history", wanted)

    def _bring_into_view(self) -> None:
        """Scroll to the active space, which the history graph may have left no room."""
        active = self._desk.session.active_space()
        panel = None if active is None else self._desk.spaces.panels.get(active.space.id)
        if panel is not None:
            self._desk.spaces.reveal(panel)

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        for curtain in self.curtains:
            curtain.set_colours(tokens(theme))
        self.panel.set_theme(theme)

    def stop(self) -> None:
        """Follow nothing any more."""
        self.progress.blockSignals(True)

    def actions(self) -> tuple[Action, ...]:
        """The actions of lessons."""
        progress = self.progress
        return (
            Action(
                name="lesson.open",
                menu=_LESSON,
                text="&Open a lesson…",
                about="a lesson of your own, from its file",
                run=self.ask_file,
            ),
            Action(
                name="lesson.close",
                menu=_LESSON,
                text="&Close the lesson",
                run=partial(self.open, None),
                enabled=lambda: progress.lesson is not None,
                why_not="there is no lesson",
            ),
            Action(
                name="lesson.report",
                menu=_LESSON,
                text="&Save a report…",
                about="your answers and times, in a file for your teacher",
                run=self.ask_report,
                enabled=lambda: bool(progress.times),
                why_not="no question was asked yet",
            ),
            Action(
                name="lesson.reveal",
                menu=_LESSON,
                text="&Reveal the answer to the class",
                run=progress.reveal,
                keys=("Alt+R",),
                enabled=lambda: progress.teaches and progress.asks,
                why_not="no class is asked",
            ),
            Action(
                name="lesson.again",
                menu=_LESSON,
                text="Give the class a second &try",
                run=progress.ask_again,
                keys=("Alt+T",),
                enabled=lambda: progress.teaches and progress.asks,
                why_not="no class is asked",
            ),
            Action(
                name="lesson.answers",
                menu=_LESSON,
                text="Save the answers of the &class…",
                about="all answers and times of the class, as CSV or JSON",
                run=self.ask_answers,
                enabled=lambda: bool(self.answers.records),
                why_not="no class has answered",
            ),
            Action(
                name="lesson.next",
                menu=_LESSON,
                text="&Next step",
                run=progress.next,
                keys=("Alt+Right",),
                enabled=lambda: not progress.why_not_next,
                why_not="there is no lesson, this is its last step, or a question is unanswered",
                begins_group=True,
            ),
            Action(
                name="lesson.back",
                menu=_LESSON,
                text="Step &before",
                run=progress.back,
                keys=("Alt+Left",),
                enabled=lambda: progress.lesson is not None and progress.at > 0,
                why_not="there is no lesson, or this is its first step",
            ),
            *(
                Action(
                    name=f"lesson.answer-{number + 1}",
                    menu=_LESSON,
                    text=f"Answer &{number + 1}",
                    about=f"answer the question with choice {number + 1}",
                    run=partial(progress.answer_shown, number),
                    keys=(f"Alt+{number + 1}",),
                    enabled=partial(_may_answer, self, number),
                    why_not="no open question has this choice",
                    begins_group=number == 0,
                )
                for number in range(MOST_CHOICES)
            ),
        )


def _may_answer(part: LessonPart, number: int) -> bool:
    step = part.progress.step
    return (
        part.progress.asks
        and step is not None
        and step.question is not None
        and number < len(step.question.choices)
    )
