/* calibrate/measure/sweep_rows.c - a measured point as the row of a table that `orrery calibrate fit` and `check` read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/stats.h"
#include "calibrate/measure/sweep.h"

#define SOURCE "orrery-calibrate"

/* --- statistics --- */

/* `values` is sorted in place. */
static double quantile(double *values, int count, double q)
{
    orr_stats_sort(values, (size_t)count);
    return orr_stats_quantile(values, (size_t)count, q);
}

CalSummary cal_summarise(const double *seconds, int count)
{
    CalSummary summary = {0};
    if (count <= 0)
        return summary;
    g_autofree double *values = g_new(double, (gsize)count);
    memcpy(values, seconds, sizeof *values * (size_t)count);
    const double median = quantile(values, count, 0.5);
    summary.median_s = median;
    summary.spread_frac = (quantile(values, count, 0.75) - quantile(values, count, 0.25)) / median;
    for (int i = 0; i < count; i++)
        values[i] = fabs(seconds[i] - median);
    const double deviation = 1.4826 * quantile(values, count, 0.5); /* a standard deviation, if normal */
    for (int i = 0; i < count; i++)
        summary.outliers += fabs(seconds[i] - median) > 5 * fmax(deviation, 1e-3 * median);
    const int quarter = count / 4;
    if (quarter >= 2) {
        memcpy(values, seconds, sizeof *values * (size_t)quarter);
        const double first = quantile(values, quarter, 0.5);
        memcpy(values, seconds + count - quarter, sizeof *values * (size_t)quarter);
        summary.drift_frac = quantile(values, quarter, 0.5) / first - 1;
    }
    return summary;
}

/* --- rows --- */

/* Six digits: more than a clock is worth, fewer than a double prints. */
static void number(OrrJsonWriter *w, const char *key, double value)
{
    char text[32];
    g_ascii_formatd(text, sizeof text, "%.6g", value);
    orr_jw_number(w, key, g_ascii_strtod(text, NULL));
}

typedef struct Row {
    const CalPoint *point;
    const CalSample *sample;
    CalSummary summary;
} Row;

static void gemm_row(OrrJsonWriter *w, const Row *row)
{
    const KrnShape *s = &row->point->shape;
    orr_jw_int(w, "m", s->m);
    orr_jw_int(w, "n", s->n);
    orr_jw_int(w, "k", s->k);
    orr_jw_text(w, "dtype", cal_math_word(s->math));
    orr_jw_text(w, "layout", cal_layout_word(s->layout));
    orr_jw_bool(w, "accumulate", s->accumulate_fp32);
    orr_jw_text(w, "out",
                s->accumulate_fp32 || s->math == KRN_MATH_TF32 || s->math == KRN_MATH_FP32 ? "fp32"
                : s->math == KRN_MATH_FP16                                                 ? "fp16"
                                                                                           : "bf16");
    orr_jw_int(w, "batch", s->groups);
    if (krn_has_one_layout(s->math)) /* which of the three passes, since the layout does not say it */
        orr_jw_text(w, "pass", s->accumulate_fp32 ? "weight" : s->precise ? "input" : "forward");
}

/* Sizes are the forward pass's in every stage: tokens of an expert, output and input width. */
static void grouped_row(OrrJsonWriter *w, const Row *row)
{
    const KrnShape *s = &row->point->shape;
    const int64_t sizes[KRN_LAYOUT_COUNT][3] = {{s->m, s->n, s->k}, {s->m, s->k, s->n}, {s->k, s->m, s->n}};
    static const char *const stages[KRN_LAYOUT_COUNT] = {"fwd", "bwd_grad_act", "bwd_grad_w"};
    orr_jw_int(w, "groups", s->groups);
    orr_jw_int(w, "m_per_group", sizes[s->layout][0]);
    orr_jw_int(w, "n", sizes[s->layout][1]);
    orr_jw_int(w, "k", sizes[s->layout][2]);
    orr_jw_text(w, "dtype", cal_math_word(s->math));
    orr_jw_text(w, "stage", stages[s->layout]);
    orr_jw_text(w, "calls",
                g_str_has_suffix(row->point->name, "_one_call")  ? "one"
                : g_str_has_suffix(row->point->name, "_streams") ? "streams"
                                                                 : "each");
    if (s->layout == KRN_NT)
        orr_jw_bool(w, "accumulate", s->accumulate_fp32);
}

