/*
 * The loops that follow references through a copy of a process's memory: see ../loops.py, which has the
 * same in Python, and says what each argument is and what is known of the memory.
 *
 * The copy is foreign memory, and torn: every address is looked up in it, and every count is bounded by
 * it or by LIMIT. Numbers wrap around (-fwrapv).
 *
 * Source: CPython 3.9 to 3.15 Objects/dictobject.c, Objects/setobject.c, Modules/_collectionsmodule.c,
 * Include/internal/pycore_dict.h, pycore_frame.h, pycore_object.h, pycore_stackref.h.
 */
#include "arrays.h"

#define LIMIT ((int64_t)1 << 40) /* larger counts in memory are invalid */
#define USER_SPACE ((int64_t)1 << 47)
#define LOW 4096
#define U32 0xFFFFFFFFll
#define SIGN_32 0x80000000ll
#define BYTE 0xFF

enum { GRANULE_SHIFT = 21, AHEAD = 8 }; /* AHEAD: how many words to look at before they are needed */

enum state { NEXT, OBJECTS, TARGETS, FULL, LOOKS, OWN, OUTSIDE };

/* loops.Place */
enum place {
    MULTIPLIER,
    SHIFT,
    MASK,
    VERSION,
    MOST_REFERENCES,
    REFERENCE_BITS,
    FRAME_IN_GENERATOR,
    GENERATOR_STATE,
    CODE_LOCALS,
    FRAME_CODE,
    FRAME_LOCALS,
    FRAME_TOP,
    FRAME_OWNER,
    ASCII_AT,
    TEXT_AT,
    DIGITS_SHIFT,
    BASIC_TYPE_BYTES,
    COMPACT_KEYS,
    STACK_AT,
    FRAME_TAGS,
    GENERATOR_ENDED,
    MODULE_STATE,
    MODULE_STATE_BYTES,
    BYTEARRAY_OBJECT,
    CACHED_KEYS,
};

/* forms.Form */
enum form { PLAIN, LEAF, LIST, DICT, SET, DEQUE, MODULE, FRAME, GENERATOR, TYPE, TEXT, INTEGER, BYTEARRAY, NDARRAY, TUPLE, ARRAY };

/* Columns of forms.TypeForm. */
enum column { FORM, BASIC, ITEM, SKIPPED, HEAP, KEYS, PREFIX, ATTRIBUTES, IS_DICT, ITEMS_REFER, DICT_BEHIND };

enum { BEFORE = 1, TAGGED = 2, INSIDE = 3 };

enum {
    TYPE_FLAGS_WORD = 21,
    HEAP_TYPE = 1 << 9,
    DEQUE_BLOCK = 64,
    DEQUE_BLOCK_BYTES = 528,
    SMALL_TABLE = 7,
    OWNED = 2,         /* a frame that belongs to a frame object */
    POINTS_TO_TOP = 9, /* the version in which a frame has no number of words in use */
    OBJECT_DTYPE = 17,
    MOST_DIMENSIONS = 64,
    TOLD_APART = 62,
    SMALL_BYTES = 512,
    MOST_LOOKS = 32,
    MOST_FRAME_WORDS = 1 << 16,
};

/* Words of an object that are read because of its form, whatever size its type gives. */
static const int64_t LEAST_WORDS[] = {1, 1, 5, 6, 6, 6, 7, 11, 10, 22, 5, 3, 4, 9, 3, 6};

/* The shared data of the loops, in the order of loops.Walked. */
struct walked {
    struct i64s words, runs;
    struct i32s granules, seen;
    struct i64s address;
    struct i32s kind, parent, targets;
    struct i64s state;
    struct i32s slots;
    struct i64s type_address, layout;
};

/* The copy alone. */
struct copy {
    struct i64s words, runs;
    struct i32s granules;
};

struct sizes {
    int64_t own, outside;
};

static inline struct copy copy_of(const struct walked *w)
{
    struct copy copy = {w->words, w->runs, w->granules};
    return copy;
}

/* A number without its sign, at most LIMIT. */
static inline int64_t magnitude(int64_t number)
{
    if (number < 0)
        number = number < -LIMIT ? LIMIT : -number;
    return number < LIMIT ? number : LIMIT;
}

