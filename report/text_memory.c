/* report/text_memory.c - the memory section of the text report. */
#include "report/text_memory.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "report/page.h"
#include "spec/pairs.h"

enum { KINDS = 5, COLUMNS = KINDS + 5, MAX_ROWS = 16, BAR_WIDTH = 24, TABLE_WIDTH = 76, LABEL_COLUMN = 14 };

#define GIB 1073741824.0

/* Stages first..last, which print the same. */
typedef struct StageRow {
    int first, last;
} StageRow;

static void stage_kinds(const ReportStage *stage, double ret_bytes[KINDS])
{
    ret_bytes[0] = stage->weights_bytes;
    ret_bytes[1] = stage->gradients_bytes;
    ret_bytes[2] = stage->optimizer_bytes;
    ret_bytes[3] = stage->activations_bytes;
    ret_bytes[4] = stage->workspace_bytes;
}

static bool prints_the_same(const ReportStage *a, const ReportStage *b)
{
    double of_a[KINDS], of_b[KINDS];
    stage_kinds(a, of_a);
    stage_kinds(b, of_b);
    for (int i = 0; i < KINDS; i++) {
        if (fabs(of_a[i] - of_b[i]) >= 0.005 * GIB)
            return false;
    }
    return fabs(a->peak_bytes - b->peak_bytes) < 0.005 * GIB &&
           fabs(a->reserved_bytes - b->reserved_bytes) < 0.005 * GIB;
}

static int fullest_stage(const Report *report)
{
    int fullest = 0;
    for (int i = 1; i < report->stage_count; i++) {
        const ReportStage *stage = &report->stages[i], *most = &report->stages[fullest];
        if (stage->peak_bytes - stage->capacity_bytes > most->peak_bytes - most->capacity_bytes)
            fullest = i;
    }
    return fullest;
}

/* Rows of neighbours that print the same. */
static int collapse(const Report *report, StageRow *rows)
{
    int count = 0;
    for (int i = 0; i < report->stage_count; i++) {
        if (count > 0 && prints_the_same(&report->stages[rows[count - 1].first], &report->stages[i]))
            rows[count - 1].last = i;
        else
            rows[count++] = (StageRow){i, i};
    }
    return count;
}

/* Keeps the first, the last, the fullest and evenly spread rows between. */
static int sample(StageRow *rows, int count, int fullest)
{
    if (count <= MAX_ROWS)
        return count;
    int kept = 0;
    int next = 0; /* of the evenly spread MAX_ROWS - 1 */
    for (int i = 0; i < count; i++) {
        const bool spread = i == (int)((int64_t)next * (count - 1) / (MAX_ROWS - 2));
        if (spread)
            next++;
        if (spread || (fullest >= rows[i].first && fullest <= rows[i].last))
            rows[kept++] = rows[i];
    }
    return kept;
}

/* One cell of the bar for each share of the scale, a letter of its own per kind, the capacity as a line. */
static void stage_bar(GString *bar, const ReportStage *stage, double scale_bytes, double capacity_bytes)
{
    static const char *const blocks[KINDS] = {"\u2588", "\u2593", "\u2592", "\u2591", "\u254d"};
    double bytes[KINDS];
    stage_kinds(stage, bytes);
    const int width = CLAMP(report_page_width() - TABLE_WIDTH, 8, BAR_WIDTH);
    const int capacity_cell = (int)floor(capacity_bytes / scale_bytes * width + 0.5);
    double sum = 0.0;
    int cell = 0;
    for (int kind = 0; kind <= KINDS; kind++) { /* the last: reserved beyond allocated */
        sum += kind < KINDS ? bytes[kind] : fmax(stage->reserved_bytes - sum, 0.0);
        const int until = (int)floor(sum / scale_bytes * width + 0.5);
        for (; cell < until; cell++)
            g_string_append(bar, cell == capacity_cell ? "\u2502" : kind < KINDS ? blocks[kind] : "\u00b7");
    }
    for (; cell <= MIN(capacity_cell, width); cell++)
        g_string_append(bar, cell == capacity_cell ? "\u2502" : " ");
}

