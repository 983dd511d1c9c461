/*
 * Changes of a stream: the tiles of a DELTA listed, its values put into their places, and the differences of a record.
 *
 * The same numbers as gcspy_protocol/streams/values.py, gcspy_protocol/interpreter.py and
 * gcspy_replay/file/records/body.py compute with numpy (tests/protocol/test_stream_changes.py compares them).
 *
 * Every array comes from our own process, with its length. Tiles may come from a peer: each is compared with the
 * number of tiles before anything is written.
 */
#include "wire.h"

struct packed {
    uint64_t gap_bytes;
    uint64_t value_bytes;
    uint8_t gap_code;   /* 0: all are 0; 1 to 4: each has 1, 2, 4 or 8 bytes */
    uint8_t value_code;
    uint8_t running;    /* each difference is less that of the tile before */
};

/* Least and greatest of some numbers, which decide how many bytes each of them takes. */
struct range {
    int64_t low;
    int64_t high;
};

static inline void widen(struct range *range, int64_t number)
{
    range->low = number < range->low ? number : range->low;
    range->high = number > range->high ? number : range->high;
}

static uint8_t code_of(struct range range)
{
    if (range.low == 0 && range.high == 0)
        return 0;
    if (range.low >= INT8_MIN && range.high <= INT8_MAX)
        return 1;
    if (range.low >= INT16_MIN && range.high <= INT16_MAX)
        return 2;
    return range.low >= INT32_MIN && range.high <= INT32_MAX ? 3 : 4;
}

static inline uint64_t bytes_of(uint8_t code, uint64_t count) { return code == 0 ? 0 : count << (code - 1); }

/* Write numbers with as many bytes as their code says; in place, too. */
static void narrow(const int64_t *numbers, uint64_t count, uint8_t code, uint8_t *out)
{
    switch (code) {
    case 0:
        return;
    case 1:
        for (uint64_t i = 0; i < count; i++)
            out[i] = (uint8_t)numbers[i];
        return;
    case 2:
        for (uint64_t i = 0; i < count; i++)
            put16(out + 2 * i, (uint16_t)numbers[i]);
        return;
    case 3:
        for (uint64_t i = 0; i < count; i++)
            put32(out + 4 * i, (uint32_t)numbers[i]);
        return;
    default:
        for (uint64_t i = 0; i < count; i++)
            put64(out + 8 * i, (uint64_t)numbers[i]);
    }
}

/* Whether all tiles are in order, each once, and below the number of tiles. */
static int in_order(const int64_t *tiles, uint64_t count, uint64_t all)
{
    int64_t before = -1;
    int good = 1;
    for (uint64_t i = 0; i < count; i++) {
        good &= tiles[i] > before;
        before = tiles[i];
    }
    return good && (count == 0 || (uint64_t)before < all);
}

/* List the tiles of gaps of 16 bits, of which there is room for `room`; return their number, or `room` + 1. */
GCSPY_API uint64_t gcspy_list_gaps(const uint8_t *gaps, uint64_t count, int64_t *tiles, uint64_t room)
{
    uint64_t next = 0, listed = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint16_t gap;
        memcpy(&gap, gaps + 2 * i, sizeof gap);
        next += gap;
        if (gap == ESCAPE)
            continue;
        if (listed == room)
            return room + 1;
        tiles[listed++] = (int64_t)next++;
    }
    return listed;
}

/* Tiles that are this many steps ahead are asked for: of a large heap each lies on a cache line of its own. */
#define AHEAD 24

#define PUT(T)                                     \
    {                                              \
        T *to = values;                            \
        for (uint64_t i = 0; i < count; i++) {     \
            T one; /* from a payload, where it may lie between words */ \
            if (i + AHEAD < count)                 \
                __builtin_prefetch(to + tiles[i + AHEAD], 1); \
            memcpy(&one, (const uint8_t *)given + i * sizeof one, sizeof one); \
            to[tiles[i]] = one;                    \
        }                                          \
        break;                                     \
    }

