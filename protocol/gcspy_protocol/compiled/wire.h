/* Numbers, checksums and types of the wire (protocol/SPEC.md sections 3 and 6), for encode.c and decode.c. */
#ifndef GCSPY_WIRE_H
#define GCSPY_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire is little-endian, and this copies numbers as they are in memory"
#endif

#define GCSPY_API __attribute__((visibility("default")))

/* Loops that are compiled for processors with AVX2 as well; which one runs is decided when the library is loaded. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define WIDE_LOOP __attribute__((target_clones("avx2", "default")))
#else
#define WIDE_LOOP
#endif

enum {
    HEADER_BYTES = 28,
    KEY_BYTES = 16,
    DELTA_BYTES = 32,
    SUMMARY_BYTES = 8,
    TYPE_KEY = 0x21,
    TYPE_DELTA = 0x22,
    TYPE_SUMMARY = 0x23,
    HAS_BITMAP = 1,
    ESCAPE = 0xFFFF,
    USED = 1,
    COMPRESSED_FROM = 512,
};

/* Bytes of a value by the number of its type, 1 i1, 2 u1, 3 i2 ... 8 u8; 0: there is no such type. */
static inline uint32_t value_bytes(uint8_t type)
{
    return type >= 1 && type <= 8 ? 1u << ((type - 1) / 2) : 0;
}

static inline void put16(uint8_t *at, uint16_t value) { memcpy(at, &value, sizeof value); }
static inline void put32(uint8_t *at, uint32_t value) { memcpy(at, &value, sizeof value); }
static inline void put64(uint8_t *at, uint64_t value) { memcpy(at, &value, sizeof value); }

/* CRC-32 (IEEE, as in zlib), continued from an earlier one; 0 to begin. */
uint32_t gcspy_crc(uint32_t crc, const uint8_t *bytes, size_t count);

#endif
