/* calibrate/fit/fit_moves.c - the memory-bound block from timed kernels of each kind. */
#include "calibrate/fit/fit_moves.h"

#include <math.h>
#include <string.h>

#include "calibrate/fit/fit_kernels.h"
#include "calibrate/fit/minimize.h"
#include "costmodel/norms.h"
#include "spec/load.h"

#define ROBUST_FRAC        0.05
#define PRIOR              1e-4
#define ROUNDS             6
#define LIBRARY            "te_" /* the same by Transformer Engine */
#define BACKWARD           "_norm_backward"
#define NORM_MOVED         3 /* times its elements: read, read, written */
#define NORM_MOVED_FORWARD 2

/* Beginnings of kernels' names; the last that fits holds. */
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
    {"cast", COST_MEMORY_CAST}, /* with the transposed copy, or in both directions */
    {"cast_bf16", COST_MEMORY_ELEMENTWISE},
    {"cast_fp8", COST_MEMORY_ELEMENTWISE}, /* rows alone: reads and writes in one order */
    {"cast_fp8_both", COST_MEMORY_CAST},
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

/* Endings of sources whose kernels are a framework's own, a recipe that has them, and how the forward of its norms runs. */
static const struct {
    const char *source, *recipe;
    CostNormBlocks forward;
} frameworks[] = {{" pytorch", "llm-foundry", COST_NORM_ROW},
                  {" torch_compile", "torchtitan", COST_NORM_COMPILED}};

/* Which of them; their number where a library's kernel ran. */
static size_t framework_of(const OrrJson *node)
{
    size_t i = 0;
    while (i < G_N_ELEMENTS(frameworks) &&
           !g_str_has_suffix(orr_json_text_of(node, "source", ""), frameworks[i].source))
        i++;
    return i;
}

static double weight_rate(const OrrJson *node)
{
    static gsize loaded = 0;
    static double rates[G_N_ELEMENTS(frameworks) + 1]; /* the last one's is 0 */
    if (g_once_init_enter(&loaded)) {
        g_autofree SpecFramework *framework = g_new0(SpecFramework, 1);
        for (size_t i = 0; i < G_N_ELEMENTS(frameworks); i++)
            if (spec_load_framework(frameworks[i].recipe, framework, NULL))
                rates[i] = framework->kernels.norm_weight_elements_per_s;
        g_once_init_leave(&loaded, 1);
    }
    return rates[framework_of(node)];
}

bool cal_move_own_norm(const OrrJson *row)
{
    const char *kernel = orr_json_text_of(row, "kernel", "");
    return strcmp(orr_json_text_of(row, "source", ""), CAL_SWEEP_SOURCE) == 0 &&
           g_str_has_suffix(kernel, BACKWARD) && !g_str_has_prefix(kernel, LIBRARY);
}

bool cal_move_read(const OrrJson *node, CalMove *ret_move)
{
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return false;
    *ret_move = (CalMove){.kind = COST_MEMORY_COUNT,
                          .bytes = orr_json_number_of(node, "bytes", 0),
                          .measured_s = 1e-6 * orr_json_number_of(node, "time_us", 0)};
    const char *kernel = orr_json_text_of(node, "kernel", "");
    if (g_str_has_prefix(kernel, LIBRARY))
        kernel += strlen(LIBRARY);
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (g_str_has_prefix(kernel, kinds[i].name))
            ret_move->kind = kinds[i].move;
    const double rows = orr_json_number_of(node, "rows", 0), cols = orr_json_number_of(node, "cols", 0);
    if (ret_move->kind == COST_MEMORY_NORM && rows >= 1 && cols >= 1 && rows < 1e12 && cols < 1e12) {
        const size_t framework = framework_of(node);
        ret_move->backward = g_str_has_suffix(kernel, BACKWARD);
        ret_move->blocks =
            framework < G_N_ELEMENTS(frameworks) ? frameworks[framework].forward : COST_NORM_STREAMED;
        ret_move->rows = rows;
        ret_move->cols = cols;
        ret_move->weight_rate = weight_rate(node);
    }
    return ret_move->kind != COST_MEMORY_COUNT && ret_move->bytes > 0 && ret_move->bytes < 1e18 &&
           ret_move->measured_s > 0;
}

double cal_move_s(const SpecAccelerator *accelerator, const CalMove *move)
{
    const double elements = move->rows * move->cols,
                 streams_s = cost_memory_bound_s(accelerator, move->kind, move->bytes);
    if (elements <= 0)
        return streams_s;
    if (!move->backward) {
        const CostNormRows norm = {move->blocks, move->rows, move->cols,
                                   move->bytes / (NORM_MOVED_FORWARD * elements)};
        return cost_norm_rows_s(accelerator, &norm, move->bytes);
    }
    if (move->weight_rate <= 0)
        return cost_norm_backward_s(accelerator, move->rows, move->cols,
                                    move->bytes / (NORM_MOVED * elements));
    const CostNormRows columns = {move->blocks == COST_NORM_ROW ? COST_NORM_COLUMNS : COST_NORM_STREAMED,
                                  move->rows, move->cols, 0};
    const double read_s = cost_norm_rows_s(accelerator, &columns, move->bytes * 2 / NORM_MOVED),
                 added_s = cost_memory_bound_s(accelerator, move->kind, 0) +
                           elements / (fmax(1, accelerator->sm_count) * move->weight_rate);
    return streams_s + fmax(read_s, added_s);
}

static GArray *read_rows(const OrrJson *table, const char *accelerator, int *ret_own_norms)
{
    *ret_own_norms = 0;
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(CalMove));
    const OrrJson *list = orr_json_member(table, "memory_bound_measurements");
    for (const OrrJson *node = list != NULL ? orr_json_first(list) : NULL; node != NULL;
         node = orr_json_next(node)) {
        CalMove row;
        if (!cal_move_read(node, &row) || framework_of(node) < G_N_ELEMENTS(frameworks) ||
            strcmp(orr_json_text_of(node, "gpu", ""), accelerator) != 0)
            continue;
        if (cal_move_own_norm(node))
            (*ret_own_norms)++;
        else
            g_array_append_val(rows, row);
    }
    return rows;
}

static double error_of(const MoveFit *fit, guint i)
{
    const CalMove *row = &g_array_index(fit->rows, CalMove, i);
    return cal_move_s(fit->accelerator, row) / row->measured_s - 1;
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
    int own_norms = 0;
    GArray *rows = read_rows(table, accelerator_name, &own_norms);
    for (guint i = 0; i < rows->len; i++) {
        const CalMove *row = &g_array_index(rows, CalMove, i);
        char what[64];
        g_snprintf(what, sizeof what, "%.0f bytes", row->bytes);
        cal_residual_add(residuals, "memory bound", what, row->measured_s, cal_move_s(accelerator, row));
    }
    g_array_unref(rows);
}

int cal_fit_moves(const OrrJson *table, const char *accelerator_name, SpecAccelerator *accelerator,
                  GString *log)
{
    int own_norms = 0;
    MoveFit fit = {accelerator, read_rows(table, accelerator_name, &own_norms)};
    if (own_norms > 0 && log != NULL)
        g_string_append_printf(log,
                               "backward norms by the sweep's own kernel: %d rows, not fitted; "
                               "no framework runs it\n",
                               own_norms);
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
