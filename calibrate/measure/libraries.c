/* calibrate/measure/libraries.c - NCCL and NVML by dlopen. */
#include "calibrate/measure/libraries.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A function by name into the pointer at `at`; dlsym gives an object pointer, hence the copy. */
static bool find(void *library, const char *name, void *at)
{
    void *symbol = dlsym(library, name);
    memcpy(at, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void *open_library(const char *variable, const char *name, char *reason, size_t reason_size)
{
    const char *chosen = getenv(variable);
    void *library = dlopen(chosen != NULL ? chosen : name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        snprintf(reason, reason_size, "%s is not on this machine (%s names another file)",
                 chosen != NULL ? chosen : name, variable);
    return library;
}

bool cal_nccl_load(CalNccl *ret_nccl, char *reason, size_t reason_size)
{
    CalNccl nccl = {.library = open_library("ORRERY_NCCL", "libnccl.so.2", reason, reason_size)};
    int (*get_version)(int *) = NULL;
    if (nccl.library == NULL)
        return false;
    const bool ok = find(nccl.library, "ncclGetVersion", &get_version) &&
                    find(nccl.library, "ncclCommInitAll", &nccl.comm_init_all) &&
                    find(nccl.library, "ncclGetUniqueId", &nccl.unique_id) &&
                    find(nccl.library, "ncclCommInitRank", &nccl.comm_init_rank) &&
                    find(nccl.library, "ncclCommDestroy", &nccl.comm_destroy) &&
                    find(nccl.library, "ncclGroupStart", &nccl.group_start) &&
                    find(nccl.library, "ncclGroupEnd", &nccl.group_end) &&
                    find(nccl.library, "ncclAllReduce", &nccl.all_reduce) &&
                    find(nccl.library, "ncclAllGather", &nccl.all_gather) &&
                    find(nccl.library, "ncclReduceScatter", &nccl.reduce_scatter) &&
                    find(nccl.library, "ncclBroadcast", &nccl.broadcast) &&
                    find(nccl.library, "ncclReduce", &nccl.reduce) &&
                    find(nccl.library, "ncclSend", &nccl.send) &&
                    find(nccl.library, "ncclRecv", &nccl.receive) &&
                    find(nccl.library, "ncclGetErrorString", &nccl.error_text);
    if (!ok || get_version(&nccl.version) != 0) {
        snprintf(reason, reason_size, "this NCCL is too old: 2.7 or later has send and receive");
        dlclose(nccl.library);
        return false;
    }
    *ret_nccl = nccl;
    return true;
}

void cal_nccl_unload(CalNccl *nccl)
{
    if (nccl->library != NULL)
        dlclose(nccl->library);
    nccl->library = NULL;
}

void cal_nccl_version_text(int version, char *text, size_t size)
{
    if (version >= 10000)
        snprintf(text, size, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    else
        snprintf(text, size, "%d.%d.%d", version / 1000, version / 100 % 10, version % 100);
}

bool cal_nvml_load(const char *bus_id, CalNvml *ret_nvml, char *reason, size_t reason_size)
{
    CalNvml nvml = {.library = open_library("ORRERY_NVML", "libnvidia-ml.so.1", reason, reason_size)};
    int (*init)(void) = NULL, (*by_bus)(const char *, void **) = NULL, (*driver)(char *, unsigned) = NULL;
    if (nvml.library == NULL)
        return false;
    bool ok = find(nvml.library, "nvmlInit_v2", &init) &&
              find(nvml.library, "nvmlShutdown", &nvml.shutdown) &&
              find(nvml.library, "nvmlDeviceGetHandleByPciBusId_v2", &by_bus) &&
              find(nvml.library, "nvmlSystemGetDriverVersion", &driver) &&
              find(nvml.library, "nvmlDeviceGetPowerUsage", &nvml.power_mw) &&
              find(nvml.library, "nvmlDeviceGetClockInfo", &nvml.clock_mhz) &&
              find(nvml.library, "nvmlDeviceGetTemperature", &nvml.temperature_c) &&
              find(nvml.library, "nvmlDeviceGetUtilizationRates", &nvml.utilisation) &&
              find(nvml.library, "nvmlDeviceGetMemoryInfo", &nvml.memory) && init() == 0;
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

void cal_nvml_read(const CalNvml *nvml, double *ret_power_w, double *ret_sm_clock_hz,
                   double *ret_temperature_c)
{
    unsigned mw = 0, mhz = 0, c = 0;
    *ret_power_w = *ret_sm_clock_hz = *ret_temperature_c = 0;
    if (nvml->library == NULL)
        return;
    if (nvml->power_mw(nvml->device, &mw) == 0)
        *ret_power_w = 1e-3 * mw;
    if (nvml->clock_mhz(nvml->device, 1, &mhz) == 0) /* 1: the SMs' */
        *ret_sm_clock_hz = 1e6 * mhz;
    if (nvml->temperature_c(nvml->device, 0, &c) == 0) /* 0: the GPU's own sensor */
        *ret_temperature_c = c;
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
