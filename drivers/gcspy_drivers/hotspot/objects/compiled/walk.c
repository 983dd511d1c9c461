/*
 * The walk from object to object of a JVM's heap: see ../kernels.py, which has the same in Python and says what each argument is.
 *
 * The copy may be torn or damaged in any way: each index is checked against it before it is used, each object must end within
 * its span, and each step goes forward.
 */
#include "arrays.h"

/* Why a walk stopped: Stop of ../heap_walk.py. */
enum { DONE, UNKNOWN, BAD, MORE, ROOM };
/* Header of ../form.py, ClassShape and Trait of ../../vm/klasses.py. */
enum { NARROW, PLAIN };
enum { REFUSED, INSTANCE, ARRAY, MIRROR, CHUNK };
enum { FILLER = 1, REFERENCES = 2 };
/* STATE and PLACE of ../heap_walk.py. */
enum { AT, FILLED, WORD };
enum { ADDRESS, STOP, TILES, SHIFT, SURVIVES, REFERS, YOUNG, LOW, GRAIN, BASE, MARKED_TOP, MARKS, MARK_SHIFT, ALONE };
/* FORM of ../form.py. */
enum {
    CLASS_BY, CLASS_END, CLASS_SHIFT, CLASS_MASK, LENGTH_OFFSET, ALIGNMENT, MIRROR_SIZE, MIRROR_STATICS, CHUNK_SIZE, CHUNK_BITS,
    AGE_SHIFT, AGE_MASK, REFERENCE_BYTES, REFERENCE_BASE, REFERENCE_SHIFT
};
/* Columns: of classes, SUM and REFERENCE of ../heap_objects.py. */
enum { SHAPE, SIZE, ELEMENT_SHIFT, TRAITS, FIRST_MAP, MAPS, CLASS_COLUMNS };
enum { OBJECTS, ARRAYS, INSTANCE_BYTES, ARRAY_BYTES, FREE, DEAD, MARKED, MARKED_BYTES, SUMS };
enum { WITHIN, OUT, INTO, DOWN, UP, REFERENCE_COLUMNS };
enum { UNKNOWN_AGE = 16 };

static const int64_t MAX_LENGTH = 0x7FFFFFFF, LOW_HALF = 0xFFFFFFFF;

/* A half or all of a word: the 32 bits at an offset in bytes. */
static inline int64_t half_at(const int64_t *words, int64_t offset)
{
    return words[offset >> 3] >> ((offset & 4) << 3) & LOW_HALF;
}

