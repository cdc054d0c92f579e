/* api/kinds_base.c - a scenario as a program or a term has it, and the machines on which it stands. See kinds_internal.h. */
#include "api/kinds_internal.h"

/* Among GPUs that are all alike layers and micro-batches are dealt out evenly. */
static void deal_evenly(SpecParallel *parallel)
{
    if (parallel->stage_layers_count == SPEC_AUTO)
        parallel->stage_layers_count = 0;
    if (parallel->replica_microbatches_count == SPEC_AUTO)
        parallel->replica_microbatches_count = 0;
}

ApiBase *api_base_add(const ApiBase *from, const char *where, const char *const *sets, ApiKinds *kinds)
{
    g_autoptr(GError) reason = NULL;
    ApiBase *base = g_new0(ApiBase, 1);
    base->framework = from->framework;
    base->source = &base->own;
    g_ptr_array_add(kinds->bases, base);
    if (!spec_load_again(from->source, where, sets, &base->spec, &base->own, &reason)) {
        base->spec = from->spec;
        base->source = from->source;
        base->reason = g_strdup(reason->message);
    }
    return base;
}

ApiKind *api_kind_own(const ApiBase *base, ApiKinds *kinds)
{
    const ApiKind kind = {.framework = base->framework,
                          .source = base->source,
                          .spec = g_memdup2(&base->spec, sizeof base->spec),
                          .reason = g_strdup(base->reason)};
    g_array_append_val(kinds->list, kind);
    return &g_array_index(kinds->list, ApiKind, kinds->list->len - 1);
}

/* What a scenario leaves to the machine (attention kernels, recipes of models on a GPU) is derived anew. Where its layout does
 * not go with so many GPUs it cannot be read on them; then the own machine's stay. */
static void take_derived(const ApiBase *base, const OrrJson *cluster, int nodes, const char *where,
                         ApiKinds *kinds, Spec *spec)
{
    OrrJsonDoc *doc = orr_json_copy(cluster, where);
    char number[16];
    g_snprintf(number, sizeof number, "%d", nodes);
    orr_json_set(doc, "nodes", number, NULL);
    g_autofree char *json = orr_json_dump(orr_json_root(doc));
    g_autofree char *set = g_strdup_printf("cluster=%s", json);
    const char *const sets[] = {set, NULL};
    const ApiBase *again = api_base_add(base, where, sets, kinds);
    if (again->reason == NULL)
        *spec = again->spec;
    orr_json_free(doc);
}

bool api_kind_add(const ApiBase *base, const OrrJson *cluster, const char *where, ApiKinds *kinds,
                  GError **error)
{
    OrrJsonDoc *doc = orr_json_copy(cluster, where);
    SpecCluster own;
    orr_json_set(doc, "nodes", "1", NULL);
    const bool ok = spec_load_cluster_json(orr_json_root(doc), where, &own, error);
    orr_json_remove(doc, "nodes");
    if (ok && own.pue <= 1) { /* the facility's: its buildings do not change with the GPU */
        char pue[G_ASCII_DTOSTR_BUF_SIZE];
        own.pue = base->spec.cluster.pue;
        orr_json_set(doc, "pue", g_ascii_dtostr(pue, sizeof pue, own.pue), NULL);
    }
    if (ok) {
        ApiKind *kind = api_kind_own(base, kinds);
        own.nodes = MAX(1, spec_gpus(&base->spec) / own.gpus_per_node);
        take_derived(base, orr_json_root(doc), own.nodes, where, kinds, kind->spec);
        kind->spec->cluster = own;
        if (own.group_count == 0)
            deal_evenly(&kind->spec->parallel);
        kind->cluster_json = orr_json_dump(orr_json_root(doc));
    }
    orr_json_free(doc);
    return ok;
}
