/* calibrate/fit/fit_network.c - NIC rate, step and ramp between nodes by least squares; see fit_network.h.
 *
 * The same loss as the inside half's (fit_collectives.c). What a small message takes between nodes is the cluster's
 * scale_out_latency_s and NCCL's part together: rows tell the sum alone, so that the sum is fitted.
 */
#include "calibrate/fit/fit_network.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "calibrate/fit/collective_rows.h"
#include "calibrate/fit/collectives.h"
#include "calibrate/fit/fit_kernels.h"
#include "calibrate/nics.h"
#include "calibrate/fit/squares.h"
#include "spec/fields.h"
#include "spec/load.h"

#define LOSS_SCALE 0.05
#define PRIOR      0.03
#define ITERATIONS 80

typedef enum { ALWAYS, FROM_THREE_NODES } Felt;

/* Neutral starting values, the same for every network. */
static const struct {
    size_t offset;
    double start;
    Felt felt;
} unknowns[] = {
#define U(member, start, felt)                                                                               \
    {                                                                                                        \
        offsetof(SpecCollectiveModel, member), start, felt                                                   \
    }
    U(nic_frac, 0.9, ALWAYS),
    U(net_latency_s, 8e-6, ALWAYS), /* with the cluster's share while it is fitted */
    U(net_simple_s, 10e-6, ALWAYS),
    U(net_ring_hop_s, 3.4e-6, ALWAYS),
    U(tree_frac, 0.8, ALWAYS),
    U(nvls_tree_frac, 0.8, FROM_THREE_NODES),
    U(net_congestion_frac, 0.02, FROM_THREE_NODES),
#undef U
};

/* The choice of algorithm makes valleys, so that a fit begins at a network of each kind and the best is kept: InfiniBand,
 * RoCE, TCP. */
static const double steps_s[] = {4e-6, 10e-6, 40e-6};
enum { UNKNOWN_STEP = 1 }; /* its place in unknowns[] */

typedef struct NetworkFit {
    SpecCluster cluster; /* its "collectives" are being fitted; its scale_out_latency_s is 0 meanwhile */
    GArray *rows;        /* CalCollectiveRow */
    int count;           /* unknowns that move: the first ones */
} NetworkFit;

static double *unknown(SpecCollectiveModel *model, int i)
{
    return (double *)((char *)model + unknowns[i].offset);
}

static bool used(const CalCollectiveRow *row)
{
    return row->across && !row->launch_bound && !row->coarse;
}

static void residuals_of(void *context, const double *logs, double *out)
{
    NetworkFit *fit = context;
    int n = 0;
    for (int i = 0; i < fit->count; i++)
        *unknown(&fit->cluster.collectives, i) = exp(logs[i]);
    for (guint i = 0; i < fit->rows->len; i++) {
        const CalCollectiveRow *row = &g_array_index(fit->rows, CalCollectiveRow, i);
        if (used(row))
            out[n++] = log(1 + cal_collective_error(&fit->cluster, row));
    }
}

/* --- the NICs --- */

static double number_of(const OrrJson *object, const char *key)
{
    const OrrJson *node =
        object != NULL && orr_json_type(object) == ORR_JSON_OBJECT ? orr_json_member(object, key) : NULL;
    return node != NULL && orr_json_type(node) == ORR_JSON_NUMBER ? orr_json_number(node) : 0;
}

/* The cards that a sweep noted; their rate for each of a node's ranks. */
static double noted_rate(const OrrJson *stamp)
{
    CalNics nics = {.count = 0};
    const OrrJson *list = stamp != NULL ? orr_json_member(stamp, "nics") : NULL;
    if (list == NULL || orr_json_type(list) != ORR_JSON_LIST)
        return 0;
    for (const OrrJson *node = orr_json_first(list); node != NULL && nics.count < CAL_MAX_NICS;
         node = orr_json_next(node)) {
        const OrrJson *verbs =
            orr_json_type(node) == ORR_JSON_OBJECT ? orr_json_member(node, "infiniband") : NULL;
        nics.nic[nics.count++] = (CalNic){
            .infiniband = verbs != NULL && orr_json_type(verbs) == ORR_JSON_BOOL && orr_json_bool(verbs),
            .bytes_per_s = number_of(node, "bytes_per_s")};
    }
    const double gpus = number_of(stamp, "gpus"), nodes = MAX(number_of(stamp, "nodes"), 1);
    return gpus >= 1 && gpus < 1e7 && nodes < 1e7 ? cal_nics_per_gpu(&nics, MAX((int)(gpus / nodes), 1)) : 0;
}

