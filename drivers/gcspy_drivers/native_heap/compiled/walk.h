/* The state of a walk over the chunks of one span of a heap; `gcspy_drivers.native_heap.walk_state` has the same. */
#ifndef GCSPY_WALK_H
#define GCSPY_WALK_H
#include <stdint.h>

enum kind { USED, CACHED, FAST, FREE, KINDS };

/* What a call ended with, and why a walk broke. */
enum outcome { WINDOW_ENDS, SPAN_ENDS, BROKEN, ROOM_ENDS };
enum damage { NO_DAMAGE, BAD_SIZE, BAD_FOOTER, BAD_NEIGHBOUR, BAD_ARENA, FENCE };

struct walk {
    uint64_t position;       /* the next chunk */
    uint64_t end;            /* behind the last chunk: the top chunk, or the end of a heap without it */
    uint64_t first_cell;     /* address of cell 0 */
    uint64_t cells;
    uint64_t ahead_at;       /* address of a header that was read apart from the window; 0: none */
    uint64_t ahead[2];       /* prev_size and size of it */
    uint64_t hole;           /* where the current run of free chunks begins; 0: none */
    uint64_t after_free;     /* whether the chunk before `position` is in a bin */
    uint64_t cached_at, cached_count;
    uint64_t fast_at, fast_count;
    uint64_t wanted_at, wanted_count;
    uint64_t run_at, run_room;   /* runs of whole free pages */
    uint64_t pin_at, pin_room;   /* the first chunks in use */
    uint64_t last_used, last_used_size;
    uint64_t first_unit, unit_count; /* address of the first page, or smaller unit, that has an age, and their number */
    uint32_t cell_shift;
    uint32_t non_main;       /* whether chunks in use carry the bit of arenas other than the main one */
    uint32_t damage;
    uint32_t unit_shift;     /* size of a unit; smaller ones than a page tell about single chunks */
    const uint64_t *cached;  /* (cached_count,) chunks of thread caches, sorted */
    const uint64_t *fast;    /* (fast_count,) chunks in fast bins, sorted */
    const uint64_t *wanted;  /* (wanted_count,) addresses whose chunk is asked for, sorted */
    uint64_t *found;         /* (wanted_count, 3) chunk, size, kind; not touched where there is none */
    uint32_t *bytes;         /* (KINDS, cells) bytes of each kind */
    uint32_t *begins;        /* (cells,) chunks in use that begin in the cell */
    uint32_t *holes;         /* (cells,) the largest run of free chunks that begins in the cell, bytes */
    uint64_t *counts;        /* (KINDS, CLASSES) chunks by size class */
    uint64_t *sums;          /* (KINDS, CLASSES) bytes by size class */
    uint64_t *runs;          /* (run_room, 2) address and number of pages */
    uint64_t *pins;          /* (pin_room, 2) address and size */
    const uint8_t *ages;     /* (unit_count,) for how long each unit was not used, below AGES */
    uint64_t *aged;          /* (AGES, CLASSES) bytes of chunks in use, by the age of their pages, or their own */
};

#define CLASSES 128
#define AGES 5
#endif
