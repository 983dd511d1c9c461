/* A slab allocator that shows itself in GCspy: one slab of equal cells, a bit each. What gcspy.h needs is marked.
 *
 *     cc -O2 -I"$(gcspy --include-dir)" slab.c -o slab && ./slab
 *
 * It allocates and frees at random for ever; with an argument it does one round for each line of its input, and prints how many
 * cells are in use then, which is how it is tested.
 */
#define GCSPY_IMPLEMENTATION /* gcspy */
#include "gcspy.h" /* gcspy */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CELL_BYTES = 64, CELLS = 1 << 16, TILE_BYTES = 4096 };
enum { ROUND, SWEEP }; /* gcspy */

static struct {
    char *memory;
    unsigned char used[CELLS];
    long in_use, allocations, next;
} slab;

static gcspy spy; /* gcspy */
static gcspy_space *cells; /* gcspy */
static gcspy_stream *bytes, *count; /* gcspy */

static void show_slab(int flags) { /* gcspy */
    static const char *const kinds[] = {"Round", "Sweep"}; /* gcspy */
    gcspy_open(&spy, "slab", kinds, 2, flags, 0); /* gcspy */
    cells = gcspy_add_space(&spy, "Slab", slab.memory, TILE_BYTES, CELLS * CELL_BYTES / TILE_BYTES); /* gcspy */
    bytes = gcspy_add_stream(&spy, cells, "Used", TILE_BYTES, GCSPY_PERCENT, 0xc83c32); /* gcspy */
    count = gcspy_add_stream(&spy, cells, "Cells", TILE_BYTES / CELL_BYTES, GCSPY_PLAIN, 0x3250c8); /* gcspy */
} /* gcspy */

static void publish(int kind) { /* gcspy */
    if (!gcspy_begin(&spy, kind)) return; /* gcspy */
    gcspy_reset(&spy, cells); /* gcspy */
    for (long cell = 0; cell < CELLS; cell++) { /* gcspy */
        if (!slab.used[cell]) continue; /* gcspy */
        gcspy_spread(&spy, cells, bytes, slab.memory + cell * CELL_BYTES, CELL_BYTES); /* gcspy */
        gcspy_count(&spy, cells, count, slab.memory + cell * CELL_BYTES, 1); /* gcspy */
    } /* gcspy */
    gcspy_clock(&spy, "allocations", (uint64_t)slab.allocations); /* gcspy */
    gcspy_end(&spy); /* gcspy */
} /* gcspy */

static void *slab_alloc(void) {
    for (long tried = 0; tried < CELLS; tried++) {
        long cell = slab.next = (slab.next + 1) % CELLS;
        if (slab.used[cell]) continue;
        slab.used[cell] = 1;
        slab.in_use++;
        slab.allocations++;
        return slab.memory + cell * CELL_BYTES;
    }
    return NULL;
}

static void slab_free(void *at) {
    slab.used[((char *)at - slab.memory) / CELL_BYTES] = 0;
    slab.in_use--;
}

static unsigned long dice = 1;

static unsigned long rolled(void) {
    dice = dice * 6364136223846793005u + 1;
    return dice >> 33;
}

/* Allocate some cells, and free others, more of them at the end of the slab. */
static void work(void) {
    for (int step = 0; step < 2000; step++) {
        void *made = slab_alloc();
        if (made) memset(made, 1, CELL_BYTES);
        for (int tried = 0; tried < 2; tried++) {
            unsigned long low = rolled() % CELLS, other = rolled() % CELLS, victim = low > other ? low : other;
            if (slab.used[victim] && rolled() % 4) slab_free(slab.memory + victim * CELL_BYTES);
        }
    }
}

int main(int arguments, char **argument) {
    char line[80];
    slab.memory = (char *)malloc((size_t)CELLS * CELL_BYTES);
    if (!slab.memory) return 1;
    show_slab(arguments > 1 && !strcmp(argument[1], "may-wait") ? GCSPY_CAN_WAIT : 0); /* gcspy */
    for (long round = 1;; round++) {
        work();
        publish(ROUND); /* gcspy */
        if (round % 100 == 0) {
            for (long cell = 0; cell < CELLS / 2; cell++)
                if (slab.used[cell]) slab_free(slab.memory + cell * CELL_BYTES);
            publish(SWEEP); /* gcspy */
        }
        if (arguments > 1) {
            printf("%ld %ld\n", round, slab.in_use);
            fflush(stdout);
            if (!fgets(line, sizeof line, stdin)) return 0;
        } else
            usleep(20000);
    }
}
