/* calibrate/measure/meter.cuh - what the files of the meter over CUDA share. Internal to calibrate/. */
#ifndef ORR_CALIBRATE_METER_CUH
#define ORR_CALIBRATE_METER_CUH

#include <cuda_runtime.h>

#include "calibrate/measure/libraries.h"
#include "calibrate/measure/sweep.h"
#include "calibrate/measure/team.h"

#define METER_MAX_GPUS 16

struct Meter {
    KrnContext *context;
    cudaStream_t stream, side; /* on GPU 0 */
    void *flush;               /* larger than the L2 cache; null: caches stay warm */
    int64_t flush_bytes;
    CalNvml nvml;
    CalNccl nccl;
    char nccl_reason[160]; /* why there is none */
    int gpus;
    char bus_id[32];    /* of GPU 0 */
    const char *folder; /* of the files that are written and read */
    CalTeam team;       /* several processes, one rank each; team.ranks 1: this process has all ranks */
    /* Communicators of the last group size: of this process's ranks, a stream each. */
    int ranks, local_ranks;
    CalNcclComm comms[METER_MAX_GPUS];
    cudaStream_t streams[METER_MAX_GPUS];
};

/* Something to enqueue once on a stream; false: it failed, and says why. */
struct Work {
    virtual bool enqueue(cudaStream_t stream) = 0;
    virtual ~Work() {}
    char why[200] = "";
};

/* Seconds of each of the repeats between two events, after a warm-up, the L2 cache emptied before each when `cold`. Reads
 * NVML while the GPU is at work. */
CalOutcome meter_time(Meter *meter, Work *work, cudaStream_t stream, bool cold, double seconds,
                      CalSample *ret_sample, char *reason, size_t reason_size);

/* "what: CUDA's text"; clears the error. */
CalOutcome meter_failed(CalOutcome outcome, const char *what, cudaError_t error, char *reason,
                        size_t reason_size);

CalOutcome meter_kernel(Meter *meter, const CalPoint *point, double seconds, CalSample *ret_sample,
                        char *reason, size_t reason_size);
CalOutcome meter_latency(Meter *meter, const CalPoint *point, double seconds, CalSample *ret_sample,
                         char *reason, size_t reason_size);
CalOutcome meter_copy(Meter *meter, const CalPoint *point, double seconds, CalSample *ret_sample,
                      char *reason, size_t reason_size);
CalOutcome meter_collective(Meter *meter, const CalPoint *point, double seconds, CalSample *ret_sample,
                            char *reason, size_t reason_size);
CalOutcome meter_interference(Meter *meter, const CalPoint *point, double seconds, CalSample *ret_sample,
                              char *reason, size_t reason_size);

/* One collective over `ranks` GPUs: buffers of `bytes` on each of this process's, freed by the destructor. */
struct Collective {
    Meter *meter;
    const char *op;
    size_t count; /* fp32 elements of the whole buffer */
    int ranks;
    int first,
        local; /* this process has ranks first .. first + local - 1; none when it is not of the group */
    void *from[METER_MAX_GPUS], *to[METER_MAX_GPUS];
    Collective(Meter *meter, const char *op, double bytes, int ranks);
    ~Collective();
    /* SKIPPED: no NCCL, no memory, not that many GPUs. */
    CalOutcome open(char *reason, size_t reason_size);
    /* Enqueues the op on every rank's stream. */
    bool enqueue(char *why, size_t why_size);
    /* Until all have run; false: not within the team's timeout, a rank is gone. The communicators are then aborted. */
    bool wait(char *why, size_t why_size);
};
void meter_close_ranks(Meter *meter);
/* What all ranks make of a step: the first that could not do it says why. Broken lines break the sweep. */
CalOutcome meter_agree(Meter *meter, CalOutcome own, char *reason, size_t reason_size);
/* A product beside a collective, on every rank that takes part; see meter_collective. */
CalOutcome meter_beside_collective(Meter *meter, const char *op, double bytes, int ranks, CalSample *sample,
                                   char *reason, size_t reason_size);

/* What each of the first `ranks` ranks does for itself at the same time ("together_h2d"): one entry a rank in the sample. */
CalOutcome meter_together(Meter *meter, const char *op, double bytes, int ranks, double seconds,
                          CalSample *sample, char *reason, size_t reason_size);

/* Ranks above 0: does what rank 0's sweep asks for until it ends; false with a sentence when rank 0 is gone. */
bool meter_follow(Meter *meter, char *reason, size_t reason_size);
/* Rank 0: the sweep is over. */
void meter_dismiss(Meter *meter);

double meter_now_s();

/* How many of `count` GPUs, from the first on, are of the first one's kind; when not all are, `other` names the next. */
int meter_like_gpus(int count, char *other, size_t other_size);

#endif
