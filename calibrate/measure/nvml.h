/* calibrate/measure/nvml.h - the GPU's power, clocks, temperature and what limits its clocks, through NVML; loaded when the
 * program runs. The numbers below are the library's stable binary interface; its header is not needed to build.
 * Source: [NvmlDocs]
 */
#ifndef ORR_CALIBRATE_NVML_H
#define ORR_CALIBRATE_NVML_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What holds the SMs' clock below the boost clock; bits as nvmlClocksEventReasons numbers them. */
enum {
    CAL_LIMIT_SETTING = 0x2,     /* clocks that somebody set */
    CAL_LIMIT_POWER = 0x4,       /* the power limit: usual under load */
    CAL_LIMIT_HARDWARE = 0x8,    /* slowdown by the board */
    CAL_LIMIT_SOFT_HEAT = 0x20,  /* temperature, by the driver */
    CAL_LIMIT_HARD_HEAT = 0x40,  /* temperature, by the board */
    CAL_LIMIT_POWER_BRAKE = 0x80 /* the rack's or the node's supply */
};

/* A moment of a GPU at work; 0: not known. */
typedef struct CalGpuState {
    double power_w; /* now where the driver tells (field 186), else its average of the last second */
    double sm_clock_hz, temperature_c;
    unsigned limits; /* CAL_LIMIT_* */
} CalGpuState;

/* What holds for the whole run; 0: not known. */
typedef struct CalGpuLimits {
    double power_limit_w, boost_clock_hz, memory_clock_hz;
    int pcie_generation, pcie_lanes;
} CalGpuLimits;

typedef struct CalNvmlField CalNvmlField;

typedef struct CalNvml {
    void *library;
    void *device;
    int (*power_mw)(void *device, unsigned *ret_mw);
    int (*clock_mhz)(void *device, int type, unsigned *ret_mhz);
    int (*temperature_c)(void *device, int sensor, unsigned *ret_c);
    int (*utilisation)(void *device, unsigned ret_percent[2]);
    int (*memory)(void *device, unsigned long long ret_total_free_used[3]);
    int (*shutdown)(void);
    /* Not in every driver: NULL. */
    int (*field_values)(void *device, int count, CalNvmlField *values);
    int (*clock_limits)(void *device, unsigned long long *ret_bits);
    int (*max_clock_mhz)(void *device, int type, unsigned *ret_mhz);
    int (*power_limit_mw)(void *device, unsigned *ret_mw);
    int (*pcie_generation)(void *device, unsigned *ret);
    int (*pcie_lanes)(void *device, unsigned *ret);
    char driver[80];
} CalNvml;

/* Looks for libnvidia-ml.so.1, or $ORRERY_NVML; the GPU is named by its PCI bus id ("0000:18:00.0"). */
bool cal_nvml_load(const char *bus_id, CalNvml *ret_nvml, char *reason, size_t reason_size);
void cal_nvml_unload(CalNvml *nvml);
void cal_nvml_read(const CalNvml *nvml, CalGpuState *ret_state);
void cal_nvml_limits(const CalNvml *nvml, CalGpuLimits *ret_limits);
/* Share of the last second in which the GPU was busy, and bytes in use; -1 where not known. */
void cal_nvml_others(const CalNvml *nvml, double *ret_busy_frac, double *ret_used_bytes);
/* Words of the limits that are set, "power, temperature"; empty: none. */
void cal_limits_text(unsigned limits, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
