/* calibrate/measure/sweep.c - drives a meter over the points of a sweep: journal, progress, output. */
#include "calibrate/measure/sweep.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/units.h"

#define SAY_EVERY_US 10000000 /* progress in a log */
#define CHANGED_FRAC 0.05     /* while a point was repeated: counted */
#define STRANGE_FRAC 0.25     /* and said at once: more than a power limit does */

/* --- journal --- */

typedef struct Journal {
    char *path;
    FILE *file;
    GPtrArray *lines;   /* finished points, without the head */
    GHashTable *done;   /* their ids */
    GHashTable *broken; /* id -> how often the GPU stopped answering at it */
} Journal;

static void journal_close(Journal *journal)
{
    if (journal->file != NULL)
        fclose(journal->file);
    g_clear_pointer(&journal->lines, g_ptr_array_unref);
    g_clear_pointer(&journal->done, g_hash_table_unref);
    g_clear_pointer(&journal->broken, g_hash_table_unref);
    g_free(journal->path);
}

/* What a journal must have been begun with to be gone on with. */
static char *head_of(const CalStamp *stamp, const CalSweepOptions *options)
{
    g_autoptr(GString) text = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, text, true);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_int(&w, "journal", 1);
    orr_jw_text(&w, "device", stamp->device);
    orr_jw_text(&w, "uuid", stamp->uuid);
    orr_jw_int(&w, "gpus", stamp->gpus);
    orr_jw_int(&w, "nodes", stamp->nodes);
    orr_jw_bool(&w, "full", options->full);
    orr_jw_end(&w, '}');
    return g_strdup(text->str);
}

static char *text_of(const char *line, const char *key)
{
    OrrJsonDoc *doc = orr_json_parse(line, strlen(line), "journal", NULL);
    const OrrJson *root = doc != NULL ? orr_json_root(doc) : NULL;
    const OrrJson *id =
        root != NULL && orr_json_type(root) == ORR_JSON_OBJECT ? orr_json_member(root, key) : NULL;
    char *text = id != NULL && orr_json_type(id) == ORR_JSON_TEXT ? g_strdup(orr_json_text(id)) : NULL;
    orr_json_free(doc);
    return text;
}

static char *id_of(const char *line)
{
    return text_of(line, "id");
}

static void keep(Journal *journal, const char *line)
{
    char *id = id_of(line);
    if (id == NULL) /* the line that was being written when the sweep was killed */
        return;
    if (g_hash_table_add(journal->done, id))
        g_ptr_array_add(journal->lines, g_strdup(line));
}

/* A line of the sweep before. What was skipped then is tried again: another program may have held the memory. A point at
 * which the GPU stopped is counted. */
static void keep_old(Journal *journal, const char *line)
{
    g_autofree char *skipped = text_of(line, "skipped"), *broken = text_of(line, "broken"), *id = id_of(line);
    if (broken != NULL && id != NULL)
        g_hash_table_insert(journal->broken, g_strdup(id),
                            GINT_TO_POINTER(1 + GPOINTER_TO_INT(g_hash_table_lookup(journal->broken, id))));
    else if (skipped == NULL)
        keep(journal, line);
}

static bool journal_read(Journal *journal, const char *head, GError **error)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents(journal->path, &text, NULL, NULL))
        return true;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    if (lines[0] == NULL || lines[0][0] == '\0')
        return true;
    if (strcmp(lines[0], head) != 0)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: is of another GPU, or of a sweep of another size; remove it, or choose another --output",
            journal->path);
    for (int i = 1; lines[i] != NULL; i++)
        keep_old(journal, lines[i]);
    return true;
}

static bool append(Journal *journal, const char *line, GError **error)
{
    if (fprintf(journal->file, "%s\n", line) > 0 && fflush(journal->file) == 0)
        return true;
    return orr_fail(error, ORR_ERROR_IO, "%s: cannot be written: %s", journal->path, g_strerror(errno));
}

