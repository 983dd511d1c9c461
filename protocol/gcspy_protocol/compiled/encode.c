/*
 * All streams of a space as frames, in one call: compare with the values sent before, KEY or DELTA, summary, CRC.
 *
 * The same bytes as gcspy_protocol/streams/values.py and gcspy_server/interpreter/summaries.py
 * (tests/protocol/compiled compares them). Compression is left to the caller: a payload of 512 bytes
 * or more is written as it is, and has no CRC.
 *
 * Every array comes from our own process, with its length. The caller keeps them alive and gives each
 * of them the length that the fields below say; nothing here is read from a peer.
 */
#include "wire.h"

__extension__ typedef __int128 wide;

enum { BLOCK = 32, BLOCKS = 32 }; /* tiles compared at a time, and as many of these before */
enum { PART = 1 << 15 };           /* tiles whose sum of 16 bits fits 32 */

enum summary { NO_SUMMARY, GIVEN, SUM, PERCENT, PERCENT_VAR, NAMES };

/* A stream, and what became of it. compiled/space_encoder.py has the same fields. */
struct stream {
    const void *values;          /* of each tile */
    const uint8_t *known;        /* of each tile, 0: unknown; NULL: all are known */
    void *before;                /* of each tile: the values sent before; updated */
    uint8_t *before_known;       /* of each tile; NULL: all were known. Needed if `known` is; updated */
    const void *maxima;          /* PERCENT_VAR: of each tile, 100 % */
    const uint8_t *maxima_known; /* or NULL */
    int64_t *numbers;            /* of the summary: given, or room for them */
    uint64_t base_sequence;      /* of the values sent before */
    int64_t maximum;             /* PERCENT */
    int64_t covered;             /* GIVEN: tiles covered; -1: those that count */
    uint64_t frame_at;           /* results: place and bytes of the frame, with its header */
    uint64_t frame_bytes;
    uint64_t summary_at;         /* and of the summary; 0 bytes: none */
    uint64_t summary_bytes;
    uint32_t frame_crc;          /* 0 if the payload may have to be compressed */
    uint32_t summary_crc;
    uint32_t number_count;
    uint16_t stream;
    uint8_t type;
    uint8_t maxima_type;
    uint8_t summary;
    uint8_t first;               /* nothing was sent before: a KEY */
    uint8_t all_known;           /* result: all values are known now */
    uint8_t is_key;              /* result */
};

struct event {
    uint64_t sequence;
    uint64_t time_nanos;
    uint64_t occurrence;
    uint16_t event;
    uint16_t space;
    uint8_t compresses; /* whether the caller will compress payloads of 512 bytes or more */
};

/* What differs from the values sent before. */
struct changes {
    uint64_t count;
    uint64_t escapes; /* gaps that list no tile */
    uint64_t blocks;  /* that differ; their numbers are in `dirty` */
    uint64_t unknown; /* of those that differ */
};

static void put_header(uint8_t *at, uint64_t payload, uint8_t type, const struct event *event, uint16_t stream)
{
    put32(at, (uint32_t)payload);
    at[4] = type;
    at[5] = 0;
    put16(at + 6, event->space);
    put16(at + 8, stream);
    put16(at + 10, 0);
    put64(at + 12, event->sequence);
    put64(at + 20, event->time_nanos);
}

static inline int is_known(const uint8_t *known, uint64_t tile) { return known == NULL || known[tile] != 0; }

/* Whether a client would see a difference at a tile: an unknown value cannot have changed, only its being known can. */
#define DIFFERS(now, was, values, before, tile) ((now) != (was) || ((now) && (values)[tile] != (before)[tile]))

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* One bit for each of eight bytes that are 0 or 1. */
static inline uint32_t eight_bits(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return (uint32_t)(word * UINT64_C(0x0102040810204080) >> 56);
}
#else
static inline uint32_t eight_bits(const uint8_t *bytes)
{
    uint32_t bits = 0;
    for (int i = 0; i < 8; i++)
        bits |= (uint32_t)bytes[i] << i;
    return bits;
}
#endif

