/* A heap in which every second chunk stays for ever, and the others are freed and made again all the time.
 *
 * churn THREADS BYTES PAUSE FILE: each thread waits PAUSE microseconds (0: never) after 100 operations. The file
 * gets the chunks that stay: pairs of address and usable bytes. */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_THREADS = 64 };
struct worker { void **held; size_t count; uint64_t seed; pthread_t thread; };
static struct worker workers[MOST_THREADS];
static size_t bytes_each;
static unsigned pause_micros;
static volatile int ready, go;

static uint64_t next_random(uint64_t *seed)
{
    uint64_t x = *seed;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return *seed = x;
}

static void *allocate(uint64_t *seed)
{
    unsigned dice = next_random(seed) % 100;
    char *made = malloc(dice < 80 ? 16 + next_random(seed) % 500 : 500 + next_random(seed) % 8000);
    if (!made)
        _exit(3);
    made[0] = 1;
    return made;
}

static void *work(void *argument)
{
    struct worker *me = argument;
    size_t got = 0, room = bytes_each / 256 + 16;
    me->held = malloc(room * sizeof *me->held);
    while (got < bytes_each && me->count < room) {
        void *made = allocate(&me->seed);
        got += malloc_usable_size(made) + 8;
        me->held[me->count++] = made;
    }
    __sync_fetch_and_add(&ready, 1);
    while (!go)
        usleep(1000);
    for (unsigned long done = 1;; done++) {
        size_t i = next_random(&me->seed) % me->count | 1;
        if (i >= me->count)
            continue;
        if (me->held[i])
            free(me->held[i]), me->held[i] = 0;
        else
            me->held[i] = allocate(&me->seed);
        if (pause_micros && done % 100 == 0)
            usleep(pause_micros);
    }
    return 0;
}

int main(int count, char **arguments)
{
    int threads = count < 5 ? 0 : atoi(arguments[1]);
    if (threads < 1 || threads > MOST_THREADS)
        return 2;
    bytes_each = strtoull(arguments[2], 0, 0) / threads;
    pause_micros = atoi(arguments[3]);
    for (int i = 0; i < threads; i++) {
        workers[i].seed = 88172645463325252ull + 7919 * i;
        pthread_create(&workers[i].thread, 0, work, &workers[i]);
    }
    while (ready < threads)
        usleep(1000);
    FILE *file = fopen(arguments[4], "w");
    if (!file)
        return 4;
    for (int i = 0; i < threads; i++)
        for (size_t k = 0; k < workers[i].count; k += 2) {
            uint64_t pair[2] = {(uintptr_t)workers[i].held[k], malloc_usable_size(workers[i].held[k])};
            fwrite(pair, sizeof pair, 1, file);
        }
    fclose(file);
    go = 1;
    if (write(1, "ready\n", 6) != 6)
        return 5;
    for (;;)
        pause();
}
