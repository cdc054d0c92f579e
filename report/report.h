/* report/report.h - what a run found, as one struct, and the ways to print it.
 *
 * report_run() simulates; the report_write_*() functions only format. Key names and meanings follow
 * docs/REPORT.md (the JSON keys are a contract).
 */
#ifndef ORR_REPORT_REPORT_H
#define ORR_REPORT_REPORT_H

#include "costmodel/flops.h"
#include "sim/engine.h"
#include "step/kinds.h"
#include "program/plan.h"
#include "spec/load.h"
#include "traffic/traffic.h"

typedef struct ReportStage { /* one pipeline rank */
    int stage;
    double weights_bytes, gradients_bytes, optimizer_bytes, activations_bytes, workspace_bytes;
    double reserved_bytes, peak_bytes;
    double host_bytes; /* in the host's memory, most at once */
    double
        capacity_bytes; /* of a GPU of this stage; where stages are of several types, of the one with least room */
    double peak_time_s;
} ReportStage;

typedef enum {
    REPORT_MEMORY_NONE, /* does not fit */
    REPORT_MEMORY_EDGE, /* fits by the prediction, which published runs have exceeded by more than is left */
    REPORT_MEMORY_FITS
} ReportMemory;

/* Bytes of a node's memory and disks, and how busy the ways to them are, with all GPUs that share them: shares of the step. */
typedef struct ReportOffload {
    bool on, host_fits, nvme_fits;
    double host_bytes, host_capacity_bytes, nvme_bytes, nvme_capacity_bytes;
    double in_busy_frac, out_busy_frac, host_busy_frac, read_busy_frac, write_busy_frac;
    int window_layers, direct_layers;
} ReportOffload;

/* The prediction as the user's own measured runs correct it: ledger/own.h. */
typedef struct ReportOwn {
    int runs; /* 0: none were given */
    double factor, step_s, low_s, high_s;
} ReportOwn;

/* Where the days of the whole run go, once what fails in it is in them. Keys and labels: report/effective.h. */
typedef enum {
    REPORT_LIFE_COMPUTE,    /* the days that steps take */
    REPORT_LIFE_SLOW,       /* what slow GPUs and links make of them beyond that */
    REPORT_LIFE_INPUT,      /* steps wait for it */
    REPORT_LIFE_EVALUATION, /* passes that only evaluate */
    REPORT_LIFE_SKIPPED,    /* steps that train nothing */
    REPORT_LIFE_CHECKPOINT, /* training stops for them */
    REPORT_LIFE_FAILURES,   /* work done again */
    REPORT_LIFE_RESTARTS,   /* until the run goes on */
    REPORT_LIFE_LOADING,    /* of them: reading checkpoints back */
    REPORT_LIFE_WAITING,    /* for a spare node */
    REPORT_LIFE_DEGRADED,   /* what steps on fewer nodes take longer */
    REPORT_LIFE_COUNT
} ReportLife;

typedef struct ReportEffective {
    bool told;                           /* else nothing below is known */
    double days, goodput;                /* goodput: days of computing over all days */
    double part_days[REPORT_LIFE_COUNT]; /* add up to days */
    double interruptions;
    bool faults_assumed, storage_assumed; /* the scenario does not say them */
    const char *faults, *storage;         /* names; "" where the scenario says rates without a name */
    const char *why_not; /* assumed faults under which the run would not end; NULL: told, or not asked */
} ReportEffective;

/* The step where GPUs and links are not all alike, filled by report/jitter.h. Gains are of tokens/s; NAN: not known. */
typedef struct ReportJitter {
    bool told;
    int steps; /* simulated */
    double mean_s;
    int64_t p50_ps, p99_ps, worst_ps, simulated_ranks;
    int slowest_gpu, slowest_node, slowest_pipeline_rank, slowest_data_rank;
    double slowest_frac; /* of its speed that the slowest GPU lacks for good */
    const double *
        lacks_frac; /* [pipeline rank x data + data rank]: likewise, of the slowest GPU there; in the arena */
    double evict_gain_frac, backup_gain_frac, async_gain_frac;
} ReportJitter;

/* Steps that a measured one would be without its stragglers, filled by report/measured.h. */
typedef struct ReportMeasured {
    bool told;
    int64_t even_ps;                                 /* all passes alike */
    int64_t stages_ps, replicas_ps, microbatches_ps; /* only these differ */
} ReportMeasured;

/* What a step takes beyond the one that was simulated, where all GPUs are alike and nobody waits for input. */
typedef enum {
    REPORT_LATE_STRAGGLERS, /* for slow GPUs and links: the mean over steps */
    REPORT_LATE_LENGTHS,    /* for the rank whose texts are longest: the mean over steps */
    REPORT_LATE_INPUT,      /* for its input */
    REPORT_LATE_COUNT
} ReportLate;

