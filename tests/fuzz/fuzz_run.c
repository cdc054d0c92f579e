/* tests/fuzz/fuzz_run.c - lines of "KEY=VALUE" set on one of a few scenarios, which is then simulated and checked, searched
 * where it leaves something "auto", written in every form, exported and read back, and lived through where it has faults.
 *
 * The first byte chooses the scenario. What is larger than a fuzzer has patience for is loaded and let go.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "campaign/campaign.h"
#include "exchange/exchange.h"
#include "ledger/memory.h"
#include "report/report.h"
#include "search/choose.h"
#include "search/mixed.h"
#include "search/search.h"
#include "spec/load.h"
#include "tests/fuzz/door.h"

enum { MOST_LINES = 24, MOST_LINE = 400, MOST_POINTS_S = 1, REPLICAS = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool put_text(const char *text, gsize length, void *data)
{
    g_string_append_len(data, text, (gssize)length);
    return true;
}

static void write_all(Report *report)
{
    g_autoptr(GString) out = g_string_new(NULL);
    GError *error = NULL;
    report_write_json(report, out);
    OrrJsonDoc *doc = orr_json_parse(out->str, out->len, "report", &error);
    require(doc != NULL); /* no "nan", no "inf" */
    orr_json_free(doc);
    report_write_text(report, out);
    require(g_utf8_validate(out->str, (gssize)out->len, NULL));
    report_write_csv(report, true, out);
    report_write_kernels(report, out);
    report_write_memory_parts(report, REPORT_MEMORY_BY_LAYER, 0, out);
    report_write_memory_parts(report, REPORT_MEMORY_BY_LAYER, 1, out);
    const ReportTraceAsk trace = {.to_ps = G_MAXINT64, .put = put_text, .data = out};
    report_write_trace(report, &trace);
}

/* What a format says comes back as something that loads, or is refused in one sentence. */
static void export(const Spec *spec, const OrrJson *scenario)
{
    for (int format = 0; format < EXCHANGE_FORMAT_HF; format++) {
        g_autoptr(GString) text = g_string_new(NULL);
        GError *error = NULL;
        g_auto(ExchangeLoss) loss, back;
        exchange_loss_init(&loss);
        exchange_loss_init(&back);
        if (!exchange_export(spec, scenario, (ExchangeFormat)format, text, &loss, &error)) {
            check_error(error);
            continue;
        }
        OrrJsonDoc *doc = exchange_import(text->str, text->len, "fuzz", format, NULL, &back, &error);
        if (doc == NULL)
            check_error(error);
        else
            orr_json_free(doc);
    }
}

static void live(const Report *report)
{
    const CampaignOptions options = {.replicas = REPLICAS, .seed = 1, .crew.threads = 1, .ideal_days = 3};
    g_autofree Campaign *campaign = g_new0(Campaign, 1);
    g_autoptr(GString) out = g_string_new(NULL);
    GError *error = NULL;
    if (!campaign_run(report, "fuzz", &options, campaign, &error)) {
        check_error(error);
        return;
    }
    campaign_write_text(campaign, out);
    campaign_write_json(campaign, out);
    require(campaign->days.mean > 0 && isfinite(campaign->days.mean));
}

static void simulate(Spec *spec, const OrrJson *scenario)
{
    const ReportOptions options = {.check = true};
    OrrArena *arena = orr_arena_new();
    g_autofree Report *report = g_new0(Report, 1);
    GError *error = NULL;
    if (!fuzz_is_small(spec)) {
        orr_arena_free(arena);
        return;
    }
    if (search_mixed_asked(spec) && !search_mixed_choose(spec, &error)) {
        check_error(error);
        orr_arena_free(arena);
        return;
    }
    if (report_run(spec, NULL, &options, arena, report, &error)) {
        ledger_memory_fill(NULL, NULL, report);
        require(report->step_ps > 0 && report->mfu >= 0 && report->mfu <= 1 + 1e-6 &&
                report->peak_bytes >= 0);
        write_all(report);
        live(report);
    } else {
        check_error(error);
    }
    orr_arena_free(arena);
    export(spec, scenario);
}

static void search(Spec *spec)
{
    const SearchOptions options = {.top = 2, .jobs = 1, .max_seconds = MOST_POINTS_S};
    SearchResult result;
    GError *error = NULL;
    if (spec_gpus(spec) > 4096 || spec->training.global_batch > 4096 || spec->model.layers > 200)
        return;
    if (!search_run(spec, &options, &result, &error)) {
        check_error(error);
        return;
    }
    g_autoptr(GString) out = g_string_new(NULL);
    search_write_text(&result, out);
    search_result_clear(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    GError *error = NULL;
    if (size < 1)
        return 0;
    g_autofree char *text = g_strndup((const char *)data + 1, size - 1);
    g_auto(GStrv) lines = g_strsplit(text, "\n", MOST_LINES);
    const char *base = fuzz_scenarios[data[0] % G_N_ELEMENTS(fuzz_scenarios)];
    for (char **line = lines; *line != NULL; line++)
        if (strlen(*line) > MOST_LINE)
            (*line)[MOST_LINE] = '\0';
    OrrJsonDoc *doc = orr_json_parse(base, strlen(base), "fuzz.json", &error);
    require(doc != NULL);
    g_autofree Spec *spec = g_new0(Spec, 1);
    SpecSource source = {0};
    if (!spec_load_json(orr_json_root(doc), "fuzz.json", (const char *const *)lines, true, spec, &source,
                        &error)) {
        check_error(error);
    } else if (search_has_auto(spec)) {
        search(spec);
        spec_source_clear(&source);
    } else {
        OrrJsonDoc *whole = orr_json_parse(source.resolved, strlen(source.resolved), "fuzz.json", &error);
        require(whole != NULL);
        simulate(spec, orr_json_root(whole));
        orr_json_free(whole);
        spec_source_clear(&source);
    }
    orr_json_free(doc);
    return 0;
}
