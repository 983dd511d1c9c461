/* A program's tcmalloc (gperftools), shown in GCspy: preloaded, it asks tcmalloc's own statistics at each tick of gcspy's clock.
 *
 *     cc -O2 -shared -fPIC "$(gcspy --include-dir)/gcspy_tcmalloc.c" -o gcspy-tcmalloc.so -pthread
 *     LD_PRELOAD="libtcmalloc_minimal.so.4 $PWD/gcspy-tcmalloc.so" program
 *
 * Of a program that runs, "gcspy attach PID --driver published --inject allocator" loads it. A thread of its own asks, so no thread of
 * the program waits; tcmalloc holds its own lock while it counts. In a program without
 * tcmalloc, or with Google's of 2020 and later, which has no functions for C, it does nothing.
 *
 * Source: gperftools/malloc_extension_c.h, MallocExtension_GetStats: the text that it makes, of a buffer of 10,000 bytes or more.
 */
#define _GNU_SOURCE
#include "gcspy_allocator.h"
#include <dlfcn.h>
#include <string.h>

enum { MOST_PARTS = 16, MOST_CLASSES = 256, MOST_RUNS = 256, MOST_TEXT = 1 << 17 };

static void (*stats)(char *, int);
static gcspy_space *parts, *classes, *runs;
static gcspy_stream *part_bytes, *class_objects, *class_bytes, *run_count, *run_bytes;
static char text[MOST_TEXT];

/* One row of a table: the text of a tile and two numbers of it. */
struct row { char name[GCSPY_TEXT]; int64_t first, second; };
static struct row part[MOST_PARTS], class[MOST_CLASSES], run[MOST_RUNS];
static unsigned part_count, class_count, run_rows;
static int64_t page_bytes;

static void add(struct row *rows, unsigned *count, unsigned most, const char *name, size_t length, int64_t first, int64_t second) {
    if (*count == most) return;
    struct row *row = rows + (*count)++;
    snprintf(row->name, sizeof row->name, "%.*s", (int)length, name);
    row->first = first, row->second = second;
}

static void read_line(const char *line, size_t length) {
    char copy[200], name[GCSPY_TEXT], label[100];
    long long first, second;
    snprintf(copy, sizeof copy, "%.*s", (int)length, line);
    /* "MALLOC: +  483328 (    0.5 MiB) Bytes in page heap freelist"; lines with "=" are sums of the others. */
    if ((sscanf(copy, "MALLOC: %lld ( %*f MiB) Bytes %99[^\n]", &first, label) == 2) ||
        (sscanf(copy, "MALLOC: + %lld ( %*f MiB) Bytes %99[^\n]", &first, label) == 2))
        add(part, &part_count, MOST_PARTS, label, strlen(label), first, 0);
    else if (strstr(copy, "Tcmalloc page size") && sscanf(copy, "MALLOC: %lld", &first) == 1)
        page_bytes = first;
    else if (sscanf(copy, "class %*d [ %lld bytes ] : %lld objs", &first, &second) == 2) {
        int made = snprintf(name, sizeof name, "%lld bytes", first);
        add(class, &class_count, MOST_CLASSES, name, (size_t)made, second, first * second);
    } else if (sscanf(copy, "%lld pages * %lld spans", &first, &second) == 2) {
        int made = snprintf(name, sizeof name, "%lld pages", first);
        add(run, &run_rows, MOST_RUNS, name, (size_t)made, second, first * second);
    }
}

static void show(gcspy_space *space, const struct row *rows, unsigned count, gcspy_stream *one, gcspy_stream *other, int64_t factor) {
    gcspy_resize(space, NULL, count);
    gcspy_reset(&spy, space);
    for (unsigned tile = 0; tile < count; tile++) {
        gcspy_name(&spy, space, tile, rows[tile].name);
        gcspy_values(&spy, one)[tile] = rows[tile].first;
        if (other) gcspy_values(&spy, other)[tile] = factor ? rows[tile].second * factor : GCSPY_UNKNOWN;
    }
}

static void publish(void) {
    if (!gcspy_begin(&spy, 0)) return;
    memset(text, 0, sizeof text);
    stats(text, sizeof text);
    part_count = class_count = run_rows = 0, page_bytes = 0;
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) read_line(line, (size_t)(end - line));
    show(parts, part, part_count, part_bytes, NULL, 0);
    show(classes, class, class_count, class_objects, class_bytes, 1);
    show(runs, run, run_rows, run_count, run_bytes, page_bytes);
    gcspy_end(&spy);
}

static void open_spy(void) {
    static const char *const kinds[] = {"Statistics"};
    if (gcspy_open(&spy, "tcmalloc", kinds, 1, 0, 1 << 20)) return;
    parts = gcspy_add_named_space(&spy, "Memory", GCSPY_TEXTS, MOST_PARTS);
    part_bytes = gcspy_add_stream(&spy, parts, "Bytes", 0, GCSPY_MAX_VAR, 0xc83c32);
    classes = gcspy_add_named_space(&spy, "Free objects", GCSPY_TEXTS, MOST_CLASSES);
    class_bytes = gcspy_add_stream(&spy, classes, "Bytes", 0, GCSPY_MAX_VAR, 0x3250c8);
    class_objects = gcspy_add_stream(&spy, classes, "Objects", 0, GCSPY_MAX_VAR, 0x886644);
    runs = gcspy_add_named_space(&spy, "Page heap", GCSPY_TEXTS, MOST_RUNS);
    run_bytes = gcspy_add_stream(&spy, runs, "Bytes", 0, GCSPY_MAX_VAR, 0x668844);
    run_count = gcspy_add_stream(&spy, runs, "Runs", 0, GCSPY_MAX_VAR, 0);
    gcspy_stream *in_bytes[] = {part_bytes, class_bytes, run_bytes};
    count_in_bytes(in_bytes, sizeof in_bytes / sizeof *in_bytes);
    if (classes) snprintf(classes->about, sizeof classes->about, "Freed objects in caches of threads, the transfer cache and the central one, by size");
    if (runs) snprintf(runs->about, sizeof runs->about, "Free runs of pages by length; longer ones than 128 are in \"Memory\" only");
}

__attribute__((constructor)) static void loaded(void) {
    *(void **)&stats = dlsym(RTLD_DEFAULT, "MallocExtension_GetStats");
    if (!stats) return;
    publish_in_background();
}
