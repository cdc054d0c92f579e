/* calibrate/measure/sweep_products.c - the products of a sweep: layouts and widths of training, LM head and tensor ranks, 8 and 4
 * bits with one scale and with scales of blocks, batches, experts. */
#include <stdio.h>
#include <string.h>

#include "calibrate/measure/sweep_plan.h"

const char *cal_math_word(KrnMath math)
{
    static const char *const words[KRN_MATH_COUNT] = {"bf16", "fp16",      "tf32",  "fp32",
                                                      "fp8",  "fp8-block", "mxfp8", "nvfp4"};
    return words[math];
}

const char *cal_layout_word(KrnLayout layout)
{
    static const char *const words[KRN_LAYOUT_COUNT] = {"TN", "NN", "NT"};
    return words[layout];
}

void cal_plan_add(CalPlan *plan, CalPoint point)
{
    const char *only = plan->options->only;
    if (only == NULL || strstr(point.id, only) != NULL)
        g_array_append_val(plan->points, point);
}

void cal_point_gemm(const char *name, KrnMath math, KrnLayout layout, bool accumulate, int64_t groups,
                    const int64_t size[3], CalPoint *ret_point)
{
    CalPoint point = {.kind = CAL_POINT_KERNEL, .name = name};
    point.shape = (KrnShape){.m = size[0],
                             .n = size[1],
                             .k = size[2],
                             .groups = groups,
                             .math = math,
                             .layout = layout,
                             .accumulate_fp32 = accumulate};
    char count[24] = "";
    if (groups > 1)
        g_snprintf(count, sizeof count, "%dx ", (int)groups);
    g_snprintf(point.id, sizeof point.id, "%s %s %s%s %s%dx%dx%d", name, cal_math_word(math),
               cal_layout_word(layout), accumulate ? "+fp32" : "", count, (int)size[0], (int)size[1],
               (int)size[2]);
    *ret_point = point;
}

static void add_gemm(CalPlan *plan, const char *name, KrnMath math, KrnLayout layout, bool accumulate,
                     int64_t groups, const int64_t size[3])
{
    CalPoint point;
    cal_point_gemm(name, math, layout, accumulate, groups, size, &point);
    cal_plan_add(plan, point);
}

/* Widths of weights: square, and the four products of a layer of hidden width 4096 and 8192. */
static const int64_t widths[][2] = {{1024, 1024},  {2048, 2048},  {4096, 4096},  {8192, 8192}, {16384, 16384},
                                    {12288, 4096}, {16384, 4096}, {4096, 16384}, {6144, 4096}, {10240, 8192},
                                    {28672, 8192}, {8192, 28672}, {57344, 8192}};
static const int64_t tokens[] = {4096, 128, 512, 1024, 2048, 8192, 16384};

/* In 8 bits every layout is TN, since frameworks keep a transposed copy; the gradient of the input is summed outside of the
 * tensor core, that of the weight in fp32. */
static void add_gradients(CalPlan *plan, const int64_t forward[3])
{
    const int64_t m = forward[0], n = forward[1], k = forward[2];
    CalPoint point;
    add_gemm(plan, "gemm", KRN_MATH_FP8, KRN_TN, true, 1, (int64_t[]){n, k, m});
    if (m < tokens[0])
        return;
    cal_point_gemm("gemm", KRN_MATH_FP8, KRN_TN, false, 1, (int64_t[]){m, k, n}, &point);
    cal_point_precise(&point);
    cal_plan_add(plan, point);
}

void cal_point_precise(CalPoint *point)
{
    point->shape.precise = true;
    g_strlcat(point->id, " precise", sizeof point->id);
}

/* Block scales: of 128 on Hopper, of 32 and, in 4 bits, of 16 on Blackwell. */
static void add_block_scales(CalPlan *plan, const int64_t forward[3])
{
    const int capability = plan->stamp->capability;
    const int64_t weight[] = {forward[1], forward[2], forward[0]};
    const KrnMath maths[] = {capability >= 100 ? KRN_MATH_MXFP8 : KRN_MATH_FP8_BLOCK, KRN_MATH_NVFP4};
    for (int i = 0; capability >= 90 && i < (capability >= 100 ? 2 : 1); i++) {
        add_gemm(plan, "gemm", maths[i], KRN_TN, false, 1, forward);
        add_gemm(plan, "gemm", maths[i], KRN_TN, true, 1, weight);
    }
}

/* Outputs and inputs of the LM head (whole, and an eighth of Llama 3's), and of a layer of Llama 3 70B over 8 tensor ranks. */
static const int64_t narrow[][2] = {{128256, 4096}, {16032, 8192}, {1280, 8192},
                                    {8192, 1024},   {7168, 8192},  {8192, 3584}};

