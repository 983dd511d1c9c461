"""`gcspy replay`: play a recording or an object trace; a window with it, or a server alone."""

from __future__ import annotations

import os
import re
import signal
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from gcspy_protocol.address import TcpAddress, parse_address

from gcspy.gui import require_window
from gcspy.options import class_options, read_token, theme_option, token_option, trace_options
from gcspy.playing import PlayingOptions, default_playing_address, play
from gcspy.sharing import reachable_ones, say_addresses
from gcspy.sidecar import start_sidecar
from gcspy.starting import front_door
from gcspy.tokens import own_token

if TYPE_CHECKING:
    from gcspy_replay.file import Recording
    from gcspy_replay.player import Playing

__all__ = ["PACES", "SPEEDS", "command", "loop_of"]

# As in `gcspy_protocol.playback`, which brings numpy: who asks for help need not wait for that.
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
        raise click.BadParameter(f"{text!r} is no range of events such as 10-20, nor {_ALL!r}")
    return int(match[1]), int(match[2])


class _Played(click.Path):
    """The path of a recording, or the name of a lesson that comes with one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not os.path.lexists(value):
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
@click.option(
    "--no-window", is_flag=True, help="Serve only; others join with `gcspy view` or `gcspy tail`."
)
@click.option(
    "--listen",
    multiple=True,
    metavar="ADDRESS",
    help="HOST:PORT (port 0: any free one), tls:HOST:PORT, or unix:/PATH; may be repeated.",
)
@click.option(
    "--speed",
    type=click.FloatRange(*SPEEDS),
    default=1.0,
    show_default=True,
    metavar="X",
    help="So many times as fast.",
)
@click.option(
    "--pace",
    type=click.Choice(PACES),
    default=None,
    help="The time between events as it was, the program's own without what watching took, or always the same.",
)
@click.option(
    "--interval",
    "interval_millis",
    type=click.IntRange(0, _HOUR_MILLIS),
    default=None,
    metavar="MS",
    help="Milliseconds between events, at the fixed pace.",
)
@click.option(
    "--loop",
    is_flag=False,
    flag_value=_ALL,
    default=None,
    metavar="[A-B]",
    help="Play events A to B, or all, over and over. Put it behind the files, or say `all`.",
)
@click.option("--backwards", is_flag=True, help="Play towards the beginning.")
@click.option("--paused", is_flag=True, help="Stand still at first.")
@click.option(
    "--event", type=click.IntRange(1), default=None, metavar="N", help="Begin with event N."
)
@click.option(
    "--compare",
    "compare",
    multiple=True,
    metavar="FILE",
    type=click.Path(exists=True, path_type=Path),
    help="Another recording to put beside it, with the difference; may be repeated for the files of a split one.",
)
@trace_options
@token_option
@theme_option
@class_options
def command(
    files: tuple[Path, ...],
    no_window: bool,
    listen: tuple[str, ...],
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
    token_file: Path | None,
    theme: str | None,
    person: str,
    successor: str,
) -> int:
    """Play a recording or a lesson in a window, as it was seen live, or to whoever joins.

    FILE is a file, the files of a split recording, or the folder of a ring; one that is still being
    written is played as far as it is, and then as it grows. Each viewer has a playback of its own, or follows another's.
    What is damaged is left out and told. LESSON is one of "gcspy demo --list": it is played from the recording that comes with GCspy, and simulates nothing.

    FILE may also be an object trace of a Java VM (AntTracks): a folder with its files, its trace file, or a .tar.xz of them. Its heap is rebuilt,
    and each object in it can be asked for.
    """
    if interval_millis is not None and pace not in (None, "fixed"):
        raise click.UsageError("--interval is the time between events at --pace fixed")
    if pace == "fixed" and interval_millis is None:
        interval_millis = 100
    if compare and no_window:
        raise click.UsageError("--compare is for the window; without one use gcspy compare")
    if not no_window:
        require_window()
    addresses = tuple(parse_address(address) for address in listen)
    with ExitStack() as stack:
        token = None
        if any(isinstance(address, TcpAddress) for address in addresses):
            token = read_token(token_file, ask=False) or stack.enter_context(own_token(os.getpid()))
        local = () if no_window and addresses else (str(default_playing_address()),)
        options = PlayingOptions(
            files=tuple(str(path) for path in files),
            listen=(*local, *(str(address) for address in addresses)),
            token=token,
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
        )
        if no_window:
            return _serve(options)
        sidecar = stack.enter_context(start_sidecar(options))
        # Loaded while the sidecar starts: both take about half a second.
        from gcspy_client.app import run_window
        from gcspy_client.model.attending import ClassWish

        say_addresses(sidecar.addresses[1:])
        for note in sidecar.notes:
            click.echo(f"gcspy: {note}", err=True)
        wish = ClassWish(
            person=person, successor=successor, addresses=reachable_ones(sidecar.addresses[1:])
        )
        return run_window(
            sidecar.addresses[0],
            theme=theme,
            recording=sidecar.files or files,
            opened=files,
            compare=compare,
            front=front_door(),
            wish=wish,
        )


def _serve(options: PlayingOptions) -> int:
    """Serve in this process until Ctrl-C or SIGTERM."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())

    def ready(recording: Recording, playing: Playing, notes: tuple[str, ...]) -> None:
        click.echo(
            f"gcspy: playing {recording.welcome.server}, {len(recording):,} events; a pause stops the playback"
        )
        for line in notes:
            click.echo(f"gcspy: {line}", err=True)
        say_addresses(playing.addresses)

    play(options, stop=stop, on_ready=ready)
    click.echo("gcspy: stopped")
    return 0
