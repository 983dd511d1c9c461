/*
 * Blocks and objects in copied pools: see look_into in ../kernels.py, which has the same in Python and says what each argument is.
 *
 * Words are foreign. Headers were checked before: a pool has at most as many carved blocks as fit. Each offset into a pool is
 * below the bytes of its block.
 */
#include "covered.h"

enum { HEADER, UNIT, SHIFT, FLAGS, MOST, LOWEST, MULTIPLIER, SLOT_SHIFT, SLOT_MASK, REFUSED_SHIFT, REFUSED_MASK, GOLDEN, LOWEST_PLACE, POOL_SHIFT };
enum { PREFIX, ROOM, TRACKED, FIRST_POINTER, SECOND_POINTER, FORMS }; /* columns of the types */
enum { ENTRIES, NODES, CANDIDATES, HOLDERS };                         /* of `fill` */
enum { DEBUG_BYTES = 24, HEAD_WORDS = 8 };
enum { IN_USE = 1, OBJECT = 2, UNTRACKED = 3, UNKNOWN_LIST = 8 }; /* labels: ../references.py */

/* Sort some entries by type; a pool has a handful. */
static void in_order(struct i32s *entries, int64_t begin, int64_t end)
{
    for (int64_t entry = begin + 1; entry < end; entry++) {
        int32_t kind = entries->at[4 * entry + 1];
        int64_t at = entry;
        for (; at > begin && entries->at[4 * (at - 1) + 1] > kind; at--)
            entries->at[4 * at + 1] = entries->at[4 * (at - 1) + 1];
        entries->at[4 * at + 1] = kind;
    }
}

/* Mark the free blocks of a pool; whether its list is as its header says. */
static int follow_free(const int64_t *words, int64_t address, int64_t header, int64_t size, int64_t carved, int64_t free,
                       uint8_t *in_use)
{
    /* Word 1 of a pool header: address of the first free block; each free block holds the next address. */
    int64_t at = words[1];
    for (int64_t step = 0; step < free; step++) {
        int64_t place = at - address - header, block = place / size;
        /* A block outside of the pool, between two blocks, or met twice: the list changed during the copy. */
        if (place < 0 || block * size != place || block >= carved || !in_use[block])
            return 0;
        in_use[block] = 0;
        at = words[(block * size + header) >> 3];
    }
    /* The list must end exactly where the header says: a longer one was torn. */
    return free <= 0 || at == 0;
}

