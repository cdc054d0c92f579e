/* report/input.c - see input.h. */
#include "costmodel/lengths.h"
#include "report/input.h"

#include <math.h>

#include "report/page.h"

#define LEAST_TOKENS_PER_S 1e-3

enum { LABEL_COLUMN = 14 };

/* A forward over a step, forward and backward: a backward is two products where a forward is one. */
#define FORWARD_FRAC (1.0 / 3)

static void stage(ReportInput *input, const char *name, double tokens_per_s)
{
    if (tokens_per_s < input->tokens_per_s) {
        input->tokens_per_s = tokens_per_s;
        input->stage = name;
    }
}

/* From the second pass over the data on, the nodes' own caches have it. */
static bool cached(const Spec *spec, int readers)
{
    const SpecData *data = &spec->data;
    return data->tokens > 0 && data->tokens * data->bytes_per_token <= data->cache_bytes * readers;
}

static void fill_rates(const Spec *spec, ReportInput *input)
{
    const SpecData *data = &spec->data;
    const double bytes = data->bytes_per_token;
    const int readers = MIN(spec->cluster.nodes, spec->parallel.data);
    input->readers = readers;
    input->tokens_per_s = INFINITY;
    input->stage = "";
    input->cached = cached(spec, readers);
    if (spec->storage.read_bytes_per_s > 0 && !input->cached) {
        const bool each = spec->storage.shared_by == SPEC_SHARED_BY_NODE;
        const double own =
            spec->storage.node_bytes_per_s > 0 ? spec->storage.node_bytes_per_s * readers : INFINITY;
        stage(input, "storage", fmin(spec->storage.read_bytes_per_s * (each ? readers : 1), own) / bytes);
    }
    if (data->front_end_bytes_per_s > 0 && !input->cached)
        stage(input, "the front-end network", data->front_end_bytes_per_s * readers / bytes);
    if (data->tokens_per_s > 0)
        stage(input, "the processes that prepare it", data->tokens_per_s * data->workers * readers);
    if (spec->cluster.accelerator.host_link_bytes_per_s > 0)
        stage(input, "the host link",
              spec->cluster.accelerator.host_link_bytes_per_s * spec->parallel.data / bytes);
}

bool report_input_fill(Report *report, GError **error)
{
    const Spec *spec = report->spec;
    const SpecData *data = &spec->data;
    ReportInput *input = &report->input;
    const double tokens = cost_trained_tokens(spec);
    const double step_s = (double)report->step_ps * 1e-12,
                 skipped = fmax(0, spec->training.skipped_steps_frac);
    if (!data->given && !(skipped > 0))
        return true;
    if (data->eval_every_steps > 0 && !(data->eval_tokens > 0))
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "data.eval_every_steps: %d, but data.eval_tokens is not given; give the tokens of one "
            "evaluation, or 0",
            data->eval_every_steps);
    if (data->tokens_per_s > 0 && data->tokens_per_s < LEAST_TOKENS_PER_S)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "data.tokens_per_s: %g of a process that prepares input would never end; give at least "
            "%g, or 0 for as many as it takes",
            data->tokens_per_s, LEAST_TOKENS_PER_S);
    input->told = true;
    input->bytes_per_s = data->bytes_per_token * tokens / step_s;
    if (data->given)
        fill_rates(spec, input);
    const double fetch_s = data->given && !isinf(input->tokens_per_s) ? tokens / input->tokens_per_s : 0;
    input->fetch_s = fetch_s;
    input->wait_s = data->prefetch > 0 ? fmax(0, fetch_s - step_s) : fetch_s;
    input->binds = fetch_s > step_s;
    if (data->eval_every_steps > 0)
        input->eval_frac = FORWARD_FRAC * data->eval_tokens / tokens / data->eval_every_steps;
    input->skipped_frac = skipped;
    return true;
}

static void append_data_set(const Report *report, GString *line)
{
    char text[ORR_TEXT_SIZE], count[ORR_TEXT_SIZE];
    const Spec *spec = report->spec;
    const double tokens = spec->data.tokens > 0 ? spec->data.tokens : spec->training.tokens;
    if (tokens > 0)
        g_string_append_printf(line, "; %s for %s tokens",
                               orr_text_si(text, tokens * spec->data.bytes_per_token, "B"),
                               orr_text_count(count, tokens));
}

void report_input_text(const Report *report, GString *out)
{
    const ReportInput *input = &report->input;
    char need[ORR_TEXT_SIZE], have[ORR_TEXT_SIZE], wait[ORR_TEXT_SIZE];
    if (!input->told || !report->spec->data.given)
        return;
    g_autoptr(GString) line = g_string_new(NULL);
    orr_text_si(need, input->bytes_per_s, "B/s");
    if (isinf(input->tokens_per_s))
        g_string_printf(line, "%s, and nothing limits it", need);
    else
        g_string_printf(line, "%s of %s from %s: %s", need,
                        orr_text_si(have, input->tokens_per_s * report->spec->data.bytes_per_token, "B/s"),
                        input->stage, input->binds ? "BINDS" : "does not bind");
    if (input->wait_s > 0)
        g_string_append_printf(line, ", each step waits %s", orr_text_seconds(wait, input->wait_s));
    append_data_set(report, line);
    report_page_entry(out, "Input", LABEL_COLUMN, line->str);
}

void report_input_json(const Report *report, OrrJsonWriter *w)
{
    const ReportInput *input = &report->input;
    if (!input->told) {
        orr_jw_null(w, "input");
        return;
    }
    orr_jw_begin(w, "input", '{');
    orr_jw_number(w, "bytes_per_s", input->bytes_per_s);
    orr_jw_number(w, "tokens_per_s", report->spec->data.given ? input->tokens_per_s : NAN);
    orr_jw_text(w, "stage", input->stage);
    orr_jw_bool(w, "binds", input->binds);
    orr_jw_bool(w, "cached", input->cached);
    orr_jw_number(w, "fetch_s", input->fetch_s);
    orr_jw_number(w, "wait_s", input->wait_s);
    orr_jw_number(w, "eval_frac", input->eval_frac);
    orr_jw_number(w, "skipped_steps_frac", input->skipped_frac);
    orr_jw_end(w, '}');
}