/* Row of the run that has a word's address, or -1. */
static inline int64_t locate(int64_t address, const struct i64s *runs, const struct i32s *granules)
{
    if (UNLIKELY(address < LOW || address >= USER_SPACE || address & 7))
        return -1;
    int64_t granule = address >> GRANULE_SHIFT;
    if (UNLIKELY(granule >= granules->length))
        return -1;
    int64_t row = (int64_t)granules->at[granule] - 1;
    if (row < 0)
        return -1;
    for (; row < runs->length && runs->at[3 * row] <= address; row++)
        if (address < runs->at[3 * row + 1])
            return row;
    return -1;
}

/* Row of the first run that begins behind an address, or -1. */
static int64_t next_run(int64_t address, const struct i64s *runs)
{
    int64_t first = 0, last = runs->length;
    while (first < last) {
        int64_t middle = (first + last) >> 1;
        if (runs->at[3 * middle] <= address)
            first = middle + 1;
        else
            last = middle;
    }
    return first < runs->length ? first : -1;
}

/* Index of an address in the copy, if this many words from there on are in one run; else -1. */
static inline int64_t find(int64_t address, int64_t count, const struct i64s *runs, const struct i32s *granules)
{
    int64_t row = locate(address, runs, granules);
    if (row < 0 || count < 0 || count > (runs->at[3 * row + 1] - address) >> 3)
        return -1;
    return runs->at[3 * row + 2] + ((address - runs->at[3 * row]) >> 3);
}

static inline int64_t place(const struct walked *w, int64_t address, int64_t count)
{
    return find(address, count, &w->runs, &w->granules);
}

/* Have the words of an object that will be needed soon brought to the cache. */
static inline void look_ahead(const struct walked *w, int64_t address)
{
    int64_t at = place(w, address, 2);
    if (at >= 0) {
        PREFETCH(&w->words.at[at]);
        PREFETCH(&w->seen.at[at >> 1]);
    }
}

/* Number of the object at an address, a new one if it was not met before; -1: there is none. */
static inline int64_t enter(const struct walked *w, int64_t address, int64_t by)
{
    int64_t at = place(w, address, 2);
    if (at < 0)
        return -1;
    int64_t before = w->seen.at[at >> 1];
    if (before != 0)
        /* Two objects cannot share sixteen bytes: the later candidate is rejected. */
        return w->address.at[before - 1] == address ? before - 1 : -1;
    int64_t word = w->words.at[at + 1];
    uint64_t slot = ((uint64_t)word * (uint64_t)w->layout.at[MULTIPLIER]) >> w->layout.at[SHIFT];
    int64_t row = w->slots.at[(int64_t)slot & w->layout.at[MASK]];
    if (row < 0 || w->type_address.at[row] != word)
        return -1;
    int64_t references = w->words.at[at] & ~w->layout.at[REFERENCE_BITS];
    if (references <= 0 || references > w->layout.at[MOST_REFERENCES])
        return -1;
    int64_t number = w->state.at[OBJECTS];
    if (UNLIKELY(number >= w->address.length)) {
        w->state.at[FULL] = 1;
        return -1;
    }
    w->seen.at[at >> 1] = (int32_t)(number + 1);
    w->address.at[number] = address;
    w->kind.at[number] = (int32_t)row;
    w->parent.at[number] = (int32_t)by;
    w->state.at[OBJECTS] = number + 1;
    return number;
}

/* Note that an object refers to an address, if an object is there; 0: there is no room for more references. */
static inline int refer(const struct walked *w, int64_t address, int64_t by)
{
    int64_t number = enter(w, address, by);
    if (number < 0)
        return 1;
    int64_t count = w->state.at[TARGETS];
    if (UNLIKELY(count >= w->targets.length)) {
        w->state.at[FULL] = 1;
        return 0;
    }
    w->targets.at[count] = (int32_t)number;
    w->state.at[TARGETS] = count + 1;
    return 1;
}

/* Count words that are examined; 0: they were too many. */
static inline int count_looks(const struct walked *w, int64_t count)
{
    w->state.at[LOOKS] += count;
    if (UNLIKELY(w->state.at[LOOKS] > MOST_LOOKS * w->words.length)) {
        w->state.at[FULL] = 1;
        return 0;
    }
    return 1;
}

