"""`RemoteSource`: the bytes of a recording behind an address, read by ranges.

A request takes some 30 ms wherever the storage is, whatever its size below a megabyte: so a request asks for more than was wanted, and what
came is kept. The end of a file, which has its index, comes with the first requests. Whoever knows what it will read says so (`prefetch`):
if that lies close together it comes in few requests; if it is spread over a large file, such as the ends of all chunks, in exact ranges, many
at a time.

An object in a storage does not grow. One that is replaced while it is read fails the recording's checksums.

Knows ranges; does not know recordings.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Final

from gcspy_protocol.errors import RecordingError
from gcspy_replay.file.parts.source import ByteSource
from gcspy_replay.file.storage.store import SUFFIX

from gcspy.storage.byte_range import read_range
from gcspy.storage.file_system import StoragePlace, file_system_of, storage_error

__all__ = ["RemoteSource", "open_address"]

_BLOCK: Final = 64 << 10
_AHEAD_BLOCKS: Final = 4
_TAIL_BLOCKS: Final = 4
_KEPT_BLOCKS: Final = 1024
_MOST_PREFETCHED: Final = 48 << 20
_MOST_REQUEST: Final = 16 << 20
_GAP: Final = 32 << 10
_MOST_RANGE: Final = 1 << 20
_MOST_RANGES: Final = 512
_MOST_AT_ONCE: Final = 32
_ATTEMPTS: Final = 3
_PAUSE_SECS: Final = 0.2
_FINAL: Final = (FileNotFoundError, PermissionError, IsADirectoryError)
_MOST_FILES: Final = 100_000


def open_address(address: str) -> list[ByteSource]:
    """Open what is behind an address: a file, or the files of the recording in a folder if it ends in a slash.

    Raises:
        RecordingError: It cannot be read.
        CommandError: A package is missing.
    """
    place = file_system_of(address)
    if not address.endswith("/"):
        return [RemoteSource(place)]
    found = _asked(place, "cannot be listed", lambda: place.system.ls(place.path, detail=False))
    names = sorted(str(one) for one in found if str(one).endswith(SUFFIX))
    if not names or len(names) > _MOST_FILES:
        raise RecordingError(
            f"{place.shown} has {len(names):,} files of a recording; expected 1 to {_MOST_FILES:,} that end in {SUFFIX}"
        )
    return [
        RemoteSource(StoragePlace(place.system, one, place.shown + one.rpartition("/")[2]))
        for one in names
    ]


class RemoteSource(ByteSource):
    """A file in a storage.

    Args:
        place: Where.
        size: Its bytes; None: it is asked.

    Attributes:
        requests: How many requests for its bytes were made, its size included.

    Raises:
        RecordingError: It is not there, or cannot be read.
    """

    ahead_bytes = 0

    def __init__(self, place: StoragePlace, size: int | None = None) -> None:
        self._place = place
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._announced: list[tuple[int, int]] = []
        self._pieces: list[tuple[int, bytes]] = []
        self.requests = 0
        self._counting = threading.Lock()
        if size is None:
            self.requests += 1
            facts = _asked(place, "cannot be read", lambda: place.system.info(place.path))
            if facts.get("type") == "directory" or not isinstance(facts.get("size"), int):
                raise RecordingError(
                    f"{place.shown} has no size: it is a folder, or its server does not serve ranges; a folder's address ends in /"
                )
            size = facts["size"]
        self._size = size
        self._last = max(0, (size - 1) // _BLOCK)

    @property
    def name(self) -> str:
        """The address, without secrets."""
        return self._place.shown

    def size(self) -> int:
        """Bytes of the file."""
        return self._size

    def read_at(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes; fewer where it ends.

        Raises:
            RecordingError: They cannot be read.
        """
        end = min(offset + size, self._size)
        if offset >= end:
            return b""
        if self._announced and (piece := self._piece(offset, end)) is not None:
            return piece
        first, last = offset // _BLOCK, (end - 1) // _BLOCK
        self._need(first, last, ahead=_AHEAD_BLOCKS)
        data = b"".join(self._block(number) for number in range(first, last + 1))
        return data[offset - first * _BLOCK : end - first * _BLOCK]

    def prefetch(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Prepare for reading ranges.

        Those that span at most 48 MB are fetched now, with all between them, in few requests. Others are noted: the first
        one that is read is fetched together with hundreds of the next, each in a request of its own, many at a time.

        Args:
            ranges: Ascending.

        Raises:
            RecordingError: They cannot be read.
        """
        if not ranges:
            return
        if ranges[-1][1] - ranges[0][0] > _MOST_PREFETCHED:
            self._announced = _merged(ranges)
            return
        first, last = ranges[0][0] // _BLOCK, min((ranges[-1][1] - 1) // _BLOCK, self._last)
        missing = [number for number in range(first, last + 1) if number not in self._kept]
        runs = sum(after != before + 1 for before, after in pairwise(missing)) + 1
        if missing and runs > 1:
            self._fetch(missing[0], missing[-1])
        elif missing:
            self._need(missing[0], missing[-1], ahead=0)

    def _piece(self, offset: int, end: int) -> bytes | None:
        """Bytes in an announced range; None: it is in none."""
        at = bisect_right(self._announced, (offset, self._size)) - 1
        if at < 0 or end > self._announced[at][1]:
            return None
        place = bisect_right(self._pieces, offset, key=_start_of) - 1
        if place < 0 or end > self._pieces[place][0] + len(self._pieces[place][1]):
            self._pieces = self._fetch_ranges(at)
            place = 0
        start, data = self._pieces[place]
        return data[offset - start : end - start]

    def _fetch_ranges(self, at: int) -> list[tuple[int, bytes]]:
        """Fetch announced ranges from one on, up to 16 MB of them, many at a time."""
        chosen: list[tuple[int, int]] = []
        total = 0
        for start, end in self._announced[at : at + _MOST_RANGES]:
            total += end - start
            if chosen and total > _MOST_REQUEST:
                break
            chosen.append((start, min(end, self._size)))
        with ThreadPoolExecutor(_MOST_AT_ONCE, "gcspy-ranges") as pool:
            found = pool.map(lambda one: (one[0], self._range(*one)), chosen)
            return list(found)

    def again(self) -> RemoteSource:
        """Another source of the same bytes."""
        twin = RemoteSource(self._place, self._size)
        twin._kept = OrderedDict(self._kept)
        return twin

    def close(self) -> None:
        """Drop what was kept; the connections belong to the file system."""
        self._kept.clear()
        self._announced, self._pieces = [], []

    def _block(self, number: int) -> bytes:
        found = self._kept.get(number)
        if found is None:
            self._need(number, number, ahead=_AHEAD_BLOCKS)
            found = self._kept[number]
        self._kept.move_to_end(number)
        return found

    def _need(self, first: int, last: int, *, ahead: int) -> None:
        """Have blocks kept: each run of missing ones is a request, or several if it is very large."""
        last = min(last, self._last)
        number = first
        while number <= last:
            if number in self._kept:
                number += 1
                continue
            end = number
            while end < last and end + 1 not in self._kept:
                end += 1
            begin = number
            if end == last and ahead:
                end = min(end + ahead, self._last)
                # The end of a file has its index: whoever wants its last bytes wants those before them, too.
                before = _TAIL_BLOCKS if last == self._last else 0
                while before and begin and begin - 1 not in self._kept:
                    begin, before = begin - 1, before - 1
            self._fetch(begin, end)
            number = end + 1

    def _fetch(self, first: int, last: int) -> None:
        step = _MOST_REQUEST // _BLOCK
        for begin in range(first, last + 1, step):
            start = begin * _BLOCK
            end = min(min(last + 1, begin + step) * _BLOCK, self._size)
            data = self._range(start, end)
            for at in range(0, len(data), _BLOCK):
                self._kept[begin + at // _BLOCK] = data[at : at + _BLOCK]
        while len(self._kept) > max(_KEPT_BLOCKS, last + 1 - first):
            self._kept.popitem(last=False)

    def _range(self, start: int, end: int) -> bytes:
        with self._counting:
            self.requests += 1
        place = self._place
        data: bytes = _asked(
            place,
            f"cannot be read at byte {start:,}",
            lambda: read_range(place, start, end),
        )
        if len(data) != end - start:
            gave = "more" if len(data) > end - start else f"{len(data):,}"
            raise RecordingError(
                f"{place.shown} gave {gave} bytes from byte {start:,} on; expected {end - start:,}: it was replaced, or its server does not serve ranges"
            )
        return data


def _start_of(piece: tuple[int, bytes]) -> int:
    return piece[0]


def _merged(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges, with those that are close together as one; without those that are too large to be fetched with others."""
    found: list[tuple[int, int]] = []
    for start, end in ranges:
        if found and start - found[-1][1] <= _GAP and end - found[-1][0] <= _MOST_RANGE:
            found[-1] = found[-1][0], max(end, found[-1][1])
        elif end - start <= _MOST_RANGE:
            found.append((start, end))
    return found


def _asked(place: StoragePlace, what: str, ask: Callable[[], Any]) -> Any:
    """Ask a storage, again if it fails as networks do.

    Raises:
        RecordingError: It cannot be answered.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return ask()
        except _FINAL as error:
            raise storage_error(place.shown, what, error) from None
        except Exception as error:  # noqa: BLE001  # each file system has errors of its own
            if attempt + 1 == _ATTEMPTS:
                # Without its cause: a traceback would print the other library's text.
                raise storage_error(place.shown, what, error) from None
            time.sleep(_PAUSE_SECS * 4**attempt)
    raise AssertionError
