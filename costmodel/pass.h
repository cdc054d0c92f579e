/* costmodel/pass.h - seconds of an op list: kernels in a row, collectives exposed or beside a GEMM, and
 * the host that has to launch them. */
#ifndef ORR_COSTMODEL_PASS_H
#define ORR_COSTMODEL_PASS_H

#include "costmodel/op_seconds.h"

typedef struct CostTime {
    double compute_s;
    double comm_s[COST_COMM_COUNT];         /* exposed */
    double host_s;                          /* the GPU waits for launches */
    double launch_wait_s;                   /* of host_s, what a host that was ahead would not cost */
    double slack_s;                         /* the GPU is still busy when the host has launched all of it */
    double scale_up_bytes, scale_out_bytes; /* sent by this rank */
} CostTime;

/* Which ops of a forward list run again before the backward. */
typedef enum {
    COST_RECOMPUTE_OP_NONE,
    COST_RECOMPUTE_OP_ALL,
    COST_RECOMPUTE_OP_SOME,
    COST_RECOMPUTE_OP_COUNT
} CostRecomputeExtent;

/* How much is recomputed of layer `from` of a model stage of `layers`, counted from 0; returns the first behind it of which
 * more or less is. */
int cost_recompute_run(const SpecRecompute *recompute, int from, int layers, CostRecomputeExtent *ret_extent);
/* How much of this layer is recomputed: `layer_in_stage` counts from 0 within its model stage. */
CostRecomputeExtent cost_recompute_extent(const Spec *spec, int layer_in_stage);
/* COST_RECOMPUTE_OP_SOME: whether `ops->op[index]` of the forward list runs again. */
bool cost_recomputes_op(const Spec *spec, const CostOps *ops, int index);
/* The same of one of its products, where it keeps its parts apart. */
bool cost_recomputes_product(const Spec *spec, const CostOps *ops, int index, int product);
/* Whether it does with any extent; a framework may stop all of them behind the last tensor that the backward needs. */
bool cost_runs_again(const Spec *spec, const CostOps *forward, int index, CostRecomputeExtent extent);
/* The forward as recomputation runs it, in the same places: `ret_again` which ops do; where linear layers of one op are
 * apart, the op has those that do. */
void cost_again_ops(const Spec *spec, const CostOps *forward, CostRecomputeExtent extent, CostOps *ret_ops,
                    bool ret_again[COST_MAX_OPS]);

/* Seconds of `pass`'s list on this rank. A chain takes the longer of its GPU time and its launches. */
CostTime cost_time_ops(const CostShape *shape, const CostOps *ops, CostPass pass);
/* The same of the ops that recomputation runs again. */
CostTime cost_time_recompute(const CostShape *shape, const CostOps *forward, CostRecomputeExtent extent);

/* How a collective and the product that it runs beside share the GPU. */
typedef enum {
    COST_BESIDE_NOTHING,  /* compute waits for it; all that is not a collective */
    COST_BESIDE_SMS,      /* takes `sm_frac` of the SMs while it runs */
    COST_BESIDE_PIECES,   /* the product is cut in `parts`, each behind its transfer */
    COST_BESIDE_OWN_PART, /* the rank's own part of the product runs beside it, the others behind it */
    COST_BESIDE_LATER,    /* the product's blocks wait for the SMs that it takes */
    COST_BESIDE_NETWORK   /* another collective, on the other network */
} CostBeside;

/* One op of a list as the streams of a GPU and its host see it. */
typedef struct CostPassStep {
    bool runs;
    double gpu_s;  /* kernels, or the collective alone */
    double gap_s;  /* between kernels, in all */
    double lost_s; /* what its kernels last longer beside exchanges that hide: no part of gpu_s */
    int launches;  /* by the host; 0: a graph's */
    double launch_s;
    double check_s; /* of the host, before the launch of a collective */
    double idle_s;  /* the GPU waits for the host behind it */
    double wait_s;  /* streams wait for each other's events where compute waits for the collective */
    CostBeside beside;
    int under; /* step that it runs beside */
    double sm_frac;
    int parts;
    double part_s; /* PIECES: one of the product's parts; OWN_PART: the rank's own */
    double rest_s; /* OWN_PART: what is multiplied when all has arrived */
} CostPassStep;

typedef struct CostPassSteps {
    CostPassStep step[COST_MAX_OPS];
    int count;
    bool blocking; /* the host waits for each kernel */
    bool hidden;   /* exchanges of experts hide beside another micro-batch: no part of these steps */
} CostPassSteps;

/* The ops of `pass`'s list one by one; `again`: only those that recomputation runs (cost_again_ops()); NULL: all. What
 * cost_time_ops() sums, for a program that simulates it (tests/unit/pass_program.h). */
void cost_pass_steps(const CostShape *shape, const CostOps *ops, const bool *again, CostPass pass,
                     CostPassSteps *ret_steps);

/* Host seconds of the check of one collective of `ranks`: a barrier through the first rank (2 messages) and two rings of
 * n - 1, all small. 0 where hosts do not check, or of one rank. Source: [PyTorchChecks] */
double cost_collective_check_s(const Spec *spec, int ranks);

/* Where host and GPU begin together, so that neither is ahead by what lies before. */
typedef enum {
    COST_HOST_SYNC_NONE,
    COST_HOST_SYNC_FORWARD, /* before every forward; or no backward lies before one */
    COST_HOST_SYNC_PASSES,  /* before every forward and every backward */
    COST_HOST_SYNC_IN_ORDER /* before the only forward; all weight gradients come behind all input gradients */
} CostHostSync;

/* A host that launches ahead of the GPU in one pass of a layer has that much less to make up in the next: over
 * `passes` of one layer the GPU waits only for what launches take beyond its own time in all of them. Recomputation
 * uses what the others leave and gives nothing, so that those do not depend on it. Where they `meet` before every
 * forward, a forward's waits stay and what it is ahead by serves the backward, unless they meet again before that. In order a
 * pass is served by those before it alone: only launches that the host made before the GPU reached them cost no wait. */
void cost_time_run_ahead(CostTime passes[COST_PASS_COUNT], CostTime *recompute, CostHostSync meet);

double cost_time_total_s(const CostTime *time);

#endif
