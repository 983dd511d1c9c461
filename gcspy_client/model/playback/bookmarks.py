"""Bookmarks and notes of one recording: kept in its sidecar, or in memory as long as there is no file.

Each change of a recording's bookmarks is written at once, to the current content of the file: two
windows on one recording do not overwrite each other's. Those of a live session are written when the
session is saved.

Knows the sidecar file; does not know widgets, or the events.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gcspy_protocol.errors import RecordingError
from gcspy_replay.file import (
    Bookmark,
    Sidecar,
    encode_sidecar,
    put_sidecar,
    read_sidecar,
    sidecar_path,
    write_sidecar,
)

__all__ = ["Bookmark", "Bookmarks"]

_LONGEST_TITLE = 200
"""Maximum length of text from this window; a sidecar file accepts longer ones."""


class Bookmarks:
    """A user's additions.

    Args:
        path: Path of the recording, or the folder of a ring; None: in memory.
        recording: The recording's id.

    Attributes:
        version: Increases with each change, so that a view knows when to redraw.

    Raises:
        RecordingError: The sidecar cannot be read, makes no sense, or is another recording's.
    """

    def __init__(self, path: Path | None = None, *, recording: bytes = b"") -> None:
        self.version = 0
        self._path = None if path is None else sidecar_path(path)
        self._recording = recording
        self._read_at = self._changed_at()
        self._added = self._now()

    def _changed_at(self) -> int:
        """When the sidecar file changed last, nanoseconds; 0: there is none."""
        try:
            return 0 if self._path is None else self._path.stat().st_mtime_ns
        except OSError:
            return 0

    def _now(self) -> Sidecar:
        """The current content: other windows may have written since."""
        if self._path is None:
            return getattr(self, "_added", Sidecar())
        found = read_sidecar(self._path) or Sidecar()
        if not found.belongs_to(self._recording):
            raise RecordingError(
                f"{self._path} was made for another recording ({found.recording.hex()}): rename or remove it to add bookmarks"
            )
        return replace(found, recording=self._recording or found.recording)

    def _change(self, change: Callable[[Sidecar], Sidecar]) -> None:
        added = change(self._now())
        if self._path is not None:
            write_sidecar(self._path, added)
        else:
            encode_sidecar(added, "the bookmarks")  # text that could not be saved is refused now
        self._added = added
        self.version += 1

    # -------------------------------------------------------------------- content

    @property
    def path(self) -> Path | None:
        """The sidecar file; None: in memory."""
        return self._path

    @property
    def all(self) -> tuple[Bookmark, ...]:
        """All bookmarks, in the order of their events."""
        return self._added.bookmarks

    @property
    def notes(self) -> str:
        """Notes on the recording as a whole."""
        return self._added.notes

    @property
    def layout(self) -> Mapping[str, Any]:
        """Stored layout of its window."""
        return self._added.layout

    def __len__(self) -> int:
        return len(self.all)

    def at(self, number: int) -> Bookmark | None:
        """The bookmark of an event; None if there is none."""
        place = bisect_left(self.all, number, key=_number_of)
        return (
            self.all[place] if place < len(self.all) and self.all[place].number == number else None
        )

    def next(self, number: int) -> Bookmark | None:
        """The first bookmark behind an event; None if there is none."""
        place = bisect_right(self.all, number, key=_number_of)
        return self.all[place] if place < len(self.all) else None

    def previous(self, number: int) -> Bookmark | None:
        """The last bookmark before an event; None if there is none."""
        place = bisect_left(self.all, number, key=_number_of)
        return self.all[place - 1] if place else None

    # ------------------------------------------------------------------ actions of users

    def refresh(self) -> bool:
        """Read changes of other windows.

        Returns:
            Whether there was anything.

        Raises:
            RecordingError: As in the constructor.
        """
        now = self._now()
        changed = now != self._added
        self._added = now
        self.version += changed
        return changed

    def follow_file(self) -> bool:
        """Read the sidecar again if it has changed; return whether there was anything.

        Raises:
            RecordingError: As in the constructor.
        """
        changed_at = self._changed_at()
        if changed_at == self._read_at:
            return False
        self._read_at = changed_at
        return self.refresh()

    def add(
        self,
        number: int,
        title: str = "",
        *,
        note: str = "",
        colour: tuple[int, int, int] | None = None,
    ) -> None:
        """Add a bookmark; one that the event has already is replaced.

        Raises:
            RecordingError: It cannot be written; nothing was changed.
        """
        mark = Bookmark(number=number, title=title, note=note, colour=colour)
        self._change(lambda now: replace(now, bookmarks=_with(now, mark)))

    def add_all(self, marks: Iterable[Bookmark]) -> None:
        """Add several bookmarks; an event that has one keeps it, and a title that is too long is cut.

        Raises:
            RecordingError: They cannot be written; nothing was changed.
        """
        cut = [replace(mark, title=mark.title[:_LONGEST_TITLE]) for mark in marks]

        def added(now: Sidecar) -> Sidecar:
            there = {mark.number for mark in now.bookmarks}
            return replace(
                now,
                bookmarks=tuple(
                    sorted(
                        [*now.bookmarks, *(one for one in cut if one.number not in there)],
                        key=_number_of,
                    )
                ),
            )

        self._change(added)

    def change(
        self,
        number: int,
        *,
        title: str | None = None,
        note: str | None = None,
        colour: tuple[int, int, int] | None = None,
    ) -> None:
        """Give a bookmark another title, note or colour; None leaves each as it is. One that is not there is not made.

        Raises:
            RecordingError: It cannot be written; nothing was changed.
        """

        def changed(now: Sidecar) -> Sidecar:
            mark = next((one for one in now.bookmarks if one.number == number), None)
            if mark is None:
                return now
            mark = replace(
                mark,
                title=mark.title if title is None else title,
                note=mark.note if note is None else note,
                colour=mark.colour if colour is None else colour,
            )
            return replace(now, bookmarks=_with(now, mark))

        self._change(changed)

    def rename(self, number: int, title: str) -> None:
        """Give a bookmark another title.

        Raises:
            RecordingError: It cannot be written; nothing was changed.
        """
        self.change(number, title=title)

    def remove(self, number: int) -> None:
        """Remove the bookmark of an event, if it has one.

        Raises:
            RecordingError: That cannot be written; nothing was changed.
        """
        self._change(
            lambda now: replace(
                now, bookmarks=tuple(m for m in now.bookmarks if m.number != number)
            )
        )

    def say(self, notes: str) -> None:
        """Replace the notes on the whole.

        Raises:
            RecordingError: They cannot be written; nothing was changed.
        """
        self._change(lambda now: replace(now, notes=notes))

    def arrange(self, layout: Mapping[str, Any]) -> None:
        """Remember how the window is arranged; plain JSON.

        Raises:
            RecordingError: It cannot be written; nothing was changed.
        """
        self._change(lambda now: replace(now, layout=dict(layout)))

    def clear(self) -> None:
        """Forget those in memory: another session begins. Those of a file are left alone."""
        if self._path is None:
            self._added = Sidecar()
            self.version += 1

    def forget_before(self, number: int) -> None:
        """Forget those in memory of events that are no longer kept."""
        if self._path is None and self.all and self.all[0].number < number:
            self._added = self._added.part(number, self.all[-1].number)
            self.version += 1

    def save(self, path: Path, recording: bytes, first: int, last: int) -> None:
        """Write those of a range beside a file that was saved; nothing where nothing was added.

        Args:
            path: Of the file.
            recording: Its id.
            first: Number of its first event.
            last: Of its last.

        Raises:
            RecordingError: They cannot be written.
        """
        put_sidecar(sidecar_path(path), replace(self._now().part(first, last), recording=recording))


def _number_of(mark: Bookmark) -> int:
    return mark.number


def _with(now: Sidecar, mark: Bookmark) -> tuple[Bookmark, ...]:
    others = [one for one in now.bookmarks if one.number != mark.number]
    return tuple(sorted([*others, mark], key=_number_of))
