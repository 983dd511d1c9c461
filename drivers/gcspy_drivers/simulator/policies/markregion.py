"""Mark-region: blocks of lines. Objects are bump-allocated in free lines, and lines are marked, not cells.

A *line* is some hundred bytes, a *block* some thousand; an object may lie across lines, never across blocks, unless it is large: then it has blocks of its
own. A line is free if no object that was marked touches it. A *hole* is a row of free lines in a block; threads take holes as their
buffers, so allocation is as simple as in an empty heap, and no free lists are needed.

    a block        not in the heap: it was made smaller; free: all its lines are; recyclable: it has holes; in use: it has none; large: of an object that has blocks of its own

Free cells of a block are merged when it is swept, so that each hole lies in one free cell; taking the hole splits that one in three.

Knows heap and colours. The plan decides which blocks are evacuated, and when (`plans.immix`, which names the paper).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from gcspy_protocol.errors import LocalProtocolError

from gcspy_drivers.simulator.heap import (
    BLACK,
    COLOUR_MASK,
    FORWARDED,
    FREE,
    GREY,
    HEADER_WORDS,
    PINNED,
    SIZE_MASK,
    WHITE,
    WORD_BYTES,
    Heap,
    bump,
    copy_words,
    fields_of,
    forward,
    free_cell,
    link_of,
    make_object,
    paint,
)
from gcspy_drivers.simulator.loops import Bytes, Words, loop

__all__ = ["KIND_NAMES", "BlockSpace", "reach_roots", "trace"]

FREE_BLOCK, RECYCLABLE, IN_USE, LARGE, ABSENT = range(5)
KIND_NAMES: Final = ("free", "recyclable", "in use", "large", "not in the heap")

# Geometry: constants.
_START, _BLOCKS, _BLOCK_WORDS, _LINE_WORDS = range(4)
# State: variables.
_LINE, _CURSOR, _LIVE, _FREE_BLOCKS, _COPIED, _COPIED_OBJECTS, _FREED = range(7)
_STATES: Final = 7


@loop
def find_hole(
    lines: Bytes, kinds: Bytes, geometry: Words, first: int, need: int
) -> tuple[int, int]:
    """Look for a row of at least `need` free lines in a recyclable block, from a line on; return it, or two zeroes."""
    per_block = geometry[_BLOCK_WORDS] // geometry[_LINE_WORDS]
    line, behind = first, geometry[_BLOCKS] * per_block
    while line < behind:
        block = line // per_block
        end = (block + 1) * per_block
        if kinds[block] != RECYCLABLE:
            line = end
        elif lines[line] != 0:
            line += 1
        else:
            hole = line
            while line < end and lines[line] == 0:
                line += 1
            if line - hole >= need:
                return hole, line
    return 0, 0


@loop
def take_hole(
    words: Words, lines: Bytes, geometry: Words, first: int, behind: int, buffer: Words
) -> None:
    """Make a hole the buffer of a thread: its lines are in use now."""
    for line in range(first, behind):
        lines[line] = 1
    start, end = (
        geometry[_START] + first * geometry[_LINE_WORDS],
        geometry[_START] + behind * geometry[_LINE_WORDS],
    )
    cell = (
        geometry[_START]
        + (start - geometry[_START]) // geometry[_BLOCK_WORDS] * geometry[_BLOCK_WORDS]
    )
    while cell + (words[cell] & SIZE_MASK) <= start:
        cell += words[cell] & SIZE_MASK
    after = cell + (words[cell] & SIZE_MASK)
    free_cell(words, cell, start - cell)
    free_cell(words, start, end - start)
    free_cell(words, end, after - end)
    buffer[0], buffer[1] = start, end


@loop
def find_blocks(kinds: Bytes, count: int) -> int:
    """Search for this many free blocks side by side; return the first, or -1."""
    run = 0
    for block in range(len(kinds)):
        run = run + 1 if kinds[block] == FREE_BLOCK else 0
        if run == count:
            return block - count + 1
    return -1


@loop
def take_block(
    words: Words,
    lines: Bytes,
    kinds: Bytes,
    geometry: Words,
    state: Words,
    block: int,
    buffer: Words,
) -> None:
    """Make a free block a buffer."""
    per_block = geometry[_BLOCK_WORDS] // geometry[_LINE_WORDS]
    for line in range(block * per_block, (block + 1) * per_block):
        lines[line] = 1
    kinds[block] = IN_USE
    state[_FREE_BLOCKS] -= 1
    buffer[0] = geometry[_START] + block * geometry[_BLOCK_WORDS]
    buffer[1] = buffer[0] + geometry[_BLOCK_WORDS]
    free_cell(words, buffer[0], geometry[_BLOCK_WORDS])


@loop
def _mark_lines(lines: Bytes, geometry: Words, cell: int, size: int) -> None:
    first = (cell - geometry[_START]) // geometry[_LINE_WORDS]
    last = (cell + size - 1 - geometry[_START]) // geometry[_LINE_WORDS]
    for line in range(first, last + 1):
        lines[line] = 1


@loop
def _evacuate(
    words: Words,
    lines: Bytes,
    kinds: Bytes,
    geometry: Words,
    state: Words,
    buffer: Words,
    cell: int,
) -> int:
    """Copy an object into a block for survivors; return where to, or 0 if there is no room: then it stays."""
    size = words[cell] & SIZE_MASK
    if buffer[1] - buffer[0] < size:
        block = find_blocks(kinds, 1)
        if block < 0:
            return 0
        take_block(words, lines, kinds, geometry, state, block, buffer)
        # Its lines are marked one by one, as others are.
        per_block = geometry[_BLOCK_WORDS] // geometry[_LINE_WORDS]
        for line in range(block * per_block, (block + 1) * per_block):
            lines[line] = 0
    new = buffer[0]
    copy_words(words, cell, new, size)
    free_cell(words, new + size, buffer[1] - new - size)
    buffer[0] = new + size
    forward(words, cell, new)
    state[_COPIED] += size
    state[_COPIED_OBJECTS] += 1
    return int(new)


@loop
def reach(
    words: Words,
    lines: Bytes,
    kinds: Bytes,
    leaving: Bytes,
    geometry: Words,
    state: Words,
    buffer: Words,
    stack: Words,
    top: Words,
    cell: int,
) -> int:
    """Mark an object and its lines, if that was not done yet; copy it first if its block is being evacuated; return where it is now."""
    if cell == 0:
        return 0
    status = words[cell]
    if status & FORWARDED != 0:
        return int(link_of(words, cell))
    if status & COLOUR_MASK != 0:
        return cell
    block = (cell - geometry[_START]) // geometry[_BLOCK_WORDS]
    if leaving[block] != 0 and status & PINNED == 0:
        new = _evacuate(words, lines, kinds, geometry, state, buffer, cell)
        if new != 0:
            cell = new
    paint(words, cell, GREY)
    _mark_lines(lines, geometry, cell, status & SIZE_MASK)
    stack[top[0]] = cell
    top[0] += 1
    return cell


@loop
def reach_roots(
    words: Words, lines: Bytes, kinds: Bytes, leaving: Bytes, geometry: Words, state: Words, buffer: Words,
    stack: Words, top: Words, roots: Words, first: int, behind: int,
) -> None:  # fmt: skip
    """Reach what the root slots from `first` to `behind` hold, and update them."""
    for slot in range(first, behind):
        roots[slot] = reach(
            words, lines, kinds, leaving, geometry, state, buffer, stack, top, roots[slot]
        )


@loop
def trace(
    words: Words, lines: Bytes, kinds: Bytes, leaving: Bytes, geometry: Words, state: Words, buffer: Words,
    stack: Words, top: Words, limit: int,
) -> int:  # fmt: skip
    """Blacken grey objects: reach what they refer to, and update their fields; return how many, fewer than `limit` when nothing is grey."""
    done = 0
    while top[0] > 0 and done < limit:
        top[0] -= 1
        cell = stack[top[0]]
        first = cell + HEADER_WORDS
        for field in range(first, first + fields_of(words, cell)):
            words[field] = reach(
                words, lines, kinds, leaving, geometry, state, buffer, stack, top, words[field]
            )
        paint(words, cell, BLACK)
        done += 1
    return done


@loop
def _sweep_large(
    words: Words, lines: Bytes, kinds: Bytes, geometry: Words, state: Words, block: int, count: int
) -> None:
    """Keep the blocks of a large object, or free each of them."""
    block_words = geometry[_BLOCK_WORDS]
    cell = geometry[_START] + block * block_words
    live = words[cell] & COLOUR_MASK != 0
    if live:
        paint(words, cell, WHITE)
        state[_LIVE] += words[cell] & SIZE_MASK
    else:
        state[_FREED] += 1
    per_block = block_words // geometry[_LINE_WORDS]
    for other in range(block, block + count):
        kinds[other] = LARGE if live else FREE_BLOCK
        for line in range(other * per_block, (other + 1) * per_block):
            lines[line] = 1 if live else 0
        if not live:
            state[_FREE_BLOCKS] += 1
            free_cell(words, geometry[_START] + other * block_words, block_words)


@loop
def sweep(
    words: Words, lines: Bytes, kinds: Bytes, geometry: Words, state: Words, limit: int
) -> int:
    """Sweep blocks from the cursor on: unmarked objects turn into free cells, and the block is free, recyclable or in use.

    Returns:
        How many blocks were swept; a large object's blocks count as one.
    """
    block_words, done = geometry[_BLOCK_WORDS], 0
    per_block = block_words // geometry[_LINE_WORDS]
    while state[_CURSOR] < geometry[_BLOCKS] and done < limit:
        done += 1
        block = state[_CURSOR]
        if kinds[block] == ABSENT:
            state[_CURSOR] += 1
            continue
        cell = geometry[_START] + block * block_words
        end = cell + block_words
        size = words[cell] & SIZE_MASK
        if size > block_words:
            count = (size + block_words - 1) // block_words
            _sweep_large(words, lines, kinds, geometry, state, block, count)
            state[_CURSOR] += count
            continue
        run = 0
        while cell < end:
            status = words[cell]
            size = status & SIZE_MASK
            if status & COLOUR_MASK != 0:
                paint(words, cell, WHITE)
                state[_LIVE] += size
                run = 0
            else:
                state[_FREED] += status & (FREE | FORWARDED) == 0
                if run == 0:
                    run = cell
                words[run] = FREE | (cell + size - run)
            cell += size
        used = 0
        for line in range(block * per_block, (block + 1) * per_block):
            used += lines[line]
        kinds[block] = FREE_BLOCK if used == 0 else IN_USE if used == per_block else RECYCLABLE
        state[_FREE_BLOCKS] += used == 0
        state[_CURSOR] += 1
    return done


class BlockSpace:
    """A range of blocks of lines.

    Args:
        block_bytes, line_bytes: Their sizes; a block is a multiple of a line.
        reserve: Free blocks that threads do not get: room for survivors of an evacuation.

    Attributes:
        start, end: The blocks' first word, and behind their last.
        lines: 1 for each line that is in use, uint8.
        kinds: Kind of each block, index of `KIND_NAMES`, uint8.
        leaving: 1 for each block that is being evacuated, uint8.
        block_words, line_words: Sizes.
    """

    def __init__(
        self,
        heap: Heap,
        start: int,
        end: int,
        *,
        threads: int,
        block_bytes: int,
        line_bytes: int,
        reserve: int,
    ) -> None:
        self.block_words, self.line_words = block_bytes // WORD_BYTES, line_bytes // WORD_BYTES
        if (
            self.line_words < HEADER_WORDS
            or self.block_words < 2 * self.line_words
            or self.block_words % self.line_words
        ):
            raise LocalProtocolError(
                f"blocks of {block_bytes} bytes, lines of {line_bytes}: give at least two lines a block, of 16 bytes at least"
            )
        blocks = (end - start) // self.block_words
        if blocks < 2 + reserve:
            raise LocalProtocolError(
                f"{(end - start) * WORD_BYTES} bytes are {blocks} blocks: give room for {2 + reserve}, or smaller blocks"
            )
        self._heap = heap
        self.start, self.end = start, start + blocks * self.block_words
        self.lines: Bytes = np.zeros(blocks * (self.block_words // self.line_words), dtype=np.uint8)
        self.kinds: Bytes = np.zeros(blocks, dtype=np.uint8)
        self.leaving: Bytes = np.zeros(blocks, dtype=np.uint8)
        self.geometry: Words = np.array(
            [start, blocks, self.block_words, self.line_words], dtype=np.int64
        )
        self.state: Words = np.zeros(_STATES, dtype=np.int64)
        self.state[_FREE_BLOCKS] = blocks
        self.survivors: Words = np.zeros(2, dtype=np.int64)
        self._buffers = [np.zeros(2, dtype=np.int64) for _ in range(threads)]
        self._overflow = [np.zeros(2, dtype=np.int64) for _ in range(threads)]
        self.reserve = reserve
        for block in range(blocks):
            free_cell(heap.words, start + block * self.block_words, self.block_words)

    @property
    def free_blocks(self) -> int:
        """Number of free blocks."""
        return int(self.state[_FREE_BLOCKS])

    @property
    def live_words(self) -> int:
        """Words that the last sweep found alive."""
        return int(self.state[_LIVE])

    def counts(self) -> dict[str, int]:
        """Return the counters of the collection."""
        return {
            "copied objects": int(self.state[_COPIED_OBJECTS]),
            "copied words": int(self.state[_COPIED]),
            "freed objects": int(self.state[_FREED]),
        }

    def allocate(self, thread: int, size: int, status: int, identity: int) -> int:
        """Make an object: in the thread's hole, in the next one, or in a free block; return 0 if there is no room."""
        words = self._heap.words
        if size > self.block_words // 2:
            return self._large(size, status, identity)
        cell = bump(words, self._buffers[thread], status, identity)
        if cell:
            return cell
        if size > self.line_words:
            # A larger object would waste the hole: it goes to a free block, and the thread keeps
            # its hole.
            cell = bump(words, self._overflow[thread], status, identity)
            if (
                cell
                or self._free_block(self._overflow[thread])
                or self._hole(self._overflow[thread], 0, size)
            ):
                return cell or bump(words, self._overflow[thread], status, identity)
            return 0
        at = int(self.state[_LINE])
        if self._hole(self._buffers[thread], at, size) or self._free_block(self._buffers[thread]):
            return bump(words, self._buffers[thread], status, identity)
        return 0

    def resize(self, blocks: int) -> None:
        """Let the space have this many blocks: it gives up as many free blocks as possible, from the end."""
        present = int((self.kinds != ABSENT).sum())
        if blocks < present:
            given_up = np.flatnonzero(self.kinds == FREE_BLOCK)[::-1][: present - blocks]
            self.kinds[given_up] = ABSENT
            self.state[_FREE_BLOCKS] -= len(given_up)
        else:
            taken_back = np.flatnonzero(self.kinds == ABSENT)[: blocks - present]
            self.kinds[taken_back] = FREE_BLOCK
            self.state[_FREE_BLOCKS] += len(taken_back)

    def begin(self) -> None:
        """Begin a collection: no line is in use, no thread has a buffer."""
        for buffer in (*self._buffers, *self._overflow, self.survivors):
            buffer[:] = 0
        self.lines[:] = 0
        self.state[[_COPIED, _COPIED_OBJECTS]] = 0

    def begin_sweep(self) -> None:
        """Begin a sweep."""
        self.state[[_LINE, _CURSOR, _LIVE, _FREE_BLOCKS, _FREED]] = 0
        self.survivors[:] = 0

    def sweep(self, limit: int) -> int:
        """Sweep this many blocks; the work of a phase."""
        return sweep(self._heap.words, self.lines, self.kinds, self.geometry, self.state, limit)

    def lines_in_use(self) -> Words:
        """Return how many lines of each block are in use."""
        counts: Words = self.lines.reshape(len(self.kinds), -1).sum(axis=1, dtype=np.int64)
        return counts

    def _hole(self, buffer: Words, first: int, size: int) -> bool:
        """Give a thread a hole of at least this many words."""
        need = -(-size // self.line_words)
        hole, behind = find_hole(self.lines, self.kinds, self.geometry, first, need)
        if not behind:
            return False
        take_hole(self._heap.words, self.lines, self.geometry, hole, behind, buffer)
        if need == 1:
            self.state[_LINE] = behind
        return True

    def _free_block(self, buffer: Words) -> bool:
        if self.free_blocks <= self.reserve:
            return False
        take_block(
            self._heap.words,
            self.lines,
            self.kinds,
            self.geometry,
            self.state,
            find_blocks(self.kinds, 1),
            buffer,
        )
        return True

    def _large(self, size: int, status: int, identity: int) -> int:
        count = -(-size // self.block_words)
        block = find_blocks(self.kinds, count)
        if block < 0 or self.free_blocks - count < self.reserve:
            return 0
        words, cell = self._heap.words, self.start + block * self.block_words
        self.kinds[block : block + count] = LARGE
        self.lines.reshape(len(self.kinds), -1)[block : block + count] = 1
        self.state[_FREE_BLOCKS] -= count
        make_object(words, cell, status, identity)
        free_cell(words, cell + size, count * self.block_words - size)
        return cell