/* Examine words of an object, and note the objects that they lead to; pages that were not copied are skipped. */
static void follow(const struct walked *w, int64_t start, int64_t count, int64_t stride, int64_t by)
{
    int64_t step = 8 * stride;
    const int64_t *runs = w->runs.at;
    while (count > 0) {
        int64_t row = locate(start, &w->runs, &w->granules);
        if (row < 0) {
            /* On to the first word that can be in the next run, if one of these is. */
            int64_t after = next_run(start, &w->runs);
            if (start < LOW || after < 0)
                return;
            int64_t passed = (runs[3 * after] - start + step - 1) / step;
            start += passed * step;
            count -= passed;
            continue;
        }
        int64_t here = (runs[3 * row + 1] - start + step - 1) / step;
        if (count < here)
            here = count;
        const int64_t *at = w->words.at + runs[3 * row + 2] + ((start - runs[3 * row]) >> 3);
        if (!count_looks(w, here))
            return;
        for (int64_t i = 1; i < AHEAD && i < here; i++)
            look_ahead(w, at[i * stride]);
        for (int64_t i = 0; i < here; i++) {
            if (i + AHEAD < here)
                look_ahead(w, at[(i + AHEAD) * stride]);
            int64_t word = at[i * stride];
            if (word < LOW || word & 7)
                continue;
            if (!refer(w, word, by))
                return;
        }
        start += here * step;
        count -= here;
    }
}

/* The same for words of a frame since 3.14: the lowest bit says that the word owns no reference; with the lowest two it is a number. */
static void follow_tagged(const struct walked *w, int64_t start, int64_t count, int64_t by)
{
    int64_t at = place(w, start, count);
    if (at < 0 || !count_looks(w, count))
        return;
    for (int64_t each = at; each < at + count; each++) {
        int64_t word = w->words.at[each];
        if (word < LOW || (word & 3) == 3)
            continue;
        if (!refer(w, word & ~(int64_t)1, by))
            return;
    }
}

/* Allocated size of a request: a block of pymalloc, or a chunk of malloc with its header. */
static inline int64_t rounded(int64_t size)
{
    if (size <= 0)
        return 0;
    return size <= SMALL_BYTES ? (size + 15) & ~(int64_t)15 : (size + 8 + 15) & ~(int64_t)15;
}

/* Allocated size of a request to malloc itself, with the chunk's header. */
static inline int64_t chunk(int64_t size)
{
    if (size <= 0)
        return 0;
    return size <= 24 ? 32 : (size + 8 + 15) & ~(int64_t)15;
}

/* Header of a dictionary's table. */
struct key_table {
    int64_t begin; /* address of its entries; 0: it is no table */
    int64_t entries;
    int64_t entry; /* bytes of one */
    int64_t size;  /* bytes of the table */
};

static struct key_table key_table(const struct walked *w, int64_t keys)
{
    const struct key_table none = {0, 0, 0, 0};
    const int64_t *words = w->words.at;
    int64_t at = place(w, keys, 5), entries, entry, slots, begin;
    if (at < 0)
        return none;
    if (w->layout.at[COMPACT_KEYS]) {
        int64_t head = words[at + 1];
        int64_t log_size = head & BYTE, log_index = (head >> 8) & BYTE, general = (head >> 16) & BYTE;
        entries = words[at + 3];
        if (log_size > 40 || log_index > 44 || general > 2)
            return none;
        entry = general == 0 ? 24 : 16;
        slots = (int64_t)1 << log_size;
        begin = keys + 32 + ((int64_t)1 << log_index);
    } else {
        slots = words[at + 1];
        entries = words[at + 4];
        if (slots <= 0 || slots > LIMIT)
            return none;
        int64_t width = slots <= 0xFF ? 1 : slots <= 0xFFFF ? 2 : slots <= U32 ? 4 : 8;
        entry = 24;
        begin = keys + 40 + slots * width;
    }
    int64_t usable = (slots << 1) / 3;
    if (entries < 0 || entries > usable)
        return none;
    struct key_table found = {begin, entries, entry, begin - keys + usable * entry};
    return found;
}