static void attention_row(OrrJsonWriter *w, const Row *row)
{
    const KrnShape *s = &row->point->shape;
    const char *name = row->point->name;
    const bool own = g_str_has_prefix(name, "flash_");
    orr_jw_text(w, "kernel", own ? "orrery-flash" : g_str_has_prefix(name, "cudnn_") ? "cuDNN" : "unfused");
    if (own) /* frameworks run faster kernels: no fit takes this one for the ceiling */
        orr_jw_bool(w, "floor", true);
    orr_jw_text(w, "pass", strstr(name, "_backward") != NULL ? "bwd" : "fwd");
    orr_jw_int(w, "batch", s->batch);
    orr_jw_int(w, "seq", s->seq);
    orr_jw_int(w, "heads", s->heads);
    orr_jw_int(w, "kv_heads", s->kv_heads);
    orr_jw_int(w, "head_dim", s->head_dim);
    orr_jw_bool(w, "causal", s->causal);
    orr_jw_text(w, "dtype", g_str_has_suffix(name, "_fp8") ? "fp8" : "bf16");
}

static void layer_row(OrrJsonWriter *w, const Row *row)
{
    const KrnShape *s = &row->point->shape;
    orr_jw_int(w, "batch", s->batch);
    orr_jw_int(w, "seq", s->seq);
    orr_jw_int(w, "heads", s->heads);
    orr_jw_int(w, "kv_heads", s->kv_heads);
    orr_jw_int(w, "head_dim", s->head_dim);
    orr_jw_int(w, "hidden", s->cols);
    orr_jw_int(w, "ffn_hidden", s->n);
    orr_jw_text(w, "attention", s->library ? "cuDNN" : "orrery-flash");
    if (row->sample->parts_s > 0)
        number(w, "parts_us", 1e6 * row->sample->parts_s);
}

static void move_row(OrrJsonWriter *w, const Row *row)
{
    orr_jw_text(w, "kernel", row->point->name);
    orr_jw_int(w, "rows", row->point->shape.rows);
    orr_jw_int(w, "cols", row->point->shape.cols);
    orr_jw_number(w, "bytes", row->sample->bytes);
}

static void stream_row(OrrJsonWriter *w, const Row *row)
{
    move_row(w, row);
    number(w, "tbps", row->sample->bytes / row->summary.median_s * 1e-12);
}

static void drift_row(OrrJsonWriter *w, const Row *row)
{
    orr_jw_text(w, "after", row->point->id + strlen("drift "));
}

static void latency_row(OrrJsonWriter *w, const Row *row)
{
    orr_jw_text(w, "op", row->point->name);
}

static void copy_row(OrrJsonWriter *w, const Row *row)
{
    orr_jw_text(w, "op", row->point->name);
    orr_jw_number(w, "bytes", row->point->bytes);
    number(w, "gbps", row->point->bytes / row->summary.median_s * 1e-9);
}

static void host_row(OrrJsonWriter *w, const Row *row)
{
    copy_row(w, row);
    if (row->point->threads > 0)
        orr_jw_int(w, "threads", row->point->threads);
}

/* The typical rank's time; of copies the rate of one GPU's link, both ways counted as one where both are busy; of a layer how
 * the chips differ and what warmth costs. */
