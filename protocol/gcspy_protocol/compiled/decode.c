/*
 * The frames of one event, checked in one call: lengths, counts, gaps, checksum (protocol/SPEC.md sections 3, 6 and 7).
 *
 * The bytes come from a stranger. Every length is compared with what is there and with the limits before
 * anything behind it is read; numbers are added in 64 bits, where those of the wire cannot overflow.
 * What is wrong with a frame is not said here: the caller then reads the same bytes in Python, frame by
 * frame, which raises the error with its place. Nothing is allocated, and nothing but results is written.
 */
#include "wire.h"

enum { FIRST_OF_EVENT = 0x20, TYPE_EVENT = 0x2F, EVENT_BYTES = 40, COMPRESSED = 1, MOST_NUMBERS = 4096 };

enum outcome { WHOLE, INCOMPLETE, UNUSUAL, TOO_MANY };

enum kind { OTHER, KEY, DELTA, SUMMARY, END };

/* A frame. compiled/event_reader.py reads the same fields. */
struct frame {
    uint64_t at;         /* of its header, from the first byte of the event */
    uint64_t bytes;      /* with its header */
    uint64_t sequence;
    uint64_t time_nanos;
    uint64_t occurrence;
    uint64_t base_sequence;
    uint64_t bitmap_at;  /* of a KEY or DELTA; 0: it has none */
    uint64_t values_at;  /* of a KEY, DELTA or SUMMARY */
    uint64_t first;      /* DELTA: where its tile numbers begin among those of all */
    uint32_t count;      /* KEY, DELTA: tiles; SUMMARY: tiles covered */
    uint32_t values;     /* number of values */
    uint32_t gaps;
    uint16_t space;
    uint16_t stream;
    uint16_t event;
    uint8_t kind;
    uint8_t type;        /* of the values */
};

struct limits {
    uint64_t payload_bytes;
    uint64_t event_bytes;
    uint64_t tiles;
};

struct found {
    uint64_t bytes;   /* of the event */
    uint64_t numbers; /* tile numbers of all DELTAs */
    uint32_t frames;
};

static inline uint16_t get16(const uint8_t *at) { uint16_t v; memcpy(&v, at, sizeof v); return v; }
static inline uint32_t get32(const uint8_t *at) { uint32_t v; memcpy(&v, at, sizeof v); return v; }
static inline uint64_t get64(const uint8_t *at) { uint64_t v; memcpy(&v, at, sizeof v); return v; }

/* Check the head of values and where they are; `bytes` is what the payload has. */
static int read_values(struct frame *f, const uint8_t *payload, uint64_t bytes, const struct limits *limits)
{
    uint64_t head = f->kind == KEY ? KEY_BYTES : DELTA_BYTES;
    if (bytes < head)
        return 0;
    uint32_t size = value_bytes(payload[2]);
    f->event = get16(payload);
    f->type = payload[2];
    f->count = get32(payload + 4);
    f->occurrence = get64(payload + 8);
    f->values = f->count;
    if (size == 0 || f->count > limits->tiles)
        return 0;
    if (f->kind == DELTA) {
        f->base_sequence = get64(payload + 16);
        f->values = get32(payload + 24);
        f->gaps = get32(payload + 28);
        if (f->values > f->count || f->gaps > (uint64_t)f->values + f->count / ESCAPE)
            return 0;
        head += 2 * (uint64_t)f->gaps;
    }
    int flagged = payload[3] & HAS_BITMAP;
    uint64_t bits = flagged ? ((uint64_t)f->values + 7) / 8 : 0;
    if (bytes < head + bits + (uint64_t)size * f->values)
        return 0;
    f->bitmap_at = flagged ? f->at + HEADER_BYTES + head : 0;
    f->values_at = f->at + HEADER_BYTES + head + bits;
    return 1;
}

/* Whether the gaps list as many tiles as the DELTA says, all of them below its count. */
static int gaps_fit(const struct frame *f, const uint8_t *gaps)
{
    uint64_t next = 0, listed = 0, end = 0;
    for (uint32_t number = 0; number < f->gaps; number++) {
        uint16_t gap = get16(gaps + 2 * (uint64_t)number);
        next += gap;
        if (gap != ESCAPE) {
            next++;
            listed++;
            end = next;
        }
    }
    return listed == f->values && end <= f->count;
}

static int read_summary(struct frame *f, const uint8_t *payload, uint64_t bytes)
{
    if (bytes < SUMMARY_BYTES)
        return 0;
    f->count = get32(payload);
    f->values = get32(payload + 4);
    f->values_at = f->at + HEADER_BYTES + SUMMARY_BYTES;
    return f->values <= MOST_NUMBERS && bytes >= SUMMARY_BYTES + 8 * (uint64_t)f->values;
}

