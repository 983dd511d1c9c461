"""Stored traces of the original GCspy: converted to recordings, and written from recordings.

Knows the driver of the original, the writer of recordings, and the translation of a session;
`gcspy_original` knows the bytes.
"""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gcspy_protocol.errors import CommandError, RecordingError, RemoteProtocolError

if TYPE_CHECKING:
    from gcspy_drivers.original.stored_session import StoredSession
    from gcspy_original.wire import Connection
    from gcspy_replay.file import Recording, Store

__all__ = [
    "ConvertedOriginal",
    "named_original",
    "names_original",
    "original_recording",
    "record_original",
    "write_original",
]

Progress = Callable[[str, int, int], None]
"""Called with the current step, its progress, and its total."""


def names_original(path: Path | str) -> bool:
    """Whether a file begins like a stored trace of the original; it may still be unreadable."""
    # numpy is loaded only for such a file: gcspy tells most arguments apart without it
    from gcspy_original.wire.trace_file import is_stored_trace

    return is_stored_trace(Path(path))


def named_original(paths: Sequence[Path | str]) -> Path | None:
    """The stored trace that a user named; None: the paths are something else.

    Raises:
        CommandError: A trace and another file.
    """
    traces = [Path(path) for path in paths if names_original(path)]
    if traces and len(paths) > 1:
        raise CommandError(f"{traces[0]} is a trace of GCspy 1.0: name it alone")
    return traces[0] if traces else None


@dataclass(frozen=True, slots=True)
class ConvertedOriginal:
    """A stored trace that was converted.

    Attributes:
        events: How many events it has.
        ended: Why the rest could not be read; None: it was read to its end.
    """

    events: int
    ended: RecordingError | None

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages for the user, one line each."""
        return () if self.ended is None else (f"read as far as it goes: {self.ended}",)


def record_original(
    path: Path, make_store: Callable[[], Store], progress: Progress | None = None
) -> ConvertedOriginal:
    """Convert a stored trace to a recording; what comes before damage is converted.

    Args:
        path: The trace.
        make_store: Makes what takes the recording, once the trace is known to be one.
        progress: See `Progress`.

    Raises:
        RecordingError: Not even the description of its spaces can be read, or the recording cannot be written.
    """
    from gcspy_drivers.original.stored_session import StoredSession
    from gcspy_original.wire import Connection, Side
    from gcspy_original.wire.trace_file import StoredTrace

    from gcspy.recorder.in_process_recorder import record_server

    trace, connection = StoredTrace(path), Connection(Side.SERVER)
    chunks = trace.chunks()
    size = max(1, trace.size)
    try:
        _read_description(connection, chunks)
    except RemoteProtocolError as error:
        raise RecordingError(f"{path}: {error}") from error
    session = StoredSession(connection)
    ended: list[RecordingError] = []

    def run() -> None:
        try:
            _take_all(session, connection)
            for data, place in chunks:
                connection.receive_data(data)
                _take_all(session, connection)
                if progress is not None:
                    progress("reading the trace", place, size)
            connection.receive_eof()
        except RemoteProtocolError as error:
            ended.append(RecordingError(f"{path}: {error}"))
        except RecordingError as error:
            ended.append(error)

    events = record_server(session.server, run, make_store())
    return ConvertedOriginal(events, ended[0] if ended else None)


def _read_description(connection: Connection, chunks: Iterator[tuple[bytes, int]]) -> None:
    """Read up to the last space of the description; messages behind it are left for later.

    Raises:
        RemoteProtocolError: It is wrong, or incomplete.
    """
    for data, _ in chunks:
        connection.receive_data(data)
        waiting = connection.messages()
        while not connection.described and next(waiting, None) is not None:
            pass
        if connection.described:
            return
    connection.receive_eof()


def _take_all(session: StoredSession, connection: Connection) -> None:
    for message in connection.messages():
        session.take(message)


@contextmanager
def original_recording(
    path: Path, progress: Progress | None = None
) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """A recording of a stored trace in a temporary file, which is deleted when the block ends; and notes for the user.

    Raises:
        RecordingError: It cannot be read, or there is no room for the recording.
    """
    from gcspy_replay.file import FileStore

    with tempfile.TemporaryDirectory(prefix="gcspy-trace-") as folder:
        file = Path(folder) / f"{path.name.split('.')[0] or 'trace'}.gcspy"
        converted = record_original(path, lambda: FileStore(file), progress)
        yield file, converted.notes


def write_original(
    recording: Recording,
    path: Path,
    *,
    first: int | None = None,
    last: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[int, tuple[str, ...]]:
    """Write a recording as a stored trace: what a server of the original would have sent, compressed by gzip.

    Args:
        recording: The recording.
        path: File to write.
        first: Number of the first event; None: the recording's first.
        last: Number of the last event; None: the recording's last.
        progress: Called with the events done, and their number.

    Returns:
        How many events were written, and the names of spaces that were left out.

    Raises:
        RecordingError: The recording has none of these events, or is damaged.
    """
    from gcspy_original.outgoing import OutgoingSession
    from gcspy_original.wire import Shutdown, encode

    begin, end = recording.range_of(first, last)
    if not begin:
        raise RecordingError("the recording has no events: there is nothing to export")
    outgoing: OutgoingSession | None = None
    count = 0
    with path.open("wb") as plain, gzip.GzipFile("", "wb", fileobj=plain, mtime=0) as file:
        for step, session in recording.steps(begin, end):
            if outgoing is None:
                outgoing = OutgoingSession(session, further=_spaces_of(recording))
                for message in outgoing.bootstrap(session):
                    file.write(encode(message))
            for command in outgoing.event(session, step.change, everything=not count):
                file.write(encode(command))
            count += 1
            if progress is not None:
                progress(step.number - begin + 1, end - begin + 1)
        file.write(encode(Shutdown()))
    return count, () if outgoing is None else tuple(sorted(outgoing.left_out))


def _spaces_of(recording: Recording) -> list[tuple[str, int]]:
    """Names of all spaces at the beginnings of chunks and at the end."""
    found: dict[tuple[str, int], None] = {}
    places = [at.place.first for at in recording.chunks if at.place.events]
    for number in [*places, recording.last]:
        try:
            session = recording.seek(number)
        except RecordingError:
            continue  # damaged, which the export reports where it gets there
        names = [state.space.name for state in session.spaces.values()]
        for place, name in enumerate(names):
            found[name, names[:place].count(name)] = None
    return list(found)
