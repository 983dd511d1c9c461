/*
 * Loops over the bytes of a heap dump: see ../loops.py, which has the same in Python, and says what each
 * argument is.
 *
 * Every length in a dump is checked once, by count_records and scan; the other loops read only what
 * these have found. Identifiers are signed; those of objects are positive.
 */
#include "arrays.h"

/* loops.State */
enum state {
    AT,
    STOP,
    OBJECTS,
    ROOTS,
    TEXTS,
    LOADS,
    FRAMES,
    TRACES,
    FIELDS,
    STATICS,
    CLASSES,
    NEXT,
    TARGETS,
    MISSING,
    EXTRA,
    PROBLEM,
    PROBLEM_AT,
    SEGMENT_BYTES,
};

/* loops.Problem */
enum problem {
    NONE,
    CUT_RECORD,
    RECORD_BEYOND,
    RECORD_TOO_SHORT,
    UNKNOWN_SUB,
    SUB_BEYOND,
    UNKNOWN_TYPE,
    NO_CLASS,
    SHORT_INSTANCE,
};

/* layout.Tag */
enum tag { TEXT = 0x01, LOAD_CLASS = 0x02, STACK_FRAME = 0x04, STACK_TRACE = 0x05, HEAP_DUMP = 0x0C, SEGMENT = 0x1C };

/* layout.Sub */
enum sub { CLASS = 0x20, INSTANCE = 0x21, OBJECT_ARRAY = 0x22, VALUE_ARRAY = 0x23 };

enum { RECORD_HEAD = 9, OBJECT = 2, AHEAD = 8 };

/* Columns of loops.ClassInfo. */
enum info { FIELD_BYTES = 4, FIRST_FIELD, FIELD_COUNT, FIRST_STATIC, STATIC_COUNT };

/* The tables of `scan`, one behind the other. */
struct tables {
    struct i64s texts, loads, frames, traces;
};

/* The columns of classes of `follow`. */
struct classes {
    struct i64s address, layout_bytes, layout_starts, layout, node, unheld;
};

static inline int64_t u1(const uint8_t *data, int64_t at) { return data[at]; }

static inline int64_t u2(const uint8_t *data, int64_t at) { return ((int64_t)data[at] << 8) | data[at + 1]; }

static inline int64_t u4(const uint8_t *data, int64_t at)
{
    return ((int64_t)data[at] << 24) | ((int64_t)data[at + 1] << 16) | ((int64_t)data[at + 2] << 8) | data[at + 3];
}

/* An identifier of four or eight bytes. */
static inline int64_t identifier(const uint8_t *data, int64_t at, int64_t width)
{
    int64_t high = u4(data, at);
    return width == 4 ? high : (int64_t)(((uint64_t)high << 32) | (uint64_t)u4(data, at + 4));
}

/* Bytes of a value of a type; 0: there is no such type. */
static inline int64_t type_bytes(int64_t kind, int64_t width)
{
    switch (kind) {
    case 2:
        return width;
    case 4:
    case 8:
        return 1;
    case 5:
    case 9:
        return 2;
    case 6:
    case 10:
        return 4;
    case 7:
    case 11:
        return 8;
    default:
        return 0;
    }
}

/* Bytes of a root behind its kind; 0: it is not a root. */
static inline int64_t root_bytes(int64_t sub, int64_t width)
{
    switch (sub) {
    case 0xFF:
    case 0x05:
    case 0x07:
        return width;
    case 0x01:
        return 2 * width;
    case 0x02:
    case 0x03:
    case 0x08:
        return width + 8;
    case 0x04:
    case 0x06:
        return width + 4;
    default:
        return 0;
    }
}

static int64_t fail(int64_t *state, int64_t problem, int64_t at, int64_t result)
{
    state[PROBLEM] = problem;
    state[PROBLEM_AT] = at;
    return result;
}

