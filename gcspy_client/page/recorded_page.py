"""A recording as one HTML file: its events are the wire, packed in chunks that each begin with a keyframe.

A recording that is too large for a page is thinned: of each kind of event every n-th stays, the events of a lesson's steps and the ends stay,
and each event says how many before it were left out. Values are never changed.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
from gcspy_protocol.errors import CommandError
from gcspy_protocol.frames.transcoding import without_zstd
from gcspy_protocol.model import Space
from gcspy_replay.file import Recording
from gcspy_replay.playback.difference import Sender, Wanted
from gcspy_replay.playback.playback import RecordingPlayback
from numpy.typing import NDArray

from gcspy_client.lessons.lesson import Lesson
from gcspy_client.lessons.lesson_translation import translated_lesson
from gcspy_client.page.document import make_document, words_of_page
from gcspy_client.page.lesson_texts import texts_of_lesson
from gcspy_client.translation import current_language

__all__ = ["MOST_PAGE_BYTES", "PageSelection", "RecordedPage", "page_of_recording"]

MOST_PAGE_BYTES: Final = 5_000_000
"""Size of a file that mail and chat accept."""

_CHUNK_EVENTS: Final = 64
_CHUNK_BYTES: Final = 4 << 20
"""Bytes of a chunk before it is packed: a browser that goes to an event unpacks one chunk."""

_MOST_PLACED: Final = 10_000
_PACKED_LEVEL: Final = 9


@dataclass(frozen=True, kw_only=True, slots=True)
class PageSelection:
    """The part of a recording that is in the page.

    Attributes:
        first: Number of the first event; None: of the recording.
        last: Number of the last event; None: of the recording.
        space: Name of the only space; None: all.
        stream: Name of the only stream of each space; None: all.
        theme: Theme of the page; empty: that of the browser.
    """

    first: int | None = None
    last: int | None = None
    space: str | None = None
    stream: str | None = None
    theme: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether nothing of the recording is left out."""
        return (self.first, self.last, self.space, self.stream) == (None,) * 4


@dataclass(frozen=True, slots=True)
class RecordedPage:
    """A page.

    Attributes:
        data: The file.
        events: Events in it.
        left_out: Events of the selection that were left out.
    """

    data: bytes
    events: int
    left_out: int


class _TooLarge(Exception):
    """The events do not fit; how many did."""

    def __init__(self, done: int) -> None:
        super().__init__(done)
        self.done = done


def page_of_recording(
    recording: Recording,
    *,
    title: str,
    selection: PageSelection | None = None,
    lesson: Lesson | None = None,
    reached: Sequence[int] = (),
    most_bytes: int = MOST_PAGE_BYTES,
    progress: Callable[[int, int], None] | None = None,
) -> RecordedPage:
    """Make the page of a recording.

    Args:
        recording: The recording.
        title: Its title.
        selection: What of it.
        lesson: The lesson that it is of, or None.
        reached: For each step of the lesson the number of its event.
        most_bytes: Size that the file may have.
        progress: Called with the number of events done, and the total.

    Raises:
        CommandError: One event alone is too large, or a space or stream does not exist.
        RecordingError: The range is invalid, or the recording is damaged in it.
    """
    maker = _PageMaker(
        recording, title, selection or PageSelection(), lesson, tuple(reached), most_bytes, progress
    )
    return maker.make()


def _thinned(rows: NDArray[Any], stride: int, fixed: Iterable[int]) -> NDArray[Any]:
    """Every n-th event of each kind, and the fixed ones."""
    if stride == 1:
        return rows
    stays = np.isin(rows["number"], np.array(sorted(set(fixed)), dtype=np.uint64))
    for kind in np.unique(rows["event"]):
        places = np.flatnonzero(rows["event"] == kind)
        stays[places[stride - 1 :: stride]] = True
    thinned: NDArray[Any] = rows[stays]
    return thinned


