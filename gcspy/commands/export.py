"""`gcspy export`: a recording for other people's tools."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import click
from gcspy_protocol.errors import CommandError
from gcspy_replay.file import Recording
from gcspy_replay.file.export.tables import Wanted

from gcspy.exit_codes import ExitCode
from gcspy.options import files_argument, new_file_option
from gcspy.progress import progress_bar

__all__ = ["command"]

_FORMATS = {".csv": "csv_file", ".parquet": "parquet_file", ".mcap": "mcap_file"}


@click.command()
@files_argument
@new_file_option("The new file; its suffix names the format: .csv, .parquet or .mcap.")
@click.option("--tiles", is_flag=True, help="The value of each tile that an event gathered, not summaries.")
@click.option("--space", metavar="NAME", help="This space only.")
@click.option("--stream", metavar="NAME", help="This stream only.")
@click.option("--first", type=click.IntRange(1), metavar="N", help="Number of the first event; default: the first.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Number of the last event; default: the last.")
def command(
    files: tuple[Path, ...],
    output: Path,
    force: bool,
    tiles: bool,
    space: str | None,
    stream: str | None,
    first: int | None,
    last: int | None,
) -> None:
    """Export a recording to CSV, Parquet or MCAP.

    Summaries come as the driver made them, a row a number. Parquet and MCAP need pip install 'gcspy[export]'.
    """
    module = _module_for(output)
    if output.exists() and not force:
        raise CommandError(f"{output} is there already: name another file, or use --force")
    wanted = Wanted(first=first, last=last, space=space, stream=stream, tiles=tiles)
    with Recording.open(*files) as recording:
        try:
            with progress_bar(f"writing {output}") as progress:
                count: int = module.write(recording, output, wanted, progress)
        except OSError as error:
            raise CommandError(
                f"cannot write {output}: {error.strerror or error}", exit_code=ExitCode.FAILED
            ) from error
    what = "messages" if output.suffix.lower() == ".mcap" else "rows"
    click.echo(f"{output}: {count:,} {what}, {output.stat().st_size:,} bytes")
    if not count:
        click.echo("gcspy: nothing matched: gcspy info names the spaces and streams", err=True)


def _module_for(output: Path) -> ModuleType:
    name = _FORMATS.get(output.suffix.lower())
    if name is None:
        raise CommandError(f"{output}: the suffix should name the format: {', '.join(_FORMATS)}")
    try:
        return importlib.import_module(f"gcspy_replay.file.export.{name}")
    except ModuleNotFoundError as error:
        raise CommandError(
            f"{output.suffix} needs the package {error.name}: pip install 'gcspy[export]'",
            exit_code=ExitCode.MISSING_PART,
        ) from error