/* Walk over a class's constants, statics and fields, and count them; returns where it ends, -1: there is an error. */
static int64_t class_end(const uint8_t *data, int64_t at, int64_t stop, int64_t width, int64_t *state)
{
    int64_t begin = at - 1;
    at += 7 * width + 8;
    for (int part = 0; part < 3; part++) {
        if (stop - at < 2)
            return fail(state, SUB_BEYOND, begin, -1);
        int64_t count = u2(data, at), head = part == 0 ? 2 : width;
        at += 2;
        for (int64_t i = 0; i < count; i++) {
            if (stop - at < head + 1)
                return fail(state, SUB_BEYOND, begin, -1);
            int64_t size = type_bytes(u1(data, at + head), width);
            if (size == 0)
                return fail(state, UNKNOWN_TYPE, at + head, -1);
            at += head + 1;
            if (part < 2)
                at += size;
        }
        if (at > stop)
            return fail(state, SUB_BEYOND, begin, -1);
        if (part == 1)
            state[STATICS] += count;
        else if (part == 2)
            state[FIELDS] += count;
    }
    return at;
}

GCSPY_LOOP int64_t count_records(struct u8s bytes, struct i64s states)
{
    const uint8_t *data = bytes.at;
    int64_t *state = states.at, at = state[AT], end = bytes.length;
    while (at < end) {
        if (end - at < RECORD_HEAD)
            return fail(state, CUT_RECORD, at, 0);
        int64_t tag = u1(data, at), length = u4(data, at + 5);
        if (length > end - at - RECORD_HEAD)
            return fail(state, RECORD_BEYOND, at, 0);
        switch (tag) {
        case TEXT:
            state[TEXTS]++;
            break;
        case LOAD_CLASS:
            state[LOADS]++;
            break;
        case STACK_FRAME:
            state[FRAMES]++;
            break;
        case STACK_TRACE:
            state[TRACES]++;
            break;
        case HEAP_DUMP:
        case SEGMENT:
            state[SEGMENT_BYTES] += length;
            break;
        default:
            break;
        }
        at += RECORD_HEAD + length;
    }
    return 1;
}

/* Enter a record that is no segment into its table; 0: there is a problem. */
static int64_t enter_record(const uint8_t *data, int64_t at, int64_t length, int64_t width, const struct tables *tables, int64_t *state)
{
    int64_t tag = u1(data, at), body = at + RECORD_HEAD, *row;
    int64_t least = tag == TEXT          ? width
                    : tag == LOAD_CLASS  ? 8 + 2 * width
                    : tag == STACK_FRAME ? 8 + 4 * width
                    : tag == STACK_TRACE ? 12
                                         : 0;
    if (length < least)
        return fail(state, RECORD_TOO_SHORT, at, 0);
    switch (tag) {
    case TEXT:
        row = tables->texts.at + 3 * state[TEXTS]++;
        row[0] = identifier(data, body, width);
        row[1] = body + width;
        row[2] = length - width;
        break;
    case LOAD_CLASS:
        row = tables->loads.at + 3 * state[LOADS]++;
        row[0] = u4(data, body);
        row[1] = identifier(data, body + 4, width);
        row[2] = identifier(data, body + 8 + width, width);
        break;
    case STACK_FRAME:
        row = tables->frames.at + 3 * state[FRAMES]++;
        row[0] = identifier(data, body, width);
        row[1] = identifier(data, body + width, width);
        row[2] = u4(data, body + 4 * width);
        break;
    case STACK_TRACE: {
        int64_t count = u4(data, body + 8);
        if (count > (length - 12) / width)
            return fail(state, RECORD_TOO_SHORT, at, 0);
        row = tables->traces.at + 3 * state[TRACES]++;
        row[0] = u4(data, body);
        row[1] = body + 12;
        row[2] = count;
        break;
    }
    default:
        break;
    }
    return 1;
}

/* Bytes of a sub-record behind its kind; -1: there is a problem. */
static int64_t sub_bytes(const uint8_t *data, int64_t at, int64_t stop, int64_t width, int64_t *state)
{
    int64_t sub = u1(data, at), body = at + 1, room = stop - body, size = root_bytes(sub, width);
    if (size > 0) {
        ;
    } else if (sub == INSTANCE) {
        size = 2 * width + 8;
        if (size <= room)
            size += u4(data, body + 2 * width + 4);
    } else if (sub == OBJECT_ARRAY) {
        size = 2 * width + 8;
        if (size <= room)
            size += width * u4(data, body + width + 4);
    } else if (sub == VALUE_ARRAY) {
        size = width + 9;
        if (size <= room) {
            int64_t kind = u1(data, body + width + 8), item = type_bytes(kind, width);
            if (item == 0 || kind == OBJECT)
                return fail(state, UNKNOWN_TYPE, body + width + 8, -1);
            size += item * u4(data, body + width + 4);
        }
    } else if (sub == CLASS) {
        int64_t end = class_end(data, body, stop, width, state);
        if (end < 0)
            return -1;
        size = end - body;
        state[CLASSES]++;
    } else {
        return fail(state, UNKNOWN_SUB, at, -1);
    }
    return size > room ? fail(state, SUB_BEYOND, at, -1) : size;
}

