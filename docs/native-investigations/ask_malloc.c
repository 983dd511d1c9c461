/* A library to preload, for an independent number: on SIGUSR2 the program writes what its malloc says of itself, calls malloc_trim,
 * and writes how many anonymous bytes left its resident set, to the file that ASK_MALLOC names. Send it only while the program waits:
 * a handler must not call malloc while malloc works.
 *
 * gcc -shared -fPIC -o ask_malloc.so ask_malloc.c; LD_PRELOAD=./ask_malloc.so ASK_MALLOC=answer PROGRAM */
#define _GNU_SOURCE
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static long anonymous_pages(void)
{
    long all = 0, resident = 0, of_files = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%ld %ld %ld", &all, &resident, &of_files) != 3)
        resident = of_files = 0;
    if (file)
        fclose(file);
    return resident - of_files;
}

static FILE *answers;

static void answer(int signal)
{
    (void)signal;
    malloc_info(0, answers);
    fflush(answers);
    long before = anonymous_pages();
    malloc_trim(0);
    fprintf(answers, "trimming returned %ld bytes\n", (before - anonymous_pages()) * 4096);
    fflush(answers);
}

__attribute__((constructor)) static void prepare(void)
{
    static char buffer[1 << 16]; /* or to write would allocate, and join the chunks of fast bins */
    struct sigaction action = {.sa_handler = answer, .sa_flags = SA_RESTART};
    const char *path = getenv("ASK_MALLOC");
    answers = path ? fopen(path, "w") : 0;
    if (!answers || setvbuf(answers, buffer, _IOFBF, sizeof buffer))
        return;
    sigaction(SIGUSR2, &action, 0);
}
