/* What the libraries that show an allocator have in common (gcspy_jemalloc.c, gcspy_mimalloc.c, gcspy_tcmalloc.c): a thread of their
 * own that publishes at each tick of gcspy's clock. No thread of the program waits for it, and it handles no signal of the program.
 *
 * A source that includes it defines open_spy, which opens `spy` and adds its spaces, and publish, which writes one event; its
 * constructor calls publish_in_background once it has found the allocator.
 */
#ifndef GCSPY_ALLOCATOR_H
#define GCSPY_ALLOCATOR_H

#define GCSPY_IMPLEMENTATION
#include "gcspy.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

enum { REST_MICROS = 20000 };

static gcspy spy;
static void open_spy(void);
static void publish(void);

/* Give streams their unit; one that could not be added is NULL. */
static void count_in_bytes(gcspy_stream *const *streams, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (streams[i]) snprintf(streams[i]->suffix, sizeof streams[i]->suffix, " bytes");
}

static void *publish_at_ticks(void *nothing) {
    uint64_t last = 0;
    for (;;) {
        usleep(REST_MICROS);
        if (gcspy_asked(&spy, &last)) publish();
    }
    return nothing;
}

static void start_publishing(void) {
    pthread_t thread;
    sigset_t all, before;
    open_spy();
    if (!spy.segment) return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (!pthread_create(&thread, NULL, publish_at_ticks, NULL)) pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Publish from now on, and in a child after a fork: a server that forks into the background goes on there. */
static void publish_in_background(void) {
    pthread_atfork(NULL, NULL, start_publishing);
    start_publishing();
}

#endif
