"""`gcspy tail`: the text client."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gcspy.connection.session import joinable
from gcspy.options import (
    DriverCommand,
    driver_options,
    driver_values_of,
    inject_option,
    needs_token,
    read_token,
    reconnect_option,
    sampling_options,
    token_option,
    until_option,
)
from gcspy.recorder.named_recordings import names_recording

__all__ = ["command"]


@click.command(cls=DriverCommand)
@click.argument("sources", metavar="ADDRESS|PID|FILE", nargs=-1, required=True)
@click.option(
    "--events", type=click.IntRange(1), default=None, metavar="N", help="Stop after N events."
)
@until_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.option(
    "--values",
    is_flag=True,
    help="With --json: include the value of each tile. null: unknown.",
)
@reconnect_option
@driver_options
@sampling_options
@inject_option
@token_option
def command(
    sources: tuple[str, ...],
    events: int | None,
    until: str | None,
    as_json: bool,
    values: bool,
    reconnect: float | None,
    drivers: tuple[str, ...],
    share_events: bool,
    driver_values: tuple[str, ...],
    clock_hz: float,
    tiles: int,
    level: int,
    budget: int,
    inject: str | None,
    token_file: Path | None,
) -> None:
    """Print events as text: of a session, a process or a recording.

    With a PID, the process is monitored until this command ends; so is a server of GCspy 1.0, with
    gcspy666://HOST:PORT. Ctrl-C ends this command, never the process.
    A recording is one file, the files of a split recording, or the folder of a ring.
    """
    if values and not as_json:
        raise click.UsageError("--values needs --json")
    if all(names_recording(source) for source in sources):
        if drivers:
            raise click.UsageError("--driver needs a process, not a recording")
        from gcspy.output.event_printer import Printer, print_recording

        printer = Printer(events, until, as_json=as_json, values=values)
        print_recording([Path(source) for source in sources], printer)
        return
    if len(sources) > 1:
        raise click.UsageError("several files are accepted only if they are parts of one recording")
    (source,) = sources
    token = read_token(token_file, ask=needs_token(source))
    with joinable(
        source,
        clock_hz=clock_hz,
        tiles=tiles,
        level=level,
        budget=budget,
        drivers=drivers,
        share_events=share_events,
        values=driver_values_of(driver_values, inject=inject),
    ) as place:
        # While the sidecar starts: it imports numpy, which a usage error need not wait for.
        from gcspy.connection.link import Link, connect
        from gcspy.connection.reconnecting_link import ReconnectingLink
        from gcspy.output.event_printer import Printer, print_session
        from gcspy.output.terminal import say_aside

        printer = Printer(events, until, as_json=as_json, values=values)

        def dial() -> Link:
            return connect(place.address, token=token or "", client=f"gcspy tail ({os.getpid()})")

        with ReconnectingLink(dial, within_secs=reconnect, say=say_aside) as link:
            print_session(link, printer)
