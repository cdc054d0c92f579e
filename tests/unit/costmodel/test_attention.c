/* Attention: FLOPs counted by hand, terms on a round machine, properties on every preset, published rows. */
#include "costmodel/attention.h"
#include "tests/unit/kernel_fixture.h"

static CostAttention head(double tokens)
{
    return (CostAttention){.kernel = SPEC_ATTENTION_FLASH2,
                           .batch = 1,
                           .q_tokens = tokens,
                           .kv_tokens = tokens,
                           .heads = 1,
                           .kv_heads = 1,
                           .qk_head_dim = 128,
                           .v_head_dim = 128,
                           .dtype = SPEC_BF16};
}

static void test_flops(void)
{
    CostAttention a = head(4096);
    fixture_within(cost_attention_executed_flops(&a), 4 * 4096.0 * 4096 * 128, 1e-12);
    a.backward = true; /* five products instead of two */
    fixture_within(cost_attention_executed_flops(&a), 10 * 4096.0 * 4096 * 128, 1e-12);
    a.backward = false;
    a.causal = true; /* 32 blocks of queries visit 1, 2 ... 32 blocks of keys */
    fixture_within(cost_attention_executed_flops(&a), 4 * 128 * 128.0 * 128 * (32 * 33 / 2), 1e-12);
    a.window_tokens = 1024; /* min(row, 1024) keys, and half a block at either edge */
    fixture_within(cost_attention_executed_flops(&a), 4 * 128 * 4096.0 * (1024 - 128 + 128), 1e-12);
    a.window_tokens = 8192;
    fixture_within(cost_attention_executed_flops(&a), 4 * 128 * 128.0 * 128 * (32 * 33 / 2), 1e-12);
    a = head(4096);
    a.qk_head_dim = 192; /* multi-head latent attention: 192 for scores, 128 for values */
    fixture_within(cost_attention_executed_flops(&a), 4096.0 * 4096 * (2 * 192 + 2 * 128), 1e-12);
    a.backward = true;
    fixture_within(cost_attention_executed_flops(&a), 4096.0 * 4096 * (6 * 192 + 4 * 128), 1e-12);
    a = head(4096);
    a.q_tokens = 1024; /* a quarter of the queries under context parallelism */
    fixture_within(cost_attention_executed_flops(&a), 1024 * 4096.0 * 4 * 128, 1e-12);
}

static SpecAccelerator round_machine(void)
{
    SpecAccelerator accelerator = fixture_round();
    accelerator.memory_bytes_per_s = 1e18;
    accelerator.model.attention[SPEC_ATTENTION_FLASH2] = (SpecAttentionModel){.peak_frac = 1,
                                                                              .half_dim = 128,
                                                                              .wide_frac = 1,
                                                                              .backward_peak_frac = 0.5,
                                                                              .backward_half_dim = 128,
                                                                              .backward_wide_frac = 1,
                                                                              .q_tile_tokens = 128,
                                                                              .kv_tile_tokens = 128,
                                                                              .wave_quantum = 0.5,
                                                                              .tile_s = 1e-6,
                                                                              .backward_tile_s = 1e-6,
                                                                              .latency_s = 5e-6,
                                                                              .backward_latency_s = 7e-6};
    return accelerator;
}

