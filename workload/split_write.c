/* workload/split_write.c - splits of a machine as JSON, as a page and as a table. Computes nothing. */
#include "base/json.h"
#include "base/text.h"
#include "report/page.h"
#include "report/report.h"
#include "workload/split.h"

static const char *placement(const SplitRow *row)
{
    return row->apart > 0 ? "apart" : "colocated";
}

static bool same_layout(const SpecRanks *a, const SpecRanks *b)
{
    return a->tensor == b->tensor && a->pipeline == b->pipeline && a->context == b->context;
}

char *splits_layout(const Spec *spec, const SplitRow *row)
{
    GString *each = g_string_new(NULL);
    const SpecRanks *first = NULL;
    bool same = true;
    for (int i = 0; i < spec->workload.role_count; i++) {
        const SpecRanks *own = &row->train[i];
        if (own->tensor == 0)
            continue;
        g_string_append_printf(each, "%s%s t%d p%d c%d", first != NULL ? ", " : "",
                               spec->workload.role[i].name, own->tensor, own->pipeline, own->context);
        same = same && (first == NULL || same_layout(first, own));
        first = own;
    }
    if (same && first != NULL)
        g_string_printf(each, "t%d p%d c%d", first->tensor, first->pipeline, first->context);
    return g_string_free(each, FALSE);
}

void splits_write_layout(const Spec *spec, const SplitRow *row, OrrJsonWriter *w)
{
    orr_jw_begin(w, "train_layouts", '{');
    for (int i = 0; i < spec->workload.role_count; i++) {
        if (row->train[i].tensor == 0)
            continue;
        orr_jw_begin(w, spec->workload.role[i].name, '{');
        orr_jw_int(w, "tensor", row->train[i].tensor);
        orr_jw_int(w, "pipeline", row->train[i].pipeline);
        orr_jw_int(w, "context", row->train[i].context);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, '}');
}

void splits_write_json(const Splits *splits, const SpecSource *source, GString *out)
{
    OrrJsonWriter w;
    workload_begin_json(&w, splits->spec, source, out);
    orr_jw_int(&w, "gpus", splits->gpus);
    orr_jw_int(&w, "space", splits->space);
    orr_jw_int(&w, "layouts", splits->layouts);
    orr_jw_int(&w, "evaluated", splits->asked);
    orr_jw_int(&w, "refused", splits->refused);
    if (splits->why[0] != '\0')
        orr_jw_text(&w, "first_refusal", splits->why);
    orr_jw_int(&w, "pruned", splits->pruned);
    orr_jw_bool(&w, "proved", true);
    orr_jw_begin(&w, "best", '[');
    for (int i = 0; i < splits->row_count; i++) {
        const SplitRow *row = &splits->row[i];
        orr_jw_begin(&w, NULL, '{');
        orr_jw_text(&w, "placement", placement(row));
        orr_jw_int(&w, "train_gpus", row->train_gpus);
        orr_jw_int(&w, "rollout_gpus", row->rollout_gpus);
        orr_jw_int(&w, "rollout_tensor", row->tensor);
        splits_write_layout(splits->spec, row, &w);
        orr_jw_ps(&w, "step_s", row->step_ps);
        orr_jw_ps(&w, "bound_s", row->bound_ps);
        orr_jw_number(&w, "tokens_per_s", row->tokens_per_s);
        orr_jw_number(&w, "tokens_per_s_per_gpu", row->tokens_per_s_per_gpu);
        orr_jw_text(&w, "bound_by", row->bound_by);
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, ']');
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}

OrrTable *splits_table(const Splits *splits, bool plain)
{
    static const char
        *const headers[] = {"placement",      "train_gpus", "train_layout",         "rollout_gpus",
                            "rollout_tensor", "step_s",     "tokens_per_s_per_gpu", "bound_by"},
               *const words[] = {"placement", "GPUs that train", "as",      "generate", "tensor ranks there",
                                 "step",      "tokens/s/GPU",    "bound by"};
    OrrTable *table = orr_table_new(plain ? headers : words, (int)G_N_ELEMENTS(headers));
    for (int i = 0; i < splits->row_count; i++) {
        const SplitRow *row = &splits->row[i];
        char step[ORR_TEXT_SIZE], train[ORR_TEXT_SIZE], rollout[ORR_TEXT_SIZE], tensor[ORR_TEXT_SIZE],
            rate[ORR_TEXT_SIZE];
        g_autofree char *layout = splits_layout(splits->spec, row);
        g_snprintf(train, sizeof train, "%d", row->train_gpus);
        g_snprintf(rollout, sizeof rollout, "%d", row->rollout_gpus);
        g_snprintf(tensor, sizeof tensor, "%d", row->tensor);
        g_snprintf(rate, sizeof rate, "%.0f", row->tokens_per_s_per_gpu);
        if (plain)
            g_snprintf(step, sizeof step, "%.12f", (double)row->step_ps * 1e-12);
        else
            orr_text_seconds(step, (double)row->step_ps * 1e-12);
        const char *const cells[] = {placement(row), train, layout, rollout,
                                     tensor,         step,  rate,   row->bound_by};
        orr_table_row(table, cells);
    }
    return table;
}

void splits_write_text(const Splits *splits, GString *out)
{
    char gpus[ORR_TEXT_SIZE];
    g_string_append_printf(
        out,
        "%d ways to deal %s to training and generation, roles in up to %d layouts: %d asked, %d left out "
        "by a bound, %d refused; the best are proved.\n",
        splits->space, report_page_gpus(gpus, splits->gpus), splits->layouts, splits->asked, splits->pruned,
        splits->refused);
    if (splits->why[0] != '\0')
        report_page_say(out, 0, "The first refused: %s.", splits->why);
    g_string_append_c(out, '\n');
    OrrTable *table = splits_table(splits, false);
    report_page_table(table, out, 2);
    g_string_append(out, "\n  " SPLITS_LAYOUT_NOTE "\n");
    orr_table_free(table);
}

void splits_write_csv(const Splits *splits, GString *out)
{
    OrrTable *table = splits_table(splits, true);
    orr_table_csv(table, out);
    orr_table_free(table);
}
