/* api/sweep.c - see sweep.h. Threads take the next runs of one step; what all of them need is read once. Tested:
 * unit/api/test_api.c, unit/api/test_after.c, bench/bench_sweep.sh
 */
#include "api/sweep.h"

#include <math.h>
#include <string.h>

#include "answer/answer.h"
#include "api/after.h"
#include "api/journal.h"
#include "base/crew.h"
#include "base/file.h"
#include "spec/resolve.h"

typedef struct Sweep {
    const ApiSweepAsk *ask;
    ApiShipped shipped;
    GArray *rows;
    ApiAfter *after;
    guint pieces; /* in which the runs of one step are dealt to threads, each of which simulates it */
    GMutex lock;  /* of what follows */
    guint done;
    bool stopped;
    ApiJournal *journal; /* may be NULL */
    GError *error;       /* of the journal */
} Sweep;

static void row_clear(void *data)
{
    ApiSweepRow *row = data;
    g_strfreev(row->values);
    g_free(row->reason);
    g_free(row->chosen);
}

static char *join_chosen(const GPtrArray *chosen)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; chosen != NULL && i < chosen->len; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? ";" : "", (const char *)g_ptr_array_index(chosen, i));
    return g_string_free(text, FALSE);
}

static void fill_row(const Report *report, ApiSweepRow *row)
{
    ReportTime times[REPORT_TIME_COUNT];
    report_times(report->part_ps, report->bubble_ps, report->late_ps, times);
    for (int i = 0; i < REPORT_TIME_COUNT; i++)
        row->time_s[i] = (double)times[i].ps * 1e-12;
    row->chosen = join_chosen(report->chosen);
    row->gpus = report->gpus;
    row->fits = report->fits;
    row->verdict = report_memory_word(report->memory_verdict);
    row->step_s = (double)report->step_ps * 1e-12;
    row->low_s = report->interval_coverage > 0 ? report->interval_low_s : 0;
    row->high_s = report->interval_coverage > 0 ? report->interval_high_s : 0;
    row->tokens_per_s = report->tokens_per_s;
    row->tokens_per_s_per_gpu = report->tokens_per_s_per_gpu;
    row->mfu = report->mfu;
    row->hfu = report->hfu;
    row->bubble_frac = report->bubble_frac;
    row->peak_bytes = report->peak_bytes;
    row->reserved_bytes = report->reserved_bytes;
    row->occupied_bytes = report_occupied_bytes(report);
    row->short_bytes = report->short_bytes;
    row->days = report->days;
    row->effective_days = report->effective.told ? report->effective.days : 0;
    row->usd = report->usd;
}

/* A loop over several models has no MFU and no one memory. */
static void fill_loop(const Workload *workload, ApiSweepRow *row)
{
    double *const unknown[] = {
        &row->mfu,         &row->hfu,           &row->bubble_frac, &row->peak_bytes, &row->reserved_bytes,
        &row->short_bytes, &row->occupied_bytes};
    for (gsize i = 0; i < G_N_ELEMENTS(unknown); i++)
        *unknown[i] = NAN;
    for (int i = 0; i < REPORT_TIME_COUNT; i++)
        row->time_s[i] = NAN;
    row->chosen = g_strdup("");
    row->gpus = workload->gpus;
    row->fits = workload->fits;
    row->verdict = report_memory_word(workload->fits ? REPORT_MEMORY_FITS : REPORT_MEMORY_NONE);
    row->step_s = (double)workload->step_ps * 1e-12;
    row->tokens_per_s = workload->tokens_per_s;
    row->tokens_per_s_per_gpu = workload->tokens_per_s_per_gpu;
    row->days = workload->days;
    row->usd = workload->usd;
}

/* The values of run `index`: the last field varies fastest. */
static char **values_of(const GArray *fields, guint64 index)
{
    char **values = g_new0(char *, fields->len + 1);
    for (guint i = fields->len; i-- > 0;) {
        const GPtrArray *list = g_array_index(fields, ApiVary, i).values;
        values[i] = g_strdup(g_ptr_array_index(list, (guint)(index % list->len)));
        index /= list->len;
    }
    return values;
}

