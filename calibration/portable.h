/* One source for CUDA (nvcc since 6.0, NVRTC) and OpenCL, where a simulated device counts what is executed. C++03 and C.
   The host puts `#define BLOCK n` before this and the kernels behind it: there is nothing to include.

   Every benchmark has the same parameters:
     data        the region that is read or written, `n` vectors of 16 bytes, a multiple of a chunk (8 * BLOCK vectors)
     out         takes a result if it equals `key`; key is not a number, so none ever does, but no compiler knows that
     step        how far a block goes on in `data` from one iteration to the next, in vectors, at most n
     iterations  how often the loop runs; each kernel has one loop, and everything that is counted is in it
     scale       operands are times this: 1 for random ones, 0 for zeros, which cost the least energy */
#ifdef __OPENCL_VERSION__
#pragma OPENCL FP_CONTRACT OFF
#if defined(cl_khr_fp64) && !defined(WITHOUT_FP64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define HAS_FP64
#endif
#define DEVICE static inline __attribute__((always_inline))
#define GLOBAL __global
#define LOCAL __local
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define GROUP ((int)get_group_id(0))
#define GROUPS ((int)get_num_groups(0))
#define LANE ((int)get_local_id(0))
#define UNROLL_NOT _Pragma("nounroll")
#define KERNEL(name) \
    __kernel void name(GLOBAL float4 *data, GLOBAL float *out, int n, int step, int iterations, float key, float scale)
#ifdef WITHOUT_FMA /* there fma() is a function of many instructions */
#define FMA32(a, b, c) mad(a, b, c)
#else
#define FMA32(a, b, c) fma(a, b, c)
#endif
#define ADD32(a, b) ((a) + (b))
#define MUL32(a, b) ((a) * (b))
#define FMA64(a, b, c) fma(a, b, c)
#define ADD64(a, b) ((a) + (b))
#define MUL64(a, b) ((a) * (b))
/* One instruction of the special unit; exp2() is several around it. */
#define EXP2(x) native_exp2(x)
#define LOG2(x) native_log2(x)
#define TO_FLOAT(i) convert_float_rte(i)
#define TO_INT(x) convert_int_rtz(x)
#else
#define HAS_FP64
#define DEVICE static __device__ __forceinline__
#define GLOBAL
#define LOCAL __shared__
#define BARRIER __syncthreads()
#define GROUP ((int)blockIdx.x)
#define GROUPS ((int)gridDim.x)
#define LANE ((int)threadIdx.x)
#define UNROLL_NOT _Pragma("unroll 1")
#define KERNEL(name) \
    extern "C" __global__ void __launch_bounds__(BLOCK) \
    name(float4 *data, float *out, int n, int step, int iterations, float key, float scale)
/* The _rn forms are never contracted into multiply-adds. */
#define FMA32(a, b, c) __fmaf_rn(a, b, c)
#define ADD32(a, b) __fadd_rn(a, b)
#define MUL32(a, b) __fmul_rn(a, b)
#define FMA64(a, b, c) __fma_rn(a, b, c)
#define ADD64(a, b) __dadd_rn(a, b)
#define MUL64(a, b) __dmul_rn(a, b)
#define TO_FLOAT(i) __int2float_rn(i)
#define TO_INT(x) __float2int_rz(x)
/* One instruction each, whatever the compiler's options say of denormals. */
DEVICE float exp2_fast(float x)
{
    float y;
    asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
DEVICE float log2_fast(float x)
{
    float y;
    asm volatile("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#define EXP2(x) exp2_fast(x)
#define LOG2(x) log2_fast(x)
#endif

#define TIMES2(x) x x
#define TIMES4(x) TIMES2(TIMES2(x))
#define TIMES8(x) TIMES2(TIMES4(x))
#define TIMES16(x) TIMES4(TIMES4(x))
#define TIMES32(x) TIMES2(TIMES16(x))
#define EACH2(x) x(0) x(1)
#define EACH4(x) x(0) x(1) x(2) x(3)
#define EACH8(x) EACH4(x) x(4) x(5) x(6) x(7)

#define LOOP for (i = 0; i < iterations; ++i)

/* A number from 0 to 1 that differs from thread to thread: what toggles in the data costs energy too. */
#define seed(salt) (scale * random_from(salt))
DEVICE float random_from(int salt)
{
    const unsigned int x = (unsigned int)(GROUP * BLOCK + LANE + 1) * 2654435761u + (unsigned int)salt * 40503u;
    return (float)(x >> 9) * (1.0f / 8388608.0f);
}