/* Put values of `size` bytes into their tiles; 0: the tiles are not in order, and nothing was done. */
GCSPY_API uint32_t gcspy_put_values(void *values, uint64_t all, uint32_t size, const int64_t *tiles, uint64_t count,
                                    const void *given)
{
    if (!in_order(tiles, count, all))
        return 0;
    switch (size) {
    case 1: PUT(uint8_t)
    case 2: PUT(uint16_t)
    case 4: PUT(uint32_t)
    default: PUT(uint64_t)
    }
    return 1;
}

#define DIFFER(T)                                                                 \
    {                                                                             \
        const T *values = now;                                                    \
        T *olds = before;                                                         \
        for (uint64_t i = 0; i < count; i++) {                                    \
            if (i + AHEAD < count) {                                              \
                __builtin_prefetch(values + tiles[i + AHEAD], 0);                 \
                __builtin_prefetch(olds + tiles[i + AHEAD], 1);                   \
            }                                                                     \
            T value = values[tiles[i]], old = olds[tiles[i]];                     \
            olds[tiles[i]] = value;                                               \
            differences[i] = (int64_t)((uint64_t)(int64_t)value - (uint64_t)(int64_t)old); \
        }                                                                         \
        break;                                                                    \
    }

/*
 * Gaps between changed tiles and the differences of their values; `before` gets the values of now.
 *
 * `gaps` and `values` have room for `count` numbers of 8 bytes each, aligned. 0: the tiles are not in order, and
 * nothing was done.
 */
GCSPY_API uint32_t gcspy_pack_changes(const void *now, void *before, uint64_t all, uint8_t type, const int64_t *tiles,
                                      uint64_t count, int64_t *gaps, int64_t *values, struct packed *packed)
{
    int64_t *differences = values;
    struct range gap = {0, 0}, value = {0, 0};
    if (count == 0 || !in_order(tiles, count, all))
        return 0;
    gap.low = gap.high = tiles[0];
    gaps[0] = tiles[0];
    for (uint64_t i = 1; i < count; i++) {
        gaps[i] = tiles[i] - tiles[i - 1] - 1;
        widen(&gap, gaps[i]);
    }
    switch (type) {
    case 1: DIFFER(int8_t)
    case 2: DIFFER(uint8_t)
    case 3: DIFFER(int16_t)
    case 4: DIFFER(uint16_t)
    case 5: DIFFER(int32_t)
    case 6: DIFFER(uint32_t)
    case 7: DIFFER(int64_t)
    default: DIFFER(uint64_t)
    }
    value.low = value.high = values[0];
    for (uint64_t i = 1; i < count; i++)
        widen(&value, values[i]);
    memset(packed, 0, sizeof *packed);
    packed->gap_code = code_of(gap);
    packed->value_code = code_of(value);
    packed->gap_bytes = bytes_of(packed->gap_code, count);
    packed->value_bytes = bytes_of(packed->value_code, count);
    narrow(gaps, count, packed->gap_code, (uint8_t *)gaps);
    narrow(values, count, packed->value_code, (uint8_t *)values);
    return 1;
}

/* A difference of a tile, and the step to it from the tile before. */
#define EACH(T, BODY)                                                                                       \
    {                                                                                                       \
        const T *values = now, *olds = before;                                                              \
        uint64_t last = 0;                                                                                  \
        for (uint64_t i = 0; i < count; i++) {                                                              \
            uint64_t old = olds == NULL ? (uint64_t)start : (uint64_t)(int64_t)olds[i];                     \
            uint64_t difference = (uint64_t)(int64_t)values[i] - old;                                       \
            uint64_t step = difference - last;                                                              \
            last = difference;                                                                              \
            BODY                                                                                            \
        }                                                                                                   \
        break;                                                                                              \
    }

#define EACH_TYPE(BODY)                \
    switch (type) {                    \
    case 1: EACH(int8_t, BODY)         \
    case 2: EACH(uint8_t, BODY)        \
    case 3: EACH(int16_t, BODY)        \
    case 4: EACH(uint16_t, BODY)       \
    case 5: EACH(int32_t, BODY)        \
    case 6: EACH(uint32_t, BODY)       \
    case 7: EACH(int64_t, BODY)        \
    default: EACH(uint64_t, BODY)      \
    }

