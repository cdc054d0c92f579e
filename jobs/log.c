/* jobs/log.c - see log.h. Tested: unit/jobs/test_jobs_log.c */
#include "jobs/log.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

enum { MOST_JOBS = 1000000, MOST_COLUMNS = 64 };

typedef enum { SIZE, CAME, RAN, BEGAN, ENDED, PART, COLUMNS } Column;

static const char *const words[COLUMNS][4] = {
    [SIZE] = {"gpu_num", "num_gpu", "gpus"}, [CAME] = {"submit_time", "creation_time", "arrive_s"},
    [RAN] = {"duration", "seconds"},         [BEGAN] = {"start_time", "scheduled_time"},
    [ENDED] = {"end_time", "deletion_time"}, [PART] = {"gpu_milli"},
};

/* Seconds, or a date and time of day, whatever the zone, for only differences count; NAN: neither. */
static double time_of(const char *text)
{
    int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
    char *end = NULL;
    if (text == NULL || *text == '\0')
        return NAN;
    if (sscanf(text, "%4d-%2d-%2d%*1[ T]%2d:%2d:%2d", &year, &month, &day, &hour, &minute, &second) == 6) {
        g_autoptr(GDateTime) time = g_date_time_new_utc(year, month, day, hour, minute, second);
        return time != NULL ? (double)g_date_time_to_unix(time) : (double)NAN;
    }
    const double seconds = g_ascii_strtod(text, &end);
    return end != text && *end == '\0' && isfinite(seconds) ? seconds : (double)NAN;
}

typedef struct Log {
    JobsTrace trace;
    JobsLeftOut left_out;
} Log;

static void add(Log *log, const char *name, double came_s, double ran_s, double gpus, double share)
{
    Job job = {.arrive_s = came_s, .work_s = ran_s, .share = share, .speed = {1}};
    if (!(gpus >= 1)) {
        log->left_out.without_gpus++;
    } else if (!(ran_s > 0) || isnan(came_s)) {
        log->left_out.without_time++;
    } else if (gpus > log->trace.pools[0].gpus) {
        log->left_out.too_large++;
    } else if (log->trace.jobs->len <= MOST_JOBS) { /* one more tells that there are too many */
        job.gpus = job.least = job.most = (int)gpus;
        for (int i = 0; i < JOBS_DOUBLINGS; i++)
            job.gain[i] = ldexp(1, i);
        job.name = g_strdup(name);
        job.user = log->trace.user_count++;
        g_array_append_val(log->trace.jobs, job);
    }
}

static void begin(Log *log, int gpus)
{
    *log = (Log){.trace = {.pools = {{g_strdup("gpus"), gpus, JOBS_NODE_GPUS}}, .pool_count = 1}};
    jobs_trace_init_jobs(&log->trace);
}

/* Counted from the first arrival; false: nothing is left. */
static bool end(Log *log, const char *where, JobsTrace *ret_trace, JobsLeftOut *ret_left_out, GError **error)
{
    GArray *jobs = log->trace.jobs;
    *ret_left_out = log->left_out;
    if (jobs->len == 0 || jobs->len > MOST_JOBS) {
        const guint count = jobs->len;
        jobs_trace_clear(&log->trace);
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: %u jobs ran on GPUs and fit into --gpus; a trace has 1 to %d of them (%d without "
            "GPUs, %d without times, %d too large)",
            where, count, MOST_JOBS, log->left_out.without_gpus, log->left_out.without_time,
            log->left_out.too_large);
    }
    jobs_trace_sort(&log->trace);
    const double first_s = g_array_index(jobs, Job, 0).arrive_s;
    for (guint i = 0; i < jobs->len; i++)
        g_array_index(jobs, Job, i).arrive_s -= first_s;
    *ret_trace = log->trace;
    return true;
}

/* --- tables --- */

static bool find_columns(char *const *header, const char *where, int *places, GError **error)
{
    for (int c = 0; c < COLUMNS; c++) {
        places[c] = -1;
        for (int i = 0; header[i] != NULL && places[c] < 0; i++)
            for (int w = 0; words[c][w] != NULL && places[c] < 0; w++)
                if (g_ascii_strcasecmp(g_strstrip(header[i]), words[c][w]) == 0)
                    places[c] = i;
    }
    if (places[SIZE] >= 0 && places[CAME] >= 0 &&
        (places[RAN] >= 0 || (places[BEGAN] >= 0 && places[ENDED] >= 0)))
        return true;
    return orr_fail(error, ORR_ERROR_INPUT,
                    "%s: no header of a table of jobs; Helios has gpu_num, submit_time and duration, Alibaba "
                    "num_gpu, creation_time, scheduled_time and deletion_time",
                    where);
}

