/* cli/cmd_sweep.c - orrery sweep: a tidy table of runs, one row for every combination of values. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "api/simulate.h"
#include "api/vary.h"
#include "report/page.h"
#include "report/parts.h"

#define GIB 1073741824.0

typedef struct SweepArgs {
    CliArgs common;
    char **vary;
    gboolean ideal;
} SweepArgs;

/* One run, as values: what the table shows once the simulation is gone. */
typedef struct SweepRow {
    char **values; /* of the varied fields, in their order; g_strfreev */
    char *reason;  /* why it could not run; NULL: it did */
    char *chosen;  /* "training.micro_batch=2;...", what "auto" became */
    bool fits;
    double step_s, tokens_per_s, tokens_per_s_per_gpu, mfu, hfu, bubble_frac;
    double peak_bytes, reserved_bytes, short_bytes;
    double days, effective_days, usd; /* usd: of the effective days where they are told */
    double time_s[REPORT_TIME_COUNT];
    int gpus;
} SweepRow;

static void row_clear(void *data)
{
    SweepRow *row = data;
    g_strfreev(row->values);
    g_free(row->reason);
    g_free(row->chosen);
}

static void vary_clear(void *data)
{
    api_vary_clear(data);
}

/* --- the runs --- */

static char *join_chosen(const GPtrArray *chosen)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; chosen != NULL && i < chosen->len; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? ";" : "", (const char *)g_ptr_array_index(chosen, i));
    return g_string_free(text, FALSE);
}

