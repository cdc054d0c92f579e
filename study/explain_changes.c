/* study/explain_changes.c - what changes of single fields would bring, and of fields that belong together: a schedule with its
 * stages a rank, tensor with pipeline ranks, larger micro-batches with recomputation. Tested: cli/test_cli_explain.c
 */
#include "study/explain_changes.h"

#include <string.h>

#include "report/parts.h"
#include "spec/notes.h"

bool explain_simulate(const Spec *spec, const Report *like, Report *ret_report)
{
    const ReportOptions options = {.like = like};
    OrrArena *arena = orr_arena_new();
    const bool ok =
        spec_check(spec, "explain", NULL) && report_run(spec, NULL, &options, arena, ret_report, NULL);
    orr_arena_free(arena); /* figures stay, lists do not */
    return ok;
}

typedef struct Trial {
    const Report *report;
    Explanation *explanation;
    Spec *spec;       /* the scenario, changed by the caller before try() */
    GPtrArray *lacks; /* char*: what the scenario itself asks of its software in vain */
} Trial;

/* Whether the software has all of trial->spec, but for what it already lacked. */
static bool is_offered(const Trial *trial)
{
    g_autoptr(GPtrArray) notes = g_ptr_array_new_with_free_func(g_free);
    spec_notes(trial->spec, notes);
    for (guint i = 0; i < notes->len; i++)
        if (!g_ptr_array_find_with_equal_func(trial->lacks, notes->pdata[i], g_str_equal, NULL))
            return false;
    return true;
}

static void clear_change(void *data)
{
    ExplainChange *change = data;
    for (gsize i = 0; i < G_N_ELEMENTS(change->set); i++)
        g_free(change->set[i]);
}

static int compare_changes(gconstpointer a, gconstpointer b)
{
    const ExplainChange *x = a, *y = b;
    if (x->fits != y->fits)
        return x->fits ? -1 : 1;
    if (x->spare != y->spare)
        return x->spare ? 1 : -1;
    if (x->step_ps != y->step_ps)
        return x->step_ps < y->step_ps ? -1 : 1;
    return strcmp(x->set[0], y->set[0]);
}

static void begin(Trial *trial)
{
    *trial->spec = *trial->report->spec;
}

/* The part of the step that most of the gain comes out of; NULL: none has three fifths of it. */
static const char *cause_of(const Report *before, const Report *after)
{
    ReportTime was[REPORT_TIME_COUNT], is[REPORT_TIME_COUNT];
    const double gain_ps = (double)(before->step_ps - after->step_ps);
    report_times(before->part_ps, before->bubble_ps, before->late_ps, was);
    report_times(after->part_ps, after->bubble_ps, after->late_ps, is);
    for (int i = 0; gain_ps > 0 && i < REPORT_TIME_COUNT; i++)
        if ((double)(was[i].ps - is[i].ps) >= 0.6 * gain_ps)
            return was[i].label;
    return NULL;
}

/* "execution.overlap=["grad_reduce"]"; g_free. */
static char *overlap_set(unsigned overlap)
{
    g_autoptr(GString) list = g_string_new(NULL);
    for (int i = 0; i < spec_words_overlap.count; i++)
        if ((overlap & 1u << i) != 0)
            g_string_append_printf(list, "%s\"%s\"", list->len > 0 ? "," : "",
                                   orr_word(&spec_words_overlap, i));
    return g_strdup_printf("execution.overlap=[%s]", list->str);
}

