"""Undoing changes of the view: another stream, other cells, another layout. Never actions on the target.

A part of the window that changes the view passes functions to do and to undo it:

    desk.undo.do("paint Used", partial(paint, 3), partial(paint, 1), merge_key="stream of Heap")

Successive changes with the same `merge_key` are merged: ten steps of zooming are undone at once. Pointing with the mouse and
selecting a tile are no changes of the view.

Knows doing and undoing; does not know the changes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from PySide6.QtCore import QObject
from PySide6.QtGui import QUndoCommand, QUndoStack

__all__ = ["ViewUndo"]

_MOST = 200
"""Maximum changes that can be undone."""

_Change = Callable[[], object]


class _Command(QUndoCommand):
    """One change, or several that count as one."""

    def __init__(self, text: str, again: _Change, back: _Change) -> None:
        super().__init__(text)
        self._again, self._back = again, back
        self._fresh = True

    def extend(self, again: _Change) -> None:
        """Another change follows that counts as this one."""
        self._again = again

    def redo(self) -> None:
        if self._fresh:
            self._fresh = False  # the stack does what it is given: it was done already
        else:
            self._again()

    def undo(self) -> None:
        self._back()


class ViewUndo(QObject):
    """The changes of the view, in their order."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._stack = QUndoStack(self)
        self._stack.setUndoLimit(_MOST)
        self._last: tuple[Hashable, _Command] | None = None
        self._busy = False

    def do(self, text: str, do: _Change, undo: _Change, merge_key: Hashable = None) -> None:
        """Do something that can be taken back.

        Args:
            text: Its name, for the menu: *Undo …*.
            do: Does it; called now, and when it is done again.
            undo: Takes it back.
            merge_key: Changes in a row with the same key count as one; None counts by itself.
        """
        if self._busy:
            do()
            return
        self._busy = True
        try:
            do()
        finally:
            self._busy = False
        self.done(text, do, undo, merge_key)

    def done(self, text: str, do: _Change, undo: _Change, merge_key: Hashable = None) -> None:
        """Add a change that was made already, so that it can be undone; for arguments see `do`.

        Changes made during another change, an undo or a redo are part of that and not added.
        """
        if self._busy:
            return
        if merge_key is not None and self._last is not None and self._last[0] == merge_key:
            self._last[1].extend(do)
            return
        command = _Command(text, do, undo)
        self._last = None if merge_key is None else (merge_key, command)
        self._stack.push(command)

    def undo(self) -> None:
        """Take the last change back."""
        self._move(self._stack.undo)

    def redo(self) -> None:
        """Do the change again that was taken back last."""
        self._move(self._stack.redo)

    def _move(self, step: _Change) -> None:
        self._last, self._busy = None, True
        try:
            step()
        finally:
            self._busy = False

    def clear(self) -> None:
        """Forget all changes: what they speak of is gone."""
        self._last = None
        self._stack.clear()

    @property
    def can_undo(self) -> bool:
        """Whether there is a change to take back."""
        return self._stack.canUndo()

    @property
    def can_redo(self) -> bool:
        """Whether there is a change to do again."""
        return self._stack.canRedo()

    @property
    def next_words(self) -> tuple[str, str]:
        """The names of the changes to undo and to redo; empty where there is none."""
        return self._stack.undoText(), self._stack.redoText()
