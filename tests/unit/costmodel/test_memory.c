/* tests/unit/costmodel/test_memory.c - what losses, inputs, copies and the allocator hold, by hand-worked bytes. */
#include "costmodel/activations.h"
#include "costmodel/context.h"
#include "costmodel/states.h"
#include "ledger/generation.h"
#include "report/report.h"
#include "tests/unit/test_spec_support.h"

/* 2,048 tokens x 51,200 words. */
static const double LOGITS = 2048.0 * 51200;
typedef struct HeadBytes {
    double kept, forward, backward, stranded;
} HeadBytes;

/* Bytes a logit of one loss on `tensor` ranks; kept without the norm's and the head's input. */
static HeadBytes head_bytes(const char *loss, int tensor, const char *compiled)
{
    g_autofree char *a = g_strdup_printf("execution.framework.loss.kernel=%s", loss);
    g_autofree char *b = g_strdup_printf("parallel.tensor=%d", tensor);
    g_autofree Spec *spec = test_spec(a, b, compiled, "parallel.pipeline=1");
    CostShape shape;
    cost_shape_init(&shape, spec);
    const CostActivations head = cost_head_activations(&shape);
    const double logits = LOGITS / tensor, inputs = 2 * 2 * shape.part_tokens * shape.hidden;
    return (HeadBytes){(head.kept_bytes - inputs) / logits, head.forward_temp_bytes / logits,
                       head.backward_temp_bytes / logits, cost_head_stranded_bytes(&shape) / logits};
}

static void losses(void)
{
    static const struct {
        const char *loss, *compiled;
        int tensor;
        HeadBytes want;
    } CASES[] = {
        {"unfused", "execution.compiled=true", 1, {4, 6, 8, 2}},
        {"unfused", "execution.compiled=true", 2, {4, 6, 12, 2}}, /* loss_parallel */
        {"compiled", "execution.compiled=false", 1, {4, 6, 8, 2}},
        {"compiled", "execution.compiled=true", 2, {2, 0, 2, 0}},
        {"vocab-parallel-compiled", "execution.compiled=false", 2, {4, 6, 6, 0}},
        {"fused", "execution.compiled=false", 2, {2, 0, 0, 0}},
        {"xentropy", "execution.compiled=false", 2, {2, 0, 0, 0}},
        {"unfused-shifted", "execution.compiled=true", 1, {8, 4, 8, 2}},
        {"unfused-16bit", "execution.compiled=true", 1, {4, 0, 4, 0}},
        {"unfused-autocast", "execution.compiled=true", 1, {8, 0, 4, 0}},
        {"unfused-shifted-16bit", "execution.compiled=true", 1, {2, 4, 4, 0}},
        {"unfused-shifted-autocast", "execution.compiled=true", 1, {6, 6, 4, 0}},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        const HeadBytes got = head_bytes(CASES[i].loss, CASES[i].tensor, CASES[i].compiled);
        g_assert_cmpfloat(got.kept, ==, CASES[i].want.kept);
        g_assert_cmpfloat(got.forward, ==, CASES[i].want.forward);
        g_assert_cmpfloat(got.backward, ==, CASES[i].want.backward);
        g_assert_cmpfloat(got.stranded, ==, CASES[i].want.stranded);
    }
}

/* The final norm is eager where norms are: an fp32 copy of its input, 2,048 x 4,096 x 4 bytes; a layer norm keeps none. */
static void final_norm(void)
{
    const struct {
        const char *spelled_out, *norm;
    } CASES[] = {{"execution.framework.kernels.norm_upcasts_fp32=false", "model.norm=rmsnorm"},
                 {"execution.framework.kernels.norm_upcasts_fp32=true", "model.norm=rmsnorm"},
                 {"execution.framework.kernels.norm_upcasts_fp32=true", "model.norm=layernorm"}};
    double kept[3];
    for (int i = 0; i < 3; i++) {
        g_autofree Spec *spec =
            test_spec(CASES[i].spelled_out, CASES[i].norm, "parallel.tensor=1", "parallel.pipeline=1");
        spec->execution.compiled = true;
        CostShape shape;
        cost_shape_init(&shape, spec);
        kept[i] = cost_head_activations(&shape).kept_bytes;
    }
    g_assert_cmpfloat(kept[1] - kept[0], ==, 2048.0 * 4096 * 4);
    g_assert_cmpfloat(kept[2], ==, kept[0]);
}

