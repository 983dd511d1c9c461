/* Threads, blocks and the segment of a traced process. See writer.h. */
#define _GNU_SOURCE
#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define STALL_NANOS 2000000000ull /* a reader that does not look for so long is taken for dead */
#define SITE_SLOTS (1u << 22)
#define MOST_SITES (SITE_SLOTS / 4 * 3)
#define RETRY_EVENTS 1024 /* of a thread without a block */

__thread struct thread *own_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));
static struct process_page no_process;
struct process_page *process_page = &no_process;
struct segment *segment;
enum stacks wanted_stacks = STACKS_CALLER;
_Atomic uint32_t code_generation = 1;

enum state { UNTRIED, STARTING, WRITING, IDLE };
static _Atomic uint32_t state = UNTRIED;
static int follow_forks;
static uint32_t segment_flags;
static char folder_path[512], runtime_name[64], segment_path[600];
static pid_t owner;
THREAD_LOCAL uint32_t fork_number; /* of the parent, at the last fork of this thread; a child goes on with that thread */
static uint32_t parent_fork;
static pid_t fork_parent;
static pthread_key_t end_of_thread;
static int have_key;
static uint32_t last_stalled_tick; /* the reader was taken for dead when it was at this tick */
static int stalled;

THREAD_LOCAL int entering; /* this thread is in writer_enter */

/* Locks of a few instructions; a thread that holds one is never interrupted by its own hooks, which look at `busy`. */
static atomic_flag thread_lock = ATOMIC_FLAG_INIT, site_lock = ATOMIC_FLAG_INIT;
static struct thread *idle_threads;

struct site_slot {
    uint64_t key;
    uint32_t generation, site;
};
static struct site_slot *site_slots;
static uint32_t site_count;

static void lock(atomic_flag *flag) {
    for (int tries = 0; atomic_flag_test_and_set_explicit(flag, memory_order_acquire); tries++)
        if (tries > 100) sched_yield();
}

static void unlock(atomic_flag *flag) { atomic_flag_clear_explicit(flag, memory_order_release); }