GCSPY_LOOP int64_t look_into(struct i64s words, struct i64s address, struct i64s size_class, struct i64s carved,
                             struct i64s free, struct u8s valid, struct i64s pool_rows, int64_t begin, struct i64s form,
                             struct i64s starts, struct i64s ends, struct i32s slots, struct i64s type_address,
                             struct i64s type_forms, struct i64s refused, struct i64s recent, struct u8s good,
                             struct i64s sums, struct u8s in_use, struct i64s tally, struct i32s entries, struct i64s heads,
                             struct i32s head_rows, struct u16s head_bytes, struct i64s candidates, struct i64s fill,
                             struct i8s blocks, struct u8s pools, struct i64s holders)
{
    const int64_t *numbers = form.at;
    int64_t header = numbers[HEADER], shift = numbers[SHIFT], flags = numbers[FLAGS], most = numbers[MOST];
    int64_t lowest = numbers[LOWEST], *filled = fill.at;
    for (int64_t row = begin; row < address.length; row++) {
        int64_t class = size_class.at[row], size = ((class < 0 ? 0 : class) + 1) * numbers[UNIT];
        int64_t blocks_carved = carved.at[row], used = blocks_carved - free.at[row];
        /* All that one pool can need, so that nothing has to be taken back. */
        if (filled[ENTRIES] + used > entries.length || filled[NODES] + used > heads.width ||
            filled[CANDIDATES] + 3 * used > candidates.length || filled[HOLDERS] + used > holders.length)
            return row;
        int64_t *sum = sums.at + 4 * row;
        good.at[row] = 0;
        sum[0] = sum[1] = sum[2] = sum[3] = 0;
        if (!valid.at[row])
            continue;
        const int64_t *copy = words.at + row * words.width;
        /* Every carved block is in use, but for those on the free list. */
        for (int64_t block = 0; block < blocks_carved; block++)
            in_use.at[block] = 1;
        good.at[row] = (uint8_t)follow_free(copy, address.at[row], header, size, blocks_carved, free.at[row], in_use.at);
        if (!good.at[row] || class < 0 || used == 0)
            continue;
        /* Debug builds add 24 bytes to each block, so that an object has less room; `reach` is in words. */
        int64_t room = size - (shift ? DEBUG_BYTES : 0), reach = size >> 3 < HEAD_WORDS ? size >> 3 : HEAD_WORDS;
        int64_t first_entry = filled[ENTRIES];
        int8_t *labels = blocks.length ? blocks.at + pool_rows.at[row] * blocks.width : NULL;
        for (int64_t block = 0; block < blocks_carved; block++) {
            if (!in_use.at[block])
                continue;
            int64_t base = (block * size + header) >> 3, kind = -1, at_word = shift;
            /* An object starts 0, 16 or 32 bytes into its block: behind a collector head, a dictionary and weak references. */
            for (int64_t prefix = 0; prefix < 48; prefix += 16) {
                at_word = (prefix >> 3) + shift;
                if (at_word + 2 > reach)
                    break;
                int64_t count = copy[base + at_word] & ~flags;
                if (count < 1 || count > most)
                    continue;
                /* A plausible count that is also a mapped address is a pointer: no reference count. */
                if (count >= lowest && covered(&starts, &ends, count))
                    continue;
                /* The type pointer follows the reference count. A direct-mapped table of known types answers most words. */
                int64_t word = copy[base + at_word + 1];
                int32_t number = slots.at[((word * numbers[MULTIPLIER]) >> numbers[SLOT_SHIFT]) & numbers[SLOT_MASK]];
                if (number < 0 || type_address.at[number] != word) {
                    /* Not a known type: list it once as a candidate if it is an aligned, mapped address that was not refused. */
                    int64_t *lately = &recent.at[(word >> 4) & 1023];
                    if ((word & 7) == 0 && word >= starts.at[0] && word < ends.at[ends.length - 1] &&
                        refused.at[((word * numbers[GOLDEN]) >> numbers[REFUSED_SHIFT]) & numbers[REFUSED_MASK]] != word &&
                        *lately != word) {
                        *lately = word;
                        candidates.at[filled[CANDIDATES]++] = word;
                    }
                    continue;
                }
                if (type_forms.at[FORMS * number + PREFIX] == prefix && type_forms.at[FORMS * number + ROOM] <= room) {
                    kind = number;
                    break;
                }
            }
            /* `tally` is indexed by type + 1: row 0 counts blocks without an object. */
            if (tally.at[kind + 1] == 0)
                entries.at[4 * filled[ENTRIES]++ + 1] = (int32_t)kind;
            tally.at[kind + 1]++;
            sum[3]++;
            if (labels)
                labels[base >> 1] = IN_USE;
            if (kind < 0)
                continue;
            const int64_t *type = type_forms.at + FORMS * kind;
            sum[0]++;
            if (type[FIRST_POINTER] != 0) {
                int leads = 0;
                for (int which = FIRST_POINTER; which <= SECOND_POINTER; which++) {
                    int64_t offset = type[which];
                    if (offset != 0 && (at_word << 3) + offset + 8 <= size) {
                        int64_t word = copy[base + at_word + (offset >> 3)];
                        int64_t place = (word >> numbers[POOL_SHIFT]) - numbers[LOWEST_PLACE];
                        if (word != 0 && (place < 0 || place >= pools.length || !pools.at[place]))
                            leads = 1;
                    }
                }
                if (leads) {
                    int64_t *holder = holders.at + filled[HOLDERS]++ * holders.width;
                    holder[0] = address.at[row] + ((base + at_word) << 3);
                    holder[1] = kind;
                    for (int64_t word = 0; word < holders.width - 2; word++) {
                        int64_t at = at_word + 2 + word;
                        holder[2 + word] = (at + 1) << 3 <= size ? copy[base + at] : 0;
                    }
                }
            }
            if (type[TRACKED] == 0) {
                if (labels)
                    labels[base >> 1] = (int8_t)(OBJECT + 16 * (at_word >> 1));
                continue;
            }
            sum[1]++;
            /* The collector head is the two words before the object: next and previous, with two bits of flags; next = 0: not
             * tracked. */
            int64_t following = copy[base + at_word - 2] & ~(int64_t)3;
            if (labels)
                labels[base >> 1] = (int8_t)((following == 0 ? UNTRACKED : UNKNOWN_LIST) + 16 * (at_word >> 1));
            if (following == 0)
                continue;
            sum[2]++;
            int64_t node = filled[NODES]++;
            heads.at[node] = address.at[row] + ((base + at_word - 2) << 3);
            heads.at[heads.width + node] = following;
            heads.at[2 * heads.width + node] = copy[base + at_word - 1] & ~(int64_t)3;
            head_rows.at[node] = (int32_t)pool_rows.at[row];
            head_rows.at[head_rows.width + node] = (int32_t)kind;
            head_bytes.at[node] = (uint16_t)size;
        }
        /* One entry per type of this pool. Reading a count out sets it to 0 for the next pool. */
        in_order(&entries, first_entry, filled[ENTRIES]);
        for (int64_t each = first_entry; each < filled[ENTRIES]; each++) {
            int32_t *entry = entries.at + 4 * each;
            int64_t *counted = &tally.at[entry[1] + 1];
            entry[0] = (int32_t)pool_rows.at[row];
            entry[2] = (int32_t)*counted;
            entry[3] = (int32_t)size;
            *counted = 0;
        }
    }
    return address.length;
}