static double layer_kept(const char *a, const char *b, const char *c)
{
    g_autofree Spec *spec = test_spec(a, b, c, "parallel.sequence_parallel=true");
    CostShape shape;
    cost_shape_init(&shape, spec);
    return cost_layer_activations(&shape, 0, 0).kept_bytes;
}

/* 2,048 tokens of 4,096, 4 tensor ranks: a whole input in 16 bits is 16 MiB, a rank's part of it 4. */
static void inputs(void)
{
    const double mib = 1048576;
    const char *const fp8 = "training.precision=fp8", *const peak =
                                                          "cluster.accelerator.peak_flops_per_s.fp8=6e14";
    const double parts = layer_kept(peak, peak, peak);
    g_assert_cmpfloat(layer_kept(peak, peak, "execution.framework.tensor.keeps_gathered_input=true") - parts,
                      ==, 2 * (16 - 4) * mib);
    /* 8-bit inputs of QKV and MLP, and of the MLP's way out (16,384 / 4 wide); a cast copy of attention's output */
    g_assert_cmpfloat(parts - layer_kept(peak, peak, fp8), ==, (2 + 2 + 8 - 2) * mib);
    g_assert_cmpfloat(layer_kept(peak, fp8, "execution.framework.kernels.casts=torchao"), ==, parts);
    /* per-op recomputation: a compiler does not keep the MLP's last product, eager code does */
    const char *const per_op = "training.recompute={\"mode\":\"selective-op\"}";
    g_assert_cmpfloat(layer_kept(peak, per_op, "execution.compiled=false") -
                          layer_kept(peak, per_op, "execution.compiled=true"),
                      ==, 4 * mib);
}

static void generations(void)
{
    static const struct {
        const char *framework, *date, *want;
    } CASES[] = {
        {"torchtitan", "2024-12", "torchtitan-2024"},
        {"torchtitan", "2025-01", "torchtitan-2024"},
        {"torchtitan", "2025-02", "torchtitan-2025"},
        {"torchtitan", "2025-07", "torchtitan-2025"},
        {"torchtitan", "2025-08", NULL},
        {"pytorch-fsdp", "2023-09", "llm-foundry-2023"},
        {"pytorch-fsdp", "2023-10", NULL},
        {"megatron-deepspeed", "2022-01", "megatron-deepspeed-2021"},
        {"megatron-deepspeed", "2022-02", "megatron-deepspeed-2022"},
        {"megatron-deepspeed", "2023-12", NULL},
        {"megatron-core", "2024-11", "megatron-core-2023"},
        {"megatron-core", "2025-02", "megatron-core-2024"},
        {"megatron-core", "2025-03", "megatron-core-2024"},
        {"megatron-core", "2025-04", "megatron-core-2025"},
        {"megatron-core", "2025-09", "megatron-core-2025-09"},
        {"megatron-core", "2025-11", "megatron-core-2025-11"},
        {"megatron-core", "2026-02", "megatron-core-2026"},
        {"megatron-core", "2026-04", "megatron-core-2026"},
        {"megatron-core", "2026-06", NULL},
        {"nemo-megatron-2023", "2022-03", "nemo-megatron-2022"},
        {"nemo-megatron-2023", "2022-06", NULL},
        {"deepspeed", "2021-08", "deepspeed-2021"},
        {"deepspeed", "2022-02", NULL},
        {"megatron-lm", "2021-04", NULL}, /* megatron-lm-2021 is named by its rows and has no last month */
        {"torchtitan-2024", "2024-12", NULL},
        {"no-such-framework", "2024-12", NULL},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autofree char *got = ledger_framework_of_date(CASES[i].framework, CASES[i].date);
        g_assert_cmpstr(got, ==, CASES[i].want);
    }
}