/* Degrees that differ from the scenario's beside those that `change` names already. */
static void name_what_follows(const Trial *trial, ExplainChange *change)
{
    const SpecParallel *parallel = &trial->spec->parallel, *was = &trial->report->spec->parallel;
    const struct {
        const char *key;
        int is, was;
    } degrees[] = {{"parallel.data", parallel->data, was->data},
                   {"parallel.pipeline", parallel->pipeline, was->pipeline},
                   {"parallel.virtual_stages", parallel->virtual_stages, was->virtual_stages}};
    int count = 1;
    for (gsize i = 0; i < G_N_ELEMENTS(degrees) && count < (int)G_N_ELEMENTS(change->set); i++)
        if (degrees[i].is != degrees[i].was && !g_str_has_prefix(change->set[0], degrees[i].key))
            change->set[count++] = g_strdup_printf("%s=%d", degrees[i].key, degrees[i].is);
    const SpecRecompute *recompute = &trial->spec->training.recompute;
    if (recompute->mode != trial->report->spec->training.recompute.mode &&
        count < (int)G_N_ELEMENTS(change->set) && !g_str_has_prefix(change->set[0], "training.recompute"))
        change->set[count++] =
            g_strdup_printf("training.recompute=%s", spec_word(&spec_words_recompute, (int)recompute->mode));
    const unsigned overlap = trial->spec->execution.overlap;
    if (overlap != trial->report->spec->execution.overlap && count < (int)G_N_ELEMENTS(change->set) &&
        !g_str_has_prefix(change->set[0], "execution.overlap"))
        change->set[count++] = overlap_set(overlap);
}

/* Simulates trial->spec, which differs in the field of `set` (owned by the callee) and those that belong to it. Data
 * parallelism follows the other degrees; a pipeline of one rank has no virtual stages; what the software overlaps by itself
 * follows the ZeRO stage. */
static void try_set(Trial *trial, char *set)
{
    SpecParallel *parallel = &trial->spec->parallel;
    const SpecParallel *was = &trial->report->spec->parallel;
    ExplainChange change = {.set = {set}};
    const int64_t split = (int64_t)parallel->tensor * parallel->context * parallel->pipeline;
    const int gpus = spec_gpus(trial->spec);
    Report report;
    if (split > 0 && gpus % split == 0 && parallel->data == was->data)
        parallel->data = (int)(gpus / split);
    if (parallel->pipeline == 1)
        parallel->virtual_stages = 1;
    const Spec *asked = trial->report->spec;
    if (parallel->zero != was->zero && asked->execution.overlap == spec_default_overlap(asked))
        trial->spec->execution.overlap = spec_default_overlap(trial->spec);
    name_what_follows(trial, &change);
    const bool offered = is_offered(trial);
    if (!offered || !explain_simulate(trial->spec, trial->report, &report)) {
        trial->explanation->refused += offered ? 1 : 0;
        clear_change(&change);
        return;
    }
    trial->explanation->tried++;
    change.step_ps = report.step_ps;
    change.gain_frac = 1 - (double)report.step_ps / (double)trial->report->step_ps;
    change.fits = report.fits;
    change.edge = report.fits && (report.reserved_bytes > report.capacity_bytes ||
                                  report.needed_bytes + trial->report->reserve_bytes > report.capacity_bytes);
    change.cause = cause_of(trial->report, &report);
    change.spare = trial->report->memory_verdict == REPORT_MEMORY_FITS &&
                   spec_offloads(&trial->spec->offload) && !spec_offloads(&trial->report->spec->offload);
    g_array_append_val(trial->explanation->changes, change);
}

/* Twice and half of a whole number. */
static void try_degree(Trial *trial, const char *key, size_t offset)
{
    int value;
    memcpy(&value, (const char *)trial->report->spec + offset, sizeof value);
    const int tries[] = {value * 2, value % 2 == 0 ? value / 2 : 0};
    for (gsize i = 0; i < G_N_ELEMENTS(tries); i++) {
        if (tries[i] < 1 || value < 1)
            continue;
        begin(trial);
        memcpy((char *)trial->spec + offset, &tries[i], sizeof tries[i]);
        try_set(trial, g_strdup_printf("%s=%d", key, tries[i]));
    }
}

static void try_degrees(Trial *trial)
{
    const Spec *spec = trial->report->spec;
    try_degree(trial, "training.micro_batch", offsetof(Spec, training.micro_batch));
    try_degree(trial, "parallel.tensor", offsetof(Spec, parallel.tensor));
    try_degree(trial, "parallel.context", offsetof(Spec, parallel.context));
    try_degree(trial, "parallel.pipeline", offsetof(Spec, parallel.pipeline));
    if (spec->parallel.pipeline > 1)
        try_degree(trial, "parallel.virtual_stages", offsetof(Spec, parallel.virtual_stages));
    if (spec->model.moe.experts > 0) {
        try_degree(trial, "parallel.expert", offsetof(Spec, parallel.expert));
        try_degree(trial, "parallel.expert_tensor", offsetof(Spec, parallel.expert_tensor));
    }
}

