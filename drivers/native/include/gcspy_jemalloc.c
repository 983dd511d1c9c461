/* A program's jemalloc, shown in GCspy: preloaded, it asks jemalloc's own statistics at each tick of gcspy's clock.
 *
 *     cc -O2 -shared -fPIC "$(gcspy --include-dir)/gcspy_jemalloc.c" -o gcspy-jemalloc.so -pthread
 *     LD_PRELOAD=$PWD/gcspy-jemalloc.so redis-server
 *
 * A thread of its own asks, so no thread of the program ever waits, and none is asked while it is in the allocator. Of a program that
 * runs, "gcspy attach PID --driver published --inject allocator" loads it. In a program without jemalloc it does nothing.
 *
 * Source: jemalloc(3), stats.arenas.<i>.bins.<j>, arenas.bin.<j>, MALLCTL_ARENAS_ALL.
 */
#define _GNU_SOURCE
#include "gcspy_allocator.h"
#include <dlfcn.h>

enum { MOST_BINS = 64, MOST_ARENAS = 256, ALL_ARENAS = 4096 };

static int (*ctl)(const char *, void *, size_t *, void *, size_t);
static gcspy_space *bins, *arenas;
static gcspy_stream *held, *room, *slabs, *region_bytes, *small, *large, *dirty, *muzzy, *resident, *mapped;

/* Read one number, of 64 or 32 bits; GCSPY_UNKNOWN where jemalloc does not say. */
static int64_t asked_for(const char *name) {
    uint64_t value = 0;
    uint32_t half = 0;
    size_t size = sizeof value;
    if (!ctl(name, &value, &size, NULL, 0) && size == sizeof value) return (int64_t)value;
    size = sizeof half;
    return !ctl(name, &half, &size, NULL, 0) && size == sizeof half ? (int64_t)half : GCSPY_UNKNOWN;
}

static int64_t of_one(const char *form, unsigned one, unsigned other) {
    char name[96];
    snprintf(name, sizeof name, form, one, other);
    return asked_for(name);
}

static int64_t product(int64_t one, int64_t other) {
    return one == GCSPY_UNKNOWN || other == GCSPY_UNKNOWN ? GCSPY_UNKNOWN : one * other;
}

static void show_bins(unsigned count) {
    char name[GCSPY_TEXT];
    gcspy_resize(bins, NULL, count);
    gcspy_reset(&spy, bins);
    for (unsigned bin = 0; bin < count; bin++) {
        int64_t bytes = of_one("arenas.bin.%u.size", bin, 0), of_slab = of_one("arenas.bin.%u.nregs", bin, 0);
        int64_t regions = of_one("stats.arenas.%u.bins.%u.curregs", ALL_ARENAS, bin);
        int64_t now = of_one("stats.arenas.%u.bins.%u.curslabs", ALL_ARENAS, bin);
        snprintf(name, sizeof name, "%lld bytes", (long long)bytes);
        gcspy_name(&spy, bins, bin, name);
        gcspy_values(&spy, region_bytes)[bin] = bytes;
        gcspy_values(&spy, slabs)[bin] = now;
        gcspy_values(&spy, held)[bin] = product(regions, bytes);
        gcspy_values(&spy, room)[bin] = product(product(now, of_slab), bytes);
    }
}

static void show_arenas(unsigned count) {
    char name[GCSPY_TEXT];
    int64_t page = asked_for("arenas.page");
    gcspy_resize(arenas, NULL, count);
    gcspy_reset(&spy, arenas);
    for (unsigned arena = 0; arena < count; arena++) {
        snprintf(name, sizeof name, "arena %u", arena);
        gcspy_name(&spy, arenas, arena, name);
        gcspy_values(&spy, small)[arena] = of_one("stats.arenas.%u.small.allocated", arena, 0);
        if (gcspy_values(&spy, small)[arena] == GCSPY_UNKNOWN) gcspy_control(&spy, arenas)[arena] = GCSPY_UNUSED; /* it was never used */
        gcspy_values(&spy, large)[arena] = of_one("stats.arenas.%u.large.allocated", arena, 0);
        gcspy_values(&spy, dirty)[arena] = product(of_one("stats.arenas.%u.pdirty", arena, 0), page);
        gcspy_values(&spy, muzzy)[arena] = product(of_one("stats.arenas.%u.pmuzzy", arena, 0), page);
        gcspy_values(&spy, resident)[arena] = of_one("stats.arenas.%u.resident", arena, 0);
        gcspy_values(&spy, mapped)[arena] = of_one("stats.arenas.%u.mapped", arena, 0);
    }
}

static void publish(void) {
    uint64_t epoch = 1;
    size_t size = sizeof epoch;
    int64_t bin_count = asked_for("arenas.nbins"), arena_count = asked_for("arenas.narenas");
    if (!gcspy_begin(&spy, 0)) return;
    ctl("epoch", &epoch, &size, &epoch, size);
    show_bins(bin_count > 0 && bin_count < MOST_BINS ? (unsigned)bin_count : 0);
    show_arenas(arena_count > 0 && arena_count < MOST_ARENAS ? (unsigned)arena_count : 0);
    snprintf(bins->info, sizeof bins->info, "allocated %lld, active %lld, resident %lld, retained %lld bytes",
             (long long)asked_for("stats.allocated"), (long long)asked_for("stats.active"), (long long)asked_for("stats.resident"), (long long)asked_for("stats.retained"));
    gcspy_end(&spy);
}

static void open_spy(void) {
    static const char *const kinds[] = {"Statistics"};
    if (gcspy_open(&spy, "jemalloc", kinds, 1, 0, 1 << 20)) return;
    bins = gcspy_add_named_space(&spy, "Bins", GCSPY_TEXTS, MOST_BINS);
    held = gcspy_add_stream(&spy, bins, "Used", 0, GCSPY_PLAIN, 0xc83c32);
    room = gcspy_add_stream(&spy, bins, "Slabs' bytes", 0, GCSPY_MAX_VAR, 0x3250c8);
    slabs = gcspy_add_stream(&spy, bins, "Slabs", 0, GCSPY_MAX_VAR, 0);
    region_bytes = gcspy_add_stream(&spy, bins, "Size", 0, GCSPY_MAX_VAR, 0);
    gcspy_percent_of(&spy, held, room);
    arenas = gcspy_add_named_space(&spy, "Arenas", GCSPY_TEXTS, MOST_ARENAS);
    small = gcspy_add_stream(&spy, arenas, "Small", 0, GCSPY_MAX_VAR, 0xc83c32);
    large = gcspy_add_stream(&spy, arenas, "Large", 0, GCSPY_MAX_VAR, 0xc87832);
    dirty = gcspy_add_stream(&spy, arenas, "Dirty", 0, GCSPY_MAX_VAR, 0x886644);
    muzzy = gcspy_add_stream(&spy, arenas, "Muzzy", 0, GCSPY_MAX_VAR, 0x668844);
    resident = gcspy_add_stream(&spy, arenas, "Resident", 0, GCSPY_MAX_VAR, 0);
    mapped = gcspy_add_stream(&spy, arenas, "Mapped", 0, GCSPY_MAX_VAR, 0);
    gcspy_stream *in_bytes[] = {held, room, region_bytes, small, large, dirty, muzzy, resident, mapped};
    count_in_bytes(in_bytes, sizeof in_bytes / sizeof *in_bytes);
}

__attribute__((constructor)) static void loaded(void) {
    *(void **)&ctl = dlsym(RTLD_DEFAULT, "mallctl");
    if (!ctl) return;
    publish_in_background();
}