static void together_row(OrrJsonWriter *w, const Row *row)
{
    const CalSample *sample = row->sample;
    const double pass_s = row->summary.median_s;
    double sum = 0, squares = 0;
    orr_jw_text(w, "op", row->point->name);
    orr_jw_int(w, "gpus", row->point->gpus);
    if (row->point->bytes > 0) {
        orr_jw_number(w, "bytes", row->point->bytes);
        number(w, "gbps", row->point->bytes / pass_s * 1e-9);
    }
    if (row->point->threads > 0)
        orr_jw_int(w, "threads", row->point->threads);
    for (int i = 0; i < sample->count; i++)
        sum += pass_s / sample->seconds[i] / sample->count;
    for (int i = 0; i < sample->count; i++)
        squares += pow(pass_s / sample->seconds[i] / sum - 1, 2);
    if (sample->first_s > 0) {
        if (sample->count > 1)
            number(w, "speed_spread_frac", sqrt(squares / (sample->count - 1)));
        number(w, "first_us", 1e6 * sample->first_s);
    }
    orr_jw_begin(w, "ranks_us", '[');
    for (int i = 0; i < sample->count; i++)
        number(w, NULL, 1e6 * sample->seconds[i]);
    orr_jw_end(w, ']');
}

/* nccl-tests' factors between the rate of the algorithm and that of the bus. */
static void collective_row(OrrJsonWriter *w, const Row *row)
{
    const double ranks = row->point->gpus;
    const char *op = row->point->name;
    const double factor =
        strcmp(op, "all_reduce") == 0 ? 2 * (ranks - 1) / ranks
        : strcmp(op, "broadcast") == 0 || strcmp(op, "reduce") == 0 || strcmp(op, "send_recv") == 0
            ? 1
            : (ranks - 1) / ranks;
    orr_jw_int(w, "nodes", MAX(row->point->nodes, 1));
    orr_jw_int(w, "gpus", row->point->gpus);
    orr_jw_text(w, "op", op);
    orr_jw_number(w, "bytes", row->point->bytes);
    number(w, "busbw_gbps", factor * row->point->bytes / row->summary.median_s * 1e-9);
}

static void interference_row(OrrJsonWriter *w, const Row *row)
{
    const CalSample *sample = row->sample;
    orr_jw_text(w, "op", row->point->name);
    orr_jw_int(w, "gpus", MAX(row->point->gpus, 1));
    orr_jw_number(w, "bytes", row->point->bytes);
    number(w, "gemm_beside_us", 1e6 * sample->beside_s);
    number(w, "other_us", 1e6 * sample->other_s);
    number(w, "other_beside_us", 1e6 * sample->other_beside_s);
    number(w, "gemm_slowdown_frac", sample->beside_s / row->summary.median_s - 1);
    number(w, "other_slowdown_frac", sample->other_beside_s / sample->other_s - 1);
}

typedef struct Section {
    const char *key;
    void (*write)(OrrJsonWriter *w, const Row *row);
} Section;

static Section section_of(const CalPoint *point, const CalSample *sample)
{
    static const Section by_kind[CAL_POINT_KIND_COUNT] = {
        [CAL_POINT_DRIFT] = {"drift_measurements", drift_row},
        [CAL_POINT_LATENCY] = {"latency_measurements", latency_row},
        [CAL_POINT_COPY] = {"copy_measurements", copy_row},
        [CAL_POINT_COLLECTIVE] = {"collective_measurements", collective_row},
        [CAL_POINT_INTERFERENCE] = {"interference_measurements", interference_row},
        [CAL_POINT_TOGETHER] = {"together_measurements", together_row},
        [CAL_POINT_HOST] = {"host_measurements", host_row},
    };
    const char *name = point->name;
    if (point->kind == CAL_POINT_COLLECTIVE && point->shared)
        return (Section){"shared_gpu_measurements", collective_row};
    if (point->kind != CAL_POINT_KERNEL)
        return by_kind[point->kind];
    if (strcmp(name, "gemm") == 0 || strcmp(name, "batched_gemm") == 0)
        return (Section){"gemm_measurements", gemm_row};
    if (g_str_has_prefix(name, "grouped_gemm"))
        return (Section){"grouped_gemm_measurements", grouped_row};
    if (strcmp(name, "transformer_layer") == 0)
        return (Section){"layer_measurements", layer_row};
    if (g_str_has_prefix(name, "flash_") || g_str_has_prefix(name, "cudnn_") ||
        strcmp(name, "attention_unfused") == 0)
        return (Section){"attention_measurements", attention_row};
    const bool stream = strcmp(name, "copy") == 0 || strcmp(name, "triad") == 0;
    return stream && sample->bytes >= 1e9 ? (Section){"hbm_stream", stream_row}
                                          : (Section){"memory_bound_measurements", move_row};
}

