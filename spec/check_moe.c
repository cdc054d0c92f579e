/* spec/check_moe.c - what has to fit together about experts: of the model, over the ranks, and how tokens reach them. */
#include "spec/checks.h"
#include "spec/moe.h"

/* Parts of by_layer: as many layers as have experts, or a pattern that repeats in them. */
static bool check_moe_runs(const Check *check)
{
    const SpecMoe *moe = &check->spec->model.moe;
    const int count = spec_moe_layers(moe, check->spec->model.layers);
    int64_t layers = 0;
    for (int i = 0; i < moe->run_count; i++) {
        const SpecMoeRun *run = &moe->run[i];
        if (run->top_k > run->experts)
            return spec_check_fail(check,
                                   "model.moe.by_layer: part %d has top_k %d of %d experts; give at most %d",
                                   i + 1, run->top_k, run->experts, run->experts);
        layers += run->layers;
    }
    if (moe->run_count == 0)
        return true;
    if (moe->late_layers > 0 || moe->router_groups > 0)
        return spec_check_fail(check, "model.moe.by_layer: given together with %s; remove one of the two",
                               moe->late_layers > 0 ? "late_layers" : "router_groups");
    return count % layers == 0 && count > 0
               ? true
               : spec_check_fail(check,
                                 "model.moe.by_layer: describes %" G_GINT64_FORMAT
                                 " layers and the model has %d with experts; give a list of so many, or of a "
                                 "divisor, which repeats",
                                 (gint64)layers, count);
}

/* Products that leave all SMs to the exchange would never end. */
static bool check_free_sms(const Check *check)
{
    const SpecRecipeExperts *experts = &check->spec->execution.framework.experts;
    const SpecAccelerator *accelerator = &check->spec->cluster.accelerator;
    const int free_sms = experts->fused_mlp_free_sms, sms = accelerator->sm_count;
    const bool fused = experts->expert_products == SPEC_EXPERT_PRODUCTS_FUSED &&
                       accelerator->generation.fused_grouped_experts &&
                       check->spec->training.precision == SPEC_PRECISION_MXFP8;
    return !fused || free_sms < sms ||
           spec_check_fail(check,
                           "execution.framework.experts.fused_mlp_free_sms: %d of a GPU with %d SMs; give at "
                           "most %d",
                           free_sms, sms, MAX(0, sms - 1));
}

bool spec_check_moe(const Check *check)
{
    const SpecModel *model = &check->spec->model;
    const SpecMoe *moe = &model->moe;
    if (moe->experts == 0)
        return true;
    if (moe->top_k > moe->experts)
        return spec_check_fail(check, "model.moe.top_k: %d is more than the %d experts; give at most %d",
                               moe->top_k, moe->experts, moe->experts);
    if (check->spec->parallel.moe_dispatcher == SPEC_DISPATCHER_ONE_HOT && moe->capacity_factor <= 0)
        return spec_check_fail(check, "parallel.moe_dispatcher: one-hot has masks of the slots that "
                                      "model.moe.capacity_factor makes, which is 0; give that, or alltoall");
    if (moe->router_groups > 0 &&
        !spec_check_divides(check, "model.moe.router_groups", moe->router_groups, "experts", moe->experts))
        return false;
    if ((moe->late_layers > 0) != (moe->late_experts > 0) || moe->late_layers > model->layers)
        return spec_check_fail(
            check,
            "model.moe.late_layers: %d of %d layers with late_experts %d; give both, or leave both out",
            moe->late_layers, model->layers, moe->late_experts);
    if (moe->late_layers > 0 && (moe->router_groups > 0 || moe->top_k > moe->late_experts))
        return spec_check_fail(
            check,
            "model.moe.late_experts: %d with top_k %d and router_groups %d; give at least top_k, and "
            "no groups",
            moe->late_experts, moe->top_k, moe->router_groups);
    if (!check_moe_runs(check) || !check_free_sms(check))
        return false;
    if (moe->router_top_groups > moe->router_groups)
        return spec_check_fail(
            check, "model.moe.router_top_groups: %d is more than the %d router_groups; give at most %d",
            moe->router_top_groups, moe->router_groups, moe->router_groups);
    if (moe->router_top_groups > 0 && moe->top_k > moe->experts / moe->router_groups * moe->router_top_groups)
        return spec_check_fail(
            check, "model.moe.top_k: %d is more than the experts of %d of %d groups; give at most %d",
            moe->top_k, moe->router_top_groups, moe->router_groups,
            moe->experts / moe->router_groups * moe->router_top_groups);
    if (moe->dense_layers > model->layers)
        return spec_check_fail(check,
                               "model.moe.dense_layers: %d is more than the %d layers; give at most %d",
                               moe->dense_layers, model->layers, model->layers);
    return true;
}

