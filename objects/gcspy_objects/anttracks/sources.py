"""Where the files of a run are: a folder, an archive, or beside a file that was named.

Files are told by their prefix, whatever they are called: which of the three they are, and by their key which run they belong to. An archive is
unpacked into a temporary file without a name, which is gone when the trace is closed, however that happens; then its members are read from there.

Knows the prefix, and nothing of what follows it.
"""

from __future__ import annotations

import io
import lzma
import os
import shutil
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Final

from gcspy_protocol.errors import TraceError

from gcspy_objects.anttracks.layout import DATA_OFFSET, KEY_WORDS, MAGIC, PREFIX_BYTES, FileType

__all__ = ["Run", "Span", "find_run"]

_MAX_SYMBOLS_BYTES: Final = 256 << 20
_MAX_FILES: Final = 10_000
_MAX_READ: Final = 1 << 20
_STEP: Final = 1 << 18
_XZ_MEMORY: Final = 256 << 20
_XZ: Final = b"\xfd7zXZ\0"
_GZIP: Final = b"\x1f\x8b"
_TAR_AT: Final = 257


@dataclass(frozen=True, slots=True)
class Span:
    """A file, or the part of one that is a member of an archive.

    Attributes:
        file: Where it is.
        start: Where in `file` it begins, bytes.
        size: Bytes.
        name: What to call it in messages.
    """

    file: IO[bytes]
    start: int
    size: int
    name: str

    def read(self, position: int, count: int) -> bytes:
        """Read `count` bytes from `position` on, or as many as there are."""
        count = min(count, self.size - position)
        if count <= 0:
            return b""
        try:
            if hasattr(os, "pread"):  # no matter who else reads the file, in which thread
                return os.pread(self.file.fileno(), count, self.start + position)
            self.file.seek(self.start + position)
            return self.file.read(count)
        except OSError as error:
            raise TraceError(
                f"{self.name}: cannot be read at byte {position:,}: {error.strerror}",
                file=self.name,
                offset=position,
            ) from error


@dataclass(frozen=True, slots=True)
class Run:
    """The files of a run.

    Attributes:
        symbols: The symbols file, whole.
        symbols_name: What to call it.
        traces: Trace files in their order.
        closing: What closes them.
    """

    symbols: bytes
    symbols_name: str
    traces: tuple[Span, ...]
    closing: ExitStack


@dataclass(frozen=True, slots=True)
class _Found:
    span: Span
    type: FileType
    key: bytes
    index: int


def find_run(path: Path) -> Run:
    """Find the files of the run at `path`: a folder, an archive of one, or a trace file with its symbols beside it.

    Raises:
        TraceError: There is none, or not one.
    """
    with ExitStack() as opened:
        try:
            mode = path.stat().st_mode
            if stat.S_ISDIR(mode):
                found = list(_in_folder(path, opened))
            elif not stat.S_ISREG(mode):  # opening a pipe would wait for who writes it
                raise TraceError(
                    f"{path}: neither a file nor a folder; expected a trace file, a folder or an archive of one",
                    file=str(path),
                )
            else:
                file = opened.enter_context(path.open("rb"))
                span = Span(file, 0, os.fstat(file.fileno()).st_size, path.name)
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
        return Run(data, symbols.span.name, tuple(one.span for one in traces), opened.pop_all())


def _look(span: Span) -> _Found | None:
    """Say what a file is by its prefix; None if it is none of ours."""
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
    if len(paths) > _MAX_FILES:
        raise TraceError(
            f"{folder}: has {len(paths):,} files; folders of at most {_MAX_FILES:,} are looked through: name the trace file itself",
            file=str(folder),
        )
    for path in paths:
        with ExitStack() as mine:
            try:
                file = mine.enter_context(path.open("rb"))
            except PermissionError:  # not ours to read, so not what we were asked for
                continue
            found = _look(Span(file, 0, os.fstat(file.fileno()).st_size, path.name))
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


# Archives.


def _in_archive(span: Span, opened: ExitStack) -> Iterator[_Found]:
    head = span.read(0, _TAR_AT + 5)
    plain = span
    if head.startswith(_XZ):
        plain = _unpacked(span, lzma.LZMADecompressor(memlimit=_XZ_MEMORY), opened)
    elif head.startswith(_GZIP):
        plain = _unpacked(span, _Gzip(), opened)
    if plain.read(_TAR_AT, 5) != b"ustar":
        raise TraceError(
            f"{span.name}: not an object trace; expected a file that AntTracks wrote, or a tar archive of the files of a run (plain, .gz or .xz)",
            file=span.name,
        )
    try:
        with tarfile.open(fileobj=_Bounded(plain), mode="r:") as archive:
            for count, member in enumerate(archive):
                if count == _MAX_FILES:
                    raise TraceError(
                        f"{span.name}: archives of at most {_MAX_FILES:,} files are read",
                        file=span.name,
                    )
                if (
                    member.isreg()
                    and not member.issparse()
                    and member.offset_data + member.size <= plain.size
                ):
                    found = _look(
                        Span(
                            plain.file,
                            plain.start + member.offset_data,
                            member.size,
                            f"{span.name}/{member.name.lstrip('./')}",
                        )
                    )
                    if found is not None:
                        yield found
                elif member.isreg():
                    raise TraceError(
                        f"{span.name}: ends in the midst of {member.name}",
                        file=span.name,
                        offset=plain.size,
                    )
    except (tarfile.TarError, ValueError) as error:
        raise TraceError(f"{span.name}: a damaged archive: {error}", file=span.name) from error


class _Gzip:
    """zlib's decompressor with the face of lzma's, as far as it is needed here."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


def _unpacked(span: Span, decompressor: lzma.LZMADecompressor | _Gzip, opened: ExitStack) -> Span:
    """Decompress a file into a temporary one; as long as a tenth of the disk is left."""
    spool: IO[bytes] = opened.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  # the trace closes it
    room = int(shutil.disk_usage(tempfile.gettempdir()).free * 0.9)
    read = written = 0
    unpack: Callable[..., bytes] = decompressor.decompress
    try:
        while not decompressor.eof:
            data = span.read(read, _STEP) if decompressor.needs_input else b""
            if decompressor.needs_input and not data:
                raise TraceError(
                    f"{span.name}: a damaged archive: ends after {read:,} bytes, in the midst of what is compressed",
                    file=span.name,
                    offset=read,
                )
            read += len(data)
            plain = unpack(data, _STEP)
            written += len(plain)
            if written > room:
                raise TraceError(
                    f"{span.name}: unpacks to more than the {room:,} bytes that the disk of temporary files has room for: unpack it elsewhere, and name the folder",
                    file=span.name, offset=read,
                )  # fmt: skip
            spool.write(plain)
        spool.flush()
    except (lzma.LZMAError, zlib.error) as error:
        raise TraceError(
            f"{span.name}: a damaged archive, at or before byte {read:,}: {error}",
            file=span.name,
            offset=read,
        ) from error
    return Span(spool, 0, written, span.name)


class _Bounded(io.RawIOBase):
    """A span as a file for `tarfile`, which would read a header of any length into memory."""

    def __init__(self, span: Span) -> None:
        super().__init__()
        self._span = span
        self._at = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Return where it is."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        self._at = (
            offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._span.size}[whence]
        )
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Read, but not much at once."""
        if not 0 <= size <= _MAX_READ:
            raise tarfile.ReadError(f"a header of {size:,} bytes")
        found = self._span.read(self._at, size)
        self._at += len(found)
        return found