/* All words of an entry, in any case; the longest entry of several; software that no profile names. */
static void software_in_words(void)
{
    static const struct {
        const char *text, *want;
    } CASES[] = {
        {"KempnerForge (FSDP2)", "kempnerforge"},
        {"DeepSpeed 0.11.1, HUGGING FACE Llama with FlashAttention 2", "transformers-deepspeed"},
        {"Hugging Face Trainer, PyTorch 1.8 DDP, fp32", "transformers-fsdp"},
        {"DeepSpeed 0.11", NULL},
        {"InternLM (InternEvo) 2023", "internevo"},
        {"Megatron-SWIFT (Megatron-Core)", "megatron-lm-2024"},
        {"Megatron-LLaMA", "megatron-llama"},
        {"NVIDIA DeepLearningExamples BERT, apex DDP, amp", "nvidia-bert"},
        {"Levanter on JAX", "levanter"},
        {"NeMo AutoModel (FSDP2)", "nemo-automodel"},
        {"PyTorch FSDP 1, not compiled", "pytorch-fsdp1"}, /* and not pytorch-ddp, which starts from it */
        {"Megatron-LM of 2023", NULL},
        {"NeMo 25.04.01", NULL},
        {"", NULL},
        {NULL, NULL},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autofree char *got = ledger_framework_of_text(CASES[i].text);
        g_assert_cmpstr(got, ==, CASES[i].want);
    }
}

