"""`gcspy features`: a row of numbers about each of many recordings."""

from __future__ import annotations

from pathlib import Path

import click

from gcspy.options import engine_option, jobs_option, json_option, new_file_option, top_option

__all__ = ["command"]


@click.command()
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(dir_okay=False)
)
@new_file_option("Parquet file to write.")
@jobs_option
@engine_option
@top_option(1000)
@json_option
def command(
    files: tuple[str, ...],
    output: Path,
    force: bool,
    jobs: int,
    engine: str,
    top: int,
    as_json: bool,
) -> None:
    """Write a table with a row of features for each of many recordings.

    The columns are growth, fragmentation, time in collections, the largest types and anomalies;
    docs/fleets.md describes them. A recording that cannot be read has a row with the error. One file
    is open at a time. FILE may be an address such as s3://BUCKET/NAME, of which only ranges are read.
    """
    from gcspy.fleet.engine import engine_of
    from gcspy.fleet.feature_table import gathered, print_summary, rows_as_json, write_parquet
    from gcspy.output.progress import progress_bar
    from gcspy.output.terminal import say, say_json
    from gcspy.recorder.new_file import need_place, new_file

    need_place(output, replace=force)
    rows = []
    with engine_of(engine, jobs) as caller, progress_bar("reading recordings") as progress:
        for row in gathered(files, caller):
            rows.append(row)
            progress(len(rows), len(files))
    with new_file(output, replace=force) as path:
        write_parquet(rows, path)
    if as_json:
        say_json({"file": str(output), "recordings": rows_as_json(rows)})
        return
    print_summary(rows, top)
    say(f"gcspy: wrote {output}")
