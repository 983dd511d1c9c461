/* Two threads, of which each holds 1,000 blocks of 2,560 bytes and allocates a large one again and again. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *held[2][1000];

static void *work(void *row)
{
    for (int i = 0; i < 1000; i++)
        ((void **)row)[i] = malloc(2560);
    for (;;) {
        char *volatile large = malloc(300000);
        large[0] = 1;
        free(large);
        usleep(1000);
    }
    return 0;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, work, held[0]);
    work(held[1]);
}
