/* A CUDA driver that computes nothing: it takes time as asked for, writes down every launch, and fails when told to.
   Tests load it in place of libcuda.so.1, so that the real ctypes calls are tried without a GPU.
   STUB_LOG: file for launches. STUB_FAIL: a kernel whose launch fails. STUB_DIE: a kernel that kills the process. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static double busy_until;
static uint64_t allocated = 4096;

int cuInit(unsigned flags) { return flags != 0; }
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuDeviceGetCount(int *n) { *n = getenv("STUB_NONE") ? 0 : 1; return getenv("STUB_NONE") ? 100 : 0; }
int cuDeviceGet(int *d, int index) { *d = 7 + index; return 0; }
int cuDeviceGetName(char *name, int size, int d) { snprintf(name, size, "Stub GPU %d", d); return 0; }
int cuDeviceGetPCIBusId(char *bus, int size, int d) { (void)d; snprintf(bus, size, "0000:0A:00.0"); return 0; }
int cuDeviceTotalMem_v2(size_t *n, int d) { (void)d; *n = (size_t)16 << 30; return 0; }
int cuDeviceGetAttribute(int *value, int which, int d)
{
    if (d != 7) return 101;
    switch (which) {
    case 16: *value = 10; return 0;
    case 13: *value = 1500000; return 0;
    case 36: *value = 1000000; return 0;
    case 37: *value = 256; return 0;
    case 38: *value = 4 << 20; return 0;
    case 39: *value = 2048; return 0;
    case 75: *value = 9; return 0;
    case 76: *value = 0; return 0;
    case 32: *value = 0; return 0;
    }
    return 1; /* as an old driver says of an attribute that it does not know */
}
int cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *)(uintptr_t)(d == 7 ? 1234 : 0); return d != 7; }
int cuDevicePrimaryCtxRelease_v2(int d) { return d != 7; }
int cuCtxSetCurrent(void *c) { return c != (void *)(uintptr_t)1234; }
int cuCtxSynchronize(void) { return 0; }
int cuModuleLoadData(void **m, const char *image) { *m = (void *)(uintptr_t)55; return strncmp(image, "stub", 4) ? 209 : 0; }
int cuModuleGetFunction(void **f, void *m, const char *name) { *f = strdup(name); return m != (void *)(uintptr_t)55; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, void *f, int block, size_t shared)
{
    *n = f && shared == 0 ? 2048 / block : 0;
    return 0;
}
int cuMemAlloc_v2(uint64_t *p, size_t n) { *p = allocated; allocated += n; return n == 0 || n > (size_t)16 << 30 ? 2 : 0; }
int cuMemFree_v2(uint64_t p) { return p == 0; }
int cuMemGetInfo_v2(size_t *f, size_t *t) { *f = *t = (size_t)16 << 30; return 0; }
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **args, void **extra)
{
    const char *name = f, *log = getenv("STUB_LOG"), *fail = getenv("STUB_FAIL"), *die = getenv("STUB_DIE");
    const float key = *(float *)args[5];
    if (gy * gz * by * bz != 1 || shared || stream || extra || key == key) return 1;
    if (die && !strcmp(die, name)) abort();
    if (fail && !strcmp(fail, name)) return 719;
    if (log) {
        FILE *file = fopen(log, "a");
        fprintf(file, "%s %u %u %llu %llu %d %d %d\n", name, gx, bx, (unsigned long long)*(uint64_t *)args[0],
                (unsigned long long)*(uint64_t *)args[1], *(int *)args[2], *(int *)args[3], *(int *)args[4]);
        fclose(file);
    }
    if (busy_until < now()) busy_until = now();
    busy_until += 1e-6 * *(int *)args[4];
    return 0;
}
int cuEventCreate(double **e, unsigned flags) { *e = calloc(1, sizeof(double)); return flags; }
int cuEventDestroy_v2(double *e) { free(e); return 0; }
int cuEventRecord(double *e, void *stream) { *e = busy_until > now() ? busy_until : now(); return stream != 0; }
int cuEventSynchronize(double *e)
{
    const double left = *e - now();
    struct timespec t = {(time_t)left, (long)(1e9 * (left - (time_t)left))};
    if (left > 0) nanosleep(&t, 0);
    return 0;
}
int cuEventElapsedTime(float *ms, double *a, double *b) { *ms = (float)(1e3 * (*b - *a)); return 0; }
int cuGetErrorString(int code, const char **text) { *text = code == 719 ? "unspecified launch failure" : "stub error"; return 0; }
