/*
 * The model of addresses of the object trace format (objects/FORMAT.md, section 4.4): see ../address_model.py, which has the same in Python.
 */
#include "arrays.h"
#include "object_trace.h"

static struct gct_model model_of(struct i64s keys, struct i32s ordinals, struct i32s heads, struct i32s next, struct i64s where,
                                 struct i32s class_of)
{
    struct gct_model m = {keys.at, ordinals.at, keys.length, heads.at, next.at, where.at, class_of.at};
    return m;
}

/* Returns how many addresses are in `freed`. */
GCSPY_LOOP int64_t predict(struct u8s kind, struct i64s address, struct i64s size, int64_t shift, int64_t least, int64_t overhead,
                           struct i64s keys, struct i32s ordinals, struct i32s heads, struct i32s next, struct i64s where,
                           struct i32s class_of, struct i64s values, struct i64s ages, struct i64s freed)
{
    struct gct_model m = model_of(keys, ordinals, heads, next, where, class_of);
    return gct_predict(&m, kind.length, kind.at, address.at, size.at, shift, least, overhead, values.at, ages.at, freed.at);
}

/*
 * The inverse: sets the addresses of ALLOCATEs and FREEs. `sizes`, `values`: of ALLOCATEs; `ages`: of FREEs; `freed`: of those with age 0.
 * Returns -1, or the number of the first event that cannot be.
 */
GCSPY_LOOP int64_t recall(struct u8s kind, struct i64s sizes, struct i64s values, struct i64s ages, struct i64s freed, int64_t shift,
                          int64_t least, int64_t overhead, struct i32s heads, struct i32s next, struct i64s where, struct i32s class_of,
                          struct i64s placed, struct i64s address)
{
    int64_t top = 0, allocated = 0, pushed = 0, ended = 0, old = 0;
    for (int c = 0; c < GCT_CLASSES; c++)
        heads.at[c] = -1;
    for (int64_t i = 0; i < kind.length; i++) {
        if (kind.at[i] == GCT_ALLOCATE) {
            int64_t c = gct_class(sizes.at[allocated], shift, least, overhead), here = top;
            int hit = 0;
            if (c >= 0 && c < GCT_CLASSES && heads.at[c] >= 0) {
                int32_t entry = heads.at[c];
                heads.at[c] = next.at[entry];
                here = where.at[entry];
                hit = 1;
            }
            uint64_t value = (uint64_t)values.at[allocated];
            uint64_t off = value >> 1 ^ (0 - (value & 1));
            here = (int64_t)((uint64_t)here + off);
            if (!hit || off)
                top = (int64_t)((uint64_t)here + (uint64_t)c);
            placed.at[allocated] = here;
            class_of.at[allocated] = c >= 0 && c < GCT_CLASSES ? (int32_t)c : GCT_CLASSES;
            address.at[i] = (int64_t)((uint64_t)here << shift);
            allocated++;
        } else if (kind.at[i] == GCT_FREE) {
            int64_t age = ages.at[ended++];
            if (age == 0) {
                if (old >= freed.length)
                    return i;
                address.at[i] = freed.at[old++];
                continue;
            }
            if (age < 0 || age > allocated || class_of.at[allocated - age] < 0)
                return i;
            int64_t here = placed.at[allocated - age];
            int32_t c = class_of.at[allocated - age];
            class_of.at[allocated - age] = -1;
            address.at[i] = (int64_t)((uint64_t)here << shift);
            if (c < GCT_CLASSES) {
                where.at[pushed] = here;
                next.at[pushed] = heads.at[c];
                heads.at[c] = (int32_t)pushed++;
            }
        }
    }
    return old == freed.length ? -1 : kind.length;
}
