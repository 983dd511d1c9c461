/*
 * Decodes the events of AntTracks buffers: see ../decoding/kernel.py, which has the same in Python and says what each argument is;
 * ../layout.py defines the words.
 *
 * Words are foreign. An event is read only as far as its buffer goes: `need` grows by each optional part, and is compared
 * before that part is read. Symbols are found by number below the length of their table. The caller made each column as long
 * as there are words.
 */
#include "arrays.h"

/* As in ../decoding/problem.py. */
enum { NONE, NO_EVENT, CUT_SHORT, NO_SITE, NO_TYPE, TOO_HIGH, TOO_LONG };

/* Kinds and flags of records, as in ../../records.py. */
enum {
    R_ALLOCATE = 1, R_ALLOCATE_NEXT, R_BUFFER, R_GC_BUFFER, R_COLLECTION_START, R_COLLECTION_END, R_COLLECTS, R_FAILED, R_BARRIER,
    R_MOVE, R_MOVE_NEXT, R_MOVE_RUN, R_KEEP, R_SNAPSHOT_MOVE, R_SNAPSHOT_KEEP, R_SPACE_DEFINE, R_SPACE_KIND, R_SPACE_RELEASE,
    R_SPACE_DESTROY, R_THREAD_BEGIN, R_THREAD_END, R_MARK, R_POINTERS
};
enum { F_FILLER = 1, F_VM = 2, F_FAILED = 4, F_REDEFINES = 8, F_INTERPRETED = 16, F_OUTSIDE = 32, F_ODD = 128 };
enum { T_UNKNOWN, T_INSTANCE, T_ARRAY, T_GIVEN_SIZE };

enum { MAX_LENGTH = 0x7FFFFFFF, HIGHEST = 0x3FFFFFFF, NAME_WORDS = 11 };
enum { BITS_SMALL_SITES = 0x7FFF, BITS_BIG_SITES = 0x7FFFFF, IS_BIG_SITE = 0x800000, BITS_PLACE = 0xFFFFFF };

static inline int64_t word(int32_t one)
{
    return (uint32_t)one;
}

/* Two words are one number, the lower first; whether it is one that can be. */
static inline int is_long(const int32_t *two)
{
    return word(two[1]) <= HIGHEST;
}

static inline int64_t as_long(const int32_t *two)
{
    return word(two[0]) | word(two[1]) << 32;
}

static inline int has_nul(uint32_t x)
{
    return !(x & 0xFF) || !(x & 0xFF00) || !(x & 0xFF0000) || !(x & 0xFF000000);
}

