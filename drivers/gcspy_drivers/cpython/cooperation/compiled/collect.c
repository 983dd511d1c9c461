/* Copies what pymalloc and the collector of a CPython tell, at a collection, into a ring in shared memory.
 *
 * The stub (drivers/gcspy_drivers/cpython/cooperation/stub.py) calls `gcspy_collect_1` within one instruction of
 * Python code, and so with the interpreter's lock: nothing of pymalloc changes meanwhile. All addresses and sizes come
 * from the sidecar, which knows the version; this file needs no header of Python.
 *
 * It must never harm the program. What is reached by a pointer is copied by the kernel (pwritev to the ring's own
 * memfd), which refuses an address that is not mapped. Pool headers alone are read directly, as that is thirty times
 * faster: those of an arena whose entry in the table passes all checks, and whose first and last byte the kernel has
 * copied when the arena was first seen. An arena is given back only by who has the lock.
 *
 * The ring, little-endian; u64 words of its first page:
 *   0 number of the plan, 0: there is none; 1 records that the sidecar has taken; 2 whether the program waits when the
 *   ring is full, until the sidecar takes a record; 8 address of pymalloc's pointer to its table, 9 of the table's length (u32); 10 bytes of an arena,
 *   11 of a pool, 12 of its header, 13 alignment, 14 size classes; 15 whether pools are wanted; 16 number of ranges;
 *   from 17 on address and bytes of each; 3 most written pages that are copied, 0: none are; 4 how often the sidecar
 *   has copied all pages itself; 5 bytes of the ring that may be used, 0: all
 *   256 records that were made; 257 events that found the ring full; 258 nanoseconds for which the program waited then;
 *   259 written pages of the latest record that nobody protects; 260 the error of a system that does not tell what was
 *   written; 261 whether pages were lost since the sidecar copied all; 264 scratch
 * After it 1,024 pairs of u64, place and bytes of record n at n % 1,024; then the records (struct record).
 *
 * From level 3 on the pages that were written since the record before are copied, too (PAGEMAP_SCAN): all that no file
 * has, so that who had all of them once has all of them now. Each is protected before it is copied, by the userfaultfd
 * that the sidecar has: what another thread writes meanwhile is in the next record. A page that was protected and not
 * copied is lost for the sidecar, which then has to copy all pages itself, at an event at which the program waits.
 *
 * Source: the kernel's admin-guide/mm/pagemap.rst, PAGEMAP_SCAN; CPython 3.9 to 3.15 struct arena_object, struct pool_header; pwritev(2), memfd_create(2).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define SLOTS 1024u
#define SLOTS_AT 4096u
#define DATA_AT (SLOTS_AT + SLOTS * 16u)
#define MOST_RANGES 32u
#define MOST_ARENAS (1u << 20)
#define FEWEST_ARENAS 16u
#define LEAST_POOL 4096u
#define PAGE 4096u
#define EVENT_BYTES 40u
#define AHEAD 12u

enum { PLAN = 0, TAKEN = 1, HOLDS = 2, PAGES = 3, COPIED = 4, ROOM = 5, TABLE_AT = 8, LENGTH_AT = 9, ARENA_BYTES = 10, POOL_BYTES = 11, HEADER_BYTES = 12,
       ALIGNMENT = 13, CLASSES = 14, POOLS = 15, RANGES = 16, RANGE = 17, PLAN_WORDS = RANGE + 2 * MOST_RANGES,
       MADE = 256, FULL = 257, WAITED = 258, UNPROTECTED = 259, REFUSED = 260, LOST = 261, SCRATCH = 264 };

enum { UNKNOWN = 0, FREE = 2, USED = 3 };
enum { HELD = 0, RECORDED = 1, LEFT_OUT = 2 };
/* A program that waits for room looks this often, and no longer than this while none is made, or until the sidecar has gone. */
#define LOOK_NANOS 100000
#define LONGEST_NANOS 1000000000u
enum { FULL_RING = 3 };
enum { WITH_RANGES = 1, WITH_POOLS = 2, WITH_PAGES = 4, WITH_MAPS = 8 };

/* Regions of written pages; what other threads may write while they are listed. */
#define MOST_REGIONS 8192u
#define MORE 64u
#define MOST_MAPS (4u << 20)
#define HIGHEST 0x7ffffffff000u
#define AT_ONCE 1024u
/* Less than the smallest huge page, which would count as one. */
#define WINDOW ((2u << 20) - PAGE)
#define PAGEMAP_SCAN 0xC0606610u
/* A page that the process does not have counts as written. */
enum { WP_ALLOWED = 1, WRITTEN = 2, OF_FILE = 4, PRESENT = 8, SWAPPED = 16, PROTECT = 1 };

