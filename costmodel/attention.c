/* costmodel/attention.c - time of fused attention; docs/MODEL-kernels.md derives it.
 *
 * A kernel holds one block of queries per SM and streams keys and values past it. Under a causal mask the
 * blocks differ in length: the longest is a floor, the mean over the SMs is the bulk.
 */
#include "costmodel/attention.h"

#include <math.h>

#include <glib.h>

#include "costmodel/kernels.h"

#define BLOCK_TOKENS                                                                                         \
    128.0 /* of queries and keys: backward, and where only FLOPs are asked. Source: [FlashAttention2] */
#define WIDE_DIM 128.0 /* above it the tiles shrink: registers and shared memory are full */

static const SpecAttentionModel *model_of(const SpecAccelerator *accelerator, SpecAttention kernel)
{
    static const SpecAttention nearest[] = {SPEC_ATTENTION_FLASH2, SPEC_ATTENTION_CUDNN,
                                            SPEC_ATTENTION_FLASH3};
    const SpecAttentionModel *models = accelerator->model.attention;
    if (models[kernel].peak_frac > 0)
        return &models[kernel];
    for (size_t i = 0; i < G_N_ELEMENTS(nearest); i++)
        if (models[nearest[i]].peak_frac > 0)
            return &models[nearest[i]];
    return &spec_attention_model_default;
}

/* The window whose outside the kernel skips; 0: none. cuDNN's 8-bit backward masks it but visits all keys: heads of 64
 * dimensions with a window of 128 take 3.6 times as long for twice the tokens, and 3.7 to 7 times what 16 bits take.
 * Source: [CudnnBench] gpt_oss */
static double skipped_window(const CostAttention *attention)
{
    const bool visits_all =
        attention->backward && attention->dtype == SPEC_FP8 && attention->kernel == SPEC_ATTENTION_CUDNN;
    return visits_all ? 0 : attention->window_tokens;
}

/* Keys that a block of queries visits, mean and longest. A mask's edge costs half a block on average; with
 * fewer queries than keys (context parallelism) the rows are taken as balanced over the sequence.
 *   causal: kv/2 + block/2;  window w: mean over rows of min(row, w), and an edge on either side */
static double mean_keys(const CostAttention *attention, double block)
{
    double kv = attention->kv_tokens, window = skipped_window(attention);
    if (window > 0 && window < kv) {
        double inside = attention->causal ? window - window * window / (2 * kv) : window;
        return fmin(kv, inside + block);
    }
    if (attention->causal)
        return fmin(kv, kv / 2 + block / 2);
    return ceil(kv / block) * block;
}

static double most_keys(const CostAttention *attention, double block)
{
    double kv = attention->kv_tokens, window = skipped_window(attention);
    if (window > 0)
        kv = fmin(kv, window + block);
    return attention->causal ? kv : ceil(kv / block) * block;
}

/* FLOPs of one query-key pair of one head: forward S = Q K^T, O = P V; backward S, dP, dV, dQ, dK. */
static double pair_flops(const CostAttention *attention)
{
    if (attention->backward)
        return 6 * attention->qk_head_dim + 4 * attention->v_head_dim;
    return 2 * attention->qk_head_dim + 2 * attention->v_head_dim;
}

double cost_attention_executed_flops(const CostAttention *attention)
{
    return attention->batch * attention->heads * attention->q_tokens * mean_keys(attention, BLOCK_TOKENS) *
           pair_flops(attention);
}

/* Blocks of `average` and `longest` seconds on the SMs, `waves` of them a SM.
 *   t = max(w a, l) + q min(w a, l) r     r = 1 where blocks are uneven, else the empty share of the last wave */
static double packed_s(double waves, double average_s, double longest_s, double quantum, bool uneven)
{
    double bulk_s = waves * average_s;
    double rest = uneven ? 1 : (waves > 1 ? ceil(waves) - waves : 0);
    return fmax(bulk_s, longest_s) + quantum * fmin(bulk_s, longest_s) * rest;
}

