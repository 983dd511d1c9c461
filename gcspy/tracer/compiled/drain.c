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
#include "event_block.h"
#include "live_blocks.h"
#include "site_definitions.h"
#include "trace_segment.h"

#define MOST_PENDING (256u << 20) /* bytes copied and not merged; beyond it blocks stay where they are, and the program waits */
#define STEP_NANOS 20000u /* between stamps in the file */
#define MOST_THREADS 1000000u
#define AHEAD 192 /* bytes of records */
#define CACHED_CHUNKS 1
#define MOST_FORKS 64u
#define MOST_FORK_BLOCKS (4u << 20) /* in all */

enum detail { NEW = 0, RESIZED = 2 };
enum { OBJECTS = 3 /* CPython's domain of objects, + 1 */ };

/* Numbers that Python reads; the same order as in drain.py. */
enum counter {
    EVENTS, ALLOCATIONS, FREES, LOST_EVENTS, UNKNOWN_FREES, INFERRED_FREES, LIVE_BLOCKS, LIVE_BYTES, PENDING_BYTES, DAMAGED, META_BYTES,
    CACHED_OBJECTS, CACHED_BYTES, REUSED_OBJECTS, UNKNOWN_OBJECTS, COLLECTIONS, ROWS, DEFINED_BYTES, FRAMES, SITES, LAST_STAMP, COUNTERS
};

struct queue {
    uint32_t number, tid;
    uint8_t *bytes;
    size_t begin, end, room;
    uint64_t time, told_time; /* ticks */
    uint64_t copied, copied_before; /* bytes: in all; of these before the last poll */
    int ended, resizing;
    uint64_t undone_address; /* the block of its last FREE by realloc; 0: none */
    struct life undone;
};

/* A block that lives, or that a collection moves, and where. */
struct placed {
    uint64_t address;
    struct life life;
};

/* The blocks that lived when the process forked: its child has them. */
struct fork {
    uint32_t number;
    struct placed *blocks;
    int64_t count, event;
};

struct drain {
    struct queue **queues;
    size_t queue_count, queue_room;
    struct lives lives;
    struct event_block block;
    struct sites sites;
    uint64_t horizon;
    int64_t counters[COUNTERS];
    size_t pending;
    uint64_t time;  /* of the last event: never less */
    uint64_t stamp; /* the last that was written */
    uint64_t started;
    uint64_t started_ticks;
    double nanos_of_tick;
    int has_objects;
    uint64_t next_ordinal; /* of the block that is allocated next */
    struct placed *moved;  /* objects that the collection under way moves, at their new addresses */
    size_t moved_count, moved_room;
    struct fork forks[MOST_FORKS]; /* until they are taken, or later ones need the room */
    size_t fork_count, fork_blocks;
};

/* ---- copying */

GCSPY_LOOP void drain_free(int64_t handle);

/* `started`: time at stamp 0; `has_objects`: the process tells objects beside blocks; `least`, `overhead`: how its allocator rounds sizes. */
GCSPY_LOOP int64_t drain_new(int64_t started, int64_t has_objects, int64_t least, int64_t overhead) {
    struct drain *drain = calloc(1, sizeof *drain);
    if (drain == NULL) return 0;
    if (!begin_lives(&drain->lives) || !begin_block(&drain->block) || !begin_sites(&drain->sites)) return drain_free((int64_t)(intptr_t)drain), 0;
    drain->block.shift = 4, drain->block.least = (int)least, drain->block.overhead = (int)overhead;
    drain->time = drain->stamp = drain->started = (uint64_t)started;
    drain->has_objects = has_objects != 0;
    return (int64_t)(intptr_t)drain;
}

