// Coalescing and caches of a GPU, simulated (caches.h).
//
// Recording, one recorder a thread: the 32 lanes of a warp run one after the other, so their accesses are matched by key
// (site and loop iterations) into requests, kept in a list in the order of the lanes' programs. A request is the lines of
// 128 bytes that it touches, each with a mask of its four sectors. At a barrier the warps' requests are interleaved.
//
// Replay, once for each idea of how many groups a multiprocessor has in flight: groups in order to the next free place, a
// request of each in turn, through an L1 a multiprocessor and one L2. It takes groups in their order, whichever thread ran
// them, so counts do not depend on threads. What the orders differ by is the interval that is printed.
#include "caches.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {
typedef std::vector<uint64_t> Words;
const size_t WARP = 32, ORDERS = 3;
const int SECTOR_BITS = 5, LINE_BITS = 7;
const uint64_t MASK = 15, STORE = 16, ATOMIC = 32, FIRST = 64;  // of a word of a trace, below the number of a line
const size_t MOST_REQUESTS = 1 << 22, MOST_PENDING = 1 << 26;  // between barriers; words that wait for the replay

// What is counted while recording, and by a replay, in sectors.
enum { LOADS, LOAD_SECTORS, STORES, STORE_SECTORS, ATOMICS, ATOMIC_SECTORS, LOST, RECORDED };
enum { L1_HITS, L2_READS, L2_READ_HITS, L2_WRITES, DRAM_READS, DRAM_WRITES, LEFT_DIRTY, ALONE, REPLAYED };
const char *const RECORDED_NAMES[] = {"load requests",   "load sectors",   "store requests", "store sectors",
                                      "atomic requests", "atomic sectors", "accesses lost"};
const char *const REPLAYED_NAMES[] = {"l1 load hits", "l2 reads",    "l2 read hits",   "l2 writes",
                                      "dram reads",   "dram writes", "dram left dirty", "dram sectors alone"};

struct Request { uint64_t key; uint32_t lanes, next, first, last; uint64_t kind; };
struct Part { uint64_t word; uint32_t next; };
struct Trace { Words words; std::atomic<unsigned> readers{0}; };  // 0: not run yet, 1: all replays are through

size_t setting(const std::string &name) {
  const char *text = getenv("EPROF_CACHES"), *at = text ? strstr(text, (" " + name + "=").c_str()) : nullptr;
  return at ? strtoull(at + name.size() + 2, nullptr, 10) : 0;
}

struct Cache {
  Words entries;  // line << 8 | dirty sectors << 4 | valid sectors; of a set the latest first
  size_t sets = 0, ways = 0;

  Cache() {}
  Cache(size_t bytes, size_t line, size_t ways_) : ways(ways_) {
    if (bytes)
      sets = std::max<size_t>(bytes / (line * ways), 1);
    entries.resize(sets * ways);
  }

  // The entry of a line, made the latest of its set; `evicted` is what had to go (0: nothing). Without `make`: or null.
  uint64_t *entry(uint64_t line, bool make, uint64_t &evicted) {
    uint64_t place = line ^ line >> 4 ^ line >> 9 ^ line >> 15 ^ line >> 23 ^ line >> 36;  // spread as GPUs do
    uint64_t *set = &entries[place % sets * ways];
    size_t way = 0;
    while (way < ways && set[way] >> 8 != line)
      ++way;
    evicted = 0;
    if (way == ways) {
      if (!make)
        return nullptr;
      evicted = set[--way];
      set[way] = line << 8;
    }
    uint64_t found = set[way];
    memmove(set + 1, set, way * sizeof *set);
    set[0] = found;
    return set;
  }
};

Cache kept[ORDERS];  // L2 between launches, where it stays warm

inline unsigned bits(uint64_t word) { return static_cast<unsigned>(__builtin_popcountll(word)); }

struct Replay {
  caches_launch *launch;
  std::mutex mutex;
  std::vector<Cache> l1s;
  Cache *l2;
  std::vector<size_t> group, position;  // of each place: 1 + its group, 0: free; and how far that is
  size_t place = 0, open = 0, turn = 0, next = 0, done = 0;
  size_t in_flight, delay = 0;  // turns before a multiprocessor begins its next group of the first ones
  bool is_staggered;
  uint64_t counts[REPLAYED] = {};

  void begin(caches_launch *of, size_t order, size_t groups, bool staggered, size_t l1_bytes);
  void advance();
  void finish();
  void serve(Cache &l1, uint64_t word);
  void to_l2(uint64_t word, uint64_t mask);
};
}  // namespace

