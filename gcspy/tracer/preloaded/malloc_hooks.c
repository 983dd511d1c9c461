/* Functions that a preloaded library puts before those of the C library, of libstdc++ and of others: they do the same, and write it down.
 *
 * A free is written before the call, and an allocation after it: so that, of two threads, the one that gets an address writes behind the
 * one that gave it up. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "writer.h"

#define EXPORTED __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)
#define FRAME __builtin_frame_address(0)

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    void (*free)(void *);
    void *(*mmap)(void *, size_t, int, int, int, off_t);
    int (*munmap)(void *, size_t);
    void *(*mremap)(void *, size_t, size_t, int, ...);
    int (*dlclose)(void *);
} real;

/* dlsym may allocate before we know who allocates. */
static _Alignas(16) uint8_t first_memory[65536];
static _Atomic size_t first_used;
static _Atomic int resolving;

static void *first_allocate(size_t bytes) {
    size_t at = atomic_fetch_add(&first_used, (bytes + 31) & ~(size_t)15);
    if (at + bytes + 16 > sizeof first_memory) return NULL;
    *(size_t *)(void *)(first_memory + at) = bytes;
    return first_memory + at + 16;
}

static int is_first(const void *pointer) {
    return (uintptr_t)pointer - (uintptr_t)first_memory < sizeof first_memory;
}

static void *next_of(const char *name) { return dlsym(RTLD_NEXT, name); }

static void resolve(void) {
    if (atomic_exchange(&resolving, 1)) {
        /* Another thread does; dlsym in this one does not come here. */
        return;
    }
    int error = errno;
    *(void **)&real.calloc = next_of("calloc");
    *(void **)&real.realloc = next_of("realloc");
    *(void **)&real.memalign = next_of("memalign");
    *(void **)&real.aligned_alloc = next_of("aligned_alloc");
    *(void **)&real.posix_memalign = next_of("posix_memalign");
    *(void **)&real.valloc = next_of("valloc");
    *(void **)&real.pvalloc = next_of("pvalloc");
    *(void **)&real.mmap = next_of("mmap");
    *(void **)&real.munmap = next_of("munmap");
    *(void **)&real.mremap = next_of("mremap");
    *(void **)&real.dlclose = next_of("dlclose");
    *(void **)&real.free = next_of("free");
    atomic_thread_fence(memory_order_release);
    *(void **)&real.malloc = next_of("malloc");
    errno = error;
    atomic_store(&resolving, 0);
}

#define RESOLVE(function, otherwise) \
    if (UNLIKELY(real.function == NULL)) { \
        resolve(); \
        if (real.function == NULL) return otherwise; \
    }

/* Whose malloc failed is forgotten: the operator may throw. */
static inline void *failed(void) {
    struct thread *thread = own_thread;
    if (thread != NULL) thread->caller = NULL;
    return NULL;
}

static inline void allocated(void *pointer, size_t bytes, const void *caller, void *frame) {
    struct thread *thread = writer_thread();
    if (LIKELY(thread != NULL)) writer_allocated(thread, RECORD_ALLOCATE, pointer, bytes, caller, frame);
}

EXPORTED void *malloc(size_t bytes) {
    RESOLVE(malloc, first_allocate(bytes))
    void *pointer = real.malloc(bytes);
    if (UNLIKELY(pointer == NULL)) return failed();
    allocated(pointer, bytes, CALLER, FRAME);
    return pointer;
}

EXPORTED void *calloc(size_t count, size_t bytes) {
    RESOLVE(calloc, first_allocate(count * bytes))
    void *pointer = real.calloc(count, bytes);
    if (LIKELY(pointer != NULL)) allocated(pointer, count * bytes, CALLER, FRAME);
    return pointer;
}

