/* Unpacks the LZW of AntTracks buffers: see ../lzw.py, which has the same in Python and says what each argument is. */
#include "arrays.h"

enum { NO_END = -1, NO_ENTRY = -2, TOO_LONG = -3, TOO_WIDE = -4, TRAILING = -5, WIDEST = 31 };

GCSPY_LOOP int64_t unpack(struct u8s packed, struct u8s out, struct i64s starts, struct i64s lengths)
{
    int width = 8, bits = 0, widened = 0;
    uint64_t held = 0;
    int64_t at = 0, count = 0, written = 0;
    for (;;) {
        /* The lowest `bits` bits of `held` are read and not used yet; a code takes `width` of them. */
        while (bits < width) {
            if (at == packed.length)
                return NO_END;
            held = (held & 0xFFFFFFFF) << 8 | packed.at[at++];
            bits += 8;
        }
        bits -= width;
        int64_t all_ones = ((int64_t)1 << width) - 1, code = (int64_t)(held >> bits) & all_ones;
        /* All ones: codes are one bit wider from here on. At 31 bits there is nothing wider. */
        if (code == all_ones) {
            if (width == WIDEST)
                return TOO_WIDE;
            width++;
            widened = 1;
            continue;
        }
        /* Zero right after a widening ends the payload. */
        if (widened && code == 0)
            return at == packed.length ? written : TRAILING;
        widened = 0;
        starts.at[count] = written;
        if (code < 256) {
            if (written == out.length)
                return TOO_LONG;
            out.at[written++] = (uint8_t)code;
            lengths.at[count] = 1;
        } else {
            /* Entry n: the n-th output and the first byte of the one after it. */
            int64_t entry = code - 256;
            if (entry >= count)
                return NO_ENTRY;
            int64_t start = starts.at[entry], length = lengths.at[entry] + 1;
            if (written + length > out.length)
                return TOO_LONG;
            /* Byte by byte: the entry may overlap the current output. */
            for (int64_t i = 0; i < length; i++)
                out.at[written + i] = out.at[start + i];
            written += length;
            lengths.at[count] = length;
        }
        count++;
    }
}