/* Find the end of the event that begins here, which is behind its EVENT. */
static enum outcome measure(const uint8_t *bytes, uint64_t available, const struct limits *limits, uint32_t room,
                            struct found *found)
{
    uint64_t at = 0;
    for (uint32_t number = 0; number < room; number++) {
        if (available - at < HEADER_BYTES)
            return INCOMPLETE;
        uint64_t payload = get32(bytes + at);
        uint8_t type = bytes[at + 4];
        if (payload > limits->payload_bytes || type < FIRST_OF_EVENT || type > TYPE_EVENT)
            return UNUSUAL;
        if (available - at - HEADER_BYTES < payload)
            return INCOMPLETE;
        at += HEADER_BYTES + payload;
        if (type == TYPE_EVENT) {
            found->bytes = at;
            found->frames = number + 1;
            return payload < EVENT_BYTES ? UNUSUAL : WHOLE;
        }
    }
    return TOO_MANY;
}

/*
 * Check the event at the beginning of `bytes` and describe its frames, of which there is room for `room`.
 *
 * INCOMPLETE: its end has not arrived. UNUSUAL: Python has to read it. TOO_MANY: it has more frames than there is room for.
 */
GCSPY_API uint32_t gcspy_check_event(const uint8_t *bytes, uint64_t available, const struct limits *limits,
                                     struct frame *frames, uint32_t room, struct found *found)
{
    enum outcome outcome = measure(bytes, available, limits, room, found);
    if (outcome != WHOLE)
        return outcome;
    uint32_t crc = 0;
    uint64_t at = 0, held = 0;
    found->numbers = 0;
    for (uint32_t number = 0; number < found->frames; number++) {
        struct frame *f = &frames[number];
        const uint8_t *header = bytes + at, *payload = header + HEADER_BYTES;
        uint64_t length = get32(header);
        memset(f, 0, sizeof *f);
        f->at = at;
        f->bytes = HEADER_BYTES + length;
        f->space = get16(header + 6);
        f->stream = get16(header + 8);
        f->sequence = get64(header + 12);
        f->time_nanos = get64(header + 20);
        at += f->bytes;
        if (header[4] == TYPE_EVENT) {
            if (header[5] & COMPRESSED)
                return UNUSUAL;
            f->kind = END;
            crc = gcspy_crc(crc, header, HEADER_BYTES);
            crc = gcspy_crc(crc, payload + 4, length - 4);
            return crc == get32(payload) ? WHOLE : UNUSUAL;
        }
        held += f->bytes;
        if (held > limits->event_bytes)
            return UNUSUAL;
        uint8_t sum[4];
        put32(sum, gcspy_crc(0, header, f->bytes));
        crc = gcspy_crc(crc, sum, sizeof sum);
        if (header[5] & COMPRESSED)
            continue; /* OTHER */
        switch (header[4]) {
        case TYPE_KEY:
            f->kind = KEY;
            if (!read_values(f, payload, length, limits))
                return UNUSUAL;
            break;
        case TYPE_DELTA:
            f->kind = DELTA;
            if (!read_values(f, payload, length, limits) || !gaps_fit(f, payload + DELTA_BYTES))
                return UNUSUAL;
            f->first = found->numbers;
            found->numbers += f->values;
            break;
        case TYPE_SUMMARY:
            f->kind = SUMMARY;
            if (!read_summary(f, payload, length))
                return UNUSUAL;
            break;
        default:
            break; /* OTHER */
        }
    }
    return UNUSUAL;
}

/* Write the tile numbers of all DELTAs of an event that was checked, one after the other. */
GCSPY_API void gcspy_list_tiles(const uint8_t *bytes, const struct frame *frames, uint32_t count, int64_t *numbers,
                                uint64_t room)
{
    for (uint32_t number = 0; number < count; number++) {
        const struct frame *f = &frames[number];
        if (f->kind != DELTA)
            continue;
        const uint8_t *gaps = bytes + f->at + HEADER_BYTES + DELTA_BYTES;
        uint64_t next = 0, place = f->first;
        for (uint32_t one = 0; one < f->gaps; one++) {
            uint16_t gap = get16(gaps + 2 * (uint64_t)one);
            next += gap;
            if (gap == ESCAPE)
                continue;
            if (place >= room)
                return;
            numbers[place++] = (int64_t)next++;
        }
    }
}

GCSPY_API uint64_t gcspy_decode_layout(void)
{
    return sizeof(struct frame) << 32 | sizeof(struct limits) << 16 | sizeof(struct found);
}