struct scan {
    uint64_t size, flags, start, end, walk_end, regions, length, most, inverted, mask, any, returned;
};

struct region {
    uint64_t start, end, categories;
};

struct arena_object {
    uint64_t address, pool_address;
    uint32_t nfreepools, ntotalpools;
    uint64_t freepools, nextarena, prevarena;
};

struct pool_header {
    uint32_t count, padding;
    uint64_t freeblock, next, previous;
    uint32_t arenaindex, szidx, nextoffset, maxnextoffset;
};

/* What the stub passes: its own memory. */
struct call {
    uint64_t ring, ring_bytes, event, counts, device, inode;
    int32_t fd, connection;
    uint32_t reserved, result;
};

struct record {
    uint8_t event[EVENT_BYTES];
    uint64_t starts, ends, begun_nanos, done_nanos, processor_nanos, plan;
    uint32_t table_length, flags;
    uint64_t table, pools, bytes, regions, pages_at, maps;
};

/* Addresses of the arenas that the kernel could read, by their place in the table. */
static uint64_t *seen;
static uint64_t seen_length;

/* Addresses of the arenas of this event that may be read. */
static uint64_t *arenas_now;
static uint64_t arenas_length, arenas_room;
static uint64_t latest_pools;

/* What is found of the pages: regions as they are listed, and as they are protected; the memory map as it was recorded. */
static struct region *listed, *chosen;
static struct text {
    char *at;
    uint64_t bytes, room;
} maps, maps_before;
static uint64_t maps_copied, lost_copied;

static uint64_t nanos(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now) != 0)
        return 0;
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t up(uint64_t size)
{
    return (size + 7u) & ~(uint64_t)7u;
}

/* A pool header as one number: its state, size class and blocks in use. The checks are those of pools.py. */
static inline uint32_t judged(const struct pool_header *header, uint64_t address, uint32_t slot, const uint64_t *plan)
{
    uint32_t count = header->count, size_class = header->szidx, following = header->nextoffset;
    if (header->arenaindex != slot)
        return 0;
    if (size_class == 0xffff && count == 0)
        return (uint32_t)FREE << 24 | 0xffu << 16;
    if (size_class >= plan[CLASSES])
        return 0;
    uint32_t size = (size_class + 1) * (uint32_t)plan[ALIGNMENT], begin = (uint32_t)plan[HEADER_BYTES];
    uint32_t pool = (uint32_t)plan[POOL_BYTES], capacity = (pool - begin) / size;
    if (header->maxnextoffset != pool - size || following < begin + 2 * size || following > pool)
        return 0;
    uint32_t carved = (following - begin) / size;
    if (carved * size != following - begin || carved > capacity || count > carved)
        return 0;
    if (count == capacity) {
        if (header->freeblock != 0)
            return 0;
    } else {
        uint64_t place = header->freeblock - address;
        if (place < begin || place >= following || ((uint32_t)place - begin) % size != 0)
            return 0;
    }
    return (uint32_t)(count ? USED : FREE) << 24 | size_class << 16 | count;
}

API uint32_t gcspy_judge(const void *header, uint64_t address, uint32_t slot, const uint64_t *plan)
{
    return judged(header, address, slot, plan);
}

/* How many pools of an arena have a header; 0 if its entry is not as it should be. */
static uint64_t carved_pools(const struct arena_object *arena, const uint64_t *plan, uint64_t *first_pool)
{
    uint64_t pool = plan[POOL_BYTES], address = arena->address, end = arena->pool_address;
    uint64_t first = (address + pool - 1) & ~(pool - 1);
    if (address == 0 || address % PAGE != 0 || address > UINT64_MAX - 2 * plan[ARENA_BYTES] || end < first)
        return 0;
    uint64_t total = (address + plan[ARENA_BYTES] - first) / pool, carved = (end - first) / pool;
    uint64_t head = arena->freepools, free = arena->nfreepools;
    if (arena->ntotalpools != total || free > total || carved > total || first + carved * pool != end)
        return 0;
    if (free + carved < total || (head != 0 && (head < first || head >= end || head % pool != 0)))
        return 0;
    *first_pool = first;
    return carved;
}

