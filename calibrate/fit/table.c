/* calibrate/fit/table.c - reading tables of measured kernels. */
#include "calibrate/fit/table.h"

#include <math.h>
#include <string.h>

typedef struct Reader {
    GArray *rows;
    GHashTable *skipped; /* reason -> count */
} Reader;

static bool flag_of(const OrrJson *row, const char *key)
{
    const OrrJson *node = orr_json_member(row, key);
    return node != NULL && orr_json_type(node) == ORR_JSON_BOOL && orr_json_bool(node);
}

static bool says_no(const OrrJson *row, const char *key)
{
    const OrrJson *node = orr_json_member(row, key);
    return node != NULL && orr_json_type(node) == ORR_JSON_BOOL && !orr_json_bool(node);
}

static void skip(Reader *reader, const char *reason)
{
    int count = GPOINTER_TO_INT(g_hash_table_lookup(reader->skipped, reason));
    g_hash_table_insert(reader->skipped, (gpointer)reason, GINT_TO_POINTER(count + 1));
}

static bool dtype_of(const char *word, SpecDtype *ret_dtype)
{
    static const struct {
        const char *word;
        SpecDtype dtype;
    } words[] = {{"bf16", SPEC_BF16}, {"fp16", SPEC_FP16}, {"fp8", SPEC_FP8},   {"fp4", SPEC_FP4},
                 {"nvfp4", SPEC_FP4}, {"tf32", SPEC_TF32}, {"fp32", SPEC_FP32}, {"", SPEC_BF16}};
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        if (strcmp(words[i].word, word) == 0) {
            *ret_dtype = words[i].dtype;
            return true;
        }
    return false;
}

/* What a kernel can be: no size below 1, an end to its FLOPs and its time. */
static bool is_kernel(const double *sizes, size_t count, double flops, double seconds)
{
    for (size_t i = 0; i < count; i++)
        if (!(sizes[i] >= 1))
            return false;
    return flops < 1e24 && seconds > 0 && seconds <= 86400;
}

static bool is_gemm(const CostGemm *gemm, double seconds)
{
    const double sizes[] = {gemm->m, gemm->n, gemm->k, gemm->groups};
    return is_kernel(sizes, G_N_ELEMENTS(sizes), 2 * gemm->m * gemm->n * gemm->k * gemm->groups, seconds);
}

/* Of products in 8 and 4 bits, which have one layout, "pass" says it; else the layout does. */
static CostLayout layout_of(const OrrJson *node)
{
    const char *layout = orr_json_text_of(node, "layout", ""), *pass = orr_json_text_of(node, "pass", "");
    if (strcmp(layout, "NN") == 0 || strcmp(pass, "input") == 0)
        return COST_LAYOUT_BACKWARD_INPUT;
    return strcmp(layout, "NT") == 0 || strcmp(pass, "weight") == 0 ? COST_LAYOUT_BACKWARD_WEIGHT
                                                                    : COST_LAYOUT_FORWARD;
}

/* mxfp8 is what Blackwell trains with in 8 bits. Scales of 128 are another kernel on Hopper, which no parameter describes. */
static const char *gemm_dtype(const char *word, SpecDtype *ret_dtype)
{
    if (strcmp(word, "fp8-block") == 0)
        return "products with scales of 128 numbers, where the model times those with one scale";
    return dtype_of(strcmp(word, "mxfp8") == 0 ? "fp8" : word, ret_dtype) ? NULL : "GEMM of an unknown dtype";
}

static const char *read_gemm(const OrrJson *node, CalRow *row)
{
    row->gemm = (CostGemm){.m = orr_json_number_of(node, "m", 0),
                           .n = orr_json_number_of(node, "n", 0),
                           .k = orr_json_number_of(node, "k", 0),
                           .groups = orr_json_number_of(node, "batch", 1),
                           .layout = layout_of(node),
                           .accumulate = flag_of(node, "accumulate")};
    row->gemm.accumulate_fp32 =
        row->gemm.accumulate && strcmp(orr_json_text_of(node, "out", ""), "fp32") == 0;
    const char *unusable = gemm_dtype(orr_json_text_of(node, "dtype", ""), &row->gemm.dtype);
    if (unusable != NULL)
        return unusable;
    double flops = 2 * row->gemm.m * row->gemm.n * row->gemm.k * row->gemm.groups;
    double tflops = orr_json_number_of(node, "tflops", 0);
    row->measured_s = orr_json_number_of(node, "time_us", tflops > 0 ? flops / tflops * 1e-6 : 0) * 1e-6;
    return is_gemm(&row->gemm, row->measured_s) ? NULL : "GEMM without sizes or time";
}