EXPORTED void free(void *pointer) {
    if (pointer == NULL || UNLIKELY(is_first(pointer))) return;
    RESOLVE(free, )
    struct thread *thread = writer_thread();
    if (LIKELY(thread != NULL)) {
        if (UNLIKELY(thread->freeing == pointer)) thread->freeing = NULL;
        else writer_freed(thread, pointer, FREE_BLOCK);
    }
    real.free(pointer);
}

static void *resized(void *old, size_t bytes, const void *caller, void *frame) {
    RESOLVE(realloc, old ? NULL : first_allocate(bytes))
    if (UNLIKELY(old != NULL && is_first(old))) {
        size_t had = *(size_t *)(void *)((uint8_t *)old - 16);
        void *moved = real.malloc(bytes);
        if (moved != NULL) {
            memcpy(moved, old, had < bytes ? had : bytes);
            allocated(moved, bytes, caller, frame);
        }
        return moved;
    }
    struct thread *thread = writer_thread();
    if (LIKELY(thread != NULL) && old != NULL) writer_freed(thread, old, bytes == 0 ? FREE_BLOCK : FREE_RESIZED);
    void *pointer = real.realloc(old, bytes);
    if (LIKELY(thread != NULL)) {
        if (LIKELY(pointer != NULL)) writer_allocated(thread, RECORD_ALLOCATE, pointer, bytes, caller, frame);
        else if (old != NULL && bytes != 0) writer_freed(thread, old, FREE_UNDONE);
    }
    return pointer;
}

EXPORTED void *realloc(void *old, size_t bytes) { return resized(old, bytes, CALLER, FRAME); }

EXPORTED void *reallocarray(void *old, size_t count, size_t bytes) {
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    return resized(old, all, CALLER, FRAME);
}

EXPORTED void *memalign(size_t alignment, size_t bytes) {
    RESOLVE(memalign, NULL)
    void *pointer = real.memalign(alignment, bytes);
    if (pointer != NULL) allocated(pointer, bytes, CALLER, FRAME);
    return pointer;
}

EXPORTED void *aligned_alloc(size_t alignment, size_t bytes) {
    RESOLVE(aligned_alloc, NULL)
    void *pointer = real.aligned_alloc(alignment, bytes);
    if (pointer == NULL) return failed();
    allocated(pointer, bytes, CALLER, FRAME);
    return pointer;
}

EXPORTED int posix_memalign(void **into, size_t alignment, size_t bytes) {
    RESOLVE(posix_memalign, ENOMEM)
    int failed = real.posix_memalign(into, alignment, bytes);
    if (failed == 0 && *into != NULL) allocated(*into, bytes, CALLER, FRAME);
    return failed;
}

EXPORTED void *valloc(size_t bytes) {
    RESOLVE(valloc, NULL)
    void *pointer = real.valloc(bytes);
    if (pointer != NULL) allocated(pointer, bytes, CALLER, FRAME);
    return pointer;
}

EXPORTED void *pvalloc(size_t bytes) {
    RESOLVE(pvalloc, NULL)
    void *pointer = real.pvalloc(bytes);
    if (pointer != NULL) allocated(pointer, bytes, CALLER, FRAME);
    return pointer;
}

/* ---- C++
 *
 * The real operator calls malloc: that one takes the place from here, so that no site is "operator new". Where it does
 * not, as in an allocator that has both, the event is written here. */

static void *operator_of(void **known, const char *name) {
    if (LIKELY(*known != NULL)) return *known;
    int error = errno;
    void *found = dlsym(RTLD_NEXT, name);
    /* Loaded later, for a plugin alone. */
    static const char *const libraries[] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"};
    for (size_t index = 0; found == NULL && index < sizeof libraries / sizeof *libraries; index++) {
        void *library = dlopen(libraries[index], RTLD_LAZY | RTLD_NOLOAD);
        if (library != NULL) found = dlsym(library, name), real.dlclose ? real.dlclose(library) : 0;
    }
    if (found == NULL) abort(); /* somebody calls what nobody has: the loader would have ended the program */
    *known = found;
    errno = error;
    return found;
}

