/*
 * Loops over a copied heap: where its objects are, and their bytes as sub-records of a heap dump. See
 * ../kernels.py, which has the same in Python, and says what each argument is.
 *
 * The copy may be torn in any way: each index is checked against it before it is used, each object must
 * end within its span, and each step goes forward. Numbers wrap around (-fwrapv).
 */
#include "arrays.h"

/* heap_walk.WalkStop */
enum stop { DONE = 0, UNKNOWN = 1, BAD = 2, ROOM = 4 };

/* form.ObjectHeader, klasses.ClassShape, klasses.Trait, layout.Sub */
enum header { NARROW = 0, PLAIN = 1 };
enum shape { ARRAY = 2, MIRROR = 3, CHUNK = 4 };
enum trait { FILLER = 1 };
enum sub { INSTANCE = 0x21, OBJECTS = 0x22, VALUES = 0x23 };

/* form.FORM */
enum form {
    HEADER,
    HEADER_WORDS,
    CLASS_SHIFT,
    CLASS_MASK,
    LENGTH_OFFSET,
    ALIGNMENT,
    MIRROR_SIZE,
    MIRROR_STATICS,
    CHUNK_SIZE,
    CHUNK_BITS,
    AGE_SHIFT,
    AGE_MASK,
    OOP_BYTES,
    OOP_BASE,
    OOP_SHIFT,
};

/* `place` of `index` */
enum place { FIRST, MARKED_TOP, MARKS_BASE, MARK_SHIFT, ALONE, COPIED_BYTES };

/* Columns of klasses.Klasses.classes. */
enum column { SHAPE, SIZE, LOG_ELEMENT, TRAITS };

/* First marked address from one on, or the end of the marks. */
static int64_t next_mark(const struct i64s *marks, int64_t here, const int64_t *place)
{
    int64_t bit = (here - place[MARKS_BASE]) >> place[MARK_SHIFT];
    bit = bit < 0 ? 0 : bit;
    int64_t last = (place[MARKED_TOP] - place[MARKS_BASE]) >> place[MARK_SHIFT];
    if (marks->length << 6 < last)
        last = marks->length << 6;
    while (bit < last) {
        uint64_t word = (uint64_t)marks->at[bit >> 6] >> (bit & 63);
        if (word & 1)
            break;
        if (word == 0)
            bit = ((bit >> 6) + 1) << 6;
        else
            bit++;
    }
    return place[MARKS_BASE] + ((bit < last ? bit : last) << place[MARK_SHIFT]);
}

/* End of a range without live objects that begins at an address, or that address if there is none; `gap` is the first that ends behind it. */
static int64_t without_objects(int64_t here, int64_t gap, const int64_t *place, const struct i64s *gaps, const struct i64s *marks)
{
    int64_t top = place[FIRST] + place[COPIED_BYTES];
    if (gap < gaps->length && gaps->at[2 * gap] <= here)
        return gaps->at[2 * gap + 1];
    if (here < place[MARKED_TOP]) {
        int64_t following = next_mark(marks, here, place);
        if (following > here)
            return place[ALONE] ? top : following;
    }
    /* Behind the object of a humongous series there is at most what fills its last region. */
    return place[ALONE] && here > place[FIRST] ? top : here;
}

/* What identifies the class of an object: a compressed pointer in the second word, a plain one, or bits of the header word. */
static inline int64_t class_word(const int64_t *words, int64_t at, const int64_t *form)
{
    if (form[HEADER] == NARROW)
        return words[at + 1] & 0xFFFFFFFFll;
    if (form[HEADER] == PLAIN)
        return words[at + 1];
    return (words[at] >> form[CLASS_SHIFT]) & form[CLASS_MASK];
}

/* Bytes of an object, rounded up to the alignment of objects; -1: it contradicts itself, or its class. */
static int64_t size_of(const struct i64s *words, int64_t at, const int64_t *row, const int64_t *form)
{
    int64_t shape = row[SHAPE], size = row[SIZE];
    if (shape == 0)
        return -1;
    if (shape == ARRAY || shape == MIRROR || shape == CHUNK) {
        /* Mirrors and stack chunks store their own size in a field; a chunk has a bit map behind its words. */
        int64_t offset = form[shape == ARRAY ? LENGTH_OFFSET : shape == MIRROR ? MIRROR_SIZE : CHUNK_SIZE];
        if (at + (offset >> 3) >= words->length)
            return -1;
        int64_t length = (words->at[at + (offset >> 3)] >> ((offset & 4) << 3)) & 0xFFFFFFFFll;
        if (length > 0x7FFFFFFF || (shape == MIRROR && length << 3 < size))
            return -1;
        if (shape == ARRAY)
            size += length << row[LOG_ELEMENT];
        else if (shape == MIRROR)
            size = length << 3;
        else
            size += (length + ((length * form[CHUNK_BITS] + 63) >> 6)) << 3;
    }
    return (size + form[ALIGNMENT] - 1) & -form[ALIGNMENT];
}

/* Number of a class, -1: it is not known; as klasses.slot_of and klasses.Klasses have them. */
static inline int64_t number_of(int64_t word, const struct i64s *keys, const struct i32s *numbers)
{
    int64_t mask = keys->length - 1, at = ((word >> 3) ^ (word >> 13) ^ word) & mask;
    for (int64_t i = 0; i < keys->length && keys->at[at] != 0; i++) {
        if (keys->at[at] == word)
            return numbers->at[at];
        at = (at + 1) & mask;
    }
    return -1;
}

