/* A program's mimalloc, shown in GCspy: preloaded, each thread counts the pages of its own heap at each tick of gcspy's clock.
 *
 *     cc -O2 -shared -fPIC "$(gcspy --include-dir)/gcspy_mimalloc.c" -o gcspy-mimalloc.so -pthread
 *     LD_PRELOAD="libmimalloc.so.2 $PWD/gcspy-mimalloc.so" program
 *
 * Only its own thread may look at a heap, and only outside of its allocator's work. mimalloc calls a function from time to time at such a
 * point (mi_register_deferred_free), so a thread answers when it next allocates there; one that waits stays as it was last seen, and
 * says how many ticks ago. A program has one such function: do not load this into one that registers its own. Of a
 * program that runs, "gcspy attach PID --driver published --inject allocator" loads it. In a program without mimalloc, or one that does not export it, it does nothing.
 *
 * Not seen: heaps of mi_heap_new, pages of threads that have ended. Blocks that another thread freed count as used until their owner
 * takes them back.
 *
 * Source: mimalloc.h 2.0, mi_heap_visit_blocks, mi_heap_area_t.
 */
#define _GNU_SOURCE
#include "gcspy_allocator.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>

enum { MOST_SIZES = 96, MOST_SEATS = 256, LARGEST = 128 << 10, ANSWER_MICROS = 20000 };

struct area { void *blocks; size_t reserved, committed, used, block_size, full_block_size; }; /* mi_heap_area_t */
struct sum { uint64_t size, used, room, pages; };
struct seat {
    atomic_int taken; /* the thread's number; 0: free */
    pthread_mutex_t lock;
    unsigned answered; /* the tick that the sums are of; 0: none */
    unsigned count;
    struct sum sums[MOST_SIZES];
};

static void *(*default_heap)(void);
static bool (*visit)(const void *, bool, bool (*)(const void *, const struct area *, void *, size_t, void *), void *);
static struct seat seats[MOST_SEATS];
static __thread struct seat *mine __attribute__((tls_model("initial-exec")));
static pthread_key_t leaving;
static atomic_uint tick;
static gcspy_space *sizes, *threads;
static gcspy_stream *size_used, *size_room, *size_pages, *size_bytes, *thread_used, *thread_room, *thread_pages, *thread_age;

static void leave(void *seat) { atomic_store(&((struct seat *)seat)->taken, 0); }

static struct seat *sit_down(void) {
    for (unsigned i = 0; i < MOST_SEATS; i++) {
        int none = 0;
        if (!atomic_compare_exchange_strong(&seats[i].taken, &none, (int)syscall(SYS_gettid))) continue;
        seats[i].answered = 0;
        pthread_setspecific(leaving, &seats[i]);
        return &seats[i];
    }
    return NULL;
}

/* Return the sum of a size; 0 stands for all sizes that are larger than most. NULL: there are too many. */
static struct sum *sum_of(struct sum *sums, unsigned *count, uint64_t size) {
    for (unsigned i = 0; i < *count; i++)
        if (sums[i].size == size) return sums + i;
    if (*count == MOST_SIZES) return NULL;
    sums[*count] = (struct sum){size, 0, 0, 0};
    return sums + (*count)++;
}

static bool add(const void *heap, const struct area *area, void *block, size_t size, void *seat_of) {
    struct seat *seat = seat_of;
    struct sum *sum = sum_of(seat->sums, &seat->count, area->block_size > LARGEST ? 0 : area->block_size);
    (void)heap, (void)block, (void)size;
    if (!sum) return false;
    sum->used += area->used * area->block_size;
    sum->room += area->committed;
    sum->pages++;
    return true;
}

/* Called by mimalloc in a thread that allocates, while its heap is in order. */
static void answer(bool force, unsigned long long beat, void *nothing) {
    unsigned now = atomic_load_explicit(&tick, memory_order_relaxed);
    (void)force, (void)beat, (void)nothing;
    if (!now || (mine && mine->answered == now)) return;
    if (!mine && !(mine = sit_down())) return;
    if (pthread_mutex_trylock(&mine->lock)) return; /* it is being read: the next time */
    mine->count = 0;
    mine->answered = visit(default_heap(), false, add, mine) ? now : 0;
    pthread_mutex_unlock(&mine->lock);
}

static void show_sizes(const struct sum *sums, unsigned count) {
    char name[GCSPY_TEXT];
    gcspy_resize(sizes, NULL, count);
    gcspy_reset(&spy, sizes);
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof name, sums[i].size ? "%llu bytes" : "larger than 128 KiB", (unsigned long long)sums[i].size);
        gcspy_name(&spy, sizes, i, name);
        gcspy_values(&spy, size_bytes)[i] = sums[i].size ? (int64_t)sums[i].size : GCSPY_UNKNOWN;
        gcspy_values(&spy, size_used)[i] = (int64_t)sums[i].used;
        gcspy_values(&spy, size_room)[i] = (int64_t)sums[i].room;
        gcspy_values(&spy, size_pages)[i] = (int64_t)sums[i].pages;
    }
}

