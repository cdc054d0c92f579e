/* report/validate.h - the ledger: published runs replayed, predicted beside measured.
 *
 * A measurement file is a list of rows (docs/REPORT.md, "Measurement files"). Every row is loaded, its "auto"
 * fields are chosen by the caller's chooser, simulated and compared. A row that cannot be simulated is
 * counted as skipped with its reason, never dropped.
 */
#ifndef ORR_REPORT_VALIDATE_H
#define ORR_REPORT_VALIDATE_H

#include "report/report.h"

typedef struct ValidateRow {
    char *id;
    int source; /* index into ValidateLedger.sources */
    bool full_confidence;
    double measured_step_s, predicted_step_s;             /* 0: none */
    double error_frac;                                    /* predicted / measured - 1 */
    double measured_memory_bytes, predicted_memory_bytes; /* by the row's memory_kind; 0: none */
    double memory_error_frac, memory_uncertainty_frac;
    char *memory_kind; /* NULL: no memory published */
    bool has_interval, inside_interval;
    bool fits;
    char *skipped; /* reason, or NULL */
    char *cell;    /* rows of one cell are comparable: model shape, accelerator, GPUs, batch, sequence */
} ValidateRow;

/* Fractions, not percent; NAN where there is nothing to average. */
typedef struct ValidateStats {
    int rows, skipped;
    double mape, median, p90, worst, bias, kendall_tau, memory_mape;
    int kendall_pairs, memory_rows;
} ValidateStats;

typedef struct ValidateSource {
    char *file;
    ValidateStats all, full; /* full: rows of confidence "full" only */
} ValidateSource;

typedef struct ValidateLedger {
    GPtrArray *rows;    /* ValidateRow* */
    GPtrArray *sources; /* ValidateSource*, one a file */
    ValidateStats overall;
    double macro_mape;        /* mean of the sources' mape */
    double interval_coverage; /* NAN: no row has an interval */
} ValidateLedger;

/* Copies `spec` with every "auto" chosen. */
typedef bool (*ValidateChoose)(const Spec *spec, Spec *ret_spec, GError **error);
/* Called after each row; may be NULL. */
typedef void (*ValidateProgress)(int done, int total, void *data);

/* Fails only when a file cannot be read or is not a list of rows. */
bool validate_files(const char *const *paths, int count, const char *const *sets, ValidateChoose choose,
                    ValidateProgress progress, void *progress_data, ValidateLedger *ret_ledger,
                    GError **error);
void validate_clear(ValidateLedger *ledger);

void validate_write_text(const ValidateLedger *ledger, bool every_row, GString *out);
void validate_write_json(const ValidateLedger *ledger, GString *out);
void validate_write_csv(const ValidateLedger *ledger, GString *out);

#endif
