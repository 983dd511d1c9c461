"""`gcspy record`: record a session to a file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
from gcspy_protocol.errors import CommandError

from gcspy.connection.session import joinable
from gcspy.options import (
    DriverCommand,
    RecordingPath,
    driver_options,
    driver_values_of,
    inject_option,
    mode_option,
    needs_token,
    read_token,
    reconnect_option,
    sampling_options,
    token_option,
    until_option,
)
from gcspy.output.quantities import Kept, deadline_of, kept_of, size_of
from gcspy.output.terminal import say
from gcspy.recorder.destination import Destination
from gcspy.recorder.named_recordings import names_recording

__all__ = ["command"]


@click.command(cls=DriverCommand)
@click.argument("source", metavar="ADDRESS|PID")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    required=True,
    type=RecordingPath(path_type=Path),
    help="File to write; with --keep-last, a folder, or the address of one such as s3://BUCKET/FOLDER.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing recording.")
@click.option("--events", type=click.IntRange(1), metavar="N", help="Stop after N events.")
@click.option(
    "--seconds", type=click.FloatRange(0.1), metavar="S", help="Stop after this many seconds."
)
@until_option
@click.option(
    "--split-size",
    type=size_of,
    metavar="SIZE",
    help="Start a new file (x.0001.gcspy and so on) at this size, such as 500kB, 200MB or 1GiB.",
)
@click.option(
    "--keep-last",
    type=kept_of,
    metavar="TIME|SIZE",
    help="Keep only the most recent part, such as 90s, 10min, 2h or 200MB. For endless runs.",
)
@click.option(
    "--lossless",
    type=deadline_of,
    is_flag=False,
    flag_value="2s",
    metavar="[DEADLINE]",
    help="Drop no events: if the recorder falls behind, hold the target, at most DEADLINE per event. Without a value: 2s. The total time held is reported.",
)
@click.option(
    "--sync",
    type=click.FloatRange(0, 3600),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds between flushes to disk, which protect the data from a crash of the machine. 0: let the system decide.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
@reconnect_option
@driver_options
@sampling_options
@inject_option
@mode_option
@token_option
def command(
    source: str,
    output: Path | str,
    force: bool,
    events: int | None,
    seconds: float | None,
    until: str | None,
    split_size: int | None,
    keep_last: Kept | None,
    lossless: float | None,
    sync: float,
    reconnect: float | None,
    as_json: bool,
    drivers: tuple[str, ...],
    share_events: bool,
    driver_values: tuple[str, ...],
    clock_hz: float,
    tiles: int,
    level: int,
    budget: int,
    inject: str | None,
    mode: str | None,
    token_file: Path | None,
) -> None:
    """Record a session or a process to a file.

    With a PID, the process is monitored until this command ends; so is a server of GCspy 1.0, with
    gcspy666://HOST:PORT. Recording ends at Ctrl-C, SIGTERM
    or the end of the target. Each event is written when it arrives: the file stays readable
    however the recorder ends. In a storage, each part appears when it is full.
    """
    if split_size is not None and keep_last is not None:
        raise click.UsageError("--keep-last splits the recording itself: omit --split-size")
    address = output if isinstance(output, str) else None
    if address is not None and keep_last is None:
        raise click.UsageError(
            "a recording in a storage is written part by part: say with --keep-last how much of it is kept"
        )
    shown = Path(output)
    destination = Destination(
        path=shown,
        split_bytes=split_size,
        keep=keep_last,
        replace=force,
        sync_secs=sync,
        address=address,
    )
    destination.check()
    if names_recording(source):
        raise CommandError(f"{source} is already a recording: copy it, or use gcspy cut")
    token = read_token(token_file, ask=needs_token(source))
    with joinable(
        source,
        clock_hz=clock_hz,
        tiles=tiles,
        level=level,
        budget=budget,
        drivers=drivers,
        share_events=share_events,
        values=driver_values_of(driver_values, inject=inject, mode=mode),
    ) as place:
        # While the sidecar starts: it imports numpy, which a usage error need not wait for.
        from gcspy_replay.file import WireTap

        from gcspy.connection.link import Link, connect
        from gcspy.connection.reconnecting_link import ReconnectingLink
        from gcspy.connection.stop_condition import Until
        from gcspy.recorder.lossless import LosslessMode
        from gcspy.recorder.priority import give_way
        from gcspy.recorder.recorder import Recorder, stop_signals
        from gcspy.recorder.report import report_facts, report_line, status_line

        taps: list[WireTap] = []
        name = f"gcspy record ({os.getpid()})"

        def dial() -> Link:
            taps[:] = [WireTap()]  # unrelated to messages of the earlier connection
            return connect(place.address, token=token or "", client=name, tap=taps[0].receive_data)

        def say_aside(text: str) -> None:
            say(f"gcspy: {text}", err=True)

        give_way(place.address)
        with (
            ReconnectingLink(dial, within_secs=reconnect, say=say_aside) as link,
            stop_signals() as stop,
        ):
            with status_line(shown) as show:
                deadline = None if lossless is None else LosslessMode(lossless)
                recorder = Recorder(link, lambda: taps[0], destination.open, lossless=deadline)
                report = recorder.run(
                    stop=stop,
                    max_events=events,
                    max_secs=seconds,
                    until=None if until is None else Until(until, say_aside),
                    on_progress=show,
                )
            destination.put_beside(recorder.added)
            facts = report_facts(report, destination.sizes())
            if as_json or facts["files"]:
                say(json.dumps(facts) if as_json else report_line(report, facts))
            if report.error is not None:
                raise report.error