GCSPY_LOOP int64_t index(struct i64s words, struct i64s state, struct i64s places, struct i64s forms, struct i64s keys,
                         struct i32s numbers, struct i64s classes, struct i64s gaps, struct i64s marks, struct i64s where,
                         struct i32s kind)
{
    const int64_t *place = places.at, *form = forms.at;
    int64_t at = state.at[0], filled = state.at[1], gap = 0, why = DONE, address = place[FIRST], last = words.length;
    while (at < last) {
        int64_t here = address + (at << 3);
        while (gap < gaps.length && gaps.at[2 * gap + 1] <= here)
            gap++;
        int64_t following = without_objects(here, gap, place, &gaps, &marks);
        if (following > here) {
            at = (following - address + 7) >> 3;
            at = at < last ? at : last;
            continue;
        }
        if (at + form[HEADER_WORDS] > last) {
            why = BAD;
            break;
        }
        int64_t word = class_word(words.at, at, form), number = number_of(word, &keys, &numbers);
        if (number < 0) {
            state.at[2] = word;
            why = word == 0 ? BAD : UNKNOWN;
            break;
        }
        const int64_t *row = classes.at + classes.width * number;
        int64_t size = size_of(&words, at, row, form);
        if (size <= 0 || at + (size >> 3) > last) {
            why = BAD;
            break;
        }
        if (filled >= where.length) {
            why = ROOM;
            break;
        }
        if ((row[TRAITS] & FILLER) == 0) {
            where.at[filled] = at << 3;
            kind.at[filled] = (int32_t)number;
            filled++;
        }
        at += size >> 3;
    }
    state.at[0] = at;
    state.at[1] = filled;
    return why;
}

/* A number, least significant byte first; 0 beyond the copy. */
static inline int64_t number_at(const struct u8s *data, int64_t at, int64_t size)
{
    uint64_t found = 0;
    if (at < 0 || size > data->length - at)
        return 0;
    for (int64_t step = 0; step < size; step++)
        found |= (uint64_t)data->at[at + step] << (8 * step);
    return (int64_t)found;
}

/* Write a number, most significant byte first. */
static inline void put(uint8_t *out, int64_t number, int size)
{
    for (int step = 0; step < size; step++)
        out[step] = (uint8_t)((uint64_t)number >> (8 * (size - 1 - step)));
}

/* Write one value, most significant byte first; of size 0 it is a reference. Returns how many bytes it has. */
static inline int64_t value(const struct u8s *data, int64_t at, int64_t size, const int64_t *form, uint8_t *out)
{
    if (size == 0) {
        /* A narrow reference is decoded as base + (value << shift); null stays null. */
        int64_t found = form[OOP_BYTES] == 4 ? number_at(data, at, 4) : number_at(data, at, 8);
        if (form[OOP_BYTES] == 4 && found != 0)
            found = form[OOP_BASE] + (found << form[OOP_SHIFT]);
        put(out, found, 8);
        return 8;
    }
    int there = at >= 0 && size <= data->length - at;
    for (int64_t step = 0; step < size; step++)
        out[step] = there ? data->at[at + size - 1 - step] : 0;
    return size;
}

GCSPY_LOOP int64_t emit(struct u8s data, int64_t base, struct i64s where, struct i32s kind, struct i64s classes, struct i64s types,
                        struct i64s ids, struct i64s starts, struct i64s plans, struct i64s forms, struct u8s outs, int64_t filled)
{
    const int64_t *form = forms.at;
    uint8_t *out = outs.at;
    for (int64_t row = 0; row < where.length; row++) {
        int64_t number = kind.at[row], at = where.at[row];
        if (number < 0)
            continue;
        const int64_t *class = classes.at + classes.width * number;
        if (class[SHAPE] != ARRAY) {
            int64_t body = filled + 25;
            out[filled] = INSTANCE;
            put(out + filled + 1, base + at, 8);
            put(out + filled + 9, 0, 4);
            put(out + filled + 13, ids.at[number], 8);
            filled = body;
            for (int64_t step = starts.at[number]; step < starts.at[number + 1]; step++)
                filled += value(&data, at + plans.at[2 * step], plans.at[2 * step + 1], form, out + filled);
            put(out + body - 4, filled - body, 4);
            continue;
        }
        int64_t length = number_at(&data, at + form[LENGTH_OFFSET], 4), first = at + class[SIZE], type = types.at[number];
        out[filled] = type == 2 ? OBJECTS : VALUES;
        put(out + filled + 1, base + at, 8);
        put(out + filled + 9, 0, 4);
        put(out + filled + 13, length, 4);
        if (type == 2) {
            put(out + filled + 17, ids.at[number], 8);
            filled += 25;
            for (int64_t step = 0; step < length; step++)
                filled += value(&data, first + step * form[OOP_BYTES], 0, form, out + filled);
        } else {
            int64_t size = (int64_t)1 << class[LOG_ELEMENT];
            out[filled + 17] = (uint8_t)type;
            filled += 18;
            for (int64_t step = 0; step < length; step++)
                filled += value(&data, first + step * size, size, form, out + filled);
        }
    }
    return filled;
}