/* Products of 8 bits halve, exponentials do not, and scores and their gradients are cast: heads of other sizes than the 128 that
 * backward_fp8_frac is said for. Source: [CudnnBench], heads of 64, 128 and 192 */
static double narrow_fp8_frac(const CostAttention *attention, const SpecAttentionModel *model, double dim)
{
    const double half = model->backward_half_dim, half_fp8 = model->backward_fp8_half_dim;
    if (!attention->backward || attention->dtype != SPEC_FP8 || half_fp8 <= 0)
        return 1;
    return (1 + half / dim) / (1 + half / WIDE_DIM) * (1 + half_fp8 / WIDE_DIM) / (1 + half_fp8 / dim);
}

/* Products and softmax on the SMs; under a causal mask at most what the unmasked kernel takes.
 *   a = keys u + o      l = keys_max u + o      u = tq flops / rate, o = tile_s */
static double compute_s(const CostAttention *attention, const SpecAttentionModel *model,
                        double sm_flops_per_s, double sms)
{
    bool backward = attention->backward;
    double dim = (attention->qk_head_dim + attention->v_head_dim) / 2;
    double half_dim = backward ? model->backward_half_dim : model->half_dim;
    double speed = (backward ? model->backward_peak_frac : model->peak_frac) / (1 + half_dim / dim) *
                   narrow_fp8_frac(attention, model, dim);
    if (dim > WIDE_DIM)
        speed *= backward ? model->backward_wide_frac : model->wide_frac;
    double q_tile = backward ? BLOCK_TOKENS : model->q_tile_tokens;
    double block = fmax(q_tile, model->kv_tile_tokens);
    double key_s = q_tile * pair_flops(attention) / (sm_flops_per_s * speed);
    double tile_s = backward ? model->backward_tile_s : model->tile_s;
    double blocks = attention->batch * attention->heads * ceil(attention->q_tokens / q_tile);
    double average_s = mean_keys(attention, block) * key_s + tile_s;
    double longest_s = most_keys(attention, block) * key_s + tile_s;
    double even_s = packed_s(blocks / sms, longest_s, longest_s, model->wave_quantum, false);
    if (!attention->causal)
        return even_s;
    return fmin(even_s, packed_s(blocks / sms, average_s, longest_s, model->wave_quantum, true));
}

/* Bytes of the main kernel, and of the passes around a backward kernel: row sums of dO * O before it, fp32 dQ
 * cleared, added to and converted. */
static double main_bytes(const CostAttention *attention, double element_bytes)
{
    double q = attention->q_tokens * attention->heads;
    double kv = attention->kv_tokens * attention->kv_heads * (attention->qk_head_dim + attention->v_head_dim);
    double passes = attention->backward ? 2 : 1; /* keys and values read; their gradients written */
    double q_dims = attention->qk_head_dim + (attention->backward ? 2 : 1) * attention->v_head_dim;
    return attention->batch * (q * q_dims + passes * kv) * element_bytes;
}

static double side_bytes(const CostAttention *attention, double element_bytes)
{
    if (!attention->backward)
        return 0;
    double q = attention->batch * attention->q_tokens * attention->heads;
    return q * (2 * attention->v_head_dim * element_bytes + 10 * attention->qk_head_dim);
}

double cost_attention_read_bytes(const CostAttention *attention)
{
    const double element_bytes = spec_dtype_bytes(attention->dtype);
    const double moved = main_bytes(attention, element_bytes) + side_bytes(attention, element_bytes);
    return moved - cost_attention_written_bytes(attention);
}

double cost_attention_written_bytes(const CostAttention *attention)
{
    const double element_bytes = spec_dtype_bytes(attention->dtype);
    const double q = attention->batch * attention->q_tokens * attention->heads;
    const double kv = attention->batch * attention->kv_tokens * attention->kv_heads *
                      (attention->qk_head_dim + attention->v_head_dim);
    /* dQ: cleared in fp32 (4), converted (2); the additions between lie in the cache */
    return attention->backward ? q * 6 * attention->qk_head_dim + kv * element_bytes
                               : q * attention->v_head_dim * element_bytes;
}

