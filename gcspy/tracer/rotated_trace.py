"""`RotatedTrace`: the last part of an object trace, for programs that never end.

Two files are written at a time. The older one begins with what lived at a cut. When the newer one is long enough, it
takes the older one's place, and the next one begins: so the file always has at least the time that was asked
for, and at most twice as much.

Source: Lengauer, Bitto, Mössenböck, ICPE 2015, rotated traces: live objects are written again at a cut.

Knows files and times; does not know where events come from.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from gcspy_protocol.errors import TraceError

from gcspy.tracer.drain import EncodedEvents, LiveBlocks
from gcspy.tracer.trace_file import TraceFile

__all__ = ["RotatedTrace"]


class RotatedTrace:
    """The last part of a trace.

    Args:
        path: Of its file.
        keep_nanos: How much of the trace is kept at least.
        begin: Opens a file, and says whether it begins with what lives.
        live: Returns the blocks that live after the last event that was added, and its stamp.
    """

    def __init__(
        self,
        path: Path,
        keep_nanos: int,
        begin: Callable[[Path, bool], TraceFile],
        live: Callable[[], tuple[LiveBlocks, int]],
    ) -> None:
        self._path, self._keep_secs = path, keep_nanos / 1e9
        self._begin, self._live = begin, live
        self._older = begin(path, False)
        self._newer: TraceFile | None = None
        self._cut_at = time.monotonic()
        self._definitions: list[bytes] = []

    @property
    def error(self) -> TraceError | None:
        """Error at the file that is kept."""
        return self._older.error

    @property
    def file_bytes(self) -> int:
        """Bytes of the file."""
        return self._older.file_bytes

    def define(self, definitions: bytes) -> None:
        """Write definitions, before the events that need them."""
        if definitions:
            self._definitions.append(definitions)
            self._older.define(definitions)
            if self._newer is not None:
                self._newer.define(definitions)

    def add(self, events: EncodedEvents) -> None:
        """Write events."""
        self._older.add(events)
        if self._newer is not None:
            self._newer.add(events)
        if time.monotonic() - self._cut_at >= self._keep_secs:
            self._cut()

    def add_live(self, live: LiveBlocks, stamp: int) -> None:
        """Write blocks that lived when the trace began."""
        self._older.add_live(live, stamp)

    def finish(self, facts: Mapping[str, str]) -> None:
        """Write the END, and remove the newer file."""
        self._drop_newer()
        self._older.finish(facts)

    def close(self) -> None:
        """Close the files as they are."""
        self._drop_newer()
        self._older.close()

    def _cut(self) -> None:
        self._cut_at = time.monotonic()
        if self._newer is not None:
            self._older.close()
            self._newer.path.replace(self._path)
            self._older = self._newer
        live, stamp = self._live()
        self._newer = self._begin(self._path.with_name(f".{self._path.name}.next"), True)
        self._newer.define(b"".join(self._definitions))
        self._newer.add_live(live, stamp)

    def _drop_newer(self) -> None:
        if self._newer is not None:
            self._newer.close()
            self._newer.path.unlink(missing_ok=True)
            self._newer = None
