"""A file of heaptrack as an object trace of ours.

heaptrack keeps no addresses: a block has a size and a stack, and of blocks with equal ones any may be the one that is freed. Here the
youngest is. Addresses are in the order of births.

Source: heaptrack 1.4, file format version 3: src/interpret/heaptrack_interpret.cpp (what it writes), src/analyze/accumulatedtracedata.cpp (what it
reads). A line is a letter and hexadecimal numbers::

    v VERSION FORMAT            s LENGTH TEXT               i POINTER MODULE [FUNCTION FILE LINE]...   the innermost first
    t INSTRUCTION PARENT        a SIZE TRACE                + ALLOCATION        - ALLOCATION        c MILLISECONDS

Knows both formats; does not know who asks.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final

import numpy as np
import zstandard
from gcspy_protocol.errors import TraceError

from gcspy_objects.gctrace.address_model import AddressParameters
from gcspy_objects.gctrace.definitions import (
    FrameDefinition,
    SiteDefinition,
    TypeDefinition,
    pack_frame,
    pack_named,
    pack_site,
    pack_type,
)
from gcspy_objects.gctrace.events import EventColumns
from gcspy_objects.gctrace.layout import DefinitionKind
from gcspy_objects.gctrace.writer import TraceWriter
from gcspy_objects.names import TypeKind
from gcspy_objects.records import RecordKind

__all__ = ["convert_heaptrack", "is_heaptrack"]

_LONGEST_LINE: Final = 1 << 16
_MOST: Final = 1 << 23
"""Definitions of each kind."""
_LARGEST: Final = 1 << 40
_DEEPEST: Final = 1024
_MOST_STACKED: Final = 1 << 28
"""Frames of all sites together: a short file can have many deep stacks."""
_MOST_HELD: Final = 1 << 16
"""Definitions that wait to be written."""
_BLOCK_EVENTS: Final = 1 << 17
_FORMATS: Final = (2, 3)
_ZSTD, _GZIP = b"\x28\xb5\x2f\xfd", b"\x1f\x8b"


def is_heaptrack(path: Path) -> bool:
    """Return whether a path is a file of heaptrack: its first line has its version."""
    try:
        if not path.is_file():
            return False
        with ExitStack() as stack:
            line = _opened(path, stack).readline(64)
    except (OSError, EOFError, zstandard.ZstdError):
        return False
    words = line.split()
    return len(words) == 3 and words[0] == b"v" and words[1].isdigit() and words[2].isdigit()


def convert_heaptrack(path: Path, file: IO[bytes]) -> int:
    """Write a file of heaptrack as an object trace; return how many events it has.

    Raises:
        TraceError: It is damaged, or of another version. A file that ends early is read as far as it goes.
    """
    with ExitStack() as stack:
        return _Conversion(path, file).run(_opened(path, stack))


def _opened(path: Path, stack: ExitStack) -> IO[bytes]:
    raw = stack.enter_context(path.open("rb"))
    magic = raw.read(4)
    raw.seek(0)
    if magic == _ZSTD:
        reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
        return stack.enter_context(io.BufferedReader(reader))
    if magic[:2] == _GZIP:
        return stack.enter_context(io.BufferedReader(gzip.GzipFile(fileobj=raw)))
    return raw


class _Conversion:
    """One file."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path = path
        self._line = 0
        self._texts = 0
        self._instructions: list[tuple[int, ...]] = [()]
        """Numbers of the frames of each instruction, innermost first; it is called as by their place, from 1."""
        self._frames = self._stacked = 0
        self._stacks: list[tuple[int, int]] = [(0, 0)]
        self._allocations: list[tuple[int, int]] = []
        """Size and site of each."""
        self._live: dict[int, list[int]] = {}
        self._next = 4096
        self._rows: list[tuple[int, int, int, int, int]] = []
        self._stamp = 0
        self._definitions: list[bytes] = []
        self._writer = TraceWriter(
            file,
            {
                "name": path.name.split(".")[0], "runtime": "heaptrack", "writer": "heaptrack", "unit": "blocks", "births": "all", "deaths": "told",
                "moves": "none", "stacks": "full", "types": "none", "contiguous": "0", "addresses": "births",
            },
            AddressParameters(4, 1, 0),
        )  # fmt: skip
        self._definitions.append(
            pack_type(1, TypeDefinition(TypeKind.UNKNOWN, 0, 0, 0, "malloc", "malloc"))
        )

    def run(self, source: IO[bytes]) -> int:
        """Read all lines."""
        for line in self._lines(source):
            kind, _, rest = line.partition(b" ")
            if kind == b"+":
                self._allocate(self._known(rest, len(self._allocations)))
            elif kind == b"-":
                self._free(self._known(rest, len(self._allocations)))
            elif kind == b"c":
                self._stamp = max(self._stamp, self._numbers(rest, 1)[0] * 1_000_000)
            elif kind == b"s":
                self._text(rest)
            elif kind == b"i":
                self._instruction(self._numbers(rest, 2))
            elif kind == b"t":
                at, parent = self._numbers(rest, 2)[:2]
                if not 0 < at < len(self._instructions) or not 0 <= parent < len(self._stacks):
                    raise self._error(
                        f"instruction {at:,} and parent {parent:,}, which are not known"
                    )
                self._add(self._stacks, (at, parent))
            elif kind == b"a":
                size, stack = self._numbers(rest, 2)[:2]
                if size > _LARGEST or not 0 <= stack < len(self._stacks):
                    raise self._error(
                        f"{size:,} bytes by stack {stack:,}, of {len(self._stacks):,}"
                    )
                self._add(self._allocations, (size, stack))
                self._site(len(self._allocations), stack)
            elif kind == b"v":
                version = self._numbers(rest, 2)[1]
                if version not in _FORMATS:
                    raise self._error(f"version {version} of the format, not 2 or 3")
        self._flush()
        self._writer.end()
        return self._writer.events

    def _lines(self, source: IO[bytes]) -> Iterator[bytes]:
        while True:
            try:
                line = source.readline(_LONGEST_LINE + 1)
            except EOFError:
                return  # heaptrack was killed
            except (OSError, zstandard.ZstdError) as error:
                raise self._error(f"data that cannot be unpacked ({error})") from error
            self._line += 1
            if len(line) > _LONGEST_LINE:
                raise self._error(f"more than {_LONGEST_LINE:,} bytes")
            if not line.endswith(b"\n"):
                return
            yield line[:-1]

    def _numbers(self, text: bytes, least: int) -> list[int]:
        words = text.split()
        try:
            found = [int(word, 16) for word in words if len(word) <= 16]
        except ValueError:
            found = []
        if len(found) < least or len(found) != len(words) or min(found) < 0:
            raise self._error(
                f"{text[:60].decode('utf-8', 'replace')!r}, not {least} hexadecimal numbers"
            )
        return found

    def _known(self, text: bytes, count: int) -> int:
        number = self._numbers(text, 1)[0]
        if number >= count:
            raise self._error(f"allocation {number:,}, of {count:,}")
        return number

    def _add(self, items: list[tuple[int, int]], one: tuple[int, int]) -> None:
        if len(items) >= _MOST:
            raise self._error(f"more than {_MOST:,} definitions")
        items.append(one)

    def _text(self, rest: bytes) -> None:
        # Since format 3 the length stands before the text.
        length, _, text = rest.partition(b" ")
        try:
            whole = text if int(length, 16) == len(text) else rest
        except ValueError:
            whole = rest
        self._texts += 1
        if self._texts >= _MOST:
            raise self._error(f"more than {_MOST:,} texts")
        words = whole.decode("utf-8", "replace")
        self._definitions.append(pack_named(DefinitionKind.TEXT, self._texts, words))

    def _instruction(self, numbers: list[int]) -> None:
        pc, places = numbers[0], numbers[2:]
        frames = []
        for start in range(0, len(places), 3):
            function, file, line = (*places[start : start + 3], 0, 0)[:3]
            if max(function, file) > self._texts:
                raise self._error(f"text {max(function, file):,}, of {self._texts:,}")
            frames.append(FrameDefinition(function, file, min(line, 1 << 30), pc=pc))
        if not frames:
            # Of a module without symbols: its name.
            frames.append(FrameDefinition(min(numbers[1], self._texts), pc=pc))
        if self._frames + len(frames) >= _MOST:
            raise self._error(f"more than {_MOST:,} frames")
        first = self._frames + 1
        self._frames += len(frames)
        self._definitions += [pack_frame(first + row, one) for row, one in enumerate(frames)]
        self._instructions.append(tuple(range(first, self._frames + 1)))

    def _site(self, number: int, stack: int) -> None:
        frames: list[int] = []
        while stack and len(frames) < _DEEPEST:
            at, stack = self._stacks[stack]
            frames += self._instructions[at]
        self._stacked += min(len(frames), _DEEPEST)
        if self._stacked > _MOST_STACKED:
            raise self._error(f"more than {_MOST_STACKED:,} frames of stacks")
        if len(self._definitions) >= _MOST_HELD:
            self._writer.define(self._definitions)
            self._definitions = []
        self._definitions.append(pack_site(number, SiteDefinition(0, "", tuple(frames[:_DEEPEST]))))

    def _allocate(self, allocation: int) -> None:
        size = self._allocations[allocation][0]
        self._live.setdefault(allocation, []).append(self._next)
        self._event(RecordKind.ALLOCATE, self._next, size, allocation + 1)
        self._next += max(size + 15 & ~15, 16)
        if self._next >= 1 << 47:
            raise self._error("more bytes than there are addresses")

    def _free(self, allocation: int) -> None:
        blocks = self._live.get(allocation)
        if not blocks:
            raise self._error(f"a free of allocation {allocation:,}, of which no block lives")
        self._event(RecordKind.FREE, blocks.pop(), 0, 0)

    def _event(self, kind: RecordKind, address: int, size: int, site: int) -> None:
        self._rows.append((kind, address, size, site, self._stamp))
        if len(self._rows) >= _BLOCK_EVENTS:
            self._flush()

    def _flush(self) -> None:
        self._writer.define(self._definitions)
        self._definitions = []
        if not self._rows:
            return
        kind, address, size, site, stamp = np.array(self._rows, np.int64).T
        self._rows.clear()
        zeros = np.zeros(len(kind), np.int32)
        first = int(stamp[0])
        columns = EventColumns(
            kind.astype(np.uint8), zeros.astype(np.uint8), zeros.astype(np.uint8), None, address.copy(), np.zeros(len(kind), np.int64),
            size.copy(), (kind == RecordKind.ALLOCATE).astype(np.int32), site.astype(np.int32), zeros, stamp - first,
        )  # fmt: skip
        self._writer.write(columns, thread=1, first_stamp=first)

    def _error(self, found: str) -> TraceError:
        return TraceError(
            f"{self._path}: damaged at line {self._line:,}: {found}", file=str(self._path)
        )