/* Whether the kernel can read the first and the last byte of an arena; asked once for each. */
static int readable(uint64_t slot, uint64_t address, const uint64_t *plan, int fd)
{
    if (seen[slot] == address)
        return 1;
    struct iovec ends[2] = {{(void *)address, 1}, {(void *)(address + plan[ARENA_BYTES] - 1), 1}};
    if (pwritev(fd, ends, 2, SCRATCH * 8) != 2)
        return 0;
    seen[slot] = address;
    return 1;
}

static int remember(uint64_t length)
{
    if (length <= seen_length)
        return 1;
    uint64_t *larger = realloc(seen, length * sizeof *seen);
    if (larger == NULL)
        return 0;
    memset(larger + seen_length, 0, (length - seen_length) * sizeof *seen);
    seen = larger;
    seen_length = length;
    free(arenas_now);
    arenas_now = malloc(length * sizeof *arenas_now);
    arenas_room = arenas_now == NULL ? 0 : length;
    return 1;
}

/* Whether the descriptor is still the ring's: a program that becomes a daemon closes what it does not know, and its next
 * file gets the number. */
static int is_ours(const struct call *call)
{
    struct stat found;
    return fstat(call->fd, &found) == 0 && found.st_dev == call->device && found.st_ino == call->inode;
}

/* Find room for a record; 0: there is none. The oldest record that was not taken is the bound. */
static uint64_t room_for(const uint64_t *ring, uint64_t ring_bytes, uint64_t bytes, uint64_t made, uint64_t taken)
{
    const uint64_t *slots = ring + SLOTS_AT / 8;
    if (made - taken >= SLOTS - 1)
        return 0;
    if (made == taken)
        return DATA_AT + bytes <= ring_bytes ? DATA_AT : 0;
    uint64_t oldest = slots[taken % SLOTS * 2], last = (made - 1) % SLOTS * 2, next = slots[last] + slots[last + 1];
    if (next > oldest) {
        if (next + bytes <= ring_bytes)
            return next;
        next = DATA_AT;
    }
    return next + bytes < oldest ? next : 0;
}

static int has_gone(int connection)
{
    struct pollfd found = {connection, 0, 0};
    return poll(&found, 1, 0) != 0; /* the end of the connection, or of the descriptor, is reported unasked */
}

/* Read the memory map of this process. */
static int read_maps(void)
{
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    ssize_t got = -1;
    if (fd < 0)
        return 0;
    maps.bytes = 0;
    for (;;) {
        if (maps.bytes + PAGE > maps.room) {
            char *larger = maps.room < MOST_MAPS ? realloc(maps.at, maps.room + 16 * PAGE) : NULL;
            if (larger == NULL)
                break;
            maps.at = larger;
            maps.room += 16 * PAGE;
        }
        got = read(fd, maps.at + maps.bytes, maps.room - maps.bytes);
        if (got <= 0)
            break;
        maps.bytes += (uint64_t)got;
    }
    close(fd);
    return got == 0;
}

/* List written pages that no file has; -1: the kernel refuses, or they are too many regions. */
static int64_t scan(int fd, uint64_t flags, uint64_t start, uint64_t end, struct region *found, uint64_t room)
{
    uint64_t filled = 0;
    while (start < end) {
        struct scan request = {sizeof request, flags, start, end, 0, (uint64_t)(found + filled), room - filled, 0,
                               OF_FILE, WRITTEN | OF_FILE, PRESENT | SWAPPED, WRITTEN | WP_ALLOWED};
        if (filled == room)
            return -1;
        int got = ioctl(fd, PAGEMAP_SCAN, &request);
        if (got < 0 || request.walk_end <= start)
            return -1;
        filled += (uint64_t)got;
        start = request.walk_end;
    }
    return (int64_t)filled;
}

/* Sum the pages of some regions; those without protection in `unprotected`. The stack of this thread is left out. */
static uint64_t pages_of(struct region *found, int64_t regions, uint64_t *unprotected)
{
    uint64_t here = (uint64_t)&here, pages = 0;
    *unprotected = 0;
    for (int64_t each = 0; each < regions; each++) {
        struct region *region = &found[each];
        if (!(region->categories & WP_ALLOWED)) {
            if (region->start <= here && here < region->end)
                region->end = region->start;
            *unprotected += (region->end - region->start) / PAGE;
        }
        pages += (region->end - region->start) / PAGE;
    }
    return pages;
}

