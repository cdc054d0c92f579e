/* tests/gpu/emulate/nvml.cc - NVML for the emulation: a GPU that draws 500 W at 1.5 GHz and 60 degrees; EMULATE_BUSY is
 * the percentage of the time that others use it. A library of its own, loaded as NVML would be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
int nvmlInit_v2(void)
{
    return 0;
}
int nvmlShutdown(void)
{
    return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device)
{
    static int gpu;
    *device = &gpu;
    return strncmp(bus_id, "0000:", 5) == 0 ? 0 : 6;
}
int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    snprintf(text, size, "580.65.06");
    return 0;
}
int nvmlDeviceGetPowerUsage(void *, unsigned *mw)
{
    *mw = 500000;
    return 0;
}
int nvmlDeviceGetClockInfo(void *, int type, unsigned *mhz)
{
    *mhz = 1500;
    return type == 1 ? 0 : 2;
}
int nvmlDeviceGetTemperature(void *, int sensor, unsigned *c)
{
    *c = 60;
    return sensor;
}
int nvmlDeviceGetUtilizationRates(void *, unsigned percent[2])
{
    const char *busy = getenv("EMULATE_BUSY");
    percent[0] = percent[1] = busy != nullptr ? (unsigned)atoi(busy) : 0;
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *, unsigned long long bytes[3])
{
    bytes[0] = bytes[1] = 64 << 20;
    bytes[2] = 0;
    return 0;
}
}
