/* calibrate/fit/held_out.c - see held_out.h. */
#include "calibrate/fit/held_out.h"

#include <math.h>
#include <string.h>

#include "calibrate/fit/fit_kernels.h"
#include "calibrate/fit/fit_moves.h"
#include "costmodel/norms.h"

#define LAYER_NORM "rms_norm_backward"

/* The same for every round of a shape: sizes and what is done, not the source and not the time. */
static guint shape_hash(const CalRow *row)
{
    char text[256];
    const CostGemm *g = &row->gemm;
    const CostAttention *a = &row->attention;
    if (row->kind == CAL_GEMM)
        g_snprintf(text, sizeof text, "g %d %d %d %.0f %.0f %.0f %.0f", cal_row_block(row), (int)g->layout,
                   (int)g->grouped, g->m, g->n, g->k, g->groups);
    else
        g_snprintf(text, sizeof text, "a %d %d %d %.0f %.0f %.0f %.0f %.0f", cal_row_block(row),
                   (int)a->backward, (int)a->causal, a->batch, a->q_tokens, a->heads, a->kv_heads,
                   a->qk_head_dim);
    guint h = g_str_hash(text);
    h = (h ^ h >> 16) *
        0x85ebca6bu; /* sizes that differ in a digit have hashes that do: mixed as MurmurHash3 ends */
    return h ^ h >> 13;
}

static bool is_kept(const CalRow *row)
{
    return row->kind != CAL_STREAM && shape_hash(row) % CAL_HELD_OUT == 0;
}

static void block_name(const CalRow *row, char *ret_name, size_t size)
{
    if (row->kind == CAL_GEMM)
        g_snprintf(ret_name, size, "gemm %s", spec_word(&spec_words_dtype, cal_row_block(row)));
    else
        g_snprintf(ret_name, size, "attention %s", spec_word(&spec_words_attention, cal_row_block(row)));
}

/* All rows of the first row's block that is not said yet; their errors. */
static void say_block(CalProfile *fitted, const GPtrArray *kept, guint first, GHashTable *said, GString *log)
{
    char name[64], other[64];
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));
    g_autoptr(GHashTable) shapes = g_hash_table_new(NULL, NULL);
    block_name(g_ptr_array_index(kept, first), name, sizeof name);
    if (!g_hash_table_add(said, g_strdup(name)))
        return;
    for (guint i = first; i < kept->len; i++) {
        const CalRow *row = g_ptr_array_index(kept, i);
        block_name(row, other, sizeof other);
        if (strcmp(name, other) != 0)
            continue;
        const double error = cal_row_error(fitted, row);
        g_array_append_val(errors, error);
        g_hash_table_add(shapes, GUINT_TO_POINTER(shape_hash(row)));
    }
    double median, p90, bias;
    cal_error_summary((double *)(void *)errors->data, (int)errors->len, &median, &p90, &bias);
    g_string_append_printf(
        log,
        "%-20s %-16s %4u shapes that a fit has not seen  median %5.1f %%  p90 %5.1f %%  bias "
        "%+5.1f %%\n",
        fitted->name, name, g_hash_table_size(shapes), 100 * median, 100 * p90, 100 * bias);
}

void cal_held_out(const CalProfile *profile, const GPtrArray *rows, const CalProfile *donor, GString *log)
{
    g_autoptr(GPtrArray) seen = g_ptr_array_new(), kept = g_ptr_array_new();
    g_autoptr(GHashTable) said = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < rows->len; i++)
        g_ptr_array_add(is_kept(g_ptr_array_index(rows, i)) ? kept : seen, g_ptr_array_index(rows, i));
    if (kept->len < CAL_HELD_OUT || seen->len < 2 * kept->len)
        return;
    g_autofree CalProfile *fitted = g_new(CalProfile, 1);
    *fitted = donor != NULL ? *donor : *profile;
    fitted->untold = NULL;
    cal_fit_profile(fitted, seen, donor);
    for (guint i = 0; i < kept->len; i++)
        say_block(fitted, kept, i, said, log);
}

/* --- a layer --- */

typedef struct Layer {
    double batch, seq, heads, kv_heads, head_dim, hidden, ffn;
} Layer;

/* Forward, the input's gradient, the weight's added in fp32. */
static double product_s(const SpecAccelerator *accelerator, double tokens, double out, double in)
{
    const CostGemm ways[] = {
        {.m = tokens, .n = out, .k = in, .groups = 1, .dtype = SPEC_BF16, .layout = COST_LAYOUT_FORWARD},
        {.m = tokens,
         .n = in,
         .k = out,
         .groups = 1,
         .dtype = SPEC_BF16,
         .layout = COST_LAYOUT_BACKWARD_INPUT},
        {.m = out,
         .n = in,
         .k = tokens,
         .groups = 1,
         .dtype = SPEC_BF16,
         .layout = COST_LAYOUT_BACKWARD_WEIGHT,
         .accumulate_fp32 = true}};
    double sum = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(ways); i++)
        sum += cost_gemm_s(accelerator, &ways[i]);
    return sum;
}

/* Seconds of the backward of a norm in the layer, which is the sweep's own kernel, and no framework's: that of the measured
 * row nearest in tokens and width, by elements. Without one, what reads both once. */
