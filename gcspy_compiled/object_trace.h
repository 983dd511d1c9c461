/*
 * Writing the object trace format (objects/FORMAT.md): blocks, columns, definitions. For the codec of gcspy_objects, and
 * for writers in traced programs: it allocates nothing, calls nothing but memcpy and memset, and has no state of its own.
 *
 * A writer fills `struct gct_events` with the events of one thread, and calls gct_encode; compresses the payload if it
 * wants to; and puts the header before it with gct_block. Nothing here is thread safe but by having no globals.
 */
#ifndef GCSPY_OBJECT_TRACE_H
#define GCSPY_OBJECT_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { GCT_VERSION = 1, GCT_MINOR = 1, GCT_PREFIX_BYTES = 16, GCT_BLOCK_BYTES = 48, GCT_ENTRY_BYTES = 12 };
enum { GCT_MOST_EVENTS = 4194304, GCT_MOST_BYTES = 64 << 20 };
enum gct_block_kind { GCT_HEADER = 1, GCT_DEFINITIONS, GCT_EVENTS, GCT_WATERMARK, GCT_ACCESSED, GCT_END };
enum gct_codec { GCT_PLAIN = 0, GCT_ZSTD = 1 };
enum gct_kind {
    GCT_STAMP = 0,
    GCT_ALLOCATE = 1,
    GCT_COLLECTION_START = 5,
    GCT_COLLECTION_END = 6,
    GCT_MOVE = 10,
    GCT_KEEP = 13,
    GCT_SPACE_DEFINE = 16,
    GCT_SPACE_KIND = 17,
    GCT_THREAD_BEGIN = 20,
    GCT_THREAD_END = 21,
    GCT_MARK = 22,
    GCT_FREE = 24,
    GCT_STORE = 26,
    GCT_PHASE_BEGIN = 27,
    GCT_PHASE_END = 28,
    GCT_LOST = 29,
    GCT_MAP = 30,
    GCT_UNMAP = 31
};
enum gct_definition {
    GCT_TEXT = 1, GCT_TYPE, GCT_FRAME, GCT_SITE, GCT_THREAD, GCT_CAUSE, GCT_NAME, GCT_MODULE, GCT_ALIGNMENT
};
enum gct_column {
    GCT_COLUMN_KIND = 1,
    GCT_COLUMN_THREAD = 2,
    GCT_COLUMN_DETAIL = 4,
    GCT_COLUMN_STAMP = 5,
    GCT_COLUMN_ALLOCATED = 6,
    GCT_COLUMN_FREED = 7,
    GCT_COLUMN_ADDRESS = 8,
    GCT_COLUMN_TO = 9,
    GCT_COLUMN_SIZE = 10,
    GCT_COLUMN_AMOUNT = 11,
    GCT_COLUMN_TYPE = 12,
    GCT_COLUMN_SITE = 13,
    GCT_COLUMN_LENGTH = 14,
    GCT_COLUMN_AGE = 15
};
enum { GCT_CONSTANT = 0, GCT_PLANES = 1, GCT_VARINTS = 2, GCT_DELTA = 0x10, GCT_MODEL = 0x30 };
enum { GCT_ANY_THREAD = -1 };
enum { GCT_CLASSES = 4096 };

/* What a kind has: see the table of FORMAT.md, section 4.3. */
enum { GCT_HAS_A = 1, GCT_HAS_T = 2, GCT_HAS_S = 4, GCT_HAS_Y = 8, GCT_HAS_I = 16, GCT_HAS_L = 32 };

