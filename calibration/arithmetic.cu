/* One kind of instruction at a time, in independent streams. No stream converges, overflows or repeats a single value,
   and no compiler can shorten it. */

/* Four points that go round in small steps: x -= e y, y += e x. 8 multiply-adds a TURN. */
#define POINTS(real) real x0 = seed(0), y0 = seed(1), x1 = seed(2), y1 = seed(3), x2 = seed(4), y2 = seed(5), \
    x3 = seed(6), y3 = seed(7); const real e = (real)0.01 + (real)1e-9 * (real)(n & 1023), f = -e; int i;
#define TURN(fma) x0 = fma(f, y0, x0); x1 = fma(f, y1, x1); x2 = fma(f, y2, x2); x3 = fma(f, y3, x3); \
    y0 = fma(e, x0, y0); y1 = fma(e, x1, y1); y2 = fma(e, x2, y2); y3 = fma(e, x3, y3);
/* (x, y) -> (x + y, -x), which comes round after six times, but for rounding. 8 adds. */
#define SWING(add) x0 = add(x0, y0); x1 = add(x1, y1); x2 = add(x2, y2); x3 = add(x3, y3); \
    y0 = add(y0, -x0); y1 = add(y1, -x1); y2 = add(y2, -x2); y3 = add(y3, -x3);
/* Times a little more than one, then a little less. 16 multiplies. */
#define SCALE(mul) x0 = mul(x0, up); x1 = mul(x1, up); x2 = mul(x2, up); x3 = mul(x3, up); \
    y0 = mul(y0, up); y1 = mul(y1, up); y2 = mul(y2, up); y3 = mul(y3, up); \
    x0 = mul(x0, down); x1 = mul(x1, down); x2 = mul(x2, down); x3 = mul(x3, down); \
    y0 = mul(y0, down); y1 = mul(y1, down); y2 = mul(y2, down); y3 = mul(y3, down);
#define KEEP_POINTS if ((float)(x0 + x1 + x2 + x3 + y0 + y1 + y2 + y3) == key) out[0] = key;

KERNEL(fp32_fma) { POINTS(float) UNROLL_NOT LOOP { TIMES16(TURN(FMA32)) } KEEP_POINTS }
KERNEL(fp32_add) { POINTS(float) y0 += e; y1 += f; UNROLL_NOT LOOP { TIMES16(SWING(ADD32)) } KEEP_POINTS }
KERNEL(fp32_mul)
{
    POINTS(float)
    const float up = 1.0f + e, down = 1.0f / up;
    UNROLL_NOT LOOP { TIMES8(SCALE(MUL32)) }
    KEEP_POINTS
}
KERNEL(mix_fp32_add_mul)
{
    POINTS(float)
    const float up = 1.0f + e, down = 1.0f / up;
    y0 += f;
    UNROLL_NOT LOOP { TIMES8(SWING(ADD32) SCALE(MUL32)) }
    KEEP_POINTS
}
#ifdef HAS_FP64
KERNEL(fp64_fma) { POINTS(double) UNROLL_NOT LOOP { TIMES16(TURN(FMA64)) } KEEP_POINTS }
KERNEL(fp64_add) { POINTS(double) y0 += e; y1 += f; UNROLL_NOT LOOP { TIMES16(SWING(ADD64)) } KEEP_POINTS }
KERNEL(fp64_mul)
{
    POINTS(double)
    const double up = 1.0 + e, down = 1.0 / up;
    UNROLL_NOT LOOP { TIMES8(SCALE(MUL64)) }
    KEEP_POINTS
}

KERNEL(mix_fp64_add_mul)
{
    POINTS(double)
    const double up = 1.0 + e, down = 1.0 / up;
    y0 += f;
    UNROLL_NOT LOOP { TIMES8(SWING(ADD64) SCALE(MUL64)) }
    KEEP_POINTS
}
#endif

/* One dependent chain, for one warp or a warp a multiprocessor: hardly anything happens. 32 multiply-adds. */
KERNEL(light)
{
    float x = seed(0), y = seed(1);
    const float e = 0.01f + 1e-9f * (float)(n & 1023), f = -e;
    int i;
    UNROLL_NOT LOOP { TIMES16(x = FMA32(f, y, x); y = FMA32(e, x, y);) }
    if (x + y == key)
        out[0] = key;
}

