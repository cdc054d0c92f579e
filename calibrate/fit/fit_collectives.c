/* calibrate/fit/fit_collectives.c - fits the inside half of the collective model to measured rows.
 *
 * Least squares (squares.h) of log(predicted / measured), with a weak pull towards neutral starting values, so that a
 * parameter without rows stays where it started. Group sizes share one set of parameters.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "calibrate/fit/collective_rows.h"
#include "calibrate/fit/collectives.h"
#include "calibrate/fit/squares.h"
#include "spec/fields.h"
#include "spec/load.h"

#define LOSS_SCALE  0.05
#define PRIOR       0.03
#define ITERATIONS  80
#define DIGITS      "%.3e"
#define LL128_WORTH 1.1 /* LL128 counts as used when it lowers the loss by a tenth */

/* Neutral starting values, the same for every GPU: they only say which order of magnitude to look in. */
static const struct {
    size_t offset;
    double start;
} unknowns[] = {
#define U(member, start)                                                                                     \
    {                                                                                                        \
        offsetof(SpecCollectiveModel, member), start                                                         \
    }
    U(offset_s, 6e-6),      U(ll_hop_s, 1e-6),          U(ll_spread_s, 1.5e-6),     U(ll128_hop_s, 2e-6),
    U(simple_hop_s, 8e-6),  U(ring_fill_s, 1e-7),       U(nvls_latency_s, 10e-6),   U(nvls_fill_s, 25e-6),
    U(alltoall_ll_s, 2e-6), U(alltoall_simple_s, 3e-6), U(alltoall_peer_s, 3e-7),   U(alltoall_fill_s, 1e-6),
    U(ll_frac, 0.35),       U(ll128_frac, 0.7),         U(ring_frac, 0.85),         U(nvls_frac, 1.1),
    U(alltoall_frac, 0.75), U(copy_frac, 1.3),          U(alltoall_copy_frac, 1.3), U(share_exponent, 0.3),
#undef U
};

typedef struct Fit {
    SpecCluster cluster; /* its accelerator's model is the one being fitted */
    const GArray *rows;
    int free[CAL_MAX_SQUARES], count; /* into unknowns[] */
} Fit;

static double *unknown(SpecCollectiveModel *model, int i)
{
    return (double *)((char *)model + unknowns[i].offset);
}

static SpecCollectiveModel *model_of(Fit *fit)
{
    return &fit->cluster.accelerator.model.collectives;
}

static bool used(const CalCollectiveRow *row)
{
    return !row->across && !row->launch_bound && !row->coarse;
}

static void apply(Fit *fit, const double *logs)
{
    for (int j = 0; j < fit->count; j++)
        *unknown(model_of(fit), fit->free[j]) = exp(logs[j]);
}

/* Residuals log(predicted / measured) of the used rows. */
static void residuals(void *context, const double *logs, double *out)
{
    Fit *fit = context;
    int n = 0;
    apply(fit, logs);
    for (guint i = 0; i < fit->rows->len; i++) {
        const CalCollectiveRow *row = &g_array_index(fit->rows, CalCollectiveRow, i);
        if (used(row))
            out[n++] = log(1 + cal_collective_error(&fit->cluster, row));
    }
}

static double minimise(Fit *fit, int n)
{
    double logs[CAL_MAX_SQUARES];
    CalSquares problem = {.residuals = residuals,
                          .context = fit,
                          .rows = n,
                          .count = fit->count,
                          .loss_scale = LOSS_SCALE,
                          .prior = PRIOR,
                          .step = 1e-5,
                          .iterations = ITERATIONS};
    for (int j = 0; j < fit->count; j++)
        problem.start[j] = log(unknowns[fit->free[j]].start);
    const double best = cal_squares_solve(&problem, logs);
    apply(fit, logs);
    return best;
}

/* NCCL's search settles on rings of 0.8 and NVLink-SHARP of 0.71 of the link; a preset may say otherwise. */
static void default_graph(SpecCollectiveModel *model, const SpecCluster *cluster)
{
    const SpecAccelerator *gpu = &cluster->accelerator;
    double link =
        cluster->scale_up_bytes_per_s > 0 ? cluster->scale_up_bytes_per_s : gpu->host_link_bytes_per_s;
    if (model->ring_channels <= 0)
        model->ring_channels = spec_collective_model_default.ring_channels;
    if (model->ring_channel_bytes_per_s <= 0)
        model->ring_channel_bytes_per_s = 0.8 * link / model->ring_channels;
    if (model->nvls_channels > 0 && model->nvls_channel_bytes_per_s <= 0)
        model->nvls_channel_bytes_per_s = 0.71 * link / model->nvls_channels;
}

/* Some used row is an all-reduce over enough ranks for NVLink-SHARP. */
static bool nvls_rows(Fit *fit)
{
    const SpecCollectiveModel *m = model_of(fit);
    for (guint i = 0; i < fit->rows->len; i++) {
        const CalCollectiveRow *row = &g_array_index(fit->rows, CalCollectiveRow, i);
        if (used(row) && (!row->named || row->algorithm == COST_NCCL_NVLS) &&
            row->collective.op == COST_ALL_REDUCE && m->nvls_channels > 0 &&
            row->collective.group.ranks >= m->nvls_min_ranks)
            return true;
    }
    return false;
}

