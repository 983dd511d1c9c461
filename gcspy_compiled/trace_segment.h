/* The memory that a traced program shares with `gcspy trace`: a file, mapped by both.
 *
 * The program's threads write records into blocks, one thread a block; gcspy reads them at any time,
 * also when the program was killed, and gives blocks back. Nothing in it is trusted by the reader.
 *
 *     0                  struct segment
 *     SEGMENT_STATES     SEGMENT_BLOCKS times struct block
 *     SEGMENT_DATA       SEGMENT_BLOCKS times BLOCK_BYTES
 *
 * Source of the design: Lengauer, Bitto, Mössenböck, "Accurate and efficient object tracing for Java
 * applications", ICPE 2015: thread-local buffers of different sizes, a pool, somebody else who writes.
 * Here that is another process, so that the end of the program loses nothing.
 */
#ifndef GCSPY_TRACE_SEGMENT_H
#define GCSPY_TRACE_SEGMENT_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#define SEGMENT_MAGIC 0x3147455359504347ull /* "GCPYSEG1" */
#define SEGMENT_BLOCKS 1024u
#define BLOCK_BYTES 32768u
#define GROWTH_BLOCKS 128u /* memory is taken in pieces of so many blocks: 4 MiB */
#define SEGMENT_STATES 16384u
#define SEGMENT_DATA (SEGMENT_STATES + SEGMENT_BLOCKS * 64u)
#define SEGMENT_BYTES ((uint64_t)SEGMENT_DATA + (uint64_t)SEGMENT_BLOCKS * BLOCK_BYTES)
#define NO_BLOCK 0xffffffffu

enum block_use { BLOCK_UNUSED = 0, BLOCK_OWNED = 1, BLOCK_FULL = 2 };

/* What gcspy wants. */
enum wanted { WANTED_ON = 0, WANTED_OFF = 1 };

/* One cache line for each block. `used` is the writer's, `read` the reader's, both in bytes. */
struct block {
    _Atomic uint32_t use;    /* enum block_use */
    uint32_t thread;         /* number of the thread, from 1 */
    uint32_t tid;            /* the system's */
    _Atomic uint32_t next;   /* index of the next unused block + 1 */
    uint64_t sequence;       /* blocks of a thread in their order */
    _Atomic uint64_t used;
    _Atomic uint64_t read;
    uint64_t padding[3];
};

struct segment {
    _Atomic uint64_t magic; /* written last */
    uint32_t pid, parent;
    uint64_t started_monotonic, started_real; /* nanoseconds */
    uint32_t image;          /* how many programs this process ran before, by exec */
    uint32_t flags;          /* enum segment_flags */
    uint32_t parent_fork;    /* number of the fork in the parent's trace, 0: not forked while traced */
    uint32_t ticks_are_nanos; /* stamps are of CLOCK_MONOTONIC, not of the processor's counter */
    char program[1024];      /* /proc/self/exe */
    uint32_t arguments_bytes;
    char arguments[4096];    /* /proc/self/cmdline */
    char runtime[64];
    uint64_t started_ticks; /* at started_monotonic */

    /* Of the reader; the program reads it at each event. */
    _Alignas(64) _Atomic uint32_t tick; /* changes each time the reader looks */
    _Atomic uint32_t wanted;            /* enum wanted */

    /* Of all threads. */
    _Alignas(64) _Atomic uint64_t unused;    /* list of unused blocks: count of changes << 32 | index + 1 */
    _Atomic uint32_t blocks;                 /* how many have memory */
    _Atomic uint32_t waiting;                /* futex: changes when a block becomes unused */
    _Atomic uint64_t sequence;
    _Atomic uint32_t threads;
    _Atomic uint32_t forks;
    _Atomic uint64_t lost;                   /* events that are nowhere */
    _Atomic uint64_t waited_nanos;           /* for a block */
    _Atomic uint32_t full_sites;             /* the table of sites was full so many times */
    _Atomic uint64_t cut_stacks;             /* distinct stacks that end before the outermost frame */
};

/* Whether the processor's counter is the same for all cores, and never stops. */
static inline int has_counter(void) {
#if defined(__x86_64__)
    unsigned a, b, c, d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && d >> 8 & 1;
#else
    return 0;
#endif
}

static inline uint64_t monotonic_nanos(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

/* The time by which events of different threads are put in order. */
static inline uint64_t read_ticks(int are_nanos) {
#if defined(__x86_64__)
    if (!are_nanos) return __rdtsc() & 0x1fffffffffffffffull;
#endif
    (void)are_nanos;
    return monotonic_nanos();
}

enum segment_flags {
    SEGMENT_OWN_ALLOCATOR = 1, /* the program's malloc is not ours: it has its own, linked statically */
    SEGMENT_PYTHON = 2,        /* blocks of CPython; bits 60 to 63 of an ALLOCATE's second word are its domain + 1 */
    SEGMENT_OBJECTS = 4,       /* and its objects */
    SEGMENT_RUNTIME = 8,       /* objects of another managed runtime */
};

/* Records: words of 64 bits, little endian. The lowest three bits of the first tell the kind, since addresses are
 * multiples of 8; bits 3 to 47 are an address. */
enum record_kind {
    RECORD_ALLOCATE = 1, /* size's bits 0-15 in 48-63; then word: site in 0-31, size's bits 16-43 in 32-59 */
    RECORD_FREE = 2,     /* bits 48-63: enum free_kind */
    RECORD_STAMP = 3,    /* bits 3-63: read_ticks() */
    RECORD_MAP = 4,      /* as ALLOCATE */
    RECORD_UNMAP = 5,    /* then word: bytes */
    RECORD_OBJECT = 6,   /* an object begins in a block: bits 48-63: 8 bytes of its type's least size; then word: site in 0-31, type in 32-63 */
    RECORD_META = 7,     /* bits 3-15: enum meta_kind; 16-31: words that follow; 32-63: argument */
};

enum free_kind {
    FREE_BLOCK = 0,
    FREE_OBJECT = 1,  /* an object dies, its block may live on */
    FREE_UNDONE = 2,  /* the block of the last FREE at this address lives on: its realloc failed */
    FREE_RESIZED = 3, /* a realloc begins: the ALLOCATE that follows in this thread is its result */
};

enum meta_kind {
    META_SITE = 1,    /* argument: number; words: program counters, innermost first */
    META_MODULE = 2,  /* words: start, end, difference of addresses to the file's, then path, NUL */
    META_THREAD = 3,  /* argument: tid; words: name, NUL */
    META_LOST = 4,    /* argument: events of this thread that are missing here */
    META_FORK = 5,    /* argument: number of the fork */
    META_TYPE = 6,    /* argument: number; words: bytes of an instance, of an element; name, NUL */
    META_FRAME = 7,   /* words: what stands for its pc in META_SITE, line; function, NUL, file, NUL */
    META_COLLECTION_START = 8, /* argument: generation */
    META_COLLECTION_END = 9,   /* argument: generation; words: collected, uncollectable */
    META_THREAD_END = 11,
    META_MOVE = 12,   /* words: address of an object before a collection and after it; between its START and its END, from one thread */
};

#endif
