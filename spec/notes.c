/* spec/notes.c - what a scenario asks of its framework that the framework does not have. */
#include "spec/notes.h"

bool spec_framework_has_schedule(const SpecFramework *framework, SpecSchedule schedule)
{
    return framework->pipeline.schedules == 0 || schedule == SPEC_SCHEDULE_FILE ||
           (framework->pipeline.schedules & 1u << schedule) != 0;
}

/* True also where the profile names no modes. `recompute` full of some of a stage's layers is told from full. */
static bool spec_framework_has_recompute(const SpecFramework *framework, const SpecRecompute *recompute)
{
    const unsigned modes = framework->kernels.recompute_modes;
    const bool partial = recompute->mode == SPEC_RECOMPUTE_FULL && recompute->layers > 0;
    return (modes == 0 || (modes & 1u << recompute->mode) != 0) &&
           (!partial || framework->kernels.recompute_partial);
}

static unsigned attention_cores(const Spec *spec)
{
    const unsigned has = spec->execution.framework.kernels.attention_cores;
    return has != 0 ? has | 1u << spec_default_attention(spec) : ~0u;
}

bool spec_has_attention(const Spec *spec, SpecAttention attention)
{
    return (attention_cores(spec) & 1u << attention) != 0;
}

static bool spec_framework_has_dispatcher(const SpecFramework *framework, SpecMoeDispatcher dispatcher)
{
    const unsigned has = framework->experts.dispatchers;
    return has == 0 || (has & 1u << dispatcher) != 0;
}

unsigned spec_framework_overlaps(const SpecFramework *framework)
{
    const unsigned has = framework->kernels.overlaps;
    return has != 0 ? has : ~0u;
}

char *spec_recompute_words(const SpecRecompute *recompute)
{
    const char *mode = spec_word(&spec_words_recompute, (int)recompute->mode);
    if (recompute->mode == SPEC_RECOMPUTE_SELECTIVE_LAYER)
        return g_strdup_printf("%s/%d", mode, recompute->every_n_layers);
    if (recompute->mode == SPEC_RECOMPUTE_FULL && recompute->layers > 0)
        return g_strdup_printf("%s/%d", mode, recompute->layers);
    return g_strdup(mode);
}

/* Words of a set of bits; g_free. */
static char *list_words(const OrrWords *words, unsigned bits)
{
    GString *names = g_string_new(NULL);
    for (int i = 0; i < words->count; i++)
        if ((bits & 1u << i) != 0)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", orr_word(words, i));
    return g_string_free(names, FALSE);
}

char *spec_framework_schedules(const SpecFramework *framework)
{
    return list_words(&spec_words_schedule, framework->pipeline.schedules);
}

/* "torchtitan has no attention flash3 (it has flash2, cudnn): ..." */
static void note_missing(const SpecFramework *framework, const char *what, const OrrWords *words, int word,
                         unsigned has, GPtrArray *notes)
{
    g_autofree char *names = list_words(words, has);
    g_ptr_array_add(notes, g_strdup_printf("%s has no %s %s (it has %s): the step is what it would take, "
                                           "nothing launches it",
                                           framework->name, what, orr_word(words, word), names));
}

/* What the software can be told to do, in words of a set. */
static void note_choices(const Spec *spec, GPtrArray *notes)
{
    const SpecFramework *framework = &spec->execution.framework;
    const SpecAttention attention = spec->execution.attention;
    const SpecMoeDispatcher dispatcher = spec->parallel.moe_dispatcher;
    const unsigned overlaps = spec_framework_overlaps(framework);
    if (spec->parallel.pipeline > 1 && !spec_framework_has_schedule(framework, spec->parallel.schedule))
        note_missing(framework, "schedule", &spec_words_schedule, (int)spec->parallel.schedule,
                     framework->pipeline.schedules, notes);
    if (spec->model.heads > 0 && !spec_has_attention(spec, attention))
        note_missing(framework, "attention", &spec_words_attention, (int)attention, attention_cores(spec),
                     notes);
    if (spec->model.moe.experts > 0 && spec->parallel.expert > 1 &&
        !spec_framework_has_dispatcher(framework, dispatcher))
        note_missing(framework, "dispatcher", &spec_words_dispatcher, (int)dispatcher,
                     framework->experts.dispatchers, notes);
    for (int i = 0; i < spec_words_overlap.count; i++)
        if ((spec->execution.overlap & 1u << i) != 0 && (overlaps & 1u << i) == 0)
            note_missing(framework, "overlap of", &spec_words_overlap, i, overlaps, notes);
}

static void note_zero(const Spec *spec, GPtrArray *notes)
{
    const SpecFramework *framework = &spec->execution.framework;
    const bool pipelined = spec->parallel.pipeline > 1 && framework->data_parallel.most_zero_in_pipeline <
                                                              framework->data_parallel.most_zero;
    const int most = spec_most_zero(framework, spec->parallel.pipeline);
    const int least = framework->data_parallel.least_zero;
    if (spec_has_zero(framework, spec->parallel.pipeline, spec->parallel.zero) || spec->parallel.data <= 1)
        return;
    g_autofree char *has = spec->parallel.zero > most ? g_strdup_printf("at most %d", most)
                                                      : g_strdup_printf("0, or %d and above", least);
    g_ptr_array_add(notes, g_strdup_printf("%s has no ZeRO %d%s (%s): the step is what it would take, "
                                           "nothing launches it",
                                           framework->name, spec->parallel.zero,
                                           pipelined ? " under a pipeline" : "", has));
}