/* Each SM does 1 TFLOP/s x 1 / (1 + 128/128) = 0.5: a block of 128 queries takes 131.072 ns a key. */
static void test_waves_by_hand(void)
{
    const SpecAccelerator accelerator = round_machine();
    const double key_s = 128 * 4 * 128 / 0.5e12, block_s = 12800 * key_s + 1e-6;
    CostAttention a = head(12800); /* 100 blocks: one full wave */
    fixture_within(cost_attention_s(&accelerator, &a), block_s + 5e-6, 1e-6);
    a.heads = a.kv_heads = 2;
    fixture_within(cost_attention_s(&accelerator, &a), 2 * block_s + 5e-6, 1e-6);
    a = head(6400); /* half a wave takes as long as a whole one of its length */
    fixture_within(cost_attention_s(&accelerator, &a), 6400 * key_s + 1e-6 + 5e-6, 1e-6);
    a.heads = a.kv_heads = 3; /* 150 blocks: 1.5 waves, half of the missing half */
    fixture_within(cost_attention_s(&accelerator, &a), 1.75 * (6400 * key_s + 1e-6) + 5e-6, 1e-6);
    a = head(12800);
    a.causal = true; /* one wave: all blocks run at once, the longest is the floor */
    fixture_within(cost_attention_s(&accelerator, &a), block_s + 5e-6, 1e-6);
    a.heads = a.kv_heads = 2; /* the mean load, and half of the longest block on top */
    const double mean_s = (6400 + 64) * key_s + 1e-6;
    fixture_within(cost_attention_s(&accelerator, &a), 2 * mean_s + 0.5 * block_s + 5e-6, 1e-6);
    a = head(12800);
    a.backward = true; /* five products at half the rate */
    fixture_within(cost_attention_s(&accelerator, &a), 12800 * 5 * key_s + 1e-6 + 7e-6, 1e-6);
}

/* In 8 bits the backward has a share of its own; none said, it is the forward's, to the last bit. */
static void test_eight_bits(void)
{
    SpecAccelerator accelerator = round_machine();
    SpecAttentionModel *model = &accelerator.model.attention[SPEC_ATTENTION_FLASH2];
    accelerator.peak_flops_per_s[SPEC_FP8] = 2e14;
    model->fp8_frac = 0.5; /* as fast as in 16 bits */
    CostAttention a = head(12800);
    const double forward_s = cost_attention_s(&accelerator, &a);
    a.dtype = SPEC_FP8;
    fixture_within(cost_attention_s(&accelerator, &a), forward_s, 1e-6);
    a.backward = true;
    const double as_forward_s = cost_attention_s(&accelerator, &a);
    model->backward_fp8_frac = 0.5;
    g_assert_cmpfloat(cost_attention_s(&accelerator, &a), ==, as_forward_s);
    model->backward_fp8_frac = 0.25;
    fixture_within(cost_attention_s(&accelerator, &a) - 8e-6, 2 * (as_forward_s - 8e-6), 1e-6);
    a.backward = false;
    fixture_within(cost_attention_s(&accelerator, &a), forward_s, 1e-6);
    a.dtype = SPEC_BF16, a.backward = true;
    const double wide_s = cost_attention_s(&accelerator, &a);
    model->backward_fp8_frac = 0;
    g_assert_cmpfloat(cost_attention_s(&accelerator, &a), ==, wide_s);
}

/* Heads of other sizes than 128: backward in 8 bits, exponentials and casts weigh as said; else, at 128, and where that is as in 16
 * bits, nothing changes, to the last bit. Without end: twice the products, the same time. */
static void test_narrow_eight_bits(void)
{
    SpecAccelerator accelerator = round_machine();
    SpecAttentionModel *model = &accelerator.model.attention[SPEC_ATTENTION_FLASH2];
    accelerator.peak_flops_per_s[SPEC_FP8] = 2e14;
    model->fp8_frac = 0.5;
    for (int narrow = 0; narrow < 2; narrow++)
        for (int bits = 8; bits <= 16; bits *= 2)
            for (int backward = 0; backward < 2; backward++) {
                CostAttention a = head(12800);
                a.dtype = bits == 8 ? SPEC_FP8 : SPEC_BF16;
                a.backward = backward == 1;
                a.qk_head_dim = a.v_head_dim = narrow ? 64 : 128;
                model->backward_fp8_half_dim = 0;
                const double before_s = cost_attention_s(&accelerator, &a);
                model->backward_fp8_half_dim = model->backward_half_dim;
                g_assert_cmpfloat(cost_attention_s(&accelerator, &a), ==, before_s);
                model->backward_fp8_half_dim = 1e9;
                const double after_s = cost_attention_s(&accelerator, &a);
                if (narrow && bits == 8 && backward) /* 1 + 128/64 over 1 + 128/128: 3/2; to 2 */
                    fixture_within(after_s - 8e-6, 2 / 1.5 * (before_s - 8e-6), 1e-6);
                else
                    g_assert_cmpfloat(after_s, ==, before_s);
            }
}