/* The release that a row's words name is older than the row. */
static void month_of_release(void)
{
    static const struct {
        const char *text, *date, *want;
    } CASES[] = {
        {"NeMo 25.04.01", "2025-09", "2025-04"},
        {"Megatron-Bridge / NeMo 25.09", "2025-09", "2025-09"},
        {"NeMo 24.09/24.11 (Megatron-Core)", "2024-11", "2024-09"},
        {"NeMo Megatron", "2022-03", "2022-03"},
        {"NeMo 2", "2022-03", "2022-03"},
        {"NeMo 2.0.0 of NeMo 25.02", "2025-09", "2025-02"},
        {"NeMo 25.13", "2025-09", "2025-09"},
        {"Megatron-LM 23e00ed0 + TE 2.11", "2026-04", "2026-04"},
        {NULL, "2024-06", "2024-06"},
        {NULL, NULL, NULL},
        {"NeMo 25.02.01", NULL, "2025-02"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autofree char *got = ledger_software_month(CASES[i].text, CASES[i].date);
        g_assert_cmpstr(got, ==, CASES[i].want);
    }
}

static void launched_by(void)
{
    static const struct {
        const char *framework, *text, *want;
    } CASES[] = {
        {"megatron-core", "Megatron-LM 23e00ed0 + TE 2.11", "megatron-lm"},
        {"megatron-core", "Megatron-Bridge / NeMo 25.09", "megatron-core"},
        {"megatron-core", "Megatron-Core 0.6, Transformer Engine", "megatron-core"},
        {"megatron-lm-2021", "Megatron-LM 2021", "megatron-lm-2021"},
        {"megatron-core", NULL, "megatron-core"},
        {NULL, "Megatron-LM 2021", NULL},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++)
        g_assert_cmpstr(ledger_framework_launched(CASES[i].framework, CASES[i].text), ==, CASES[i].want);
}

/* A generation is the current profile but for what it says. */
static void generation_inherits(void)
{
    SpecFramework now, then;
    GError *error = NULL;
    g_assert_true(spec_load_framework("torchtitan", &now, &error));
    g_assert_true(spec_load_framework("torchtitan-2024", &then, &error));
    g_assert_cmpint(now.loss.kernel, ==, SPEC_LOSS_COMPILED);
    g_assert_cmpint(then.loss.kernel, ==, SPEC_LOSS_UNFUSED);
    g_assert_cmpfloat(now.host.kernel_host_s, ==, then.host.kernel_host_s);
    g_assert_cmpfloat(now.allocator.gather_buffers, ==, then.allocator.gather_buffers);
    g_assert_cmpstr(then.until, ==, "2025-01");
    g_assert_cmpstr(now.until, ==, "");
}

/* A scenario's own fp32 sums are reduced in fp32; the framework decides where it says nothing. */
static void reduced_as_summed(void)
{
    const char *const wire = "execution.framework.data_parallel.gradient_reduce_dtype=bf16";
    g_autofree Spec *asked = test_spec("training.gradient_dtype=fp32", wire, NULL, NULL);
    g_autofree Spec *silent = test_spec(wire, NULL, NULL, NULL);
    g_assert_cmpint(asked->training.gradient_reduce_dtype, ==, SPEC_FP32);
    g_assert_cmpint(silent->training.gradient_reduce_dtype, ==, SPEC_BF16);
    g_assert_cmpint(silent->training.gradient_dtype, ==, SPEC_BF16);
}

static double zero3_compute_s(const char *a, const char *b, const char *c)
{
    const ReportOptions options = {0};
    g_autofree Spec *spec = test_spec("parallel.zero=3", a, b, c);
    OrrArena *arena = orr_arena_new();
    Report report;
    GError *error = NULL;
    g_assert_true(report_run(spec, NULL, &options, arena, &report, &error));
    const double seconds = (double)report.part_ps[SIM_PART_COMPUTE] * 1e-12;
    orr_arena_free(arena);
    return seconds;
}

/* A wider wire: 2 bytes read, 4 written, and 4 instead of 2 read and written when it is scaled: 10 bytes, as 2.5 copies
 * in 16 bits. On a wire of the weights' type nothing is cast. */
static void casts_gradients(void)
{
    const char *const cast = "execution.framework.data_parallel.gradient_cast=true",
                      *const more = "execution.framework.data_parallel.gradient_copies=2.5",
                      *const wide = "training.gradient_reduce_dtype=fp32",
                      *const narrow = "training.gradient_reduce_dtype=bf16";
    const double one = zero3_compute_s(wide, "execution.framework.data_parallel.gradient_copies=0", NULL);
    g_assert_cmpfloat(zero3_compute_s(wide, cast, "execution.framework.data_parallel.gradient_copies=0"), >,
                      one);
    g_assert_cmpfloat_with_epsilon(
        zero3_compute_s(wide, cast, "execution.framework.data_parallel.gradient_copies=0"),
        zero3_compute_s(wide, more, NULL), 1e-9);
    g_assert_cmpfloat_with_epsilon(zero3_compute_s(narrow, cast, more), zero3_compute_s(narrow, more, NULL),
                                   1e-12);
}

static double besides(const char *a, const char *b)
{
    const ReportOptions options = {0};
    g_autofree Spec *spec = test_spec("parallel.zero=3", "parallel.pipeline=1", a, b);
    OrrArena *arena = orr_arena_new();
    Report report;
    GError *error = NULL;
    g_assert_true(report_run(spec, NULL, &options, arena, &report, &error));
    const double bytes = report.reserved_bytes - report.peak_bytes;
    orr_arena_free(arena);
    return bytes;
}

/* The largest unit is a layer: (32 + 2 x 8) x 128 x 4,096 + 4,096^2 of attention and 3 x 4,096 x 16,384 of a gated MLP
 * over 4 tensor ranks, in 16 bits, with its norms; the eager loss leaves a hole of 2 bytes for each of its logits. */
static void reserved(void)
{
    const char *const buffers = "execution.framework.allocator.gather_buffers=2";
    const double unit = 2 * (48.0 * 128 * 4096 + 4096.0 * 4096 + 3 * 4096.0 * 16384) / 4;
    g_assert_cmpfloat(besides("execution.framework.loss.kernel=fused", NULL), ==, 0);
    const double both = besides("execution.framework.loss.kernel=fused", buffers);
    g_assert_cmpfloat_with_epsilon(both, 2 * unit, 2 * 2 * 2 * 4096);
    g_assert_cmpfloat_with_epsilon(besides("execution.framework.loss.kernel=unfused", buffers) - both,
                                   2 * LOGITS / 4, 0.5);
}

/* bf16 sums, reduced in fp32 on the wire: a bucket of 1e6 in 4 bytes, the shard of a quarter of 1,000 in 8; sums in fp32
 * need no copy, one GPU a model copy no bucket. */
static void flat_gradients(void)
{
    const char *const bucket = "execution.framework.allocator.bucket_copy_elements=100",
                      *const flat = "execution.framework.optimizer.optimizer_flat_bytes=8",
                      *const zero = "parallel.zero=1";
    g_autofree Spec *half = test_spec(bucket, flat, zero, "training.gradient_reduce_dtype=fp32");
    g_autofree Spec *whole = test_spec(bucket, flat, zero, "training.gradient_dtype=fp32");
    g_autofree Spec *alone = test_spec(bucket, flat, "cluster.nodes=2", zero);
    g_assert_cmpint(half->parallel.data, ==, 4 * alone->parallel.data);
    const CostWeights many = {.dense = 900}, few = {.dense = 60};
    g_assert_cmpfloat(cost_flat_gradient_bytes(half, &many), ==, 100 * 4 + 900 / 4 * 8);
    g_assert_cmpfloat(cost_flat_gradient_bytes(half, &few), ==, 60 * 4 + 60 / 4 * 8);
    g_assert_cmpfloat(cost_flat_gradient_bytes(whole, &many), ==, 100 * 4);
    g_assert_cmpfloat(cost_flat_gradient_bytes(alone, &many), ==, 900 * 8);
}

/* Keys and values of 2,048 tokens x 8 heads / 4 ranks x 2 x 128 in 16 bits: 2 MiB whole, half of it on each of 2 ranks. */
static void context_buffers(void)
{
    static const struct {
        const char *mode;
        double forward, backward;
    } CASES[] = {{"ring", 2, 4}, {"allgather", 2, 4}, {"allgather-ring", 2, 2 + 2 * 2}, {"ulysses", 0, 0}};
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autofree char *mode = g_strconcat("parallel.context_mode=", CASES[i].mode, NULL);
        g_autofree Spec *spec = test_spec(mode, "parallel.context=2", NULL, NULL);
        CostShape shape;
        cost_shape_init(&shape, spec);
        g_assert_cmpfloat(cost_context_buffer_bytes(&shape, false), ==, CASES[i].forward * 1048576);
        g_assert_cmpfloat(cost_context_buffer_bytes(&shape, true), ==, CASES[i].backward * 1048576);
    }
    g_autofree Spec *spec = test_spec(NULL, NULL, NULL, NULL);
    CostShape shape;
    cost_shape_init(&shape, spec);
    g_assert_cmpfloat(cost_context_buffer_bytes(&shape, true), ==, 0);
}

