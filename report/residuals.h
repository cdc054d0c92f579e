/* report/residuals.h - how far published runs lay from their predictions, as a list in a file.
 *
 * Residuals are log(measured / predicted) of published runs, each with what makes it comparable to others.
 * `orrery validate --residuals` writes them; scenarios/residuals.json ships those of the whole ledger.
 * What follows from them is interval.h's.
 */
#ifndef ORR_REPORT_RESIDUALS_H
#define ORR_REPORT_RESIDUALS_H

#include "report/report.h"

/* By what is known least; the last that holds wins: an MoE run with context parallelism is of class experts. */
typedef enum {
    REPORT_CLASS_DENSE,
    REPORT_CLASS_SHARDED, /* ZeRO-3 */
    REPORT_CLASS_CONTEXT, /* context parallel */
    REPORT_CLASS_EXPERTS, /* mixture of experts */
    REPORT_CLASS_COUNT
} ReportClass;

ReportClass report_class(const Spec *spec);
const char *report_class_name(ReportClass kind);

typedef struct ReportResidual {
    int source; /* index into ReportResiduals.sources */
    ReportClass kind;
    const char *id, *accelerator, *precision, *framework, *schedule; /* schedule "": no pipeline */
    int gpus, sequence_length;
    double parameters;
    double log_ratio; /* log(measured / predicted step) */
} ReportResidual;

struct ReportResiduals {
    GPtrArray *sources; /* char*: measurement files */
    GArray *rows;       /* ReportResidual; their text is owned by `text` */
    GStringChunk *text;
};

ReportResiduals *report_residuals_new(void);
void report_residuals_free(ReportResiduals *residuals); /* NULL: nothing */
static inline const ReportResidual *report_residual(const ReportResiduals *residuals, guint index)
{
    return &g_array_index(residuals->rows, ReportResidual, index);
}
/* Index of `source`, added when new. */
int report_residuals_source(ReportResiduals *residuals, const char *source);
/* Copies `row` and its text. */
void report_residuals_add(ReportResiduals *residuals, const ReportResidual *row);
/* What makes a run comparable; text is borrowed from the report's spec, `source`, `id` and `log_ratio` are
 * the caller's to fill in. */
ReportResidual report_residual_of(const Report *report);

void report_residuals_write(const ReportResiduals *residuals, GString *out);
bool report_residuals_read(const char *path, ReportResiduals **ret_residuals, GError **error);
/* Those beside the presets; *ret_residuals NULL when there is no such file. */
bool report_residuals_shipped(ReportResiduals **ret_residuals, GError **error);

#endif
