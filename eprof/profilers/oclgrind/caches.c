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

enum { WARP = 32, SECTOR_BITS = 5, LINE_BITS = 7, ORDERS = 3, MOST_REQUESTS = 1 << 22 };
enum { REGISTERS_GUESSED = 40 };
enum { MASK = 15, STORE = 16, ATOMIC = 32, FIRST = 64 }; /* bits of a word of a trace, below the number of a line */
#define PENDING_WORDS (64u << 20)                        /* so many wait for the replay before threads must */

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
} words;
typedef struct {
    uint64_t *entries; /* line << 8 | dirty sectors << 4 | valid sectors; of a set the latest first */
    size_t sets;
    unsigned ways;
} cache;
typedef struct {
    uint64_t *words;
    size_t n;
    unsigned readers;
} trace;

/* Counts of sectors, in the order in which they are printed. */
enum { L1_HITS, L2_READS, L2_READ_HITS, L2_WRITES, DRAM_READS, DRAM_WRITES, LEFT_DIRTY, N_COUNTS };
static const char *const NAMES[N_COUNTS] = {"l1 load hits",  "l2 reads",    "l2 read hits", "l2 writes",
                                            "dram reads", "dram writes", "dram left dirty"};
enum { LOADS, STORES, ATOMICS, N_KINDS };
static const char *const KINDS[N_KINDS] = {"load", "store", "atomic"};

typedef struct {
    caches_launch *launch;
    pthread_mutex_t mutex;
    cache *l1s, *l2;
    size_t places, place, next_group, done, *group, *position; /* group: 1 + its number, 0 = a free place */
    uint64_t counts[N_COUNTS];
} replay;

struct caches_launch {
    char model[64];
    size_t groups, items, sms;
    int l1_keeps_stores, l2_parts;
    unsigned fetch;
    trace *traces;
    size_t pending;
    pthread_mutex_t mutex;
    replay orders[ORDERS];
    uint64_t requests[N_KINDS], sectors[N_KINDS], lost;
};

struct caches_recorder {
    caches_launch *launch;
    request *requests;
    chunk *chunks;
    uint32_t *table, n_requests, n_chunks, request_room, chunk_room, table_mask, cursor, bit;
    size_t warp, n_warps;
    words *warps, group;
    uint64_t counts[N_KINDS], sectors[N_KINDS], lost;
};

static cache l2s[ORDERS]; /* between launches, where L2 stays warm */

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
    void *room = realloc(old, bytes);
    if (!room) {
        fprintf(stderr, "eprof: no memory for the model of caches\n");
        exit(1);
    }
    return room;
}

static cache new_cache(size_t bytes, size_t line, unsigned ways)
{
    cache made = {NULL, bytes ? bytes / (line * ways) : 0, ways};
    made.sets += bytes && !made.sets;
    if (made.sets) {
        made.entries = room_for(NULL, made.sets * ways * sizeof *made.entries);
        memset(made.entries, 0, made.sets * ways * sizeof *made.entries);
    }
    return made;
}

