/* costmodel/pass.c - see pass.h. docs/MODEL.md, "From op lists to seconds". */
#include <math.h>
#include <string.h>

#include "costmodel/exchange_beside.h"
#include "costmodel/pass.h"
#include "costmodel/spread.h"

static double times(const CostOp *op)
{
    return op->repeat > 0 ? op->repeat : 1;
}

/* A GEMM and a collective that takes `f` of its SMs. */
static double together_s(double gemm_s, double comm_s, double f)
{
    return comm_s * (1 - f) >= gemm_s ? comm_s : gemm_s + f * comm_s;
}

/* `share` of a product's rows: a kernel for each of its parts. */
static double rows_s(const CostShape *shape, const CostOp *product, double share)
{
    CostOp rows = *product;
    rows.u.gemm.m *= share;
    return shape->slowest * cost_products_s(shape, &rows);
}

/* The rows before and those behind the rank's own, all of them not faster than the product. */
static double rest_parts_s(const CostShape *shape, const CostOp *product, double t, double own_s,
                           double gemm_s)
{
    const double behind_s = t > 2 ? rows_s(shape, product, (t - 2) / t) : 0;
    return fmax(own_s + behind_s, gemm_s - own_s);
}

/* The rank's own rows of `t` parts beside a collective of `f` of the SMs, then the rows before and those behind them. */
static double own_part_s(const CostShape *shape, const CostOp *product, double t, double f, double comm_s,
                         double gemm_s)
{
    const double own_s = rows_s(shape, product, 1 / t);
    return together_s(own_s, comm_s, f) + rest_parts_s(shape, product, t, own_s, gemm_s) - gemm_s;
}

static CostBeside beside_kind(const CostShape *shape, const CostOp *op, const CostOp *beside)
{
    if (beside->kind == COST_OP_COLLECTIVE)
        return COST_BESIDE_NETWORK;
    if (op->u.collective.chunked)
        return cost_cuts_pieces(shape) ? COST_BESIDE_PIECES : COST_BESIDE_OWN_PART;
    const bool margin = cost_overlaps_tensor(shape);
    return shape->accelerator.static_products && beside->kind == COST_OP_GEMM && !margin ? COST_BESIDE_LATER
                                                                                         : COST_BESIDE_SMS;
}

/* What a collective adds to the GEMM that it runs beside.
 *   chunked: the GEMM is cut in t pieces of 1/t of its rows, all but the first transfer hidden beside them:
 *            c/t + max((t-1)/t c, g_pieces + f (t-1)/t c) - g    g_pieces = t GEMMs of m/t rows, not faster than one
 *   own part: the rank's own 1/t of the rows is multiplied while the rest arrives: max(0, c - g/t), or, where the code
 *            has a product of its own for each, then the rows before and those behind:
 *            together(own, c) + before + behind - g    of rank 1, whose parts are the smallest; not faster than one GEMM
 *   static products without overlap "tensor", which leaves SMs free for the collective: g + c, nothing is hidden
 *   else:    the kernels share the SMs: the GEMM runs at (1 - f) while the collective does
 *            [Narayanan2021, section 3.2 of Korthikanti2022; SM share: costmodel/collective.h] */
static double beside_s(const CostShape *shape, const CostOp *op, const CostOp *beside, double comm_s,
                       double gemm_s)
{
    const double f = cost_collective_sm_frac(&shape->spec->cluster, &op->u.collective.collective);
    const double t = op->u.collective.collective.group.ranks;
    switch (beside_kind(shape, op, beside)) {
    case COST_BESIDE_OWN_PART:
        if (!cost_own_products(shape))
            return fmax(0, comm_s - gemm_s / t);
        return own_part_s(shape, beside, t, f, comm_s, gemm_s);
    case COST_BESIDE_PIECES: {
        const double pieces_s = fmax(gemm_s, t * rows_s(shape, beside, 1 / t));
        const double hidden_s = (t - 1) / t * comm_s;
        return comm_s / t + fmax(hidden_s, pieces_s + f * hidden_s) - gemm_s;
    }
    case COST_BESIDE_LATER:
        return comm_s; /* blocks that find their SM taken start when it is free, with all of their work to do */
    case COST_BESIDE_NETWORK:
        return fmax(0, comm_s - gemm_s);
    default:
        return together_s(gemm_s, comm_s, f) - gemm_s;
    }
}

