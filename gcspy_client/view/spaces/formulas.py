"""Streams that the user makes of others by a formula: written with help, checked while typing, remembered by name of the space.

Knows formulas and where they are kept; does not know how their numbers are shown.
"""

from __future__ import annotations

from math import isfinite

from gcspy_protocol.errors import ExpressionError
from gcspy_protocol.interpreter import SpaceState
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QListWidget,
    QVBoxLayout,
    QWidget,
)

from gcspy_client.model.derived_source import DerivedSource
from gcspy_client.model.palette import Theme
from gcspy_client.model.panels.trigger_list import Completions, completions
from gcspy_client.view.desk import Desk
from gcspy_client.view.part import Part
from gcspy_client.view.plain.items import PlainListItem
from gcspy_client.view.plain.text import set_tip, set_window_title
from gcspy_client.view.plain.widgets import (
    PlainLabel,
    PlainLineEdit,
    PlainPushButton,
)
from gcspy_client.view.theme import tokens
from gcspy_client.view.triggers.expression_edit import ExpressionEdit
from gcspy_client.view.widgets.check_box import CheckBox

__all__ = ["FormulaDialog", "Formulas"]

_SETTING = "formulas"
_MOST_REMEMBERED = 50
_LONGEST_NAME = 40


Ends = tuple[float | None, float | None]
"""Ends of a scale; None: determined by the current values."""


def checked(name: str, formula: str, space: SpaceState) -> DerivedSource:
    """The result of a formula, in a space without tiles: cheap enough for each letter.

    Raises:
        ExpressionError: The formula is invalid, or not about this space.
    """
    return DerivedSource(name, formula, SpaceState(space.space))


def _made(
    space: SpaceState, name: str, formula: str, percent: bool, ends: Ends, number: int
) -> DerivedSource:
    if percent and ends == (None, None):
        ends = 0.0, 1.0
    return DerivedSource(
        name, formula, space, least=ends[0], greatest=ends[1], percent=percent, number=number
    )