static void fill_row(const Report *report, SweepRow *row)
{
    ReportTime times[REPORT_TIME_COUNT];
    report_times(report->part_ps, report->bubble_ps, times);
    for (int i = 0; i < REPORT_TIME_COUNT; i++)
        row->time_s[i] = (double)times[i].ps * 1e-12;
    row->chosen = join_chosen(report->chosen);
    row->gpus = report->gpus;
    row->fits = report->fits;
    row->step_s = (double)report->step_ps * 1e-12;
    row->tokens_per_s = report->tokens_per_s;
    row->tokens_per_s_per_gpu = report->tokens_per_s_per_gpu;
    row->mfu = report->mfu;
    row->hfu = report->hfu;
    row->bubble_frac = report->bubble_frac;
    row->peak_bytes = report->peak_bytes;
    row->reserved_bytes = report->reserved_bytes;
    row->short_bytes = report->short_bytes;
    row->days = report->days;
    row->effective_days = report->effective.told ? report->effective.days : 0;
    row->usd = report->usd;
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

static SweepRow simulate_row(const SweepArgs *args, const GArray *fields, guint64 index)
{
    const ReportOptions options = {.unfold = false};
    SweepRow row = {.values = values_of(fields, index)};
    GPtrArray *sets = g_ptr_array_new_with_free_func(g_free);
    GError *error = NULL;
    for (char **set = args->common.sets; set != NULL && *set != NULL; set++)
        g_ptr_array_add(sets, g_strdup(*set));
    for (guint i = 0; i < fields->len; i++)
        g_ptr_array_add(sets, g_strdup_printf("%s=%s", g_array_index(fields, ApiVary, i).key, row.values[i]));
    g_ptr_array_add(sets, NULL);
    ApiSimulation *simulation = api_simulate(args->common.words[0], (char **)sets->pdata, &options, &error);
    if (simulation != NULL && (args->ideal || api_simulation_live(args->common.words[0], simulation, &error)))
        fill_row(&simulation->report, &row);
    else
        row.reason = without_path(args->common.words[0], error->message);
    api_simulation_free(simulation);
    g_clear_error(&error);
    g_ptr_array_free(sets, TRUE);
    return row;
}

static void show_progress(guint64 done, guint64 total, gint64 start_us)
{
    const double spent_s = (double)(g_get_monotonic_time() - start_us) * 1e-6;
    const double left_s = spent_s / (double)done * (double)(total - done);
    fprintf(stderr, "\r%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " runs, %.0f s left   %s", done, total,
            left_s, done == total ? "\n" : "");
}

/* NULL with an error when the scenario cannot be read at all: no combination would say anything else. */
static GArray *simulate_rows(const SweepArgs *args, const GArray *fields, GError **error)
{
    enum { MOST = 100000 };
    const bool terminal = !args->common.quiet && isatty(STDERR_FILENO) != 0;
    const gint64 start_us = g_get_monotonic_time();
    guint64 total = 1;
    OrrJsonDoc *doc = orr_json_read_file(args->common.words[0], error);
    if (doc == NULL)
        return NULL;
    orr_json_free(doc);
    for (guint i = 0; i < fields->len; i++) {
        total *= g_array_index(fields, ApiVary, i).values->len;
        if (total > MOST) {
            orr_fail(error, ORR_ERROR_INPUT, "--vary: more than %d combinations; vary fewer values", MOST);
            return NULL;
        }
    }
    GArray *rows = g_array_new(FALSE, TRUE, sizeof(SweepRow));
    g_array_set_clear_func(rows, row_clear);
    for (guint64 i = 0; i < total; i++) {
        const SweepRow row = simulate_row(args, fields, i);
        g_array_append_val(rows, row);
        if (terminal)
            show_progress(i + 1, total, start_us);
    }
    return rows;
}

/* --- the table --- */

static const char *last_part(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot != NULL ? dot + 1 : key;
}

static void write_text(const GArray *fields, const GArray *rows, GString *out)
{
    enum { FIXED = 9 };
    static const char *const fixed[FIXED] = {"step", "tokens/s/GPU", "MFU",    "bubble", "memory",
                                             "days", "effective",    "chosen", "why not"};
    const int columns = (int)fields->len + FIXED;
    g_autoptr(GPtrArray) headers = g_ptr_array_new();
    for (guint i = 0; i < fields->len; i++)
        g_ptr_array_add(headers, (void *)last_part(g_array_index(fields, ApiVary, i).key));
    for (int i = 0; i < FIXED; i++)
        g_ptr_array_add(headers, (void *)fixed[i]);
    OrrTable *table = orr_table_new((const char *const *)headers->pdata, columns);
    for (guint r = 0; r < rows->len; r++) {
        const SweepRow *row = &g_array_index(rows, SweepRow, r);
        char cell[FIXED - 2][ORR_TEXT_SIZE] = {{0}};
        g_autoptr(GPtrArray) cells = g_ptr_array_new();
        for (guint i = 0; i < fields->len; i++)
            g_ptr_array_add(cells, row->values[i]);
        if (row->reason == NULL) {
            orr_text_seconds(cell[0], row->step_s);
            g_snprintf(cell[1], ORR_TEXT_SIZE, "%.4g", row->tokens_per_s_per_gpu);
            g_snprintf(cell[2], ORR_TEXT_SIZE, "%.1f %%", row->mfu * 100);
            g_snprintf(cell[3], ORR_TEXT_SIZE, "%.1f %%", row->bubble_frac * 100);
            g_snprintf(cell[4], ORR_TEXT_SIZE, "%.1f GiB%s", row->reserved_bytes / GIB,
                       row->fits ? "" : ", does not fit");
            if (row->days > 0)
                g_snprintf(cell[5], ORR_TEXT_SIZE, "%.1f", row->days);
            if (row->effective_days > 0)
                g_snprintf(cell[6], ORR_TEXT_SIZE, "%.1f", row->effective_days);
        }
        for (int i = 0; i < FIXED - 2; i++)
            g_ptr_array_add(cells, cell[i]);
        g_ptr_array_add(cells, row->chosen != NULL ? row->chosen : (char *)"");
        g_ptr_array_add(cells, row->reason != NULL ? row->reason : (char *)"");
        orr_table_row(table, (const char *const *)cells->pdata);
    }
    orr_table_print(table, out, 0);
    orr_table_free(table);
}

/* Where the values of a row go, by name. */
typedef struct SweepSink {
    OrrJsonWriter *json; /* or */
    GPtrArray *cells;    /* of CSV, char* */
    GPtrArray *headers;  /* of CSV, char*; filled for the first row only; NULL: not wanted */
} SweepSink;

static void put_text(SweepSink *sink, const char *key, const char *text)
{
    if (sink->json != NULL) {
        orr_jw_text(sink->json, key, text);
        return;
    }
    if (sink->headers != NULL)
        g_ptr_array_add(sink->headers, g_strdup(key));
    g_ptr_array_add(sink->cells, g_strdup(text != NULL ? text : ""));
}

static void put_number(SweepSink *sink, const char *key, double value, bool known)
{
    if (sink->json != NULL && known) {
        orr_jw_number(sink->json, key, value);
    } else if (sink->json != NULL) {
        orr_jw_null(sink->json, key);
    } else {
        char text[G_ASCII_DTOSTR_BUF_SIZE];
        put_text(sink, key, known ? g_ascii_formatd(text, sizeof text, "%.15g", value) : "");
    }
}

static void put_row(SweepSink *sink, const GArray *fields, const SweepRow *row)
{
    ReportTime times[REPORT_TIME_COUNT];
    const int64_t none[SIM_PART_COUNT] = {0};
    const bool ran = row->reason == NULL;
    report_times(none, 0, times);
    for (guint i = 0; i < fields->len; i++) {
        char *end = NULL;
        const double number = g_ascii_strtod(row->values[i], &end);
        if (end != row->values[i] && *end == '\0')
            put_number(sink, g_array_index(fields, ApiVary, i).key, number, true);
        else
            put_text(sink, g_array_index(fields, ApiVary, i).key, row->values[i]);
    }
    put_number(sink, "gpus", row->gpus, ran);
    if (sink->json != NULL && ran)
        orr_jw_bool(sink->json, "fits", row->fits);
    else
        put_text(sink, "fits", !ran ? NULL : row->fits ? "true" : "false");
    put_number(sink, "step_s", row->step_s, ran);
    put_number(sink, "tokens_per_s", row->tokens_per_s, ran);
    put_number(sink, "tokens_per_s_per_gpu", row->tokens_per_s_per_gpu, ran);
    put_number(sink, "mfu", row->mfu, ran);
    put_number(sink, "hfu", row->hfu, ran);
    put_number(sink, "bubble_frac", row->bubble_frac, ran);
    for (int i = 0; i < REPORT_TIME_COUNT; i++) {
        g_autofree char *key = g_strconcat("time.", times[i].key, NULL);
        put_number(sink, key, row->time_s[i], ran);
    }
    put_number(sink, "peak_bytes", row->peak_bytes, ran);
    put_number(sink, "reserved_bytes", row->reserved_bytes, ran);
    put_number(sink, "short_bytes", row->short_bytes, ran);
    put_number(sink, "days", row->days, row->days > 0);
    put_number(sink, "effective_days", row->effective_days, row->effective_days > 0);
    put_number(sink, "usd", row->usd, row->usd > 0);
    put_text(sink, "chosen", row->chosen);
    put_text(sink, "reason", row->reason);
}

static void write_json(const GArray *fields, const GArray *rows, GString *out)
{
    OrrJsonWriter writer;
    orr_jw_init(&writer, out, false);
    SweepSink sink = {.json = &writer};
    orr_jw_begin(&writer, NULL, '{');
    orr_jw_int(&writer, "schema", 1);
    orr_jw_text(&writer, "version", ORRERY_VERSION);
    orr_jw_begin(&writer, "rows", '[');
    for (guint i = 0; i < rows->len; i++) {
        orr_jw_begin(&writer, NULL, '{');
        put_row(&sink, fields, &g_array_index(rows, SweepRow, i));
        orr_jw_end(&writer, '}');
    }
    orr_jw_end(&writer, ']');
    orr_jw_end(&writer, '}');
    g_string_append_c(out, '\n');
}

static void write_csv(const GArray *fields, const GArray *rows, GString *out)
{
    OrrTable *table = NULL;
    for (guint i = 0; i < rows->len; i++) {
        g_autoptr(GPtrArray) cells = g_ptr_array_new_with_free_func(g_free);
        g_autoptr(GPtrArray) headers = g_ptr_array_new_with_free_func(g_free);
        SweepSink sink = {.cells = cells, .headers = i == 0 ? headers : NULL};
        put_row(&sink, fields, &g_array_index(rows, SweepRow, i));
        if (table == NULL)
            table = orr_table_new((const char *const *)headers->pdata, (int)headers->len);
        orr_table_row(table, (const char *const *)cells->pdata);
    }
    orr_table_csv(table, out);
    orr_table_free(table);
}

/* --- the command --- */

static bool holds(const char *outer, const char *inner)
{
    const gsize length = strlen(outer);
    return strncmp(outer, inner, length) == 0 && (inner[length] == '\0' || inner[length] == '.');
}

/* One is the other, or lies within it: "parallel" and "parallel.tensor". */
static bool overlaps(const char *a, const char *b)
{
    return holds(a, b) || holds(b, a);
}

static bool read_fields(const SweepArgs *args, GArray *fields, GError **error)
{
    for (char **text = args->vary; text != NULL && *text != NULL; text++) {
        ApiVary vary = {NULL, NULL};
        if (!api_vary_parse(*text, &vary, error))
            return false;
        g_array_append_val(fields, vary);
        for (guint i = 0; i + 1 < fields->len; i++)
            if (overlaps(g_array_index(fields, ApiVary, i).key, vary.key))
                return orr_fail(error, ORR_ERROR_INPUT,
                                "--vary %s: overlaps --vary %s, and one would undo the other; no field can "
                                "be varied twice",
                                vary.key, g_array_index(fields, ApiVary, i).key);
    }
    return fields->len > 0 ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "sweep: nothing to vary; give --vary key=a,b,c or key=a..b (doubling), as in --vary "
                    "training.micro_batch=1..8");
}