static double norm_backward_s(const OrrJson *table, const SpecAccelerator *accelerator, double tokens,
                              double hidden)
{
    const OrrJson *list = orr_json_member(table, "memory_bound_measurements");
    double nearest = INFINITY, seconds = 0;
    for (const OrrJson *node = list != NULL ? orr_json_first(list) : NULL; node != NULL;
         node = orr_json_next(node)) {
        CalMove row;
        if (!cal_move_own_norm(node) || strcmp(orr_json_text_of(node, "kernel", ""), LAYER_NORM) != 0 ||
            strcmp(orr_json_text_of(node, "gpu", ""), accelerator->name) != 0 || !cal_move_read(node, &row) ||
            row.rows <= 0)
            continue;
        const double apart = hypot(log(row.rows / tokens), log(row.cols / hidden));
        if (apart < nearest) {
            nearest = apart;
            seconds = row.measured_s * tokens * hidden / (row.rows * row.cols);
        }
    }
    return seconds > 0 ? seconds : cost_norm_backward_s(accelerator, tokens, hidden, 2);
}

/* Two sums and their gradients' two, SwiGLU, the forward of two norms; bytes of 2 an element, as kernels/layer.cu moves
 * them. */
static double moves_s(const SpecAccelerator *accelerator, double elements, double ffn_elements)
{
    return 2 * cost_memory_bound_s(accelerator, COST_MEMORY_NORM, 4 * elements) +
           4 * cost_memory_bound_s(accelerator, COST_MEMORY_ELEMENTWISE, 6 * elements) +
           cost_memory_bound_s(accelerator, COST_MEMORY_ELEMENTWISE, 6 * ffn_elements) +
           cost_memory_bound_s(accelerator, COST_MEMORY_ELEMENTWISE, 10 * ffn_elements);
}

static double layer_s(const OrrJson *table, const SpecAccelerator *accelerator, const Layer *l,
                      double *ret_attention_s)
{
    const double tokens = l->batch * l->seq;
    CostAttention attention = {.batch = l->batch,
                               .q_tokens = l->seq,
                               .kv_tokens = l->seq,
                               .heads = l->heads,
                               .kv_heads = l->kv_heads,
                               .qk_head_dim = l->head_dim,
                               .v_head_dim = l->head_dim,
                               .causal = true,
                               .kernel = SPEC_ATTENTION_CUDNN,
                               .dtype = SPEC_BF16};
    *ret_attention_s = cost_attention_s(accelerator, &attention);
    attention.backward = true;
    *ret_attention_s += cost_attention_s(accelerator, &attention);
    return *ret_attention_s +
           product_s(accelerator, tokens, (l->heads + 2 * l->kv_heads) * l->head_dim, l->hidden) +
           product_s(accelerator, tokens, l->hidden, l->heads * l->head_dim) +
           product_s(accelerator, tokens, 2 * l->ffn, l->hidden) +
           product_s(accelerator, tokens, l->hidden, l->ffn) +
           moves_s(accelerator, tokens * l->hidden, tokens * l->ffn) +
           2 * norm_backward_s(table, accelerator, tokens, l->hidden);
}

/* Seconds of the sweep's own attention both ways at a layer's sizes; 0: it was not measured there. */
static double own_attention_s(const OrrJson *table, const Layer *l)
{
    double seconds[2] = {0, 0};
    const OrrJson *list = orr_json_member(table, "attention_measurements");
    for (const OrrJson *row = list != NULL ? orr_json_first(list) : NULL; row != NULL;
         row = orr_json_next(row)) {
        const bool same = strcmp(orr_json_text_of(row, "kernel", ""), "orrery-flash") == 0 &&
                          orr_json_number_of(row, "seq", 0) == l->seq &&
                          orr_json_number_of(row, "head_dim", 0) == l->head_dim;
        const double heads = orr_json_number_of(row, "heads", 0) * orr_json_number_of(row, "batch", 0);
        if (same && heads > 0) /* the time goes with the heads */
            seconds[strcmp(orr_json_text_of(row, "pass", ""), "bwd") == 0] =
                1e-6 * orr_json_number_of(row, "time_us", 0) * l->heads * l->batch / heads;
    }
    return seconds[0] > 0 && seconds[1] > 0 ? seconds[0] + seconds[1] : 0;
}

void cal_layers_beside(const OrrJson *table, const SpecAccelerator *accelerator, GString *log)
{
    const OrrJson *list = orr_json_member(table, "layer_measurements");
    for (const OrrJson *row = list != NULL ? orr_json_first(list) : NULL; row != NULL;
         row = orr_json_next(row)) {
        const Layer l = {orr_json_number_of(row, "batch", 0),     orr_json_number_of(row, "seq", 0),
                         orr_json_number_of(row, "heads", 0),     orr_json_number_of(row, "kv_heads", 0),
                         orr_json_number_of(row, "head_dim", 0),  orr_json_number_of(row, "hidden", 0),
                         orr_json_number_of(row, "ffn_hidden", 0)};
        const double measured_s = 1e-6 * orr_json_number_of(row, "time_us", 0);
        if (strcmp(orr_json_text_of(row, "gpu", ""), accelerator->name) != 0 || !(measured_s > 0) ||
            !(l.batch >= 1 && l.seq >= 1 && l.heads >= 1 && l.kv_heads >= 1 && l.head_dim >= 1 &&
              l.hidden >= 1 && l.ffn >= 1))
            continue;
        double attention_s = 0;
        const bool library = strcmp(orr_json_text_of(row, "attention", ""), "cuDNN") == 0;
        const double model_s = layer_s(table, accelerator, &l, &attention_s),
                     own_s = library ? 0 : own_attention_s(table, &l),
                     predicted_s = own_s > 0 ? model_s - attention_s + own_s : model_s;
        g_string_append_printf(
            log,
            "layer of %.0f x %.0f tokens, hidden %.0f: %.3f ms predicted, %.3f ms measured (%+.1f "
            "%%); attention %s\n",
            l.batch, l.seq, l.hidden, 1e3 * predicted_s, 1e3 * measured_s,
            100 * (predicted_s / measured_s - 1),
            own_s > 0 ? "as the sweep's own kernel took, which is a floor" : "as cuDNN's model has it");
    }
}