static Report run(const char *a, const char *b, OrrArena *arena)
{
    const ReportOptions options = {.check = true};
    Spec *spec = orr_arena_alloc(arena, sizeof *spec);
    g_autofree Spec *loaded = test_spec("parallel.data=4", "training.global_batch=64", a, b);
    Report report;
    GError *error = NULL;
    *spec = *loaded;
    g_assert_true(report_run(spec, NULL, &options, arena, &report, &error));
    return report;
}

/* 16 micro-batches of 2,048 tokens x 4,096 in 16 bits, 16 MiB each, over 4 stages: the first keeps gradients of all of them
 * and outputs of 4 or of all, the next two also inputs, which stop counting where they are in flight (3, 2, 1), the last
 * inputs and 50 MiB of logits each. */
static void boundaries(void)
{
    static const double MIB_MORE[] = {(16 + 4) * 16, (2 * 16 + 4 - 3) * 16, (2 * 16 + 4 - 2) * 16,
                                      (16 - 1) * 16 + 16 * 50};
    OrrArena *arena = orr_arena_new();
    const Report without = run("execution.framework.allocator.pipeline_keeps=in-flight", NULL, arena);
    const Report some = run("execution.framework.allocator.pipeline_keeps=boundaries", NULL, arena);
    const Report all = run("execution.framework.allocator.pipeline_keeps=outputs", NULL, arena);
    g_assert_cmpint(all.stage_count, ==, 4);
    for (int i = 0; i < 4; i++) {
        const double more = i < 3 ? (16 - 4) * 16 : 0;
        g_assert_cmpfloat(some.stages[i].peak_bytes - without.stages[i].peak_bytes, ==,
                          MIB_MORE[i] * 1048576);
        g_assert_cmpfloat(all.stages[i].peak_bytes - some.stages[i].peak_bytes, ==, more * 1048576);
    }
    orr_arena_free(arena);
}

