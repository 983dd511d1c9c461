/* Reading the segments of traced processes, and putting the events of their threads into one order.
 *
 * Two steps. `drain_poll` copies what is new in the blocks, and gives full blocks back; `drain_merge` makes columns of
 * it. Nothing in a segment is believed: it lies in the memory of a program that may write anywhere.
 *
 * Order: a thread's events are in its order, and between threads their times decide: each event has one while there are several threads. A free has
 * the time before it happens, and an allocation the time after: so a block that changes hands is right. An event that is written late,
 * since its thread did not run, is one that nobody could follow on: its thread was still in malloc or free. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "arrays.h"
#include "object_trace.h"
#include "trace_segment.h"

#define MOST_PENDING (256u << 20) /* bytes copied and not merged; beyond it blocks stay where they are, and the program waits */
#define STEP_NANOS 20000u /* between stamps in the file */
#define MOST_THREADS 1000000u
#define HUGE_PAGE (2u << 20)
#define AHEAD 256 /* bytes of records */
#define MOST_FORKS 64u
#define MOST_FORK_BLOCKS (4u << 20) /* in all */

enum detail { NEW = 0, RESIZED = 2 };
enum { OBJECTS = 3 /* CPython's domain of objects, + 1 */ };

/* Numbers that Python reads; the same order as in drain.py. */
enum counter {
    EVENTS, ALLOCATIONS, FREES, LOST_EVENTS, UNKNOWN_FREES, INFERRED_FREES, LIVE_BLOCKS, LIVE_BYTES, PENDING_BYTES, DAMAGED, META_BYTES,
    CACHED_OBJECTS, CACHED_BYTES, REUSED_OBJECTS, UNKNOWN_OBJECTS, COLLECTIONS, COUNTERS
};

struct entry {
    uint64_t address; /* 0: none */
    uint64_t size;
    int64_t birth;    /* number of its event; -1: a block whose object is dead, on a free list */
    int64_t ordinal;  /* how many were allocated before it */
    uint32_t site, type;
};

struct queue {
    uint32_t number, tid;
    uint8_t *bytes;
    size_t begin, end, room;
    uint64_t time, told_time; /* ticks */
    uint64_t copied, copied_before, taken; /* bytes: in all; of these before the last poll; of these that are merged */
    int ended, resizing;
    struct entry undone; /* the block of its last FREE by realloc */
};

/* The blocks that lived when the process forked: its child has them. */
struct fork {
    uint32_t number;
    struct entry *blocks;
    int64_t count, event;
};

struct drain {
    struct queue **queues;
    size_t queue_count, queue_room;
    struct entry *table;
    size_t table_size, table_used;
    uint64_t horizon;
    int64_t counters[COUNTERS];
    size_t pending;
    uint64_t time;  /* of the last event: never less */
    uint64_t stamp; /* the last that was written */
    uint64_t started;
    uint64_t started_ticks;
    double nanos_of_tick;
    int has_objects;
    int64_t block_ordinal; /* how many were allocated before the first row */
    struct entry *moved;   /* objects that the collection under way moves, at their new addresses */
    size_t moved_count, moved_room;
    struct fork forks[MOST_FORKS]; /* until they are taken, or later ones need the room */
    size_t fork_count, fork_blocks;
};

/* ---- the table of live blocks */

static size_t slot_of(const struct drain *drain, uint64_t address) {
    return (size_t)((address * 0x9e3779b97f4a7c15ull) >> 20) & (drain->table_size - 1);
}

static struct entry *find(const struct drain *drain, uint64_t address) {
    size_t slot = slot_of(drain, address);
    while (drain->table[slot].address && drain->table[slot].address != address) slot = (slot + 1) & (drain->table_size - 1);
    return drain->table[slot].address ? &drain->table[slot] : NULL;
}

static int grow_table(struct drain *drain) {
    size_t size = drain->table_size ? drain->table_size * 2 : 1 << 16, old_size = drain->table_size;
    struct entry *old = drain->table, *made = calloc(size, sizeof *made);
    if (made == NULL) return 0;
    /* It is read at random: with large pages its addresses are found sooner. */
    uintptr_t begin = ((uintptr_t)made + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1), end = (uintptr_t)(made + size) & ~(uintptr_t)(HUGE_PAGE - 1);
    if (end > begin) madvise((void *)begin, end - begin, MADV_HUGEPAGE);
    drain->table = made, drain->table_size = size;
    for (size_t index = 0; index < old_size; index++)
        if (old[index].address) {
            size_t slot = slot_of(drain, old[index].address);
            while (made[slot].address) slot = (slot + 1) & (size - 1);
            made[slot] = old[index];
        }
    free(old);
    return 1;
}

