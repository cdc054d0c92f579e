/* calibrate/fit/fit_moves.c - the memory-bound block from timed kernels of each kind. */
#include "calibrate/fit/fit_moves.h"

#include <math.h>
#include <string.h>

#include "calibrate/fit/fit_kernels.h"
#include "calibrate/fit/minimize.h"
#include "costmodel/memory_bound.h"

#define ROBUST_FRAC 0.05
#define PRIOR       1e-4
#define ROUNDS      6
#define LIBRARY     "te_" /* the same by Transformer Engine */

/* Beginnings of kernels' names. */
static const struct {
    const char *name;
    CostMemoryKernel move;
} kinds[] = {
    {"layer_norm", COST_MEMORY_NORM},
    {"rms_norm", COST_MEMORY_NORM},
    {"softmax", COST_MEMORY_SOFTMAX},
    {"cross_entropy", COST_MEMORY_CROSS_ENTROPY},
    {"permute", COST_MEMORY_PERMUTE},
    {"embedding", COST_MEMORY_PERMUTE},
    {"quantize", COST_MEMORY_CAST},
    {"cast", COST_MEMORY_CAST},
    {"adam", COST_MEMORY_OPTIMIZER},
    {"gelu", COST_MEMORY_ELEMENTWISE},
    {"swiglu", COST_MEMORY_ELEMENTWISE},
    {"dropout", COST_MEMORY_ELEMENTWISE},
    {"residual_add", COST_MEMORY_ELEMENTWISE},
    {"rope", COST_MEMORY_ELEMENTWISE},
    {"copy", COST_MEMORY_ELEMENTWISE},
    {"triad", COST_MEMORY_ELEMENTWISE},
};

typedef struct MoveFit {
    SpecAccelerator *accelerator;
    GArray *rows; /* CalMove */
} MoveFit;

bool cal_move_read(const OrrJson *node, CalMove *ret_move)
{
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return false;
    *ret_move = (CalMove){COST_MEMORY_COUNT, orr_json_number_of(node, "bytes", 0),
                          1e-6 * orr_json_number_of(node, "time_us", 0)};
    const char *kernel = orr_json_text_of(node, "kernel", "");
    if (g_str_has_prefix(kernel, LIBRARY))
        kernel += strlen(LIBRARY);
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (g_str_has_prefix(kernel, kinds[i].name))
            ret_move->kind = kinds[i].move;
    return ret_move->kind != COST_MEMORY_COUNT && ret_move->bytes > 0 && ret_move->bytes < 1e18 &&
           ret_move->measured_s > 0;
}

/* Kernels of a framework's own, beside a library's of the same kind: what they lose is the software's. */
static bool is_framework(const OrrJson *node)
{
    const char *source = orr_json_text_of(node, "source", "");
    return g_str_has_suffix(source, " pytorch") || g_str_has_suffix(source, " torch_compile");
}

static GArray *read_rows(const OrrJson *table, const char *accelerator)
{
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(CalMove));
    const OrrJson *list = orr_json_member(table, "memory_bound_measurements");
    for (const OrrJson *node = list != NULL ? orr_json_first(list) : NULL; node != NULL;
         node = orr_json_next(node)) {
        CalMove row;
        if (cal_move_read(node, &row) && !is_framework(node) &&
            strcmp(orr_json_text_of(node, "gpu", ""), accelerator) == 0)
            g_array_append_val(rows, row);
    }
    return rows;
}

static double error_of(const MoveFit *fit, guint i)
{
    const CalMove *row = &g_array_index(fit->rows, CalMove, i);
    return cost_memory_bound_s(fit->accelerator, row->kind, row->bytes) / row->measured_s - 1;
}

static double loss(void *context)
{
    const MoveFit *fit = context;
    double sum = 0;
    for (guint i = 0; i < fit->rows->len; i++) {
        const double error = log1p(error_of(fit, i)) / ROBUST_FRAC;
        sum += ROBUST_FRAC * (sqrt(1 + error * error) - 1) / fit->rows->len;
    }
    return sum;
}

void cal_move_residuals(const OrrJson *table, const char *accelerator_name, SpecAccelerator *accelerator,
                        GArray *residuals)
{
    GArray *rows = read_rows(table, accelerator_name);
    for (guint i = 0; i < rows->len; i++) {
        const CalMove *row = &g_array_index(rows, CalMove, i);
        char what[64];
        g_snprintf(what, sizeof what, "%.0f bytes", row->bytes);
        cal_residual_add(residuals, "memory bound", what, row->measured_s,
                         cost_memory_bound_s(accelerator, row->kind, row->bytes));
    }
    g_array_unref(rows);
}

int cal_fit_moves(const OrrJson *table, const char *accelerator_name, SpecAccelerator *accelerator)
{
    MoveFit fit = {accelerator, read_rows(table, accelerator_name)};
    SpecMemoryBoundModel *model = &accelerator->model.memory_bound;
    const int count = (int)fit.rows->len;
    if (count > 0) {
        if (model->elementwise_frac <= 0)
            *model = spec_memory_bound_model_default;
        double *const values[COST_MEMORY_COUNT] = {
            [COST_MEMORY_ELEMENTWISE] = &model->elementwise_frac,
            [COST_MEMORY_NORM] = &model->norm_frac,
            [COST_MEMORY_SOFTMAX] = &model->softmax_frac,
            [COST_MEMORY_CROSS_ENTROPY] = &model->cross_entropy_frac,
            [COST_MEMORY_PERMUTE] = &model->permute_frac,
            [COST_MEMORY_CAST] = &model->cast_frac,
            [COST_MEMORY_OPTIMIZER] = &model->optimizer_frac,
        };
        CalNumber numbers[COST_MEMORY_COUNT + 1] = {{.value = &model->latency_s, .min = 1e-7, .max = 1e-4}};
        int free_count = 1;
        bool seen[COST_MEMORY_COUNT] = {false};
        for (int i = 0; i < count; i++)
            seen[g_array_index(fit.rows, CalMove, i).kind] = true;
        for (int move = 0; move < COST_MEMORY_COUNT; move++)
            if (seen[move])
                numbers[free_count++] = (CalNumber){.value = values[move], .min = 0.01, .max = 1.2};
        cal_minimize(numbers, free_count, loss, &fit, PRIOR, ROUNDS);
        double bias;
        g_autofree double *errors = g_new(double, (gsize)count);
        for (int i = 0; i < count; i++)
            errors[i] = error_of(&fit, (guint)i);
        model->fit_rows = count;
        cal_error_summary(errors, count, &model->fit_median_frac, &model->fit_p90_frac, &bias);
    }
    g_array_unref(fit.rows);
    return count;
}