/* Nodes of one kind in a mixed cluster, and what the step makes of them, filled by report/groups.h. */
typedef struct ReportGroup {
    const char *name, *accelerator; /* borrowed from the Spec */
    int nodes, replicas;            /* replicas: of the model, that have a rank here */
    int64_t gpus;
    int first_stage, last_stage;   /* pipeline ranks, the least and the largest */
    int least_layers, most_layers; /* of those */
    int least_microbatches, most_microbatches;
    double idle_frac;   /* of the step, mean over its GPUs: nothing runs */
    double waited_frac; /* of the step, mean over its GPUs: for other stages, replicas and messages */
    double room_bytes;  /* that the fullest of its GPUs leaves; below 0: lacks */
} ReportGroup;

/* A step's input, filled by report/input.h. */
typedef struct ReportInput {
    bool told, binds, cached;
    int readers;                    /* nodes that read */
    double bytes_per_s;             /* that steps need */
    double tokens_per_s;            /* that reach the GPUs at most ... */
    const char *stage;              /* ... because of this */
    double fetch_s, wait_s;         /* a step's input, and what a step waits for it */
    double eval_frac, skipped_frac; /* evaluation over training time; steps that train nothing */
} ReportInput;

/* A size of a step within training.batch_schedule. */
typedef struct ReportBatch {
    int global_batch, sequence_length;
    double tokens, step_s, days;
} ReportBatch;

typedef struct Report {
    const Spec *spec;         /* borrowed */
    const SpecSource *source; /* borrowed; may be NULL */
    bool verbose;             /* text lists every defaulted field, not only how many */
    double parameters, active_parameters;
    double trained_parameters; /* all, or those of adapters */
    int gpus;
    bool fits;
    bool textbook;                      /* as ReportOptions asked */
    double short_bytes;                 /* how much the fullest stage lacks; 0 when it fits */
    int64_t step_ps;                    /* as it will be: simulated, and what makes it late */
    int64_t late_ps[REPORT_LATE_COUNT]; /* of step_ps */
    double tokens_per_s, tokens_per_s_per_gpu, model_flops_per_s_per_gpu, mfu, hfu;
    CostMfuByConvention by_convention;
    double bubble_frac;
    double interval_low_s, interval_high_s, interval_coverage; /* coverage 0: no interval */
    double interval_widening;                                  /* 1, or how many times wider: never seen */
    const char *interval_class;                                /* the comparable runs: "dense" ... */
    int interval_runs;                                         /* how many of them were published */
    ReportOwn own;
    const char *const *outside; /* in what the run lies outside all published ones; text for people */
    int outside_count;
    int64_t
        part_ps[SIM_PART_COUNT]; /* of the critical rank; with bubble_ps and late_ps they add up to step_ps */
    int64_t bubble_ps;
    double capacity_bytes, peak_bytes, reserved_bytes; /* of the fullest stage */
    double needed_bytes;                               /* peak and context: what must fit */
    ReportMemory memory_verdict;                       /* by needed_bytes alone until ledger_memory_fill() */
    double reserve_bytes;                              /* kept free for what predictions miss; 0: none */
    double memory_odds;                                /* that it fits, by published runs; NAN: not known */
    double
        seen_frac; /* of the GPU's memory: 98th percentile of measured less predicted peak, allocators' caches included */
    int reserve_runs;     /* published runs that the reserve comes from; 0: none, or it was asked for */
    bool reserve_own;     /* they are of the framework */
    bool reserve_doubled; /* none of them is, nor is any other published memory */
    ReportStage *stages;
    int stage_count;
    ReportOffload offload;
    double *context_work; /* of each context rank over the mean, in one causal sequence */
    int context_ranks;
    double context_busiest,
        expert_busiest;  /* most work over the mean; rows of the busiest expert rank over it */
    double dropped_frac; /* of routed rows, that find their expert full */
    double days, gpu_hours, usd,
        kwh; /* 0 when tokens (or prices) are not given; the last three of effective.days
                                       * where they are told */
    double epoch_rank_samples, epoch_steps, epoch_s; /* of training.samples: of a rank; 0: not given */
    double step_w, waiting_w; /* of all GPUs with hosts and PUE: over a step, and while none computes */
    ReportBatch *batches; /* of training.batch_schedule, by time, the run's own last; NULL: there is none */
    int batch_count;
    double co2_kg;      /* of kwh; 0: cluster.co2_g_per_kwh is not given */
    double waiting_kwh; /* of kwh: beyond steps, at that power; 0 without effective days */
    ReportEffective effective;
    ReportJitter jitter;
    ReportMeasured measured;
    ReportInput input;
    ReportGroup groups[SPEC_MOST_GROUPS];
    SimKinds kinds; /* count 0: all nodes are alike, and nothing was measured */
    const GPtrArray
        *chosen; /* char*, borrowed: "training.micro_batch=2", what each "auto" became; NULL: none */
    TrafficSummary network; /* on: cluster.network.fidelity is flow */
    SimPlan plan;           /* in the run's arena */
    SimProgram program;     /* likewise: traces and checks read them */
    SimResult result;
} Report;

