/* ledger/validate_stats.c - sums up a ledger's errors; and its intervals when each source is left out in turn. */
#include "ledger/validate_stats.h"

#include <math.h>
#include <string.h>

#include "base/stats.h"

typedef struct Selection {
    const Ledger *ledger;
    int source;                                               /* -1: all */
    bool (*only)(const Ledger *ledger, const LedgerRow *row); /* NULL: every row */
} Selection;

static bool has_full_confidence(const Ledger *ledger, const LedgerRow *row)
{
    (void)ledger;
    return row->full_confidence;
}

static bool trains_adapters(const Ledger *ledger, const LedgerRow *row)
{
    (void)ledger;
    return row->said != NULL && (g_strv_contains((const char *const *)row->said, "training.task=\"lora\"") ||
                                 g_strv_contains((const char *const *)row->said, "training.task=\"qlora\""));
}

static bool has_experts(const Ledger *ledger, const LedgerRow *row)
{
    return row->residual >= 0 &&
           ledger_residual(ledger->residuals, (guint)row->residual)->kind == LEDGER_CLASS_EXPERTS;
}

static bool selects(const Selection *selection, const LedgerRow *row)
{
    return (selection->source < 0 || row->source == selection->source) &&
           (selection->only == NULL || selection->only(selection->ledger, row));
}

/* Rank agreement over pairs of one cell whose measured times differ by more than 5 %. */
static void kendall(const Selection *selection, LedgerStats *stats)
{
    const GPtrArray *rows = selection->ledger->rows;
    int agree = 0;
    for (guint i = 0; i < rows->len; i++) {
        for (guint j = i + 1; j < rows->len; j++) {
            const LedgerRow *a = rows->pdata[i], *b = rows->pdata[j];
            if (!selects(selection, a) || !selects(selection, b) || a->source != b->source ||
                a->predicted_step_s <= 0 || b->predicted_step_s <= 0 || a->measured_step_s <= 0 ||
                b->measured_step_s <= 0 || strcmp(a->cell, b->cell) != 0 ||
                fabs(a->measured_step_s / b->measured_step_s - 1) <= 0.05) {
                continue;
            }
            const bool same =
                (a->measured_step_s < b->measured_step_s) == (a->predicted_step_s < b->predicted_step_s);
            agree += same ? 1 : -1;
            stats->kendall_pairs += 1;
        }
    }
    stats->kendall_tau = stats->kendall_pairs > 0 ? (double)agree / stats->kendall_pairs : NAN;
}

static void finish_errors(GArray *errors, LedgerStats *stats)
{
    double *sorted = (double *)(void *)errors->data;
    double sum = 0;
    orr_stats_sort(sorted, errors->len);
    for (guint i = 0; i < errors->len; i++) {
        sum += sorted[i];
    }
    stats->mape = errors->len > 0 ? sum / errors->len : NAN;
    stats->median = orr_stats_quantile(sorted, errors->len, 0.5);
    stats->p90 = orr_stats_quantile(sorted, errors->len, 0.9);
    stats->worst = orr_stats_quantile(sorted, errors->len, 1);
}

static LedgerStats statistics(const Selection *selection)
{
    LedgerStats stats = {0};
    GArray *errors = g_array_new(FALSE, FALSE, sizeof(double));
    double bias = 0, memory = 0, width = 0;
    int inside = 0;
    for (guint i = 0; i < selection->ledger->rows->len; i++) {
        const LedgerRow *row = selection->ledger->rows->pdata[i];
        if (!selects(selection, row)) {
            continue;
        }
        stats.rows += 1;
        stats.skipped += row->skipped != NULL;
        if (row->skipped == NULL && row->measured_step_s > 0) {
            const double absolute = fabs(row->error_frac);
            g_array_append_val(errors, absolute);
            bias += row->error_frac;
        }
        if (row->skipped == NULL && row->memory_kind != NULL) {
            memory += fabs(row->memory_error_frac);
            stats.memory_rows += 1;
        }
        if (row->has_interval) {
            inside += row->inside_interval;
            width += row->interval_high_s / row->predicted_step_s - 1;
            stats.interval_rows += 1;
        }
    }
    stats.bias = errors->len > 0 ? bias / errors->len : NAN;
    stats.memory_mape = stats.memory_rows > 0 ? memory / stats.memory_rows : NAN;
    stats.coverage = stats.interval_rows > 0 ? (double)inside / stats.interval_rows : NAN;
    stats.half_width = stats.interval_rows > 0 ? width / stats.interval_rows : NAN;
    finish_errors(errors, &stats);
    kendall(selection, &stats);
    g_array_free(errors, TRUE);
    return stats;
}

