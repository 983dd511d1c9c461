"""Archives of files: tar, plain, .gz or .xz, unpacked within bounds.

An archive is unpacked into a temporary file without a name, which disappears when its reader closes
it or ends; its members are read from there. An archive of some kilobytes that claims to unpack to
gigabytes is refused after a few megabytes.

Knows archives; does not know their content.
"""

from __future__ import annotations

import io
import lzma
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Final

from gcspy_protocol.errors import TraceError

__all__ = ["MAX_FILES", "FileSpan", "is_archive", "members"]

MAX_FILES: Final = 10_000
_MAX_READ: Final = 1 << 20
_STEP: Final = 1 << 18
_XZ_MEMORY: Final = 256 << 20
_MOST_RATIO: Final = 256
_FREE_BYTES: Final = 16 << 20
"""An archive may unpack to this many bytes for each of its own, plus this many. Those of traces become 4 to 32 times smaller."""
_XZ: Final = b"\xfd7zXZ\0"
_GZIP: Final = b"\x1f\x8b"
_TAR_AT: Final = 257
_TAR: Final = b"ustar"


@dataclass(frozen=True, slots=True)
class FileSpan:
    """A file, or the part of one that is a member of an archive.

    Attributes:
        file: Its file.
        start: Its start in `file`, bytes.
        size: Bytes.
        name: Name for messages.
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


def is_archive(span: FileSpan) -> bool:
    """Whether a file begins as an archive does; one that is compressed may still be something else."""
    head = span.read(0, _TAR_AT + len(_TAR))
    return head.startswith((_XZ, _GZIP)) or head.endswith(_TAR)


def members(span: FileSpan, opened: ExitStack) -> Iterator[FileSpan]:
    """Yield the files of an archive.

    Args:
        span: The archive.
        opened: Closes the unpacked file.

    Raises:
        TraceError: It is not an archive, is damaged, or would unpack to too much.
    """
    head = span.read(0, _TAR_AT + len(_TAR))
    plain = span
    if head.startswith(_XZ):
        plain = _unpacked(span, lzma.LZMADecompressor(memlimit=_XZ_MEMORY), opened)
    elif head.startswith(_GZIP):
        plain = _unpacked(span, _Gzip(), opened)
    if plain.read(_TAR_AT, len(_TAR)) != _TAR:
        raise TraceError(
            f"{span.name}: not an object trace; expected a file that AntTracks wrote, or a tar archive of the files of a run (plain, .gz or .xz)",
            file=span.name,
        )
    try:
        with tarfile.open(fileobj=_Bounded(plain), mode="r:") as archive:
            for count, member in enumerate(archive):
                if count == MAX_FILES:
                    raise TraceError(
                        f"{span.name}: archives of at most {MAX_FILES:,} files are read",
                        file=span.name,
                    )
                if not member.isreg():
                    continue
                if member.size < 0 or member.offset_data + member.size > plain.size:
                    raise TraceError(
                        f"{span.name}: ends in the midst of {member.name}",
                        file=span.name,
                        offset=plain.size,
                    )
                if not member.issparse():
                    name = f"{span.name}/{member.name.lstrip('./')}"
                    yield FileSpan(plain.file, plain.start + member.offset_data, member.size, name)
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


def _unpacked(
    span: FileSpan, decompressor: lzma.LZMADecompressor | _Gzip, opened: ExitStack
) -> FileSpan:
    """Decompress a file into a temporary one, as long as it does not exceed the limit, and a tenth of the disk stays free."""
    spool: IO[bytes] = opened.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  # the trace closes it
    disk = int(shutil.disk_usage(tempfile.gettempdir()).free * 0.9)
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
            if written > _MOST_RATIO * read + _FREE_BYTES:
                raise TraceError(
                    f"{span.name}: {read:,} bytes of it unpack to more than {_MOST_RATIO} times as many, which those of a trace never do; if you trust it, unpack it, and name the folder",
                    file=span.name, offset=read,
                )  # fmt: skip
            if written > disk:
                raise TraceError(
                    f"{span.name}: unpacks to more than the {disk:,} bytes that the disk of temporary files has room for: unpack it elsewhere, and name the folder",
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
    return FileSpan(spool, 0, written, span.name)


class _Bounded(io.RawIOBase):
    """A span as a file for `tarfile`, which would read a header of any length into memory, and headers again that lead backwards."""

    def __init__(self, span: FileSpan) -> None:
        super().__init__()
        self._span = span
        self._at = 0
        self._left = span.size + _MAX_READ

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
        self._left -= len(found)
        if self._left < 0:
            raise tarfile.ReadError("headers that lead backwards")
        self._at += len(found)
        return found
