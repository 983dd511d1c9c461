"""The files of an object trace: found, and looked through for blocks, definitions and watermarks, again when they have grown.

Knows blocks and where they are; decodes no event.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_right
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from gcspy_protocol.errors import TraceError

from gcspy_objects.archive import MAX_FILES, FileSpan
from gcspy_objects.gctrace.blocks import (
    TraceBlock,
    is_object_trace,
    read_blocks,
    read_payload,
    read_prefix,
    trace_damage,
)
from gcspy_objects.gctrace.definitions import DefinitionError, Definitions, read_pairs
from gcspy_objects.gctrace.layout import PREFIX, SUFFIX, BlockKind

__all__ = ["TracePart", "Watermark", "find_parts"]

_WATERMARK_BYTES: Final = 24
_MAX_BLOCKS: Final = 1 << 24


class Watermark(NamedTuple):
    """A watermark.

    Attributes:
        stamp: All events up to it are in blocks before.
        earliest: Offset of the earliest block with a later event.
        end: Offset behind its block.
    """

    stamp: int
    earliest: int
    end: int


@dataclass(slots=True, eq=False)
class TracePart:
    """A file of a trace.

    Attributes:
        span: The file, as long as it was when it was looked at last.
        header: Keys and values of its HEADER.
        blocks: Its EVENTS and ACCESSED blocks.
        watermarks: Its watermarks.
        ended: Keys and values of its END; None: there is none.
        scanned: Offset up to which it was looked through.
        damage: What ended looking; None: nothing did.
    """

    span: FileSpan
    header: dict[str, str] = field(default_factory=dict)
    blocks: list[TraceBlock] = field(default_factory=list)
    watermarks: list[Watermark] = field(default_factory=list)
    ended: dict[str, str] | None = None
    scanned: int = PREFIX.size
    damage: TraceError | None = None
    _offsets: list[int] = field(default_factory=list)
    _open: list[TraceBlock] = field(default_factory=list)

    @property
    def number(self) -> int:
        """Number of the part in its run."""
        text = self.header.get("part", "0")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0

    def scan(self, definitions: Definitions) -> bool:
        """Look through what was added since the last time, and take its definitions. Returns whether something was."""
        before = self.scanned
        try:
            self.span = replace(self.span, size=max(self._size(), self.scanned))
            if self.damage is None:
                for block in read_blocks(self.span, self.scanned):
                    self._take(block, definitions)
                    self.scanned = block.end
        except TraceError as error:
            self.damage = error
        return self.scanned > before

    def first_block(self, offset: int) -> int:
        """Return the row of the first block at or behind an offset."""
        row = bisect_right(self._offsets, offset)
        return row - 1 if row and self._offsets[row - 1] == offset else row

    def floor(self, block: TraceBlock) -> int:
        """Return the stamp of the last watermark before a block; -1: there is none."""
        row = bisect_right([one.end for one in self.watermarks], block.offset)
        return self.watermarks[row - 1].stamp if row else -1

    def _size(self) -> int:
        try:
            whole = os.fstat(self.span.file.fileno()).st_size
        except OSError:
            return self.span.size
        return whole if self.span.start == 0 else self.span.size

    def _take(self, block: TraceBlock, definitions: Definitions) -> None:
        if block.offset == PREFIX.size and block.kind != BlockKind.HEADER:
            raise trace_damage(
                self.span, block.offset, f"a block of kind {block.kind}; expected the HEADER"
            )
        if block.kind in (BlockKind.EVENTS, BlockKind.ACCESSED):
            if len(self.blocks) >= _MAX_BLOCKS:
                raise trace_damage(self.span, block.offset, f"more than {_MAX_BLOCKS:,} blocks")
            self.blocks.append(block)
            self._offsets.append(block.offset)
            self._open.append(block)
            return
        if block.kind not in set(BlockKind):
            return
        payload = read_payload(self.span, block)
        try:
            if block.kind == BlockKind.HEADER and block.offset == PREFIX.size:
                self.header = read_pairs(payload)
            elif block.kind == BlockKind.DEFINITIONS:
                definitions.read(payload)
            elif block.kind == BlockKind.END:
                self.ended = read_pairs(payload)
            elif block.kind == BlockKind.WATERMARK:
                self._take_watermark(block, payload)
        except DefinitionError as error:
            raise trace_damage(self.span, block.offset, str(error)) from error

    def _take_watermark(self, block: TraceBlock, payload: bytes) -> None:
        if len(payload) < _WATERMARK_BYTES:
            raise trace_damage(
                self.span,
                block.offset,
                f"a WATERMARK of {len(payload)} bytes; expected {_WATERMARK_BYTES}",
            )
        stamp, earliest = (int.from_bytes(payload[at : at + 8], "little") for at in (0, 8))
        last = self.watermarks[-1] if self.watermarks else None
        if stamp >= 1 << 62 or earliest > block.offset or (last is not None and stamp < last.stamp):
            raise trace_damage(
                self.span,
                block.offset,
                f"a WATERMARK of stamp {stamp:,}, offset {earliest:,}; expected a later stamp, and an offset before it",
            )
        # What the headers say counts: a writer that is wrong about the offset would lose events.
        self._open = [one for one in self._open if one.last_stamp > stamp]
        self.watermarks.append(
            Watermark(stamp, self._open[0].offset if self._open else block.offset, block.end)
        )


def find_parts(path: Path, opened: ExitStack) -> list[TracePart]:
    """Find the files of the trace at `path`, a file or a folder; they are opened, and not looked through beyond their HEADERs.

    Raises:
        TraceError: There is none, or they are of several runs.
    """
    try:
        paths = [path]
        if path.is_dir():
            paths = sorted(one for one in path.iterdir() if one.suffix == SUFFIX)
        if len(paths) > MAX_FILES:
            raise TraceError(
                f"{path}: has {len(paths):,} files; expected at most {MAX_FILES:,}", file=str(path)
            )
        parts = [_opened(one, opened) for one in paths]
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}", file=str(path)) from error
    if not parts:
        raise TraceError(
            f"{path}: has no object trace; expected files that end in {SUFFIX}", file=str(path)
        )
    runs = {part.header.get("run", "") for part in parts}
    if len(runs) > 1:
        raise TraceError(
            f"{path}: has the traces of {len(runs)} runs: name one of the files", file=str(path)
        )
    parts.sort(key=lambda part: part.number)
    for before, after in pairwise(parts):
        if after.number != before.number + 1:
            raise TraceError(
                f"{path}: part {after.number} ({after.span.name}) follows part {before.number}; expected part {before.number + 1}",
                file=after.span.name,
            )
    return parts


def _opened(path: Path, opened: ExitStack) -> TracePart:
    if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for its writer
        raise TraceError(f"{path}: not a file", file=str(path))
    file = opened.enter_context(path.open("rb"))
    span = FileSpan(file, 0, os.fstat(file.fileno()).st_size, path.name)
    if not is_object_trace(span):
        raise TraceError(f"{span.name}: not an object trace of GCspy", file=span.name, offset=0)
    part = TracePart(span, scanned=read_prefix(span))
    first = next(read_blocks(span, part.scanned), None)
    if first is not None and first.kind == BlockKind.HEADER:
        try:
            part.header = read_pairs(read_payload(span, first))
        except DefinitionError as error:
            raise trace_damage(span, first.offset, str(error)) from error
    return part
