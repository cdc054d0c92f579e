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
    *mw = 310000;
    return 0;
}
int nvmlDeviceGetClockInfo(void *, int type, unsigned *mhz)
{
    *mhz = getenv("EMULATED_AT_WORK") != nullptr ? 1500 : 1980; /* before the load has told, the boost clock */
    return type == 1 ? 0 : 2;
}
int nvmlDeviceGetMaxClockInfo(void *, int type, unsigned *mhz)
{
    *mhz = type == 1 ? 1980 : 3201;
    return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *, unsigned long long *bits)
{
    *bits = getenv("EMULATED_AT_WORK") != nullptr ? 4 : 1;
    return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void *, unsigned *mw)
{
    *mw = 700000;
    return 0;
}
int nvmlDeviceGetMaxPcieLinkGeneration(void *, unsigned *generation)
{
    *generation = 5;
    return 0;
}
int nvmlDeviceGetMaxPcieLinkWidth(void *, unsigned *lanes)
{
    *lanes = 16;
    return 0;
}
/* Field 186, the power now; the other call gives an average that lags. */
int nvmlDeviceGetFieldValues(void *, int count, void *values)
{
    struct Field {
        unsigned field, scope;
        long long at_us, took_us;
        int type, status;
        unsigned value, high;
    } *field = (Field *)values;
    field->status = field->field == 186 && count == 1 ? 0 : 3;
    field->value = 500000;
    return 0;
}
int nvmlDeviceGetTemperature(void *, int sensor, unsigned *c)
{
    *c = 60;
    return sensor;
}
int nvmlDeviceGetUtilizationRates(void *, unsigned percent[2])
{
    const char *busy = getenv("EMULATE_BUSY"), *until = getenv("EMULATE_BUSY_ASKED");
    static int asked; /* busy for the first EMULATE_BUSY_ASKED questions only */
    if (until != nullptr && asked++ >= atoi(until))
        busy = nullptr;
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