static void add_stage_row(OrrTable *table, const Report *report, const StageRow *row, double scale_bytes)
{
    const ReportStage *stage = &report->stages[row->first];
    char cells[COLUMNS][ORR_TEXT_SIZE];
    if (row->first == row->last)
        g_snprintf(cells[0], ORR_TEXT_SIZE, "%d", stage->stage);
    else
        g_snprintf(cells[0], ORR_TEXT_SIZE, "%d to %d", stage->stage, report->stages[row->last].stage);
    double bytes[KINDS];
    stage_kinds(stage, bytes);
    for (int i = 0; i < KINDS; i++)
        g_snprintf(cells[1 + i], ORR_TEXT_SIZE, "%.2f", bytes[i] / GIB);
    g_snprintf(cells[KINDS + 1], ORR_TEXT_SIZE, "%.2f", stage->peak_bytes / GIB);
    g_snprintf(cells[KINDS + 2], ORR_TEXT_SIZE, "%.2f",
               (stage->peak_bytes + spec_context_bytes(report->spec)) / GIB);
    g_snprintf(cells[KINDS + 3], ORR_TEXT_SIZE, "%.2f", stage->reserved_bytes / GIB);
    g_autoptr(GString) bar = g_string_new(NULL);
    stage_bar(bar, stage, scale_bytes, stage->capacity_bytes);
    const char *columns[COLUMNS];
    for (int i = 0; i < COLUMNS - 1; i++)
        columns[i] = cells[i];
    columns[COLUMNS - 1] = bar->str;
    orr_table_row(table, columns);
}

/* Fields that would make room for states, or for activations, that the software has and that are not used yet. */
static void append_zero(const Spec *spec, GString *line)
{
    const SpecParallel *parallel = &spec->parallel;
    const SpecFramework *framework = &spec->execution.framework;
    const int most = spec_most_zero(framework, parallel->pipeline);
    const int least = framework->data_parallel.least_zero;
    if (parallel->zero == 0 && most >= least && parallel->data > 1)
        g_string_append_printf(line, "parallel.zero=%d, ", least);
    if (parallel->zero < 3 && most >= 3 && parallel->data > 1 && parallel->pipeline == 1)
        g_string_append(line, "parallel.zero=3, ");
    if (parallel->zero > 0 && parallel->zero_group_gpus > 0)
        g_string_append(line, "parallel.zero_group_gpus=0, ");
    if (spec->model.moe.experts > parallel->expert && parallel->data > parallel->expert)
        g_string_append(line, "a larger parallel.expert, ");
}

static void append_activations(const Spec *spec, GString *line)
{
    const SpecTraining *training = &spec->training;
    if (spec->parallel.tensor > 1 && !spec->parallel.sequence_parallel)
        g_string_append(line, "parallel.sequence_parallel=true, ");
    if (training->recompute.mode != SPEC_RECOMPUTE_FULL || training->recompute.layers > 0)
        g_string_append(line, "training.recompute=full, ");
    const int least = spec_sequences_together(training->task);
    if (training->reference == SPEC_REFERENCE_MODEL)
        g_string_append(line, "training.reference=cached, ");
    if (training->micro_batch > least)
        g_string_append_printf(line, "training.micro_batch=%d, ", least);
}

/* States alone near the capacity: what shrinks activations makes no room. Those of ZeRO-3 over all ranks are dealt out
 * over every GPU already, and no degree changes that. */
