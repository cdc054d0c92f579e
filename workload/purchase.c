/* workload/purchase.c - see purchase.h. Tested: unit/workload/test_split.c */
#include "workload/purchase.h"

#include <math.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "report/page.h"
#include "report/report.h"

static void add(const Spec *spec, const Splits *splits, Purchase *purchase)
{
    PurchaseRow *row = &purchase->row[purchase->row_count++];
    const SplitRow *best = &splits->row[0];
    const double hours = spec->workload.steps * (double)best->step_ps * 1e-12 / 3600;
    *row = (PurchaseRow){.gpus = splits->gpus,
                         .split = *best,
                         .days = hours / 24,
                         .gpu_hours = hours * splits->gpus,
                         .usd = hours * splits->gpus * spec->cluster.usd_per_gpu_hour};
    row->keeps = (!(purchase->deadline_s > 0) || hours * 3600 <= purchase->deadline_s) &&
                 (!(purchase->budget_usd > 0) || row->usd <= purchase->budget_usd);
    if (row->keeps && (purchase->answer < 0 || row->gpus < purchase->row[purchase->answer].gpus))
        purchase->answer = purchase->row_count - 1;
}

/* Sizes in nodes, at most PURCHASE_MOST_ROWS. */
static bool sizes_of(const Spec *spec, int nodes, const int *gpus, int count, GArray *sizes, GError **error)
{
    const int per_node = spec->cluster.gpus_per_node;
    for (int i = 0; i < count && i < PURCHASE_MOST_ROWS; i++) {
        const int own = gpus[i] / per_node;
        if (own < 1 || gpus[i] % per_node != 0)
            return orr_fail(error, ORR_ERROR_INPUT,
                            "--gpus: %d are not whole nodes of %d GPUs; give a multiple", gpus[i], per_node);
        g_array_append_val(sizes, own);
    }
    for (int own = 1; count == 0 && own <= 8 * nodes && sizes->len < PURCHASE_MOST_ROWS; own *= 2)
        g_array_append_val(sizes, own);
    return true;
}

bool purchase_run(const Spec *spec, const SpecSource *source, const int *gpus, int count, double deadline_s,
                  double budget_usd, Purchase *ret_purchase, GError **error)
{
    if (!(spec->workload.steps > 0))
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "workload.steps: missing; give the steps of the whole run, as --set workload.steps=400");
    if (budget_usd > 0 && !(spec->cluster.usd_per_gpu_hour > 0))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "cluster.usd_per_gpu_hour: missing; a budget needs the price of a GPU-hour");
    g_autoptr(GArray) sizes = g_array_new(FALSE, FALSE, sizeof(int));
    g_autofree Purchase *purchase = g_new0(Purchase, 1);
    g_autoptr(GError) last = NULL;
    purchase->spec = spec;
    purchase->answer = -1;
    purchase->deadline_s = deadline_s;
    purchase->budget_usd = budget_usd;
    if (!sizes_of(spec, splits_nodes(spec), gpus, count, sizes, error))
        return false;
    for (guint i = 0; i < sizes->len; i++) {
        Splits splits;
        g_clear_error(&last);
        if (splits_search_on(spec, source, g_array_index(sizes, int, i), 1, &splits, &last))
            add(spec, &splits, purchase);
    }
    if (purchase->row_count == 0) {
        g_propagate_error(error, g_steal_pointer(&last));
        return false;
    }
    *ret_purchase = *purchase;
    return true;
}

void purchase_write_json(const Purchase *purchase, const SpecSource *source, GString *out)
{
    OrrJsonWriter w;
    workload_begin_json(&w, purchase->spec, source, out);
    orr_jw_number(&w, "steps", purchase->spec->workload.steps);
    orr_jw_number(&w, "deadline_s", purchase->deadline_s > 0 ? purchase->deadline_s : NAN);
    orr_jw_number(&w, "budget_usd", purchase->budget_usd > 0 ? purchase->budget_usd : NAN);
    orr_jw_number(&w, "gpus", purchase->answer >= 0 ? (double)purchase->row[purchase->answer].gpus : NAN);
    orr_jw_begin(&w, "rows", '[');
    for (int i = 0; i < purchase->row_count; i++) {
        const PurchaseRow *row = &purchase->row[i];
        orr_jw_begin(&w, NULL, '{');
        orr_jw_int(&w, "gpus", row->gpus);
        orr_jw_int(&w, "train_gpus", row->split.train_gpus);
        orr_jw_int(&w, "rollout_gpus", row->split.rollout_gpus);
        orr_jw_int(&w, "rollout_tensor", row->split.tensor);
        splits_write_layout(purchase->spec, &row->split, &w);
        orr_jw_ps(&w, "step_s", row->split.step_ps);
        orr_jw_number(&w, "days", row->days);
        orr_jw_number(&w, "gpu_hours", row->gpu_hours);
        orr_jw_number(&w, "usd", row->usd > 0 ? row->usd : NAN);
        orr_jw_bool(&w, "keeps", row->keeps);
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, ']');
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}

static OrrTable *table_of(const Purchase *purchase)
{
    static const char *const headers[] = {"gpus",         "train_gpus",     "train_layout",
                                          "rollout_gpus", "rollout_tensor", "step_s",
                                          "days",         "gpu_hours",      "usd"};
    OrrTable *table = orr_table_new(headers, (int)G_N_ELEMENTS(headers));
    for (int i = 0; i < purchase->row_count; i++) {
        const PurchaseRow *row = &purchase->row[i];
        g_autofree char *layout = splits_layout(purchase->spec, &row->split);
        g_autofree char *gpus = g_strdup_printf("%d", row->gpus),
                        *train = g_strdup_printf("%d", row->split.train_gpus),
                        *rollout = g_strdup_printf("%d", row->split.rollout_gpus),
                        *tensor = g_strdup_printf("%d", row->split.tensor),
                        *step = g_strdup_printf("%.6g", (double)row->split.step_ps * 1e-12),
                        *days = g_strdup_printf("%.4g", row->days),
                        *hours = g_strdup_printf("%.0f", row->gpu_hours),
                        *usd = row->usd > 0 ? g_strdup_printf("%.0f", row->usd) : g_strdup("");
        const char *const cells[] = {gpus, train, layout, rollout, tensor, step, days, hours, usd};
        orr_table_row(table, cells);
    }
    return table;
}

void purchase_write_text(const Purchase *purchase, GString *out)
{
    char gpus[ORR_TEXT_SIZE];
    if (purchase->answer < 0)
        g_string_append(out, "No machine below keeps the deadline and the budget.\n\n");
    else
        g_string_append_printf(out, "%s: %.3g days for %.0f steps\n\n",
                               report_page_gpus(gpus, purchase->row[purchase->answer].gpus),
                               purchase->row[purchase->answer].days, purchase->spec->workload.steps);
    OrrTable *table = table_of(purchase);
    report_page_table(table, out, 2);
    orr_table_free(table);
    g_string_append(out, "\n  train_gpus and rollout_gpus both all of gpus: they train and generate in turn. "
                         "Each row is the best of its "
                         "splits.\n  " SPLITS_LAYOUT_NOTE "\n");
}

void purchase_write_csv(const Purchase *purchase, GString *out)
{
    OrrTable *table = table_of(purchase);
    orr_table_csv(table, out);
    orr_table_free(table);
}
