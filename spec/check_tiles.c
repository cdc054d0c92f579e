/* spec/check_tiles.c - matrices and sequences in tiles: how many, and beside what. */
#include "spec/checks.h"

/* Matrices are gathered in tiles where each is dropped before the next. */
static bool check_weight_tiles(const Check *check)
{
    const Spec *spec = check->spec;
    const SpecRecipeDataParallel *recipe = &spec->execution.framework.data_parallel;
    const int weights = spec->parallel.weight_tiles, pipeline = spec->parallel.pipeline;
    if (weights <= 1)
        return true;
    if (spec->parallel.zero != 3)
        return spec_check_fail(
            check,
            "parallel.weight_tiles: %d with another zero than 3, whose weights are whole on "
            "each rank; give zero 3, or 1",
            weights);
    if (recipe->resharding == SPEC_RESHARDING_NEVER ||
        (recipe->resharding == SPEC_RESHARDING_UNLESS_PIPELINE && spec_check_known(pipeline) && pipeline > 1))
        return spec_check_fail(
            check,
            "parallel.weight_tiles: %d where gathered weights stay (execution.framework.data_parallel."
            "resharding \"%s\"); give 1",
            weights, spec_word(&spec_words_resharding, (int)recipe->resharding));
    if (spec_is_zero_plus(&spec->parallel))
        return spec_check_fail(
            check,
            "parallel.weight_tiles: %d with ZeRO++, which gathers and reduces whole layers; "
            "give 1, or leave quantized_weight_gather, secondary_weight_shard and "
            "quantized_gradient_reduce out",
            weights);
    return weights <= spec->model.hidden ||
           spec_check_fail(check, "parallel.weight_tiles: %d of matrices with %d outputs; give at most %d",
                           weights, spec->model.hidden, spec->model.hidden);
}

/* Tokens of a tile go to one MLP; experts take theirs from all tokens at once. */
static bool check_mlp_tiles(const Check *check)
{
    const Spec *spec = check->spec;
    const int mlp = spec->training.mlp_tiles;
    const int context = spec_check_known(spec->parallel.context) ? MAX(1, spec->parallel.context) : 1;
    const int tokens = spec->training.sequence_length / context;
    if (mlp > 1 && spec->model.moe.experts > 0)
        return spec_check_fail(check,
                               "training.mlp_tiles: %d with %d experts (model.moe.experts), which run whole; "
                               "give 1, or a model without experts",
                               mlp, spec->model.moe.experts);
    return mlp <= 1 || mlp <= tokens ||
           spec_check_fail(check,
                           "training.mlp_tiles: %d of the %d tokens of a context rank; give at most %d", mlp,
                           tokens, tokens);
}

/* Where products are cut for tensor parallelism already, their pieces would be cut again. */
bool spec_check_tiles(const Check *check)
{
    const Spec *spec = check->spec;
    const int weights = spec->parallel.weight_tiles, mlp = spec->training.mlp_tiles;
    const bool pieces = (spec->execution.overlap & SPEC_OVERLAP_TENSOR) != 0 && spec->parallel.tensor != 1;
    if (pieces && (weights > 1 || mlp > 1))
        return spec_check_fail(
            check,
            "%s: %d with execution.overlap \"tensor\", which cuts the products too; give 1, or "
            "leave \"tensor\" out",
            weights > 1 ? "parallel.weight_tiles" : "training.mlp_tiles", MAX(weights, mlp));
    return check_mlp_tiles(check) && check_weight_tiles(check);
}
