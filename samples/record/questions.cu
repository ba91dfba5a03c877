/* Kernels of known counts, one for each question about Nsight Compute's counters that no document answers (questions.py).
   Every thread does TIMES operations on registers; a result is stored only if it is a number that cannot come out. */
#include <cuda_fp16.h>
#include <mma.h>
#include <stdio.h>

#define TIMES 256
#define THREADS 128
#define GROUPS 64

__global__ void packed_half_fma(__half2 *out, __half2 a)
{
    __half2 sum = a;
#pragma unroll
    for (int i = 0; i < TIMES; ++i)
        sum = __hfma2(sum, a, a);
    if (__low2float(sum) == 12345.0f)
        out[threadIdx.x] = sum;
}

__global__ void scalar_half_fma(__half *out, __half a)
{
    __half sum = a;
#pragma unroll
    for (int i = 0; i < TIMES; ++i)
        sum = __hfma(sum, a, a);
    if (__half2float(sum) == 12345.0f)
        out[threadIdx.x] = sum;
}

__global__ void single_fma(float *out, float a)
{
    float sum = a;
#pragma unroll
    for (int i = 0; i < TIMES; ++i)
        sum = fmaf(sum, a, a);
    if (sum == 12345.0f)
        out[threadIdx.x] = sum;
}

__global__ void double_fma(double *out, double a)
{
    double sum = a;
#pragma unroll
    for (int i = 0; i < TIMES; ++i)
        sum = fma(sum, a, a);
    if (sum == 12345.0)
        out[threadIdx.x] = sum;
}

__global__ void reciprocal_root(float *out, float a)
{
    float sum = a + threadIdx.x;
#pragma unroll
    for (int i = 0; i < TIMES; ++i)
        sum = rsqrtf(sum);
    if (sum == 12345.0f)
        out[threadIdx.x] = sum;
}

/* TIMES products of 16 x 16 x 16 a warp: 4096 multiply-adds each. */
__global__ void tensor_half_to_single(float *out, float a)
{
    nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, __half, nvcuda::wmma::row_major> left;
    nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, __half, nvcuda::wmma::col_major> right;
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> sum;
    nvcuda::wmma::fill_fragment(left, __float2half(a));
    nvcuda::wmma::fill_fragment(right, __float2half(a));
    nvcuda::wmma::fill_fragment(sum, 0.0f);
#pragma unroll 1
    for (int i = 0; i < TIMES; ++i)
        nvcuda::wmma::mma_sync(sum, left, right, sum);
    if (sum.x[0] == 12345.0f)
        nvcuda::wmma::store_matrix_sync(out, sum, 16, nvcuda::wmma::mem_row_major);
}

/* Each thread loads TIMES floats: the same for all lanes of a warp; or from one bank, another word for each lane. */
__global__ void shared_broadcast(float *out, int zero)
{
    __shared__ volatile float tile[1024];
    float sum = 0;
    for (int i = threadIdx.x; i < 1024; i += THREADS)
        tile[i] = i;
    __syncthreads();
#pragma unroll 8
    for (int i = 0; i < TIMES; ++i)
        sum += tile[i + zero];
    if (sum == 12345.5f)
        out[threadIdx.x] = sum;
}

__global__ void shared_conflicts(float *out, int zero)
{
    __shared__ volatile float tile[1024];
    float sum = 0;
    for (int i = threadIdx.x; i < 1024; i += THREADS)
        tile[i] = i;
    __syncthreads();
#pragma unroll 8
    for (int i = 0; i < TIMES; ++i)
        sum += tile[(threadIdx.x % 32) * 32 + i % 32 + zero];
    if (sum == 12345.5f)
        out[threadIdx.x] = sum;
}

/* Each thread loads and stores one float. */
__global__ void copy(float *to, const float *from) { to[blockIdx.x * THREADS + threadIdx.x] = from[blockIdx.x * THREADS + threadIdx.x]; }

int main(void)
{
    void *memory = 0, *other = 0;
    cudaError_t failed = cudaMalloc(&memory, GROUPS * THREADS * 4);
    if (!failed)
        failed = cudaMalloc(&other, GROUPS * THREADS * 4);
    if (failed) {
        fprintf(stderr, "questions: %s\n", cudaGetErrorString(failed));
        return 1;
    }
    cudaMemset(memory, 0, GROUPS * THREADS * 4);
    packed_half_fma<<<GROUPS, THREADS>>>((__half2 *)memory, __float2half2_rn(1e-3f));
    scalar_half_fma<<<GROUPS, THREADS>>>((__half *)memory, __float2half(1e-3f));
    single_fma<<<GROUPS, THREADS>>>((float *)memory, 1e-3f);
    double_fma<<<GROUPS, THREADS>>>((double *)memory, 1e-3);
    reciprocal_root<<<GROUPS, THREADS>>>((float *)memory, 1e-3f);
    tensor_half_to_single<<<GROUPS, THREADS>>>((float *)memory, 1e-3f);
    shared_broadcast<<<GROUPS, THREADS>>>((float *)memory, 0);
    shared_conflicts<<<GROUPS, THREADS>>>((float *)memory, 0);
    copy<<<GROUPS, THREADS>>>((float *)other, (const float *)memory);
    failed = cudaDeviceSynchronize();
    if (failed)
        fprintf(stderr, "questions: %s\n", cudaGetErrorString(failed));
    return failed ? 1 : 0;
}
