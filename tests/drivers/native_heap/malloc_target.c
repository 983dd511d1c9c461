/* A program with a heap of a given size by several threads, which says of it what malloc says.
 *
 * malloc_target THREADS BYTES still|churn FOLDER. Commands are lines on standard input, each answered by a line:
 *   info      malloc_info to FOLDER/info, mallinfo2 to FOLDER/mallinfo (churning threads wait meanwhile)
 *   live      the chunks that the program holds to FOLDER/live: pairs of address and usable bytes
 *   hold, go  churning threads wait, or continue
 *   trim      malloc_trim(0); the answer has the resident bytes before and after
 *   fork      a child process that waits
 *   alive     the number of operations so far */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct info { size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost; };
#ifdef STATIC
#define find_mallinfo2() ((struct info (*)(void))mallinfo2)
#else
#define find_mallinfo2() ((struct info (*)(void))dlsym(RTLD_DEFAULT, "mallinfo2"))
#endif

enum { MOST_THREADS = 256 };
struct worker { void **held; size_t count; uint64_t seed; volatile int waits; pthread_t thread; };
static struct worker workers[MOST_THREADS];
static size_t bytes_each;
static int threads, churn;
static volatile int ready, hold;
static volatile unsigned long operations;

static uint64_t next_random(uint64_t *seed)
{
    uint64_t x = *seed;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return *seed = x;
}

static size_t pick(uint64_t *seed)
{
    unsigned dice = next_random(seed) % 100000;
    if (dice < 80000)
        return 1 + next_random(seed) % 512;
    if (dice < 97000)
        return 512 + next_random(seed) % 7680;
    if (dice < 99995)
        return 8192 + next_random(seed) % 92000;
    return 140000 + next_random(seed) % 400000;
}

static void *allocate(uint64_t *seed)
{
    size_t size = pick(seed);
    unsigned dice = next_random(seed) % 2000;
    char *made = dice == 0   ? memalign((size_t)32 << next_random(seed) % 8, size)
                 : dice == 1 && !(next_random(seed) % 32) ? memalign((size_t)32 << next_random(seed) % 10, 200000 + size)
                             : malloc(size);
    if (!made)
        _exit(3);
    made[0] = 1;
    return made;
}

static void *work(void *argument)
{
    struct worker *me = argument;
    size_t room = 1 << 16, got = 0;
    me->held = malloc(room * sizeof *me->held);
    while (got < bytes_each) {
        if (me->count == room)
            me->held = realloc(me->held, (room *= 2) * sizeof *me->held);
        void *made = allocate(&me->seed);
        got += malloc_usable_size(made) + 8;
        me->held[me->count++] = made;
    }
    for (size_t i = 0; i < me->count; i++)
        if (next_random(&me->seed) % 10 < 4)
            free(me->held[i]), me->held[i] = 0;
    for (size_t i = 0; i < me->count; i++)
        if (!me->held[i] && next_random(&me->seed) % 10 < 3)
            me->held[i] = allocate(&me->seed);
    size_t freed = 0;
    for (size_t i = 0; i < me->count && freed < 5000; i++)
        if (me->held[i] && malloc_usable_size(me->held[i]) <= 120)
            free(me->held[i]), me->held[i] = 0, freed++;
    __sync_fetch_and_add(&ready, 1);
    while (churn) {
        if (hold) {
            me->waits = 1;
            usleep(500);
            continue;
        }
        me->waits = 0;
        size_t i = next_random(&me->seed) % me->count;
        if (me->held[i])
            free(me->held[i]), me->held[i] = 0;
        else
            me->held[i] = allocate(&me->seed);
        operations++;
    }
    for (;;)
        pause();
    return 0;
}

static void hold_all(int wanted)
{
    hold = wanted;
    for (int i = 0; churn && i < threads; i++)
        while (workers[i].waits != wanted)
            usleep(200);
}

static long resident(void)
{
    char text[128];
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0, all = 0;
    static char buffer[256];
    setvbuf(file, buffer, _IOFBF, sizeof buffer);
    if (!fgets(text, sizeof text, file) || sscanf(text, "%ld %ld", &all, &pages) != 2)
        _exit(4);
    fclose(file);
    return pages * 4096;
}

static char info_buffer[1 << 16], live_buffer[1 << 16];

