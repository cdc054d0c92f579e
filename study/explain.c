/* study/explain.c - see explain.h. Tested: cli/test_cli_explain.c */
#include "study/explain.h"

#include <math.h>
#include <string.h>

#include "report/kernels.h"
#include "spec/notes.h"
#include "study/explain_figures.h"

#define MORE        1.1  /* of a resource */
#define ONE_PERCENT 1.01 /* of a figure */

/* Slow GPUs take the share of the step that they take of `like`. */
static bool simulate(const Spec *spec, const Report *like, Report *ret_report)
{
    const ReportOptions options = {.like = like};
    OrrArena *arena = orr_arena_new();
    const bool ok =
        spec_check(spec, "explain", NULL) && report_run(spec, NULL, &options, arena, ret_report, NULL);
    orr_arena_free(arena); /* figures stay, lists do not */
    return ok;
}

/* --- what binds --- */

static bool has_data(const Spec *spec)
{
    return spec->data.given;
}

static bool goes_below(const Spec *spec)
{
    return spec_offloads(&spec->offload) || spec->parallel.data_scheme == SPEC_DATA_PARAMETER_SERVER;
}

static bool has_servers(const Spec *spec)
{
    return spec->parallel.data_scheme == SPEC_DATA_PARAMETER_SERVER;
}

static const struct {
    const char *key, *words;
    bool (*there)(const Spec *spec); /* NULL: everywhere */
} resources[] = {
    {"compute", "compute (FLOP/s)", NULL},
    {"hbm", "memory bandwidth", NULL},
    {"scale_up", "links within a node", NULL},
    {"scale_out", "the network between nodes", NULL},
    {"host", "the host (launches, gaps, overhead)", NULL},
    {"host_memory", "the host's memory and cores", goes_below},
    {"host_link", "links to the host", goes_below},
    {"disks", "the nodes' disks", goes_below},
    {"servers", "the servers' connections and sums", has_servers},
    {"input", "the input (storage, its way to the nodes, preparation)", has_data},
};

static int compare_binds(gconstpointer a, gconstpointer b)
{
    const double x = ((const ExplainBind *)a)->share, y = ((const ExplainBind *)b)->share;
    return (x < y) - (x > y);
}

static void find_binds(const Report *report, GArray *binds)
{
    g_autofree Spec *spec = g_new(Spec, 1);
    const double step = (double)report->step_ps;
    const ExplainBind waits[] = {
        {"bubble", "the pipeline bubble", (double)report->bubble_ps / step},
        {"stragglers", "slow GPUs and links", (double)report->late_ps[REPORT_LATE_STRAGGLERS] / step},
        {"lengths", "the rank with the longest texts", (double)report->late_ps[REPORT_LATE_LENGTHS] / step}};
    for (gsize i = 0; i < G_N_ELEMENTS(resources); i++) {
        Report faster;
        if (resources[i].there != NULL && !resources[i].there(report->spec))
            continue;
        *spec = *report->spec;
        explain_resource_better(spec, resources[i].key, MORE);
        if (!simulate(spec, report, &faster))
            continue;
        const double gain = 1 - (double)faster.step_ps / step;
        const ExplainBind bind = {resources[i].key, resources[i].words, gain / (1 - 1 / MORE)};
        g_array_append_val(binds, bind);
    }
    g_array_append_vals(binds, waits, report->jitter.told ? 2 : 1);
    g_array_sort(binds, compare_binds);
}

/* --- figures --- */

static int compare_figures(gconstpointer a, gconstpointer b)
{
    const ExplainFigure *x = a, *y = b;
    const double more = fabs(x->elasticity), less = fabs(y->elasticity);
    return more > less || more < less ? (more < less) - (more > less) : strcmp(x->key, y->key);
}

