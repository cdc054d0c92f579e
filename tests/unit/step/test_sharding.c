/* tests/unit/step/test_sharding.c - what each knob of sharded data parallelism does to the time and memory of a step. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "costmodel/placement.h"
#include "report/report.h"
#include "step/step.h"

typedef struct Ran {
    double step_s, peak, weights, gradients, optimizer, exposed_s, sent, across;
} Ran;

static void load(const char *const *sets, Spec *ret_spec)
{
    static const char text[] =
        "{\"model\":{\"layers\":12,\"hidden\":4096,\"heads\":32,\"ffn_hidden\":14336,\"gated_mlp\":true,"
        "\"vocab\":32000,\"tied_embeddings\":false},"
        "\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":4},"
        "\"training\":{\"sequence_length\":4096,\"global_batch\":128,\"micro_batch\":1},"
        "\"parallel\":{\"zero\":3},\"execution\":{\"framework\":\"pytorch-fsdp\",\"attention\":\"flash2\","
        "\"overlap\":[\"grad_reduce\",\"param_gather\"]}}";
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "here", &error);
    spec_load_json(orr_json_root(doc), "here", sets, false, ret_spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
}

static Ran run(const char *const *sets)
{
    const ReportOptions options = {.check = true};
    GError *error = NULL;
    Spec spec;
    Report report;
    OrrArena *arena = orr_arena_new();
    load(sets, &spec);
    report_run(&spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    const ReportStage *stage = &report.stages[0];
    const Ran ran = {.step_s = (double)report.step_ps * 1e-12,
                     .peak = report.peak_bytes,
                     .weights = stage->weights_bytes,
                     .gradients = stage->gradients_bytes,
                     .optimizer = stage->optimizer_bytes,
                     .sent = (double)report.result.rank[0].scale_up_bytes +
                             (double)report.result.rank[0].scale_out_bytes,
                     .across = (double)report.result.rank[0].scale_out_bytes,
                     .exposed_s = (double)report.part_ps[SIM_PART_DATA_COMM] * 1e-12};
    orr_arena_free(arena);
    return ran;
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

/* Each stage shards more: never more memory. */
static void stages(void)
{
    const Ran zero[] = {RUN("parallel.zero=0"), RUN("parallel.zero=1"), RUN("parallel.zero=2"),
                        RUN("parallel.zero=3")};
    for (int i = 1; i < 4; i++)
        g_assert_cmpfloat(zero[i].peak, <, zero[i - 1].peak);
    g_assert_cmpfloat(zero[1].optimizer, <, 0.04 * zero[0].optimizer);
    g_assert_cmpfloat(zero[2].gradients, <, zero[1].gradients);
    g_assert_cmpfloat(zero[3].weights, <, 0.2 * zero[2].weights);
}

/* Units gathered ahead: less is waited for, and each takes its place. */
static void prefetch(void)
{
    const Ran none = RUN("execution.framework.data_parallel.prefetch_units=0"),
              one = RUN("execution.framework.data_parallel.prefetch_units=1"),
              two = RUN("execution.framework.data_parallel.prefetch_units=2");
    g_assert_cmpfloat(one.exposed_s, <, 0.5 * none.exposed_s);
    g_assert_cmpfloat(two.exposed_s, <=, one.exposed_s);
    g_assert_cmpfloat(two.weights, >, one.weights);
    g_assert_cmpfloat(one.weights, >, none.weights);
}

/* Weights that stay after the forward are gathered once, and are all there when the backward begins. */
static void reshard(void)
{
    const Ran again =
                  RUN("execution.overlap=[]", "execution.framework.data_parallel.resharding=after-forward"),
              kept = RUN("execution.overlap=[]", "execution.framework.data_parallel.resharding=never");
    g_assert_cmpfloat(kept.exposed_s, <, again.exposed_s);
    g_assert_cmpfloat(kept.weights, >, 3 * again.weights);
}

/* Embedding and head as one unit: gathered once a micro-batch, with nothing before it to hide beside, and reduced behind all
 * else. Only one stage has such a unit, and only where weights are sharded. */