GCSPY_LOOP int64_t scan(struct u8s bytes, int64_t width, const struct tables *tables, struct i64s address, struct i64s place,
                        struct i64s roots, struct i64s states, int64_t most)
{
    const uint8_t *data = bytes.at;
    int64_t *state = states.at, at = state[AT], stop = state[STOP], end = bytes.length;
    int64_t n = state[OBJECTS], r = state[ROOTS], left = most, size = 0;
    while (left > 0 && size >= 0 && at < end) {
        if (at < stop) {
            left--;
            size = sub_bytes(data, at, stop, width, state);
            if (size < 0)
                break;
            int64_t sub = u1(data, at), body = at + 1;
            if (CLASS <= sub && sub <= VALUE_ARRAY) {
                address.at[n] = identifier(data, body, width);
                place.at[n++] = at;
            } else {
                roots.at[r++] = at;
            }
            at = body + size;
            continue;
        }
        int64_t tag = u1(data, at), length = u4(data, at + 5);
        if (tag == HEAP_DUMP || tag == SEGMENT) {
            at += RECORD_HEAD;
            stop = at + length;
            continue;
        }
        if (!enter_record(data, at, length, width, tables, state))
            size = -1;
        at += RECORD_HEAD + length;
        stop = at;
    }
    state[AT] = at;
    state[STOP] = stop;
    state[OBJECTS] = n;
    state[ROOTS] = r;
    return size >= 0 && at < end;
}

GCSPY_LOOP void describe(struct u8s bytes, int64_t width, struct i64s place, struct i64s infos, struct i64s fields,
                         struct i64s statics)
{
    const uint8_t *data = bytes.at;
    int64_t f = 0, s = 0;
    for (int64_t row = 0; row < place.length; row++) {
        int64_t at = place.at[row] + 1 + width + 4, *info = infos.at + infos.width * row;
        for (int column = 0; column < 4; column++)
            info[column] = identifier(data, at + column * width, width);
        at += 6 * width + 4;
        int64_t count = u2(data, at);
        at += 2;
        for (int64_t i = 0; i < count; i++)
            at += 3 + type_bytes(u1(data, at + 2), width);
        count = u2(data, at);
        at += 2;
        info[FIRST_STATIC] = s;
        info[STATIC_COUNT] = count;
        for (int64_t i = 0; i < count; i++) {
            int64_t kind = u1(data, at + width), *each = statics.at + 4 * s++;
            each[0] = row;
            each[1] = identifier(data, at, width);
            each[2] = kind;
            each[3] = at + width + 1;
            at += width + 1 + type_bytes(kind, width);
        }
        count = u2(data, at);
        at += 2;
        info[FIRST_FIELD] = f;
        info[FIELD_COUNT] = count;
        int64_t size = 0;
        for (int64_t i = 0; i < count; i++) {
            int64_t kind = u1(data, at + width), *each = fields.at + 3 * f++;
            each[0] = row;
            each[1] = identifier(data, at, width);
            each[2] = kind;
            size += type_bytes(kind, width);
            at += width + 1;
        }
        info[FIELD_BYTES] = size;
    }
}

/* The objects by address. */
struct index {
    const int64_t *address;
    const int32_t *buckets;
    int64_t length, shift;
};

