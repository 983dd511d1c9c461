"""`RemoteRing`: a recording that goes to a storage part by part, of which the latest are kept.

An object in a storage appears whole, when its upload has ended. So a part is written to a local folder first, where a kill leaves a readable
file, and is uploaded when it is full, in pieces if it is large. One thread uploads; the recorder never waits for it. A storage that does not
answer is asked again; meanwhile parts stay in the folder, the oldest go when they are more than what is to be kept, and that is an error at
the end.

Knows stores and uploads; does not know the content of parts.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any, Final, NamedTuple

from gcspy_protocol.errors import RecordingError
from gcspy_replay.file import SUFFIX, FileStore

from gcspy.storage.file_system import StoragePlace, file_system_of, storage_error

__all__ = ["RemoteRing"]

_RING_PARTS: Final = 8
_PIECE_BYTES: Final = 8 << 20
_MOST_SPOOLED: Final = 4 << 30
_PAUSES: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
_CLOSING_SECS: Final = 60.0


class _Part(NamedTuple):
    """A part that is complete.

    Attributes:
        name: Of its file.
        bytes: Of it.
        first_nanos: Time of its first event, on the recording's own clock.
    """

    name: str
    bytes: int
    first_nanos: int


class RemoteRing:
    """A `Store` of the parts in a folder of a storage.

    Args:
        address: Of the folder.
        keep_bytes: Maximum bytes in the storage, the part that is being written not counted; None: no limit.
        keep_nanos: Time that is kept; None: no limit.
        replace: Whether parts of another recording there may be removed.

    Raises:
        RecordingError: The folder cannot be listed, or has a recording.
    """

    def __init__(
        self,
        address: str,
        *,
        keep_bytes: int | None = None,
        keep_nanos: int | None = None,
        replace: bool = False,
    ) -> None:
        place = file_system_of(address if address.endswith("/") else address + "/")
        self._place = StoragePlace(place.system, place.path.rstrip("/"), place.shown.rstrip("/"))
        self._keep_bytes, self._keep_nanos = keep_bytes, keep_nanos
        for name in self._there():
            if not replace:
                raise RecordingError(
                    f"{self._place.shown} already contains a recording: name another folder, or remove it with --force"
                )
            self._remove(name)
        self._folder = Path(tempfile.mkdtemp(prefix="gcspy-upload-"))
        self._part: FileStore | None = None
        self._name = ""
        self._bytes = 0
        self._time_nanos: int | None = None
        self._run_nanos = self._part_nanos = self._first_nanos = 0
        self._kept: deque[_Part] = deque()
        self._waiting: deque[_Part] = deque()
        self._lost = 0
        self._changed = threading.Condition()
        self._ending = False
        self._error: RecordingError | None = None
        self._thread = threading.Thread(target=self._run, name="gcspy-upload", daemon=True)
        self._thread.start()

    @property
    def kept(self) -> dict[str, int]:
        """Bytes of each part in the storage, by its address."""
        return {f"{self._place.shown}/{one.name}": one.bytes for one in tuple(self._kept)}

    @property
    def part_nanos(self) -> int | None:
        """How long a part should last; None: that does not matter."""
        return None if self._keep_nanos is None else self._keep_nanos // _RING_PARTS

    def begin(self, part: int) -> None:
        """Create the next part in the local folder."""
        self._name = f"{part:06d}{SUFFIX}"
        self._part = FileStore(self._folder / self._name)
        self._bytes, self._part_nanos, self._first_nanos = 0, 0, self._run_nanos

    def append(self, data: bytes, *, time_nanos: int) -> None:
        """Write to the part."""
        assert self._part is not None, "begin comes first"
        moved = 0 if self._time_nanos is None else abs(time_nanos - self._time_nanos)
        self._run_nanos += moved
        self._part_nanos += moved if self._bytes else 0
        self._time_nanos = time_nanos
        self._part.append(data, time_nanos=time_nanos)
        self._bytes += len(data)

    def is_full(self, *, part_bytes: int) -> bool:
        """When the part has an eighth of what is to be kept."""
        if self._keep_bytes is not None and part_bytes * _RING_PARTS >= self._keep_bytes:
            return True
        return self._keep_nanos is not None and self._part_nanos * _RING_PARTS >= self._keep_nanos

    def end(self) -> None:
        """Give the part to the thread that uploads."""
        if self._part is None:
            return
        self._part.end()
        self._part.close()
        self._part = None
        with self._changed:
            self._waiting.append(_Part(self._name, self._bytes, self._first_nanos))
            while len(self._waiting) > 1 and (
                self._is_old(self._waiting) or _bytes_of(self._waiting) > _MOST_SPOOLED
            ):
                # One that would not be kept any longer is not missed.
                self._lost += not self._is_old(self._waiting)
                gone = self._waiting.popleft()
                (self._folder / gone.name).unlink(missing_ok=True)
            self._changed.notify_all()

    def close(self) -> None:
        """Upload what is left.

        Raises:
            RecordingError: Parts were lost, or are left in the local folder.
        """
        self.end()
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        self._thread.join(_CLOSING_SECS)
        if self._waiting or self._thread.is_alive():
            raise RecordingError(
                f"{len(self._waiting)} parts could not be uploaded and are in {self._folder}: {self._error or self._place.shown + ' does not answer in time'}"
            )
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._lost:
            raise RecordingError(
                f"{self._lost} parts were lost while {self._place.shown} did not answer: {self._error}"
            )

    # The thread

    def _run(self) -> None:
        failures = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ending)
                if not self._waiting:
                    return
                part = self._waiting[0]
            try:
                uploaded = self._upload(part)
            except RecordingError as error:
                self._error = error
                failures += 1
                if self._ending and failures >= len(_PAUSES):
                    return
                time.sleep(_PAUSES[min(failures, len(_PAUSES)) - 1])
                continue
            failures = 0
            with self._changed:
                if self._waiting and self._waiting[0] == part:
                    self._waiting.popleft()
            if uploaded:
                self._kept.append(part)
            (self._folder / part.name).unlink(missing_ok=True)
            self._drop()

    def _upload(self, part: _Part) -> bool:
        """Upload a part; returns False if it was given up meanwhile."""
        place = self._place
        options: dict[str, Any] = {"chunksize": _PIECE_BYTES} if _is_s3(place) else {}
        try:
            place.system.put_file(
                str(self._folder / part.name), f"{place.path}/{part.name}", **options
            )
        except FileNotFoundError:
            return False
        except Exception as error:  # noqa: BLE001  # each file system has errors of its own
            raise storage_error(place.shown, f"does not take {part.name}", error) from None
        return True

    def _drop(self) -> None:
        """Remove the oldest parts in the storage that are not to be kept any longer."""
        while len(self._kept) > 1 and self._is_old(self._kept):
            try:
                self._remove(self._kept[0].name)
            except RecordingError as error:
                self._error = error  # tried again with the next part
                return
            self._kept.popleft()

    def _is_old(self, parts: deque[_Part]) -> bool:
        """Return whether the first of some parts need not be kept, for the others are enough."""
        if self._keep_bytes is not None and _bytes_of(parts) > self._keep_bytes:
            return True
        keep = self._keep_nanos
        return keep is not None and parts[1].first_nanos <= self._run_nanos - keep

    def _remove(self, name: str) -> None:
        place = self._place
        try:
            place.system.rm_file(f"{place.path}/{name}")
        except FileNotFoundError:
            return
        except Exception as error:  # noqa: BLE001  # each file system has errors of its own
            raise storage_error(place.shown, f"does not remove {name}", error) from None

    def _there(self) -> list[str]:
        place = self._place
        try:
            found = place.system.ls(place.path, detail=False)
        except FileNotFoundError:
            return []
        except Exception as error:  # noqa: BLE001  # each file system has errors of its own
            raise storage_error(place.shown, "cannot be listed", error) from None
        names = [str(one).rpartition("/")[2] for one in found]
        return sorted(name for name in names if name.endswith(SUFFIX))


def _bytes_of(parts: deque[_Part]) -> int:
    return sum(one.bytes for one in parts)


def _is_s3(place: StoragePlace) -> bool:
    protocol = place.system.protocol
    return "s3" in ((protocol,) if isinstance(protocol, str) else tuple(protocol))