static void write_remedies(const Report *report, const ReportStage *fullest, GString *out)
{
    const Spec *spec = report->spec;
    const SpecParallel *parallel = &spec->parallel;
    const double states = fullest->weights_bytes + fullest->gradients_bytes + fullest->optimizer_bytes;
    const bool full_of_states = states + spec_context_bytes(spec) > 0.85 * report->capacity_bytes;
    const bool dealt_out = parallel->zero == 3 && parallel->zero_group_gpus == 0;
    char held[ORR_TEXT_SIZE], capacity[ORR_TEXT_SIZE];
    g_autoptr(GString) line = g_string_new(NULL);
    append_zero(spec, line);
    if (full_of_states && spec->training.reference == SPEC_REFERENCE_MODEL)
        g_string_append(line, "training.reference=cached, ");
    if (full_of_states && spec->training.task != SPEC_TASK_PRETRAIN && !spec->training.adapter.given)
        g_string_append(line, "adapters (training.adapter) in place of all weights, ");
    if (!full_of_states)
        append_activations(spec, line);
    if (full_of_states && dealt_out)
        g_string_append(line,
                        "more GPUs, GPUs with more memory, or an optimizer with smaller states "
                        "(training.optimizer); larger tensor or pipeline degrees do not, as the states are "
                        "split over all GPUs already");
    else if (full_of_states && !dealt_out)
        g_string_append(line, "larger tensor or pipeline degrees, more GPUs");
    else
        g_string_append(line, "larger tensor or pipeline degrees; a field that is \"auto\" takes the fastest "
                              "value that fits");
    if (full_of_states)
        g_string_append_printf(line, " (weights, gradients and optimizer alone take %s of %s)",
                               orr_text_bytes(held, states),
                               orr_text_bytes(capacity, report->capacity_bytes));
    report_page_entry(out, "  Makes room", LABEL_COLUMN, line->str);
}

static void append_reserve(const Report *report, GString *line)
{
    char reserve[ORR_TEXT_SIZE];
    if (!(report->reserve_bytes > 0))
        return;
    g_string_append_printf(line, "; the reserve is %s", orr_text_bytes(reserve, report->reserve_bytes));
    if (report->reserve_doubled)
        g_string_append_printf(
            line, " (twice the excess of %d published runs over their prediction; none is of %s)",
            report->reserve_runs, report->spec->execution.framework.name);
    else if (report->reserve_runs > 0)
        g_string_append_printf(line, " (98 %% of %d published runs%s%s exceeded their prediction by less)",
                               report->reserve_runs, report->reserve_own ? " of " : "",
                               report->reserve_own ? report->spec->execution.framework.name : "");
}

static void append_odds(const Report *report, GString *line)
{
    if (!isnan(report->memory_odds))
        g_string_append_printf(line, "; odds that it fits, by published runs: %.0f %%",
                               100 * report->memory_odds);
}

static void write_verdict(const Report *report, const ReportStage *fullest, GString *out)
{
    char capacity[ORR_TEXT_SIZE], room[ORR_TEXT_SIZE], held[ORR_TEXT_SIZE], needed[ORR_TEXT_SIZE];
    g_autoptr(GString) line = g_string_new(NULL);
    orr_text_bytes(capacity, report->capacity_bytes);
    orr_text_bytes(needed, report->needed_bytes);
    orr_text_bytes(held, fullest->reserved_bytes);
    switch (report->memory_verdict) {
    case REPORT_MEMORY_NONE:
        if (report->offload.on && report->needed_bytes <= report->capacity_bytes) {
            g_string_printf(line, "  DOES NOT FIT: %s of a node lack%s %s",
                            report->offload.host_fits ? "the disks" : "the host's memory",
                            report->offload.host_fits ? "" : "s", orr_text_bytes(room, report->short_bytes));
            break;
        }
        g_string_printf(
            line, "  DOES NOT FIT: stage %d lacks %s beyond the %s of its GPUs; peak and context are %s",
            fullest->stage, orr_text_bytes(room, report->short_bytes), capacity, needed);
        break;
    case REPORT_MEMORY_EDGE:
        g_string_printf(line, "  At the edge: peak and context of stage %d are %s, %s to spare",
                        fullest->stage, needed,
                        orr_text_bytes(room, report->capacity_bytes - report->needed_bytes));
        if (fullest->reserved_bytes > report->capacity_bytes)
            g_string_append_printf(line,
                                   "; the allocator would hold %s and has to give cached blocks back, which "
                                   "fragmentation may prevent",
                                   held);
        append_reserve(report, line);
        append_odds(report, line);
        break;
    case REPORT_MEMORY_FITS:
        g_string_printf(line, "  Fits: the fullest stage (%d) has %s of %s to spare", fullest->stage,
                        orr_text_bytes(room, report->capacity_bytes - fullest->reserved_bytes), capacity);
        append_reserve(report, line);
        break;
    }
    report_page_entry(out, "", 2, line->str);
    if (report->needed_bytes > report->capacity_bytes)
        write_remedies(report, fullest, out);
}