/* Follow a dictionary's keys and values; returns the bytes of its table. */
static int64_t dictionary(const struct walked *w, int64_t object, int64_t by)
{
    int64_t at = place(w, object, 6);
    if (at < 0)
        return 0;
    struct key_table table = key_table(w, w->words.at[at + 4]);
    if (table.begin == 0)
        return 0;
    int64_t values = w->words.at[at + 5];
    if (values != 0) {
        /* Its keys are its class's; the values are its own, or inside the instance. */
        follow(w, w->layout.at[VERSION] >= 13 ? values + 8 : values, table.entries, 1, by);
        return 8 * table.entries + 16;
    }
    int64_t key_at = table.entry == 24 ? 8 : 0;
    for (int column = 0; column < 2; column++)
        follow(w, table.begin + key_at + 8 * column, table.entries, table.entry >> 3, by);
    return rounded(table.size);
}

/* Follow an interpreter's frame that an object has (3.11 on); returns the bytes of its variables. */
static int64_t frame(const struct walked *w, int64_t address, int64_t by)
{
    const int64_t *words = w->words.at, *layout = w->layout.at;
    int64_t at = place(w, address, 9);
    if (at < 0)
        return 0;
    int64_t top = words[at + (layout[FRAME_TOP] >> 3)];
    if (layout[FRAME_TAGS]) {
        follow_tagged(w, address, 8, by);
        int64_t begin = address + layout[FRAME_LOCALS];
        top = begin <= top && top <= begin + 8 * MOST_FRAME_WORDS ? (top - begin) >> 3 : -1;
    } else {
        follow(w, address, 8, 1, by);
    }
    top &= U32;
    if (top >= SIGN_32) {
        /* It runs: only its variables are valid; behind them is another frame. */
        int64_t locals = layout[CODE_LOCALS];
        int64_t code = place(w, words[at + (layout[FRAME_CODE] >> 3)] & ~(int64_t)7, 1 + (locals >> 3));
        if (code < 0)
            return 0;
        top = (words[code + (locals >> 3)] >> (8 * (locals & 7))) & U32;
    }
    if (top > MOST_FRAME_WORDS)
        return 0;
    if (layout[FRAME_TAGS])
        follow_tagged(w, address + layout[FRAME_LOCALS], top, by);
    else
        follow(w, address + layout[FRAME_LOCALS], top, 1, by);
    return 8 * top;
}

/* Follow an instance's attributes that are not among its words; returns the bytes they have outside. */
static int64_t attributes(const struct walked *w, int64_t object, int64_t way, int64_t keys, int64_t basic, int64_t by)
{
    const int64_t *words = w->words.at;
    int64_t at = place(w, object - 32, 4);
    if (at < 0)
        return 0;
    int64_t dict = words[at + 1];
    if (way != TAGGED || (dict & 1) == 0)
        follow(w, object - 24, 1, 1, by);
    if (way == INSIDE) {
        int64_t values = place(w, object + basic, 1);
        if (values >= 0 && (words[values] >> 24) & BYTE)
            follow(w, object + basic + 8, words[values] & BYTE, 1, by);
        return 0;
    }
    int64_t start = way == BEFORE ? words[at] : dict & 1 ? dict + 1 : 0;
    struct key_table table = key_table(w, keys);
    if (start == 0 || table.begin == 0)
        return 0;
    follow(w, start, table.entries, 1, by);
    /* The values of 3.11 and 3.12, with the order of their insertion before them. */
    int64_t head = place(w, keys, 4);
    int64_t usable = head < 0 ? -1 : words[head + 2];
    if (usable < 0 || usable > LIMIT)
        return 0;
    int64_t room = table.entries + usable;
    return rounded(8 * room + ((room + 2 + 7) & ~(int64_t)7));
}

/* Follow a deque's items, block by block; returns the bytes of the blocks. */
static int64_t deque(const struct walked *w, int64_t object, int64_t by)
{
    const int64_t *words = w->words.at;
    int64_t at = place(w, object, 6);
    if (at < 0)
        return 0;
    int64_t count = words[at + 2], block = words[at + 3], left = words[at + 5], size = 0;
    while (count > 0 && left >= 0 && left < DEQUE_BLOCK && w->state.at[FULL] == 0) {
        int64_t here = place(w, block, DEQUE_BLOCK + 2);
        if (here < 0)
            break;
        int64_t items = count < DEQUE_BLOCK - left ? count : DEQUE_BLOCK - left;
        follow(w, block + 8 + 8 * left, items, 1, by);
        size += DEQUE_BLOCK_BYTES + 16;
        count -= items;
        left = 0;
        block = words[here + DEQUE_BLOCK + 1];
    }
    return size;
}

