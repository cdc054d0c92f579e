/* report/groups.c - see groups.h. */
#include "report/groups.h"

#include <math.h>

#include "base/text.h"
#include "report/page.h"
#include "spec/groups.h"

enum { LABEL_COLUMN = 14 };

#define GIB 1073741824.0

/* A GPU with its share of the host; 0: not known, whatever the host draws. */
static double with_host_w(const SpecAccelerator *accelerator, double host_w, double idle_frac)
{
    const double gpu_w = spec_mean_power_w(accelerator, idle_frac);
    return gpu_w > 0 ? gpu_w + host_w : 0;
}

static double of_one(const Spec *spec, ReportMean what)
{
    const SpecCluster *cluster = &spec->cluster;
    return what == REPORT_MEAN_PEAK_FLOPS ? cost_peak_flops_per_s(spec)
           : what == REPORT_MEAN_USD_PER_HOUR
               ? cluster->usd_per_gpu_hour
               : with_host_w(&cluster->accelerator, cluster->host_power_w_per_gpu, 1);
}

/* Mean over the kinds of GPU, idle as `groups` have it or `idle_frac` each. 0 where that of one is not known. */
static double groups_w(const Spec *spec, const ReportGroup *groups, double idle_frac)
{
    const SpecCluster *cluster = &spec->cluster;
    if (cluster->group_count == 0)
        return with_host_w(&cluster->accelerator, cluster->host_power_w_per_gpu, idle_frac);
    double sum = 0;
    for (int g = 0; g < cluster->group_count; g++) {
        const double each =
            with_host_w(&cluster->groups[g].accelerator, cluster->groups[g].host_power_w_per_gpu,
                        groups != NULL ? groups[g].idle_frac : idle_frac);
        if (!(each > 0))
            return 0;
        sum += (double)spec_group_gpus(spec, g) * each;
    }
    return sum / spec_gpus(spec);
}

double report_groups_step_w(const Report *report)
{
    return groups_w(report->spec, report->groups, report->bubble_frac);
}

double report_groups_mean(const Spec *spec, ReportMean what)
{
    if (spec->cluster.group_count == 0)
        return of_one(spec, what);
    g_autofree Spec *alone = g_new(Spec, 1);
    double sum = 0;
    for (int g = 0; g < spec->cluster.group_count; g++) {
        spec_group_alone(spec, g, alone);
        sum += of_one(alone, what) * (double)spec_group_gpus(spec, g);
    }
    return sum / spec_gpus(spec);
}

double report_groups_mean_w(const Spec *spec, double idle_frac)
{
    return groups_w(spec, NULL, idle_frac);
}

char *report_groups_names(const Spec *spec)
{
    const SpecCluster *cluster = &spec->cluster;
    GString *names = g_string_new(cluster->accelerator.name);
    for (int g = 1; g < cluster->group_count; g++)
        g_string_append_printf(names, " + %s", cluster->groups[g].accelerator.name);
    return g_string_free(names, FALSE);
}

char *report_groups_words(const Spec *spec)
{
    const SpecCluster *cluster = &spec->cluster;
    GString *words = g_string_new(cluster->group_count == 0 ? cluster->accelerator.name : NULL);
    for (int g = 0; g < cluster->group_count; g++)
        g_string_append_printf(words, "%s%d x %d %s", g > 0 ? " + " : "", cluster->groups[g].nodes,
                               cluster->gpus_per_node, cluster->groups[g].accelerator.name);
    return g_string_free(words, FALSE);
}

/* --- filling --- */

/* Parts in which a GPU waits for others; what it computes, and its tensor, context and expert groups, are its own work. */
static double waited_ps(const SimRankResult *rank)
{
    return (double)rank->idle_ps + (double)rank->part_ps[SIM_PART_PIPELINE_COMM] +
           (double)rank->part_ps[SIM_PART_DATA_COMM];
}

static int layers_of(const SimPlan *plan, int rank)
{
    int layers = 0;
    for (int c = 0; c < plan->shape.chunks; c++)
        layers += plan->stages[sim_stage_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks,
                                            rank, c)]
                      .layers;
    return layers;
}

/* One pipeline rank of one kind of replicas. */
static void add_rank(const Report *report, int rank, int index, double *ret_ranks, ReportGroup *group)
{
    const SimKind *kind = &report->kinds.kinds[index];
    const int each = report_ranks_a_stage(report);
    const SimRankResult *result = &report->result.rank[rank * each + index % each];
    const int layers = layers_of(&kind->plan, rank), microbatches = kind->plan.shape.microbatches;
    const double needed = (double)result->peak_bytes + spec_context_bytes(report->spec);
    const bool first = !(*ret_ranks > 0);
    group->first_stage = first ? rank : MIN(group->first_stage, rank);
    group->last_stage = first ? rank : MAX(group->last_stage, rank);
    group->least_layers = first ? layers : MIN(group->least_layers, layers);
    group->most_layers = first ? layers : MAX(group->most_layers, layers);
    group->least_microbatches = first ? microbatches : MIN(group->least_microbatches, microbatches);
    group->most_microbatches = first ? microbatches : MAX(group->most_microbatches, microbatches);
    const double room =
        report->spec->cluster.groups[kind->group_of_rank[rank]].accelerator.memory_bytes - needed;
    group->room_bytes = first ? room : fmin(group->room_bytes, room);
    group->idle_frac += kind->replicas * (double)result->idle_ps / (double)report->step_ps;
    group->waited_frac += kind->replicas * waited_ps(result) / (double)report->step_ps;
    *ret_ranks += kind->replicas;
}

