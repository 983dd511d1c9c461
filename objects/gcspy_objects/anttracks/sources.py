"""Finds the files of a run: in a folder, an archive, or beside a named file.

Files are identified by their prefix, whatever they are called: which of the three they are, and by their key which run they belong to.

Knows the prefix; does not know what follows it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from gcspy_protocol.errors import TraceError

from gcspy_objects.anttracks.layout import DATA_OFFSET, KEY_WORDS, MAGIC, PREFIX_BYTES, FileType
from gcspy_objects.archive import MAX_FILES, FileSpan, members

__all__ = ["TraceRun", "find_run"]

_MAX_SYMBOLS_BYTES: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class TraceRun:
    """The files of a run.

    Attributes:
        symbols: The symbols file, whole.
        symbols_name: Its name.
        traces: Trace files in their order.
        closing: Closes them.
    """

    symbols: bytes
    symbols_name: str
    traces: tuple[FileSpan, ...]
    closing: ExitStack


@dataclass(frozen=True, slots=True)
class _Found:
    span: FileSpan
    type: FileType
    key: bytes
    index: int


def find_run(path: Path) -> TraceRun:
    """Find the files of the run at `path`: a folder, an archive of one, or a trace file with its symbols beside it.

    Raises:
        TraceError: There is none, or more than one.
    """
    with ExitStack() as opened:
        try:
            mode = path.stat().st_mode
            if stat.S_ISDIR(mode):
                found = list(_in_folder(path, opened))
            elif not stat.S_ISREG(mode):  # opening a pipe would wait for its writer
                raise TraceError(
                    f"{path}: neither a file nor a folder; expected a trace file, a folder or an archive of one",
                    file=str(path),
                )
            else:
                file = opened.enter_context(path.open("rb"))
                span = FileSpan(file, 0, os.fstat(file.fileno()).st_size, path.name)
                one = _look(span)
                found = (
                    list(_in_archive(span, opened)) if one is None else _beside(one, path, opened)
                )
        except OSError as error:
            raise TraceError(f"{path}: cannot be read: {error.strerror}", file=str(path)) from error
        symbols, traces = _one_run(found, path)
        if symbols.span.size > _MAX_SYMBOLS_BYTES:
            raise TraceError(
                f"{symbols.span.name}: has {symbols.span.size:,} bytes; symbols of at most {_MAX_SYMBOLS_BYTES:,} are read",
                file=symbols.span.name,
            )
        data = symbols.span.read(0, symbols.span.size)
        return TraceRun(
            data, symbols.span.name, tuple(one.span for one in traces), opened.pop_all()
        )


def _look(span: FileSpan) -> _Found | None:
    """Identify a file by its prefix; None if it is not one of ours."""
    prefix = span.read(0, DATA_OFFSET)
    if (
        len(prefix) < PREFIX_BYTES
        or int.from_bytes(prefix[:4], "little") != MAGIC
        or int.from_bytes(prefix[4:8], "little") != KEY_WORDS
    ):
        return None
    number = int.from_bytes(prefix[PREFIX_BYTES - 4 : PREFIX_BYTES], "little")
    if number not in set(FileType):
        raise TraceError(
            f"{span.name}: is file type {number} of a run; expected 0 (symbols), 1 (trace) or 2 (class definitions)",
            file=span.name,
            offset=PREFIX_BYTES - 4,
        )
    if number == FileType.TRACE and len(prefix) < DATA_OFFSET:
        raise TraceError(
            f"{span.name}: ends after {len(prefix)} bytes; expected the index of a trace file, {DATA_OFFSET} bytes at least",
            file=span.name,
            offset=len(prefix),
        )
    return _Found(
        span,
        FileType(number),
        prefix[8 : PREFIX_BYTES - 4],
        int.from_bytes(prefix[PREFIX_BYTES:], "little"),
    )


def _in_folder(folder: Path, opened: ExitStack) -> Iterator[_Found]:
    paths = [path for path in sorted(folder.iterdir()) if path.is_file()]
    if len(paths) > MAX_FILES:
        raise TraceError(
            f"{folder}: has {len(paths):,} files; folders of at most {MAX_FILES:,} are looked through: name the trace file itself",
            file=str(folder),
        )
    for path in paths:
        with ExitStack() as mine:
            try:
                file = mine.enter_context(path.open("rb"))
            except PermissionError:  # we may not read it, so it is not the requested file
                continue
            found = _look(FileSpan(file, 0, os.fstat(file.fileno()).st_size, path.name))
            if found is not None:
                opened.push(mine.pop_all())
                yield found


def _beside(one: _Found, path: Path, opened: ExitStack) -> list[_Found]:
    """Return a trace file that was named, or all of its run, and the symbols beside it."""
    others = [each for each in _in_folder(path.parent, opened) if each.key == one.key]
    return [
        each
        for each in others
        if each.type != FileType.TRACE or one.type != FileType.TRACE or each.span.name == path.name
    ]


def _one_run(found: list[_Found], path: Path) -> tuple[_Found, list[_Found]]:
    """Choose symbols and trace files that belong together."""
    symbols = [one for one in found if one.type == FileType.SYMBOLS]
    traces = sorted((one for one in found if one.type == FileType.TRACE), key=lambda one: one.index)
    if not traces:
        raise TraceError(
            f"{path}: no object trace here; expected a file that AntTracks wrote, a folder or a tar archive with the files of a run",
            file=str(path),
        )
    runs = {one.key for one in traces}
    if len(runs) > 1:
        names = ", ".join(one.span.name for one in traces[:4])
        raise TraceError(
            f"{path}: has the traces of {len(runs)} runs ({names}): name one of the files",
            file=str(path),
        )
    ours = [one for one in symbols if one.key in runs]
    if not ours:
        others = (
            f"; the symbols of another run are there: {symbols[0].span.name}" if symbols else ""
        )
        raise TraceError(
            f"{path}: the symbols file of the run is missing, without which no event has a meaning: put it beside {traces[0].span.name}{others}",
            file=str(path),
        )
    for before, after in pairwise(traces):
        if after.index != before.index + 1:
            wrong = (
                "is there twice"
                if after.index == before.index
                else f"follows on file {before.index}: those between are missing"
            )
            raise TraceError(
                f"{path}: file {after.index} of the trace ({after.span.name}) {wrong}",
                file=after.span.name,
            )
    return ours[0], traces


def _in_archive(span: FileSpan, opened: ExitStack) -> Iterator[_Found]:
    for member in members(span, opened):
        found = _look(member)
        if found is not None:
            yield found