struct caches_launch {
  std::string model;
  size_t groups, items, sms, l2_parts;
  bool l1_keeps_stores, is_warm;
  std::vector<Trace> traces;
  std::atomic<size_t> pending{0};
  Replay orders[ORDERS];
  std::mutex mutex;
  uint64_t counts[RECORDED] = {};
};

namespace {
// Sectors of a line of 128 bytes in L2, whose lines may be parts of it. A store makes them dirty; what leaves so is written.
void Replay::to_l2(uint64_t word, uint64_t mask) {
  const size_t each = 4 / launch->l2_parts;
  const uint64_t whole = (1u << each) - 1;
  for (size_t part = 0; part < launch->l2_parts; ++part) {
    const uint64_t sectors = mask >> part * each & whole;
    if (!sectors)
      continue;
    uint64_t evicted, &entry = *l2->entry((word >> 8) * launch->l2_parts + part, true, evicted);
    counts[DRAM_WRITES] += bits(evicted >> 4 & MASK);
    counts[ALONE] -= bits(entry & MASK) == 1;
    if (!(word & STORE)) {
      counts[L2_READS] += bits(sectors);
      counts[L2_READ_HITS] += bits(sectors & entry);
      counts[DRAM_READS] += bits(sectors & ~entry);
      entry |= sectors;
    }
    if (word & (STORE | ATOMIC)) {
      counts[L2_WRITES] += bits(sectors);
      entry |= sectors | sectors << 4;
    }
    counts[ALONE] += bits(entry & MASK) == 1;  // of a line that gets one sector while it is here, that stays counted
  }
}

void Replay::serve(Cache &l1, uint64_t word) {
  uint64_t mask = word & MASK, evicted;
  const bool is_load = !(word & (STORE | ATOMIC));
  if (l1.sets) {
    uint64_t *entry = l1.entry(word >> 8, is_load, evicted);
    const uint64_t hits = entry ? mask & *entry : 0;
    if (is_load) {
      counts[L1_HITS] += bits(hits);
      *entry |= mask;
      mask &= ~hits;
    } else if (hits && (word & ATOMIC || !launch->l1_keeps_stores)) {
      *entry &= ~hits;
    }
  }
  to_l2(word, mask);
}

size_t requests_of(const Trace &run) {
  return static_cast<size_t>(std::count_if(run.words.begin(), run.words.end(), [](uint64_t word) { return word & FIRST; }));
}

// Go on as far as groups were run; called again until the launch is over.
void Replay::advance() {
  for (; done < launch->groups; ++place) {
    if (place == open) {
      place = 0;
      ++turn;
      if (is_staggered && open < group.size())
        open = std::min(group.size(), launch->sms * (turn / delay + 1));
    }
    size_t &mine = group[place], &at = position[place];
    if (!mine && next < launch->groups) {
      if (!launch->traces[next].readers.load(std::memory_order_acquire))
        return;
      if (!delay)
        delay = 1 + requests_of(launch->traces[0]) / in_flight;
      mine = ++next;
      at = 0;
    }
    if (!mine)
      continue;
    Trace &run = launch->traces[mine - 1];
    const size_t end = run.words.size();
    if (at < end)
      do
        serve(l1s[place % launch->sms], run.words[at]);
      while (++at < end && !(run.words[at] & FIRST));
    if (at < end)
      continue;
    mine = 0;
    ++done;
    if (run.readers.fetch_sub(1) == 2) {
      launch->pending -= end;
      Words().swap(run.words);
    }
  }
}

void Replay::begin(caches_launch *of, size_t order, size_t groups, bool staggered, size_t l1_bytes) {
  launch = of;
  in_flight = groups;
  is_staggered = staggered;
  group.resize(std::min(of->sms * in_flight, of->groups));
  position.resize(group.size());
  open = is_staggered ? std::min(of->sms, group.size()) : group.size();
  l1s.assign(std::min(of->sms, group.size()), Cache(l1_bytes, 1 << LINE_BITS, setting("l1_ways")));
  l2 = &kept[order];
  if (!of->is_warm || !l2->sets)
    *l2 = Cache(setting("l2_bytes"), setting("l2_line"), setting("l2_ways"));
}

void Replay::finish() {
  advance();
  if (!launch->is_warm)  // else what L2 holds may be of an earlier launch; it is counted when it leaves
    for (uint64_t entry : l2->entries)
      counts[LEFT_DIRTY] += bits(entry >> 4 & MASK);
}

// Groups that a multiprocessor has room for; how many registers an item needs is not known.
size_t resident(size_t items, size_t local_bytes) {
  size_t most = std::min(setting("groups"), setting("warps") / ((items + WARP - 1) / WARP));
  if (local_bytes)
    most = std::min(most, setting("local") / local_bytes);
  return std::max<size_t>(most, 1);
}
}  // namespace

