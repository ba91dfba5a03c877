/* A stand-in for libcuda.so.1: memory is the host's, and the one kernel it can run is stream_triad, done here in C. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int live = 0, launches = 0;

int cuInit(unsigned flags) { return flags ? 1 : 0; }
int cuDeviceGetCount(int *count) { *count = getenv("STAND_IN_NO_GPU") ? 0 : 1; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = 7; return ordinal ? 101 : 0; }
int cuDeviceGetName(char *name, int size, int device)
{
    strncpy(name, "Stand-in GPU", size);
    return device == 7 ? 0 : 101;
}
int cuDeviceGetAttribute(int *value, int what, int device)
{
    *value = what == 75 ? 9 : 0;
    return device == 7 && (what == 75 || what == 76) ? 0 : 1;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &live; return device == 7 ? 0 : 101; }
int cuCtxSetCurrent(void *context) { return context == &live ? 0 : 201; }
int cuCtxSynchronize(void) { return 0; }
int cuModuleLoadData(void **module, const char *image)
{
    *module = &launches;
    return memcmp(image, "\177ELF", 4) ? 200 : 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    *function = &live;
    return module != &launches ? 400 : strcmp(name, "stream_triad") ? 500 : 0;
}
int cuMemAlloc_v2(uint64_t *at, size_t size) { *at = (uint64_t)(uintptr_t)malloc(size); ++live; return 0; }
int cuMemFree_v2(uint64_t at) { free((void *)(uintptr_t)at); --live; return 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) { memcpy((void *)(uintptr_t)to, from, size); return 0; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) { memcpy(to, (void *)(uintptr_t)from, size); return 0; }
int cuMemsetD8_v2(uint64_t at, unsigned char value, size_t size) { memset((void *)(uintptr_t)at, value, size); return 0; }
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **arguments, void **extra)
{
    const int n = *(int *)arguments[0];
    const float *b = *(float **)arguments[1], *c = *(float **)arguments[2];
    float *a = *(float **)arguments[3];
    int i;
    if (function != &live || gy != 1 || gz != 1 || by != 1 || bz != 1 || shared || stream || extra)
        return 1;
    for (i = 0; i < n && i < (int)(gx * bx); ++i)
        a[i] = b[i] + 3 * c[i];
    ++launches;
    return 0;
}
int cuEventCreate(void **event, unsigned flags) { *event = malloc(8); return flags; }
int cuEventRecord(void *event, void *stream) { return !event || stream; }
int cuEventElapsedTime(float *ms, void *start, void *stop) { *ms = 0.25f; return start == stop; }
int cuEventDestroy_v2(void *event) { free(event); return 0; }
int cuGetErrorString(int code, const char **words)
{
    *words = code == 500 ? "named symbol not found" : "stand-in error";
    return 0;
}
