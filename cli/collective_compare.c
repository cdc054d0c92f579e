/* cli/collective_compare.c - a log of nccl-tests beside what NCCL is predicted to take on a cluster. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/stats.h"
#include "base/text.h"
#include "base/units.h"
#include "calibrate/fit/recorded.h"
#include "cli/collective.h"
#include "costmodel/nccl.h"
#include "report/page.h"

typedef struct Compared {
    NetOp op;
    int gpus, domains;
    double bytes, measured_s, predicted_s;
} Compared;

/* Over so many nodes, where that is fewer ranks of each than fill it: rings with one rank a node, and the like. Trays of a
 * rack that is one domain are no nodes in this sense. */
static void spread(CostGroup *group, const SpecCluster *cluster, int nodes)
{
    const bool racks = cluster->scale_up_domain_gpus > MAX(cluster->gpus_per_node, 1);
    if (!racks && nodes > 1 && group->ranks % nodes == 0 && group->ranks / nodes < group->per_domain)
        *group = (CostGroup){.ranks = group->ranks,
                             .per_domain = group->ranks / nodes,
                             .domains = nodes,
                             .rails = group->ranks / nodes,
                             .nic_sharers = 1};
}

/* By the algorithm that the row names, where NCCL has it, else by its own choice. */
static double seconds_as_run(const SpecCluster *cluster, const CostCollective *collective, const char *word)
{
    CostNcclAlgorithm algorithm;
    double seconds = INFINITY;
    if (word != NULL && cost_nccl_algorithm_find(word, &algorithm) && collective->op != COST_ALL_TO_ALL &&
        collective->op != COST_SEND_RECV)
        seconds = cost_collective_by_s(cluster, collective, algorithm);
    return isfinite(seconds) ? seconds : cost_collective_s(cluster, collective);
}

/* Rows of other accelerators are left out, and of other operations where one is asked for. */
static bool read_row(const OrrJson *row, const CollectiveArgs *args, const NetOp *asked, GArray *rows,
                     GError **error)
{
    Compared c = {.gpus = (int)orr_json_number_of(row, "gpus", 0),
                  .bytes = orr_json_number_of(row, "bytes", 0),
                  .measured_s = orr_json_number_of(row, "time_us", 0) * 1e-6};
    SpecCluster cluster;
    CostCollective collective;
    if (c.gpus < 2 || c.gpus > NET_MAX_RANKS || !(c.bytes > 0) || !(c.measured_s > 0) ||
        !net_op_find(orr_json_text_of(row, "op", ""), &c.op) || (asked != NULL && c.op != *asked))
        return true;
    if (!cli_collective_cluster(args->cluster, args->common.sets, c.gpus, &cluster, error))
        return false;
    const char *gpu = orr_json_text_of(row, "gpu", NULL);
    if ((gpu != NULL && strcmp(gpu, cluster.accelerator.name) != 0) ||
        !cli_collective_library(&cluster, c.op, c.gpus, c.bytes, &collective))
        return true;
    spread(&collective.group, &cluster, (int)orr_json_number_of(row, "nodes", 1));
    c.domains = cost_group_domains(&collective.group);
    c.predicted_s = seconds_as_run(&cluster, &collective, orr_json_text_of(row, "algo", NULL));
    g_array_append_val(rows, c);
    return true;
}

/* Sorted |error| of the rows inside one domain or across several; `both`: of all. */
static double *errors_of(const GArray *rows, bool both, bool across, guint *ret_count)
{
    double *errors = g_new(double, MAX(rows->len, 1));
    *ret_count = 0;
    for (guint i = 0; i < rows->len; i++) {
        const Compared *c = &g_array_index(rows, Compared, i);
        if (both || (c->domains > 1) == across)
            errors[(*ret_count)++] = fabs(c->predicted_s / c->measured_s - 1);
    }
    orr_stats_sort(errors, *ret_count);
    return errors;
}

static double median_error(const GArray *rows)
{
    guint count = 0;
    g_autofree double *errors = errors_of(rows, true, false, &count);
    return orr_stats_quantile(errors, count, .5);
}

static void half_text(const GArray *rows, bool across, GString *out)
{
    guint count = 0;
    g_autofree double *errors = errors_of(rows, false, across, &count);
    if (count > 0)
        g_string_append_printf(out, "  %s: %u rows, median %.1f %%, 90th percentile %.1f %%\n",
                               across ? "across nodes" : "within a domain", count,
                               100 * orr_stats_quantile(errors, count, .5),
                               100 * orr_stats_quantile(errors, count, .9));
}

