"""The panel of a lesson: the text of a step, its question, and the buttons to continue.

Knows lessons and where one is in one; does not know the session.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QEvent, QSize, Qt, QUrl, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QProgressBar,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.lessons.lesson import Lesson, LessonQuestion
from gcspy_client.model.class_answers import Tally
from gcspy_client.model.palette import Theme
from gcspy_client.translation import translate
from gcspy_client.view.lessons.choice_button import ChoiceButton
from gcspy_client.view.lessons.progress import LessonProgress
from gcspy_client.view.plain.markdown import MarkdownParagraph, MarkdownText
from gcspy_client.view.plain.text import set_accessible_name, set_tip
from gcspy_client.view.plain.widgets import PlainLabel, PlainPushButton
from gcspy_client.view.theme import tokens

__all__ = ["LessonPanel"]

MOST_CHOICES = 6
"""Choices that have a key."""

_LARGER = 1.15
_LEAST_TEXT = 96
"""Height of the text of a step, in pixels, that a long question leaves."""
_LEAST_QUESTION = 60
_NO_LESSON = ("no lesson",)
"""The text is to be read, not looked up."""


class LessonPanel(QWidget):
    """One step of a lesson.

    Signals:
        guide_asked: A page of the guide was requested; its name.
        spoken: A screen reader is to say this text.

    Args:
        progress: The progress in the lesson.
    """

    guide_asked = Signal(str)
    spoken = Signal(str)

    def __init__(self, progress: LessonProgress, theme: Theme) -> None:
        super().__init__()
        self._progress = progress
        self._theme = theme
        self._shown: tuple[object, ...] = ()
        self.counts = Tally()
        self.title, self.place = PlainLabel(), PlainLabel()
        self.title.setProperty("caption", "true")
        self.title.setWordWrap(True)
        self.place.setProperty("dim", "true")
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(4)
        self.text = MarkdownText()
        self.text.anchorClicked.connect(self._follow)
        set_accessible_name(self.text, translate("Text of the lesson"))
        larger = self.text.font()
        larger.setPointSizeF(larger.pointSizeF() * _LARGER)
        self.text.setFont(larger)
        self.asked, self.told, self.note = (MarkdownParagraph() for _ in range(3))
        self.choices: list[ChoiceButton] = []
        self._choice_column = QVBoxLayout()
        self._choice_column.setSpacing(4)
        font = self.asked.font()
        font.setBold(True)
        self.asked.setFont(font)
        self.note.setProperty("tone", "warning")
        self.tally = PlainLabel()
        self.tally.setWordWrap(True)
        self.again, self.reveal = (
            PlainPushButton(translate("Second try")),
            PlainPushButton(translate("Reveal")),
        )
        self.again.clicked.connect(progress.ask_again)
        self.reveal.clicked.connect(progress.reveal)
        self.score = PlainLabel()
        self.score.setProperty("dim", "true")
        self.back, self.next = (
            PlainPushButton(translate("Back")),
            PlainPushButton(translate("Next")),
        )
        self.next.setProperty("primary", "true")
        self.back.clicked.connect(progress.back)
        self.next.clicked.connect(progress.next)
        self._build()
        self.refresh()

    def _build(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self.title, 1)
        head.addWidget(self.place)
        buttons = QHBoxLayout()
        buttons.addWidget(self.back)
        buttons.addWidget(self.score, 1, Qt.AlignmentFlag.AlignCenter)
        buttons.addWidget(self.next)
        card = QFrame()
        card.setProperty("card", "true")
        inside = QVBoxLayout(card)
        inside.setContentsMargins(10, 8, 10, 8)
        inside.setSpacing(6)
        inside.addWidget(self.asked)
        inside.addLayout(self._choice_column)
        inside.addWidget(self.told)
        teaching = QHBoxLayout()
        teaching.addWidget(self.tally, 1)
        teaching.addWidget(self.again)
        teaching.addWidget(self.reveal)
        inside.addLayout(teaching)
        self._card = card
        self.question = QScrollArea()
        self.question.setWidgetResizable(True)
        self.question.setFrameShape(QFrame.Shape.NoFrame)
        self.question.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.question.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.question.setWidget(card)
        self.text.setMinimumHeight(_LEAST_TEXT)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 6, 10, 8)
        column.setSpacing(6)
        column.addLayout(head)
        column.addWidget(self.bar)
        column.addWidget(self.text, 1)
        column.addWidget(self.question)
        column.addWidget(self.note)
        column.addLayout(buttons)

    def sizeHint(self) -> QSize:
        """Wide enough for lines that read well."""
        return QSize(360, 460)

    def minimumSizeHint(self) -> QSize:
        """So low that a question and the buttons stay in sight in a small window: the question scrolls, and so does the text."""
        return QSize(200, 240)

    def hasHeightForWidth(self) -> bool:
        """Report that any height will do: what does not fit scrolls."""
        return False

    def heightForWidth(self, width: int) -> int:
        """The least height, of which a scroll area makes as much as it has."""
        return self.minimumSizeHint().height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Share the height anew."""
        super().resizeEvent(event)
        self._share_height()

    def changeEvent(self, event: QEvent) -> None:
        """Share the height anew when letters become larger."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self._share_height()

    def _share_height(self) -> None:
        """Give the question the height that it needs, as long as some lines of the text stay in sight."""
        if self.question.isHidden():
            return
        inside, column = self._card.layout(), self.layout()
        if inside is None or column is None:
            return
        column.invalidate()  # the note or the title may have got another height since
        least = column.totalMinimumHeightForWidth(self.width()) - self.question.minimumHeight()
        wanted = inside.totalHeightForWidth(self.width() - column.contentsMargins().left() * 2)
        self.question.setFixedHeight(max(min(wanted, self.height() - least), _LEAST_QUESTION))

    def set_theme(self, theme: Theme) -> None:
        """Draw for another ground."""
        self._theme = theme
        for button in self.choices:
            button.set_colours(tokens(theme))

    def refresh(self) -> None:
        """Update all texts."""
        progress = self._progress
        lesson, step = progress.lesson, progress.step
        for part in (self.bar, self.back, self.next, self.place, self.score):
            part.setVisible(lesson is not None)
        if lesson is None or step is None:
            self.title.setText(translate("No lesson"))
            if self._shown != _NO_LESSON:
                self._shown = _NO_LESSON
                self.text.show_markdown(
                    translate(
                        "`gcspy demo --list` lists the lessons; *Lesson ▸ Open a lesson…* opens one of your own."
                    )
                )
            self.question.hide()
            self.note.hide()
            return
        self.title.setText(lesson.title)
        self.place.setText(
            translate("Step {number} of {count}", number=progress.at + 1, count=len(lesson.steps))
        )
        self.bar.setRange(0, len(lesson.steps))
        self.bar.setValue(progress.at + 1)
        if self._shown != (id(lesson), progress.at):
            self._shown = (id(lesson), progress.at)
            self.text.show_markdown(self._markdown(lesson, progress.at))
            self._make_choices(step.question)
        self._refresh_question(step.question)
        self._share_height()
        self.note.setText(
            progress.problem
            or (
                translate("The program is running to the next event of the lesson …")
                if progress.waiting
                else translate("The leader of the class is on the way to this step …")
                if progress.led is not None and not progress.arrived
                else ""
            )
        )
        self.note.setVisible(bool(self.note.text()))
        self.score.setText("" if progress.teaches else str(progress.score))
        why = progress.why_not_next
        self.next.setEnabled(not why)
        set_tip(
            self.next, why[:1].upper() + why[1:] if why else translate("The next step (Alt+Right)")
        )
        self.back.setEnabled(progress.at > 0 and progress.led is None)

    @staticmethod
    def _markdown(lesson: Lesson, place: int) -> str:
        step = lesson.steps[place]
        goal = f"*{lesson.goal}*\n\n" if place == 0 else ""
        return f"### {step.title}\n\n{goal}{step.text}"

    def _make_choices(self, question: LessonQuestion | None) -> None:
        for button in self.choices:
            self._choice_column.removeWidget(button)
            button.hide()
            button.deleteLater()
        self.choices = []
        words = () if question is None else question.choices
        for number, place in enumerate(self._progress.order):
            button = ChoiceButton(number + 1, words[place], tokens(self._theme))
            button.clicked.connect(partial(self._progress.answer, place))
            self._choice_column.addWidget(button)
            button.show()  # at once: its height counts when the room is shared
            self.choices.append(button)

    def _refresh_question(self, question: LessonQuestion | None) -> None:
        progress = self._progress
        shown = question is not None and progress.arrived
        self.question.setVisible(shown)
        self._refresh_exercise(shown=question is None and progress.arrived)
        if question is None or not shown:
            return
        self.asked.setText(question.ask)
        tries = progress.tries.get(progress.at, ())
        over = progress.is_answered(progress.at)
        for place, button in zip(progress.order, self.choices, strict=True):
            right = over and place == question.answer
            button.mark = (
                "✓"
                if right
                else ""
                if place not in tries
                else "✗"
                if over or progress.led is None
                else "●"
            )
            button.setEnabled(not over and place not in tries and progress.may_try)
            button.beside = self.counts.share(place) if over and progress.teaches else ""
        self._refresh_tally(over=over)
        self.told.setVisible(bool(tries) or (over and progress.teaches))
        if tries or (over and progress.teaches):
            if progress.led is not None and not over:
                again = f" {translate('Answer once more.')}" if progress.may_try else ""
                tone, words = "dim", translate("Your answer is with the teacher.") + again
            elif not tries:
                tone, words = "dim", question.because  # a teacher was not asked
            else:
                tone, words = self._feedback(question, tries, over=over)
            self.told.setProperty("tone", tone)
            self.told.style().unpolish(self.told)
            self.told.style().polish(self.told)
            if words != self.told.text():
                self.told.setText(words)
                self.spoken.emit(words)

    def _refresh_tally(self, *, over: bool) -> None:
        """Update what only a teacher sees."""
        progress = self._progress
        for part in (self.tally, self.again, self.reveal):
            part.setVisible(progress.teaches)
        for button in (self.again, self.reveal):
            button.setEnabled(not over)
        self.tally.setText(self.counts.sentence(progress.order))

    def _refresh_exercise(self, *, shown: bool) -> None:
        """Show the exercise of a step instead of a question."""
        progress = self._progress
        exercise = None if progress.step is None else progress.step.exercise
        if exercise is None or not shown:
            return
        self.question.show()
        self.asked.setText(translate("Exercise: {task}", task=exercise.task))
        solved = progress.at in progress.solved
        words = (
            translate("Solved.")
            if solved
            else exercise.hint and translate("Hint: {hint}", hint=exercise.hint)
        )
        if progress.is_playback and not solved:
            words = translate(
                "In a recording nothing can be set: `gcspy demo` runs the lesson. Go on to see a solution."
            )
        self.told.setVisible(bool(words))
        if words != self.told.text():
            self.told.setProperty("tone", "good" if solved else "dim")
            self.told.style().unpolish(self.told)
            self.told.style().polish(self.told)
            self.told.setText(words)
            if solved:
                self.spoken.emit(words)

    @staticmethod
    def _feedback(
        question: LessonQuestion, tries: tuple[int, ...], *, over: bool
    ) -> tuple[str, str]:
        """The tone and the words after the latest try; the explanation only when no try is left."""
        own = question.feedback_on(tries[-1])
        right = tries[-1] == question.answer and over
        verdict = translate("Correct.") if right else translate("Not correct.")
        rest = question.because if over else translate("Try once more.")
        return "good" if right else "warning", " ".join(filter(None, (verdict, own, rest)))

    def _follow(self, link: QUrl) -> None:
        if link.scheme() == "page":
            self.guide_asked.emit(link.path())
