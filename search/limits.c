/* search/limits.c - see limits.h. Tested: unit/search/test_search_limits.c */
#include "search/limits.h"

#include <math.h>
#include <string.h>

#include "search/hardware.h"

static const char *const fields[SEARCH_USER_LIMITS] = {
    [SEARCH_USER_TENSOR_NODES] = "search.max_tensor_nodes",
    [SEARCH_USER_MICRO_BATCH_TOKENS] = "search.max_micro_batch_tokens",
    [SEARCH_USER_BATCH_TOKENS] = "search.max_batch_tokens",
};

const char *search_limit_field(SearchUserLimit limit)
{
    return fields[limit];
}

double search_limits_capacity_bytes(const Spec *spec, const char **ret_field)
{
    const SpecSearch *search = &spec->search;
    const double all = search_hardware_most_bytes(spec);
    const struct {
        const char *field;
        double bytes;
    } limits[] = {
        {"search.max_memory_frac", search->max_memory_frac > 0 ? all * search->max_memory_frac : all},
        {"search.max_memory_bytes", search->max_memory_bytes > 0 ? search->max_memory_bytes : all},
        {"search.reserve_memory_bytes", MAX(0, all - search->reserve_memory_bytes)},
    };
    const char *field = "cluster.accelerator.memory_bytes";
    double least = all;
    for (gsize i = 0; i < G_N_ELEMENTS(limits); i++)
        if (limits[i].bytes < least) {
            least = limits[i].bytes;
            field = limits[i].field;
        }
    if (ret_field != NULL)
        *ret_field = field;
    return least;
}

/* Nodes that the ranks of a tensor group lie on, where they follow one another `stride` apart. */
static int64_t tensor_nodes(const Spec *spec, const char *order, const SearchGroup *group)
{
    const char *const end = strstr(order, "tp");
    int64_t stride = 1;
    for (const char *at = order; at != NULL && at < end; at++) {
        if (g_str_has_prefix(at, "cp"))
            stride *= group->context;
        else if (g_str_has_prefix(at, "dp"))
            stride *= group->data;
        else if (g_str_has_prefix(at, "pp"))
            stride *= group->pipeline;
    }
    const int64_t node = MAX(1, spec->cluster.gpus_per_node);
    int64_t most = 1;
    /* Groups begin at every rank below the stride, and again after every stride x tensor ranks. */
    for (int64_t first = 0; first < spec_gpus(spec); first += stride * group->tensor)
        for (int64_t base = first; base < first + MIN(stride, node); base++) {
            int64_t nodes = 0, last = -1;
            for (int i = 0; i < group->tensor; i++) {
                const int64_t at = (base + i * stride) / node;
                nodes += at != last;
                last = at;
            }
            most = MAX(most, nodes);
        }
    return most;
}

int search_limits_broken(const SearchSpace *space, const SearchGroup *group)
{
    const Spec *spec = space->spec;
    const SpecSearch *search = &spec->search;
    const int64_t sequence = spec->training.sequence_length;
    if (search->max_tensor_nodes > 0 && group->tensor > 1 &&
        tensor_nodes(spec, space->rank_orders[group->order], group) > search->max_tensor_nodes)
        return SEARCH_USER_TENSOR_NODES;
    if (search->max_micro_batch_tokens > 0 &&
        group->micro_batch * sequence > (int64_t)search->max_micro_batch_tokens)
        return SEARCH_USER_MICRO_BATCH_TOKENS;
    if (search->max_batch_tokens > 0 &&
        spec->training.global_batch * sequence > (int64_t)search->max_batch_tokens)
        return SEARCH_USER_BATCH_TOKENS;
    return -1;
}

void search_limits_apply(SearchSpace *space, GArray *groups)
{
    guint kept = 0;
    for (guint i = 0; i < groups->len; i++) {
        const SearchGroup group = g_array_index(groups, SearchGroup, i);
        const int broken = search_limits_broken(space, &group);
        if (broken >= 0)
            space->beyond[broken] += search_group_count(space, &group);
        else
            g_array_index(groups, SearchGroup, kept++) = group;
    }
    g_array_set_size(groups, kept);
}

void search_limits_judge(const Spec *spec, double capacity_bytes, double needed_bytes, double host_bytes,
                         SearchRun *run)
{
    const double node_bytes = spec->search.max_host_bytes_per_node;
    const double short_bytes = MAX(0, needed_bytes - capacity_bytes);
    const double host_short =
        node_bytes > 0 ? MAX(0, host_bytes - node_bytes / MAX(1, spec->cluster.gpus_per_node)) : 0;
    run->host_bytes = host_bytes;
    run->fits = needed_bytes <= capacity_bytes && host_short <= 0;
    run->short_of_host = host_short > short_bytes;
    run->short_bytes = run->fits ? 0 : MAX(short_bytes, host_short);
}

void search_limits_tiers(double short_bytes, SearchRun *run)
{
    run->short_of_tier = short_bytes > run->short_bytes;
    run->short_bytes = MAX(run->short_bytes, short_bytes);
    run->fits = run->fits && short_bytes <= 0;
}

