/* calibrate/fit/recorded.h - measurements that other tools wrote, as one table of rows. No CUDA here.
 *
 * Read are: a table as orrery-calibrate writes it (calibrate/fit/table.h, calibrate/fit/collectives.h), a bare list of collective
 * rows, nccl-tests' text and JSON, and GEMMs as CSV with a head line that names m, n, k and time_us or tflops (also dtype,
 * layout, accumulate, batch, gpu, source).
 * Rows that name no accelerator, or one that no preset describes (a device's own name, as a bare node reports it), get
 * `accelerator`; when that is NULL too, the preset that fits the device's name, its SMs and its memory.
 */
#ifndef ORR_CALIBRATE_RECORDED_H
#define ORR_CALIBRATE_RECORDED_H

#include "base/json.h"

/* Rows that no fit and no comparison may see, whatever the format: dropped at this door. */
typedef enum {
    CAL_LEFT_OUT_WRONG,    /* "correct": false, the kernel computed something else */
    CAL_LEFT_OUT_UNSTEADY, /* "unsteady": true, measured while the clocks did not hold */
    CAL_LEFT_OUT_ALONE,    /* a collective of one GPU */
    CAL_LEFT_OUT_NO_TIME,  /* a time that nothing takes: cal_recorded_is_time() */
    CAL_LEFT_OUT_COUNT
} CalLeftOut;

/* Whether a kernel, copy or exchange can take so many microseconds: from 50 ns to an hour. */
bool cal_recorded_is_time(double us);

/* How many rows of a table that cal_recorded_open() gave were left out, a line a reason. */
void cal_recorded_left_out(const OrrJson *root, GString *log);

#define CAL_RECORDED_MOST_BYTES ((size_t)256 << 20)

/* The table as an object of lists. What was read is said in `log` (may be NULL). */
bool cal_recorded_open(const char *path, const char *accelerator, OrrJsonDoc **ret_doc, GString *log,
                       GError **error);

/* The same of a text at hand; `name` says where it came from: nccl-tests logs are also told apart by it. */
bool cal_recorded_parse(const char *text, gsize length, const char *name, const char *accelerator,
                        OrrJsonDoc **ret_doc, GString *log, GError **error);

/* The accelerators' preset that a device's own name speaks of ("NVIDIA H200", "NVIDIA A100-SXM4-80GB"); SMs and bytes of
 * memory tell apart what the name does not, 0 where not known. g_free; NULL: none. */
char *cal_accelerator_of_device(const char *device_name, double sm_count, double memory_bytes);

#endif
