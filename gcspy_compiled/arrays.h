/* Arrays of Python as arguments, for loops in C that gcspy_compiled/c_loops.py calls. */
#ifndef GCSPY_ARRAYS_H
#define GCSPY_ARRAYS_H

#include <stddef.h>
#include <stdint.h>

#define GCSPY_LOOP __attribute__((visibility("default")))

/* A contiguous array: its entries, how many rows, and how many entries a row has (1: it has one dimension). */
struct i64s {
    int64_t *at;
    int64_t length, width;
};

struct i32s {
    int32_t *at;
    int64_t length, width;
};

struct i8s {
    int8_t *at;
    int64_t length, width;
};

struct u16s {
    uint16_t *at;
    int64_t length, width;
};

struct u8s {
    uint8_t *at;
    int64_t length, width;
};

#if defined(__GNUC__)
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define LIKELY(condition) (condition)
#define UNLIKELY(condition) (condition)
#define PREFETCH(address) ((void)(address))
#endif

#endif
