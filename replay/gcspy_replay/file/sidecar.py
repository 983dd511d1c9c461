"""The sidecar file: a user's additions to a recording, as a JSON file beside it (FORMAT.md section 8).

The recording itself is never changed for it. A sidecar file may come from a stranger, and may be
written by hand or by a later version: each field is checked, and unknown ones are kept unchanged.

Knows JSON and paths; does not know the events, or the display of bookmarks.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

from gcspy_protocol.errors import RecordingError

from gcspy_replay.file.parts.packed_source import open_source
from gcspy_replay.file.reader import Recording

__all__ = [
    "SIDECAR_SUFFIX",
    "Bookmark",
    "Sidecar",
    "carry_sidecar",
    "encode_sidecar",
    "put_sidecar",
    "read_sidecar",
    "sidecar_of",
    "sidecar_path",
    "write_sidecar",
]

SIDECAR_SUFFIX = ".json"
"""After the whole name of the recording: ``run.gcspy`` has ``run.gcspy.json``."""

SIDECAR_VERSION = 1

_OF_A_RING = "ring.gcspy" + SIDECAR_SUFFIX
"""Its name in the folder of a ring, whose first part is deleted one day."""

_MOST_BYTES = 8 << 20
"""Ten thousand bookmarks with a paragraph each."""

_MOST_BOOKMARKS = 10_000
_MOST_TITLE = 500
_MOST_TEXT = 100_000
_MOST_NUMBER = 2**62
_MOST_DEPTH = 50

_COLOUR = re.compile(r"#[0-9a-f]{6}", re.IGNORECASE)
_ID = re.compile(r"[0-9a-f]{32}", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bookmark:
    """An event that a user marked.

    Attributes:
        number: Number of the event; each has one bookmark at most.
        title: A few words.
        note: More of them.
        colour: Red, green and blue, 0 to 255; None: the theme's.
        others: Fields of a later version, kept unchanged.
    """

    number: int
    title: str = ""
    note: str = ""
    colour: tuple[int, int, int] | None = None
    others: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sidecar:
    """A user's additions to a recording.

    Attributes:
        recording: The id of the recording it was made for; empty: not given.
        bookmarks: In the order of their numbers.
        notes: On the recording as a whole.
        layout: The arrangement of its window; only the program that wrote it knows its meaning.
        others: Fields of a later version, kept unchanged.
    """

    recording: bytes = b""
    bookmarks: tuple[Bookmark, ...] = ()
    notes: str = ""
    layout: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Any] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether nothing was added."""
        return not (self.bookmarks or self.notes or self.layout or self.others)

    def belongs_to(self, recording: bytes) -> bool:
        """Whether it was made for the recording with this id, or has no id."""
        return not self.recording or self.recording == recording

    def part(self, first: int, last: int) -> Sidecar:
        """The part of it about a range of events."""
        return replace(
            self, bookmarks=tuple(mark for mark in self.bookmarks if first <= mark.number <= last)
        )


# --------------------------------------------------------------------------- where it is


def sidecar_path(path: Path) -> Path:
    """Path of the sidecar file of a recording: beside the file, or in the folder of a ring."""
    return path / _OF_A_RING if path.is_dir() else path.with_name(path.name + SIDECAR_SUFFIX)


def sidecar_of(paths: Iterable[Path]) -> Path:
    """Path of the sidecar file of a recording in several files: beside its first part.

    Raises:
        RecordingError: A file is no recording.
    """
    named = list(paths)
    if len(named) == 1:
        return sidecar_path(named[0])
    return sidecar_path(min(named, key=_part_number))


def _part_number(path: Path) -> int:
    if path.is_dir():
        return -1
    with Recording([open_source(path)]) as recording:
        return recording.facts.part


# ------------------------------------------------------------------------------ reading


