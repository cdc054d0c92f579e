/* plots/driver.c - writes a plot's CSV and runs gnuplot on its script. */
#include "plots/driver.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

#include "base/file.h"

void plot_job_init(PlotJob *job, const char *name)
{
    *job = (PlotJob){.name = name, .csv = g_string_new(NULL), .parameters = g_string_new(NULL)};
}

void plot_job_clear(PlotJob *job)
{
    g_string_free(job->csv, TRUE);
    g_string_free(job->parameters, TRUE);
    if (job->extra_csv != NULL)
        g_string_free(job->extra_csv, TRUE);
}

/* A gnuplot string in single quotes: only the quote itself is special, and no line may end inside. */
static void append_gnuplot_text(GString *out, const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    g_string_append_c(out, '\'');
    for (const char *c = valid; *c != '\0'; c++) {
        if (*c == '\'')
            g_string_append_c(out, '\'');
        g_string_append_c(out, g_ascii_iscntrl(*c) ? ' ' : *c);
    }
    g_string_append_c(out, '\'');
}

void plot_set_text(PlotJob *job, const char *name, const char *text)
{
    g_string_append_printf(job->parameters, "%s = ", name);
    append_gnuplot_text(job->parameters, text);
    g_string_append_c(job->parameters, '\n');
}

void plot_set_number(PlotJob *job, const char *name, double value)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf(job->parameters, "%s = %s\n", name, g_ascii_dtostr(number, sizeof number, value));
}

void plot_csv_text(GString *csv, const char *text)
{
    g_string_append_c(csv, '"');
    for (const char *c = text; *c != '\0'; c++)
        g_string_append_c(csv, *c == '"' ? '\'' : g_ascii_iscntrl(*c) ? ' ' : *c);
    g_string_append_c(csv, '"');
}

const char *plot_time_unit(double seconds, double *ret_unit_s)
{
    *ret_unit_s = seconds >= 1.0 ? 1.0 : seconds >= 1e-3 ? 1e-3 : 1e-6;
    return seconds >= 1.0 ? "s" : seconds >= 1e-3 ? "ms" : "us";
}

/* The folder with the scripts: beside the presets, else in the tree that the program was built from. */
static char *scripts_folder(GError **error)
{
    g_autofree char *scenarios = orr_scenarios_dir(NULL);
    const char *const presets[] = {scenarios, ORRERY_SOURCE_SCENARIOS};
    for (gsize i = 0; i < G_N_ELEMENTS(presets); i++) {
        if (presets[i] == NULL)
            continue;
        g_autofree char *folder = g_build_filename(presets[i], "..", "plots", NULL);
        g_autofree char *probe = g_build_filename(folder, "style.gp", NULL);
        if (g_file_test(probe, G_FILE_TEST_EXISTS))
            return g_steal_pointer(&folder);
    }
    g_set_error(error, ORR_ERROR, ORR_ERROR_IO,
                "no folder plots/ with the gnuplot scripts beside the presets or at %s/../plots",
                ORRERY_SOURCE_SCENARIOS);
    return NULL;
}

/* The last line that says something, without gnuplot's file and line. */
static char *complaint(const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text != NULL ? text : "", "\n", -1);
    const char *said = "it said nothing";
    for (char **line = lines; *line != NULL; line++) {
        if (g_strstrip(*line)[0] != '\0' && strspn(*line, "^ ") < strlen(*line))
            said = *line;
    }
    return g_strdup(said);
}

static bool run_gnuplot(const char *name, const char *parameters, const char *script, GError **error)
{
    const char *argv[] = {"gnuplot", "-d", parameters, script, NULL};
    g_autofree char *said = NULL;
    g_autoptr(GError) cause = NULL;
    int status = 0;
    if (!g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL,
                      NULL, &said, &status, &cause)) {
        if (g_error_matches(cause, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT))
            g_set_error(error, ORR_ERROR, ORR_ERROR_IO,
                        "gnuplot is not installed or not in PATH; install it (package gnuplot-nox or "
                        "gnuplot) to plot");
        else
            g_set_error(error, ORR_ERROR, ORR_ERROR_IO, "gnuplot cannot be started: %s", cause->message);
        return false;
    }
    if (g_spawn_check_wait_status(status, NULL))
        return true;
    g_autofree char *reason = complaint(said);
    g_set_error(error, ORR_ERROR, ORR_ERROR_IO, "gnuplot could not draw the %s plot: %s", name, reason);
    return false;
}