/* Without FLOPs to speak of, the bytes: forward Q, K, V, O; backward adds gradients and an fp32 dQ. */
static void test_memory(void)
{
    SpecAccelerator accelerator = round_machine();
    accelerator.memory_bytes_per_s = 1e6;
    accelerator.model.memory_bound.elementwise_frac = 0.5;
    CostAttention a = head(128);
    fixture_within(cost_attention_s(&accelerator, &a), 4 * 128 * 128 * 2 / 0.5e6, 1e-3);
    a.backward = true; /* Q, O, dO; K, V, dK, dV; then dO, O at 2 bytes and dQ at 4 + 4 + 2 */
    fixture_within(cost_attention_s(&accelerator, &a), 128 * 128 * (7 * 2 + 4 + 10) / 0.5e6, 1e-3);
}

/* An early library is the block's word for each pass; it says so of cuDNN alone, and 0 is no word. */
static void test_early_library(void)
{
    SpecAccelerator accelerator = round_machine();
    for (int backward = 0; backward < 2; backward++) {
        CostAttention a = head(12800);
        a.backward = backward == 1;
        for (int kernel = SPEC_ATTENTION_FLASH2; kernel <= SPEC_ATTENTION_CUDNN; kernel++) {
            SpecAttentionModel *model = &accelerator.model.attention[kernel];
            a.kernel = (SpecAttention)kernel;
            model->early_frac = model->backward_early_frac = 0;
            g_assert_cmpfloat(cost_attention_early_frac(&accelerator, &a), ==, 1);
            model->early_frac = 0.9, model->backward_early_frac = 0.8;
            const double frac = kernel == SPEC_ATTENTION_CUDNN ? (backward == 1 ? 0.8 : 0.9) : 1;
            g_assert_cmpfloat(cost_attention_early_frac(&accelerator, &a), ==, frac);
        }
    }
}

/* A scale for 32 elements costs what the block says, and nothing where it says 1, or in 16 bits. */
static void test_block_scaled(void)
{
    SpecAccelerator accelerator = round_machine();
    SpecAttentionModel *model = &accelerator.model.attention[SPEC_ATTENTION_CUDNN];
    accelerator.peak_flops_per_s[SPEC_FP8] = 2 * accelerator.peak_flops_per_s[SPEC_BF16];
    for (size_t i = 0; i < SPEC_ATTENTION_COUNT; i++) {
        accelerator.model.attention[i].fp8_frac = 0.8;
        accelerator.model.attention[i].mxfp8_frac = accelerator.model.attention[i].backward_mxfp8_frac = 1;
    }
    for (int backward = 0; backward < 2; backward++) {
        CostAttention a = head(12800);
        a.dtype = SPEC_FP8;
        a.backward = backward == 1;
        model = &accelerator.model.attention[a.kernel];
        const double fixed_s = backward == 1 ? 7e-6 + 1e-6 : 5e-6 + 1e-6; /* latency and a tile */
        const double plain_s = cost_attention_s(&accelerator, &a);
        a.block_scaled = true;
        g_assert_cmpfloat(cost_attention_s(&accelerator, &a), ==, plain_s);
        model->mxfp8_frac = 0.9, model->backward_mxfp8_frac = 0.75;
        fixture_within(cost_attention_s(&accelerator, &a) - fixed_s,
                       (plain_s - fixed_s) / (backward == 1 ? 0.75 : 0.9), 1e-6);
        model->mxfp8_frac = model->backward_mxfp8_frac = 1;
    }
    CostAttention wide = head(12800);
    const double wide_s = cost_attention_s(&accelerator, &wide);
    model->mxfp8_frac = 0.5;
    wide.block_scaled = true;
    g_assert_cmpfloat(cost_attention_s(&accelerator, &wide), ==, wide_s);
}

