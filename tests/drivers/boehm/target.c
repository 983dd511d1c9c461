/* A program with the Boehm collector, for tests: does what each line of its input says, and answers with a line. */
#include <gc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void **kept;
static size_t count, room;
static unsigned long dice = 1;

static unsigned long rolled(void) {
    dice = dice * 6364136223846793005ul + 1;
    return dice >> 33;
}

static void keep(size_t more) {
    for (size_t at = 0; at < more && count < room; at++) {
        size_t size = 1 + rolled() % 400;
        if (rolled() % 100 == 0) size = 5000 + rolled() % 20000;
        kept[count++] = rolled() % 2 ? GC_MALLOC_ATOMIC(size) : GC_MALLOC(size);
        if (rolled() % 50 == 0) kept[count - 1] = GC_MALLOC_UNCOLLECTABLE(size);
    }
}

int main(void) {
    char line[200], path[160];
    long value;
    GC_INIT();
    room = 4000000;
    kept = (void **)GC_MALLOC_UNCOLLECTABLE(room * sizeof *kept);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        struct GC_prof_stats_s stats;
        if (sscanf(line, "keep %ld", &value) == 1) keep((size_t)value);
        else if (sscanf(line, "drop %ld", &value) == 1) {
            for (size_t at = 0; at < count; at++)
                if (at % (size_t)value) kept[at] = NULL;
        } else if (!strncmp(line, "collect", 7)) GC_gcollect();
        else if (!strncmp(line, "unmap", 5)) GC_gcollect_and_unmap();
        else if (sscanf(line, "free %ld", &value) == 1) {
            for (long at = 0; at < value && count; at++) {
                if (kept[--count]) GC_FREE(kept[count]);
                kept[count] = NULL;
            }
        } else if (sscanf(line, "dump %150s", path) == 1) {
            /* The library writes to its standard output, which is a file meanwhile. */
            int before = dup(1);
            fflush(stdout);
            if (!freopen(path, "w", stdout)) return 1;
            GC_dump();
            fflush(stdout);
            dup2(before, 1);
            close(before);
        }
        GC_get_prof_stats(&stats, sizeof stats);
        printf("%zu %zu %zu %zu\n", (size_t)stats.heapsize_full, (size_t)stats.free_bytes_full, (size_t)stats.unmapped_bytes, (size_t)stats.gc_no);
        fflush(stdout);
    }
    return 0;
}
