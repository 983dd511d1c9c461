"""`RemoteSource`: the bytes of a recording behind an address, read by ranges.

A request takes some 30 ms wherever the storage is, whatever its size below a megabyte: so a request asks for more than was wanted, and what
came is kept. The end of a file, which has its index, comes with the first requests. Whoever knows what it will read says so (`prefetch`).

An object in a storage does not grow. One that is replaced while it is read fails the recording's checksums.

Knows ranges; does not know recordings.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
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
        self.requests = 0
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
        first, last = offset // _BLOCK, (end - 1) // _BLOCK
        self._need(first, last, ahead=_AHEAD_BLOCKS)
        data = b"".join(self._block(number) for number in range(first, last + 1))
        return data[offset - first * _BLOCK : end - first * _BLOCK]

    def prefetch(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Fetch ranges, from the first byte to behind the last, in few requests, if they are not too large to be kept.

        Args:
            ranges: Ascending.

        Raises:
            RecordingError: They cannot be read.
        """
        if not ranges or ranges[-1][1] - ranges[0][0] > _MOST_PREFETCHED:
            return
        first, last = ranges[0][0] // _BLOCK, min((ranges[-1][1] - 1) // _BLOCK, self._last)
        missing = [number for number in range(first, last + 1) if number not in self._kept]
        runs = sum(after != before + 1 for before, after in pairwise(missing)) + 1
        if missing and runs > 1:
            self._fetch(missing[0], missing[-1])
        elif missing:
            self._need(missing[0], missing[-1], ahead=0)

    def again(self) -> RemoteSource:
        """Another source of the same bytes."""
        twin = RemoteSource(self._place, self._size)
        twin._kept = OrderedDict(self._kept)
        return twin

    def close(self) -> None:
        """Drop what was kept; the connections belong to the file system."""
        self._kept.clear()

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
