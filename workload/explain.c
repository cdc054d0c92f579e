/* workload/explain.c - see explain.h. Tested: unit/workload/test_explain.c */
#include "workload/explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/page.h"
#include "spec/resolve.h"

enum { LABEL_COLUMN = 18, MOST_SHOWN = 8 };

typedef struct Explaining {
    const Workload *workload;
    const SpecSource *source;
    OrrArena *arena;
    WorkloadExplanation *to;
} Explaining;

static int64_t step_without(const Workload *workload, int without)
{
    LoopPhase phases[LOOP_MOST_PHASES];
    LoopResult result;
    const int count = workload_loop_phases(workload, phases);
    phases[without].ps = 0;
    loop_run(phases, count, workload->part_count, workload->staleness_steps, &result);
    return result.step_ps;
}

/* The loop with `sets`; false where it is refused. */
static bool asked(const Explaining *explaining, const char *const *sets, int64_t *ret_ps, bool *ret_fits)
{
    const char *resolved = explaining->source->resolved;
    OrrJsonDoc *doc = orr_json_parse(resolved, strlen(resolved), "explain", NULL);
    SpecSource own = {0};
    g_autofree Spec *spec = g_new0(Spec, 1);
    const WorkloadAsk ask = {.check = false};
    OrrArena *arena = orr_arena_new();
    Workload *workload = ORR_ARENA_NEW(arena, Workload, 1);
    bool ok = doc != NULL && spec_load_json(orr_json_root(doc), "explain", sets, false, spec, &own, NULL);
    if (ok) {
        ok = workload_ask(spec, &own, &ask, arena, workload, NULL);
        *ret_ps = workload->step_ps;
        *ret_fits = workload->fits;
        spec_source_clear(&own);
    }
    orr_arena_free(arena);
    orr_json_free(doc);
    return ok;
}

static void try_change(const Explaining *explaining, const char *first, const char *second)
{
    WorkloadExplanation *to = explaining->to;
    const char *const sets[] = {first, second, NULL};
    WorkloadChange change = {.fits = false};
    if (to->count == WORKLOAD_MOST_CHANGES || !asked(explaining, sets, &change.step_ps, &change.fits))
        return;
    g_autofree char *both = second != NULL ? g_strjoin(" ", first, second, NULL) : g_strdup(first);
    change.set = orr_arena_strdup(explaining->arena, both);
    to->change[to->count++] = change;
}

static void try_number(const Explaining *explaining, const char *role, const char *key, int value)
{
    g_autofree char *set = role != NULL ? g_strdup_printf("workload.roles.%s.%s=%d", role, key, value)
                                        : g_strdup_printf("%s=%d", key, value);
    if (value >= 1)
        try_change(explaining, set, NULL);
}

static void try_roles(const Explaining *explaining)
{
    const SpecWorkload *workload = &explaining->workload->spec->workload;
    for (int i = 0; i < workload->role_count; i++) {
        const SpecRole *role = &workload->role[i];
        g_autofree char *kept = g_strdup_printf("workload.roles.%s.host_memory=kept", role->name),
                        *stays = g_strdup_printf("workload.roles.%s.offloaded=false", role->name);
        if (role->offloaded && role->host_memory == SPEC_HOST_FRESH)
            try_change(explaining, kept, NULL);
        if (role->offloaded)
            try_change(explaining, stays, NULL);
    }
}

