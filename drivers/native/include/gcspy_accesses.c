/* Accesses of a program to its memory, noted for GCspy: a runtime for the hooks of -fsanitize=thread or kernel-address.
 *
 *     cc -O2 -fsanitize=thread -c program.c                         # each file of the program
 *     cc -O2 -c "$(gcspy --include-dir)/gcspy_accesses.c"           # this file, without -fsanitize
 *     cc program.o gcspy_accesses.o -o program                      # without -fsanitize as well
 *     gcspy attach PID --driver malloc --level 3 --option ages=on
 *
 * The compiler calls a hook at each read and each write of memory. The sanitizer's own runtime looks
 * for races; this one writes the number of the current period into a table, two bytes for each 16
 * bytes of memory, and nothing else. GCspy reads the table from outside, and advances the number.
 * To leave out hooks that do nothing here, add to the flags of the first line
 * `--param tsan-instrument-func-entry-exit=0` (gcc) or `-mllvm -tsan-instrument-func-entry-exit=0` (clang).
 *
 * Quicker, with gcc: checks that are compiled in place, and a hook for the first access of a period only.
 *
 *     gcc -O2 -fsanitize=kernel-address -fasan-shadow-offset=0x200000000000 --param asan-stack=0 --param asan-globals=0 \
 *         --param asan-instrument-allocas=0 --param asan-instrumentation-with-call-threshold=1000000 -c program.c
 *     gcc -O2 -DGCSPY_ACCESSES_IN_PLACE -c "$(gcspy --include-dir)/gcspy_accesses.c"
 *     gcc program.o gcspy_accesses.o -o program
 *
 * A second table has a byte for each 8 bytes of memory. Where it is not 0 the check calls a hook, which writes 0 there
 * and the number of the period into the first table. GCspy advances the number, and then sets these bytes again. Of an
 * access to more than 16 bytes only the first and the last byte are checked; and of one that is not aligned, the first.
 *
 * Not seen: code that is compiled without the flag, such as the C library (memcpy of a fixed size is
 * mostly compiled in place), and what the compiler keeps in registers. The table needs 16 TiB of
 * address space and, of memory, an eighth of what the program touches. x86-64 and Linux only.
 *
 * Source: LLVM, compiler-rt/lib/tsan/rtl/tsan_interface.h; gcc/sanitizer.def.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(__x86_64__) || !defined(__linux__)
#error "gcspy_accesses.c is for Linux on x86-64"
#endif

#define TABLE ((uintptr_t)0x100000000000)      /* where no program and no library is loaded */
#define TABLE_BYTES ((size_t)0x100000000000)   /* two for each 16 of 47 bits of addresses */
#define CHECKS ((uintptr_t)0x200000000000)     /* a byte for each 8; as many bytes */

struct control { /* as gcspy_drivers.remote.pages.access_table reads it */
    char magic[8];
    uint32_t version, unit_bytes;
    uint64_t table, table_bytes;
    uint64_t period_at; /* where the number of the period is */
    uint64_t checks;    /* where the table of the checks in place is; 0: there is none */
};

static volatile uint16_t period = 1; /* written by gcspy */
static int begun;

static void give_up(const char *why)
{
    fprintf(stderr, "gcspy_accesses: %s\n", why);
    abort();
}

static void make_table(uintptr_t address)
{
    void *want = (void *)address;
    if (mmap(want, TABLE_BYTES, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) != want)
        give_up("no room for a table of accesses: 16 TiB of address space (ulimit -v, vm.overcommit_memory=2)");
    madvise(want, TABLE_BYTES, MADV_NOHUGEPAGE); /* memory for what is touched only */
    madvise(want, TABLE_BYTES, MADV_DONTDUMP);
}

static void begin(void)
{
    uint64_t checks = 0;
    if (begun)
        return;
    begun = 1;
    make_table(TABLE);
#ifdef GCSPY_ACCESSES_IN_PLACE
    checks = CHECKS;
    make_table(CHECKS);
#endif
    int fd = memfd_create("gcspy-accesses", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 4096))
        give_up("no memory that is visible by its name");
    struct control *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (made == MAP_FAILED)
        give_up("no memory that is visible by its name");
    close(fd);
    *made = (struct control){"gcspyac", 2, 16, TABLE, TABLE_BYTES, (uintptr_t)&period, checks};
}

/* Before the constructors of the program, which have hooks, too. Only a program has such a section: link this file into
 * the program, once, also where only a library of it has hooks. */
static void begin_early(int count, char **words, char **environment)
{
    (void)count, (void)words, (void)environment;
    begin();
}
__attribute__((section(".preinit_array"), used)) static void (*before_all)(int, char **, char **) = begin_early;

void __tsan_init(void) { begin(); }

#define PLACE(address) ((volatile uint16_t *)(TABLE + (((uintptr_t)(address) >> 3) & ~(uintptr_t)1)))
#define MARK(address) (*PLACE(address) = period)

static inline void mark_all(const void *address, uintptr_t bytes)
{
    volatile uint16_t *place = PLACE(address), *last;
    if (!bytes)
        return;
    last = PLACE((uintptr_t)address + bytes - 1);
    for (; place <= last; place++)
        *place = period;
}

