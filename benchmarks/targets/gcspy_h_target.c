/* Events by gcspy.h that are only begun and ended, or that fill 4,096 tiles; prints nanoseconds of processor time for each. */
#define GCSPY_IMPLEMENTATION
#include "gcspy.h"
#include <stdio.h>
#include <stdlib.h>

enum { TILES = 4096 };

static double cpu_nanos(void) {
    long at[2] = {0, 0};
    syscall(SYS_clock_gettime, 3 /* CLOCK_THREAD_CPUTIME_ID */, at);
    return (double)at[0] * 1e9 + (double)at[1];
}

int main(void) {
    static const char *const kinds[] = {"Event"};
    char line[80];
    long events, fill;
    gcspy spy;
    gcspy_space *space;
    gcspy_stream *stream;
    if (gcspy_open(&spy, "measured", kinds, 1, 0, 0)) return 1;
    space = gcspy_add_space(&spy, "Tiles", NULL, 1, TILES);
    stream = gcspy_add_stream(&spy, space, "Value", TILES, GCSPY_PLAIN, 0);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin) && sscanf(line, "%ld %ld", &events, &fill) == 2) {
        double before = cpu_nanos();
        uint64_t passed = spy.segment->passed;
        long written = 0;
        for (long at = 0; at < events; at++) {
            if (!gcspy_begin(&spy, 0)) continue;
            if (fill) {
                gcspy_reset(&spy, space);
                for (int tile = 0; tile < TILES; tile++) gcspy_values(&spy, stream)[tile] = tile;
            }
            gcspy_end(&spy);
            written++;
        }
        printf("%.2f %ld %llu\n", (cpu_nanos() - before) / (double)events, written, (unsigned long long)(spy.segment->passed - passed));
    }
    return 0;
}