/* The message without "scenario.json: ", which every row would repeat. */
static char *without_path(const char *path, const char *message)
{
    const gsize length = strlen(path);
    const bool named = g_str_has_prefix(message, path) && g_str_has_prefix(message + length, ": ");
    return g_strdup(named ? message + length + strlen(": ") : message);
}

static GPtrArray *sets_of(const ApiSweepAsk *ask, char *const *values)
{
    GPtrArray *sets = g_ptr_array_new_with_free_func(g_free);
    for (char **set = ask->sets; set != NULL && *set != NULL; set++)
        g_ptr_array_add(sets, g_strdup(*set));
    for (guint i = 0; i < ask->fields->len; i++)
        g_ptr_array_add(sets,
                        g_strdup_printf("%s=%s", g_array_index(ask->fields, ApiVary, i).key, values[i]));
    g_ptr_array_add(sets, NULL);
    return sets;
}

static ApiSimulation *simulate(const ApiSweepAsk *ask, const ApiShipped *shipped, char *const *values,
                               GError **error)
{
    const ReportOptions options = {.unfold = false};
    GPtrArray *sets = sets_of(ask, values);
    ApiSimulation *simulation =
        api_simulate_shipped(&ask->input, (char **)sets->pdata, NULL, &options, shipped, &ask->stop, error);
    g_ptr_array_free(sets, TRUE);
    if (ask->steps != NULL)
        g_atomic_int_inc(ask->steps);
    return simulation;
}

static ApiSweepRow simulate_row(const ApiSweepAsk *ask, const ApiShipped *shipped, guint64 index)
{
    ApiSweepRow row = {.values = values_of(ask->fields, index)};
    GError *error = NULL;
    ApiSimulation *simulation = simulate(ask, shipped, row.values, &error);
    if (simulation != NULL && simulation->workload != NULL)
        fill_loop(simulation->workload, &row);
    else if (simulation != NULL &&
             (ask->ideal || api_simulation_live_shipped(ask->input.path, simulation, shipped, &error)))
        fill_row(&simulation->report, &row);
    else
        row.reason = without_path(ask->input.path, error->message);
    api_simulation_free(simulation);
    g_clear_error(&error);
    return row;
}

/* --- runs of one step --- */

/* Of one thread, for some runs that follow each other. */
typedef struct Shared {
    guint step;
    ApiSimulation *base; /* NULL: not asked yet, or its runs go by themselves */
    bool asked;
    Spec *spec; /* the base's with the members of the run at hand */
    OrrArena *arena;
} Shared;

static void share(const Sweep *sweep, Shared *shared)
{
    const ApiSweepAsk *ask = sweep->ask;
    g_auto(GStrv) values = values_of(ask->fields, api_after_base(sweep->after, shared->step));
    ApiSimulation *base = simulate(ask, &sweep->shipped, values, NULL);
    shared->asked = true;
    if (base != NULL && api_after_shares(sweep->after, base)) {
        shared->base = base;
        shared->spec = g_memdup2(&base->spec, sizeof base->spec);
        shared->arena = orr_arena_new();
    } else {
        api_simulation_free(base);
    }
}

static void shared_clear(Shared *shared)
{
    api_simulation_free(shared->base);
    g_free(shared->spec);
    if (shared->arena != NULL)
        orr_arena_free(shared->arena);
}

/* What is refused is told by a run of its own. */
static ApiSweepRow answer_row(const Sweep *sweep, Shared *shared, guint each)
{
    const ApiSweepAsk *ask = sweep->ask;
    const guint index = api_after_index(sweep->after, shared->step, each);
    if (!shared->asked)
        share(sweep, shared);
    if (shared->base == NULL || !api_after_put(sweep->after, each, shared->spec))
        return simulate_row(ask, &sweep->shipped, index);
    Report report = shared->base->report;
    report.spec = shared->spec;
    orr_arena_clear(shared->arena);
    answer_costs(&report);
    if (!ask->ideal && !answer_live(&sweep->shipped.assumed, ask->input.path, shared->arena, &report, NULL))
        return simulate_row(ask, &sweep->shipped, index);
    ApiSweepRow row = {.values = values_of(ask->fields, index)};
    fill_row(&report, &row);
    return row;
}