static struct entry *add(struct drain *drain, uint64_t address) {
    if (drain->table_used * 8 >= drain->table_size * 5 && !grow_table(drain)) return NULL;
    size_t slot = slot_of(drain, address);
    while (drain->table[slot].address && drain->table[slot].address != address) slot = (slot + 1) & (drain->table_size - 1);
    drain->table_used += drain->table[slot].address == 0;
    drain->table[slot].address = address;
    return &drain->table[slot];
}

static void take_out(struct drain *drain, struct entry *entry) {
    size_t mask = drain->table_size - 1, hole = (size_t)(entry - drain->table), slot = hole;
    for (;;) {
        slot = (slot + 1) & mask;
        if (drain->table[slot].address == 0) break;
        size_t home = slot_of(drain, drain->table[slot].address);
        if (((slot - home) & mask) >= ((slot - hole) & mask)) drain->table[hole] = drain->table[slot], hole = slot;
    }
    drain->table[hole].address = 0;
    drain->table_used--;
}

/* ---- copying */

/* `started`: time at stamp 0; `has_objects`: the process tells objects beside blocks. */
GCSPY_LOOP int64_t drain_new(int64_t started, int64_t has_objects) {
    struct drain *drain = calloc(1, sizeof *drain);
    if (drain == NULL) return 0;
    if (!grow_table(drain)) return free(drain), 0;
    drain->time = drain->stamp = drain->started = (uint64_t)started;
    drain->has_objects = has_objects != 0;
    return (int64_t)(intptr_t)drain;
}

GCSPY_LOOP void drain_free(int64_t handle) {
    struct drain *drain = (struct drain *)(intptr_t)handle;
    for (size_t index = 0; index < drain->queue_count; index++) free(drain->queues[index]->bytes), free(drain->queues[index]);
    for (size_t one = 0; one < drain->fork_count; one++) free(drain->forks[one].blocks);
    free(drain->queues), free(drain->table), free(drain->moved), free(drain);
}

static struct queue *queue_of(struct drain *drain, uint32_t number) {
    for (size_t index = drain->queue_count; index-- > 0;)
        if (drain->queues[index]->number == number) return drain->queues[index];
    if (drain->queue_count >= MOST_THREADS) return NULL;
    if (drain->queue_count == drain->queue_room) {
        size_t room = drain->queue_room ? drain->queue_room * 2 : 64;
        struct queue **made = realloc(drain->queues, room * sizeof *made);
        if (made == NULL) return NULL;
        drain->queues = made, drain->queue_room = room;
    }
    struct queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL) return NULL;
    queue->number = number;
    return drain->queues[drain->queue_count++] = queue;
}

static int append(struct queue *queue, const uint8_t *from, size_t bytes) {
    if (queue->begin == queue->end) queue->begin = queue->end = 0;
    if (queue->end + bytes > queue->room && queue->begin > queue->room / 2) {
        memmove(queue->bytes, queue->bytes + queue->begin, queue->end - queue->begin);
        queue->end -= queue->begin, queue->begin = 0;
    }
    if (queue->end + bytes > queue->room) {
        size_t room = queue->room ? queue->room : 65536;
        while (room < queue->end + bytes) room *= 2;
        uint8_t *made = realloc(queue->bytes, room);
        if (made == NULL) return 0;
        queue->bytes = made, queue->room = room;
    }
    memcpy(queue->bytes + queue->end, from, bytes);
    queue->end += bytes;
    return 1;
}

static void give_back(struct segment *segment, struct block *states, uint32_t index) {
    atomic_store(&states[index].use, BLOCK_UNUSED);
    uint64_t head = atomic_load(&segment->unused);
    do atomic_store(&states[index].next, (uint32_t)head);
    while (!atomic_compare_exchange_weak(&segment->unused, &head, ((head >> 32) + 1) << 32 | (index + 1)));
}

struct order {
    uint64_t sequence;
    uint32_t index;
};

static int by_sequence(const void *left, const void *right) {
    uint64_t one = ((const struct order *)left)->sequence, other = ((const struct order *)right)->sequence;
    return (one > other) - (one < other);
}

/* Copy what is new. `ended` lists the system's numbers of threads that are no more: their blocks are given back too. Returns how many
 * bytes were new, -1: no memory. */
