/* Loops asked from JSON, on a small model and two nodes. */
#ifndef ORR_TESTS_LOOP_FIXTURE_H
#define ORR_TESTS_LOOP_FIXTURE_H

#include <string.h>

#include "workload/workload.h"

#define MODEL                                                                                                \
    "\"model\":{\"layers\":4,\"hidden\":1024,\"heads\":8,\"ffn_hidden\":4096,\"vocab\":32000,"               \
    "\"max_positions\":8192},"
#define REST                                                                                                 \
    "\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":2},\"training\":{\"micro_batch\":2},"                    \
    "\"parallel\":{\"tensor\":2},"

typedef struct Asked {
    Spec *spec;
    SpecSource source;
    OrrArena *arena;
    Workload workload;
    GError *error;
} Asked;

static Asked *ask(const char *workload, const char *const *sets)
{
    g_autofree char *text = g_strdup_printf("{" MODEL REST "\"workload\":%s}", workload);
    Asked *asked = g_new0(Asked, 1);
    const WorkloadAsk how = {.check = true};
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "loop", &asked->error);
    g_assert_no_error(asked->error);
    asked->spec = g_new0(Spec, 1);
    asked->arena = orr_arena_new();
    if (spec_load_json(orr_json_root(doc), "loop", sets, false, asked->spec, &asked->source, &asked->error))
        workload_ask(asked->spec, &asked->source, &how, asked->arena, &asked->workload, &asked->error);
    orr_json_free(doc);
    return asked;
}

static void asked_free(Asked *asked)
{
    spec_source_clear(&asked->source);
    orr_arena_free(asked->arena);
    g_clear_error(&asked->error);
    g_free(asked->spec);
    g_free(asked);
}

#endif