const char *search_limits_short_of(const Spec *spec, const SearchRun *run)
{
    const char *field = NULL;
    if (run->short_of_tier)
        return "cluster.host (dram_bytes or nvme_bytes)";
    if (run->short_of_host)
        return "search.max_host_bytes_per_node";
    search_limits_capacity_bytes(spec, &field);
    return field;
}

static int fixed(int degree)
{
    return MAX(1, degree);
}

/* Whether the search may try a precision that every kind of GPU has; true where it tries the scenario's alone. */
static bool has_precision(const Spec *spec)
{
    bool has = spec->search.precision == 0;
    for (int i = 0; i < spec_words_precision.count; i++)
        has = has || ((spec->search.precision & 1u << i) != 0 &&
                      search_hardware_has(spec, spec_gemm_dtype((SpecPrecision)i)));
    return has;
}

char *search_why_empty(const Spec *spec)
{
    const SpecParallel *p = &spec->parallel;
    const int gpus = spec_gpus(spec), batch = spec->training.global_batch;
    const int64_t split = (int64_t)fixed(p->tensor) * fixed(p->context) * fixed(p->pipeline);
    const int64_t product = split * fixed(p->data);
    const bool known = p->tensor > 0 && p->context > 0 && p->pipeline > 0;
    const int64_t data = known && gpus % split == 0 ? gpus / split : fixed(p->data);
    if (!has_precision(spec))
        return g_strdup_printf("search.precision names none that accelerator \"%s\" has a peak for; give "
                               "one, such as bf16",
                               spec->cluster.accelerator.name);
    if (gpus % product != 0)
        return g_strdup_printf("the fixed degrees of parallel multiply to %" G_GINT64_FORMAT
                               ", which does not divide the %d GPUs; give degrees that do",
                               (gint64)product, gpus);
    if (batch % data != 0)
        return g_strdup_printf("training.global_batch %d is not a multiple of the %" G_GINT64_FORMAT
                               " data-parallel ranks; give one",
                               batch, (gint64)data);
    if (p->pipeline > spec->model.layers + 2)
        return g_strdup_printf(
            "parallel.pipeline %d leaves stages without a layer of the model's %d; give less", p->pipeline,
            spec->model.layers);
    return g_strdup("widen `search`, or make fewer fields fixed");
}

char *search_limits_words(const SearchSpace *space)
{
    GString *words = g_string_new(NULL);
    for (int i = 0; i < SEARCH_USER_LIMITS; i++)
        if (space->beyond[i] > 0)
            g_string_append_printf(words, "; %s leaves out %" G_GINT64_FORMAT " points", fields[i],
                                   (gint64)space->beyond[i]);
    return g_string_free(words, FALSE);
}

bool search_limits_affordable(const Spec *spec, GError **error)
{
    enum { LARGEST_MICRO_BATCH = 64, MOST_MICRO_BATCHES = 100000 };
    const SpecParallel *p = &spec->parallel;
    const double data =
        p->data > 0 ? p->data : spec_gpus(spec) / (fixed(p->tensor) * fixed(p->context) * fixed(p->pipeline));
    const double micro = spec->training.micro_batch > 0 ? spec->training.micro_batch : LARGEST_MICRO_BATCH;
    const double least = spec->training.global_batch / fmax(1, data) / micro;
    return least <= MOST_MICRO_BATCHES ||
           orr_fail(
               error, ORR_ERROR_INPUT,
               "training.global_batch: %d sequences make at least %.3g micro-batches a pipeline at every "
               "point of the "
               "space, which no search gets through; give a smaller batch, more GPUs or a larger micro-batch",
               spec->training.global_batch, least);
}

/* Orders from a file replay one shape of pipeline and have no bounds. */
bool search_supports(const Spec *spec, GError **error)
{
    if (spec->parallel.schedule == SPEC_SCHEDULE_FILE)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "parallel.schedule: \"%s\" can be run but not searched; give values instead of \"auto\"",
            spec->parallel.schedule_file);
    if (spec->execution.measured_passes != NULL)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "execution.measured_passes: measured steps can be run but not searched; give values instead of "
            "\"auto\"");
    const bool mixed = spec->cluster.group_count > 0;
    if (mixed && (spec->search.max_memory_frac > 0 || spec->search.max_memory_bytes > 0))
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: one limit for cards of several sizes; give search.reserve_memory_bytes, which each "
            "keeps free",
            spec->search.max_memory_frac > 0 ? "search.max_memory_frac" : "search.max_memory_bytes");
    if (mixed && spec->parallel.replica_microbatches_count > 0)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "parallel.replica_microbatches: a list goes with one data and micro-batch degree; give "
            "\"auto\" beside other fields that are, or leave it out");
    if (spec->model.list.text != NULL || spec->parallel.data_scheme != SPEC_DATA_ALLREDUCE)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: can be run but not searched; give values instead of \"auto\", or vary "
                        "them: orrery sweep FILE --vary KEY=VALUES",
                        spec->model.list.text != NULL ? "model.layers: a list" : "parallel.data_scheme");
    return true;
}