static void root_unit(void)
{
    const char *const joins = "execution.framework.data_parallel.root_unit=true";
    const double table = 2.0 * 32000 * 4096, batches = 4;
    const Ran apart = RUN("training.recompute=none"), root = RUN(joins);
    const double more_s = root.step_s - apart.step_s;
    const Ran vast = RUN(joins, "model.vocab=64000"), vast_apart = RUN("model.vocab=64000");
    g_assert_cmpfloat(root.exposed_s, >, apart.exposed_s);
    g_assert_cmpfloat(more_s, >, 0);
    g_assert_cmpfloat(vast.step_s - vast_apart.step_s, >, 1.5 * more_s);
    g_assert_cmpfloat(apart.sent - root.sent, >, 0.9 * batches * table * 31 / 32);
    g_assert_cmpfloat(apart.sent - root.sent, <, 1.1 * batches * table);
    g_assert_cmpfloat(root.weights, >, apart.weights);
    static const char *const without[][2] = {{"parallel.pipeline=2", "parallel.zero=3"},
                                             {"parallel.pipeline=1", "parallel.zero=2"}};
    for (size_t i = 0; i < G_N_ELEMENTS(without); i++) {
        const Ran plain = RUN(without[i][0], without[i][1]), same = RUN(without[i][0], without[i][1], joins);
        g_assert_cmpfloat(plain.step_s, ==, same.step_s);
        g_assert_cmpfloat(plain.peak, ==, same.peak);
    }
}

/* Gradients that wait whole for the last micro-batch: fewer bytes on the wire, all of them in memory, with either stage. */
static void accumulation(void)
{
    const double parameters = 12 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 14336) + 2.0 * 32000 * 4096;
    for (int zero = 2; zero <= 3; zero++) {
        g_autofree char *stage = g_strdup_printf("parallel.zero=%d", zero);
        const Ran each = RUN(stage, "execution.overlap=[]",
                             "execution.framework.data_parallel.bucket_bytes=4e8"),
                  once =
                      RUN(stage, "execution.overlap=[]", "execution.framework.data_parallel.bucket_bytes=4e8",
                          "execution.framework.data_parallel.reduce_each_microbatch=false");
        g_assert_cmpfloat(once.sent, <, 0.8 * each.sent);
        g_assert_cmpfloat(each.gradients, <, 1.2 * parameters);
    }
}

static SimPlan planned(const char *const *sets, Spec *spec, OrrArena *arena)
{
    SimPlan plan;
    GError *error = NULL;
    load(sets, spec);
    g_assert_true(sim_step_plan(spec, arena, &plan, &error));
    g_assert_no_error(error);
    return plan;
}

static double parameters_of(const SimPlan *plan)
{
    double sum = 0;
    for (int stage = 0; stage < plan->shape.ranks * plan->shape.chunks; stage++)
        for (int i = 0; i < plan->stages[stage].segment_count; i++)
            sum += plan->stages[stage].segments[i].dense_params;
    return sum;
}

/* A multi-token module looks its tokens up in a copy of the table where the last stage is another rank's than the first: the
 * stage holds it. Orders that come back to the first rank need none. */
#define ENDS "parallel.zero=1", "parallel.pipeline=4", "execution.framework=torchtitan", "model.mtp_layers=1"
static void multi_token_table(void)
{
    const double table = 32000.0 * 4096;
    OrrArena *arena = orr_arena_new();
    g_autofree Spec *spec = g_new(Spec, 1);
    const SimPlan with = planned((const char *const[]){ENDS, NULL}, spec, arena),
                  back = planned((const char *const[]){ENDS, "parallel.virtual_stages=2",
                                                       "parallel.schedule=zb-v", NULL},
                                 spec, arena);
    g_assert_cmpfloat(parameters_of(&with), ==, parameters_of(&back) + table);
    orr_arena_free(arena);
}

/* Copies around the reduction of gradients cost as often as they are made, and nothing where units shard them; an
 * optimizer that streams its arrays more often takes longer by that, wherever they lie. */
