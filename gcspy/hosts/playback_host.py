"""Plays a recording for all clients that join, until stopped."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gcspy_protocol.address import UnixAddress
from gcspy_protocol.errors import CommandError

from gcspy.exit_codes import ExitCode
from gcspy.hosts.original_gateway import original_gateway
from gcspy.hosts.web_pages import web_gateway
from gcspy.objects.trace_conversion import named_trace
from gcspy.output.progress import progress_bar
from gcspy.recorder.original_traces import named_original, original_recording
from gcspy_session.network.address import default_address

if TYPE_CHECKING:
    from gcspy_replay.file import Recording
    from gcspy_replay.player import PlaybackStart, PlayerThread

    from gcspy.objects.trace_conversion import TracedRecording

__all__ = ["LAST", "PlayingOptions", "default_playing_address", "losses_of", "play"]

_LATELY_SECS = 30.0
"""If a recorder of a session without events writes nothing for this long, it counts as killed, until it writes again."""

LAST = (1 << 63) - 1
"""Event number that means the last one, because a number beyond the end goes there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlayingOptions:
    """The recording, the clients and the options of a playback.

    Attributes:
        files: A file, the files of a split recording, the folder of a ring; an object trace, or a
            stored trace of the original GCspy.
        listen: Addresses; empty takes the local default of this process.
        token: The secret for TCP; None if only Unix sockets are used.
        pace: ``original``, ``program`` or ``fixed``.
        interval_millis: Between events, at the fixed pace.
        speed: Playback speed, at the other paces.
        backwards: Whether it is played towards the beginning.
        loop: First and last number of a repeated range; None: none.
        loops: Whether the whole recording is repeated.
        paused: Whether it is paused at first.
        event: Number of its first event; None: the first, or backwards the last.
        tile_bytes: For an object trace: bytes of a tile; None: by the size of its heap.
        clock_bytes: For an object trace: bytes allocated between two events of the clock; None: by
            all allocations.
        original_port: TCP port of this machine for visualisers of GCspy 1.0; None: none.
        web: Addresses at which web browsers get a page of the playback.
    """

    files: tuple[str, ...]
    listen: tuple[str, ...] = ()
    token: str | None = None
    pace: str = "original"
    interval_millis: int = 100
    speed: float = 1.0
    backwards: bool = False
    loop: tuple[int, int] | None = None
    loops: bool = False
    paused: bool = False
    event: int | None = None
    tile_bytes: int | None = None
    clock_bytes: int | None = None
    original_port: int | None = None
    web: tuple[str, ...] = ()

    def beginning(self) -> PlaybackStart:
        """How each playback begins."""
        from gcspy_protocol.playback import Direction, Pace, SetPlayback
        from gcspy_replay.player import PlaybackStart

        manner = SetPlayback(
            pace=Pace(self.pace),
            interval_millis=self.interval_millis,
            speed=self.speed,
            direction=Direction.BACKWARDS if self.backwards else Direction.FORWARDS,
            loop=self.loop,
        )
        return PlaybackStart(
            manner=manner, loops=self.loops, running=not self.paused, number=self.event
        )


def default_playing_address() -> UnixAddress:
    """The Unix socket on which a player in this process listens, in a directory made for this user alone.

    Raises:
        LinkError: The directory belongs to another user, or is open to others.
    """
    own = Path(default_address(os.getpid()).path)
    # Not the process's own name: a client that monitors this very process must not find its
    # recording there.
    return UnixAddress(str(own.with_name(f"replay-{own.stem}.sock")))


def losses_of(recording: Recording) -> list[str]:
    """The parts of a recording that cannot be played, one line each; losses that only playing finds are reported then."""
    lines = [f"{name}: {damage.what}" for name, damage in recording.damages]
    if recording.torn_bytes:
        lines.append(
            f"not closed: the recorder was killed or is still writing; the last {recording.torn_bytes:,} bytes are an incomplete event"
        )
    return lines


