/* spec/layout.c - which model stage holds how many layers. */
#include "spec/list_stages.h"
#include "spec/load.h"

/* What a stage holds besides transformer layers, counted as layers. */
typedef struct Slots {
    int first, last;
} Slots;

static Slots extra_slots(const Spec *spec)
{
    const SpecParallel *parallel = &spec->parallel;
    if (spec->model.list.text != NULL)
        return (Slots){0, 0};
    return (Slots){.first = parallel->embedding_as_layer ? 1 : 0,
                   .last = (parallel->loss_as_layer ? 1 : 0) +
                           (parallel->mtp_as_layer ? spec->model.mtp_layers : 0)};
}

/* Pipeline rank of a model stage: around the ranks again and again, or there and back (V-shaped schedules). */
static int rank_of_stage(const SpecParallel *parallel, int stage)
{
    const int p = parallel->pipeline, chunk = stage / p;
    const bool back = spec_stage_placement(parallel) == SIM_PLACE_V && chunk % 2 == 1;
    return back ? p - 1 - stage % p : stage % p;
}

/* Deals `layers` to the stages in `stages` (in model order) as evenly as whole layers allow; `first` and `last`
 * count as layers already there on the first and last of them. Where it does not divide, those two get the fewer. */
static void deal(int layers, const int *stages, int count, Slots slots, int *counts)
{
    int lo = 0, hi = count; /* stages that still take layers */
    Slots held = slots;
    if (count == 1) {
        counts[stages[0]] = layers;
        return;
    }
    int level = 0;
    for (;;) {
        const int in_first = lo == 0 ? held.first : 0, in_last = hi == count ? held.last : 0;
        level = (layers + in_first + in_last) / (hi - lo);
        if (lo == 0 && held.first > level && hi - lo > 1) {
            counts[stages[lo++]] = 0;
            continue;
        }
        if (hi == count && held.last > level && hi - lo > 1) {
            counts[stages[--hi]] = 0;
            continue;
        }
        break;
    }
    int left = layers;
    for (int i = lo; i < hi; i++) {
        const int full = level - (i == 0 ? held.first : 0) - (i == count - 1 ? held.last : 0);
        counts[stages[i]] = full > 0 ? full : 0;
        left -= counts[stages[i]];
    }
    for (int i = 1; i < count - 1 && left > 0; i++, left--) /* the middle first */
        counts[stages[i]]++;
    if (left > 0 && lo == 0) {
        counts[stages[0]]++;
        left--;
    }
    if (left > 0)
        counts[stages[count - 1]] += left;
}

/* nanotron: a stage takes layers until what it and those before it hold exceeds their share of all multiplications, the
 * LM head's included; attention counted as 4 a d h. Source: [NanotronCode] models/base.py, build_model */
static void deal_by_cost(const SpecModel *model, int stages, int *counts)
{
    const double layer = (4.0 * model->heads * model->head_dim + 3.0 * model->ffn_hidden) * model->hidden;
    const double all = model->layers * layer + (double)model->vocab * model->hidden;
    double sum = 0;
    int stage = 0;
    for (int i = 0; i < stages; i++)
        counts[i] = 0;
    for (int i = 0; i < model->layers; i++) {
        counts[stage]++;
        sum += layer;
        if (sum > all * ((stage + 1.0) / stages) && stage + 1 < stages)
            stage++;
    }
}

static bool given_layers(const Spec *spec, int stages, int *counts, GError **error)
{
    const SpecParallel *parallel = &spec->parallel;
    int64_t sum = 0;
    if (parallel->stage_layers_count != stages) {
        orr_fail(error, ORR_ERROR_INPUT,
                 "parallel.stage_layers: %d numbers for pipeline %d x virtual_stages %d; list %d numbers",
                 parallel->stage_layers_count, parallel->pipeline, parallel->virtual_stages, stages);
        return false;
    }
    for (int i = 0; i < stages; i++)
        sum += parallel->stage_layers[i];
    if (sum != spec->model.layers) {
        orr_fail(error, ORR_ERROR_INPUT,
                 "parallel.stage_layers: the numbers add up to %" G_GINT64_FORMAT
                 ", but the model has %d layers; let them add up to that",
                 (gint64)sum, spec->model.layers);
        return false;
    }
    for (int i = 0; i < stages; i++)
        counts[i] = parallel->stage_layers[i];
    return true;
}

