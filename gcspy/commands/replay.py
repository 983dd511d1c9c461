"""`gcspy replay`: play a recording or an object trace, with a window or as a server only."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from gcspy_protocol.address import TcpAddress, parse_address

from gcspy.connection.tokens import own_token
from gcspy.gui import load_window, require_window
from gcspy.hosts.launcher import front_door
from gcspy.hosts.playback_host import PlayingOptions, default_playing_address, play
from gcspy.hosts.sidecar import start_sidecar
from gcspy.hosts.stop_signals import stop_at_signals
from gcspy.options import (
    RecordingPath,
    class_options,
    language_option,
    listen_option,
    no_window_option,
    original_port_option,
    read_token,
    theme_option,
    token_option,
    trace_options,
    web_option,
)
from gcspy.output.share_lines import reachable_ones, say_addresses
from gcspy.output.terminal import say, say_aside
from gcspy_client.interruption import interruption_held_back

if TYPE_CHECKING:
    from gcspy_replay.file import Recording
    from gcspy_replay.player import PlayerThread

__all__ = ["PACES", "SPEEDS", "command", "loop_of"]

# As in `gcspy_protocol.playback`, which imports numpy: help need not wait for that.
PACES = ("original", "program", "fixed")
SPEEDS = (0.1, 100.0)

_ALL = "all"
_HOUR_MILLIS = 3_600_000


def loop_of(text: str) -> tuple[int, int] | None:
    """``10-20`` as first and last event; ``all`` as None.

    Raises:
        click.BadParameter: It is neither.
    """
    if text == _ALL:
        return None
    match = re.fullmatch(r"(\d{1,18})-(\d{1,18})", text)
    if match is None or int(match[1]) > int(match[2]) or not int(match[1]):
        raise click.BadParameter(
            f"{text!r} is neither a range of events such as 10-20 nor {_ALL!r}"
        )
    return int(match[1]), int(match[2])


class _Played(RecordingPath):
    """The path of a recording, or the name of a lesson that has one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not os.path.lexists(value) and "://" not in str(value):
            from gcspy_replay.samples import lesson_recording

            found = lesson_recording(str(value))
            if found is not None:
                return found
        return super().convert(value, param, ctx)


