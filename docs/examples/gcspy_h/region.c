/* A region allocator that shows itself in GCspy: objects are allocated one behind the other, and a whole region is freed at once.
 * What gcspy.h needs is marked.
 *
 *     cc -O2 -I"$(gcspy --include-dir)" region.c -o region && ./region
 *
 * Regions come and go, so the tiles have an address and a size each. Requests are served for ever, each with regions of its own; with
 * an argument, one for each line of the input, and the bytes in use are printed, which is how it is tested.
 */
#define GCSPY_IMPLEMENTATION /* gcspy */
#include "gcspy.h" /* gcspy */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SESSIONS = 24, REGION_BYTES = 64 << 10, MOST_REGIONS = 4096 };
enum { REQUEST, RELEASE }; /* gcspy */

typedef struct region {
    struct region *next;
    size_t used, objects, size;
    int owner;
    char memory[];
} region;

static region *first[SESSIONS];
static size_t total;

static gcspy spy; /* gcspy */
static gcspy_space *regions; /* gcspy */
static gcspy_stream *size, *used, *objects, *owner; /* gcspy */

static void show_regions(void) { /* gcspy */
    static const char *const kinds[] = {"Request", "Release"}; /* gcspy */
    static const char *const owners[] = {"login", "search", "upload", "report"}; /* gcspy */
    gcspy_open(&spy, "regions", kinds, 2, GCSPY_CAN_WAIT, 0); /* gcspy */
    regions = gcspy_add_named_space(&spy, "Regions", GCSPY_EXTENTS, MOST_REGIONS); /* gcspy */
    used = gcspy_add_stream(&spy, regions, "Used", 0, GCSPY_PLAIN, 0x2e8b57); /* gcspy */
    size = gcspy_add_stream(&spy, regions, "Size", 0, GCSPY_MAX_VAR, 0); /* gcspy */
    gcspy_percent_of(&spy, used, size); /* gcspy */
    objects = gcspy_add_stream(&spy, regions, "Objects", 512, GCSPY_PLUS, 0x3250c8); /* gcspy */
    owner = gcspy_add_enum(&spy, regions, "Owner", owners, 4); /* gcspy */
} /* gcspy */

static void publish(int kind, const char *cause) { /* gcspy */
    uint32_t tile = 0; /* gcspy */
    if (!gcspy_begin(&spy, kind)) return; /* gcspy */
    gcspy_resize(regions, NULL, MOST_REGIONS); /* gcspy */
    gcspy_reset(&spy, regions); /* gcspy */
    for (int session = 0; session < SESSIONS; session++) /* gcspy */
        for (region *r = first[session]; r && tile < MOST_REGIONS; r = r->next, tile++) { /* gcspy */
            gcspy_extent(&spy, regions, tile, r->memory, r->size); /* gcspy */
            gcspy_values(&spy, size)[tile] = (int64_t)r->size; /* gcspy */
            gcspy_values(&spy, used)[tile] = (int64_t)r->used; /* gcspy */
            gcspy_values(&spy, objects)[tile] = (int64_t)r->objects; /* gcspy */
            gcspy_values(&spy, owner)[tile] = r->owner; /* gcspy */
        } /* gcspy */
    gcspy_resize(regions, NULL, tile); /* gcspy */
    gcspy_cause(&spy, cause); /* gcspy */
    gcspy_end(&spy); /* gcspy */
} /* gcspy */

static void *region_alloc(int session, int of, size_t bytes) {
    region *r = first[session];
    if (!r || r->size - r->used < bytes) {
        size_t room = bytes > REGION_BYTES ? bytes : REGION_BYTES;
        region *fresh = malloc(sizeof *fresh + room);
        if (!fresh) return NULL;
        fresh->next = r;
        fresh->used = fresh->objects = 0;
        fresh->size = room;
        fresh->owner = of;
        first[session] = r = fresh;
    }
    r->used += bytes;
    r->objects++;
    total += bytes;
    return r->memory + r->used - bytes;
}

static void region_release(int session) {
    while (first[session]) {
        region *r = first[session];
        first[session] = r->next;
        total -= r->used;
        free(r);
    }
}

static unsigned long dice = 7;

static size_t rolled(void) {
    dice = dice * 6364136223846793005u + 1;
    return dice >> 33;
}

int main(int arguments, char **argument) {
    static const char *const causes[] = {"a login", "a search", "an upload", "a report"};
    char line[80];
    (void)argument;
    show_regions(); /* gcspy */
    for (long request = 1;; request++) {
        int session = (int)(rolled() % SESSIONS), of = (int)(rolled() % 4);
        if (rolled() % 3 == 0) {
            region_release(session);
            publish(RELEASE, causes[of]); /* gcspy */
        }
        for (size_t step = 0, count = 200 << of; step < count; step++) region_alloc(session, of, 16 + rolled() % 400);
        publish(REQUEST, causes[of]); /* gcspy */
        if (arguments > 1) {
            printf("%ld %zu\n", request, total);
            fflush(stdout);
            if (!fgets(line, sizeof line, stdin)) return 0;
        } else
            usleep(20000);
    }
}
