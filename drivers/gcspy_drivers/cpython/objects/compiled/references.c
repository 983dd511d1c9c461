/*
 * References between blocks of pools: see ../kernels.py, which has the same in Python and says what each argument is;
 * ../references.py says what the labels of blocks are.
 *
 * Words are foreign. Where a function is given a map, that is `entry` (rows of pools, a cell for each 16 bytes), `address`, `size`
 * (bytes of a pool's blocks), `lowest`, `row` (a pool for each range of addresses) and `header`.
 */
#include "covered.h"

enum { IN_USE = 1, OBJECT = 2, UNTRACKED = 3, FIRST_LIST = 4, UNKNOWN_LIST = 8, KEPT = 9, KEPT_BY_LIST = 10, KINDS = 15 };

struct map {
    struct i8s entry;
    const int64_t *address, *size;
    int64_t lowest;
    struct i32s row;
    int64_t header;
};

/* The cell of the block at an address, and the bytes from its beginning; -1: there is none. */
static inline int64_t block_at(const struct map *map, int64_t at, int64_t *place)
{
    int64_t cells = map->entry.width;
    if (at < 0)
        return -1;
    int64_t number = at / (16 * cells) - map->lowest;
    if (number < 0 || number >= map->row.length)
        return -1;
    int64_t pool = (int64_t)map->row.at[number] - 1;
    if (pool < 0 || map->size[pool] == 0)
        return -1;
    int64_t within = at - map->address[pool] - map->header;
    if (within < 0)
        return -1;
    /* Down to the beginning of the block; the last block must end within the pool. */
    int64_t begin = within / map->size[pool] * map->size[pool];
    if (map->header + begin + map->size[pool] > 16 * cells)
        return -1;
    *place = within - begin;
    return pool * cells + ((map->header + begin) >> 4);
}

/* The generation of a label; -1: none. */
static inline int generation_of(int kind)
{
    if (FIRST_LIST <= kind && kind < UNKNOWN_LIST)
        return kind - FIRST_LIST;
    return kind >= KEPT_BY_LIST ? kind - KEPT_BY_LIST : -1;
}

GCSPY_LOOP void give_lists(struct i8s entry, struct i64s address, struct i64s size, int64_t lowest, struct i32s row,
                           int64_t header, struct i64s nodes, struct i8s of_node, int64_t each)
{
    struct map map = {entry, address.at, size.at, lowest, row, header};
    for (int64_t number = 0; number < nodes.length; number++) {
        int64_t which = of_node.at[number], place;
        if (which < 0)
            continue;
        int64_t where = block_at(&map, nodes.at[number], &place);
        if (where >= 0 && (entry.at[where] & KINDS) == UNKNOWN_LIST)
            entry.at[where] = (int8_t)((entry.at[where] & ~KINDS) + FIRST_LIST + which % each);
    }
}

GCSPY_LOOP void enter_kept(struct i8s entry, struct i64s address, struct i64s size, int64_t lowest, struct i32s row,
                           int64_t header, struct i64s words, struct i64s rows)
{
    struct map map = {entry, address.at, size.at, lowest, row, header};
    int64_t cells = entry.width;
    for (int64_t local = 0; local < rows.length; local++) {
        int64_t pool = rows.at[local], block_bytes = size.at[pool];
        const int64_t *copy = words.at + local * words.width;
        if (block_bytes == 0)
            continue;
        for (int64_t block = 0; block < (cells * 16 - header) / block_bytes; block++) {
            int64_t begin = header + block * block_bytes;
            int label = entry.at[pool * cells + (begin >> 4)], kind = label & KINDS;
            if (kind < UNTRACKED || kind > UNKNOWN_LIST)
                continue;
            int generation = generation_of(kind);
            /* Of several labels the largest wins. */
            int kept = generation < 0 ? KEPT : KEPT_BY_LIST + generation;
            int64_t head = (label >> 4) * 2;
            for (int64_t word = 0; word < block_bytes >> 3; word++) {
                /* Skip the collector head, the reference count and the type. */
                if (head - 2 <= word && word < head + 2)
                    continue;
                int64_t place, where = block_at(&map, copy[(begin >> 3) + word], &place);
                if (where < 0)
                    continue;
                int target = entry.at[where] & KINDS;
                if ((target == IN_USE || target >= KEPT) && target < kept)
                    entry.at[where] = (int8_t)kept;
            }
        }
    }
}