void report_groups_fill(Report *report)
{
    const Spec *spec = report->spec;
    const SimKinds *kinds = &report->kinds;
    for (int g = 0; kinds->count > 0 && g < spec->cluster.group_count; g++) {
        const SpecGroup *own = &spec->cluster.groups[g];
        ReportGroup *group = &report->groups[g];
        double ranks = 0;
        *group = (ReportGroup){.name = own->name,
                               .accelerator = own->accelerator.name,
                               .nodes = own->nodes,
                               .gpus = spec_group_gpus(spec, g)};
        for (int k = 0; k < kinds->count; k++) {
            bool here = false;
            for (int p = 0; p < kinds->ranks; p++) {
                if (kinds->kinds[k].group_of_rank[p] != g)
                    continue;
                add_rank(report, p, k, &ranks, group);
                here = true;
            }
            group->replicas += here ? kinds->kinds[k].replicas : 0;
        }
        group->idle_frac /= ranks;
        group->waited_frac /= ranks;
    }
}

/* --- writing --- */

void report_groups_cluster(const Report *report, GString *out)
{
    char number[ORR_TEXT_SIZE];
    g_autofree char *kinds = report_groups_words(report->spec);
    g_autofree char *line = g_strdup_printf("%s: %s", report_page_gpus(number, report->gpus), kinds);
    report_page_entry(out, "  Cluster", LABEL_COLUMN, line);
}

static void range(char *text, int least, int most)
{
    if (least == most)
        g_snprintf(text, ORR_TEXT_SIZE, "%d", least);
    else
        g_snprintf(text, ORR_TEXT_SIZE, "%d to %d", least, most);
}

void report_groups_text(const Report *report, GString *out)
{
    enum { COLUMNS = 8 };
    static const char *const headers[COLUMNS] = {"group",  "GPUs",          "replicas", "stages",
                                                 "layers", "micro-batches", "waits",    "room"};
    if (report->spec->cluster.group_count == 0)
        return;
    g_string_append_c(out, '\n');
    report_page_say(out, 0,
                    "Kinds of nodes: what each does of a step, how long it waits, memory it has left");
    OrrTable *table = orr_table_new(headers, COLUMNS);
    for (int g = 0; g < report->spec->cluster.group_count; g++) {
        const ReportGroup *group = &report->groups[g];
        char cells[COLUMNS][ORR_TEXT_SIZE];
        g_snprintf(cells[1], ORR_TEXT_SIZE, "%" G_GINT64_FORMAT, group->gpus);
        g_snprintf(cells[2], ORR_TEXT_SIZE, "%d", group->replicas);
        range(cells[3], group->first_stage, group->last_stage);
        range(cells[4], group->least_layers, group->most_layers);
        range(cells[5], group->least_microbatches, group->most_microbatches);
        g_snprintf(cells[6], ORR_TEXT_SIZE, "%.1f %%", 100 * group->waited_frac);
        g_snprintf(cells[7], ORR_TEXT_SIZE, "%.1f GiB", group->room_bytes / GIB);
        orr_table_row(table, (const char *[COLUMNS]){group->name, cells[1], cells[2], cells[3], cells[4],
                                                     cells[5], cells[6], cells[7]});
    }
    report_page_table(table, out, 2);
    orr_table_free(table);
}

void report_groups_json(const Report *report, OrrJsonWriter *w)
{
    if (report->spec->cluster.group_count == 0)
        return;
    orr_jw_begin(w, "groups", '[');
    for (int g = 0; g < report->spec->cluster.group_count; g++) {
        const ReportGroup *group = &report->groups[g];
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "group", group->name);
        orr_jw_text(w, "accelerator", group->accelerator);
        orr_jw_int(w, "nodes", group->nodes);
        orr_jw_int(w, "gpus", group->gpus);
        orr_jw_int(w, "replicas", group->replicas);
        orr_jw_int(w, "first_stage", group->first_stage);
        orr_jw_int(w, "last_stage", group->last_stage);
        orr_jw_int(w, "least_layers", group->least_layers);
        orr_jw_int(w, "most_layers", group->most_layers);
        orr_jw_int(w, "least_microbatches", group->least_microbatches);
        orr_jw_int(w, "most_microbatches", group->most_microbatches);
        orr_jw_number(w, "waited_frac", group->waited_frac);
        orr_jw_number(w, "room_bytes", group->room_bytes);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
}