GCSPY_LOOP int64_t drain_poll(int64_t handle, int64_t at, struct i64s ended) {
    struct drain *drain = (struct drain *)(intptr_t)handle;
    struct segment *segment = (struct segment *)(intptr_t)at;
    struct block *states = (struct block *)((uint8_t *)segment + SEGMENT_STATES);
    static _Thread_local struct order orders[SEGMENT_BLOCKS];
    atomic_fetch_add(&segment->tick, 1);
    drain->horizon = read_ticks((int)segment->ticks_are_nanos);
    drain->started_ticks = segment->started_ticks;
    uint64_t now = monotonic_nanos();
    if (segment->ticks_are_nanos) drain->nanos_of_tick = 1;
    else if (drain->horizon > segment->started_ticks) drain->nanos_of_tick = (double)(now - segment->started_monotonic) / (double)(drain->horizon - segment->started_ticks);
    for (size_t index = 0; index < drain->queue_count; index++) drain->queues[index]->copied_before = drain->queues[index]->copied;
    uint32_t blocks = atomic_load(&segment->blocks), count = 0, given = 0;
    if (blocks > SEGMENT_BLOCKS) blocks = SEGMENT_BLOCKS;
    for (uint32_t index = 0; index < blocks; index++)
        if (atomic_load_explicit(&states[index].use, memory_order_acquire) != BLOCK_UNUSED) orders[count++] = (struct order){states[index].sequence, index};
    qsort(orders, count, sizeof *orders, by_sequence);
    int64_t copied = 0;
    for (uint32_t position = 0; position < count && drain->pending < MOST_PENDING; position++) {
        uint32_t index = orders[position].index;
        struct block *block = &states[index];
        uint32_t use = atomic_load_explicit(&block->use, memory_order_acquire);
        uint64_t used = atomic_load_explicit(&block->used, memory_order_acquire), read = atomic_load_explicit(&block->read, memory_order_relaxed);
        if (use != BLOCK_OWNED && use != BLOCK_FULL) continue;
        if (used > BLOCK_BYTES || used & 7 || read > used) {
            drain->counters[DAMAGED]++;
            continue;
        }
        if (used > read) {
            struct queue *queue = queue_of(drain, block->thread);
            if (queue == NULL || !append(queue, (uint8_t *)segment + SEGMENT_DATA + (size_t)index * BLOCK_BYTES + read, used - read)) return -1;
            queue->tid = block->tid;
            queue->copied += used - read;
            drain->pending += used - read, copied += (int64_t)(used - read);
            atomic_store_explicit(&block->read, used, memory_order_relaxed);
        }
        int over = use == BLOCK_FULL;
        for (int64_t one = 0; one < ended.length && !over; one++) over = ended.at[one] == (int64_t)block->tid;
        if (over) give_back(segment, states, index), given++;
    }
    if (given) {
        atomic_fetch_add(&segment->waiting, 1);
        syscall(SYS_futex, &segment->waiting, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
    return copied;
}

/* ---- merging */

struct columns {
    uint8_t *kind, *detail;
    int64_t *address, *size;
    int32_t *site, *type, *thread, *length;
    int64_t count, room;
    uint8_t *meta;
    size_t meta_used, meta_room;
};

static void put_row(struct columns *out, const struct queue *queue, int kind, int detail, uint64_t address, uint64_t size, uint32_t site, uint32_t type) {
    int64_t row = out->count++;
    out->kind[row] = (uint8_t)kind, out->detail[row] = (uint8_t)detail;
    out->address[row] = (int64_t)address, out->size[row] = (int64_t)size;
    out->site[row] = (int32_t)site, out->type[row] = (int32_t)type, out->thread[row] = (int32_t)queue->number, out->length[row] = 0;
}

static void emit(struct drain *drain, struct columns *out, const struct queue *queue, int kind, int detail, uint64_t address, uint64_t size, uint32_t site, uint32_t type) {
    if (drain->time != drain->stamp) {
        put_row(out, queue, GCT_STAMP, 0, drain->time - drain->stamp, 0, 0, 0);
        drain->stamp = drain->time;
    }
    put_row(out, queue, kind, detail, address, size, site, type);
    drain->counters[EVENTS]++;
}

static void die(struct drain *drain, struct columns *out, const struct queue *queue, struct entry *entry) {
    if (entry->birth < 0) drain->counters[CACHED_OBJECTS]--, drain->counters[CACHED_BYTES] -= (int64_t)entry->size;
    else {
        /* The size of a FREE is its age, for gct_predict_known. */
        uint64_t age = entry->ordinal >= drain->block_ordinal ? (uint64_t)(drain->counters[ALLOCATIONS] - entry->ordinal) : 0;
        emit(drain, out, queue, GCT_FREE, 0, entry->address, age, 0, 0);
        drain->counters[FREES]++, drain->counters[LIVE_BLOCKS]--, drain->counters[LIVE_BYTES] -= (int64_t)entry->size;
    }
}

static void begin_life(struct drain *drain, struct columns *out, const struct queue *queue, uint64_t address, uint64_t size, uint32_t site, uint32_t type, int detail) {
    struct entry *entry = add(drain, address);
    if (entry == NULL) {
        drain->counters[LOST_EVENTS]++;
        return;
    }
    *entry = (struct entry){address, size, drain->counters[EVENTS], drain->counters[ALLOCATIONS], site, type};
    emit(drain, out, queue, GCT_ALLOCATE, detail, address, size, site, type);
    drain->counters[ALLOCATIONS]++, drain->counters[LIVE_BLOCKS]++, drain->counters[LIVE_BYTES] += (int64_t)size;
}

/* A definition, for Python: kind, argument, bytes, thread, tid, 0; number of the event before which it stands; then its words. */
static int pass_on(struct drain *drain, struct columns *out, const struct queue *queue, uint32_t kind, uint32_t argument, const uint8_t *from, size_t bytes) {
    if (out->meta_used + 32 + bytes > out->meta_room) return 0;
    uint32_t head[6] = {kind, argument, (uint32_t)bytes, queue->number, queue->tid, 0};
    uint64_t event = (uint64_t)drain->counters[EVENTS];
    memcpy(out->meta + out->meta_used, head, 24);
    memcpy(out->meta + out->meta_used + 24, &event, 8);
    memcpy(out->meta + out->meta_used + 32, from, bytes);
    out->meta_used += 32 + bytes;
    return 1;
}

/* The block that an object is in: CPython has up to 32 bytes before an object. */
static struct entry *block_of(const struct drain *drain, uint64_t object) {
    for (uint64_t before = 0; before <= 32; before += 16) {
        struct entry *entry = find(drain, object - before);
        if (entry != NULL && entry->size > before) return entry;
    }
    return NULL;
}

/* A dead object in a block from before the trace. */
static struct entry *dead_object_in(const struct drain *drain, uint64_t block) {
    for (uint64_t before = 16; before <= 32; before += 16) {
        struct entry *entry = find(drain, block + before);
        if (entry != NULL && entry->birth < 0) return entry;
    }
    return NULL;
}

static uint64_t word_at(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

/* Take stamps at the head of a queue. */
static void read_stamps(struct drain *drain, struct queue *queue) {
    while (queue->begin < queue->end) {
        uint64_t word = word_at(queue->bytes + queue->begin);
        if ((word & 7) != RECORD_STAMP) break;
        if (word >> 3 > queue->time) queue->time = word >> 3;
        queue->begin += 8, queue->taken += 8, drain->pending -= 8;
    }
}

enum ran { GO_ON, LATER, NO_ROOM };

enum resize { SUCCEEDED, FAILED, NOT_KNOWN };

/* What became of the realloc whose FREE is at `at`: the thread's next record says. */
static enum resize resize_of(const struct queue *queue, uint64_t address) {
    size_t at = queue->begin + 8;
    while (at < queue->end && (word_at(queue->bytes + at) & 7) == RECORD_STAMP) at += 8;
    if (at >= queue->end) return NOT_KNOWN;
    return word_at(queue->bytes + at) == (address | RECORD_FREE | (uint64_t)FREE_UNDONE << 48) ? FAILED : SUCCEEDED;
}

/* An object moves when the collection ends: until then others are where they were. */
static void move(struct drain *drain, struct columns *out, const struct queue *queue, uint64_t from, uint64_t to) {
    struct entry *entry = find(drain, from);
    if (entry == NULL) {
        drain->counters[UNKNOWN_OBJECTS]++;
        return;
    }
    if (drain->moved_count == drain->moved_room) {
        size_t room = drain->moved_room ? drain->moved_room * 2 : 4096;
        struct entry *made = realloc(drain->moved, room * sizeof *made);
        if (made == NULL) {
            drain->counters[LOST_EVENTS]++;
            return;
        }
        drain->moved = made, drain->moved_room = room;
    }
    emit(drain, out, queue, GCT_MOVE, 0, from, to, 0, 0);
    struct entry *moved = &drain->moved[drain->moved_count++];
    *moved = *entry;
    moved->address = to, moved->ordinal = -1; /* a FREE cannot tell it by its age: that stands for where it was born */
    take_out(drain, entry);
}

static void end_moves(struct drain *drain, struct columns *out, const struct queue *queue) {
    for (size_t one = 0; one < drain->moved_count; one++) {
        struct entry *entry = find(drain, drain->moved[one].address);
        if (entry != NULL) {
            drain->counters[INFERRED_FREES]++;
            die(drain, out, queue, entry), take_out(drain, entry);
        }
        entry = add(drain, drain->moved[one].address);
        if (entry == NULL) drain->counters[LOST_EVENTS]++;
        else *entry = drain->moved[one];
    }
    drain->moved_count = 0;
}

static void forget_fork(struct drain *drain, size_t one) {
    free(drain->forks[one].blocks);
    drain->fork_blocks -= (size_t)drain->forks[one].count;
    drain->fork_count--;
    memmove(&drain->forks[one], &drain->forks[one + 1], (drain->fork_count - one) * sizeof *drain->forks);
}

static void note_fork(struct drain *drain, uint32_t number) {
    size_t live = drain->counters[LIVE_BLOCKS] > 0 ? (size_t)drain->counters[LIVE_BLOCKS] : 0;
    while (drain->fork_count && (drain->fork_count == MOST_FORKS || drain->fork_blocks + live > MOST_FORK_BLOCKS)) forget_fork(drain, 0);
    struct entry *made = live <= MOST_FORK_BLOCKS ? malloc(live * sizeof *made + 1) : NULL;
    if (made == NULL) return;
    struct fork *fork = &drain->forks[drain->fork_count++];
    *fork = (struct fork){number, made, 0, drain->counters[EVENTS]};
    for (size_t index = 0; index < drain->table_size && (size_t)fork->count < live; index++)
        if (drain->table[index].address && drain->table[index].birth >= 0) made[fork->count++] = drain->table[index];
    drain->fork_blocks += (size_t)fork->count;
}

/* The event at the head of a queue. */
static enum ran run_one(struct drain *drain, struct columns *out, struct queue *queue, int last) {
    const uint8_t *at = queue->bytes + queue->begin;
    size_t have = queue->end - queue->begin, bytes = 8;
    uint64_t word = word_at(at), address = word & 0xfffffffffff8ull;
    if (have > AHEAD + 8) {
        /* What comes soon is not in a cache if many blocks live. Some of these words are no addresses, which does not matter. */
        __builtin_prefetch(&drain->table[slot_of(drain, word_at(at + AHEAD) & 0xfffffffffff8ull)]);
        __builtin_prefetch(&drain->table[slot_of(drain, word_at(at + AHEAD + 8) & 0xfffffffffff8ull)]);
    }
    uint32_t kind = (uint32_t)word & 7;
    struct entry *entry;
    /* What belongs to a record comes at once: if it was not there when we looked again, it does not come. */
    int may_follow = !last && queue->taken >= queue->copied_before;
    if (kind == RECORD_ALLOCATE || kind == RECORD_MAP || kind == RECORD_UNMAP || kind == RECORD_OBJECT) bytes = 16;
    else if (kind == RECORD_META) bytes = 8 + (word >> 16 & 0xffff) * 8;
    if (bytes > have || kind == 0 || out->count + 8 > out->room) {
        if (bytes > have || kind == 0) {
            /* Not a record: nothing behind it can be read. */
            drain->counters[DAMAGED]++;
            drain->pending -= have, queue->begin = queue->end;
            return GO_ON;
        }
        return NO_ROOM;
    }
    uint64_t second = bytes > 8 ? word_at(at + 8) : 0;
    uint64_t size = word >> 48 | (second >> 32 & 0xfffffff) << 16;
    if (UNLIKELY(queue->time != queue->told_time)) {
        queue->told_time = queue->time;
        uint64_t nanos = drain->started + (uint64_t)((double)(int64_t)(queue->time - drain->started_ticks) * drain->nanos_of_tick);
        /* In the file: in steps of some microseconds, since each step takes bytes. */
        if (queue->time > drain->started_ticks && nanos > drain->time + STEP_NANOS) drain->time = nanos;
    }
    switch (kind) {
    case RECORD_ALLOCATE: {
        entry = find(drain, address);
        if (UNLIKELY(entry != NULL)) {
            drain->counters[INFERRED_FREES]++;
            die(drain, out, queue, entry), take_out(drain, entry);
        }
        uint32_t domain = (uint32_t)(second >> 60), type = 1 + domain;
        if (domain == OBJECTS) {
            /* It is the object's block if the object begins in it at once. */
            size_t next = 16;
            while (next + 8 <= have && (word_at(at + next) & 7) == RECORD_STAMP) next += 8;
            if (next + 16 > have && drain->has_objects && may_follow) return LATER;
            if (next + 16 <= have && (word_at(at + next) & 7) == RECORD_OBJECT) {
                uint64_t object = word_at(at + next) & 0xfffffffffff8ull;
                if (object - address <= 32) type = (uint32_t)(word_at(at + next + 8) >> 32), bytes = next + 16;
            }
        }
        begin_life(drain, out, queue, address, size, (uint32_t)second, type, queue->resizing ? RESIZED : NEW);
        queue->resizing = 0;
        break;
    }
    case RECORD_FREE: {
        uint32_t detail = (uint32_t)(word >> 48);
        if (UNLIKELY(detail == FREE_RESIZED)) {
            enum resize resize = resize_of(queue, address);
            if (resize == NOT_KNOWN && may_follow) return LATER;
            if (resize == FAILED) {
                /* Nothing happened: take both records. */
                do bytes += 8;
                while ((word_at(at + bytes - 8) & 7) == RECORD_STAMP);
                break;
            }
        }
        if (detail == FREE_OBJECT) {
            entry = block_of(drain, address);
            if (entry == NULL) drain->counters[UNKNOWN_OBJECTS]++;
            else if (entry->birth >= 0) {
                die(drain, out, queue, entry);
                entry->birth = -1;
                drain->counters[CACHED_OBJECTS]++, drain->counters[CACHED_BYTES] += (int64_t)entry->size;
            }
            break;
        }
        entry = find(drain, address);
        if (detail == FREE_UNDONE) {
            if (queue->undone.address == address && entry == NULL) begin_life(drain, out, queue, address, queue->undone.size, queue->undone.site, queue->undone.type, RESIZED);
            queue->undone.address = 0, queue->resizing = 0;
            break;
        }
        if (UNLIKELY(entry == NULL && drain->has_objects)) {
            entry = dead_object_in(drain, address);
            if (entry != NULL) {
                die(drain, out, queue, entry), take_out(drain, entry);
                break;
            }
        }
        if (UNLIKELY(entry == NULL)) {
            drain->counters[UNKNOWN_FREES]++;
        } else {
            if (detail == FREE_RESIZED) queue->undone = *entry;
            die(drain, out, queue, entry), take_out(drain, entry);
        }
        queue->resizing = detail == FREE_RESIZED;
        break;
    }
    case RECORD_OBJECT:
        entry = block_of(drain, address);
        if (entry == NULL) {
            /* In a block from before the trace, on a free list then: its size is not known, but for the least. */
            drain->counters[REUSED_OBJECTS]++;
            begin_life(drain, out, queue, address, word >> 48 << 3, (uint32_t)second, (uint32_t)(second >> 32), NEW);
            break;
        }
        if (entry->birth < 0) drain->counters[REUSED_OBJECTS]++;
        die(drain, out, queue, entry);
        begin_life(drain, out, queue, entry->address, entry->size, (uint32_t)second, (uint32_t)(second >> 32), NEW);
        break;
    case RECORD_MAP:
        emit(drain, out, queue, GCT_MAP, 0, address, size, (uint32_t)second, 0);
        break;
    case RECORD_UNMAP:
        emit(drain, out, queue, GCT_UNMAP, 0, address, second, 0, 0);
        break;
    case RECORD_META: {
        uint32_t meta = (uint32_t)(word >> 3 & 0x1fff), argument = (uint32_t)(word >> 32);
        if (meta == META_LOST) {
            emit(drain, out, queue, GCT_LOST, 0, 0, argument, 0, 0);
            drain->counters[LOST_EVENTS] += argument;
        } else if (meta == META_COLLECTION_START || meta == META_COLLECTION_END) {
            int ends = meta == META_COLLECTION_END;
            if (ends) end_moves(drain, out, queue);
            drain->counters[COLLECTIONS] += !ends;
            emit(drain, out, queue, ends ? GCT_COLLECTION_END : GCT_COLLECTION_START, argument >= 2 ? 5 : 4, 0, (drain->time - drain->started) / 1000000, 0, 0);
            out->length[out->count - 1] = (int32_t)drain->counters[COLLECTIONS];
        } else if (meta == META_MOVE) {
            if (bytes == 24 && second && word_at(at + 16)) move(drain, out, queue, second & 0xfffffffffff8ull, word_at(at + 16) & 0xfffffffffff8ull);
            else drain->counters[DAMAGED]++;
        } else if (!pass_on(drain, out, queue, meta, argument, at + 8, bytes - 8)) return NO_ROOM;
        if (meta == META_FORK) note_fork(drain, argument);
        if (meta == META_THREAD_END) queue->ended = 1;
        break;
    }
    default: break;
    }
    queue->begin += bytes, queue->taken += bytes, drain->pending -= bytes;
    return GO_ON;
}

static void forget_ended(struct drain *drain) {
    size_t kept = 0;
    for (size_t index = 0; index < drain->queue_count; index++) {
        struct queue *queue = drain->queues[index];
        if (queue->ended && queue->begin == queue->end) free(queue->bytes), free(queue);
        else drain->queues[kept++] = queue;
    }
    drain->queue_count = kept;
}

/* Append columns of what was copied to rows that are there; `last`: nothing follows. `state`: rows that are there; the stamp of the last event; its
 * number of definitions' bytes. Returns 1 if it stopped for want of room, so that it has to be called again, else 0. */
GCSPY_LOOP int64_t drain_merge(
    int64_t handle, struct u8s kind, struct u8s detail, struct i64s address, struct i64s size, struct i32s site, struct i32s type, struct i32s thread, struct i32s length, struct u8s meta,
    struct i64s state, struct i64s counters, int64_t last) {
    struct drain *drain = (struct drain *)(intptr_t)handle;
    struct columns out = {kind.at, detail.at, address.at, size.at, site.at, type.at, thread.at, length.at, state.at[0], kind.length, meta.at, 0, (size_t)meta.length};
    int64_t again = 0;
    if (out.count == 0) drain->block_ordinal = drain->counters[ALLOCATIONS];
    uint64_t horizon = last ? ~0ull : drain->horizon;
    enum ran ran = GO_ON;
    while (ran == GO_ON) {
        /* The queue with the earliest event, and how far it may go before another one has an earlier. */
        struct queue *first = NULL;
        uint64_t until = horizon;
        for (size_t index = 0; index < drain->queue_count; index++) {
            struct queue *queue = drain->queues[index];
            read_stamps(drain, queue);
            if (queue->begin == queue->end || queue->time > horizon) continue;
            if (first == NULL || queue->time < first->time) {
                if (first != NULL && first->time < until) until = first->time;
                first = queue;
            } else if (queue->time < until) until = queue->time;
        }
        if (first == NULL) break;
        while (ran == GO_ON && first->begin < first->end) {
            if ((word_at(first->bytes + first->begin) & 7) == RECORD_STAMP) {
                read_stamps(drain, first);
                if (first->time > until) break;
            } else ran = run_one(drain, &out, first, (int)last);
        }
    }
    again = ran == NO_ROOM;
    forget_ended(drain);
    drain->counters[PENDING_BYTES] = (int64_t)drain->pending, drain->counters[META_BYTES] = (int64_t)out.meta_used;
    for (int64_t index = 0; index < COUNTERS && index < counters.length; index++) counters.at[index] = drain->counters[index];
    state.at[0] = out.count, state.at[1] = (int64_t)drain->stamp;
    return again;
}

/* Bytes of memory that `drain_encode` needs for so many rows: for its work, and for the payload. */
GCSPY_LOOP int64_t drain_room(int64_t rows) { return (int64_t)gct_room_bytes(rows); }

GCSPY_LOOP int64_t drain_payload(int64_t rows) { return (int64_t)gct_payload_bytes(rows); }

/* Encode rows as a payload of EVENTS. `facts` gets the number of events, and the thread that has them all, -1: several. Returns the bytes. */
GCSPY_LOOP int64_t drain_encode(
    struct u8s kind, struct u8s detail, struct i64s address, struct i64s size, struct i32s site, struct i32s type, struct i32s thread, struct i32s length, int64_t rows, struct u8s work,
    struct u8s payload, struct i64s facts, int64_t least, int64_t overhead) {
    struct gct_events events = {.count = rows, .kind = kind.at, .detail = detail.at, .address = address.at, .size = size.at, .type = type.at, .site = site.at, .age = size.at};
    uint64_t low = 0;
    int several = 0, details = 0, sites = 0;
    for (int64_t row = 0; row < rows; row++) {
        if (kind.at[row] == GCT_ALLOCATE || kind.at[row] == GCT_FREE) low |= (uint64_t)address.at[row];
        if (kind.at[row] == GCT_MOVE) events.to = size.at;
        several |= thread.at[row] != thread.at[0];
        details |= detail.at[row], sites |= site.at[row];
        if (kind.at[row] == GCT_COLLECTION_START) events.length = length.at;
        if (kind.at[row] == GCT_COLLECTION_END) events.length = length.at;
    }
    if (several) events.thread = thread.at;
    if (!details) events.detail = NULL;
    if (!sites) events.site = NULL;
    struct gct_manner manner = {.shift = low & 15 ? 3 : 4, .least = low & 15 ? 8 : (int)least, .overhead = low & 15 ? 0 : (int)overhead, .predict = (low & 7) == 0, .compressed = 1};
    if (low & 7) manner.shift = 0;
    struct gct_room room;
    gct_room_init(&room, work.at, rows);
    uint32_t told;
    size_t bytes = gct_encode(&events, &manner, &room, payload.at, &told);
    facts.at[0] = told, facts.at[1] = several ? -1 : thread.at[0];
    return (int64_t)bytes;
}

/* The live blocks, in no order; returns how many there are, whether there is room or not. */
GCSPY_LOOP int64_t drain_live(int64_t handle, struct i64s address, struct i64s size, struct i32s site, struct i32s type, struct i64s birth) {
    struct drain *drain = (struct drain *)(intptr_t)handle;
    int64_t count = 0;
    for (size_t index = 0; index < drain->table_size; index++) {
        struct entry *entry = &drain->table[index];
        if (entry->address == 0 || entry->birth < 0) continue;
        if (count < address.length) {
            address.at[count] = (int64_t)entry->address, size.at[count] = (int64_t)entry->size, birth.at[count] = entry->birth;
            site.at[count] = (int32_t)entry->site, type.at[count] = (int32_t)entry->type;
        }
        count++;
    }
    return count;
}

/* How many blocks lived at a fork, -1: not known. With room for them: they are taken, and forgotten; the event before which it was in `event[0]`. */
GCSPY_LOOP int64_t drain_forked(int64_t handle, int64_t number, struct i64s address, struct i64s size, struct i64s birth, struct i64s event) {
    struct drain *drain = (struct drain *)(intptr_t)handle;
    for (size_t one = 0; one < drain->fork_count; one++) {
        struct fork *fork = &drain->forks[one];
        if (fork->number != (uint32_t)number) continue;
        int64_t count = fork->count;
        event.at[0] = fork->event;
        if (address.length < count) return count;
        for (int64_t row = 0; row < count; row++)
            address.at[row] = (int64_t)fork->blocks[row].address, size.at[row] = (int64_t)fork->blocks[row].size, birth.at[row] = fork->blocks[row].birth;
        if (address.length) forget_fork(drain, one);
        return count;
    }
    return -1;
}

/* Have blocks that lived before the first event; each is an event of the trace already. */
GCSPY_LOOP void drain_inherit(int64_t handle, struct i64s address, struct i64s size) {
    struct drain *drain = (struct drain *)(intptr_t)handle;
    for (int64_t row = 0; row < address.length; row++) {
        struct entry *entry = add(drain, (uint64_t)address.at[row]);
        if (entry == NULL) continue;
        *entry = (struct entry){(uint64_t)address.at[row], (uint64_t)size.at[row], drain->counters[EVENTS] + row, -1, 0, 0};
        drain->counters[LIVE_BLOCKS]++, drain->counters[LIVE_BYTES] += size.at[row];
    }
    drain->counters[EVENTS] += address.length;
}

/* Numbers of a segment: its magic, pid, parent, start (monotonic, real), flags, number of the parent's fork, blocks, lost events,
 * nanoseconds waited, tables of sites that were full, cut stacks, threads, forks. */
GCSPY_LOOP int64_t drain_facts(int64_t at, struct i64s facts) {
    struct segment *segment = (struct segment *)(intptr_t)at;
    int64_t all[] = {
        (int64_t)atomic_load_explicit(&segment->magic, memory_order_acquire), segment->pid, segment->parent, (int64_t)segment->started_monotonic,
        (int64_t)segment->started_real, segment->flags, segment->parent_fork, atomic_load(&segment->blocks), (int64_t)atomic_load(&segment->lost),
        (int64_t)atomic_load(&segment->waited_nanos), atomic_load(&segment->full_sites), (int64_t)atomic_load(&segment->cut_stacks), atomic_load(&segment->threads),
        atomic_load(&segment->forks),
    };
    int64_t count = (int64_t)(sizeof all / sizeof *all);
    for (int64_t index = 0; index < count && index < facts.length; index++) facts.at[index] = all[index];
    return count;
}

/* The system's numbers of threads that have a block; returns how many. */
GCSPY_LOOP int64_t drain_owners(int64_t at, struct i64s owners) {
    struct segment *segment = (struct segment *)(intptr_t)at;
    struct block *states = (struct block *)((uint8_t *)segment + SEGMENT_STATES);
    int64_t count = 0;
    for (uint32_t index = 0; index < SEGMENT_BLOCKS && count < owners.length; index++)
        if (atomic_load(&states[index].use) == BLOCK_OWNED) owners.at[count++] = states[index].tid;
    return count;
}

/* Tell the process to stop writing. */
GCSPY_LOOP void drain_stop(int64_t at) {
    struct segment *segment = (struct segment *)(intptr_t)at;
    atomic_store(&segment->wanted, WANTED_OFF);
    atomic_fetch_add(&segment->waiting, 1);
    syscall(SYS_futex, &segment->waiting, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