static void passes_of_a_step(void)
{
    static const char COPIES[] = "execution.framework.data_parallel.bucket_copies=1",
                      TWICE[] = "execution.framework.data_parallel.bucket_copies=2",
                      STREAMS[] = "execution.framework.optimizer.optimizer_streams=2.9",
                      NONE[] = "execution.framework.data_parallel.bucket_copies=0";
    const Ran none = RUN("parallel.zero=1", NONE), one = RUN("parallel.zero=1", COPIES),
              two = RUN("parallel.zero=1", TWICE);
    g_assert_cmpfloat(one.step_s, >, none.step_s);
    const double each = one.step_s - none.step_s;
    g_assert_cmpfloat_with_epsilon(two.step_s - one.step_s, each, 0.01 * each); /* but a launch */
    const Ran units = RUN("parallel.zero=3", NONE), same = RUN("parallel.zero=3", TWICE);
    g_assert_true(memcmp(&units, &same, sizeof same) == 0);
    for (int zero = 0; zero <= 3; zero += 3) {
        g_autofree char *stage = g_strdup_printf("parallel.zero=%d", zero);
        const Ran fused = RUN(stage, "execution.framework.optimizer.optimizer_streams=1"), plain = RUN(stage),
                  streams = RUN(stage, STREAMS);
        g_assert_true(memcmp(&fused, &plain, sizeof plain) == 0);
        g_assert_cmpfloat(streams.step_s, >, fused.step_s);
    }
}

/* A loop over layers copies what products leave for the backward, and nothing where all of it runs again. */
static void stacked_layers(void)
{
    static const char STACKS[] = "execution.framework.kernels.stacks_layers=true";
    const Ran apart = RUN("parallel.zero=1"), stacked = RUN("parallel.zero=1", STACKS);
    g_assert_cmpfloat(stacked.step_s, >, apart.step_s);
    g_assert_cmpfloat(stacked.step_s, <, 1.1 * apart.step_s);
    g_assert_cmpfloat(stacked.peak, ==, apart.peak);
    const Ran again = RUN("parallel.zero=1", "training.recompute=full"),
              same = RUN("parallel.zero=1", "training.recompute=full", STACKS);
    g_assert_true(memcmp(&again, &same, sizeof same) == 0);
}

/* An overlapped ZeRO-1 that keeps shards alone is ZeRO-2 to the picosecond and byte; without overlap it is plain ZeRO-1. */
static void overlapped_shards(void)
{
    static const char SHARDS[] = "execution.framework.data_parallel.zero1_reduces=scatter-early";
    static const char BUCKET[] = "execution.framework.data_parallel.bucket_bytes=4e8";
    const Ran plain = RUN("parallel.zero=1", BUCKET), early = RUN("parallel.zero=1", BUCKET, SHARDS),
              two = RUN("parallel.zero=2", BUCKET);
    g_assert_true(memcmp(&early, &two, sizeof two) == 0);
    g_assert_cmpfloat(early.gradients, <, plain.gradients);
    g_assert_cmpfloat(early.sent, >, plain.sent);
    const Ran without = RUN("parallel.zero=1", BUCKET, "execution.overlap=[\"param_gather\"]"),
              same = RUN("parallel.zero=1", BUCKET, "execution.overlap=[\"param_gather\"]", SHARDS);
    g_assert_true(memcmp(&without, &same, sizeof same) == 0);
}

/* Gradients that are reduced on every micro-batch do not pile up before a slow network: two buckets wait at most, however many
 * micro-batches there are, and the step is bound by its reductions. */
static void few_unreduced(void)
{
    static const char EACH[] = "execution.framework.data_parallel.reduce_each_microbatch=true",
                      BUCKET[] = "execution.framework.data_parallel.bucket_bytes=4e8",
                      SLOW[] = "cluster.scale_out_bytes_per_s_per_gpu=1e9", TWO[] = "parallel.zero=2";
    const Ran whole = RUN("parallel.zero=1", BUCKET, SLOW), fast = RUN(TWO, BUCKET, EACH),
              one = RUN(TWO, BUCKET, EACH, SLOW, "training.global_batch=32"),
              four = RUN(TWO, BUCKET, EACH, SLOW),
              many = RUN(TWO, BUCKET, EACH, SLOW, "training.global_batch=512");
    g_assert_cmpfloat(many.gradients, ==, four.gradients);
    const Ran layers = RUN(TWO, EACH, SLOW), full = RUN("parallel.zero=1", SLOW); /* no buckets: units */
    g_assert_cmpfloat(layers.gradients, <, 0.5 * full.gradients);
    g_assert_cmpfloat(layers.peak, <, full.peak);
    g_assert_cmpfloat(four.gradients, <=, one.gradients + 4e8); /* a bucket of the micro-batch before */
    g_assert_cmpfloat(four.gradients, <, 0.5 * whole.gradients);
    g_assert_cmpfloat(four.peak, <, whole.peak);
    g_assert_cmpfloat(four.gradients, <=, fast.gradients + 4e8);
    g_assert_cmpfloat(four.step_s, >, 3 * fast.step_s);
    g_assert_cmpfloat_with_epsilon((many.step_s - four.step_s) / (four.step_s - one.step_s), 4, 0.1);
}