static bool runs_beside(const CostShape *shape, const CostOp *op)
{
    const bool backward_gemm = !op->u.collective.chunked && op->u.collective.comm == COST_COMM_TENSOR;
    return op->u.collective.hidden_under >= 0 &&
           (!backward_gemm || shape->spec->execution.framework.tensor.overlap_tensor_backward);
}

/* NVIDIA's recipes say "none" (with or without a list behind it), launchers "null" or "False". */
static bool captures_nothing(const char *graph)
{
    static const char *const nothing[] = {"none", "null", "false", "off", "no"};
    const size_t length = strcspn(graph, "/[ ");
    for (size_t i = 0; i < G_N_ELEMENTS(nothing); i++)
        if (strlen(nothing[i]) == length && g_ascii_strncasecmp(graph, nothing[i], length) == 0)
            return true;
    return graph[0] == '\0';
}

/* What a CUDA graph holds: everything, or the parts in brackets: attn, mlp, moe, moe_router, moe_preprocess. */
static bool captured(const SpecExecution *execution, CostModule module)
{
    const char *graph = execution->cuda_graph, *parts = strchr(graph, '[');
    if (captures_nothing(graph))
        return false;
    if (parts == NULL || parts[1] == ']' || strstr(graph, "full_iteration") != NULL)
        return true;
    switch (module) {
    case COST_MODULE_NORM:
    case COST_MODULE_ATTENTION_PROJECTION:
    case COST_MODULE_ATTENTION_CORE:
    case COST_MODULE_MLA_UP:
    case COST_MODULE_RESIDUAL:
        return strstr(parts, "attn") != NULL;
    case COST_MODULE_MLP_LINEAR:
    case COST_MODULE_MLP_ACTIVATION:
        return strstr(parts, "mlp") != NULL;
    case COST_MODULE_ROUTER:
    case COST_MODULE_SHARED_EXPERT:
        return strstr(parts, "moe_router") != NULL;
    case COST_MODULE_MOE:
    case COST_MODULE_MOE_ACTIVATION:
        return strstr(parts, "'moe'") != NULL;
    default:
        return false;
    }
}

/* A collective that compute waits for: the streams wait for each other's events and the ranks for the latest of them,
 * which a benchmark's loop does not see. In a graph they are edges. */
static double waits_s(const CostShape *shape, const CostOp *op)
{
    const SpecExecution *execution = &shape->spec->execution;
    return captured(execution, op->module) ? 0 : times(op) * execution->framework.host.collective_gap_s;
}

/* The rest of the product waits for a gather that takes longer than the rank's own part of it. */
static bool outlasts_own_part(const CostShape *shape, const CostOp *op, double comm_s, double gemm_s)
{
    return op->u.collective.chunked && cost_own_products(shape) &&
           comm_s > gemm_s / op->u.collective.collective.group.ranks;
}

/* Collectives that lie under the same op share its cover, in the order of the list: seconds of those before this one. */
static double before_s(const CostShape *shape, const CostOps *ops, const double *op_s, int index)
{
    double seconds = 0;
    for (int i = 0; i < index; i++) {
        const CostOp *op = &ops->op[i];
        if (op->kind == COST_OP_COLLECTIVE && runs_beside(shape, op) &&
            op->u.collective.hidden_under == ops->op[index].u.collective.hidden_under) {
            seconds += op_s[i];
        }
    }
    return seconds;
}

static double exposed_s(const CostShape *shape, const CostOps *ops, const double *op_s, int index)
{
    const CostOp *op = &ops->op[index];
    if (!runs_beside(shape, op)) {
        return op_s[index] + waits_s(shape, op);
    }
    const int beside = op->u.collective.hidden_under;
    if (ops->op[beside].kind == COST_OP_COLLECTIVE) { /* two networks at once */
        return fmax(0, op_s[index] - op_s[beside]);
    }
    const double first_s = before_s(shape, ops, op_s, index);
    const double left_s = beside_s(shape, op, &ops->op[beside], first_s + op_s[index], op_s[beside]) -
                          (first_s > 0 ? beside_s(shape, op, &ops->op[beside], first_s, op_s[beside]) : 0);
    return left_s + (outlasts_own_part(shape, op, op_s[index], op_s[beside]) ? waits_s(shape, op) : 0);
}

/* Tensor ranks wait for each other at every collective, so for the slowest host of them. Expected largest of normal
 * deviates [Blom1958], as for chips. */
static double slowest_host(const CostShape *shape)
{
    return 1 + shape->spec->execution.framework.host.host_spread_frac *
                   cost_largest_deviate(shape->tensor_group.ranks);
}

