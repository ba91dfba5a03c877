// Known work: `known LAUNCHES N [EXIT_CODE]` launches y = a x + y that often over N doubles, N a multiple of 256.
// A launch makes N double-precision multiply-adds, reads 16 N bytes and writes 8 N.
#include <cstdio>
#include <cstdlib>

__global__ void work(double *y, const double *x, double a) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  y[i] = fma(a, x[i], y[i]);
}

int main(int argc, char **argv) {
  int launches = atoi(argv[1]), code = argc > 3 ? atoi(argv[3]) : 0;
  size_t n = atol(argv[2]);
  double *x, *y;
  if (cudaMalloc(&x, 8 * n) || cudaMalloc(&y, 8 * n)) return 99;
  cudaMemset(x, 0, 8 * n);
  cudaMemset(y, 0, 8 * n);
  for (int i = 0; i < launches; ++i) work<<<n / 256, 256>>>(y, x, 2.0);
  if (cudaDeviceSynchronize()) return 98;
  puts("out");
  return code;
}