/* Bytes of the data that a numpy array owns, negative if these are references; `at` is its place in the copy. */
static int64_t array_bytes(const struct walked *w, int64_t at)
{
    const int64_t *words = w->words.at;
    if ((words[at + 8] & 4) == 0) /* a view: another one's data */
        return 0;
    int64_t dimensions = words[at + 3] & U32;
    int64_t descriptor = place(w, words[at + 7], 6), sizes = place(w, words[at + 4], dimensions);
    if (descriptor < 0 || dimensions > MOST_DIMENSIONS || (dimensions > 0 && sizes < 0))
        return 0;
    /* numpy 1 has the size of an item as 32 bits, beside its alignment; numpy 2 as 64, behind flags. */
    int64_t flags = words[descriptor + 4];
    int64_t total = flags >> 32 ? flags & U32 : words[descriptor + 5];
    if (total < 0 || total > LIMIT)
        return 0;
    for (int64_t each = 0; each < dimensions; each++) {
        int64_t extent = words[sizes + each];
        if (extent < 0 || (extent > 0 && total > LIMIT / extent))
            return 0;
        total *= extent;
    }
    if (((words[descriptor + 3] >> 32) & U32) == OBJECT_DTYPE)
        return -total;
    return total;
}

/* Bytes of the extents and strides of a numpy array, by the word with its number of dimensions. */
static int64_t shape_bytes(int64_t word)
{
    int64_t dimensions = word & U32;
    return dimensions <= MOST_DIMENSIONS ? chunk(16 * (dimensions > 1 ? dimensions : 1)) : 0;
}

/* Bytes of the table of names that a class's instances share. */
static int64_t shared_keys(const struct walked *w, int64_t here, int64_t at)
{
    int64_t keys = place(w, here + w->layout.at[CACHED_KEYS], 1);
    if (keys < 0 || (w->words.at[at + TYPE_FLAGS_WORD] & HEAP_TYPE) == 0)
        return 0;
    return rounded(key_table(w, w->words.at[keys]).size);
}

/* Bytes of a ``str`` from its header to its end; if its text is elsewhere, minus the bytes of the text. */
static int64_t text_bytes(const struct walked *w, int64_t at)
{
    int64_t length = w->words.at[at + 2], flags = w->words.at[at + 4] & U32;
    /* Since 3.12 a bit less is before the kind; both have it in the third to fifth bit. */
    int64_t width = (flags >> 2) & 7, compact = (flags >> 5) & 1, ascii = (flags >> 6) & 1;
    if (length < 0 || length > LIMIT || width > 4)
        return 0;
    if (!compact)
        return -(length + 1) * (width > 1 ? width : 1);
    return w->layout.at[ascii ? ASCII_AT : TEXT_AT] + (length + 1) * width;
}

/* Follow the references of one object's words and items; sets its sizes. */
static inline void look_into(const struct walked *w, int64_t number, const int64_t *form, struct sizes *out)
{
    const int64_t *words = w->words.at;
    int64_t here = w->address.at[number], at = place(w, here, 3);
    int64_t basic = form[BASIC];
    out->own = basic;
    out->outside = 0;
    if (form[FORM] == TYPE && at >= 0) {
        int64_t flags = place(w, here + 8 * TYPE_FLAGS_WORD, 1);
        if (flags >= 0 && (words[flags] & HEAP_TYPE) == 0)
            out->own = basic = w->layout.at[BASIC_TYPE_BYTES];
    }
    if (form[HEAP])
        follow(w, here + 8, 1, 1, number);
    else if (form[FORM] == LEAF || form[FORM] == TEXT || form[FORM] == INTEGER)
        basic = 0;
    int64_t end = basic >> 3, skipped = form[SKIPPED];
    if (form[FORM] == GENERATOR && w->layout.at[VERSION] > 10 && w->layout.at[FRAME_IN_GENERATOR] >> 3 < end)
        end = w->layout.at[FRAME_IN_GENERATOR] >> 3;
    for (int64_t word = 2; word < end; word++) {
        /* A run of words that may lead to held objects. */
        int64_t first = word;
        while (word < end && (word >= TOLD_APART || ((skipped >> word) & 1) == 0))
            word++;
        if (word > first)
            follow(w, here + 8 * first, word - first, 1, number);
    }
    int64_t item = form[ITEM];
    if (at >= 0 && item > 0 && form[FORM] != TEXT && form[FORM] != INTEGER && form[FORM] != FRAME && form[FORM] != GENERATOR) {
        int64_t count = magnitude(words[at + 2]);
        if (count < LIMIT / item) {
            out->own += count * item;
            if (form[ITEMS_REFER])
                follow(w, here + form[BASIC], count, 1, number);
        }
    }
}