/* A window saves what lies outside it, but for cuDNN's 8-bit backward, which takes what it takes without one. */
static void test_window(void)
{
    SpecAccelerator accelerator = fixture_preset("gb300-nvl72");
    for (int narrow = 0; narrow < 2; narrow++)
        for (int backward = 0; backward < 2; backward++) {
            CostAttention a = head(16384);
            a.kernel = SPEC_ATTENTION_CUDNN;
            a.heads = a.kv_heads = 64;
            a.causal = true;
            a.dtype = narrow == 1 ? SPEC_FP8 : SPEC_BF16;
            a.backward = backward == 1;
            const double whole_s = cost_attention_s(&accelerator, &a);
            a.window_tokens = 128;
            const double window_s = cost_attention_s(&accelerator, &a);
            if (narrow == 1 && backward == 1)
                g_assert_cmpfloat(window_s, ==, whole_s);
            else
                g_assert_cmpfloat(window_s, <, 0.2 * whole_s);
        }
}

static void test_monotone(void)
{
    static const SpecAttention kernels[] = {SPEC_ATTENTION_FLASH2, SPEC_ATTENTION_FLASH3,
                                            SPEC_ATTENTION_CUDNN};
    for (size_t i = 0; i < G_N_ELEMENTS(fixture_presets); i++) {
        const SpecAccelerator accelerator = fixture_preset(fixture_presets[i]);
        for (size_t j = 0; j < G_N_ELEMENTS(kernels); j++) {
            double before_s = 0;
            for (double tokens = 128; tokens <= 131072; tokens *= 2) {
                CostAttention a = head(tokens);
                a.kernel = kernels[j];
                a.heads = 16, a.kv_heads = 8;
                const double full_s = cost_attention_s(&accelerator, &a);
                a.causal = true;
                const double causal_s = cost_attention_s(&accelerator, &a);
                g_assert_cmpfloat(causal_s, <=, full_s * (1 + 1e-12));
                if (tokens >= 16384)
                    g_assert_cmpfloat(causal_s, <, 0.75 * full_s);
                g_assert_cmpfloat(causal_s, >, before_s);
                before_s = causal_s;
                a.backward = true;
                if (tokens >= 1024) /* below, the latencies of two fits decide */
                    g_assert_cmpfloat(cost_attention_s(&accelerator, &a), >, causal_s);
                a.backward = false;
                a.heads = 32, a.kv_heads = 8;
                g_assert_cmpfloat(cost_attention_s(&accelerator, &a), >=, causal_s);
                a.window_tokens = 512;
                g_assert_cmpfloat(cost_attention_s(&accelerator, &a), <=, 2 * causal_s);
                a.batch = 0;
                g_assert_cmpfloat(cost_attention_s(&accelerator, &a), <, 1e-4);
            }
        }
    }
}

/* Long sequences reach the plateaus of [FlashAttention3] figures 5 and 6 (H100) and of [cudnn-frontend]. */
static void test_published(void)
{
    static const struct {
        const char *accelerator;
        SpecAttention kernel;
        double batch, tokens, heads, kv_heads, dim;
        bool causal, backward;
        double tflops; /* causal counted as half */
    } rows[] = {
        {"h100-sxm5-80gb", SPEC_ATTENTION_FLASH3, 2, 8192, 16, 16, 128, false, false, 646},
        {"h100-sxm5-80gb", SPEC_ATTENTION_FLASH3, 2, 8192, 16, 16, 128, true, false, 602},
        {"h100-sxm5-80gb", SPEC_ATTENTION_FLASH3, 2, 8192, 16, 16, 128, false, true, 559},
        {"h100-sxm5-80gb", SPEC_ATTENTION_FLASH3, 1, 16384, 32, 32, 64, false, true, 474},
        {"h100-sxm5-80gb", SPEC_ATTENTION_FLASH2, 2, 8192, 16, 16, 128, true, false, 333},
        {"h100-sxm5-80gb", SPEC_ATTENTION_CUDNN, 2, 8192, 16, 16, 128, true, false, 529},
        {"h200-sxm5-141gb", SPEC_ATTENTION_CUDNN, 1, 4096, 64, 8, 128, true, false, 591},
        {"h200-sxm5-141gb", SPEC_ATTENTION_CUDNN, 1, 4096, 64, 8, 128, true, true, 474},
        {"gb300-nvl72", SPEC_ATTENTION_CUDNN, 2, 8192, 64, 8, 128, true, false, 1856},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        const SpecAccelerator accelerator = fixture_preset(rows[i].accelerator);
        const CostAttention a = {.kernel = rows[i].kernel,
                                 .batch = rows[i].batch,
                                 .q_tokens = rows[i].tokens,
                                 .kv_tokens = rows[i].tokens,
                                 .heads = rows[i].heads,
                                 .kv_heads = rows[i].kv_heads,
                                 .qk_head_dim = rows[i].dim,
                                 .v_head_dim = rows[i].dim,
                                 .causal = rows[i].causal,
                                 .backward = rows[i].backward,
                                 .dtype = SPEC_BF16};
        const double flops = 4 * a.batch * a.heads * a.q_tokens * a.kv_tokens * a.qk_head_dim *
                             (a.causal ? 0.5 : 1) * (a.backward ? 2.5 : 1);
        fixture_within(flops / cost_attention_s(&accelerator, &a), rows[i].tflops * 1e12, 0.12);
    }
}

