/* tests/unit/random_step.h - draws scenarios of one training step, every way to split combined with every other, and runs them
 * with all that `--check` holds. Many make no sense and are refused. */
#ifndef ORR_TESTS_UNIT_RANDOM_STEP_H
#define ORR_TESTS_UNIT_RANDOM_STEP_H

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "report/report.h"
#include "tests/unit/draws.h"

static const char *const SCHEDULES[] = {"1f1b",          "1f1b",     "gpipe",    "interleaved", "interleaved",
                                        "breadth-first", "zb-h1",    "zb-h2",    "zb-v",        "v-half",
                                        "v-min",         "dualpipe", "dualpipev"};
static const char *const MODES[] = {"ring",           "ring-naive", "ring-striped", "allgather",
                                    "allgather-ring", "ulysses",    "hierarchical"};
static const char *const SCHEMES[] = {"1d", "2d", "2.5d", "3d"};
static const char *const DISPATCHERS[] = {"alltoall", "deepep", "hybridep", "hierarchical"};
static const char *const LENGTHS[] = {"", ",\"document_tokens\":300", ",\"lengths\":{\"mean\":700}"};
static const char *const ROUTERS[] = {"\"even\"", "\"uniform\"",
                                      "{\"distribution\":\"zipf\",\"exponent\":0.7}",
                                      "{\"distribution\":\"dirichlet\",\"concentration\":4}"};
static const char *const RECOMPUTE[] = {"\"none\"", "\"selective\"", "\"full\"",
                                        "{\"mode\":\"modules\",\"modules\":[\"moe\",\"layernorm\"]}"};
static const char *const OVERLAPS[] = {
    "[]", "[\"grad_reduce\",\"param_gather\"]",
    "[\"grad_reduce\",\"param_gather\",\"tensor\",\"pipeline\",\"expert\"]"};
static const char *const FRAMEWORKS[] = {"megatron-core", "torchtitan", "deepspeed", "pytorch-fsdp",
                                         "meta-llama3"};

static const char *const ORDERS[] = {"tp-cp-ep-dp-pp", "tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "dp-tp-cp-ep-pp",
                                     "pp-tp-cp-ep-dp", "cp-tp-ep-dp-pp", "ep-dp-tp-cp-pp"};
/* GPUs of a node and of a scale-up domain, nodes: even ones, and ones that groups straddle. */
static const struct {
    int node, domain, nodes;
} SHAPES[] = {{8, 8, 1}, {8, 8, 2}, {8, 8, 4}, {8, 8, 8},  {8, 8, 3}, {4, 8, 3},   {4, 16, 4}, {4, 72, 6},
              {6, 6, 2}, {6, 6, 4}, {6, 3, 3}, {5, 5, 12}, {3, 9, 8}, {2, 12, 12}, {1, 1, 8},  {16, 16, 1}};
static const int DEGREES[] = {1, 1, 1, 2, 2, 3, 4, 4, 6};

#define PICK(rand, list) (list)[g_rand_int_range((rand), 0, (int)G_N_ELEMENTS(list))]

static int power(GRand *rand, int most)
{
    int value = 1;
    while (value < most && g_rand_boolean(rand)) {
        value *= 2;
    }
    return value;
}

static const char *truth(GRand *rand)
{
    return g_rand_boolean(rand) ? "true" : "false";
}

