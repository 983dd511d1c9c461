"""Converts object traces into recordings: a permanent file, or a temporary one for a playback that also answers questions.

Knows the traced driver, the writer and the player's questions; only `gcspy_objects` knows the
formats.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gcspy_protocol.errors import CommandError, GCspyError

from gcspy.recorder.in_process_recorder import record_server

if TYPE_CHECKING:
    from gcspy_drivers.traced import TracedOptions, TracedSession
    from gcspy_objects.heap import RebuiltHeap
    from gcspy_objects.trace import Trace
    from gcspy_protocol.details import DetailTable, Query
    from gcspy_replay.file import Store
    from gcspy_replay.player import Shown, TraceQueryService

__all__ = [
    "ARCHIVES",
    "TracedRecording",
    "named_trace",
    "names_trace",
    "opened_heap",
    "record_trace",
    "traced_recording",
]

ARCHIVES = (".tar", ".tar.xz", ".txz", ".tar.gz", ".tgz", ".tar.bz2", ".tar.zst")
"""Suffixes of archives that may contain the files of a trace."""

_MAGICS = bytes.fromhex("eeffc000"), b"\x89GCOT\r\n\x1a"
"""First bytes of files of traces: of AntTracks, and of ours."""

Progress = Callable[[str, int, int], None]
"""Called with the current step, its progress, and its total."""


def names_trace(path: Path | str) -> bool:
    """Whether a path is to be taken for an object trace: an archive, a trace's file, or a folder with one. It may still be unreadable."""
    path = Path(path)
    if path.is_dir():
        return not any(path.glob("*.gcspy")) and any(
            _begins_like_one(one) for one in sorted(path.iterdir())
        )
    return path.name.endswith(ARCHIVES) or _begins_like_one(path)


def named_trace(paths: Sequence[Path | str]) -> Path | None:
    """The trace that a user named; None: the paths are files of a recording.

    Raises:
        CommandError: A trace and another file.
    """
    traces = [Path(path) for path in paths if names_trace(path)]
    if traces and len(paths) > 1:
        raise CommandError(
            f"{traces[0]} is an object trace: name it alone; for a rotated trace, name its folder"
        )
    return traces[0] if traces else None


def _begins_like_one(path: Path) -> bool:
    with suppress(OSError):
        if path.is_file():  # opening a pipe would wait for its writer
            with path.open("rb") as file:
                return file.read(max(map(len, _MAGICS))).startswith(_MAGICS)
    return False


@contextmanager
def opened_heap(path: Path, progress: Progress | None = None) -> Iterator[RebuiltHeap]:
    """The rebuilt heap of a trace, read to its end; closed when the block ends.

    Raises:
        TraceError: There is none, or it cannot be read.
    """
    from gcspy.objects.kept_heap import kept_heap

    with kept_heap(path) as (heap, _):
        heap.index(
            None
            if progress is None
            else lambda done, total: progress("reading the trace", done, total)
        )
        yield heap


def record_trace(
    session: TracedSession, store: Store, progress: Progress | None = None, *, path: Path
) -> int:
    """Run a traced session through all its events, into a store.

    Args:
        session: Not run yet.
        store: Takes the recording.
        progress: Called while it runs.
        path: Of the trace: its date counts where the trace has none.

    Returns:
        How many events were written.

    Raises:
        RecordingError: They cannot be written.
        TraceError: The trace cannot be read.
    """
    return record_server(
        session.server,
        lambda: session.run(
            None
            if progress is None
            else lambda done, total: progress("rebuilding the heap", done, total)
        ),
        store,
        wall_offset_nanos=session.wall_offset_nanos or _dated(path, session),
    )


def _dated(path: Path, session: TracedSession) -> int:
    """Return when a trace began that does not say it, nanoseconds since 1970: its file was written to when it ended."""
    with suppress(OSError):
        if path.is_dir():
            path = max(
                (one for one in path.iterdir() if one.is_file()),
                key=lambda one: one.stat().st_size,
                default=path,
            )
        return path.stat().st_mtime_ns - session.length_nanos
    return 0


@dataclass(frozen=True, slots=True)
class TracedRecording:
    """A recording of a trace, for a playback.

    Attributes:
        path: File to write.
        query_service: Answers questions about it.
        notes: Messages about it, one line each.
    """

    path: Path
    query_service: TraceQueryService
    notes: tuple[str, ...]


_SHOWN_AT_ONCE_EVENTS = 300_000
"""Traces of ours with more events are shown while they are read."""
_SHOWN_AT_ONCE_BYTES = 4 << 20
"""So are files of other formats that are larger."""
_LOOK_SECS = 0.25
_LATELY_SECS = 30.0
"""A trace without an END is taken for one that is still written if it was written to since."""
_EVENTS = 256
_BYTES_OF_EVENT = 5
"""About what one takes in other formats."""
_LEAST_EVENTS = 1 << 16


def shown_while_read(path: Path) -> bool:
    """Whether a trace is to be shown while it is read: it is large, or still written."""
    from gcspy_objects.gctrace.reader import GCspyTrace
    from gcspy_objects.trace import is_gctrace

    if not is_gctrace(path):
        if path.name.endswith(ARCHIVES):  # unpacked when it is opened, which takes longest
            return False
        files = list(path.iterdir()) if path.is_dir() else [path]
        return sum(one.stat().st_size for one in files if one.is_file()) > _SHOWN_AT_ONCE_BYTES
    with GCspyTrace(path, growing=True) as trace:
        many = trace.stored_events > _SHOWN_AT_ONCE_EVENTS
        return many or _is_written(path, ended=trace.ended)


