/* spec/fields_freeze.c - field table of training.freeze, and what must hold beside it. */
#include "spec/checks.h"
#include "spec/fields_internal.h"

static const SpecField freeze_fields[] = {
    SPEC_F_BOOL(SpecFreeze, embedding, "false", 0, "Tables of tokens and positions are not trained."),
    SPEC_F_INT(SpecFreeze, layers, 0, 65536, "0", 0,
               "The first layers, this many, are not trained. Behind a frozen embedding no gradient "
               "reaches them."),
    SPEC_F_BOOL(SpecFreeze, head, "false", 0, "The LM head and the norm before it are not trained."),
    SPEC_F_BOOL(
        SpecFreeze, router, "false", 0,
        "Routers of experts are not trained, as with freeze_moe_router of verl and NeMo-RL. Gradients "
        "pass through them."),
    SPEC_F_BOOL(SpecFreeze, vision, "false", 0,
                "The vision tower is not trained, its projector is. It runs forward alone."),
    SPEC_F_BOOL(SpecFreeze, projector, "false", 0,
                "The projector between vision tower and language model is not trained."),
};
SPEC_TABLE(spec_table_freeze, "training.freeze", "Weights that training leaves as they are.", freeze_fields);

bool spec_read_freeze(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return spec_read_fail(context, node, error,
                              "is %s; give an object, as {\"embedding\":true,\"layers\":8}",
                              orr_json_type_name(node));
    SpecReadContext inside = *context;
    inside.quiet++;
    return spec_read_table(&inside, &spec_table_freeze, node, target, error);
}

/* What stands beside frozen weights and is not modelled with them; NULL: nothing. */
static const char *beside(const Spec *spec)
{
    if (spec->training.adapter.given)
        return "training.adapter, which freezes all else already,";
    if (spec->model.list.text != NULL)
        return "a list of layers";
    if (spec->model.encoder_layers > 0)
        return "model.encoder_layers";
    if (spec->parallel.data_scheme != SPEC_DATA_ALLREDUCE)
        return "parallel.data_scheme parameter_server";
    if (spec->parallel.compression.kind != SPEC_COMPRESSION_NONE)
        return "parallel.compression";
    return spec_gathers_trained_alone(&spec->parallel);
}

bool spec_check_freeze(const Check *check)
{
    const Spec *spec = check->spec;
    const SpecFreeze *freeze = &spec->training.freeze;
    const char *with = spec_freezes(freeze) ? beside(spec) : NULL;
    if (with != NULL)
        return spec_check_fail(check, "training.freeze: with %s is not modelled; leave one of them out",
                               with);
    if (freeze->router && spec->model.moe.experts == 0)
        return spec_check_fail(check,
                               "training.freeze.router: true, but the model has no experts; leave it out");
    if ((freeze->vision || freeze->projector) && spec->model.vision.layers == 0)
        return spec_check_fail(check,
                               "training.freeze.%s: true, but the model has no vision tower; give "
                               "model.vision, or leave it out",
                               freeze->vision ? "vision" : "projector");
    if (freeze->layers > spec->model.layers)
        return spec_check_fail(check, "training.freeze.layers: %d, but the model has %d; give at most these",
                               freeze->layers, spec->model.layers);
    if (spec->model.tied_embeddings && freeze->embedding != freeze->head)
        return spec_check_fail(check, "training.freeze: embedding and head share one table "
                                      "(model.tied_embeddings); freeze both or neither");
    const bool sees = spec->model.vision.layers > 0 && !(freeze->vision && freeze->projector);
    return sees || !(freeze->embedding && freeze->head && freeze->layers == spec->model.layers) ||
           spec_check_fail(check, "training.freeze: nothing is left to train; leave some layers or the head");
}
