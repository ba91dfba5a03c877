/* NVML with one GPU at 0000:0A:00.0 that draws 150 W; its counter steps every 20 ms. Clocks may not be set. */
#include <stdio.h>
#include <string.h>
#include <time.h>

int nvmlInit_v2(void) { return 0; }
const char *nvmlErrorString(int code) { return code == 4 ? "Insufficient Permissions" : "Not Found"; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **one) { *one = (void *)77; return strcmp(bus, "0000:0A:00.0") ? 6 : 0; }
int nvmlDeviceGetPowerUsage(void *one, unsigned *mw) { *mw = 150000; return one != (void *)77; }
int nvmlDeviceGetTotalEnergyConsumption(void *one, unsigned long long *mj)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    *mj = (unsigned long long)(t.tv_sec * 50 + t.tv_nsec / 20000000) * 3000;
    return one != (void *)77;
}
int nvmlDeviceGetClockInfo(void *one, int which, unsigned *mhz) { *mhz = which == 1 ? 1500 : 1000; return one != (void *)77; }
int nvmlDeviceGetTemperature(void *one, int which, unsigned *c) { *c = 55 + which; return one != (void *)77; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *one, unsigned long long *bits) { *bits = 0; return one != (void *)77; }
int nvmlDeviceGetName(void *one, char *name, unsigned size) { snprintf(name, size, "Stub"); return one != (void *)77; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "1.2"); return 0; }
int nvmlDeviceGetSupportedMemoryClocks(void *one, unsigned *count, unsigned *mhz) { *count = 1; mhz[0] = 1000; return one != (void *)77; }
int nvmlDeviceGetSupportedGraphicsClocks(void *one, unsigned memory, unsigned *count, unsigned *mhz)
{
    *count = 2;
    mhz[0] = 1500;
    mhz[1] = 1200;
    return one != (void *)77 || memory != 1000;
}
int nvmlDeviceSetGpuLockedClocks(void *one, unsigned least, unsigned most) { return one == (void *)77 && least == most ? 4 : 2; }