/* Where kernels behind a reduction wait for it, overlap is asked for in vain: the step, its memory and what is exposed are
 * those without any, on every micro-batch; without overlap there is nothing to hold up. */
static void held_queue(void)
{
    static const char HOLDS[] = "execution.framework.data_parallel.reductions=hold-queue";
    static const char EACH[] = "execution.framework.data_parallel.reduce_each_microbatch=true";
    static const char ALONE[] = "execution.overlap=[]",
                      BUCKET[] = "execution.framework.data_parallel.bucket_bytes=4e8";
    const Ran free = RUN("parallel.zero=2", BUCKET, EACH), held = RUN("parallel.zero=2", BUCKET, EACH, HOLDS),
              alone = RUN("parallel.zero=2", BUCKET, EACH, ALONE),
              same = RUN("parallel.zero=2", BUCKET, EACH, ALONE, HOLDS);
    g_assert_true(memcmp(&alone, &same, sizeof same) == 0);
    g_assert_cmpfloat(held.step_s, >, free.step_s);
    g_assert_cmpfloat(held.exposed_s, >, 2 * free.exposed_s);
    g_assert_cmpfloat(held.sent, ==, free.sent);
    g_assert_cmpfloat_with_epsilon(held.step_s / alone.step_s, 1, 1e-3);
    g_assert_cmpfloat_with_epsilon(held.exposed_s / alone.exposed_s, 1, 1e-2);
}

/* Gathers that begin with their layer: between those of the layer before and none ahead, with the same bytes and memory as
 * the former; without a gather ahead they change nothing. */
static void gathers_with_their_layer(void)
{
    static const char WITHIN[] = "execution.framework.data_parallel.gathers_within_layer=true";
    static const char NONE[] = "execution.framework.data_parallel.prefetch_units=0";
    static const char *const RECOMPUTE[] = {"training.recompute=none", "training.recompute=full"};
    for (size_t i = 0; i < G_N_ELEMENTS(RECOMPUTE); i++) {
        const Ran ahead = RUN("parallel.zero=3", RECOMPUTE[i]),
                  within = RUN("parallel.zero=3", RECOMPUTE[i], WITHIN),
                  none = RUN("parallel.zero=3", RECOMPUTE[i], NONE),
                  same = RUN("parallel.zero=3", RECOMPUTE[i], NONE, WITHIN);
        g_assert_true(memcmp(&none, &same, sizeof same) == 0);
        g_assert_cmpfloat(within.step_s, >, ahead.step_s);
        g_assert_cmpfloat(within.step_s, <, none.step_s);
        g_assert_cmpfloat(within.exposed_s, >, ahead.exposed_s);
        g_assert_cmpfloat(within.sent, ==, ahead.sent);
        g_assert_cmpfloat(within.peak, ==, ahead.peak);
    }
    const Ran two = RUN("parallel.zero=2"), unsharded = RUN("parallel.zero=2", WITHIN);
    g_assert_true(memcmp(&two, &unsharded, sizeof two) == 0);
}

/* Breadth-first gathers and reduces once a chunk and pass, interleaving once a micro-batch: fewer bytes, less time, and a
 * chunk's weights in memory [LamyPoirier2022]. With one chunk the same is GPipe against 1F1B. */