static bool named_cluster(const char *name, const SpecAccelerator *accelerator, NetworkFit *fit,
                          CalNetwork *network, GError **error)
{
    SpecCluster *cluster = &fit->cluster;
    if (!spec_load_cluster(name, cluster, error))
        return false;
    if (strcmp(cluster->accelerator.name, accelerator->name) != 0)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--cluster %s: has %s, the rows are of %s; name a cluster of these GPUs", name,
                        cluster->accelerator.name, accelerator->name);
    network->nic_bytes_per_s = cluster->scale_out_bytes_per_s_per_gpu;
    if (network->nic_bytes_per_s <= 0)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--cluster %s: has no scale_out_bytes_per_s_per_gpu; name one whose network is known",
                        name);
    g_snprintf(network->from, sizeof network->from, "cluster %s", name);
    cluster->accelerator = *accelerator;
    return true;
}

/* A node of the accelerator's presets with the NICs that the sweep saw. */
static void noted_cluster(const SpecAccelerator *accelerator, double rate, NetworkFit *fit,
                          CalNetwork *network)
{
    cal_reference_cluster(accelerator, &fit->cluster);
    fit->cluster.scale_out_bytes_per_s_per_gpu = network->nic_bytes_per_s = rate;
    const SpecTable *fields = &spec_table_cluster;
    for (int i = 0; i < fields->count; i++)
        if (fields->fields[i].offset == offsetof(SpecCluster, scale_out_latency_s) &&
            fields->fields[i].default_text != NULL)
            fit->cluster.scale_out_latency_s = g_ascii_strtod(fields->fields[i].default_text, NULL);
    g_strlcpy(network->from, "the sweep's node", sizeof network->from);
}

/* --- the fit --- */

static void solve(NetworkFit *fit, CalNetwork *network)
{
    double logs[CAL_MAX_SQUARES] = {0};
    SpecCollectiveModel *model = &fit->cluster.collectives;
    network->cluster_step_s = fit->cluster.scale_out_latency_s;
    fit->cluster.scale_out_latency_s = 0;
    fit->count = 0;
    for (int i = 0; i < (int)G_N_ELEMENTS(unknowns); i++)
        if (unknowns[i].felt == ALWAYS || network->nodes > 2)
            fit->count++;
    CalSquares problem = {.residuals = residuals_of,
                          .context = fit,
                          .rows = network->rows,
                          .count = fit->count,
                          .loss_scale = LOSS_SCALE,
                          .prior = PRIOR,
                          .step = 1e-5,
                          .iterations = ITERATIONS};
    double least = INFINITY, found[CAL_MAX_SQUARES] = {0};
    for (size_t s = 0; s < G_N_ELEMENTS(steps_s); s++) {
        for (int i = 0; i < fit->count; i++)
            problem.start[i] = log(unknowns[i].start);
        problem.start[UNKNOWN_STEP] = log(steps_s[s]);
        const double loss = cal_squares_solve(&problem, found);
        if (loss < least) {
            least = loss;
            memcpy(logs, found, sizeof logs);
        }
    }
    for (int i = 0; i < fit->count; i++) {
        char text[32];
        g_ascii_formatd(text, sizeof text, "%.4g", exp(logs[i]));
        *unknown(model, i) = g_ascii_strtod(text, NULL);
    }
    network->step_s = model->net_latency_s;
    network->collectives = *model;
    network->collectives.net_latency_s = MAX(network->step_s - network->cluster_step_s, 0);
}

/* Errors as fitted, with the whole step. */
static void compare(const NetworkFit *fit, CalNetwork *network, GArray *residuals)
{
    static const char *const names[COST_COLLECTIVE_COUNT] = {
        "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce", "send-receive"};
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < fit->rows->len; i++) {
        const CalCollectiveRow *row = &g_array_index(fit->rows, CalCollectiveRow, i);
        char what[96];
        if (!used(row))
            continue;
        const double frac = cal_collective_error(&fit->cluster, row);
        g_array_append_val(errors, frac);
        g_snprintf(what, sizeof what, "%s %.0f bytes over %d, %d a node", names[row->collective.op],
                   row->collective.bytes, row->collective.group.ranks, row->collective.group.per_domain);
        cal_residual_add(residuals, "across nodes", what, row->seconds, row->seconds * (1 + frac));
    }
    cal_error_summary((double *)(void *)errors->data, (int)errors->len, &network->errors.median_frac,
                      &network->errors.p90_frac, &network->errors.bias_frac);
}

