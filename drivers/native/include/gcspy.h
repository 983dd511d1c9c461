/* gcspy.h: show the spaces, tiles and streams of a memory manager in GCspy. One header, C99 and C++, Linux 4.14 and later.
 *
 * SPDX-License-Identifier: MIT. No dependency, no thread, no socket, no signal, and no allocation by malloc. Elsewhere than on Linux
 * every function does nothing. docs/gcspy-h.md is the guide. In one source file, before all other headers:
 *
 *     #define GCSPY_IMPLEMENTATION
 *     #include "gcspy.h"
 *
 * What is shown is in a segment of private memory. A gcspy of the same user finds it through a small shared page, the control page,
 * which is mapped under the name "gcspy.h", and reads the segment from outside: the program waits for nobody. An event that nobody
 * wants is counted, and costs two loads and an addition.
 *
 *     if (gcspy_begin(&g, KIND)) {        // 0: nobody wants this event; it is counted
 *         gcspy_reset(space);             // every tile to its default
 *         ... fill the streams ...
 *         gcspy_end(&g);                  // with GCSPY_CAN_WAIT: waits here while a pause or a step holds the program
 *     }
 *
 * Threads: of two threads that begin an event at the same time, one gets 0, and its event is counted. Add, remove and change spaces in
 * one thread, or under your lock. After fork the child shows nothing, and writes nothing into the segment, until it calls gcspy_open.
 */
#ifndef GCSPY_H
#define GCSPY_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GCSPY_VERSION = 1, GCSPY_KINDS = 32, GCSPY_SPACES = 32, GCSPY_STREAMS = 256, GCSPY_CONTROL_BYTES = 4096 };
enum { GCSPY_MOST_TILES = 1 << 25, GCSPY_TEXT = 48 /* bytes of a tile's name, with its end */ };

/* How a stream's values are shown. PLUS: more than the maximum is "max+". MAX_VAR: the maximum is that of the event's tiles. PERCENT: of
 * the maximum. PERCENT_VAR: of another stream. ENUM: an index into names. */
enum { GCSPY_PLAIN, GCSPY_PLUS, GCSPY_MAX_VAR, GCSPY_PERCENT, GCSPY_PERCENT_VAR, GCSPY_ENUM };
/* Flags of a tile, in the control stream of its space. */
enum { GCSPY_USED = 1, GCSPY_BACKGROUND = 2, GCSPY_UNUSED = 4, GCSPY_SEPARATOR = 8, GCSPY_LINK = 16 };
/* What names the tiles: equal pieces from one address on, pieces with an address and a size each, or texts. */
enum { GCSPY_UNIFORM, GCSPY_EXTENTS, GCSPY_TEXTS };
enum { GCSPY_CAN_WAIT = 1 /* gcspy_open: pause and step may hold the program in gcspy_end, so call that where a thread may wait */ };
enum { GCSPY_MAIN = 1, GCSPY_REMOVED = 2 /* flags of a space */ };

#define GCSPY_UNKNOWN INT64_MIN /* value of a tile that is not known; it is not zero */

/* An attribute of every tile. The author may change: suffix, about, minimum, zero, dflt, colour, paint, threshold before the first event. */
typedef struct {
    char name[32], suffix[16], about[96];
    int64_t minimum, maximum, zero, dflt;
    uint32_t presentation, paint /* 1: the value `zero` has a colour of its own */, colour /* 0xRRGGBB, plus 1 << 24 if it is set */;
    uint32_t space, names /* count, of ENUM */, of /* number of the stream that is 100 %, plus 1 */, threshold, has_summary;
    uint64_t data_at, names_at, summary_at;
    uint64_t reserved[2];
} gcspy_stream;

/* A component of the memory manager, divided into a row of tiles. The author may change: title, unused, about, row_width, flags before
 * the first event, and info at any event. */
typedef struct {
    char name[64], title[32], unused[32], about[128], info[160];
    uint64_t base, tile_bytes;
    uint32_t tiles, most_tiles, naming, flags, row_width, number;
    uint64_t control_at, names_at;
    uint64_t reserved[4];
} gcspy_space;

