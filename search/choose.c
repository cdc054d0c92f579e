/* search/choose.c - see choose.h. */
#include "report/report.h"
#include "search/choose.h"

#define MAX_VALUES 64

typedef struct Values {
    int value[MAX_VALUES];
    int count;
} Values;

typedef struct Choice {
    const Spec *spec;
    Spec best;
    bool found, fits;
    double short_bytes;
    int64_t step_ps;
    GError *refusal;
} Choice;

bool search_has_auto(const Spec *spec)
{
    const SpecParallel *parallel = &spec->parallel;
    const SpecTraining *training = &spec->training;
    return training->micro_batch == SPEC_AUTO || (int)training->recompute.mode == SPEC_AUTO ||
           parallel->virtual_stages == SPEC_AUTO || (int)parallel->schedule == SPEC_AUTO ||
           parallel->sequence_parallel == SPEC_AUTO || parallel->zero == SPEC_AUTO ||
           parallel->tensor == SPEC_AUTO || parallel->pipeline == SPEC_AUTO ||
           parallel->context == SPEC_AUTO || parallel->data == SPEC_AUTO || parallel->expert == SPEC_AUTO;
}

static void add_value(Values *values, int value)
{
    if (values->count < MAX_VALUES) {
        values->value[values->count++] = value;
    }
}

static Values divisors(int number, int limit)
{
    Values values = {.count = 0};
    for (int d = 1; d <= number && d <= limit; d++) {
        if (number % d == 0) {
            add_value(&values, d);
        }
    }
    return values;
}

static Values fixed(int value)
{
    return (Values){.value = {value}, .count = 1};
}

static void refuse(Choice *choice, GError *reason)
{
    g_clear_error(&choice->refusal);
    choice->refusal = reason;
}

static void consider(Choice *choice, const Spec *candidate)
{
    const ReportOptions options = {0};
    GError *error = NULL;
    Report report;
    if (!spec_check(candidate, "auto", &error)) {
        refuse(choice, error);
        return;
    }
    OrrArena *arena = orr_arena_new();
    if (report_run(candidate, NULL, &options, arena, &report, &error)) {
        const bool better = !choice->found || (report.fits && !choice->fits) ||
                            (report.fits && choice->fits && report.step_ps < choice->step_ps) ||
                            (!report.fits && !choice->fits && report.short_bytes < choice->short_bytes);
        if (better) {
            choice->best = *candidate;
            choice->found = true;
            choice->fits = report.fits;
            choice->short_bytes = report.short_bytes;
            choice->step_ps = report.step_ps;
        }
    } else {
        refuse(choice, error);
    }
    orr_arena_free(arena);
}

static void over_recompute(Choice *choice, Spec *candidate)
{
    static const SpecRecomputeMode MODES[] = {SPEC_RECOMPUTE_NONE, SPEC_RECOMPUTE_SELECTIVE,
                                              SPEC_RECOMPUTE_FULL};
    if ((int)choice->spec->training.recompute.mode != SPEC_AUTO) {
        consider(choice, candidate);
        return;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(MODES); i++) {
        candidate->training.recompute = (SpecRecompute){.mode = MODES[i], .every_n_layers = 1};
        consider(choice, candidate);
    }
}

static void over_schedule(Choice *choice, Spec *candidate)
{
    const SpecParallel *parallel = &choice->spec->parallel;
    const int pipeline = candidate->parallel.pipeline;
    const int per_rank = (candidate->model.layers + pipeline - 1) / pipeline;
    const bool one_chunk = pipeline == 1 || (int)parallel->schedule == SPEC_SCHEDULE_1F1B;
    const Values chunks = parallel->virtual_stages != SPEC_AUTO ? fixed(parallel->virtual_stages)
                          : one_chunk                           ? fixed(1)
                                                                : divisors(per_rank, per_rank);
    for (int i = 0; i < chunks.count; i++) {
        candidate->parallel.virtual_stages = chunks.value[i];
        if ((int)parallel->schedule == SPEC_AUTO) {
            candidate->parallel.schedule =
                chunks.value[i] > 1 ? SPEC_SCHEDULE_INTERLEAVED : SPEC_SCHEDULE_1F1B;
        }
        over_recompute(choice, candidate);
    }
}

static void over_micro_batch(Choice *choice, Spec *candidate)
{
    const int per_replica = candidate->training.global_batch / candidate->parallel.data;
    const Values sizes = choice->spec->training.micro_batch != SPEC_AUTO
                             ? fixed(choice->spec->training.micro_batch)
                             : divisors(per_replica, 64);
    for (int i = 0; i < sizes.count; i++) {
        candidate->training.micro_batch = sizes.value[i];
        over_schedule(choice, candidate);
    }
}

static bool degrees_given(const Spec *spec, GError **error)
{
    const SpecParallel *parallel = &spec->parallel;
    const struct {
        const char *key;
        int value;
    } degrees[] = {{"tensor", parallel->tensor},
                   {"pipeline", parallel->pipeline},
                   {"context", parallel->context},
                   {"data", parallel->data},
                   {"expert", parallel->expert},
                   {"zero", parallel->zero},
                   {"sequence_parallel", parallel->sequence_parallel}};
    for (size_t i = 0; i < G_N_ELEMENTS(degrees); i++) {
        if (degrees[i].value == SPEC_AUTO) {
            g_set_error(
                error, ORR_ERROR, ORR_ERROR_INPUT,
                "parallel.%s: \"auto\" is not chosen here yet; give a number (auto works for "
                "training.micro_batch, training.recompute, parallel.virtual_stages and parallel.schedule)",
                degrees[i].key);
            return false;
        }
    }
    return true;
}

bool search_choose(const Spec *spec, Spec *ret_spec, GError **error)
{
    Choice choice = {.spec = spec};
    Spec candidate = *spec;
    if (!degrees_given(spec, error)) {
        return false;
    }
    over_micro_batch(&choice, &candidate);
    if (!choice.found) {
        g_propagate_error(error, choice.refusal);
        return false;
    }
    g_clear_error(&choice.refusal);
    *ret_spec = choice.best;
    return true;
}
