/* calibrate/fit/fit_host.h - what a sweep tells of the node below its GPUs: links, memory, cores, disks; and how its chips differ. */
#ifndef ORR_CALIBRATE_FIT_HOST_H
#define ORR_CALIBRATE_FIT_HOST_H

#include "base/json.h"
#include "spec/spec.h"

/* Each 0 where no row says it. The keys are those of cluster.host. */
typedef struct CalHost {
    int sockets, cores, gpus_per_pcie_root;
    double dram_bytes, dram_bytes_per_s, dram_stream_frac, core_bytes_per_s;
    double pinned_frac, pageable_frac, duplex_frac, pcie_root_bytes_per_s;
    double nvme_read_bytes_per_s, nvme_write_bytes_per_s;
    /* Of the accelerator: the standard deviation of the chips' speed under a layer that lasts. */
    double speed_spread_frac;
    double sustained_frac, clock_hz; /* speed when warm over the first pass; the clock then */
    int chips;
} CalHost;

/* From the table's copy_, host_ and together_measurements and its stamp; shares are of `link_bytes_per_s` (0: none). */
CalHost cal_fit_host(const OrrJson *table, double link_bytes_per_s);
void cal_host_log(const CalHost *host, GString *log);
/* Members "host" and "speed_spread_frac" of the open object; what is not known is left out. */
void cal_host_write(const CalHost *host, OrrJsonWriter *writer);

#endif