static void whole_chunks(void)
{
    static const char FAR[] = "parallel.order=pp-tp-cp-ep-dp"; /* replicas in other nodes */
    static const char *const ORDERS[][3] = {
        {"parallel.schedule=interleaved", "parallel.schedule=breadth-first", "parallel.virtual_stages=3"},
        {"parallel.schedule=1f1b", "parallel.schedule=gpipe", "parallel.virtual_stages=1"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(ORDERS); i++) {
        const Ran each = RUN(FAR, "parallel.pipeline=4", ORDERS[i][2], ORDERS[i][0]),
                  once = RUN(FAR, "parallel.pipeline=4", ORDERS[i][2], ORDERS[i][1]),
                  two = RUN(FAR, "parallel.pipeline=4", ORDERS[i][2], ORDERS[i][1], "parallel.zero=2");
        g_assert_cmpfloat(once.sent, <, 0.2 * each.sent);
        g_assert_cmpfloat(once.step_s, <, each.step_s);
        g_assert_cmpfloat(once.exposed_s, <, 0.5 * each.exposed_s);
        g_assert_cmpfloat(once.weights, >=,
                          (i == 0 ? 1 : 1.2) * each.weights); /* chunks of one layer, of three */
        g_assert_cmpfloat(two.sent, <, once.sent);
    }
}

/* Weights that each owner broadcasts in turn: the bytes of the all-gather, more time. With ZeRO-3 each of 32 broadcasts is
 * one of a 32nd of the unit; below it a tensor has one owner: ten, three vectors go along, have 7, or at most the ranks. */
static void broadcasts(void)
{
    static const char BY_OWNER[] = "execution.framework.data_parallel.gathers=broadcasts",
                      ALONE[] = "execution.overlap=[]", LOW[] = "parallel.zero=1";
    const Ran all = RUN(ALONE), owners = RUN(ALONE, BY_OWNER), one = RUN(ALONE, LOW),
              sent = RUN(ALONE, LOW, BY_OWNER);
    g_assert_cmpfloat_with_epsilon(owners.sent / all.sent, 1, 1e-6);
    g_assert_cmpfloat_with_epsilon(owners.across / all.across, 1, 1e-6);
    g_assert_cmpfloat(owners.peak, ==, all.peak);
    g_assert_cmpfloat(owners.exposed_s, >, 1.01 * all.exposed_s);
    g_assert_cmpfloat_with_epsilon(sent.sent / one.sent, 1, 1e-6);
    g_assert_cmpfloat(sent.peak, ==, one.peak);
    g_assert_cmpfloat(sent.step_s, !=, one.step_s);
    g_assert_cmpfloat(RUN("parallel.zero=0", BY_OWNER).step_s, ==, RUN("parallel.zero=0").step_s);

    static const struct {
        const char *zero, *group;
        int ranks, owners;
    } cases[] = {
        {"parallel.zero=3", "parallel.zero_group_gpus=32", 32, 32},
        {"parallel.zero=1", "parallel.zero_group_gpus=32", 32, 7},
        {"parallel.zero=2", "parallel.zero_group_gpus=4", 4, 4},
    };
    const CostWeights layer = {.dense = 4.0 * 4096 * 4096 + 3.0 * 4096 * 14336, .tensors = 10, .vectors = 3};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Spec spec;
        SimBucketWork reduce, gather;
        load((const char *const[]){BY_OWNER, cases[i].zero, cases[i].group, "model.norm=rmsnorm",
                                   "model.biases=false", NULL},
             &spec);
        sim_step_bucket(&spec, &layer, &reduce, &gather);
        const CostCollective turn = {.op = COST_BROADCAST,
                                     .bytes = 2 * layer.dense / cases[i].owners,
                                     .group = cost_group_part(&spec, COST_RANKS_REPLICAS, 1, cases[i].ranks)};
        g_assert_cmpfloat_with_epsilon(
            (double)gather.ps * 1e-12 / (cases[i].owners * cost_collective_s(&spec.cluster, &turn)), 1, 1e-6);
    }
}

/* Clipping reads and scales every gradient before the update, and all ranks wait for the norm. */
static void clipping(void)
{
    const Ran clipped = RUN("parallel.zero=1"),
              free = RUN("parallel.zero=1", "execution.framework.optimizer.grad_norm=none");
    g_assert_cmpfloat(clipped.step_s, >, free.step_s);
    g_assert_cmpfloat(clipped.peak, ==, free.peak);
}

/* Buckets start before the backward is over; one bucket for all waits for its end. */
static void buckets(void)
{
    const Ran one = RUN("parallel.zero=1", "execution.framework.data_parallel.bucket_bytes=0"),
              some = RUN("parallel.zero=1", "execution.framework.data_parallel.bucket_bytes=2e8");
    g_assert_cmpfloat(some.exposed_s, <, 0.5 * one.exposed_s);
    g_assert_cmpfloat(some.step_s, <, one.step_s);
}

