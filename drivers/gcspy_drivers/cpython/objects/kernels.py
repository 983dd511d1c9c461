"""The loops of level 3 over blocks and nodes, one at a time, as only a compiler can make them fast.

Plain Python over arrays, of the kind that numba compiles (`machine_code`); uncompiled, each gives
the same results, slowly. The folder ``compiled`` has them in C; `scan` and `lists` have the same in
numpy, and a test compares all to the bit.

All words are signed 64 bits here, also addresses and reference counts: the processor's arithmetic
is the same, and numba makes a float of a signed and an unsigned number. A shift to the right is
therefore followed by a mask if the sign could be shifted in.

Knows arrays; knows no process, and imports nothing but numpy.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = [
    "NOWHERE",
    "RECENT",
    "WORDS_PER_PAGE",
    "count_nodes",
    "count_references",
    "enter_kept",
    "index_nodes",
    "lead_out",
    "look_into",
    "merge_rows",
    "rows_of",
    "strangers",
    "walk",
]

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U16 = npt.NDArray[np.uint16]
I8 = npt.NDArray[np.int8]
U8 = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

WORDS_PER_PAGE = 4
"""Bits in the index, 64 places each: a node begins at a multiple of 16 bytes, and a page of the index has 4,096."""

RECENT = 1024
"""Remembered candidates, so that one that fills the heap is not reported a million times."""

NOWHERE = -1
"""The row of an address at which there is no node."""

_PAGE_SHIFT = 12


def look_into(
    words: I64,
    address: I64,
    size_class: I64,
    carved: I64,
    free: I64,
    valid: Flags,
    pool_rows: I64,
    begin: int,
    form: I64,
    starts: I64,
    ends: I64,
    slots: I32,
    type_address: I64,
    type_forms: I64,
    refused: I64,
    recent: I64,
    good: Flags,
    sums: I64,
    in_use: Flags,
    tally: I64,
    entries: I32,
    heads: I64,
    head_rows: I32,
    head_bytes: U16,
    candidates: I64,
    fill: I64,
    blocks: I8,
    pools: Flags,
    holders: I64,
) -> int:
    """Examine copied pools: which blocks are in use, and which objects are in them.

    Args:
        words: (n, words) the copies.
        address: (n,) where each pool is in the target.
        size_class: (n,) -1: it has none.
        carved: (n,) blocks ever handed out.
        free: (n,) of them on the list of free ones.
        valid: (n,) whether the header is valid.
        pool_rows: (n,) row of the pool in the reading.
        begin: The first pool to examine.
        form: Numbers that stay the same: bytes of a pool's header, of a block of class 0, words of padding, flags of a reference count, the
            largest one believed, the lowest address, multiplier, shift and mask of ``slots``, shift, mask and multiplier of ``refused``;
            and of ``pools`` the first place and the bits of an address inside of one.
        starts: (m,) first addresses of mappings.
        ends: (m,) end addresses of mappings.
        slots: Number of the type whose address has this slot; -1.
        type_address: (types,).
        type_forms: (types, 5) bytes before the reference count, bytes that a block must have, whether it may be tracked, and where two
            pointers to an object's blocks are.
        refused: Words that were examined and are not types.
        recent: (`RECENT`,) zeros, room for the latest candidates.
        good: (n,) filled: whether the pool could be examined.
        sums: (n, 4) filled: objects, those that may be tracked, those that are, blocks in use.
        in_use: Room for the blocks of a pool.
        tally: (types + 1,) zeros, room for counting; zeros again afterwards.
        entries: (room, 4) filled: pool, type, count and bytes of a block.
        heads: (3, room) filled: address of each node, of the one behind it and of the one before.
        head_rows: (2, room) filled: its pool and type.
        head_bytes: (room,) filled: bytes of its block.
        candidates: (room,) filled: words that may be types and are not known.
        fill: (4,) numbers of entries, nodes, candidates and holders; updated.
        blocks: (pools of the reading, cells) filled: see `references.BlockMap`; without rows: not wanted.
        pools: (places,) whether a pool is there; see `pool_index.PoolIndex`.
        holders: (room, 10) filled: objects that lead out of the pools: address, type, and the words behind the type; 0 for those behind
            the block.

    Returns:
        The first pool that was not examined, because the room might not be enough; n if all were.
    """
    header, unit, shift, flags, most, lowest = form[0], form[1], form[2], form[3], form[4], form[5]
    multiplier, slot_shift, slot_mask, refused_shift, refused_mask = (
        form[6],
        form[7],
        form[8],
        form[9],
        form[10],
    )
    golden, lowest_place, pool_shift = form[11], form[12], form[13]
    # The two low bits of both links of a tracked object are flags of the collector.
    three = np.int64(~3)
    for row in range(begin, len(address)):
        size = np.int64((max(size_class[row], 0) + 1) * unit)
        # Invariant: blocks in use + free blocks = carved blocks.
        used = carved[row] - free[row]
        # All that one pool can need, so that nothing has to be taken back.
        if (
            fill[0] + used > len(entries)
            or fill[1] + used > heads.shape[1]
            or fill[2] + 3 * used > len(candidates)
            or fill[3] + used > len(holders)
        ):
            return row
        good[row] = False
        sums[row, :] = 0
        if not valid[row]:
            continue
        good[row] = True
        # Start with every carved block in use, then follow the free list and clear its blocks.
        in_use[: carved[row]] = True
        # Word 1 of a pool header: address of the first free block; each free block holds the next
        # address.
        at = words[row, 1]
        for step in range(free[row]):
            place = at - address[row] - header
            block = place // size
            # A block outside of the pool, between two blocks, or met twice: the list changed during
            # the copy.
            if place < 0 or block * size != place or block >= carved[row] or not in_use[block]:
                good[row] = False
                break
            in_use[block] = False
            at = words[row, (block * size + header) >> 3]
            # The list must end exactly where the header says: a longer one was torn.
            if step + 1 == free[row] and at != 0:
                good[row] = False
        if not good[row] or size_class[row] < 0 or used == 0:
            continue
        # Debug builds add 24 bytes to each block, so that an object has less room; `reach` is in
        # words.
        room = size - (24 if shift else 0)
        reach = min(8, size >> 3)
        first_entry = fill[0]
        for block in range(carved[row]):
            if not in_use[block]:
                continue
            base = (block * size + header) >> 3
            kind = -1
            at_word = shift
            # An object starts 0, 16 or 32 bytes into its block: behind a collector head, a
            # dictionary and weak references.
            for prefix in range(0, 48, 16):
                at_word = (prefix >> 3) + shift
                if at_word + 2 > reach:
                    break
                count = words[row, base + at_word] & ~flags
                if count < 1 or count > most:
                    continue
                # A plausible count that is also a mapped address is a pointer: no reference count.
                if count >= lowest and _covered(starts, ends, count):
                    continue
                # The type pointer follows the reference count. A direct-mapped table of known types
                # answers most words.
                word = words[row, base + at_word + 1]
                number = slots[((word * multiplier) >> slot_shift) & slot_mask]
                if number < 0 or type_address[number] != word:
                    if (
                        # Not a known type: list it once as a candidate if it is an aligned, mapped
                        # address that was not refused.
                        word & 7 == 0
                        and word >= starts[0]
                        and word < ends[len(ends) - 1]
                        and refused[((word * golden) >> refused_shift) & refused_mask] != word
                        and recent[(word >> 4) & 1023] != word
                    ):
                        recent[(word >> 4) & 1023] = word
                        candidates[fill[2]] = word
                        fill[2] += 1
                    continue
                if type_forms[number, 0] == prefix and type_forms[number, 1] <= room:
                    kind = number
                    break
            # `tally` is indexed by type + 1: row 0 counts blocks without an object.
            if tally[kind + 1] == 0:
                entries[fill[0], 1] = kind
                fill[0] += 1
            tally[kind + 1] += 1
            sums[row, 3] += 1
            if len(blocks):
                blocks[pool_rows[row], base >> 1] = 1
            if kind < 0:
                continue
            sums[row, 0] += 1
            if type_forms[kind, 3] != 0:
                leads = False
                for which in range(3, 5):
                    offset = type_forms[kind, which]
                    if offset != 0 and (at_word << 3) + offset + 8 <= size:
                        word = words[row, base + at_word + (offset >> 3)]
                        place = (word >> pool_shift) - lowest_place
                        if word != 0 and (place < 0 or place >= len(pools) or not pools[place]):
                            leads = True
                if leads:
                    _hold(words, row, base, at_word, int(size), holders, fill[3])
                    holders[fill[3], 0] = address[row] + ((base + at_word) << 3)
                    holders[fill[3], 1] = kind
                    fill[3] += 1
            if type_forms[kind, 2] == 0:
                if len(blocks):
                    blocks[pool_rows[row], base >> 1] = 2 + 16 * (at_word >> 1)
                continue
            sums[row, 1] += 1
            # The collector head is the two words before the object: next and previous; next = 0:
            # not tracked.
            following = words[row, base + at_word - 2] & three
            if len(blocks):
                blocks[pool_rows[row], base >> 1] = (3 if following == 0 else 8) + 16 * (
                    at_word >> 1
                )
            if following == 0:
                continue
            sums[row, 2] += 1
            node = fill[1]
            fill[1] += 1
            heads[0, node] = address[row] + ((base + at_word - 2) << 3)
            heads[1, node] = following
            heads[2, node] = words[row, base + at_word - 1] & three
            head_rows[0, node] = pool_rows[row]
            head_rows[1, node] = kind
            head_bytes[node] = size
        # One entry per type of this pool. Reading a count out sets it to 0 for the next pool.
        _in_order(entries, first_entry, fill[0])
        for entry in range(first_entry, fill[0]):
            entries[entry, 0] = pool_rows[row]
            entries[entry, 2] = tally[entries[entry, 1] + 1]
            entries[entry, 3] = size
            tally[entries[entry, 1] + 1] = 0
    return len(address)


def _hold(
    words: I64, row: int, base: int, at_word: int, size: int, holders: I64, count: int
) -> None:
    """Write down the words behind the type of an object that leads out of the pools."""
    for word in range(holders.shape[1] - 2):
        at = at_word + 2 + word
        holders[count, 2 + word] = words[row, base + at] if (at + 1) << 3 <= size else 0


def _covered(starts: I64, ends: I64, word: int) -> bool:
    """Return whether something is mapped at an address."""
    low, high = 0, len(starts)
    while low < high:
        middle = (low + high) >> 1
        if starts[middle] <= word:
            low = middle + 1
        else:
            high = middle
    return bool(low > 0 and word < ends[low - 1])


def _in_order(entries: I32, begin: int, end: int) -> None:
    """Sort some entries by type; a pool has a handful."""
    for entry in range(begin + 1, end):
        kind = entries[entry, 1]
        at = entry
        while at > begin and entries[at - 1, 1] > kind:
            entries[at, 1] = entries[at - 1, 1]
            at -= 1
        entries[at, 1] = kind


def index_nodes(address: I64, lowest_page: int, pages: I32, bits: I64, ranks: I32) -> int:
    """Make the index for `rows_of`: a bit for each place of a node, in pages that have any.

    Args:
        address: (n,) of nodes, in order; multiples of 16.
        lowest_page: Number of the first one's page.
        pages: (span,) zeros; filled: number of the page in ``bits``, from 1 on.
        bits: (pages with nodes, 4) zeros; filled.
        ranks: (pages with nodes, 4) filled: nodes before the word of bits.

    Returns:
        How many pages have nodes; more than ``bits`` has room for: nothing was filled but ``pages``.
    """
    # First pass: number the pages that have nodes, from 1 on; 0 means none. Nodes are in order of
    # address.
    found, last = 0, -1
    for row in range(len(address)):
        page = (address[row] >> _PAGE_SHIFT) - lowest_page
        if page != last:
            last = page
            found += 1
            pages[page] = found
    if found > len(bits):
        return found
    for row in range(len(address)):
        # Second pass: a page has 4 words of 64 bits, one bit per 16 bytes; a rank counts the nodes
        # before its word.
        page = pages[(address[row] >> _PAGE_SHIFT) - lowest_page] - 1
        which = (address[row] >> 10) & 3
        if bits[page, which] == 0:
            ranks[page, which] = row
        bits[page, which] |= np.int64(1) << ((address[row] >> 4) & 63)
    return found


def _row_of(at: int, lowest_page: int, pages: I32, bits: I64, ranks: I32) -> int:
    """Return the row of the node at an address; -1 if there is none."""
    page = (at >> _PAGE_SHIFT) - lowest_page
    if page < 0 or page >= len(pages) or at & 15 != 0:
        return -1
    number = pages[page] - 1
    if number < 0:
        return -1
    which = (at >> 10) & 3
    word = bits[number, which]
    bit = (at >> 4) & 63
    if (word >> bit) & 1 == 0:
        return -1
    # Row = nodes before this word + bits set below this one.
    below = word & ((np.int64(1) << bit) - 1)
    # How many bits are set, in the processor's own way of doing it in pairs, fours and bytes.
    below = below - ((below >> 1) & 0x5555555555555555)
    below = (below & 0x3333333333333333) + ((below >> 2) & 0x3333333333333333)
    below = (below + (below >> 4)) & 0x0F0F0F0F0F0F0F0F
    count = ((below * 0x0101010101010101) >> 56) & 0xFF
    return int(ranks[number, which] + count)


def _place_of(at: int, address: I64) -> int:
    """Return the row of an address among addresses in order; -1 where it is not among them."""
    low, high = 0, len(address)
    while low < high:
        middle = (low + high) >> 1
        if address[middle] < at:
            low = middle + 1
        else:
            high = middle
    return low if low < len(address) and address[low] == at else -1


def strangers(
    ways: I64, lowest_page: int, pages: I32, bits: I64, ranks: I32, heads: I64, found: I64
) -> int:
    """List the addresses that are neither a node's nor a list's own head, with repetitions.

    Args:
        ways: (n,) addresses.
        lowest_page, pages, bits, ranks: As `index_nodes` made them.
        heads: Addresses of the lists' own heads, in order.
        found: (n,) filled.

    Returns:
        How many there are.
    """
    count = 0
    for row in range(len(ways)):
        at = ways[row]
        if _row_of(at, lowest_page, pages, bits, ranks) < 0 and _place_of(at, heads) < 0:
            found[count] = at
            count += 1
    return count


def rows_of(
    ways: I64,
    nodes: int,
    lowest_page: int,
    pages: I32,
    bits: I64,
    ranks: I32,
    outside: I64,
    heads: I64,
    to: I32,
) -> None:
    """Convert addresses to rows: of nodes, then of those outside of pools, then of the lists' own heads.

    Args:
        ways: (n,) addresses.
        nodes: How many nodes are in pools.
        lowest_page, pages, bits, ranks: As `index_nodes` made them.
        outside: Addresses of the nodes outside, in order.
        heads: Addresses of the lists' own heads, in order.
        to: (n,) filled; `NOWHERE` if there is none of these.
    """
    for row in range(len(ways)):
        at = ways[row]
        found = _row_of(at, lowest_page, pages, bits, ranks)
        if found < 0:
            place = _place_of(at, outside)
            if place >= 0:
                found = nodes + place
            else:
                place = _place_of(at, heads)
                found = nodes + len(outside) + place if place >= 0 else NOWHERE
        to[row] = found


def walk(to: I32, numbers: I8, mark: I32, result: I8, of_node: I8) -> None:
    """Find the end that each node's way leads to.

    Each way is gone once: it ends at a list's own head, nowhere, or at a node whose way is known already.

    Args:
        to: (n,) the row behind each node; n and more: an end; -1: nowhere.
        numbers: (ends,) number of each end's list.
        mark: (n,) zeros, room for the number of the way by which a node was met, from 1 on.
        result: (n + 1,) room for the end of each path.
        of_node: (n,) filled; -1 where the way leads nowhere or into a ring.
    """
    count = len(to)
    ways = 0
    for begin in range(count):
        if mark[begin] != 0:
            continue
        ways += 1
        row = begin
        # Mark each node with the number of the walk that met it first, so that every link is
        # followed once.
        while True:
            mark[row] = ways
            row = to[row]
            if row < 0:
                result[ways] = -1
                break
            if row >= count:
                result[ways] = numbers[row - count]
                break
            if mark[row] != 0:
                # A way that meets itself is a ring.
                result[ways] = -1 if mark[row] == ways else result[mark[row]]
                break
    for row in range(count):
        of_node[row] = result[mark[row]]


def count_nodes(
    of_node: I8, pool: I32, block_bytes: U16, each: int, by_pool: I32, by_list: I64
) -> None:
    """Count the nodes by pool and generation, and by list.

    Args:
        of_node: (n,) list of each node; -1: not known.
        pool: (n,) its pool; -1: none.
        block_bytes: (n,) bytes of its block.
        each: Lists an interpreter has.
        by_pool: (pools, each + 1) zeros; filled: nodes by generation, the last column those whose list is not known.
        by_list: (lists + 1, 3) zeros; filled: nodes, bytes, and those outside of pools; the last row those whose list is not known.
    """
    last = len(by_list) - 1
    for row in range(len(of_node)):
        which = of_node[row]
        at = which if which >= 0 else last
        by_list[at, 0] += 1
        by_list[at, 1] += block_bytes[row]
        if pool[row] < 0:
            by_list[at, 2] += 1
        else:
            by_pool[pool[row], which % each if which >= 0 else each] += 1


def merge_rows(
    rows: I64, then_begin: I64, now_begin: I64, row_bytes: int, then: U8, now: U8, found: U8
) -> None:
    """Put a table together, in order of pools, from one of an earlier reading and one of what was examined again.

    Args:
        rows: (pools,) row of each pool in the earlier reading; -1: it was examined again.
        then_begin: (earlier pools + 1,) row in the earlier table where each pool's rows begin.
        now_begin: (pools + 1,) the same of the later table.
        row_bytes: Bytes of a row.
        then: Bytes of the earlier table.
        now: Bytes of the later one.
        found: Room for the bytes of the whole table; filled.
    """
    filled = 0
    for pool in range(len(rows)):
        row = rows[pool]
        if row >= 0:
            begin, end = then_begin[row] * row_bytes, then_begin[row + 1] * row_bytes
            found[filled : filled + end - begin] = then[begin:end]
        else:
            begin, end = now_begin[pool] * row_bytes, now_begin[pool + 1] * row_bytes
            found[filled : filled + end - begin] = now[begin:end]
        filled += end - begin


def _block_at(
    at: int, entry: I8, address: I64, size: I64, lowest: int, row: I32, header: int
) -> tuple[int, int]:
    """Return the flat index of the entry of the block at an address, and the bytes from its beginning; -1: there is none."""
    cells = entry.shape[1]
    # `row` has an entry per pool-sized, aligned range of addresses: row of its pool + 1, or 0.
    number = at // (16 * cells) - lowest
    if number < 0 or number >= len(row):
        return -1, 0
    pool = row[number] - 1
    if pool < 0 or size[pool] == 0:
        return -1, 0
    place = at - address[pool] - header
    if place < 0:
        return -1, 0
    # Round down to the beginning of the block; the last block must end within the pool.
    begin = place // size[pool] * size[pool]
    if header + begin + size[pool] > 16 * cells:
        return -1, 0
    return pool * cells + ((header + begin) >> 4), place - begin


def _generation_of(kind: int) -> int:
    """Return the generation of a label of `references.Label`; -1: none."""
    if kind >= 4 and kind < 8:
        return kind - 4
    return kind - 10 if kind > 9 else -1


def give_lists(
    entry: I8,
    address: I64,
    size: I64,
    lowest: int,
    row: I32,
    header: int,
    nodes: I64,
    of_node: I8,
    each: int,
) -> None:
    """Set the list of tracked objects; see `references`.

    Args:
        entry, address, size, lowest, row, header: A `references.BlockMap`.
        nodes: (n,) addresses of their heads.
        of_node: (n,) number of the list; -1: not known.
        each: Lists an interpreter has.
    """
    flat = entry.reshape(-1)
    for number in range(len(nodes)):
        which = of_node[number]
        if which < 0:
            continue
        where, _ = _block_at(nodes[number], entry, address, size, lowest, row, header)
        if where >= 0 and flat[where] & 15 == 8:
            flat[where] = (flat[where] & ~15) + 4 + which % each


def enter_kept(
    entry: I8, address: I64, size: I64, lowest: int, row: I32, header: int, words: I64, rows: I64
) -> None:
    """Enter the blocks that objects lead to and that are no objects; see `references`.

    Args:
        entry, address, size, lowest, row, header: A `references.BlockMap`.
        words: (n, words) copies of pools.
        rows: (n,) their rows in the map.
    """
    cells = entry.shape[1]
    flat = entry.reshape(-1)
    for local in range(len(rows)):
        pool = rows[local]
        block_bytes = size[pool]
        if block_bytes == 0:
            continue
        for block in range((cells * 16 - header) // block_bytes):
            begin = header + block * block_bytes
            label = int(entry[pool, begin >> 4])
            kind = label & 15
            if kind < 3 or kind > 8:
                continue
            generation = _generation_of(kind)
            # Labels: 9 = kept by an untracked object, 10 + g = kept by one of generation g. The
            # largest label wins.
            kept = 9 if generation < 0 else 10 + generation
            head = (label >> 4) * 2
            for word in range(block_bytes >> 3):
                # Skip the collector head, the reference count and the type.
                if word >= head - 2 and word < head + 2:
                    continue
                where, _ = _block_at(
                    words[local, (begin >> 3) + word], entry, address, size, lowest, row, header
                )
                if where < 0:
                    continue
                target = flat[where] & 15
                if (target == 1 or target >= 9) and target < kept:
                    flat[where] = kept


def count_references(
    entry: I8,
    address: I64,
    size: I64,
    lowest: int,
    row: I32,
    header: int,
    words: I64,
    rows: I64,
    found: I64,
) -> None:
    """Count the references in some pools; see `references`.

    Args:
        entry, address, size, lowest, row, header: A `references.BlockMap`, with the blocks that objects keep.
        words: (n, words) copies of pools.
        rows: (n,) their rows in the map.
        found: (pools, 5) what is added to, of `references.FOUND`.
    """
    cells = entry.shape[1]
    flat = entry.reshape(-1)
    for local in range(len(rows)):
        pool = rows[local]
        block_bytes = size[pool]
        if block_bytes == 0:
            continue
        for block in range((cells * 16 - header) // block_bytes):
            begin = header + block * block_bytes
            label = int(entry[pool, begin >> 4])
            kind = label & 15
            if kind < 3:
                continue
            mine = _generation_of(kind)
            head = (label >> 4) * 2
            for word in range(block_bytes >> 3):
                # Objects (labels 3 to 8) have a head to skip; blocks that they keep (9 and above)
                # do not.
                if kind < 9 and word >= head - 2 and word < head + 2:
                    continue
                where, place = _block_at(
                    words[local, (begin >> 3) + word], entry, address, size, lowest, row, header
                )
                if where < 0:
                    continue
                target = int(flat[where])
                # Count only pointers to the first byte of an object: the label has its offset, in
                # units of 16 bytes.
                if target & 15 < 2 or target & 15 > 8 or place != (target >> 4) * 16:
                    continue
                other = where // cells
                if other == pool:
                    found[pool, 0] += 1
                else:
                    found[pool, 1] += 1
                    found[other, 2] += 1
                theirs = _generation_of(target & 15)
                if mine >= 0 and theirs >= 0:
                    if mine > theirs:
                        found[pool, 3] += 1
                    elif mine < theirs:
                        found[pool, 4] += 1


def lead_out(
    entry: I8,
    size: I64,
    header: int,
    words: I64,
    rows: I64,
    begin: int,
    pools: Flags,
    form: I64,
    starts: I64,
    ends: I64,
    recent: I64,
    found: I64,
    fill: I64,
) -> int:
    """List the words of objects in pools, and of their memory there, that lead to memory outside of the pools.

    Args:
        entry, size, header: Of a `references.BlockMap`, with the blocks that objects keep.
        words: (n, words) copies of pools.
        rows: (n,) their rows in the map.
        begin: The first pool to examine.
        pools: (places,) whether a pool is there; see `pool_index.PoolIndex`.
        form: Its first place, and the bits of an address inside of one.
        starts, ends: Requested ranges of addresses, in order.
        recent: (`RECENT`,) zeros, room for the latest words.
        found: (room,) filled, with repetitions.
        fill: (1,) their number; updated.

    Returns:
        The first pool that was not examined, because the room might not be enough; n if all were.
    """
    cells = entry.shape[1]
    for local in range(begin, len(rows)):
        pool = rows[local]
        block_bytes = size[pool]
        if block_bytes == 0:
            continue
        if fill[0] + 2 * cells > len(found):
            return local
        for block in range((cells * 16 - header) // block_bytes):
            first = header + block * block_bytes
            label = int(entry[pool, first >> 4])
            kind = label & 15
            if kind < 3:
                continue
            head = (label >> 4) * 2
            for number in range(block_bytes >> 3):
                if kind < 9 and number >= head - 2 and number < head + 2:
                    continue
                word = words[local, (first >> 3) + number]
                # malloc aligns to 16 bytes. `recent` is a direct-mapped cache that removes most
                # repetitions.
                if word <= 0 or word & 15 != 0 or recent[(word >> 4) & 1023] == word:
                    continue
                place = (word >> form[1]) - form[0]
                if place >= 0 and place < len(pools) and pools[place]:
                    continue
                if _covered(starts, ends, word):
                    recent[(word >> 4) & 1023] = word
                    found[fill[0]] = word
                    fill[0] += 1
    return len(rows)