/* Number of the object at an address; -1: there is none. */
static inline int64_t number_of(int64_t wanted, const struct index *index)
{
    const int64_t *address = index->address;
    if (wanted < address[0] || wanted > address[index->length - 1])
        return -1;
    int64_t bucket = (wanted - address[0]) >> index->shift;
    int64_t low = index->buckets[bucket], high = index->buckets[bucket + 1];
    while (low < high) {
        int64_t middle = (low + high) >> 1;
        if (address[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low < index->length && address[low] == wanted ? low : -1;
}

/* Row of a value in an ascending column; -1: it is not there. */
static int64_t row_of(int64_t wanted, const struct i64s *ascending)
{
    int64_t low = 0, high = ascending->length;
    while (low < high) {
        int64_t middle = (low + high) >> 1;
        if (ascending->at[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ascending->length && ascending->at[low] == wanted ? low : -1;
}

/* Append a reference to an address; 0: nothing. */
static inline void refer(int64_t to, const struct index *index, int32_t *targets, int64_t *state)
{
    if (to == 0)
        return;
    int64_t found = number_of(to, index);
    if (found >= 0)
        targets[state[TARGETS]++] = (int32_t)found;
    else
        state[MISSING]++;
}

GCSPY_LOOP int64_t follow(struct u8s bytes, int64_t width, struct i64s address, struct i64s place, struct i32s buckets, int64_t shift,
                          const struct classes *classes, struct i64s infos, struct i64s statics, struct i64s extra,
                          struct i32s kinds, struct i64s amounts, struct i64s starts, struct i32s target, struct i64s states,
                          int64_t most)
{
    const uint8_t *data = bytes.at;
    const struct index index = {address.at, buckets.at, address.length, shift};
    int64_t *state = states.at, n = address.length, k = classes->address.length;
    int64_t first = state[NEXT], stop = most < n - first ? first + most : n;
    int64_t last = -1, row = -1;
    int32_t *targets = target.at;
    for (int64_t i = first; i < stop; i++) {
        starts.at[i] = state[TARGETS];
        if (i + AHEAD < stop)
            PREFETCH(data + place.at[i + AHEAD]);
        int64_t at = place.at[i], sub = u1(data, at), body = at + 1, amount = 0, kind;
        if (sub == INSTANCE || sub == OBJECT_ARRAY) {
            int64_t class = identifier(data, body + width + (sub == INSTANCE ? 4 : 8), width);
            if (class != last) {
                last = class;
                row = row_of(class, &classes->address);
            }
            if (row < 0) {
                amounts.at[i] = 0;
                return fail(state, NO_CLASS, at, 0);
            }
        }
        if (sub == INSTANCE) {
            kind = row;
            if (u4(data, body + 2 * width + 4) < classes->layout_bytes.at[row]) {
                amounts.at[i] = 0;
                kinds.at[i] = (int32_t)kind;
                return fail(state, SHORT_INSTANCE, at, 0);
            }
            int64_t unheld = classes->unheld.at[row], fields = body + 2 * width + 8;
            if (unheld >= 0)
                targets[state[TARGETS]++] = (int32_t)i;
            for (int64_t field = classes->layout_starts.at[row]; field < classes->layout_starts.at[row + 1]; field++) {
                int64_t offset = classes->layout.at[field];
                if (offset != unheld)
                    refer(identifier(data, fields + offset, width), &index, targets, state);
            }
        } else if (sub == OBJECT_ARRAY) {
            kind = row;
            amount = u4(data, body + width + 4);
            int64_t items = body + 2 * width + 8;
            for (int64_t item = 0; item < amount; item++)
                refer(identifier(data, items + item * width, width), &index, targets, state);
        } else if (sub == VALUE_ARRAY) {
            kind = k + u1(data, body + width + 8);
            amount = u4(data, body + width + 4);
        } else {
            kind = k;
            /* It is there: classes are the objects with a sub-record of this kind. */
            const int64_t *info = infos.at + infos.width * row_of(address.at[i], &classes->address);
            for (int column = 0; column < 4; column++)
                refer(info[column], &index, targets, state);
            for (int64_t s = info[FIRST_STATIC]; s < info[FIRST_STATIC] + info[STATIC_COUNT]; s++)
                if (statics.at[4 * s + 2] == OBJECT)
                    refer(identifier(data, statics.at[4 * s + 3], width), &index, targets, state);
        }
        kinds.at[i] = (int32_t)kind;
        amounts.at[i] = amount;
        if (kind < k && classes->node.at[row] >= 0)
            targets[state[TARGETS]++] = (int32_t)classes->node.at[row];
        while (state[EXTRA] < extra.length && extra.at[2 * state[EXTRA]] == i)
            targets[state[TARGETS]++] = (int32_t)extra.at[2 * state[EXTRA]++ + 1];
    }
    state[NEXT] = stop;
    starts.at[stop] = state[TARGETS];
    return stop < n;
}