static const uint8_t gct_has[32] = {
    0,                                                                              /* STAMP */
    GCT_HAS_A | GCT_HAS_S | GCT_HAS_Y | GCT_HAS_I | GCT_HAS_L,                      /* ALLOCATE */
    GCT_HAS_S | GCT_HAS_Y | GCT_HAS_I | GCT_HAS_L,                                  /* ALLOCATE_NEXT */
    GCT_HAS_A | GCT_HAS_S,                                                          /* BUFFER */
    GCT_HAS_A | GCT_HAS_S,                                                          /* GC_BUFFER */
    GCT_HAS_A | GCT_HAS_S | GCT_HAS_Y | GCT_HAS_L,                                  /* COLLECTION_START */
    GCT_HAS_A | GCT_HAS_S | GCT_HAS_Y | GCT_HAS_L,                                  /* COLLECTION_END */
    GCT_HAS_S | GCT_HAS_L,                                                          /* COLLECTS */
    GCT_HAS_L,                                                                      /* FAILED */
    0,                                                                              /* BARRIER */
    GCT_HAS_A | GCT_HAS_T,                                                          /* MOVE */
    GCT_HAS_A,                                                                      /* MOVE_NEXT */
    GCT_HAS_A | GCT_HAS_T | GCT_HAS_L,                                              /* MOVE_RUN */
    GCT_HAS_A,                                                                      /* KEEP */
    GCT_HAS_A | GCT_HAS_T | GCT_HAS_S | GCT_HAS_Y | GCT_HAS_I | GCT_HAS_L,          /* SNAPSHOT_MOVE */
    GCT_HAS_A | GCT_HAS_T | GCT_HAS_S | GCT_HAS_Y | GCT_HAS_I | GCT_HAS_L,          /* SNAPSHOT_KEEP */
    GCT_HAS_A | GCT_HAS_S | GCT_HAS_L,                                              /* SPACE_DEFINE */
    GCT_HAS_Y | GCT_HAS_L,                                                          /* SPACE_KIND */
    GCT_HAS_L,                                                                      /* SPACE_RELEASE */
    GCT_HAS_S | GCT_HAS_L,                                                          /* SPACE_DESTROY */
    GCT_HAS_A | GCT_HAS_Y | GCT_HAS_L,                                              /* THREAD_BEGIN */
    GCT_HAS_A | GCT_HAS_L,                                                          /* THREAD_END */
    GCT_HAS_S | GCT_HAS_Y,                                                          /* MARK */
    GCT_HAS_A,                                                                      /* POINTERS */
    GCT_HAS_A,                                                                      /* FREE */
    0,                                                                              /* ACCESSED */
    GCT_HAS_A | GCT_HAS_T | GCT_HAS_L,                                              /* STORE */
    GCT_HAS_Y,                                                                      /* PHASE_BEGIN */
    GCT_HAS_Y,                                                                      /* PHASE_END */
    GCT_HAS_S,                                                                      /* LOST */
    GCT_HAS_A | GCT_HAS_S | GCT_HAS_I,                                              /* MAP */
    GCT_HAS_A | GCT_HAS_S,                                                          /* UNMAP */
};

/* ---- bytes ---- */

static inline uint8_t *gct_put16(uint8_t *at, uint16_t v)
{
    at[0] = (uint8_t)v;
    at[1] = (uint8_t)(v >> 8);
    return at + 2;
}

static inline uint8_t *gct_put32(uint8_t *at, uint32_t v)
{
    return gct_put16(gct_put16(at, (uint16_t)v), (uint16_t)(v >> 16));
}

static inline uint8_t *gct_put64(uint8_t *at, uint64_t v)
{
    return gct_put32(gct_put32(at, (uint32_t)v), (uint32_t)(v >> 32));
}