double cost_collective_check_s(const Spec *spec, int ranks)
{
    const SpecFramework *framework = &spec->execution.framework;
    const bool off = framework->host.collective_checks_pipelines_only && spec->parallel.pipeline == 1;
    return ranks < 2 || off ? 0 : 2 * ranks * framework->host.collective_check_hop_s;
}

/* Host seconds of one launch. */
static double launch_s(const CostShape *shape, CostPass pass)
{
    const SpecExecution *execution = &shape->spec->execution;
    return spec_host_s(&shape->spec->cluster.host, execution->framework.host.kernel_host_s) *
           (pass != COST_FORWARD ? execution->framework.host.backward_host_frac : 1) * slowest_host(shape);
}

static void fill_beside(const CostShape *shape, const CostOps *ops, const double *op_s, int index,
                        CostPassStep *step)
{
    const CostOp *op = &ops->op[index], *beside = &ops->op[op->u.collective.hidden_under];
    const double t = op->u.collective.collective.group.ranks, gemm_s = op_s[op->u.collective.hidden_under];
    step->beside = beside_kind(shape, op, beside);
    step->under = op->u.collective.hidden_under;
    step->parts = (int)t;
    if (step->beside == COST_BESIDE_PIECES) {
        step->part_s = fmax(gemm_s / t, rows_s(shape, beside, 1 / t));
    } else if (step->beside == COST_BESIDE_OWN_PART) {
        const bool products = cost_own_products(shape);
        step->part_s = products ? rows_s(shape, beside, 1 / t) : gemm_s / t;
        step->rest_s =
            products ? rest_parts_s(shape, beside, t, step->part_s, gemm_s) : gemm_s - step->part_s;
        step->sm_frac = products ? step->sm_frac : 0;
    }
    step->wait_s = outlasts_own_part(shape, op, op_s[index], gemm_s) ? step->wait_s : 0;
}

void cost_pass_steps(const CostShape *shape, const CostOps *ops, const bool *again, CostPass pass,
                     CostPassSteps *ret_steps)
{
    const SpecExecution *execution = &shape->spec->execution;
    double op_s[COST_MAX_OPS];
    const CostExchangeShare share = cost_exchange_share(shape, ops, again);
    *ret_steps = (CostPassSteps){.count = ops->count,
                                 .blocking = execution->framework.host.waits == SPEC_HOST_WAITS_KERNEL};
    for (int i = 0; i < ops->count; i++) {
        const CostOp *op = &ops->op[i];
        CostPassStep *step = &ret_steps->step[i];
        step->runs = again == NULL || again[i];
        op_s[i] = step->runs ? cost_op_s(shape, op) : 0;
        step->gpu_s = op_s[i];
        step->lost_s = step->runs ? cost_exchange_loss_s(shape, op, &share) : 0;
        step->launches = captured(execution, op->module) ? 0 : op->kernels + op->host_kernels;
        step->launch_s = launch_s(shape, pass);
        step->idle_s = op->idle_s;
        if (op->kind != COST_OP_COLLECTIVE)
            step->gap_s = op->kernels * execution->framework.host.kernel_gap_s;
    }
    for (int i = 0; i < ops->count; i++) {
        const CostOp *op = &ops->op[i];
        CostPassStep *step = &ret_steps->step[i];
        if (!step->runs || op->kind != COST_OP_COLLECTIVE)
            continue;
        ret_steps->hidden |= op->u.collective.comm == COST_COMM_EXPERT && cost_hides_exchanges(shape);
        step->sm_frac = cost_collective_sm_frac(&shape->spec->cluster, &op->u.collective.collective);
        step->wait_s = waits_s(shape, op);
        step->check_s =
            captured(execution, op->module)
                ? 0
                : times(op) * cost_collective_check_s(shape->spec, op->u.collective.collective.group.ranks);
        if (runs_beside(shape, op))
            fill_beside(shape, ops, op_s, i, step);
    }
}