/* Each thread has its own words: what all threads of a warp have in common may be done once, by the uniform datapath. */
#define WORDS unsigned int x0 = (unsigned int)LANE, x1 = x0 + 77u, x2 = x0 * 9u, x3 = x0 ^ 12345u, \
    y0 = x0 + (unsigned int)n, y1 = y0 + 1u, y2 = y0 * 3u, y3 = y0 ^ 777u; \
    const unsigned int a = (unsigned int)n * 2654435761u | 1u, b = a * 40503u + (unsigned int)GROUP; int i;
#define KEEP_WORDS if ((float)(x0 ^ x1 ^ x2 ^ x3 ^ y0 ^ y1 ^ y2 ^ y3) == key) out[0] = key;
/* An add, then an exclusive or: neither can be merged with the other (logic alone can be, and is). 16 instructions. */
#define STIR x0 = (x0 + a) ^ b; x1 = (x1 + a) ^ b; x2 = (x2 + a) ^ b; x3 = (x3 + a) ^ b; \
    y0 = (y0 + a) ^ b; y1 = (y1 + a) ^ b; y2 = (y2 + a) ^ b; y3 = (y3 + a) ^ b;
/* 8 multiply-adds. */
#define MAD x0 = x0 * a + b; x1 = x1 * a + b; x2 = x2 * a + b; x3 = x3 * a + b; \
    y0 = y0 * a + b; y1 = y1 * a + b; y2 = y2 * a + b; y3 = y3 * a + b;

KERNEL(integer) { WORDS UNROLL_NOT LOOP { TIMES8(STIR) } KEEP_WORDS }
KERNEL(integer_mad) { WORDS UNROLL_NOT LOOP { TIMES16(MAD) } KEEP_WORDS }

/* Up and down again: 8 special functions. */
#define CURVE x0 = EXP2(x0); x1 = EXP2(x1); x2 = EXP2(x2); x3 = EXP2(x3); \
    x0 = LOG2(x0); x1 = LOG2(x1); x2 = LOG2(x2); x3 = LOG2(x3);
KERNEL(special)
{
    float x0 = seed(0), x1 = seed(1), x2 = seed(2), x3 = seed(3);
    int i;
    UNROLL_NOT LOOP { TIMES8(CURVE) }
    if (x0 + x1 + x2 + x3 == key)
        out[n] = key;
}

/* Integer to float and back: 8 conversions. */
#define CONVERT c0 = TO_FLOAT(w0); c1 = TO_FLOAT(w1); c2 = TO_FLOAT(w2); c3 = TO_FLOAT(w3); \
    w0 = TO_INT(c0); w1 = TO_INT(c1); w2 = TO_INT(c2); w3 = TO_INT(c3);
#define NUMBERS int w0 = LANE * 7919 + n, w1 = w0 * 3, w2 = w0 * 5, w3 = w0 * 7, i; float c0, c1, c2, c3;
#define KEEP_NUMBERS if ((float)(w0 ^ w1 ^ w2 ^ w3) == key) out[n] = key;
KERNEL(conversion) { NUMBERS UNROLL_NOT LOOP { TIMES8(CONVERT) } KEEP_NUMBERS }
KERNEL(mix_special_conversion)
{
    float x0 = seed(0), x1 = seed(1), x2 = seed(2), x3 = seed(3);
    NUMBERS
    UNROLL_NOT LOOP { TIMES4(CURVE CONVERT) }
    KEEP_NUMBERS
    if (x0 + x1 + x2 + x3 == key)
        out[n] = key;
}

/* FP32 multiply-adds and integer instructions side by side, 8 and 16 a turn: two pipes at once. */
KERNEL(mix_fp32_integer)
{
    float p0 = seed(0), q0 = seed(1), p1 = seed(2), q1 = seed(3);
    const float e = 0.01f + 1e-9f * (float)(n & 1023), f = -e;
    WORDS
    UNROLL_NOT LOOP { TIMES8(p0 = FMA32(f, q0, p0); p1 = FMA32(f, q1, p1); STIR q0 = FMA32(e, p0, q0); q1 = FMA32(e, p1, q1);
                             p0 = FMA32(f, q0, p0); p1 = FMA32(f, q1, p1); q0 = FMA32(e, p0, q0); q1 = FMA32(e, p1, q1);) }
    if (p0 + p1 + q0 + q1 == key)
        out[0] = key;
    KEEP_WORDS
}

