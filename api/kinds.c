/* api/kinds.c - see kinds.h. */
#include "api/kinds.h"

#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "spec/load.h"

static bool read_price(const char *flag, const char *text, double *ret_usd, GError **error)
{
    if (!orr_parse_quantity(text, ORR_UNIT_USD, ret_usd, error)) {
        g_prefix_error(error, "--%s: ", flag);
        return false;
    }
    return *ret_usd > 0 || orr_fail(error, ORR_ERROR_INPUT, "--%s: %s is not above 0", flag, text);
}

/* Among GPUs that are all alike layers and micro-batches are dealt out evenly. */
static void deal_evenly(SpecParallel *parallel)
{
    if (parallel->stage_layers_count == SPEC_AUTO)
        parallel->stage_layers_count = 0;
    if (parallel->replica_microbatches_count == SPEC_AUTO)
        parallel->replica_microbatches_count = 0;
}

bool api_kind_read(const char *key, const char *word, const Spec *base, Spec *ret_spec, GError **error)
{
    const char *at = strrchr(word, '@');
    g_autofree char *name = at != NULL ? g_strndup(word, (gsize)(at - word)) : g_strdup(word);
    double price = 0;
    if (at != NULL && !read_price(key, at + 1, &price, error))
        return false;
    g_autoptr(GString) quoted = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, quoted, true);
    orr_jw_text(&w, NULL, name);
    OrrJsonDoc *doc = orr_json_parse("{\"nodes\":1}", strlen("{\"nodes\":1}"), word, NULL);
    SpecCluster cluster;
    g_autofree char *where = g_strdup_printf("--%s", key);
    const bool ok =
        orr_json_set(doc, g_str_equal(key, "cluster") ? "preset" : "accelerator", quoted->str, error) &&
        spec_load_cluster_json(orr_json_root(doc), where, &cluster, error);
    orr_json_free(doc);
    if (!ok)
        return false;
    if (price > 0)
        cluster.usd_per_gpu_hour = price;
    if (cluster.pue <= 1) /* the facility's: its buildings do not change with the GPU */
        cluster.pue = base->cluster.pue;
    cluster.nodes = MAX(1, spec_gpus(base) / cluster.gpus_per_node);
    ret_spec->cluster = cluster;
    if (cluster.group_count == 0)
        deal_evenly(&ret_spec->parallel);
    return true;
}

/* The cluster as JSON text, for a scenario's "cluster" (without nodes); g_free. */
static char *kind_json(const char *key, const char *word, const SpecCluster *cluster)
{
    const char *at = strrchr(word, '@');
    g_autofree char *name = at != NULL ? g_strndup(word, (gsize)(at - word)) : g_strdup(word);
    GString *text = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, text, true);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_text(&w, g_str_equal(key, "cluster") ? "preset" : "accelerator", name);
    if (at != NULL)
        orr_jw_number(&w, "usd_per_gpu_hour", cluster->usd_per_gpu_hour);
    if (cluster->pue > 0)
        orr_jw_number(&w, "pue", cluster->pue);
    orr_jw_end(&w, '}');
    return g_string_free(text, FALSE);
}

bool api_kind_plan(const char *key, const char *word, const Spec *base, const PlanOptions *options,
                   Plan *ret_plan, GError **error)
{
    g_autofree Spec *spec = g_memdup2(base, sizeof *base);
    g_autoptr(GError) reason = NULL;
    PlanOptions own = *options;
    if (!api_kind_read(key, word, base, spec, error))
        return false;
    g_autofree char *cluster = kind_json(key, word, &spec->cluster);
    own.cluster_json = cluster;
    if (!plan_run(spec, &own, ret_plan, &reason))
        plan_drop(spec, reason, ret_plan);
    return true;
}