static Report run_sets(const char *const *sets, OrrArena *arena)
{
    const ReportOptions options = {.check = true};
    Spec *spec = orr_arena_alloc(arena, sizeof *spec);
    Report report;
    GError *error = NULL;
    char *message = NULL;
    if (!test_load(sets, false, spec, NULL, &message))
        g_error("%s", message);
    g_assert_true(report_run(spec, NULL, &options, arena, &report, &error));
    return report;
}

/* What placeholders add to a stage: one for each shape of weight of the rank's own layers, over 4 tensor ranks, in 16 bits.
 * Attention's (32 + 2 x 8) x 128 x 4,096 and 4,096^2 on all four stages; gated MLPs of 2 and 1 x 4,096 x 16,384 on the first
 * three; on the last one an expert's 2 and 1 x 4,096 x 512, however many there are, and the LM head's 51,200 x 4,096. */
static void placeholders(void)
{
    const char *const moe =
        "model.moe={\"experts\":8,\"top_k\":2,\"expert_ffn_hidden\":512,\"dense_layers\":24}";
    const char *const fused = "execution.framework.kernels.fused_grad_accumulation=true",
                      *const gated = "model.gated_mlp=true",
                      *const placed = "execution.framework.allocator.weight_placeholders=true",
                      *const whole = "parallel.expert_tensor=1";
    OrrArena *arena = orr_arena_new();
    const Report with = run_sets((const char *[]){moe, fused, gated, whole, placed, NULL}, arena),
                 without = run_sets((const char *[]){moe, fused, gated, whole, NULL}, arena);
    const double attention = (48.0 * 128 * 4096 + 4096.0 * 4096) / 4, dense = 3 * 4096.0 * 16384 / 4;
    for (int i = 0; i < 4; i++) {
        const double want = i < 3 ? attention + dense : attention + 3 * 4096.0 * 512 + 51200 * 4096.0 / 4;
        g_assert_cmpfloat(with.stages[i].workspace_bytes - without.stages[i].workspace_bytes, ==, 2 * want);
    }
    orr_arena_free(arena);
}

/* 16-bit gradients beside fp32 sums, 2 + 4 bytes: those of a stage of 8 layers take the room of its activations, which
 * recomputed are the layers' inputs, 2,048 x 4,096 in 16 bits each, and else more than they need. */
static void passing_gradients(void)
{
    const char *const both = "execution.framework.optimizer.states=bf16-fp32-acc",
                      *const sums = "training.gradient_dtype=fp32",
                      *const within = "execution.framework.allocator.gradients=dropped-in-backward",
                      *const full = "training.recompute=full";
    OrrArena *arena = orr_arena_new();
    const Report whole = run_sets((const char *[]){both, sums, NULL}, arena),
                 passing = run_sets((const char *[]){both, sums, within, NULL}, arena),
                 recomputed = run_sets((const char *[]){both, sums, within, full, NULL}, arena),
                 none = run_sets((const char *[]){within, full, NULL}, arena),
                 plain = run_sets((const char *[]){full, NULL}, arena);
    const double parameters = whole.stages[1].gradients_bytes / 6;
    g_assert_cmpfloat(passing.stages[1].gradients_bytes, ==, 4 * parameters);
    g_assert_cmpfloat(recomputed.stages[1].gradients_bytes, ==, 6 * parameters - 8 * 2048.0 * 4096 * 2);
    g_assert_cmpfloat(none.stages[1].gradients_bytes, ==,
                      plain.stages[1].gradients_bytes); /* one copy: stays */
    orr_arena_free(arena);
}