static inline int64_t least(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* Add the bytes of a range to each tile that it crosses. */
static inline void spread(int64_t *sums, int column, int64_t offset, int64_t size, int64_t shift)
{
    int64_t first = offset >> shift, last = (offset + size - 1) >> shift;
    if (first == last) {
        sums[SUMS * first + column] += size;
        return;
    }
    sums[SUMS * first + column] += ((first + 1) << shift) - offset;
    for (int64_t tile = first + 1; tile < last; tile++)
        sums[SUMS * tile + column] += (int64_t)1 << shift;
    sums[SUMS * last + column] += offset + size - (last << shift);
}

/* The first marked address from one on, or the end of the marks. */
static int64_t next_mark(const struct i64s *marks, int64_t here, const int64_t *place)
{
    int64_t bit = (here - place[MARKS]) >> place[MARK_SHIFT];
    int64_t last = least(marks->length << 6, (place[MARKED_TOP] - place[MARKS]) >> place[MARK_SHIFT]);
    if (bit < 0)
        return here;
    while (bit < last) {
        uint64_t word = (uint64_t)marks->at[bit >> 6] >> (bit & 63);
        if (word == 0) {
            bit = ((bit >> 6) + 1) << 6;
        } else {
            bit += __builtin_ctzll(word);
            break;
        }
    }
    return place[MARKS] + (least(bit, last) << place[MARK_SHIFT]);
}

/* The number of a class, -1 where it is not known: slot_of of ../../vm/klasses.py. */
static inline int64_t number_of(int64_t word, const struct i64s *keys, const int32_t *numbers)
{
    /* Open addressing with linear probing; the number of slots is a power of two, and key 0 is an empty slot. */
    int64_t mask = keys->length - 1, at = ((word >> 3) ^ (word >> 13) ^ word) & mask;
    for (int64_t step = 0; step < keys->length && keys->at[at] != 0; step++) {
        if (keys->at[at] == word)
            return numbers[at];
        at = (at + 1) & mask;
    }
    return -1;
}

/* Write a tile's counts of each class, and reset the tally to zeros. */
static int64_t flush(int64_t *tally, const int64_t *touched, int64_t count, int64_t *entries, int64_t filled, int64_t tile)
{
    for (int64_t step = 0; step < count; step++) {
        int64_t number = touched[step], *entry = entries + 4 * filled++;
        entry[0] = tile;
        entry[1] = number;
        entry[2] = tally[2 * number];
        entry[3] = tally[2 * number + 1];
        tally[2 * number] = tally[2 * number + 1] = 0;
    }
    return filled;
}

/* What counting references needs. */
struct counter {
    const struct i64s *words;
    const int64_t *place, *form;
    struct i64s references;
    struct i8s generations;
};

/* Count the references of places one behind the other, from an offset in bytes on; those beyond the copy are not examined. */
static void count_places(const struct counter *counter, int64_t begin, int64_t count)
{
    const int64_t *place = counter->place, *form = counter->form, *words = counter->words->at;
    int64_t each = form[REFERENCE_BYTES], shift = place[SHIFT], low = place[LOW];
    int64_t top = low + (counter->generations.length << place[GRAIN]);
    int narrow = each == 4;
    if (begin < 0)
        return;
    for (int64_t step = 0; step < count; step++) {
        int64_t at = begin + step * each;
        if (at >> 3 >= counter->words->length)
            break;
        int64_t value = narrow ? half_at(words, at) : words[at >> 3];
        if (value == 0)
            continue;
        int64_t target = narrow ? form[REFERENCE_BASE] + (value << form[REFERENCE_SHIFT]) : value;
        if (target < low || target >= top)
            continue;
        int64_t mine = (place[ADDRESS] + at - place[BASE]) >> shift, theirs = (target - place[BASE]) >> shift;
        int64_t tiles = counter->references.length;
        if (mine < 0 || mine >= tiles || theirs < 0 || theirs >= tiles)
            continue;
        int64_t *from = counter->references.at + REFERENCE_COLUMNS * mine;
        if (mine == theirs) {
            from[WITHIN]++;
        } else {
            from[OUT]++;
            counter->references.at[REFERENCE_COLUMNS * theirs + INTO]++;
        }
        /* A card table has to remember old to young. */
        int other = counter->generations.at[(target - low) >> place[GRAIN]];
        if (place[YOUNG] == 0 && other == 1)
            from[DOWN]++;
        else if (place[YOUNG] == 1 && other == 0)
            from[UP]++;
    }
}

/* Count the references of one object, all of which is in the copy. */
static void refer(const struct counter *counter, int64_t end, int64_t at, int64_t size, const int64_t *class, const struct i64s *maps)
{
    const int64_t *form = counter->form;
    int64_t room = least(size, (end - at) << 3), each = form[REFERENCE_BYTES], begin = at << 3;
    if (class[SHAPE] == ARRAY) {
        if (class[TRAITS] & REFERENCES)
            count_places(counter, begin + class[SIZE], (room - class[SIZE]) / each);
        return;
    }
    /* Instances: offset and count of consecutive reference fields, as the class declares them. */
    for (int64_t step = class[FIRST_MAP]; step < class[FIRST_MAP] + class[MAPS] && step < maps->length; step++) {
        int64_t offset = maps->at[2 * step], count = maps->at[2 * step + 1];
        count_places(counter, begin + offset, least(count, (room - offset) / each));
    }
    if (class[SHAPE] == MIRROR && form[MIRROR_STATICS] && form[MIRROR_STATICS] + 4 <= room) {
        int64_t statics = half_at(counter->words->at + at, form[MIRROR_STATICS]);
        count_places(counter, begin + class[SIZE], least(statics, (room - class[SIZE]) / each));
    }
}

GCSPY_LOOP int64_t walk(struct i64s words, int64_t end, struct i64s state, struct i64s places, struct i64s forms,
                        struct i64s keys, struct i32s numbers, struct i64s classes, struct i64s maps, struct i64s gaps,
                        struct i64s marks, struct i64s tally, struct i64s touched, struct i64s sums, struct i64s entries,
                        struct i64s ages, struct i64s references, struct i8s generations)
{
    const int64_t *place = places.at, *form = forms.at;
    const struct counter counter = {&words, place, form, references, generations};
    int64_t at = state.at[AT], filled = state.at[FILLED], gap = 0, count = 0, tile = -1, why = DONE;
    int64_t address = place[ADDRESS], stop = place[STOP], tiles = place[TILES], shift = place[SHIFT];
    int64_t last = least(end, (stop - address) >> 3);
    while (at < last) {
        int64_t here = address + (at << 3);
        /* Gaps are sorted and `here` only grows, so that one cursor is enough. */
        while (gap < gaps.length && gaps.at[2 * gap + 1] <= here)
            gap++;
        if (gap < gaps.length && gaps.at[2 * gap] <= here) {
            int64_t size = least(gaps.at[2 * gap + 1], stop) - here;
            spread(sums.at, FREE, here - tiles, size, shift);
            at += size >> 3;
            continue;
        }
        /* Below the marked top only marked objects are alive: count the bytes up to the next mark as dead. */
        if (here < place[MARKED_TOP] && here < place[ALONE]) {
            int64_t following = next_mark(&marks, here, place);
            if (following > here) {
                /* An object that is alone in its regions is dead with all of them. */
                int64_t size = (place[ALONE] >= stop ? least(following, stop) : stop) - here;
                spread(sums.at, DEAD, here - tiles, size, shift);
                at += size >> 3;
                continue;
            }
        }
        if (at + form[CLASS_END] > end) {
            why = MORE;
            break;
        }
        /* The class: a compressed pointer in the second word, a plain one, or bits of the header word. */
        int64_t word;
        if (form[CLASS_BY] == NARROW)
            word = words.at[at + 1] & LOW_HALF;
        else if (form[CLASS_BY] == PLAIN)
            word = words.at[at + 1];
        else
            word = words.at[at] >> form[CLASS_SHIFT] & form[CLASS_MASK];
        int64_t number = number_of(word, &keys, numbers.at);
        if (number < 0) {
            state.at[WORD] = word;
            why = word == 0 ? BAD : UNKNOWN;
            break;
        }
        const int64_t *class = classes.at + CLASS_COLUMNS * number;
        int64_t shape = class[SHAPE], size = class[SIZE];
        if (shape == ARRAY) {
            /* The header, and the length times the size of an element. */
            if (at + (form[LENGTH_OFFSET] >> 3) >= end) {
                why = MORE;
                break;
            }
            int64_t length = half_at(words.at + at, form[LENGTH_OFFSET]);
            if (length > MAX_LENGTH) {
                why = BAD;
                break;
            }
            size += length << class[ELEMENT_SHIFT];
        } else if (shape == MIRROR || shape == CHUNK) {
            /* These store their own size in a field; a chunk of a stack has a bit map behind its words. */
            int64_t offset = shape == MIRROR ? form[MIRROR_SIZE] : form[CHUNK_SIZE];
            if (at + (offset >> 3) >= end) {
                why = MORE;
                break;
            }
            int64_t length = half_at(words.at + at, offset);
            if (length > MAX_LENGTH || (shape == MIRROR && length << 3 < size)) {
                why = BAD;
                break;
            }
            size = shape == MIRROR ? length << 3 : size + ((length + ((length * form[CHUNK_BITS] + 63) >> 6)) << 3);
        }
        /* Round up to the alignment of objects, a power of two. */
        size = (size + form[ALIGNMENT] - 1) & -form[ALIGNMENT];
        if (shape == REFUSED || size <= 0 || here + size > stop) {
            why = BAD;
            break;
        }
        int filler = here >= place[ALONE] || (class[TRAITS] & FILLER) != 0;
        int refers = place[REFERS] != 0 && !filler && (shape != ARRAY || (class[TRAITS] & REFERENCES) != 0);
        /* References are counted only in an object that is completely in the copy. */
        if (refers && at + (size >> 3) > end) {
            why = MORE;
            break;
        }
        /* Tiles only grow along the walk: the tally of a tile is written when the next one begins. */
        int64_t now = (here - tiles) >> shift;
        if (filled + count + 1 > entries.length) {
            why = ROOM;
            break;
        }
        if (now != tile) {
            filled = flush(tally.at, touched.at, count, entries.at, filled, tile);
            count = 0;
            tile = now;
        }
        if (filler) {
            spread(sums.at, FREE, here - tiles, size, shift);
            at += size >> 3;
            continue;
        }
        if (tally.at[2 * number] == 0)
            touched.at[count++] = number;
        tally.at[2 * number]++;
        tally.at[2 * number + 1] += size;
        int64_t *sum = sums.at + SUMS * now;
        sum[OBJECTS]++;
        if (shape == ARRAY) {
            sum[ARRAYS]++;
            spread(sums.at, ARRAY_BYTES, here - tiles, size, shift);
        } else {
            spread(sums.at, INSTANCE_BYTES, here - tiles, size, shift);
        }
        if (here < place[MARKED_TOP]) {
            sum[MARKED]++;
            spread(sums.at, MARKED_BYTES, here - tiles, size, shift);
        }
        if (place[SURVIVES]) {
            /* The age is in the mark word if its lowest bits are 01; a locked or forwarded header has none. */
            int64_t mark = words.at[at], age = (mark & 3) == 1 ? mark >> form[AGE_SHIFT] & form[AGE_MASK] : UNKNOWN_AGE;
            ages.at[2 * age]++;
            ages.at[2 * age + 1] += size;
        }
        if (refers)
            refer(&counter, end, at, size, class, &maps);
        at += size >> 3;
    }
    state.at[FILLED] = flush(tally.at, touched.at, count, entries.at, filled, tile);
    state.at[AT] = at;
    return why;
}
