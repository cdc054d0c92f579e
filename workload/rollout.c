/* workload/rollout.c - see rollout.h.
 *
 * A replica begins with all of its n answers, or as many as its memory holds. Of those alive at position x there are b(x), each
 * with a context of c(x); a step of one token takes
 *   layers(b) + b c kv / HBM
 * where layers(b) are the ops of a forward of b tokens, as a graph, and kv are a token's bytes of keys and values. Where
 * memory holds fewer than n, finished answers make room at once, and the last ones end as those of a process that was renewed
 * all the time: at position x share G(x) = integral of S over [x, inf) / mean is left, S being that of fresh answers.
 * Source: [vLLM] continuous batching; Cox, Renewal Theory, 1962, section 5.2
 * Ignores: chunks of prompts beside answers, preemption, what the engine's scheduler takes of a step.
 */
#include "workload/rollout.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "costmodel/memory_bound.h"
#include "costmodel/ops.h"
#include "costmodel/params.h"
#include "costmodel/pass.h"

enum { MOST_SEQUENCES = 1024, PREFILL_TOKENS = 8192, GRID = 12 };

#define MEMORY_FRAC 0.9 /* of a GPU that engines take */

/* Seconds of the layers by the tokens of a step: at 1, 2, 4 ..., and between them on lines. */
typedef struct Decode {
    const Spec *spec;
    double grid_s[GRID];
    double kv_bytes; /* of a token, on a GPU */
    double most;     /* answers at once */
} Decode;

/* The role as its engine runs it: one step of `tokens` tokens, all layers in a graph. */
static Spec *step_of(const Spec *role, int tokens)
{
    Spec *spec = g_new(Spec, 1);
    *spec = *role;
    spec->training.micro_batch = 1;
    spec->training.sequence_length = tokens;
    spec->training.document_tokens = 1;
    spec->training.mlp_tiles = 1;
    spec->parallel.sequence_parallel = 0;
    spec->parallel.context = 1;
    spec->execution.overlap = 0;
    g_strlcpy(spec->execution.cuda_graph, "decode", sizeof spec->execution.cuda_graph);
    return spec;
}

/* Bytes of a weight as the engine stores it. */
static double weight_bytes(const Spec *spec)
{
    const SpecPrecision precision = spec->training.precision;
    const bool wide = precision == SPEC_PRECISION_FP32 || precision == SPEC_PRECISION_TF32 ||
                      precision == SPEC_PRECISION_FP16 || precision == SPEC_PRECISION_BF16;
    return wide ? 2 : 1;
}

/* Products of experts, which engines run as one kernel over all rows: as long as the weights of those that are touched take to
 * read, or the products at the dense rate. Taken out of the list. Of E experts n tokens touch E (1 - (1 - k / E)^n). */
static double experts_s(const Spec *spec, int tokens, CostOps *ops)
{
    const SpecAccelerator *accelerator = &spec->cluster.accelerator;
    const double touched = 1 - pow(1 - (double)spec->model.moe.top_k / MAX(1, spec->model.moe.experts), tokens);
    double seconds = 0;
    for (int i = 0; i < ops->count; i++) {
        CostOp *op = &ops->op[i];
        if (op->kind != COST_OP_GEMM || !op->u.gemm.grouped || op->u.gemm.groups <= 1)
            continue;
        double wide = op->u.gemm.n;
        for (int part = 1; part < COST_MAX_PARTS; part++)
            wide += op->parts[part];
        CostGemm all = op->u.gemm;
        all.m = fmax(1, all.m * all.groups);
        all.n = wide;
        const double read_s = cost_memory_bound_s(accelerator, COST_MEMORY_ELEMENTWISE,
                                                  weight_bytes(spec) * touched * all.groups * wide * all.k);
        all.groups = 1;
        all.grouped = false;
        all.row_deviation = 0;
        seconds += fmax(read_s, cost_gemm_s(accelerator, &all));
        memmove(op, op + 1, (size_t)(ops->count - i - 1) * sizeof *op);
        ops->count--;
        i--;
    }
    return seconds;
}

static double layers_s(const Spec *role, int tokens)
{
    g_autofree Spec *spec = step_of(role, tokens);
    g_autofree CostOps *ops = g_new0(CostOps, 1);
    CostShape shape;
    double seconds = 0, kind_s[COST_LAYER_KINDS];
    bool known[COST_LAYER_KINDS] = {false};
    cost_shape_init(&shape, spec);
    for (int layer = 0; layer < spec->model.layers; layer++) {
        const int kind = cost_layer_kind(&spec->model, layer);
        if (!known[kind]) {
            memset(ops, 0, sizeof *ops);
            cost_ops_layer(&shape, layer, COST_FORWARD, ops);
            kind_s[kind] = experts_s(spec, tokens, ops);
            const CostTime time = cost_time_ops(&shape, ops, COST_FORWARD);
            kind_s[kind] += cost_time_total_s(&time);
            known[kind] = true;
        }
        seconds += kind_s[kind];
    }
    memset(ops, 0, sizeof *ops);
    cost_ops_head(&shape, COST_FORWARD, ops);
    const CostTime head = cost_time_ops(&shape, ops, COST_FORWARD);
    return seconds + cost_time_total_s(&head);
}