/* Stages of pipeline ranks from `lo` to `hi`, in model order. */
static int stages_of_ranks(const SpecParallel *parallel, int stages, int lo, int hi, int *list)
{
    int count = 0;
    for (int stage = 0; stage < stages; stage++) {
        const int rank = rank_of_stage(parallel, stage);
        if (rank >= lo && rank <= hi)
            list[count++] = stage;
    }
    return count;
}

/* first_stage_layers and last_stage_layers fix one pipeline rank each; the others share the rest. */
static bool fixed_ends(const Spec *spec, int stages, int *counts, GError **error)
{
    const SpecParallel *parallel = &spec->parallel;
    const int first = parallel->first_stage_layers, last = parallel->last_stage_layers,
              p = parallel->pipeline;
    const int lo = first > 0 ? 1 : 0, hi = last > 0 ? p - 2 : p - 1;
    const int64_t rest = (int64_t)spec->model.layers - first - last;
    const char *key = first > 0 ? "first_stage_layers" : "last_stage_layers";
    const Slots none = {0, 0};
    int list[SPEC_MAX_STAGES];
    if (p < 2 || rest < 0 || (lo > hi && rest != 0)) {
        orr_fail(error, ORR_ERROR_INPUT,
                 "parallel.%s: first %d and last %d leave %" G_GINT64_FORMAT
                 " of %d layers to %d other pipeline ranks; "
                 "give numbers that fit, or leave them out",
                 key, first, last, (gint64)rest, spec->model.layers, MAX(0, hi - lo + 1));
        return false;
    }
    if (first > 0)
        deal(first, list, stages_of_ranks(parallel, stages, 0, 0, list), none, counts);
    if (last > 0)
        deal(last, list, stages_of_ranks(parallel, stages, p - 1, p - 1, list), none, counts);
    if (lo <= hi)
        deal((int)rest, list, stages_of_ranks(parallel, stages, lo, hi, list), none, counts);
    return true;
}

static bool deal_layers(const Spec *spec, int *counts, GError **error)
{
    const SpecParallel *parallel = &spec->parallel;
    const int64_t wanted = (int64_t)parallel->pipeline * parallel->virtual_stages;
    g_assert(parallel->pipeline >= 1 && parallel->virtual_stages >= 1);
    if (wanted > SPEC_MAX_STAGES) {
        g_set_error(
            error, ORR_ERROR, ORR_ERROR_INPUT,
            "parallel.pipeline: %d x virtual_stages %d are more than %d model stages; give smaller ones",
            parallel->pipeline, parallel->virtual_stages, SPEC_MAX_STAGES);
        return false;
    }
    const int stages = (int)wanted;
    if (parallel->stage_layers_count > 0)
        return given_layers(spec, stages, counts, error);
    const Slots slots = extra_slots(spec);
    if ((int64_t)spec->model.layers + slots.first + slots.last < stages) {
        orr_fail(error, ORR_ERROR_INPUT,
                 "parallel.pipeline: %d x virtual_stages %d are more model stages than the model's %d "
                 "layers; give at "
                 "most %d stages",
                 parallel->pipeline, parallel->virtual_stages, spec->model.layers,
                 spec->model.layers + slots.first + slots.last);
        return false;
    }
    if (parallel->first_stage_layers > 0 || parallel->last_stage_layers > 0)
        return fixed_ends(spec, stages, counts, error);
    if (spec->model.list.text == NULL && spec->execution.framework.pipeline.balances_head &&
        parallel->pipeline > 1 && slots.first + slots.last == 0) {
        deal_by_cost(&spec->model, stages, counts);
        return true;
    }
    if (spec->model.list.text != NULL) {
        spec_deal_list(&spec->model, stages, counts);
        return true;
    }
    int list[SPEC_MAX_STAGES];
    deal(spec->model.layers, list, stages_of_ranks(parallel, stages, 0, parallel->pipeline - 1, list), slots,
         counts);
    return true;
}

bool spec_stage_layers(const Spec *spec, int *counts, GError **error)
{
    const SpecParallel *parallel = &spec->parallel;
    if (!deal_layers(spec, counts, error))
        return false;
    for (int i = 0; spec->model.list.text != NULL && i < parallel->pipeline * parallel->virtual_stages; i++)
        if (counts[i] < 1)
            return orr_fail(
                error, ORR_ERROR_INPUT,
                "parallel.pipeline: stage %d has no layer of a list of model.layers; give each of "
                "stage_layers, first_stage_layers and last_stage_layers 1 or more, or leave them out",
                i);
    return true;
}
