/* report/text_memory.c - the memory section of the text report. */
#include "report/text_memory.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "report/page.h"

enum { KINDS = 5, COLUMNS = KINDS + 4, MAX_ROWS = 16, BAR_WIDTH = 28, LABEL_COLUMN = 14 };

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
        if (report->stages[i].peak_bytes > report->stages[fullest].peak_bytes)
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
    const int capacity_cell = (int)floor(capacity_bytes / scale_bytes * BAR_WIDTH + 0.5);
    double sum = 0.0;
    int cell = 0;
    for (int kind = 0; kind <= KINDS; kind++) { /* the last: reserved beyond allocated */
        sum += kind < KINDS ? bytes[kind] : fmax(stage->reserved_bytes - sum, 0.0);
        const int until = (int)floor(sum / scale_bytes * BAR_WIDTH + 0.5);
        for (; cell < until; cell++)
            g_string_append(bar, cell == capacity_cell ? "\u2502" : kind < KINDS ? blocks[kind] : "\u00b7");
    }
    for (; cell <= MIN(capacity_cell, BAR_WIDTH); cell++)
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
    g_snprintf(cells[KINDS + 2], ORR_TEXT_SIZE, "%.2f", stage->reserved_bytes / GIB);
    g_autoptr(GString) bar = g_string_new(NULL);
    stage_bar(bar, stage, scale_bytes, report->capacity_bytes);
    const char *columns[COLUMNS];
    for (int i = 0; i < COLUMNS - 1; i++)
        columns[i] = cells[i];
    columns[COLUMNS - 1] = bar->str;
    orr_table_row(table, columns);
}

/* Fields that would make room, that the software has and that are not used yet. */
static void write_remedies(const Spec *spec, GString *out)
{
    const SpecTraining *training = &spec->training;
    const SpecParallel *parallel = &spec->parallel;
    const SpecFramework *framework = &spec->execution.framework;
    const int most_zero = spec_most_zero(framework, parallel->pipeline);
    g_autoptr(GString) line = g_string_new(NULL);
    if (parallel->zero == 0 && most_zero > 0 && parallel->data > 1)
        g_string_append(line, "parallel.zero=1, ");
    if (parallel->tensor > 1 && !parallel->sequence_parallel)
        g_string_append(line, "parallel.sequence_parallel=true, ");
    if (training->recompute.mode != SPEC_RECOMPUTE_FULL)
        g_string_append(line, "training.recompute=full, ");
    if (training->micro_batch > 1)
        g_string_append(line, "training.micro_batch=1, ");
    if (parallel->zero < 3 && most_zero >= 3 && parallel->data > 1 && parallel->pipeline == 1)
        g_string_append(line, "parallel.zero=3, ");
    g_string_append(line, "larger tensor or pipeline degrees; a field that is \"auto\" takes the fastest "
                          "value that fits");
    report_page_entry(out, "  Makes room", LABEL_COLUMN, line->str);
}

static void write_verdict(const Report *report, const ReportStage *fullest, GString *out)
{
    char capacity[ORR_TEXT_SIZE], room[ORR_TEXT_SIZE], held[ORR_TEXT_SIZE], needed[ORR_TEXT_SIZE];
    const double needed_bytes =
        fullest->peak_bytes + report->spec->execution.framework.allocator.context_bytes;
    orr_text_bytes(capacity, report->capacity_bytes);
    orr_text_bytes(needed, needed_bytes);
    orr_text_bytes(held, fullest->reserved_bytes);
    g_autofree char *line = NULL;
    if (!report->fits)
        line =
            g_strdup_printf("  DOES NOT FIT: stage %d lacks %s beyond the %s of its GPUs; peak and context "
                            "are %s",
                            fullest->stage, orr_text_bytes(room, report->short_bytes), capacity, needed);
    else if (fullest->reserved_bytes > report->capacity_bytes)
        line = g_strdup_printf("  Just fits: peak and context of stage %d are %s, %s to spare; the allocator "
                               "would hold %s and has to give cached blocks back, which fragmentation may "
                               "prevent",
                               fullest->stage, needed,
                               orr_text_bytes(room, report->capacity_bytes - needed_bytes), held);
    else
        line =
            g_strdup_printf("  Fits: the fullest stage (%d) has %s of %s to spare", fullest->stage,
                            orr_text_bytes(room, report->capacity_bytes - fullest->reserved_bytes), capacity);
    report_page_entry(out, "", 2, line);
    if (!report->fits)
        write_remedies(report->spec, out);
}

void report_text_memory(const Report *report, GString *out)
{
    static const char *const headers[COLUMNS] = {"stage",     "weights", "grads",    "optim", "activ",
                                                 "workspace", "peak",    "reserved", ""};
    if (report->stage_count == 0)
        return;
    const int fullest = fullest_stage(report);
    g_autofree StageRow *rows = g_new(StageRow, (gsize)report->stage_count);
    const int distinct = collapse(report, rows);
    const int shown = sample(rows, distinct, fullest);
    const double scale_bytes = fmax(report->capacity_bytes, report->reserved_bytes);

    char capacity[ORR_TEXT_SIZE];
    g_string_append_printf(out,
                           "\nMemory of one GPU of each pipeline stage at its peak, in GiB, against %s\n",
                           orr_text_bytes(capacity, report->capacity_bytes));
    OrrTable *table = orr_table_new(headers, COLUMNS);
    for (int i = 0; i < shown; i++)
        add_stage_row(table, report, &rows[i], scale_bytes);
    orr_table_print(table, out, 2);
    orr_table_free(table);
    g_string_append(
        out, "  \u2588 weights  \u2593 gradients  \u2592 optimizer  \u2591 activations  \u254d workspace  "
             "\u00b7 reserved besides  \u2502 capacity\n");
    if (shown < distinct)
        g_string_append_printf(out, "  %d of %d stages shown\n", shown, report->stage_count);
    double host_bytes = 0;
    for (int i = 0; i < report->stage_count; i++)
        host_bytes = fmax(host_bytes, report->stages[i].host_bytes);
    if (host_bytes > 0)
        g_string_append_printf(out, "  In the host's memory: up to %s a GPU\n",
                               orr_text_bytes(capacity, host_bytes));
    write_verdict(report, &report->stages[fullest], out);
}
