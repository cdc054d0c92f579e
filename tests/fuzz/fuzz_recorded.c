/* tests/fuzz/fuzz_recorded.c - bytes as what other tools recorded: nccl-tests' text and JSON, a CSV of GEMMs, a sweep, a
 * list of measured steps. Rows, or a message; what is read is predicted, fitted to where that is cheap, and written. */
#include <stdint.h>
#include <string.h>

#include "calibrate/fit/ceilings.h"
#include "calibrate/fit/collective_rows.h"
#include "calibrate/fit/collectives.h"
#include "calibrate/fit/fit_interference.h"
#include "calibrate/fit/fit_moves.h"
#include "calibrate/fit/check.h"
#include "calibrate/fit/lint.h"
#include "calibrate/fit/neighbours.h"
#include "calibrate/fit/recorded.h"
#include "calibrate/fit/table.h"
#include "spec/load.h"
#include "spec/measurement.h"

#define MOST_ROWS 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_rows(const OrrJson *root, SpecCluster *cluster)
{
    g_autoptr(GString) text = g_string_new(NULL), log = g_string_new(NULL);
    g_autoptr(GArray) residuals = g_array_new(FALSE, TRUE, sizeof(CalResidual));
    GArray *rows = cal_table_rows(root, log), *collectives = NULL;
    GError *error = NULL;
    OrrJsonWriter w;
    orr_jw_init(&w, text, true);
    orr_jw_begin(&w, NULL, '{');
    for (guint i = 0; i < MIN(rows->len, MOST_ROWS); i++)
        cal_neighbours_s(rows, i);
    const CalCeilings ceilings = cal_ceilings(root, rows, &cluster->accelerator);
    cal_ceilings_write(&ceilings, &w);
    const CalInterferences found =
        cal_fit_interference(root, cluster, &cluster->accelerator.model.collectives);
    cal_interference_write(&found, &w);
    orr_jw_end(&w, '}');
    OrrJsonDoc *again = orr_json_parse(text->str, text->len, "written", &error);
    g_assert_no_error(error);
    orr_json_free(again);
    if (!cal_lint_table(root, "fuzz", &error))
        g_assert(error != NULL && g_str_has_prefix(error->message, "fuzz"));
    g_clear_error(&error);
    g_autoptr(GArray) groups = g_array_new(FALSE, TRUE, sizeof(CalCheckGroup));
    cal_check_moves(root, NULL, groups);
    cal_move_residuals(root, cluster->accelerator.name, &cluster->accelerator, residuals);
    const OrrJson *list = orr_json_member(root, "collective_measurements");
    if (list != NULL && !cal_collective_rows(list, cluster, &collectives, &error))
        g_assert(error != NULL);
    g_clear_error(&error);
    if (collectives != NULL)
        g_array_unref(collectives);
    g_array_unref(rows);
}

static void read_steps(const char *text)
{
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "fuzz", NULL);
    const OrrJson *root = doc != NULL ? orr_json_root(doc) : NULL;
    if (root != NULL && orr_json_type(root) == ORR_JSON_LIST)
        for (const OrrJson *row = orr_json_first(root); row != NULL; row = orr_json_next(row)) {
            SpecMeasurement measurement;
            GError *error = NULL;
            if (orr_json_type(row) == ORR_JSON_OBJECT &&
                !spec_read_measurement(row, "fuzz", &measurement, &error))
                g_assert(error != NULL);
            g_clear_error(&error);
        }
    orr_json_free(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"run.log", "all_reduce_perf.txt"};
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autofree SpecCluster *cluster = g_new0(SpecCluster, 1);
    GError *error = NULL;
    if (!spec_load_accelerator("h100-sxm5-80gb", &cluster->accelerator, &error))
        g_error("%s", error->message);
    const SpecAccelerator accelerator = cluster->accelerator;
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        OrrJsonDoc *doc = NULL;
        cal_reference_cluster(&accelerator, cluster);
        if (cal_recorded_parse(text, strlen(text), names[i], "h100-sxm5-80gb", &doc, NULL, &error)) {
            read_rows(orr_json_root(doc), cluster);
            orr_json_free(doc);
        } else {
            g_assert(error != NULL && error->message[0] != '\0');
            g_clear_error(&error);
        }
    }
    read_steps(text);
    return 0;
}