/* The segment. Everything in it that ends in _at is an offset from its beginning. */
typedef struct {
    char magic[8];
    uint32_t version, flags;
    uint64_t bytes, used;
    uint32_t kinds, spaces, streams, live /* 0 in a child made by fork, which has the segment as zeros */;
    uint64_t schema /* counts changes of spaces and streams */, kind, number, time_nanos, clock;
    char clock_name[32], cause[128], name[64], info[256];
    uint64_t passed /* events that were not written because another one was being written */, let_go, reserved[41];
    uint64_t counts[GCSPY_KINDS];
    char kind_names[GCSPY_KINDS][32];
    gcspy_space space[GCSPY_SPACES];
    gcspy_stream stream[GCSPY_STREAMS];
} gcspy_segment;

/* The control page. What is behind `reader` is written by gcspy, the rest here. */
typedef struct {
    char magic[8];
    uint64_t version, segment, bytes;
    uint64_t sequence /* odd while an event is being written */, waiting /* the sequence at which the program waits */, pad[10];
    uint64_t reader, answered, hold, not_before, life, asked, sleeping, spaces;
    uint32_t period[GCSPY_KINDS]; /* every n-th event of the kind is wanted; 0: none */
} gcspy_control_page;

typedef struct {
    gcspy_segment *segment; /* NULL: not open; all functions do nothing then */
    gcspy_control_page *control;
    int fd;
} gcspy;

/* Open: 0, or -1 (see errno), after which all else does nothing. kinds: names of the kinds of event, at most 32. flags: 0 or
 * GCSPY_CAN_WAIT. most_bytes: address space for all values, taken from the system as it is used; 0: 64 MiB. */
int gcspy_open(gcspy *g, const char *name, const char *const *kinds, int count, int flags, uint64_t most_bytes);
void gcspy_close(gcspy *g);

/* Add a space or a stream: NULL where there is no room, which every function below accepts. At most `most_tiles` tiles, all in use. */
gcspy_space *gcspy_add_space(gcspy *g, const char *name, const void *base, uint64_t tile_bytes, uint32_t most_tiles);
gcspy_space *gcspy_add_named_space(gcspy *g, const char *name, int naming, uint32_t most_tiles); /* GCSPY_EXTENTS, GCSPY_TEXTS */
void gcspy_remove_space(gcspy *g, gcspy_space *s); /* its memory is not used again */
gcspy_stream *gcspy_add_stream(gcspy *g, gcspy_space *s, const char *name, int64_t maximum, int presentation, uint32_t rgb);
gcspy_stream *gcspy_add_enum(gcspy *g, gcspy_space *s, const char *name, const char *const *names, int count);
void gcspy_percent_of(gcspy *g, gcspy_stream *t, const gcspy_stream *whole); /* GCSPY_PERCENT_VAR */

/* An event. gcspy_begin returns whether it is wanted: then fill the streams, and call gcspy_end. */
static inline int gcspy_begin(gcspy *g, int kind);
void gcspy_end(gcspy *g);
int gcspy_wants(const gcspy *g, const gcspy_space *s);  /* in an event: whether anybody looks at this space; if not, leave it as it is */
void gcspy_cause(gcspy *g, const char *text);           /* in an event: why it happened */
void gcspy_clock(gcspy *g, const char *name, uint64_t value); /* in an event: the program's own clock, such as allocated bytes */
void gcspy_reset(gcspy *g, gcspy_space *s);             /* in an event: values and flags to their defaults */
void gcspy_resize(gcspy_space *s, const void *base, uint32_t tiles); /* in an event, before gcspy_reset */
void gcspy_name(gcspy *g, gcspy_space *s, uint32_t tile, const char *text);                   /* in an event: of GCSPY_TEXTS */
void gcspy_extent(gcspy *g, gcspy_space *s, uint32_t tile, const void *base, uint64_t bytes); /* in an event: of GCSPY_EXTENTS */
void gcspy_summary(gcspy *g, gcspy_stream *t, const int64_t *values); /* in an event: 2 of PERCENT (sum, total), else 1 */
/* Whether gcspy asked for data since `*last`, which it does at each tick of its clock; for programs without events of their own. */
int gcspy_asked(const gcspy *g, uint64_t *last);

