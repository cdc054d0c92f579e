/* cli/cmd_calibrate_steps.c - measured training steps to a profile: here the fit of calibrate/ meets the simulator. */
#include "cli/cmd_calibrate_steps.h"

#include <string.h>

#include "base/json.h"
#include "calibrate/fit/fit_steps.h"
#include "report/report.h"
#include "search/choose.h"
#include "spec/measurement.h"

bool cli_is_measured_steps(const char *path)
{
    OrrJsonDoc *doc = orr_json_read_file(path, NULL);
    const OrrJson *root = doc != NULL ? orr_json_root(doc) : NULL;
    const OrrJson *first = root != NULL && orr_json_type(root) == ORR_JSON_LIST ? orr_json_first(root) : NULL;
    const bool is =
        first != NULL && orr_json_type(first) == ORR_JSON_OBJECT &&
        (orr_json_member(first, "scenario") != NULL || orr_json_member(first, "measured") != NULL);
    orr_json_free(doc);
    return is;
}

static bool predict(const Spec *spec, void *data, double *ret_s, GError **error)
{
    (void)data;
    const ReportOptions options = {0};
    Report report;
    OrrArena *arena = orr_arena_new();
    const bool ok = report_run(spec, NULL, &options, arena, &report, error);
    if (ok)
        *ret_s = 1e-12 * (double)report.step_ps;
    orr_arena_free(arena);
    return ok;
}

/* NULL with an error when the row cannot be used; rows of another accelerator are NULL without. */
static CalStep *read_step(const OrrJson *node, const char *where, const char *accelerator, char **sets,
                          GError **error)
{
    SpecMeasurement row;
    g_autofree Spec *loaded = g_new0(Spec, 1);
    g_autofree CalStep *step = g_new0(CalStep, 1);
    double predicted_s;
    if (!spec_read_measurement(node, where, &row, error))
        return NULL;
    if (row.measured.step_s <= 0) {
        orr_fail(error, ORR_ERROR_INPUT, "%s: measured.step_s is not given", where);
        return NULL;
    }
    if (!spec_load_json(row.scenario, where, (const char *const *)sets, true, loaded, NULL, error))
        return NULL;
    if (accelerator != NULL && strcmp(loaded->cluster.accelerator.name, accelerator) != 0)
        return NULL;
    if (!search_choose(loaded, &step->spec, error) || !predict(&step->spec, NULL, &predicted_s, error))
        return NULL;
    g_strlcpy(step->id, row.id, sizeof step->id);
    step->measured_s = row.measured.step_s;
    return g_steal_pointer(&step);
}

static void read_steps(const OrrJson *root, const char *path, const char *accelerator, char **sets,
                       GPtrArray *steps, GString *log)
{
    int index = 0;
    for (const OrrJson *node = orr_json_first(root); node != NULL; node = orr_json_next(node)) {
        g_autofree char *where = g_strdup_printf("%s: row %d", path, ++index);
        g_autoptr(GError) cause = NULL;
        CalStep *step = read_step(node, where, accelerator, sets, &cause);
        if (step != NULL)
            g_ptr_array_add(steps, step);
        else if (cause != NULL)
            g_string_append_printf(log, "left out: %s\n", cause->message);
    }
}

/* Behind the error: why the first row that was left out was. */
static void tell_left_out(const GString *log, GError **error)
{
    if (log->len == 0 || error == NULL || *error == NULL)
        return;
    g_autofree char *first = g_strndup(log->str, strcspn(log->str, "\n"));
    char *whole = g_strconcat((*error)->message, " (", first, ")", NULL);
    g_free((*error)->message);
    (*error)->message = whole;
}

bool cli_fit_measured_steps(const char *path, const char *accelerator, char **sets, GArray *residuals,
                            GString *out_json, GString *log, GError **error)
{
    OrrJsonDoc *doc = orr_json_read_file(path, error);
    if (doc == NULL)
        return false;
    g_autoptr(GPtrArray) steps = g_ptr_array_new_with_free_func(g_free);
    g_autofree CalStepFit *fit = g_new0(CalStepFit, 1);
    g_autofree char *base = g_path_get_basename(path);
    read_steps(orr_json_root(doc), path, accelerator, sets, steps, log);
    orr_json_free(doc);
    if (!cal_fit_steps(steps, predict, NULL, residuals, fit, error)) {
        g_prefix_error(error, "%s: ", path);
        tell_left_out(log, error);
        return false;
    }
    g_autofree char *source = g_strdup_printf("fitted to %u measured steps of %s", steps->len, base);
    cal_step_fit_print(fit, log);
    cal_step_fit_write(fit, steps, source, out_json);
    return true;
}