bool spec_check_expert(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    const SpecMoe *moe = &check->spec->model.moe;
    const int expert = parallel->expert, slices = parallel->expert_tensor;
    if (!spec_check_known(expert))
        return true;
    if (moe->experts == 0)
        return expert == 1 ||
               spec_check_fail(check,
                               "parallel.expert: %d with a dense model; give 1, or a model with moe.experts",
                               expert);
    if (!spec_check_divides(check, "parallel.expert", expert, "model.moe.experts", moe->experts))
        return false;
    if (moe->late_experts > 0 &&
        !spec_check_divides(check, "parallel.expert", expert, "model.moe.late_experts", moe->late_experts))
        return false;
    if (spec_check_known(slices) &&
        !spec_check_divides(check, "parallel.expert_tensor", slices, "model.moe.expert_ffn_hidden",
                            moe->expert_ffn_hidden))
        return false;
    for (int i = 0; i < moe->run_count; i++)
        if (!spec_check_divides(check, "parallel.expert", expert, "model.moe.by_layer experts",
                                moe->run[i].experts) ||
            (spec_check_known(slices) &&
             !spec_check_divides(check, "parallel.expert_tensor", slices,
                                 "model.moe.by_layer expert_ffn_hidden", moe->run[i].expert_ffn_hidden)))
            return false;
    if (!spec_check_known(slices) || !spec_check_known(parallel->data) ||
        !spec_check_known(parallel->context) || !spec_check_known(parallel->tensor))
        return true;
    const int64_t ranks = (int64_t)parallel->data * parallel->context * parallel->tensor;
    if (ranks % ((int64_t)expert * slices) == 0)
        return true;
    g_autofree char *list = spec_check_divisors(ranks);
    return spec_check_fail(
        check,
        "parallel.expert: %d x expert_tensor %d does not divide the %" G_GINT64_FORMAT
        " ranks of data %d x context %d x tensor %d; give degrees whose product is one of %s",
        expert, slices, (gint64)ranks, parallel->data, parallel->context, parallel->tensor, list);
}

bool spec_check_router(const Check *check)
{
    const SpecRouter *router = &check->spec->training.router;
    const SpecParallel *parallel = &check->spec->parallel;
    const int experts = check->spec->model.moe.experts;
    if (router->distribution == SPEC_ROUTER_HISTOGRAM && check->spec->model.moe.late_layers > 0)
        return spec_check_fail(
            check,
            "training.router.histogram: model.moe.late_layers %d have other experts; give a "
            "distribution such as zipf",
            check->spec->model.moe.late_layers);
    if (router->distribution == SPEC_ROUTER_HISTOGRAM && check->spec->model.moe.run_count > 0)
        return spec_check_fail(
            check, "training.router.histogram: model.moe.by_layer gives layers other experts; give a "
                   "distribution such as zipf");
    if (router->distribution == SPEC_ROUTER_HISTOGRAM && router->histogram_count != experts)
        return spec_check_fail(check,
                               "training.router.histogram: %d shares for %d experts; give one an expert",
                               router->histogram_count, experts);
    if (experts == 0 && (parallel->expert_replicas > 0 || parallel->expert_rebalance))
        return spec_check_fail(
            check, "parallel.expert_replicas: the model has no experts; leave it and expert_rebalance out");
    if (spec_check_known(parallel->expert) && parallel->expert > 0 &&
        parallel->expert_replicas % parallel->expert != 0)
        return spec_check_fail(
            check, "parallel.expert_replicas: %d do not spread over %d expert ranks; give a multiple of %d",
            parallel->expert_replicas, parallel->expert, parallel->expert);
    return true;
}
