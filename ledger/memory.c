/* ledger/memory.c - the reserve, the odds and the verdict. See memory.h. */
#include "ledger/memory.h"

#include <math.h>
#include <string.h>

#include "base/stats.h"
#include "base/text.h"
#include "base/units.h"

static size_t family_length(const char *name)
{
    const size_t length = strlen(name), year = strlen("-2024");
    const bool dated = length > year && name[length - year] == '-' &&
                       strspn(name + length - year + 1, "0123456789") == year - 1;
    return dated ? length - year : length;
}

char *ledger_framework_family(const char *name)
{
    return g_strndup(name, family_length(name));
}

static bool is_of_family(const char *name, const char *family)
{
    const size_t length = family_length(name);
    return strncmp(name, family, length) == 0 && family[length] == '\0';
}

/* Which rows count: of `family` (NULL: of any), from all sources but `left_out`; need: of those, what tells the need. */
typedef struct Choice {
    const char *family;
    int left_out;
    bool need;
} Choice;

static bool is_judging(const LedgerResiduals *residuals, int source)
{
    return g_hash_table_contains(residuals->judging, GINT_TO_POINTER(source));
}

static bool chosen(const LedgerResiduals *residuals, const LedgerMemoryResidual *row, const Choice *choice)
{
    return row->source != choice->left_out &&
           (choice->family == NULL || is_of_family(row->framework, choice->family)) &&
           (!choice->need || (strcmp(row->kind, "allocated") == 0 && !is_judging(residuals, row->source)));
}

/* Their beyond_frac, rising. */
static GArray *beyond(const LedgerResiduals *residuals, const Choice *choice)
{
    GArray *values = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; residuals != NULL && i < residuals->memory->len; i++) {
        const LedgerMemoryResidual *row = ledger_memory_residual(residuals, i);
        if (chosen(residuals, row, choice))
            g_array_append_val(values, row->beyond_frac);
    }
    orr_stats_sort((double *)(void *)values->data, values->len);
    return values;
}

static double covering(const GArray *values)
{
    const int count = (int)values->len;
    const int k = MIN(count, (int)ceil(LEDGER_MEMORY_COVERAGE * (count + 1)));
    return count > 0 ? fmax(0, g_array_index(values, double, k - 1)) : 0;
}

/* Of the framework's own where there are `least`, else of all. */
static GArray *own_or_all(const LedgerResiduals *residuals, Choice choice, guint least, bool *ret_own)
{
    GArray *own = beyond(residuals, &choice);
    *ret_own = own->len >= least;
    if (*ret_own)
        return own;
    g_array_unref(own);
    choice.family = NULL;
    return beyond(residuals, &choice);
}

/* A run of it, with any reading, in a source that does not only judge. */
static bool is_known(const LedgerResiduals *residuals, const char *family, int left_out)
{
    for (guint i = 0; residuals != NULL && i < residuals->memory->len; i++) {
        const LedgerMemoryResidual *row = ledger_memory_residual(residuals, i);
        if (!is_judging(residuals, row->source) &&
            chosen(residuals, row, &(Choice){.family = family, .left_out = left_out}))
            return true;
    }
    return false;
}

LedgerReserve ledger_reserve(const LedgerResiduals *residuals, const char *framework, int left_out)
{
    g_autofree char *family = ledger_framework_family(framework);
    const Choice need = {family, left_out, true}, reading = {family, left_out, false},
                 any = {NULL, left_out, false};
    LedgerReserve reserve = {0};
    bool own_readings = false;
    g_autoptr(GArray) needs = own_or_all(residuals, need, LEDGER_MEMORY_NEEDS, &reserve.own);
    g_autoptr(GArray) readings = own_or_all(residuals, reading, LEDGER_MEMORY_RUNS, &own_readings);
    g_autoptr(GArray) all = beyond(residuals, &any);
    reserve.runs = (int)needs->len;
    reserve.doubled = needs->len > 0 && !is_known(residuals, family, left_out);
    reserve.frac = fmin(1, (reserve.doubled ? 2 : 1) * covering(needs));
    reserve.seen_frac = fmin(covering(readings), covering(all));
    return reserve;
}