/* Sixteen heads of `dim` over four sequences of 8,192 tokens, forward. */
static CostAttention causal_attention(int dim)
{
    return (CostAttention){.kernel = SPEC_ATTENTION_FLASH2,
                           .batch = 4,
                           .heads = 16,
                           .kv_heads = 16,
                           .q_tokens = 8192,
                           .kv_tokens = 8192,
                           .qk_head_dim = dim,
                           .v_head_dim = dim,
                           .causal = true,
                           .dtype = SPEC_BF16};
}

/* Heads of 128 fill half of an array 256 wide, of 256 all of it. */
static void matrix_unit(void)
{
    SpecAccelerator accelerator = fixture_preset("tpu-v6e");
    g_assert_cmpint(accelerator.matrix_unit, ==, 256);
    for (int dim = 128; dim <= 256; dim += 128) {
        CostAttention attention = causal_attention(dim);
        const double latency_s = accelerator.model.attention[SPEC_ATTENTION_FLASH2].latency_s;
        SpecAccelerator whole = accelerator;
        whole.matrix_unit = 0;
        fixture_within((cost_attention_s(&accelerator, &attention) - latency_s) /
                           (cost_attention_s(&whole, &attention) - latency_s),
                       256.0 / dim, 1e-6);
    }
}

/* Kernels apart for queries and for keys and values compute scores and their gradients twice: 7 products for 5, and the
 * forward as it was. */
static void split_backward(void)
{
    SpecAccelerator accelerator = fixture_preset("tpu-v5p");
    g_assert_true(accelerator.split_attention_backward);
    SpecAccelerator whole = accelerator;
    whole.split_attention_backward = false;
    CostAttention attention = causal_attention(128);
    g_assert_cmpfloat(cost_attention_s(&accelerator, &attention), ==, cost_attention_s(&whole, &attention));
    attention.backward = true;
    const double latency_s = accelerator.model.attention[SPEC_ATTENTION_FLASH2].backward_latency_s;
    fixture_within((cost_attention_s(&accelerator, &attention) - latency_s) /
                       (cost_attention_s(&whole, &attention) - latency_s),
                   1.4, 1e-6);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/attention/flops", test_flops);
    g_test_add_func("/attention/waves-by-hand", test_waves_by_hand);
    g_test_add_func("/attention/eight-bits", test_eight_bits);
    g_test_add_func("/attention/narrow-eight-bits", test_narrow_eight_bits);
    g_test_add_func("/attention/memory", test_memory);
    g_test_add_func("/attention/early-library", test_early_library);
    g_test_add_func("/attention/block-scaled", test_block_scaled);
    g_test_add_func("/attention/window", test_window);
    g_test_add_func("/attention/monotone", test_monotone);
    g_test_add_func("/attention/published", test_published);
    g_test_add_func("/attention/matrix-unit", matrix_unit);
    g_test_add_func("/attention/split-backward", split_backward);
    return g_test_run();
}