static LedgerMemory judge_memory(const Ledger *ledger)
{
    LedgerMemory memory = {0};
    for (guint i = 0; i < ledger->rows->len; i++) {
        const LedgerRow *row = ledger->rows->pdata[i];
        if (row->framework == NULL)
            continue;
        const double beyond_bytes = row->measured_memory_bytes - row->predicted_memory_bytes;
        const LedgerReserve others = ledger_reserve(ledger->residuals, row->framework, row->source);
        const bool needs = strcmp(row->memory_kind, "allocated") == 0 && !row->memory_assumed;
        memory.rows += 1;
        memory.seen += beyond_bytes <= row->seen_bytes;
        memory.needs += needs;
        memory.covered += needs && beyond_bytes <= row->reserve_bytes;
        memory.left_out_covered += needs && beyond_bytes <= others.frac * row->capacity_bytes;
        memory.none += row->memory_verdict == REPORT_MEMORY_NONE;
        memory.edge += row->memory_verdict == REPORT_MEMORY_EDGE;
    }
    return memory;
}

void ledger_sum_up(Ledger *ledger)
{
    ledger->memory = judge_memory(ledger);
    double macro = 0;
    int counted = 0;
    for (guint i = 0; i < ledger->sources->len; i++) {
        LedgerSource *source = ledger->sources->pdata[i];
        source->all = statistics(&(Selection){ledger, (int)i, NULL});
        source->full = statistics(&(Selection){ledger, (int)i, has_full_confidence});
        if (!isnan(source->all.mape)) {
            macro += source->all.mape;
            counted += 1;
        }
    }
    ledger->overall = statistics(&(Selection){ledger, -1, NULL});
    ledger->overall_full = statistics(&(Selection){ledger, -1, has_full_confidence});
    ledger->overall_experts = statistics(&(Selection){ledger, -1, has_experts});
    ledger->overall_adapters = statistics(&(Selection){ledger, -1, trains_adapters});
    ledger->macro_mape = counted > 0 ? macro / counted : NAN;
}

/* --- one source left out --- */

void ledger_set_interval(LedgerRow *row, double low_s, double high_s)
{
    row->has_interval = true;
    row->interval_low_s = low_s;
    row->interval_high_s = high_s;
    row->inside_interval = row->measured_step_s >= low_s && row->measured_step_s <= high_s;
}

/* Intervals of the rows of `source`; returns their mean |error| after a correction by the others' bias, NAN
 * when no row has a time. */
static double leave_out(const Ledger *ledger, int source)
{
    const LedgerSpread spread = ledger_spread(ledger->residuals, source);
    double bias[LEDGER_CLASS_COUNT], sum = 0;
    int count = 0;
    for (int kind = 0; kind < LEDGER_CLASS_COUNT; kind++) {
        bias[kind] = ledger_bias(ledger->residuals, (LedgerClass)kind, source);
    }
    for (guint i = 0; i < ledger->rows->len; i++) {
        LedgerRow *row = ledger->rows->pdata[i];
        if (row->source != source || row->residual < 0) {
            continue;
        }
        const LedgerResidual *residual = ledger_residual(ledger->residuals, (guint)row->residual);
        const double reach = exp(spread.z * spread.spread[residual->kind]);
        ledger_set_interval(row, row->predicted_step_s / reach, row->predicted_step_s * reach);
        sum += fabs(exp(bias[residual->kind] - residual->log_ratio) - 1);
        count += 1;
    }
    return count > 0 ? sum / count : NAN;
}

static int sources_with_times(const Ledger *ledger)
{
    int count = 0;
    for (guint i = 0; i < ledger->sources->len; i++) {
        const LedgerSource *source = ledger->sources->pdata[i];
        count += !isnan(source->all.mape);
    }
    return count;
}

bool ledger_leave_one_out(Ledger *ledger, GError **error)
{
    const int count = sources_with_times(ledger);
    double corrected = 0, covered = 0;
    if (count <= LEDGER_MIN_SOURCES) {
        orr_fail(error, ORR_ERROR_INPUT,
                 "--leave-one-out needs measured step times from at least %d files; there are %d",
                 LEDGER_MIN_SOURCES + 1, count);
        return false;
    }
    for (guint i = 0; i < ledger->sources->len; i++) {
        const double mape = leave_out(ledger, (int)i);
        corrected += isnan(mape) ? 0 : mape;
    }
    ledger_sum_up(ledger);
    for (guint i = 0; i < ledger->sources->len; i++) {
        const LedgerSource *source = ledger->sources->pdata[i];
        covered += isnan(source->all.coverage) ? 0 : source->all.coverage;
    }
    ledger->left_out = true;
    ledger->corrected_mape = corrected / count;
    ledger->macro_coverage = covered / count;
    return true;
}