/* Add the sizes of an object whose size is only in its own words; `at` is its index. */
static void measure(const struct walked *w, int64_t at, int64_t form, struct sizes *out)
{
    const int64_t *words = w->words.at;
    if (form == TEXT) {
        int64_t size = text_bytes(w, at);
        if (size >= 0)
            out->own = size;
        else
            out->outside += rounded(-size);
    } else if (form == INTEGER) {
        int64_t shift = w->layout.at[DIGITS_SHIFT];
        int64_t digits = shift ? words[at + 2] >> shift : magnitude(words[at + 2]);
        digits = digits < 1 ? 1 : digits > LIMIT ? LIMIT : digits;
        out->own = 24 + 4 * digits;
    } else if (form == ARRAY || !w->layout.at[BYTEARRAY_OBJECT]) {
        int64_t size = form == BYTEARRAY ? words[at + 3] : words[at + 4];
        if (size <= 0 || size >= LIMIT)
            size = 0;
        if (form == ARRAY) {
            int64_t description = place(w, words[at + 5], 1);
            size *= description >= 0 ? (words[description] >> 32) & BYTE : 1;
        }
        if (size > 0 && size < LIMIT)
            out->outside += rounded(size);
    }
}

/* Follow the state of a module's C code, whose size its definition or the module has; returns the bytes of the state. */
static int64_t module_state(const struct walked *w, int64_t here, int64_t at, int64_t by)
{
    const int64_t *words = w->words.at, *layout = w->layout.at;
    int64_t size = 0;
    if (layout[MODULE_STATE_BYTES]) {
        int64_t told = place(w, here + layout[MODULE_STATE_BYTES], 1);
        if (told >= 0)
            size = words[told];
    } else {
        int64_t definition = place(w, words[at + 3], 8);
        if (definition >= 0)
            size = words[definition + 7];
    }
    if (size <= 0 || size >= 1 << 20)
        return 0;
    follow(w, words[at + (layout[MODULE_STATE] >> 3)], size >> 3, 1, by);
    return rounded(size);
}

/* Follow the variables of a frame object or a generator; returns their bytes. */
static int64_t frames(const struct walked *w, int64_t here, int64_t at, int64_t form, int64_t by)
{
    const int64_t *words = w->words.at, *layout = w->layout.at;
    if (layout[VERSION] < 11) {
        if (form != FRAME)
            return 0;
        /* For a running frame only the variables are known; for another one the stack behind them, too. */
        int64_t stack = words[at + (layout[STACK_AT] >> 3)], top = words[at + (layout[FRAME_TOP] >> 3)];
        if (layout[VERSION] == POINTS_TO_TOP && top != 0)
            stack = top;
        if (stack < 0 || stack >= USER_SPACE)
            return 0;
        int64_t count = (stack - here - layout[FRAME_LOCALS]) >> 3;
        if (layout[VERSION] > POINTS_TO_TOP && (top & U32) < SIGN_32)
            count += top & U32;
        if (count < 0 || count > MOST_FRAME_WORDS)
            return 0;
        follow(w, here + layout[FRAME_LOCALS], count, 1, by);
        return 8 * count;
    }
    if (form == GENERATOR) {
        int64_t told = (words[at + (layout[GENERATOR_STATE] >> 3)] >> (8 * (layout[GENERATOR_STATE] & 7))) & BYTE;
        if (layout[GENERATOR_ENDED] <= told && told < 128) /* it has ended */
            return 0;
        return frame(w, here + layout[FRAME_IN_GENERATOR], by);
    }
    int64_t inner = words[at + 3], top = place(w, inner, 9);
    if (top < 0 || ((words[top + (layout[FRAME_OWNER] >> 3)] >> (8 * (layout[FRAME_OWNER] & 7))) & BYTE) != OWNED)
        return 0;
    return frame(w, inner, by);
}