/* Hooks of ZeRO-0 copy gradients of 2 bytes into buckets beside 2 + 4; no replicas, or ZeRO-1: none. The 2 lie in what the
 * backward has freed, unless the software keeps them. */
static void hook_buckets(void)
{
    static const char *const FRAMEWORK = "execution.framework=nanotron",
                             *const KEEPS = "execution.framework.allocator.gradients=kept";
    const Ran zero = RUN(FRAMEWORK, KEEPS, "parallel.zero=0"), one = RUN(FRAMEWORK, KEEPS, "parallel.zero=1"),
              alone = RUN(FRAMEWORK, KEEPS, "parallel.zero=0", "parallel.tensor=8", "parallel.pipeline=4"),
              within = RUN(FRAMEWORK, "parallel.zero=0");
    g_assert_cmpfloat_with_epsilon(within.gradients / within.weights, 6.0 / 2, 1e-9);
    g_assert_cmpfloat_with_epsilon(zero.gradients / zero.weights, 8.0 / 2, 1e-9);
    g_assert_cmpfloat_with_epsilon(one.gradients / one.weights, 6.0 / 2, 1e-9);
    g_assert_cmpfloat_with_epsilon(alone.gradients / alone.weights, 6.0 / 2, 1e-9);
}

/* Shards of one node: states of eight ranks instead of 32, gathers that never leave it. */
static void hybrid(void)
{
    const Ran all = RUN("execution.overlap=[]"),
              node = RUN("execution.overlap=[]", "parallel.zero_group_gpus=8");
    g_assert_cmpfloat_with_epsilon(node.optimizer / all.optimizer, 4, 1e-6);
    g_assert_cmpfloat(node.across, <, 0.7 * all.across);
}

/* Bytes a parameter of FSDP in bf16 and mixed, and of DeepSpeed. */
static void recipes(void)
{
    const Ran narrow = RUN("training.states=fsdp-bf16"), mixed = RUN("training.states=fsdp-mixed"),
              deepspeed = RUN("training.states=deepspeed");
    g_assert_cmpfloat_with_epsilon(mixed.optimizer / narrow.optimizer, 2, 1e-6);     /* 8 and 4 */
    g_assert_cmpfloat_with_epsilon(deepspeed.optimizer / narrow.optimizer, 3, 1e-6); /* 12: a master copy */
    g_assert_cmpfloat(narrow.peak, <, mixed.peak);
}

/* Bytes a parameter of the gradients of a bf16 model, by the software's own rule (docs/SOURCES.md [DeepSpeedTypes],
 * megatron/training/arguments.py). ZeRO-1 keeps them whole. */
static void bf16_gradients(void)
{
    static const struct {
        const char *framework;
        double bytes;
    } CASES[] = {
        {"deepspeed", 2},          {"transformers-deepspeed", 2},
        {"megatron-deepspeed", 6}, /* bf16 and their fp32 sum */
        {"megatron-core", 2},      /* NVIDIA's recipes */
        {"megatron-lm-2024", 4},
    };
    const double parameters =
        12 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 14336 + 2 * 4096) + 2.0 * 32000 * 4096 + 4096;
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autofree char *set = g_strdup_printf("execution.framework=%s", CASES[i].framework);
        const Ran ran = RUN("parallel.zero=1", set);
        g_assert_cmpfloat_with_epsilon(ran.gradients / parameters, CASES[i].bytes, 0.5);
    }
}

/* Megatron-LM of 2023 reduces in buckets where overlap asks for it. */
static void overlap_has_buckets(void)
{
    const Ran none = RUN("execution.framework=megatron-lm-2023", "parallel.zero=1", "execution.overlap=[]"),
              some = RUN("execution.framework=megatron-lm-2023", "parallel.zero=1");
    g_assert_cmpfloat(some.exposed_s, <, 0.5 * none.exposed_s);
    g_assert_cmpfloat(some.step_s, <, none.step_s);
}

/* Models of Transformers run eager kernels where DeepSpeed's profile has Megatron's. */
static void eager_models(void)
{
    const Ran fused = RUN("execution.framework=deepspeed", "model.dropout_frac=0"),
              eager = RUN("execution.framework=transformers-deepspeed", "model.norm=rmsnorm");
    g_assert_cmpfloat(eager.step_s, >, 1.02 * fused.step_s);
    g_assert_cmpfloat(eager.peak, >, 1.02 * fused.peak);
}

