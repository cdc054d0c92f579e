/* plan/plan.h - how many GPUs for a deadline or a budget; days, money and energy for a number of GPUs.
 *
 * A plan varies the data-parallel degree of one scenario and keeps everything else: model degrees, global batch (or one
 * within a range), schedule. The micro-batch shrinks where the share of the batch that a replica gets is no multiple of
 * it. Between the last count that misses and the first that keeps, further counts are tried. Every point is simulated;
 * the textbook estimate stands beside it and its distance is split into named terms.
 * Deadlines and costs go by days with failures, checkpoints and restarts in them where these are asked for.
 */
#ifndef ORR_PLAN_PLAN_H
#define ORR_PLAN_PLAN_H

#include "base/team.h"
#include "campaign/effective.h"
#include "ledger/own.h"
#include "ledger/memory.h"
#include "search/goal.h"
#include "spec/load.h"

typedef struct PlanPoint {
    int gpus, nodes;
    int microbatches, global_batch;
    char *reason; /* why it cannot be simulated; NULL: it was */
    Spec *spec;   /* all that was simulated; NULL: nothing */
    bool fits;
    ReportMemory memory_verdict;
    double memory_odds; /* NAN: not known */
    double short_bytes; /* 0 when it fits */
    double step_s, tokens_per_s, tokens_per_s_per_gpu, mfu, hfu, bubble_frac;
    double days, days_low, days_high; /* low and high 0: no interval */
    double gpu_hours, usd, kwh;       /* usd 0: no price; kwh 0: no power; of effective.days where told */
    double co2_kg;                    /* of kwh; 0: cluster.co2_g_per_kwh is not given */
    double committed_usd;      /* of whole terms (PlanTerms), without electricity; 0: paid by the hour */
    double power_w;            /* at the boards' limits, with hosts and cooling; 0: not known */
    double racks;              /* not rounded; 0: cluster.rack_gpus is not given */
    int paid_gpus;             /* that are rented and powered: `gpus`, or whole racks */
    ReportEffective effective; /* its why_not is the point's own */
    double efficiency_frac;    /* tokens/s a GPU over the most of any point that fits */
} PlanPoint;

/* Where the simulated days differ from the textbook's: the textbook's days and these add up to the simulated. */
typedef struct PlanTerm {
    const char *key, *label;
    double days;
} PlanTerm;

#define PLAN_TERM_MAX (SIM_PART_COUNT + REPORT_LATE_COUNT + 3)

/* 6 P T / (X t), by hand: no simulation. */
typedef struct PlanTextbook {
    double parameters;          /* P: active ones of a mixture of experts */
    double flops_per_s_per_gpu; /* X, assumed */
    bool rate_given;            /* else half of the dense peak */
    double gpus;                /* for the deadline, not rounded; 0: no deadline */
    int gpus_rounded;           /* the next whole number */
    int at_gpus;                /* the point that the days below and the terms are for; 0: none */
    double days;                /* 6 P T / (n X) */
    double attention_days;      /* (6 P + 12 L heads d s) T / (n X): attention counted, not halved */
    double recompute_days;      /* 8 P T / (n X) */
    PlanTerm terms[PLAN_TERM_MAX];
    int term_count;
} PlanTextbook;

#define PLAN_YEAR_HOURS 8766.0

/* How the GPUs are paid. */
typedef struct PlanTerms {
    const char *name;  /* "reserved 1 year"; NULL: as the scenario says */
    double years;      /* that the price commits to; 0: by the hour */
    bool paid_in_full; /* money counts whole terms, whatever the run leaves of them */
    bool hourly;       /* on demand */
} PlanTerms;

/* One kind of GPU. */
typedef struct Plan {
    char *name;          /* that a file of machines gives it, with its terms; NULL: what the next two say */
    const char *machine; /* the same without its terms */
    PlanTerms terms;
    char *accelerator, *cluster; /* names; cluster may be "" */
    const char *framework;       /* training program that was named for it; NULL: the scenario's */
    const SpecSource *source;    /* that `asked` was loaded with; NULL: the page's */
    char *reason;                /* why nothing was planned on it; NULL: it was */
    double memory_bytes, peak_flops_per_s, usd_per_gpu_hour, pue, power_w_per_gpu;
    bool host_power_known;       /* power_w_per_gpu holds a share of the host */
    int gpus_per_node, own_gpus; /* own_gpus: of the scenario as written */
    GArray *points;              /* PlanPoint, by rising GPU count */
    int chosen;                  /* index of the answer; -1: no point does it */
    int fastest;                 /* index of the fastest that fits; -1: none fits */
    bool partial;                /* stopped: counts are missing */
    char *cluster_json; /* what stands for the scenario's cluster in a row's scenario; NULL: that itself */
    Spec *asked;        /* with this kind of GPU */
    PlanTextbook textbook;
} Plan;

