// What a worker of the plugin and the kernels that lowering.py builds share: words of 8 bytes.
#pragma once
#include <cstddef>
#include <cstdint>

// A buffer: addresses as Oclgrind gives them begin at `tag`, the bytes are at `base`.
struct Entry { uint64_t tag, base, size; };

enum { TAG_SHIFT = 48, SLOTS = 64, CL_LOCAL = 0x119C };

// Slots of the context; `_SLOTS` in lowering.py has the same. Ids and sizes have a fourth word, 0, for other dimensions.
enum Slot {
  RECORDER, GLOBALS, N_GLOBALS, LOCALS, N_LOCALS, COUNTERS, TRAP_PAGE, STACK_LOW, STACK_SIZE, WORK_DIM, OWNER_SLOT,
  LOCAL_LINEAR,
  GLOBAL_ID = 12, LOCAL_ID = 16, GROUP_ID = 20, GLOBAL_SIZE = 24, GLOBAL_OFFSET = 28, GROUP_SIZE = 32,
  LOCAL_SIZE = 36, NUM_GROUPS = 40
};
