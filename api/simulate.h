/* api/simulate.h - scenario file to report: what run, plot and their like begin with. */
#ifndef ORR_API_SIMULATE_H
#define ORR_API_SIMULATE_H

#include "api/input.h"
#include "base/stop.h"
#include "campaign/effective.h"
#include "ledger/memory.h"
#include "ledger/own.h"
#include "report/report.h"
#include "workload/workload.h"

/* Owns everything that the report borrows. */
typedef struct ApiSimulation {
    Spec spec;
    SpecSource source;
    GPtrArray *chosen; /* char*: "parallel.tensor=8", what each "auto" became */
    OrrArena *arena;
    Report report;
    Workload *workload; /* in the arena: the loop that the step is part of; NULL: the scenario has none */
} ApiSimulation;

/* What ships beside the presets and every simulation reads: for many of them, once. Read-only, for any thread. */
typedef struct ApiShipped {
    LedgerResiduals *residuals;
    CampaignAssumed assumed;
    LedgerOwnRun *own; /* one's own measured runs */
    int own_count;
} ApiShipped;

/* `live`: with what days with failures need. `own_runs`: a file of measured runs, replayed here; NULL: none. */
bool api_shipped_load(bool live, const char *own_runs, ApiShipped *ret_shipped, GError **error);
void api_shipped_clear(ApiShipped *shipped);

/* Loads scenario file `path` with `sets` (may be NULL), chooses what is "auto" (the fastest that fits) and
 * simulates; NULL with an error. */
ApiSimulation *api_simulate(const char *path, char **sets, const ReportOptions *options, GError **error);
/* The same with what is to be kept free of memory; `reserve` NULL: what the ledger says. */
ApiSimulation *api_simulate_reserved(const char *path, char **sets, const LedgerReserveAsk *reserve,
                                     const ReportOptions *options, GError **error);
/* The same from wherever the scenario is. */
ApiSimulation *api_simulate_input(const ApiInput *input, char **sets, const LedgerReserveAsk *reserve,
                                  const ReportOptions *options, GError **error);
/* The same with what ships already read; what is chosen ends early when `stop` (may be NULL) says so. */
ApiSimulation *api_simulate_shipped(const ApiInput *input, char **sets, const LedgerReserveAsk *reserve,
                                    const ReportOptions *options, const ApiShipped *shipped,
                                    const OrrStop *stop, GError **error);
/* Days with what fails in them into the report, and the costs of those; `where` names the scenario in errors. */
bool api_simulation_live(const char *where, ApiSimulation *simulation, GError **error);
bool api_simulation_live_shipped(const char *where, ApiSimulation *simulation, const ApiShipped *shipped,
                                 GError **error);
void api_simulation_free(ApiSimulation *simulation);

#endif