static bool put_file(const PlotTarget *target, const char *name, const char *ending, const char *data,
                     gsize length, GError **error)
{
    g_autofree char *file = g_strconcat(name, ending, NULL);
    g_autofree char *path = g_build_filename(target->folder, file, NULL);
    if (!orr_file_write(path, data, length, error))
        return false;
    g_ptr_array_add(target->files, g_steal_pointer(&path));
    return true;
}

/* Draws in `scratch`; on success the picture's bytes. */
static char *draw(const PlotJob *job, const PlotTarget *target, const char *scratch, gsize *ret_length,
                  GError **error)
{
    g_autofree char *scripts = scripts_folder(error);
    if (scripts == NULL)
        return NULL;
    g_autofree char *script_name = g_strconcat(job->name, ".gp", NULL);
    g_autofree char *script = g_build_filename(scripts, script_name, NULL);
    g_autofree char *style = g_build_filename(scripts, "style.gp", NULL);
    g_autofree char *data = g_build_filename(scratch, "data.csv", NULL);
    g_autofree char *extra = g_build_filename(scratch, "extra.csv", NULL);
    g_autofree char *picture = g_build_filename(scratch, "picture", NULL);
    g_autofree char *parameters = g_build_filename(scratch, "parameters.gp", NULL);
    PlotJob paths = {.parameters = g_string_new(job->parameters->str)};
    plot_set_text(&paths, "style", style);
    plot_set_text(&paths, "data", data);
    plot_set_text(&paths, "extra", extra);
    plot_set_text(&paths, "picture", picture);
    plot_set_number(&paths, "svg", target->svg ? 1 : 0);
    const bool ready =
        orr_file_write(parameters, paths.parameters->str, paths.parameters->len, error) &&
        orr_file_write(data, job->csv->str, job->csv->len, error) &&
        (job->extra_csv == NULL || orr_file_write(extra, job->extra_csv->str, job->extra_csv->len, error));
    g_string_free(paths.parameters, TRUE);
    if (!ready || !run_gnuplot(job->name, parameters, script, error))
        return NULL;
    char *bytes = NULL;
    if (!g_file_get_contents(picture, &bytes, ret_length, NULL) || *ret_length == 0) {
        g_free(bytes);
        g_set_error(error, ORR_ERROR, ORR_ERROR_IO, "gnuplot drew no %s plot", job->name);
        return NULL;
    }
    return bytes;
}

static void remove_scratch(const char *scratch)
{
    g_autoptr(GDir) dir = g_dir_open(scratch, 0, NULL);
    for (const char *name = dir != NULL ? g_dir_read_name(dir) : NULL; name != NULL;
         name = g_dir_read_name(dir)) {
        g_autofree char *path = g_build_filename(scratch, name, NULL);
        g_unlink(path);
    }
    g_rmdir(scratch);
}

bool plot_job_run(const PlotJob *job, const PlotTarget *target, GError **error)
{
    if (g_mkdir_with_parents(target->folder, 0777) != 0) {
        g_set_error(error, ORR_ERROR, ORR_ERROR_IO, "%s: cannot create the folder: %s", target->folder,
                    g_strerror(errno));
        return false;
    }
    g_autoptr(GError) cause = NULL;
    g_autofree char *scratch = g_dir_make_tmp("orrery-plot-XXXXXX", &cause);
    if (scratch == NULL) {
        g_set_error(error, ORR_ERROR, ORR_ERROR_IO, "no temporary folder for the plot: %s", cause->message);
        return false;
    }
    gsize length = 0;
    g_autofree char *picture = draw(job, target, scratch, &length, error);
    remove_scratch(scratch);
    if (picture == NULL)
        return false;
    return put_file(target, job->name, target->svg ? ".svg" : ".png", picture, length, error) &&
           put_file(target, job->name, ".csv", job->csv->str, job->csv->len, error) &&
           (job->extra_csv == NULL ||
            put_file(target, job->extra_name, ".csv", job->extra_csv->str, job->extra_csv->len, error));
}