static inline int64_t *gcspy_values(const gcspy *g, const gcspy_stream *t) { return (int64_t *)(void *)((char *)g->segment + t->data_at); }
static inline uint8_t *gcspy_control(const gcspy *g, const gcspy_space *s) { return (uint8_t *)g->segment + s->control_at; }

/* Add to the value of the tile at an address. */
static inline void gcspy_count(const gcspy *g, const gcspy_space *s, gcspy_stream *t, const void *at, int64_t amount) {
    uint64_t offset = (uint64_t)(uintptr_t)at - s->base;
    if (s->tile_bytes && offset / s->tile_bytes < s->tiles) gcspy_values(g, t)[offset / s->tile_bytes] += amount;
}

/* Add the bytes of an object to the values of all tiles that it overlaps. */
static inline void gcspy_spread(const gcspy *g, const gcspy_space *s, gcspy_stream *t, const void *at, uint64_t bytes) {
    uint64_t offset = (uint64_t)(uintptr_t)at - s->base;
    while (s->tile_bytes && bytes && offset / s->tile_bytes < s->tiles) {
        uint64_t room = s->tile_bytes - offset % s->tile_bytes, part = bytes < room ? bytes : room;
        gcspy_values(g, t)[offset / s->tile_bytes] += (int64_t)part;
        offset += part;
        bytes -= part;
    }
}

int gcspy_begin_wanted(gcspy *g, int kind, uint64_t number); /* the rest of gcspy_begin */

/* The same as functions, for languages that call C and have no inline functions. */
int gcspy_begin_event(gcspy *g, int kind);
int64_t *gcspy_value_array(const gcspy *g, const gcspy_stream *t);
uint8_t *gcspy_control_array(const gcspy *g, const gcspy_space *s);

static inline int gcspy_begin(gcspy *g, int kind) {
#ifdef __linux__
    uint64_t number;
    uint32_t period;
    if (!g->segment || !g->segment->live || kind < 0 || (uint32_t)kind >= g->segment->kinds) return 0;
    number = __atomic_add_fetch(&g->segment->counts[kind], 1, __ATOMIC_RELAXED);
    period = __atomic_load_n(&g->control->period[kind], __ATOMIC_RELAXED);
    if (!period || number % period) return 0;
    return gcspy_begin_wanted(g, kind, number);
#else
    (void)g, (void)kind;
    return 0;
#endif
}

#ifdef __cplusplus
}
#endif

/* ------------------------------------------------------------------------------------------------------------ implementation */
#ifdef GCSPY_IMPLEMENTATION
#ifdef __linux__
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#else
long syscall(long, ...); /* which strict C99 hides */
#endif

/* Kernel's numbers that strict C99 hides. */
enum { GCSPY_ANONYMOUS = 0x20, GCSPY_NORESERVE = 0x4000, GCSPY_DONTFORK = 10, GCSPY_WIPEONFORK = 18 };
enum { GCSPY_MEMFD_FLAGS = 3, GCSPY_ADD_SEALS = 1033, GCSPY_SEALS = 7, GCSPY_GET_LOCK = 36 };
enum { GCSPY_FUTEX_WAIT = 0, GCSPY_FUTEX_WAKE = 1 };
#define GCSPY_SECOND 1000000000u
#define GCSPY_SLICE 50000000L           /* a program that waits looks this often whether gcspy still lives */
#define GCSPY_SILENCE 2000000000u       /* and goes on when it has shown no life for so long */

static uint64_t gcspy_now(void) {
    long at[2] = {0, 0};
    syscall(SYS_clock_gettime, 1 /* CLOCK_MONOTONIC */, at);
    return (uint64_t)at[0] * GCSPY_SECOND + (uint64_t)at[1];
}

/* Whether a gcspy has the lock of the control page: the kernel releases it when that ends, however it ends. */
static int gcspy_watched(const gcspy *g) {
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = F_WRLCK;
    return fcntl(g->fd, GCSPY_GET_LOCK, &lock) != 0 || lock.l_type != F_UNLCK;
}

static void gcspy_copy(char *to, size_t size, const char *text) {
    size_t length = text ? strlen(text) : 0;
    if (length >= size) length = size - 1;
    memset(to, 0, size);
    if (length) memcpy(to, text, length);
}