static void add_line(Log *log, char *const *cells, const int *places)
{
    const int count = (int)g_strv_length((char **)cells);
    const char *cell[COLUMNS];
    for (int c = 0; c < COLUMNS; c++)
        cell[c] = places[c] >= 0 && places[c] < count ? g_strstrip(cells[places[c]]) : NULL;
    const double ran_s = cell[RAN] != NULL ? time_of(cell[RAN]) : time_of(cell[ENDED]) - time_of(cell[BEGAN]),
                 gpus = time_of(cell[SIZE]), milli = time_of(cell[PART]);
    add(log, count > 0 ? cells[0] : "", time_of(cell[CAME]), ran_s, gpus,
        gpus <= 1 && milli >= 1 && milli < 1000 ? milli / 1000 : 1);
}

/* Cells of the line at *at, which goes on to the next. */
static char **next_line(const char **at)
{
    const gsize length = strcspn(*at, "\n");
    g_autofree char *line = g_strndup(*at, length);
    *at += length + ((*at)[length] == '\n' ? 1 : 0);
    return g_strsplit(line, ",", MOST_COLUMNS);
}

bool jobs_log_read_table(const char *text, const char *where, int gpus, JobsTrace *ret_trace,
                         JobsLeftOut *ret_left_out, GError **error)
{
    int places[COLUMNS];
    const char *at = text;
    g_auto(GStrv) header = next_line(&at);
    Log log;
    if (!find_columns(header, where, places, error))
        return false;
    begin(&log, gpus);
    while (*at != '\0' && log.trace.jobs->len <= MOST_JOBS) {
        g_auto(GStrv) cells = next_line(&at);
        if (cells[0] != NULL && (*g_strstrip(cells[0]) != '\0' || cells[1] != NULL))
            add_line(&log, cells, places);
    }
    return end(&log, where, ret_trace, ret_left_out, error);
}

/* --- Philly --- */

static const char *text_of(const OrrJson *object, const char *key)
{
    const OrrJson *node = orr_json_type(object) == ORR_JSON_OBJECT ? orr_json_member(object, key) : NULL;
    return node != NULL && orr_json_type(node) == ORR_JSON_TEXT ? orr_json_text(node) : NULL;
}

static const OrrJson *list_of(const OrrJson *object, const char *key)
{
    const OrrJson *node = orr_json_type(object) == ORR_JSON_OBJECT ? orr_json_member(object, key) : NULL;
    return node != NULL && orr_json_type(node) == ORR_JSON_LIST ? orr_json_first(node) : NULL;
}

static int gpus_of(const OrrJson *attempt)
{
    int gpus = 0;
    for (const OrrJson *host = list_of(attempt, "detail"); host != NULL; host = orr_json_next(host))
        for (const OrrJson *gpu = list_of(host, "gpus"); gpu != NULL; gpu = orr_json_next(gpu))
            gpus++;
    return gpus;
}

bool jobs_log_read_attempts(const OrrJson *root, const char *where, int gpus, JobsTrace *ret_trace,
                            JobsLeftOut *ret_left_out, GError **error)
{
    Log log;
    begin(&log, gpus);
    for (const OrrJson *job = orr_json_first(root); job != NULL; job = orr_json_next(job)) {
        const OrrJson *attempt = list_of(job, "attempts");
        const char *name = text_of(job, "jobid");
        const int size = attempt != NULL ? gpus_of(attempt) : 0;
        double ran_s = 0;
        for (; attempt != NULL; attempt = orr_json_next(attempt)) {
            const double one_s =
                time_of(text_of(attempt, "end_time")) - time_of(text_of(attempt, "start_time"));
            ran_s += one_s > 0 ? one_s : 0;
        }
        add(&log, name != NULL ? name : "", time_of(text_of(job, "submitted_time")), ran_s, size, 1);
    }
    return end(&log, where, ret_trace, ret_left_out, error);
}
