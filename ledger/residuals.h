/* ledger/residuals.h - how far published runs lay from their predictions, as a list in a file.
 *
 * Residuals are log(measured / predicted) of published runs, each with what makes it comparable to others; of
 * memory, what was measured beyond the prediction as a share of the GPU's memory.
 * `orrery validate --residuals` writes them; scenarios/residuals.json ships those of the whole ledger.
 * What follows from them is interval.h's and memory.h's.
 */
#ifndef ORR_LEDGER_RESIDUALS_H
#define ORR_LEDGER_RESIDUALS_H

#include "report/report.h"

/* By what is known least; the last that holds wins: an MoE run with context parallelism is of class experts. */
typedef enum {
    LEDGER_CLASS_DENSE,
    LEDGER_CLASS_SHARDED, /* ZeRO-3 */
    LEDGER_CLASS_CONTEXT, /* context parallel */
    LEDGER_CLASS_EXPERTS, /* mixture of experts */
    LEDGER_CLASS_COUNT
} LedgerClass;

LedgerClass ledger_class(const Spec *spec);
const char *ledger_class_name(LedgerClass kind);

typedef struct LedgerResidual {
    int source; /* index into LedgerResiduals.sources */
    LedgerClass kind;
    const char *id, *accelerator, *precision, *framework, *schedule; /* schedule "": no pipeline */
    int gpus, sequence_length;
    double parameters;
    double log_ratio; /* log(measured / predicted step) */
} LedgerResidual;

typedef struct LedgerMemoryResidual {
    int source; /* index into LedgerResiduals.sources */
    const char *id, *accelerator, *framework;
    const char *
        kind; /* "allocated", "reserved", "device": what was measured; "assumed": allocated by a configuration
                         * that is not published */
    double beyond_frac; /* (measured - predicted) / the GPU's memory */
} LedgerMemoryResidual;

typedef struct LedgerResiduals {
    GPtrArray *sources; /* char*: measurement files */
    GArray *rows;       /* LedgerResidual; their text is owned by `text` */
    GArray *memory;     /* LedgerMemoryResidual; likewise */
    GStringChunk *text;
    GHashTable
        *judging; /* sources that only judge: blind sets, whose times are not written. Read from a file: those
                          * of which it has memory and no times */
    gint holders; /* the last one frees it */
} LedgerResiduals;

LedgerResiduals *ledger_residuals_new(void);
void ledger_residuals_free(LedgerResiduals *residuals); /* NULL: nothing */
static inline const LedgerResidual *ledger_residual(const LedgerResiduals *residuals, guint index)
{
    return &g_array_index(residuals->rows, LedgerResidual, index);
}
static inline const LedgerMemoryResidual *ledger_memory_residual(const LedgerResiduals *residuals,
                                                                 guint index)
{
    return &g_array_index(residuals->memory, LedgerMemoryResidual, index);
}
/* Index of `source`, added when new. */
int ledger_residuals_source(LedgerResiduals *residuals, const char *source);
/* Copies `row` and its text. */
void ledger_residuals_add(LedgerResiduals *residuals, const LedgerResidual *row);
void ledger_residuals_add_memory(LedgerResiduals *residuals, const LedgerMemoryResidual *row);
/* What makes a run comparable; text is borrowed from the report's spec, `source`, `id` and `log_ratio` are
 * the caller's to fill in. */
LedgerResidual ledger_residual_of(const Report *report);

void ledger_residuals_write(const LedgerResiduals *residuals, GString *out);
bool ledger_residuals_read(const char *path, LedgerResiduals **ret_residuals, GError **error);
/* Those beside the presets, shared by all who ask, so const; freed like others. *ret_residuals NULL when there is no
 * such file. */
bool ledger_residuals_shipped(LedgerResiduals **ret_residuals, GError **error);

#endif