double ledger_memory_odds(const LedgerResiduals *residuals, const char *framework, double free_frac)
{
    g_autofree char *family = ledger_framework_family(framework);
    bool own = false;
    g_autoptr(GArray) runs = own_or_all(residuals, (Choice){family, -1, true}, LEDGER_MEMORY_NEEDS, &own);
    const double times = is_known(residuals, family, -1) ? 1 : 2; /* as the reserve has it */
    int fit = 0;
    for (guint i = 0; i < runs->len; i++)
        fit += times * fmax(0, g_array_index(runs, double, i)) <= free_frac;
    return runs->len > 0 ? (double)fit / (runs->len + 1) : NAN;
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
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--memory-reserve: \"%s\" is no memory; give a share of the GPU's from 0 to below 1, "
                        "such as 0.1, or 1 MiB to 1 TiB, such as \"8 GiB\"",
                        text);
    *ret_ask = ask;
    return true;
}

bool ledger_reserve_check(const LedgerReserveAsk *ask, const Spec *spec, GError **error)
{
    const SpecAccelerator *accelerator = &spec->cluster.accelerator;
    char asked[ORR_TEXT_SIZE], all[ORR_TEXT_SIZE];
    if (ask == NULL || ask->bytes < accelerator->memory_bytes)
        return true;
    return orr_fail(error, ORR_ERROR_INPUT, "--memory-reserve: %s leaves nothing of the %s that a %s has",
                    orr_text_bytes(asked, ask->bytes), orr_text_bytes(all, accelerator->memory_bytes),
                    accelerator->name);
}

/* False: neither asked nor limited, so the ledger's reserve is kept. */
static bool is_reserve_given(const LedgerReserveAsk *ask, const Spec *spec)
{
    const SpecSearch *search = &spec->search;
    return (ask != NULL && ask->given) || search->reserve_memory_bytes > 0 || search->max_memory_frac > 0 ||
           search->max_memory_bytes > 0;
}

double ledger_reserve_bytes(const LedgerResiduals *residuals, const LedgerReserveAsk *ask, const Spec *spec)
{
    const double all = spec->cluster.accelerator.memory_bytes;
    if (!is_reserve_given(ask, spec))
        return all * ledger_reserve(residuals, spec->execution.framework.name, -1).frac;
    if (ask != NULL && ask->given)
        return ask->frac * all + ask->bytes;
    return MAX(0, spec->search.reserve_memory_bytes);
}

void ledger_memory_fill(const LedgerResiduals *residuals, const LedgerReserveAsk *ask, Report *report)
{
    const Spec *spec = report->spec;
    const char *framework = spec->execution.framework.name;
    const LedgerReserve reserve = ledger_reserve(residuals, framework, -1);
    const double free_bytes = report->capacity_bytes - report->needed_bytes;
    report->reserve_bytes = is_reserve_given(ask, spec)
                                ? ledger_reserve_bytes(residuals, ask, spec)
                                : spec->cluster.accelerator.memory_bytes * reserve.frac;
    report->reserve_runs = ask != NULL && ask->given ? 0 : reserve.runs;
    report->reserve_own = reserve.own;
    report->reserve_doubled = reserve.doubled;
    report->seen_frac = reserve.seen_frac;
    report->memory_odds = ledger_memory_odds(residuals, framework, free_bytes / report->capacity_bytes);
    report->memory_verdict =
        !report->fits ? REPORT_MEMORY_NONE
        : free_bytes < report->reserve_bytes || report->reserved_bytes > report->capacity_bytes
            ? REPORT_MEMORY_EDGE
            : REPORT_MEMORY_FITS;
}
