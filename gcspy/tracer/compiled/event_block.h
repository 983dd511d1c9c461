/* `struct event_block`: the events of a block of the trace's file, as the columns that it gets, filled one event at a time.
 *
 * Source: objects/FORMAT.md, section 4. What is predicted is predicted when an event comes: no event is looked at twice. */
#ifndef GCSPY_EVENT_BLOCK_H
#define GCSPY_EVENT_BLOCK_H

#include <stdint.h>
#include <stdlib.h>

#include "object_trace.h"

#define BLOCK_ROWS (1 << 18) /* events and stamps: enough for the model of addresses */
#define SPARE_ROWS 16        /* that a record may need beside its own */

struct event_block {
    /* A value for each row; for each event; for each event of some kinds. */
    uint8_t *kind, *detail;
    uint32_t *thread, *age, *type, *site, *length; /* `thread`, `type`: filled from the first one that is another on */
    int64_t *stamp, *value, *freed, *size, *address, *to, *amount;
    int64_t rows, events, stamps, allocations, frees, old, types, sites, addresses, moves, amounts;
    uint32_t first_thread, first_type, any_site;
    int other_threads, other_types, has_detail, has_length;
    /* The model of addresses: section 4.4. */
    int32_t *heads, *next;
    int64_t *where;
    int64_t top, pushed;
    int shift, least, overhead;
    uint64_t first_ordinal; /* of the first ALLOCATE */
    uint32_t *narrow;       /* for encoding */
    void *memory;
};

static int begin_block(struct event_block *block) {
    size_t rows = BLOCK_ROWS;
    uint8_t *at = block->memory = malloc(rows * (8 * 8 + 4 * 7 + 2) + GCT_CLASSES * 4);
    if (at == NULL) return 0;
    int64_t **longs[] = {&block->stamp, &block->value, &block->freed, &block->size, &block->address, &block->to, &block->amount, &block->where};
    for (size_t one = 0; one < 8; one++, at += rows * 8) *longs[one] = (int64_t *)(void *)at;
    uint32_t **ints[] = {&block->thread, &block->age, &block->type, &block->site, &block->length, &block->narrow};
    for (size_t one = 0; one < 6; one++, at += rows * 4) *ints[one] = (uint32_t *)(void *)at;
    block->next = (int32_t *)(void *)at, at += rows * 4;
    block->heads = (int32_t *)(void *)at, at += GCT_CLASSES * 4;
    block->kind = at, block->detail = at + rows;
    memset(block->length, 0, rows * 4);
    memset(block->detail, 0, rows);
    memset(block->heads, -1, GCT_CLASSES * 4);
    return 1;
}

/* Forget the events; `ordinal`: of the next ALLOCATE. */
static void empty_block(struct event_block *block, uint64_t ordinal) {
    if (block->has_length) memset(block->length, 0, (size_t)block->types * 4);
    if (block->has_detail) memset(block->detail, 0, (size_t)block->events);
    memset(block->heads, -1, GCT_CLASSES * 4);
    block->rows = block->events = block->stamps = block->allocations = block->frees = block->old = block->types = block->sites = 0;
    block->addresses = block->moves = block->amounts = block->top = block->pushed = 0;
    block->any_site = 0, block->other_threads = block->other_types = block->has_detail = block->has_length = 0;
    block->first_ordinal = ordinal;
}

/* Most blocks have events of one thread, or objects of one type: then nothing is stored for each. */
static __attribute__((noinline)) void put_other(uint32_t *column, int64_t count, uint32_t first) {
    for (int64_t one = 0; one < count; one++) column[one] = first;
}

static inline void put_event(struct event_block *block, int kind, int detail, uint32_t thread) {
    int64_t event = block->events++;
    block->kind[block->rows++] = (uint8_t)kind;
    if (detail) block->detail[event] = (uint8_t)detail, block->has_detail = 1;
    if (block->other_threads) block->thread[event] = thread;
    else if (event == 0) block->first_thread = thread;
    else if (thread != block->first_thread) {
        put_other(block->thread, event, block->first_thread);
        block->thread[event] = thread, block->other_threads = 1;
    }
}

static inline void put_type(struct event_block *block, uint32_t type) {
    int64_t row = block->types++;
    if (block->other_types) block->type[row] = type;
    else if (row == 0) block->first_type = type;
    else if (type != block->first_type) {
        put_other(block->type, row, block->first_type);
        block->type[row] = type, block->other_types = 1;
    }
}

static inline void put_stamp(struct event_block *block, uint64_t later) {
    block->kind[block->rows++] = GCT_STAMP;
    block->stamp[block->stamps++] = (int64_t)later;
}

static inline int64_t block_class(const struct event_block *block, uint64_t size) { return gct_class((int64_t)size, block->shift, block->least, block->overhead); }

static inline void put_allocation(struct event_block *block, int detail, uint32_t thread, uint64_t address, uint64_t size, uint32_t site, uint32_t type) {
    put_event(block, GCT_ALLOCATE, detail, thread);
    int64_t here = (int64_t)(address >> block->shift), c = block_class(block, size), predicted = block->top;
    int hit = 0;
    if (c < GCT_CLASSES && block->heads[c] >= 0) {
        int32_t entry = block->heads[c];
        block->heads[c] = block->next[entry], predicted = block->where[entry], hit = 1;
    }
    int64_t off = here - predicted;
    if (!hit || off) block->top = here + c;
    block->value[block->allocations] = (int64_t)gct_zigzag(off);
    block->size[block->allocations++] = (int64_t)size;
    put_type(block, type);
    block->site[block->sites++] = site, block->any_site |= site;
}