def read_sidecar(path: Path) -> Sidecar | None:
    """Read a sidecar.

    Args:
        path: As `sidecar_path` gives it.

    Returns:
        Its content; None if it does not exist.

    Raises:
        RecordingError: It cannot be read, or is invalid.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror or error}") from error
    if len(data) > _MOST_BYTES:
        raise RecordingError(
            f"{path} has more than the {_MOST_BYTES} bytes allowed for bookmarks and notes: remove it"
        )
    return _Reader(str(path)).sidecar(data)


class _Reader:
    """Checks every field.

    Args:
        name: Name of the file, for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def _fail(self, what: str) -> NoReturn:
        raise RecordingError(
            f"{self._name}: {what}; correct the file, or remove it: the recording is whole without it"
        )

    def sidecar(self, data: bytes) -> Sidecar:
        try:
            found = json.loads(data, parse_constant=self._constant, parse_float=self._float)
        except (
            ValueError,
            RecursionError,
        ) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
            self._fail(f"not JSON ({error})")
        if not isinstance(found, dict):
            self._fail("not a JSON object")
        self._check_depth(found)
        others = dict(found)
        version = others.pop("version", None)
        if type(version) is not int or version < 1:
            self._fail(f"its version is {version!r}, not a number from 1")
        if version > SIDECAR_VERSION:
            self._fail(f"it has version {version}, this GCspy reads up to {SIDECAR_VERSION}")
        recording = self._text(others.pop("recording", ""), "recording", 32)
        if recording and not _ID.fullmatch(recording):
            self._fail(f"recording is {recording!r}, not 32 hexadecimal digits")
        layout = others.pop("layout", {})
        if not isinstance(layout, dict):
            self._fail("layout is not an object")
        return Sidecar(
            recording=bytes.fromhex(recording),
            bookmarks=self._bookmarks(others.pop("bookmarks", [])),
            notes=self._text(others.pop("notes", ""), "notes", _MOST_TEXT),
            layout=layout,
            others=others,
        )

    @staticmethod
    def _constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is not a number")

    @staticmethod
    def _float(digits: str) -> float:
        number = float(digits)
        if not isfinite(number):
            raise ValueError(f"{digits:.40} is too large for a number")
        return number

    def _check_depth(self, value: object, left: int = _MOST_DEPTH) -> None:
        """Check that fields that are kept unchanged can be written again by a recursive encoder."""
        if left < 0:
            self._fail(f"it is nested deeper than {_MOST_DEPTH}")
        inside = (
            value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        )
        for one in inside:
            self._check_depth(one, left - 1)

    def _text(self, value: object, name: str, most: int) -> str:
        if not isinstance(value, str):
            self._fail(f"{name} is not a text")
        if len(value) > most:
            self._fail(f"{name} has {len(value)} characters, more than {most}")
        try:
            value.encode()
        except UnicodeEncodeError:
            self._fail(f"{name} has an unpaired surrogate")
        return value

    def _bookmarks(self, value: object) -> tuple[Bookmark, ...]:
        if not isinstance(value, list):
            self._fail("bookmarks is not a list")
        if len(value) > _MOST_BOOKMARKS:
            self._fail(f"it has {len(value)} bookmarks, more than {_MOST_BOOKMARKS}")
        marks = sorted(
            (self._bookmark(one, i) for i, one in enumerate(value)), key=lambda mark: mark.number
        )
        for one, other in pairwise(marks):
            if one.number == other.number:
                self._fail(f"event {one.number} has two bookmarks")
        return tuple(marks)

    def _bookmark(self, value: object, index: int) -> Bookmark:
        where = f"bookmark {index + 1}"
        if not isinstance(value, dict):
            self._fail(f"{where} is not an object")
        others = dict(value)
        number, colour = others.pop("event", None), others.pop("colour", None)
        if type(number) is not int or not 1 <= number <= _MOST_NUMBER:
            self._fail(f"{where}: event is {number!r:.40}, not the number of an event")
        if colour is not None and not (isinstance(colour, str) and _COLOUR.fullmatch(colour)):
            self._fail(f"{where}: colour is {colour!r:.40}, not like #ff8800")
        return Bookmark(
            number=number,
            title=self._text(others.pop("title", ""), f"{where}: title", _MOST_TITLE),
            note=self._text(others.pop("note", ""), f"{where}: note", _MOST_TEXT),
            colour=None
            if colour is None
            else (int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:], 16)),
            others=others,
        )


