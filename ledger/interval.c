/* ledger/interval.c - spreads, the factor that makes them cover, and what no published run covers. */
#include "ledger/interval.h"

#include <math.h>
#include <string.h>

#include "base/units.h"
#include "report/page.h"

typedef struct Sum {
    double square, value;
    int rows;
} Sum;

/* Sums a source and class; the last column is the whole source. */
typedef struct Sums {
    Sum (*of)[LEDGER_CLASS_COUNT + 1];
    int sources;
    double alike; /* correlation of two runs of one source */
} Sums;

static void add(Sum *sum, double value)
{
    sum->value += value;
    sum->square += value * value;
    sum->rows += 1;
}

/* Intraclass correlation of the runs of all sources but one, from their analysis of variance; 1 where no source has two
 * runs. Source: [Fisher1925] */
static double alikeness(const Sums *sums, int without)
{
    double total = 0, within = 0, between = 0, rows = 0, squared_rows = 0;
    int sources = 0;
    for (int s = 0; s < sums->sources; s++) {
        const Sum *sum = &sums->of[s][LEDGER_CLASS_COUNT];
        if (s == without || sum->rows == 0)
            continue;
        const double of_mean = sum->value * sum->value / sum->rows;
        within += sum->square - of_mean;
        between += of_mean;
        total += sum->value;
        rows += sum->rows;
        squared_rows += (double)sum->rows * sum->rows;
        sources += 1;
    }
    if (sources < 2 || rows <= sources)
        return 1;
    within /= rows - sources;
    between = (between - total * total / rows) / (sources - 1);
    const double a_source = (rows - squared_rows / rows) / (sources - 1); /* runs of one, on average */
    const double all = between + (a_source - 1) * within;
    return all > 0 ? fmin(fmax((between - within) / all, 0), 1) : 1;
}

static Sums sums_of(const LedgerResiduals *residuals, int without)
{
    Sums sums = {.sources = (int)residuals->sources->len};
    sums.of = g_malloc0_n((gsize)sums.sources, sizeof *sums.of);
    for (guint i = 0; i < residuals->rows->len; i++) {
        const LedgerResidual *row = ledger_residual(residuals, i);
        add(&sums.of[row->source][row->kind], row->log_ratio);
        add(&sums.of[row->source][LEDGER_CLASS_COUNT], row->log_ratio);
    }
    sums.alike = alikeness(&sums, without);
    return sums;
}

/* What runs of one source count for: as many as independent ones would say as much of a mean. Source: [Kish1965] */
static double weight_of(const Sums *sums, int rows)
{
    return rows / (1 + (rows - 1) * sums->alike);
}

/* Mean squares of the sources in one column, without two of them, times their weights: their sum, that of the weights, and
 * their number. */
static double mean_squares(const Sums *sums, int column, int without, int without_too, double *ret_weight,
                           int *ret_sources)
{
    double total = 0;
    *ret_weight = 0;
    *ret_sources = 0;
    for (int s = 0; s < sums->sources; s++) {
        const Sum *sum = &sums->of[s][column];
        if (s != without && s != without_too && sum->rows > 0) {
            const double weight = weight_of(sums, sum->rows);
            total += weight * sum->square / sum->rows;
            *ret_weight += weight;
            *ret_sources += 1;
        }
    }
    return total;
}

static void fill_spreads(const Sums *sums, int without, int without_too, double spread[LEDGER_CLASS_COUNT])
{
    int all = 0, own = 0;
    double all_weight = 0, own_weight = 0;
    const double pool = mean_squares(sums, LEDGER_CLASS_COUNT, without, without_too, &all_weight, &all);
    for (int kind = 0; kind < LEDGER_CLASS_COUNT; kind++) {
        const double squares = mean_squares(sums, kind, without, without_too, &own_weight, &own);
        const double square = all > 0 ? (squares + pool / all) / (own_weight + all_weight / all) : 0;
        spread[kind] = fmax(sqrt(square), 1e-9);
    }
}

typedef struct Score {
    double score, weight;
} Score;

static int compare_scores(gconstpointer a, gconstpointer b)
{
    const double x = ((const Score *)a)->score, y = ((const Score *)b)->score;
    return (x > y) - (x < y);
}