/* A run is simulated, or was: else its reason and its step are not there. */
static bool is_done(const GArray *rows, guint index)
{
    const ApiSweepRow *row = &g_array_index(rows, ApiSweepRow, index);
    return row->reason != NULL || row->verdict != NULL;
}

static bool is_stopped(void *data)
{
    Sweep *sweep = data;
    g_mutex_lock(&sweep->lock);
    const bool stopped = sweep->stopped;
    g_mutex_unlock(&sweep->lock);
    return stopped;
}

/* Of those that this process is to do. */
static bool is_mine(const ApiSweepAsk *ask, int index)
{
    const int ranks = ask->team != NULL ? ask->team->ranks : 1,
              rank = ask->team != NULL ? ask->team->rank : 0;
    return ask->parts > 0 ? index % ask->parts == ask->part : index % ranks == rank;
}

/* Of what this process is to do. */
static double done_frac(const Sweep *sweep)
{
    const OrrTeam *team = sweep->ask->team;
    return MIN(1, (double)sweep->done * (team != NULL ? team->ranks : 1) / sweep->rows->len);
}

static void take_row(Sweep *sweep, guint index, ApiSweepRow *row)
{
    const bool over = orr_stop_asked(&sweep->ask->stop); /* what "auto" became may not be the best */
    g_mutex_lock(&sweep->lock);
    sweep->stopped = sweep->stopped || over;
    if (over) {
        row_clear(row);
    } else {
        g_array_index(sweep->rows, ApiSweepRow, index) = *row;
        sweep->done++;
        if (sweep->journal != NULL && sweep->error == NULL)
            sweep->stopped = !api_journal_add(sweep->journal, index, row, &sweep->error);
        if (sweep->ask->progress != NULL &&
            !sweep->ask->progress(done_frac(sweep), sweep->ask->progress_data))
            sweep->stopped = true;
    }
    g_mutex_unlock(&sweep->lock);
}

/* A piece of the runs of one step. */
static void work(int item, void *data)
{
    Sweep *sweep = data;
    const guint64 all = api_after_each(sweep->after), piece = (guint)item % sweep->pieces;
    const guint from = (guint)(all * piece / sweep->pieces), to = (guint)(all * (piece + 1) / sweep->pieces);
    Shared shared = {.step = (guint)item / sweep->pieces, .asked = to - from < 2};
    for (guint each = from; each < to && !is_stopped(sweep); each++) {
        const guint index = api_after_index(sweep->after, shared.step, each);
        if (!is_mine(sweep->ask, (int)index) || is_done(sweep->rows, index))
            continue;
        ApiSweepRow row = answer_row(sweep, &shared, each);
        take_row(sweep, index, &row);
    }
    shared_clear(&shared);
}

/* So that every thread has some to do, none waits long for the last, and a step is worth its runs. */
static guint pieces_of(const Sweep *sweep)
{
    enum { PIECES_A_THREAD = 8, LEAST_RUNS = 4 };
    const int threads = sweep->ask->threads > 0 ? sweep->ask->threads : orr_crew_cores();
    const guint wanted = threads > 1 ? (guint)threads * PIECES_A_THREAD : 1,
                steps = api_after_steps(sweep->after), most = api_after_each(sweep->after) / LEAST_RUNS;
    return CLAMP((wanted + steps - 1) / steps, 1, MAX(1, most));
}

static void run_all(Sweep *sweep)
{
    const ApiSweepAsk *ask = sweep->ask;
    const OrrStop stop = {is_stopped, sweep};
    g_mutex_init(&sweep->lock);
    sweep->after =
        api_after_new(&ask->input, ask->sets, ask->fields, ask->alone || ask->input.own_runs != NULL);
    sweep->pieces = pieces_of(sweep);
    orr_crew((int)(api_after_steps(sweep->after) * sweep->pieces), ask->threads, &stop, work, sweep);
    api_after_free(sweep->after);
    g_mutex_clear(&sweep->lock);
}

guint64 api_sweep_count(const GArray *fields)
{
    guint64 total = 1;
    for (guint i = 0; i < fields->len && total <= API_SWEEP_MOST; i++)
        total *= g_array_index(fields, ApiVary, i).values->len;
    return total;
}

