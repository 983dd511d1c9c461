/* CRC-32 of frames of some hundred bytes: eight bytes at a time by table, without a call into zlib for each. */
#include "wire.h"

static uint32_t table[8][256];

__attribute__((constructor)) static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? 0xEDB88320u ^ (crc >> 1) : crc >> 1;
        table[0][i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int slice = 1; slice < 8; slice++)
            table[slice][i] = (table[slice - 1][i] >> 8) ^ table[0][table[slice - 1][i] & 0xFF];
}

uint32_t gcspy_crc(uint32_t crc, const uint8_t *bytes, size_t count)
{
    crc = ~crc;
    for (; count >= 8; bytes += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, bytes, sizeof word);
        word ^= crc;
        crc = table[7][word & 0xFF] ^ table[6][word >> 8 & 0xFF] ^ table[5][word >> 16 & 0xFF]
            ^ table[4][word >> 24 & 0xFF] ^ table[3][word >> 32 & 0xFF] ^ table[2][word >> 40 & 0xFF]
            ^ table[1][word >> 48 & 0xFF] ^ table[0][word >> 56];
    }
    while (count--)
        crc = (crc >> 8) ^ table[0][(crc ^ *bytes++) & 0xFF];
    return ~crc;
}
