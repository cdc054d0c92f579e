/* costmodel/ops_recipe.c - kernels that a framework's recipe lists by itself, put behind ops of a layer. See ops.h.
 * Tested: unit/costmodel/test_recipe_ops.c
 */
#include <string.h>

#include "costmodel/ops.h"

static const char *const COPY = "copy";

static bool runs(const CostOps *ops, int first, const char *name)
{
    for (int i = first; i < ops->count; i++) {
        if (strcmp(ops->op[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Elements of what an op writes forward, and of that tensor's gradient; of attention, what it reads. */
static double elements_of(const CostOp *op, CostPass pass)
{
    const double times = op->repeat > 0 ? op->repeat : 1;
    const CostGemm *gemm = &op->u.gemm;
    const CostAttention *core = &op->u.attention;
    switch (op->kind) {
    case COST_OP_GEMM:
        return times * gemm->m * (pass == COST_BACKWARD_INPUT ? gemm->k : gemm->n) * gemm->groups;
    case COST_OP_ATTENTION:
        return times * core->batch *
               (core->q_tokens * core->heads * core->qk_head_dim +
                core->kv_tokens * core->kv_heads * (core->qk_head_dim + core->v_head_dim));
    case COST_OP_MEMORY:
        return times * op->u.memory.elements;
    case COST_OP_COLLECTIVE:
        break;
    }
    return 0;
}

/* Room for an op at `at`: what lies behind it, and all that points there, moves by one. */
static CostOp *open_gap(CostOps *ops, int at)
{
    g_assert(ops->count < COST_MAX_OPS);
    memmove(&ops->op[at + 1], &ops->op[at], sizeof *ops->op * (size_t)(ops->count - at));
    ops->count++;
    for (int i = 0; i < ops->count; i++) {
        CostOp *op = &ops->op[i];
        if (i != at && op->kind == COST_OP_COLLECTIVE) {
            op->u.collective.hidden_under += op->u.collective.hidden_under >= at;
        }
    }
    for (int i = 0; i < ops->kept_count; i++) {
        ops->kept[i].written_by += ops->kept[i].written_by >= at;
        ops->kept[i].kept_by += ops->kept[i].kept_by >= at;
    }
    return &ops->op[at];
}

static void push_behind(const CostShape *shape, const SpecRecipeOp *recipe, CostPass pass, int behind,
                        CostOps *ops)
{
    const double copied = recipe->copies * shape->element_bytes;
    const double elements = elements_of(&ops->op[behind], pass);
    const CostModule module = ops->op[behind].module;
    int at = behind + 1;
    while (at < ops->count && ops->op[at].name == COPY) {
        at++;
    }
    CostOp *op = open_gap(ops, at);
    *op = (CostOp){.name = COPY, .kind = COST_OP_MEMORY, .module = module, .kernels = recipe->kernels};
    op->u.memory.kernel = COST_MEMORY_ELEMENTWISE;
    op->u.memory.elements = elements;
    op->u.memory.each = (CostMoved){copied, copied, recipe->bytes_per_element};
}

void cost_push_recipe_ops(const CostShape *shape, CostPass pass, int first, CostOps *ops)
{
    const SpecRecipeOps *list = &shape->spec->execution.framework.ops;
    for (int r = 0; r < list->count; r++) {
        const SpecRecipeOp *recipe = &list->op[r];
        const char *after = spec_word(&spec_words_op, recipe->after);
        const bool due =
            (int)recipe->pass == (int)pass &&
            (recipe->with == SPEC_NO_OP || runs(ops, first, spec_word(&spec_words_op, recipe->with)));
        for (int i = ops->count - 1; due && i >= first; i--) {
            if (strcmp(ops->op[i].name, after) == 0) {
                push_behind(shape, recipe, pass, i, ops);
            }
        }
    }
}