static inline struct thread *before_new(const void *caller, void *frame) {
    struct thread *thread = writer_thread();
    if (thread == NULL || thread->busy || thread->caller != NULL) return NULL; /* an operator that calls another one */
    thread->caller = caller, thread->frame = frame;
    return thread;
}

static inline void *after_new(struct thread *thread, void *pointer, size_t bytes, const void *caller, void *frame) {
    if (thread != NULL && thread->caller != NULL) {
        thread->caller = NULL;
        if (pointer != NULL) writer_allocated(thread, RECORD_ALLOCATE, pointer, bytes, caller, frame);
    }
    return pointer;
}

#define NEW(symbol, parameters, arguments, type) \
    EXPORTED void *symbol parameters; \
    EXPORTED void *symbol parameters { \
        static void *known; \
        void *function = operator_of(&known, #symbol); \
        struct thread *thread = before_new(CALLER, FRAME); \
        return after_new(thread, ((void *(*)type)function) arguments, bytes, CALLER, FRAME); \
    }

NEW(_Znwm, (size_t bytes), (bytes), (size_t))
NEW(_Znam, (size_t bytes), (bytes), (size_t))
NEW(_ZnwmRKSt9nothrow_t, (size_t bytes, const void *nothrow), (bytes, nothrow), (size_t, const void *))
NEW(_ZnamRKSt9nothrow_t, (size_t bytes, const void *nothrow), (bytes, nothrow), (size_t, const void *))
NEW(_ZnwmSt11align_val_t, (size_t bytes, size_t alignment), (bytes, alignment), (size_t, size_t))
NEW(_ZnamSt11align_val_t, (size_t bytes, size_t alignment), (bytes, alignment), (size_t, size_t))
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t bytes, size_t alignment, const void *nothrow), (bytes, alignment, nothrow), (size_t, size_t, const void *))
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t bytes, size_t alignment, const void *nothrow), (bytes, alignment, nothrow), (size_t, size_t, const void *))

#define DELETE(symbol, parameters, arguments, type) \
    EXPORTED void symbol parameters; \
    EXPORTED void symbol parameters { \
        static void *known; \
        void *function = operator_of(&known, #symbol); \
        struct thread *thread = pointer == NULL ? NULL : writer_thread(); \
        if (thread != NULL && (thread->busy || thread->freeing == pointer)) thread = NULL; /* an operator that calls another one */ \
        if (thread != NULL) writer_freed(thread, pointer, FREE_BLOCK), thread->freeing = pointer; \
        ((void (*)type)function) arguments; \
        if (thread != NULL) thread->freeing = NULL; \
    }

DELETE(_ZdlPv, (void *pointer), (pointer), (void *))
DELETE(_ZdaPv, (void *pointer), (pointer), (void *))
DELETE(_ZdlPvm, (void *pointer, size_t bytes), (pointer, bytes), (void *, size_t))
DELETE(_ZdaPvm, (void *pointer, size_t bytes), (pointer, bytes), (void *, size_t))
DELETE(_ZdlPvRKSt9nothrow_t, (void *pointer, const void *nothrow), (pointer, nothrow), (void *, const void *))
DELETE(_ZdaPvRKSt9nothrow_t, (void *pointer, const void *nothrow), (pointer, nothrow), (void *, const void *))
DELETE(_ZdlPvSt11align_val_t, (void *pointer, size_t alignment), (pointer, alignment), (void *, size_t))
DELETE(_ZdaPvSt11align_val_t, (void *pointer, size_t alignment), (pointer, alignment), (void *, size_t))
DELETE(_ZdlPvmSt11align_val_t, (void *pointer, size_t bytes, size_t alignment), (pointer, bytes, alignment), (void *, size_t, size_t))
DELETE(_ZdaPvmSt11align_val_t, (void *pointer, size_t bytes, size_t alignment), (pointer, bytes, alignment), (void *, size_t, size_t))
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *pointer, size_t alignment, const void *nothrow), (pointer, alignment, nothrow), (void *, size_t, const void *))
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *pointer, size_t alignment, const void *nothrow), (pointer, alignment, nothrow), (void *, size_t, const void *))

