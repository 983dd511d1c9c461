/* Lists of free chunks of another process, followed through a cache of its pages.
 *
 * A list of 100,000 chunks would take as many calls of the kernel, and its chunks lie close together;
 * so whole pages are copied, once. Nothing that is read is trusted: a list ends at the first link
 * that contradicts itself, and at the given number of chunks, whatever it links to. The twin in
 * Python is in `chunk_lists.py`. Source: glibc malloc/malloc.c, PROTECT_PTR (from 2.32), unlink_chunk. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

#define EXPORT __attribute__((visibility("default")))

enum { PAGE = 4096 };
enum outcome { WHOLE, DAMAGED, UNREADABLE, TOO_LONG, REFUSED };

struct pages {
    int32_t pid;
    int32_t error;       /* the system's, if it refuses */
    uint64_t slots;      /* a power of two */
    uint64_t *tags;      /* (slots,) page numbers; ~0: empty */
    uint8_t *data;       /* (slots, PAGE) */
};

static const uint8_t *page_at(struct pages *pages, uint64_t number)
{
    uint64_t slot = number & (pages->slots - 1);
    uint8_t *data = pages->data + slot * PAGE;
    if (pages->tags[slot] != number) {
        struct iovec here = {data, PAGE}, there = {(void *)(uintptr_t)(number * PAGE), PAGE};
        pages->tags[slot] = ~(uint64_t)0;
        if (process_vm_readv(pages->pid, &here, 1, &there, 1, 0) != PAGE) {
            pages->error = errno;
            return 0;
        }
        pages->tags[slot] = number;
    }
    return data;
}

/* Copy words of the target: at most one page, at any multiple of 8. */
static int fetch(struct pages *pages, uint64_t address, uint64_t *out, unsigned words)
{
    if (address % PAGE + 8 * words <= PAGE) {
        const uint8_t *data = page_at(pages, address / PAGE);
        if (data)
            memcpy(out, data + address % PAGE, 8 * words);
        return data != 0;
    }
    for (unsigned word = 0; word < words; word++) {
        uint64_t place = address + 8 * word;
        const uint8_t *data = page_at(pages, place / PAGE);
        if (!data)
            return 0;
        memcpy(out + word, data + place % PAGE, 8);
    }
    return 1;
}

static int refusal(const struct pages *pages)
{
    return pages->error == ESRCH || pages->error == EPERM ? REFUSED : UNREADABLE;
}

/* Follow a list linked both ways, until it is back at its head.
 *
 * out: (room, 2) chunk and size word of each; *count: those found. */
EXPORT int gcspy_follow_bin(struct pages *pages, uint64_t head, uint64_t first, uint64_t last,
                            uint64_t *out, uint64_t room, uint64_t *count)
{
    uint64_t before = head, chunk = first;
    *count = 0;
    while (chunk != head) {
        uint64_t words[4];
        if (chunk & 15 || chunk < PAGE || chunk >> 47)
            return DAMAGED;
        if (*count == room)
            return TOO_LONG;
        if (!fetch(pages, chunk, words, 4))
            return refusal(pages);
        if (words[3] != before)
            return DAMAGED;
        out[2 * *count] = chunk;
        out[2 * (*count)++ + 1] = words[1];
        before = chunk;
        chunk = words[2];
    }
    return before == last ? WHOLE : DAMAGED;
}

/* Follow a list linked one way, until a null link.
 *
 * first: its first chunk, 0: none; mangled: whether links are; contents: whether they lead to the
 * contents of chunks, as those of thread caches do.
 * out: (room, 2) chunk and size word of each; *count: those found. */
EXPORT int gcspy_follow_list(struct pages *pages, uint64_t first, uint64_t mangled,
                             uint64_t contents, uint64_t *out, uint64_t room, uint64_t *count)
{
    uint64_t chunk = first;
    *count = 0;
    while (chunk) {
        uint64_t words[3], link;
        if (chunk & 15 || chunk < PAGE || chunk >> 47)
            return DAMAGED;
        if (*count == room)
            return TOO_LONG;
        if (!fetch(pages, chunk, words, 3))
            return refusal(pages);
        out[2 * *count] = chunk;
        out[2 * (*count)++ + 1] = words[1];
        link = mangled ? words[2] ^ (chunk + 16) >> 12 : words[2];
        chunk = link && contents ? link - 16 : link;
    }
    return WHOLE;
}
