/* A program for tests of gcspy.h: does what each line of its input says, and answers with a line. */
#define GCSPY_IMPLEMENTATION
#include "gcspy.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

enum { TILES = 64 };

static gcspy spy;
static gcspy_space *space, *extra;
static gcspy_stream *number, *twice;

/* All values of an event follow from one number. */
static void event(int kind, int64_t value) {
    if (!gcspy_begin(&spy, kind)) return;
    gcspy_reset(&spy, space);
    for (uint32_t tile = 0; tile < space->tiles; tile++) {
        gcspy_values(&spy, number)[tile] = value;
        gcspy_values(&spy, twice)[tile] = 2 * value;
    }
    gcspy_clock(&spy, "number", (uint64_t)value);
    gcspy_cause(&spy, value % 2 ? "odd" : "even");
    gcspy_end(&spy);
}

static void open_spy(int flags) {
    static const char *const kinds[] = {"First", "Second"};
    if (gcspy_open(&spy, "tested", kinds, 2, flags, 1 << 20)) exit(3);
    space = gcspy_add_space(&spy, "Numbers", (void *)0x100000, 4096, TILES);
    number = gcspy_add_stream(&spy, space, "Number", 1 << 30, GCSPY_PLAIN, 0x804020);
    twice = gcspy_add_stream(&spy, space, "Twice", 1ll << 40, GCSPY_PLAIN, 0);
}

int main(int arguments, char **argument) {
    char line[80];
    long value;
    setvbuf(stdout, NULL, _IOLBF, 0);
    open_spy(arguments > 1 ? atoi(argument[1]) : 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "written %ld", &value) == 1) { /* as if somebody looked */
            spy.control->period[0] = 1;
            spy.control->life = gcspy_now();
            event(0, value);
            spy.control->period[0] = 0;
            spy.segment->counts[0] = 0; /* nor is it counted */
        } else if (sscanf(line, "first %ld", &value) == 1) event(0, value);
        else if (sscanf(line, "second %ld", &value) == 1) event(1, value);
        else if (sscanf(line, "spin %ld", &value) == 1)
            for (long at = 1; at <= value; at++) event(0, at % 1000000);
        else if (sscanf(line, "tiles %ld", &value) == 1) {
            if (gcspy_begin(&spy, 0)) {
                gcspy_resize(space, (void *)0x100000, (uint32_t)value);
                gcspy_reset(&spy, space);
                gcspy_end(&spy);
            }
        } else if (sscanf(line, "odd %ld", &value) == 1) { /* a writer that dies in the middle */
            if (gcspy_begin(&spy, 0)) gcspy_values(&spy, number)[0] = value;
        } else if (sscanf(line, "unknown %ld", &value) == 1) {
            if (gcspy_begin(&spy, 0)) {
                gcspy_reset(&spy, space);
                gcspy_values(&spy, number)[value] = GCSPY_UNKNOWN;
                gcspy_values(&spy, twice)[value] = -1;
                gcspy_control(&spy, space)[value] = 255;
                int64_t whole = 12345;
                gcspy_summary(&spy, number, &whole);
                gcspy_end(&spy);
            }
        } else if (sscanf(line, "add %ld", &value) == 1) {
            static const char *const names[] = {"free", "small", "large"};
            extra = gcspy_add_named_space(&spy, "Extra", GCSPY_TEXTS, 8);
            gcspy_add_enum(&spy, extra, "Kind", names, 3);
        } else if (sscanf(line, "remove %ld", &value) == 1) gcspy_remove_space(&spy, extra);
        else if (sscanf(line, "fork %ld", &value) == 1) {
            pid_t child = fork();
            if (!child) {
                event(0, value);
                gcspy_add_space(&spy, "of the child", NULL, 1, 1);
                gcspy_count(&spy, space, number, (void *)0x100000, 1);
                pause();
            }
            printf("%d\n", (int)child);
            continue;
        } else if (sscanf(line, "close %ld", &value) == 1) gcspy_close(&spy);
        else if (sscanf(line, "reopen %ld", &value) == 1) open_spy((int)value);
        else if (sscanf(line, "scribble %ld", &value) == 1) ((volatile uint32_t *)spy.segment)[value] = 0xfffffff1u;
        else puts("what?");
        printf("%llu\n", (unsigned long long)(spy.segment ? spy.segment->counts[0] : 0));
    }
    return 0;
}
