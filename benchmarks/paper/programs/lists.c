/* Chunks of 24 bytes, freed from left to right and taken again, twice with lists that are last in, first out, and twice from one large chunk: lists. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNKS = 400000, STEPS = 60, MICROSECONDS = 80000 };

static void *held[CHUNKS];

static void take_all(void)
{
    for (int i = 0; i < CHUNKS; i++) {
        if (i % (CHUNKS / STEPS) == 0)
            usleep(MICROSECONDS);
        held[i] = malloc(24);
        memset(held[i], 1, 24);
    }
    usleep(4 * MICROSECONDS);
}

static int by_address(const void *left, const void *right)
{
    char *one = *(char **)left, *other = *(char **)right;
    return (one > other) - (one < other);
}

static void free_all(void)
{
    qsort(held, CHUNKS, sizeof *held, by_address); /* as a sweep meets them */
    for (int i = 0; i < CHUNKS; i++)
        free(held[i]);
}

int main(void)
{
    if (write(1, "ready\n", 6) != 6 || getchar() == EOF)
        return 4;
    mallopt(M_TRIM_THRESHOLD, 1 << 30); /* the heap stays as large as it was */
    take_all();
    for (int round = 0; round < 4; round++) {
        if (round == 2)
            mallopt(M_MXFAST, 0); /* from now on free neighbours become one chunk */
        free_all();
        take_all();
    }
    if (write(1, "done\n", 5) != 5)
        return 4;
    getchar();
}
