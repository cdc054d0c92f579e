/* calibrate/measure/sweep.h - a sweep: points, how they are driven, and what is written. No CUDA here.
 *
 * A point is a table row: what is measured and at which sizes. A meter measures one point; the one over CUDA is in
 * calibrate/measure/meter.cu, tests bring their own. The driver keeps a journal beside the output, one JSON line a finished point,
 * so that a sweep that was killed goes on where it stopped; the output itself appears whole, at the end.
 */
#ifndef ORR_CALIBRATE_SWEEP_H
#define ORR_CALIBRATE_SWEEP_H

#include <glib.h>

#include "calibrate/measure/nvml.h"
#include "calibrate/nics.h"
#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    CAL_POINT_KERNEL,       /* `name` is a kernel of krn_find */
    CAL_POINT_DRIFT,        /* the same point again and again: do the clocks hold? */
    CAL_POINT_LATENCY,      /* launch, event, synchronise */
    CAL_POINT_COPY,         /* host to device and the like, GPU to GPU */
    CAL_POINT_COLLECTIVE,   /* NCCL over `gpus` GPUs */
    CAL_POINT_INTERFERENCE, /* a product beside a copy or a collective */
    CAL_POINT_TOGETHER,     /* what each of `gpus` ranks does for itself, all at once */
    CAL_POINT_HOST,         /* memory and arithmetic of the processor, files */
    CAL_POINT_KIND_COUNT
} CalPointKind;

typedef struct CalPoint {
    CalPointKind kind;
    const char *name;
    char id[128]; /* unique in a sweep */
    KrnShape shape;
    double bytes; /* of a copy, collective or file */
    int gpus;     /* ranks of a collective */
    int threads;  /* of a file: blocks under way at once; of the host's memory; 0: one a processor */
    int nodes;    /* that a collective spans; 0: one */
    bool shared;  /* its ranks share a GPU: no link is measured */
    int round;    /* 2 and later: measured before; 0: the first time */
} CalPoint;

typedef struct CalStamp {
    char device[128], uuid[64], driver[32], cuda[32], nccl[32], host[128], date[40], command[512];
    int gpus, sm_count, capability; /* 90: compute capability 9.0 */
    int nodes,
        ranks_per_node; /* a team of processes measures collectives alone; nodes 0: one process, everything */
    bool one_process;   /* that has all GPUs: its collectives are bound by its launches */
    bool shares_gpus;   /* NCCL puts several ranks on one GPU */
    double memory_bytes, l2_bytes;
    CalNics nics; /* of this node */
    CalGpuLimits limits;
    char cublaslt[32], cpu[128];
    char cudnn[32];              /* empty: attention by our own kernel, a floor */
    char transformer_engine[32]; /* its version; empty: its kernels are our own */
    char te_kernels[256];        /* that work here, a space between two */
    int cpus;                    /* that this process may use */
    int sockets;
    double dram_bytes; /* of the node */
} CalStamp;

#define CAL_MAX_SAMPLES 256

typedef struct CalSample {
    double seconds[CAL_MAX_SAMPLES]; /* one entry a repeat */
    int count;
    double flops, bytes;               /* of one repeat; 0 where they say nothing */
    double error_frac, tolerance_frac; /* against the CPU; tolerance 0: not checked */
    double first_s;                    /* of what is repeated until it is warm: the first pass */
    double parts_s;                    /* sum of the parts of a composed kernel; 0: none */
    double beside_s, other_s,
        other_beside_s; /* interference: the product beside, the other alone and beside */
    CalGpuState state;  /* in the middle of the repeats */
    bool replayed;      /* launches of a captured graph, not a pair of events each */
} CalSample;

typedef enum { CAL_MEASURED, CAL_SKIPPED, CAL_BROKEN } CalOutcome;

typedef struct CalMeter {
    void *self;
    /* Repeats the point for about `seconds`. SKIPPED and BROKEN say why; after BROKEN the sweep stops. */
    CalOutcome (*measure)(void *self, const CalPoint *point, double seconds, CalSample *ret_sample,
                          char *reason, size_t reason_size);
} CalMeter;