/* The LM head's backward comes first: gradients that outgrow its activations are there before those of any layer leave. */
static void passing_head_gradients(void)
{
    static const char *const LAYERS[] = {"model.layers=32", "model.layers=16"};
    OrrArena *arena = orr_arena_new();
    double beyond[G_N_ELEMENTS(LAYERS)];
    for (size_t i = 0; i < G_N_ELEMENTS(LAYERS); i++) {
        const char *const vocab = "model.vocab=512000", *const loss = "execution.framework.loss.kernel=fused",
                          *const both = "execution.framework.optimizer.states=bf16-fp32-acc",
                          *const sums = "training.gradient_dtype=fp32",
                          *const within = "execution.framework.allocator.gradients=dropped-in-backward";
        const Report whole = run_sets((const char *[]){LAYERS[i], vocab, loss, both, sums, NULL}, arena),
                     passing =
                         run_sets((const char *[]){LAYERS[i], vocab, loss, both, sums, within, NULL}, arena);
        beyond[i] = passing.stages[3].gradients_bytes - whole.stages[3].gradients_bytes / 6 * 4;
    }
    g_assert_cmpfloat(beyond[0], ==, beyond[1]);
    g_assert_cmpfloat(beyond[0], >, 0);
    g_assert_cmpfloat(beyond[0], <, 512000.0 * 4096 / 4 * 2);
    orr_arena_free(arena);
}

/* Two outputs of 2,048 x 4,096 in 16 bits for each layer that the host is ahead of the GPU: all 32, at most as many as the
 * queue takes, none where the GPU waits for the host; with every layer's recomputation four more for each whose backward the
 * queue takes too, three layers' room: of 44, 4. Split sequences or not. In pipelines of four either pass alone. */
static void held_outputs(void)
{
    static const struct {
        const char *lead, *host, *recompute, *split, *stages;
        double layers;
    } CASES[] = {{"1000", "0", "none", "true", "1", 32}, {"3", "0", "none", "true", "1", 3},
                 {"0", "0", "none", "true", "1", 0},     {"1000", "1", "none", "true", "1", 0},
                 {"44", "0", "none", "false", "1", 32},  {"44", "0", "full", "false", "1", 40},
                 {"1000", "0", "full", "true", "1", 96}, {"3", "0", "full", "true", "1", 3},
                 {"1000", "0", "full", "true", "4", 16}, {"9", "0", "full", "true", "4", 8}};
    OrrArena *arena = orr_arena_new();
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autofree char *lead =
            g_strconcat("execution.framework.allocator.launch_lead_layers=", CASES[i].lead, NULL);
        g_autofree char *host = g_strconcat("execution.framework.host.kernel_host_s=", CASES[i].host, NULL);
        g_autofree char *recompute = g_strconcat("training.recompute=", CASES[i].recompute, NULL);
        g_autofree char *split = g_strconcat("parallel.sequence_parallel=", CASES[i].split, NULL);
        g_autofree char *stages = g_strconcat("parallel.pipeline=", CASES[i].stages, NULL);
        const Report report = run_sets((const char *[]){stages, split, recompute, lead, host,
                                                        "execution.framework.loss.kernel=fused", NULL},
                                       arena);
        g_assert_cmpfloat(report.reserved_bytes - report.peak_bytes, ==,
                          2 * CASES[i].layers * 2048 * 4096 * 2);
    }
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memory/losses", losses);
    g_test_add_func("/memory/final-norm", final_norm);
    g_test_add_func("/memory/inputs", inputs);
    g_test_add_func("/memory/generations", generations);
    g_test_add_func("/memory/generation-inherits", generation_inherits);
    g_test_add_func("/memory/month-of-release", month_of_release);
    g_test_add_func("/memory/software-in-words", software_in_words);
    g_test_add_func("/memory/launched-by", launched_by);
    g_test_add_func("/memory/reduced-as-summed", reduced_as_summed);
    g_test_add_func("/memory/casts-gradients", casts_gradients);
    g_test_add_func("/memory/reserved", reserved);
    g_test_add_func("/memory/flat-gradients", flat_gradients);
    g_test_add_func("/memory/context-buffers", context_buffers);
    g_test_add_func("/memory/boundaries", boundaries);
    g_test_add_func("/memory/placeholders", placeholders);
    g_test_add_func("/memory/passing-gradients", passing_gradients);
    g_test_add_func("/memory/passing-head-gradients", passing_head_gradients);
    g_test_add_func("/memory/held-outputs", held_outputs);
    return g_test_run();
}
