/* ledger/memory.c - the reserve, the odds and the verdict. See memory.h. */
#include "ledger/memory.h"

#include <math.h>
#include <string.h>

#include "base/units.h"

static int compare_doubles(gconstpointer a, gconstpointer b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

char *ledger_framework_family(const char *name)
{
    const size_t length = strlen(name), year = strlen("-2024");
    const bool dated = length > year && name[length - year] == '-' &&
                       strspn(name + length - year + 1, "0123456789") == year - 1;
    return g_strndup(name, dated ? length - year : length);
}

/* beyond_frac of the runs of `framework` (NULL: of all), rising. */
static GArray *beyond(const LedgerResiduals *residuals, const char *framework, int left_out)
{
    GArray *values = g_array_new(FALSE, FALSE, sizeof(double));
    g_autofree char *family = framework != NULL ? ledger_framework_family(framework) : NULL;
    for (guint i = 0; residuals != NULL && i < residuals->memory->len; i++) {
        const LedgerMemoryResidual *row = ledger_memory_residual(residuals, i);
        g_autofree char *of_row = ledger_framework_family(row->framework);
        if (row->source != left_out && (family == NULL || strcmp(of_row, family) == 0))
            g_array_append_val(values, row->beyond_frac);
    }
    g_array_sort(values, compare_doubles);
    return values;
}

static double covering(const GArray *values)
{
    const int count = (int)values->len;
    const int k = MIN(count, (int)ceil(LEDGER_MEMORY_COVERAGE * (count + 1)));
    return count > 0 ? fmax(0, g_array_index(values, double, k - 1)) : 0;
}

LedgerReserve ledger_reserve(const LedgerResiduals *residuals, const char *framework, int left_out)
{
    g_autoptr(GArray) own = beyond(residuals, framework, left_out);
    g_autoptr(GArray) all = beyond(residuals, NULL, left_out);
    if (own->len >= LEDGER_MEMORY_RUNS)
        return (LedgerReserve){fmin(covering(own), covering(all)), (int)own->len, true};
    return (LedgerReserve){covering(all), (int)all->len, false};
}

double ledger_memory_odds(const LedgerResiduals *residuals, const char *framework, double free_frac)
{
    g_autoptr(GArray) own = beyond(residuals, framework, -1);
    g_autoptr(GArray) all = beyond(residuals, NULL, -1);
    const GArray *runs = own->len >= LEDGER_MEMORY_RUNS ? own : all;
    int fit = 0;
    for (guint i = 0; i < runs->len; i++)
        fit += g_array_index(runs, double, i) <= free_frac;
    return runs->len > 0 ? (double)fit / runs->len : NAN;
}

/* 8 is a slip for 8 GiB, and no GPU has a TiB to keep free. */
#define LEAST_RESERVE_BYTES 1048576.0
#define MOST_RESERVE_BYTES  1099511627776.0

bool ledger_reserve_parse(const char *text, LedgerReserveAsk *ret_ask, GError **error)
{
    LedgerReserveAsk ask = {.given = text != NULL};
    double value = 0;
    if (text == NULL) {
        *ret_ask = ask;
        return true;
    }
    if (orr_parse_quantity(text, ORR_UNIT_FRAC, &value, NULL) && value >= 0 && value < 1)
        ask.frac = value;
    else if (orr_parse_quantity(text, ORR_UNIT_BYTES, &value, NULL) && value >= LEAST_RESERVE_BYTES &&
             value <= MOST_RESERVE_BYTES)
        ask.bytes = value;
    else
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "--memory-reserve: \"%s\" is neither a share of the GPU's memory from 0 to below 1, such as "
            "0.1, nor bytes such as \"8 GiB\", 1 MiB to 1 TiB",
            text);
    *ret_ask = ask;
    return true;
}

double ledger_reserve_bytes(const LedgerResiduals *residuals, const LedgerReserveAsk *ask, const Spec *spec)
{
    const double all = spec->cluster.accelerator.memory_bytes;
    const SpecSearch *search = &spec->search;
    if (ask != NULL && ask->given)
        return ask->frac * all + ask->bytes;
    if (search->reserve_memory_bytes > 0)
        return search->reserve_memory_bytes;
    if (search->max_memory_frac > 0 || search->max_memory_bytes > 0)
        return 0;
    return all * ledger_reserve(residuals, spec->execution.framework.name, -1).frac;
}

void ledger_memory_fill(const LedgerResiduals *residuals, const LedgerReserveAsk *ask, Report *report)
{
    const Spec *spec = report->spec;
    const char *framework = spec->execution.framework.name;
    const LedgerReserve reserve = ledger_reserve(residuals, framework, -1);
    const double free_bytes = report->capacity_bytes - report->needed_bytes;
    report->reserve_bytes = ledger_reserve_bytes(residuals, ask, spec);
    report->reserve_runs = ask != NULL && ask->given ? 0 : reserve.runs;
    report->reserve_own = reserve.own;
    report->memory_odds = ledger_memory_odds(residuals, framework, free_bytes / report->capacity_bytes);
    report->memory_verdict =
        !report->fits ? REPORT_MEMORY_NONE
        : free_bytes < report->reserve_bytes || report->reserved_bytes > report->capacity_bytes
            ? REPORT_MEMORY_EDGE
            : REPORT_MEMORY_FITS;
}
