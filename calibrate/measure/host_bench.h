/* calibrate/measure/host_bench.h - the host's part of a sweep: memory, the Adam step of an offloaded optimizer, files. */
#ifndef ORR_CALIBRATE_HOST_BENCH_H
#define ORR_CALIBRATE_HOST_BENCH_H

#include "calibrate/measure/sweep.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Points of CAL_POINT_HOST: host_triad and cpu_adam with a thread a processor, file_write and file_read of a file in
 * `folder` (direct input and output where the file system allows; else written through, and read from what the kernel
 * may hold: the reason says so). Adam's result is checked against one thread in fp64. */
CalOutcome cal_host_measure(const CalPoint *point, const char *folder, double seconds, CalSample *ret_sample,
                            char *reason, size_t reason_size);

/* Processors that this process may run on: a batch system gives a job some of the node's. */
int cal_host_processors(void);
/* Processors that have memory of their own, by "physical id"; 1 where the kernel does not say. */
int cal_host_sockets(void);
/* The processor's name as the kernel gives it; "?" elsewhere. */
void cal_host_name(char *ret_name, size_t size);

/* The threads that this one starts run where the PCI device `bus_id` ("0000:18:00.0") is local, until it is called with
 * NULL; pinned memory comes from there too. Without such a list (`sys`: /sys) nothing happens. False: nothing was bound. */
bool cal_host_bind(const char *sys, const char *bus_id);

#ifdef __cplusplus
}
#endif

#endif