static void write_state(OrrJsonWriter *w, const CalGpuState *state)
{
    char limits[96];
    cal_limits_text(state->limits, limits, sizeof limits);
    if (state->power_w > 0)
        number(w, "power_w", state->power_w);
    if (state->sm_clock_hz > 0)
        number(w, "sm_clock_hz", state->sm_clock_hz);
    if (state->temperature_c > 0)
        number(w, "temperature_c", state->temperature_c);
    if (limits[0] != '\0')
        orr_jw_text(w, "clock_limits", limits);
}

void cal_sweep_line(const CalStamp *stamp, const CalPoint *point, const CalSample *sample, GString *out)
{
    const Row row = {point, sample, cal_summarise(sample->seconds, sample->count)};
    const Section section = section_of(point, sample);
    OrrJsonWriter w;
    orr_jw_init(&w, out, true);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_text(&w, "id", point->id);
    orr_jw_text(&w, "section", section.key);
    orr_jw_begin(&w, "row", '{');
    orr_jw_text(&w, "gpu", stamp->device);
    section.write(&w, &row);
    number(&w, "time_us", 1e6 * row.summary.median_s);
    if (sample->flops > 0)
        number(&w, "tflops", sample->flops / row.summary.median_s * 1e-12);
    orr_jw_text(&w, "source", SOURCE);
    if (point->kind == CAL_POINT_COLLECTIVE && stamp->one_process)
        orr_jw_int(&w, "ranks_per_process", point->gpus);
    if (point->kind == CAL_POINT_COLLECTIVE && stamp->nccl[0] != '\0')
        orr_jw_text(&w, "nccl", stamp->nccl);
    if (point->round > 1)
        orr_jw_int(&w, "round", point->round);
    orr_jw_int(&w, "repeats", sample->count);
    number(&w, "spread_frac", row.summary.spread_frac);
    if (row.summary.outliers > 0)
        orr_jw_int(&w, "outliers", row.summary.outliers);
    if (fabs(row.summary.drift_frac) > 0.02)
        number(&w, "drift_frac", row.summary.drift_frac);
    if (sample->tolerance_frac > 0) {
        number(&w, "error_frac", sample->error_frac);
        orr_jw_bool(&w, "correct", sample->error_frac <= sample->tolerance_frac);
    }
    if (sample->replayed)
        orr_jw_text(&w, "timing", "graph");
    write_state(&w, &sample->state);
    orr_jw_end(&w, '}');
    orr_jw_end(&w, '}');
}

void cal_sweep_skipped_line(const CalPoint *point, const char *reason, GString *out)
{
    OrrJsonWriter w;
    orr_jw_init(&w, out, true);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_text(&w, "id", point->id);
    orr_jw_text(&w, "skipped", reason);
    orr_jw_end(&w, '}');
}

void cal_sweep_broken_line(const char *id, const char *reason, GString *out)
{
    OrrJsonWriter w;
    orr_jw_init(&w, out, true);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_text(&w, "id", id);
    orr_jw_text(&w, "broken", reason);
    orr_jw_end(&w, '}');
}
