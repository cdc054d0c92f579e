/* calibrate/fit/collective_rows.c - reads measured collectives and compares one with the model. */
#include "calibrate/fit/collective_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"

#define MOST_BYTES   1e15
#define MOST_SECONDS 86400.0

static const struct {
    const char *word;
    CostCollectiveOp op;
} op_words[] = {
    {"all_reduce", COST_ALL_REDUCE}, {"all_gather", COST_ALL_GATHER}, {"reduce_scatter", COST_REDUCE_SCATTER},
    {"alltoall", COST_ALL_TO_ALL},   {"broadcast", COST_BROADCAST},   {"reduce", COST_REDUCE},
    {"send_recv", COST_SEND_RECV},
};

static bool fail(GError **error, const OrrJson *row, const char *what)
{
    char *shown = orr_json_show(row);
    g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT, "collective row %s: %s", shown, what);
    g_free(shown);
    return false;
}

static double bus_factor(CostCollectiveOp op, double ranks)
{
    if (op == COST_ALL_REDUCE)
        return 2 * (ranks - 1) / ranks;
    return op == COST_ALL_GATHER || op == COST_REDUCE_SCATTER || op == COST_ALL_TO_ALL ? (ranks - 1) / ranks
                                                                                       : 1;
}

static bool read_row(const OrrJson *node, const SpecCluster *cluster, CalCollectiveRow *row, GError **error)
{
    const char *op = orr_json_text_of(node, "op", NULL), *source = orr_json_text_of(node, "source", NULL),
               *nccl = orr_json_text_of(node, "nccl", NULL);
    const char *algorithm = orr_json_text_of(node, "algo", NULL);
    int found = -1;
    for (int i = 0; op && i < (int)G_N_ELEMENTS(op_words); i++)
        if (strcmp(op, op_words[i].word) == 0)
            found = i;
    if (found < 0)
        return fail(error, node,
                    "\"op\" is not one of all_reduce, all_gather, reduce_scatter, alltoall, "
                    "broadcast, reduce, send_recv");
    double gpus = orr_json_number_of(node, "gpus", 0), bytes = orr_json_number_of(node, "bytes", 0),
           nodes = orr_json_number_of(node, "nodes", 1);
    if (!(gpus >= 2 && gpus <= 1e6 && nodes >= 1 && nodes <= gpus && bytes > 0 && bytes <= MOST_BYTES))
        return fail(error, node,
                    "needs \"gpus\" from 2 to 1000000, \"nodes\" from 1 to as many, \"bytes\" above 0 and at "
                    "most 1e15");
    *row = (CalCollectiveRow){.collective = {.op = op_words[found].op, .bytes = bytes}};
    int domain = MAX(cluster->scale_up_domain_gpus, 1);
    /* Where a domain is larger than a node, ranks of several nodes may share one; else nodes are domains. */
    bool racks = domain > MAX(cluster->gpus_per_node, 1);
    int per_domain = nodes <= 1 ? (int)gpus : racks ? MIN(domain, (int)gpus) : (int)(gpus / nodes);
    if (per_domain < 1)
        return fail(error, node, "spans more nodes than it has GPUs");
    row->collective.group = (CostGroup){.ranks = (int)gpus, .per_domain = per_domain, .nic_sharers = 1};
    row->across = per_domain < (int)gpus;
    row->one_process = orr_json_number_of(node, "ranks_per_process", 1) > 1;
    row->named = algorithm && cost_nccl_algorithm_find(algorithm, &row->algorithm);
    double busbw = orr_json_number_of(node, "busbw_gbps", 0), factor = bus_factor(row->collective.op, gpus);
    row->seconds = 1e-6 * orr_json_number_of(node, "time_us", busbw > 0 ? bytes * factor / (busbw * 1e3) : 0);
    row->coarse = orr_json_member(node, "time_us") == NULL && busbw < 0.25; /* printed as 0.01 GB/s */
    if (!(row->seconds > 0 && row->seconds <= MOST_SECONDS))
        return fail(error, node, "needs \"time_us\" or \"busbw_gbps\" above 0, and at most a day");
    g_snprintf(row->source, sizeof row->source, "%s%s%s", source ? source : "?", nccl ? " " : "",
               nccl ? nccl : "");
    return true;
}