#ifndef __OPENCL_VERSION__
/* Two halves in each register: one instruction, two multiply-adds. From capability 5.3 on; empty before. */
#define HALVES unsigned int x0 = 0x3a003b00u + LANE, x1 = x0 + 5u, x2 = x0 + 9u, x3 = x0 + 23u, \
    y0 = 0x38003900u + LANE, y1 = y0 + 5u, y2 = y0 + 9u, y3 = y0 + 23u; \
    const unsigned int e = 0x211f211fu + (n & 15), f = e ^ 0x80008000u; int i;
#define KEEP_HALVES KEEP_WORDS
#if __CUDA_ARCH__ >= 530
DEVICE unsigned int half_fma(unsigned int a, unsigned int b, unsigned int c)
{
    unsigned int d;
    asm volatile("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}
DEVICE unsigned int half_add(unsigned int a, unsigned int b)
{
    unsigned int d;
    asm volatile("add.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}
DEVICE unsigned int half_sub(unsigned int a, unsigned int b)
{
    unsigned int d;
    asm volatile("sub.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}
DEVICE unsigned int half_mul(unsigned int a, unsigned int b)
{
    unsigned int d;
    asm volatile("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}
#define HALF_SWING x0 = half_add(x0, y0); x1 = half_add(x1, y1); x2 = half_add(x2, y2); x3 = half_add(x3, y3); \
    y0 = half_sub(y0, x0); y1 = half_sub(y1, x1); y2 = half_sub(y2, x2); y3 = half_sub(y3, x3);
/* Times 5/4 and 4/5, rounded down, then up: so little off in four steps that rounding undoes it. */
#define HALF_TIMES(factor) x0 = half_mul(x0, factor); x1 = half_mul(x1, factor); x2 = half_mul(x2, factor); \
    x3 = half_mul(x3, factor);
#define HALF_SCALE HALF_TIMES(up) HALF_TIMES(down) HALF_TIMES(up) HALF_TIMES(less)
KERNEL(fp16_fma) { HALVES UNROLL_NOT LOOP { TIMES16(TURN(half_fma)) } KEEP_HALVES }
KERNEL(fp16_add) { HALVES UNROLL_NOT LOOP { TIMES16(HALF_SWING) } KEEP_HALVES }
KERNEL(fp16_mul)
{
    HALVES
    const unsigned int up = 0x3d003d00u, down = 0x3a663a66u, less = down + 0x00010001u;
    UNROLL_NOT LOOP { TIMES8(HALF_SCALE) }
    KEEP_HALVES
}
#else
KERNEL(fp16_fma) {}
KERNEL(fp16_add) {}
KERNEL(fp16_mul) {}
#endif

/* D = A B + C of 16 x 16 matrices, half in, float out, by a warp: 4096 multiply-adds. Every second product has the
   sign changed, so that the sums do not grow. From capability 7.0 and CUDA 10 on; empty before. */
#if __CUDA_ARCH__ >= 700 && __CUDACC_VER_MAJOR__ >= 10
#define MATRIX(c, b) \
    asm volatile("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, " \
                 "{%8,%9,%10,%11,%12,%13,%14,%15}, {%16,%17,%18,%19,%20,%21,%22,%23}, {%0,%1,%2,%3,%4,%5,%6,%7};" \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), \
                   "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
KERNEL(tensor)
{
    unsigned int a[8], b[8], minus[8];
    float c[8], d[8], sum = 0;
    int i, k;
    for (k = 0; k < 8; ++k) {
        a[k] = (unsigned int)scale * 0x30003000u + (unsigned int)(seed(k) * 1023.0f) * 65537u;
        b[k] = (unsigned int)scale * 0x30003000u + (unsigned int)(seed(k + 8) * 1023.0f) * 65537u;
        minus[k] = b[k] ^ (unsigned int)scale * 0x80008000u;
        c[k] = seed(k + 16);
        d[k] = seed(k + 24);
    }
    UNROLL_NOT LOOP { TIMES8(MATRIX(c, b) MATRIX(d, minus) MATRIX(c, minus) MATRIX(d, b)) }
    for (k = 0; k < 8; ++k)
        sum += c[k] + d[k];
    if (sum == key)
        out[0] = key;
}
#else
KERNEL(tensor) {}
#endif

/* One warp that sleeps a microsecond at a time: nothing but constant power. From capability 7.0 on; empty before. */
#if __CUDA_ARCH__ >= 700 && __CUDACC_VER_MAJOR__ >= 10
KERNEL(sleep)
{
    int i;
    UNROLL_NOT LOOP { asm volatile("nanosleep.u32 1000;"); }
    if ((float)i == key)
        out[0] = key;
}
#else
KERNEL(sleep) {}
#endif
#endif
