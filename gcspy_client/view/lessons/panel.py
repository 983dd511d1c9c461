"""The panel of a lesson: the text of a step, its question, and the buttons to continue.

Knows lessons and where one is in one; does not know the session.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QSize, QUrl, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QProgressBar,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.lessons.lesson import Lesson, LessonQuestion
from gcspy_client.model.palette import Theme
from gcspy_client.view.lessons.progress import LessonProgress
from gcspy_client.view.plain.markdown import MarkdownParagraph, MarkdownText
from gcspy_client.view.plain.text import set_accessible_name, set_tip
from gcspy_client.view.plain.widgets import PlainLabel, PlainPushButton

__all__ = ["LessonPanel"]

MOST_CHOICES = 6
"""Choices that have a key."""

_LARGER = 1.15
_NO_LESSON = ("no lesson",)
"""The text is to be read, not looked up."""


class LessonPanel(QWidget):
    """One step of a lesson.

    Signals:
        guide_asked: A page of the guide was requested; its name.

    Args:
        progress: The progress in the lesson.
    """

    guide_asked = Signal(str)

    def __init__(self, progress: LessonProgress, theme: Theme) -> None:
        super().__init__()
        self._progress = progress
        self._theme = theme
        self._shown: tuple[object, ...] = ()
        self.title, self.place = PlainLabel(), PlainLabel()
        self.title.setProperty("caption", "true")
        self.title.setWordWrap(True)
        self.place.setProperty("dim", "true")
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(4)
        self.text = MarkdownText()
        self.text.anchorClicked.connect(self._follow)
        set_accessible_name(self.text, "Text of the lesson")
        larger = self.text.font()
        larger.setPointSizeF(larger.pointSizeF() * _LARGER)
        self.text.setFont(larger)
        self.asked, self.told, self.note = (MarkdownParagraph() for _ in range(3))
        self.choices: list[PlainPushButton] = []
        self._choice_column = QVBoxLayout()
        self._choice_column.setSpacing(4)
        font = self.asked.font()
        font.setBold(True)
        self.asked.setFont(font)
        self.note.setProperty("tone", "warning")
        self.back, self.next = PlainPushButton("Back"), PlainPushButton("Next")
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
        buttons.addStretch(1)
        buttons.addWidget(self.next)
        card = QFrame()
        card.setProperty("card", "true")
        inside = QVBoxLayout(card)
        inside.setContentsMargins(10, 8, 10, 8)
        inside.setSpacing(6)
        inside.addWidget(self.asked)
        inside.addLayout(self._choice_column)
        inside.addWidget(self.told)
        self._card = card
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 6, 10, 8)
        column.setSpacing(6)
        column.addLayout(head)
        column.addWidget(self.bar)
        column.addWidget(self.text, 1)
        column.addWidget(card)
        column.addWidget(self.note)
        column.addLayout(buttons)

    def sizeHint(self) -> QSize:
        """Wide enough for lines that read well."""
        return QSize(360, 460)

    def refresh(self) -> None:
        """Update all texts."""
        progress = self._progress
        lesson, step = progress.lesson, progress.step
        for part in (self.bar, self.back, self.next, self.place):
            part.setVisible(lesson is not None)
        if lesson is None or step is None:
            self.title.setText("No lesson")
            if self._shown != _NO_LESSON:
                self._shown = _NO_LESSON
                self.text.show_markdown(
                    "`gcspy demo --list` lists the lessons; *Lesson ▸ Open a lesson…* opens one of your own."
                )
            self._card.hide()
            self.note.hide()
            return
        self.title.setText(lesson.title)
        self.place.setText(f"Step {progress.at + 1} of {len(lesson.steps)}")
        self.bar.setRange(0, len(lesson.steps))
        self.bar.setValue(progress.at + 1)
        if self._shown != (id(lesson), progress.at):
            self._shown = (id(lesson), progress.at)
            self.text.show_markdown(self._markdown(lesson, progress.at))
            self._make_choices(step.question)
        self._refresh_question(step.question)
        self.note.setText(
            progress.problem
            or (
                "The program is running to the next event of the lesson …"
                if progress.waiting
                else ""
            )
        )
        self.note.setVisible(bool(self.note.text()))
        why = progress.why_not_next
        self.next.setEnabled(not why)
        set_tip(self.next, why[:1].upper() + why[1:] if why else "The next step (Alt+Right)")
        self.back.setEnabled(progress.at > 0)

    @staticmethod
    def _markdown(lesson: Lesson, place: int) -> str:
        step = lesson.steps[place]
        goal = f"*{lesson.goal}*\n\n" if place == 0 else ""
        return f"### {step.title}\n\n{goal}{step.text}"

    def _make_choices(self, question: LessonQuestion | None) -> None:
        for button in self.choices:
            self._choice_column.removeWidget(button)
            button.deleteLater()
        self.choices = []
        for number, words in enumerate(question.choices if question is not None else ()):
            button = PlainPushButton(f"{number + 1}   {words}")
            button.setStyleSheet("text-align: left")
            button.clicked.connect(partial(self._progress.answer, number))
            self._choice_column.addWidget(button)
            self.choices.append(button)

    def _refresh_question(self, question: LessonQuestion | None) -> None:
        progress = self._progress
        shown = question is not None and progress.arrived
        self._card.setVisible(shown)
        if question is None or not shown:
            return
        self.asked.setText(question.ask)
        given = progress.answers.get(progress.at)
        for number, button in enumerate(self.choices):
            mark = (
                ""
                if given is None
                else "✓ "
                if number == question.answer
                else "✗ "
                if number == given
                else ""
            )
            button.setText(f"{mark}{number + 1}   {question.choices[number]}")
            button.setEnabled(given is None)
        self.told.setVisible(given is not None)
        if given is not None:
            right = given == question.answer
            self.told.setProperty("tone", "good" if right else "warning")
            self.told.style().unpolish(self.told)
            self.told.style().polish(self.told)
            self.told.setText(f"{'Correct.' if right else 'Not correct.'} {question.because}")

    def _follow(self, link: QUrl) -> None:
        if link.scheme() == "page":
            self.guide_asked.emit(link.path())