static CostTime time_selected(const CostShape *shape, const CostOps *ops, const bool *selected, CostPass pass)
{
    const SpecExecution *execution = &shape->spec->execution;
    double op_s[COST_MAX_OPS];
    CostTime time = {0};
    int kernels = 0;
    double idle_s = 0, checks_s = 0;
    for (int i = 0; i < ops->count; i++) {
        op_s[i] = selected[i] ? cost_op_s(shape, &ops->op[i]) : 0;
    }
    for (int i = 0; i < ops->count; i++) {
        const CostOp *op = &ops->op[i];
        if (!selected[i]) {
            continue;
        }
        kernels += captured(execution, op->module) ? 0 : op->kernels + op->host_kernels;
        idle_s += op->idle_s;
        if (op->kind == COST_OP_COLLECTIVE) {
            const CostTraffic traffic = cost_collective_traffic(&op->u.collective.collective);
            time.comm_s[op->u.collective.comm] += exposed_s(shape, ops, op_s, i);
            checks_s += captured(execution, op->module)
                            ? 0
                            : times(op) * cost_collective_check_s(shape->spec,
                                                                  op->u.collective.collective.group.ranks);
            time.scale_up_bytes += traffic.scale_up_bytes * times(op);
            time.scale_out_bytes += traffic.scale_out_bytes * times(op);
        } else {
            time.compute_s += op_s[i] + op->kernels * execution->framework.host.kernel_gap_s;
        }
    }
    cost_hide_exchanges(shape, ops, selected, &time);
    const double host_s = kernels * launch_s(shape, pass) + checks_s;
    if (execution->framework.host.waits == SPEC_HOST_WAITS_KERNEL) { /* neither runs while the other does */
        time.host_s = host_s + idle_s;
        return time;
    }
    const double ahead_s = cost_time_total_s(&time) - host_s;
    time.launch_wait_s = fmax(0, -ahead_s);
    time.slack_s = idle_s > 0 ? 0 : fmax(0, ahead_s); /* the host has waited for the GPU */
    time.host_s = time.launch_wait_s + idle_s;
    return time;
}

static void save_waits(CostTime *time, double saved_s)
{
    time->host_s -= saved_s;
    time->launch_wait_s -= saved_s;
}

/* Each pass uses what those before it left. `passes`: in the order in which the GPU runs them, recomputation before the
 * backward. */
static void run_ahead_in_order(CostTime passes[COST_PASS_COUNT], CostTime *recompute)
{
    CostTime *order[COST_PASS_COUNT + 1] = {&passes[COST_FORWARD], recompute, &passes[COST_BACKWARD_INPUT],
                                            &passes[COST_BACKWARD_WEIGHT]};
    double ahead_s = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(order); i++) {
        const double saved_s = fmin(order[i]->launch_wait_s, ahead_s);
        save_waits(order[i], saved_s);
        ahead_s += order[i]->slack_s - saved_s;
    }
}

void cost_time_run_ahead(CostTime passes[COST_PASS_COUNT], CostTime *recompute, CostHostSync meet)
{
    if (meet == COST_HOST_SYNC_IN_ORDER) {
        run_ahead_in_order(passes, recompute);
        return;
    }
    const int first = meet == COST_HOST_SYNC_NONE
                          ? COST_FORWARD
                          : COST_FORWARD + 1; /* pass whose waits earlier work can save */
    double waits_s = 0, slack_s = 0;
    for (int pass = 0; pass < COST_PASS_COUNT; pass++) {
        waits_s += pass >= first ? passes[pass].launch_wait_s : 0;
        slack_s += pass >= first || meet != COST_HOST_SYNC_PASSES ? passes[pass].slack_s : 0;
    }
    const double saved_frac = waits_s > 0 ? fmin(1, slack_s / waits_s) : 0;
    for (int pass = first; pass < COST_PASS_COUNT; pass++) {
        save_waits(&passes[pass], saved_frac * passes[pass].launch_wait_s);
    }
    save_waits(recompute, fmin(recompute->launch_wait_s, fmax(0, slack_s - waits_s)));
}

CostTime cost_time_ops(const CostShape *shape, const CostOps *ops, CostPass pass)
{
    bool selected[COST_MAX_OPS];
    for (int i = 0; i < ops->count; i++) {
        selected[i] = true;
    }
    return time_selected(shape, ops, selected, pass);
}

CostTime cost_time_recompute(const CostShape *shape, const CostOps *forward, CostRecomputeExtent extent)
{
    CostOps ops;
    bool again[COST_MAX_OPS];
    cost_again_ops(shape->spec, forward, extent, &ops, again);
    return time_selected(shape, &ops, again, COST_FORWARD);
}

double cost_time_total_s(const CostTime *time)
{
    double total = time->compute_s + time->host_s;
    for (int i = 0; i < COST_COMM_COUNT; i++) {
        total += time->comm_s[i];
    }
    return total;
}