/* What the across half was before; the inside half is the accelerator's. */
static void start_model(NetworkFit *fit)
{
    SpecCollectiveModel *own = &fit->cluster.collectives;
    const SpecCollectiveModel *gpu = &fit->cluster.accelerator.model.collectives;
    if (own->fitted > 0 && own->nic_frac > 0)
        return;
    const SpecCollectiveModel *from =
        gpu->fitted > 0 && gpu->nic_frac > 0 ? gpu : &spec_collective_model_default;
    *own = (SpecCollectiveModel){.fitted = 1,
                                 .nic_frac = from->nic_frac,
                                 .tree_frac = from->tree_frac,
                                 .nvls_tree_frac = from->nvls_tree_frac,
                                 .net_congestion_frac = from->net_congestion_frac,
                                 .net_sm_frac = from->net_sm_frac};
}

static bool no_rate(int rows, bool required, GString *log, GError **error)
{
    static const char why[] =
        "%d rows of collectives over nodes say nothing of the NICs' rate, without which "
        "the network cannot be fitted; name the cluster with --cluster NAME";
    if (required)
        return orr_fail(error, ORR_ERROR_INPUT, why, rows);
    if (log != NULL) {
        g_string_append_printf(log, why, rows);
        g_string_append_c(log, '\n');
    }
    return true;
}

bool cal_fit_network(const OrrJson *table, const SpecAccelerator *accelerator, const char *cluster,
                     bool required, CalNetwork *ret_network, GArray *residuals, GString *log, GError **error)
{
    const OrrJson *list = orr_json_member(table, "collective_measurements"),
                  *stamp = orr_json_member(table, "stamp");
    g_autofree NetworkFit *fit = g_new0(NetworkFit, 1);
    *ret_network = (CalNetwork){.rows = 0};
    cal_reference_cluster(accelerator, &fit->cluster);
    if (list == NULL || orr_json_type(list) != ORR_JSON_LIST)
        return true;
    if (!cal_collective_rows(list, &fit->cluster, &fit->rows, error))
        return false;
    g_autoptr(GArray) rows = fit->rows;
    for (guint i = 0; i < rows->len; i++) {
        const CalCollectiveRow *row = &g_array_index(rows, CalCollectiveRow, i);
        ret_network->rows += used(row);
        if (used(row))
            ret_network->nodes = MAX(ret_network->nodes, cost_group_domains(&row->collective.group));
    }
    if (ret_network->rows == 0)
        return true;
    const double rate = noted_rate(stamp);
    if (cluster == NULL && rate <= 0) {
        const int rows_seen = ret_network->rows;
        ret_network->rows = 0;
        return no_rate(rows_seen, required || stamp != NULL, log, error);
    }
    if (cluster == NULL)
        noted_cluster(accelerator, rate, fit, ret_network);
    else if (!named_cluster(cluster, accelerator, fit, ret_network, error))
        return false;
    start_model(fit);
    solve(fit, ret_network);
    compare(fit, ret_network, residuals);
    return true;
}

void cal_network_print(const CalNetwork *network, GString *log)
{
    if (network->rows == 0)
        return;
    g_string_append_printf(
        log,
        "across nodes: %d rows, median %.1f %%, p90 %.1f %%: %.1f of %.1f GB/s a GPU (%s), "
        "%.1f us a step\n",
        network->rows, 100 * network->errors.median_frac, 100 * network->errors.p90_frac,
        1e-9 * network->nic_bytes_per_s * network->collectives.nic_frac, 1e-9 * network->nic_bytes_per_s,
        network->from, 1e6 * network->step_s);
    if (network->step_s < network->cluster_step_s)
        g_string_append_printf(
            log,
            "a step between nodes takes %.2f us, less than the %.2f us of the cluster; run "
            "with --set cluster.scale_out_latency_s=%.3g\n",
            1e6 * network->step_s, 1e6 * network->cluster_step_s, network->step_s);
}

void cal_network_write(const CalNetwork *network, OrrJsonWriter *w)
{
    if (network->rows == 0)
        return;
    cal_write_collectives(w, "collectives", &network->collectives);
    orr_jw_begin(w, "network", '{');
    orr_jw_int(w, "rows", network->rows);
    orr_jw_int(w, "nodes", network->nodes);
    orr_jw_number(w, "nic_bytes_per_s_per_gpu", network->nic_bytes_per_s);
    orr_jw_text(w, "nic_rate_from", network->from);
    orr_jw_number(w, "step_s", network->step_s);
    orr_jw_number(w, "median_frac", network->errors.median_frac);
    orr_jw_number(w, "p90_frac", network->errors.p90_frac);
    orr_jw_number(w, "bias_frac", network->errors.bias_frac);
    orr_jw_end(w, '}');
}
