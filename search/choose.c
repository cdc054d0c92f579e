/* search/choose.c - see choose.h. */
#include "search/choose.h"

#include "search/axes.h"
#include "search/hardware.h"
#include "search/search.h"

bool search_has_auto(const Spec *spec)
{
    int count = 0;
    const SearchAxis *axes = search_axes(&count);
    for (int i = 0; i < count; i++)
        if (search_axis_is_auto(&axes[i], spec))
            return true;
    return false;
}

static unsigned schedules_to_choose_from(void)
{
    unsigned bits = 0;
    int count = 0;
    const SimSchedule *schedules = sim_schedules(&count);
    for (int i = 0; i < count; i++)
        if (sim_schedule_is_candidate(&schedules[i]))
            bits |= 1u << i;
    return bits;
}

/* *ret_fits false: the one that lacks the fewest bytes. */
static bool choose_freely(const Spec *spec, const SearchChoosing *how, Spec *ret_spec, bool *ret_fits,
                          GError **error)
{
    const OrrStop *stop = how->stop;
    const SearchOptions options = {.top = 1,
                                   .best_only = true,
                                   .ideal = true,
                                   .by = how->by,
                                   .team = how->team,
                                   .jobs = how->jobs,
                                   .assumed = how->assumed,
                                   .stop = stop != NULL ? *stop : (OrrStop){NULL, NULL}};
    SearchResult result;
    *ret_spec = *spec;
    ret_spec->search.reserve_memory_bytes = how->reserve_bytes;
    const unsigned known = spec->search.schedule | spec->execution.framework.pipeline.schedules;
    if ((int)spec->parallel.schedule == SPEC_AUTO && known == 0)
        ret_spec->search.schedule = schedules_to_choose_from();
    if (!search_run(ret_spec, &options, &result, error))
        return false;
    const GArray *runs = result.best->len > 0 ? result.best : result.misses;
    g_assert(runs->len > 0 || stop != NULL);
    if (runs->len == 0) {
        search_result_clear(&result);
        return orr_fail(error, ORR_ERROR_INPUT, "stopped before anything was known");
    }
    *ret_fits = result.best->len > 0;
    search_point_spec(result.space, g_array_index(runs, SearchRun, 0).id, ret_spec);
    search_result_clear(&result);
    ret_spec->search = spec->search;
    return true;
}

static bool prefer(int *field, int preferred)
{
    const bool takes = *field == SPEC_AUTO && preferred > 0;
    if (takes)
        *field = preferred;
    return takes;
}

/* Takes what the framework's recipe prefers where the scenario says "auto", its micro-batch if asked; a tensor degree
 * brings the software's own sequence parallelism. false: nothing. */
static bool take_preferred(Spec *spec, bool micro_batch)
{
    SpecTraining *training = &spec->training;
    SpecParallel *parallel = &spec->parallel;
    const bool splits = parallel->tensor_preferred > 1 && parallel->tensor == SPEC_AUTO;
    bool any = prefer(&parallel->tensor, parallel->tensor_preferred);
    if (splits)
        any =
            prefer(&parallel->sequence_parallel, spec->execution.framework.defaults.sequence_parallel) || any;
    any = prefer(&parallel->pipeline, parallel->pipeline_preferred) || any;
    any = (micro_batch && prefer(&training->micro_batch, training->micro_batch_preferred)) || any;
    if ((int)training->recompute.mode == SPEC_AUTO && training->recompute_preferred.every_n_layers > 0) {
        training->recompute = training->recompute_preferred;
        any = true;
    }
    return any;
}

/* What is "auto" is the recipe's where all that it prefers fits together, or all but its micro-batch: that is what people
 * cut first when memory lacks. */
static bool choose(const Spec *spec, const SearchChoosing *how, Spec *ret_spec, bool *ret_fits,
                   GError **error)
{
    const bool cuts = spec->training.micro_batch == SPEC_AUTO && spec->training.micro_batch_preferred > 0;
    for (int i = 0; i <= (cuts ? 1 : 0); i++) {
        g_autofree Spec *trial = g_memdup2(spec, sizeof *spec);
        g_autoptr(GError) none = NULL; /* a preferred layout need not divide these GPUs or this batch */
        if (take_preferred(trial, i == 0) && choose_freely(trial, how, ret_spec, ret_fits, &none) &&
            *ret_fits)
            return true;
    }
    return choose_freely(spec, how, ret_spec, ret_fits, error);
}

bool search_choose_by(const Spec *spec, const SearchChoosing *how, Spec *ret_spec, GError **error)
{
    bool fits = false;
    SearchChoosing own = *how;
    *ret_spec = *spec;
    if (!search_has_auto(spec)) /* also what no search has bounds for: orders from a file */
        return true;
    own.reserve_bytes = MIN(how->reserve_bytes, search_hardware_most_bytes(spec));
    const bool ok = choose(spec, &own, ret_spec, &fits, error);
    if (!ok || fits || how->reserve_bytes <= 0)
        return ok;
    own.reserve_bytes = 0;
    return choose(spec, &own, ret_spec, &fits, error);
}

bool search_choose_reserved(const Spec *spec, double reserve_bytes, const OrrStop *stop, Spec *ret_spec,
                            GError **error)
{
    const SearchChoosing how = {.reserve_bytes = reserve_bytes, .stop = stop};
    return search_choose_by(spec, &how, ret_spec, error);
}

bool search_choose(const Spec *spec, Spec *ret_spec, GError **error)
{
    bool fits = false;
    const SearchChoosing how = {.reserve_bytes = spec->search.reserve_memory_bytes};
    *ret_spec = *spec;
    return !search_has_auto(spec) || choose(spec, &how, ret_spec, &fits, error);
}