static uint64_t gcspy_take(gcspy *g, uint64_t bytes) {
    uint64_t at = g->segment->used;
    bytes = (bytes + 63) & ~(uint64_t)63;
    if (bytes > g->segment->bytes - at) return 0;
    g->segment->used = at + bytes;
    return at;
}

int gcspy_open(gcspy *g, const char *name, const char *const *kinds, int count, int flags, uint64_t most_bytes) {
    gcspy_segment *segment;
    void *control = MAP_FAILED, *memory = MAP_FAILED;
    uint64_t bytes = (sizeof *segment + (most_bytes ? most_bytes : (uint64_t)64 << 20) + 4095) & ~(uint64_t)4095;
    int i;
    memset(g, 0, sizeof *g);
    g->fd = (int)syscall(SYS_memfd_create, "gcspy.h", GCSPY_MEMFD_FLAGS);
    if (g->fd >= 0 && !syscall(SYS_ftruncate, g->fd, (long)GCSPY_CONTROL_BYTES) && !fcntl(g->fd, GCSPY_ADD_SEALS, GCSPY_SEALS)) {
        control = mmap(NULL, GCSPY_CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, g->fd, 0);
        memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | GCSPY_ANONYMOUS | GCSPY_NORESERVE, -1, 0);
    }
    if (control == MAP_FAILED || memory == MAP_FAILED || count < 1 || count > GCSPY_KINDS ||
        syscall(SYS_madvise, control, (long)GCSPY_CONTROL_BYTES, GCSPY_DONTFORK) ||
        syscall(SYS_madvise, memory, (long)bytes, GCSPY_WIPEONFORK)) {
        int why = count < 1 || count > GCSPY_KINDS ? EINVAL : errno;
        if (control != MAP_FAILED) munmap(control, GCSPY_CONTROL_BYTES);
        if (memory != MAP_FAILED) munmap(memory, (size_t)bytes);
        if (g->fd >= 0) close(g->fd);
        errno = why;
        return -1;
    }
    segment = (gcspy_segment *)memory;
    memcpy(segment->magic, "gcspysgm", 8);
    segment->version = GCSPY_VERSION;
    segment->flags = (uint32_t)flags;
    segment->bytes = bytes;
    segment->used = (sizeof *segment + 63) & ~(uint64_t)63;
    segment->kinds = (uint32_t)count;
    segment->live = 1;
    gcspy_copy(segment->name, sizeof segment->name, name);
    for (i = 0; i < count; i++) gcspy_copy(segment->kind_names[i], sizeof segment->kind_names[i], kinds[i]);
    g->segment = segment;
    g->control = (gcspy_control_page *)control;
    g->control->version = GCSPY_VERSION;
    g->control->segment = (uint64_t)(uintptr_t)segment;
    g->control->bytes = bytes;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    memcpy(g->control->magic, "gcspyctl", 8);
    return 0;
}

void gcspy_close(gcspy *g) {
    if (!g->segment) return;
    if (g->segment->live) { /* a child made by fork has no control page */
        munmap(g->control, GCSPY_CONTROL_BYTES);
        munmap(g->segment, (size_t)g->segment->bytes);
        close(g->fd);
    }
    memset(g, 0, sizeof *g);
}

static gcspy_space *gcspy_make_space(gcspy *g, const char *name, int naming, uint32_t most) {
    gcspy_space *s;
    uint64_t width = naming == GCSPY_TEXTS ? GCSPY_TEXT : naming == GCSPY_EXTENTS ? 16 : 0, at, names = 0;
    if (!g->segment || !g->segment->live || g->segment->spaces >= GCSPY_SPACES || most > GCSPY_MOST_TILES) return NULL;
    at = gcspy_take(g, most);
    if (width) names = gcspy_take(g, width * most);
    if (!at || (width && !names)) return NULL;
    s = &g->segment->space[g->segment->spaces];
    gcspy_copy(s->name, sizeof s->name, name);
    s->tiles = s->most_tiles = most;
    s->naming = (uint32_t)naming;
    s->number = g->segment->spaces;
    s->control_at = at;
    s->names_at = names;
    memset(gcspy_control(g, s), GCSPY_USED, most);
    __atomic_store_n(&g->segment->spaces, g->segment->spaces + 1, __ATOMIC_RELEASE);
    g->segment->schema++;
    return s;
}