def play(
    options: PlayingOptions,
    *,
    stop: threading.Event,
    on_ready: Callable[[Recording, PlayerThread, tuple[str, ...]], None],
    on_progress: Callable[[str, int, int], None] | None = None,
) -> None:
    """Open a recording, or make one of an object trace, and serve it until `stop` is set.

    Args:
        options: The options of the playback.
        stop: Set by another thread or a signal handler.
        on_ready: Called once, when clients can connect, with messages for the user, one line each.
        on_progress: Called with the current step of reading a trace, its progress, and its total.

    Raises:
        RecordingError: It is not a recording, or its header is damaged.
        TraceError: It is a trace that cannot be read.
        LinkError: An address cannot be listened on.
    """
    # only playing loads numpy and trio
    from gcspy_replay.file import Recording
    from gcspy_replay.player import serve_recording

    addresses = options.listen or (str(default_playing_address()),)
    with ExitStack() as stack:
        trace = named_trace(options.files)
        traced = (
            None
            if trace is None
            else stack.enter_context(_traced(trace, options, stop, on_progress))
        )
        files = options.files if traced is None else (str(traced.path),)
        notes = () if traced is None else traced.notes
        original = named_original(options.files)
        if original is not None:
            made, notes = stack.enter_context(_original(original, stop, on_progress))
            files = (str(made),)
        with progress_bar("looking for chunks") as progress:
            recording = Recording.open(*files, progress=progress)
        playing = stack.enter_context(
            serve_recording(
                recording,
                *addresses,
                token=options.token,
                beginning=options.beginning(),
                growing=_is_written(recording),
                query_service=None if traced is None else traced.query_service,
            )
        )
        stack.enter_context(
            original_gateway(playing.addresses[0], options.original_port, options.token)
        )
        playing.pages = stack.enter_context(
            web_gateway(
                playing.addresses[0], options.web, options.token, title=recording.welcome.server
            )
        )
        on_ready(recording, playing, (*losses_of(recording), *notes))
        stop.wait()


@contextmanager
def _traced(
    path: Path,
    options: PlayingOptions,
    stop: threading.Event,
    on_progress: Callable[[str, int, int], None] | None,
) -> Iterator[TracedRecording]:
    """A recording of an object trace, with a progress bar in a terminal."""
    from gcspy_drivers.traced import TracedOptions

    from gcspy.objects.trace_conversion import traced_recording

    chosen = TracedOptions(tile_bytes=options.tile_bytes, clock_bytes=options.clock_bytes)
    with ExitStack() as stack:
        with _opening_progress(path, stop, on_progress) as advance:
            traced = stack.enter_context(traced_recording(path, chosen, advance))
        yield traced


@contextmanager
def _original(
    path: Path,
    stop: threading.Event,
    on_progress: Callable[[str, int, int], None] | None,
) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """A recording of a stored trace of the original, with a progress bar in a terminal; and notes."""
    with ExitStack() as stack:
        with _opening_progress(path, stop, on_progress) as advance:
            made = stack.enter_context(original_recording(path, advance))
        yield made


@contextmanager
def _opening_progress(
    path: Path,
    stop: threading.Event,
    on_progress: Callable[[str, int, int], None] | None,
) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar in a terminal, and for the starter of a sidecar; it ends the opening when a stop is requested."""
    with progress_bar(f"opening {path.name}") as bar:

        def advance(what: str, done: int, total: int) -> None:
            if stop.is_set():
                raise CommandError(
                    f"{path} was not opened: stop was requested", exit_code=ExitCode.INTERRUPTED
                )
            bar(done, total)
            if on_progress is not None:
                on_progress(what, done, total)

        yield advance


def _is_written(recording: Recording) -> bool:
    """Whether a recorder probably still writes it: it was not closed, and one of its files has changed recently."""
    if recording.finished or any("://" in part.window.source.name for part in recording.parts):
        return False
    newest = max(Path(part.window.source.name).stat().st_mtime for part in recording.parts)
    return time.time() - newest < _LATELY_SECS
