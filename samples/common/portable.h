/* One source for CUDA and OpenCL. The launcher puts `#define BLOCK` and, for double precision, `#define DOUBLE` before
   this. Groups and lanes have one dimension; a pointer argument to local memory is LOCAL_ARG. */
#ifdef __CUDACC__
#define KERNEL(name) extern "C" __global__ void __launch_bounds__(BLOCK) name
#define DEVICE static __device__ __forceinline__
#define GLOBAL
#define LOCAL __shared__
#define LOCAL_ARG
#define CONSTANT static __constant__
#define RESTRICT __restrict__
#define ALIGNED(bytes) __align__(bytes)
#define BARRIER __syncthreads()
#define GROUP ((int)blockIdx.x)
#define LANE ((int)threadIdx.x)
#else
#define KERNEL(name) __kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1))) void name
#define DEVICE static inline __attribute__((always_inline))
#define GLOBAL __global
#define LOCAL __local
#define LOCAL_ARG __local
#define CONSTANT __constant
#define RESTRICT restrict
#define ALIGNED(bytes) __attribute__((aligned(bytes)))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define GROUP ((int)get_group_id(0))
#define LANE ((int)get_local_id(0))
#define fmaf fma
#define rsqrtf rsqrt
#endif

#ifdef DOUBLE
#ifndef __CUDACC__
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
typedef double real;
#define FMA(a, b, c) fma(a, b, c)
#define RSQRT(a) rsqrt(a)
#else
typedef float real;
#define FMA(a, b, c) fmaf(a, b, c)
#define RSQRT(a) rsqrtf(a)
#endif

/* Not float4 and double2: CUDA 13 deprecates double4, and Oclgrind stores every built vector twice. */
typedef struct ALIGNED(2 * sizeof(real)) { real x, y; } real2;
typedef struct ALIGNED(16) { real x, y, z, w; } real4;

DEVICE real2 pack2(real x, real y)
{
    real2 v;
    v.x = x;
    v.y = y;
    return v;
}

DEVICE real4 pack4(real x, real y, real z, real w)
{
    real4 v;
    v.x = x;
    v.y = y;
    v.z = z;
    v.w = w;
    return v;
}

/* Member by member: Oclgrind does not count the bytes of a copied struct. */
DEVICE real4 copied(real4 v)
{
    return pack4(v.x, v.y, v.z, v.w);
}