/* Experts, latent attention, windows and prediction layers. */
static void add_model(GRand *rand, bool moe, GString *out)
{
    if (moe) {
        const int kind = g_rand_int_range(rand, 0, 8);
        const bool late = kind < 2, groups = kind < 6 && g_rand_boolean(rand);
        g_string_append_printf(
            out,
            ",\"moe\":{\"experts\":16,\"top_k\":%d,\"expert_ffn_hidden\":256,\"shared_experts\":%d,"
            "\"dense_layers\":%d,\"late_layers\":%d,\"late_experts\":%d,\"capacity_factor\":%d,\"router_"
            "groups\":%d,\"router_top_groups\":%d%s}",
            g_rand_int_range(rand, 1, 5), g_rand_int_range(rand, 0, 2), g_rand_int_range(rand, 0, 2),
            late ? 2 : 0, late ? 32 : 0, g_rand_int_range(rand, 0, 2), groups ? 4 : 0,
            groups && g_rand_boolean(rand) ? 2 : 0,
            kind == 7   ? ",\"by_layer\":[{\"experts\":32}]"
            : kind == 6 ? ",\"by_layer\":[{\"top_k\":1},{\"experts\":8,\"expert_ffn_hidden\":512}]"
                        : "");
    }
    if (g_rand_int_range(rand, 0, 8) == 0) {
        g_string_append(out, ",\"mla\":{\"q_lora_rank\":96,\"kv_lora_rank\":64,\"qk_nope_head_dim\":16,"
                             "\"qk_rope_head_dim\":16,\"v_head_dim\":16}");
    }
    g_string_append_printf(out,
                           ",\"mtp_layers\":%d,\"attention_window_tokens\":%d,\"attention_window_every\":%d",
                           g_rand_int_range(rand, 0, 4) == 0, g_rand_int_range(rand, 0, 4) == 0 ? 512 : 0,
                           g_rand_int_range(rand, 1, 3));
}

/* How experts and shards lie, slots of the pipeline. */
static void add_parallel(GRand *rand, bool moe, bool hybrid, bool plus, GString *out)
{
    if (hybrid && g_rand_int_range(rand, 0, 4) == 0) {
        g_string_append_printf(out, ",\"zero_group_gpus\":%d", PICK(rand, DEGREES));
    }
    if (moe) {
        g_string_append_printf(out, ",\"expert\":%d,\"expert_replicas\":%d,\"expert_rebalance\":%s",
                               power(rand, 16), g_rand_boolean(rand) ? 16 : 0, truth(rand));
    }
    if (moe && g_rand_boolean(rand)) {
        g_string_append_printf(out, ",\"expert_tensor\":%d", power(rand, 4));
    }
    if (plus) {
        g_string_append_printf(out,
                               ",\"quantized_weight_gather\":%s,\"secondary_weight_shard\":%s,"
                               "\"quantized_gradient_reduce\":%s",
                               truth(rand), truth(rand), truth(rand));
    }
    if (g_rand_int_range(rand, 0, 4) == 0) {
        g_string_append_printf(out, ",\"embedding_as_layer\":%s,\"loss_as_layer\":%s,\"mtp_as_layer\":%s",
                               truth(rand), truth(rand), truth(rand));
    }
}

