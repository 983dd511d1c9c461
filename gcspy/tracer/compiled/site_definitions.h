/* `struct sites`: definitions of sites and of frames that have no name yet, made as the trace's file has them. With full stacks a program
 * defines as many as a twentieth of its events.
 *
 * Source: objects/FORMAT.md, section 7: FRAME and SITE. */
#ifndef GCSPY_SITE_DEFINITIONS_H
#define GCSPY_SITE_DEFINITIONS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "object_trace.h"

#define MOST_NUMBERS (1u << 24) /* of definitions of a kind */
#define MOST_FRAMES 512u        /* of a site: a record has no room for more */

struct known_frame {
    uint64_t place; /* 0: none */
    uint32_t number;
};

struct sites {
    struct known_frame *known; /* 1 << bits, at most half of them used */
    unsigned bits;
    size_t used;
    uint64_t *places; /* the code address of each frame, by its number - 1; 0: a frame that the program named itself */
    size_t frame_count, frame_room;
    uint8_t *bytes; /* definitions that were not taken yet */
    size_t byte_count, byte_room;
    uint32_t last_site, last_count, last_frames[MOST_FRAMES];
    int64_t site_count;
};

static int begin_sites(struct sites *sites) {
    sites->bits = 10;
    return (sites->known = calloc((size_t)1 << sites->bits, sizeof *sites->known)) != NULL;
}

static void free_sites(struct sites *sites) { free(sites->known), free(sites->places), free(sites->bytes); }

static size_t frame_slot(const struct sites *sites, uint64_t place) {
    size_t slot = (size_t)((place * 0x9e3779b97f4a7c15ull) >> (64 - sites->bits));
    while (sites->known[slot].place && sites->known[slot].place != place) slot = (slot + 1) & (((size_t)1 << sites->bits) - 1);
    return slot;
}

static uint8_t *room_for(struct sites *sites, size_t bytes) {
    if (sites->byte_count + bytes > sites->byte_room) {
        size_t room = sites->byte_room ? sites->byte_room : 65536;
        while (room < sites->byte_count + bytes) room *= 2;
        uint8_t *more = realloc(sites->bytes, room);
        if (more == NULL) return NULL;
        sites->bytes = more, sites->byte_room = room;
    }
    return sites->bytes + sites->byte_count;
}

/* Append a definition whose fields were written `head` bytes behind the end: its kind and its length go before them. */
static void close_definition(struct sites *sites, int kind, size_t head, const uint8_t *end) {
    uint8_t *begin = sites->bytes + sites->byte_count, *fields = begin + head, *at = begin;
    size_t length = (size_t)(end - fields);
    *at++ = (uint8_t)kind;
    at = gct_varint(at, length);
    memmove(at, fields, length);
    sites->byte_count = (size_t)(at + length - sites->bytes);
}

/* Number a frame; 0: there is no memory, or there are too many. */
static uint32_t new_frame(struct sites *sites, uint64_t place, uint64_t address) {
    if (place == 0 || sites->frame_count + 1 >= MOST_NUMBERS) return 0;
    if (sites->frame_count == sites->frame_room) {
        size_t room = sites->frame_room ? sites->frame_room * 2 : 1024;
        uint64_t *more = realloc(sites->places, room * sizeof *more);
        if (more == NULL) return 0;
        sites->places = more, sites->frame_room = room;
    }
    if (sites->used * 2 >= (size_t)1 << sites->bits) {
        struct known_frame *old = sites->known, *made = calloc((size_t)2 << sites->bits, sizeof *made);
        if (made == NULL) return 0;
        size_t count = (size_t)1 << sites->bits++;
        sites->known = made;
        for (size_t slot = 0; slot < count; slot++)
            if (old[slot].place) made[frame_slot(sites, old[slot].place)] = old[slot];
        free(old);
    }
    struct known_frame *known = &sites->known[frame_slot(sites, place)];
    sites->used += known->place == 0;
    sites->places[sites->frame_count++] = address;
    *known = (struct known_frame){place, (uint32_t)sites->frame_count};
    return known->number;
}

static uint32_t frame_at(struct sites *sites, uint64_t place) {
    const struct known_frame *known = &sites->known[frame_slot(sites, place)];
    if (place == 0 || known->place) return place ? known->number : 0;
    uint32_t number = new_frame(sites, place, place);
    uint8_t *at = number ? room_for(sites, 64) : NULL;
    if (at == NULL) return number;
    uint8_t *field = gct_varint(at + 8, number);
    memset(field, 0, 3); /* function, file, line */
    field[3] = 1;        /* no index of byte code */
    field = gct_varint(field + 4, place);
    *field++ = 0;
    close_definition(sites, GCT_FRAME, 8, field);
    return number;
}

/* Define a site by the places of its frames, innermost first. Frames that it shares with the site before it are not repeated. */
static void define_site(struct sites *sites, uint32_t number, const uint8_t *places, size_t count) {
    if (number == 0 || number >= MOST_NUMBERS) return;
    uint32_t frames[MOST_FRAMES], known = 0, shared = 0;
    for (size_t one = 0; one < count && known < MOST_FRAMES; one++) {
        uint64_t place;
        memcpy(&place, places + 8 * one, 8);
        uint32_t frame = frame_at(sites, place);
        if (frame) frames[known++] = frame;
    }
    while (shared < known && shared < sites->last_count && frames[known - 1 - shared] == sites->last_frames[sites->last_count - 1 - shared]) shared++;
    uint8_t *at = room_for(sites, 64 + 5 * (size_t)known);
    if (at == NULL) return;
    uint8_t *field = gct_varint(at + 8, number);
    *field++ = 0, *field++ = 0; /* its type varies; no label */
    field = gct_varint(field, shared ? sites->last_site : 0);
    field = gct_varint(field, shared);
    field = gct_varint(field, known - shared);
    for (uint32_t one = 0; one < known - shared; one++) field = gct_varint(field, frames[one]);
    close_definition(sites, GCT_SITE, 8, field);
    memcpy(sites->last_frames, frames, known * sizeof *frames);
    sites->last_site = number, sites->last_count = known, sites->site_count++;
}

#endif