/* Which of BLOCK tiles differ, as bits: without a branch for each, as processors cannot foresee them. */
#define MASK(T, NAME)                                                                                        \
    static inline __attribute__((always_inline)) uint32_t NAME(const T *values, const T *before, uint64_t count) \
    {                                                                                                        \
        uint8_t differ[BLOCK] = {0};                                                                         \
        if (count == BLOCK)                                                                                  \
            for (int i = 0; i < BLOCK; i++)                                                                  \
                differ[i] = values[i] != before[i];                                                          \
        else                                                                                                 \
            for (uint64_t i = 0; i < count; i++)                                                             \
                differ[i] = values[i] != before[i];                                                          \
        return eight_bits(differ) | eight_bits(differ + 8) << 8 | eight_bits(differ + 16) << 16              \
            | eight_bits(differ + 24) << 24;                                                                 \
    }

MASK(uint8_t, mask_1)
MASK(uint16_t, mask_2)
MASK(uint32_t, mask_4)
MASK(uint64_t, mask_8)

/* The same as FIND, where all values are known and were. */
#define FIND_PLAIN(T, NAME, MASK_OF)                                                                         \
    WIDE_LOOP static struct changes NAME(const T *values, const T *before, uint64_t tiles, uint32_t *dirty)  \
    {                                                                                                        \
        struct changes found = {0, 0, 0, 0};                                                                 \
        uint64_t next = 0; /* one behind the last tile that differs */                                       \
        for (uint64_t far = 0; far < tiles; far += BLOCK * BLOCKS) {                                         \
            uint64_t far_end = tiles - far < BLOCK * BLOCKS ? tiles : far + BLOCK * BLOCKS;                  \
            if (memcmp(values + far, before + far, (far_end - far) * sizeof(T)) == 0)                        \
                continue;                                                                                    \
            for (uint64_t start = far; start < far_end; start += BLOCK) {                                    \
                uint64_t count = far_end - start < BLOCK ? far_end - start : BLOCK;                          \
                uint32_t bits = MASK_OF(values + start, before + start, count);                              \
                if (bits == 0)                                                                               \
                    continue;                                                                                \
                found.count += (uint64_t)__builtin_popcount(bits);                                           \
                found.escapes += (start + (uint64_t)__builtin_ctz(bits) - next) / ESCAPE;                    \
                next = start + 32 - (uint64_t)__builtin_clz(bits);                                           \
                dirty[found.blocks++] = (uint32_t)(start / BLOCK);                                           \
            }                                                                                                \
        }                                                                                                    \
        return found;                                                                                        \
    }

FIND_PLAIN(uint8_t, find_plain_1, mask_1)
FIND_PLAIN(uint16_t, find_plain_2, mask_2)
FIND_PLAIN(uint32_t, find_plain_4, mask_4)
FIND_PLAIN(uint64_t, find_plain_8, mask_8)

#define FIND(T, NAME, PLAIN)                                                                                 \
    static struct changes NAME(const struct stream *s, const uint8_t *known, uint64_t tiles, uint32_t *dirty) \
    {                                                                                                        \
        struct changes found = {0, 0, 0, 0};                                                                 \
        const T *values = s->values, *before = s->before;                                                    \
        const uint8_t *old = s->before_known;                                                                \
        uint64_t next = 0; /* one behind the last tile that differs */                                       \
        if (known == NULL && old == NULL)                                                                    \
            return PLAIN(values, before, tiles, dirty);                                                      \
        for (uint64_t start = 0; start < tiles; start += BLOCK) {                                            \
            uint64_t end = start + BLOCK < tiles ? start + BLOCK : tiles;                                    \
            uint64_t earlier = found.count;                                                                  \
            for (uint64_t tile = start; tile < end; tile++) {                                                \
                int now = is_known(known, tile), was = is_known(old, tile);                                  \
                if (!DIFFERS(now, was, values, before, tile))                                                \
                    continue;                                                                                \
                found.count++;                                                                               \
                found.unknown += !now;                                                                       \
                found.escapes += (tile - next) / ESCAPE;                                                     \
                next = tile + 1;                                                                             \
            }                                                                                                \
            if (found.count != earlier)                                                                      \
                dirty[found.blocks++] = (uint32_t)(start / BLOCK);                                           \
        }                                                                                                    \
        return found;                                                                                        \
    }

