"""`local_copy`: a temporary copy of a file at an address, for what reads a whole file anyway.

Knows ranges and temporary files; does not know formats.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gcspy_protocol.errors import RecordingError

from gcspy.storage.file_system import file_system_of
from gcspy.storage.remote_source import RemoteSource

__all__ = ["local_copy"]

_STEP: Final = 16 << 20


@contextmanager
def local_copy(address: str, progress: Callable[[int, int], None] | None = None) -> Iterator[Path]:
    """A copy of a file, removed when the block ends.

    Raises:
        RecordingError: It cannot be read, or there is no room for it.
        CommandError: A package is missing.
    """
    place = file_system_of(address)
    source = RemoteSource(place)
    with tempfile.TemporaryDirectory(prefix="gcspy-copy-") as folder:
        path = Path(folder) / (place.shown.rpartition("/")[2] or "copy")
        try:
            with path.open("wb") as file:
                for at in range(0, source.size(), _STEP):
                    source.prefetch([(at, min(at + _STEP, source.size()))])
                    file.write(source.read_at(at, _STEP))
                    source.close()
                    if progress is not None:
                        progress(at, source.size())
        except OSError as error:
            raise RecordingError(
                f"no copy of {place.shown} can be written to {folder}: {error.strerror or error}; TMPDIR names another folder"
            ) from error
        yield path
