/* calibrate/fit_collectives.c - fits the inside half of the collective model to measured rows.
 *
 * Levenberg-Marquardt on log(predicted / measured) over the logarithms of the parameters, with a soft-L1 loss (a row
 * off by more than LOSS_SCALE counts by its size, not its square) and a weak pull towards neutral starting values, so
 * that a parameter without rows stays where it started. Group sizes share one set of parameters.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "calibrate/collective_rows.h"
#include "calibrate/collectives.h"
#include "spec/fields.h"
#include "spec/load.h"

#define LOSS_SCALE  0.05
#define PRIOR       0.03
#define ITERATIONS  80
#define MAX_FREE    24
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
    int free[MAX_FREE], count; /* into unknowns[] */
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
    return !row->across && !row->launch_bound;
}

static void apply(Fit *fit, const double *logs)
{
    for (int j = 0; j < fit->count; j++)
        *unknown(model_of(fit), fit->free[j]) = exp(logs[j]);
}

/* Residuals log(predicted / measured) of the used rows; returns how many. */
static int residuals(Fit *fit, const double *logs, double *out)
{
    int n = 0;
    apply(fit, logs);
    for (guint i = 0; i < fit->rows->len; i++) {
        const CalCollectiveRow *row = &g_array_index(fit->rows, CalCollectiveRow, i);
        if (used(row))
            out[n++] = log(1 + cal_collective_error(&fit->cluster, row));
    }
    return n;
}

static double loss(const Fit *fit, const double *residual, int n, const double *logs)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += 2 * LOSS_SCALE * LOSS_SCALE * (sqrt(1 + pow(residual[i] / LOSS_SCALE, 2)) - 1);
    for (int j = 0; j < fit->count; j++)
        sum += pow(PRIOR * (logs[j] - log(unknowns[fit->free[j]].start)), 2);
    return sum;
}

/* Solves the symmetric positive system a x = b in place by Gaussian elimination. */
static void solve(int n, double a[MAX_FREE][MAX_FREE], double *b)
{
    for (int i = 0; i < n; i++)
        for (int r = i + 1; r < n; r++) {
            double factor = a[r][i] / a[i][i];
            for (int c = i; c < n; c++)
                a[r][c] -= factor * a[i][c];
            b[r] -= factor * b[i];
        }
    for (int i = n - 1; i >= 0; i--) {
        for (int c = i + 1; c < n; c++)
            b[i] -= a[i][c] * b[c];
        b[i] /= a[i][i];
    }
}

typedef struct Normal {
    double matrix[MAX_FREE][MAX_FREE], gradient[MAX_FREE];
} Normal;

/* Normal equations at `logs`, rows weighted by the derivative of the soft-L1 loss. */
static void normal_equations(Fit *fit, const double *logs, const double *residual, int n, double *scratch,
                             Normal *out)
{
    const double step = 1e-5;
    double moved[MAX_FREE];
    memset(out, 0, sizeof *out);
    memcpy(moved, logs, sizeof moved);
    for (int j = 0; j < fit->count; j++) {
        moved[j] += step;
        residuals(fit, moved, scratch + (size_t)j * (size_t)n);
        moved[j] = logs[j];
        for (int i = 0; i < n; i++)
            scratch[j * n + i] = (scratch[j * n + i] - residual[i]) / step;
    }
    for (int j = 0; j < fit->count; j++) {
        for (int i = 0; i < n; i++) {
            double weight = 1 / sqrt(1 + pow(residual[i] / LOSS_SCALE, 2));
            out->gradient[j] += weight * scratch[j * n + i] * residual[i];
            for (int l = 0; l <= j; l++)
                out->matrix[j][l] += weight * scratch[j * n + i] * scratch[l * n + i];
        }
        out->gradient[j] += PRIOR * PRIOR * (logs[j] - log(unknowns[fit->free[j]].start));
        out->matrix[j][j] += PRIOR * PRIOR;
        for (int l = 0; l < j; l++)
            out->matrix[l][j] = out->matrix[j][l];
    }
}

static double minimise(Fit *fit, int n)
{
    double logs[MAX_FREE] = {0}, trial[MAX_FREE], damping = 1e-2;
    double *residual = g_new(double, (gsize)n), *tried = g_new(double, (gsize)n);
    double *scratch = g_new(double, (size_t)n *(size_t)MAX(fit->count, 1));
    for (int j = 0; j < fit->count; j++)
        logs[j] = log(unknowns[fit->free[j]].start);
    residuals(fit, logs, residual);
    double best = loss(fit, residual, n, logs);
    for (int round = 0; round < ITERATIONS && damping < 1e8; round++) {
        Normal normal;
        normal_equations(fit, logs, residual, n, scratch, &normal);
        for (int j = 0; j < fit->count; j++)
            normal.matrix[j][j] *= 1 + damping;
        solve(fit->count, normal.matrix, normal.gradient);
        for (int j = 0; j < fit->count; j++)
            trial[j] = logs[j] - CLAMP(normal.gradient[j], -1, 1);
        residuals(fit, trial, tried);
        double now = loss(fit, tried, n, trial);
        if (now < best) {
            best = now;
            memcpy(logs, trial, sizeof logs);
            memcpy(residual, tried, (size_t)n * sizeof *residual);
            damping = MAX(damping / 5, 1e-9);
        } else {
            damping *= 4;
        }
    }
    apply(fit, logs);
    g_free(residual);
    g_free(tried);
    g_free(scratch);
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
        if (used(row) && !row->no_nvls && row->collective.op == COST_ALL_REDUCE && m->nvls_channels > 0 &&
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
