"""A range of a recording as a file of its own, completely or not at all.

It is written under another name beside it first, so that a full disk, or a kill, leaves no half
file under the name, and an existing file stays until its replacement is complete.

Knows recordings and paths; does not know where a recording comes from.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from gcspy_protocol.errors import RecordingError
from gcspy_replay.file import FileStore, PartFacts, Recording, cut

__all__ = ["save_events"]


def save_events(
    recording: Recording,
    path: Path,
    first: int | None = None,
    last: int | None = None,
    *,
    facts: PartFacts | None = None,
    replace: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Write events to a file, with an index; they keep their numbers.

    Args:
        recording: The source.
        path: Of the file.
        first: Number of the first event; by default of the recording.
        last: Number of the last; by default of the recording.
        facts: Facts in the file.
        replace: Whether a file that is there may be replaced.
        progress: Called with the number of events done, and the total; an exception ends the
            saving, and no file is left.

    Returns:
        How many events were written.

    Raises:
        RecordingError: The range is invalid, or the file cannot be written, or exists already.
    """
    if not replace and path.exists():
        raise _there_already(path)
    if not path.parent.is_dir():
        raise RecordingError(f"there is no folder {path.parent} for {path.name}: create it first")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        written = cut(recording, FileStore(temporary), first, last, facts=facts, progress=progress)
        _into_place(temporary, path, replace=replace)
    finally:
        temporary.unlink(missing_ok=True)
    return written


def _there_already(path: Path) -> RecordingError:
    return RecordingError(
        f"{path} exists already: name another file, or confirm that it may be replaced"
    )


def _into_place(temporary: Path, path: Path, *, replace: bool) -> None:
    """Give a finished file its name.

    Raises:
        RecordingError: That cannot be done, or the name was taken meanwhile.
    """
    try:
        with temporary.open("rb+") as file:
            os.fsync(
                file.fileno()
            )  # so that a crash of the system does not leave the name without the bytes
        if replace:
            temporary.replace(path)
            return
        try:
            os.link(temporary, path)  # fails where there is a file, which a rename would replace
        except (AttributeError, NotImplementedError, PermissionError):
            if path.exists():  # a file system without links: best effort
                raise FileExistsError from None
            temporary.rename(path)
    except FileExistsError:
        raise _there_already(path) from None
    except OSError as error:
        raise RecordingError(f"cannot write {path}: {error.strerror or error}") from error