/* Source: torch/distributed/pipelining/stage.py (backward_maybe_with_nosync), PyTorch's to_accumulated_grad_if_needed */
static void note_whole_sums(const Spec *spec, GPtrArray *notes)
{
    const SpecRecipeDataParallel *recipe = &spec->execution.framework.data_parallel;
    if (recipe->resharding == SPEC_RESHARDING_UNLESS_PIPELINE && spec->parallel.pipeline > 1 &&
        spec->parallel.zero == 3 && spec->parallel.data > 1 && recipe->most_zero == 3)
        g_ptr_array_add(
            notes, g_strdup("ZeRO 3 may hold more than ZeRO 2 here: FSDP2 keeps gathered weights and whole "
                            "gradients until a pipeline's last micro-batch"));
}

char *spec_wrong_chip(const Spec *spec)
{
    const SpecFramework *framework = &spec->execution.framework;
    const SpecChip chip = spec->cluster.accelerator.generation.chip;
    const unsigned has = framework->kernels.chips;
    if (has == 0 || chip == SPEC_CHIP_OTHER || (has & 1u << chip) != 0)
        return NULL;
    g_autofree char *names = list_words(&spec_words_chip, has);
    return g_strdup_printf("%s does not run on a %s (it does on: %s)", framework->name,
                           orr_word(&spec_words_chip, (int)chip), names);
}

char *spec_chip_note(const Spec *spec)
{
    g_autofree char *wrong = spec_wrong_chip(spec);
    return wrong != NULL ? g_strdup_printf("%s: the step is what it would take, nothing launches it", wrong)
                         : NULL;
}

static void note_chip(const Spec *spec, GPtrArray *notes)
{
    char *note = spec_chip_note(spec);
    if (note != NULL)
        g_ptr_array_add(notes, note);
}

/* Hooks that know no other way: the word asks for nothing. */
static void note_hooks(const Spec *spec, GPtrArray *notes)
{
    const SpecFramework *framework = &spec->execution.framework;
    const SpecParallel *parallel = &spec->parallel;
    if (framework->data_parallel.reductions == SPEC_REDUCTIONS_HOOKS && parallel->zero == 0 &&
        parallel->data * parallel->context > 1 && parallel->data_scheme == SPEC_DATA_ALLREDUCE &&
        (spec->execution.overlap & SPEC_OVERLAP_GRAD_REDUCE) == 0)
        g_ptr_array_add(
            notes,
            g_strdup_printf(
                "%s overlaps gradient reductions with the backward pass, whatever execution.overlap says: "
                "its hooks do so. execution.framework.data_parallel.reductions=as-asked "
                "reduces them after it",
                framework->name));
}

static void note_recompute(const Spec *spec, GPtrArray *notes)
{
    const SpecFramework *framework = &spec->execution.framework;
    const SpecRecompute *recompute = &spec->training.recompute;
    g_autoptr(GString) names = g_string_new(NULL);
    if (spec_framework_has_recompute(framework, recompute))
        return;
    const bool partial = recompute->mode == SPEC_RECOMPUTE_FULL && recompute->layers > 0;
    for (int i = 0; i < spec_words_recompute.count; i++)
        if (framework->kernels.recompute_modes == 0 || (framework->kernels.recompute_modes & 1u << i) != 0)
            g_string_append_printf(
                names, "%s%s%s", names->len > 0 ? ", " : "", spec_word(&spec_words_recompute, i),
                i == SPEC_RECOMPUTE_FULL && !framework->kernels.recompute_partial ? " of all layers" : "");
    g_ptr_array_add(notes,
                    g_strdup_printf("%s has no recompute %s%s (it has %s): the step is what it would take, "
                                    "nothing launches it",
                                    framework->name, spec_word(&spec_words_recompute, (int)recompute->mode),
                                    partial ? " of some layers" : "", names->str));
}

/* Nobody said what the chip can do: what the prediction takes it for. */
static void note_generation(const SpecAccelerator *accelerator, GPtrArray *notes)
{
    if (!accelerator->generation.assumed)
        return;
    g_autofree char *traits = spec_generation_traits(&accelerator->generation);
    g_ptr_array_add(
        notes, g_strdup_printf("the generation of %s is not known, and these traits are assumed: "
                               "%s; name it, or one that it is like (orrery help "
                               "accelerator.generation)",
                               accelerator->name[0] != '\0' ? accelerator->name : "the accelerator", traits));
}

static void note_generations(const SpecCluster *cluster, GPtrArray *notes)
{
    if (cluster->group_count == 0)
        note_generation(&cluster->accelerator, notes);
    for (int i = 0; i < cluster->group_count; i++)
        note_generation(&cluster->groups[i].accelerator, notes);
}

void spec_notes(const Spec *spec, GPtrArray *notes)
{
    note_generations(&spec->cluster, notes);
    note_choices(spec, notes);
    note_zero(spec, notes);
    note_whole_sums(spec, notes);
    note_chip(spec, notes);
    note_hooks(spec, notes);
    note_recompute(spec, notes);
}

void spec_source_notes(const SpecSource *source, GPtrArray *notes)
{
    for (guint i = 0; source != NULL && source->notes != NULL && i < source->notes->len; i++)
        g_ptr_array_add(notes, g_strdup(g_ptr_array_index(source->notes, i)));
}