/* Protect what was listed, and list it again in the same moment; -1: something was protected, and is not known. */
static int64_t protect(int fd, int64_t regions)
{
    uint64_t filled = 0;
    for (int64_t each = 0; each < regions;) {
        if (!(listed[each].categories & WP_ALLOWED)) {
            if (filled == MOST_REGIONS)
                return -1;
            chosen[filled++] = listed[each++];
            continue;
        }
        uint64_t start = listed[each].start, end = listed[each].end;
        while (++each < regions && listed[each].categories & WP_ALLOWED && listed[each].end - start <= WINDOW)
            end = listed[each].end;
        for (; start < end; start += WINDOW) {
            uint64_t until = end - start > WINDOW ? start + WINDOW : end;
            int64_t got = scan(fd, PROTECT, start, until, chosen + filled, MOST_REGIONS - filled);
            if (got < 0)
                return -1;
            filled += (uint64_t)got;
        }
    }
    return (int64_t)filled;
}

/* Copy pages one by one; one that cannot be read, as it was unmapped meanwhile or may not be, becomes zeros. */
static int copy_singly(int fd, const struct iovec *parts, int count, uint64_t place)
{
    static const char nothing[PAGE];
    for (int part = 0; part < count; part++) {
        for (uint64_t at = 0; at < parts[part].iov_len; at += PAGE, place += PAGE) {
            if (pwrite(fd, (char *)parts[part].iov_base + at, PAGE, (off_t)place) != PAGE &&
                pwrite(fd, nothing, PAGE, (off_t)place) != PAGE)
                return 0;
        }
    }
    return 1;
}

static int in_order(const void *one, const void *other)
{
    uint64_t left = *(const uint64_t *)one, right = *(const uint64_t *)other;
    return left < right ? -1 : left > right;
}

/* How much of a region from an address on is in one of the arenas, or in none; `inside` tells which. */
static uint64_t part_of(uint64_t at, uint64_t end, uint64_t arena_bytes, int *inside)
{
    uint64_t low = 0, high = arenas_length;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (arenas_now[middle] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    *inside = low > 0 && at - arenas_now[low - 1] < arena_bytes;
    if (*inside)
        end = end < arenas_now[low - 1] + arena_bytes ? end : arenas_now[low - 1] + arena_bytes;
    else if (low < arenas_length && arenas_now[low] < end)
        end = arenas_now[low];
    return end - at;
}

/* Copy the pages of regions to a place of the ring: those of arenas directly, as pool headers are read. */
static int copy_pages(const struct call *call, const struct region *found, int64_t regions, uint64_t place, uint64_t arena_bytes)
{
    struct iovec parts[AT_ONCE];
    int count = 0;
    uint64_t begin = place;
    qsort(arenas_now, arenas_length, sizeof *arenas_now, in_order);
    for (int64_t each = 0; each <= regions; each++) {
        uint64_t at = each < regions ? found[each].start : 0, end = each < regions ? found[each].end : 0;
        do {
            int inside = 0;
            uint64_t size = at < end ? part_of(at, end, arena_bytes, &inside) : 0;
            if (count && (inside || each == regions || count == (int)AT_ONCE)) {
                if (pwritev(call->fd, parts, count, (off_t)begin) != (ssize_t)(place - begin) &&
                    !copy_singly(call->fd, parts, count, begin))
                    return 0;
                count = 0;
            }
            if (inside) {
                memcpy((uint8_t *)call->ring + place, (const void *)at, size);
            } else if (size) {
                if (count == 0)
                    begin = place;
                parts[count].iov_base = (void *)at;
                parts[count++].iov_len = size;
            }
            place += size;
            at += size;
        } while (at < end);
    }
    return 1;
}

static int make_room_for_regions(void)
{
    if (listed == NULL)
        listed = malloc(MOST_REGIONS * sizeof *listed);
    if (chosen == NULL)
        chosen = malloc(MOST_REGIONS * sizeof *chosen);
    return listed != NULL && chosen != NULL;
}

static uint32_t collect_with(const struct call *call, int pagemap);

static uint32_t collect(const struct call *call)
{
    uint64_t *ring = (uint64_t *)call->ring;
    if (!__atomic_load_n(&ring[PAGES], __ATOMIC_ACQUIRE))
        return collect_with(call, -1);
    /* Pages are protected only while the sidecar is there; and of no use to it once some are lost. */
    if (has_gone(call->connection) || lost_copied == ring[COPIED] || !is_ours(call))
        return HELD;
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pagemap < 0 || !make_room_for_regions()) {
        ring[REFUSED] = errno ? (uint64_t)errno : EINVAL;
        if (pagemap >= 0)
            close(pagemap);
        return HELD;
    }
    uint32_t result = collect_with(call, pagemap);
    close(pagemap);
    return result;
}