typedef struct PlanOptions {
    double deadline_s, budget_usd; /* 0: not asked */
    double power_w;  /* that GPUs with their share of hosts and cooling may draw; 0: not asked */
    SearchFor by;    /* the answer is the least of these; the step: as plan_run() says */
    const int *gpus; /* the counts to look at; NULL: every one that the batch allows */
    int gpus_count;
    int batch_low, batch_high; /* the global batch may move between them; 0: it stays */
    LedgerReserveAsk reserve;
    PlanTerms terms;
    bool whole_racks;         /* GPUs are rented, powered and paid by whole racks (cluster.rack_gpus) */
    const char *cluster_json; /* of this kind of GPU; NULL: the scenario's own cluster */
    double textbook_flops_per_s, textbook_parameters; /* 0: see PlanTextbook */
    const CampaignAssumed *assumed;                   /* NULL: no failures, checkpoints and restarts */
    const LedgerResiduals *residuals; /* of measured runs, for the days' interval; may be NULL */
    const LedgerOwnRun *own;          /* one's own measured runs, which correct steps, days and costs */
    int own_count;
    const OrrTeam *team; /* processes that choose what is "auto" together, alike; NULL: this one alone */
    int jobs;            /* threads of each; 0: all cores */
    void (*progress)(int done, int total, void *data); /* may be NULL */
    void *progress_data;
    OrrStop stop; /* ends with the counts that are done */
} PlanOptions;

/* Plans `asked` ("auto" fields are chosen anew at every point). With a deadline the answer is the fewest GPUs that
 * fit and keep it (and the budget); with a budget or a limit of power alone the fastest that keeps it; with neither the scenario's own
 * count, or the only one of options->gpus. With options->by days, cost or energy it is the count with the least of them that
 * keeps what is asked, and "auto" fields are chosen by it. Fails when the scenario names no tokens, or a budget no price, or where one
 * node draws more than the limit. */
bool plan_run(const Spec *asked, const PlanOptions *options, Plan *ret_plan, GError **error);
void plan_clear(Plan *plan);
/* A kind of GPU that drops out of several, without points. */
void plan_drop(const Spec *asked, const GError *reason, Plan *ret_plan);

/* Whether some of `plans` was planned; else an error with the first's reason. */
bool plan_any(const Plan *plans, int count, GError **error);

/* What `gpus` of the scenario draw at their boards' limits, with hosts' shares where given and cooling [W]. */
double plan_power_w(const Spec *asked, int gpus);

/* GPUs that are rented and powered for `gpus` of them. */
int plan_paid_gpus(const Spec *asked, int gpus, bool whole_racks);
/* GPU-hours, money, energy and CO2 of point->paid_gpus, from a report of its GPUs. */
void plan_pay(const Report *report, const PlanOptions *options, PlanPoint *point);
/* Days that a term has to be used for to cost less than the machine by the hour; 0: there is no such term. */
double plan_days_to_pay(const Plan *term, const Plan *hourly);

/* The days that deadlines are held against: effective ones where they are told; INFINITY where it would not end. */
double plan_days(const PlanPoint *point);

/* "h100-sxm5-80gb, dgx-h100, torchtitan": accelerator, cluster, program, as far as they are named; g_free. */
char *plan_name(const Plan *plan);

/* Nearest GPU counts below and above `gpus` that keep the question's limits and can be simulated; 0: none. */
void plan_nearest_counts(const Plan *plan, const PlanOptions *options, int gpus, int *ret_below,
                         int *ret_above);

/* Several kinds of GPU side by side: `plans` of one scenario and one question. */
typedef struct PlanPage {
    const Spec *spec;         /* of the first plan */
    const SpecSource *source; /* may be NULL */
    const PlanOptions *options;
    const Plan *plans;
    int count;
    bool partial; /* stopped: counts of some plan, or whole plans behind these, are missing */
} PlanPage;

void plan_write_text(const PlanPage *page, GString *out);
/* Fails only where a row's scenario cannot be written. */
bool plan_write_json(const PlanPage *page, GString *out, GError **error);
void plan_write_csv(const PlanPage *page, GString *out);

#endif
