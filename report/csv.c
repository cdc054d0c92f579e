/* report/csv.c - the scalar keys of a report as one CSV row.
 *
 * Columns are the JSON keys, nested ones joined with a dot ("time.compute_s"); a value that the report
 * does not have is an empty cell. Lists (stages, profiles, defaults, links) stay in the JSON.
 */
#include "report/network.h"
#include "report/parts.h"

#include "base/text.h"

typedef struct CsvRow {
    GPtrArray *keys, *cells; /* char* */
} CsvRow;

static void add_cell(CsvRow *row, char *key, char *cell)
{
    g_ptr_array_add(row->keys, key);
    g_ptr_array_add(row->cells, cell);
}

static void add_text(CsvRow *row, const char *key, const char *text)
{
    add_cell(row, g_strdup(key), g_strdup(text != NULL ? text : ""));
}

static void add_number(CsvRow *row, const char *key, double value)
{
    g_autoptr(GString) text = g_string_new(NULL);
    OrrJsonWriter writer;
    orr_jw_init(&writer, text, true);
    orr_jw_number(&writer, NULL, value);
    add_cell(row, g_strdup(key), g_strdup(text->str));
}

static void add_positive(CsvRow *row, const char *key, double value)
{
    if (value > 0.0)
        add_number(row, key, value);
    else
        add_text(row, key, "");
}

static void add_ps(CsvRow *row, char *key, int64_t ps)
{
    g_autoptr(GString) text = g_string_new(NULL);
    OrrJsonWriter writer;
    orr_jw_init(&writer, text, true);
    orr_jw_ps(&writer, NULL, ps);
    add_cell(row, key, g_strdup(text->str));
}

static void add_ps_if(CsvRow *row, const char *key, bool given, int64_t ps)
{
    if (given)
        add_ps(row, g_strdup(key), ps);
    else
        add_text(row, key, "");
}

static void add_split(CsvRow *row, const Report *report)
{
    ReportTime times[REPORT_TIME_COUNT];
    report_times(report->part_ps, report->bubble_ps, report->late_ps, times);
    for (int i = 0; i < REPORT_TIME_COUNT; i++)
        add_ps(row, g_strconcat("time.", times[i].key, NULL), times[i].ps);
}

/* The scalars of the network section; without it the cells are empty. */
static void add_network(CsvRow *row, const Report *report)
{
    const TrafficSummary *network = &report->network;
    add_text(row, "network.fidelity", network->on ? "flow" : "");
    add_text(row, "network.topology", network->on ? network->topology : "");
    add_text(row, "network.routing", network->on ? report_network_routing(report) : "");
    add_ps_if(row, "network.uncontended_step_s", network->on, network->alone_ps);
    add_ps_if(row, "network.contention_s", network->on, network->step_ps - network->alone_ps);
    add_text(row, "network.folding_exact", !network->on ? "" : network->alike ? "true" : "false");
    add_cell(row, g_strdup("network.shared_links"),
             network->on ? g_strdup_printf("%d", network->shared_links) : g_strdup(""));
    add_text(row, "network.shared_links_complete",
             !network->on                  ? ""
             : network->left_out_links > 0 ? "false"
                                           : "true");
    for (int d = 0; d < TRAFFIC_DIMENSIONS; d++) {
        const TrafficOfDimension *of = &network->dimensions[d];
        const char *name = traffic_dimension_name((TrafficDimension)d);
        g_autofree char *bytes = g_strdup_printf("network.dimensions.%s.bytes", name),
                        *slowest = g_strdup_printf("network.dimensions.%s.slowest_times", name),
                        *fastest = g_strdup_printf("network.dimensions.%s.fastest_times", name);
        add_positive(row, bytes, network->on && of->across ? (double)of->bytes : 0);
        add_positive(row, slowest, network->on && of->across ? of->slowest : 0);
        add_positive(row, fastest, network->on && of->across ? of->fastest : 0);
    }
}

static void add_report(CsvRow *row, const Report *report)
{
    add_text(row, "scenario", report->spec->name);
    add_text(row, "stamp.version", ORRERY_VERSION);
    add_text(row, "stamp.scenario_hash", report->source != NULL ? report->source->scenario_hash : NULL);
    add_text(row, "model.name", report->spec->model.name);
    add_number(row, "model.parameters", report->parameters);
    add_number(row, "model.active_parameters", report->active_parameters);
    add_number(row, "model.trained_parameters", report->trained_parameters);
    add_number(row, "gpus", report->gpus);
    add_text(row, "fits", report->fits ? "true" : "false");
    add_ps(row, g_strdup("step_s"), report->step_ps);
    add_number(row, "tokens_per_s", report->tokens_per_s);
    add_number(row, "tokens_per_s_per_gpu", report->tokens_per_s_per_gpu);
    add_number(row, "model_flops_per_s_per_gpu", report->model_flops_per_s_per_gpu);
    add_number(row, "mfu", report->mfu);
    add_number(row, "hfu", report->hfu);
    add_number(row, "bubble_frac", report->bubble_frac);
    const bool interval = report->interval_coverage > 0.0;
    add_positive(row, "interval.low_s", interval ? report->interval_low_s : 0.0);
    add_positive(row, "interval.high_s", interval ? report->interval_high_s : 0.0);
    add_positive(row, "interval.coverage", report->interval_coverage);
    add_split(row, report);
    add_number(row, "memory.capacity_bytes", report->capacity_bytes);
    add_number(row, "memory.peak_bytes", report->peak_bytes);
    add_number(row, "memory.reserved_bytes", report->reserved_bytes);
    add_number(row, "memory.short_bytes", report->short_bytes);
    add_positive(row, "training.days", report->days);
    add_positive(row, "training.gpu_hours", report->gpu_hours);
    add_positive(row, "training.usd", report->usd);
    add_positive(row, "training.kwh", report->kwh);
    add_positive(row, "training.effective_days", report->effective.days);
    add_network(row, report);
}

void report_write_csv(const Report *report, bool header, GString *out)
{
    CsvRow row = {g_ptr_array_new_with_free_func(g_free), g_ptr_array_new_with_free_func(g_free)};
    add_report(&row, report);
    OrrTable *table = orr_table_new(header ? (const char *const *)row.keys->pdata : NULL, (int)row.keys->len);
    orr_table_row(table, (const char *const *)row.cells->pdata);
    orr_table_csv(table, out);
    orr_table_free(table);
    g_ptr_array_free(row.keys, TRUE);
    g_ptr_array_free(row.cells, TRUE);
}