/* What is fitted: NVLink-SHARP where rows reach it (else the preset's values stay), sharing on PCIe, LL128 in one
 * of two tries. */
static void choose_free(Fit *fit, bool ll128, bool pcie)
{
    SpecCollectiveModel *m = model_of(fit);
    bool nvls = nvls_rows(fit);
    fit->count = 0;
    for (int i = 0; i < (int)G_N_ELEMENTS(unknowns); i++) {
        double *value = unknown(m, i);
        if ((value == &m->nvls_latency_s || value == &m->nvls_fill_s || value == &m->nvls_frac) && !nvls)
            continue;
        bool off = ((value == &m->ll128_hop_s || value == &m->ll128_frac) && !ll128) ||
                   (value == &m->share_exponent && !pcie);
        *value = off ? 0 : unknowns[i].start;
        if (!off)
            fit->free[fit->count++] = i;
    }
}

static void round_model(SpecCollectiveModel *model)
{
    for (int i = 0; i < (int)G_N_ELEMENTS(unknowns); i++) {
        char text[32];
        g_snprintf(text, sizeof text, DIGITS, *unknown(model, i));
        *unknown(model, i) = g_ascii_strtod(text, NULL);
    }
}

bool cal_collectives_inside(const OrrJson *table, const SpecCluster *cluster, int *ret_count, GError **error)
{
    g_autoptr(GArray) rows = NULL;
    if (!cal_collective_rows(table, cluster, &rows, error))
        return false;
    *ret_count = 0;
    for (guint i = 0; i < rows->len; i++)
        *ret_count += used(&g_array_index(rows, CalCollectiveRow, i));
    return true;
}

bool cal_fit_collectives_on(const OrrJson *table, const SpecCluster *cluster, SpecCollectiveModel *ret_model,
                            GString *log, GError **error)
{
    GArray *rows = NULL;
    if (!cal_collective_rows(table, cluster, &rows, error))
        return false;
    int n = 0;
    for (guint i = 0; i < rows->len; i++)
        n += used(&g_array_index(rows, CalCollectiveRow, i));
    if (n == 0) {
        g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT,
                    "no rows of \"%s\" inside one scale-up domain to fit collectives to",
                    cluster->accelerator.name);
        g_array_unref(rows);
        return false;
    }
    Fit fit = {.cluster = *cluster, .rows = rows};
    bool pcie = cluster->topology == SPEC_TOPOLOGY_PCIE || cluster->scale_up_bytes_per_s <= 0;
    SpecCollectiveModel best = {0};
    double best_loss = INFINITY;
    memset(&fit.cluster.collectives, 0,
           sizeof fit.cluster.collectives); /* the accelerator's own block counts */
    model_of(&fit)->fitted = 1;
    default_graph(model_of(&fit), cluster);
    for (int ll128 = 0; ll128 < (pcie ? 1 : 2); ll128++) {
        choose_free(&fit, ll128, pcie);
        double now = minimise(&fit, n) * (ll128 ? LL128_WORTH : 1);
        if (now < best_loss) {
            best_loss = now;
            best = *model_of(&fit);
        }
    }
    round_model(&best);
    *ret_model = best;
    g_string_append_printf(log, "%s: collectives fitted to %d of %u rows\n", cluster->accelerator.name, n,
                           rows->len);
    g_array_unref(rows);
    return true;
}

bool cal_fit_collectives(const OrrJson *table, const char *accelerator, SpecCollectiveModel *ret_model,
                         GString *log, GError **error)
{
    SpecAccelerator gpu;
    SpecCluster cluster;
    if (!spec_load_accelerator(accelerator, &gpu, error))
        return false;
    cal_reference_cluster(&gpu, &cluster);
    return cal_fit_collectives_on(table, &cluster, ret_model, log, error);
}

bool cal_collective_residuals(const OrrJson *table, const SpecCluster *cluster, GArray *residuals,
                              GError **error)
{
    static const char *const names[COST_COLLECTIVE_COUNT] = {
        "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce", "send-receive"};
    GArray *rows = NULL;
    if (!cal_collective_rows(table, cluster, &rows, error))
        return false;
    for (guint i = 0; i < rows->len; i++) {
        const CalCollectiveRow *row = &g_array_index(rows, CalCollectiveRow, i);
        char what[96];
        g_snprintf(what, sizeof what, "%.0f bytes over %.0f", row->collective.bytes,
                   (double)row->collective.group.ranks);
        if (used(row))
            cal_residual_add(residuals, names[row->collective.op], what, row->seconds,
                             row->seconds * (1 + cal_collective_error(cluster, row)));
    }
    g_array_unref(rows);
    return true;
}

void cal_write_collectives(OrrJsonWriter *w, const char *key, const SpecCollectiveModel *model)
{
    orr_jw_begin(w, key, '{');
    for (int i = 0; i < spec_table_collective_model.count; i++) {
        const SpecField *field = &spec_table_collective_model.fields[i];
        if (field->type != SPEC_TYPE_DOUBLE)
            continue;
        double value = *(const double *)((const char *)model + field->offset);
        if (value != 0)
            orr_jw_number(w, field->key, value);
    }
    orr_jw_end(w, '}');
}
