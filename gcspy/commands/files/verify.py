"""`gcspy verify`: check that every byte of a recording is intact."""

from __future__ import annotations

import json
from pathlib import Path

import click

from gcspy.exit_codes import ExitCode
from gcspy.options import files_argument
from gcspy.output.progress import progress_bar
from gcspy.output.terminal import say
from gcspy.recorder.named_recordings import loss_lines

__all__ = ["command"]


@click.command()
@files_argument
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per file.")
@click.pass_context
def command(context: click.Context, files: tuple[Path, ...], as_json: bool) -> None:
    """Check every byte of a recording.

    Compares each CRC and decodes each event as a viewer would. The exit code is 9 if any data is lost. A missing index, or an incomplete last event after a
    kill, is not a loss.
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
            say(json.dumps({**told, "events": report.events, "lost": lost, "findings": findings}))
            continue
        word = "intact" if report.intact else "DAMAGED"
        say(
            f"{source.name}: {word}, {report.events:,} events in {report.chunks:,} chunks, {report.size:,} bytes"
        )
        for line in loss_lines(report.lost):
            say(f"  {line}")
        for finding in report.findings:
            say(f"  bytes {finding.start:,} to {finding.end:,}: {finding.what}")
    context.exit(ExitCode.OK if intact else ExitCode.RECORDING)
