"""`gcspy export`: a recording for other people's tools."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from gcspy_protocol.errors import CommandError

from gcspy.commands.screenshot import parse_size
from gcspy.exit_codes import ExitCode
from gcspy.new_file import new_file
from gcspy.options import files_argument
from gcspy.pictures import MOST_FRAMES, PictureWish, write_gif, write_png_folder
from gcspy.progress import progress_bar
from gcspy.recorded import opened

__all__ = ["command"]

_FORMATS = {".csv": "csv_file", ".parquet": "parquet_file", ".mcap": "mcap_file"}
_OF_TABLES = ("tiles",)
_OF_PICTURES = ("every", "kinds", "most_frames", "size", "theme", "speed")


@click.command()
@files_argument
@click.option(
    "-o",
    "--output",
    metavar="FILE|FOLDER/",
    required=True,
    help="What to write; its suffix names the format: .csv, .parquet, .mcap, .gif; a folder, with a slash at its end, "
    "gets a PNG file an event.",
)
@click.option("--force", is_flag=True, help="Replace what is there.")
@click.option(
    "--tiles", is_flag=True, help="The value of each tile that an event gathered, not summaries."
)
@click.option("--space", metavar="NAME", help="This space only.")
@click.option(
    "--stream", metavar="NAME", help="This stream only; in pictures, with --space: painted in it."
)
@click.option(
    "--first",
    type=click.IntRange(1),
    metavar="N",
    help="Number of the first event; default: the first.",
)
@click.option(
    "--last",
    type=click.IntRange(1),
    metavar="N",
    help="Number of the last event; default: the last.",
)
@click.option("--every", type=click.IntRange(1), metavar="N", help="Pictures: of one in N events.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="NAME",
    help="Pictures: of events of this kind; may be repeated.",
)
@click.option(
    "--most-frames",
    type=click.IntRange(2),
    metavar="N",
    help=f"Pictures: no more than N, evenly; default: {MOST_FRAMES} in a GIF, of every event in a folder.",
)
@click.option(
    "--size", metavar="WxH", help="Pictures: width and height in pixels; default: 1280x800."
)
@click.option(
    "--theme", type=click.Choice(["dark", "light"]), help="Pictures: colours; default: dark."
)
@click.option(
    "--speed",
    type=click.FloatRange(0.01, 10_000),
    metavar="X",
    help="GIF: so many times faster than it happened; default: 1.",
)
def command(files: tuple[Path, ...], output: str, force: bool, **options: Any) -> None:
    """Export a recording to CSV, Parquet or MCAP, to a folder of PNG files, or to an animated GIF.

    Summaries come as the driver made them, a row a number. Pictures show the whole window, or one space with its
    title and legend. Parquet, MCAP and GIF need pip install 'gcspy[export]', pictures need 'gcspy[gui]'.
    """
    path = Path(output)
    is_folder = output.endswith(("/", os.sep)) or path.is_dir()
    is_gif = not is_folder and path.suffix.lower() == ".gif"
    _refuse_foreign(options, is_folder=is_folder, is_gif=is_gif)
    if is_folder or is_gif:
        _pictures(files, path, options, force=force, is_gif=is_gif)
    else:
        _table(files, path, options, force=force)


def _refuse_foreign(options: dict[str, Any], *, is_folder: bool, is_gif: bool) -> None:
    """Refuse options that would change nothing: the user meant something by them."""
    foreign = _OF_TABLES if is_folder or is_gif else _OF_PICTURES
    if is_folder:
        foreign = (*foreign, "speed")
    for name in foreign:
        if options[name]:
            flag = "--" + {"kinds": "kind"}.get(name, name).replace("_", "-")
            what = "a folder of PNG files" if is_folder else "a GIF" if is_gif else "a table"
            raise click.UsageError(f"{flag} means nothing for {what}")
    if (is_folder or is_gif) and options["stream"] and not options["space"]:
        raise click.UsageError(
            "--stream needs --space: the whole window shows each space in its most important stream"
        )


def _table(files: tuple[Path, ...], output: Path, options: dict[str, Any], *, force: bool) -> None:
    module = _module_for(output)
    from gcspy_replay.file.export.tables import Wanted

    wanted = Wanted(
        **{name: options[name] for name in ("first", "last", "space", "stream", "tiles")}
    )
    with (
        opened(files) as recording,
        new_file(output, replace=force) as part,
        progress_bar(f"writing {output}") as progress,
    ):
        count: int = module.write(recording, part, wanted, progress)
    what = "messages" if output.suffix.lower() == ".mcap" else "rows"
    click.echo(f"{output}: {count:,} {what}, {output.stat().st_size:,} bytes")
    if not count:
        click.echo("gcspy: nothing matched: gcspy info names the spaces and streams", err=True)


def _pictures(
    files: tuple[Path, ...], output: Path, options: dict[str, Any], *, force: bool, is_gif: bool
) -> None:
    wish = PictureWish(
        **{name: options[name] for name in ("first", "last", "kinds", "space", "stream")},
        every=options["every"] or 1,
        most=options["most_frames"] or (MOST_FRAMES if is_gif else None),
        size=parse_size(options["size"] or "1280x800"),
        theme=options["theme"] or "dark",
    )
    with opened(files) as recording:
        if is_gif:
            speed = options["speed"] or 1.0
            taken = write_gif(recording, output, wish, replace=force, speed=speed, say=_say)
        else:
            taken = write_png_folder(recording, output, wish, replace=force)
    size = (
        output.stat().st_size if is_gif else sum(path.stat().st_size for path in output.iterdir())
    )
    click.echo(f"{output}: {taken.pictures:,} {'frames' if is_gif else 'pictures'}, {size:,} bytes")
    if taken.left_out:
        _say(
            f"{taken.left_out:,} events were left out, evenly: --most-frames {taken.pictures + taken.left_out} shows all"
        )


def _say(text: str) -> None:
    click.echo(f"gcspy: {text}", err=True)


def _module_for(output: Path) -> ModuleType:
    name = _FORMATS.get(output.suffix.lower())
    if name is None:
        raise CommandError(
            f"{output}: the suffix should name the format: {', '.join(_FORMATS)}, .gif; for a folder of PNG files "
            f"put a slash at the end: {output}/"
        )
    try:
        return importlib.import_module(f"gcspy_replay.file.export.{name}")
    except ModuleNotFoundError as error:
        raise CommandError(
            f"{output.suffix} needs the package {error.name}: pip install 'gcspy[export]'",
            exit_code=ExitCode.MISSING_PART,
        ) from error