GCSPY_LOOP void drain_free(int64_t handle) {
    struct drain *drain = (struct drain *)(intptr_t)handle;
    for (size_t index = 0; index < drain->queue_count; index++) free(drain->queues[index]->bytes), free(drain->queues[index]);
    for (size_t one = 0; one < drain->fork_count; one++) free(drain->forks[one].blocks);
    free_lives(&drain->lives), free_sites(&drain->sites);
    free(drain->queues), free(drain->block.memory), free(drain->moved), free(drain);
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
    queue->number = number < MOST_NUMBERS ? number : 0;
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

static inline void tell_time(struct drain *drain) {
    if (UNLIKELY(drain->time != drain->stamp)) {
        put_stamp(&drain->block, drain->time - drain->stamp);
        drain->stamp = drain->time;
    }
}

/* How many events there were so far; others than those of the block under way are counted when it is taken. */
static int64_t events_of(const struct drain *drain) { return drain->counters[EVENTS] + drain->block.events; }

static inline void die(struct drain *drain, const struct queue *queue, uint64_t address, const struct life *life) {
    uint64_t size = life_size(life), ordinal = life_ordinal(life);
    if (UNLIKELY(life_is_dead(life))) {
        drain->counters[CACHED_OBJECTS]--, drain->counters[CACHED_BYTES] -= (int64_t)size;
        return;
    }
    uint64_t age = ordinal >= drain->block.first_ordinal && ordinal < LAST_ORDINAL && !(life->what & LIFE_MOVED) ? drain->next_ordinal - ordinal : 0;
    tell_time(drain);
    put_free(&drain->block, queue->number, address, age, size);
    drain->counters[LIVE_BYTES] -= (int64_t)size;
}

static inline void begin_life(struct drain *drain, const struct queue *queue, struct life *place, uint64_t address, uint64_t size, uint32_t site, uint32_t type, int detail) {
    if (UNLIKELY(place == NULL)) {
        drain->counters[LOST_EVENTS]++;
        return;
    }
    if (UNLIKELY(site >= MOST_NUMBERS)) site = 0;
    if (UNLIKELY(type >= MOST_NUMBERS)) type = 0;
    *place = life_of(drain->next_ordinal++, size, site, type);
    tell_time(drain);
    put_allocation(&drain->block, detail, queue->number, address, size, site, type);
    drain->counters[LIVE_BYTES] += (int64_t)size;
}

static uint64_t word_at(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

struct passed {
    uint8_t *bytes;
    size_t used, room;
};

/* A definition, for Python: kind, argument, bytes, thread, tid, number of its frame; number of the event before which it stands; then its words. */
static int pass_on(struct drain *drain, struct passed *out, const struct queue *queue, uint32_t kind, uint32_t argument, const uint8_t *from, size_t bytes) {
    if (out->used + 32 + bytes > out->room) return 0;
    uint32_t frame = kind == META_FRAME && bytes > 16 ? new_frame(&drain->sites, word_at(from), 0) : 0;
    uint32_t head[6] = {kind, argument, (uint32_t)bytes, queue->number, queue->tid, frame};
    uint64_t event = (uint64_t)events_of(drain);
    memcpy(out->bytes + out->used, head, 24);
    memcpy(out->bytes + out->used + 24, &event, 8);
    memcpy(out->bytes + out->used + 32, from, bytes);
    out->used += 32 + bytes;
    return 1;
}

/* The block that an object is in: CPython has up to 32 bytes before an object. */
static struct life *block_of(const struct drain *drain, uint64_t object, uint64_t *address) {
    for (uint64_t before = 0; before <= 32; before += 16) {
        struct life *life = find_life(&drain->lives, object - before);
        if (life != NULL && life_size(life) > before) return *address = object - before, life;
    }
    return NULL;
}

/* A dead object in a block from before the trace. */
static struct life *dead_object_in(const struct drain *drain, uint64_t block, uint64_t *address) {
    for (uint64_t before = 16; before <= 32; before += 16) {
        struct life *life = find_life(&drain->lives, block + before);
        if (life != NULL && life_is_dead(life)) return *address = block + before, life;
    }
    return NULL;
}

/* Take stamps at the head of a queue. */
static inline void read_stamps(struct queue *queue) {
    while (queue->begin < queue->end) {
        uint64_t word = word_at(queue->bytes + queue->begin);
        if ((word & 7) != RECORD_STAMP) break;
        if (word >> 3 > queue->time) queue->time = word >> 3;
        queue->begin += 8;
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
static void move(struct drain *drain, const struct queue *queue, uint64_t from, uint64_t to) {
    struct life *life = find_life(&drain->lives, from);
    if (life == NULL) {
        drain->counters[UNKNOWN_OBJECTS]++;
        return;
    }
    if (drain->moved_count == drain->moved_room) {
        size_t room = drain->moved_room ? drain->moved_room * 2 : 4096;
        struct placed *made = realloc(drain->moved, room * sizeof *made);
        if (made == NULL) {
            drain->counters[LOST_EVENTS]++;
            return;
        }
        drain->moved = made, drain->moved_room = room;
    }
    tell_time(drain);
    put_move(&drain->block, queue->number, from, to);
    drain->moved[drain->moved_count++] = (struct placed){to, {life->born, life->what | LIFE_MOVED}};
    life->born = 0;
}

/* Returns 0 if there was no room for all of them. */
static int end_moves(struct drain *drain, const struct queue *queue) {
    for (; drain->moved_count; drain->moved_count--) {
        const struct placed *moved = &drain->moved[drain->moved_count - 1];
        if (drain->block.rows + SPARE_ROWS > BLOCK_ROWS) return 0;
        struct life *place = place_of_life(&drain->lives, moved->address);
        if (place == NULL) {
            drain->counters[LOST_EVENTS]++;
            continue;
        }
        if (place->born) {
            drain->counters[INFERRED_FREES]++;
            die(drain, queue, moved->address, place);
        }
        *place = moved->life;
    }
    return 1;
}

static void forget_fork(struct drain *drain, size_t one) {
    free(drain->forks[one].blocks);
    drain->fork_blocks -= (size_t)drain->forks[one].count;
    drain->fork_count--;
    memmove(&drain->forks[one], &drain->forks[one + 1], (drain->fork_count - one) * sizeof *drain->forks);
}

static int64_t live_blocks(const struct drain *drain) {
    return drain->counters[LIVE_BLOCKS] + drain->block.allocations - drain->block.frees;
}

static void note_fork(struct drain *drain, uint32_t number) {
    int64_t lived = live_blocks(drain);
    size_t live = lived > 0 ? (size_t)lived : 0;
    while (drain->fork_count && (drain->fork_count == MOST_FORKS || drain->fork_blocks + live > MOST_FORK_BLOCKS)) forget_fork(drain, 0);
    struct placed *made = live <= MOST_FORK_BLOCKS ? malloc(live * sizeof *made + 1) : NULL;
    if (made == NULL) return;
    struct fork *fork = &drain->forks[drain->fork_count++];
    *fork = (struct fork){number, made, 0, events_of(drain)};
    uint64_t at = 0, address;
    const struct life *life;
    while ((size_t)fork->count < live && next_life(&drain->lives, &at, &address, &life))
        if (!life_is_dead(life)) made[fork->count++] = (struct placed){address, *life};
    drain->fork_blocks += (size_t)fork->count;
}

/* Whether addresses have to be told in smaller steps from this record on. */
static int is_odd(const uint8_t *at, uint64_t word, size_t have) {
    uint32_t kind = (uint32_t)word & 7;
    if (kind != RECORD_META) return (kind == RECORD_ALLOCATE || kind == RECORD_FREE || kind == RECORD_OBJECT) && word & 8;
    return (word >> 3 & 0x1fff) == META_MOVE && have >= 24 && (word_at(at + 8) | word_at(at + 16)) & 8;
}

static enum ran run_meta(struct drain *drain, struct passed *out, struct queue *queue, const uint8_t *at, size_t bytes) {
    uint64_t word = word_at(at);
    uint32_t meta = (uint32_t)(word >> 3 & 0x1fff), argument = (uint32_t)(word >> 32);
    switch (meta) {
    case META_LOST:
        tell_time(drain);
        put_lost(&drain->block, queue->number, argument);
        drain->counters[LOST_EVENTS] += argument;
        return GO_ON;
    case META_COLLECTION_START:
    case META_COLLECTION_END: {
        int ends = meta == META_COLLECTION_END;
        if (ends && !end_moves(drain, queue)) return NO_ROOM;
        drain->counters[COLLECTIONS] += !ends;
        tell_time(drain);
        put_collection(&drain->block, ends ? GCT_COLLECTION_END : GCT_COLLECTION_START, argument >= 2 ? 5 : 4, queue->number, (drain->time - drain->started) / 1000000, drain->counters[COLLECTIONS]);
        return GO_ON;
    }
    case META_MOVE:
        if (bytes == 24 && word_at(at + 8) && word_at(at + 16)) move(drain, queue, word_at(at + 8) & 0xfffffffffff8ull, word_at(at + 16) & 0xfffffffffff8ull);
        else drain->counters[DAMAGED]++;
        return GO_ON;
    case META_SITE:
        define_site(&drain->sites, argument, at + 8, bytes / 8 - 1);
        return GO_ON;
    default:
        if (!pass_on(drain, out, queue, meta, argument, at + 8, bytes - 8)) return NO_ROOM;
        if (meta == META_FORK) note_fork(drain, argument);
        if (meta == META_THREAD_END) queue->ended = 1;
        return GO_ON;
    }
}

/* The event at the head of a queue. */
static inline enum ran run_one(struct drain *drain, struct passed *out, struct queue *queue, int last) {
    const uint8_t *at = queue->bytes + queue->begin;
    size_t have = queue->end - queue->begin, bytes = 8;
    uint64_t word = word_at(at), address = word & 0xfffffffffff8ull;
    uint32_t kind = (uint32_t)word & 7;
    struct life *life;
    if (kind == RECORD_ALLOCATE || kind == RECORD_MAP || kind == RECORD_UNMAP || kind == RECORD_OBJECT) bytes = 16;
    else if (kind == RECORD_META) bytes = 8 + (word >> 16 & 0xffff) * 8;
    if (UNLIKELY(bytes > have || kind == 0)) {
        /* Not a record: nothing behind it can be read. */
        drain->counters[DAMAGED]++;
        queue->begin = queue->end;
        return GO_ON;
    }
    if (UNLIKELY(drain->block.rows + SPARE_ROWS > BLOCK_ROWS)) return NO_ROOM;
    if (UNLIKELY(drain->lives.chunk_count > CACHED_CHUNKS) && have > 2 * AHEAD + 16)
        for (size_t word_of = 0; word_of < 16 && word_of < bytes; word_of += 8) {
            /* Some of these words are no addresses, which does not matter. */
            prefetch_life(&drain->lives, word_at(at + AHEAD + word_of) & 0xfffffffffff8ull);
            prefetch_leaf(&drain->lives, word_at(at + 2 * AHEAD + word_of) & 0xfffffffffff8ull);
        }
    if (UNLIKELY(drain->block.shift == 4 && word & 8 && is_odd(at, word, have))) {
        if (drain->block.rows) return NO_ROOM;
        drain->block.shift = 3, drain->block.least = 8, drain->block.overhead = 0;
    }
    uint64_t second = bytes > 8 ? word_at(at + 8) : 0;
    uint64_t size = word >> 48 | (second >> 32 & 0xfffffff) << 16;
    if (UNLIKELY(queue->time != queue->told_time)) {
        queue->told_time = queue->time;
        uint64_t nanos = drain->started + (uint64_t)((double)(int64_t)(queue->time - drain->started_ticks) * drain->nanos_of_tick);
        /* In the file: in steps of some microseconds, since each step takes bytes. */
        if (queue->time > drain->started_ticks && nanos > drain->time + STEP_NANOS) drain->time = nanos;
    }
    /* What belongs to a record comes at once: if it was not there when we looked again, it does not come. */
#define MAY_FOLLOW (!last && queue->copied - (queue->end - queue->begin) >= queue->copied_before)
    switch (kind) {
    case RECORD_ALLOCATE: {
        life = place_of_life(&drain->lives, address);
        uint32_t domain = (uint32_t)(second >> 60), type = 1 + domain;
        if (domain == OBJECTS) {
            /* It is the object's block if the object begins in it at once. */
            size_t next = 16;
            while (next + 8 <= have && (word_at(at + next) & 7) == RECORD_STAMP) next += 8;
            if (next + 16 > have && drain->has_objects && MAY_FOLLOW) return LATER;
            if (next + 16 <= have && (word_at(at + next) & 7) == RECORD_OBJECT) {
                uint64_t object = word_at(at + next) & 0xfffffffffff8ull;
                if (object - address <= 32) type = (uint32_t)(word_at(at + next + 8) >> 32), bytes = next + 16;
            }
        }
        if (UNLIKELY(life != NULL && life->born)) {
            drain->counters[INFERRED_FREES]++;
            die(drain, queue, address, life);
        }
        begin_life(drain, queue, life, address, size, (uint32_t)second, type, queue->resizing ? RESIZED : NEW);
        queue->resizing = 0;
        break;
    }
    case RECORD_FREE: {
        uint32_t detail = (uint32_t)(word >> 48);
        if (UNLIKELY(detail == FREE_RESIZED)) {
            enum resize resize = resize_of(queue, address);
            if (resize == NOT_KNOWN && MAY_FOLLOW) return LATER;
            if (resize == FAILED) {
                /* Nothing happened: take both records. */
                do bytes += 8;
                while ((word_at(at + bytes - 8) & 7) == RECORD_STAMP);
                break;
            }
        }
        if (detail == FREE_OBJECT) {
            life = block_of(drain, address, &address);
            if (life == NULL) drain->counters[UNKNOWN_OBJECTS]++;
            else if (!life_is_dead(life)) {
                die(drain, queue, address, life);
                life->born |= DEAD_ORDINAL;
                drain->counters[CACHED_OBJECTS]++, drain->counters[CACHED_BYTES] += (int64_t)life_size(life);
            }
            break;
        }
        life = find_life(&drain->lives, address);
        if (UNLIKELY(detail == FREE_UNDONE)) {
            if (queue->undone_address == address && life == NULL)
                begin_life(drain, queue, place_of_life(&drain->lives, address), address, life_size(&queue->undone), life_site(&queue->undone), life_type(&queue->undone), RESIZED);
            queue->undone_address = 0, queue->resizing = 0;
            break;
        }
        if (UNLIKELY(life == NULL && drain->has_objects)) {
            life = dead_object_in(drain, address, &address);
            if (life != NULL) {
                die(drain, queue, address, life), life->born = 0;
                break;
            }
        }
        if (UNLIKELY(life == NULL)) {
            drain->counters[UNKNOWN_FREES]++;
        } else {
            if (detail == FREE_RESIZED) queue->undone_address = address, queue->undone = *life;
            die(drain, queue, address, life), life->born = 0;
        }
        queue->resizing = detail == FREE_RESIZED;
        break;
    }
    case RECORD_OBJECT:
        life = block_of(drain, address, &address);
        if (life == NULL) {
            /* In a block from before the trace, on a free list then: its size is not known, but for the least. */
            drain->counters[REUSED_OBJECTS]++;
            begin_life(drain, queue, place_of_life(&drain->lives, address), address, word >> 48 << 3, (uint32_t)second, (uint32_t)(second >> 32), NEW);
            break;
        }
        if (life_is_dead(life)) drain->counters[REUSED_OBJECTS]++;
        die(drain, queue, address, life);
        begin_life(drain, queue, life, address, life_size(life), (uint32_t)second, (uint32_t)(second >> 32), NEW);
        break;
    case RECORD_MAP:
    case RECORD_UNMAP:
        tell_time(drain);
        put_mapping(&drain->block, kind == RECORD_MAP ? GCT_MAP : GCT_UNMAP, queue->number, address, kind == RECORD_MAP ? size : second, (uint32_t)second < MOST_NUMBERS ? (uint32_t)second : 0);
        break;
    case RECORD_META: {
        enum ran ran = run_meta(drain, out, queue, at, bytes);
        if (ran != GO_ON) return ran;
        break;
    }
    default: break;
    }
    queue->begin += bytes;
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

/* Append what was copied to the events that are there; `last`: nothing follows. `counters` gets all counts. Returns 1 if it stopped for want of room, so
 * that it has to be called again, else 0. */
GCSPY_LOOP int64_t drain_merge(int64_t handle, struct u8s meta, struct i64s counters, int64_t last) {
    struct drain *drain = (struct drain *)(intptr_t)handle;
    struct passed out = {meta.at, 0, (size_t)meta.length};
    int64_t again = 0;
    uint64_t horizon = last ? ~0ull : drain->horizon;
    enum ran ran = GO_ON;
    while (ran == GO_ON) {
        /* The queue with the earliest event, and how far it may go before another one has an earlier. */
        struct queue *first = NULL;
        uint64_t until = horizon;
        for (size_t index = 0; index < drain->queue_count; index++) {
            struct queue *queue = drain->queues[index];
            read_stamps(queue);
            if (queue->begin == queue->end || queue->time > horizon) continue;
            if (first == NULL || queue->time < first->time) {
                if (first != NULL && first->time < until) until = first->time;
                first = queue;
            } else if (queue->time < until) until = queue->time;
        }
        if (first == NULL) break;
        while (ran == GO_ON && first->begin < first->end) {
            if ((word_at(first->bytes + first->begin) & 7) == RECORD_STAMP) {
                read_stamps(first);
                if (first->time > until) break;
            } else ran = run_one(drain, &out, first, last != 0);
        }
    }
    again = ran == NO_ROOM;
    forget_ended(drain);
    drain->pending = 0;
    for (size_t index = 0; index < drain->queue_count; index++) drain->pending += drain->queues[index]->end - drain->queues[index]->begin;
    drain->counters[PENDING_BYTES] = (int64_t)drain->pending, drain->counters[META_BYTES] = (int64_t)out.used;
    drain->counters[ROWS] = drain->block.rows, drain->counters[DEFINED_BYTES] = (int64_t)drain->sites.byte_count;
    drain->counters[FRAMES] = (int64_t)drain->sites.frame_count, drain->counters[SITES] = drain->sites.site_count;
    drain->counters[LAST_STAMP] = (int64_t)(drain->stamp - drain->started);
    for (int64_t index = 0; index < COUNTERS && index < counters.length; index++) counters.at[index] = drain->counters[index];
    counters.at[EVENTS] = events_of(drain), counters.at[LIVE_BLOCKS] = live_blocks(drain);
    counters.at[ALLOCATIONS] += drain->block.allocations, counters.at[FREES] += drain->block.frees;
    return again;
}

/* Take the definitions of sites and frames that `counters` said there are. */
GCSPY_LOOP void drain_definitions(int64_t handle, struct u8s definitions) {
    struct drain *drain = (struct drain *)(intptr_t)handle;
    if (drain->sites.byte_count) memcpy(definitions.at, drain->sites.bytes, drain->sites.byte_count < (size_t)definitions.length ? drain->sites.byte_count : (size_t)definitions.length);
    drain->sites.byte_count = 0;
}

/* The code address of each frame, in the order of their numbers; 0: the program named it itself. */
GCSPY_LOOP void drain_frames(int64_t handle, struct i64s places) {
    const struct sites *sites = &((struct drain *)(intptr_t)handle)->sites;
    for (int64_t one = 0; one < places.length && (size_t)one < sites->frame_count; one++) places.at[one] = (int64_t)sites->places[one];
}

/* Bytes that `drain_encode` needs at most. */
GCSPY_LOOP int64_t drain_payload(void) { return (int64_t)gct_payload_bytes(BLOCK_ROWS); }

/* Take the events that are in order as a payload of EVENTS. `facts` gets the number of events, and the thread that has them all, -1: several. Returns
 * the bytes. */
GCSPY_LOOP int64_t drain_encode(int64_t handle, struct u8s payload, struct i64s facts) {
    struct drain *drain = (struct drain *)(intptr_t)handle;
    size_t bytes = encode_block(&drain->block, payload.at);
    facts.at[0] = drain->block.events, facts.at[1] = drain->block.other_threads ? -1 : (int64_t)drain->block.first_thread;
    drain->counters[EVENTS] = events_of(drain), drain->counters[LIVE_BLOCKS] = live_blocks(drain);
    drain->counters[ALLOCATIONS] += drain->block.allocations, drain->counters[FREES] += drain->block.frees;
    empty_block(&drain->block, drain->next_ordinal);
    return (int64_t)bytes;
}

/* The live blocks, in no order; returns how many there are, whether there is room or not. */
GCSPY_LOOP int64_t drain_live(int64_t handle, struct i64s address, struct i64s size, struct i32s site, struct i32s type, struct i64s birth) {
    struct drain *drain = (struct drain *)(intptr_t)handle;
    int64_t count = 0;
    uint64_t at = 0, place;
    const struct life *life;
    while (next_life(&drain->lives, &at, &place, &life)) {
        if (life_is_dead(life)) continue;
        if (count < address.length) {
            address.at[count] = (int64_t)place, size.at[count] = (int64_t)life_size(life), birth.at[count] = (int64_t)life_ordinal(life);
            site.at[count] = (int32_t)life_site(life), type.at[count] = (int32_t)life_type(life);
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
            address.at[row] = (int64_t)fork->blocks[row].address, size.at[row] = (int64_t)life_size(&fork->blocks[row].life), birth.at[row] = (int64_t)life_ordinal(&fork->blocks[row].life);
        if (address.length) forget_fork(drain, one);
        return count;
    }
    return -1;
}

/* Have blocks that lived before the first event; each is an event of the trace already. */
GCSPY_LOOP void drain_inherit(int64_t handle, struct i64s address, struct i64s size) {
    struct drain *drain = (struct drain *)(intptr_t)handle;
    for (int64_t row = 0; row < address.length; row++) {
        struct life *place = place_of_life(&drain->lives, (uint64_t)address.at[row]);
        if (place == NULL) continue;
        *place = life_of(drain->next_ordinal++, (uint64_t)size.at[row], 0, 0);
        if (address.at[row] & 8) drain->block.shift = 3, drain->block.least = 8, drain->block.overhead = 0;
        drain->counters[LIVE_BLOCKS]++, drain->counters[LIVE_BYTES] += size.at[row];
    }
    empty_block(&drain->block, drain->next_ordinal);
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
