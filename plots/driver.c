/* plots/driver.c - writes a plot's CSV and runs gnuplot on its script. */
#define _XOPEN_SOURCE 700
#include "plots/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/shown.h"
#include "plots/colours.h"

extern char **environ;

void plot_job_init(PlotJob *job, const char *name)
{
    *job = (PlotJob){.name = name,
                     .csv = g_string_new(NULL),
                     .parameters = g_string_new(NULL),
                     .heading = g_string_new(name),
                     .caption = g_string_new(NULL)};
}

void plot_job_clear(PlotJob *job)
{
    g_string_free(job->csv, TRUE);
    g_string_free(job->parameters, TRUE);
    g_string_free(job->heading, TRUE);
    g_string_free(job->caption, TRUE);
    if (job->extra_csv != NULL)
        g_string_free(job->extra_csv, TRUE);
}

/* A gnuplot string in single quotes: only the quote itself is special, and no line may end inside. */
static void append_gnuplot_text(GString *out, const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    g_string_append_c(out, '\'');
    const char *start = valid;
    if (*start == '\'') { /* gnuplot 5.4 reads two quotes at the beginning as an empty string */
        g_string_append(out, "\u2019");
        start++;
    }
    for (const char *c = start; *c != '\0'; c++) {
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

void plot_set_heading(PlotJob *job, const char *heading, const char *caption)
{
    plot_set_text(job, "heading", heading);
    plot_set_text(job, "caption", caption);
    g_string_assign(job->heading, heading);
    g_string_assign(job->caption, caption);
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
                "no folder plots/ with the gnuplot scripts next to the presets or at %s/../plots",
                ORRERY_SOURCE_SCENARIOS);
    return NULL;
}

/* While there is a temporary folder, signals that end the program wait until it is gone. */
typedef struct Guard {
    sigset_t ending, before;
    int signal; /* that came; 0: none */
} Guard;

static void guard_begin(Guard *guard)
{
    static const int signals[] = {SIGINT,  SIGTERM, SIGQUIT, SIGHUP,
                                  SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU}; /* batch systems send the last three */
    guard->signal = 0;
    sigemptyset(&guard->ending);
    for (gsize i = 0; i < G_N_ELEMENTS(signals); i++) {
        struct sigaction now;
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(&guard->ending, signals[i]);
    }
    pthread_sigmask(SIG_BLOCK, &guard->ending, &guard->before);
}

/* A signal that was taken comes again, now that nothing is left behind, and ends the program even where the caller held it
 * back: what it waited for was the picture. */
static void guard_end(Guard *guard)
{
    if (guard->signal != 0) {
        sigdelset(&guard->before, guard->signal);
        raise(guard->signal);
    }
    pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
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

/* gnuplot on `script`, its messages into the file `said`, with the signals of `mask` blocked and no more. 0: no child,
 * errno says why. */
static pid_t start_gnuplot(const char *parameters, const char *script, const char *said, const sigset_t *mask)
{
    const char *argv[] = {"gnuplot", "-d", parameters, script, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    pid_t child = 0;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, said, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, mask);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    errno = posix_spawnp(&child, "gnuplot", &files, &attributes, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return errno == 0 ? child : 0;
}

/* Waits for the child, or for a signal that ends the program: then the child goes too. Returns that signal, or 0. */
static int await(pid_t child, const sigset_t *ending, int *ret_status)
{
    const struct timespec short_while = {.tv_nsec = 20000000};
    while (waitpid(child, ret_status, WNOHANG) == 0) {
        const int signal = sigtimedwait(ending, NULL, &short_while);
        if (signal <= 0)
            continue;
        kill(child, SIGKILL);
        waitpid(child, ret_status, 0);
        return signal;
    }
    return 0;
}

static bool run_gnuplot(const char *name, const char *parameters, const char *script, Guard *guard,
                        GError **error)
{
    g_autofree char *folder = g_path_get_dirname(parameters), *path = g_build_filename(folder, "said", NULL);
    g_autofree char *said = NULL;
    int status = 0;
    const pid_t child = start_gnuplot(parameters, script, path, &guard->before);
    if (child == 0) {
        if (errno == ENOENT)
            g_set_error(error, ORR_ERROR, ORR_ERROR_IO,
                        "gnuplot is not installed or not in PATH; install it (package gnuplot-nox or "
                        "gnuplot) to plot");
        else
            g_set_error(error, ORR_ERROR, ORR_ERROR_IO, "gnuplot cannot be started: %s", g_strerror(errno));
        return false;
    }
    guard->signal = await(child, &guard->ending, &status);
    if (guard->signal != 0)
        return orr_fail(error, ORR_ERROR_IO, "stopped");
    if (g_spawn_check_wait_status(status, NULL))
        return true;
    g_autofree char *reason =
        g_file_get_contents(path, &said, NULL, NULL) ? complaint(said) : g_strdup("no word");
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

/* What plots/colours.h says, as two lists of words: names, and their codes as decimal numbers. */
static void set_colours(PlotJob *job)
{
    g_autoptr(GString) names = g_string_new(NULL), codes = g_string_new(NULL);
    for (int i = 0; i < PLOT_COLOURS; i++) {
        g_string_append_printf(names, "\"%s\" ", plot_colours[i].word);
        g_string_append_printf(codes, "%" G_GUINT64_FORMAT " ",
                               g_ascii_strtoull(plot_colours[i].code + 1, NULL, 16));
    }
    plot_set_text(job, "colour_words", names->str);
    plot_set_text(job, "colour_codes", codes->str);
}

/* gnuplot's <title> and <desc> name gnuplot: the picture's own words take their place. Edges are smooth, as in a PNG: thin
 * boxes that snap to pixels come and go. */
static char *describe_svg(char *svg, const PlotJob *job, gsize *length)
{
    const char *title = strstr(svg, "<title>"), *end = strstr(svg, "</desc>");
    if (title == NULL || end == NULL || end < title)
        return svg;
    g_autofree char *heading = orr_shown(job->heading->str, ' ', "");
    g_autofree char *caption = orr_shown(job->caption->str, ' ', "");
    g_autofree char *said = g_markup_printf_escaped("<title>%s</title>\n<desc>%s</desc>", heading, caption);
    GString *out = g_string_new_len(svg, title - svg);
    g_string_append(out, said);
    g_string_append(out, end + strlen("</desc>"));
    g_string_replace(out, " shape-rendering='crispEdges'", "", 0);
    *length = out->len;
    g_free(svg);
    return g_string_free(out, FALSE);
}

/* Draws in `scratch`; on success the picture's bytes. */
static char *draw(const PlotJob *job, const PlotTarget *target, const char *scratch, Guard *guard,
                  gsize *ret_length, GError **error)
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
    plot_set_number(&paths, "pixels", target->width);
    set_colours(&paths);
    const bool ready =
        orr_file_write(parameters, paths.parameters->str, paths.parameters->len, error) &&
        orr_file_write(data, job->csv->str, job->csv->len, error) &&
        (job->extra_csv == NULL || orr_file_write(extra, job->extra_csv->str, job->extra_csv->len, error));
    g_string_free(paths.parameters, TRUE);
    if (!ready || !run_gnuplot(job->name, parameters, script, guard, error))
        return NULL;
    char *bytes = NULL;
    if (!g_file_get_contents(picture, &bytes, ret_length, NULL) || *ret_length == 0) {
        g_free(bytes);
        g_set_error(error, ORR_ERROR, ORR_ERROR_IO, "gnuplot drew no %s plot", job->name);
        return NULL;
    }
    if (target->svg)
        bytes = describe_svg(bytes, job, ret_length);
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

#define SCRATCH "orrery-plot-"
#define STALE_S 3600 /* a process in another container may live though its number is not known here */

/* Folders that processes of this user left when they were killed, which no process can catch. */
static void sweep_scratches(void)
{
    const char *temporary = g_get_tmp_dir();
    g_autoptr(GDir) dir = g_dir_open(temporary, 0, NULL);
    for (const char *name = dir != NULL ? g_dir_read_name(dir) : NULL; name != NULL;
         name = g_dir_read_name(dir)) {
        if (!g_str_has_prefix(name, SCRATCH))
            continue;
        char *end = NULL;
        struct stat found;
        const gint64 process = g_ascii_strtoll(name + strlen(SCRATCH), &end, 10);
        g_autofree char *path = g_build_filename(temporary, name, NULL);
        if (*end == '-' && process > 1 && process <= G_MAXINT32 && lstat(path, &found) == 0 &&
            S_ISDIR(found.st_mode) && found.st_uid == geteuid() && time(NULL) - found.st_mtime > STALE_S &&
            kill((pid_t)process, 0) != 0 && errno == ESRCH)
            remove_scratch(path);
    }
}

bool plot_job_run(const PlotJob *job, const PlotTarget *target, GError **error)
{
    if (g_mkdir_with_parents(target->folder, 0777) != 0) {
        g_set_error(error, ORR_ERROR, ORR_ERROR_IO, "%s: cannot create the folder: %s", target->folder,
                    g_strerror(errno));
        return false;
    }
    g_autoptr(GError) cause = NULL;
    Guard guard;
    sweep_scratches();
    guard_begin(&guard);
    g_autofree char *pattern = g_strdup_printf(SCRATCH "%ld-XXXXXX", (long)getpid());
    g_autofree char *scratch = g_dir_make_tmp(pattern, &cause);
    if (scratch == NULL) {
        guard_end(&guard);
        g_set_error(error, ORR_ERROR, ORR_ERROR_IO, "no temporary folder for the plot: %s", cause->message);
        return false;
    }
    gsize length = 0;
    g_autofree char *picture = draw(job, target, scratch, &guard, &length, error);
    remove_scratch(scratch);
    guard_end(&guard);
    if (picture == NULL)
        return false;
    return put_file(target, job->name, target->svg ? ".svg" : ".png", picture, length, error) &&
           put_file(target, job->name, ".csv", job->csv->str, job->csv->len, error) &&
           (job->extra_name == NULL ||
            put_file(target, job->extra_name, ".csv", job->extra_csv->str, job->extra_csv->len, error));
}