typedef struct ReportOptions {
    bool unfold, check;
    bool analytic; /* whatever cluster.network.fidelity says: what a search proves its answer about */
    bool ideal;    /* GPUs are alike, nobody waits for input */
    bool textbook; /* stages alike, and nothing but their passes (step/textbook.h) */
    const struct Report
        *like;       /* a run of the same jitter: slow GPUs take the share of the step that they take
                                * there, and are not simulated again; NULL: they are */
    bool links;      /* what every link of a fabric carries, for report_write_links() */
    int steps;       /* that whoever asks will simulate of scenarios like this one; 0: this one alone */
    unsigned record; /* SimRecord, in addition to what the report itself needs */
} ReportOptions;

/* Spec must be complete (no "auto"). Results live in `arena`. */
bool report_run(const Spec *spec, const SpecSource *source, const ReportOptions *options, OrrArena *arena,
                Report *ret_report, GError **error);

/* Another step of the scenario on even GPUs with all their input, `even_ps`, with what makes this report's late: slow GPUs by
 * their share, input by the time that it takes. */
int64_t report_late_like(const Report *report, int64_t even_ps);

/* Power of a step, and with tokens the days, GPU-hours, money and energy of computing: from the Spec, gpus, tokens_per_s,
 * bubble_frac, step_ps and late_ps. */
void report_costs_fill(Report *report);
/* Energy, and with it money (`hours_usd`: of the GPU-hours) and CO2. */
void report_energy_fill(Report *report, double hours_usd, double kwh);
/* Money of the GPU-hours alone. */
double report_hours_usd(const Report *report);

/* The step that was simulated: nothing makes it late. */
static inline int64_t report_ideal_ps(const Report *report)
{
    int64_t ps = report->step_ps;
    for (int late = 0; late < REPORT_LATE_COUNT; late++)
        ps -= report->late_ps[late];
    return ps;
}

/* The step of even GPUs with all their input: simulated, with the wait for the longest texts, which is the layout's own. */
static inline int64_t report_even_ps(const Report *report)
{
    return report_ideal_ps(report) + report->late_ps[REPORT_LATE_LENGTHS];
}

/* Ranks that were simulated of each pipeline rank. */
static inline int report_ranks_a_stage(const Report *report)
{
    return report->result.ranks / report->plan.shape.ranks;
}

/* "fits", "at the edge", "does not fit" */
const char *report_memory_word(ReportMemory verdict);
/* How full the fullest GPU is, everywhere in print: with what the allocator holds besides, or without where that alone would
 * not fit. In words, "31.2 of 79.1 GiB", of the tier of a node where that is too small; g_free. */
double report_occupied_bytes(const Report *report);
char *report_occupied(const Report *report);

/* The whole report in a format of the table (report/formats.c): words, text first, and what writes it. */
extern const OrrWords report_words_format;
void report_write(const Report *report, int format, GString *out);
/* What text, JSON and page say of the scenario and of the answer, a sentence each: spec_notes(), and a utilisation above the
 * peak, which times that were scaled or measured may ask for and no GPU reaches. `notes` frees its elements with g_free. */
void report_notes(const Report *report, GPtrArray *notes);

/* "stamp": version, hash of the scenario, presets, what was defaulted. */
void report_write_stamp(OrrJsonWriter *w, const SpecSource *source);
void report_write_text(const Report *report, GString *out);
void report_write_json(const Report *report, GString *out);
void report_write_csv(const Report *report, bool header, GString *out);
/* What of a trace is wanted, and where its text goes. */
typedef struct ReportTraceAsk {
    const bool *ranks; /* [rank_count]; NULL: all of those simulated */
    int rank_count;
    int64_t from_ps, to_ps; /* what lies in between, wholly or in part */
    /* Takes the text piece by piece; false: no more of it. */
    bool (*put)(const char *text, gsize length, void *data);
    void *data;
} ReportTraceAsk;

/* Chrome trace: pid = rank, tid = stream, counters for memory, flow arrows for sends. Needs spans recorded. */
void report_write_trace(const Report *report, const ReportTraceAsk *ask);
/* Allocations and frees of each rank's step, as PyTorch's memory snapshots have them; `from_ps` and `to_ps` do not count: a
 * level is the sum of all before. Needs spans recorded. docs/REPORT.md has the format. */
void report_write_snapshot(const Report *report, const ReportTraceAsk *ask);
/* time_s, rank, and bytes of each memory kind, one line a change. `steps` 0: of a step like all but the first; else of the
 * first so many, which needs spans recorded too. */
void report_write_memory(const Report *report, int steps, GString *out);
/* What a pipeline rank's memory is made of, by layer or by tensor: at its peak, or, with `steps`, line by line as it changes
 * over the first so many steps of training. Needs spans recorded. */
typedef enum { REPORT_MEMORY_BY_LAYER, REPORT_MEMORY_BY_TENSOR } ReportMemoryBy;
void report_write_memory_parts(const Report *report, ReportMemoryBy by, int steps, GString *out);
/* Every kernel and collective of each kind of layer, the embedding and the head, of one micro-batch on one rank: alone, in
 * seconds, with size, FLOPs and bytes. */
void report_write_kernels(const Report *report, GString *out);
/* Every link of the fabric that carries something in the step: from, to, tier, rate, bytes, part of the step that it is busy,
 * bytes by dimension. Needs ReportOptions.links; only the header without a fabric. */
void report_write_links(const Report *report, GString *out);

#endif