typedef struct CalSweepOptions {
    bool full;
    const char *only;   /* points whose id holds this text; NULL: all */
    const char *shapes; /* CSV of a scenario's kernels; NULL: the sweep's own sizes */
    const char *output; /* file; the journal is output.journal */
    bool quiet;         /* no progress */
    double seconds;     /* spent on a point; 0: see cal_point_seconds() */
} CalSweepOptions;

/* The points for this machine, CalPoint; `only` applied. Quick: about two minutes. */
GArray *cal_sweep_points(const CalStamp *stamp, const CalSweepOptions *options);

/* The points of a scenario: `path` is the CSV of `orrery run --kernels`. NULL with an error: there is nothing to measure. */
GArray *cal_sweep_points_of(const char *path, const CalStamp *stamp, const CalSweepOptions *options,
                            GError **error);

/* A product [m,k] x [k,n] of `size` {m, n, k}, with its id. */
void cal_point_gemm(const char *name, KrnMath math, KrnLayout layout, bool accumulate, int64_t groups,
                    const int64_t size[3], CalPoint *ret_point);

/* The same product with its fp8 sums outside of the tensor core, as gradients have them. */
void cal_point_precise(CalPoint *point);

/* Attention forward or backward, by our own kernel or cuDNN's, with its id. */
void cal_point_attention(const char *name, int64_t batch, int64_t seq, int64_t heads, int64_t kv_heads,
                         int64_t dim, bool causal, CalPoint *ret_point);

/* Repeats of a collective of `once_s` seconds a call within about `seconds`, each of `inner` calls between two looks at the
 * clock: five at least, unless that takes four times as long as there is: then two. Slow calls (8 GiB over a slow network)
 * are one a repeat.      Tested: unit/calibrate/test_calibrate_plan.c */
typedef struct CalRepeats {
    int inner, count;
} CalRepeats;
CalRepeats cal_plan_repeats(double once_s, double seconds);

/* What a point, and the sweep, will take: printed before it begins. Quick sweeps plan two minutes at most, full ones a
 * quarter of an hour. */
double cal_point_seconds(const CalSweepOptions *options);
double cal_point_estimate_s(const CalPoint *point, const CalSweepOptions *options);
double cal_sweep_estimate_s(const GArray *points, const CalSweepOptions *options);

/* Measures what the journal does not hold yet, then writes the output and removes the journal. */
bool cal_sweep_run(const CalMeter *meter, const CalStamp *stamp, const GArray *points,
                   const CalSweepOptions *options, GError **error);

/* The table of a finished sweep as JSON text, from the journal's lines (one string each, without the head). */
void cal_sweep_write(const CalStamp *stamp, const GArray *points, const GPtrArray *lines, GString *out);

/* One journal line: {"id", "section", "row"}. */
void cal_sweep_line(const CalStamp *stamp, const CalPoint *point, const CalSample *sample, GString *out);
void cal_sweep_skipped_line(const CalPoint *point, const char *reason, GString *out);
/* The point at which a sweep stopped; gone on with, it comes last, and after CAL_MOST_BREAKS it is skipped. */
void cal_sweep_broken_line(const char *id, const char *reason, GString *out);
#define CAL_MOST_BREAKS 2

/* A probe that is off by more than this from the median of all: the rows beside it are marked "unsteady". */
#define CAL_DRIFT_FRAC 0.03

typedef struct CalSummary {
    double median_s;
    double spread_frac; /* between the quartiles, over the median */
    int outliers;       /* further than 5 scaled median deviations from the median */
    double drift_frac;  /* median of the last quarter over that of the first, minus 1 */
} CalSummary;

CalSummary cal_summarise(const double *seconds, int count);

const char *cal_math_word(KrnMath math);
const char *cal_layout_word(KrnLayout layout);

#ifdef __cplusplus
}
#endif

#endif