# ------------------------------------------------------------------------------ writing


def encode_sidecar(sidecar: Sidecar, name: str = "the sidecar") -> bytes:
    """The bytes of a sidecar.

    Args:
        sidecar: The content.
        name: Name of the file, for messages.

    Raises:
        RecordingError: It would not be read again.
    """
    try:
        data = json.dumps(_as_json(sidecar), indent=1, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordingError(
            f"cannot write {name}: its layout is not plain JSON ({error})"
        ) from error
    if len(data) > _MOST_BYTES:
        raise RecordingError(
            f"bookmarks and notes of {len(data)} bytes, the limit is {_MOST_BYTES}: shorten some"
        )
    _Reader(name).sidecar(data)
    return data


def write_sidecar(path: Path, sidecar: Sidecar) -> None:
    """Write a sidecar file, completely or not at all; the old one stays until the new one is safe.

    Args:
        path: As `sidecar_path` gives it.
        sidecar: The content.

    Raises:
        RecordingError: It cannot be written, or would not be read again.
    """
    data = encode_sidecar(sidecar, str(path))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise RecordingError(f"cannot write {path}: {error.strerror or error}") from error


def put_sidecar(path: Path, sidecar: Sidecar) -> None:
    """Write the sidecar of a recording that is new under its name.

    One of another recording, which had that name before, is kept under its name and ``.old``.

    Args:
        path: As `sidecar_path` gives it.
        sidecar: The content; nothing is written if it is empty.

    Raises:
        RecordingError: It cannot be written.
    """
    encode_sidecar(sidecar, str(path))
    try:
        there = read_sidecar(path)
        strange = there is not None and there.recording != sidecar.recording
    except RecordingError:
        strange = path.exists()
    if strange:
        try:
            path.replace(path.with_name(path.name + ".old"))
        except OSError as error:
            raise RecordingError(
                f"cannot rename {path}, which belongs to another recording: {error.strerror}"
            ) from error
    if not sidecar.empty:
        write_sidecar(path, sidecar)


def _as_json(sidecar: Sidecar) -> dict[str, Any]:
    marks = []
    for mark in sidecar.bookmarks:
        told: dict[str, Any] = {"event": mark.number, "title": mark.title}
        if mark.note:
            told["note"] = mark.note
        if mark.colour is not None:
            told["colour"] = "#{:02x}{:02x}{:02x}".format(*mark.colour)
        marks.append({**told, **mark.others})
    return {
        "version": SIDECAR_VERSION,
        "recording": sidecar.recording.hex(),
        "bookmarks": marks,
        "notes": sidecar.notes,
        "layout": dict(sidecar.layout),
        **sidecar.others,
    }


def carry_sidecar(
    source: Path, target: Path, recording: bytes, first: int, last: int
) -> int | None:
    """Give a recording that was made of another what belongs to it of the other's sidecar.

    Args:
        source: The sidecar of the one.
        target: Path of the other's sidecar file.
        recording: The id of both.
        first: Number of the first event of the other.
        last: Last event of the target.

    Returns:
        How many bookmarks were carried; None when there is no sidecar, or it is another recording's.

    Raises:
        RecordingError: It cannot be read or written.
    """
    found = read_sidecar(source)
    if found is None or not found.belongs_to(recording):
        return None
    kept = replace(found.part(first, last), recording=recording)
    put_sidecar(target, kept)
    return len(kept.bookmarks)
