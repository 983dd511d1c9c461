/* `struct lives`: the blocks that live, by address. A program's neighbours are neighbours here: what is born and dies in the order of
 * addresses is found in a cache, which a hash table of single blocks never is.
 *
 *     region   4 MiB of addresses: 16,384 pointers to leaves
 *     leaf     256 bytes of addresses: 16 times struct life
 *
 * Addresses that are no multiples of 16 have regions of their own. Memory: up to as much as the heap has; leaves stay when their blocks die. */
#ifndef GCSPY_LIVE_BLOCKS_H
#define GCSPY_LIVE_BLOCKS_H

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define REGION_SHIFT 22
#define LEAF_SHIFT 8
#define LEAF_LIVES 16u
#define REGION_LEAVES (1u << (REGION_SHIFT - LEAF_SHIFT))
#define LEAF_CHUNK_BYTES (2u << 20) /* a large page */
#define ORDINAL_BITS 42
#define ORDINAL_MASK ((1ull << ORDINAL_BITS) - 1)
#define DEAD_ORDINAL ORDINAL_MASK /* a block whose object is dead, on a free list */
#define LAST_ORDINAL (DEAD_ORDINAL - 2) /* those behind it have the same */
#define SITE_MASK 0x3fffffull     /* writer.c gives out fewer */
#define SIZE_BITS 44              /* as in records */
#define SIZE_MASK ((1ull << SIZE_BITS) - 1)
#define TYPE_MASK 0x7ffffull
#define LIFE_MOVED (1ull << 63)

/* One block: 16 bytes. */
struct life {
    uint64_t born; /* bits 0-41: 1 + how many were allocated before it, 0: no block is here; 42-63: site */
    uint64_t what; /* bits 0-43: size; 44-62: type, 0: not kept here; 63: it moved, so that its age says nothing of its address */
};

struct region {
    uint64_t key; /* 0: none */
    struct life **leaves;
};

struct lives {
    struct region *regions; /* 1 << bits, at most half of them used */
    unsigned bits;
    size_t used;
    uint8_t **chunks;
    size_t chunk_count, chunk_room, chunk_used; /* bytes of the last */
};

static inline uint64_t region_key(uint64_t address) { return ((address >> REGION_SHIFT) << 1 | (address >> 3 & 1)) + 1; }

static inline size_t region_slot(const struct lives *lives, uint64_t key) {
    size_t slot = (size_t)((key * 0x9e3779b97f4a7c15ull) >> (64 - lives->bits));
    while (lives->regions[slot].key != key && lives->regions[slot].key != 0) slot = (slot + 1) & (((size_t)1 << lives->bits) - 1);
    return slot;
}

/* Find the block at an address; NULL: there is none. */
static inline struct life *find_life(const struct lives *lives, uint64_t address) {
    const struct region *region = &lives->regions[region_slot(lives, region_key(address))];
    if (region->key == 0) return NULL;
    struct life *leaf = region->leaves[address >> LEAF_SHIFT & (REGION_LEAVES - 1)];
    if (leaf == NULL) return NULL;
    struct life *life = &leaf[address >> 4 & (LEAF_LIVES - 1)];
    return life->born ? life : NULL;
}

/* Many blocks are no longer in a cache when they die: begin to load what `find_life` will need, first the leaf's address, later the block. */
static inline void prefetch_leaf(const struct lives *lives, uint64_t address) {
    const struct region *region = &lives->regions[region_slot(lives, region_key(address))];
    if (region->key) __builtin_prefetch(&region->leaves[address >> LEAF_SHIFT & (REGION_LEAVES - 1)]);
}

static inline void prefetch_life(const struct lives *lives, uint64_t address) {
    const struct region *region = &lives->regions[region_slot(lives, region_key(address))];
    if (region->key == 0) return;
    struct life *leaf = region->leaves[address >> LEAF_SHIFT & (REGION_LEAVES - 1)];
    if (leaf) __builtin_prefetch(&leaf[address >> 4 & (LEAF_LIVES - 1)]);
}

/* A large page if there is one: what is read at random is found sooner, and is zeroed at once. */
static uint8_t *make_chunk(void) {
    uint8_t *made = mmap(NULL, 2 * LEAF_CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) return NULL;
    uint8_t *chunk = (uint8_t *)(((uintptr_t)made + LEAF_CHUNK_BYTES - 1) & ~(uintptr_t)(LEAF_CHUNK_BYTES - 1));
    if (chunk > made) munmap(made, (size_t)(chunk - made));
    munmap(chunk + LEAF_CHUNK_BYTES, (size_t)(made + LEAF_CHUNK_BYTES - chunk));
    madvise(chunk, LEAF_CHUNK_BYTES, MADV_HUGEPAGE);
    return chunk;
}

static int begin_lives(struct lives *lives) {
    lives->bits = 6;
    return (lives->regions = calloc((size_t)1 << lives->bits, sizeof *lives->regions)) != NULL;
}

