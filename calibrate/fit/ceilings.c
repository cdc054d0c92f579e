/* calibrate/fit/ceilings.c - best measured rates over the data sheet's. */
#include "calibrate/fit/ceilings.h"

#include <math.h>
#include <string.h>

#include "calibrate/fit/fit_kernels.h"

/* 2 per multiply-add; half of the scores where causal, the window's at most. */
static double attention_flops(const CostAttention *a)
{
    double keys = a->kv_tokens * (a->causal ? 0.5 : 1);
    if (a->window_tokens > 0)
        keys = fmin(keys, a->window_tokens);
    const double pairs = a->batch * a->heads * a->q_tokens * keys;
    return pairs *
           (a->backward ? 6 * a->qk_head_dim + 4 * a->v_head_dim : 2 * a->qk_head_dim + 2 * a->v_head_dim);
}

static void layers(const OrrJson *table, const SpecAccelerator *accelerator, CalCeilings *ceilings)
{
    const OrrJson *list = orr_json_member(table, "layer_measurements");
    const double peak = accelerator->peak_flops_per_s[SPEC_BF16];
    for (const OrrJson *row = list != NULL ? orr_json_first(list) : NULL; row != NULL;
         row = orr_json_next(row)) {
        const OrrJson *gpu = orr_json_type(row) == ORR_JSON_OBJECT ? orr_json_member(row, "gpu") : NULL;
        if (gpu == NULL || orr_json_type(gpu) != ORR_JSON_TEXT || peak <= 0 ||
            strcmp(orr_json_text(gpu), accelerator->name) != 0)
            continue;
        const double frac = 1e12 * orr_json_number_of(row, "tflops", 0) / peak,
                     time_us = orr_json_number_of(row, "time_us", 0);
        if (frac <= ceilings->layer_frac)
            continue;
        ceilings->layer_frac = frac;
        ceilings->layer_parts_frac = time_us > 0 ? orr_json_number_of(row, "parts_us", 0) / time_us : 0;
    }
}

CalCeilings cal_ceilings(const OrrJson *table, const GArray *rows, const SpecAccelerator *accelerator)
{
    CalCeilings ceilings = {{0}, 0, 0, 0, 0};
    for (guint i = 0; i < rows->len; i++) {
        const CalRow *row = &g_array_index(rows, CalRow, i);
        if (strcmp(row->accelerator, accelerator->name) != 0 || !cal_row_fitted(row))
            continue;
        if (row->kind == CAL_STREAM && accelerator->memory_bytes_per_s > 0)
            ceilings.stream_frac =
                MAX(ceilings.stream_frac, row->bytes_per_s / accelerator->memory_bytes_per_s);
        const double flops = row->kind == CAL_GEMM
                                 ? 2 * row->gemm.m * row->gemm.n * row->gemm.k * row->gemm.groups
                                 : attention_flops(&row->attention);
        const SpecDtype dtype = row->kind == CAL_GEMM ? row->gemm.dtype : row->attention.dtype;
        const double peak = row->kind == CAL_STREAM ? 0 : accelerator->peak_flops_per_s[dtype];
        const double frac = peak > 0 ? flops / row->measured_s / peak : 0;
        if (row->kind == CAL_GEMM)
            ceilings.gemm_frac[dtype] = MAX(ceilings.gemm_frac[dtype], frac);
        else if (row->kind == CAL_ATTENTION)
            ceilings.attention_frac = MAX(ceilings.attention_frac, frac);
    }
    layers(table, accelerator, &ceilings);
    return ceilings;
}

void cal_ceilings_print(const CalCeilings *c, GString *log)
{
    g_string_append(log, "best measured, of the data sheet:");
    for (int i = 0; i < SPEC_DTYPE_COUNT; i++)
        if (c->gemm_frac[i] > 0)
            g_string_append_printf(log, "  gemm %s %.1f %%", spec_word(&spec_words_dtype, i),
                                   100 * c->gemm_frac[i]);
    if (c->attention_frac > 0)
        g_string_append_printf(log, "  attention %.1f %%", 100 * c->attention_frac);
    if (c->stream_frac > 0)
        g_string_append_printf(log, "  memory %.1f %%", 100 * c->stream_frac);
    if (c->layer_frac > 0)
        g_string_append_printf(log, "  whole layer (MFU at most) %.1f %%, its parts alone take %.1f %% of it",
                               100 * c->layer_frac, 100 * c->layer_parts_frac);
    g_string_append_c(log, '\n');
}

static void write_one(OrrJsonWriter *w, const char *key, double frac)
{
    if (frac > 0)
        orr_jw_number(w, key, frac);
}

void cal_ceilings_write(const CalCeilings *c, OrrJsonWriter *w)
{
    orr_jw_begin(w, "ceilings", '{');
    for (int i = 0; i < SPEC_DTYPE_COUNT; i++) {
        g_autofree char *key = g_strdup_printf("gemm_%s_frac", spec_word(&spec_words_dtype, i));
        write_one(w, key, c->gemm_frac[i]);
    }
    write_one(w, "attention_frac", c->attention_frac);
    write_one(w, "memory_frac", c->stream_frac);
    write_one(w, "layer_mfu", c->layer_frac);
    write_one(w, "layer_parts_frac", c->layer_parts_frac);
    orr_jw_end(w, '}');
}