void *writer_pages(size_t bytes) {
    void *found = (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return found == MAP_FAILED ? NULL : found;
}

static struct block *block_at(uint32_t index) {
    return (struct block *)((uint8_t *)segment + SEGMENT_STATES) + index;
}

static uint8_t *data_of(const struct block *block) {
    return (uint8_t *)segment + SEGMENT_DATA + (size_t)(block - block_at(0)) * BLOCK_BYTES;
}

/* Give memory to more blocks, so that no write to them can fail. */
static int grow(void) {
    uint32_t have = atomic_load(&segment->blocks);
    if (have >= SEGMENT_BLOCKS) return 0;
    uint8_t *start = data_of(block_at(have));
    size_t bytes = (size_t)GROWTH_BLOCKS * BLOCK_BYTES;
    if (madvise(start, bytes, MADV_POPULATE_WRITE) != 0) {
        if (errno != EINVAL) return 0;
        /* A kernel before 5.14. */
        int file = open(segment_path, O_RDWR | O_CLOEXEC);
        if (file < 0) return 0;
        long failed = syscall(SYS_fallocate, file, 0, (off_t)(start - (uint8_t *)segment), (off_t)bytes);
        syscall(SYS_close, file);
        if (failed) return 0;
    }
    if (!atomic_compare_exchange_strong(&segment->blocks, &have, have + GROWTH_BLOCKS)) return 1; /* another thread did */
    for (uint32_t index = have + GROWTH_BLOCKS; index-- > have;) {
        struct block *block = block_at(index);
        uint64_t head = atomic_load(&segment->unused);
        do atomic_store(&block->next, (uint32_t)head);
        while (!atomic_compare_exchange_weak(&segment->unused, &head, ((head >> 32) + 1) << 32 | (index + 1)));
    }
    return 1;
}

static struct block *take_unused(void) {
    uint64_t head = atomic_load(&segment->unused);
    while ((uint32_t)head) {
        uint32_t index = (uint32_t)head - 1;
        if (index >= SEGMENT_BLOCKS) return NULL; /* somebody wrote into it */
        uint32_t next = atomic_load(&block_at(index)->next);
        if (atomic_compare_exchange_weak(&segment->unused, &head, ((head >> 32) + 1) << 32 | next)) return block_at(index);
    }
    return NULL;
}

/* Wait for a block as long as somebody reads. */
static struct block *wait_for_block(void) {
    uint64_t begin = monotonic_nanos();
    uint32_t tick = atomic_load(&segment->tick);
    uint64_t seen = begin;
    struct block *block;
    for (;;) {
        uint32_t waiting = atomic_load(&segment->waiting);
        block = take_unused();
        if (block || atomic_load(&segment->wanted) == WANTED_OFF) break;
        struct timespec pause = {0, 2000000};
        syscall(SYS_futex, &segment->waiting, FUTEX_WAIT, waiting, &pause, NULL, 0);
        uint64_t now = monotonic_nanos();
        if (atomic_load(&segment->tick) != tick) tick = atomic_load(&segment->tick), seen = now;
        if (now - seen > STALL_NANOS) {
            last_stalled_tick = tick, stalled = 1;
            break;
        }
    }
    atomic_fetch_add(&segment->waited_nanos, monotonic_nanos() - begin);
    return block;
}

static void hand_over(struct thread *thread) {
    if (thread->block == NULL) return;
    atomic_store_explicit(&thread->block->use, BLOCK_FULL, memory_order_release);
    thread->block = NULL;
    thread->at = thread->start = thread->limit = NULL;
}

static void take_block(struct thread *thread) {
    struct block *block = NULL;
    if (atomic_load(&segment->wanted) == WANTED_OFF) {
        atomic_store(&process_page->on, 0);
        atomic_store(&state, IDLE);
    } else {
        block = take_unused();
        while (block == NULL && grow()) block = take_unused();
        if (block == NULL && !(stalled && atomic_load(&segment->tick) == last_stalled_tick)) block = wait_for_block();
    }
    if (block == NULL) {
        /* Events are counted until there is one. limit < at: each event comes here. */
        thread->at = (uint8_t *)8, thread->limit = NULL;
        thread->shed = RETRY_EVENTS;
        return;
    }
    block->thread = thread->number;
    block->tid = thread->tid;
    atomic_store_explicit(&block->used, 0, memory_order_relaxed);
    atomic_store_explicit(&block->read, 0, memory_order_relaxed);
    block->sequence = atomic_fetch_add(&segment->sequence, 1) + 1;
    /* Blocks of different sizes: threads that do the same do not hand over at the same time. */
    thread->random = thread->random * 1664525u + 1013904223u;
    thread->start = thread->at = data_of(block);
    thread->limit = thread->start + BLOCK_BYTES - ROOM - (thread->random >> 8) % (BLOCK_BYTES / 4);
    thread->block = block;
    thread->left = 1; /* a block begins with a stamp */
    atomic_store_explicit(&block->use, BLOCK_OWNED, memory_order_release);
    if (thread->lost) {
        uint64_t word = RECORD_META | META_LOST << 3 | thread->lost << 32;
        atomic_fetch_add(&segment->lost, thread->lost);
        thread->lost = 0;
        writer_put(thread, &word, 1);
    }
}

void writer_make_room(struct thread *thread) {
    if (thread->block == NULL && thread->shed && --thread->shed) return;
    int error = errno;
    hand_over(thread);
    take_block(thread);
    errno = error;
}

void writer_stamp(struct thread *thread) {
    /* Of several threads each event has its time: by it they are put in order. */
    thread->left = atomic_load_explicit(&segment->threads, memory_order_relaxed) > 1 ? 1 : STAMP_EVENTS;
    thread->tick = atomic_load_explicit(&segment->tick, memory_order_relaxed);
    uint64_t word = read_ticks((int)segment->ticks_are_nanos) << 3 | RECORD_STAMP;
    writer_put(thread, &word, 1);
}

void writer_meta(struct thread *thread, enum meta_kind kind, uint32_t argument, const uint64_t *words, size_t count, const char *first_text, const char *second_text) {
    uint64_t record[LARGEST_META / 8];
    size_t longest = (LARGEST_META / 8 - 1 - count) * 8 - 8;
    size_t first = first_text ? strnlen(first_text, longest / 2) + 1 : 0;
    size_t second = second_text ? strnlen(second_text, longest / 2) + 1 : 0;
    size_t all = 1 + count + (first + second + 7) / 8;
    record[all - 1] = 0;
    record[0] = RECORD_META | (uint64_t)kind << 3 | (uint64_t)(all - 1) << 16 | (uint64_t)argument << 32;
    memcpy(record + 1, words, count * 8);
    char *text = (char *)(record + 1 + count);
    if (first) memcpy(text, first_text, first - 1), text[first - 1] = 0;
    if (second) memcpy(text + first, second_text, second - 1), text[first + second - 1] = 0;
    if (thread->block == NULL || thread->at + all * 8 > thread->start + BLOCK_BYTES - ROOM) writer_make_room(thread);
    if (thread->block) {
        if (thread->left == 1 || thread->tick != atomic_load_explicit(&segment->tick, memory_order_relaxed)) writer_stamp(thread);
        writer_put(thread, record, all);
    } else thread->lost++;
}

void writer_nest(struct thread *thread, uint32_t kind, uint64_t address, uint64_t size, uint32_t detail, const void *caller) {
    uint32_t index = thread->nested_count++;
    if (index >= NESTED) {
        /* A handler that left by longjmp never came back to the record. */
        if (index > 100 * NESTED) thread->busy = 0;
        atomic_fetch_add(&segment->lost, 1);
        return;
    }
    thread->nested[index] = (struct nested){address, size, kind, detail, caller};
}

void writer_flush_nested(struct thread *thread) {
    uint32_t count = thread->nested_count < NESTED ? thread->nested_count : NESTED;
    struct nested held[NESTED];
    memcpy(held, thread->nested, count * sizeof *held);
    thread->nested_count = 0;
    const void *caller = thread->caller;
    thread->caller = NULL;
    for (uint32_t index = 0; index < count; index++) {
        struct nested *one = &held[index];
        if (one->kind == RECORD_FREE) writer_freed(thread, (void *)one->address, one->detail);
        else if (writer_begin(thread, one->kind, one->address, one->size, one->detail, one->caller)) {
            if (one->kind == RECORD_UNMAP) {
                uint64_t words[2] = {one->address | RECORD_UNMAP, one->size};
                writer_put(thread, words, 2);
            } else {
                uint32_t site = wanted_stacks == STACKS_NONE || !one->caller ? 0 : writer_caller_site(thread, one->caller);
                if (thread->at > thread->limit) writer_make_room(thread);
                if (thread->block) writer_allocation(thread, one->kind, one->address, one->size, site);
                else thread->lost++;
            }
            writer_end(thread);
        }
    }
    thread->caller = caller;
}

/* ---- sites */

void writer_code_changed(struct thread *thread) {
    thread->generation = atomic_load(&code_generation);
    unwinder_forget(thread);
}

uint32_t writer_new_site(uint64_t key, uint32_t *number) {
    uint32_t generation = atomic_load(&code_generation), isnew = 0;
    lock(&site_lock);
    uint32_t slot = (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 42) % SITE_SLOTS;
    while (site_slots[slot].site && !(site_slots[slot].key == key && site_slots[slot].generation == generation)) slot = (slot + 1) % SITE_SLOTS;
    if (site_slots[slot].site == 0) {
        if (site_count >= MOST_SITES) {
            atomic_fetch_add(&segment->full_sites, 1);
            unlock(&site_lock);
            *number = 0;
            return 0;
        }
        site_slots[slot] = (struct site_slot){key, generation, ++site_count};
        isnew = 1;
    }
    *number = site_slots[slot].site;
    unlock(&site_lock);
    return isnew;
}

uint32_t writer_site(struct thread *thread, uint64_t key, const uint64_t *pcs, uint32_t count) {
    uint32_t number;
    int error = errno;
    if (writer_new_site(key, &number)) {
        for (uint32_t index = 0; index < count; index++) modules_define(thread, pcs[index]);
        writer_meta(thread, META_SITE, number, pcs, count, NULL, NULL);
        if (thread->cut && wanted_stacks == STACKS_FULL) atomic_fetch_add(&segment->cut_stacks, 1);
    }
    errno = error;
    return number;
}

/* ---- threads */

static void thread_ends(void *given) {
    struct thread *thread = given;
    if (!atomic_load(&process_page->on) || own_thread != thread) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    thread->busy = 1;
    if (thread->block) writer_meta(thread, META_THREAD_END, thread->tid, NULL, 0, NULL, NULL);
    hand_over(thread);
    if (thread->lost) atomic_fetch_add(&segment->lost, thread->lost), thread->lost = 0;
    own_thread = NULL;
    lock(&thread_lock);
    thread->next = idle_threads;
    idle_threads = thread;
    unlock(&thread_lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static struct thread *make_thread(void) {
    lock(&thread_lock);
    struct thread *thread = idle_threads;
    if (thread) idle_threads = thread->next;
    unlock(&thread_lock);
    if (thread == NULL) {
        thread = writer_pages(sizeof *thread);
        if (thread == NULL) return NULL;
        thread->random = (uint32_t)((uint64_t)thread >> 12) ^ (uint32_t)monotonic_nanos();
    }
    thread->busy = 1;
    thread->number = atomic_fetch_add(&segment->threads, 1) + 1;
    if (thread->number == 2) atomic_fetch_add(&segment->tick, 1); /* so that the first one writes its time now */
    thread->tid = (uint32_t)syscall(SYS_gettid);
    thread->generation = atomic_load(&code_generation);
    thread->caller = NULL, thread->freeing = NULL;
    thread->stack_high = 0;
    thread->at = (uint8_t *)8, thread->limit = NULL, thread->block = NULL;
    thread->shed = 0, thread->nested_count = 0;
    return thread;
}

static void name_thread(struct thread *thread) {
    char name[32] = "", path[64];
    snprintf(path, sizeof path, "/proc/self/task/%u/comm", thread->tid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        ssize_t got = syscall(SYS_read, file, name, sizeof name - 1);
        if (got > 0) name[got - (name[got - 1] == '\n')] = 0;
        syscall(SYS_close, file);
    }
    writer_meta(thread, META_THREAD, thread->tid, NULL, 0, name, NULL);
}

static const char *open_segment(void);

/* A child of a fork: the segment is its parent's, and is not mapped here. */
static void continue_in_child(void) {
    atomic_flag_clear(&thread_lock);
    atomic_flag_clear(&site_lock);
    modules_forget(1);
    own_thread = NULL, idle_threads = NULL;
    fork_parent = owner;
    owner = getpid();
    if (!follow_forks || atomic_load(&state) != WRITING) {
        atomic_store(&state, IDLE);
        return;
    }
    if (site_slots) madvise(site_slots, sizeof(struct site_slot) * SITE_SLOTS, MADV_DONTNEED);
    site_count = 0, stalled = 0;
    parent_fork = fork_number;
    if (open_segment() != NULL) atomic_store(&state, IDLE);
}

struct thread *writer_enter(void) {
    if (entering) return NULL;
    if (atomic_load(&state) == IDLE) return NULL;
    int error = errno;
    entering = 1;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (atomic_load(&state) == UNTRIED) writer_configure();
    if (atomic_load(&state) == WRITING && !atomic_load(&process_page->on) && owner != getpid()) continue_in_child();
    struct thread *thread = NULL;
    if (atomic_load(&state) == WRITING && atomic_load(&process_page->on)) {
        thread = own_thread;
        if (thread == NULL && (thread = make_thread()) != NULL) {
            own_thread = thread;
            entering = 0;
            take_block(thread);
            if (thread->block) {
                writer_stamp(thread);
                name_thread(thread);
            }
            if (have_key) pthread_setspecific(end_of_thread, thread);
            writer_end(thread);
        }
    }
    entering = 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return thread;
}

/* ---- the segment */

static void before_fork(void) {
    if (!follow_forks || !atomic_load(&process_page->on)) return;
    struct thread *thread = writer_thread();
    if (thread == NULL || thread->busy) return;
    thread->busy = 1;
    fork_number = atomic_fetch_add(&segment->forks, 1) + 1;
    writer_meta(thread, META_FORK, fork_number, NULL, 0, NULL, NULL);
    writer_end(thread);
}

static size_t read_whole(const char *path, char *into, size_t room) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    size_t have = 0;
    ssize_t got;
    while (have < room && (got = syscall(SYS_read, file, into + have, room - have)) > 0) have += (size_t)got;
    syscall(SYS_close, file);
    return have;
}

/* Whether this process is the one to trace: the first that asks, whatever it executes later. */
static int is_root(void) {
    char path[600], text[32] = "";
    snprintf(path, sizeof path, "%s/root", folder_path);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return read_whole(path, text, sizeof text - 1) && atoi(text) == (int)getpid();
    int length = snprintf(text, sizeof text, "%d", (int)getpid());
    long written = syscall(SYS_write, file, text, (size_t)length);
    syscall(SYS_close, file);
    return written == length;
}

static const char *open_segment(void) {
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    uint64_t monotonic = monotonic_nanos();
    snprintf(segment_path, sizeof segment_path, "%s/%d-%llu.segment", folder_path, (int)getpid(), (unsigned long long)monotonic);
    int file = open(segment_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return "the segment cannot be made";
    off_t first = (off_t)SEGMENT_DATA + (off_t)GROWTH_BLOCKS * BLOCK_BYTES;
    void *made = MAP_FAILED;
    if (syscall(SYS_ftruncate, file, (off_t)SEGMENT_BYTES) == 0 && syscall(SYS_fallocate, file, 0, (off_t)0, first) == 0)
        made = (void *)syscall(SYS_mmap, NULL, (size_t)SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)0);
    syscall(SYS_close, file);
    struct process_page *page = writer_pages(4096);
    if (made == MAP_FAILED || page == NULL) {
        if (made != MAP_FAILED) syscall(SYS_munmap, made, (size_t)SEGMENT_BYTES);
        syscall(SYS_unlinkat, AT_FDCWD, segment_path, 0);
        return "no memory for the segment";
    }
    madvise(made, SEGMENT_BYTES, MADV_DONTFORK);
    if (madvise(page, 4096, MADV_WIPEONFORK) != 0) return "the kernel is older than 4.14";
    segment = made;
    owner = getpid();
    segment->pid = (uint32_t)owner;
    segment->parent = fork_parent ? (uint32_t)fork_parent : (uint32_t)getppid();
    segment->parent_fork = parent_fork;
    segment->ticks_are_nanos = !has_counter();
    segment->started_ticks = read_ticks((int)segment->ticks_are_nanos);
    segment->started_monotonic = monotonic_nanos();
    segment->started_real = (uint64_t)real.tv_sec * 1000000000ull + (uint64_t)real.tv_nsec;
    segment->flags = segment_flags;
    ssize_t length = readlink("/proc/self/exe", segment->program, sizeof segment->program - 1);
    segment->program[length > 0 ? length : 0] = 0;
    segment->arguments_bytes = (uint32_t)read_whole("/proc/self/cmdline", segment->arguments, sizeof segment->arguments);
    memcpy(segment->runtime, runtime_name, sizeof segment->runtime);
    for (uint32_t index = GROWTH_BLOCKS; index-- > 0;) {
        atomic_store(&block_at(index)->next, (uint32_t)atomic_load(&segment->unused));
        atomic_store(&segment->unused, index + 1);
    }
    atomic_store(&segment->blocks, GROWTH_BLOCKS);
    atomic_store_explicit(&segment->magic, SEGMENT_MAGIC, memory_order_release);
    atomic_store(&page->on, 1);
    process_page = page;
    return NULL;
}

const char *writer_start(const char *folder, enum stacks stacks, int follow, uint32_t flags, const char *runtime) {
    uint32_t expected = UNTRIED;
    if (!atomic_compare_exchange_strong(&state, &expected, STARTING)) return "it is traced already";
    const char *why_not = NULL;
    if (strlen(folder) >= sizeof folder_path) why_not = "the name of the folder is too long";
    else {
        strcpy(folder_path, folder);
        snprintf(runtime_name, sizeof runtime_name, "%s", runtime);
        wanted_stacks = stacks, follow_forks = follow, segment_flags = flags;
        site_slots = writer_pages(sizeof(struct site_slot) * SITE_SLOTS);
        if (site_slots == NULL) why_not = "no memory";
        else if (!is_root() && !follow) why_not = "only the first process is traced";
        else why_not = open_segment();
    }
    atomic_store(&state, why_not ? IDLE : WRITING);
    if (why_not) return why_not;
    have_key = pthread_key_create(&end_of_thread, thread_ends) == 0;
    if (follow) pthread_atfork(before_fork, NULL, NULL);
    return NULL;
}

void writer_stop(void) {
    atomic_store(&process_page->on, 0);
    atomic_store(&state, IDLE);
}

void writer_configure(void) {
    extern char **environ;
    if (environ == NULL) return; /* libc has not begun */
    const char *folder = getenv("GCSPY_TRACE_FOLDER");
    const char *stacks = getenv("GCSPY_TRACE_STACKS");
    if (folder == NULL || stacks == NULL) {
        atomic_store(&state, IDLE);
        return;
    }
    enum stacks wanted = strcmp(stacks, "full") == 0 ? STACKS_FULL : strcmp(stacks, "none") == 0 ? STACKS_NONE : STACKS_CALLER;
    const char *follow = getenv("GCSPY_TRACE_FOLLOW");
    extern const char *gnu_get_libc_version(void) __attribute__((weak));
    char runtime[64] = "malloc";
    if (gnu_get_libc_version) snprintf(runtime, sizeof runtime, "glibc %s", gnu_get_libc_version());
    writer_start(folder, wanted, follow != NULL && strcmp(follow, "1") == 0, 0, runtime);
}
