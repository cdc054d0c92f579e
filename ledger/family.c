/* ledger/family.c - see family.h. Tested: unit/ledger/test_family.c */
#include "ledger/family.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "report/page.h"

const char *const ledger_family_sets[] = {"execution.framework=\"generic\"", NULL};

/* Profiles by how their names begin; the first that fits. */
static const char *const families[][2] = {
    {"megatron-deepspeed", "Megatron-DeepSpeed"},
    {"megatron-llama", "Megatron-LLaMA"},
    {"megatron", "Megatron"},
    {"nemo-automodel", "AutoModel"},
    {"nemo-megatron", "Megatron"},
    {"nvidia-mlperf", "Megatron"},
    {"deepspeed", "DeepSpeed"},
    {"transformers", "Transformers"},
    {"torchtitan", "torchtitan"},
    {"pytorch", "PyTorch"},
    {"generic", "PyTorch"},
    {"nanogpt", "PyTorch"},
    {"maxtext", "XLA"},
    {"paxml", "XLA"},
    {"jax", "XLA"},
    {"easylm", "XLA"},
    {"levanter", "XLA"},
    {"torch-xla", "XLA"},
};

char *ledger_family(const char *framework)
{
    for (gsize i = 0; i < G_N_ELEMENTS(families); i++)
        if (g_str_has_prefix(framework, families[i][0]))
            return g_strdup(families[i][1]);
    const char *end = framework;
    while (*end != '\0' && !(*end == '-' && g_ascii_isdigit(end[1])))
        end++;
    return *framework != '\0' ? g_strndup(framework, (gsize)(end - framework)) : g_strdup("unnamed");
}

static void family_clear(gpointer data)
{
    g_free(((LedgerFamily *)data)->name);
}

/* The stated replay's residuals with families for sources: who is left out is left out whole. */
static LedgerResiduals *by_family(const Ledger *stated)
{
    LedgerResiduals *residuals = ledger_residuals_new();
    for (guint i = 0; i < stated->residuals->rows->len; i++) {
        LedgerResidual row = *ledger_residual(stated->residuals, i);
        g_autofree char *name = ledger_family(row.framework);
        row.source = ledger_residuals_source(residuals, name);
        ledger_residuals_add(residuals, &row);
    }
    return residuals;
}

typedef struct Sum {
    double absolute, signed_sum, stated, width;
    int rows, inside;
} Sum;

static void add(Sum *sum, const LedgerRow *stated, const LedgerRow *unknown, double spread, LedgerReach reach)
{
    const double log_ratio = -log1p(unknown->error_frac);
    sum->rows++;
    sum->absolute += fabs(unknown->error_frac);
    sum->signed_sum += unknown->error_frac;
    sum->stated += fabs(stated->error_frac);
    sum->width += exp(reach.high * spread) - 1;
    sum->inside += log_ratio >= -reach.low * spread && log_ratio <= reach.high * spread;
}

static LedgerFamily family_of(const char *name, const Sum *sum)
{
    return (LedgerFamily){.name = g_strdup(name),
                          .rows = sum->rows,
                          .mape = sum->absolute / sum->rows,
                          .bias = sum->signed_sum / sum->rows,
                          .stated_mape = sum->stated / sum->rows,
                          .coverage = (double)sum->inside / sum->rows,
                          .half_width = sum->width / sum->rows};
}

static int compare_rows(gconstpointer a, gconstpointer b)
{
    return ((const LedgerFamily *)b)->rows - ((const LedgerFamily *)a)->rows;
}

static bool compared(const LedgerRow *row)
{
    return row->skipped == NULL && row->measured_step_s > 0 && row->residual >= 0;
}

/* Rows of family `index`; all of it goes into `all` too. False: it has none that ran both ways. */
static bool sum_family(const Ledger *stated, const Ledger *unknown, const LedgerResiduals *residuals,
                       int index, Sum *all, Sum *own)
{
    const LedgerSpread spread = ledger_spread(residuals, index);
    *own = (Sum){.rows = 0};
    for (guint i = 0; i < stated->rows->len && !isnan(spread.z); i++) {
        const LedgerRow *known = stated->rows->pdata[i], *row = unknown->rows->pdata[i];
        if (!compared(known) || !compared(row) ||
            ledger_residual(residuals, (guint)known->residual)->source != index)
            continue;
        const LedgerResidual *run = ledger_residual(unknown->residuals, (guint)row->residual);
        const LedgerReach reach = ledger_reach(residuals, index, run, LEDGER_SOFTWARE_UNKNOWN);
        add(own, known, row, spread.z * spread.spread[run->kind], reach);
        add(all, known, row, spread.z * spread.spread[run->kind], reach);
    }
    return own->rows > 0;
}

