/* The microbenchmarks of `eprof calibrate --cpu`: one kind of work at a time, on each core. cpu.toml says what a turn of each
   loop does. All that is counted is inline assembly, so that no compiler can change it. `data`: the core's own memory. */

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#define DOUBLE "d"
#define SINGLE "s"
#define OPERATION(name, type) name "p" type
#define INTEGER(name, x, y) __asm__ volatile(name "q %1, %0" : "+r"(x) : "r"(y));
#define XOR "xor"
#define MULTIPLY "imul"
#define WAIT __asm__ volatile("pause");
#ifdef __AVX__
#define WIDTH 32
#define LOW_OF(x, from) __asm__ volatile("vmovq %x1, %0" : "=r"(x) : "x"(from));
#define APPLY(operation, x, y) __asm__ volatile("v" operation " %1, %0, %0" : "+x"(x) : "x"(y));
#define LOAD(x, from) __asm__ volatile("vmovaps %1, %0" : "=x"(x) : "m"(*(const vector *)(from)));
#define STORE(x, to) __asm__ volatile("vmovaps %1, %0" : "=m"(*(vector *)(to)) : "x"(x));
#else
#define WIDTH 16
#define LOW_OF(x, from) __asm__ volatile("movq %1, %0" : "=r"(x) : "x"(from));
#define APPLY(operation, x, y) __asm__ volatile(operation " %1, %0" : "+x"(x) : "x"(y));
#define LOAD(x, from) __asm__ volatile("movaps %1, %0" : "=x"(x) : "m"(*(const vector *)(from)));
#define STORE(x, to) __asm__ volatile("movaps %1, %0" : "=m"(*(vector *)(to)) : "x"(x));
#endif
#ifdef __FMA__
#define FMA(type, x, a, b) __asm__ volatile("vfmadd231p" type " %2, %1, %0" : "+x"(x) : "x"(a), "x"(b));
#endif
#elif defined(__aarch64__)
#define WIDTH 16
#define DOUBLE "2d"
#define SINGLE "4s"
#define OPERATION(name, type) "f" name " %0." type ", %0." type ", %1." type
#define INTEGER(name, x, y) __asm__ volatile(name " %0, %0, %1" : "+r"(x) : "r"(y));
#define XOR "eor"
#define MULTIPLY "mul"
#define LOW_OF(x, from) __asm__ volatile("umov %0, %1.d[0]" : "=r"(x) : "w"(from));
#define WAIT __asm__ volatile("yield");
#define APPLY(operation, x, y) __asm__ volatile(operation : "+w"(x) : "w"(y));
#define FMA(type, x, a, b) __asm__ volatile("fmla %0." type ", %1." type ", %2." type : "+w"(x) : "w"(a), "w"(b));
#define LOAD(x, from) __asm__ volatile("ldr %q0, %1" : "=w"(x) : "m"(*(const vector *)(from)));
#define STORE(x, to) __asm__ volatile("str %q1, %0" : "=m"(*(vector *)(to)) : "w"(x));
#else
#error "eprof calibrates x86-64 and 64-bit ARM processors"
#endif

typedef double vector __attribute__((vector_size(WIDTH)));
typedef void kernel(char *data, long size, long turns);

static vector doubles(double value) { return (vector){0} + value; }
static vector singles(double value)
{
    float values[WIDTH / sizeof(float)];
    vector result;
    for (size_t i = 0; i < WIDTH / sizeof(float); ++i)
        values[i] = (float)value;
    memcpy(&result, values, WIDTH);
    return result;
}

#define KERNEL(name) void name(UNUSED char *data, UNUSED long size, UNUSED long turns)
#define TIMES(turns) _Pragma("GCC unroll 1") for (long i = 0; i < turns; ++i)
#define UNUSED __attribute__((unused))
#define SIX(OF, type) OF(type, 0) OF(type, 1) OF(type, 2) OF(type, 3) OF(type, 4) OF(type, 5)
#define TWICE(BODY) BODY BODY
#define FOUR_TIMES(BODY) TWICE(BODY) TWICE(BODY)

