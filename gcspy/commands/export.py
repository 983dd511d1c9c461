"""`gcspy export`: a recording in the formats of other tools."""

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
from gcspy.options import files_argument, language_option, range_options
from gcspy.output.picture_export import MOST_FRAMES, PictureOptions, write_gif, write_png_folder
from gcspy.output.progress import progress_bar
from gcspy.output.terminal import say
from gcspy.recorder.named_recordings import opened
from gcspy.recorder.new_file import new_file

__all__ = ["command"]

_FORMATS = {".csv": "csv_file", ".parquet": "parquet_file", ".mcap": "mcap_file"}
_ORIGINAL = ".gcspy666"
_PAGE = (".html", ".htm")
_OF_TABLES = ("tiles",)
_OF_PICTURES = ("every", "kinds", "most_frames", "size", "theme", "speed")


@click.command()
@files_argument
@language_option
@click.option(
    "-o",
    "--output",
    metavar="FILE|FOLDER/",
    required=True,
    help="File to write. Its suffix selects the format: .html, .csv, .parquet, .mcap, .gif or .gcspy666. For a folder (with a slash at the end): one PNG file per event.",
)
@click.option(
    "--html",
    "is_page",
    is_flag=True,
    help="Write one HTML file for web browsers, whatever the suffix.",
)
@click.option(
    "--gcspy666",
    "is_original",
    is_flag=True,
    help="Write a trace of GCspy 1.0 (2002), whatever the suffix.",
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option(
    "--tiles", is_flag=True, help="Export the value of each tile instead of the summaries."
)
@click.option("--space", metavar="NAME", help="Export only this space.")
@click.option(
    "--stream",
    metavar="NAME",
    help="Export only this stream. Pictures, with --space: paint this stream.",
)
@range_options
@click.option(
    "--every", type=click.IntRange(1), metavar="N", help="Pictures: take one in N events."
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="NAME",
    help="Pictures: take only events of this kind. Repeatable.",
)
@click.option(
    "--most-frames",
    type=click.IntRange(2),
    metavar="N",
    help=f"Pictures: take at most N, evenly spaced. Default: {MOST_FRAMES} in a GIF; all events in a folder.",
)
@click.option(
    "--size", metavar="WxH", help="Pictures: width and height in pixels. Default: 1280x800."
)
@click.option(
    "--theme",
    type=click.Choice(["dark", "light"]),
    help="Pictures: colour theme. Default: dark. HTML: default: that of the browser.",
)
@click.option(
    "--speed",
    type=click.FloatRange(0.01, 10_000),
    metavar="X",
    help="GIF: speed as a factor. Default: 1.",
)
def command(
    files: tuple[Path, ...],
    output: str,
    force: bool,
    is_page: bool,
    is_original: bool,
    **options: Any,
) -> None:
    """Export to HTML, CSV, Parquet, MCAP, PNG files, GIF, or a trace of GCspy 1.0.

    An HTML file shows the recording in any web browser, without GCspy, a server or the network: tiles,
    streams, history, timeline. It has at most 5 MB: of a larger recording, every n-th event of each
    kind, and it says so. A row has one number: the driver's summary of a stream at an event. Pictures show the whole
    window, or one space with its title and legend. Parquet, MCAP and GIF need the extra "export",
    pictures "gui": in a clone of gcspy, pip install '.[export,gui]'. docs/original.md says what GCspy
    1.0 cannot express.
    """
    path = Path(output)
    is_folder = output.endswith(("/", os.sep)) or path.is_dir()
    if is_original or path.suffix.lower() == _ORIGINAL:
        if is_folder:
            raise click.UsageError("a trace of GCspy 1.0 is one file: name a file, not a folder")
        _original(files, path, options, force=force)
        return
    if is_page or (not is_folder and path.suffix.lower() in _PAGE):
        if is_folder:
            raise click.UsageError("a page is one file: name a file, not a folder")
        _page(files, path, options, force=force)
        return
    is_gif = not is_folder and path.suffix.lower() == ".gif"
    _refuse_foreign(options, is_folder=is_folder, is_gif=is_gif)
    if is_folder or is_gif:
        _pictures(files, path, options, force=force, is_gif=is_gif)
    else:
        _table(files, path, options, force=force)


def _refuse_foreign(options: dict[str, Any], *, is_folder: bool, is_gif: bool) -> None:
    """Refuse options that would have no effect: the user meant something by them."""
    foreign = _OF_TABLES if is_folder or is_gif else _OF_PICTURES
    if is_folder:
        foreign = (*foreign, "speed")
    for name in foreign:
        if options[name]:
            flag = "--" + {"kinds": "kind"}.get(name, name).replace("_", "-")
            what = "a folder of PNG files" if is_folder else "a GIF" if is_gif else "a table"
            raise click.UsageError(f"{flag} does not apply to {what}")
    if (is_folder or is_gif) and options["stream"] and not options["space"]:
        raise click.UsageError(
            "--stream needs --space: a picture of the whole window shows the main stream of each space"
        )


def _table(files: tuple[Path, ...], output: Path, options: dict[str, Any], *, force: bool) -> None:
    module = _module_for(output)
    from gcspy_replay.file.export.tables import ExportSelection

    wanted = ExportSelection(
        **{name: options[name] for name in ("first", "last", "space", "stream", "tiles")}
    )
    with (
        opened(files) as recording,
        new_file(output, replace=force) as part,
        progress_bar(f"writing {output}") as progress,
    ):
        count: int = module.write(recording, part, wanted, progress)
    what = "messages" if output.suffix.lower() == ".mcap" else "rows"
    say(f"{output}: {count:,} {what}, {output.stat().st_size:,} bytes")
    if not count:
        say("gcspy: no space or stream matched: gcspy info lists them", err=True)


def _original(
    files: tuple[Path, ...], output: Path, options: dict[str, Any], *, force: bool
) -> None:
    for name in ("space", "stream", *_OF_TABLES, *_OF_PICTURES):
        if options[name]:
            flag = "--" + {"kinds": "kind"}.get(name, name).replace("_", "-")
            raise click.UsageError(f"{flag} does not apply to a trace of GCspy 1.0")
    from gcspy.recorder.original_traces import write_original

    with (
        opened(files) as recording,
        new_file(output, replace=force) as part,
        progress_bar(f"writing {output}") as progress,
    ):
        count, left_out = write_original(
            recording, part, first=options["first"], last=options["last"], progress=progress
        )
    say(f"{output}: {count:,} events, {output.stat().st_size:,} bytes")
    if left_out:
        _say(f"spaces that appear too late for GCspy 1.0 were left out: {', '.join(left_out)}")


def _page(files: tuple[Path, ...], output: Path, options: dict[str, Any], *, force: bool) -> None:
    for name in (*_OF_TABLES, *_OF_PICTURES):
        if options[name] and name != "theme":
            flag = "--" + {"kinds": "kind"}.get(name, name).replace("_", "-")
            raise click.UsageError(f"{flag} does not apply to a page")
    from gcspy.output.page_export import write_page
    from gcspy_client.page import PageSelection

    names = ("first", "last", "space", "stream")
    chosen = None
    if any(options[name] for name in (*names, "theme")):
        chosen = PageSelection(
            **{name: options[name] for name in names}, theme=options["theme"] or ""
        )
    with opened(files) as recording:
        write_page(recording, output, title=files[0].name, selection=chosen, replace=force)


def _pictures(
    files: tuple[Path, ...], output: Path, options: dict[str, Any], *, force: bool, is_gif: bool
) -> None:
    chosen = PictureOptions(
        **{name: options[name] for name in ("first", "last", "kinds", "space", "stream")},
        every=options["every"] or 1,
        most=options["most_frames"] or (MOST_FRAMES if is_gif else None),
        size=parse_size(options["size"] or "1280x800"),
        theme=options["theme"] or "dark",
    )
    with opened(files) as recording:
        if is_gif:
            speed = options["speed"] or 1.0
            taken = write_gif(recording, output, chosen, replace=force, speed=speed, say=_say)
        else:
            taken = write_png_folder(recording, output, chosen, replace=force)
    size = (
        output.stat().st_size if is_gif else sum(path.stat().st_size for path in output.iterdir())
    )
    say(f"{output}: {taken.pictures:,} {'frames' if is_gif else 'pictures'}, {size:,} bytes")
    if taken.left_out:
        _say(
            f"{taken.left_out:,} events were omitted at even intervals: --most-frames {taken.pictures + taken.left_out} shows all"
        )


def _say(text: str) -> None:
    say(f"gcspy: {text}", err=True)


def _module_for(output: Path) -> ModuleType:
    name = _FORMATS.get(output.suffix.lower())
    if name is None:
        raise CommandError(
            f"{output}: the suffix selects the format: .html, {', '.join(_FORMATS)}, .gif, {_ORIGINAL}; for a folder of PNG files "
            f"put a slash at the end: {output}/"
        )
    try:
        return importlib.import_module(f"gcspy_replay.file.export.{name}")
    except ModuleNotFoundError as error:
        raise CommandError(
            f"{output.suffix} needs the package {error.name}; in a clone of gcspy: pip install '.[export]'",
            exit_code=ExitCode.MISSING_PART,
        ) from error