int main(int count, char **arguments)
{
    if (count < 5)
        return 2;
    threads = atoi(arguments[1]);
    churn = !strcmp(arguments[3], "churn");
    bytes_each = strtoull(arguments[2], 0, 0) / threads;
    char path[512];
    snprintf(path, sizeof path, "%s/info", arguments[4]);
    FILE *info = fopen(path, "w+");
    setvbuf(info, info_buffer, _IOFBF, sizeof info_buffer);
    snprintf(path, sizeof path, "%s/live", arguments[4]);
    FILE *live = fopen(path, "w+");
    setvbuf(live, live_buffer, _IOFBF, sizeof live_buffer);
    setvbuf(stdout, 0, _IONBF, 0);
    snprintf(path, sizeof path, "%s/mallinfo", arguments[4]);
    struct info (*mallinfo2_of)(void) = find_mallinfo2();
    for (int i = 1; i < threads; i++) {
        workers[i].seed = 88172645463325252ull + 7919 * i;
        pthread_create(&workers[i].thread, 0, work, &workers[i]);
    }
    workers[0].seed = 88172645463325252ull;
    if (churn)
        pthread_create(&workers[0].thread, 0, work, &workers[0]);
    else { /* The first thread works as well, in the main arena, and comes back. */
        struct worker *me = &workers[0];
        me->held = malloc((me->count = bytes_each / 700 + 16) * sizeof *me->held);
        for (size_t i = 0; i < me->count; i++)
            me->held[i] = allocate(&me->seed);
        for (size_t i = 0; i < me->count; i++)
            if (next_random(&me->seed) % 10 < 4)
                free(me->held[i]), me->held[i] = 0;
        __sync_fetch_and_add(&ready, 1);
    }
    while (ready < threads)
        usleep(1000);
    char line[64];
    int at = 0;
    if (write(1, "ready\n", 6) != 6)
        return 5;
    for (char c; read(0, &c, 1) == 1;) {
        if (c != '\n') {
            line[at++ % 63] = c;
            continue;
        }
        line[at] = 0;
        at = 0;
        char answer[128] = "done\n";
        if (!strcmp(line, "hold"))
            hold_all(1);
        else if (!strcmp(line, "go"))
            hold_all(0);
        else if (!strcmp(line, "info")) {
            rewind(info);
            if (ftruncate(fileno(info), 0))
                return 6;
            malloc_info(0, info);
            fflush(info);
            struct info all = {0};
            if (mallinfo2_of)
                all = mallinfo2_of();
            else {
                struct mallinfo old = mallinfo();
                all = (struct info){(unsigned)old.arena, (unsigned)old.ordblks, (unsigned)old.smblks, (unsigned)old.hblks, (unsigned)old.hblkhd, 0, (unsigned)old.fsmblks, (unsigned)old.uordblks, (unsigned)old.fordblks, (unsigned)old.keepcost};
            }
            snprintf(answer, sizeof answer, "%zu %zu %zu %zu %zu %zu %zu %zu %zu %zu\n", all.arena, all.ordblks, all.smblks, all.hblks, all.hblkhd, all.usmblks, all.fsmblks, all.uordblks, all.fordblks, all.keepcost);
        } else if (!strcmp(line, "live")) {
            rewind(live);
            if (ftruncate(fileno(live), 0))
                return 6;
            for (int i = 0; i < threads; i++)
                for (size_t k = 0; k < workers[i].count; k++)
                    if (workers[i].held[k]) {
                        uint64_t pair[2] = {(uintptr_t)workers[i].held[k], malloc_usable_size(workers[i].held[k])};
                        fwrite(pair, sizeof pair, 1, live);
                    }
            for (int i = 0; i < threads; i++) {
                uint64_t pair[2] = {(uintptr_t)workers[i].held, malloc_usable_size(workers[i].held)};
                fwrite(pair, sizeof pair, 1, live);
            }
            fflush(live);
        } else if (!strcmp(line, "trim")) {
            long before = resident();
            int gave = malloc_trim(0);
            snprintf(answer, sizeof answer, "%ld %ld %d\n", before, resident(), gave);
        } else if (!strcmp(line, "alive"))
            snprintf(answer, sizeof answer, "%lu\n", operations);
        if (write(1, answer, strlen(answer)) < 0)
            return 7;
    }
    return 0;
}
