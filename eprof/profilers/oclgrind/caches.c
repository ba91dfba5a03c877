/* Coalescing and caches of a GPU, simulated (caches.h).

   Recording, one recorder a thread: the 32 lanes of a warp run one after the other, so their accesses are matched by key
   (site and loop iterations) into requests, kept in a list in the order of the lanes' programs. A request is the lines of
   128 bytes that it touches, each with a mask of its four sectors. At a barrier the warps' requests are interleaved.

   Replay, once for each idea of how many groups a multiprocessor has in flight: groups in order to the next free place,
   a request of each in turn, through an L1 a multiprocessor and one L2. It takes groups in their order, whichever thread
   ran them, so counts do not depend on threads. What the orders differ by is the interval that is printed. */
#include "caches.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARP = 32, SECTOR_BITS = 5, LINE_BITS = 7, ORDERS = 3 };
enum { MASK = 15, STORE = 16, ATOMIC = 32, FIRST = 64 }; /* of a word of a trace, below the number of a line */
enum { MOST_REQUESTS = 1 << 22, MOST_PENDING = 1 << 26 };  /* of a warp between barriers; words that wait for the replay */

/* What is counted while recording, and by a replay, in sectors. */
enum { LOADS, LOAD_SECTORS, STORES, STORE_SECTORS, ATOMICS, ATOMIC_SECTORS, LOST, N_RECORDED };
enum { L1_HITS, L2_READS, L2_READ_HITS, L2_WRITES, DRAM_READS, DRAM_WRITES, LEFT_DIRTY, N_REPLAYED };
static const char *const RECORDED[] = {"load requests",   "load sectors",   "store requests", "store sectors",
                                       "atomic requests", "atomic sectors", "accesses lost"};
static const char *const REPLAYED[] = {"l1 load hits", "l2 reads",    "l2 read hits",   "l2 writes",
                                       "dram reads",   "dram writes", "dram left dirty"};

typedef struct {
    uint64_t key;
    uint32_t lanes, next, first, last, kind;
} request;
typedef struct {
    uint64_t word;
    uint32_t next;
} chunk;
typedef struct {
    uint64_t *words;
    size_t n, room;
    unsigned readers; /* of a group: 0: not run yet, 1: all replays are through */
} trace;
typedef struct {
    uint64_t *entries; /* line << 8 | dirty sectors << 4 | valid sectors; of a set the latest first */
    size_t sets, ways;
} cache;

typedef struct {
    caches_launch *launch;
    pthread_mutex_t mutex;
    cache *l1s, *l2;
    size_t places, place, next_group, done, *group, *position; /* of each place: 1 + its group, 0: free; and how far */
    uint64_t counts[N_REPLAYED];
} replay;

struct caches_launch {
    char model[64];
    size_t groups, items, sms, pending, l2_parts;
    int l1_keeps_stores, fetches_pairs;
    trace *traces;
    replay orders[ORDERS];
    uint64_t counts[N_RECORDED];
};

struct caches_recorder {
    caches_launch *launch;
    request *requests; /* the first begins the list and ends it */
    chunk *chunks;     /* the lines of requests; 0: none */
    uint32_t *table, n_requests, n_chunks, request_room, chunk_room, cursor, bit;
    size_t warp, n_warps;
    trace *warps, group;
    uint64_t counts[N_RECORDED];
};

static cache l2s[ORDERS]; /* kept between launches, where L2 stays warm */

