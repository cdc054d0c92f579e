/* calibrate/measure/nvml.c - NVML by dlopen. */
#include "calibrate/measure/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "calibrate/measure/libraries.h"

#define FIELD_POWER_NOW 186 /* NVML_FI_DEV_POWER_INSTANT, milliwatts. Source: [NvmlDocs] */

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2 };

/* nvmlFieldValue_t. */
struct CalNvmlField {
    unsigned field, scope;
    long long timestamp_us, latency_us;
    int type, status;
    union {
        double real;
        unsigned whole;
        unsigned long long wide;
    } value;
};

bool cal_nvml_load(const char *bus_id, CalNvml *ret_nvml, char *reason, size_t reason_size)
{
    CalNvml nvml = {.library = cal_library_open("ORRERY_NVML", "libnvidia-ml.so.1", reason, reason_size)};
    int (*init)(void) = NULL, (*by_bus)(const char *, void **) = NULL, (*driver)(char *, unsigned) = NULL;
    void *const library = nvml.library;
    if (library == NULL)
        return false;
    bool ok = cal_library_find(library, "nvmlInit_v2", &init) &&
              cal_library_find(library, "nvmlShutdown", &nvml.shutdown) &&
              cal_library_find(library, "nvmlDeviceGetHandleByPciBusId_v2", &by_bus) &&
              cal_library_find(library, "nvmlSystemGetDriverVersion", &driver) &&
              cal_library_find(library, "nvmlDeviceGetPowerUsage", &nvml.power_mw) &&
              cal_library_find(library, "nvmlDeviceGetClockInfo", &nvml.clock_mhz) &&
              cal_library_find(library, "nvmlDeviceGetTemperature", &nvml.temperature_c) &&
              cal_library_find(library, "nvmlDeviceGetUtilizationRates", &nvml.utilisation) &&
              cal_library_find(library, "nvmlDeviceGetMemoryInfo", &nvml.memory) && init() == 0;
    cal_library_find(library, "nvmlDeviceGetFieldValues", &nvml.field_values);
    cal_library_find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml.clock_limits);
    cal_library_find(library, "nvmlDeviceGetMaxClockInfo", &nvml.max_clock_mhz);
    cal_library_find(library, "nvmlDeviceGetEnforcedPowerLimit", &nvml.power_limit_mw);
    cal_library_find(library, "nvmlDeviceGetMaxPcieLinkGeneration", &nvml.pcie_generation);
    cal_library_find(library, "nvmlDeviceGetMaxPcieLinkWidth", &nvml.pcie_lanes);
    if (ok && by_bus(bus_id, &nvml.device) != 0) {
        nvml.shutdown();
        ok = false;
    }
    if (!ok) {
        snprintf(reason, reason_size, "NVML does not answer for this GPU: power and clocks are not recorded");
        dlclose(nvml.library);
        return false;
    }
    driver(nvml.driver, sizeof nvml.driver);
    *ret_nvml = nvml;
    return true;
}

void cal_nvml_unload(CalNvml *nvml)
{
    if (nvml->library == NULL)
        return;
    nvml->shutdown();
    dlclose(nvml->library);
    nvml->library = NULL;
}

static double power_w(const CalNvml *nvml)
{
    CalNvmlField now = {.field = FIELD_POWER_NOW};
    unsigned mw = 0;
    if (nvml->field_values != NULL && nvml->field_values(nvml->device, 1, &now) == 0 && now.status == 0 &&
        now.value.whole > 0)
        return 1e-3 * now.value.whole;
    return nvml->power_mw(nvml->device, &mw) == 0 ? 1e-3 * mw : 0;
}

void cal_nvml_read(const CalNvml *nvml, CalGpuState *ret_state)
{
    unsigned mhz = 0, c = 0;
    unsigned long long bits = 0;
    memset(ret_state, 0, sizeof *ret_state);
    if (nvml->library == NULL)
        return;
    ret_state->power_w = power_w(nvml);
    if (nvml->clock_mhz(nvml->device, CLOCK_SM, &mhz) == 0)
        ret_state->sm_clock_hz = 1e6 * mhz;
    if (nvml->temperature_c(nvml->device, 0, &c) == 0) /* 0: the GPU's own sensor */
        ret_state->temperature_c = c;
    if (nvml->clock_limits != NULL && nvml->clock_limits(nvml->device, &bits) == 0)
        ret_state->limits = (unsigned)bits;
}

static unsigned asked(int (*read)(void *, unsigned *), void *device)
{
    unsigned value = 0;
    return read != NULL && read(device, &value) == 0 ? value : 0;
}

void cal_nvml_limits(const CalNvml *nvml, CalGpuLimits *ret_limits)
{
    unsigned sm = 0, memory = 0;
    memset(ret_limits, 0, sizeof *ret_limits);
    if (nvml->library == NULL)
        return;
    ret_limits->power_limit_w = 1e-3 * asked(nvml->power_limit_mw, nvml->device);
    ret_limits->pcie_generation = (int)asked(nvml->pcie_generation, nvml->device);
    ret_limits->pcie_lanes = (int)asked(nvml->pcie_lanes, nvml->device);
    if (nvml->max_clock_mhz != NULL && nvml->max_clock_mhz(nvml->device, CLOCK_SM, &sm) == 0)
        ret_limits->boost_clock_hz = 1e6 * sm;
    if (nvml->max_clock_mhz != NULL && nvml->max_clock_mhz(nvml->device, CLOCK_MEMORY, &memory) == 0)
        ret_limits->memory_clock_hz = 1e6 * memory;
}

void cal_nvml_others(const CalNvml *nvml, double *ret_busy_frac, double *ret_used_bytes)
{
    unsigned percent[2] = {0};
    unsigned long long bytes[3] = {0};
    *ret_busy_frac = *ret_used_bytes = -1;
    if (nvml->library == NULL)
        return;
    if (nvml->utilisation(nvml->device, percent) == 0)
        *ret_busy_frac = 0.01 * percent[0];
    if (nvml->memory(nvml->device, bytes) == 0)
        *ret_used_bytes = (double)bytes[2];
}

void cal_limits_text(unsigned limits, char *text, size_t size)
{
    static const struct {
        unsigned bit;
        const char *word;
    } words[] = {{CAL_LIMIT_SETTING, "set clocks"},
                 {CAL_LIMIT_POWER, "power limit"},
                 {CAL_LIMIT_HARDWARE, "board"},
                 {CAL_LIMIT_SOFT_HEAT, "temperature"},
                 {CAL_LIMIT_HARD_HEAT, "temperature (board)"},
                 {CAL_LIMIT_POWER_BRAKE, "power brake"}};
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words && used < size; i++)
        if ((limits & words[i].bit) != 0)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", words[i].word);
}
