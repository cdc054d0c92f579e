/* calibrate/fit/fit_interference.c - medians of the sweep's interference points, and the parameters that they are. */
#include "calibrate/fit/fit_interference.h"

#include <math.h>
#include <string.h>

#include "calibrate/fit/collective_rows.h"
#include "costmodel/collective.h"

#define PREFIX        "gemm_beside_"
#define GREATEST_FRAC 0.9

static const struct {
    const char *word;
    CostCollectiveOp op;
} collectives[] = {
    {"all_reduce", COST_ALL_REDUCE}, {"all_gather", COST_ALL_GATHER}, {"reduce_scatter", COST_REDUCE_SCATTER},
    {"alltoall", COST_ALL_TO_ALL},   {"send_recv", COST_SEND_RECV},   {"broadcast", COST_BROADCAST},
    {"reduce", COST_REDUCE}};

/* Which share counts for a collective: the cost model is asked with a mark in each. */
static const char *field_of(const SpecCluster *cluster, const char *op, double bytes, int gpus)
{
    g_autofree SpecCluster *marked = g_new(SpecCluster, 1);
    *marked = *cluster;
    SpecCollectiveModel *models[] = {&marked->collectives, &marked->accelerator.model.collectives};
    for (size_t i = 0; i < G_N_ELEMENTS(models); i++) {
        models[i]->ring_sm_frac = 0.25;
        models[i]->nvls_sm_frac = 0.5;
        models[i]->alltoall_sm_frac = 0.75;
        models[i]->net_sm_frac = 0;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(collectives); i++) {
        if (strcmp(collectives[i].word, op) != 0 || gpus < 2)
            continue;
        const CostCollective collective = {
            collectives[i].op, bytes, {.ranks = gpus, .per_domain = gpus, .nic_sharers = 1}};
        const double mark = cost_collective_sm_frac(marked, &collective);
        return mark > 0.7   ? "alltoall_sm_frac"
               : mark > 0.4 ? "nvls_sm_frac"
               : mark > 0.2 ? "ring_sm_frac"
                            : NULL;
    }
    return NULL;
}

typedef struct Series {
    GArray *compute, *other; /* double */
} Series;

static void add_row(CalInterferences *found, Series *series, const SpecCluster *cluster, const OrrJson *row)
{
    const char *op = orr_json_text_of(row, "op", "");
    const double slower = orr_json_number_of(row, "gemm_slowdown_frac", NAN),
                 other = orr_json_number_of(row, "other_slowdown_frac", NAN);
    if (!g_str_has_prefix(op, PREFIX) || !(slower > -0.5) || !(other > -0.5) || !isfinite(slower) ||
        !isfinite(other))
        return;
    op += strlen(PREFIX);
    const double gpus = orr_json_number_of(row, "gpus", NAN), bytes = orr_json_number_of(row, "bytes", NAN);
    const char *field = bytes > 0 && gpus >= 1 && gpus < 1e6 ? field_of(cluster, op, bytes, (int)gpus) : NULL;
    int i = 0;
    while (i < found->count && (strcmp(found->kind[i].op, op) != 0 || found->kind[i].field != field))
        i++;
    if (i == CAL_MAX_INTERFERENCE)
        return;
    if (i == found->count) {
        found->kind[i] = (CalInterference){.field = field};
        g_strlcpy(found->kind[i].op, op, sizeof found->kind[i].op);
        series[i] =
            (Series){g_array_new(FALSE, FALSE, sizeof(double)), g_array_new(FALSE, FALSE, sizeof(double))};
        found->count++;
    }
    const double lost = CLAMP(slower / (1 + slower), 0, GREATEST_FRAC), longer = MAX(other, 0);
    g_array_append_val(series[i].compute, lost);
    g_array_append_val(series[i].other, longer);
}

static double median(const GArray *values)
{
    return cal_abs_quantile((const double *)(const void *)values->data, (int)values->len, 0.5);
}

/* Kinds of one field share it: the mean, weighted by their rows. */
static void set_fields(const CalInterferences *found, SpecCollectiveModel *model)
{
    const struct {
        const char *name;
        double *value;
    } fields[] = {{"ring_sm_frac", &model->ring_sm_frac},
                  {"nvls_sm_frac", &model->nvls_sm_frac},
                  {"alltoall_sm_frac", &model->alltoall_sm_frac}};
    for (size_t f = 0; f < G_N_ELEMENTS(fields); f++) {
        double sum = 0;
        int rows = 0;
        for (int i = 0; i < found->count; i++)
            if (g_strcmp0(found->kind[i].field, fields[f].name) == 0) {
                sum += found->kind[i].rows * found->kind[i].compute_frac;
                rows += found->kind[i].rows;
            }
        if (rows > 0)
            *fields[f].value = round(1e4 * sum / rows) / 1e4;
    }
}

CalInterferences cal_fit_interference(const OrrJson *table, const SpecCluster *cluster,
                                      SpecCollectiveModel *model)
{
    CalInterferences found = {.count = 0};
    Series series[CAL_MAX_INTERFERENCE];
    const OrrJson *list = orr_json_member(table, "interference_measurements");
    for (const OrrJson *row = list != NULL ? orr_json_first(list) : NULL; row != NULL;
         row = orr_json_next(row))
        if (strcmp(orr_json_text_of(row, "gpu", ""), cluster->accelerator.name) == 0)
            add_row(&found, series, cluster, row);
    for (int i = 0; i < found.count; i++) {
        found.kind[i].rows = (int)series[i].compute->len;
        found.kind[i].compute_frac = median(series[i].compute);
        found.kind[i].slowdown_frac = median(series[i].other);
        g_array_unref(series[i].compute);
        g_array_unref(series[i].other);
    }
    set_fields(&found, model);
    return found;
}

void cal_interference_print(const CalInterferences *found, GString *log)
{
    for (int i = 0; i < found->count; i++) {
        const CalInterference *kind = &found->kind[i];
        g_string_append_printf(
            log, "a product beside %-14s loses %4.1f %%, the other takes %4.1f %% longer  (%d rows, %s)\n",
            kind->op, 100 * kind->compute_frac, 100 * kind->slowdown_frac, kind->rows,
            kind->field != NULL ? kind->field : "not simulated");
    }
}

void cal_interference_write(const CalInterferences *found, OrrJsonWriter *w)
{
    if (found->count == 0)
        return;
    orr_jw_begin(w, "interference", '[');
    for (int i = 0; i < found->count; i++) {
        const CalInterference *kind = &found->kind[i];
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "op", kind->op);
        orr_jw_int(w, "rows", kind->rows);
        orr_jw_number(w, "compute_loss_frac", kind->compute_frac);
        orr_jw_number(w, "other_slowdown_frac", kind->slowdown_frac);
        if (kind->field != NULL)
            orr_jw_text(w, "field", kind->field);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
}
