/* Exact collections of the Boehm collector, for GCspy: preloaded, it publishes each start and each end of a collection by gcspy.h.
 *
 *     cc -O2 -shared -fPIC "$(gcspy --include-dir)/gcspy_boehm.c" -o gcspy-boehm.so
 *     LD_PRELOAD=$PWD/gcspy-boehm.so guile …
 *     gcspy attach PID --driver published --driver boehm --share-events
 *
 * A pause and a step hold the program in its collector. It replaces a handler of collections that was set before, and does nothing in a
 * program without libgc, or after the program has set a handler of its own.
 *
 * Source: bdwgc 8.2, gc.h: GC_set_on_collection_event, GC_get_prof_stats_unsafe; the allocator's lock is held at both events.
 */
#define _GNU_SOURCE
#define GCSPY_IMPLEMENTATION
#include "gcspy.h"
#include <dlfcn.h>
#include <pthread.h>

enum { EVENT_START = 0, EVENT_END = 5, STATS = 12 }; /* GC_EVENT_START, GC_EVENT_END, words of struct GC_prof_stats_s */

static size_t (*prof_stats)(size_t *, size_t);
static gcspy spy;
static gcspy_space *space;
static gcspy_stream *bytes;

static void publish(int kind) {
    static const char *const names[] = {"heap", "free", "unmapped", "allocated since the last collection", "reclaimed since the last collection"};
    static const int words[] = {0, 1, 2, 3, 8};
    size_t stats[STATS] = {0};
    if (!gcspy_begin(&spy, kind)) return;
    gcspy_resize(space, NULL, 5);
    gcspy_reset(&spy, space);
    if (prof_stats) prof_stats(stats, sizeof stats);
    for (uint32_t tile = 0; tile < 5; tile++) {
        gcspy_name(&spy, space, tile, names[tile]);
        gcspy_values(&spy, bytes)[tile] = prof_stats ? (int64_t)stats[words[tile]] : GCSPY_UNKNOWN;
    }
    gcspy_clock(&spy, "collections", stats[6]);
    gcspy_end(&spy);
}

static void happened(int event) {
    if (event == EVENT_START || event == EVENT_END) publish(event == EVENT_END);
}

static void open_spy(void) {
    static const char *const kinds[] = {"GC start", "GC end"};
    if (gcspy_open(&spy, "Boehm GC", kinds, 2, GCSPY_CAN_WAIT, 1 << 16)) return;
    space = gcspy_add_named_space(&spy, "Collector", GCSPY_TEXTS, 8);
    bytes = gcspy_add_stream(&spy, space, "Bytes", 0, GCSPY_MAX_VAR, 0x3250c8);
}

__attribute__((constructor)) static void loaded(void) {
    void (*set)(void (*)(int));
    *(void **)&set = dlsym(RTLD_DEFAULT, "GC_set_on_collection_event");
    *(void **)&prof_stats = dlsym(RTLD_DEFAULT, "GC_get_prof_stats_unsafe");
    if (!set) return;
    open_spy();
    pthread_atfork(NULL, NULL, open_spy);
    set(happened);
}