/* Where no combination runs, the scenario or a key is wrong. */
static bool any_ran(const SweepArgs *args, const GArray *rows, GError **error)
{
    for (guint i = 0; i < rows->len; i++)
        if (g_array_index(rows, SweepRow, i).reason == NULL)
            return true;
    return orr_fail(error, ORR_ERROR_INPUT, "%s: none of %u combinations can run; the first: %s",
                    args->common.words[0], rows->len, g_array_index(rows, SweepRow, 0).reason);
}

static bool run(const CliArgs *common, GError **error)
{
    const SweepArgs *args = (const SweepArgs *)common;
    g_autoptr(GArray) fields = g_array_new(FALSE, TRUE, sizeof(ApiVary));
    g_array_set_clear_func(fields, vary_clear);
    if (!read_fields(args, fields, error))
        return false;
    g_autoptr(GArray) rows = simulate_rows(args, fields, error);
    if (rows == NULL)
        return false;
    if (!any_ran(args, rows, error))
        return false;
    g_autoptr(GString) out = g_string_new(NULL);
    if (common->format == CLI_FORMAT_JSON)
        write_json(fields, rows, out);
    else if (common->format == CLI_FORMAT_CSV)
        write_csv(fields, rows, out);
    else
        write_text(fields, rows, out);
    return cli_output_write(common->output, out, error);
}

