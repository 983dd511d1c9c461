"""`gcspy verify`: is every byte of a recording what was written?"""

from __future__ import annotations

import json
from pathlib import Path

import click

from gcspy.exit_codes import ExitCode
from gcspy.options import files_argument
from gcspy.progress import progress_bar
from gcspy.recorded import loss_lines

__all__ = ["command"]


@click.command()
@files_argument
@click.option("--json", "as_json", is_flag=True, help="One JSON object a file.")
@click.pass_context
def command(context: click.Context, files: tuple[Path, ...], as_json: bool) -> None:
    """Look at every byte of a recording: each CRC is compared, each event is followed as a viewer would.

    The exit code is 9 when anything is lost. A missing index, or an event that was cut off at the end by a kill, loses
    nothing that was whole.
    """
    from gcspy_replay.file import sources_of, verify

    intact = True
    for source in sources_of(files):
        try:
            with progress_bar(f"verifying {source.name}") as progress:
                report = verify(source, progress=progress)
        finally:
            source.close()
        intact = intact and report.intact
        if as_json:
            findings = [
                {"start": f.start, "end": f.end, "what": f.what, "loses": f.loses}
                for f in report.findings
            ]
            lost = [
                {"first": one.first, "last": one.last, "nanos": one.nanos} for one in report.lost
            ]
            told = {
                "file": source.name,
                "intact": report.intact,
                "bytes": report.size,
                "chunks": report.chunks,
            }
            click.echo(
                json.dumps({**told, "events": report.events, "lost": lost, "findings": findings})
            )
            continue
        word = "intact" if report.intact else "DAMAGED"
        click.echo(
            f"{source.name}: {word}, {report.events:,} events in {report.chunks:,} chunks, {report.size:,} bytes"
        )
        for line in loss_lines(report.lost):
            click.echo(f"  {line}")
        for finding in report.findings:
            click.echo(f"  bytes {finding.start:,} to {finding.end:,}: {finding.what}")
    context.exit(ExitCode.OK if intact else ExitCode.RECORDING)
