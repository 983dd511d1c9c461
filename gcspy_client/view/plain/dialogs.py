"""Questions to the user: for a text, a number, one of some, a file.

Qt's ready dialogs have a label that takes a text for HTML when it looks like some.

Knows Qt's dialogs; does not know why anything is asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QFileDialog, QInputDialog, QWidget

from gcspy_client.view.plain.text import shown, tip_words

__all__ = ["ask_file", "ask_files", "ask_new_file", "ask_number", "ask_one_of", "ask_text"]


def _dialog(parent: QWidget, title: str, question: str) -> QInputDialog:
    dialog = QInputDialog(parent)
    dialog.setWindowTitle(shown(title))
    dialog.setLabelText(tip_words(question))
    return dialog


def _exec(dialog: QInputDialog) -> bool:
    try:
        return bool(dialog.exec())
    finally:
        dialog.deleteLater()


def ask_text(parent: QWidget, title: str, question: str, text: str = "") -> str | None:
    """Ask for a text.

    Args:
        parent: The dialog stands over this.
        title: Of the dialog.
        question: The question.
        text: The initial text of the line.

    Returns:
        The entered text; None: cancelled.
    """
    dialog = _dialog(parent, title, question)
    dialog.setInputMode(QInputDialog.InputMode.TextInput)
    dialog.setTextValue(shown(text))
    return dialog.textValue() if _exec(dialog) else None


def ask_number(
    parent: QWidget, title: str, question: str, number: int, low: int, high: int
) -> int | None:
    """Ask for a whole number.

    Args:
        parent: The dialog stands over this.
        title: Of the dialog.
        question: The question.
        number: The initial number.
        low: The least that is taken.
        high: The greatest.

    Returns:
        The number; None: none was given.
    """
    dialog = _dialog(parent, title, question)
    dialog.setInputMode(QInputDialog.InputMode.IntInput)
    dialog.setIntRange(low, high)
    dialog.setIntValue(number)
    return dialog.intValue() if _exec(dialog) else None


def ask_one_of(
    parent: QWidget, title: str, question: str, choices: Sequence[str], chosen: int = 0
) -> int | None:
    """Ask for one of some.

    Args:
        parent: The dialog stands over this.
        title: Of the dialog.
        question: The question.
        choices: The choices.
        chosen: The number of the one that is chosen at first.

    Returns:
        The number of the chosen one; None: none was.
    """
    # The dialog returns the chosen text, not its number: two may be equal.
    words = [f"{number}   {shown(choice)}" for number, choice in enumerate(choices, 1)]
    unique = list(map(shown, choices))
    if len(set(unique)) == len(unique):
        words = unique
    dialog = _dialog(parent, title, question)
    dialog.setInputMode(QInputDialog.InputMode.TextInput)
    dialog.setOption(QInputDialog.InputDialogOption.UseListViewForComboBoxItems, False)
    dialog.setComboBoxEditable(False)
    dialog.setComboBoxItems(words)
    dialog.setTextValue(words[chosen] if words else "")
    return words.index(dialog.textValue()) if _exec(dialog) else None


def ask_file(parent: QWidget, title: str, kinds: str, place: str = "") -> str | None:
    """Ask for a file that is there.

    Args:
        parent: The dialog stands over this.
        title: Of the dialog.
        kinds: Which files are listed, as Qt writes it: ``Lessons (*.md)``.
        place: The initial folder.
    """
    name, _ = QFileDialog.getOpenFileName(parent, shown(title), place, kinds)
    return name or None


def ask_files(parent: QWidget, title: str, kinds: str, place: str = "") -> list[str]:
    """Ask for files that are there.

    Args:
        parent: The dialog stands over this.
        title: Of the dialog.
        kinds: Which files are listed.
        place: The initial folder.
    """
    names, _ = QFileDialog.getOpenFileNames(parent, shown(title), place, kinds)
    return list(names)


def ask_new_file(parent: QWidget, title: str, kinds: str, place: str = "") -> str | None:
    """Ask where to write.

    Args:
        parent: The dialog stands over this.
        title: Of the dialog.
        kinds: Which files are listed.
        place: The proposed path.
    """
    name, _ = QFileDialog.getSaveFileName(parent, shown(title), place, kinds)
    return name or None