/* Rows that were not simulated go; those of a journal or of other processes get their values. */
static void keep_done(const GArray *fields, GArray *rows)
{
    guint kept = 0;
    for (guint i = 0; i < rows->len; i++) {
        ApiSweepRow *row = &g_array_index(rows, ApiSweepRow, i);
        if (!is_done(rows, i))
            continue;
        if (row->values == NULL)
            row->values = values_of(fields, i);
        if (kept++ < i) {
            g_array_index(rows, ApiSweepRow, kept - 1) = *row;
            memset(row, 0, sizeof *row);
        }
    }
    g_array_set_size(rows, kept);
}

/* What is asked, so that rows of another question, version or preset are never taken for this one's. */
static char *question_hash(const ApiSweepAsk *ask, const OrrJson *scenario)
{
    g_autofree char *text = orr_json_dump(scenario), *runs = NULL;
    g_auto(GStrv) values = values_of(ask->fields, 0);
    g_autoptr(GPtrArray) sets = sets_of(ask, values);
    g_autoptr(GString) all = g_string_new(text);
    g_autofree Spec *spec = g_new0(Spec, 1);
    SpecSource source = {0};
    if (api_input_load(&ask->input, (char **)sets->pdata, spec, &source, NULL)) /* with its presets */
        g_string_append_printf(all, "\n%s", source.scenario_hash);
    spec_source_clear(&source);
    for (char **set = ask->sets; set != NULL && *set != NULL; set++)
        g_string_append_printf(all, "\n--set %s", *set);
    for (guint i = 0; i < ask->fields->len; i++) {
        const ApiVary *field = &g_array_index(ask->fields, ApiVary, i);
        g_string_append_printf(all, "\n--vary %s", field->key);
        for (guint v = 0; v < field->values->len; v++)
            g_string_append_printf(all, "\n%s", (const char *)g_ptr_array_index(field->values, v));
    }
    if (ask->input.own_runs != NULL && g_file_get_contents(ask->input.own_runs, &runs, NULL, NULL))
        g_string_append_printf(all, "\n%s", runs);
    g_string_append(all, ask->ideal ? "\nideal" : "");
    return orr_hash_text(all->str, all->len);
}

/* The rows of a process, each over the place of its run; or the error that it has met. */
static bool take_rows(const GByteArray *bytes, GArray *rows, GError **error)
{
    const char *at = (const char *)bytes->data, *end = at + bytes->len;
    if (bytes->len > 0 && *at == '!')
        return orr_fail(error, ORR_ERROR_IO, "%.*s", (int)bytes->len - 1, at + 1);
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        ApiSweepRow row;
        guint index = 0;
        if (api_row_of_line(at, (gsize)(stop - at), rows->len, &index, &row)) {
            row_clear(&g_array_index(rows, ApiSweepRow, index));
            g_array_index(rows, ApiSweepRow, index) = row;
        }
        at = stop + 1;
    }
    return true;
}

/* Every process has the rows of all, or fails as one of them did (`problem`: this one). */
static bool share_rows(const Sweep *sweep, const GError *problem, GError **error)
{
    const OrrTeam *team = sweep->ask->team;
    g_autoptr(GString) text = g_string_new(NULL);
    GByteArray *mine = g_byte_array_new();
    g_autofree GByteArray **all = g_new0(GByteArray *, team->ranks);
    if (problem != NULL)
        g_string_printf(text, "!%s", problem->message);
    for (guint i = 0; i < sweep->rows->len && problem == NULL; i++)
        if (is_mine(sweep->ask, (int)i) && is_done(sweep->rows, i))
            api_row_line(i, &g_array_index(sweep->rows, ApiSweepRow, i), text);
    g_byte_array_append(mine, (const guint8 *)text->str, (guint)text->len);
    bool ok = true;
    for (int r = 0; r < team->ranks; r++)
        all[r] = g_byte_array_new();
    team->exchange(team->data, mine, all);
    for (int r = 0; r < team->ranks; r++) {
        ok = ok && take_rows(all[r], sweep->rows, error);
        g_byte_array_unref(all[r]);
    }
    g_byte_array_unref(mine);
    return ok;
}

