/* SQLite's own page cache, shown in GCspy: every call of the cache that SQLite brings is passed on, and noted. What gcspy.h needs is
 * marked.
 *
 *     cc -O2 -I"$(gcspy --include-dir)" page_cache.c -lsqlite3 -o page_cache && ./page_cache
 *
 * A tile is a page of the cache: where it is in memory, which page of the database it holds, whether SQLite uses it at this moment, and
 * how often it was asked for. The program queries a table of random rows for ever; with an argument it makes one query for each line of
 * its input, and prints the number of pages that SQLite counts itself, which is how it is tested.
 */
#define GCSPY_IMPLEMENTATION /* gcspy */
#include "gcspy.h" /* gcspy */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PAGES = 1 << 14 };
enum { QUERY, SHRINK }; /* gcspy */

/* What is noted of the cached pages, by the slot of each. */
typedef struct {
    sqlite3_pcache_page *page;
    sqlite3_pcache *cache;
    unsigned key, pinned, asked;
} noted;

static noted pages[MOST_PAGES];
static int most;
static sqlite3_pcache *caches[16]; /* those that are open; of this program one or two */
static sqlite3_pcache_methods2 real;

static gcspy spy; /* gcspy */
static gcspy_space *cached; /* gcspy */
static gcspy_stream *state, *number, *asked; /* gcspy */

static void show_pages(void) { /* gcspy */
    static const char *const kinds[] = {"Query", "Shrink"}, *const states[] = {"empty", "cached", "in use"}; /* gcspy */
    gcspy_open(&spy, "SQLite page cache", kinds, 2, GCSPY_CAN_WAIT, 0); /* gcspy */
    cached = gcspy_add_named_space(&spy, "Pages", GCSPY_TEXTS, MOST_PAGES); /* gcspy */
    state = gcspy_add_enum(&spy, cached, "State", states, 3); /* gcspy */
    number = gcspy_add_stream(&spy, cached, "Page of the database", 0, GCSPY_MAX_VAR, 0x3250c8); /* gcspy */
    asked = gcspy_add_stream(&spy, cached, "Asked for", 100, GCSPY_PLUS, 0xc87832); /* gcspy */
} /* gcspy */

static void publish(int kind) { /* gcspy */
    char name[GCSPY_TEXT]; /* gcspy */
    if (!gcspy_begin(&spy, kind)) return; /* gcspy */
    gcspy_resize(cached, NULL, (uint32_t)most); /* gcspy */
    gcspy_reset(&spy, cached); /* gcspy */
    for (int slot = 0; slot < most; slot++) { /* gcspy */
        snprintf(name, sizeof name, "Slot %d", slot); /* gcspy */
        gcspy_name(&spy, cached, (uint32_t)slot, name); /* gcspy */
        if (!pages[slot].page) gcspy_control(&spy, cached)[slot] = GCSPY_UNUSED; /* gcspy */
        gcspy_values(&spy, state)[slot] = !pages[slot].page ? 0 : pages[slot].pinned ? 2 : 1; /* gcspy */
        gcspy_values(&spy, number)[slot] = pages[slot].key; /* gcspy */
        gcspy_values(&spy, asked)[slot] = pages[slot].asked; /* gcspy */
    } /* gcspy */
    gcspy_end(&spy); /* gcspy */
} /* gcspy */

static int slot_of(sqlite3_pcache *cache, sqlite3_pcache_page *page) {
    for (int slot = 0; slot < most; slot++)
        if (pages[slot].page == page && pages[slot].cache == cache) return slot;
    return -1;
}

static void note(sqlite3_pcache *cache, sqlite3_pcache_page *page, unsigned key) {
    int slot = slot_of(cache, page);
    for (int free_one = 0; slot < 0 && free_one < MOST_PAGES; free_one++)
        if (!pages[free_one].page) slot = free_one;
    if (slot < 0) return;
    if (slot >= most) most = slot + 1;
    if (pages[slot].key != key || pages[slot].page != page) pages[slot].asked = 0; /* it holds another page of the database now */
    pages[slot].page = page;
    pages[slot].cache = cache;
    pages[slot].key = key;
    pages[slot].pinned = 1;
    pages[slot].asked++;
}