/* DeepSpeed's ZeRO-1 all-reduces whole gradients and gathers 2 bytes a weight: fp32 sums 2 x 4 + 2 where scattered ones take
 * 6, 16-bit ones 2 x 2 + 2 where those take 4. ZeRO-0 and 2 do as ever. */
static void zero1_all_reduces(void)
{
    static const char one[] = "parallel.zero=1",
                      whole[] = "execution.framework.data_parallel.zero1_reduces=all-reduce",
                      wide[] = "training.gradient_dtype=fp32", narrow[] = "training.gradient_dtype=bf16";
    const Ran scattered = RUN(one, wide), reduced = RUN(one, wide, whole),
              none = RUN("parallel.zero=0", wide), kept = RUN("parallel.zero=0", wide, whole);
    g_assert_cmpfloat(fabs(reduced.sent / scattered.sent * 6 / 10 - 1), <, 1e-3);
    g_assert_cmpfloat(kept.sent, ==, none.sent);
    g_assert_cmpfloat(fabs(RUN(one, narrow, whole).sent / RUN(one, narrow).sent * 4 / 6 - 1), <, 1e-3);
    g_assert_cmpfloat(RUN("parallel.zero=2", narrow, whole).sent, ==, RUN("parallel.zero=2", narrow).sent);
}

/* ZeRO-2 that reduces every micro-batch copies its gradients in every one; reduced once, or whole below, it does not. */
static void copies_each_microbatch(void)
{
    static const char two[] = "execution.framework.data_parallel.gradient_copies=2",
                      none[] = "execution.framework.data_parallel.gradient_copies=0",
                      each[] = "execution.framework.data_parallel.reduce_each_microbatch=true",
                      once[] = "execution.framework.data_parallel.reduce_each_microbatch=false";
    const double copies = RUN("parallel.zero=2", "execution.overlap=[]", each, two).step_s -
                          RUN("parallel.zero=2", "execution.overlap=[]", each, none).step_s;
    /* two of 2 B read and written, 12 layers and both tables, in 4 micro-batches */
    const double moved = 4 * 2 * 4 * (12 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 14336) + 2 * 4096.0 * 32000);
    g_assert_cmpfloat(copies, >, moved / 3.35e12);
    g_assert_cmpfloat(copies, <, 1.3 * moved / 3.35e12);
    g_assert_cmpfloat(RUN("parallel.zero=2", once, two).step_s, ==,
                      RUN("parallel.zero=2", once, none).step_s);
    g_assert_cmpfloat(RUN("parallel.zero=1", each, two).step_s, ==,
                      RUN("parallel.zero=1", each, none).step_s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sharding/stages", stages);
    g_test_add_func("/sharding/multi-token-table", multi_token_table);
    g_test_add_func("/sharding/prefetch", prefetch);
    g_test_add_func("/sharding/reshard", reshard);
    g_test_add_func("/sharding/root-unit", root_unit);
    g_test_add_func("/sharding/accumulation", accumulation);
    g_test_add_func("/sharding/copies-each-microbatch", copies_each_microbatch);
    g_test_add_func("/sharding/overlapped-shards", overlapped_shards);
    g_test_add_func("/sharding/few-unreduced", few_unreduced);
    g_test_add_func("/sharding/held-queue", held_queue);
    g_test_add_func("/sharding/gathers-with-their-layer", gathers_with_their_layer);
    g_test_add_func("/sharding/stacked-layers", stacked_layers);
    g_test_add_func("/sharding/passes-of-a-step", passes_of_a_step);
    g_test_add_func("/sharding/whole-chunks", whole_chunks);
    g_test_add_func("/sharding/broadcasts", broadcasts);
    g_test_add_func("/sharding/clipping", clipping);
    g_test_add_func("/sharding/buckets", buckets);
    g_test_add_func("/sharding/hook-buckets", hook_buckets);
    g_test_add_func("/sharding/hybrid", hybrid);
    g_test_add_func("/sharding/recipes", recipes);
    g_test_add_func("/sharding/bf16-gradients", bf16_gradients);
    g_test_add_func("/sharding/zero1-all-reduces", zero1_all_reduces);
    g_test_add_func("/sharding/overlap-has-buckets", overlap_has_buckets);
    g_test_add_func("/sharding/eager-models", eager_models);
    return g_test_run();
}