/* Into sweep->rows; false with an error where the journal fails. */
static bool run_journalled(Sweep *sweep, const OrrJson *scenario, GError **error)
{
    if (sweep->ask->journal != NULL) {
        g_autofree char *question = question_hash(sweep->ask, scenario);
        sweep->journal = api_journal_open(sweep->ask->journal, question, sweep->rows, error);
        if (sweep->journal == NULL)
            return false;
        for (guint i = 0; i < sweep->rows->len; i++)
            sweep->done += is_done(sweep->rows, i);
    }
    run_all(sweep);
    const bool closed = sweep->journal == NULL ||
                        api_journal_close(sweep->journal, sweep->error == NULL ? &sweep->error : NULL);
    if (sweep->error != NULL) {
        g_propagate_error(error, sweep->error);
        return false;
    }
    return closed;
}

static GArray *sweep_document(const ApiSweepAsk *ask, const OrrJson *scenario, GError **error)
{
    const guint64 total = api_sweep_count(ask->fields);
    Sweep sweep = {.ask = ask};
    if (total > API_SWEEP_MOST) {
        orr_fail(error, ORR_ERROR_INPUT, "--vary: more than %d combinations; vary fewer values",
                 API_SWEEP_MOST);
        return NULL;
    }
    const guint count = (guint)total;
    if (!api_shipped_load(!ask->ideal, ask->input.own_runs, &sweep.shipped, error))
        return NULL;
    sweep.rows = g_array_sized_new(FALSE, TRUE, sizeof(ApiSweepRow), count);
    g_array_set_clear_func(sweep.rows, row_clear);
    g_array_set_size(sweep.rows, count);
    GError *failure = NULL;
    bool ok = run_journalled(&sweep, scenario, &failure);
    api_shipped_clear(&sweep.shipped);
    if (ok && sweep.stopped && sweep.done < count && !orr_stop_asked(&ask->stop))
        ok = orr_fail(&failure, ORR_ERROR_INPUT, "sweep: stopped after %u of %u runs", sweep.done, count);
    if (ask->team != NULL) {
        GError *told = NULL;
        ok = share_rows(&sweep, failure, &told);
        g_clear_error(&failure);
        failure = told;
    }
    if (ok)
        keep_done(ask->fields, sweep.rows);
    else
        g_array_unref(g_steal_pointer(&sweep.rows));
    if (!ok)
        g_propagate_error(error, failure);
    return sweep.rows;
}

GArray *api_sweep(const ApiSweepAsk *ask, GError **error)
{
    if (ask->input.json != NULL)
        return sweep_document(ask, ask->input.json, error);
    g_autofree char *file = spec_scenario_path(ask->input.path, error);
    OrrJsonDoc *doc =
        file != NULL ? orr_json_read_file(file, error) : NULL; /* standard input has one reading */
    if (doc == NULL)
        return NULL;
    GArray *rows = sweep_document(ask, orr_json_root(doc), error);
    orr_json_free(doc);
    return rows;
}

static bool holds(const char *outer, const char *inner)
{
    const gsize length = strlen(outer);
    return strncmp(outer, inner, length) == 0 && (inner[length] == '\0' || inner[length] == '.');
}

bool api_sweep_fields_check(const GArray *fields, GError **error)
{
    for (guint i = 0; i < fields->len; i++) {
        const char *key = g_array_index(fields, ApiVary, i).key;
        for (guint j = 0; j < i; j++) {
            const char *other = g_array_index(fields, ApiVary, j).key;
            if (holds(other, key) || holds(key, other)) /* the same, or "parallel" and "parallel.tensor" */
                return orr_fail(error, ORR_ERROR_INPUT,
                                "--vary %s: overlaps --vary %s, and one would undo the other; no field can "
                                "be varied twice",
                                key, other);
        }
    }
    return fields->len > 0 || orr_fail(error, ORR_ERROR_INPUT,
                                       "sweep: nothing to vary; give --vary key=a,b,c, key=a..b (doubling) "
                                       "or key=a..b:step, as in --vary "
                                       "training.micro_batch=1..8");
}
