/* plots/ranks.c - which GPU does what: nodes as boxes of GPUs, coloured by pipeline rank, with one replica of the model and one
 * data-parallel group marked. Tested: unit/plots/test_ranks.c
 */
#include "plots/driver.h"
#include "report/ranks.h"

enum { MOST_NODES = 512, ROWS = 24 };

/* Nodes of a pipeline rank in a row where that suits, else about three times as many as rows. */
static int columns_for(const SpecPlacement *placement, int nodes, int per_node)
{
    const int64_t stage = placement->pipeline.size > 1 ? placement->pipeline.stride / per_node : nodes;
    if (stage >= 4 && stage <= ROWS && nodes % stage == 0 && nodes / stage <= ROWS)
        return (int)stage;
    int columns = 1;
    while (columns < nodes && (columns < 4 || columns * columns < 2 * nodes))
        columns *= 2;
    return MIN(columns, nodes);
}

/* How many nodes the members of a group lie in, which begins with GPU 0. */
static int nodes_of(const SpecDimension *dimension, int per_node)
{
    int count = 0, last = -1;
    for (int i = 0; i < dimension->size; i++) {
        const int node = (int)(i * dimension->stride / per_node);
        count += node != last;
        last = node;
    }
    return count;
}

static void say_group(GString *words, const char *name, const SpecDimension *dimension, int per_node)
{
    const int nodes = nodes_of(dimension, per_node);
    if (dimension->size < 2)
        return;
    g_string_append_printf(words, "%s%s %d ", words->len > 0 ? ", " : "", name, dimension->size);
    if (nodes == 1)
        g_string_append(words, "within a node");
    else
        g_string_append_printf(words, "over %d nodes", nodes);
}

bool plot_ranks(const Report *report, const PlotTarget *target, GError **error)
{
    const Spec *spec = report->spec;
    SpecPlacement placement;
    PlotJob job;
    g_autoptr(GString) words = g_string_new(NULL);
    const int per_node = spec->cluster.gpus_per_node, nodes = spec_gpus(spec) / per_node;
    const int shown = MIN(nodes, MOST_NODES);
    const bool experts = spec->parallel.expert > 1;
    if (spec->parallel.data_scheme == SPEC_DATA_PARAMETER_SERVER || spec_gpus(spec) % per_node != 0)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--what ranks: the GPUs of this scenario are not a grid of ranks");
    spec_placement(spec, &placement);
    plot_job_init(&job, "ranks");
    g_string_append(job.csv, "gpu,node,place,pipeline,data,context,tensor,expert,replica,group\n");
    for (int gpu = 0; gpu < shown * per_node; gpu++) {
        const ReportRank rank = report_rank(&placement, gpu);
        g_string_append_printf(job.csv, "%d,%d,%d,%d,%d,%d,%d,%d,%d,%d\n", gpu, gpu / per_node,
                               gpu % per_node, rank.pipeline, rank.data, rank.context, rank.tensor,
                               rank.expert, rank.data == 0 ? 1 : 0,
                               rank.pipeline == 0 && rank.tensor == 0 && rank.context == 0 ? 1 : 0);
    }
    say_group(words, "tensor", &placement.tensor, per_node);
    say_group(words, "context", &placement.context, per_node);
    say_group(words, "expert", &placement.expert, per_node);
    say_group(words, "data", &placement.data, per_node);
    say_group(words, "pipeline", &placement.pipeline, per_node);
    if (shown < nodes)
        g_string_append_printf(words, "; the first %d of %d nodes", shown, nodes);
    plot_set_heading(&job, spec->name, words->len > 0 ? words->str : "one GPU does all");
    plot_set_number(&job, "nodes", shown);
    plot_set_number(&job, "per_node", per_node);
    plot_set_number(&job, "columns", columns_for(&placement, shown, per_node));
    plot_set_number(&job, "stages", placement.pipeline.size);
    plot_set_number(&job, "tensor", placement.tensor.size);
    plot_set_number(&job, "replicas", placement.data.size);
    plot_set_text(&job, "replica", experts ? "all experts once" : "one replica of the model");
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    return ok;
}
