/* calibrate/measure/libraries.h - NCCL and NVML, loaded when the program runs, so that it starts where they are missing.
 *
 * The functions and numbers below are the libraries' stable binary interface; neither header is needed to build.
 * Source: [NCCL], [NvmlDocs]
 */
#ifndef ORR_CALIBRATE_LIBRARIES_H
#define ORR_CALIBRATE_LIBRARIES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Status 0 is success; types and operations as nccl.h numbers them. */
enum { CAL_NCCL_FLOAT = 7, CAL_NCCL_SUM = 0 };
typedef void *CalNcclComm;
/* Made by one rank, brought to the others by the team's own lines. */
typedef struct CalNcclId {
    char bytes[128];
} CalNcclId;

typedef struct CalNccl {
    void *library;
    int version; /* 22907: 2.29.7 */
    int (*comm_init_all)(CalNcclComm *comms, int count, const int *devices);
    int (*unique_id)(CalNcclId *ret_id);
    int (*comm_init_rank)(CalNcclComm *comm, int ranks, CalNcclId id, int rank);
    int (*comm_destroy)(CalNcclComm comm);
    int (*group_start)(void), (*group_end)(void);
    int (*all_reduce)(const void *from, void *to, size_t count, int type, int op, CalNcclComm comm,
                      void *stream);
    int (*all_gather)(const void *from, void *to, size_t count, int type, CalNcclComm comm, void *stream);
    int (*reduce_scatter)(const void *from, void *to, size_t count, int type, int op, CalNcclComm comm,
                          void *stream);
    int (*broadcast)(const void *from, void *to, size_t count, int type, int root, CalNcclComm comm,
                     void *stream);
    int (*reduce)(const void *from, void *to, size_t count, int type, int op, int root, CalNcclComm comm,
                  void *stream);
    int (*send)(const void *from, size_t count, int type, int peer, CalNcclComm comm, void *stream);
    int (*receive)(void *to, size_t count, int type, int peer, CalNcclComm comm, void *stream);
    const char *(*error_text)(int status);
} CalNccl;

/* First version that lets several ranks share a GPU (NCCL_MULTI_RANK_GPU_ENABLE=1). Source: [NCCL] */
#define CAL_NCCL_SHARED_GPU_VERSION 23003

/* Looks for libnccl.so.2, or $ORRERY_NCCL. False with one sentence. */
bool cal_nccl_load(CalNccl *ret_nccl, char *reason, size_t reason_size);
void cal_nccl_unload(CalNccl *nccl);
void cal_nccl_version_text(int version, char *text, size_t size); /* "2.29.7" */

typedef struct CalNvml {
    void *library;
    void *device;
    int (*power_mw)(void *device, unsigned *ret_mw);
    int (*clock_mhz)(void *device, int type, unsigned *ret_mhz);
    int (*temperature_c)(void *device, int sensor, unsigned *ret_c);
    int (*utilisation)(void *device, unsigned ret_percent[2]);
    int (*memory)(void *device, unsigned long long ret_total_free_used[3]);
    int (*shutdown)(void);
    char driver[80];
} CalNvml;

/* Looks for libnvidia-ml.so.1, or $ORRERY_NVML; the GPU is named by its PCI bus id ("0000:18:00.0"). */
bool cal_nvml_load(const char *bus_id, CalNvml *ret_nvml, char *reason, size_t reason_size);
void cal_nvml_unload(CalNvml *nvml);
/* What cannot be read is 0. */
void cal_nvml_read(const CalNvml *nvml, double *ret_power_w, double *ret_sm_clock_hz,
                   double *ret_temperature_c);
/* Share of the last second in which the GPU was busy, and bytes in use; -1 where not known. */
void cal_nvml_others(const CalNvml *nvml, double *ret_busy_frac, double *ret_used_bytes);

#ifdef __cplusplus
}
#endif

#endif
