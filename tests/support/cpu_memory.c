/* Kernels whose accesses to memory are known, for n = 1000: what changes memory, moves with a mask, strings, loops. */
#include <immintrin.h>
#include <stdlib.h>
#define KERNEL __attribute__((noinline, noclone))
#define N 1000

KERNEL void histogram(const int *restrict a, int *restrict h) { for (int i = 0; i < N; i++) h[a[i]]++; }
KERNEL void exclusive(int *restrict a) { for (int i = 0; i < N; i++) a[i] ^= 5; }
KERNEL void exchange_add(int *p) { long n = N; __asm__ volatile("1: xaddl %%eax, (%1)\n lock xaddl %%eax, 4(%1)\n dec %0\n jne 1b" : "+r"(n) : "r"(p) : "eax", "memory", "cc"); }
KERNEL void compare_exchange(long *p) { long n = N; __asm__ volatile("1: cmpxchg %0, (%1)\n lock cmpxchg %0, (%1)\n xchg %%rdx, 8(%1)\n dec %0\n jne 1b" : "+r"(n) : "r"(p) : "rax", "rdx", "memory", "cc"); }
KERNEL void shifted(int *p) { long n = N; __asm__ volatile("1: shll $3, (%1)\n negl 4(%1)\n btsl $3, 8(%1)\n notb 12(%1)\n dec %0\n jne 1b" : "+r"(n) : "r"(p) : "memory", "cc"); }
KERNEL void registers(void) { long n = N; __asm__ volatile("1: bt %%eax, %%ecx\n dec %0\n jne 1b" : "+r"(n) : : "eax", "ecx", "cc"); }
KERNEL void copied(char *to, const char *from) { long n = N; __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory"); }
KERNEL void filled(long *to) { long n = N; __asm__ volatile("rep stosq" : "+D"(to), "+c"(n) : "a"(0L) : "memory"); }
KERNEL void compared(const int *one, const int *other) { long n = N; __asm__ volatile("repe cmpsl" : "+D"(one), "+S"(other), "+c"(n) : : "memory", "cc"); }
KERNEL void searched(const char *in) { long n = N; __asm__ volatile("repne scasb" : "+D"(in), "+c"(n) : "a"(7) : "memory", "cc"); }
KERNEL void saved(char *area) { long n = N; __asm__ volatile("1: fxsave (%1)\n dec %0\n jne 1b" : "+r"(n) : "r"(area) : "memory", "cc"); }
/* Three lanes of four, and the multiply-add right behind the move. */
KERNEL void masked(double *restrict a, const double *restrict b) {
    const __m256i mask = _mm256_set_epi64x(0, -1, -1, -1);
    __m256d sum = _mm256_setzero_pd(), two = _mm256_set1_pd(2);
    for (int i = 0; i < N; i++) {
        __m256d x = _mm256_maskload_pd(b + 4 * (i & 63), mask);
        sum = _mm256_fmadd_pd(x, two, sum);
        _mm256_maskstore_pd(a + 4 * (i & 63), mask, sum);
    }
}
/* Two moves in a row, none of whose lanes moves, then all. */
KERNEL void nothing(int *p) { long n = N; __asm__ volatile("vpxor %%xmm0, %%xmm0, %%xmm0\n vpcmpeqd %%ymm1, %%ymm1, %%ymm1\n1: vpmaskmovd (%1), %%ymm0, %%ymm2\n vpmaskmovd (%1), %%ymm1, %%ymm2\n vaddps %%ymm2, %%ymm2, %%ymm3\n dec %0\n jne 1b" : "+r"(n) : "r"(p) : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3"); }
/* The move ends a block of valgrind's, which has 60 instructions at most. */
KERNEL void astray(double *p) { long n = N; __asm__ volatile("vpcmpeqd %%ymm1, %%ymm1, %%ymm1\n1: .rept 59\n nop\n .endr\n vmaskmovpd (%1), %%ymm1, %%ymm2\n vaddpd %%ymm2, %%ymm2, %%ymm3\n nop\n dec %0\n jne 1b" : "+r"(n) : "r"(p) : "memory", "cc", "xmm1", "xmm2", "xmm3"); }
KERNEL void gathered(const float *restrict from, const int *restrict place, float *restrict to) { for (int i = 0; i < N; i += 8) _mm256_storeu_ps(to + i, _mm256_i32gather_ps(from, _mm256_loadu_si256((const __m256i *)(place + i)), 4)); }
KERNEL long recursive(long n) { return n < 2 ? n : recursive(n - 1) + recursive(n - 2); }
/* A loop whose head is the first instruction of the function. */
long looped(long n);
__asm__(".text\n.globl looped\n.type looped, @function\nlooped: add %rdi, %rax\n dec %rdi\n jne looped\n ret\n.size looped, .-looped\n");

int main(void) {
    static double area[4 * N + 64] __attribute__((aligned(64))), other[4 * N + 64] __attribute__((aligned(64)));
    int *a = calloc(N, 4), *h = calloc(N, 4);
    histogram(a, h); exclusive(a); exchange_add(h); compare_exchange((long *)h); shifted(h); registers();
    copied((char *)area, (char *)other); filled((long *)area); compared((int *)area, (int *)other);
    searched((char *)area); saved((char *)area); masked(area + 2 * N, other + 2 * N); /* cold */ nothing(h); astray(area);
    for (int i = 0; i < N; i++) a[i] = i;
    gathered((float *)area, a, (float *)other);
    return recursive(10) + looped(N) + looped(N) > 1L << 40;
}