static double block_scaled_frac(const CostAttention *attention, const SpecAttentionModel *model)
{
    if (!attention->block_scaled)
        return 1;
    return attention->backward ? model->backward_mxfp8_frac : model->mxfp8_frac;
}

double cost_attention_early_frac(const SpecAccelerator *accelerator, const CostAttention *attention)
{
    const SpecAttentionModel *model = &accelerator->model.attention[attention->kernel];
    const bool cudnn = attention->kernel == SPEC_ATTENTION_CUDNN;
    const double frac = attention->backward ? model->backward_early_frac : model->early_frac;
    return cudnn && frac > 0 ? frac : 1;
}

/* Every product of attention sums over a head's dimensions or has as many columns: of a systolic array that is wider, the
 * rest idles.   Source: [CloudTpu] v6e: MXUs of 256 x 256 */
static double unit_fill(const SpecAccelerator *accelerator, const CostAttention *attention)
{
    const double dim = (attention->qk_head_dim + attention->v_head_dim) / 2, width = accelerator->matrix_unit;
    return width > 0 && dim > 0 ? dim / (width * ceil(dim / width)) : 1;
}

/* Products of the kernels over those that are counted: scores and their gradients are computed for the gradient of queries
 * and again for those of keys and values.   Source: [PallasAttention] */
static double kernel_products(const SpecAccelerator *accelerator, const CostAttention *attention)
{
    const double qk = attention->qk_head_dim, v = attention->v_head_dim, counted = 3 * qk + 2 * v;
    const bool split = attention->backward && accelerator->split_attention_backward && counted > 0;
    return split ? (counted + qk + v) / counted : 1;
}

double cost_attention_s(const SpecAccelerator *accelerator, const CostAttention *attention)
{
    g_assert(attention->kernel != SPEC_ATTENTION_UNFUSED);
    const SpecAttentionModel *model = model_of(accelerator, attention->kernel);
    double latency_s = attention->backward ? model->backward_latency_s : model->latency_s;
    double peak = cost_dense_peak_flops_per_s(accelerator, attention->dtype);
    double flops = cost_attention_executed_flops(attention);
    if (flops <= 0 || peak <= 0)
        return latency_s;
    double element_bytes = spec_dtype_bytes(attention->dtype);
    if (accelerator->generation.without_sms) { /* not made of SMs with blocks: FLOPs alone */
        double frac = attention->backward ? model->backward_peak_frac : model->peak_frac;
        return kernel_products(accelerator, attention) * flops /
                   (peak * frac * unit_fill(accelerator, attention)) +
               latency_s;
    }
    double sms = fmax(1, accelerator->sm_count - attention->free_sms);
    double rate = peak / fmax(1, accelerator->sm_count);
    if (attention->dtype == SPEC_FP8 && accelerator->peak_flops_per_s[SPEC_FP8] > 0)
        rate *= (attention->backward && model->backward_fp8_frac > 0 ? model->backward_fp8_frac
                                                                     : model->fp8_frac) *
                block_scaled_frac(attention, model);
    double bytes_per_s =
        accelerator->memory_bytes_per_s * cost_memory_bound_model(accelerator)->elementwise_frac;
    double c = compute_s(attention, model, rate, sms);
    double d = main_bytes(attention, element_bytes) / bytes_per_s;
    double t_s = sqrt(c * c + d * d) + side_bytes(attention, element_bytes) / bytes_per_s;
    double demand = flops / t_s / peak * model->power_frac * cost_power_demand(accelerator);
    return cost_throttled_s(t_s, demand, cost_gemm_model(accelerator, attention->dtype)->throttle_s) +
           latency_s;
}