static void add_head_and_ranks(CalPlan *plan)
{
    const bool full = plan->options->full;
    for (size_t i = 0; i < G_N_ELEMENTS(narrow); i++) {
        const int64_t m = 4096, n = narrow[i][0], k = narrow[i][1];
        add_gemm(plan, "gemm", KRN_MATH_BF16, KRN_TN, false, 1, (int64_t[]){m, n, k});
        if (!full)
            continue;
        add_gemm(plan, "gemm", KRN_MATH_BF16, KRN_NN, false, 1, (int64_t[]){m, k, n});
        add_gemm(plan, "gemm", KRN_MATH_BF16, KRN_NT, true, 1, (int64_t[]){n, k, m});
    }
}

static void add_training_gemms(CalPlan *plan)
{
    const bool full = plan->options->full;
    const size_t token_count = full ? G_N_ELEMENTS(tokens) : 3, width_count = full ? G_N_ELEMENTS(widths) : 8;
    for (size_t w = 0; w < width_count; w++)
        for (size_t t = 0; t < token_count; t++) {
            const int64_t m = tokens[t], n = widths[w][0], k = widths[w][1];
            add_gemm(plan, "gemm", KRN_MATH_BF16, KRN_TN, false, 1, (int64_t[]){m, n, k});
            if (!full && t > 0)
                continue;
            add_gemm(plan, "gemm", KRN_MATH_BF16, KRN_NN, false, 1, (int64_t[]){m, k, n});
            add_gemm(plan, "gemm", KRN_MATH_BF16, KRN_NT, true, 1, (int64_t[]){n, k, m});
            if (!full || plan->stamp->capability < 89)
                continue;
            add_gemm(plan, "gemm", KRN_MATH_FP8, KRN_TN, false, 1, (int64_t[]){m, n, k});
            if (t % 2 == 0)
                add_gradients(plan, (int64_t[]){m, n, k});
            if (t == 0)
                add_block_scales(plan, (int64_t[]){m, n, k});
        }
    add_head_and_ranks(plan);
}

static void add_other_gemms(CalPlan *plan)
{
    static const KrnMath maths[] = {KRN_MATH_FP16, KRN_MATH_TF32, KRN_MATH_FP32, KRN_MATH_FP8};
    const bool full = plan->options->full;
    for (size_t i = 0; i < G_N_ELEMENTS(maths); i++) {
        if (maths[i] == KRN_MATH_FP8 && (full || plan->stamp->capability < 89))
            continue; /* a full sweep has it among the training sizes */
        for (int64_t edge = full ? 1024 : 2048; edge <= (full ? 16384 : 8192); edge *= 2) {
            if (maths[i] == KRN_MATH_FP32 && edge > 8192)
                continue;
            add_gemm(plan, "gemm", maths[i], KRN_TN, false, 1, (int64_t[]){edge, edge, edge});
            if (full) {
                add_gemm(plan, "gemm", maths[i], KRN_NN, false, 1, (int64_t[]){edge, edge, edge});
                add_gemm(plan, "gemm", maths[i], KRN_NT, true, 1, (int64_t[]){edge, edge, edge});
            }
        }
    }
    for (int64_t seq = full ? 512 : 2048; seq <= (full ? 4096 : 2048); seq *= 2) {
        add_gemm(plan, "batched_gemm", KRN_MATH_BF16, KRN_TN, false, 64, (int64_t[]){seq, seq, 128});
        add_gemm(plan, "batched_gemm", KRN_MATH_BF16, KRN_NN, false, 64, (int64_t[]){seq, 128, seq});
    }
    for (int64_t rows = full ? 128 : 1024; rows <= (full ? 4096 : 1024); rows *= 2) {
        add_gemm(plan, "grouped_gemm_streams", KRN_MATH_BF16, KRN_TN, false, 8,
                 (int64_t[]){rows, 2048, 4096});
        add_gemm(plan, "grouped_gemm_streams", KRN_MATH_BF16, KRN_NN, false, 8,
                 (int64_t[]){rows, 4096, 2048});
        add_gemm(plan, "grouped_gemm_streams", KRN_MATH_BF16, KRN_NT, true, 8, (int64_t[]){2048, 4096, rows});
        add_gemm(plan, "grouped_gemm_one_call", KRN_MATH_BF16, KRN_TN, false, 8,
                 (int64_t[]){rows, 2048, 4096});
        add_gemm(plan, "grouped_gemm_one_call", KRN_MATH_BF16, KRN_NN, false, 8,
                 (int64_t[]){rows, 4096, 2048});
        add_gemm(plan, "grouped_gemm_one_call", KRN_MATH_BF16, KRN_NT, false, 8,
                 (int64_t[]){2048, 4096, rows});
    }
}

void cal_plan_products(CalPlan *plan)
{
    add_training_gemms(plan);
    add_other_gemms(plan);
}
