"""Traces that `gcspy trace` is writing now, found by the process that is traced.

A traced process has its segment mapped; beside the segment lies a note with the path of the trace. Loads nothing: `gcspy attach` asks
for each process.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["note_trace", "trace_of"]

_SEGMENT: Final = re.compile(r"(/(?:dev/shm|tmp)/gcspy-[0-9a-f]{16})/\d+[^/\s]*\.segment$")
_MOST_MAPS_BYTES: Final = 16 << 20
_MOST_PATH_BYTES: Final = 4096


def note_trace(segment: Path, trace: Path) -> None:
    """Write down which trace a segment's events go to.

    Raises:
        OSError: It cannot be written.
    """
    _note(segment.parent, segment.name).write_text(str(trace.absolute()), encoding="utf-8")


def trace_of(pid: int) -> Path | None:
    """Return the trace that is written of a process; None: it is not traced, or not by this user."""
    with suppress(OSError, UnicodeDecodeError):
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
            lines = maps.read(_MOST_MAPS_BYTES).splitlines()
        for line in lines:
            found = _SEGMENT.search(line)
            if found is None:
                continue
            note = _note(Path(found[1]), line.rpartition("/")[2])
            if note.stat().st_uid != Path(f"/proc/{pid}").stat().st_uid:
                return None
            with note.open(encoding="utf-8") as file:
                path = Path(file.read(_MOST_PATH_BYTES))
            return path if path.is_file() else None
    return None


def _note(folder: Path, segment: str) -> Path:
    return folder / f"{segment}.trace"
