/* A walk over the chunks in a window of memory, which sums them by kind, place and size.
 *
 * Memory of another process is never trusted: each size is checked before it is added, and the walk
 * stops at the first chunk that contradicts itself, its neighbour or its arena. The twin in Python is
 * `walk_twin.py`. Source: glibc malloc/malloc.c, "Chunk overview", mtrim. */
#include "walk.h"

#define EXPORT __attribute__((visibility("default")))

enum { PREVIOUS_IN_USE = 1, MAPPED = 2, NON_MAIN = 4, FLAGS = 7, LEAST = 32, FENCE_BYTES = 16 };
enum { PAGE = 4096, PAGE_SHIFT = 12, LINKS = 48 }; /* a free chunk of a large bin keeps its first six words */

/* The bin of a size, as malloc numbers them: 2 to 63 for each size below 1,024, then coarser. */
static unsigned size_class(uint64_t size)
{
    if (size < 1024)
        return (unsigned)(size >> 4);
    if (size >> 6 <= 48)
        return 48 + (unsigned)(size >> 6);
    if (size >> 9 <= 20)
        return 91 + (unsigned)(size >> 9);
    if (size >> 12 <= 10)
        return 110 + (unsigned)(size >> 12);
    if (size >> 15 <= 4)
        return 119 + (unsigned)(size >> 15);
    if (size >> 18 <= 2)
        return 124 + (unsigned)(size >> 18);
    return 126;
}

static void spread(const struct walk *walk, uint32_t *row, uint64_t from, uint64_t to)
{
    uint64_t cell = (from - walk->first_cell) >> walk->cell_shift;
    uint64_t last = (to - 1 - walk->first_cell) >> walk->cell_shift;
    if (last >= walk->cells)
        return;
    for (; cell < last; cell++) {
        uint64_t edge = walk->first_cell + ((cell + 1) << walk->cell_shift);
        row[cell] += (uint32_t)(edge - from);
        from = edge;
    }
    row[cell] += (uint32_t)(to - from);
}

/* Whether a member of a sorted list is at an address; the cursor never goes back. */
static int at(const uint64_t *list, uint64_t *cursor, uint64_t count, uint64_t address)
{
    while (*cursor < count && list[*cursor] < address)
        ++*cursor;
    return *cursor < count && list[*cursor] == address;
}