@click.command()
@click.argument(
    "files",
    metavar="FILE|LESSON...",
    nargs=-1,
    required=True,
    type=_Played(exists=True, path_type=Path),
)
@no_window_option("the session")
@web_option
@listen_option
@click.option(
    "--speed",
    type=click.FloatRange(*SPEEDS),
    default=1.0,
    show_default=True,
    metavar="X",
    help="Playback speed as a factor.",
)
@click.option(
    "--pace",
    type=click.Choice(PACES),
    default=None,
    help="Time between events. original: as recorded; program: without the time spent on monitoring; fixed: always the same.",
)
@click.option(
    "--interval",
    "interval_millis",
    type=click.IntRange(0, _HOUR_MILLIS),
    default=None,
    metavar="MS",
    help="Milliseconds between events with --pace fixed.",
)
@click.option(
    "--loop",
    is_flag=False,
    flag_value=_ALL,
    default=None,
    metavar="[A-B]",
    help="Repeat events A to B, or all events. Without a value, write it after the files.",
)
@click.option("--backwards", is_flag=True, help="Play towards the beginning.")
@click.option("--paused", is_flag=True, help="Start paused.")
@click.option(
    "--event", type=click.IntRange(1), default=None, metavar="N", help="Start at event N."
)
@click.option(
    "--compare",
    "compare",
    multiple=True,
    metavar="FILE",
    type=click.Path(exists=True, path_type=Path),
    help="Show this recording beside the first, for comparison. Repeatable for the files of a split recording.",
)
@trace_options
@original_port_option
@token_option
@language_option
@theme_option
@class_options
def command(
    files: tuple[Path | str, ...],
    no_window: bool,
    listen: tuple[str, ...],
    web: tuple[str, ...],
    speed: float,
    pace: str | None,
    interval_millis: int | None,
    loop: str | None,
    backwards: bool,
    paused: bool,
    event: int | None,
    compare: tuple[Path, ...],
    tile_bytes: int | None,
    clock_bytes: int | None,
    original_port: int | None,
    token_file: Path | None,
    theme: str | None,
    person: str,
    successor: str,
) -> int:
    """Play a recording, an object trace or a lesson in a window.

    FILE is one file, the files of a split recording, or the folder of a ring. A recording that is
    still being written is played up to its end and continues as it grows. Each viewer has its own
    playback, or follows another viewer. Damaged parts are skipped and reported. LESSON is a name
    from `gcspy demo --list`; its recording comes with GCspy.

    FILE may be an address such as s3://BUCKET/NAME or https://HOST/NAME: ranges of it are read as
    they are played. The window then has no graphs of the whole recording, and no bookmarks.

    FILE may also be an object trace: a .gctrace (`gcspy trace`), which may still be written, or a
    trace of a Java VM (AntTracks): a folder with its files, its trace file, or a .tar.xz of them.
    The heap is rebuilt, and every object in it can be queried.
    """
    if interval_millis is not None and pace not in (None, "fixed"):
        raise click.UsageError("--interval needs --pace fixed")
    if pace == "fixed" and interval_millis is None:
        interval_millis = 100
    if compare and no_window:
        raise click.UsageError("--compare needs a window; without one, use gcspy compare")
    if not no_window:
        require_window()
    addresses = tuple(parse_address(address) for address in listen)
    with ExitStack() as stack:
        token = None
        if web or any(isinstance(address, TcpAddress) for address in addresses):
            token = read_token(token_file, ask=False) or stack.enter_context(own_token(os.getpid()))
        local = () if no_window and addresses and not web else (str(default_playing_address()),)
        options = PlayingOptions(
            files=tuple(str(path) for path in files),
            listen=(*local, *(str(address) for address in addresses)),
            token=token,
            web=web,
            pace=pace or ("original" if interval_millis is None else "fixed"),
            interval_millis=100 if interval_millis is None else interval_millis,
            speed=speed,
            backwards=backwards,
            loop=None if loop is None else loop_of(loop),
            loops=loop == _ALL,
            paused=paused,
            event=event,
            tile_bytes=tile_bytes,
            clock_bytes=clock_bytes,
            original_port=original_port,
        )
        if no_window:
            return _serve(options)
        # The window reads files for graphs and bookmarks; a recording at an address is played by the sidecar alone.
        paths = tuple(path for path in files if isinstance(path, Path))
        sidecar = stack.enter_context(start_sidecar(options))
        # Loaded while the sidecar starts: both take about half a second.
        with interruption_held_back():
            load_window()
            from gcspy_client.app import run_window
            from gcspy_client.model.attendance import ClassOptions

        say_addresses(sidecar.addresses[1:], original_port=original_port, pages=sidecar.pages)
        for note in sidecar.notes:
            say_aside(note)
        class_options = ClassOptions(
            person=person, successor=successor, addresses=reachable_ones(sidecar.addresses[1:])
        )
        return run_window(
            sidecar.addresses[0],
            theme=theme,
            recording=sidecar.files or paths,
            opened=paths,
            compare=compare,
            front=front_door(),
            class_options=class_options,
        )


def _serve(options: PlayingOptions) -> int:
    """Serve in this process until Ctrl-C or SIGTERM."""
    stop = stop_at_signals()

    def ready(recording: Recording, playing: PlayerThread, notes: tuple[str, ...]) -> None:
        say(
            f"gcspy: playing {recording.welcome.server}, {len(recording):,} events; a pause stops the playback"
        )
        for line in notes:
            say_aside(line)
        say_addresses(playing.addresses, original_port=options.original_port, pages=playing.pages)

    play(options, stop=stop, on_ready=ready)
    say("gcspy: stopped")
    return 0