gcspy_space *gcspy_add_space(gcspy *g, const char *name, const void *base, uint64_t tile_bytes, uint32_t most_tiles) {
    gcspy_space *s = tile_bytes ? gcspy_make_space(g, name, GCSPY_UNIFORM, most_tiles) : NULL;
    if (s) s->base = (uint64_t)(uintptr_t)base, s->tile_bytes = tile_bytes;
    return s;
}

gcspy_space *gcspy_add_named_space(gcspy *g, const char *name, int naming, uint32_t most_tiles) {
    gcspy_space *s = naming == GCSPY_UNIFORM ? NULL : gcspy_make_space(g, name, naming, most_tiles);
    if (s) s->tiles = 0;
    return s;
}

void gcspy_remove_space(gcspy *g, gcspy_space *s) {
    if (!s || !g->segment) return;
    s->flags |= GCSPY_REMOVED;
    g->segment->schema++;
}

gcspy_stream *gcspy_add_stream(gcspy *g, gcspy_space *s, const char *name, int64_t maximum, int presentation, uint32_t rgb) {
    gcspy_stream *t;
    uint64_t at, summary;
    if (!s || !g->segment || !g->segment->live || g->segment->streams >= GCSPY_STREAMS) return NULL;
    at = gcspy_take(g, sizeof(int64_t) * s->most_tiles);
    summary = gcspy_take(g, 2 * sizeof(int64_t));
    if (!at || !summary) return NULL;
    t = &g->segment->stream[g->segment->streams];
    gcspy_copy(t->name, sizeof t->name, name);
    t->maximum = maximum;
    t->presentation = (uint32_t)presentation;
    t->paint = 1;
    t->colour = rgb ? rgb | 1u << 24 : 0;
    t->space = s->number;
    t->data_at = at;
    t->summary_at = summary;
    __atomic_store_n(&g->segment->streams, g->segment->streams + 1, __ATOMIC_RELEASE);
    g->segment->schema++;
    return t;
}

gcspy_stream *gcspy_add_enum(gcspy *g, gcspy_space *s, const char *name, const char *const *names, int count) {
    gcspy_stream *t = count > 0 && count <= 256 ? gcspy_add_stream(g, s, name, count - 1, GCSPY_PLAIN, 0) : NULL;
    uint64_t at = t ? gcspy_take(g, (uint64_t)count * 32) : 0;
    int i;
    if (!at) return t;
    for (i = 0; i < count; i++) gcspy_copy((char *)g->segment + at + i * 32, 32, names[i]);
    t->names_at = at;
    t->names = (uint32_t)count;
    t->paint = 0;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    t->presentation = GCSPY_ENUM; /* last: gcspy may be reading */
    g->segment->schema++;
    return t;
}

void gcspy_percent_of(gcspy *g, gcspy_stream *t, const gcspy_stream *whole) {
    if (!t || !whole || !g->segment) return;
    t->of = (uint32_t)(whole - g->segment->stream) + 1;
    t->presentation = GCSPY_PERCENT_VAR;
    g->segment->schema++;
}

