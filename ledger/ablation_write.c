/* ledger/ablation_write.c - ablation steps as a table or JSON. */
#include <math.h>

#include "base/text.h"
#include "report/page.h"
#include "base/units.h"
#include "ledger/ablation.h"

/* Steps of one source and one switch. */
typedef struct Group {
    int source, steps, directed, right;
    const char *change;
    double measured, predicted, gap; /* sums */
} Group;

static void add_step(GArray *groups, const LedgerAblation *step)
{
    Group *group = NULL;
    for (guint i = 0; group == NULL && i < groups->len; i++) {
        Group *known = &g_array_index(groups, Group, i);
        if (known->source == step->from->source && known->change == step->change)
            group = known;
    }
    if (group == NULL) {
        const Group fresh = {.source = step->from->source, .change = step->change};
        g_array_append_val(groups, fresh);
        group = &g_array_index(groups, Group, groups->len - 1);
    }
    const bool directed = fabs(step->measured_frac) >= LEDGER_ABLATION_NOISE;
    group->steps += 1;
    group->directed += directed;
    group->right += directed && (step->measured_frac > 0) == (step->predicted_frac > 0);
    group->measured += fabs(step->measured_frac);
    group->predicted += fabs(step->predicted_frac);
    group->gap += fabs(step->predicted_frac - step->measured_frac);
}

static void write_groups(const Ledger *ledger, const LedgerAblations *found, GString *out)
{
    enum { COLUMNS = 7 };
    static const char *const HEADERS[COLUMNS] = {
        "source", "change", "steps", "right direction", "measured gain", "predicted gain", "mean gap"};
    OrrTable *table = orr_table_new(HEADERS, COLUMNS);
    g_autoptr(GArray) groups = g_array_new(FALSE, FALSE, sizeof(Group));
    for (guint i = 0; i < found->steps->len; i++)
        add_step(groups, &g_array_index(found->steps, LedgerAblation, i));
    for (guint i = 0; i < groups->len; i++) {
        const Group *group = &g_array_index(groups, Group, i);
        const LedgerSource *source = ledger->sources->pdata[group->source];
        char cell[5][ORR_TEXT_SIZE];
        g_snprintf(cell[0], ORR_TEXT_SIZE, "%d", group->steps);
        g_snprintf(cell[1], ORR_TEXT_SIZE, "%d of %d", group->right, group->directed);
        g_snprintf(cell[2], ORR_TEXT_SIZE, "%.1f %%", 100 * group->measured / group->steps);
        g_snprintf(cell[3], ORR_TEXT_SIZE, "%.1f %%", 100 * group->predicted / group->steps);
        g_snprintf(cell[4], ORR_TEXT_SIZE, "%.1f", 100 * group->gap / group->steps);
        const char *cells[COLUMNS] = {source->file, group->change, cell[0], cell[1],
                                      cell[2],      cell[3],       cell[4]};
        orr_table_row(table, cells);
    }
    report_page_table(table, out, 2);
    orr_table_free(table);
}

static void write_steps(const LedgerAblations *found, GString *out)
{
    enum { COLUMNS = 5 };
    static const char *const HEADERS[COLUMNS] = {"from", "to", "change", "measured", "predicted"};
    OrrTable *table = orr_table_new(HEADERS, COLUMNS);
    for (guint i = 0; i < found->steps->len; i++) {
        const LedgerAblation *step = &g_array_index(found->steps, LedgerAblation, i);
        char measured[ORR_TEXT_SIZE], predicted[ORR_TEXT_SIZE];
        g_autofree char *change = g_strdup_printf("%s %s -> %s", step->change, step->was, step->is);
        g_snprintf(measured, sizeof measured, "%+.1f %%", 100 * step->measured_frac);
        g_snprintf(predicted, sizeof predicted, "%+.1f %%", 100 * step->predicted_frac);
        const char *cells[COLUMNS] = {step->from->id, step->to->id, change, measured, predicted};
        orr_table_row(table, cells);
    }
    report_page_table(table, out, 2);
    orr_table_free(table);
}

void ledger_write_ablations_text(const Ledger *ledger, bool every_step, GString *out)
{
    LedgerAblations found = ledger_ablations(ledger);
    g_string_append(out, "Steps of one change: pairs of runs that differ in one switch alone\n\n");
    if (every_step) {
        write_steps(&found, out);
        g_string_append_c(out, '\n');
    }
    write_groups(ledger, &found, out);
    g_string_append_printf(out, "\n  %u steps", found.steps->len);
    if (found.steps->len > 0)
        g_string_append_printf(
            out, "; %d of %d with a gain of %.0f %% or more in the right direction; mean gap %.1f points",
            found.right, found.directed, 100 * LEDGER_ABLATION_NOISE, 100 * found.gap);
    g_string_append_c(out, '\n');
    ledger_ablations_clear(&found);
}

void ledger_write_ablations_json(const Ledger *ledger, GString *out)
{
    LedgerAblations found = ledger_ablations(ledger);
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_begin(&w, "steps", '[');
    for (guint i = 0; i < found.steps->len; i++) {
        const LedgerAblation *step = &g_array_index(found.steps, LedgerAblation, i);
        orr_jw_begin(&w, NULL, '{');
        orr_jw_text(&w, "from", step->from->id);
        orr_jw_text(&w, "to", step->to->id);
        orr_jw_text(&w, "change", step->change);
        orr_jw_text(&w, "was", step->was);
        orr_jw_text(&w, "is", step->is);
        orr_jw_number(&w, "measured_frac", step->measured_frac);
        orr_jw_number(&w, "predicted_frac", step->predicted_frac);
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, ']');
    orr_jw_int(&w, "directed", found.directed);
    orr_jw_int(&w, "right", found.right);
    if (isnan(found.gap))
        orr_jw_null(&w, "mean_gap_frac");
    else
        orr_jw_number(&w, "mean_gap_frac", found.gap);
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
    ledger_ablations_clear(&found);
}