/* Six points with many digits, small steps e and f, factors a little above and below 1. */
#define POINT(values, k) vector x##k = values(1.0 / 3 + 0.11 * k); UNUSED vector y##k = values(2.0 / 7 + 0.13 * k);
#define POINTS(values) SIX(POINT, values)
#define STEPS(values) const vector e = values(0.0123456789), f = values(-0.0123456789);
#define FACTORS(values) const vector up = values(1.0123456789), down = values(1 / 1.0123456789);

/* Points that go round in small steps: x += e y, y += f x. */
#define TURN(type, k) FMA(type, x##k, e, y##k)
#define BACK(type, k) FMA(type, y##k, f, x##k)
/* (x, y) -> (x + y, -x), which comes round after six times. */
#define ADD(type, k) APPLY(OPERATION("add", type), x##k, y##k)
#define SUBTRACT(type, k) APPLY(OPERATION("sub", type), y##k, x##k)
/* Multiplied with or divided by a little more than 1, then a little less. */
#define MUL_UP(type, k) APPLY(OPERATION("mul", type), x##k, up)
#define MUL_DOWN(type, k) APPLY(OPERATION("mul", type), x##k, down)
#define DIV_UP(type, k) APPLY(OPERATION("div", type), x##k, up)
#define DIV_DOWN(type, k) APPLY(OPERATION("div", type), x##k, down)