static uint32_t collect_with(const struct call *call, int pagemap)
{
    uint64_t *ring = (uint64_t *)call->ring;
    uint64_t plan[PLAN_WORDS], scratch[2], begun = nanos(CLOCK_MONOTONIC), processor = 0;
    uint64_t number = __atomic_load_n(&ring[PLAN], __ATOMIC_ACQUIRE);
    uint64_t ring_bytes = ring[ROOM] && ring[ROOM] < call->ring_bytes ? ring[ROOM] : call->ring_bytes;
    struct iovec parts[MOST_RANGES];
    const uint8_t *event = (const uint8_t *)call->event;
    int is_end = event[0] != 0;
    if (number == 0 || !is_ours(call))
        return HELD;
    memcpy(plan, ring, sizeof plan);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (__atomic_load_n(&ring[PLAN], __ATOMIC_RELAXED) != number || plan[RANGES] > MOST_RANGES)
        return HELD;
    if (is_end)
        processor = nanos(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t made = ring[MADE], taken = __atomic_load_n(&ring[TAKEN], __ATOMIC_ACQUIRE);
    if (made - taken > SLOTS)
        return HELD;
    /* A start needs places for its end, too. */
    if (!is_end && made - taken >= SLOTS - 2)
        return FULL_RING;

    int64_t regions = 0;
    uint64_t pages = 0, unprotected = 0, pages_room = 0, copied = ring[COPIED];
    int same_maps = 0;
    if (pagemap >= 0) {
        /* Not the ring itself: a scan looks at each page that is mapped. */
        regions = scan(pagemap, 0, PAGE, call->ring, listed, MOST_REGIONS - MORE);
        int64_t above = regions < 0 ? -1 : scan(pagemap, 0, call->ring + call->ring_bytes, HIGHEST, listed + regions,
                                                MOST_REGIONS - MORE - (uint64_t)regions);
        regions = above < 0 ? -1 : regions + above;
        if (regions < 0) {
            ring[REFUSED] = errno ? (uint64_t)errno : EINVAL;
            return HELD;
        }
        pages = pages_of(listed, regions, &unprotected);
        if (pages > plan[PAGES])
            return HELD;
        /* Read each time, though it takes as long as to copy a hundred pages: an arena may have taken the place of another. */
        if (!read_maps()) {
            ring[REFUSED] = errno ? (uint64_t)errno : EINVAL;
            return HELD;
        }
        same_maps = maps_copied == copied && maps.bytes == maps_before.bytes && memcmp(maps.at, maps_before.at, maps.bytes) == 0;
        pages_room = up(maps.bytes) + ((uint64_t)regions + MORE) * 16 + PAGE + (pages + MORE) * PAGE;
    }

    uint64_t ranges = 0, table = 0, length = 0;
    for (uint64_t each = 0; each < plan[RANGES]; each++) {
        parts[each].iov_base = (void *)plan[RANGE + 2 * each];
        parts[each].iov_len = plan[RANGE + 2 * each + 1];
        if (parts[each].iov_len > PAGE || parts[each].iov_len % 8)
            return HELD;
        ranges += parts[each].iov_len;
    }
    int pools = plan[POOLS] != 0;
    if (pools) {
        struct iovec head[2] = {{(void *)plan[TABLE_AT], 8}, {(void *)plan[LENGTH_AT], 4}};
        if (plan[POOL_BYTES] < LEAST_POOL || plan[POOL_BYTES] & (plan[POOL_BYTES] - 1) || plan[POOL_BYTES] > 65536 ||
            plan[ARENA_BYTES] < plan[POOL_BYTES] || plan[ARENA_BYTES] > 1u << 30 || plan[ALIGNMENT] == 0 ||
            plan[CLASSES] > 255 || plan[HEADER_BYTES] < sizeof(struct pool_header) ||
            plan[CLASSES] * plan[ALIGNMENT] > plan[POOL_BYTES] - plan[HEADER_BYTES])
            return HELD;
        if (pwritev(call->fd, head, 2, SCRATCH * 8) != 12)
            return HELD;
        memcpy(scratch, ring + SCRATCH, sizeof scratch);
        table = scratch[0];
        length = (uint32_t)scratch[1];
        if (table == 0 || length < FEWEST_ARENAS || length > MOST_ARENAS || length & (length - 1) || !remember(length))
            return HELD;
    }
    uint64_t fixed = sizeof(struct record) + ranges + length * sizeof(struct arena_object) + up(length * 4);
    /* The table tells how many pools there are; it is copied to where it will be, if there are as many as last time. */
    uint64_t wanted = fixed + latest_pools * 4 + pages_room, bytes = 0, place = 0, table_place = 0, counted = 0, first = 0;
    const struct arena_object *arenas = NULL;
    for (int attempt = 0;; attempt++) {
        place = room_for(ring, ring_bytes, wanted, made, taken);
        if (place == 0 || attempt == 2)
            goto full;
        table_place = place + sizeof(struct record) + ranges;
        if (ranges != 0 &&
            pwritev(call->fd, parts, (int)plan[RANGES], (off_t)(place + sizeof(struct record))) != (ssize_t)ranges)
            return HELD;
        if (pools && pwrite(call->fd, (void *)table, length * sizeof(struct arena_object), (off_t)table_place) !=
                         (ssize_t)(length * sizeof(struct arena_object)))
            return HELD;
        arenas = (const struct arena_object *)((uint8_t *)ring + table_place);
        counted = 0;
        for (uint64_t slot = 0; slot < length; slot++)
            counted += carved_pools(&arenas[slot], plan, &first);
        bytes = fixed + up(counted * 4) + pages_room;
        if (bytes <= wanted)
            break;
        wanted = bytes;
    }
    latest_pools = up(counted * 4) / 4;
    /* And as much room. */
    if (!is_end && room_for(ring, ring_bytes, 2 * bytes + PAGE, made, taken) == 0)
        goto full;
    uint32_t *carved = (uint32_t *)((uint8_t *)ring + table_place + length * sizeof(struct arena_object));
    uint32_t *out = (uint32_t *)((uint8_t *)carved + up(length * 4));
    uint64_t found = 0;
    arenas_length = 0;
    for (uint64_t slot = 0; slot < length; slot++) {
        struct arena_object arena = arenas[slot];
        uint64_t here = carved_pools(&arena, plan, &first);
        if (here == 0 || found + here > counted || !readable(slot, arena.address, plan, call->fd)) {
            carved[slot] = 0;
            continue;
        }
        carved[slot] = (uint32_t)here;
        if (arenas_length < arenas_room)
            arenas_now[arenas_length++] = arena.address;
        for (uint64_t each = 0; each < here; each++) {
            uint64_t address = first + each * plan[POOL_BYTES];
            __builtin_prefetch((const void *)(address + AHEAD * plan[POOL_BYTES]));
            out[found + each] = judged((const struct pool_header *)address, address, (uint32_t)slot, plan);
        }
        found += here;
    }
    uint64_t used = fixed + up(found * 4), pages_at = 0;
    if (pagemap >= 0) {
        if (!same_maps) {
            memcpy((uint8_t *)ring + place + used, maps.at, maps.bytes);
            used += up(maps.bytes);
        }
        errno = 0;
        regions = protect(pagemap, regions);
        uint64_t listed_pages = pages;
        pages = regions < 0 ? 0 : pages_of(chosen, regions, &unprotected);
        if (regions < 0 || used + (uint64_t)regions * 16 + PAGE + pages * PAGE > bytes || pages > listed_pages + MORE) {
            lost_copied = copied;
            ring[LOST] = 1;
            return HELD;
        }
        uint64_t *out_regions = (uint64_t *)((uint8_t *)ring + place + used);
        for (int64_t each = 0; each < regions; each++) {
            out_regions[2 * each] = chosen[each].start;
            out_regions[2 * each + 1] = (chosen[each].end - chosen[each].start) / PAGE;
        }
        used += (uint64_t)regions * 16;
        pages_at = ((place + used + PAGE - 1) & ~(uint64_t)(PAGE - 1)) - place;
        if (!copy_pages(call, chosen, regions, place + pages_at, plan[ARENA_BYTES])) {
            lost_copied = copied;
            ring[LOST] = 1;
            return HELD;
        }
        used = pages_at + pages * PAGE;
        if (!same_maps) {
            struct text other = maps_before;
            maps_before = maps;
            maps = other;
            maps_copied = copied;
        }
        ring[UNPROTECTED] = unprotected;
    }
    struct record *record = (struct record *)((uint8_t *)ring + place);
    memcpy(record->event, event, EVENT_BYTES);
    memcpy(&record->starts, (const void *)call->counts, 16);
    record->begun_nanos = begun;
    record->plan = number;
    record->table_length = (uint32_t)length;
    record->flags = (ranges ? WITH_RANGES : 0) | (pools ? WITH_POOLS : 0) | (pagemap >= 0 ? WITH_PAGES : 0) |
                    (pagemap >= 0 && !same_maps ? WITH_MAPS : 0);
    record->table = table;
    record->pools = found;
    record->bytes = used;
    record->regions = (uint64_t)regions;
    record->pages_at = pages_at;
    record->maps = pagemap >= 0 && !same_maps ? maps_before.bytes : 0;
    if (!is_end)
        processor = nanos(CLOCK_PROCESS_CPUTIME_ID);
    record->processor_nanos = processor;
    record->done_nanos = nanos(CLOCK_MONOTONIC);
    ring[SLOTS_AT / 8 + made % SLOTS * 2] = place;
    /* Without pages as much as was reserved, which changes less. */
    ring[SLOTS_AT / 8 + made % SLOTS * 2 + 1] = pagemap >= 0 ? up(used) : bytes;
    __atomic_store_n(&ring[MADE], made + 1, __ATOMIC_RELEASE);
    return RECORDED;
full:
    return FULL_RING;
}

/* Record an event; while the ring is full the program waits, if the sidecar wants that and makes room. */
static uint32_t wait_for_room(const struct call *call, uint64_t *ring)
{
    uint32_t result;
    uint64_t taken = __atomic_load_n(&ring[TAKEN], __ATOMIC_ACQUIRE), since = nanos(CLOCK_MONOTONIC);
    while (__atomic_load_n(&ring[HOLDS], __ATOMIC_RELAXED)) {
        struct timespec look = {0, LOOK_NANOS};
        nanosleep(&look, NULL);
        uint64_t now = __atomic_load_n(&ring[TAKEN], __ATOMIC_ACQUIRE), clock = nanos(CLOCK_MONOTONIC);
        if (now != taken) {
            taken = now;
            since = clock;
            result = collect(call);
            if (result != FULL_RING)
                return result;
        } else if (clock - since > LONGEST_NANOS || has_gone(call->connection))
            return HELD;
    }
    /* How many pages an end needs is not known at its start: rather than to leave it out, the program waits for it. */
    return ring[PAGES] && ((const uint8_t *)call->event)[0] != 0 ? HELD : LEFT_OUT;
}

static uint32_t record(const struct call *call)
{
    uint64_t *ring = (uint64_t *)call->ring;
    uint32_t result = collect(call);
    if (result != FULL_RING)
        return result;
    __atomic_fetch_add(&ring[FULL], 1, __ATOMIC_RELAXED);
    uint64_t since = nanos(CLOCK_MONOTONIC);
    result = wait_for_room(call, ring);
    __atomic_fetch_add(&ring[WAITED], nanos(CLOCK_MONOTONIC) - since, __ATOMIC_RELAXED);
    return result;
}

/* Record an event. Returns 0: the stub has to report it and to wait; 1: it is in the ring; 2: it is left out. */
API int gcspy_collect_1(struct call *call)
{
    call->result = record(call);
    return (int)call->result;
}

/* Record an event that is reported as well. Returns 0, so that it is; its third byte tells the sidecar the result. */
API int gcspy_collect_and_report(struct call *call)
{
    call->result = record(call);
    ((uint8_t *)call->event)[2] = (uint8_t)call->result;
    return 0;
}

/* Free everything, before the library is unloaded. */
API void gcspy_forget(void)
{
    free(seen);
    seen = NULL;
    seen_length = 0;
    free(arenas_now);
    arenas_now = NULL;
    arenas_length = arenas_room = 0;
    free(listed);
    free(chosen);
    free(maps.at);
    free(maps_before.at);
    listed = chosen = NULL;
    memset(&maps, 0, sizeof maps);
    memset(&maps_before, 0, sizeof maps_before);
    maps_copied = lost_copied = 0;
}
