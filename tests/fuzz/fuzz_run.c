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

enum { MOST_LINES = 24, MOST_LINE = 400, MOST_PASSES = 20000, MOST_POINTS_S = 1, REPLICAS = 3 };

static const char *const SCENARIOS[] = {
    "{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":2},\"training\":{\"sequence_"
    "length\":8192,"
    "\"global_batch\":32},\"parallel\":{\"tensor\":4,\"pipeline\":2},\"execution\":{\"framework\":\"megatron-"
    "core\"}}",
    "{\"model\":\"mixtral-8x7b\",\"cluster\":{\"accelerator\":\"b200-sxm-180gb\",\"gpus_per_node\":8,"
    "\"nodes\":4,"
    "\"scale_out_bytes_per_s_per_gpu\":\"50 "
    "GB/s\"},\"training\":{\"sequence_length\":4096,\"global_batch\":64},"
    "\"parallel\":{\"expert\":8},\"execution\":{\"framework\":\"megatron-core\"}}",
    "{\"model\":\"llama2-7b\",\"cluster\":{\"accelerator\":\"a100-sxm4-80gb\",\"gpus_per_node\":8,\"nodes\":"
    "2,"
    "\"scale_out_bytes_per_s_per_gpu\":\"25 "
    "GB/s\"},\"training\":{\"sequence_length\":4096,\"global_batch\":64},"
    "\"parallel\":{\"zero\":3},\"execution\":{\"framework\":\"deepspeed\"}}",
    "{\"model\":\"gpt2-xl\",\"cluster\":{\"accelerator\":\"v100-sxm2-32gb\",\"gpus_per_node\":8,\"nodes\":1},"
    "\"training\":"
    "{\"sequence_length\":1024,\"global_batch\":16,\"recompute\":\"auto\",\"micro_batch\":\"auto\"},"
    "\"parallel\":"
    "{\"tensor\":\"auto\",\"pipeline\":\"auto\",\"zero\":\"auto\"},\"execution\":{\"framework\":\"megatron-"
    "lm\"}}",
    "{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":4},\"training\":{\"sequence_"
    "length\":8192,"
    "\"global_batch\":128,\"tokens\":1e12},\"parallel\":{\"zero\":3},\"execution\":{\"framework\":"
    "\"torchtitan\"},"
    "\"faults\":\"llama3-2024\",\"storage\":\"tectonic\"}",
    "{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":4,\"network\":{\"fidelity\":"
    "\"flow\","
    "\"topology\":\"leaf-spine\",\"leaf_gpus\":16,\"failed_links\":[\"gpu0-leaf0=0.5\"]}},\"training\":{"
    "\"sequence_"
    "length\":8192,\"global_batch\":16},\"parallel\":{\"tensor\":8,\"pipeline\":2,\"zero\":1},\"execution\":{"
    "\"framework\":\"megatron-core\"},\"jitter\":\"slow-machines\"}",
    "{\"model\":\"blenderbot-400m\",\"cluster\":{\"preset\":\"dgx-2\",\"nodes\":1},\"training\":{\"sequence_"
    "length\":"
    "128,\"encoder_sequence_length\":128,\"global_batch\":64,\"precision\":\"fp16\"},\"parallel\":{\"zero\":"
    "2},"
    "\"execution\":{\"framework\":\"transformers-deepspeed\"},\"offload\":{\"scheme\":\"zero-offload\"}}",
    "{\"model\":\"resnet-50\",\"cluster\":{\"accelerator\":\"v100-sxm2-32gb\",\"gpus_per_node\":1,\"nodes\":"
    "4,"
    "\"scale_out_bytes_per_s_per_gpu\":\"12.5 "
    "GB/s\"},\"training\":{\"sequence_length\":1,\"global_batch\":128,"
    "\"micro_batch\":32,\"precision\":\"fp16\"},\"parallel\":{\"data_scheme\":\"parameter_server\","
    "\"parameter_server\":{\"servers\":2,\"scheme\":\"bytescheduler\"}},\"execution\":{\"framework\":\"mxnet-"
    "horovod\"}}",
    "{\"model\":\"llama2-7b\",\"cluster\":{\"preset\":\"aws-p5\",\"nodes\":1},\"training\":{\"sequence_"
    "length\":4096,"
    "\"global_batch\":8},\"parallel\":{\"zero\":3},\"execution\":{\"framework\":\"deepspeed\"},\"offload\":{"
    "\"scheme\":\"zero-infinity\"}}",
    "{\"model\":\"llama3-8b\",\"cluster\":{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":1},{\"preset\":"
    "\"dgx-a100-80gb\",\"nodes\":1}]},\"training\":{\"sequence_length\":8192,\"global_batch\":32},"
    "\"parallel\":{"
    "\"tensor\":4,\"pipeline\":2,\"zero\":1,\"stage_layers\":\"auto\",\"replica_microbatches\":\"auto\"},"
    "\"execution\":{\"framework\":\"megatron-core\"}}",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_error(GError *error)
{
    require(error != NULL && error->domain == ORR_ERROR && error->code != ORR_ERROR_INTERNAL);
    require(strchr(error->message, '\n') == NULL && g_utf8_validate(error->message, -1, NULL));
    g_error_free(error);
}

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
    report_write_memory_parts(report, REPORT_MEMORY_BY_LAYER, out);
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
    const CampaignOptions options = {.replicas = REPLICAS, .seed = 1, .threads = 1, .ideal_days = 3};
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

static bool is_small(const Spec *spec)
{
    const SpecParallel *parallel = &spec->parallel;
    return (double)spec_microbatches(spec) * parallel->pipeline * MAX(1, parallel->virtual_stages) <=
               MOST_PASSES &&
           spec->model.layers <= 200 && spec_gpus(spec) <= 100000;
}

static void simulate(Spec *spec, const OrrJson *scenario)
{
    const ReportOptions options = {.check = true};
    OrrArena *arena = orr_arena_new();
    g_autofree Report *report = g_new0(Report, 1);
    GError *error = NULL;
    if (!is_small(spec)) {
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
    const char *base = SCENARIOS[data[0] % G_N_ELEMENTS(SCENARIOS)];
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