static const CliFlag flags[] = {
    {"vary", CLI_FLAG_TEXTS, offsetof(SweepArgs, vary), "KEY=VALUES",
     "a field and its values, key=a,b,c or key=a..b (doubling); repeatable: every combination"},
    {"ideal", CLI_FLAG_SWITCH, offsetof(SweepArgs, ideal), NULL,
     "days and costs of computing alone: no failures, checkpoints and restarts"},
};

const CliCommand cli_command_sweep = {
    .name = "sweep",
    .usage = "SCENARIO.json",
    .summary = "a tidy table of runs over values of some fields",
    .help =
        "Simulates the scenario for every combination of the varied fields, one row each: the values, step "
        "time and its parts, throughput, MFU, memory, days of computing and, with failures, checkpoints and "
        "restarts in them, effective days, which the costs are of. A combination that cannot run keeps its "
        "row, with the "
        "reason in the last column. Where tensor, pipeline or nodes vary, leave parallel.data out of the "
        "scenario or add --set parallel.data=auto.\n"
        "\n"
        "  orrery sweep gpt3.json --vary training.micro_batch=1..8\n"
        "  orrery sweep gpt3.json --set parallel.data=auto --vary parallel.tensor=1..8 \\\n"
        "      --vary training.recompute=none,selective,full --format csv --output sweep.csv\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(SweepArgs),
    .run = run,
};
