/* spec/moe.c - see moe.h. Tested: unit/costmodel/test_moe_layers.c */
#include "spec/moe.h"

#include "spec/fields_internal.h"

static const SpecField run_fields[] = {
    SPEC_F_INT(SpecMoeRun, layers, 1, 1e5, "1", 0,
               "Layers with experts that follow each other and are alike."),
    SPEC_F_INT(SpecMoeRun, experts, 1, 1e5, NULL, SPEC_FIELD_DERIVED,
               "Routed experts of each; default moe.experts."),
    SPEC_F_INT(SpecMoeRun, top_k, 1, 1e4, NULL, SPEC_FIELD_DERIVED,
               "Routed experts that each token visits there; default moe.top_k."),
    SPEC_F_INT(SpecMoeRun, expert_ffn_hidden, 1, 1e7, NULL, SPEC_FIELD_DERIVED,
               "Hidden size of one expert's MLP there; default moe.expert_ffn_hidden."),
};
SPEC_TABLE(spec_table_moe_run, "model.moe.by_layer", "Layers with experts that differ from others'.",
           run_fields);

bool spec_moe_read_runs(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecMoe *moe = target;
    if (orr_json_type(node) != ORR_JSON_LIST)
        return spec_read_fail(context, node, error,
                              "is %s; give a list such as [{\"layers\": 2, \"experts\": 64}]",
                              orr_json_type_name(node));
    if (orr_json_count(node) > SPEC_MOE_RUNS)
        return spec_read_fail(context, NULL, error,
                              "has %d parts; give at most %d, with \"layers\" for those alike",
                              orr_json_count(node), SPEC_MOE_RUNS);
    moe->run_count = 0;
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item)) {
        SpecMoeRun run = {.layers = 1};
        context->quiet++;
        const bool ok = spec_read_table(context, &spec_table_moe_run, item, &run, error);
        context->quiet--;
        if (!ok)
            return false;
        moe->run[moe->run_count++] = run;
    }
    return true;
}

static int described_layers(const SpecMoe *moe)
{
    int64_t layers = 0;
    for (int i = 0; i < moe->run_count; i++)
        layers += moe->run[i].layers;
    return (int)MIN(layers, G_MAXINT);
}

const SpecMoeRun *spec_moe_run(const SpecMoe *moe, int index)
{
    if (moe->run_count == 0 || index < 0)
        return NULL;
    const SpecMoeRun *run = moe->run;
    for (index %= described_layers(moe); index >= run->layers; run++)
        index -= run->layers;
    return run;
}

int spec_moe_layers(const SpecMoe *moe, int layers)
{
    return moe->experts == 0 ? 0 : MAX(0, layers - moe->dense_layers) / MAX(1, moe->layer_step);
}

bool spec_moe_divides(const SpecMoe *moe, int expert, int slices)
{
    bool divides = moe->experts % expert == 0 && moe->expert_ffn_hidden % slices == 0 &&
                   (moe->late_layers == 0 || moe->late_experts % expert == 0);
    for (int i = 0; i < moe->run_count; i++)
        divides = divides && moe->run[i].experts % expert == 0 && moe->run[i].expert_ffn_hidden % slices == 0;
    return divides;
}

static bool alike(const SpecMoeRun *run, int experts, int top_k, int expert_ffn_hidden)
{
    return run->experts == experts && run->top_k == top_k && run->expert_ffn_hidden == expert_ffn_hidden;
}

bool spec_moe_complete(SpecMoe *moe, const char *where, GError **error)
{
    int kinds = 0;
    for (int i = 0; i < moe->run_count; i++) {
        SpecMoeRun *run = &moe->run[i];
        run->experts = run->experts == SPEC_UNSET ? moe->experts : run->experts;
        run->top_k = run->top_k == SPEC_UNSET ? moe->top_k : run->top_k;
        run->expert_ffn_hidden =
            run->expert_ffn_hidden == SPEC_UNSET ? moe->expert_ffn_hidden : run->expert_ffn_hidden;
        run->kind = -1;
        if (alike(run, moe->experts, moe->top_k, moe->expert_ffn_hidden))
            run->kind = 0;
        for (int j = 0; j < i && run->kind < 0; j++)
            if (alike(run, moe->run[j].experts, moe->run[j].top_k, moe->run[j].expert_ffn_hidden))
                run->kind = moe->run[j].kind;
        if (run->kind < 0)
            run->kind = ++kinds;
    }
    if (kinds <= SPEC_MOE_KINDS)
        return true;
    orr_fail(
        error, ORR_ERROR_INPUT,
        "%s: model.moe.by_layer: %d kinds of layers with experts besides model.moe's own; give at most %d",
        where, kinds, SPEC_MOE_KINDS);
    return false;
}