def _is_written(path: Path, *, ended: bool) -> bool:
    files = list(path.iterdir()) if path.is_dir() else [path]
    return not ended and time.time() - max(one.stat().st_mtime for one in files) < _LATELY_SECS


def _refreshed(trace: Trace) -> bool:
    """Look for what was added to a trace; return whether something was."""
    from gcspy_objects.gctrace.reader import GCspyTrace

    return isinstance(trace, GCspyTrace) and bool(trace.refresh())


@contextmanager
def recording_in_thread(path: Path, options: TracedOptions, file: Path) -> Iterator[TracedSession]:
    """A session of a trace that a thread records into a file while the block runs: as fast as it is read, and then as it grows.

    Raises:
        TraceError: The trace cannot be read.
    """
    from gcspy_drivers.traced import GrowingSession
    from gcspy_objects.gctrace.reader import GCspyTrace
    from gcspy_objects.heap import RebuiltHeap
    from gcspy_objects.trace import is_gctrace, open_trace
    from gcspy_replay.file import FileStore

    stop, begun = threading.Event(), threading.Event()
    failures: list[GCspyError] = []
    with ExitStack() as stack:
        ours = is_gctrace(path)
        trace = stack.enter_context(GCspyTrace(path, growing=True) if ours else open_trace(path))
        asked = stack.enter_context(open_trace(path))
        heap = stack.enter_context(RebuiltHeap(asked))
        session = GrowingSession(trace, heap, options, refresh=lambda: _refreshed(asked))

        def more() -> bool:
            begun.set()
            if _refreshed(trace):
                return True
            ended = not isinstance(trace, GCspyTrace) or trace.ended
            if stop.is_set() or not _is_written(path, ended=ended):
                return False
            stop.wait(_LOOK_SECS)
            return True

        def progress(_done: int, _total: int) -> None:
            begun.set()
            if stop.is_set():
                raise CommandError("stopped")

        def record() -> None:
            stored = (
                trace.stored_events
                if isinstance(trace, GCspyTrace)
                else trace.size_bytes // _BYTES_OF_EVENT
            )
            events = max(stored // _EVENTS, _LEAST_EVENTS)
            try:
                record_server(
                    session.server,
                    lambda: session.grow(events, more=more, on_progress=progress),
                    FileStore(file),
                    wall_offset_nanos=session.wall_offset_nanos or _dated(path, session),
                )
            except GCspyError as error:
                failures.append(error)
            finally:
                begun.set()

        thread = threading.Thread(target=record, name="gcspy trace")
        thread.start()
        try:
            begun.wait()
            if failures:
                raise failures[0]
            yield session
        finally:
            stop.set()
            thread.join()


def _identity(trace: Trace) -> bytes:
    """Return what no other trace has, 16 bytes; empty: its format has nothing like that."""
    from gcspy_objects.gctrace.reader import GCspyTrace

    if isinstance(trace, GCspyTrace):
        with suppress(ValueError):
            return bytes.fromhex(trace.header.get("run", ""))[:16]
    return b""


@contextmanager
def traced_recording(
    path: Path, options: TracedOptions, progress: Progress | None = None
) -> Iterator[TracedRecording]:
    """A recording of a trace in a temporary file, which is deleted when the block ends.

    Raises:
        TraceError: It is not a trace, or cannot be read.
        RecordingError: There is no room for the recording.
    """
    from gcspy_drivers.traced import TracedSession
    from gcspy_drivers.traced import TraceQueryService as TraceQueries
    from gcspy_protocol.details import HEAP_KINDS
    from gcspy_replay.file import FileStore

    from gcspy.objects.trace_bookmarks import TraceBookmarks
    from gcspy_server.api import HeapQuestion, HeapQuestionKind

    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gcspy-trace-"))
        file = Path(folder) / f"{path.name.split('.')[0] or 'trace'}.gcspy"
        session: TracedSession
        if shown_while_read(path):
            session = stack.enter_context(recording_in_thread(path, options, file))
        else:
            session = TracedSession(stack.enter_context(opened_heap(path, progress)), options)
            record_trace(session, FileStore(file), progress, path=path)
        bookmarks = TraceBookmarks(path, _identity(session.heap.trace), file, session.events)
        stack.enter_context(bookmarks.following())
        notes = (*session.notes, *filter(None, [bookmarks.note]))
        query_service = TraceQueries(session)
        stack.callback(query_service.close)

        def tell(query: Query, shown: Shown) -> DetailTable | None:
            if query.kind in HEAP_KINDS:
                address, extent_bytes = shown.extent or (None, 0)
                question = HeapQuestion(
                    kind=HeapQuestionKind(query.kind),
                    type_name=query.text,
                    address=address,
                    extent_bytes=extent_bytes,
                    most=query.most,
                )
                return query_service.investigate(question, shown.number)
            return query_service.tell(
                query.kind,
                query.text,
                query.most,
                number=shown.number,
                space=shown.space,
                tile=shown.tile,
                extent=shown.extent,
            )

        yield TracedRecording(file, tell, notes)
