/*
 * Ages at which lives ended, counted in bins: see ../../analysis/age_bins.py, which has the same in Python and says what each argument is.
 *
 * Every number may be wrong, since it comes from a file: rows of collections are compared with the table, and bins with their number.
 */
#include <math.h>

#include "arrays.h"

enum { COLLECTIONS = 1, FINE = 4096, PER_OCTAVE = 64 };

struct sums {
    int64_t *objects, *bytes, *dead_objects, *dead_bytes, *greatest;
};

static int64_t bin_of(int64_t age, int64_t clock)
{
    if (clock == COLLECTIONS || age < FINE)
        return age;
    return FINE + (int64_t)floor(PER_OCTAVE * log2((double)age));
}

static int count(const struct sums *sums, int64_t bins, int64_t slot, int64_t clock, int64_t age, int ends, int64_t size)
{
    int64_t at;
    if (age < 0)
        age = 0;
    at = bin_of(age, clock);
    if (at >= bins)
        return 0;
    at += slot * bins;
    sums->objects[at]++;
    sums->bytes[at] += size;
    if (ends) {
        sums->dead_objects[at]++;
        sums->dead_bytes[at] += size;
    }
    if (age > sums->greatest[at])
        sums->greatest[at] = age;
    return 1;
}

GCSPY_LOOP int64_t count_ages(struct i64s size, struct i64s birth_bytes, struct i32s born_after, struct u8s born_old,
                              struct i32s promoted_in, struct i32s died_in, struct i64s freed_bytes, struct i32s freed_after,
                              struct i64s collection_bytes, struct i64s last_full, int64_t total_bytes, int64_t clock,
                              struct i64s objects, struct i64s bytes, struct i64s dead_objects, struct i64s dead_bytes,
                              struct i64s greatest)
{
    const struct sums sums = {objects.at, bytes.at, dead_objects.at, dead_bytes.at, greatest.at};
    const int64_t bins = objects.length / 6, rows = collection_bytes.length, last = rows - 1;
    int64_t row;
    for (row = 0; row < size.length; row++) {
        int64_t birth = birth_bytes.at[row], born = born_after.at[row], died = died_in.at[row], promoted = promoted_in.at[row];
        int64_t freed = freed_bytes.at[row], until, old_since, seen_in, until_bytes, seen_bytes, old_bytes, since, held, seen;
        int freed_itself = freed >= 0, dead = died > 0 || freed_itself, born_old_too = born_old.at[row] != 0;
        int became_old = born_old_too || promoted > 0, young_ends = dead && promoted <= 0, fits = 1;
        until = freed_itself ? freed_after.at[row] : died > 0 ? died - 1 : last;
        old_since = born_old_too ? (born > 0 ? born : 0) : promoted;
        if (until < 0 || until > last || died < 0 || died > last || old_since < 0 || old_since > last)
            return row;
        seen_in = !became_old ? until : last_full.at[until] > old_since ? last_full.at[until] : old_since;
        if (seen_in < 0 || seen_in > last)
            return row;
        old_bytes = collection_bytes.at[old_since];
        until_bytes = freed_itself ? freed : dead ? collection_bytes.at[died] : total_bytes;
        seen_bytes = freed_itself ? freed - 1 : collection_bytes.at[seen_in];
        if (seen_bytes < birth)
            seen_bytes = birth;
        if (clock == COLLECTIONS) {
            since = born;
            held = until + (died > 0);
            seen = seen_in;
        } else {
            since = birth;
            held = until_bytes;
            seen = seen_bytes;
        }
        fits &= count(&sums, bins, 0, clock, held - since, dead, size.at[row]);
        fits &= count(&sums, bins, 1, clock, (dead ? seen + 1 : held) - since, dead, size.at[row]);
        if (!born_old_too) {
            int64_t end = promoted <= 0 ? held : clock == COLLECTIONS ? promoted : old_bytes;
            fits &= count(&sums, bins, 2, clock, end - since, young_ends, size.at[row]);
            fits &= count(&sums, bins, 3, clock, (young_ends ? seen + 1 : end) - since, young_ends, size.at[row]);
        }
        if (became_old) {
            int64_t from = clock == COLLECTIONS ? old_since : born_old_too ? birth : old_bytes;
            fits &= count(&sums, bins, 4, clock, held - from, dead, size.at[row]);
            fits &= count(&sums, bins, 5, clock, (dead ? seen + 1 : held) - from, dead, size.at[row]);
        }
        if (!fits)
            return row;
    }
    return row;
}