static void try_recompute(Trial *trial)
{
    static const SpecRecomputeMode modes[] = {SPEC_RECOMPUTE_NONE, SPEC_RECOMPUTE_SELECTIVE,
                                              SPEC_RECOMPUTE_SELECTIVE_OP, SPEC_RECOMPUTE_FULL};
    const SpecRecompute *was = &trial->report->spec->training.recompute;
    for (gsize i = 0; i < G_N_ELEMENTS(modes); i++) {
        if (modes[i] == was->mode && was->layers == 0)
            continue;
        begin(trial);
        trial->spec->training.recompute = (SpecRecompute){.mode = modes[i], .every_n_layers = 1};
        try_set(trial,
                g_strdup_printf("training.recompute=%s", spec_word(&spec_words_recompute, (int)modes[i])));
    }
}

static void try_sharding(Trial *trial)
{
    const SpecParallel *was = &trial->report->spec->parallel;
    for (int zero = 0; zero <= 3; zero++) {
        if (zero == was->zero)
            continue;
        begin(trial);
        trial->spec->parallel.zero = zero;
        try_set(trial, g_strdup_printf("parallel.zero=%d", zero));
    }
    if (was->tensor > 1) {
        begin(trial);
        trial->spec->parallel.sequence_parallel = was->sequence_parallel == 1 ? 0 : 1;
        try_set(trial, g_strdup_printf("parallel.sequence_parallel=%s",
                                       was->sequence_parallel == 1 ? "false" : "true"));
    }
}

/* Of the changes from `first` on the best one stays. */
static void keep_best(GArray *changes, guint first)
{
    guint best = first;
    for (guint i = first + 1; i < changes->len; i++)
        if (compare_changes(&g_array_index(changes, ExplainChange, i),
                            &g_array_index(changes, ExplainChange, best)) < 0)
            best = i;
    if (best + 1 < changes->len)
        g_array_remove_range(changes, best + 1, changes->len - best - 1);
    if (best > first)
        g_array_remove_range(changes, first, best - first);
}

/* Each with the stages a rank that it needs: those that are there, one, or the best of many. */
static void try_schedules(Trial *trial)
{
    static const int stages[] = {1, 2, 3, 4, 6, 8, 12};
    const Spec *spec = trial->report->spec;
    if (spec->parallel.pipeline < 2 || spec->parallel.schedule_file[0] != '\0')
        return;
    for (int row = 0; row < spec_words_schedule.count; row++) {
        const SimSchedule *schedule = sim_schedule_at(row);
        const guint first = trial->explanation->changes->len;
        if (row == (int)spec->parallel.schedule || !sim_schedule_is_candidate(schedule))
            continue;
        for (gsize i = 0; i < G_N_ELEMENTS(stages); i++) {
            if (schedule->fixed_chunks > 0 ? stages[i] != schedule->fixed_chunks
                                           : stages[i] > spec->model.layers / spec->parallel.pipeline)
                continue;
            begin(trial);
            trial->spec->parallel.schedule = (SpecSchedule)row;
            trial->spec->parallel.virtual_stages = stages[i];
            try_set(trial, g_strdup_printf("parallel.schedule=%s", spec_word(&spec_words_schedule, row)));
        }
        keep_best(trial->explanation->changes, first);
    }
}

