/* spec/preset_check.c - keys and values of one preset's file by itself. */
#include <string.h>

#include "spec/framework_keys.h"
#include "spec/read.h"
#include "spec/resolve_internal.h"

bool spec_preset_check(const OrrJson *root, const char *kind, const char *path, GError **error)
{
    static const struct {
        const char *kind;
        const SpecTable *table;
        size_t size;
    } kinds[] = {{"models", &spec_table_model, sizeof(SpecModel)},
                 {"accelerators", &spec_table_accelerator, sizeof(SpecAccelerator)},
                 {"clusters", &spec_table_cluster, sizeof(SpecCluster)},
                 {"frameworks", &spec_table_framework, sizeof(SpecFramework)},
                 {"faults", &spec_table_faults, sizeof(SpecFaults)},
                 {"storage", &spec_table_storage, sizeof(SpecStorage)},
                 {"jitter", &spec_table_jitter, sizeof(SpecJitter)},
                 {"workloads", &spec_table_workload, sizeof(SpecWorkload)}};
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (strcmp(kinds[i].kind, kind) != 0)
            continue;
        g_autofree void *scratch = g_malloc0(kinds[i].size);
        SpecReadContext context;
        spec_read_context_init(&context, path, &spec_table_scenario, false, NULL);
        context.partial = true;
        OrrJsonDoc *doc = kinds[i].table == &spec_table_framework ? orr_json_copy(root, path) : NULL;
        const bool ok = (doc == NULL || spec_framework_translate(doc, path, error)) &&
                        spec_read_table(&context, kinds[i].table, doc != NULL ? orr_json_root(doc) : root,
                                        scratch, error);
        orr_json_free(doc);
        spec_read_context_clear(&context);
        return ok;
    }
    g_assert_not_reached();
}