static double fastest(const GArray *rows, const CalCollectiveRow *like, bool same_source)
{
    double best = INFINITY;
    for (guint i = 0; i < rows->len; i++) {
        const CalCollectiveRow *row = &g_array_index(rows, CalCollectiveRow, i);
        if (row->across == like->across && row->collective.op == like->collective.op &&
            row->collective.group.ranks == like->collective.group.ranks &&
            (!same_source || strcmp(row->source, like->source) == 0))
            best = MIN(best, row->seconds);
    }
    return best;
}

static void mark_launch_bound(GArray *rows)
{
    for (guint i = 0; i < rows->len; i++) {
        CalCollectiveRow *row = &g_array_index(rows, CalCollectiveRow, i);
        double own = fastest(rows, row, true);
        const bool slower = own > 1.5 * fastest(rows, row, false);
        row->launch_bound =
            (slower || row->one_process) && row->seconds < 2.5 * own && row->collective.bytes < 64e6;
    }
}

bool cal_collective_rows(const OrrJson *table, const SpecCluster *cluster, GArray **ret_rows, GError **error)
{
    static const char *const keys[] = {"collective_measurements", "collectives"};
    for (int i = 0; i < 2 && orr_json_type(table) == ORR_JSON_OBJECT; i++)
        if (orr_json_member(table, keys[i]))
            table = orr_json_member(table, keys[i]);
    if (orr_json_type(table) != ORR_JSON_LIST)
        return fail(error, table, "a table of collectives is a list of rows");
    GArray *rows = g_array_new(FALSE, TRUE, sizeof(CalCollectiveRow));
    for (const OrrJson *node = orr_json_first(table); node; node = orr_json_next(node)) {
        const char *gpu = orr_json_type(node) == ORR_JSON_OBJECT ? orr_json_text_of(node, "gpu", NULL) : NULL;
        CalCollectiveRow row;
        if (gpu && strcmp(gpu, cluster->accelerator.name) != 0)
            continue;
        if (!gpu ? !fail(error, node, "needs \"gpu\"") : !read_row(node, cluster, &row, error)) {
            g_array_unref(rows);
            return false;
        }
        g_array_append_val(rows, row);
    }
    mark_launch_bound(rows);
    *ret_rows = rows;
    return true;
}

void cal_reference_cluster(const SpecAccelerator *accelerator, SpecCluster *ret_cluster)
{
    *ret_cluster = (SpecCluster){.accelerator = *accelerator, .nodes = 1, .oversubscription = 1};
    ret_cluster->gpus_per_node = MAX(accelerator->reference_gpus_per_node, 1);
    ret_cluster->scale_up_domain_gpus = MAX(accelerator->reference_scale_up_domain_gpus, 1);
    ret_cluster->scale_up_bytes_per_s = accelerator->scale_up_bytes_per_s;
    ret_cluster->scale_out_bytes_per_s_per_gpu = accelerator->reference_scale_out_bytes_per_s_per_gpu;
    ret_cluster->topology = accelerator->generation.scale_up_topology;
    if (accelerator->scale_up_bytes_per_s <= 0)
        ret_cluster->topology = SPEC_TOPOLOGY_PCIE;
}

double cal_collective_error(const SpecCluster *cluster, const CalCollectiveRow *row)
{
    double seconds = INFINITY;
    if (row->named && row->collective.op != COST_ALL_TO_ALL && row->collective.op != COST_SEND_RECV)
        seconds = cost_collective_by_s(cluster, &row->collective, row->algorithm);
    if (!isfinite(seconds))
        seconds = cost_collective_s(cluster, &row->collective);
    return seconds / row->seconds - 1;
}

double cal_abs_quantile(const double *values, int count, double q)
{
    if (count == 0)
        return 0;
    g_autofree double *sorted = g_new(double, (gsize)count);
    for (int i = 0; i < count; i++)
        sorted[i] = fabs(values[i]);
    orr_stats_sort(sorted, (size_t)count);
    return orr_stats_quantile(sorted, (size_t)count, q);
}
