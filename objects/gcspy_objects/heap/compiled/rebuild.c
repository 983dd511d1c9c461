/*
 * Loops that rebuild a heap from records: see ../kernels.py, which has the same in Python and says what each argument is.
 *
 * Rows of threads are below the lengths of the tables of buffers: the caller made them as long.
 * Each loop stops at the first record that is not valid, before it has changed anything for it.
 */
#include "arrays.h"

/* Kinds and flags of records and objects, as in ../../records.py and ../views.py. */
enum { ALLOCATE = 1, ALLOCATE_NEXT = 2, BUFFER = 3, GC_BUFFER = 4, MOVE = 10, MOVE_NEXT = 11, MOVE_RUN = 12, KEEP = 13, SNAPSHOT_KEEP = 15 };
enum { TOLD_FILLER = 1, FILLER = 1, BORN_OLD = 2 };
enum { SURVIVOR = 1, OLD = 2, ELSEWHERE = 3 };
enum { KEPT = 1, MOVED = 2, PROMOTED = 3 };

static const int64_t MOST_BYTES = (int64_t)1 << 40;

/* The space of an address, -1 if none. A heap has a handful of spaces: a linear search from the top is the fastest. */
static int64_t space_of(const struct i64s *starts, int64_t address)
{
    int64_t space = starts->length - 1;
    while (space >= 0 && starts->at[space] > address)
        space--;
    return space;
}

static int place_of(const struct u8s *kinds, int64_t space)
{
    return space >= 0 && kinds->at[space] < ELSEWHERE ? kinds->at[space] : ELSEWHERE;
}

static int has_size(int64_t length)
{
    return length > 0 && length <= MOST_BYTES;
}

GCSPY_LOOP int64_t allocate(struct u8s kind, struct u8s told, struct i32s threads, struct i64s addresses, struct i64s sizes,
                            int64_t first_event, int64_t allocated_bytes, struct i64s space_starts, struct u8s space_kinds,
                            struct i64s start, struct i64s end, struct i64s cursor, struct i64s rows, struct i64s address,
                            struct i64s size, struct i64s birth, struct i64s birth_bytes, struct u8s flags, struct i64s sums)
{
    int64_t count = 0, total = 0, own = 0, own_bytes = 0, old = 0, row;
    for (row = 0; row < kind.length; row++) {
        int what = kind.at[row];
        if (what == ALLOCATE_NEXT || what == ALLOCATE) {
            int32_t thread = threads.at[row];
            int64_t length = sizes.at[row], here;
            if (!has_size(length))
                break;
            if (what == ALLOCATE_NEXT) {
                /* The address is implied: the next free byte of the thread's buffer. */
                here = cursor.at[thread];
                if (start.at[thread] < 0 || here + length > end.at[thread])
                    break;
                cursor.at[thread] = here + length;
            } else {
                here = addresses.at[row];
                /* An explicit address inside of the thread's own buffer must be the next free byte, too. */
                if (start.at[thread] <= here && here < end.at[thread]) {
                    if (here != cursor.at[thread])
                        break;
                    cursor.at[thread] = here + length;
                }
            }
            int64_t space = space_of(&space_starts, here);
            int flag = 0;
            if (space >= 0 && space_kinds.at[space] == OLD) {
                flag |= BORN_OLD;
                old++;
            }
            rows.at[count] = row;
            address.at[count] = here;
            size.at[count] = length;
            birth.at[count] = first_event + row;
            /* Age is measured in the program's bytes only: fillers do not count. */
            birth_bytes.at[count] = allocated_bytes + own_bytes;
            if (told.at[row] & TOLD_FILLER) {
                flag |= FILLER;
            } else {
                own++;
                own_bytes += length;
            }
            flags.at[count] = (uint8_t)flag;
            total += length;
            count++;
        } else if (what == BUFFER) {
            int32_t thread = threads.at[row];
            if (!has_size(sizes.at[row]))
                break;
            start.at[thread] = addresses.at[row];
            end.at[thread] = addresses.at[row] + sizes.at[row];
            cursor.at[thread] = addresses.at[row];
        } else if (what == GC_BUFFER || (MOVE <= what && what <= SNAPSHOT_KEEP)) {
            break;
        }
    }
    sums.at[0] = total;
    sums.at[1] = own;
    sums.at[2] = own_bytes;
    sums.at[3] = old;
    sums.at[4] = row; /* a record that was broken off at is left to the other way, which reports the error */
    return count;
}