/* The entry of a line, made the latest of its set; `*evicted` is what had to go (0: nothing). Without `make`: or NULL. */
static uint64_t *entry_of(cache *of, uint64_t line, int make, uint64_t *evicted)
{
    uint64_t *set = of->entries + (line ^ line >> 11 ^ line >> 22 ^ line >> 36) % of->sets * of->ways, found;
    unsigned way = 0;
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

/* A read or write of sectors in L2. A store makes its sectors dirty; what leaves dirty is written. */
static void to_l2(replay *of, uint64_t word, unsigned mask)
{
    const caches_launch *launch = of->launch;
    const unsigned each = 4 / launch->l2_parts, whole = (1 << each) - 1;
    for (int part = 0; part < launch->l2_parts; ++part) {
        unsigned sectors = mask >> part * each & whole, missing;
        uint64_t evicted, *entry;
        if (!sectors)
            continue;
        entry = entry_of(of->l2, (word >> 8) * launch->l2_parts + part, 1, &evicted);
        of->counts[DRAM_WRITES] += __builtin_popcount(evicted >> 4 & MASK);
        if (!(word & STORE) || word & ATOMIC) {
            missing = sectors & ~(unsigned)*entry;
            of->counts[L2_READS] += __builtin_popcount(sectors);
            of->counts[L2_READ_HITS] += __builtin_popcount(sectors & (unsigned)*entry);
            if (launch->fetch > 1)
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

static void serve(replay *of, size_t sm, uint64_t word)
{
    unsigned mask = word & MASK;
    cache *l1 = of->l1s + sm;
    if (l1->sets) {
        uint64_t evicted, *entry = entry_of(l1, word >> 8, !(word & (STORE | ATOMIC)), &evicted);
        if (!(word & (STORE | ATOMIC))) {
            const unsigned hits = mask & (unsigned)*entry;
            of->counts[L1_HITS] += __builtin_popcount(hits);
            *entry |= mask;
            mask &= ~hits;
        } else if (entry && (!of->launch->l1_keeps_stores || word & ATOMIC))
            *entry &= ~(uint64_t)mask;
    }
    to_l2(of, word, mask);
}

/* Go on as far as groups were run; called again until the launch is over. */
static void advance(replay *of)
{
    caches_launch *launch = of->launch;
    while (of->done < launch->groups) {
        size_t *group = of->group + of->place;
        if (!*group && of->next_group < launch->groups) {
            if (!__atomic_load_n(&launch->traces[of->next_group].readers, __ATOMIC_ACQUIRE))
                return;
            *group = ++of->next_group;
            of->position[of->place] = 0;
        }
        if (*group) {
            trace *run = launch->traces + *group - 1;
            size_t at = of->position[of->place];
            if (at < run->n)
                do
                    serve(of, of->place % launch->sms, run->words[at]);
                while (++at < run->n && !(run->words[at] & FIRST));
            of->position[of->place] = at;
            if (at == run->n) {
                *group = 0;
                ++of->done;
                if (__atomic_sub_fetch(&run->readers, 1, __ATOMIC_ACQ_REL) == 1) {
                    __atomic_sub_fetch(&launch->pending, run->n, __ATOMIC_RELAXED);
                    free(run->words);
                }
            }
        }
        of->place = of->place + 1 < of->places ? of->place + 1 : 0;
    }
}

/* Groups of a multiprocessor that fit at once, by all that is known and a guess at registers (0: none is taken). */
static size_t resident(size_t items, size_t local_bytes, size_t registers)
{
    const size_t warps = (items + WARP - 1) / WARP;
    size_t most = setting("groups");
    if (most > setting("warps") / warps)
        most = setting("warps") / warps;
    if (local_bytes && most > setting("local") / local_bytes)
        most = setting("local") / local_bytes;
    if (registers && most > setting("registers") / (registers * warps * WARP))
        most = setting("registers") / (registers * warps * WARP);
    return most ? most : 1;
}

static void begin_order(caches_launch *launch, int order, size_t in_flight, size_t local_bytes)
{
    replay *of = launch->orders + order;
    size_t l1_bytes = setting("l1_bytes"), shared = in_flight * local_bytes;
    if (setting("l1_shares"))
        l1_bytes = l1_bytes > shared + setting("l1_least") ? l1_bytes - shared : setting("l1_least");
    of->launch = launch;
    pthread_mutex_init(&of->mutex, NULL);
    of->places = launch->sms * in_flight < launch->groups ? launch->sms * in_flight : launch->groups;
    of->group = calloc(of->places + 1, sizeof *of->group);
    of->position = calloc(of->places + 1, sizeof *of->position);
    of->l1s = calloc(launch->sms, sizeof *of->l1s);
    for (size_t sm = 0; sm < launch->sms && sm < of->places; ++sm)
        of->l1s[sm] = new_cache(l1_bytes, 1 << LINE_BITS, (unsigned)setting("l1_ways"));
    of->l2 = l2s + order;
    if (!setting("warm") || !of->l2->entries) {
        free(of->l2->entries);
        *of->l2 = new_cache(setting("l2_bytes"), setting("l2_line"), (unsigned)setting("l2_ways"));
    }
}

caches_launch *caches_begin(size_t groups, size_t items, size_t local_bytes)
{
    caches_launch *launch;
    size_t guessed;
    if (!setting("sms") || !groups)
        return NULL;
    launch = room_for(NULL, sizeof *launch);
    memset(launch, 0, sizeof *launch);
    sscanf(getenv("EPROF_CACHES"), "%63s", launch->model);
    launch->groups = groups;
    launch->items = items;
    launch->sms = setting("sms");
    launch->l1_keeps_stores = setting("l1_keeps_stores") != 0;
    launch->l2_parts = (int)((1u << LINE_BITS) / setting("l2_line"));
    launch->fetch = (unsigned)(setting("fetch") >> SECTOR_BITS);
    launch->traces = room_for(NULL, groups * sizeof *launch->traces);
    memset(launch->traces, 0, groups * sizeof *launch->traces);
    pthread_mutex_init(&launch->mutex, NULL);
    guessed = resident(items, local_bytes, REGISTERS_GUESSED);
    begin_order(launch, 0, guessed, local_bytes);
    begin_order(launch, 1, 1, local_bytes);
    begin_order(launch, 2, resident(items, local_bytes, 0), local_bytes);
    return launch;
}

caches_recorder *caches_recorder_new(caches_launch *launch)
{
    caches_recorder *r;
    if (!launch)
        return NULL;
    r = room_for(NULL, sizeof *r);
    memset(r, 0, sizeof *r);
    r->launch = launch;
    r->n_warps = (launch->items + WARP - 1) / WARP;
    r->warps = room_for(NULL, r->n_warps * sizeof *r->warps);
    memset(r->warps, 0, r->n_warps * sizeof *r->warps);
    r->request_room = r->chunk_room = 1 << 10;
    r->requests = room_for(NULL, r->request_room * sizeof *r->requests);
    r->chunks = room_for(NULL, r->chunk_room * sizeof *r->chunks);
    r->table_mask = 2 * r->request_room - 1;
    r->table = calloc(r->table_mask + 1, sizeof *r->table);
    r->requests[0] = (request){0}; /* begins the list and ends it: no access is of all lanes already */
    r->requests[0].lanes = UINT32_MAX;
    r->n_requests = r->n_chunks = 1;
    r->bit = 1;
    return r;
}

static void put(words *to, uint64_t word)
{
    if (to->n == to->room)
        to->words = room_for(to->words, (to->room = 2 * to->room + 64) * sizeof *to->words);
    to->words[to->n++] = word;
}

/* The requests of the warp that ran are complete: to its words. */
static void close_warp(caches_recorder *r)
{
    words *to = r->warps + r->warp;
    for (uint32_t at = r->requests[0].next; at; at = r->requests[at].next) {
        const request *done = r->requests + at;
        const int kind = done->kind & ATOMIC ? ATOMICS : done->kind & STORE ? STORES : LOADS;
        uint64_t first = FIRST;
        ++r->counts[kind];
        for (uint32_t part = done->first; part; part = r->chunks[part].next, first = 0) {
            r->sectors[kind] += __builtin_popcount((unsigned)r->chunks[part].word & MASK);
            put(to, r->chunks[part].word | done->kind | first);
        }
    }
    if (r->n_requests > 1)
        memset(r->table, 0, (r->table_mask + 1) * sizeof *r->table);
    r->requests[0].next = r->cursor = 0;
    r->n_requests = r->n_chunks = 1;
}

void caches_lane(caches_recorder *r, unsigned item)
{
    if (!r)
        return;
    if (item / WARP != r->warp) {
        close_warp(r);
        r->warp = item / WARP;
    }
    r->bit = 1u << item % WARP;
    r->cursor = 0;
}

static uint32_t *slot_of(caches_recorder *r, uint64_t key)
{
    uint32_t at = (uint32_t)((key * 0x9E3779B97F4A7C15u) >> 32) & r->table_mask;
    while (r->table[at] && r->requests[r->table[at]].key != key)
        at = (at + 1) & r->table_mask;
    return r->table + at;
}

/* The request of an access that is not the next of the list: it is elsewhere, or is put in after the lane's last. */
static request *find(caches_recorder *r, uint64_t key, uint32_t what)
{
    uint32_t *slot, at;
    while (at = *(slot = slot_of(r, key)), at && r->requests[at].lanes & r->bit)
        key += 0x632BE59BD9B4E019u; /* the same site and iterations again: the function was called again */
    if (!at) {
        if (r->n_requests == MOST_REQUESTS) {
            ++r->lost;
            return NULL;
        }
        if (r->n_requests == r->request_room) {
            r->requests = room_for(r->requests, (r->request_room *= 2) * sizeof *r->requests);
            r->table_mask = 2 * r->request_room - 1;
            free(r->table);
            r->table = calloc(r->table_mask + 1, sizeof *r->table);
            for (at = 1; at < r->n_requests; ++at)
                *slot_of(r, r->requests[at].key) = at;
            slot = slot_of(r, key);
        }
        const uint32_t kind = (what & CACHES_STORE ? STORE : 0) | (what & CACHES_ATOMIC ? ATOMIC : 0);
        at = *slot = r->n_requests++;
        r->requests[at] = (request){key, 0, r->requests[r->cursor].next, 0, 0, kind};
        r->requests[r->cursor].next = at;
    }
    return r->requests + at;
}

static void touch(caches_recorder *r, request *of, uint64_t sector)
{
    const uint64_t line = sector >> (LINE_BITS - SECTOR_BITS) << 8, bit = 1u << (sector & 3);
    uint32_t at;
    if (of->last && r->chunks[of->last].word >> 8 == line >> 8) {
        r->chunks[of->last].word |= bit;
        return;
    }
    for (at = of->first; at; at = r->chunks[at].next)
        if (r->chunks[at].word >> 8 == line >> 8) {
            r->chunks[at].word |= bit;
            return;
        }
    if (r->n_chunks == r->chunk_room)
        r->chunks = room_for(r->chunks, (r->chunk_room *= 2) * sizeof *r->chunks);
    at = r->n_chunks++;
    r->chunks[at] = (chunk){line | bit, 0};
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
    if ((of->key != key || of->lanes & r->bit) && !(of = find(r, key, what)))
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
    at = calloc(r->n_warps, sizeof *at);
    for (size_t warp = 0; warp < r->n_warps; ++warp)
        left += r->warps[warp].n;
    while (left)
        for (size_t warp = 0; warp < r->n_warps; ++warp) {
            const words *of = r->warps + warp;
            if (at[warp] < of->n)
                do
                    put(&r->group, of->words[at[warp]]), --left;
                while (++at[warp] < of->n && !(of->words[at[warp]] & FIRST));
        }
    for (size_t warp = 0; warp < r->n_warps; ++warp)
        r->warps[warp].n = 0;
    free(at);
    r->warp = 0;
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
    done->words = room_for(NULL, (done->n + 1) * sizeof *done->words);
    memcpy(done->words, r->group.words, done->n * sizeof *done->words);
    r->group.n = 0;
    __atomic_add_fetch(&launch->pending, done->n, __ATOMIC_RELAXED);
    __atomic_store_n(&done->readers, ORDERS + 1, __ATOMIC_RELEASE); /* 0: not run yet; 1: all have read it */
    for (int order = 0; order < ORDERS; ++order) {
        replay *of = launch->orders + order;
        const int must = __atomic_load_n(&launch->pending, __ATOMIC_RELAXED) > PENDING_WORDS;
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
    pthread_mutex_lock(&r->launch->mutex);
    for (int kind = 0; kind < N_KINDS; ++kind) {
        r->launch->requests[kind] += r->counts[kind];
        r->launch->sectors[kind] += r->sectors[kind];
    }
    r->launch->lost += r->lost;
    pthread_mutex_unlock(&r->launch->mutex);
    for (size_t warp = 0; warp < r->n_warps; ++warp)
        free(r->warps[warp].words);
    free(r->warps);
    free(r->group.words);
    free(r->requests);
    free(r->chunks);
    free(r->table);
    free(r);
}

static void *to_the_end(void *order)
{
    replay *of = order;
    advance(of);
    for (size_t set = 0; set < of->l2->sets * of->l2->ways; ++set)
        of->counts[LEFT_DIRTY] += __builtin_popcount(of->l2->entries[set] >> 4 & MASK);
    for (size_t sm = 0; sm < of->launch->sms; ++sm)
        free(of->l1s[sm].entries);
    free(of->l1s);
    free(of->group);
    free(of->position);
    return NULL;
}

size_t caches_end(caches_launch *launch, char *text, size_t room)
{
    pthread_t threads[ORDERS];
    int is_thread[ORDERS];
    size_t n = 0;
    if (!launch)
        return 0;
    for (int order = 0; order < ORDERS; ++order)
        is_thread[order] = order && !pthread_create(&threads[order], NULL, to_the_end, launch->orders + order);
    for (int order = 0; order < ORDERS; ++order)
        is_thread[order] ? (void)pthread_join(threads[order], NULL) : (void)to_the_end(launch->orders + order);
#define LINE(number, ...)                                                                                              \
    n += (size_t)snprintf(n < room ? text + n : NULL, n < room ? room - n : 0, "%16llu - cache ",                      \
                          (unsigned long long)(number)),                                                               \
        n += (size_t)snprintf(n < room ? text + n : NULL, n < room ? room - n : 0, __VA_ARGS__)
    LINE(1, "model %s\n", launch->model);
    for (int kind = 0; kind < N_KINDS; ++kind) {
        LINE(launch->requests[kind], "%s requests\n", KINDS[kind]);
        LINE(launch->sectors[kind], "%s sectors\n", KINDS[kind]);
    }
    for (int count = 0; count < N_COUNTS; ++count) {
        uint64_t low = UINT64_MAX, high = 0, value = launch->orders[0].counts[count];
        for (int order = 0; order < ORDERS; ++order) {
            const uint64_t seen = launch->orders[order].counts[count];
            low = seen < low ? seen : low;
            high = seen > high ? seen : high;
        }
        LINE(value, "%s\n", NAMES[count]);
        LINE(low, "%s least\n", NAMES[count]);
        LINE(high, "%s most\n", NAMES[count]);
    }
    if (launch->lost)
        LINE(launch->lost, "accesses lost\n");
    for (size_t group = 0; group < launch->groups; ++group)
        if (launch->traces[group].readers > 1)
            free(launch->traces[group].words);
    free(launch->traces);
    free(launch);
    return n;
}
