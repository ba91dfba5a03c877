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
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define GROUP ((int)get_group_id(0))
#define LANE ((int)get_local_id(0))
#endif

#ifdef DOUBLE
#ifndef __CUDACC__
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double4 real4;
#endif
typedef double real;
typedef double2 real2;
#define FMA(a, b, c) fma(a, b, c)
#define RSQRT(a) rsqrt(a)
#else
#ifndef __CUDACC__
typedef float4 real4;
#define fmaf fma
#define rsqrtf rsqrt
#endif
typedef float real;
typedef float2 real2;
#define FMA(a, b, c) fmaf(a, b, c)
#define RSQRT(a) rsqrtf(a)
#endif

#ifdef __CUDACC__
typedef struct __align__(16) { real x, y, z, w; } real4; /* float4 or, in two loads, a double4 of any CUDA version */
#endif