/* `age`: how many ALLOCATEs ago its block was allocated, of `size` bytes; 0: not in this block. */
static inline void put_free(struct event_block *block, uint32_t thread, uint64_t address, uint64_t age, uint64_t size) {
    put_event(block, GCT_FREE, 0, thread);
    block->age[block->frees++] = (uint32_t)age;
    if (age == 0) {
        block->freed[block->old++] = (int64_t)address;
        return;
    }
    int64_t c = block_class(block, size);
    if (c < GCT_CLASSES) {
        block->where[block->pushed] = (int64_t)(address >> block->shift);
        block->next[block->pushed] = block->heads[c];
        block->heads[c] = (int32_t)block->pushed++;
    }
}

static void put_address(struct event_block *block, uint64_t address) { block->address[block->addresses++] = (int64_t)address; }

static void put_amount(struct event_block *block, uint64_t amount) { block->amount[block->amounts++] = (int64_t)amount; }

static void put_move(struct event_block *block, uint32_t thread, uint64_t from, uint64_t to) {
    put_event(block, GCT_MOVE, 0, thread);
    put_address(block, from);
    block->to[block->moves++] = (int64_t)to;
}

static void put_mapping(struct event_block *block, int kind, uint32_t thread, uint64_t address, uint64_t bytes, uint32_t site) {
    put_event(block, kind, 0, thread);
    put_address(block, address), put_amount(block, bytes);
    if (kind == GCT_MAP) block->site[block->sites++] = site, block->any_site |= site;
}

static void put_collection(struct event_block *block, int kind, int detail, uint32_t thread, uint64_t millis, int64_t number) {
    put_event(block, kind, detail, thread);
    put_address(block, 0), put_amount(block, millis);
    block->length[block->types] = (uint32_t)number, block->has_length = 1;
    put_type(block, 0);
}

static void put_lost(struct event_block *block, uint32_t thread, uint64_t events) {
    put_event(block, GCT_LOST, 0, thread);
    put_amount(block, events);
}

static void put_longs(struct gct_payload *payload, struct event_block *block, int column, int64_t *values, int64_t count, int shift, int model) {
    uint64_t all = 0;
    for (int64_t i = 0; i < count; i++) all |= (uint64_t)values[i];
    if (all >> 31) {
        gct_put_column(payload, column, values, count, shift, 1, model, block->least, block->overhead);
        return;
    }
    for (int64_t i = 0; i < count; i++) block->narrow[i] = (uint32_t)values[i];
    gct_put_narrow_column(payload, column, block->narrow, count, shift, 1, model, block->least, block->overhead);
}

static void put_ints(struct gct_payload *payload, int column, const uint32_t *values, int64_t count) {
    gct_put_narrow_column(payload, column, values, count, 0, 1, 0, 0, 0);
}

/* Encode the block as a payload of EVENTS, of at most gct_payload_bytes(BLOCK_ROWS) bytes; returns how many. */
static size_t encode_block(struct event_block *block, uint8_t *out) {
    struct gct_payload payload = gct_begin_payload(out);
    gct_put_byte_column(&payload, GCT_COLUMN_KIND, block->kind, block->rows);
    if (block->other_threads) put_ints(&payload, GCT_COLUMN_THREAD, block->thread, block->events);
    if (block->has_detail) gct_put_byte_column(&payload, GCT_COLUMN_DETAIL, block->detail, block->events);
    put_longs(&payload, block, GCT_COLUMN_STAMP, block->stamp, block->stamps, 0, 0);
    if (block->allocations) {
        put_longs(&payload, block, GCT_COLUMN_ALLOCATED, block->value, block->allocations, 0, 1);
        payload.entries[GCT_ENTRY_BYTES * (payload.columns - 1) + 3] = (uint8_t)block->shift; /* the model has shifted already */
    }
    put_longs(&payload, block, GCT_COLUMN_FREED, block->freed, block->old, block->shift, 0);
    if (block->allocations) put_ints(&payload, GCT_COLUMN_AGE, block->age, block->frees);
    put_longs(&payload, block, GCT_COLUMN_ADDRESS, block->address, block->addresses, 0, 0);
    put_longs(&payload, block, GCT_COLUMN_TO, block->to, block->moves, 0, 0);
    put_longs(&payload, block, GCT_COLUMN_SIZE, block->size, block->allocations, 0, 0);
    put_longs(&payload, block, GCT_COLUMN_AMOUNT, block->amount, block->amounts, 0, 0);
    if (!block->other_types) put_other(block->type, block->types, block->first_type);
    put_ints(&payload, GCT_COLUMN_TYPE, block->type, block->types);
    if (block->any_site) put_ints(&payload, GCT_COLUMN_SITE, block->site, block->sites);
    if (block->has_length) put_ints(&payload, GCT_COLUMN_LENGTH, block->length, block->types);
    return gct_end_payload(&payload, out);
}

#endif