static void close_hole(struct walk *walk, uint64_t end)
{
    uint64_t begin = walk->hole, cell = (begin - walk->first_cell) >> walk->cell_shift;
    uint64_t length = end - begin, page = (begin + LINKS + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    uint32_t shown = length > UINT32_MAX ? UINT32_MAX : (uint32_t)length;
    walk->hole = 0;
    if (cell < walk->cells && shown > walk->holes[cell])
        walk->holes[cell] = shown;
    if (page < end && end - page >= PAGE) {
        walk->runs[2 * walk->run_at] = page;
        walk->runs[2 * walk->run_at++ + 1] = (end - page) / PAGE;
    }
}

static unsigned age_of(const struct walk *walk, uint64_t address)
{
    uint64_t unit = (address - walk->first_unit) >> walk->unit_shift;
    uint8_t age = unit < walk->unit_count ? walk->ages[unit] : 0;
    return age < AGES ? age : 0;
}

/* Sum a chunk in use by age: by that of the pages on which it lies; or, where smaller units are known,
 * whole by the age of that part of its contents that was used last. */
static void sum_ages(const struct walk *walk, uint64_t *row, uint64_t from, uint64_t to)
{
    if (walk->unit_shift < PAGE_SHIFT) {
        uint64_t unit = (uint64_t)1 << walk->unit_shift, at = from + unit;
        unsigned least = AGES - 1;
        for (; at <= to && least; at += unit) { /* the contents end behind the header of the next chunk */
            unsigned age = age_of(walk, at);
            least = age < least ? age : least;
        }
        row[least * CLASSES] += to - from;
        return;
    }
    while (from < to) {
        uint64_t edge = (from | (PAGE - 1)) + 1;
        if (edge > to)
            edge = to;
        row[age_of(walk, from) * CLASSES] += edge - from;
        from = edge;
    }
}

/* Walk from walk->position as far as the window goes.
 *
 * words: (count,) the window; base: its address, a multiple of 8. */
EXPORT int gcspy_walk_chunks(struct walk *walk, const uint64_t *words, uint64_t base, uint64_t count)
{
    uint64_t limit = base + 8 * count, end = walk->end;
    while (walk->position < end) {
        uint64_t chunk = walk->position, head, size, next, ahead, footer;
        int kind;
        if (chunk < base || limit - base < 16 || chunk > limit - 16)
            return WINDOW_ENDS;
        if (walk->run_at >= walk->run_room)
            return ROOM_ENDS;
        head = words[(chunk - base) / 8 + 1];
        size = head & ~(uint64_t)FLAGS;
        if (size < LEAST && (size == FENCE_BYTES || !size) && !(head & MAPPED)) {
            if (walk->hole)
                close_hole(walk, chunk);
            walk->damage = FENCE;
            return end - chunk <= LEAST ? SPAN_ENDS : BROKEN;
        }
        if (size < LEAST || size & 15 || head & MAPPED || size > end - chunk) {
            walk->damage = BAD_SIZE;
            return BROKEN;
        }
        next = chunk + size;
        if (next <= limit - 16) {
            footer = words[(next - base) / 8];
            ahead = words[(next - base) / 8 + 1];
        } else if (next == walk->ahead_at) {
            footer = walk->ahead[0];
            ahead = walk->ahead[1];
        } else
            return WINDOW_ENDS;
        if (!(head & PREVIOUS_IN_USE) != !!walk->after_free) {
            walk->damage = BAD_NEIGHBOUR;
            return BROKEN;
        }
        if (!(ahead & PREVIOUS_IN_USE)) {
            if (footer != size) {
                walk->damage = BAD_FOOTER;
                return BROKEN;
            }
            if (walk->after_free) {
                walk->damage = BAD_NEIGHBOUR;
                return BROKEN;
            }
            kind = FREE;
        } else if (!(head & NON_MAIN) == !!walk->non_main) {
            walk->damage = BAD_ARENA;
            return BROKEN;
        } else if (at(walk->cached, &walk->cached_at, walk->cached_count, chunk))
            kind = CACHED;
        else if (at(walk->fast, &walk->fast_at, walk->fast_count, chunk))
            kind = FAST;
        else
            kind = USED;

        if (kind >= FAST) {
            if (!walk->hole)
                walk->hole = chunk;
        } else if (walk->hole)
            close_hole(walk, chunk);
        spread(walk, walk->bytes + kind * walk->cells, chunk, next);
        unsigned class = size_class(size);
        walk->counts[kind * CLASSES + class]++;
        walk->sums[kind * CLASSES + class] += size;
        if (kind == USED) {
            uint64_t cell = (chunk - walk->first_cell) >> walk->cell_shift;
            if (cell < walk->cells)
                walk->begins[cell]++;
            if (walk->pin_at < walk->pin_room) {
                walk->pins[2 * walk->pin_at] = chunk;
                walk->pins[2 * walk->pin_at + 1] = size;
            }
            walk->pin_at++;
            if (walk->unit_count)
                sum_ages(walk, walk->aged + class, chunk, next);
            walk->last_used = chunk;
            walk->last_used_size = size;
        }
        while (walk->wanted_at < walk->wanted_count && walk->wanted[walk->wanted_at] < next) {
            if (walk->wanted[walk->wanted_at] >= chunk) {
                uint64_t *found = walk->found + 3 * walk->wanted_at;
                found[0] = chunk;
                found[1] = size;
                found[2] = (uint64_t)kind;
            }
            walk->wanted_at++;
        }
        walk->after_free = kind == FREE;
        walk->position = next;
    }
    walk->damage = NO_DAMAGE;
    return SPAN_ENDS;
}