/* 48 vector instructions a turn. */
#define ARITHMETIC(name, type, values) \
    KERNEL(name##_add) { POINTS(values) TIMES(turns) { FOUR_TIMES(SIX(ADD, type) SIX(SUBTRACT, type)) } } \
    KERNEL(name##_mul) \
    { POINTS(values) FACTORS(values) TIMES(turns) { FOUR_TIMES(SIX(MUL_UP, type) SIX(MUL_DOWN, type)) } } \
    KERNEL(name##_add_mul) \
    { \
        POINTS(values) FACTORS(values) \
        TIMES(turns) { TWICE(SIX(ADD, type) SIX(MUL_UP, type) SIX(SUBTRACT, type) SIX(MUL_DOWN, type)) } \
    }
ARITHMETIC(fp64, DOUBLE, doubles)
ARITHMETIC(fp32, SINGLE, singles)
KERNEL(divide) { POINTS(doubles) FACTORS(doubles) TIMES(turns) { SIX(DIV_UP, DOUBLE) SIX(DIV_DOWN, DOUBLE) } }

/* 64 adds and exclusive ors a turn. */
#define STIR INTEGER("add", a, m) INTEGER("add", b, m) INTEGER("add", c, m) INTEGER("add", d, m) \
    INTEGER(XOR, a, n) INTEGER(XOR, b, n) INTEGER(XOR, c, n) INTEGER(XOR, d, n)
KERNEL(integer)
{
    uint64_t a = 3, b = 5, c = 7, d = 11;
    const uint64_t m = 0x9e3779b97f4a7c15u, n = 0xbf58476d1ce4e5b9u;
    TIMES(turns) { FOUR_TIMES(TWICE(STIR)) }
}

/* Eight vectors a turn, through `data` from end to end, again and again; `size` is a multiple of eight vectors. */
#define NEXT at = at + 8 * WIDTH < data + size ? at + 8 * WIDTH : data;
#define EIGHT(OF, type) SIX(OF, type) OF(type, 6) OF(type, 7)
#define GET(type, k) LOAD(v, at + (k) * WIDTH)
#define CHANGE(type, k) GET(type, k) APPLY(OPERATION("add", DOUBLE), v, one) STORE(v, at + (k) * WIDTH)
KERNEL(read_data) { vector v; char *at = data; TIMES(turns) { EIGHT(GET, ) NEXT } }
KERNEL(update_data)
{
    const vector one = doubles(1.0123456789);
    vector v;
    char *at = data;
    TIMES(turns) { EIGHT(CHANGE, ) NEXT }
}

/* Six lines of 64 bytes at random a turn, each of another chain: where the next of a chain lies is known only when this one is
   here. 1664525 x + 1013904223 visits every number below a power of two before it comes to one again, so no data need be
   pointers; what was read goes in behind a mask, `nothing`, that is 0. */
#define LINE 64
#define FETCH(k) LOAD(v, data + at##k) LOAD(w, data + at##k + LINE / 2) REST_OF_LINE(k)
#if WIDTH == LINE / 2
#define REST_OF_LINE(k)
#else
#define REST_OF_LINE(k) LOAD(w, data + at##k + WIDTH) LOAD(w, data + at##k + LINE - WIDTH)
#endif
#define CHAIN(type, k) uint64_t at##k = (k) * 0x9e3779b97f4a7c15u & mask;
#define HOP(type, k) FETCH(k) LOW_OF(seen, v) INTEGER("and", seen, nothing) INTEGER(MULTIPLY, at##k, factor) \
    INTEGER("add", at##k, addend) INTEGER("add", at##k, seen) INTEGER("and", at##k, mask)
KERNEL(chase)
{
    const uint64_t nothing = 0, factor = 1664525, addend = 1013904223ull * LINE;
    const uint64_t mask = (1ull << (63 - __builtin_clzll((unsigned long long)size))) - LINE;
    uint64_t seen;
    vector v, w;
    SIX(CHAIN, )
    TIMES(turns) { SIX(HOP, ) }
}

#ifdef FMA
KERNEL(fp64_fma) { POINTS(doubles) STEPS(doubles) TIMES(turns) { FOUR_TIMES(SIX(TURN, DOUBLE) SIX(BACK, DOUBLE)) } }
KERNEL(fp32_fma) { POINTS(singles) STEPS(singles) TIMES(turns) { FOUR_TIMES(SIX(TURN, SINGLE) SIX(BACK, SINGLE)) } }
/* Eight vectors and 12 or 48 multiply-adds a turn. */
KERNEL(read_fma_12)
{
    vector v;
    char *at = data;
    POINTS(doubles) STEPS(doubles)
    TIMES(turns) { EIGHT(GET, ) SIX(TURN, DOUBLE) SIX(BACK, DOUBLE) NEXT }
}
KERNEL(read_fma_48)
{
    vector v;
    char *at = data;
    POINTS(doubles) STEPS(doubles)
    TIMES(turns) { EIGHT(GET, ) FOUR_TIMES(SIX(TURN, DOUBLE) SIX(BACK, DOUBLE)) NEXT }
}
#endif

/* Awake, but next to nothing happens: 16 pauses a turn. */
KERNEL(awake) { TIMES(turns) { FOUR_TIMES(FOUR_TIMES(WAIT)) } }
/* Asleep: a millisecond a turn. */
KERNEL(asleep)
{
    const struct timespec millisecond = {0, 1000000};
    TIMES(turns) nanosleep(&millisecond, 0);
}
/* Random doubles from 1 to 2, so that data toggle as real ones do; each core writes its own first. */
KERNEL(fill)
{
    uint64_t random = 0x9e3779b97f4a7c15u;
    double *values = (double *)data;
    for (long i = 0; i < size / (long)sizeof(double); ++i) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        values[i] = 1.0 + (double)(random >> 11) / 9007199254740992.0;
    }
}

struct work { kernel *run; int core; char *data; long size, turns; };

static void *on_its_core(void *argument)
{
    const struct work *work = argument;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(work->core, &one);
    if (pthread_setaffinity_np(pthread_self(), sizeof one, &one))
        return argument;
    work->run(work->data, work->size, work->turns);
    return 0;
}

/* Run a kernel on some cores at once, with `size` bytes each. Not 0: a core could not be had. */
int launch(kernel *run, const int *cores, int count, char *data, long size, long turns)
{
    pthread_t threads[count];
    struct work works[count];
    int begun = 0, failed = 0;
    for (; begun < count; ++begun) {
        works[begun] = (struct work){run, cores[begun], data + begun * size, size, turns};
        if (pthread_create(&threads[begun], 0, on_its_core, &works[begun]))
            break;
    }
    for (int i = 0; i < begun; ++i) {
        void *result;
        pthread_join(threads[i], &result);
        failed |= result != 0;
    }
    return failed || begun < count;
}