static void write_broken(const Journal *journal, GString *text)
{
    GHashTableIter iter;
    gpointer id, count;
    g_hash_table_iter_init(&iter, journal->broken);
    while (g_hash_table_iter_next(&iter, &id, &count))
        for (int i = 0; i < GPOINTER_TO_INT(count); i++) {
            cal_sweep_broken_line(id, "before", text);
            g_string_append_c(text, '\n');
        }
}

/* Written anew, so that a torn last line does not spoil the next one. */
static bool journal_open(Journal *journal, const CalStamp *stamp, const CalSweepOptions *options,
                         GError **error)
{
    g_autofree char *head = head_of(stamp, options);
    *journal = (Journal){.path = g_strconcat(options->output, ".journal", NULL),
                         .lines = g_ptr_array_new_with_free_func(g_free),
                         .done = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                         .broken = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
    if (!journal_read(journal, head, error))
        return false;
    g_autoptr(GString) text = g_string_new(head);
    g_string_append_c(text, '\n');
    write_broken(journal, text);
    for (guint i = 0; i < journal->lines->len; i++)
        g_string_append_printf(text, "%s\n", (const char *)g_ptr_array_index(journal->lines, i));
    if (!orr_file_write(journal->path, text->str, text->len, error))
        return false;
    journal->file = fopen(journal->path, "a");
    return journal->file != NULL ||
           orr_fail(error, ORR_ERROR_IO, "%s: cannot be written: %s", journal->path, g_strerror(errno));
}

/* --- progress --- */

typedef struct Progress {
    bool terminal, quiet;
    gint64 start_us, said_us; /* of the last line that was printed where there is no terminal */
    guint total, before;      /* points in all, and already in the journal */
    guint outlying, drifting; /* points with many outliers; that changed while they were repeated */
} Progress;

/* A line that is written over on a terminal, one every SAY_EVERY_US in a log. */
static void show(Progress *progress, guint done, const char *text)
{
    const gint64 now_us = g_get_monotonic_time();
    if (progress->quiet || (!progress->terminal && now_us - progress->said_us < SAY_EVERY_US))
        return;
    const double spent_s = 1e-6 * (double)(now_us - progress->start_us);
    const guint fresh = done - progress->before;
    char left[ORR_TEXT_SIZE] = "?";
    progress->said_us = now_us;
    if (fresh > 2)
        orr_text_seconds(left, spent_s / fresh * (progress->total - done));
    fprintf(stderr, "%s[%3u/%u] %s left  %.100s%s", progress->terminal ? "\r\033[K" : "", done,
            progress->total, left, text, progress->terminal ? "" : "\n");
    fflush(stderr);
}

static void say(const Progress *progress, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void say(const Progress *progress, const char *format, ...)
{
    if (progress->quiet)
        return;
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    fprintf(stderr, "%s%s\n", progress->terminal ? "\r\033[K" : "", text);
}

/* "gemm bf16 TN 4096x4096x4096: 182.1 us, 754 TFLOP/s, spread 0.3 %" */
static void describe(const CalPoint *point, const CalSample *sample, char *text, size_t size)
{
    const CalSummary summary = cal_summarise(sample->seconds, sample->count);
    char time[ORR_TEXT_SIZE], rate[ORR_TEXT_SIZE] = "";
    orr_text_seconds(time, summary.median_s);
    if (sample->flops > 0)
        orr_text_si(rate, sample->flops / summary.median_s, "FLOP/s");
    else if (sample->bytes > 0)
        orr_text_si(rate, sample->bytes / summary.median_s, "B/s");
    g_snprintf(text, size, "%s: %s%s%s, spread %.1f %%", point->id, time, rate[0] != '\0' ? ", " : "", rate,
               100 * summary.spread_frac);
}

static void tell(Progress *progress, guint done, const CalPoint *point, const CalSample *sample)
{
    const CalSummary summary = cal_summarise(sample->seconds, sample->count);
    char text[256];
    describe(point, sample, text, sizeof text);
    if (sample->tolerance_frac > 0 && !(sample->error_frac <= sample->tolerance_frac))
        say(progress, "%s: WRONG, off by %.3g where %.3g is allowed", point->id, sample->error_frac,
            sample->tolerance_frac);
    progress->outlying += 10 * summary.outliers > sample->count;
    progress->drifting += fabs(summary.drift_frac) > CHANGED_FRAC;
    if (fabs(summary.drift_frac) > STRANGE_FRAC)
        say(progress, "%s: became %.1f %% %s while it was repeated", point->id,
            100 * fabs(summary.drift_frac), summary.drift_frac > 0 ? "slower" : "faster");
    show(progress, done, text);
}

/* A chip at its power limit slows down while a product is repeated: at every third point, which is no news a line. */
static void tell_spread(const Progress *progress)
{
    const guint measured = progress->total - progress->before;
    if (progress->drifting > 0 || progress->outlying > 0)
        say(progress,
            "of %u points %u changed by more than %.0f %% while they were repeated, and %u have many "
            "outliers: "
            "usual at the power limit; each row says its own (drift_frac, outliers, clock_limits)",
            measured, progress->drifting, 100 * CHANGED_FRAC, progress->outlying);
}

/* Median of a finished point, from its line; 0: not there. */
static double seconds_of(const Journal *journal, const char *id)
{
    for (guint i = 0; i < journal->lines->len; i++) {
        const char *line = g_ptr_array_index(journal->lines, i);
        if (strstr(line, id) == NULL)
            continue;
        g_autofree char *own = id_of(line);
        OrrJsonDoc *doc =
            g_strcmp0(own, id) == 0 ? orr_json_parse(line, strlen(line), "journal", NULL) : NULL;
        const OrrJson *row = doc != NULL ? orr_json_member(orr_json_root(doc), "row") : NULL;
        const OrrJson *time = row != NULL ? orr_json_member(row, "time_us") : NULL;
        const double seconds = time != NULL ? 1e-6 * orr_json_number(time) : 0;
        orr_json_free(doc);
        if (doc != NULL)
            return seconds;
    }
    return 0;
}

/* The same product now and at the beginning: do the clocks hold over the whole sweep? */
static void watch_clocks(const Progress *progress, const Journal *journal, const GArray *points,
                         const CalPoint *point, const CalSample *sample)
{
    for (guint i = 0; i < points->len && point->kind == CAL_POINT_DRIFT; i++) {
        const CalPoint *first = &g_array_index(points, CalPoint, i);
        if (first->kind != CAL_POINT_DRIFT)
            continue;
        const double before_s = seconds_of(journal, first->id),
                     now_s = cal_summarise(sample->seconds, sample->count).median_s;
        if (before_s > 0 && fabs(now_s / before_s - 1) > CAL_DRIFT_FRAC)
            say(progress,
                "%s: a product is %.1f %% %s than at the beginning of the sweep: the clocks do not hold",
                point->id, 100 * fabs(now_s / before_s - 1), now_s > before_s ? "slower" : "faster");
        return;
    }
}

/* --- the sweep --- */

static bool measure_point(const CalMeter *meter, const CalStamp *stamp, const GArray *points,
                          const CalPoint *point, const CalSweepOptions *options, Journal *journal,
                          Progress *progress, GError **error)
{
    g_autoptr(GString) line = g_string_new(NULL);
    g_autofree CalSample *sample = g_new0(CalSample, 1);
    char reason[256] = "";
    show(progress, journal->lines->len, point->id);
    const double seconds = cal_point_seconds(options);
    const CalOutcome outcome = meter->measure(meter->self, point, seconds, sample, reason, sizeof reason);
    if (outcome == CAL_BROKEN) {
        cal_sweep_broken_line(point->id, reason, line);
        return append(journal, line->str, error) &&
               orr_fail(error, ORR_ERROR_IO,
                        "%s: %s; the points before it are kept, and the same command goes on from there",
                        point->id, reason);
    }
    if (outcome == CAL_SKIPPED) {
        say(progress, "%s: skipped: %s", point->id, reason);
        cal_sweep_skipped_line(point, reason, line);
    } else {
        cal_sweep_line(stamp, point, sample, line);
    }
    if (!append(journal, line->str, error))
        return false;
    keep(journal, line->str);
    if (outcome == CAL_MEASURED) {
        tell(progress, journal->lines->len, point, sample);
        watch_clocks(progress, journal, points, point, sample);
    }
    return true;
}

static void announce(const Progress *progress, const GArray *points, const Journal *journal,
                     const CalSweepOptions *options)
{
    double left_s = 0;
    char text[ORR_TEXT_SIZE];
    for (guint i = 0; i < points->len; i++) {
        const CalPoint *point = &g_array_index(points, CalPoint, i);
        if (!g_hash_table_contains(journal->done, point->id))
            left_s += cal_point_estimate_s(point, options);
    }
    orr_text_seconds(text, left_s);
    say(progress, "%u points, about %s", points->len - progress->before, text);
}

/* The GPU stopped here each time. */
static bool give_up(const CalPoint *point, Journal *journal, const Progress *progress, GError **error)
{
    g_autoptr(GString) line = g_string_new(NULL);
    const char *reason = "the GPU stopped at this point each time that it was tried";
    say(progress, "%s: skipped: %s", point->id, reason);
    cal_sweep_skipped_line(point, reason, line);
    if (!append(journal, line->str, error))
        return false;
    keep(journal, line->str);
    return true;
}

/* A folder that cannot be written to should be known before an hour of measuring. */
static bool writable(const char *path, GError **error)
{
    g_autofree char *folder = g_path_get_dirname(path);
    if (!g_file_test(path, G_FILE_TEST_IS_DIR) && access(folder, W_OK) == 0 &&
        (access(path, F_OK) != 0 || access(path, W_OK) == 0))
        return true;
    return orr_fail(error, ORR_ERROR_IO, "%s: cannot be written there; choose another --output", path);
}

bool cal_sweep_run(const CalMeter *meter, const CalStamp *stamp, const GArray *points,
                   const CalSweepOptions *options, GError **error)
{
    Journal journal;
    if (!writable(options->output, error))
        return false;
    bool ok = journal_open(&journal, stamp, options, error);
    Progress progress = {
        isatty(STDERR_FILENO) == 1, options->quiet, g_get_monotonic_time(), 0, points->len, 0, 0, 0};
    if (ok) {
        progress.before = journal.lines->len;
        if (progress.before > 0)
            say(&progress, "%s: %u points are there already", journal.path, progress.before);
    }
    if (ok)
        announce(&progress, points, &journal, options);
    /* Points at which the GPU stopped before come last, and not a third time. */
    for (int pass = 0; ok && pass < 2; pass++)
        for (guint i = 0; ok && i < points->len; i++) {
            const CalPoint *point = &g_array_index(points, CalPoint, i);
            const int breaks = GPOINTER_TO_INT(g_hash_table_lookup(journal.broken, point->id));
            if (g_hash_table_contains(journal.done, point->id) || (breaks > 0) != (pass == 1))
                continue;
            ok = breaks < CAL_MOST_BREAKS
                     ? measure_point(meter, stamp, points, point, options, &journal, &progress, error)
                     : give_up(point, &journal, &progress, error);
        }
    if (ok) {
        g_autoptr(GString) out = g_string_new(NULL);
        cal_sweep_write(stamp, points, journal.lines, out);
        ok = orr_file_write(options->output, out->str, out->len, error);
    }
    if (ok) {
        tell_spread(&progress);
        say(&progress, "%s: %u points", options->output, points->len);
        unlink(journal.path);
    } else if (progress.terminal && !progress.quiet) {
        fprintf(stderr, "\n");
    }
    journal_close(&journal);
    return ok;
}