/* At most 10 bytes. */
static inline uint8_t *gct_varint(uint8_t *at, uint64_t v)
{
    while (v >= 0x80) {
        *at++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *at++ = (uint8_t)v;
    return at;
}

/* At most 10 + bytes bytes. */
static inline uint8_t *gct_text(uint8_t *at, const char *text, size_t bytes)
{
    at = gct_varint(at, bytes);
    memcpy(at, text, bytes);
    return at + bytes;
}

static inline uint64_t gct_zigzag(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static inline int gct_varint_bytes(uint64_t v)
{
    int bits = 64 - __builtin_clzll(v | 1);
    return (bits + 6) / 7;
}

/* CRC-32 as zlib computes it, with a table that the caller keeps: 8 tables of 256 entries, filled once by gct_crc_tables. */
static inline void gct_crc_tables(uint32_t table[8][256])
{
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t c = n;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
        table[0][n] = c;
    }
    for (int t = 1; t < 8; t++)
        for (int n = 0; n < 256; n++)
            table[t][n] = table[0][table[t - 1][n] & 255] ^ (table[t - 1][n] >> 8);
}

static inline uint32_t gct_crc(uint32_t table[8][256], const uint8_t *at, size_t bytes)
{
    uint32_t c = 0xFFFFFFFFu;
    for (; bytes >= 8; at += 8, bytes -= 8) {
        uint32_t low = c ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
        c = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^ table[4][low >> 24] ^
            table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^ table[0][at[7]];
    }
    while (bytes--)
        c = table[0][(c ^ *at++) & 255] ^ (c >> 8);
    return ~c;
}

/* The first GCT_PREFIX_BYTES of a file. */
static inline uint8_t *gct_prefix(uint8_t *at)
{
    memcpy(at, "\x89GCOT\r\n\x1a", 8);
    at = gct_put16(at + 8, GCT_VERSION);
    at = gct_put16(at, GCT_MINOR);
    return gct_put32(at, 0);
}

/* The GCT_BLOCK_BYTES before a payload. `plain` is its length before it was compressed, `stored` that of `payload`. */
static inline void gct_block(uint8_t *header, uint32_t table[8][256], int kind, int codec, uint32_t plain, const uint8_t *payload,
                             uint32_t stored, int32_t thread, uint32_t events, uint64_t first_stamp, uint64_t last_stamp)
{
    uint8_t *at = header;
    memcpy(at, "GCTB", 4);
    at[4] = (uint8_t)kind;
    at[5] = (uint8_t)codec;
    at = gct_put16(at + 6, 0);
    at = gct_put32(at, stored);
    at = gct_put32(at, plain);
    at = gct_put32(at, (uint32_t)thread);
    at = gct_put32(at, events);
    at = gct_put64(at, first_stamp);
    at = gct_put64(at, last_stamp);
    at = gct_put32(at, gct_crc(table, payload, stored));
    gct_put32(at, gct_crc(table, header, 44));
}

/* ---- the model of addresses: FORMAT.md, section 4.4 ---- */

/*
 * Room for the model of at most `events` events; all arrays are the caller's.
 */
struct gct_model {
    int64_t *keys;      /* slots */
    int32_t *ordinals;  /* slots: ordinal + 1 of the live object there, 0 nothing was ever there, -1 it was freed */
    int64_t slots;      /* a power of two, at least twice the ALLOCATEs */
    int32_t *heads;     /* GCT_CLASSES */
    int32_t *next;      /* events */
    int64_t *where;     /* events */
    int32_t *class_of;  /* events */
};

static inline int64_t gct_slot(const struct gct_model *m, int64_t key)
{
    uint64_t hash = (uint64_t)key * 0x9E3779B97F4A7C15ull;
    int64_t at = (int64_t)(hash >> 20) & (m->slots - 1);
    while (m->ordinals[at] != 0 && m->keys[at] != key)
        at = (at + 1) & (m->slots - 1);
    return at;
}

static inline int64_t gct_class(int64_t size, int64_t shift, int64_t least, int64_t overhead)
{
    return ((size < least ? least : size) + overhead + ((int64_t)1 << shift) - 1) >> shift;
}

/*
 * Predict where an object of a class is allocated: where one was freed last, or at `top`. Notes its class under its ordinal, and returns
 * by how much the prediction was wrong, zigzag.
 */
static inline int64_t gct_predict_birth(const struct gct_model *m, int64_t here, int64_t c, int64_t ordinal, int64_t *top)
{
    int64_t predicted = *top;
    int known = c >= 0 && c < GCT_CLASSES, hit = 0;
    if (known && m->heads[c] >= 0) {
        int32_t entry = m->heads[c];
        m->heads[c] = m->next[entry];
        predicted = m->where[entry];
        hit = 1;
    }
    int64_t off = (int64_t)((uint64_t)here - (uint64_t)predicted);
    if (!hit || off)
        *top = (int64_t)((uint64_t)here + (uint64_t)c);
    m->class_of[ordinal] = known ? (int32_t)c : GCT_CLASSES;
    return (int64_t)gct_zigzag(off);
}

/*
 * Predict addresses. `values` gets one for each ALLOCATE, `ages` one for each FREE, `freed` the addresses (not shifted) of
 * those whose age is 0. Returns how many of the last.
 */
static inline int64_t gct_predict(const struct gct_model *m, int64_t count, const uint8_t *kind, const int64_t *address,
                                  const int64_t *size, int64_t shift, int64_t least, int64_t overhead, int64_t *values,
                                  int64_t *ages, int64_t *freed)
{
    int64_t top = 0, allocated = 0, pushed = 0, ended = 0, old = 0;
    memset(m->ordinals, 0, (size_t)m->slots * sizeof *m->ordinals);
    for (int c = 0; c < GCT_CLASSES; c++)
        m->heads[c] = -1;
    for (int64_t i = 0; i < count; i++) {
        if (kind[i] == GCT_ALLOCATE) {
            int64_t here = address[i] >> shift, slot = gct_slot(m, here);
            values[allocated] = gct_predict_birth(m, here, gct_class(size[i], shift, least, overhead), allocated, &top);
            m->keys[slot] = here;
            m->ordinals[slot] = (int32_t)++allocated;
        } else if (kind[i] == GCT_FREE) {
            int64_t here = address[i] >> shift, slot = gct_slot(m, here);
            int32_t ordinal = m->ordinals[slot];
            if (ordinal > 0) {
                ages[ended++] = allocated - (ordinal - 1);
                m->ordinals[slot] = -1;
                int32_t c = m->class_of[ordinal - 1];
                if (c < GCT_CLASSES) {
                    m->where[pushed] = here;
                    m->next[pushed] = m->heads[c];
                    m->heads[c] = (int32_t)pushed++;
                }
            } else {
                ages[ended++] = 0;
                freed[old++] = address[i];
            }
        }
    }
    return old;
}

/* ---- events ---- */

/*
 * Events of one thread, one behind the other; or of several, with `thread`. Arrays that are NULL are 0 throughout. For STAMP, `address` is the difference to the stamp before.
 */
struct gct_events {
    int64_t count;
    const uint8_t *kind;
    const uint8_t *detail;
    const int64_t *address;
    const int64_t *to;
    const int64_t *size;
    const int32_t *type;
    const int32_t *site;
    const int32_t *length;
    const int32_t *thread; /* of events of several threads; else NULL */
};

/* How to encode them. */
struct gct_manner {
    int shift;       /* all addresses are multiples of 1 << shift */
    int least;       /* glibc: 24; pymalloc: 1; else 8 */
    int overhead;    /* glibc: 8; else 0 */
    int predict;     /* 1: with the model; 0: differences */
    int compressed;  /* 1: the payload is going to be compressed */
};

/* Room for encoding: the caller's memory, see gct_room_bytes and gct_room_init. */
struct gct_room {
    struct gct_model model;
    int64_t *values, *others, *more;
    int64_t events;
};

static inline int64_t gct_slots(int64_t events)
{
    int64_t slots = 1024;
    while (slots < 2 * events)
        slots *= 2;
    return slots;
}

/* Bytes of memory for blocks of at most `events` events. */
static inline size_t gct_room_bytes(int64_t events)
{
    return (size_t)gct_slots(events) * 12 + GCT_CLASSES * 4 + (size_t)events * (8 * 4 + 4 * 2) + 64;
}

/* Divide `memory` (8 byte aligned, gct_room_bytes(events) bytes). */
static inline void gct_room_init(struct gct_room *room, void *memory, int64_t events)
{
    int64_t *longs = memory;
    room->events = events;
    room->model.slots = gct_slots(events);
    room->model.keys = longs, longs += room->model.slots;
    room->model.where = longs, longs += events;
    room->values = longs, longs += events;
    room->others = longs, longs += events;
    room->more = longs, longs += events;
    int32_t *ints = (int32_t *)longs;
    room->model.ordinals = ints, ints += room->model.slots;
    room->model.heads = ints, ints += GCT_CLASSES;
    room->model.next = ints, ints += events;
    room->model.class_of = ints;
}

/* At most this many bytes become of `events` events. */
static inline size_t gct_payload_bytes(int64_t events)
{
    return 2 + 16 * GCT_ENTRY_BYTES + 8 + (size_t)events * (2 + 7 * 10);
}

/* Where a payload is put together: entries of columns, and their bytes. */
struct gct_payload {
    uint8_t *entries, *bytes;
    int columns;
};

static inline struct gct_payload gct_begin_payload(uint8_t *out)
{
    struct gct_payload payload = {out + 2, out + 2 + 16 * GCT_ENTRY_BYTES, 0};
    return payload;
}

/* Returns the length of the payload that begins at `out`. */
static inline size_t gct_end_payload(const struct gct_payload *payload, uint8_t *out)
{
    gct_put16(out, (uint16_t)payload->columns);
    size_t bytes = (size_t)(payload->bytes - (out + 2 + 16 * GCT_ENTRY_BYTES));
    memmove(out + 2 + GCT_ENTRY_BYTES * payload->columns, out + 2 + 16 * GCT_ENTRY_BYTES, bytes);
    return 2 + (size_t)(GCT_ENTRY_BYTES * payload->columns) + bytes;
}

/*
 * Append a column, in the encoding that is chosen here (the codec in Python chooses the same): constant; differences if their varints are shorter;
 * planes if it will be compressed or they are not longer than varints. `model`: the values are the model's; 4 bytes of parameters come first.
 * `values` are overwritten.
 */
static inline void gct_put_column(struct gct_payload *payload, int column, int64_t *values, int64_t count, int shift,
                                  int compressed, int model, int least, int overhead)
{
    if (count == 0)
        return;
    uint64_t all = 0, all_differences = 0, before = 0;
    int64_t bytes = 0, bytes_of_differences = 0;
    int same = 1;
    for (int64_t i = 0; i < count; i++) {
        uint64_t v = (uint64_t)values[i] >> shift, d = gct_zigzag((int64_t)(v - before));
        same &= values[i] == values[0];
        all |= v;
        all_differences |= d;
        bytes += gct_varint_bytes(v);
        bytes_of_differences += gct_varint_bytes(d);
        before = v;
    }
    if (same && values[0] == 0 && !model && column != GCT_COLUMN_KIND)
        return; /* a column that is not there is 0 */
    uint8_t *at = payload->bytes, *start = at;
    int differences = !same && !model && bytes_of_differences < bytes, layout, width = 0;
    if (model) {
        *at++ = (uint8_t)least;
        *at++ = (uint8_t)overhead;
        at = gct_put16(at, 0);
    }
    if (same) {
        layout = GCT_CONSTANT;
        at = gct_put64(at, (uint64_t)values[0] >> shift);
    } else {
        uint64_t every = differences ? all_differences : all;
        width = every ? (64 - __builtin_clzll(every) + 7) / 8 : 1;
        layout = compressed || width * count <= (differences ? bytes_of_differences : bytes) ? GCT_PLANES : GCT_VARINTS;
        before = 0;
        for (int64_t i = 0; i < count && differences; i++) {
            uint64_t v = (uint64_t)values[i] >> shift;
            values[i] = (int64_t)gct_zigzag((int64_t)(v - before));
            before = v;
        }
        int more = differences ? 0 : shift;
        if (layout == GCT_PLANES) {
            /* A plane at a time: a loop that a compiler makes vectors of. */
            for (int w = 0; w < width; w++, at += count)
                for (int64_t i = 0; i < count; i++)
                    at[i] = (uint8_t)((uint64_t)values[i] >> (8 * w + more));
        } else {
            for (int64_t i = 0; i < count; i++)
                at = gct_varint(at, (uint64_t)values[i] >> more);
            width = 0;
        }
    }
    uint8_t *entry = payload->entries + GCT_ENTRY_BYTES * payload->columns++;
    entry[0] = (uint8_t)column;
    entry[1] = (uint8_t)(layout | (model ? GCT_MODEL : differences ? GCT_DELTA : 0));
    entry[2] = (uint8_t)width;
    entry[3] = (uint8_t)shift;
    gct_put32(gct_put32(entry + 4, (uint32_t)count), (uint32_t)(at - start));
    payload->bytes = at;
}

/* The same for values below 128 as bytes, which are going to be compressed. */
static inline void gct_put_byte_column(struct gct_payload *payload, int column, const uint8_t *values, int64_t count)
{
    uint8_t differ = 0;
    for (int64_t i = 0; i < count; i++)
        differ |= values[i] ^ values[0];
    if (count == 0 || (!differ && values[0] == 0 && column != GCT_COLUMN_KIND))
        return;
    uint8_t *start = payload->bytes;
    if (differ)
        memcpy(start, values, (size_t)count);
    else
        gct_put64(start, values[0]);
    payload->bytes += differ ? count : 8;
    uint8_t *entry = payload->entries + GCT_ENTRY_BYTES * payload->columns++;
    entry[0] = (uint8_t)column;
    entry[1] = differ ? GCT_PLANES : GCT_CONSTANT;
    entry[2] = differ ? 1 : 0;
    entry[3] = 0;
    gct_put32(gct_put32(entry + 4, (uint32_t)count), (uint32_t)(payload->bytes - start));
}

/*
 * The same for values below 1 << 31, which are many and come from a program that runs: each loop is one that a compiler makes vectors of. Values stay.
 */
static inline void gct_put_narrow_column(struct gct_payload *payload, int column, const uint32_t *values, int64_t count, int shift,
                                         int compressed, int model, int least, int overhead)
{
    if (count == 0)
        return;
    uint32_t differ = 0, all = 0, all_differences = (values[0] >> shift) << 1;
    for (int64_t i = 0; i < count; i++) {
        differ |= values[i] ^ values[0];
        all |= values[i];
    }
    all >>= shift;
    if (!differ && values[0] == 0 && !model && column != GCT_COLUMN_KIND)
        return;
    uint8_t *at = payload->bytes, *start = at;
    int differences = 0, layout, width = 0;
    if (model) {
        *at++ = (uint8_t)least;
        *at++ = (uint8_t)overhead;
        at = gct_put16(at, 0);
    }
    if (!differ) {
        layout = GCT_CONSTANT;
        at = gct_put64(at, values[0] >> shift);
    } else {
        uint32_t bytes = (uint32_t)count, bytes_of_differences = (uint32_t)count;
        if (all > 127 || !compressed) {
            for (int64_t i = 0; i < count; i++) {
                uint32_t v = values[i] >> shift;
                bytes += (v > 0x7f) + (v > 0x3fff) + (v > 0x1fffff) + (v > 0xfffffff);
            }
        }
        if (!model && bytes > (uint32_t)count) {
            bytes_of_differences += (uint32_t)gct_varint_bytes(all_differences) - 1;
            for (int64_t i = 1; i < count; i++) {
                int32_t step = (int32_t)(values[i] >> shift) - (int32_t)(values[i - 1] >> shift);
                uint32_t d = (uint32_t)step << 1 ^ (uint32_t)(step >> 31);
                all_differences |= d;
                bytes_of_differences += (d > 0x7f) + (d > 0x3fff) + (d > 0x1fffff) + (d > 0xfffffff);
            }
            differences = bytes_of_differences < bytes;
        }
        uint32_t every = differences ? all_differences : all;
        width = every ? (32 - __builtin_clz(every) + 7) / 8 : 1;
        layout = compressed || (uint64_t)width * (uint64_t)count <= (differences ? bytes_of_differences : bytes) ? GCT_PLANES : GCT_VARINTS;
        if (layout == GCT_VARINTS) {
            uint32_t before = 0;
            for (int64_t i = 0; i < count; i++) {
                uint32_t v = values[i] >> shift;
                at = gct_varint(at, differences ? gct_zigzag((int64_t)v - before) : v);
                before = v;
            }
            width = 0;
        } else if (differences) {
            for (int w = 0; w < width; w++, at += count) {
                at[0] = (uint8_t)((values[0] >> shift << 1) >> (8 * w));
                for (int64_t i = 1; i < count; i++) {
                    int32_t step = (int32_t)(values[i] >> shift) - (int32_t)(values[i - 1] >> shift);
                    at[i] = (uint8_t)(((uint32_t)step << 1 ^ (uint32_t)(step >> 31)) >> (8 * w));
                }
            }
        } else {
            for (int w = 0; w < width; w++, at += count)
                for (int64_t i = 0; i < count; i++)
                    at[i] = (uint8_t)(values[i] >> (8 * w + shift));
        }
    }
    uint8_t *entry = payload->entries + GCT_ENTRY_BYTES * payload->columns++;
    entry[0] = (uint8_t)column;
    entry[1] = (uint8_t)(layout | (model ? GCT_MODEL : differences ? GCT_DELTA : 0));
    entry[2] = (uint8_t)width;
    entry[3] = (uint8_t)shift;
    gct_put32(gct_put32(entry + 4, (uint32_t)count), (uint32_t)(at - start));
    payload->bytes = at;
}

/* Gather the values of a column: those of events of which `wanted` says so. */
#define GCT_GATHER(condition, value)                                                                                         \
    do {                                                                                                                     \
        n = 0;                                                                                                               \
        for (int64_t i = 0; i < events->count; i++) {                                                                        \
            uint8_t kind = events->kind[i];                                                                                  \
            room->values[n] = (value); /* no branch: half of them would be guessed wrong */                                  \
            n += (condition) != 0;                                                                                           \
        }                                                                                                                    \
    } while (0)

/*
 * Encode events into a payload of kind GCT_EVENTS. `out` has gct_payload_bytes(events->count) bytes. Returns the length; `told` (may be NULL) gets
 * the number of events without STAMPs, for the header. events->count is at most what `room` was made for. All kinds are below 32.
 */
static inline size_t gct_encode(const struct gct_events *events, const struct gct_manner *manner, struct gct_room *room, uint8_t *out,
                                uint32_t *told)
{
    struct gct_payload payload = gct_begin_payload(out);
    int64_t n, allocations = 0, frees = 0, stamps = 0, rare = 0;
    int c = manner->compressed;
    for (int64_t i = 0; i < events->count; i++) {
        uint8_t kind = events->kind[i];
        allocations += kind == GCT_ALLOCATE;
        frees += kind == GCT_FREE;
        stamps += kind == GCT_STAMP;
        rare |= kind != GCT_ALLOCATE && kind != GCT_FREE && kind != GCT_STAMP;
    }
    if (told)
        *told = (uint32_t)(events->count - stamps);
    GCT_GATHER(1, kind);
    gct_put_column(&payload, GCT_COLUMN_KIND, room->values, n, 0, c, 0, 0, 0);
    if (events->thread) {
        GCT_GATHER(kind != GCT_STAMP, events->thread[i]);
        gct_put_column(&payload, GCT_COLUMN_THREAD, room->values, n, 0, c, 0, 0, 0);
    }
    if (events->detail) {
        GCT_GATHER(kind != GCT_STAMP, events->detail[i]);
        gct_put_column(&payload, GCT_COLUMN_DETAIL, room->values, n, 0, c, 0, 0, 0);
    }
    if (stamps) {
        GCT_GATHER(kind == GCT_STAMP, events->address[i]);
        gct_put_column(&payload, GCT_COLUMN_STAMP, room->values, n, 0, c, 0, 0, 0);
    }
    if (manner->predict && allocations) {
        int64_t old = gct_predict(&room->model, events->count, events->kind, events->address, events->size, manner->shift, manner->least,
                                  manner->overhead, room->values, room->others, room->more);
        gct_put_column(&payload, GCT_COLUMN_ALLOCATED, room->values, allocations, 0, c, 1, manner->least, manner->overhead);
        payload.entries[GCT_ENTRY_BYTES * (payload.columns - 1) + 3] = (uint8_t)manner->shift; /* the model has shifted already */
        gct_put_column(&payload, GCT_COLUMN_FREED, room->more, old, manner->shift, c, 0, 0, 0);
        gct_put_column(&payload, GCT_COLUMN_AGE, room->others, frees, 0, c, 0, 0, 0);
    } else {
        GCT_GATHER(kind == GCT_ALLOCATE, events->address[i]);
        gct_put_column(&payload, GCT_COLUMN_ALLOCATED, room->values, n, manner->shift, c, 0, 0, 0);
        GCT_GATHER(kind == GCT_FREE, events->address[i]);
        gct_put_column(&payload, GCT_COLUMN_FREED, room->values, n, manner->shift, c, 0, 0, 0);
    }
    if (rare) {
        GCT_GATHER(kind != GCT_ALLOCATE && kind != GCT_FREE && gct_has[kind & 31] & GCT_HAS_A, events->address[i]);
        gct_put_column(&payload, GCT_COLUMN_ADDRESS, room->values, n, 0, c, 0, 0, 0);
        if (events->to) {
            GCT_GATHER(gct_has[kind & 31] & GCT_HAS_T, events->to[i]);
            gct_put_column(&payload, GCT_COLUMN_TO, room->values, n, 0, c, 0, 0, 0);
        }
    }
    if (events->size) {
        GCT_GATHER(kind == GCT_ALLOCATE || kind == 2 || kind == 14 || kind == 15, events->size[i]);
        gct_put_column(&payload, GCT_COLUMN_SIZE, room->values, n, 0, c, 0, 0, 0);
        if (rare) {
            GCT_GATHER(kind != GCT_ALLOCATE && kind != 2 && kind != 14 && kind != 15 && gct_has[kind & 31] & GCT_HAS_S, events->size[i]);
            gct_put_column(&payload, GCT_COLUMN_AMOUNT, room->values, n, 0, c, 0, 0, 0);
        }
    }
    if (events->type) {
        GCT_GATHER(gct_has[kind & 31] & GCT_HAS_Y, events->type[i]);
        gct_put_column(&payload, GCT_COLUMN_TYPE, room->values, n, 0, c, 0, 0, 0);
    }
    if (events->site) {
        GCT_GATHER(gct_has[kind & 31] & GCT_HAS_I, events->site[i]);
        gct_put_column(&payload, GCT_COLUMN_SITE, room->values, n, 0, c, 0, 0, 0);
    }
    if (events->length) {
        GCT_GATHER(gct_has[kind & 31] & GCT_HAS_L, events->length[i]);
        gct_put_column(&payload, GCT_COLUMN_LENGTH, room->values, n, 0, c, 0, 0, 0);
    }
    return gct_end_payload(&payload, out);
}

#endif