int gcspy_begin_wanted(gcspy *g, int kind, uint64_t number) {
    gcspy_control_page *c = g->control;
    uint64_t sequence = __atomic_load_n(&c->sequence, __ATOMIC_RELAXED), now = gcspy_now();
    if (now < __atomic_load_n(&c->not_before, __ATOMIC_RELAXED)) return 0;
    if (now - __atomic_load_n(&c->life, __ATOMIC_RELAXED) > GCSPY_SILENCE && !gcspy_watched(g)) {
        memset(c->period, 0, sizeof c->period); /* gcspy has ended without a word: nobody wants anything */
        return 0;
    }
    if ((sequence & 1) || !__atomic_compare_exchange_n(&c->sequence, &sequence, sequence + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        __atomic_add_fetch(&g->segment->passed, 1, __ATOMIC_RELAXED);
        return 0;
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    g->segment->kind = (uint64_t)kind;
    g->segment->number = number;
    g->segment->time_nanos = now;
    g->segment->cause[0] = g->segment->clock_name[0] = 0;
    return 1;
}

void gcspy_end(gcspy *g) {
    gcspy_control_page *c = g->control;
    gcspy_segment *segment = g->segment;
    uint64_t sequence, answered;
    int waits, saved = errno;
    if (!segment || !segment->live) return; /* forked in the middle */
    sequence = c->sequence + 1;
    answered = __atomic_load_n(&c->answered, __ATOMIC_ACQUIRE);
    /* It is not waited for again before it has answered the event at which it was silent. */
    waits = (segment->flags & GCSPY_CAN_WAIT) && __atomic_load_n(&c->hold, __ATOMIC_ACQUIRE) && answered >= segment->let_go;
    __atomic_store_n(&c->waiting, waits ? sequence : 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&c->sequence, sequence, __ATOMIC_RELEASE);
    if (__atomic_load_n(&c->sleeping, __ATOMIC_SEQ_CST)) syscall(SYS_futex, &c->sequence, GCSPY_FUTEX_WAKE, 1, NULL, NULL, 0);
    while (waits && (answered = __atomic_load_n(&c->answered, __ATOMIC_ACQUIRE)) < sequence) {
        long slice[2] = {0, GCSPY_SLICE};
        syscall(SYS_futex, &c->answered, GCSPY_FUTEX_WAIT, (long)(uint32_t)answered, slice, NULL, 0);
        if (__atomic_load_n(&c->answered, __ATOMIC_ACQUIRE) >= sequence) break;
        if (!gcspy_watched(g) || gcspy_now() > __atomic_load_n(&c->life, __ATOMIC_RELAXED) + GCSPY_SILENCE) {
            segment->let_go = sequence;
            __atomic_store_n(&c->waiting, 0, __ATOMIC_RELEASE);
            break;
        }
    }
    errno = saved;
}

int gcspy_wants(const gcspy *g, const gcspy_space *s) {
    return s && g->segment && g->segment->live && (__atomic_load_n(&g->control->spaces, __ATOMIC_RELAXED) >> s->number & 1);
}

void gcspy_cause(gcspy *g, const char *text) {
    if (g->segment) gcspy_copy(g->segment->cause, sizeof g->segment->cause, text);
}

void gcspy_clock(gcspy *g, const char *name, uint64_t value) {
    if (!g->segment) return;
    gcspy_copy(g->segment->clock_name, sizeof g->segment->clock_name, name);
    g->segment->clock = value;
}

void gcspy_reset(gcspy *g, gcspy_space *s) {
    uint32_t i, k;
    if (!s || !g->segment) return;
    memset(gcspy_control(g, s), GCSPY_USED, s->tiles);
    for (i = 0; i < g->segment->streams; i++) {
        gcspy_stream *t = &g->segment->stream[i];
        if (t->space != s->number) continue;
        t->has_summary = 0;
        if (!t->dflt) memset(gcspy_values(g, t), 0, sizeof(int64_t) * s->tiles);
        else for (k = 0; k < s->tiles; k++) gcspy_values(g, t)[k] = t->dflt;
    }
}

void gcspy_resize(gcspy_space *s, const void *base, uint32_t tiles) {
    if (!s) return;
    s->base = (uint64_t)(uintptr_t)base;
    s->tiles = tiles < s->most_tiles ? tiles : s->most_tiles;
}

void gcspy_name(gcspy *g, gcspy_space *s, uint32_t tile, const char *text) {
    if (s && g->segment && s->naming == GCSPY_TEXTS && tile < s->most_tiles)
        gcspy_copy((char *)g->segment + s->names_at + (uint64_t)tile * GCSPY_TEXT, GCSPY_TEXT, text);
}

void gcspy_extent(gcspy *g, gcspy_space *s, uint32_t tile, const void *base, uint64_t bytes) {
    uint64_t *pair;
    if (!s || !g->segment || s->naming != GCSPY_EXTENTS || tile >= s->most_tiles) return;
    pair = (uint64_t *)(void *)((char *)g->segment + s->names_at + (uint64_t)tile * 16);
    pair[0] = (uint64_t)(uintptr_t)base;
    pair[1] = bytes;
}

void gcspy_summary(gcspy *g, gcspy_stream *t, const int64_t *values) {
    if (!t || !g->segment || t->presentation == GCSPY_ENUM) return;
    memcpy((char *)g->segment + t->summary_at, values, sizeof(int64_t) * (t->presentation == GCSPY_PERCENT ? 2 : 1));
    t->has_summary = 1;
}

int gcspy_asked(const gcspy *g, uint64_t *last) {
    uint64_t asked;
    if (!g->segment || !g->segment->live) return 0;
    asked = __atomic_load_n(&g->control->asked, __ATOMIC_RELAXED);
    if (asked == *last) return 0;
    *last = asked;
    return 1;
}

#else /* not Linux: nothing is shown */
#ifdef __cplusplus
extern "C" {
#endif
int gcspy_open(gcspy *g, const char *name, const char *const *kinds, int count, int flags, uint64_t most_bytes) {
    (void)name, (void)kinds, (void)count, (void)flags, (void)most_bytes;
    g->segment = NULL, g->control = NULL, g->fd = -1;
    return -1;
}
void gcspy_close(gcspy *g) { (void)g; }
gcspy_space *gcspy_add_space(gcspy *g, const char *n, const void *b, uint64_t t, uint32_t m) { (void)g, (void)n, (void)b, (void)t, (void)m; return NULL; }
gcspy_space *gcspy_add_named_space(gcspy *g, const char *n, int k, uint32_t m) { (void)g, (void)n, (void)k, (void)m; return NULL; }
void gcspy_remove_space(gcspy *g, gcspy_space *s) { (void)g, (void)s; }
gcspy_stream *gcspy_add_stream(gcspy *g, gcspy_space *s, const char *n, int64_t m, int p, uint32_t c) { (void)g, (void)s, (void)n, (void)m, (void)p, (void)c; return NULL; }
gcspy_stream *gcspy_add_enum(gcspy *g, gcspy_space *s, const char *n, const char *const *k, int c) { (void)g, (void)s, (void)n, (void)k, (void)c; return NULL; }
void gcspy_percent_of(gcspy *g, gcspy_stream *t, const gcspy_stream *w) { (void)g, (void)t, (void)w; }
int gcspy_begin_wanted(gcspy *g, int kind, uint64_t number) { (void)g, (void)kind, (void)number; return 0; }
void gcspy_end(gcspy *g) { (void)g; }
int gcspy_wants(const gcspy *g, const gcspy_space *s) { (void)g, (void)s; return 0; }
void gcspy_cause(gcspy *g, const char *t) { (void)g, (void)t; }
void gcspy_clock(gcspy *g, const char *n, uint64_t v) { (void)g, (void)n, (void)v; }
void gcspy_reset(gcspy *g, gcspy_space *s) { (void)g, (void)s; }
void gcspy_resize(gcspy_space *s, const void *b, uint32_t t) { (void)s, (void)b, (void)t; }
void gcspy_name(gcspy *g, gcspy_space *s, uint32_t i, const char *t) { (void)g, (void)s, (void)i, (void)t; }
void gcspy_extent(gcspy *g, gcspy_space *s, uint32_t i, const void *b, uint64_t n) { (void)g, (void)s, (void)i, (void)b, (void)n; }
void gcspy_summary(gcspy *g, gcspy_stream *t, const int64_t *v) { (void)g, (void)t, (void)v; }
int gcspy_asked(const gcspy *g, uint64_t *l) { (void)g, (void)l; return 0; }
#endif
int gcspy_begin_event(gcspy *g, int kind) { return gcspy_begin(g, kind); }
int64_t *gcspy_value_array(const gcspy *g, const gcspy_stream *t) { return t ? gcspy_values(g, t) : NULL; }
uint8_t *gcspy_control_array(const gcspy *g, const gcspy_space *s) { return s ? gcspy_control(g, s) : NULL; }
#ifdef __cplusplus
}
#endif
#endif /* GCSPY_IMPLEMENTATION */
#endif /* GCSPY_H */
