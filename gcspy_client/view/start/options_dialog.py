"""The options of a driver, chosen before it attaches: a form made from the driver's declarations.

Knows the options of one process; does not know their effect. The process that attaches refuses
invalid values.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QDialog, QDialogButtonBox, QGridLayout, QVBoxLayout, QWidget

from gcspy_client.model.shell.processes import OfferedOption
from gcspy_client.view.plain.text import set_tip, set_window_title
from gcspy_client.view.plain.widgets import PlainLabel, PlainLineEdit
from gcspy_client.view.widgets.chooser import Chooser

__all__ = ["OptionsDialog"]

_NONE = "(none)"


class OptionsDialog(QDialog):
    """Asks for the values of options.

    Args:
        pid: The process.
        options: The options of the drivers.
    """

    def __init__(
        self, pid: int, options: Sequence[OfferedOption], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        set_window_title(self, f"Options for process {pid}")
        self.setMinimumWidth(480)
        self._options = tuple(options)
        self.fields: list[Chooser | PlainLineEdit] = [_field(one) for one in self._options]
        form = QGridLayout()
        form.setSpacing(9)
        for row, (option, field) in enumerate(zip(self._options, self.fields, strict=True)):
            set_tip(field, f"{option.about} {option.bounds}")
            form.addWidget(PlainLabel(option.name), 2 * row, 0)
            form.addWidget(field, 2 * row, 1)
            about = PlainLabel(option.about)
            about.setProperty("dim", "true")
            about.setWordWrap(True)
            form.addWidget(about, 2 * row + 1, 1)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        attach = buttons.addButton("Attach", QDialogButtonBox.ButtonRole.AcceptRole)
        attach.setProperty("primary", "true")
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 16, 18, 14)
        column.setSpacing(12)
        column.addLayout(form)
        column.addWidget(buttons)

    def values(self) -> tuple[str, ...]:
        """Return the choices that differ from the defaults: ``DRIVER.NAME=VALUE``."""
        chosen = []
        for option, field in zip(self._options, self.fields, strict=True):
            text = str(field.currentData()) if isinstance(field, Chooser) else field.text().strip()
            if text != option.default:
                chosen.append(f"{option.driver}.{option.name}={text}")
        return tuple(chosen)


def _field(option: OfferedOption) -> Chooser | PlainLineEdit:
    if not option.choices:
        return PlainLineEdit(option.default)
    field = Chooser()
    for choice in option.choices:
        field.add(choice or _NONE, choice)
    if option.default in option.choices:
        field.setCurrentIndex(option.choices.index(option.default))
    return field
