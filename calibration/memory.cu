/* Bytes at one level of memory at a time, and bytes with arithmetic. A vector has 16 bytes; a chunk is what a block reads
   in one iteration, 8 vectors a thread. */

#ifdef __OPENCL_VERSION__
/* Not volatile: on some GPUs such loads pass the caches by. */
#define LOAD_NEAR(v, k) v = data[at + (k) * 32];
#define LOAD_MIDDLE(v, k) v = data[at + (k) * BLOCK];
#define LOAD_SHARED(v, k) v = ((volatile LOCAL float4 *)tile)[at + (k) * 32];
#define STORE_SHARED(v, k) ((volatile LOCAL float4 *)tile)[at + (k) * 32] = v;
#define SHARED_BASE int at = LANE;
#define SHARED_ON at ^= step;
#define FLOAT4(x, y, z, w) (float4)(x, y, z, w)
#define GLOBAL_DOUBLES GLOBAL double2
#else
#define FLOAT4(x, y, z, w) make_float4(x, y, z, w)
#define GLOBAL_DOUBLES double2
/* The near load is cached in L1: by the texture path, if there is one. */
#if __CUDA_ARCH__ >= 350
#define NEAREST "ld.global.nc.v4.f32"
#else
#define NEAREST "ld.global.ca.v4.f32"
#endif
#define LOAD(v, what, from, offset) \
    asm volatile(what " {%0, %1, %2, %3}, [%4 + %5];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : from, "n"(offset));
#define LOAD_NEAR(v, k) LOAD(v, NEAREST, "l"(data + at), (k) * 512)
/* Cached in L2 alone. */
#define LOAD_MIDDLE(v, k) LOAD(v, "ld.global.cg.v4.f32", "l"(data + at), (k) * BLOCK * 16)
#define LOAD_SHARED(v, k) LOAD(v, "ld.shared.v4.f32", "r"(base), (k) * 512)
#define STORE_SHARED(v, k) \
    asm volatile("st.shared.v4.f32 [%4 + %5], {%0, %1, %2, %3};" \
                 :: "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(base), "n"((k) * 512) : "memory");
DEVICE unsigned int shared_address(const void *at)
{
    unsigned int address;
    asm("{ .reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a; }" : "=r"(address) : "l"(at));
    return address;
}
#define SHARED_BASE unsigned int base = shared_address(tile + LANE);
#define SHARED_ON base ^= (unsigned int)step * 16u;
#endif

#define SUMS float4 s = FLOAT4(0.0f, 0.0f, 0.0f, 0.0f), v; int i;
#define ADD_UP s.x = ADD32(s.x, v.x); s.y = ADD32(s.y, v.y); s.z = ADD32(s.z, v.z); s.w = ADD32(s.w, v.w);
#define KEEP_SUMS if (s.x + s.y + s.z + s.w == key) out[0] = key;
/* Where this thread begins, and the next place. */
#define PLACE int at = (GROUP * 8 * BLOCK) % n + LANE;
#define GO_ON at += step; if (at >= n) at -= n;

/* Random floats from 1 to 2, so that data toggle as real data do, or zeros. `iterations` vectors a thread. */
KERNEL(fill)
{
    int i;
    for (i = 0; i < iterations; ++i) {
        const int at = (i * GROUPS + GROUP) * BLOCK + LANE;
        const unsigned int x = ((unsigned int)at * 2654435761u) ^ ((unsigned int)at >> 7);
        const float a = 1.0f + (float)((x * 747796405u + 1u) >> 9) * (1.0f / 8388608.0f);
        const float b = 1.0f + (float)((x * 2891336453u + 3u) >> 9) * (1.0f / 8388608.0f);
        if (at < n)
            data[at] = FLOAT4(scale * a, scale * b, scale * (3.0f - a), scale * (3.0f - b));
    }
}

/* 8 vectors from L1: all blocks read the same 8 KB. The place changes (`step` is 32), or the compiler would load only once. */
#define ONE(k) LOAD_NEAR(v, k) ADD_UP
KERNEL(l1_read) { int at = LANE; SUMS UNROLL_NOT LOOP { EACH8(ONE) at ^= step; } KEEP_SUMS }
#undef ONE

/* 8 vectors from L2. */
#define ONE(k) LOAD_MIDDLE(v, k) ADD_UP
KERNEL(l2_read) { SUMS PLACE UNROLL_NOT LOOP { EACH8(ONE) GO_ON } KEEP_SUMS }
#undef ONE

/* 8 vectors from memory, where `data` is far larger than all caches. */
#define ONE(k) v = data[at + k * BLOCK]; ADD_UP
KERNEL(read) { SUMS PLACE UNROLL_NOT LOOP { EACH8(ONE) GO_ON } KEEP_SUMS }
#undef ONE

/* What is written goes on changing: 4 adds. */
#define CHANGE v.x = ADD32(v.x, v.y); v.y = ADD32(v.y, -v.x); v.z = ADD32(v.z, v.w); v.w = ADD32(v.w, -v.z);

/* 8 vectors into memory, or into L2 where `data` fits there. */
#define ONE(k) data[at + k * BLOCK] = v;
KERNEL(write)
{
    float4 v = FLOAT4(seed(0), seed(1), seed(2), seed(3));
    int i;
    PLACE
    UNROLL_NOT LOOP { EACH8(ONE) GO_ON CHANGE }
    if (v.x + v.z == key)
        out[0] = key;
}
#undef ONE

/* 4 vectors from the first half of `data` into the second. */
#define TAKE(k) const float4 v##k = data[at + k * BLOCK];
#define GIVE(k) data[at + k * BLOCK + n] = v##k;
KERNEL(copy) { int i; PLACE UNROLL_NOT LOOP { EACH4(TAKE) EACH4(GIVE) GO_ON } }
#undef TAKE
#undef GIVE

/* Every 2nd, 8th line of 128 bytes: whole lines, so that every byte that is fetched is counted. `n` counts the vectors that
   are read; `data` is 2, 8 times as large. 8 vectors. */
#define ONE(k) v = data[line + k * BLOCK * STRIDE]; ADD_UP
#define READ_LINES SUMS PLACE UNROLL_NOT LOOP { const int line = (at & ~7) * STRIDE + (at & 7); EACH8(ONE) GO_ON } KEEP_SUMS
#define STRIDE 2
KERNEL(read_stride_2) { READ_LINES }
#undef STRIDE
#define STRIDE 8
KERNEL(read_stride_8) { READ_LINES }
#undef STRIDE
#undef ONE

/* The first sector of 32 bytes of every line of 128: `n` counts the vectors that are read, `data` is 4 times as large.
   Memory may deliver more than is asked for. 8 vectors. */
#define ONE(k) v = data[sector + k * BLOCK * 4]; ADD_UP
KERNEL(read_sectors)
{
    SUMS PLACE
    UNROLL_NOT LOOP { const int sector = (at & ~1) * 4 + (at & 1); EACH8(ONE) GO_ON }
    KEEP_SUMS
}
#undef ONE

/* 8 vectors from shared memory, without bank conflicts; `step` is 32, as for L1. */
#define TILE LOCAL float4 tile[2 * BLOCK]; tile[LANE] = FLOAT4(seed(0), seed(1), seed(2), seed(3)); \
    tile[LANE + BLOCK] = FLOAT4(seed(4), seed(5), seed(6), seed(7)); BARRIER;
#define ONE(k) LOAD_SHARED(v, k) ADD_UP
KERNEL(shared_read) { TILE { SUMS SHARED_BASE UNROLL_NOT LOOP { EACH8(ONE) SHARED_ON } KEEP_SUMS } }
#undef ONE

/* 8 vectors into shared memory. */
#define ONE(k) STORE_SHARED(v, k)
KERNEL(shared_write)
{
    TILE
    {
        float4 v = FLOAT4(seed(8), seed(9), seed(10), seed(11));
        int i;
        SHARED_BASE
        UNROLL_NOT LOOP { EACH8(ONE) SHARED_ON CHANGE }
        BARRIER;
        v = tile[(LANE + 1) % BLOCK];
        if (v.x + v.z == key)
            out[0] = key;
    }
}
#undef ONE

/* 4 vectors from shared memory and back to where they were. */
#define ONE(k) LOAD_SHARED(v, k) STORE_SHARED(v, k)
KERNEL(shared_copy)
{
    TILE
    {
        float4 v;
        int i;
        SHARED_BASE
        UNROLL_NOT LOOP { EACH4(ONE) SHARED_ON }
        BARRIER;
        v = tile[(LANE + 1) % BLOCK];
        if (v.x + v.z == key)
            out[0] = key;
    }
}
#undef ONE

/* Mixes: a vector and a number of FP32 multiply-adds, the first four of which take the vector. */
#define WEIGHT float4 t = FLOAT4(seed(0), seed(1), seed(2), seed(3)); \
    const float e = 0.01f + 1e-9f * (float)(n & 1023), f = -e;
#define TAKE_IN s.x = FMA32(v.x, e, s.x); s.y = FMA32(v.y, f, s.y); s.z = FMA32(v.z, e, s.z); s.w = FMA32(v.w, f, s.w);
#define TURN s.x = FMA32(f, t.x, s.x); s.y = FMA32(f, t.y, s.y); s.z = FMA32(f, t.z, s.z); s.w = FMA32(f, t.w, s.w); \
    t.x = FMA32(e, s.x, t.x); t.y = FMA32(e, s.y, t.y); t.z = FMA32(e, s.z, t.z); t.w = FMA32(e, s.w, t.w);
#define KEEP_MIX if (s.x + s.y + s.z + s.w + t.x + t.y + t.z + t.w == key) out[0] = key;
#define FAR(k) v = data[at + k * BLOCK];
#define MIX(each, load, start, work, go) SUMS WEIGHT start UNROLL_NOT LOOP { each(load##_##work) go } KEEP_MIX

#define FAR_4(k) FAR(k) TAKE_IN
#define FAR_12(k) FAR(k) TAKE_IN TURN
#define FAR_36(k) FAR(k) TAKE_IN TIMES4(TURN)
#define FAR_132(k) FAR(k) TAKE_IN TIMES16(TURN)
#define FAR_260(k) FAR(k) TAKE_IN TIMES32(TURN)
KERNEL(mix_4) { MIX(EACH8, FAR, PLACE, 4, GO_ON) }
KERNEL(mix_12) { MIX(EACH8, FAR, PLACE, 12, GO_ON) }
KERNEL(mix_36) { MIX(EACH4, FAR, PLACE, 36, GO_ON) }
KERNEL(mix_132) { MIX(EACH2, FAR, PLACE, 132, GO_ON) }
KERNEL(mix_260) { MIX(EACH2, FAR, PLACE, 260, GO_ON) }

#define MIDDLE_12(k) LOAD_MIDDLE(v, k) TAKE_IN TURN
KERNEL(mix_l2_12) { MIX(EACH8, MIDDLE, PLACE, 12, GO_ON) }

#define NEAR_12(k) LOAD_NEAR(v, k) TAKE_IN TURN
#define NEAR_ON at ^= step;
KERNEL(mix_l1_12) { int at = LANE; MIX(EACH8, NEAR, , 12, NEAR_ON) }

#define SHARED_12(k) LOAD_SHARED(v, k) TAKE_IN TURN
KERNEL(mix_shared_12) { TILE { MIX(EACH8, SHARED, SHARED_BASE, 12, SHARED_ON) } }

/* The same in FP64: a vector is two numbers. */
#ifdef HAS_FP64
#define FAR_64(k) d = ((GLOBAL_DOUBLES *)data)[at + k * BLOCK]; s0 = FMA64(d.x, e, s0); s1 = FMA64(d.y, f, s1);
#define TURN_64 s0 = FMA64(f, t0, s0); s1 = FMA64(f, t1, s1); t0 = FMA64(e, s0, t0); t1 = FMA64(e, s1, t1);
#define MIX_64(each, work) double2 d; double s0 = seed(0), s1 = seed(1), t0 = seed(2), t1 = seed(3); \
    const double e = 0.01 + 1e-9 * (double)(n & 1023), f = -e; int i; PLACE UNROLL_NOT LOOP { each(work) GO_ON } \
    if ((float)(s0 + s1 + t0 + t1) == key) out[0] = key;
#define FAR64_6(k) FAR_64(k) TURN_64
#define FAR64_18(k) FAR_64(k) TIMES4(TURN_64)
KERNEL(mix_fp64_6) { MIX_64(EACH8, FAR64_6) }
KERNEL(mix_fp64_18) { MIX_64(EACH4, FAR64_18) }
#endif

/* A vector and 32 integer instructions: each of its four words is added and mixed in, then stirred three times more. */
#ifdef __OPENCL_VERSION__
#define BITS(x) as_uint(x)
#else
#define BITS(x) ((unsigned int)__float_as_int(x))
#endif
#define STIR x0 = (x0 + a) ^ b; x1 = (x1 + a) ^ b; x2 = (x2 + a) ^ b; x3 = (x3 + a) ^ b;
#define ONE(k) v = data[at + k * BLOCK]; x0 = (x0 + BITS(v.x)) ^ b; x1 = (x1 + BITS(v.y)) ^ b; \
    x2 = (x2 + BITS(v.z)) ^ b; x3 = (x3 + BITS(v.w)) ^ b; STIR STIR STIR
KERNEL(mix_integer_32)
{
    unsigned int x0 = (unsigned int)LANE, x1 = x0 + 77u, x2 = x0 * 9u, x3 = x0 ^ 12345u;
    const unsigned int a = (unsigned int)n * 2654435761u | 1u, b = a * 40503u + (unsigned int)GROUP;
    float4 v;
    int i;
    PLACE
    UNROLL_NOT LOOP { EACH8(ONE) GO_ON }
    if ((float)(x0 ^ x1 ^ x2 ^ x3) == key)
        out[0] = key;
}
#undef ONE

/* 8 sectors of 32 bytes at random, one after the other: where the next lies is known only when this one is here. 1664525 x +
   1013904223 visits every number below a power of two before it comes to one again, so no data need be pointers; `at`
   is twice that, in vectors. What was read goes in behind a mask, `nothing`, that is 0, but no compiler knows that. */
#ifdef __OPENCL_VERSION__
#define LOAD_SECTOR(v, w) v = data[at]; w = data[at + 1];
#define FAR_SECTOR LOAD_SECTOR(v, w)
#define L2_SECTOR LOAD_SECTOR(v, w)
#define L1_SECTOR LOAD_SECTOR(v, w)
#else
#define LOAD_SECTOR(what) LOAD(v, what, "l"(data + at), 0) LOAD(w, what, "l"(data + at), 16)
#define FAR_SECTOR LOAD_SECTOR("ld.global.v4.f32")
#define L2_SECTOR LOAD_SECTOR("ld.global.cg.v4.f32")
#define L1_SECTOR LOAD_SECTOR(NEAREST)
#endif
#define ALL_OF(v) BITS(v.x) ^ BITS(v.y) ^ BITS(v.z) ^ BITS(v.w)
#define HOP(SECTOR) SECTOR at = (at * 1664525u + 2u * 1013904223u + ((ALL_OF(v) ^ ALL_OF(w)) & nothing)) & mask;
#define CHASE(SECTOR) \
    const unsigned int nothing = (unsigned int)(n >> 31); \
    unsigned int mask = (unsigned int)n, at; \
    float4 v, w; \
    int i; \
    mask |= mask >> 1; mask |= mask >> 2; mask |= mask >> 4; mask |= mask >> 8; mask |= mask >> 16; mask = mask >> 1 & ~1u; \
    at = ((unsigned int)(GROUP * BLOCK + LANE) * 2654435761u >> 4) & mask; \
    UNROLL_NOT LOOP { TIMES8(HOP(SECTOR)) } \
    if ((float)at == key) out[0] = key;
KERNEL(chase) { CHASE(FAR_SECTOR) }
KERNEL(chase_l2) { CHASE(L2_SECTOR) }
KERNEL(chase_l1) { CHASE(L1_SECTOR) }
