/*
 * Nodes of the collector's lists: see ../kernels.py, which has the same in Python and says what each argument is.
 *
 * Addresses are foreign, rows are ours. Where a function is given an index, that is `lowest_page`, `pages`, `bits` and `ranks`.
 */
#include <string.h>

#include "arrays.h"

enum { PAGE_SHIFT = 12, WORDS_PER_PAGE = 4, NOWHERE = -1 };

GCSPY_LOOP int64_t index_nodes(struct i64s address, int64_t lowest_page, struct i32s pages, struct i64s bits, struct i32s ranks)
{
    /* Number the pages that have nodes, from 1 on; 0 means none. Nodes are in order of address. */
    int64_t found = 0, last = -1;
    for (int64_t row = 0; row < address.length; row++) {
        int64_t page = (address.at[row] >> PAGE_SHIFT) - lowest_page;
        if (page != last) {
            last = page;
            pages.at[page] = (int32_t)++found;
        }
    }
    if (found > bits.length)
        return found;
    for (int64_t row = 0; row < address.length; row++) {
        /* A page has 4 words of 64 bits, one bit per 16 bytes; a rank counts the nodes before its word. */
        int64_t page = pages.at[(address.at[row] >> PAGE_SHIFT) - lowest_page] - 1;
        int64_t which = WORDS_PER_PAGE * page + ((address.at[row] >> 10) & 3);
        if (bits.at[which] == 0)
            ranks.at[which] = (int32_t)row;
        bits.at[which] |= (int64_t)((uint64_t)1 << ((address.at[row] >> 4) & 63));
    }
    return found;
}

/* The row of the node at an address; -1 if there is none. */
static inline int64_t row_of(int64_t at, int64_t lowest_page, const struct i32s *pages, const struct i64s *bits, const struct i32s *ranks)
{
    int64_t page = (at >> PAGE_SHIFT) - lowest_page;
    if (page < 0 || page >= pages->length || (at & 15) != 0)
        return NOWHERE;
    int64_t number = (int64_t)pages->at[page] - 1;
    if (number < 0)
        return NOWHERE;
    int64_t which = WORDS_PER_PAGE * number + ((at >> 10) & 3);
    uint64_t word = (uint64_t)bits->at[which], bit = (uint64_t)1 << ((at >> 4) & 63);
    if (!(word & bit))
        return NOWHERE;
    /* Nodes before this word, and bits set below this one. */
    return ranks->at[which] + __builtin_popcountll(word & (bit - 1));
}

/* The row of an address among addresses in order; -1 where it is not among them. */
static inline int64_t place_of(int64_t at, const struct i64s *address)
{
    int64_t low = 0, high = address->length;
    while (low < high) {
        int64_t middle = (low + high) >> 1;
        if (address->at[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < address->length && address->at[low] == at ? low : NOWHERE;
}

GCSPY_LOOP int64_t strangers(struct i64s ways, int64_t lowest_page, struct i32s pages, struct i64s bits, struct i32s ranks,
                             struct i64s heads, struct i64s found)
{
    int64_t count = 0;
    for (int64_t row = 0; row < ways.length; row++) {
        int64_t at = ways.at[row];
        if (row_of(at, lowest_page, &pages, &bits, &ranks) < 0 && place_of(at, &heads) < 0)
            found.at[count++] = at;
    }
    return count;
}

GCSPY_LOOP void rows_of(struct i64s ways, int64_t nodes, int64_t lowest_page, struct i32s pages, struct i64s bits,
                        struct i32s ranks, struct i64s outside, struct i64s heads, struct i32s to)
{
    for (int64_t row = 0; row < ways.length; row++) {
        int64_t at = ways.at[row], found = row_of(at, lowest_page, &pages, &bits, &ranks);
        if (found < 0) {
            int64_t place = place_of(at, &outside);
            if (place >= 0) {
                found = nodes + place;
            } else {
                place = place_of(at, &heads);
                found = place >= 0 ? nodes + outside.length + place : NOWHERE;
            }
        }
        to.at[row] = (int32_t)found;
    }
}

GCSPY_LOOP void walk(struct i32s to, struct i8s numbers, struct i32s mark, struct i8s result, struct i8s of_node)
{
    int64_t count = to.length;
    int32_t ways = 0;
    for (int64_t begin = 0; begin < count; begin++) {
        if (mark.at[begin] != 0)
            continue;
        ways++;
        /* Each node is marked with the number of the walk that met it first, so that every link is followed once. */
        for (int64_t row = begin;;) {
            mark.at[row] = ways;
            row = to.at[row];
            if (row < 0) {
                result.at[ways] = NOWHERE;
                break;
            }
            if (row >= count) {
                result.at[ways] = numbers.at[row - count];
                break;
            }
            if (mark.at[row] != 0) {
                /* A way that meets itself is a ring. */
                result.at[ways] = mark.at[row] == ways ? NOWHERE : result.at[mark.at[row]];
                break;
            }
        }
    }
    for (int64_t row = 0; row < count; row++)
        of_node.at[row] = result.at[mark.at[row]];
}

GCSPY_LOOP void count_nodes(struct i8s of_node, struct i32s pool, struct u16s block_bytes, int64_t each, struct i32s by_pool,
                            struct i64s by_list)
{
    int64_t last = by_list.length - 1;
    for (int64_t row = 0; row < of_node.length; row++) {
        int64_t which = of_node.at[row], at = which >= 0 ? which : last;
        int64_t *list = by_list.at + by_list.width * at;
        list[0]++;
        list[1] += block_bytes.at[row];
        if (pool.at[row] < 0)
            list[2]++;
        else
            by_pool.at[by_pool.width * pool.at[row] + (which >= 0 ? which % each : each)]++;
    }
}

GCSPY_LOOP void merge_rows(struct i64s rows, struct i64s then_begin, struct i64s now_begin, int64_t row_bytes, struct u8s then,
                           struct u8s now, struct u8s found)
{
    int64_t filled = 0;
    for (int64_t pool = 0; pool < rows.length;) {
        int64_t first = pool, row = rows.at[pool], begin, end;
        const uint8_t *from = then.at;
        /* Pools that follow each other in one table are copied together. */
        if (row >= 0) {
            while (++pool < rows.length && rows.at[pool] == row + (pool - first))
                ;
            begin = then_begin.at[row], end = then_begin.at[row + (pool - first)];
        } else {
            while (++pool < rows.length && rows.at[pool] < 0)
                ;
            from = now.at;
            begin = now_begin.at[first], end = now_begin.at[pool];
        }
        memcpy(found.at + filled, from + begin * row_bytes, (size_t)((end - begin) * row_bytes));
        filled += (end - begin) * row_bytes;
    }
}
