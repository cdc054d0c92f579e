/* ledger/validate.h - the ledger: published runs replayed, predicted beside measured.
 *
 * A measurement file is a list of rows (docs/REPORT.md, "Measurement files"). Every row is loaded, its "auto"
 * fields are chosen by the caller's chooser, simulated and compared. A row that cannot be simulated is
 * counted as skipped with its reason, never dropped.
 */
#ifndef ORR_LEDGER_VALIDATE_H
#define ORR_LEDGER_VALIDATE_H

#include "ledger/interval.h"
#include "ledger/memory.h"
#include "ledger/own.h"

typedef struct LedgerRow {
    char *id;
    int source; /* index into Ledger.sources */
    bool full_confidence;
    double measured_step_s, predicted_step_s;             /* 0: none */
    double error_frac;                                    /* predicted / measured - 1 */
    double measured_memory_bytes, predicted_memory_bytes; /* by the row's memory_kind; 0: none */
    double memory_error_frac, memory_uncertainty_frac;
    char *memory_kind;                  /* NULL: no memory published */
    bool has_interval, inside_interval; /* of time */
    double interval_low_s, interval_high_s;
    int residual; /* index into Ledger.residuals->rows; -1: no time to compare */
    bool fits;
    char *framework;                  /* of memory rows, as simulated; NULL: no memory to compare */
    double capacity_bytes;            /* of the row's GPU */
    ReportMemory memory_verdict;      /* with the reserve that `run` would keep */
    double reserve_bytes, seen_bytes; /* LedgerReserve's frac and seen_frac of its GPU */
    bool memory_assumed;
    char *note;          /* what of the row could not be read, NULL: nothing */
    char *skipped;       /* reason, or NULL */
    LedgerTraits traits; /* of rows with a time */
    char **said;         /* what the row's scenario says: "path=value" in order */
    char *cell; /* rows of one cell are comparable: model shape, accelerator, GPUs, batch, sequence */
} LedgerRow;

/* Fractions, not percent; NAN where there is nothing to average. */
typedef struct LedgerStats {
    int rows, skipped;
    double mape, median, p90, worst, bias, kendall_tau, memory_mape;
    int kendall_pairs, memory_rows, interval_rows;
    double coverage;   /* share of the rows with an interval that lie inside theirs */
    double half_width; /* mean of high / predicted - 1 */
} LedgerStats;

typedef struct LedgerSource {
    char *file;
    LedgerStats all, full; /* full: rows of confidence "full" only */
} LedgerSource;

/* What the memory reserve is worth on this ledger's rows with a measured memory. */
typedef struct LedgerMemory {
    int rows, seen;     /* seen: measured <= predicted + what runs were seen to take beyond */
    int needs, covered; /* of allocated peaks of published configurations: measured <= predicted + reserve */
    int left_out_covered; /* ... with the reserve of this ledger's other sources alone */
    int none, edge;       /* called "does not fit", "at the edge" */
} LedgerMemory;

typedef struct Ledger {
    GPtrArray *rows;                   /* LedgerRow* */
    GPtrArray *sources;                /* LedgerSource*, one a file */
    LedgerStats overall, overall_full; /* full: rows of confidence "full" only */
    LedgerStats overall_experts;       /* rows with a time whose model has experts */
    LedgerStats overall_adapters;      /* rows that train adapters: training.task lora or qlora */
    LedgerMemory memory;
    double macro_mape;          /* mean of the sources' mape */
    LedgerResiduals *residuals; /* of the rows with a time to compare; sources in the ledger's order */
    /* After ledger_leave_one_out(): */
    bool left_out;         /* intervals were made without the row's own source */
    double macro_coverage; /* mean of the sources' coverage */
    double corrected_mape; /* macro_mape, had each row been corrected by the bias of the other sources */
} Ledger;

/* Copies `spec` with every "auto" chosen. */
typedef bool (*LedgerChoose)(const Spec *spec, Spec *ret_spec, GError **error);
/* Called after each row; may be NULL. */
typedef void (*LedgerProgress)(int done, int total, void *data);

/* Intervals are those that `run` would print, from the shipped residuals (which hold the row itself where it
 * is part of the shipped ledger). Fails only when a file cannot be read or is not a list of rows. */
bool ledger_replay(const char *const *paths, int count, const char *const *sets, LedgerChoose choose,
                   LedgerProgress progress, void *progress_data, Ledger *ret_ledger, GError **error);
void ledger_clear(Ledger *ledger);

/* Replaces every row's interval by one made from the other sources of this ledger alone: what a prediction
 * of a new source is worth. Fails when there are too few sources. */
bool ledger_leave_one_out(Ledger *ledger, GError **error);

void ledger_write_text(const Ledger *ledger, bool every_row, GString *out);
void ledger_write_json(const Ledger *ledger, GString *out);
/* The memory reserve a framework: how many of its runs it covers, and how many are called what. */
void ledger_write_reserve(const Ledger *ledger, GString *out);
/* Coverage and width a source, after ledger_leave_one_out(). */
void ledger_write_left_out(const Ledger *ledger, GString *out);
void ledger_write_csv(const Ledger *ledger, GString *out);

/* What takes out of a row all that it says of its software but the name: for a second replay. */
extern const char *const ledger_defaults_sets[];
/* `stated` beside the replay of the same files with those: what naming a framework alone is worth. */
void ledger_write_defaults_text(const Ledger *stated, const Ledger *defaults, GString *out);
void ledger_write_defaults_json(const Ledger *stated, const Ledger *defaults, GString *out);

#endif