static void free_lives(struct lives *lives) {
    for (size_t slot = 0; lives->regions && slot < (size_t)1 << lives->bits; slot++) free(lives->regions[slot].leaves);
    for (size_t one = 0; one < lives->chunk_count; one++) munmap(lives->chunks[one], LEAF_CHUNK_BYTES);
    free(lives->regions), free(lives->chunks);
}

static struct life *make_leaf(struct lives *lives) {
    if (lives->chunk_count == 0 || lives->chunk_used == LEAF_CHUNK_BYTES) {
        if (lives->chunk_count == lives->chunk_room) {
            size_t room = lives->chunk_room ? lives->chunk_room * 2 : 64;
            uint8_t **more = realloc(lives->chunks, room * sizeof *more);
            if (more == NULL) return NULL;
            lives->chunks = more, lives->chunk_room = room;
        }
        uint8_t *chunk = make_chunk();
        if (chunk == NULL) return NULL;
        lives->chunks[lives->chunk_count++] = chunk, lives->chunk_used = 0;
    }
    struct life *leaf = (struct life *)(void *)(lives->chunks[lives->chunk_count - 1] + lives->chunk_used);
    lives->chunk_used += LEAF_LIVES * sizeof *leaf;
    return leaf;
}

static struct region *make_region(struct lives *lives, uint64_t key) {
    if (lives->used * 2 >= (size_t)1 << lives->bits) {
        struct region *old = lives->regions, *made = calloc((size_t)2 << lives->bits, sizeof *made);
        if (made == NULL) return NULL;
        size_t count = (size_t)1 << lives->bits++;
        lives->regions = made;
        for (size_t slot = 0; slot < count; slot++)
            if (old[slot].key) made[region_slot(lives, old[slot].key)] = old[slot];
        free(old);
    }
    struct region *region = &lives->regions[region_slot(lives, key)];
    region->leaves = calloc(REGION_LEAVES, sizeof *region->leaves);
    if (region->leaves == NULL) return NULL;
    region->key = key, lives->used++;
    return region;
}

static __attribute__((noinline)) struct life *make_life(struct lives *lives, uint64_t address) {
    struct region *region = &lives->regions[region_slot(lives, region_key(address))];
    if (region->key == 0 && (region = make_region(lives, region_key(address))) == NULL) return NULL;
    struct life **leaf = &region->leaves[address >> LEAF_SHIFT & (REGION_LEAVES - 1)];
    if (*leaf == NULL && (*leaf = make_leaf(lives)) == NULL) return NULL;
    return &(*leaf)[address >> 4 & (LEAF_LIVES - 1)];
}

/* The place of the block at an address, whether there is one or not; NULL: there is no memory. */
static inline struct life *place_of_life(struct lives *lives, uint64_t address) {
    const struct region *region = &lives->regions[region_slot(lives, region_key(address))];
    struct life *leaf = region->key ? region->leaves[address >> LEAF_SHIFT & (REGION_LEAVES - 1)] : NULL;
    return leaf ? &leaf[address >> 4 & (LEAF_LIVES - 1)] : make_life(lives, address);
}

static inline uint64_t life_size(const struct life *life) { return life->what & SIZE_MASK; }

static inline uint32_t life_type(const struct life *life) { return (uint32_t)(life->what >> SIZE_BITS & TYPE_MASK); }

static inline uint32_t life_site(const struct life *life) { return (uint32_t)(life->born >> ORDINAL_BITS); }

static inline uint64_t life_ordinal(const struct life *life) { return (life->born & ORDINAL_MASK) - 1; }

static inline int life_is_dead(const struct life *life) { return (life->born & ORDINAL_MASK) == DEAD_ORDINAL; }

static inline struct life life_of(uint64_t ordinal, uint64_t size, uint32_t site, uint32_t type) {
    uint64_t number = ordinal < LAST_ORDINAL ? ordinal : LAST_ORDINAL;
    return (struct life){(number + 1) | (site <= SITE_MASK ? (uint64_t)site : 0) << ORDINAL_BITS, (size & SIZE_MASK) | (type <= TYPE_MASK ? (uint64_t)type : 0) << SIZE_BITS};
}

/* Go through all blocks, in no order: `at` begins as 0. Returns 0 behind the last. */
static int next_life(const struct lives *lives, uint64_t *at, uint64_t *address, const struct life **life) {
    for (;; (*at)++) {
        uint64_t slot = *at / ((uint64_t)REGION_LEAVES * LEAF_LIVES), place = *at % ((uint64_t)REGION_LEAVES * LEAF_LIVES);
        if (slot >> lives->bits) return 0;
        const struct region *region = &lives->regions[slot];
        if (region->key == 0) {
            *at = (slot + 1) * REGION_LEAVES * LEAF_LIVES - 1;
            continue;
        }
        const struct life *leaf = region->leaves[place / LEAF_LIVES];
        if (leaf == NULL) {
            *at |= LEAF_LIVES - 1;
            continue;
        }
        if (leaf[place % LEAF_LIVES].born == 0) continue;
        *life = &leaf[place % LEAF_LIVES];
        uint64_t key = region->key - 1;
        *address = (key >> 1 << REGION_SHIFT) + place * 16 + (key & 1) * 8;
        (*at)++;
        return 1;
    }
}

#endif