/* Tensor ranks of who generates, and a node between the parts. */
static void try_split(const Explaining *explaining)
{
    const Workload *workload = explaining->workload;
    const SpecWorkload *asks = &workload->spec->workload;
    const int row = workload_generator(asks);
    if (row < 0 || workload->role[row].spec == NULL)
        return;
    const char *name = asks->role[row].name;
    const int tensor = workload->role[row].spec->parallel.tensor, own = asks->role[row].nodes,
              rest = workload->spec->cluster.nodes;
    try_number(explaining, name, "parallel.tensor", 2 * tensor);
    try_number(explaining, name, "parallel.tensor", tensor / 2);
    for (int way = -1; way <= 1 && own > 0; way += 2) {
        g_autofree char *there = g_strdup_printf("workload.roles.%s.nodes=%d", name, own + way),
                        *here = g_strdup_printf("cluster.nodes=%d", rest - way);
        if (own + way >= 1 && rest - way >= 1)
            try_change(explaining, there, here);
    }
    g_autofree char *graphs =
        g_strdup_printf("workload.roles.%s.execution.framework.engine.captures_graphs=true", name);
    if (!workload->role[row].spec->execution.framework.engine.captures_graphs)
        try_change(explaining, graphs, NULL);
}

static void try_loop(const Explaining *explaining)
{
    const Spec *spec = explaining->workload->spec;
    const SpecWorkload *asks = &spec->workload;
    if (explaining->workload->part_count > 1) {
        try_number(explaining, NULL, "workload.staleness_steps", (int)asks->staleness_steps + 1);
        if (!asks->in_flight && asks->staleness_steps > 0)
            try_change(explaining, "workload.in_flight=true", NULL);
        if (!asks->in_flight && !(asks->staleness_steps > 0))
            try_change(explaining, "workload.staleness_steps=1", "workload.in_flight=true");
    }
    if (asks->padded)
        try_change(explaining, "workload.padded=false", NULL);
    if (!asks->balanced)
        try_change(explaining, "workload.balanced=true", NULL);
    if (asks->micro_batch_tokens > 0)
        try_number(explaining, NULL, "workload.micro_batch_tokens", (int)(2 * asks->micro_batch_tokens));
    else
        try_number(explaining, NULL, "training.micro_batch", 2 * MAX(1, spec->training.micro_batch));
    try_change(explaining,
               spec->training.recompute.mode == SPEC_RECOMPUTE_NONE ? "training.recompute=full"
                                                                    : "training.recompute=none",
               NULL);
    try_change(explaining,
               asks->sync.way == SPEC_SYNC_BROADCAST ? "workload.sync.way=peer-to-peer"
                                                     : "workload.sync.way=broadcast",
               NULL);
}

static int by_step(const void *a, const void *b)
{
    const WorkloadChange *x = a, *y = b;
    return x->step_ps != y->step_ps ? (x->step_ps < y->step_ps ? -1 : 1) : strcmp(x->set, y->set);
}

void workload_explain(const Workload *workload, const SpecSource *source, OrrArena *arena,
                      WorkloadExplanation *ret_explanation)
{
    *ret_explanation = (WorkloadExplanation){.workload = workload};
    const Explaining explaining = {workload, source, arena, ret_explanation};
    for (int k = 0; k < workload->phase_count; k++)
        ret_explanation->without_ps[k] = step_without(workload, k);
    if (workload->spec->workload.generation.answer_tokens.log_sd > 0) {
        char mean[G_ASCII_DTOSTR_BUF_SIZE];
        g_ascii_dtostr(mean, sizeof mean, workload->answer_tokens);
        g_autofree char *even = g_strdup_printf("workload.generation.answer_tokens.mean=%s", mean);
        const char *const sets[] = {even, "workload.generation.answer_tokens.log_sd=0", NULL};
        bool fits = false;
        (void)asked(&explaining, sets, &ret_explanation->even_ps, &fits);
    }
    try_split(&explaining);
    try_roles(&explaining);
    try_loop(&explaining);
    qsort(ret_explanation->change, (size_t)ret_explanation->count, sizeof(WorkloadChange), by_step);
}

/* --- printed --- */

static double gain(const WorkloadExplanation *explanation, int64_t step_ps)
{
    return 1 - (double)step_ps / (double)explanation->workload->step_ps;
}

