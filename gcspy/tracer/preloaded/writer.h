/* Writing of records into blocks of a shared segment: what hooks of malloc and of CPython call.
 *
 * Knows threads, blocks, forks; does not know what is allocated. Nothing here calls malloc. */
#ifndef GCSPY_TRACE_WRITER_H
#define GCSPY_TRACE_WRITER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "trace_segment.h"

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define THREAD_LOCAL static __thread __attribute__((tls_model("initial-exec")))
#define SHARED_THREAD_LOCAL extern __thread __attribute__((tls_model("initial-exec"), visibility("hidden")))

#define STAMP_EVENTS 64  /* a stamp at least after so many events of a thread */
#define ROOM 64          /* bytes that a block has left when a record begins: a stamp and two words fit */
#define LARGEST_META 4096 /* bytes */
#define NESTED 64
#define CACHED_SITES 2048
#define LARGEST_STACK 128

enum stacks { STACKS_NONE, STACKS_CALLER, STACKS_FULL };

/* An event that a signal handler had while the thread was writing another. */
struct nested {
    uint64_t address, size;
    uint32_t kind, detail;
    const void *caller;
};

struct known_site {
    uint64_t key;
    uint32_t site, generation;
};

struct rule;
struct walk;

struct thread {
    uint8_t *at, *limit, *start;
    struct block *block;
    uint32_t busy;       /* a record is being written */
    uint32_t left;       /* events until the next stamp */
    uint32_t tick;
    uint32_t number;
    const void *caller;  /* operator new was called from here: the malloc in it is its */
    void *frame;
    void *freeing;       /* operator delete has told the death of this one */
    uint64_t lost;       /* events since a block could not be had */
    uint32_t shed;
    uint32_t generation;
    uint32_t nested_count;
    uint32_t random;
    uint32_t tid;
    uint64_t stack_low, stack_high;
    uint32_t walked_count; /* frames of the last walk that the next one may meet again */
    struct walk *walk;
    int cut;             /* the last walk ended before the outermost frame */
    struct thread *next;
    struct nested nested[NESTED];
    struct known_site sites[CACHED_SITES];
    struct rule *rules;
    uint64_t pcs[LARGEST_STACK];
};

/* A page that a forked child finds empty, whichever way it was forked. */
struct process_page {
    _Atomic uint32_t on;
};

SHARED_THREAD_LOCAL struct thread *own_thread;
extern __attribute__((visibility("hidden"))) struct process_page *process_page;
extern __attribute__((visibility("hidden"))) struct segment *segment;
extern __attribute__((visibility("hidden"))) enum stacks wanted_stacks;
extern __attribute__((visibility("hidden"))) _Atomic uint32_t code_generation;

/* Start writing, if the environment says so. */
void writer_configure(void);
/* Start writing into a new segment; returns why not, NULL: it does. */
const char *writer_start(const char *folder, enum stacks stacks, int follow, uint32_t flags, const char *runtime);
void writer_stop(void);
/* The thread's state; NULL: it does not write. */
struct thread *writer_enter(void);
void writer_make_room(struct thread *thread);
/* Code was unloaded: the same addresses may be other code now. */
void writer_code_changed(struct thread *thread);
void unwinder_forget(struct thread *thread);
void writer_stamp(struct thread *thread);
void writer_flush_nested(struct thread *thread);
void writer_nest(struct thread *thread, uint32_t kind, uint64_t address, uint64_t size, uint32_t detail, const void *caller);
/* Write a record of any number of words and text. */
void writer_meta(struct thread *thread, enum meta_kind kind, uint32_t argument, const uint64_t *words, size_t count, const char *first_text, const char *second_text);
/* The number of the site with these program counters; thread->busy is set. */
uint32_t writer_site(struct thread *thread, uint64_t key, const uint64_t *pcs, uint32_t count);
/* The same for a site that is defined by who calls: 0 if it is known, else a number to define. */
uint32_t writer_new_site(uint64_t key, uint32_t *number);
/* Walk the stack outside of `frame`; returns how many frames there are, `key` gets what stands for all of them. */
uint32_t writer_walk(struct thread *thread, void **frame, uint64_t *key);
/* Set the thread's `pcs` to those of the walk that was just done. */
void writer_walked(struct thread *thread, uint32_t count);
/* Memory that no hook sees; NULL: there is none. */
void *writer_pages(size_t bytes);
void modules_define(struct thread *thread, uint64_t pc);
void modules_forget(int in_child);
/* .eh_frame_hdr of the module there, and its bounds; NULL: none. */
const uint8_t *modules_find(uint64_t pc, uint64_t *start, uint64_t *end);