/* Follow the references of one object elsewhere; adds to its sizes. */
static inline void outside(const struct walked *w, int64_t number, const int64_t *form, struct sizes *out)
{
    const int64_t *words = w->words.at;
    int64_t here = w->address.at[number], kind = form[FORM];
    int64_t at = place(w, here, LEAST_WORDS[kind]);
    if (at < 0)
        return;
    switch (kind) {
    case LIST: {
        int64_t count = words[at + 2], room = words[at + 4];
        if (count >= 0 && count <= room && room < LIMIT) {
            follow(w, words[at + 3], count, 1, number);
            out->outside += rounded(8 * room);
        }
        break;
    }
    case SET: {
        int64_t last = words[at + 4];
        if (last >= 0 && last < LIMIT) {
            follow(w, words[at + 5], last + 1, 2, number);
            out->outside += last > SMALL_TABLE ? rounded(16 * (last + 1)) : 0;
        }
        break;
    }
    case DEQUE:
        out->outside += deque(w, here, number);
        break;
    case MODULE:
        out->outside += module_state(w, here, at, number);
        break;
    case NDARRAY: {
        /* numpy asks malloc itself, for data and for extents and strides. */
        int64_t size = array_bytes(w, at);
        out->outside += chunk(magnitude(size)) + shape_bytes(words[at + 3]);
        if (size < 0)
            follow(w, words[at + 2], -size >> 3, 1, number);
        break;
    }
    case TEXT:
    case INTEGER:
    case BYTEARRAY:
    case ARRAY:
        measure(w, at, kind, out);
        break;
    case FRAME:
    case GENERATOR:
        out->own += frames(w, here, at, kind, number);
        break;
    case TYPE:
        out->outside += shared_keys(w, here, at);
        break;
    default:
        break;
    }
    if (form[DICT_BEHIND] < 0) {
        /* The dictionary at the end of an object of varying size, this many bytes before the end. */
        follow(w, (here + out->own + 7) & ~(int64_t)7, 1, 1, number);
        out->own += -form[DICT_BEHIND];
    }
}

GCSPY_LOOP int64_t find_words(struct i64s words, struct i64s wanted, struct i64s found)
{
    int64_t low = wanted.at[0], high = wanted.at[wanted.length - 1], count = 0;
    for (int64_t at = 0; at < words.length; at++) {
        int64_t word = words.at[at];
        if (LIKELY(word < low || word > high))
            continue;
        int64_t first = 0, last = wanted.length;
        while (first < last) {
            int64_t middle = (first + last) >> 1;
            if (wanted.at[middle] < word)
                first = middle + 1;
            else
                last = middle;
        }
        if (wanted.at[first] == word) {
            if (count < found.length)
                found.at[count] = at;
            count++;
        }
    }
    return count;
}

GCSPY_LOOP int64_t enter_all(struct i64s addresses, const struct walked *w)
{
    int64_t before = w->state.at[OBJECTS];
    for (int64_t i = 0; i < addresses.length; i++) {
        int64_t word = addresses.at[i];
        if (word >= LOW && (word & 7) == 0)
            enter(w, word, -1);
    }
    return w->state.at[OBJECTS] - before;
}