GArray *ledger_leave_family_out(const Ledger *stated, const Ledger *unknown, GError **error)
{
    LedgerResiduals *residuals = by_family(stated);
    const int count = (int)residuals->sources->len;
    GArray *found = g_array_new(FALSE, FALSE, sizeof(LedgerFamily));
    g_array_set_clear_func(found, family_clear);
    Sum all = {.rows = 0};
    for (int i = 0; i < count && count > LEDGER_MIN_SOURCES; i++) {
        Sum own;
        if (!sum_family(stated, unknown, residuals, i, &all, &own))
            continue;
        const LedgerFamily family = family_of(residuals->sources->pdata[i], &own);
        g_array_append_val(found, family);
    }
    ledger_residuals_free(residuals);
    if (all.rows == 0) {
        g_array_unref(found);
        orr_fail(
            error, ORR_ERROR_INPUT,
            "--leave-family-out: the files hold measured step times of %d %s of software; give files with "
            "at least %d",
            count, count == 1 ? "family" : "families", LEDGER_MIN_SOURCES + 1);
        return NULL;
    }
    g_array_sort(found, compare_rows);
    const LedgerFamily whole = family_of("all rows", &all);
    g_array_append_val(found, whole);
    return found;
}

void ledger_write_families_text(const GArray *found, GString *out)
{
    static const char *const headers[] = {"software", "rows",    "as read", "unknown",
                                          "bias",     "covered", "reach"};
    OrrTable *table = orr_table_new(headers, G_N_ELEMENTS(headers));
    g_string_append(
        out, "Each family of software as if it were unknown: the profile generic in place of its own, and "
             "intervals\nfrom the other families\n\n");
    for (guint i = 0; i < found->len; i++) {
        const LedgerFamily *family = &g_array_index(found, LedgerFamily, i);
        char cell[6][ORR_TEXT_SIZE];
        g_snprintf(cell[0], ORR_TEXT_SIZE, "%d", family->rows);
        g_snprintf(cell[1], ORR_TEXT_SIZE, "%.1f %%", 100 * family->stated_mape);
        g_snprintf(cell[2], ORR_TEXT_SIZE, "%.1f %%", 100 * family->mape);
        g_snprintf(cell[3], ORR_TEXT_SIZE, "%+.1f %%", 100 * family->bias);
        g_snprintf(cell[4], ORR_TEXT_SIZE, "%.0f %%", 100 * family->coverage);
        g_snprintf(cell[5], ORR_TEXT_SIZE, "%.0f %%", 100 * family->half_width);
        orr_table_row(
            table, (const char *const[]){family->name, cell[0], cell[1], cell[2], cell[3], cell[4], cell[5]});
    }
    report_page_table(table, out, 2);
    orr_table_free(table);
    g_string_append(
        out,
        "\nas read, unknown: mean |error| by its own profile and by generic; covered: inside the "
        "interval that\nrun prints for unknown software; reach: how far that goes above the prediction\n");
}

void ledger_write_families_json(const GArray *found, GString *out)
{
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_int(&w, "schema", 1);
    orr_jw_begin(&w, "families", '[');
    for (guint i = 0; i < found->len; i++) {
        const LedgerFamily *family = &g_array_index(found, LedgerFamily, i);
        orr_jw_begin(&w, NULL, '{');
        orr_jw_text(&w, "name", family->name);
        orr_jw_int(&w, "rows", family->rows);
        orr_jw_number(&w, "stated_mape", family->stated_mape);
        orr_jw_number(&w, "mape", family->mape);
        orr_jw_number(&w, "bias", family->bias);
        orr_jw_number(&w, "interval_coverage", family->coverage);
        orr_jw_number(&w, "interval_half_width", family->half_width);
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, ']');
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}