FIND(uint8_t, find_1, find_plain_1)
FIND(uint16_t, find_2, find_plain_2)
FIND(uint32_t, find_4, find_plain_4)
FIND(uint64_t, find_8, find_plain_8)

enum { AHEAD = 4 }; /* blocks that are asked for before their turn: those of a large heap are far apart */

/* The same as TAKE, where all values are known and were. */
#define TAKE_PLAIN(T, NAME, MASK_OF)                                                                         \
    WIDE_LOOP static void NAME(const T *values, T *before, uint64_t tiles, const uint32_t *dirty,            \
                               uint64_t blocks, uint8_t *gaps, uint8_t *out)                                 \
    {                                                                                                        \
        uint64_t next = 0;                                                                                   \
        for (uint64_t block = 0; block < blocks; block++) {                                                  \
            uint64_t start = (uint64_t)dirty[block] * BLOCK;                                                 \
            uint64_t count = tiles - start < BLOCK ? tiles - start : BLOCK;                                  \
            if (block + AHEAD < blocks) {                                                                    \
                uint64_t coming = (uint64_t)dirty[block + AHEAD] * BLOCK;                                    \
                __builtin_prefetch(values + coming, 0);                                                      \
                __builtin_prefetch(before + coming, 1);                                                      \
            }                                                                                                \
            uint32_t bits = MASK_OF(values + start, before + start, count);                                  \
            for (; bits != 0; bits &= bits - 1) {                                                            \
                uint64_t tile = start + (uint64_t)__builtin_ctz(bits);                                       \
                uint64_t gap = tile - next;                                                                  \
                for (; gap >= ESCAPE; gap -= ESCAPE, gaps += 2)                                              \
                    put16(gaps, ESCAPE);                                                                     \
                put16(gaps, (uint16_t)gap);                                                                  \
                gaps += 2;                                                                                   \
                T value = values[tile];                                                                      \
                memcpy(out, &value, sizeof value);                                                           \
                out += sizeof value;                                                                         \
                before[tile] = value;                                                                        \
                next = tile + 1;                                                                             \
            }                                                                                                \
        }                                                                                                    \
    }

TAKE_PLAIN(uint8_t, take_plain_1, mask_1)
TAKE_PLAIN(uint16_t, take_plain_2, mask_2)
TAKE_PLAIN(uint32_t, take_plain_4, mask_4)
TAKE_PLAIN(uint64_t, take_plain_8, mask_8)

/* Write gaps, bitmap and values of what differs, and store it. */
#define TAKE(T, NAME, PLAIN)                                                                                      \
    static void NAME(struct stream *s, const uint8_t *known, uint64_t tiles, const uint32_t *dirty,          \
                     const struct changes *found, uint8_t *gaps, uint8_t *bitmap, uint8_t *out)              \
    {                                                                                                        \
        const T *values = s->values;                                                                         \
        T *before = s->before;                                                                               \
        uint64_t next = 0, place = 0;                                                                        \
        if (known == NULL && s->before_known == NULL) {                                                      \
            PLAIN(values, before, tiles, dirty, found->blocks, gaps, out);                                   \
            return;                                                                                          \
        }                                                                                                    \
        for (uint64_t block = 0; block < found->blocks; block++) {                                           \
            uint64_t start = (uint64_t)dirty[block] * BLOCK;                                                 \
            uint64_t end = start + BLOCK < tiles ? start + BLOCK : tiles;                                    \
            for (uint64_t tile = start; tile < end; tile++) {                                                \
                int now = is_known(known, tile), was = is_known(s->before_known, tile);                      \
                if (!DIFFERS(now, was, values, before, tile))                                                \
                    continue;                                                                                \
                uint64_t gap = tile - next;                                                                  \
                for (; gap >= ESCAPE; gap -= ESCAPE, gaps += 2)                                              \
                    put16(gaps, ESCAPE);                                                                     \
                put16(gaps, (uint16_t)gap);                                                                  \
                gaps += 2;                                                                                   \
                if (bitmap != NULL && now)                                                                   \
                    bitmap[place / 8] |= (uint8_t)(1u << place % 8);                                         \
                T value = values[tile];                                                                      \
                memcpy(out, &value, sizeof value);                                                           \
                out += sizeof value;                                                                         \
                before[tile] = value;                                                                        \
                if (s->before_known != NULL)                                                                 \
                    s->before_known[tile] = (uint8_t)now;                                                    \
                next = tile + 1;                                                                             \
                place++;                                                                                     \
            }                                                                                                \
        }                                                                                                    \
    }

