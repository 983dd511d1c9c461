"""`gcspy tail`: the text client."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
from gcspy_protocol.errors import LinkError
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import State
from gcspy_protocol.model import ControlState

from gcspy.link import Link, connect
from gcspy.options import needs_token, read_token, sampling_options, token_option
from gcspy.session import joinable
from gcspy.text import event_as_dict, event_as_lines

__all__ = ["command"]


@click.command()
@click.argument("source", metavar="ADDRESS|PID")
@click.option(
    "--events", type=click.IntRange(1), default=None, metavar="N", help="Stop after so many events."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option(
    "--values", is_flag=True, help="With --json: also the value of each tile; null where it is unknown."
)
@sampling_options
@token_option
def command(
    source: str,
    events: int | None,
    as_json: bool,
    values: bool,
    clock_hz: float,
    tiles: int,
    token_file: Path | None,
) -> None:
    """Print the events of a session or of a process, as they happen.

    With a PID the process is watched for as long as this runs. Ctrl-C ends this, and never the process.
    """
    if values and not as_json:
        raise click.UsageError("--values needs --json")
    token = read_token(token_file, ask=needs_token(source))
    with (
        joinable(source, clock_hz=clock_hz, tiles=tiles) as address,
        connect(address, token=token or "", client=f"gcspy tail ({os.getpid()})") as link,
    ):
        _print_events(link, events, as_json=as_json, values=values)


def _print_events(link: Link, events: int | None, *, as_json: bool, values: bool) -> None:
    """Print events until so many came or the session ended.

    Raises:
        LinkError: The connection was lost before the session ended.
    """
    session = ClientInterpreter()
    shown = 0
    for message in link:
        change = session.apply(message)
        if isinstance(message, State) and message.state is ControlState.ENDED:
            click.echo(f"gcspy: {message.reason or 'the target ended'}", err=True)
            return
        if change is None:
            continue
        if as_json:
            click.echo(json.dumps(event_as_dict(session, change.event, values=values)))
        else:
            click.echo("\n".join(event_as_lines(session, change.event)))
        shown += 1
        if shown == events:
            return
    if events is not None:
        raise LinkError(f"the server ended the session after {shown} of {events} events")