@dataclass(frozen=True, slots=True)
class _PageMaker:
    """Makes one page; the fields are the arguments of `page_of_recording`."""

    recording: Recording
    title: str
    selection: PageSelection
    lesson: Lesson | None
    reached: tuple[int, ...]
    most_bytes: int
    progress: Callable[[int, int], None] | None

    def make(self) -> RecordedPage:
        """The page with as many events as it may have."""
        chosen, recording = self.selection, self.recording
        first, last = recording.range_of(chosen.first, chosen.last)
        rows = recording.events
        rows = rows[(rows["number"] >= first) & (rows["number"] <= last)]
        wants = _wanted(recording, chosen, first, last)
        fixed = {first, last, *self.reached}
        stride = 1
        while True:
            kept = _thinned(rows, stride, fixed)
            try:
                return self._page(rows, kept, wants)
            except _TooLarge as error:
                if len(kept) <= len(fixed):
                    raise CommandError(
                        f"{len(kept)} events of this recording are more than the {self.most_bytes:,} bytes of a page: "
                        "choose a part with --first, --last, --space or --stream"
                    ) from None
                stride = max(stride + 1, int(stride * len(kept) / max(1, error.done)))

    def _page(self, rows: NDArray[Any], kept: NDArray[Any], wants: Wanted | None) -> RecordedPage:
        chunks = self._packed(kept, wants)
        places = {int(number): place for place, number in enumerate(kept["number"])}
        left_out = len(rows) - len(kept)
        lesson = self.lesson
        kinds = self.recording.welcome.events
        facts = {
            "live": False,
            "title": self.title,
            "subtitle": _subtitle(self.recording, kept, left_out),
            "theme": self.selection.theme,
            "language": current_language(),
            "words": words_of_page((current_language(),)),
            "kinds": [{"name": kind.name, "about": kind.description} for kind in kinds],
            "total": int(self.recording.last),
            "shown": len(kept) - 1 if lesson is None else 0,
            "start": str(int(kept["time_nanos"][0])),
            "events": _columns(rows, kept),
            "chunks": [(first, len(data)) for first, data in chunks],
            "lesson": None
            if lesson is None
            else texts_of_lesson(
                translated_lesson(lesson), [places[number] for number in self.reached]
            ),
        }
        events = base64.b64encode(b"".join(data for _, data in chunks)).decode()
        data = make_document(facts, events)
        if len(data) > self.most_bytes:
            raise _TooLarge(max(1, len(kept) * self.most_bytes // len(data) - 1))
        return RecordedPage(data, len(kept), left_out)

    def _packed(self, kept: NDArray[Any], wants: Wanted | None) -> list[tuple[int, bytes]]:
        """The chunks: the place of the first event of each, and its packed bytes."""
        playback = RecordingPlayback(self.recording, running=False)
        sender = Sender()
        chunks: list[tuple[int, bytes]] = []
        parts: list[bytes] = []
        first = total = 0
        for place, number in enumerate(kept["number"].tolist()):
            move = playback.go(number, 0)
            if not parts:
                first, sender = place, Sender()
                move = replace(move, had=None, steps=())
            transition = sender.passage(move)
            parts.append(without_zstd(transition.schema + transition.event_bytes(wants)))
            full = len(parts) >= _CHUNK_EVENTS or sum(map(len, parts)) > _CHUNK_BYTES
            if full or place == len(kept) - 1:
                data = zlib.compress(b"".join(parts), _PACKED_LEVEL)
                parts.clear()
                chunks.append((first, data))
                total += len(data)
                if total * 4 // 3 > self.most_bytes:
                    raise _TooLarge(max(1, place * 9 // 10))
            if self.progress is not None:
                self.progress(place + 1, len(kept))
        return chunks


def _wanted(recording: Recording, chosen: PageSelection, first: int, last: int) -> Wanted | None:
    """The selection of spaces and streams, by the names that they have anywhere in the range."""
    if chosen.space is None and chosen.stream is None:
        return None
    spaces: dict[int, Space] = {}
    for number in {first, last}:
        spaces |= {state.space.id: state.space for state in recording.seek(number).spaces.values()}

    def wants(space: int, stream: int | None) -> bool:
        schema = spaces.get(space)
        if schema is None or chosen.space not in (None, schema.name):
            return False
        if stream is None or chosen.stream is None:
            return True
        needed = {one.id for one in schema.streams if one.name == chosen.stream}
        needed |= {
            one.max_stream
            for one in schema.streams
            if one.id in needed and one.max_stream is not None
        }
        return stream in needed

    if not any(wants(one.id, stream.id) for one in spaces.values() for stream in one.streams):
        raise CommandError("no space or stream matched: gcspy info lists them")
    return wants


def _columns(rows: NDArray[Any], kept: NDArray[Any]) -> dict[str, list[int]]:
    """The table of events, by column; times as differences, and columns of zeros left out."""
    places = np.searchsorted(rows["number"], kept["number"])
    missed = (
        np.add.reduceat(rows["missed"], np.concatenate(([0], places[:-1] + 1)))
        if len(rows)
        else rows["missed"]
    )
    times = kept["time_nanos"].astype(np.int64)
    return {
        "number": kept["number"].tolist(),
        "time": np.diff(times, prepend=times[:1]).tolist(),
        "kind": kept["event"].tolist(),
        "occurrence": kept["occurrence"].tolist(),
        "gathered": kept["gather_nanos"].tolist(),
        "held": kept["held_nanos"].tolist(),
        "missed": missed.tolist() if missed.any() else [],
        "left": np.diff(places, prepend=-1).__sub__(1).tolist() if len(kept) < len(rows) else [],
    }


def _subtitle(recording: Recording, kept: NDArray[Any], left_out: int) -> str:
    """The recorded program, the time, and how much of the recording is in the page."""
    welcome = recording.welcome
    words = [welcome.server] if welcome.server else []
    started = welcome.wall_offset_nanos + int(kept["time_nanos"][0])
    if welcome.wall_offset_nanos:
        words.append(datetime.fromtimestamp(started / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC"))
    mode = welcome.target.get("recorded mode", welcome.mode.value)
    words.append(f"recorded, {mode}")
    if left_out:
        words.append(
            f"{len(kept):,} of {len(kept) + left_out:,} events are in this page; the others were left out, evenly by kind"
        )
    return " · ".join(words)