/* Experts' weight gradients are added to fp32 unless the row says otherwise: [SimuMax]'s of few tokens take what moving 8
 * bytes an output takes (256 experts of 4096 x 7168 and 128 tokens: 60 GB in 11.0 ms), four times what 2 would. */
static const char *read_grouped(const OrrJson *node, CalRow *row)
{
    const char *stage = orr_json_text_of(node, "stage", "");
    bool weight = strcmp(stage, "bwd_grad_w") == 0;
    row->gemm = (CostGemm){.m = orr_json_number_of(node, "m_per_group", 0),
                           .n = orr_json_number_of(node, "n", 0),
                           .k = orr_json_number_of(node, "k", 0),
                           .groups = orr_json_number_of(node, "groups", 0),
                           .grouped = true,
                           .accumulate_fp32 = weight && !says_no(node, "accumulate"),
                           .layout = weight                               ? COST_LAYOUT_BACKWARD_WEIGHT
                                     : strcmp(stage, "bwd_grad_act") == 0 ? COST_LAYOUT_BACKWARD_INPUT
                                                                          : COST_LAYOUT_FORWARD};
    row->sum_unsaid = weight && orr_json_member(node, "accumulate") == NULL;
    if (strcmp(orr_json_text_of(node, "calls", ""), "one") ==
        0) /* no launch an expert: other parameters than the model's */
        return "experts in one call, where the model launches each; compare with those of \"calls\": "
               "\"each\"";
    if (!dtype_of(orr_json_text_of(node, "dtype", ""), &row->gemm.dtype))
        return "grouped GEMM of an unknown dtype";
    CostGemm *gemm = &row->gemm;
    double flops = 2 * gemm->m * gemm->n * gemm->k * gemm->groups;
    double tflops = orr_json_number_of(node, "tflops", 0);
    if (weight) { /* the rows list the forward's sizes: the weight's gradient sums over the tokens */
        double tokens = gemm->m;
        gemm->m = gemm->n;
        gemm->n = gemm->k;
        gemm->k = tokens;
    } else if (gemm->layout == COST_LAYOUT_BACKWARD_INPUT) {
        double n = gemm->n;
        gemm->n = gemm->k;
        gemm->k = n;
    }
    row->measured_s = tflops > 0 ? flops / tflops * 1e-12 : 0;
    return is_gemm(gemm, row->measured_s) ? NULL : "grouped GEMM without sizes or rate";
}

/* Which of the model's kernels a measured one is. Serving engines pick by generation: SGLang runs FlashInfer
 * (FlashAttention 2) on Ampere and FlashAttention 3 on Hopper; TensorRT-LLM's kernels are cuDNN's kin. */
static bool kernel_of(const char *name, const char *accelerator, SpecAttention *ret_kernel)
{
    bool ampere = g_str_has_prefix(accelerator, "a100");
    if (strcmp(name, "FA2") == 0)
        *ret_kernel = SPEC_ATTENTION_FLASH2;
    else if (strcmp(name, "FA3") == 0)
        *ret_kernel = SPEC_ATTENTION_FLASH3;
    else if (strcmp(name, "cuDNN") == 0 || g_str_has_prefix(name, "trtllm"))
        *ret_kernel = SPEC_ATTENTION_CUDNN;
    else if (g_str_has_prefix(name, "sglang"))
        *ret_kernel = ampere ? SPEC_ATTENTION_FLASH2 : SPEC_ATTENTION_FLASH3;
    else if (g_str_has_prefix(name, "SDPA/FA"))
        *ret_kernel = ampere ? SPEC_ATTENTION_FLASH2 : SPEC_ATTENTION_CUDNN;
    else
        return false;
    return true;
}