static void write_text(const GArray *rows, double median, GString *out)
{
    const char *const headers[] = {"op", "GPUs", "size", "measured (us)", "predicted (us)", "error"};
    OrrTable *table = orr_table_new(headers, 6);
    for (guint i = 0; i < rows->len; i++) {
        const Compared *c = &g_array_index(rows, Compared, i);
        char cells[5][ORR_TEXT_SIZE];
        g_snprintf(cells[0], ORR_TEXT_SIZE, "%d", c->gpus);
        orr_text_bytes(cells[1], c->bytes);
        g_snprintf(cells[2], ORR_TEXT_SIZE, "%.2f", c->measured_s * 1e6);
        g_snprintf(cells[3], ORR_TEXT_SIZE, "%.2f", c->predicted_s * 1e6);
        g_snprintf(cells[4], ORR_TEXT_SIZE, "%+.1f %%", 100 * (c->predicted_s / c->measured_s - 1));
        const char *const line[] = {net_op_name(c->op), cells[0], cells[1], cells[2], cells[3], cells[4]};
        orr_table_row(table, line);
    }
    report_page_table(table, out, 0);
    orr_table_free(table);
    g_string_append_printf(out, "\n%u rows, median error %.1f %%\n", rows->len, 100 * median);
    half_text(rows, false, out);
    half_text(rows, true, out);
}

static void write_json(const GArray *rows, double median, GString *out)
{
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_number(&w, "median_error_frac", median);
    orr_jw_begin(&w, "rows", '[');
    for (guint i = 0; i < rows->len; i++) {
        const Compared *c = &g_array_index(rows, Compared, i);
        orr_jw_begin(&w, NULL, '{');
        orr_jw_text(&w, "op", net_op_name(c->op));
        orr_jw_int(&w, "ranks", c->gpus);
        orr_jw_number(&w, "bytes", c->bytes);
        orr_jw_number(&w, "measured_s", c->measured_s);
        orr_jw_number(&w, "predicted_s", c->predicted_s);
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, ']');
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}

static void write_csv(const GArray *rows, GString *out)
{
    g_string_append(out, "op,ranks,bytes,measured_s,predicted_s\n");
    for (guint i = 0; i < rows->len; i++) {
        const Compared *c = &g_array_index(rows, Compared, i);
        g_string_append_printf(out, "%s,%d,%.15g,%.12f,%.12f\n", net_op_name(c->op), c->gpus, c->bytes,
                               c->measured_s, c->predicted_s);
    }
}

/* A log that does not name its program is told apart by its name, which says what --op says. */
static bool open_log(const char *path, const NetOp *asked, const char *accelerator, OrrJsonDoc **ret_doc,
                     GError **error)
{
    if (asked == NULL)
        return cal_recorded_open(path, accelerator, ret_doc, NULL, error);
    g_autofree char *word = g_strdelimit(g_strdup(net_op_name(*asked)), "-", '_');
    g_autofree char *name = g_strdup_printf("%s, %s", path,
                                            *asked == NET_ALL_TO_ALL  ? "alltoall"
                                            : *asked == NET_SEND_RECV ? "sendrecv"
                                                                      : word);
    g_autoptr(GString) text = orr_text_read(path, CAL_RECORDED_MOST_BYTES, error);
    return text != NULL && cal_recorded_parse(text->str, text->len, name, accelerator, ret_doc, NULL, error);
}

bool cli_collective_compare(const CollectiveArgs *args, GString *out, GError **error)
{
    if (args->cluster == NULL)
        return orr_fail(error, ORR_ERROR_INPUT, "--compare: with which machine? give --cluster NAME");
    SpecCluster cluster;
    OrrJsonDoc *doc = NULL;
    NetOp op;
    const NetOp *asked = args->op != NULL ? &op : NULL;
    if ((asked != NULL && !cli_collective_op(args->op, &op, error)) ||
        !cli_collective_cluster(args->cluster, args->common.sets, 1, &cluster, error) ||
        !open_log(args->compare, asked, cluster.accelerator.name, &doc, error))
        return false;
    const OrrJson *list = orr_json_member(orr_json_root(doc), "collective_measurements");
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(Compared));
    bool ok = true;
    for (const OrrJson *row = list != NULL ? orr_json_first(list) : NULL; ok && row != NULL;
         row = orr_json_next(row))
        ok = read_row(row, args, asked, rows, error);
    if (ok && rows->len == 0)
        ok = orr_fail(error, ORR_ERROR_INPUT, "%s: holds no %s that can be predicted", args->compare,
                      asked != NULL ? net_op_name(op) : "collective");
    if (ok && args->common.format == CLI_FORMAT_JSON)
        write_json(rows, median_error(rows), out);
    else if (ok && args->common.format == CLI_FORMAT_CSV)
        write_csv(rows, out);
    else if (ok)
        write_text(rows, median_error(rows), out);
    orr_json_free(doc);
    return ok;
}