TAKE(uint8_t, take_1, take_plain_1)
TAKE(uint16_t, take_2, take_plain_2)
TAKE(uint32_t, take_4, take_plain_4)
TAKE(uint64_t, take_8, take_plain_8)

static int64_t limited(wide sum)
{
    return sum > INT64_MAX ? INT64_MAX : sum < -INT64_MAX ? -INT64_MAX : (int64_t)sum;
}

/* Tiles that a summary covers: used ones, whose value is known, and whose maximum is. */
struct counted {
    const uint8_t *control;
    const uint8_t *known;
    const uint8_t *maxima_known;
    int all;
};

static inline int counts(const struct counted *which, uint64_t tile)
{
    return (which->control[tile] & USED) && is_known(which->known, tile) && is_known(which->maxima_known, tile);
}

/* The sum of tiles that are marked in `control`, or of all. PARTIAL holds the sum of PART values of T, TOTAL that of all. */
#define SUM(T, PARTIAL, TOTAL, NAME)                                                                       \
    WIDE_LOOP static TOTAL NAME##_all(const T *numbers, uint64_t tiles)                                    \
    {                                                                                                      \
        TOTAL total = 0;                                                                                   \
        for (uint64_t start = 0; start < tiles; start += PART) {                                           \
            uint64_t end = start + PART < tiles ? start + PART : tiles;                                    \
            PARTIAL part = 0;                                                                              \
            for (uint64_t tile = start; tile < end; tile++)                                                \
                part += numbers[tile];                                                                     \
            total += part;                                                                                 \
        }                                                                                                  \
        return total;                                                                                      \
    }                                                                                                      \
    WIDE_LOOP static TOTAL NAME##_used(const T *numbers, const uint8_t *control, uint64_t tiles)           \
    {                                                                                                      \
        TOTAL total = 0;                                                                                   \
        for (uint64_t start = 0; start < tiles; start += PART) {                                           \
            uint64_t end = start + PART < tiles ? start + PART : tiles;                                    \
            PARTIAL part = 0;                                                                              \
            for (uint64_t tile = start; tile < end; tile++)                                                \
                part += (PARTIAL)numbers[tile] * (control[tile] & USED);                                   \
            total += part;                                                                                 \
        }                                                                                                  \
        return total;                                                                                      \
    }                                                                                                      \
    static int64_t NAME(const void *values, uint64_t tiles, const struct counted *which)                   \
    {                                                                                                      \
        const T *numbers = values;                                                                         \
        if (which->all)                                                                                    \
            return limited(NAME##_all(numbers, tiles));                                                    \
        if (which->known == NULL && which->maxima_known == NULL)                                           \
            return limited(NAME##_used(numbers, which->control, tiles));                                   \
        TOTAL total = 0;                                                                                   \
        for (uint64_t tile = 0; tile < tiles; tile++)                                                      \
            if (counts(which, tile))                                                                       \
                total += numbers[tile];                                                                    \
        return limited(total);                                                                             \
    }

SUM(int8_t, int32_t, int64_t, sum_i1)
SUM(uint8_t, uint32_t, int64_t, sum_u1)
SUM(int16_t, int32_t, int64_t, sum_i2)
SUM(uint16_t, uint32_t, int64_t, sum_u2)
SUM(int32_t, int64_t, int64_t, sum_i4)
SUM(uint32_t, int64_t, int64_t, sum_u4)
SUM(int64_t, wide, wide, sum_i8)
SUM(uint64_t, wide, wide, sum_u8)

static int64_t sum_of(const void *values, uint8_t type, uint64_t tiles, const struct counted *which)
{
    switch (type) {
    case 1: return sum_i1(values, tiles, which);
    case 2: return sum_u1(values, tiles, which);
    case 3: return sum_i2(values, tiles, which);
    case 4: return sum_u2(values, tiles, which);
    case 5: return sum_i4(values, tiles, which);
    case 6: return sum_u4(values, tiles, which);
    case 7: return sum_i8(values, tiles, which);
    default: return sum_u8(values, tiles, which);
    }
}

#define COUNT_NAMES(T)                                                                            \
    {                                                                                             \
        const T *numbers = s->values;                                                             \
        for (uint64_t tile = 0; tile < tiles; tile++)                                             \
            if ((which->all || counts(which, tile)) && numbers[tile] >= 0                         \
                && (uint64_t)numbers[tile] < s->number_count)                                     \
                s->numbers[numbers[tile]]++;                                                      \
        return;                                                                                   \
    }

#define COUNT_UNSIGNED_NAMES(T)                                                                   \
    {                                                                                             \
        const T *numbers = s->values;                                                             \
        for (uint64_t tile = 0; tile < tiles; tile++)                                             \
            if ((which->all || counts(which, tile)) && numbers[tile] < s->number_count)           \
                s->numbers[numbers[tile]]++;                                                      \
        return;                                                                                   \
    }

/* Numbers of names in a byte: four tables, so that equal neighbours do not wait for each other, and no branch. */
static void count_bytes(struct stream *s, uint64_t tiles, const uint8_t *control, int all)
{
    const uint8_t *numbers = s->values;
    uint32_t table[4][256] = {{0}};
    uint64_t tile = 0;
    for (; tile + 4 <= tiles; tile += 4)
        for (int lane = 0; lane < 4; lane++)
            table[lane][numbers[tile + lane]] += all ? 1 : control[tile + lane] & USED;
    for (; tile < tiles; tile++)
        table[0][numbers[tile]] += all ? 1 : control[tile] & USED;
    for (uint32_t name = 0; name < s->number_count && name < 256; name++)
        s->numbers[name] = (int64_t)table[0][name] + table[1][name] + table[2][name] + table[3][name];
}

static void count_names(struct stream *s, uint64_t tiles, const struct counted *which)
{
    for (uint32_t name = 0; name < s->number_count; name++)
        s->numbers[name] = 0;
    if (s->type == 2 && which->known == NULL) {
        count_bytes(s, tiles, which->control, which->all);
        return;
    }
    switch (s->type) {
    case 1: COUNT_NAMES(int8_t)
    case 2: COUNT_UNSIGNED_NAMES(uint8_t)
    case 3: COUNT_NAMES(int16_t)
    case 4: COUNT_UNSIGNED_NAMES(uint16_t)
    case 5: COUNT_NAMES(int32_t)
    case 6: COUNT_UNSIGNED_NAMES(uint32_t)
    case 7: COUNT_NAMES(int64_t)
    case 8: COUNT_UNSIGNED_NAMES(uint64_t)
    default: return;
    }
}

/* Write the summary's frame; return its bytes. */
static uint64_t summarise(struct stream *s, uint64_t tiles, const uint8_t *control, uint64_t used,
                          const struct event *event, uint8_t *out)
{
    struct counted which = {control, s->known, NULL, 0};
    uint64_t covered = used;
    if (s->summary == PERCENT_VAR)
        which.maxima_known = s->maxima_known;
    if (which.known != NULL || which.maxima_known != NULL) {
        covered = 0;
        for (uint64_t tile = 0; tile < tiles; tile++)
            covered += (uint64_t)counts(&which, tile);
    }
    which.all = covered == tiles;
    switch (s->summary) {
    case GIVEN:
        if (s->covered >= 0)
            covered = (uint64_t)s->covered;
        break;
    case NAMES:
        count_names(s, tiles, &which);
        break;
    default:
        s->numbers[0] = sum_of(s->values, s->type, tiles, &which);
        if (s->summary == PERCENT) {
            wide total = (wide)s->maximum * (wide)covered;
            s->numbers[1] = total > INT64_MAX ? INT64_MAX : (int64_t)total;
        } else if (s->summary == PERCENT_VAR) {
            s->numbers[1] = sum_of(s->maxima, s->maxima_type, tiles, &which);
        }
    }
    uint64_t payload = SUMMARY_BYTES + 8 * (uint64_t)s->number_count;
    put_header(out, payload, TYPE_SUMMARY, event, s->stream);
    put32(out + HEADER_BYTES, (uint32_t)covered);
    put32(out + HEADER_BYTES + 4, s->number_count);
    for (uint32_t number = 0; number < s->number_count; number++)
        put64(out + HEADER_BYTES + SUMMARY_BYTES + 8 * (size_t)number, (uint64_t)s->numbers[number]);
    return HEADER_BYTES + payload;
}

static void put_bits(uint8_t *bitmap, const uint8_t *known, uint64_t tiles)
{
    memset(bitmap, 0, (tiles + 7) / 8);
    for (uint64_t tile = 0; tile < tiles; tile++)
        if (known[tile])
            bitmap[tile / 8] |= (uint8_t)(1u << tile % 8);
}

static void put_values_head(uint8_t *at, const struct stream *s, const struct event *event, int bitmap, uint64_t tiles)
{
    put16(at, event->event);
    at[2] = s->type;
    at[3] = bitmap ? HAS_BITMAP : 0;
    put32(at + 4, (uint32_t)tiles);
    put64(at + 8, event->occurrence);
}

static uint64_t write_key(struct stream *s, const uint8_t *known, uint64_t tiles, const struct event *event, uint8_t *out)
{
    uint64_t bits = known == NULL ? 0 : (tiles + 7) / 8, bytes = tiles * value_bytes(s->type);
    uint8_t *payload = out + HEADER_BYTES;
    put_header(out, KEY_BYTES + bits + bytes, TYPE_KEY, event, s->stream);
    put_values_head(payload, s, event, known != NULL, tiles);
    if (known != NULL)
        put_bits(payload + KEY_BYTES, known, tiles);
    if (bytes != 0) {
        memcpy(payload + KEY_BYTES + bits, s->values, bytes);
        memcpy(s->before, s->values, bytes);
    }
    if (s->before_known != NULL)
        for (uint64_t tile = 0; tile < tiles; tile++)
            s->before_known[tile] = (uint8_t)is_known(known, tile);
    return HEADER_BYTES + KEY_BYTES + bits + bytes;
}

static uint64_t write_delta(struct stream *s, const uint8_t *known, uint64_t tiles, const struct event *event,
                            const uint32_t *dirty, const struct changes *found, uint8_t *out)
{
    uint32_t size = value_bytes(s->type);
    uint64_t gaps = found->count + found->escapes;
    uint64_t bits = found->unknown != 0 ? (found->count + 7) / 8 : 0;
    uint64_t payload = DELTA_BYTES + 2 * gaps + bits + found->count * size;
    uint8_t *at = out + HEADER_BYTES, *bitmap = at + DELTA_BYTES + 2 * gaps, *numbers = bitmap + bits;
    put_header(out, payload, TYPE_DELTA, event, s->stream);
    put_values_head(at, s, event, bits != 0, tiles);
    put64(at + 16, s->base_sequence);
    put32(at + 24, (uint32_t)found->count);
    put32(at + 28, (uint32_t)gaps);
    if (bits != 0)
        memset(bitmap, 0, bits);
    else
        bitmap = NULL;
    at += DELTA_BYTES;
    switch (size) {
    case 1: take_1(s, known, tiles, dirty, found, at, bitmap, numbers); break;
    case 2: take_2(s, known, tiles, dirty, found, at, bitmap, numbers); break;
    case 4: take_4(s, known, tiles, dirty, found, at, bitmap, numbers); break;
    default: take_8(s, known, tiles, dirty, found, at, bitmap, numbers); break;
    }
    return HEADER_BYTES + payload;
}

static struct changes find_changes(const struct stream *s, const uint8_t *known, uint64_t tiles, uint32_t *dirty)
{
    switch (value_bytes(s->type)) {
    case 1: return find_1(s, known, tiles, dirty);
    case 2: return find_2(s, known, tiles, dirty);
    case 4: return find_4(s, known, tiles, dirty);
    default: return find_8(s, known, tiles, dirty);
    }
}

static uint32_t crc_of_frame(const uint8_t *frame, uint64_t bytes, const struct event *event)
{
    if (event->compresses && bytes >= HEADER_BYTES + COMPRESSED_FROM)
        return 0;
    return gcspy_crc(0, frame, bytes);
}

WIDE_LOOP static uint64_t count_used(const uint8_t *control, uint64_t tiles)
{
    uint64_t used = 0;
    for (uint64_t start = 0; start < tiles; start += PART) {
        uint64_t end = start + PART < tiles ? start + PART : tiles;
        uint32_t part = 0;
        for (uint64_t tile = start; tile < end; tile++)
            part += control[tile] & USED;
        used += part;
    }
    return used;
}

/*
 * Encode the streams from `first` on, in order, until all are done or `out` has no room for the next.
 *
 * `dirty` has room for one number in 32 tiles. Returns the number of the first stream that is not done:
 * it is unchanged, and `used` is then the room that it needs. Otherwise `used` is the bytes written.
 *
 * `crcs` gets the checksum of each frame, and `frames` their number, or 0 if one of them may have to be
 * compressed; `changes` the number of tiles that a client sees differently. A stream that is done is no more the
 * first time, and its base is the event.
 */
GCSPY_API uint32_t gcspy_encode(struct stream *streams, uint32_t first, uint32_t count, uint64_t tiles,
                                const uint8_t *control, const struct event *event, uint8_t *out, uint64_t capacity,
                                uint32_t *dirty, uint64_t *used, uint32_t *crcs, uint32_t *frames,
                                uint64_t *changes)
{
    uint64_t at = 0, in_use = UINT64_MAX; /* not counted yet: of a large heap it takes as long as a comparison */
    uint32_t written = 0, large = 0;
    *frames = 0;
    *changes = 0;
    for (uint32_t number = first; number < count; number++) {
        struct stream *s = &streams[number];
        uint32_t size = value_bytes(s->type);
        const uint8_t *known = s->known;
        if (known != NULL && (tiles == 0 || memchr(known, 0, tiles) == NULL))
            known = NULL;
        struct changes found = {tiles, 0, 0, 0};
        s->is_key = s->first;
        if (!s->first) {
            found = find_changes(s, known, tiles, dirty);
            s->is_key = found.count * (2 + size) > tiles * size;
        }
        uint64_t most = HEADER_BYTES + DELTA_BYTES + (tiles + 7) / 8 + 2 * found.escapes
            + (s->is_key ? tiles * size : found.count * (2 + size));
        if (s->summary != NO_SUMMARY)
            most += HEADER_BYTES + SUMMARY_BYTES + 8 * (uint64_t)s->number_count;
        if (most > capacity - at) {
            *used = most;
            return number;
        }
        s->frame_at = at;
        s->frame_bytes = s->is_key ? write_key(s, known, tiles, event, out + at)
                                   : write_delta(s, known, tiles, event, dirty, &found, out + at);
        s->frame_crc = crc_of_frame(out + at, s->frame_bytes, event);
        s->all_known = known == NULL;
        *changes += s->first ? tiles + 1 : found.count;
        s->first = 0;
        s->base_sequence = event->sequence;
        at += s->frame_bytes;
        large |= event->compresses && s->frame_bytes >= HEADER_BYTES + COMPRESSED_FROM;
        crcs[written++] = s->frame_crc;
        s->summary_at = at;
        s->summary_bytes = 0;
        if (s->summary != NO_SUMMARY) {
            if (in_use == UINT64_MAX && !(s->summary == GIVEN && s->covered >= 0))
                in_use = count_used(control, tiles);
            s->summary_bytes = summarise(s, tiles, control, in_use, event, out + at);
            s->summary_crc = crc_of_frame(out + at, s->summary_bytes, event);
            at += s->summary_bytes;
            large |= s->summary_bytes >= HEADER_BYTES + COMPRESSED_FROM;
            crcs[written++] = s->summary_crc;
        }
    }
    *used = at;
    *frames = large ? 0 : written;
    return count;
}