/* The first of ascending addresses that is not below one. */
static int64_t first_from(const struct i64s *addresses, int64_t wanted)
{
    int64_t low = 0, high = addresses->length;
    while (low < high) {
        int64_t middle = (low + high) >> 1;
        if (addresses->at[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

GCSPY_LOOP int64_t collect(struct u8s kind, struct u8s detail, struct i32s threads, struct i64s addresses, struct i64s tos,
                           struct i64s sizes, struct i32s lengths, int64_t full, struct i64s young_address,
                           struct i64s young_size, struct i64s old_address, struct i64s old_size, struct i64s space_starts,
                           struct u8s space_kinds, struct i64s start, struct i64s end, struct i64s cursor, struct u8s fate,
                           struct i64s to, struct i64s new_rows, struct i64s new_address, struct i64s state)
{
    int64_t count = 0, young = young_address.length, row;
    for (row = 0; row < kind.length; row++) {
        state.at[0] = row;
        int what = kind.at[row];
        if (what == MOVE || what == MOVE_NEXT || what == KEEP || what == MOVE_RUN) {
            int64_t source = addresses.at[row];
            /* First among the young, then among the old. */
            int64_t low = first_from(&young_address, source);
            int in_old = low >= young || young_address.at[low] != source;
            if (in_old) {
                low = first_from(&old_address, source);
                if (low >= old_address.length || old_address.at[low] != source || !full)
                    return count;
                state.at[1] = 1;
            }
            /* `fate` and `to` have the young objects first, the old ones behind them. */
            int64_t item = in_old ? low + young : low, number = 1;
            if (what == MOVE_RUN) {
                number = lengths.at[row];
                int64_t room = in_old ? fate.length - item : young - item;
                if (number < 1 || number > room)
                    return count;
            }
            /* Nothing is changed before the whole record is known to be valid: no object may be named twice. */
            for (int64_t each = item; each < item + number; each++)
                if (fate.at[each] != 0)
                    return count;
            int64_t length = in_old ? old_size.at[low] : young_size.at[low], target = tos.at[row];
            if (what == KEEP) {
                target = source;
            } else if (what != MOVE_RUN) {
                int place = detail.at[row] < ELSEWHERE ? detail.at[row] : ELSEWHERE;
                if (what == MOVE)
                    place = place_of(&space_kinds, space_of(&space_starts, target));
                /* One copy buffer per thread and kind of space. */
                int64_t key = (int64_t)threads.at[row] * 4 + place;
                if (what == MOVE) {
                    if (start.at[key] <= target && target < end.at[key]) {
                        if (target != cursor.at[key])
                            return count;
                        cursor.at[key] = target + length;
                    }
                } else {
                    target = cursor.at[key];
                    if (start.at[key] < 0 || target + length > end.at[key])
                        return count;
                    cursor.at[key] = target + length;
                }
            }
            /* A run moves consecutive objects by one distance; they may cross into the next space. */
            int64_t space = space_starts.length - 1;
            for (int64_t each = item; each < item + number; each++) {
                int64_t here = in_old ? old_address.at[each - young] : young_address.at[each];
                int64_t there = target + (here - source);
                while (space >= 0 && space_starts.at[space] > there)
                    space--;
                while (space + 1 < space_starts.length && space_starts.at[space + 1] <= there)
                    space++;
                to.at[each] = there;
                if (there == here)
                    fate.at[each] = KEPT;
                else if (!in_old && space >= 0 && space_kinds.at[space] == OLD)
                    fate.at[each] = PROMOTED;
                else
                    fate.at[each] = MOVED;
            }
        } else if (what == ALLOCATE || what == GC_BUFFER) {
            int64_t here = addresses.at[row], length = sizes.at[row];
            int place = place_of(&space_kinds, space_of(&space_starts, here));
            if (!has_size(length))
                return count;
            int64_t key = (int64_t)threads.at[row] * 4 + place;
            if (what == GC_BUFFER) {
                if (place != SURVIVOR && place != OLD)
                    return count;
                start.at[key] = here;
                end.at[key] = here + length;
                cursor.at[key] = here;
            } else {
                if (start.at[key] <= here && here < end.at[key]) {
                    if (here != cursor.at[key])
                        return count;
                    cursor.at[key] = here + length;
                }
                new_rows.at[count] = row;
                new_address.at[count] = here;
                count++;
            }
        } else if (what == ALLOCATE_NEXT || what == BUFFER || (MOVE <= what && what <= SNAPSHOT_KEEP)) {
            return count;
        }
    }
    state.at[0] = kind.length;
    return count;
}