class Formulas(Part):
    """The formulas of a window.

    Args:
        desk: The window's desk.
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._restored: set[tuple[str, int]] = set()
        self._dialog: FormulaDialog | None = None
        desk.updater.event_shown.connect(self._restore)

    def ask(self, space: int | None = None) -> FormulaDialog | None:
        """Open the dialog for a space, by default the active one."""
        session = self._desk.session
        state = session.active_space() if space is None else session.interpreter.spaces.get(space)
        if state is None:
            return None
        self.close()
        self._dialog = FormulaDialog(self, state, self._desk.theme, self._desk.frame)
        self._dialog.show()
        return self._dialog

    def close(self) -> None:
        """Close the dialog."""
        if self._dialog is not None:
            self._dialog.close()
            self._dialog.deleteLater()
            self._dialog = None

    def stop(self) -> None:
        """The window closes."""
        self.close()

    def made_of(self, space: int) -> list[DerivedSource]:
        """The formulas of a space."""
        return list(self._desk.session.looks.derived.get(space, []))

    def add(
        self,
        space: SpaceState,
        name: str,
        formula: str,
        *,
        percent: bool = False,
        ends: Ends = (None, None),
        number: int | None = None,
    ) -> DerivedSource:
        """Make a derived stream, or replace an earlier one, and show it.

        Args:
            space: Of which space.
            name: As in the view chooser.
            formula: The expression.
            percent: Show it as percent.
            ends: Ends of the scale; None: 0 and 1 for percent, else determined by the current
                values.
            number: Id of the earlier one.

        Raises:
            ExpressionError: The formula cannot be used.
        """
        looks, space_id = self._desk.session.looks, space.space.id
        number = looks.next_number(space_id) if number is None else number
        made = _made(space, name[:_LONGEST_NAME], formula, percent, ends, number)
        kept = looks.derived.setdefault(space_id, [])
        places = [i for i, one in enumerate(kept) if one.schema.id == number]
        if places:
            kept[places[0]] = made
        else:
            kept.append(made)
        self._remember(space)
        if looks.chosen.get(space_id) == number:
            self._desk.spaces.show_stream(space_id)
        else:
            self._desk.selection.choose_stream(space_id, number)
        self._desk.updater.refresh()
        return made

    def remove(self, space: SpaceState, number: int) -> None:
        """Forget a stream that was made."""
        looks, space_id = self._desk.session.looks, space.space.id
        looks.derived[space_id] = [one for one in self.made_of(space_id) if one.schema.id != number]
        looks.chosen.pop(space_id, None)
        self._remember(space)
        if space_id in self._desk.spaces.panels:
            self._desk.spaces.show_stream(space_id)
        self._desk.updater.refresh()

    def _remember(self, space: SpaceState) -> None:
        settings = self._desk.settings
        remembered = settings.mapping(_SETTING)
        remembered.pop(space.space.name, None)
        remembered[space.space.name] = [
            [one.schema.name, one.formula, one.percent, *one.ends]
            for one in self.made_of(space.space.id)
        ]
        settings.store(_SETTING, dict(list(remembered.items())[-_MOST_REMEMBERED:]))

    def _restore(self) -> None:
        """Make what was made of spaces of these names before, as far as it can be made of these."""
        session = self._desk.session
        identity = "" if session.live.welcome is None else session.live.welcome.session
        for space_id, space in session.interpreter.spaces.items():
            if (identity, space_id) in self._restored:
                continue
            self._restored.add((identity, space_id))
            found = self._desk.settings.mapping(_SETTING).get(space.space.name)
            for one in found if isinstance(found, list) else []:
                match one:
                    case [
                        str(name),
                        str(formula),
                        bool(percent),
                        (int() | float() | None) as low,
                        (int() | float() | None) as high,
                    ]:
                        self._make_again(space, name, formula, percent, (low, high))

    def _make_again(
        self, space: SpaceState, name: str, formula: str, percent: bool, ends: Ends
    ) -> None:
        looks, space_id = self._desk.session.looks, space.space.id
        try:
            made = _made(space, name, formula, percent, ends, looks.next_number(space_id))
        except ExpressionError:
            return  # the space has not these streams any more; the formula stays remembered
        looks.derived.setdefault(space_id, []).append(made)


class FormulaDialog(QDialog):
    """Adds, changes and removes the formulas of one space.

    Args:
        formulas: The formulas.
        space: Of which space.
        theme: The theme of its colours.

    Attributes:
        listed: The formulas there are.
        name: The name of one.
        formula: The expression.
        percent: Whether it is reported as percent.
        least: The lower end of the scale; empty: determined by the current values.
        greatest: The upper end.
        said: The problem, or a description.
        add: Makes it.
        remove: Forgets the chosen one.
    """

    def __init__(
        self, formulas: Formulas, space: SpaceState, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._formulas, self._space, self._theme = formulas, space, theme
        self._number: int | None = None
        set_window_title(self, f"Formulas of {space.space.name}")
        self.listed = QListWidget()
        self.name = PlainLineEdit()
        self.name.setPlaceholderText("Fill")
        self.name.setMaxLength(_LONGEST_NAME)
        self.formula = ExpressionEdit(self._offer, tokens(theme))
        first = [stream.name for stream in space.space.streams][:2]
        self.formula.setPlaceholderText(
            " / ".join(f'"{name}"' if " " in name else name for name in first) or "1"
        )
        self.percent = CheckBox("a share, shown as percent")
        self.least, self.greatest = PlainLineEdit(), PlainLineEdit()
        for line, words in (
            (self.least, "the current minimum"),
            (self.greatest, "the current maximum"),
        ):
            line.setPlaceholderText(words)
            set_tip(
                line,
                "End of the colour scale; empty: the current extreme when the formula is added",
            )
            line.textChanged.connect(self._check)
        self.said = PlainLabel()
        self.said.setWordWrap(True)
        self.said.setMinimumHeight(2 * self.said.fontMetrics().height() + 4)
        self.said.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        self.add = PlainPushButton("Add and show")
        self.remove = PlainPushButton("Remove")
        self._build()
        self._fill()
        self.formula.textChanged.connect(self._check)
        self.name.textChanged.connect(self._check)
        self.listed.currentItemChanged.connect(self._chosen)
        self.add.clicked.connect(self._add)
        self.remove.clicked.connect(self._remove)
        self.formula.setFocus()
        self._check()

    def _build(self) -> None:
        self.add.setProperty("primary", "true")
        self.add.setDefault(True)
        self.add.setAutoDefault(True)
        self.remove.setAutoDefault(False)
        close = PlainPushButton("Close")
        close.setAutoDefault(False)
        close.clicked.connect(self.close)
        self.listed.setFixedHeight(5 * self.fontMetrics().height())
        for line in (self.name, self.formula, self.least, self.greatest):
            line.setMinimumHeight(line.fontMetrics().height() + 14)
        help_words = PlainLabel(
            "A formula gives one value per tile. It may use stream names, + − * /, comparisons, min(a, b), and values of the whole space, such as Used / max(Used)."
        )
        help_words.setProperty("dim", "true")
        help_words.setWordWrap(True)
        grid = QGridLayout()
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(8)
        for row, (caption, widget) in enumerate((("Name", self.name), ("Formula", self.formula))):
            label = PlainLabel(caption)
            label.setProperty("dim", "true")
            grid.addWidget(label, row, 0)
            grid.addWidget(widget, row, 1)
        scale = QHBoxLayout()
        scale.setSpacing(8)
        heading, to = PlainLabel("Scale"), PlainLabel("to")
        for dim in (heading, to):
            dim.setProperty("dim", "true")
        scale.addWidget(self.least)
        scale.addWidget(to)
        scale.addWidget(self.greatest)
        grid.addWidget(heading, 2, 0)
        grid.addLayout(scale, 2, 1)
        grid.addWidget(self.percent, 3, 1)
        grid.addWidget(self.said, 4, 1)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self.remove)
        buttons.addStretch(1)
        buttons.addWidget(close)
        buttons.addWidget(self.add)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(12)
        column.addWidget(help_words)
        column.addWidget(self.listed)
        column.addLayout(grid)
        column.addLayout(buttons)
        self.setMinimumWidth(520)

    def _offer(self, text: str, cursor: int) -> Completions:
        return completions(text, cursor, [self._space.space], scope=self._space.space.name)

    def _fill(self) -> None:
        self.listed.blockSignals(True)
        self.listed.clear()
        for one in self._formulas.made_of(self._space.space.id):
            item = PlainListItem(f"{one.schema.name}  =  {one.formula}")
            item.setData(Qt.ItemDataRole.UserRole, one.schema.id)
            self.listed.addItem(item)
            if one.schema.id == self._number:
                self.listed.setCurrentItem(item)
        self.listed.blockSignals(False)
        self.listed.setVisible(self.listed.count() > 0)
        self.remove.setVisible(self.listed.count() > 0)
        self.remove.setEnabled(self._number is not None)
        self.adjustSize()
        self.add.setText("Add and show" if self._number is None else "Change and show")

    def _chosen(self, item: PlainListItem | None) -> None:
        number = None if item is None else item.data(Qt.ItemDataRole.UserRole)
        made = self._formulas.made_of(self._space.space.id)
        found = next((one for one in made if one.schema.id == number), None)
        if found is not None:
            self._number = found.schema.id
            self.name.setText(found.schema.name)
            self.formula.setText(found.formula)
            self.percent.setChecked(found.percent)
            for line, end in zip((self.least, self.greatest), found.ends, strict=True):
                line.setText("" if end is None else f"{end:g}")
            self._fill()

    def _check(self) -> None:
        text = self.formula.text()
        wrong: ExpressionError | None = None
        if text.strip():
            try:
                checked(self.name.text() or "x", text, self._space)
            except ExpressionError as error:
                wrong = error
        said = "" if wrong is None else str(wrong)
        try:
            self._ends()
        except ValueError as error:
            said = said or str(error)
        self.formula.underline(None if wrong is None else wrong.offset)
        self._say(said, "error")
        self.add.setEnabled(bool(text.strip()) and not said)

    def _ends(self) -> Ends:
        """The ends of the scale, as they are written.

        Raises:
            ValueError: One is no number, or they are the wrong way round.
        """
        ends: list[float | None] = []
        for line in (self.least, self.greatest):
            words = line.text().strip()
            try:
                ends.append(float(words) if words else None)
            except ValueError:
                raise ValueError(
                    f"{words!r} is not a number: write an end of the scale such as 0 or 1.5"
                ) from None
        low, high = ends
        if any(end is not None and not isfinite(end) for end in ends) or (
            low is not None and high is not None and low >= high
        ):
            raise ValueError("the start of the scale must be smaller than its end")
        return low, high

    def _say(self, text: str, tone: str) -> None:
        self.said.setProperty("tone", tone)
        self.said.style().unpolish(self.said)
        self.said.style().polish(self.said)
        self.said.setText(text)

    def _add(self) -> None:
        text = self.formula.text().strip()
        try:
            made = self._formulas.add(
                self._space,
                self.name.text().strip() or text,
                text,
                percent=self.percent.isChecked(),
                ends=self._ends(),
                number=self._number,
            )
        except (ExpressionError, ValueError) as error:
            self._say(str(error), "error")
            return
        self._number = None
        for line in (self.name, self.formula, self.least, self.greatest):
            line.clear()
        self._fill()
        self._say(
            f"{made.schema.name} is now in the stream menu, the table and all stream lists.",
            "dim",
        )

    def _remove(self) -> None:
        if self._number is not None:
            self._formulas.remove(self._space, self._number)
            self._number = None
            self._fill()