static const char *read_attention(const OrrJson *node, CalRow *row)
{
    bool serving = strcmp(row->source, "aic-attn") == 0,
         counts_full = orr_json_member(node, "tflops_simumax") != NULL;
    const char *pass = orr_json_text_of(node, "pass", "");
    CostAttention *attention = &row->attention;
    *attention = (CostAttention){.batch = orr_json_number_of(node, "batch", 0),
                                 .q_tokens = orr_json_number_of(node, "seq", 0),
                                 .kv_tokens = orr_json_number_of(node, "seq", 0),
                                 .heads = orr_json_number_of(node, "heads", 0),
                                 .qk_head_dim = orr_json_number_of(node, "head_dim", 0),
                                 .causal = serving || counts_full || flag_of(node, "causal"),
                                 .window_tokens = orr_json_number_of(node, "window", 0),
                                 .backward = strcmp(pass, "bwd") == 0};
    attention->kv_heads = orr_json_number_of(node, "kv_heads", attention->heads);
    attention->v_head_dim = orr_json_number_of(node, "v_dim", attention->qk_head_dim);
    if (!attention->backward && strcmp(pass, "fwd") != 0)
        return "attention, forward and backward together or not said";
    const OrrJson *mask = orr_json_member(node, "causal");
    if (!serving && !counts_full && (mask == NULL || orr_json_type(mask) != ORR_JSON_BOOL))
        return "attention that does not say whether it is causal";
    if (!kernel_of(orr_json_text_of(node, "kernel", ""), row->accelerator, &attention->kernel))
        return "attention by a kernel that is not modelled";
    const char *dtype = orr_json_text_of(node, "dtype", "");
    attention->block_scaled = strcmp(dtype, "mxfp8") == 0;
    if (!dtype_of(attention->block_scaled ? "fp8" : dtype, &attention->dtype))
        return "attention of an unknown dtype";
    double flops = 2 * attention->batch * attention->heads * attention->q_tokens * attention->kv_tokens *
                   (attention->qk_head_dim + attention->v_head_dim) * (attention->backward ? 2.5 : 1) *
                   (attention->causal && !counts_full ? 0.5 : 1);
    double tflops = orr_json_number_of(node, counts_full ? "tflops_simumax" : "tflops", 0);
    row->measured_s = orr_json_number_of(node, "time_us", tflops > 0 ? flops / tflops * 1e-6 : 0) * 1e-6;
    if (attention->window_tokens > 0 && orr_json_number_of(node, "time_us", 0) <= 0)
        return "attention over a window without its time: what tflops counts there is not agreed on";
    const double sizes[] = {attention->batch,    attention->heads,       attention->kv_heads,
                            attention->q_tokens, attention->qk_head_dim, attention->v_head_dim};
    return is_kernel(sizes, G_N_ELEMENTS(sizes), flops, row->measured_s) ? NULL
                                                                         : "attention without sizes or time";
}

static const char *read_stream(const OrrJson *node, CalRow *row)
{
    row->bytes_per_s = orr_json_number_of(node, "tbps", 0) * 1e12;
    row->measured_s = CAL_STREAM_BYTES / fmax(1, row->bytes_per_s);
    return row->bytes_per_s > 0 && row->bytes_per_s < 1e16 ? NULL : "stream without a rate";
}

static void read_section(Reader *reader, const OrrJson *root, const char *key, CalKind kind,
                         const char *(*read)(const OrrJson *, CalRow *))
{
    const OrrJson *list = orr_json_member(root, key);
    if (list == NULL || orr_json_type(list) != ORR_JSON_LIST)
        return;
    for (const OrrJson *node = orr_json_first(list); node != NULL; node = orr_json_next(node)) {
        CalRow row = {.kind = kind};
        if (orr_json_type(node) != ORR_JSON_OBJECT) {
            skip(reader, "not an object");
            continue;
        }
        g_strlcpy(row.accelerator, orr_json_text_of(node, "gpu", ""), sizeof row.accelerator);
        g_strlcpy(row.source, orr_json_text_of(node, "source", ""), sizeof row.source);
        const char *reason = row.accelerator[0] == '\0' ? "no \"gpu\"" : read(node, &row);
        if (reason != NULL)
            skip(reader, reason);
        else
            g_array_append_val(reader->rows, row);
    }
}