/* Cached blocks that fit no other text, where those differ in length: a tenth of what is reserved, or more. */
static void write_unlike_texts(const Report *report, const ReportStage *fullest, GString *out)
{
    const SpecLengths *lengths = &report->spec->training.lengths;
    char bytes[ORR_TEXT_SIZE];
    if (!lengths->given || lengths->packed)
        return;
    const double stranded = (double)report->plan.ranks[fullest->stage].stranded_bytes;
    if (stranded < fullest->reserved_bytes / 10)
        return;
    g_autofree char *line =
        g_strdup_printf("  Texts of many lengths leave %s of cached blocks that fit no other text; "
                        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True avoids most of it",
                        orr_text_bytes(bytes, stranded));
    report_page_entry(out, "", 2, line);
}

void report_text_memory(const Report *report, GString *out)
{
    static const char *const headers[COLUMNS] = {"stage",     "weights", "grads", "optim",    "activ",
                                                 "workspace", "peak",    "needs", "reserved", ""};
    if (report->stage_count == 0)
        return;
    const int fullest = fullest_stage(report);
    g_autofree StageRow *rows = g_new(StageRow, (gsize)report->stage_count);
    const int distinct = collapse(report, rows);
    const int shown = sample(rows, distinct, fullest);
    double scale_bytes = 0;
    for (int i = 0; i < report->stage_count; i++)
        scale_bytes =
            fmax(scale_bytes, fmax(report->stages[i].capacity_bytes, report->stages[i].reserved_bytes));

    char capacity[ORR_TEXT_SIZE];
    g_autofree char *title =
        g_strdup_printf("Memory of one GPU of each pipeline stage at its peak, in GiB, against %s",
                        orr_text_bytes(capacity, report->capacity_bytes));
    g_string_append_c(out, '\n');
    report_page_entry(out, "", 0, title);
    OrrTable *table = orr_table_new(headers, COLUMNS);
    for (int i = 0; i < shown; i++)
        add_stage_row(table, report, &rows[i], scale_bytes);
    report_page_table(table, out, 2);
    orr_table_free(table);
    report_page_entry(
        out, "", 2,
        "\u2588\u00a0weights, \u2593\u00a0gradients, \u2592\u00a0optimizer, \u2591\u00a0activations, "
        "\u254d\u00a0workspace, \u00b7\u00a0reserved besides, \u2502\u00a0capacity");
    if (shown < distinct)
        report_page_say(out, 2, "%d of %d stages shown", shown, report->stage_count);
    double host_bytes = 0;
    for (int i = 0; i < report->stage_count; i++)
        host_bytes = fmax(host_bytes, report->stages[i].host_bytes);
    if (host_bytes > 0)
        report_page_say(out, 2, "In the host's memory: up to %s a GPU", orr_text_bytes(capacity, host_bytes));
    write_unlike_texts(report, &report->stages[fullest], out);
    write_verdict(report, &report->stages[fullest], out);
}
