/* spec/check_vision.c - what a vision tower needs, and what must hold beside it. */
#include "spec/checks.h"

/* The first key that a tower needs and that is not given; NULL: none. */
static const char *missing_key(const SpecVision *vision)
{
    const struct {
        const char *key;
        int value;
    } needed[] = {{"hidden", vision->hidden},
                  {"heads", vision->heads},
                  {"ffn_hidden", vision->ffn_hidden},
                  {"patch_values", vision->patch_values}};
    for (gsize i = 0; i < G_N_ELEMENTS(needed); i++)
        if (needed[i].value == 0)
            return needed[i].key;
    return NULL;
}

static bool check_images(const Check *check)
{
    const SpecImages *images = &check->spec->training.images;
    const SpecVision *vision = &check->spec->model.vision;
    const int length = check->spec->training.sequence_length;
    if (!(images->per_sequence > 0))
        return true;
    if (vision->layers == 0)
        return spec_check_fail(check, "training.images: given, but the model has no vision tower; give "
                                      "model.vision, or leave it out");
    if (images->patches == 0 || images->patches % vision->merged_patches != 0)
        return spec_check_fail(check,
                               "training.images.patches: %d do not make whole tokens of %d patches each "
                               "(model.vision.merged_patches); give a multiple",
                               images->patches, vision->merged_patches);
    const double tokens = images->per_sequence * images->patches / vision->merged_patches;
    return tokens <= length || spec_check_fail(check,
                                               "training.images: %g tokens of images are more than "
                                               "sequence_length %d; give fewer images or patches, or longer "
                                               "sequences",
                                               tokens, length);
}

static bool check_beside(const Check *check)
{
    const Spec *spec = check->spec;
    const SpecVision *vision = &spec->model.vision;
    const int tensor = spec->parallel.tensor;
    if (spec->model.list.text != NULL || spec->model.encoder_layers > 0)
        return spec_check_fail(check, "model.vision: with %s is not modelled; leave one of them out",
                               spec->model.list.text != NULL ? "a list of layers" : "model.encoder_layers");
    if (spec->parallel.context > 1)
        return spec_check_fail(check,
                               "parallel.context: %d with model.vision, whose images are not split; "
                               "give 1",
                               spec->parallel.context);
    if (spec->parallel.tensor_scheme != SPEC_TENSOR_1D)
        return spec_check_fail(check, "parallel.tensor_scheme: \"%s\" with model.vision; give \"1d\"",
                               spec_word(&spec_words_tensor, (int)spec->parallel.tensor_scheme));
    return !spec_check_known(tensor) ||
           (spec_check_divides(check, "parallel.tensor", tensor, "model.vision.heads", vision->heads) &&
            spec_check_divides(check, "parallel.tensor", tensor, "model.vision.ffn_hidden",
                               vision->ffn_hidden));
}

bool spec_check_vision(const Check *check)
{
    const SpecVision *vision = &check->spec->model.vision;
    if (vision->layers == 0) {
        if (missing_key(vision) == NULL)
            return spec_check_fail(check,
                                   "model.vision.layers: 0 with a tower's sizes; give its layers, or leave "
                                   "model.vision out");
        return check_images(check);
    }
    const char *missing = missing_key(vision);
    if (missing != NULL)
        return spec_check_fail(check, "model.vision.%s: missing; give a whole number from 1", missing);
    if (vision->hidden % vision->heads != 0)
        return spec_check_fail(check, "model.vision.heads: %d does not divide hidden %d; give heads that do",
                               vision->heads, vision->hidden);
    return check_beside(check) && check_images(check);
}
