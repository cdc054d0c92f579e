/* api/jobs.c - see jobs.h. Tested: cli/test_cli_planning.c */
#include "api/jobs.h"

#include "report/report.h"
#include "spec/load.h"

enum { POOLS = 2, MODELS = 3, POOL_GPUS = 256, DOUBLINGS = 9, NODE_GPUS = 8 };

#define LOAD 1.3 /* in GPU-seconds of A100s: H100s do theirs sooner */

/* Data parallelism of a model on the first `gpus` GPUs of a cluster, with one global batch for all numbers of them. */
static OrrJsonDoc *scenario(const char *model, const char *cluster, int gpus, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, text, true);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_text(&w, "model", model);
    orr_jw_begin(&w, "cluster", '{');
    orr_jw_text(&w, "preset", cluster);
    orr_jw_int(&w, "gpus_per_node", MIN(gpus, NODE_GPUS));
    orr_jw_int(&w, "nodes", MAX(1, gpus / NODE_GPUS));
    orr_jw_end(&w, '}');
    orr_jw_begin(&w, "training", '{');
    orr_jw_int(&w, "sequence_length", 1024);
    orr_jw_int(&w, "global_batch", 1 << (DOUBLINGS - 1));
    orr_jw_int(&w, "micro_batch", 1);
    orr_jw_end(&w, '}');
    orr_jw_begin(&w, "parallel", '{');
    orr_jw_int(&w, "data", gpus);
    orr_jw_int(&w, "zero", 1);
    orr_jw_end(&w, '}');
    orr_jw_end(&w, '}');
    return orr_json_parse(text->str, text->len, "jobs", error);
}

/* Tokens a second of a model on 2^i GPUs of a cluster; beyond the most that are simulated, the pace stays. */
static bool fill_paces(const char *model, const char *cluster, double *paces, GError **error)
{
    static const ReportOptions plain;
    for (int i = 0; i < JOBS_DOUBLINGS; i++) {
        OrrJsonDoc *doc = scenario(model, cluster, 1 << MIN(i, DOUBLINGS - 1), error);
        g_autofree Spec *spec = g_new0(Spec, 1);
        OrrArena *arena = orr_arena_new();
        Report report;
        const bool ok = doc != NULL &&
                        spec_load_json(orr_json_root(doc), "jobs", NULL, false, spec, NULL, error) &&
                        report_run(spec, NULL, &plain, arena, &report, error);
        paces[i] = ok ? report.tokens_per_s : 0;
        orr_arena_free(arena);
        orr_json_free(doc);
        if (!ok)
            return false;
    }
    return true;
}

bool api_jobs_draw(uint64_t seed, int count, JobsTrace *ret_trace, GError **error)
{
    static const char *const models[MODELS] = {"gpt2-medium", "gpt2-large", "gpt2-xl"};
    static const char *const clusters[POOLS] = {"dgx-a100-80gb", "dgx-h100"};
    JobsPool pools[POOLS] = {{(char *)"A100", POOL_GPUS, JOBS_NODE_GPUS},
                             {(char *)"H100", POOL_GPUS, JOBS_NODE_GPUS}};
    JobsPaces paces[MODELS] = {{0}};
    for (int m = 0; m < MODELS; m++) {
        paces[m].name = models[m];
        for (int p = 0; p < POOLS; p++)
            if (!fill_paces(models[m], clusters[p], paces[m].paces[p], error))
                return false;
    }
    jobs_trace_draw(pools, POOLS, paces, MODELS, count, LOAD, seed, ret_trace);
    return true;
}