#define HOOKS(n)                                                             \
    void __tsan_read##n(void *p) { MARK(p); }                                \
    void __tsan_write##n(void *p) { MARK(p); }                               \
    void __tsan_read_write##n(void *p) { MARK(p); }                          \
    void __tsan_volatile_read##n(void *p) { MARK(p); }                       \
    void __tsan_volatile_write##n(void *p) { MARK(p); }                      \
    void __tsan_unaligned_read##n(void *p) { mark_all(p, n); }               \
    void __tsan_unaligned_write##n(void *p) { mark_all(p, n); }              \
    void __tsan_unaligned_read_write##n(void *p) { mark_all(p, n); }         \
    void __tsan_unaligned_volatile_read##n(void *p) { mark_all(p, n); }      \
    void __tsan_unaligned_volatile_write##n(void *p) { mark_all(p, n); }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

void __tsan_read_range(void *p, uintptr_t bytes) { mark_all(p, bytes); }
void __tsan_write_range(void *p, uintptr_t bytes) { mark_all(p, bytes); }
void __tsan_read1_pc(void *p, void *pc) { (void)pc; MARK(p); }
void __tsan_write1_pc(void *p, void *pc) { (void)pc; MARK(p); }
void __tsan_vptr_read(void **p) { MARK(p); }
void __tsan_vptr_update(void **p, void *value) { (void)value; MARK(p); }
void __tsan_func_entry(void *pc) { (void)pc; }
void __tsan_func_exit(void) {}
void __tsan_ignore_thread_begin(void) {}
void __tsan_ignore_thread_end(void) {}

/* The compiler replaces atomic operations by these, so they must do them; always in the strongest order. */
#define ATOMICS(bits, type)                                                                            \
    type __tsan_atomic##bits##_load(const volatile type *p, int order)                                 \
    { (void)order; MARK(p); return __atomic_load_n(p, __ATOMIC_SEQ_CST); }                             \
    void __tsan_atomic##bits##_store(volatile type *p, type value, int order)                          \
    { (void)order; MARK(p); __atomic_store_n(p, value, __ATOMIC_SEQ_CST); }                            \
    type __tsan_atomic##bits##_exchange(volatile type *p, type value, int order)                       \
    { (void)order; MARK(p); return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST); }                  \
    type __tsan_atomic##bits##_fetch_add(volatile type *p, type value, int order)                      \
    { (void)order; MARK(p); return __atomic_fetch_add(p, value, __ATOMIC_SEQ_CST); }                   \
    type __tsan_atomic##bits##_fetch_sub(volatile type *p, type value, int order)                      \
    { (void)order; MARK(p); return __atomic_fetch_sub(p, value, __ATOMIC_SEQ_CST); }                   \
    type __tsan_atomic##bits##_fetch_and(volatile type *p, type value, int order)                      \
    { (void)order; MARK(p); return __atomic_fetch_and(p, value, __ATOMIC_SEQ_CST); }                   \
    type __tsan_atomic##bits##_fetch_or(volatile type *p, type value, int order)                       \
    { (void)order; MARK(p); return __atomic_fetch_or(p, value, __ATOMIC_SEQ_CST); }                    \
    type __tsan_atomic##bits##_fetch_xor(volatile type *p, type value, int order)                      \
    { (void)order; MARK(p); return __atomic_fetch_xor(p, value, __ATOMIC_SEQ_CST); }                   \
    type __tsan_atomic##bits##_fetch_nand(volatile type *p, type value, int order)                     \
    { (void)order; MARK(p); return __atomic_fetch_nand(p, value, __ATOMIC_SEQ_CST); }                  \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *p, type *expected, type value, int order, int other) \
    { (void)order, (void)other; MARK(p); return __atomic_compare_exchange_n(p, expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); } \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type *p, type *expected, type value, int order, int other) \
    { return __tsan_atomic##bits##_compare_exchange_strong(p, expected, value, order, other); }        \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *p, type expected, type value, int order, int other) \
    { __tsan_atomic##bits##_compare_exchange_strong(p, &expected, value, order, other); return expected; }
ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

void __tsan_atomic_thread_fence(int order) { (void)order; __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int order) { (void)order; __atomic_signal_fence(__ATOMIC_SEQ_CST); }

#ifdef GCSPY_ACCESSES_IN_PLACE
/* A check has found a byte that is not 0. First the byte, then the number: GCspy changes the number first. So a byte that
 * stays 0 belongs to an access that is noted in the period that ends, or in the next one. */
static void first_access(const void *address, uintptr_t bytes)
{
    uintptr_t first = (uintptr_t)address >> 3, last = ((uintptr_t)address + bytes - 1) >> 3;
    if (!bytes)
        return;
    memset((void *)(CHECKS + first), 0, last - first + 1);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    mark_all(address, bytes);
}

#define CHECKED(n)                                                           \
    void __asan_report_load##n##_noabort(void *p) { first_access(p, n); }    \
    void __asan_report_store##n##_noabort(void *p) { first_access(p, n); }
CHECKED(1)
CHECKED(2)
CHECKED(4)
CHECKED(8)
CHECKED(16)
void __asan_report_load_n_noabort(void *p, uintptr_t bytes) { first_access(p, bytes); }
void __asan_report_store_n_noabort(void *p, uintptr_t bytes) { first_access(p, bytes); }
void __asan_handle_no_return(void) {}
#endif

/* clang replaces these calls, too. */
void *__tsan_memcpy(void *to, const void *from, uintptr_t bytes) { mark_all(from, bytes); mark_all(to, bytes); return memcpy(to, from, bytes); }
void *__tsan_memmove(void *to, const void *from, uintptr_t bytes) { mark_all(from, bytes); mark_all(to, bytes); return memmove(to, from, bytes); }
void *__tsan_memset(void *to, int value, uintptr_t bytes) { mark_all(to, bytes); return memset(to, value, bytes); }