caches_launch *caches_begin(size_t groups, size_t items, size_t local_bytes) {
  if (!setting("sms") || !groups || !items)
    return nullptr;
  const std::string model = getenv("EPROF_CACHES");
  const size_t most = resident(items, local_bytes), shared = setting("l1_shares") ? most * local_bytes : 0;
  const size_t l1_bytes = std::max(setting("l1_bytes") - std::min(shared, setting("l1_bytes")), setting("l1_least"));
  caches_launch *launch = new caches_launch{};
  launch->model = model.substr(0, model.find(' '));
  launch->groups = groups;
  launch->items = items;
  launch->sms = setting("sms");
  launch->l2_parts = (1 << LINE_BITS) / setting("l2_line");
  launch->l1_keeps_stores = setting("l1_keeps_stores");
  launch->is_warm = setting("warm");
  launch->traces = std::vector<Trace>(groups);
  // The first gives the value: groups of a multiprocessor drift apart (docs/studies/caches). The others: one, and in step.
  launch->orders[0].begin(launch, 0, most, true, l1_bytes);
  launch->orders[1].begin(launch, 1, 1, false, l1_bytes);
  launch->orders[2].begin(launch, 2, most, false, l1_bytes);
  return launch;
}

struct caches_recorder {
  caches_launch *launch;
  std::vector<Request> requests{1};  // the first begins the list and ends it
  std::vector<Part> parts{1};        // the lines of requests; 0: none
  std::vector<uint32_t> table = std::vector<uint32_t>(1 << 11);
  uint32_t cursor = 0, bit = 1;
  size_t warp = 0;
  std::vector<Words> warps;
  Words group;
  uint64_t counts[RECORDED] = {};

  caches_recorder(caches_launch *of) : launch(of), warps((of->items + WARP - 1) / WARP) {
    requests[0].lanes = UINT32_MAX;  // no access belongs to it
  }

  // The requests of the warp that ran are complete: to its words.
  void close() {
    for (uint32_t at = requests[0].next; at; at = requests[at].next) {
      const Request &done = requests[at];
      const int count = done.kind & ATOMIC ? ATOMICS : done.kind & STORE ? STORES : LOADS;
      uint64_t first = FIRST;
      ++counts[count];
      for (uint32_t part = done.first; part; part = parts[part].next, first = 0) {
        counts[count + 1] += bits(parts[part].word & MASK);
        warps[warp].push_back(parts[part].word | done.kind | first);
      }
    }
    if (requests.size() > 1)
      std::fill(table.begin(), table.end(), 0);
    requests.resize(1);
    parts.resize(1);
    requests[0].next = cursor = 0;
  }

  uint32_t &slot(uint64_t key) {
    size_t at = key * 0x9E3779B97F4A7C15u >> 32 & (table.size() - 1);
    while (table[at] && requests[table[at]].key != key)
      at = (at + 1) & (table.size() - 1);
    return table[at];
  }

  // The request of an access that is not the next of the list: it is elsewhere, or is put in after the lane's last. 0: lost.
  uint32_t find(uint64_t key, uint64_t kind) {
    uint32_t *found = &slot(key);
    for (; *found && requests[*found].lanes & bit; found = &slot(key))
      key += 0x632BE59BD9B4E019u;  // the same site and iterations again: no loop that has a counter
    if (*found)
      return *found;
    if (requests.size() == MOST_REQUESTS) {
      ++counts[LOST];
      return 0;
    }
    const uint32_t made = *found = static_cast<uint32_t>(requests.size());
    requests.push_back(Request{key, 0, requests[cursor].next, 0, 0, kind});
    requests[cursor].next = made;
    if (2 * requests.size() > table.size()) {
      table.assign(2 * table.size(), 0);
      for (uint32_t at = 1; at <= made; ++at)
        slot(requests[at].key) = at;
    }
    return made;
  }