GCSPY_LOOP void count_references(struct i8s entry, struct i64s address, struct i64s size, int64_t lowest, struct i32s row,
                                 int64_t header, struct i64s words, struct i64s rows, struct i64s found)
{
    struct map map = {entry, address.at, size.at, lowest, row, header};
    int64_t cells = entry.width;
    for (int64_t local = 0; local < rows.length; local++) {
        int64_t pool = rows.at[local], block_bytes = size.at[pool], *mine_found = found.at + 5 * pool;
        const int64_t *copy = words.at + local * words.width;
        if (block_bytes == 0)
            continue;
        for (int64_t block = 0; block < (cells * 16 - header) / block_bytes; block++) {
            int64_t begin = header + block * block_bytes;
            int label = entry.at[pool * cells + (begin >> 4)], kind = label & KINDS;
            if (kind < UNTRACKED)
                continue;
            int mine = generation_of(kind);
            int64_t head = (label >> 4) * 2;
            for (int64_t word = 0; word < block_bytes >> 3; word++) {
                /* Objects have a head to skip; blocks that they keep do not. */
                if (kind < KEPT && head - 2 <= word && word < head + 2)
                    continue;
                int64_t place, where = block_at(&map, copy[(begin >> 3) + word], &place);
                if (where < 0)
                    continue;
                int target = entry.at[where], theirs = target & KINDS;
                /* Only pointers to the first byte of an object: the label has its offset, in units of 16 bytes. */
                if (theirs < OBJECT || theirs > UNKNOWN_LIST || place != (int64_t)(target >> 4) * 16)
                    continue;
                int64_t other = where / cells;
                if (other == pool) {
                    mine_found[0]++;
                } else {
                    mine_found[1]++;
                    found.at[5 * other + 2]++;
                }
                int generation = generation_of(theirs);
                if (mine >= 0 && generation >= 0) {
                    if (mine > generation)
                        mine_found[3]++;
                    else if (mine < generation)
                        mine_found[4]++;
                }
            }
        }
    }
}

GCSPY_LOOP int64_t lead_out(struct i8s entry, struct i64s size, int64_t header, struct i64s words, struct i64s rows,
                            int64_t begin, struct u8s pools, struct i64s form, struct i64s starts, struct i64s ends,
                            struct i64s recent, struct i64s found, struct i64s fill)
{
    int64_t cells = entry.width;
    for (int64_t local = begin; local < rows.length; local++) {
        int64_t pool = rows.at[local], block_bytes = size.at[pool];
        const int64_t *copy = words.at + local * words.width;
        if (block_bytes == 0)
            continue;
        if (fill.at[0] + 2 * cells > found.length)
            return local;
        for (int64_t block = 0; block < (cells * 16 - header) / block_bytes; block++) {
            int64_t first = header + block * block_bytes;
            int label = entry.at[pool * cells + (first >> 4)], kind = label & KINDS;
            if (kind < UNTRACKED)
                continue;
            int64_t head = (label >> 4) * 2;
            for (int64_t number = 0; number < block_bytes >> 3; number++) {
                if (kind < KEPT && head - 2 <= number && number < head + 2)
                    continue;
                int64_t word = copy[(first >> 3) + number];
                /* malloc aligns to 16 bytes. `recent` is a direct-mapped cache that removes most repetitions. */
                if (word <= 0 || (word & 15) != 0 || recent.at[(word >> 4) & 1023] == word)
                    continue;
                int64_t place = (word >> form.at[1]) - form.at[0];
                if (place >= 0 && place < pools.length && pools.at[place])
                    continue;
                if (covered(&starts, &ends, word)) {
                    recent.at[(word >> 4) & 1023] = word;
                    found.at[fill.at[0]++] = word;
                }
            }
        }
    }
    return rows.length;
}