static inline struct thread *writer_thread(void) {
    struct thread *thread = own_thread;
    if (UNLIKELY(thread == NULL || !atomic_load_explicit(&process_page->on, memory_order_relaxed))) return writer_enter();
    return thread;
}

static inline uint64_t mixed(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    return hash ^ (hash >> 29);
}

static inline uint32_t writer_caller_site(struct thread *thread, const void *caller) {
    uint64_t pc = (uint64_t)caller;
    struct known_site *known = &thread->sites[(pc * 0x9e3779b97f4a7c15ull) >> 53];
    if (LIKELY(known->key == pc && known->generation == thread->generation)) return known->site;
    uint32_t site = writer_site(thread, pc, &pc, 1);
    known->key = pc, known->site = site, known->generation = thread->generation;
    return site;
}

static inline void writer_put(struct thread *thread, const uint64_t *words, size_t count) {
    memcpy(thread->at, words, count * 8);
    thread->at += count * 8;
    atomic_store_explicit(&thread->block->used, (uint64_t)(thread->at - thread->start), memory_order_release);
}

/* Begin an event: 0 if it cannot be written now, and was noted or counted instead. */
static inline int writer_begin(struct thread *thread, uint32_t kind, uint64_t address, uint64_t size, uint32_t detail, const void *caller) {
    if (UNLIKELY(thread->busy)) {
        writer_nest(thread, kind, address, size, detail, caller);
        return 0;
    }
    thread->busy = 1;
    atomic_signal_fence(memory_order_seq_cst);
    if (UNLIKELY(thread->at > thread->limit)) writer_make_room(thread);
    if (UNLIKELY(thread->block == NULL)) {
        thread->lost++;
        atomic_signal_fence(memory_order_seq_cst);
        thread->busy = 0;
        return 0;
    }
    if (UNLIKELY(--thread->left == 0 || thread->tick != atomic_load_explicit(&segment->tick, memory_order_relaxed))) writer_stamp(thread);
    return 1;
}

static inline void writer_end(struct thread *thread) {
    atomic_signal_fence(memory_order_seq_cst);
    thread->busy = 0;
    atomic_signal_fence(memory_order_seq_cst);
    if (UNLIKELY(thread->nested_count)) writer_flush_nested(thread);
}

static inline void writer_allocation(struct thread *thread, uint32_t kind, uint64_t address, uint64_t size, uint32_t site) {
    uint64_t words[2] = {
        (address & 0xfffffffffff8ull) | kind | size << 48,
        site | (size >> 16 & 0xfffffff) << 32,
    };
    writer_put(thread, words, 2);
}

/* An allocation by the code at `caller`, whose frame is `frame`. */
static inline void writer_allocated(struct thread *thread, uint32_t kind, void *address, uint64_t size, const void *caller, void *frame) {
    if (UNLIKELY(thread->caller != NULL)) caller = thread->caller, frame = thread->frame, thread->caller = NULL;
    if (UNLIKELY(!writer_begin(thread, kind, (uint64_t)address, size, 0, caller))) return;
    uint32_t site = 0;
    if (UNLIKELY(thread->generation != atomic_load_explicit(&code_generation, memory_order_relaxed))) writer_code_changed(thread);
    if (LIKELY(wanted_stacks == STACKS_CALLER)) site = writer_caller_site(thread, caller);
    else if (wanted_stacks == STACKS_FULL) {
        uint64_t key;
        uint32_t count = writer_walk(thread, frame, &key);
        struct known_site *known = &thread->sites[key >> 53];
        if (LIKELY(known->key == key && known->generation == thread->generation)) site = known->site;
        else {
            writer_walked(thread, count);
            site = writer_site(thread, key, thread->pcs, count);
            known->key = key, known->site = site, known->generation = thread->generation;
        }
    }
    /* Defining a site may have filled the block. */
    if (UNLIKELY(thread->at > thread->limit)) writer_make_room(thread);
    if (LIKELY(thread->block != NULL)) writer_allocation(thread, kind, (uint64_t)address, size, site);
    else thread->lost++;
    writer_end(thread);
}

static inline void writer_freed(struct thread *thread, const void *address, enum free_kind detail) {
    if (UNLIKELY(!writer_begin(thread, RECORD_FREE, (uint64_t)address, 0, detail, NULL))) return;
    uint64_t word = ((uint64_t)address & 0xfffffffffff8ull) | RECORD_FREE | (uint64_t)detail << 48;
    writer_put(thread, &word, 1);
    writer_end(thread);
}

#endif
