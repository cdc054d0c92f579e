/* study/explain.c - see explain.h. Tested: cli/test_cli_explain.c */
#include "study/explain.h"

#include <math.h>
#include <string.h>

#include "report/kernels.h"
#include "study/explain_changes.h"
#include "study/explain_figures.h"

#define MORE        1.1  /* of a resource */
#define ONE_PERCENT 1.01 /* of a figure */

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
        if (!explain_simulate(spec, report, &faster))
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
        if (!explain_figure_better(spec, i, ONE_PERCENT) || !explain_simulate(spec, report, &better))
            continue;
        const double ratio = (double)better.step_ps / (double)report->step_ps;
        const ExplainFigure figure = {explain_figure_key(i), better.step_ps, 1 - ratio,
                                      -log(ratio) / log(ONE_PERCENT)};
        g_array_append_val(figures, figure);
    }
    g_array_sort(figures, compare_figures);
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
    Sum sum = {explanation.kernels, explanation.collectives, cost_peak_flops_per_s(report->spec)};
    find_binds(report, explanation.binds);
    find_figures(report, explanation.figures);
    explain_changes(&explanation);
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
