/* Kernels whose floating-point operations are known: argument: the size n of triad and stencil (a multiple of 16). */
#include <stdlib.h>
#define KERNEL __attribute__((noinline))
KERNEL void triad(int n, double s, const double *restrict b, const double *restrict c, double *restrict a) {
    for (int i = 0; i < n; i++) a[i] = b[i] + s * c[i];
}
KERNEL void gemm(int n, const double *restrict a, const double *restrict b, double *restrict c) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
}
KERNEL void stencil(int n, const float *restrict u, float *restrict v) {
    for (int i = 0; i < n; i++) v[i] = 0.25f * (u[i] + u[i + 2]);
}
KERNEL void fft(int n, const double *restrict w, double *restrict re, double *restrict im) {
    for (int half = 1; half < n; half *= 2)
        for (int k = 0; k < half; k++)
            for (int i = k; i < n; i += 2 * half) {
                int j = i + half;
                double x = w[k] * re[j] - w[n + k] * im[j], y = w[k] * im[j] + w[n + k] * re[j];
                re[j] = re[i] - x; im[j] = im[i] - y; re[i] += x; im[i] += y;
            }
}
int main(int count, char **words) {
    int n = atoi(words[1]);
    double *a = calloc(4 * n, 8), *b = calloc(4 * n, 8), *c = calloc(4 * n, 8);
    float *u = calloc(n + 2, 4), *v = calloc(n, 4);
    triad(n, 3.0, b, c, a);
    gemm(32, a, b, c);
    stencil(n, u, v);
    fft(64, a, b, c);
    return a[1] + b[1] + c[1] + v[1] > 1e300;
}
