/* cli/simulate.h - scenario file to report: what run, plot and their like begin with. */
#ifndef ORR_CLI_SIMULATE_H
#define ORR_CLI_SIMULATE_H

#include "ledger/memory.h"
#include "report/report.h"

/* Owns everything that the report borrows. */
typedef struct CliSimulation {
    Spec spec;
    SpecSource source;
    GPtrArray *chosen; /* char*: "parallel.tensor=8", what each "auto" became */
    OrrArena *arena;
    Report report;
} CliSimulation;

/* Loads scenario file `path` with `sets` (may be NULL), chooses what is "auto" (the fastest that fits) and
 * simulates; NULL with an error. */
CliSimulation *cli_simulate(const char *path, char **sets, const ReportOptions *options, GError **error);
/* The same with what is to be kept free of memory; `reserve` NULL: what the ledger says. */
CliSimulation *cli_simulate_reserved(const char *path, char **sets, const LedgerReserveAsk *reserve,
                                     const ReportOptions *options, GError **error);
void cli_simulation_free(CliSimulation *simulation);

#endif