static bool same_product(const CalRow *a, const CalRow *b)
{
    return a->sum_unsaid && b->sum_unsaid && a->gemm.dtype == b->gemm.dtype && a->gemm.m == b->gemm.m &&
           a->gemm.n == b->gemm.n && a->gemm.k == b->gemm.k && a->gemm.groups == b->gemm.groups &&
           strcmp(a->accelerator, b->accelerator) == 0 && strcmp(a->source, b->source) == 0;
}

/* [SimuMax] times weight gradients added to fp32 and again added to bf16, and a table may keep both under the same
 * sizes. Of two such rows the shorter moves half of the bytes. */
static void tell_sums(GArray *rows)
{
    for (guint i = 0; i < rows->len; i++) {
        CalRow *row = &g_array_index(rows, CalRow, i);
        for (guint j = 0; row->sum_unsaid && j < rows->len; j++) {
            const CalRow *other = &g_array_index(rows, CalRow, j);
            if (same_product(row, other) && other->measured_s > row->measured_s) {
                row->gemm.accumulate_fp32 = false;
                row->gemm.accumulate = true;
            }
        }
    }
}

static int by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(a, b);
}

GArray *cal_table_rows(const OrrJson *root, GString *log)
{
    Reader reader = {g_array_new(FALSE, TRUE, sizeof(CalRow)), g_hash_table_new(g_str_hash, g_str_equal)};
    read_section(&reader, root, "gemm_measurements", CAL_GEMM, read_gemm);
    read_section(&reader, root, "grouped_gemm_measurements", CAL_GEMM, read_grouped);
    read_section(&reader, root, "attention_measurements", CAL_ATTENTION, read_attention);
    read_section(&reader, root, "hbm_stream", CAL_STREAM, read_stream);
    tell_sums(reader.rows);
    GList *reasons = g_list_sort(g_hash_table_get_keys(reader.skipped), by_text);
    for (GList *item = reasons; item != NULL && log != NULL; item = item->next)
        g_string_append_printf(log, "skipped %d rows: %s\n",
                               GPOINTER_TO_INT(g_hash_table_lookup(reader.skipped, item->data)),
                               (const char *)item->data);
    g_list_free(reasons);
    g_hash_table_unref(reader.skipped);
    return reader.rows;
}

bool cal_table_no_row(const char *path, const char *accelerator, const GString *skipped, GError **error)
{
    const char *end = strchr(skipped->str, '\n');
    if (end != NULL)
        return orr_fail(error, ORR_ERROR_INPUT, "%s: no row to use (%.*s); correct its values", path,
                        (int)(end - skipped->str), skipped->str);
    return orr_fail(error, ORR_ERROR_INPUT,
                    "%s: no row to use%s%s; give gemm_measurements, attention_measurements, hbm_stream, "
                    "memory_bound_measurements or collective_measurements",
                    path, accelerator != NULL ? " of " : "", accelerator != NULL ? accelerator : "");
}

bool cal_table_read(const char *path, GArray **ret_rows, GString *log, GError **error)
{
    return cal_table_read_as(path, NULL, ret_rows, log, error);
}

bool cal_table_read_as(const char *path, const char *accelerator, GArray **ret_rows, GString *log,
                       GError **error)
{
    OrrJsonDoc *doc = NULL;
    if (!cal_recorded_open(path, accelerator, &doc, NULL, error))
        return false;
    g_autoptr(GString) skipped = g_string_new(NULL);
    cal_recorded_left_out(orr_json_root(doc), skipped);
    GArray *rows = cal_table_rows(orr_json_root(doc), skipped);
    orr_json_free(doc);
    if (rows->len == 0) {
        g_array_unref(rows);
        return cal_table_no_row(path, NULL, skipped, error);
    }
    if (log != NULL)
        g_string_append(log, skipped->str);
    *ret_rows = rows;
    return true;
}