GCSPY_LOOP int64_t walk(const struct walked *w, struct i64s forms, struct i64s starts, struct i64s own, struct i64s elsewhere,
                        int64_t most)
{
    int64_t *state = w->state.at;
    struct sizes out = {state[OWN], state[OUTSIDE]};
    int64_t stop = most < w->address.length - state[NEXT] ? state[NEXT] + most : w->address.length;
    while (state[NEXT] < state[OBJECTS] && state[NEXT] < stop && state[FULL] == 0) {
        int64_t number = state[NEXT], address = w->address.at[number];
        const int64_t *form = forms.at + forms.width * w->kind.at[number];
        if (number + AHEAD < state[OBJECTS]) {
            int64_t soon = place(w, w->address.at[number + AHEAD], 1);
            if (soon >= 0)
                PREFETCH(&w->words.at[soon]);
        }
        look_into(w, number, form, &out);
        outside(w, number, form, &out);
        if (form[IS_DICT])
            out.outside += dictionary(w, address, number);
        if (form[ATTRIBUTES]) {
            out.outside += attributes(w, address, form[ATTRIBUTES], form[KEYS], form[BASIC], number);
            if (form[ATTRIBUTES] == INSIDE) {
                int64_t values = place(w, address + form[BASIC], 1);
                out.own += 8 + 9 * (values >= 0 ? w->words.at[values] & BYTE : 0);
            }
        }
        own.at[number] = rounded(out.own + form[PREFIX]) + out.outside;
        elsewhere.at[number] = out.outside;
        state[NEXT] = number + 1;
        starts.at[number + 1] = state[TARGETS];
    }
    state[OWN] = out.own;
    state[OUTSIDE] = out.outside;
    return state[OBJECTS] - state[NEXT];
}

GCSPY_LOOP int64_t on_lists(struct i64s heads, struct i64s words, struct i64s runs, struct i32s granules, struct i64s found)
{
    int64_t count = 0;
    for (int64_t list = 0; list < heads.length; list++) {
        int64_t head = heads.at[list], at = find(head, 2, &runs, &granules);
        if (at < 0)
            continue;
        int64_t next = words.at[at] & ~(int64_t)7;
        while (next != head && count < found.length) {
            at = find(next, 2, &runs, &granules);
            if (at < 0)
                break;
            found.at[count++] = next + 16;
            next = words.at[at] & ~(int64_t)7;
        }
    }
    return count;
}

/* How many bytes between two addresses are in the copy. */
static int64_t resident(int64_t first, int64_t last, const struct i64s *runs)
{
    int64_t after = next_run(first, runs), total = 0;
    int64_t row = after < 0 ? runs->length - 1 : after > 0 ? after - 1 : 0;
    for (row = row < 0 ? 0 : row; row < runs->length && runs->at[3 * row] < last; row++) {
        int64_t begin = first > runs->at[3 * row] ? first : runs->at[3 * row];
        int64_t end = last < runs->at[3 * row + 1] ? last : runs->at[3 * row + 1];
        total += end > begin ? end - begin : 0;
    }
    return total;
}

GCSPY_LOOP void residents(struct i64s first, struct i64s last, struct i64s runs, struct i64s found)
{
    for (int64_t each = 0; each < first.length; each++)
        found.at[each] = resident(first.at[each], last.at[each], &runs);
}

GCSPY_LOOP int64_t malloc_free_bytes(int64_t first, int64_t last, struct i64s words, struct i64s runs, struct i32s granules)
{
    int64_t at = first, free = 0;
    while (at < last) {
        int64_t head = find(at + 8, 1, &runs, &granules);
        if (head < 0)
            return -1;
        int64_t size = words.at[head] & ~(int64_t)7;
        if (size < 16 || size & 15 || size > last - at)
            return -1;
        int64_t behind = at + size;
        if (behind == last) {
            free += resident(at, last, &runs);
            break;
        }
        head = find(behind + 8, 1, &runs, &granules);
        if (head < 0)
            return -1;
        if (!(words.at[head] & 1))
            free += resident(at, behind, &runs);
        at = behind;
    }
    return free;
}

GCSPY_LOOP int64_t malloc_unknown(int64_t first, int64_t last, struct i64s words, struct i64s runs, struct i32s granules,
                                  struct i64s known, struct i64s start, struct i64s size_of)
{
    int64_t at = first, count = 0, cursor = 0;
    while (at < last) {
        int64_t head = find(at + 8, 1, &runs, &granules);
        if (head < 0)
            return -1;
        int64_t size = words.at[head] & ~(int64_t)7;
        if (size < 16 || size & 15 || size > last - at)
            return -1;
        int64_t behind = at + size;
        if (behind == last)
            break;
        head = find(behind + 8, 1, &runs, &granules);
        if (head < 0)
            return -1;
        while (cursor < known.length && known.at[cursor] < at + 16)
            cursor++;
        int unknown = cursor == known.length || known.at[cursor] >= behind + 8;
        if (words.at[head] & 1 && unknown && count < start.length) {
            start.at[count] = at + 16;
            size_of.at[count++] = size;
        }
        at = behind;
    }
    return count;
}
