/* What an agent in a managed runtime calls: births and deaths of objects, types, places in the source. See writer.h.
 *
 * The agent finds these functions with dlsym. They may be called by any thread; none is called while another one of the same thread is. */
#define _GNU_SOURCE
#include "writer.h"

#define EXPORTED __attribute__((visibility("default")))
#define DOMAIN_OBJECTS 3ull

static struct thread *idle_thread(void) {
    struct thread *thread = writer_thread();
    if (thread == NULL || thread->busy) return NULL;
    thread->busy = 1;
    return thread;
}

/* Begin; returns why not, NULL: it has begun. */
EXPORTED const char *gcspy_runtime_begin(const char *folder, const char *stacks, int follow, const char *runtime);
EXPORTED const char *gcspy_runtime_begin(const char *folder, const char *stacks, int follow, const char *runtime) {
    return writer_start(folder, strcmp(stacks, "none") == 0 ? STACKS_NONE : STACKS_CALLER, follow, SEGMENT_OBJECTS | SEGMENT_RUNTIME, runtime);
}

EXPORTED void gcspy_runtime_type(uint32_t number, uint64_t bytes, const char *name);
EXPORTED void gcspy_runtime_type(uint32_t number, uint64_t bytes, const char *name) {
    struct thread *thread = idle_thread();
    if (thread == NULL) return;
    uint64_t words[2] = {bytes, 0};
    writer_meta(thread, META_TYPE, number, words, 2, name, NULL);
    writer_end(thread);
}

/* Whether a place in the source is new: then `gcspy_runtime_place` has to define it. */
EXPORTED int gcspy_runtime_is_new(uint64_t place);
EXPORTED int gcspy_runtime_is_new(uint64_t place) {
    uint32_t number;
    return writer_new_site(place ^ 0x5555, &number) != 0;
}

EXPORTED void gcspy_runtime_place(uint64_t place, uint64_t line, const char *function, const char *file);
EXPORTED void gcspy_runtime_place(uint64_t place, uint64_t line, const char *function, const char *file) {
    struct thread *thread = idle_thread();
    if (thread == NULL) return;
    uint64_t words[2] = {place, line};
    writer_meta(thread, META_FRAME, 0, words, 2, function, file);
    writer_end(thread);
}

/* The number of a stack of places, innermost first; all are defined. */
EXPORTED uint32_t gcspy_runtime_site(uint64_t key, const uint64_t *places, uint32_t count);
EXPORTED uint32_t gcspy_runtime_site(uint64_t key, const uint64_t *places, uint32_t count) {
    uint32_t site = 0;
    struct thread *thread = idle_thread();
    if (thread == NULL) return 0;
    if (writer_new_site(key, &site)) writer_meta(thread, META_SITE, site, places, count, NULL, NULL);
    writer_end(thread);
    return site;
}

EXPORTED void gcspy_runtime_born(uint64_t address, uint64_t size, uint32_t site, uint32_t type);
EXPORTED void gcspy_runtime_born(uint64_t address, uint64_t size, uint32_t site, uint32_t type) {
    struct thread *thread = writer_thread();
    if (thread == NULL || !writer_begin(thread, RECORD_ALLOCATE, address, size, 0, NULL)) return;
    uint64_t words[4] = {
        (address & 0xfffffffffff8ull) | RECORD_ALLOCATE | size << 48,
        site | (size >> 16 & 0xfffffff) << 32 | DOMAIN_OBJECTS << 60,
        (address & 0xfffffffffff8ull) | RECORD_OBJECT,
        site | (uint64_t)type << 32,
    };
    writer_put(thread, words, 4);
    writer_end(thread);
}

EXPORTED void gcspy_runtime_died(uint64_t address);
EXPORTED void gcspy_runtime_died(uint64_t address) {
    struct thread *thread = writer_thread();
    if (thread != NULL) writer_freed(thread, (const void *)address, FREE_BLOCK);
}

/* An object that a collection has moved: between its start and its end. */
EXPORTED void gcspy_runtime_moved(uint64_t from, uint64_t to);
EXPORTED void gcspy_runtime_moved(uint64_t from, uint64_t to) {
    struct thread *thread = idle_thread();
    if (thread == NULL) return;
    uint64_t words[2] = {from, to};
    writer_meta(thread, META_MOVE, 0, words, 2, NULL, NULL);
    writer_end(thread);
}

EXPORTED void gcspy_runtime_collection(int ends, int full);
EXPORTED void gcspy_runtime_collection(int ends, int full) {
    struct thread *thread = idle_thread();
    if (thread == NULL) return;
    uint64_t words[2] = {0, 0};
    writer_meta(thread, ends ? META_COLLECTION_END : META_COLLECTION_START, full ? 2 : 0, words, ends ? 2 : 0, NULL, NULL);
    writer_end(thread);
}