/* One scenario's JSON; many of them make no sense. */
static char *scenario(GRand *rand)
{
    const bool moe = g_rand_boolean(rand), plus = g_rand_int_range(rand, 0, 8) == 0;
    const bool even = g_rand_boolean(rand);
    const int tensor = even ? power(rand, 4) : PICK(rand, DEGREES),
              context = even ? power(rand, 4) : PICK(rand, DEGREES),
              pipeline = even ? power(rand, 4) : PICK(rand, DEGREES),
              shape =
                  even ? g_rand_int_range(rand, 0, 4) : g_rand_int_range(rand, 0, (int)G_N_ELEMENTS(SHAPES)),
              zero = plus ? 3 : g_rand_int_range(rand, 0, 4);
    const char *schedule = PICK(rand, SCHEDULES);
    const bool chunks = strcmp(schedule, "interleaved") == 0 || strcmp(schedule, "breadth-first") == 0;
    const bool v = strcmp(schedule, "zb-v") == 0 || g_str_has_prefix(schedule, "v-") ||
                   strcmp(schedule, "dualpipev") == 0;
    GString *out = g_string_new(
        "{\"model\":{\"layers\":8,\"hidden\":768,\"heads\":24,\"kv_heads\":12,\"ffn_hidden\":1152,"
        "\"gated_mlp\":true,\"vocab\":4096,\"norm\":\"rmsnorm\",\"position\":\"rope\"");
    add_model(rand, moe, out);
    g_string_append_printf(
        out,
        "},\"cluster\":{\"accelerator\":\"h100-sxm5-80gb\",\"gpus_per_node\":%d,\"scale_up_domain_gpus\":%d,"
        "\"nodes\":%d},",
        SHAPES[shape].node, SHAPES[shape].domain, SHAPES[shape].nodes);
    g_string_append_printf(
        out,
        "\"training\":{\"sequence_length\":4608,\"global_batch\":%d,\"micro_batch\":%d,\"recompute\":%s,"
        "\"router\":%s%s,\"predicted_frac\":%s},",
        (even ? 64 : 180) * power(rand, 4), power(rand, 2), PICK(rand, RECOMPUTE), PICK(rand, ROUTERS),
        PICK(rand, LENGTHS), g_rand_boolean(rand) ? "0.15" : "1");
    g_string_append_printf(out,
                           "\"parallel\":{\"tensor\":%d,\"tensor_scheme\":\"%s\",\"sequence_parallel\":%s,"
                           "\"context\":%d,\"pipeline\":%d,"
                           "\"virtual_stages\":%d,\"schedule\":\"%s\",\"zero\":%d,\"context_mode\":\"%s\","
                           "\"moe_dispatcher\":\"%s\",\"moe_dispatch_fp8\":%s,\"order\":\"%s\"",
                           tensor, g_rand_int_range(rand, 0, 4) == 0 ? PICK(rand, SCHEMES) : "1d",
                           truth(rand), context, pipeline,
                           v        ? 2
                           : chunks ? power(rand, 2)
                                    : 1,
                           schedule, zero, PICK(rand, MODES), PICK(rand, DISPATCHERS), truth(rand),
                           PICK(rand, ORDERS));
    add_parallel(rand, moe, zero > 0 && !plus, plus, out);
    if (g_rand_int_range(rand, 0, 4) == 0) {
        g_string_append_printf(out, "},\"offload\":{\"activation_layers\":%d", g_rand_int_range(rand, 1, 9));
    }
    g_string_append_printf(out, "},\"execution\":{\"framework\":\"%s\",\"overlap\":%s}}",
                           PICK(rand, FRAMEWORKS), PICK(rand, OVERLAPS));
    return g_string_free(out, FALSE);
}

typedef struct Outcome {
    int64_t step_ps;
    double sample_flops, peak_bytes, sent_bytes; /* of the model, for one sequence; of the first rank */
} Outcome;

/* Loads and runs with `sets`; false, with the reason, where the scenario is refused. */
static bool run_once(const char *text, const char *const *sets, Outcome *ret_outcome, GError **error)
{
    const ReportOptions options = {.check = true};
    Spec spec;
    Report report;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "random", error);
    g_assert_nonnull(doc);
    const bool valid = spec_load_json(orr_json_root(doc), "random", sets, false, &spec, NULL, error);
    orr_json_free(doc);
    if (!valid) {
        return false;
    }
    OrrArena *arena = orr_arena_new();
    GError *failure = NULL;
    const bool ran = report_run(&spec, NULL, &options, arena, &report, &failure);
    if (ran) {
        const SimRankResult *first = &report.result.rank[0];
        *ret_outcome =
            (Outcome){.step_ps = report.step_ps,
                      .sample_flops = report.model_flops_per_s_per_gpu * report.gpus *
                                      (double)report.step_ps * 1e-12 / spec.training.global_batch,
                      .peak_bytes = report.peak_bytes,
                      .sent_bytes = (double)first->scale_up_bytes + (double)first->scale_out_bytes};
    } else {
        if (!g_error_matches(failure, ORR_ERROR, ORR_ERROR_INPUT) ||
            strstr(failure->message, "schedule") == NULL) {
            g_test_message("%s", text);
            g_assert_no_error(failure);
        }
        g_propagate_error(error, failure);
    }
    orr_arena_free(arena);
    return ran;
}

#endif