/* Tensor ranks for pipeline ranks and back, at one number of replicas; larger micro-batches, which recomputation makes room for. */
static void try_pairs(Trial *trial)
{
    const Spec *spec = trial->report->spec;
    const int tensor = spec->parallel.tensor, pipeline = spec->parallel.pipeline;
    for (int way = 0; way < 2; way++) {
        const int split = way == 0 ? tensor : pipeline;
        if (split % 2 != 0)
            continue;
        begin(trial);
        trial->spec->parallel.tensor = way == 0 ? tensor / 2 : tensor * 2;
        trial->spec->parallel.pipeline = way == 0 ? pipeline * 2 : pipeline / 2;
        try_set(trial, g_strdup_printf("parallel.tensor=%d", trial->spec->parallel.tensor));
    }
    for (int mode = SPEC_RECOMPUTE_SELECTIVE; mode <= SPEC_RECOMPUTE_FULL; mode++) {
        if (mode == (int)spec->training.recompute.mode || spec->training.micro_batch < 1 ||
            mode == SPEC_RECOMPUTE_SELECTIVE_OP)
            continue;
        begin(trial);
        trial->spec->training.micro_batch *= 2;
        trial->spec->training.recompute =
            (SpecRecompute){.mode = (SpecRecomputeMode)mode, .every_n_layers = 1};
        try_set(trial, g_strdup_printf("training.micro_batch=%d", trial->spec->training.micro_batch));
    }
}

static void try_execution(Trial *trial)
{
    const Spec *spec = trial->report->spec;
    for (int kernel = 0; kernel < SPEC_ATTENTION_COUNT; kernel++) {
        const bool fitted = kernel == SPEC_ATTENTION_UNFUSED ||
                            spec->cluster.accelerator.model.attention[kernel].peak_frac > 0;
        if (kernel == (int)spec->execution.attention || !fitted)
            continue;
        begin(trial);
        trial->spec->execution.attention = (SpecAttention)kernel;
        try_set(trial, g_strdup_printf("execution.attention=%s", spec_word(&spec_words_attention, kernel)));
    }
    begin(trial);
    trial->spec->execution.compiled = !spec->execution.compiled;
    if (spec->execution.compiled || spec->execution.framework.kernels.compiler)
        try_set(trial, g_strdup_printf("execution.compiled=%s", spec->execution.compiled ? "false" : "true"));
    for (int bit = 0; bit < spec_words_overlap.count; bit++) {
        const unsigned overlap = spec->execution.overlap ^ 1u << bit;
        begin(trial);
        trial->spec->execution.overlap = overlap;
        try_set(trial, overlap_set(overlap));
    }
}

static void try_experts(Trial *trial)
{
    const SpecParallel *was = &trial->report->spec->parallel;
    if (was->expert < 2)
        return;
    for (int dispatcher = 0; dispatcher < spec_words_dispatcher.count; dispatcher++) {
        if (dispatcher == (int)was->moe_dispatcher)
            continue;
        begin(trial);
        trial->spec->parallel.moe_dispatcher = (SpecMoeDispatcher)dispatcher;
        try_set(trial,
                g_strdup_printf("parallel.moe_dispatcher=%s", spec_word(&spec_words_dispatcher, dispatcher)));
    }
}

/* With nothing off the GPU, schemes that the software has and the node has tiers for. */
static void try_offloads(Trial *trial)
{
    const Spec *was = trial->report->spec;
    for (int scheme = 0; scheme < SPEC_OFFLOAD_SCHEME_COUNT; scheme++) {
        if (spec_offloads_states(&was->offload) || was->offload.activation_layers > 0 || scheme == 0)
            continue;
        begin(trial);
        trial->spec->offload =
            spec_offload_with(&was->offload, (SpecOffloadScheme)scheme, -1, was->model.layers);
        if (spec_offload_available(trial->spec))
            try_set(trial,
                    g_strdup_printf("offload={\"scheme\":\"%s\"}", spec_word(&spec_words_offload, scheme)));
    }
}

void explain_changes(Explanation *explanation)
{
    g_autofree Spec *spec = g_new(Spec, 1);
    g_autoptr(GPtrArray) lacks = g_ptr_array_new_with_free_func(g_free);
    Trial trial = {explanation->report, explanation, spec, lacks};
    spec_notes(explanation->report->spec, lacks);
    g_array_set_clear_func(explanation->changes, clear_change);
    try_degrees(&trial);
    try_pairs(&trial);
    try_recompute(&trial);
    try_sharding(&trial);
    try_schedules(&trial);
    try_execution(&trial);
    try_experts(&trial);
    try_offloads(&trial);
    g_array_sort(explanation->changes, compare_changes);
}