/* How many of these differ from a number, and from the one before each, and their least and greatest: loops without branches, a few kilobytes at a time. */
#define WEIGH(T)                                                                     \
    {                                                                                \
        const T *values = now;                                                       \
        T low = values[0], high = values[0];                                         \
        differ = move = 0;                                                           \
        for (uint64_t at = 0; at < count; at += BLOCK) {                             \
            uint64_t end = count - at < BLOCK ? count : at + BLOCK;                  \
            uint32_t differing = 0, moving = 0;                                      \
            for (uint64_t i = at; i < end; i++) {                                    \
                low = values[i] < low ? values[i] : low;                             \
                high = values[i] > high ? values[i] : high;                          \
                differing += (int64_t)values[i] != start;                            \
            }                                                                        \
            for (uint64_t i = at ? at : 1; i < end; i++)                             \
                moving += values[i] != values[i - 1];                                \
            differ += differing;                                                     \
            move += moving;                                                          \
        }                                                                            \
        move += (int64_t)values[0] != start;                                         \
        plain.low = (int64_t)low - start;                                            \
        plain.high = (int64_t)high - start;                                          \
        weighed = 1;                                                                 \
        break;                                                                       \
    }
#define BLOCK 4096

/*
 * Determine how the differences of all tiles are written: to `before`, or to the number `start` where that is NULL.
 *
 * The caller makes room for `value_bytes` and calls gcspy_write_all.
 */
GCSPY_API void gcspy_weigh_all(const void *now, const void *before, int64_t start, uint8_t type, uint64_t count,
                               uint64_t running_from, struct packed *packed)
{
    struct range plain = {INT64_MAX, INT64_MIN}, steps = {INT64_MAX, INT64_MIN};
    uint64_t differ = 0, move = 0;
    int weighed = 0;
    memset(packed, 0, sizeof *packed);
    if (count == 0)
        return;
    /* The usual case, a state of its own: fast loops suffice, unless steps are written. */
    if (before == NULL && start >= INT32_MIN && start <= UINT32_MAX)
        switch (type) {
        case 1: WEIGH(int8_t)
        case 2: WEIGH(uint8_t)
        case 3: WEIGH(int16_t)
        case 4: WEIGH(uint16_t)
        case 5: WEIGH(int32_t)
        case 6: WEIGH(uint32_t)
        default: break;
        }
    if (weighed && !(count >= running_from && move < differ)) {
        packed->value_code = code_of(plain);
        packed->value_bytes = bytes_of(packed->value_code, count);
        return;
    }
    differ = move = 0;
    plain = (struct range){INT64_MAX, INT64_MIN};
    EACH_TYPE({
        widen(&plain, (int64_t)difference);
        widen(&steps, (int64_t)step);
        differ += difference != 0;
        move += step != 0;
    })
    packed->running = count >= running_from && move < differ;
    packed->value_code = code_of(packed->running ? steps : plain);
    packed->value_bytes = bytes_of(packed->value_code, count);
}

#define WRITE(PUT_IT) EACH_TYPE({ uint64_t number = running ? step : difference; PUT_IT; })

/* Write the differences of all tiles as gcspy_weigh_all has determined. */
GCSPY_API void gcspy_write_all(const void *now, const void *before, int64_t start, uint8_t type, uint64_t count,
                               const struct packed *packed, uint8_t *out)
{
    const uint8_t running = packed->running; /* a copy, as `out` might be any memory */
    switch (packed->value_code) {
    case 0:
        return;
    case 1:
        WRITE(out[i] = (uint8_t)number)
        return;
    case 2:
        WRITE(put16(out + 2 * i, (uint16_t)number))
        return;
    case 3:
        WRITE(put32(out + 4 * i, (uint32_t)number))
        return;
    default:
        WRITE(put64(out + 8 * i, number))
    }
}
