"""`gcspy convert`: an object trace, or a stored trace of the original GCspy, into a recording; or an object trace into another format."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import click

from gcspy.options import RecordingPath, trace_options
from gcspy.output.terminal import say, say_aside
from gcspy.recorder.original_traces import names_original

__all__ = ["command"]

SUFFIX = ".gctrace"
"""Ending of object traces of ours."""


@click.command()
@click.argument("trace", metavar="TRACE", type=RecordingPath(exists=True, path_type=Path))
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="File to write.",
)
@click.option(
    "--to",
    "target",
    type=click.Choice(["recording", "gctrace", "anttracks"]),
    help="Format to write. Default: gctrace if FILE ends in .gctrace, else recording. anttracks: FILE is a new folder.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing recording.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
@trace_options
def command(
    trace: Path | str,
    output: Path,
    target: str | None,
    force: bool,
    as_json: bool,
    tile_bytes: int | None,
    clock_bytes: int | None,
) -> None:
    """Convert an object trace, or a trace of GCspy 1.0, to a recording.

    TRACE is an object trace of gcspy (.gctrace), a folder with the files of an AntTracks trace, its
    trace file, or a .tar.xz of them.
    The recording shows the rebuilt heap at the start and the end of each collection, and between
    them at fixed amounts of allocation. A recording has no single objects: for those, use
    `gcspy replay TRACE` and `gcspy objects`.

    If FILE ends in .gctrace, the result is an object trace of gcspy instead: every record and every
    name of TRACE, in a fraction of the bytes (objects/FORMAT.md). So a .gctrace is packed, too.
    With --to anttracks it is a folder with the files of an AntTracks trace; a trace with frees
    cannot become one.

    TRACE may also be a file of heaptrack or memray, if FILE ends in .gctrace: blocks and whole
    stacks, of heaptrack without addresses. Files of memray need its library: pip install memray.

    TRACE may also be a trace of GCspy 1.0 (2002): what its server sent, compressed by gzip or not; or
    the address of a file, such as s3://BUCKET/NAME, which is copied first.
    """
    options = (output, target, force, as_json, tile_bytes, clock_bytes)
    if isinstance(trace, Path):
        _convert(trace, *options)
        return
    from gcspy.output.progress import progress_bar
    from gcspy.storage.local_copy import local_copy

    with ExitStack() as stack:
        with progress_bar("copying the trace") as progress:
            copy = stack.enter_context(local_copy(trace, progress))
        _convert(copy, *options)


def _convert(
    trace: Path,
    output: Path,
    target: str | None,
    force: bool,
    as_json: bool,
    tile_bytes: int | None,
    clock_bytes: int | None,
) -> None:
    if names_original(trace):
        if tile_bytes is not None or clock_bytes is not None:
            raise click.UsageError(
                "--tile-bytes and --clock-bytes are for object traces: a trace of GCspy 1.0 has its tiles and events"
            )
        _convert_original(trace, output, force=force, as_json=as_json)
        return
    target = target or ("gctrace" if output.suffix == SUFFIX else "recording")
    if target != "recording":
        if tile_bytes is not None or clock_bytes is not None:
            raise click.UsageError(
                "--tile-bytes and --clock-bytes are for recordings: an object trace has neither"
            )
        from gcspy_objects.heaptrack.conversion import is_heaptrack
        from gcspy_objects.memray.conversion import is_memray

        if target == "gctrace" and (is_heaptrack(trace) or is_memray(trace)):
            _convert_other(trace, output, force=force, as_json=as_json)
        elif target == "gctrace":
            _convert_trace(trace, output, force=force, as_json=as_json)
        else:
            _convert_to_anttracks(trace, output, as_json=as_json)
        return
    from gcspy_drivers.traced import TracedOptions, TracedSession
    from gcspy_replay.file import FileStore

    from gcspy.objects.trace_conversion import opened_heap, record_trace
    from gcspy.output.progress import progress_bar
    from gcspy.recorder.new_file import new_file

    options = TracedOptions(tile_bytes=tile_bytes, clock_bytes=clock_bytes)
    with new_file(output, replace=force) as part, progress_bar(f"converting {trace.name}") as bar:

        def advance(_what: str, done: int, total: int) -> None:
            bar(done, total)

        with opened_heap(trace, advance) as heap:
            session = TracedSession(heap, options)
            events = record_trace(session, FileStore(part, replace=True), advance, path=trace)
            size = part.stat().st_size
            collections, ended, notes = len(heap.collections), heap.ended, session.notes
    facts = {
        "file": str(output),
        "events": events,
        "bytes": size,
        "collections": collections,
        "tile_bytes": session.tile_bytes,
        "clock_bytes": session.clock_bytes,
        "notes": notes,
    }
    if as_json:
        say(json.dumps(facts))
    else:
        say(
            f"gcspy: {output}: {events:,} events of {collections:,} collections, {size:,} bytes; tiles of {session.tile_bytes:,} bytes"
        )
    for note in notes:
        if ended is None or str(ended) not in note:  # that is the error that this reports
            say_aside(note)
    if ended is not None:
        raise ended


def _convert_other(trace: Path, output: Path, *, force: bool, as_json: bool) -> None:
    """Write a file of heaptrack or memray as an object trace of ours."""
    from gcspy_objects.heaptrack.conversion import convert_heaptrack, is_heaptrack
    from gcspy_objects.memray.conversion import convert_memray

    from gcspy.recorder.new_file import new_file

    with new_file(output, replace=force) as part, part.open("wb") as file:
        without = is_heaptrack(trace)
        events = convert_heaptrack(trace, file) if without else convert_memray(trace, file)
    size, before = output.stat().st_size, trace.stat().st_size
    facts = {"file": str(output), "events": events, "bytes": size, "bytes_before": before}
    say(
        json.dumps(facts)
        if as_json
        else f"gcspy: {output}: {events:,} events, {size:,} bytes; {before:,} bytes before{', without addresses' if without else ''}"
    )


def _convert_trace(trace: Path, output: Path, *, force: bool, as_json: bool) -> None:
    """Write an object trace as one of ours."""
    from gcspy_objects.gctrace.conversion import convert_trace
    from gcspy_objects.trace import open_trace

    from gcspy.output.progress import progress_bar
    from gcspy.recorder.new_file import new_file

    with (
        open_trace(trace) as opened,
        new_file(output, replace=force) as part,
        progress_bar(f"converting {trace.name}") as bar,
        part.open("wb") as file,
    ):
        written = convert_trace(opened, file, progress=bar)
        before = opened.size_bytes
    facts = {
        "file": str(output),
        "events": written.events,
        "bytes": written.bytes,
        "bytes_before": before,
    }
    say(
        json.dumps(facts)
        if as_json
        else f"gcspy: {output}: {written.events:,} events, {written.bytes:,} bytes, {written.bytes / max(written.events, 1):.2f} an event; {before:,} bytes before"
    )


def _convert_to_anttracks(trace: Path, folder: Path, *, as_json: bool) -> None:
    """Write an object trace as the files of AntTracks."""
    from gcspy_objects.anttracks.writer import write_anttracks
    from gcspy_objects.trace import open_trace

    from gcspy.output.progress import progress_bar

    with open_trace(trace) as opened, progress_bar(f"converting {trace.name}") as bar:
        try:
            events = write_anttracks(opened, folder, bar)
        except FileExistsError:
            raise click.UsageError(f"{folder} exists already: name a new folder") from None
    size = sum(one.stat().st_size for one in folder.iterdir())
    facts = {"folder": str(folder), "events": events, "bytes": size}
    say(json.dumps(facts) if as_json else f"gcspy: {folder}: {events:,} events, {size:,} bytes")


def _convert_original(trace: Path, output: Path, *, force: bool, as_json: bool) -> None:
    from gcspy_replay.file import FileStore

    from gcspy.output.progress import progress_bar
    from gcspy.recorder.new_file import new_file
    from gcspy.recorder.original_traces import record_original

    with new_file(output, replace=force) as part, progress_bar(f"converting {trace.name}") as bar:
        converted = record_original(
            trace,
            lambda: FileStore(part, replace=True),
            lambda _what, done, total: bar(done, total),
        )
        size = part.stat().st_size
    facts = {
        "file": str(output),
        "events": converted.events,
        "bytes": size,
        "notes": converted.notes,
    }
    say(
        json.dumps(facts)
        if as_json
        else f"gcspy: {output}: {converted.events:,} events, {size:,} bytes"
    )
    if converted.ended is not None:
        raise converted.ended