static void forget(sqlite3_pcache *cache, unsigned from) {
    for (int slot = 0; slot < most; slot++)
        if (pages[slot].cache == cache && pages[slot].key >= from) memset(&pages[slot], 0, sizeof pages[slot]);
}

static sqlite3_pcache_page *fetch(sqlite3_pcache *cache, unsigned key, int create) {
    sqlite3_pcache_page *page = real.xFetch(cache, key, create);
    if (page) note(cache, page, key);
    return page;
}

static sqlite3_pcache *create(int size, int extra, int purgeable) {
    sqlite3_pcache *cache = real.xCreate(size, extra, purgeable);
    for (int place = 0; cache && place < 16; place++)
        if (!caches[place]) return caches[place] = cache;
    return cache;
}

/* A full cache frees a page that is not used any more: then it has fewer afterwards. */
static void unpin(sqlite3_pcache *cache, sqlite3_pcache_page *page, int discard) {
    int slot = slot_of(cache, page), before = real.xPagecount(cache);
    real.xUnpin(cache, page, discard);
    if (slot >= 0) pages[slot].pinned = 0;
    if (slot >= 0 && real.xPagecount(cache) < before) memset(&pages[slot], 0, sizeof pages[slot]);
}

static void shrink(sqlite3_pcache *cache) {
    real.xShrink(cache);
    for (int slot = 0; slot < most; slot++)
        if (pages[slot].cache == cache && !pages[slot].pinned) memset(&pages[slot], 0, sizeof pages[slot]);
}

static void rekey(sqlite3_pcache *cache, sqlite3_pcache_page *page, unsigned from, unsigned to) {
    int slot = slot_of(cache, page);
    if (slot >= 0) pages[slot].key = to;
    real.xRekey(cache, page, from, to);
}

static void cut(sqlite3_pcache *cache, unsigned from) {
    forget(cache, from);
    real.xTruncate(cache, from);
}

static void destroy(sqlite3_pcache *cache) {
    forget(cache, 0);
    for (int place = 0; place < 16; place++)
        if (caches[place] == cache) caches[place] = NULL;
    real.xDestroy(cache);
}

static int run(sqlite3 *database, const char *statement) { return sqlite3_exec(database, statement, NULL, NULL, NULL) != SQLITE_OK; }

int main(int arguments, char **argument) {
    sqlite3 *database;
    char line[160];
    sqlite3_pcache_methods2 ours;
    (void)argument;
    if (sqlite3_config(SQLITE_CONFIG_GETPCACHE2, &real) != SQLITE_OK) return 1;
    ours = real;
    ours.xCreate = create, ours.xShrink = shrink, ours.xFetch = fetch, ours.xUnpin = unpin, ours.xRekey = rekey, ours.xTruncate = cut, ours.xDestroy = destroy;
    if (sqlite3_config(SQLITE_CONFIG_PCACHE2, &ours) != SQLITE_OK) return 1;
    show_pages(); /* gcspy */
    if (sqlite3_open("", &database) != SQLITE_OK || run(database, "PRAGMA cache_size = 400") ||
        run(database, "CREATE TABLE item (id INTEGER PRIMARY KEY, text TEXT)") ||
        run(database, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
                      "INSERT INTO item SELECT i, hex(randomblob(40)) FROM n"))
        return 1;
    for (long query = 1;; query++) {
        int count = 0;
        snprintf(line, sizeof line, "SELECT count(*) FROM item WHERE id BETWEEN %ld AND %ld", query * 977 % 20000, query * 977 % 20000 + 400);
        if (run(database, line)) return 1;
        publish(QUERY); /* gcspy */
        if (query % 200 == 0) {
            sqlite3_db_release_memory(database);
            publish(SHRINK); /* gcspy */
        }
        if (arguments > 1) {
            for (int place = 0; place < 16; place++) count += caches[place] ? real.xPagecount(caches[place]) : 0;
            printf("%ld %d\n", query, count);
            fflush(stdout);
            if (!fgets(line, sizeof line, stdin)) return 0;
        } else
            usleep(20000);
    }
}
