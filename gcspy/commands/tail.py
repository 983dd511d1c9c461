"""`gcspy tail`: the text client."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
from gcspy_protocol.errors import LinkError, TargetGone
from gcspy_protocol.interpreter import ClientInterpreter
from gcspy_protocol.messages import Event, State
from gcspy_protocol.model import ControlState
from gcspy_replay.file import Recording

from gcspy.link import Link, connect
from gcspy.options import needs_token, read_token, sampling_options, token_option
from gcspy.progress import progress_bar
from gcspy.recorded import names_recording
from gcspy.session import joinable
from gcspy.text import event_as_dict, event_as_lines

__all__ = ["command"]


@click.command()
@click.argument("sources", metavar="ADDRESS|PID|FILE", nargs=-1, required=True)
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
    sources: tuple[str, ...],
    events: int | None,
    as_json: bool,
    values: bool,
    clock_hz: float,
    tiles: int,
    token_file: Path | None,
) -> None:
    """Print the events of a session or of a process, as they happen, or those of a recording.

    With a PID the process is watched for as long as this runs. Ctrl-C ends this, and never the process.
    A recording is a file, the files of a split one, or the folder of a ring.
    """
    if values and not as_json:
        raise click.UsageError("--values needs --json")
    printer = _Printer(events, as_json=as_json, values=values)
    if all(names_recording(source) for source in sources):
        _print_recording([Path(source) for source in sources], printer)
        return
    if len(sources) > 1:
        raise click.UsageError("only the files of one recording may be named together")
    (source,) = sources
    token = read_token(token_file, ask=needs_token(source))
    with (
        joinable(source, clock_hz=clock_hz, tiles=tiles) as address,
        connect(address, token=token or "", client=f"gcspy tail ({os.getpid()})") as link,
    ):
        _print_session(link, printer)


class _Printer:
    """Prints events, up to a number of them."""

    def __init__(self, most: int | None, *, as_json: bool, values: bool) -> None:
        self.shown = 0
        self.most = most
        self._as_json, self._values = as_json, values

    @property
    def done(self) -> bool:
        """Whether so many were shown as were asked for."""
        return self.shown == self.most

    def show(self, session: ClientInterpreter, event: Event) -> None:
        """Print one event, with the state right after it."""
        if self._as_json:
            click.echo(json.dumps(event_as_dict(session, event, values=self._values)))
        else:
            click.echo("\n".join(event_as_lines(session, event)))
        self.shown += 1


def _say_end(session: ClientInterpreter) -> None:
    click.echo(f"gcspy: {session.state_reason or 'the target ended'}", err=True)


def _print_recording(paths: list[Path], printer: _Printer) -> None:
    """Print the events of a recording, as a viewer saw them.

    Raises:
        RecordingError: It is none, or damaged.
    """
    with progress_bar("looking for chunks") as progress:
        recording = Recording.open(*paths, progress=progress)
    with recording:
        if not recording.chunks:
            return
        cursor = recording.cursor()
        while not printer.done and (step := cursor.step()) is not None:
            printer.show(cursor.session, step.change.event)
        if not printer.done and cursor.session.state is ControlState.ENDED:
            _say_end(cursor.session)


def _print_session(link: Link, printer: _Printer) -> None:
    """Print events until so many came or the session ended.

    Raises:
        LinkError: The connection was lost, or the server ended the session before so many events.
        TargetGone: The target ended before so many events.
    """
    session = ClientInterpreter()
    for message in link:
        change = session.apply(message)
        if isinstance(message, State) and message.state is ControlState.ENDED:
            if printer.most is not None:
                raise TargetGone(
                    f"{session.state_reason or 'the target ended'}, after {printer.shown} of {printer.most} events"
                )
            _say_end(session)
            return
        if change is None:
            continue
        printer.show(session, change.event)
        if printer.done:
            return
    if printer.most is not None:
        raise LinkError(f"the server ended the session after {printer.shown} of {printer.most} events")