void workload_explain_json(const WorkloadExplanation *explanation, const SpecSource *source, GString *out)
{
    const Workload *workload = explanation->workload;
    OrrJsonWriter w;
    workload_begin_json(&w, workload->spec, source, out);
    orr_jw_ps(&w, "step_s", workload->step_ps);
    orr_jw_text(&w, "bound_by", workload_bound_word(workload));
    orr_jw_begin(&w, "without", '[');
    for (int k = 0; k < workload->phase_count; k++) {
        orr_jw_begin(&w, NULL, '{');
        orr_jw_text(&w, "phase", workload->phase[k].phase->name);
        orr_jw_ps(&w, "step_s", explanation->without_ps[k]);
        orr_jw_number(&w, "gain_frac", gain(explanation, explanation->without_ps[k]));
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, ']');
    orr_jw_number(&w, "even_answers_step_s",
                  explanation->even_ps > 0 ? (double)explanation->even_ps * 1e-12 : NAN);
    orr_jw_begin(&w, "changes", '[');
    for (int i = 0; i < explanation->count; i++) {
        const WorkloadChange *change = &explanation->change[i];
        orr_jw_begin(&w, NULL, '{');
        orr_jw_text(&w, "set", change->set);
        orr_jw_ps(&w, "step_s", change->step_ps);
        orr_jw_number(&w, "gain_frac", gain(explanation, change->step_ps));
        orr_jw_bool(&w, "fits", change->fits);
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, ']');
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}

static void row(OrrTable *table, const WorkloadExplanation *explanation, const char *what, int64_t step_ps,
                const char *more)
{
    char step[ORR_TEXT_SIZE], part[16];
    g_snprintf(part, sizeof part, "%+.1f %%", -100 * gain(explanation, step_ps));
    const char *const cells[] = {what, orr_text_seconds(step, (double)step_ps * 1e-12), part, more};
    orr_table_row(table, cells);
}

OrrTable *workload_without_table(const WorkloadExplanation *explanation)
{
    static const char *const headers[] = {"without", "step", "change"};
    const Workload *workload = explanation->workload;
    OrrTable *table = orr_table_new(headers, (int)G_N_ELEMENTS(headers));
    for (int k = 0; k < workload->phase_count; k++)
        if (workload->phase[k].ps > 0)
            row(table, explanation, workload->phase[k].phase->name, explanation->without_ps[k], NULL);
    if (explanation->even_ps > 0)
        row(table, explanation, "(all answers as long as the mean)", explanation->even_ps, NULL);
    return table;
}

OrrTable *workload_change_table(const WorkloadExplanation *explanation)
{
    static const char *const headers[] = {"--set", "step", "change", "memory"};
    OrrTable *table = NULL;
    for (int i = 0; i < MIN(explanation->count, MOST_SHOWN); i++) {
        const WorkloadChange *change = &explanation->change[i];
        if (gain(explanation, change->step_ps) < 0.001)
            break;
        if (table == NULL)
            table = orr_table_new(headers, (int)G_N_ELEMENTS(headers));
        row(table, explanation, change->set, change->step_ps, change->fits ? "fits" : "does not fit");
    }
    return table;
}

static void text_table(OrrTable *table, GString *out)
{
    report_page_table(table, out, 2);
    orr_table_free(table);
}

void workload_explain_text(const WorkloadExplanation *explanation, GString *out)
{
    const Workload *workload = explanation->workload;
    const WorkloadPhase *phase = &workload->phase[workload->bound_phase];
    char step[ORR_TEXT_SIZE];
    g_string_append_printf(
        out, "%s\n\nA step takes %s. Most of it waits for %s%s%s.\n\n",
        workload->spec->name[0] != '\0' ? workload->spec->name : workload->spec->workload.name,
        orr_text_seconds(step, (double)workload->step_ps * 1e-12), phase->phase->name,
        phase->why != NULL ? ", where what binds is: " : "", phase->why != NULL ? phase->why : "");
    text_table(workload_without_table(explanation), out);
    g_string_append(out, "\nSingle changes, each simulated on its own:\n\n");
    OrrTable *changes = workload_change_table(explanation);
    if (changes != NULL)
        text_table(changes, out);
    else
        g_string_append_printf(out, "  none of %d single changes makes it shorter\n", explanation->count);
}