static void find_figures(const Report *report, GArray *figures)
{
    g_autofree Spec *spec = g_new(Spec, 1);
    for (int i = 0; i < explain_figure_count(); i++) {
        Report better;
        *spec = *report->spec;
        if (!explain_figure_better(spec, i, ONE_PERCENT) || !simulate(spec, report, &better))
            continue;
        const double ratio = (double)better.step_ps / (double)report->step_ps;
        const ExplainFigure figure = {explain_figure_key(i), better.step_ps, 1 - ratio,
                                      -log(ratio) / log(ONE_PERCENT)};
        g_array_append_val(figures, figure);
    }
    g_array_sort(figures, compare_figures);
}

/* --- changes --- */

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

static void begin(Trial *trial)
{
    *trial->spec = *trial->report->spec;
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

/* Simulates trial->spec, which differs in the field of `set` (owned by the callee). Data parallelism follows the other
 * degrees; a pipeline of one rank has no virtual stages; what the software overlaps by itself follows the ZeRO stage. */
static void try_set(Trial *trial, char *set)
{
    SpecParallel *parallel = &trial->spec->parallel;
    const SpecParallel *was = &trial->report->spec->parallel;
    ExplainChange change = {.set = {set}};
    const int64_t split = (int64_t)parallel->tensor * parallel->context * parallel->pipeline;
    const int gpus = spec_gpus(trial->spec);
    int count = 1;
    Report report;
    if (split > 0 && gpus % split == 0 && parallel->data == was->data)
        parallel->data = (int)(gpus / split);
    if (parallel->data != was->data)
        change.set[count++] = g_strdup_printf("parallel.data=%d", parallel->data);
    if (parallel->pipeline == 1 && parallel->virtual_stages != 1) {
        parallel->virtual_stages = 1;
        change.set[count++] = g_strdup("parallel.virtual_stages=1");
    }
    const Spec *asked = trial->report->spec;
    if (parallel->zero != was->zero && asked->execution.overlap == spec_default_overlap(asked) &&
        spec_default_overlap(trial->spec) != asked->execution.overlap) {
        trial->spec->execution.overlap = spec_default_overlap(trial->spec);
        change.set[count++] = overlap_set(trial->spec->execution.overlap);
    }
    const bool offered = is_offered(trial);
    if (!offered || !simulate(trial->spec, trial->report, &report)) {
        trial->explanation->refused += offered ? 1 : 0;
        for (int i = 0; i < count; i++)
            g_free(change.set[i]);
        return;
    }
    trial->explanation->tried++;
    change.step_ps = report.step_ps;
    change.gain_frac = 1 - (double)report.step_ps / (double)trial->report->step_ps;
    change.fits = report.fits;
    change.edge = report.fits && (report.reserved_bytes > report.capacity_bytes ||
                                  report.needed_bytes + trial->report->reserve_bytes > report.capacity_bytes);
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

static void try_schedules(Trial *trial)
{
    const Spec *spec = trial->report->spec;
    if (spec->parallel.pipeline < 2 || spec->parallel.schedule_file[0] != '\0')
        return;
    for (int schedule = 0; schedule < spec_words_schedule.count; schedule++) {
        if (schedule == (int)spec->parallel.schedule || !sim_schedule_is_candidate(sim_schedule_at(schedule)))
            continue;
        begin(trial);
        trial->spec->parallel.schedule = (SpecSchedule)schedule;
        try_set(trial, g_strdup_printf("parallel.schedule=%s", spec_word(&spec_words_schedule, schedule)));
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

static int compare_changes(gconstpointer a, gconstpointer b)
{
    const ExplainChange *x = a, *y = b;
    if (x->fits != y->fits)
        return x->fits ? -1 : 1;
    if (x->step_ps != y->step_ps)
        return x->step_ps < y->step_ps ? -1 : 1;
    return strcmp(x->set[0], y->set[0]);
}

static void clear_change(void *data)
{
    ExplainChange *change = data;
    for (gsize i = 0; i < G_N_ELEMENTS(change->set); i++)
        g_free(change->set[i]);
}

/* --- kernels --- */

typedef struct Sum {
    GArray *compute, *collectives; /* ExplainKernel; share and loss_share are seconds until the end */
    double peak_flops_per_s;
} Sum;

static ExplainKernel *kernel_of(GArray *kernels, const char *name, const char *kind)
{
    for (guint i = 0; i < kernels->len; i++)
        if (strcmp(g_array_index(kernels, ExplainKernel, i).name, name) == 0)
            return &g_array_index(kernels, ExplainKernel, i);
    const ExplainKernel kernel = {.name = name, .kind = kind};
    g_array_append_val(kernels, kernel);
    return &g_array_index(kernels, ExplainKernel, kernels->len - 1);
}

static void visit(const CostOp *op, double seconds, int count, void *data)
{
    static const char *const kinds[] = {[COST_OP_GEMM] = "gemm",
                                        [COST_OP_ATTENTION] = "attention",
                                        [COST_OP_MEMORY] = "memory",
                                        [COST_OP_COLLECTIVE] = "collective"};
    Sum *sum = data;
    const bool collective = op->kind == COST_OP_COLLECTIVE;
    ExplainKernel *kernel =
        kernel_of(collective ? sum->collectives : sum->compute, op->name, kinds[op->kind]);
    kernel->share += seconds * count;
    if (!collective)
        kernel->loss_share += (seconds - op->model_flops / sum->peak_flops_per_s) * count;
}

static int compare_kernels(gconstpointer a, gconstpointer b)
{
    const ExplainKernel *x = a, *y = b;
    if (x->loss_share > y->loss_share || x->loss_share < y->loss_share)
        return x->loss_share > y->loss_share ? -1 : 1;
    return (x->share < y->share) - (x->share > y->share);
}

static void to_shares(GArray *kernels)
{
    double all = 0, loss = 0;
    for (guint i = 0; i < kernels->len; i++) {
        all += g_array_index(kernels, ExplainKernel, i).share;
        loss += g_array_index(kernels, ExplainKernel, i).loss_share;
    }
    for (guint i = 0; i < kernels->len; i++) {
        ExplainKernel *kernel = &g_array_index(kernels, ExplainKernel, i);
        kernel->share = all > 0 ? kernel->share / all : 0;
        kernel->loss_share = loss > 0 ? kernel->loss_share / loss : 0;
    }
    g_array_sort(kernels, compare_kernels);
}

Explanation report_explain(const Report *report)
{
    Explanation explanation = {.report = report,
                               .binds = g_array_new(FALSE, FALSE, sizeof(ExplainBind)),
                               .figures = g_array_new(FALSE, FALSE, sizeof(ExplainFigure)),
                               .changes = g_array_new(FALSE, FALSE, sizeof(ExplainChange)),
                               .kernels = g_array_new(FALSE, FALSE, sizeof(ExplainKernel)),
                               .collectives = g_array_new(FALSE, FALSE, sizeof(ExplainKernel))};
    g_autofree Spec *spec = g_new(Spec, 1);
    g_autoptr(GPtrArray) lacks = g_ptr_array_new_with_free_func(g_free);
    Trial trial = {report, &explanation, spec, lacks};
    spec_notes(report->spec, lacks);
    Sum sum = {explanation.kernels, explanation.collectives, cost_peak_flops_per_s(report->spec)};
    g_array_set_clear_func(explanation.changes, clear_change);
    find_binds(report, explanation.binds);
    find_figures(report, explanation.figures);
    try_degrees(&trial);
    try_recompute(&trial);
    try_sharding(&trial);
    try_schedules(&trial);
    try_execution(&trial);
    try_experts(&trial);
    try_offloads(&trial);
    g_array_sort(explanation.changes, compare_changes);
    report_visit_kernels(report, visit, &sum);
    to_shares(explanation.kernels);
    to_shares(explanation.collectives);
    return explanation;
}

void report_explain_clear(Explanation *explanation)
{
    g_array_free(explanation->binds, TRUE);
    g_array_free(explanation->figures, TRUE);
    g_array_free(explanation->changes, TRUE);
    g_array_free(explanation->kernels, TRUE);
    g_array_free(explanation->collectives, TRUE);
}