GCSPY_LOOP int64_t decode(struct i32s words, struct i64s bounds, struct i32s owners, struct i64s state, int64_t anchor,
                          struct i64s fixed_words, struct i64s spare_bits, struct i32s small_sites, struct i32s big_sites,
                          struct i32s site_type, struct u8s site_flags, struct i32s type_rows, struct u8s type_kind,
                          struct i64s instance_bytes, struct i64s header_bytes, struct i64s element_bytes, struct u8s filler_type,
                          struct u8s internal_site, struct u8s kind, struct u8s detail, struct u8s flags, struct i32s thread,
                          struct i32s buffer, struct i32s offset, struct i64s address, struct i64s to, struct i64s size,
                          struct i32s type, struct i32s site, struct i32s length, struct i32s pointer_record,
                          struct u8s pointer_kind, struct i64s pointer_value)
{
    int64_t base = state.at[0], n = 0, pointers = 0, pointers_before = 0, i = 0, b = 0;
    int problem = NONE;
    for (int64_t each = 0; each < owners.length; each++) {
        b = each;
        i = bounds.at[b];
        int64_t end = bounds.at[b + 1];
        while (i < end) {
            int64_t w = word(words.at[i]);
            int event = (int)(w >> 26);
            int64_t need = fixed_words.at[event];
            pointers_before = pointers;
            if (need == 0) {
                problem = NO_EVENT;
                goto invalid;
            }
            if (i + need > end) {
                problem = CUT_SHORT;
                goto invalid;
            }
            int64_t k = 0, d = 0, f = 0, a = 0, t = 0, s = 0, ty = 0, si = 0, le = 0;
            const int32_t *at = words.at + i + 1;
            if ((15 <= event && event <= 29) || event == 36 || event == 37) {
                /* A site, and an object of which the size is known. */
                int small = !(w & IS_BIG_SITE), has_type = 1;
                if (!small) {
                    int64_t number = w & BITS_BIG_SITES;
                    si = number < big_sites.length ? big_sites.at[number] : 0;
                } else {
                    si = small_sites.at[w >> 8 & BITS_SMALL_SITES];
                    le = w & 0xFF;
                }
                if (si == 0) {
                    problem = NO_SITE;
                    goto invalid;
                }
                int snapshot = event >= 36;
                f = site_flags.at[si];
                /* Optional parts of an event make it longer by this many words. */
                if (!snapshot) {
                    if (event == 15)
                        f |= F_VM;
                    else if (event <= 19)
                        f |= F_INTERPRETED;
                    int has_address = event != 19 && event != 23 && event != 28 && event != 29;
                    has_type = event == 15 || event == 17 || event == 21 || event == 26 || event == 29;
                    k = has_address ? R_ALLOCATE : R_ALLOCATE_NEXT;
                    if (event == 18 || event == 22 || event == 27)
                        f |= F_OUTSIDE;
                    if (has_address) {
                        if (!is_long(at)) {
                            problem = TOO_HIGH;
                            goto invalid;
                        }
                        a = as_long(at);
                        at += 2;
                    }
                    if (small && le == 255) {
                        need++;
                        if (i + need > end) {
                            problem = CUT_SHORT;
                            goto invalid;
                        }
                        le = word(*at++);
                    }
                } else {
                    k = event == 36 ? R_SNAPSHOT_MOVE : R_SNAPSHOT_KEEP;
                    le = 0;
                }
                if (has_type) {
                    int64_t number = word(*at++);
                    ty = number < type_rows.length ? type_rows.at[number] : 0;
                } else {
                    ty = site_type.at[si];
                }
                int tk = type_kind.at[ty];
                if (tk == T_UNKNOWN) {
                    problem = NO_TYPE;
                    goto invalid;
                }
                if (snapshot) {
                    if (!is_long(at) || (event == 36 && !is_long(at + 2))) {
                        problem = TOO_HIGH;
                        goto invalid;
                    }
                    a = t = as_long(at);
                    at += 2;
                    if (event == 36) {
                        t = as_long(at);
                        at += 2;
                    }
                    if (tk == T_ARRAY) {
                        need++;
                        if (i + need > end) {
                            problem = CUT_SHORT;
                            goto invalid;
                        }
                        le = word(*at);
                    }
                }
                if (tk == T_GIVEN_SIZE && has_type && event != 29) {
                    need++;
                    if (i + need > end) {
                        problem = CUT_SHORT;
                        goto invalid;
                    }
                    s = word(*at);
                } else if (tk == T_ARRAY) {
                    if (le > MAX_LENGTH) {
                        problem = TOO_LONG;
                        goto invalid;
                    }
                    s = (header_bytes.at[ty] + element_bytes.at[ty] * le + 7) & ~(int64_t)7;
                } else {
                    s = instance_bytes.at[ty];
                }
                if (tk != T_ARRAY) {
                    if (le != 0)
                        f |= F_ODD;
                    le = 0;
                }
                if (internal_site.at[si] && filler_type.at[ty])
                    f |= F_FILLER;
            } else if ((30 <= event && event <= 35) || event >= 39) {
                /* A move, a stay, or pointers; bits 0 to 23 of the latter are kinds of pointers. */
                if (event == 30 || event == 39)
                    k = R_MOVE;
                else if (event == 34)
                    k = R_MOVE_RUN;
                else if (event == 35 || event == 42)
                    k = R_KEEP;
                else if (event >= 43)
                    k = R_POINTERS;
                else
                    k = R_MOVE_NEXT;
                if (k == R_POINTERS)
                    d = event - 43;
                else if (k == R_MOVE_NEXT)
                    d = w >> 24 & 3;
                else if (k == R_MOVE_RUN)
                    le = w & BITS_PLACE;
                if (event == 33) {
                    a = base + ((w & BITS_PLACE) >> 2) * 8;
                } else if (event == 32 || event == 41) {
                    a = base + word(*at++) * 8;
                } else {
                    if (!is_long(at)) {
                        problem = TOO_HIGH;
                        goto invalid;
                    }
                    a = as_long(at);
                    at += 2;
                    if (k == R_MOVE || k == R_MOVE_RUN) {
                        if (!is_long(at)) {
                            problem = TOO_HIGH;
                            goto invalid;
                        }
                        t = as_long(at);
                        at += 2;
                    }
                }
                if (event >= 39) {
                    for (int shift = 22; shift >= 0; shift -= 2) {
                        int pk = (int)(w >> shift & 3);
                        if (pk == 1 || pk == 2)
                            need += pk;
                    }
                    if (i + need > end) {
                        problem = CUT_SHORT;
                        goto invalid;
                    }
                    /* The target of the previous pointer: from the object's new place, until there is an address. */
                    int64_t target = 0;
                    int known = 0;
                    for (int shift = 22; shift >= 0; shift -= 2) {
                        int pk = (int)(w >> shift & 3);
                        int64_t value = 0;
                        if (pk == 0)
                            continue;
                        if (pk == 1) {
                            target -= (int64_t)8 * *at++;
                            value = target;
                            if (known)
                                pk = 2;
                        } else if (pk == 2) {
                            if (!is_long(at)) {
                                problem = TOO_HIGH;
                                goto invalid;
                            }
                            value = target = as_long(at);
                            at += 2;
                            known = 1;
                        }
                        pointer_record.at[pointers] = (int32_t)n;
                        pointer_kind.at[pointers] = (uint8_t)pk;
                        pointer_value.at[pointers] = value;
                        pointers++;
                    }
                }
            } else if (event == 0) {
                k = R_BARRIER;
            } else if (event == 1) {
                if (!is_long(at)) {
                    problem = TOO_HIGH;
                    goto invalid;
                }
                k = R_MARK;
                s = as_long(at);
            } else if (event <= 3) {
                if (!is_long(at + 1) || !is_long(at + 3)) {
                    problem = TOO_HIGH;
                    goto invalid;
                }
                k = event == 2 ? R_COLLECTION_START : R_COLLECTION_END;
                d = w >> 16 & 0xFF;
                ty = w >> 8 & 0xFF;
                f = w & 1 ? F_FAILED : 0;
                le = word(at[0]);
                s = as_long(at + 1);
                a = as_long(at + 3);
            } else if (event == 4) {
                k = R_COLLECTS;
                le = w & BITS_PLACE;
                s = word(at[0]);
            } else if (event == 5) {
                k = R_FAILED;
                le = w & BITS_PLACE;
            } else if (event == 6 || event == 9) {
                if (!is_long(at + 1) || !is_long(at + 3)) {
                    problem = TOO_HIGH;
                    goto invalid;
                }
                k = R_SPACE_DEFINE;
                f = event == 9 ? F_REDEFINES : 0;
                le = word(at[0]);
                a = as_long(at + 1);
                s = as_long(at + 3);
            } else if (event == 7) {
                k = R_SPACE_KIND;
                d = w >> 18 & 0xFF;
                ty = w >> 10 & 0xFF;
                le = word(at[0]);
            } else if (event == 8) {
                k = R_SPACE_RELEASE;
                le = word(at[0]);
            } else if (event == 10) {
                if (!is_long(at + 1)) {
                    problem = TOO_HIGH;
                    goto invalid;
                }
                k = R_SPACE_DESTROY;
                le = word(at[0]);
                s = as_long(at + 1);
            } else if (event == 11 || event == 12) {
                if (!is_long(at)) {
                    problem = TOO_HIGH;
                    goto invalid;
                }
                a = as_long(at);
                k = R_THREAD_END;
                if (event == 11) {
                    k = R_THREAD_BEGIN;
                    int64_t of_thread = w >> 8 & 0xFFFF;
                    d = of_thread < 255 ? of_thread : 255;
                    /* The name ends with the first word that has a NUL, or is as long as may be. */
                    for (int more = 0; more < NAME_WORDS && !has_nul((uint32_t)words.at[i + need - 1]); more++) {
                        need++;
                        if (i + need > end) {
                            problem = CUT_SHORT;
                            goto invalid;
                        }
                    }
                }
            } else {
                if (!is_long(at) || !is_long(at + 2)) {
                    problem = TOO_HIGH;
                    goto invalid;
                }
                k = event == 13 ? R_BUFFER : R_GC_BUFFER;
                s = as_long(at);
                a = as_long(at + 2);
            }
            if (i + need + anchor > end)
                problem = CUT_SHORT;
            else if (le > MAX_LENGTH)
                problem = TOO_LONG;
            if (problem)
                goto invalid;
            if (event == 2 || event == 3)
                base = a;
            if (w & spare_bits.at[event])
                f |= F_ODD;
            kind.at[n] = (uint8_t)k;
            detail.at[n] = (uint8_t)d;
            flags.at[n] = (uint8_t)f;
            thread.at[n] = owners.at[b];
            buffer.at[n] = (int32_t)b;
            offset.at[n] = (int32_t)((i - bounds.at[b]) * 4);
            address.at[n] = a;
            to.at[n] = t;
            size.at[n] = s;
            type.at[n] = (int32_t)ty;
            site.at[n] = (int32_t)si;
            length.at[n] = (int32_t)le;
            n++;
            i += need + anchor;
        }
    }
    goto done;
invalid:
    pointers = pointers_before;
done:
    state.at[0] = base;
    state.at[1] = problem;
    state.at[2] = i;
    state.at[3] = b;
    state.at[4] = pointers;
    return n;
}