/* ---- memory from the system
 *
 * Only memory that the program asks for and may write to: reservations (PROT_NONE) and mapped files are no use of memory by
 * themselves. What the C library maps for malloc does not come here. */

static inline void mapped(void *pointer, size_t bytes, const void *caller, void *frame) {
    struct thread *thread = writer_thread();
    if (LIKELY(thread != NULL)) writer_allocated(thread, RECORD_MAP, pointer, bytes, caller, frame);
}

static void unmapped(void *pointer, size_t bytes) {
    struct thread *thread = writer_thread();
    if (thread == NULL || !writer_begin(thread, RECORD_UNMAP, (uint64_t)pointer & 0xfffffffffff8ull, bytes, 0, NULL)) return;
    uint64_t words[2] = {((uint64_t)pointer & 0xfffffffffff8ull) | RECORD_UNMAP, bytes};
    writer_put(thread, words, 2);
    writer_end(thread);
}

EXPORTED void *mmap(void *wanted, size_t bytes, int protection, int flags, int file, off_t offset) {
    RESOLVE(mmap, MAP_FAILED)
    if (flags & MAP_FIXED && wanted != NULL) unmapped(wanted, bytes);
    void *pointer = real.mmap(wanted, bytes, protection, flags, file, offset);
    if (pointer != MAP_FAILED && flags & MAP_ANONYMOUS && protection != PROT_NONE) mapped(pointer, bytes, CALLER, FRAME);
    return pointer;
}

EXPORTED void *mmap64(void *wanted, size_t bytes, int protection, int flags, int file, off_t offset) {
    RESOLVE(mmap, MAP_FAILED)
    if (flags & MAP_FIXED && wanted != NULL) unmapped(wanted, bytes);
    void *pointer = real.mmap(wanted, bytes, protection, flags, file, offset);
    if (pointer != MAP_FAILED && flags & MAP_ANONYMOUS && protection != PROT_NONE) mapped(pointer, bytes, CALLER, FRAME);
    return pointer;
}

EXPORTED int munmap(void *pointer, size_t bytes) {
    RESOLVE(munmap, -1)
    unmapped(pointer, bytes);
    return real.munmap(pointer, bytes);
}

EXPORTED void *mremap(void *old, size_t had, size_t bytes, int flags, ...) {
    va_list list;
    va_start(list, flags);
    void *wanted = flags & MREMAP_FIXED ? va_arg(list, void *) : NULL;
    va_end(list);
    RESOLVE(mremap, MAP_FAILED)
    unmapped(old, had);
    void *pointer = flags & MREMAP_FIXED ? real.mremap(old, had, bytes, flags, wanted) : real.mremap(old, had, bytes, flags);
    if (pointer != MAP_FAILED) mapped(pointer, bytes, CALLER, FRAME);
    else mapped(old, had, CALLER, FRAME);
    return pointer;
}

/* ---- code that comes and goes */

EXPORTED int dlclose(void *library) {
    RESOLVE(dlclose, -1)
    int failed = real.dlclose(library);
    modules_forget(0);
    atomic_fetch_add(&code_generation, 1);
    return failed;
}

__attribute__((constructor)) static void begin(void) {
    if (getenv("GCSPY_TRACE_STACKS") == NULL) return;
    struct thread *thread = writer_thread();
    if (thread == NULL) return;
    void *first = dlsym(RTLD_DEFAULT, "malloc");
    Dl_info where, own;
    if (first != NULL && dladdr(first, &where) && dladdr((void *)begin, &own) && where.dli_fbase != own.dli_fbase) segment->flags |= SEGMENT_OWN_ALLOCATOR;
}