/* Smallest score that, with those below, holds LEDGER_COVERAGE of the weight. */
static double covering(GArray *scores)
{
    double total = 0, held = 0;
    g_array_sort(scores, compare_scores);
    for (guint i = 0; i < scores->len; i++)
        total += g_array_index(scores, Score, i).weight;
    for (guint i = 0; i < scores->len; i++) {
        held += g_array_index(scores, Score, i).weight;
        if (held >= LEDGER_COVERAGE * total * (1 - 1e-12))
            return g_array_index(scores, Score, i).score;
    }
    return NAN;
}

static double factor(const LedgerResiduals *residuals, const Sums *sums, int left_out)
{
    int sources = 0;
    double weight = 0;
    (void)mean_squares(sums, LEDGER_CLASS_COUNT, left_out, -1, &weight, &sources);
    if (sources < LEDGER_MIN_SOURCES)
        return NAN;
    double(*spread)[LEDGER_CLASS_COUNT] = g_malloc0_n((gsize)sums->sources, sizeof *spread);
    for (int s = 0; s < sums->sources; s++)
        fill_spreads(sums, left_out, s, spread[s]);
    GArray *scores = g_array_sized_new(FALSE, FALSE, sizeof(Score), residuals->rows->len);
    for (guint i = 0; i < residuals->rows->len; i++) {
        const LedgerResidual *row = ledger_residual(residuals, i);
        if (row->source == left_out)
            continue;
        const int rows = sums->of[row->source][LEDGER_CLASS_COUNT].rows;
        const Score score = {fabs(row->log_ratio) / spread[row->source][row->kind],
                             weight_of(sums, rows) / rows};
        g_array_append_val(scores, score);
    }
    const double z = covering(scores);
    g_array_free(scores, TRUE);
    g_free(spread);
    return z;
}

LedgerSpread ledger_spread(const LedgerResiduals *residuals, int left_out)
{
    LedgerSpread spread = {.z = NAN};
    const Sums sums = sums_of(residuals, left_out);
    fill_spreads(&sums, left_out, -1, spread.spread);
    for (int s = 0; s < sums.sources; s++) {
        for (int kind = 0; s != left_out && kind < LEDGER_CLASS_COUNT; kind++)
            spread.runs[kind] += sums.of[s][kind].rows;
    }
    spread.z = factor(residuals, &sums, left_out);
    g_free(sums.of);
    return spread;
}

double ledger_bias(const LedgerResiduals *residuals, LedgerClass kind, int left_out)
{
    const Sums sums = sums_of(residuals, left_out);
    double bias = 0;
    for (int column = (int)kind;; column = LEDGER_CLASS_COUNT) {
        double total = 0;
        int count = 0;
        for (int s = 0; s < sums.sources; s++) {
            const Sum *sum = &sums.of[s][column];
            if (s != left_out && sum->rows > 0) {
                total += sum->value / sum->rows;
                count += 1;
            }
        }
        bias = count > 0 ? total / count : 0;
        if (count > 0 || column == LEDGER_CLASS_COUNT)
            break;
    }
    g_free(sums.of);
    return bias;
}

/* --- what no published run covers --- */

/* What the published runs reach, looking from one run. */
typedef struct Reach {
    bool accelerator, precision, framework, schedule;
    int gpus, sequence_length; /* most, of its class; longest */
    double parameters;         /* most */
} Reach;

static Reach reach_of(const LedgerResiduals *residuals, int left_out, const LedgerResidual *run)
{
    Reach reach = {.schedule = run->schedule[0] == '\0'};
    for (guint i = 0; i < residuals->rows->len; i++) {
        const LedgerResidual *row = ledger_residual(residuals, i);
        if (row->source == left_out)
            continue;
        const bool accelerator = strcmp(row->accelerator, run->accelerator) == 0;
        reach.accelerator |= accelerator;
        reach.precision |= accelerator && strcmp(row->precision, run->precision) == 0;
        reach.framework |= strcmp(row->framework, run->framework) == 0;
        reach.schedule |= strcmp(row->schedule, run->schedule) == 0;
        if (row->kind == run->kind)
            reach.gpus = MAX(reach.gpus, row->gpus);
        reach.sequence_length = MAX(reach.sequence_length, row->sequence_length);
        reach.parameters = MAX(reach.parameters, row->parameters);
    }
    return reach;
}

static void G_GNUC_PRINTF(2, 3) note(GPtrArray *notes, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    g_ptr_array_add(notes, g_strdup_vprintf(format, values));
    va_end(values);
}