static size_t setting(const char *name)
{
    char key[32];
    const char *text = getenv("EPROF_CACHES"), *at;
    snprintf(key, sizeof key, " %s=", name);
    at = text ? strstr(text, key) : NULL;
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static void *room_for(void *old, size_t bytes)
{
    void *room = realloc(old, bytes + 1);
    if (!room) {
        fprintf(stderr, "eprof: no memory for the model of caches; run with --caches none.\n");
        exit(1);
    }
    return room;
}

static void *zeros(size_t number, size_t size) { return memset(room_for(NULL, number * size), 0, number * size); }

/* ---- replay */

static cache new_cache(size_t bytes, size_t line, size_t ways)
{
    const size_t lines = bytes / line, sets = lines && lines < ways ? 1 : lines ? lines / ways : 0;
    return (cache){zeros(sets * ways, sizeof(uint64_t)), sets, ways};
}

/* The entry of a line, made the latest of its set; `*evicted` is what had to go (0: nothing). Without `make`: or NULL. */
static uint64_t *entry_of(cache *of, uint64_t line, int make, uint64_t *evicted)
{
    uint64_t *set = of->entries + (line ^ line >> 4 ^ line >> 9 ^ line >> 15 ^ line >> 23 ^ line >> 36) % of->sets * of->ways, found;
    size_t way = 0;
    while (way < of->ways && set[way] >> 8 != line)
        ++way;
    *evicted = 0;
    if (way == of->ways) {
        if (!make)
            return NULL;
        *evicted = set[--way];
        set[way] = line << 8;
    }
    found = set[way];
    memmove(set + 1, set, way * sizeof *set);
    set[0] = found;
    return set;
}

/* Sectors of a line of 128 bytes in L2, whose lines may be parts of it. A store makes them dirty; what leaves so is written. */
static void to_l2(replay *of, uint64_t word, unsigned mask)
{
    const unsigned each = 4 / (unsigned)of->launch->l2_parts, whole = (1 << each) - 1;
    for (unsigned part = 0; part < of->launch->l2_parts; ++part) {
        const unsigned sectors = mask >> part * each & whole;
        uint64_t evicted, *entry;
        if (!sectors)
            continue;
        entry = entry_of(of->l2, (word >> 8) * of->launch->l2_parts + part, 1, &evicted);
        of->counts[DRAM_WRITES] += __builtin_popcount(evicted >> 4 & MASK);
        if (!(word & STORE)) {
            unsigned missing = sectors & ~(unsigned)*entry;
            of->counts[L2_READS] += __builtin_popcount(sectors);
            of->counts[L2_READ_HITS] += __builtin_popcount(sectors & ~missing);
            if (of->launch->fetches_pairs)
                missing = (missing | (missing & 5) << 1 | (missing & 10) >> 1) & whole & ~(unsigned)*entry;
            of->counts[DRAM_READS] += __builtin_popcount(missing);
            *entry |= sectors | missing;
        }
        if (word & (STORE | ATOMIC)) {
            of->counts[L2_WRITES] += __builtin_popcount(sectors);
            *entry |= sectors | sectors << 4;
        }
    }
}

static void serve(replay *of, cache *l1, uint64_t word)
{
    unsigned mask = word & MASK;
    const int is_load = !(word & (STORE | ATOMIC));
    if (l1->sets) {
        uint64_t evicted, *entry = entry_of(l1, word >> 8, is_load, &evicted);
        const unsigned hits = entry ? mask & (unsigned)*entry : 0;
        if (is_load) {
            of->counts[L1_HITS] += __builtin_popcount(hits);
            *entry |= mask;
            mask &= ~hits;
        } else if (hits && (word & ATOMIC || !of->launch->l1_keeps_stores))
            *entry &= ~(uint64_t)hits;
    }
    to_l2(of, word, mask);
}

/* Words up to the next request; what is done with each is `DO`. */
#define EACH_OF_REQUEST(OF, AT, DO)                                                                                    \
    do                                                                                                                 \
        DO;                                                                                                            \
    while (++(AT) < (OF)->n && !((OF)->words[AT] & FIRST))

/* Go on as far as groups were run; called again until the launch is over. */
static void advance(replay *of)
{
    caches_launch *launch = of->launch;
    for (; of->done < launch->groups; of->place = of->place + 1 < of->places ? of->place + 1 : 0) {
        size_t *group = of->group + of->place, *at = of->position + of->place;
        trace *run;
        if (!*group && of->next_group < launch->groups) {
            if (!__atomic_load_n(&launch->traces[of->next_group].readers, __ATOMIC_ACQUIRE))
                return;
            *group = ++of->next_group;
            *at = 0;
        }
        if (!*group)
            continue;
        run = launch->traces + *group - 1;
        if (run->n)
            EACH_OF_REQUEST(run, *at, serve(of, of->l1s + of->place % launch->sms, run->words[*at]));
        if (*at < run->n)
            continue;
        *group = 0;
        ++of->done;
        if (__atomic_sub_fetch(&run->readers, 1, __ATOMIC_ACQ_REL) == 1) {
            __atomic_sub_fetch(&launch->pending, run->n, __ATOMIC_RELAXED);
            free(run->words);
        }
    }
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Groups that a multiprocessor has room for; how many registers an item needs is not known. */
static size_t resident(size_t items, size_t local_bytes)
{
    size_t most = least(setting("groups"), setting("warps") / ((items + WARP - 1) / WARP));
    if (local_bytes)
        most = least(most, setting("local") / local_bytes);
    return most ? most : 1;
}

static void begin_order(caches_launch *launch, int order, size_t in_flight, size_t l1_bytes)
{
    replay *of = launch->orders + order;
    of->launch = launch;
    pthread_mutex_init(&of->mutex, NULL);
    of->places = least(launch->sms * in_flight, launch->groups);
    of->group = zeros(of->places, sizeof *of->group);
    of->position = zeros(of->places, sizeof *of->position);
    of->l1s = zeros(launch->sms, sizeof *of->l1s);
    for (size_t sm = 0; sm < least(launch->sms, of->places); ++sm)
        of->l1s[sm] = new_cache(l1_bytes, 1 << LINE_BITS, setting("l1_ways"));
    of->l2 = l2s + order;
    if (!setting("warm") || !of->l2->entries) {
        free(of->l2->entries);
        *of->l2 = new_cache(setting("l2_bytes"), setting("l2_line"), setting("l2_ways"));
    }
}

caches_launch *caches_begin(size_t groups, size_t items, size_t local_bytes)
{
    const size_t most = items ? resident(items, local_bytes) : 0;
    size_t l1_bytes = setting("l1_bytes");
    caches_launch *launch;
    if (!setting("sms") || !groups || !items)
        return NULL;
    launch = zeros(1, sizeof *launch);
    sscanf(getenv("EPROF_CACHES"), "%63s", launch->model);
    launch->groups = groups;
    launch->items = items;
    launch->sms = setting("sms");
    launch->l2_parts = (1u << LINE_BITS) / setting("l2_line");
    launch->l1_keeps_stores = setting("l1_keeps_stores") != 0;
    launch->fetches_pairs = setting("fetch") > 1u << SECTOR_BITS;
    launch->traces = zeros(groups, sizeof *launch->traces);
    if (setting("l1_shares"))
        l1_bytes -= least(most * local_bytes, l1_bytes);
    if (l1_bytes < setting("l1_least"))
        l1_bytes = setting("l1_least");
    /* The first gives the value: GPUs prefer the oldest group of a multiprocessor (docs/studies/caches). */
    begin_order(launch, 0, 1, l1_bytes);
    begin_order(launch, 1, least(2, most), l1_bytes);
    begin_order(launch, 2, most, l1_bytes);
    return launch;
}

/* ---- recording */

caches_recorder *caches_recorder_new(caches_launch *launch)
{
    caches_recorder *r;
    if (!launch)
        return NULL;
    r = zeros(1, sizeof *r);
    r->launch = launch;
    r->n_warps = (launch->items + WARP - 1) / WARP;
    r->warps = zeros(r->n_warps, sizeof *r->warps);
    r->request_room = r->chunk_room = 1 << 10;
    r->requests = zeros(r->request_room, sizeof *r->requests);
    r->chunks = room_for(NULL, r->chunk_room * sizeof *r->chunks);
    r->table = zeros(2 * r->request_room, sizeof *r->table);
    r->requests[0].lanes = UINT32_MAX; /* no access belongs to it */
    r->n_requests = r->n_chunks = 1;
    r->bit = 1;
    return r;
}

static void put(trace *to, uint64_t word)
{
    if (to->n == to->room)
        to->words = room_for(to->words, (to->room = 2 * to->room + 64) * sizeof *to->words);
    to->words[to->n++] = word;
}

/* The requests of the warp that ran are complete: to its words. */
static void close_warp(caches_recorder *r)
{
    for (uint32_t at = r->requests[0].next; at; at = r->requests[at].next) {
        const request *done = r->requests + at;
        const int count = done->kind & ATOMIC ? ATOMICS : done->kind & STORE ? STORES : LOADS;
        uint64_t first = FIRST;
        ++r->counts[count];
        for (uint32_t part = done->first; part; part = r->chunks[part].next, first = 0) {
            r->counts[count + 1] += __builtin_popcount((unsigned)r->chunks[part].word & MASK);
            put(r->warps + r->warp, r->chunks[part].word | done->kind | first);
        }
    }
    if (r->n_requests > 1)
        memset(r->table, 0, 2 * r->request_room * sizeof *r->table);
    r->requests[0].next = r->cursor = 0;
    r->n_requests = r->n_chunks = 1;
}

void caches_lane(caches_recorder *r, unsigned item)
{
    if (!r)
        return;
    if (item / WARP != r->warp)
        close_warp(r);
    r->warp = item / WARP;
    r->bit = 1u << item % WARP;
    r->cursor = 0;
}

static uint32_t *slot_of(caches_recorder *r, uint64_t key)
{
    const uint32_t mask = 2 * r->request_room - 1;
    uint32_t at = (uint32_t)(key * 0x9E3779B97F4A7C15u >> 32) & mask;
    while (r->table[at] && r->requests[r->table[at]].key != key)
        at = (at + 1) & mask;
    return r->table + at;
}

/* The request of an access that is not the next of the list: it is elsewhere, or is put in after the lane's last. */
static request *find(caches_recorder *r, uint64_t key, uint32_t kind)
{
    uint32_t *slot, at;
    while (at = *(slot = slot_of(r, key)), at && r->requests[at].lanes & r->bit)
        key += 0x632BE59BD9B4E019u; /* the same site and iterations again: no loop that has a counter */
    if (at)
        return r->requests + at;
    if (r->n_requests == MOST_REQUESTS) {
        ++r->counts[LOST];
        return NULL;
    }
    if (r->n_requests == r->request_room) {
        r->requests = room_for(r->requests, (r->request_room *= 2) * sizeof *r->requests);
        free(r->table);
        r->table = zeros(2 * r->request_room, sizeof *r->table);
        for (at = 1; at < r->n_requests; ++at)
            *slot_of(r, r->requests[at].key) = at;
        slot = slot_of(r, key);
    }
    at = *slot = r->n_requests++;
    r->requests[at] = (request){key, 0, r->requests[r->cursor].next, 0, 0, kind};
    r->requests[r->cursor].next = at;
    return r->requests + at;
}

static void touch(caches_recorder *r, request *of, uint64_t sector)
{
    const uint64_t line = sector >> (LINE_BITS - SECTOR_BITS), bit = 1u << (sector & 3);
    uint32_t at = of->last;
    if (!at || r->chunks[at].word >> 8 != line)
        for (at = of->first; at && r->chunks[at].word >> 8 != line; at = r->chunks[at].next)
            ;
    if (at) {
        r->chunks[at].word |= bit;
        return;
    }
    if (r->n_chunks == r->chunk_room)
        r->chunks = room_for(r->chunks, (r->chunk_room *= 2) * sizeof *r->chunks);
    at = r->n_chunks++;
    r->chunks[at] = (chunk){line << 8 | bit, 0};
    *(of->last ? &r->chunks[of->last].next : &of->first) = at;
    of->last = at;
}

void caches_access(caches_recorder *r, uint64_t key, uint64_t address, uint32_t what)
{
    const uint64_t last = (address + (what & 0xFFFF) - 1) >> SECTOR_BITS;
    request *of;
    if (!r)
        return;
    of = r->requests + r->requests[r->cursor].next;
    if ((of->key != key || of->lanes & r->bit) && !(of = find(r, key, what >> 12 & (STORE | ATOMIC))))
        return;
    r->cursor = (uint32_t)(of - r->requests);
    of->lanes |= r->bit;
    for (address >>= SECTOR_BITS; address <= last; ++address)
        touch(r, of, address);
}

void caches_barrier(caches_recorder *r)
{
    size_t left = 0, *at;
    if (!r)
        return;
    close_warp(r);
    r->warp = 0;
    at = zeros(r->n_warps, sizeof *at);
    for (size_t warp = 0; warp < r->n_warps; ++warp)
        left += r->warps[warp].n;
    while (left)
        for (size_t warp = 0; warp < r->n_warps; ++warp)
            if (at[warp] < r->warps[warp].n)
                EACH_OF_REQUEST(r->warps + warp, at[warp], (put(&r->group, r->warps[warp].words[at[warp]]), --left));
    for (size_t warp = 0; warp < r->n_warps; ++warp)
        r->warps[warp].n = 0;
    free(at);
}

void caches_group(caches_recorder *r, size_t group)
{
    caches_launch *launch;
    trace *done;
    if (!r)
        return;
    caches_barrier(r);
    launch = r->launch;
    done = launch->traces + group;
    done->n = r->group.n;
    done->words = room_for(r->group.words, done->n * sizeof *done->words);
    r->group = (trace){0};
    __atomic_add_fetch(&launch->pending, done->n, __ATOMIC_RELAXED);
    __atomic_store_n(&done->readers, ORDERS + 1, __ATOMIC_RELEASE);
    for (replay *of = launch->orders; of < launch->orders + ORDERS; ++of) {
        const int must = __atomic_load_n(&launch->pending, __ATOMIC_RELAXED) > MOST_PENDING;
        if (must ? pthread_mutex_lock(&of->mutex) : pthread_mutex_trylock(&of->mutex))
            continue;
        advance(of);
        pthread_mutex_unlock(&of->mutex);
    }
}

void caches_recorder_free(caches_recorder *r)
{
    if (!r)
        return;
    for (int count = 0; count < N_RECORDED; ++count)
        __atomic_add_fetch(r->launch->counts + count, r->counts[count], __ATOMIC_RELAXED);
    for (size_t warp = 0; warp < r->n_warps; ++warp)
        free(r->warps[warp].words);
    free(r->warps);
    free(r->requests);
    free(r->chunks);
    free(r->table);
    free(r);
}

/* ---- the end */

static void *finish(void *order)
{
    replay *of = order;
    advance(of);
    /* Where L2 stays warm, what it holds may be of an earlier launch; it is counted when it leaves. */
    for (size_t at = 0; !setting("warm") && at < of->l2->sets * of->l2->ways; ++at)
        of->counts[LEFT_DIRTY] += __builtin_popcount(of->l2->entries[at] >> 4 & MASK);
    for (size_t sm = 0; sm < of->launch->sms; ++sm)
        free(of->l1s[sm].entries);
    free(of->l1s);
    free(of->group);
    free(of->position);
    return NULL;
}

static char *write_line(char *text, const char *end, uint64_t number, const char *name, const char *more)
{
    const int length = snprintf(text, (size_t)(end - text), "%16llu - cache %s%s\n", (unsigned long long)number, name, more);
    return length < end - text ? text + length : text;
}

size_t caches_end(caches_launch *launch, char *text, size_t room)
{
    pthread_t threads[ORDERS];
    char *at = text, *end = text + room;
    if (!launch)
        return 0;
    for (int order = 1; order < ORDERS; ++order)
        if (pthread_create(threads + order, NULL, finish, launch->orders + order))
            threads[order] = pthread_self(), finish(launch->orders + order);
    finish(launch->orders);
    for (int order = 1; order < ORDERS; ++order)
        if (!pthread_equal(threads[order], pthread_self()))
            pthread_join(threads[order], NULL);
    at = write_line(at, end, 1, "model ", launch->model);
    for (int count = 0; count < N_RECORDED; ++count)
        at = write_line(at, end, launch->counts[count], RECORDED[count], "");
    for (int count = 0; count < N_REPLAYED; ++count) {
        uint64_t low = UINT64_MAX, high = 0;
        for (int order = 0; order < ORDERS; ++order) {
            const uint64_t seen = launch->orders[order].counts[count];
            low = seen < low ? seen : low;
            high = seen > high ? seen : high;
        }
        at = write_line(at, end, launch->orders[0].counts[count], REPLAYED[count], "");
        at = write_line(at, end, low, REPLAYED[count], " least");
        at = write_line(at, end, high, REPLAYED[count], " most");
    }
    for (size_t group = 0; group < launch->groups; ++group)
        if (launch->traces[group].readers > 1) /* of a launch that was ended before it was through */
            free(launch->traces[group].words);
    free(launch->traces);
    free(launch);
    return (size_t)(at - text);
}
