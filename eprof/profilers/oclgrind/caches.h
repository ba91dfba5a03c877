/* What a GPU's caches make of the accesses of a kernel's work-items: a model, fed by instrumented kernels (caches.cpp).

   A launch has as many recorders as threads run its work-groups. Between two barriers work-items run in rising order. */
#ifndef EPROF_CACHES_H
#define EPROF_CACHES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CACHES_STORE = 1 << 16, CACHES_ATOMIC = 1 << 17 };

typedef struct caches_launch caches_launch;
typedef struct caches_recorder caches_recorder;

/* A launch on the GPU that EPROF_CACHES names; NULL where it names none. items, local_bytes: of a work-group. */
caches_launch *caches_begin(size_t groups, size_t items, size_t local_bytes);
caches_recorder *caches_recorder_new(caches_launch *);
/* A work-item begins or goes on, by its place in the group. */
void caches_lane(caches_recorder *, unsigned item);
/* It touches global memory. key: site and loop iterations; address: buffer << 48 | offset; what: bytes, and CACHES_STORE or CACHES_ATOMIC. */
void caches_access(caches_recorder *, uint64_t key, uint64_t address, uint32_t what);
/* All work-items of the group are at a barrier; the group is done. */
void caches_barrier(caches_recorder *);
void caches_group(caches_recorder *, size_t group);
void caches_recorder_free(caches_recorder *);
/* The launch is over: writes its counts as lines "COUNT - NAME" and frees it. Returns the length, as snprintf does. */
size_t caches_end(caches_launch *, char *text, size_t room);

#ifdef __cplusplus
}
#endif
#endif