static void note_sizes(const LedgerResidual *run, const Reach *reach, GPtrArray *notes)
{
    char asked[ORR_TEXT_SIZE], most[ORR_TEXT_SIZE];
    if (run->gpus > reach->gpus)
        note(notes, "%s GPUs (largest published %s run: %s)", report_page_whole(asked, run->gpus),
             ledger_class_name(run->kind), report_page_whole(most, reach->gpus));
    if (run->sequence_length > reach->sequence_length)
        note(notes, "sequences of %s tokens (longest published: %s)",
             report_page_whole(asked, run->sequence_length), report_page_whole(most, reach->sequence_length));
    if (run->parameters > reach->parameters)
        note(notes, "%s parameters (most published: %s)", orr_text_count(asked, run->parameters),
             orr_text_count(most, reach->parameters));
}

static GPtrArray *notes_on(const LedgerResidual *run, const Reach *reach)
{
    GPtrArray *notes = g_ptr_array_new_with_free_func(g_free);
    if (!reach->accelerator)
        note(notes, "accelerator %s (no published run)", run->accelerator);
    else if (!reach->precision)
        note(notes, "precision %s on %s (no published run)", run->precision, run->accelerator);
    note_sizes(run, reach, notes);
    if (!reach->schedule)
        note(notes, "schedule %s (no published run)", run->schedule);
    if (!reach->framework && run->framework[0] != '\0')
        note(notes, "framework %s (no published run)", run->framework);
    return notes;
}

static LedgerReach reach_by(const Reach *reach, LedgerClass kind, LedgerSoftware software)
{
    if (!reach->precision)
        return LEDGER_REACH_UNKNOWN;
    if (software == LEDGER_SOFTWARE_KNOWN)
        return LEDGER_REACH_KNOWN;
    if (software == LEDGER_SOFTWARE_READ)
        return LEDGER_REACH_READ;
    return kind == LEDGER_CLASS_EXPERTS ? LEDGER_REACH_UNKNOWN : LEDGER_REACH_SOFTWARE;
}

LedgerReach ledger_reach(const LedgerResiduals *residuals, int left_out, const LedgerResidual *run,
                         LedgerSoftware software)
{
    const Reach reach = reach_of(residuals, left_out, run);
    return reach_by(&reach, run->kind, software);
}

/* How far the interval reaches: by whether the chip, its number format or the software was never in a published run. */
static LedgerReach fill_outside(const LedgerResiduals *residuals, OrrArena *arena, Report *report)
{
    const LedgerResidual run = ledger_residual_of(report);
    const Reach reach = reach_of(residuals, -1, &run);
    GPtrArray *notes = notes_on(&run, &reach);
    const char **outside = ORR_ARENA_NEW(arena, const char *, MAX(notes->len, 1));
    for (guint i = 0; i < notes->len; i++)
        outside[i] = orr_arena_strdup(arena, notes->pdata[i]);
    report->outside = outside;
    report->outside_count = (int)notes->len;
    g_ptr_array_unref(notes);
    const bool known = reach.framework || run.framework[0] == '\0',
               read = report->spec->execution.framework.software[0] != '\0';
    return reach_by(&reach, run.kind,
                    known  ? LEDGER_SOFTWARE_KNOWN
                    : read ? LEDGER_SOFTWARE_READ
                           : LEDGER_SOFTWARE_UNKNOWN);
}

void ledger_interval_fill(const LedgerResiduals *residuals, OrrArena *arena, Report *report)
{
    if (residuals == NULL)
        return;
    const LedgerSpread spread = ledger_spread(residuals, -1);
    const LedgerClass kind = ledger_class(report->spec);
    const double step_s = (double)report->step_ps * 1e-12;
    if (isnan(spread.z))
        return;
    const LedgerReach reach = fill_outside(residuals, arena, report), known = LEDGER_REACH_KNOWN;
    const double log_spread = spread.z * spread.spread[kind];
    report->interval_widening = (reach.low + reach.high) / (known.low + known.high);
    report->interval_low_s = step_s * exp(-reach.low * log_spread);
    report->interval_high_s = step_s * exp(reach.high * log_spread);
    report->interval_coverage = LEDGER_COVERAGE;
    report->interval_class = ledger_class_name(kind);
    report->interval_runs = spread.runs[kind];
}
