/* Kernels that others profiled on real GPUs, from their public descriptions: the accesses to global memory are theirs, what
   is computed with the values is not. README.md says whose they are. Groups of one dimension; x is the faster one. */

#define LANE get_local_id(0)
#define GROUP get_group_id(0)

kernel void vector_add(global const float *a, global const float *b, global float *c)
{
    const int i = get_global_id(0);
    c[i] = a[i] + b[i];
}

/* 2^26 elements by 2^21 work-items. */
kernel void silu(global const float *in, global float *out, int n)
{
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        out[i] = in[i] / (1 + exp(-in[i]));
}

/* A group a row, which it reads twice. */
kernel void rms_norm(global const float *in, global const float *weight, global float *out, int columns)
{
    local float sums[256];
    float sum = 0;
    for (int j = LANE; j < columns; j += 256)
        sum += in[GROUP * columns + j] * in[GROUP * columns + j];
    sums[LANE] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = LANE; j < columns; j += 256)
        out[GROUP * columns + j] = in[GROUP * columns + j] / sums[0] * weight[j];
}

kernel void fill(global half *out)
{
    vstore_half(1.0f, get_global_id(0), out);
}

/* C = A B of n by n, a work-item an element, in blocks of 32 x 32. */
kernel void gemm_naive(global const float *a, global const float *b, global float *c, int n)
{
    const int column = GROUP % (n / 32) * 32 + LANE % 32, row = GROUP / (n / 32) * 32 + LANE / 32;
    float sum = 0;
    for (int k = 0; k < n; ++k)
        sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

/* C = A B of n by n, blocks of EDGE x EDGE through shared memory, DEPTH deep, by get_local_size(0) work-items: each loads its
   elements of the two tiles in turn. With VECTORS, four neighbours at once. */
#define BLOCKED(NAME, EDGE, DEPTH, ITEMS, TYPE, LANES)                                                                  \
    kernel void NAME(global const TYPE *a, global const TYPE *b, global float *c, int n)                                \
    {                                                                                                                   \
        local TYPE tile_a[EDGE * DEPTH / LANES], tile_b[EDGE * DEPTH / LANES];                                          \
        const int column = GROUP % (n / EDGE) * EDGE, row = GROUP / (n / EDGE) * EDGE;                                  \
        float sum = 0;                                                                                                  \
        for (int k = 0; k < n; k += DEPTH) {                                                                            \
            for (int i = LANE; i < EDGE * DEPTH / LANES; i += ITEMS)                                                    \
                tile_a[i] = a[((row + i * LANES / DEPTH) * n + k + i * LANES % DEPTH) / LANES];                         \
            for (int i = LANE; i < EDGE * DEPTH / LANES; i += ITEMS)                                                    \
                tile_b[i] = b[((k + i * LANES / EDGE) * n + column + i * LANES % EDGE) / LANES];                        \
            barrier(CLK_LOCAL_MEM_FENCE);                                                                               \
            sum += ((local float *)tile_a)[LANE % DEPTH] + ((local float *)tile_b)[LANE % EDGE];                        \
            barrier(CLK_LOCAL_MEM_FENCE);                                                                               \
        }                                                                                                               \
        for (int i = LANE; i < EDGE * EDGE; i += ITEMS)                                                                 \
            c[(row + i / EDGE) * n + column + i % EDGE] = sum;                                                          \
    }

BLOCKED(sgemm_shared, 32, 32, 1024, float, 1)
BLOCKED(sgemm_1d, 64, 8, 512, float, 1)
BLOCKED(sgemm_2d, 128, 8, 256, float, 1)
BLOCKED(sgemm_2d_vectors, 128, 8, 256, float4, 4)