  void touch(Request &of, uint64_t sector) {
    const uint64_t line = sector >> (LINE_BITS - SECTOR_BITS), sector_bit = 1u << (sector & 3);
    uint32_t at = of.last;
    if (!at || parts[at].word >> 8 != line)
      for (at = of.first; at && parts[at].word >> 8 != line; at = parts[at].next)
        ;
    if (!at) {
      at = static_cast<uint32_t>(parts.size());
      parts.push_back(Part{line << 8, 0});
      (of.last ? parts[of.last].next : of.first) = at;
      of.last = at;
    }
    parts[at].word |= sector_bit;
  }

  void barrier() {
    close();
    warp = 0;
    std::vector<size_t> at(warps.size());
    for (bool more = true; more;) {
      more = false;
      for (size_t of = 0; of < warps.size(); ++of) {
        const Words &words = warps[of];
        if (at[of] == words.size())
          continue;
        do
          group.push_back(words[at[of]]);
        while (++at[of] < words.size() && !(words[at[of]] & FIRST));
        more = true;
      }
    }
    for (Words &words : warps)
      words.clear();
  }
};

caches_recorder *caches_recorder_new(caches_launch *launch) { return launch ? new caches_recorder(launch) : nullptr; }

void caches_lane(caches_recorder *r, unsigned item) {
  if (!r)
    return;
  if (item / WARP != r->warp)
    r->close();
  r->warp = item / WARP;
  r->bit = 1u << item % WARP;
  r->cursor = 0;
}

void caches_access(caches_recorder *r, uint64_t key, uint64_t address, uint32_t what) {
  if (!r)
    return;
  uint32_t at = r->requests[r->cursor].next;
  const Request &next = r->requests[at];
  if ((next.key != key || next.lanes & r->bit) && !(at = r->find(key, what >> 12 & (STORE | ATOMIC))))
    return;
  Request &of = r->requests[at];
  r->cursor = at;
  of.lanes |= r->bit;
  const uint64_t last = (address + (what & 0xFFFF) - 1) >> SECTOR_BITS;
  for (address >>= SECTOR_BITS; address <= last; ++address)
    r->touch(of, address);
}

void caches_barrier(caches_recorder *r) {
  if (r)
    r->barrier();
}

void caches_group(caches_recorder *r, size_t group) {
  if (!r)
    return;
  r->barrier();
  caches_launch &launch = *r->launch;
  launch.traces[group].words = r->group;
  launch.pending += r->group.size();
  launch.traces[group].readers.store(ORDERS + 1, std::memory_order_release);
  r->group.clear();
  for (Replay &of : launch.orders) {
    std::unique_lock<std::mutex> lock(of.mutex, std::defer_lock);
    if (launch.pending > MOST_PENDING)
      lock.lock();
    if (lock.owns_lock() || lock.try_lock())
      of.advance();
  }
}

void caches_recorder_free(caches_recorder *r) {
  if (!r)
    return;
  for (int count = 0; count < RECORDED; ++count)
    r->launch->counts[count] += r->counts[count];
  delete r;
}

size_t caches_end(caches_launch *launch, char *text, size_t room) {
  if (!launch)
    return 0;
  std::vector<std::thread> threads;
  for (Replay &of : launch->orders)
    threads.emplace_back(&Replay::finish, &of);
  for (std::thread &thread : threads)
    thread.join();
  size_t length = 0;
  auto line = [&](uint64_t number, const std::string &name) {
    length += static_cast<size_t>(snprintf(text + std::min(length, room), room - std::min(length, room),
                                           "%16llu - cache %s\n", static_cast<unsigned long long>(number), name.c_str()));
  };
  line(1, "model " + launch->model);
  line(launch->groups * launch->items, "work-items");
  line(launch->groups * ((launch->items + WARP - 1) / WARP), "warps");
  for (int count = 0; count < RECORDED; ++count)
    line(launch->counts[count], RECORDED_NAMES[count]);
  // Where a line of L2 is a part of 128 bytes, that one sector is alone in it says nothing.
  for (int count = 0; count < REPLAYED - (launch->l2_parts > 1); ++count) {
    uint64_t seen[ORDERS];
    for (size_t order = 0; order < ORDERS; ++order)
      seen[order] = launch->orders[order].counts[count];
    line(seen[0], REPLAYED_NAMES[count]);
    line(*std::min_element(seen, seen + ORDERS), REPLAYED_NAMES[count] + std::string(" least"));
    line(*std::max_element(seen, seen + ORDERS), REPLAYED_NAMES[count] + std::string(" most"));
  }
  delete launch;
  return std::min(length, room);
}
