/* costmodel/exchange_beside.c - see exchange_beside.h. */
#include "costmodel/exchange_beside.h"

#include <math.h>

#include "costmodel/moe.h"
#include "costmodel/op_seconds.h"

/* What an exchange takes beside compute over what it takes alone: they share memory and links. Calls of 3.4 and 6.2 ms
 * in a trace of training, 2.2 and 4.1 ms alone, both for 4096 tokens over 8 nodes. Source: [DeepSeekProfile], [DeepEP] */
#define EXCHANGE_BESIDE_COMPUTE 1.5

/* Forward, backward-input and backward-weight have the same FLOPs; the exchanges of a forward and of another
 * micro-batch's backward share the three. */
#define PASSES_BESIDE_EXCHANGE 1.5

bool cost_hides_exchanges(const CostShape *shape)
{
    return (spec_overlap(shape->spec) & SPEC_OVERLAP_EXPERT) != 0 && spec_microbatches(shape->spec) >= 2;
}

double cost_exchange_pace(const CostShape *shape, const CostOp *op)
{
    const bool hides = op->kind == COST_OP_COLLECTIVE && op->u.collective.comm == COST_COMM_EXPERT &&
                       cost_hides_exchanges(shape);
    return hides ? EXCHANGE_BESIDE_COMPUTE : 1;
}

#define NEXT_TO_NONE 1e-3

/* Share of a step's passes that run alone. The path from a step's first forward to its last backward holds p - 1
 * forwards of ranks that fill, (v - 1) p + 1 of the last rank before its first backward, and as many backwards: p v of
 * the m v passes either way. Below a thousandth it counts as none. Orders of DualPipe name their pairs themselves. */
static double unpaired_share(const CostShape *shape)
{
    const Spec *spec = shape->spec;
    const double share = (double)spec->parallel.pipeline / spec_microbatches(spec);
    const bool usual = (spec_schedule_traits(spec) & SIM_TRAIT_USUAL) != 0;
    return usual && share >= NEXT_TO_NONE ? fmin(1, share) : 0;
}

/* Accesses of memory for each byte that an exchange sends: read and staged at one end, read from there and written at the
 * other.   Source: [DeepEP] csrc/kernels/internode.cu; NCCL's buffers of point-to-point messages go the same way */
#define ACCESSES_A_BYTE 4

CostExchangeShare cost_exchange_share(const CostShape *shape, const CostOps *ops, const bool *selected)
{
    const double all = shape->accelerator.sm_count, sms = cost_moe_exchange_sms(shape->spec);
    double frac = 0, bytes = 0, seconds = 0;
    if (!cost_hides_exchanges(shape))
        return (CostExchangeShare){0};
    for (int i = 0; i < ops->count; i++) {
        const CostOp *op = &ops->op[i];
        const CostCollective *collective = &op->u.collective.collective;
        if ((selected != NULL && !selected[i]) || op->kind != COST_OP_COLLECTIVE ||
            op->u.collective.comm != COST_COMM_EXPERT)
            continue;
        const CostTraffic traffic = cost_collective_traffic(collective);
        const double times = op->repeat > 0 ? op->repeat : 1;
        frac = fmax(frac, cost_collective_sm_frac(&shape->spec->cluster, collective));
        bytes += times * (traffic.scale_up_bytes + traffic.scale_out_bytes);
        seconds += op->u.collective.hidden_under < 0 ? cost_op_s(shape, op) : 0;
    }
    const double rate = seconds > 0 ? ACCESSES_A_BYTE * bytes / (EXCHANGE_BESIDE_COMPUTE * seconds) : 0;
    return (CostExchangeShare){.sms = fmin(floor(all / 2), sms > 0 ? sms : rint(frac * all)),
                               .memory_frac =
                                   fmin(0.5, rate / fmax(1, shape->accelerator.memory_bytes_per_s))};
}

/* Transformer Engine and flash-attention launch as many blocks of a norm as all SMs hold, each with its share of the rows: those
 * that find no SM run behind the others.   Source: [TransformerEngine] normalization/common.h, ctas_per_col */
static bool fills_all_sms(const CostShape *shape, const CostOp *op)
{
    const CostNormBlocks blocks = op->u.memory.norm.blocks;
    if (blocks == COST_NORM_SUMMING || blocks == COST_NORM_SUMMED || blocks == COST_NORM_SUMMAND)
        return true;
    return op->module == COST_MODULE_NORM && op->u.memory.kernel == COST_MEMORY_NORM &&
           (blocks == COST_NORM_STAYING || blocks == COST_NORM_STREAMED) &&
           shape->spec->execution.framework.kernels.one_pass_norm_backward;
}

double cost_exchange_loss_s(const CostShape *shape, const CostOp *op, const CostExchangeShare *share)
{
    CostOp beside = *op;
    const double alone_s = share->sms > 0 && op->kind != COST_OP_COLLECTIVE ? cost_op_s(shape, op) : 0;
    if (alone_s <= 0)
        return 0;
    if (op->kind == COST_OP_MEMORY)
        return fills_all_sms(shape, op) ? alone_s : alone_s * share->memory_frac / (1 - share->memory_frac);
    if (op->kind == COST_OP_GEMM)
        beside.u.gemm.free_sms = MAX(op->u.gemm.free_sms, (int)share->sms);
    else
        beside.u.attention.free_sms = (int)share->sms;
    return fmax(0, cost_op_s(shape, &beside) - alone_s);
}

/* Beside an exchange run its own pass and half of one over weights, products alone with the same FLOPs; it may belong to
 * another micro-batch.   Source: [DeepSeekV3] 3.2.1, [MegatronMoE] */
void cost_hide_exchanges(const CostShape *shape, const CostOps *ops, const bool *selected, CostTime *time)
{
    const CostExchangeShare share = cost_exchange_share(shape, ops, selected);
    double more_s = 0;
    if (!cost_hides_exchanges(shape) || time->comm_s[COST_COMM_EXPERT] <= 0)
        return;
    for (int i = 0; i < ops->count; i++) {
        const double passes = ops->op[i].kind == COST_OP_GEMM ? PASSES_BESIDE_EXCHANGE : 1;
        more_s += selected[i] ? passes * cost_exchange_loss_s(shape, &ops->op[i], &share) : 0;
    }
    const double cover_s = PASSES_BESIDE_EXCHANGE * time->compute_s + more_s;
    const double beside_s = EXCHANGE_BESIDE_COMPUTE * time->comm_s[COST_COMM_EXPERT];
    const double hidden_s = fmin(beside_s, cover_s), alone = unpaired_share(shape);
    time->comm_s[COST_COMM_EXPERT] = alone * time->comm_s[COST_COMM_EXPERT] +
                                     (1 - alone) * (beside_s - hidden_s) / EXCHANGE_BESIDE_COMPUTE;
    time->compute_s += (1 - alone) * more_s * hidden_s / fmax(1e-12, cover_s);
}