static double kv_bytes(const Spec *spec)
{
    const SpecModel *model = &spec->model;
    const double heads = fmax(1, (double)model->kv_heads / spec->parallel.tensor);
    const double per_layer = model->mla.kv_lora_rank > 0 ? model->mla.kv_lora_rank + model->mla.qk_rope_head_dim
                                                         : 2 * heads * model->head_dim;
    return 2 * per_layer * model->layers / spec->parallel.pipeline;
}

static bool decode_new(const Spec *role, const Sequences *sequences, Decode *decode, GError **error)
{
    const SpecParallel *parallel = &role->parallel;
    const double shards = (double)parallel->tensor * parallel->pipeline *
                          (role->model.moe.experts > 1 ? MAX(1, parallel->expert) : 1);
    const double weights = weight_bytes(role) * cost_parameters(&role->model, 0, false) / shards;
    const double room = MEMORY_FRAC * role->cluster.accelerator.memory_bytes - weights;
    const double context = sequences->prompt + sequences->answer / 2;
    *decode = (Decode){.spec = role, .kv_bytes = kv_bytes(role)};
    decode->most = fmin(MOST_SEQUENCES, floor(room / (decode->kv_bytes * context)));
    if (decode->most < 1)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "parallel.tensor: %d leaves no room for one answer of %.0f tokens beside the weights; give "
                        "more tensor ranks",
                        parallel->tensor, sequences->prompt + sequences->answer);
    for (int i = 0; i < GRID; i++)
        decode->grid_s[i] = layers_s(role, 1 << i);
    return true;
}

/* One step of `batch` answers with a mean context of so many tokens. */
static double step_s(const Decode *decode, double batch, double context)
{
    const double at = log2(fmax(1, fmin(batch, 1 << (GRID - 1))));
    const int low = (int)fmin(GRID - 2, floor(at));
    const double part = (fmax(1, batch) - (1 << low)) / (1 << low);
    const double layers = decode->grid_s[low] + part * (decode->grid_s[low + 1] - decode->grid_s[low]);
    return layers + cost_memory_bound_s(&decode->spec->cluster.accelerator, COST_MEMORY_ELEMENTWISE,
                                        batch * context * decode->kv_bytes);
}

/* Until the last of `batch` answers ends. `renewed`: they are of all ages when it begins; else all are fresh. */
static double drain_s(const Decode *decode, const Sequences *sequences, double batch, bool renewed,
                      double *ret_half_s)
{
    const OrrLengths *lengths = &sequences->answers;
    const double age = renewed ? sequences->square > 0 ? orr_lengths_square(lengths) / (2 * sequences->answer) : 0 : 0;
    double seconds = 0, before = 0, alive = 1, left = sequences->answer;
    *ret_half_s = 0;
    for (int i = 0; i < lengths->count; i++) {
        const double strip = lengths->tokens[i] - before;
        const double share = renewed ? (left - alive * strip / 2) / sequences->answer : alive;
        const double any = 1 - pow(1 - fmin(1, fmax(0, share)), batch);
        const double at = fmax(1, batch * share);
        const double own_s =
            strip * any * step_s(decode, at, sequences->prompt + age + before + strip / 2);
        seconds += own_s;
        if (share < 0.5)
            *ret_half_s += own_s;
        left -= alive * strip;
        alive -= lengths->share[i];
        before = lengths->tokens[i];
    }
    return seconds;
}

static double prefill_s(const Decode *decode, const Sequences *sequences, double prompts)
{
    g_autofree Spec *spec = g_new(Spec, 1);
    *spec = *decode->spec;
    return prompts * sequences->prompt / PREFILL_TOKENS * layers_s(spec, PREFILL_TOKENS);
}

bool rollout_ask(const Spec *role, const SpecWorkload *workload, const Sequences *sequences, bool streams,
                 RolloutAnswer *ret_answer, GError **error)
{
    Decode decode;
    if (workload->generation.seconds >= 0) {
        *ret_answer = (RolloutAnswer){.seconds = workload->generation.seconds, .tail_s = NAN};
        return true;
    }
    if (!decode_new(role, sequences, &decode, error))
        return false;
    const SpecSampling *generation = &workload->generation;
    const double replicas = fmax(1, (double)spec_gpus(role) / (role->parallel.tensor * role->parallel.pipeline));
    const double prompts = generation->prompts / replicas, answers = prompts * generation->samples_per_prompt;
    const double batch = fmin(fmax(1, answers), decode.most);
    const double context =
        sequences->prompt + orr_lengths_square(&sequences->answers) / (2 * sequences->answer);
    const bool waves = answers > decode.most;
    const double renewed_s = (answers - (streams ? 0 : batch)) * sequences->answer / batch *
                             step_s(&decode, batch, context);
    double tail_s = 0;
    const double drained_s = streams ? 0 : drain_s(&decode, sequences, batch, waves, &tail_s);
    *ret_answer = (RolloutAnswer){
        .seconds = prefill_s(&decode, sequences, prompts) + fmax(0, renewed_s) + drained_s,
        .tail_s = streams ? NAN : tail_s,
        .why = streams                    ? "new prompts follow at once"
               : tail_s > 0.5 * drained_s ? "the longest answers"
               : waves                    ? "memory for keys and values"
                                          : "tokens one after the other"};
    return true;
}