static void show_thread(unsigned tile, const struct seat *seat, unsigned now) {
    char name[GCSPY_TEXT];
    struct sum all = {0, 0, 0, 0};
    for (unsigned i = 0; i < seat->count; i++)
        all.used += seat->sums[i].used, all.room += seat->sums[i].room, all.pages += seat->sums[i].pages;
    snprintf(name, sizeof name, "thread %d", atomic_load(&seat->taken));
    gcspy_name(&spy, threads, tile, name);
    gcspy_values(&spy, thread_used)[tile] = seat->answered ? (int64_t)all.used : GCSPY_UNKNOWN;
    gcspy_values(&spy, thread_room)[tile] = seat->answered ? (int64_t)all.room : GCSPY_UNKNOWN;
    gcspy_values(&spy, thread_pages)[tile] = seat->answered ? (int64_t)all.pages : GCSPY_UNKNOWN;
    gcspy_values(&spy, thread_age)[tile] = seat->answered ? (int64_t)(now - seat->answered) : GCSPY_UNKNOWN;
}

static int by_size(const void *one, const void *other) {
    uint64_t a = ((const struct sum *)one)->size - 1, b = ((const struct sum *)other)->size - 1; /* 0, the larger ones, is last */
    return (a > b) - (a < b);
}

static void publish(void) {
    static struct seat copies[MOST_SEATS];
    static struct sum sums[MOST_SIZES];
    unsigned seated = 0, count = 0, fresh = 0, now = atomic_fetch_add(&tick, 1) + 1;
    usleep(ANSWER_MICROS);
    if (!gcspy_begin(&spy, 0)) return;
    for (unsigned i = 0; i < MOST_SEATS; i++) {
        if (!atomic_load(&seats[i].taken)) continue;
        pthread_mutex_lock(&seats[i].lock);
        memcpy(&copies[seated++], &seats[i], sizeof seats[i]);
        pthread_mutex_unlock(&seats[i].lock);
    }
    gcspy_resize(threads, NULL, seated);
    gcspy_reset(&spy, threads);
    for (unsigned i = 0; i < seated; i++) {
        fresh += copies[i].answered == now;
        show_thread(i, &copies[i], now);
        for (unsigned k = 0; copies[i].answered && k < copies[i].count; k++) {
            struct sum *sum = sum_of(sums, &count, copies[i].sums[k].size);
            if (!sum) continue;
            sum->used += copies[i].sums[k].used, sum->room += copies[i].sums[k].room, sum->pages += copies[i].sums[k].pages;
        }
    }
    qsort(sums, count, sizeof *sums, by_size);
    show_sizes(sums, count);
    snprintf(sizes->info, sizeof sizes->info, "%u of %u threads that allocated answered this tick; the others are as they were last seen", fresh, seated);
    gcspy_end(&spy);
}

static void free_seats(void) {
    for (unsigned i = 0; i < MOST_SEATS; i++) {
        atomic_store(&seats[i].taken, 0);
        pthread_mutex_init(&seats[i].lock, NULL);
    }
    mine = NULL;
}

static void open_spy(void) {
    static const char *const kinds[] = {"Count of pages"};
    free_seats(); /* those of before a fork, in a child */
    if (gcspy_open(&spy, "mimalloc", kinds, 1, 0, 1 << 20)) return;
    sizes = gcspy_add_named_space(&spy, "Block sizes", GCSPY_TEXTS, MOST_SIZES);
    size_used = gcspy_add_stream(&spy, sizes, "Used", 0, GCSPY_PLAIN, 0xc83c32);
    size_room = gcspy_add_stream(&spy, sizes, "Pages' bytes", 0, GCSPY_MAX_VAR, 0x3250c8);
    size_pages = gcspy_add_stream(&spy, sizes, "Pages", 0, GCSPY_MAX_VAR, 0);
    size_bytes = gcspy_add_stream(&spy, sizes, "Size", 0, GCSPY_MAX_VAR, 0);
    gcspy_percent_of(&spy, size_used, size_room);
    threads = gcspy_add_named_space(&spy, "Threads", GCSPY_TEXTS, MOST_SEATS);
    thread_used = gcspy_add_stream(&spy, threads, "Used", 0, GCSPY_PLAIN, 0xc83c32);
    thread_room = gcspy_add_stream(&spy, threads, "Pages' bytes", 0, GCSPY_MAX_VAR, 0x3250c8);
    thread_pages = gcspy_add_stream(&spy, threads, "Pages", 0, GCSPY_MAX_VAR, 0);
    thread_age = gcspy_add_stream(&spy, threads, "Age", 0, GCSPY_MAX_VAR, 0x888888);
    gcspy_percent_of(&spy, thread_used, thread_room);
    gcspy_stream *in_bytes[] = {size_used, size_room, size_bytes, thread_used, thread_room};
    count_in_bytes(in_bytes, sizeof in_bytes / sizeof *in_bytes);
}

__attribute__((constructor)) static void loaded(void) {
    void (*hook)(void (*)(bool, unsigned long long, void *), void *);
    *(void **)&hook = dlsym(RTLD_DEFAULT, "mi_register_deferred_free");
    *(void **)&visit = dlsym(RTLD_DEFAULT, "mi_heap_visit_blocks");
    *(void **)&default_heap = dlsym(RTLD_DEFAULT, "mi_heap_get_default");
    if (!hook || !visit || !default_heap || pthread_key_create(&leaving, leave)) return;
    publish_in_background();
    hook(answer, NULL);
}
