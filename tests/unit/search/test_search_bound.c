/* tests/unit/search/test_search_bound.c - no bound is above what the engine finds, on random points of random
 * spaces. */
#include <math.h>
#include <string.h>

#include "search/walk.h"
#include "tests/unit/draws.h"
#include "tests/unit/search_fixture.h"
#include "tests/unit/search_run_fixture.h"

typedef struct Gap { /* sums of how far bounds are below the simulated value */
    double time, bytes, replay, replay_bytes;
    int count;
} Gap;

static void describe(const Spec *spec)
{
    g_test_message(
        "tp%d sp%d cp%d pp%d vpp%d dp%d ep%d etp%d zero%d/%d mb%d %s recompute %d/%d offload %d overlap %u "
        "as %d%d",
        spec->parallel.tensor, spec->parallel.sequence_parallel, spec->parallel.context,
        spec->parallel.pipeline, spec->parallel.virtual_stages, spec->parallel.data, spec->parallel.expert,
        spec->parallel.expert_tensor, spec->parallel.zero, spec->parallel.zero_group_gpus,
        spec->training.micro_batch, spec_word(&spec_words_schedule, (int)spec->parallel.schedule),
        (int)spec->training.recompute.mode, spec->training.recompute.layers, spec->offload.activation_layers,
        spec->execution.overlap, spec->parallel.embedding_as_layer, spec->parallel.loss_as_layer);
}

static void check_point(SearchWorker *worker, SearchSpace *space, SearchId id, Gap *gaps)
{
    const double capacity = space->spec->cluster.accelerator.memory_bytes;
    SearchRun run;
    int64_t least_ps = 0;
    double least_bytes = 0;
    g_autofree Spec *spec = g_new(Spec, 1);
    search_point_spec(space, id, spec);
    GError *error = NULL;
    spec_check(spec, "point", &error);
    g_assert_no_error(error);
    g_assert_true(search_simulate(space, id, capacity, &run));
    const SearchGroup *group = &space->groups[id.group];
    fixture_fill_table(worker->tables, group);
    search_bound_point(worker, id, &least_ps, &least_bytes);
    g_assert_cmpint(search_partition_pairs(&group->partitions->partition[id.partition])
                        ? search_bound_group_pairs(worker->tables, group)
                        : search_bound_group(worker->tables, group),
                    <=, run.step_ps);
    const double needed = run.peak_bytes + spec->execution.framework.allocator.context_bytes;
    if (least_ps > run.step_ps || least_bytes > needed + 1)
        describe(spec);
    g_assert_cmpint(least_ps, <=, run.step_ps);
    g_assert_cmpfloat(least_bytes, <=, needed + 1);
    int64_t replay_ps = 0;
    double replay_bytes = 0;
    search_replay_point(worker, id, &replay_ps, &replay_bytes);
    if (replay_ps > run.step_ps || replay_bytes > needed + 1)
        describe(spec);
    g_assert_cmpint(replay_ps, >=, least_ps);
    g_assert_cmpint(replay_ps, <=, run.step_ps);
    g_assert_cmpfloat(replay_bytes, <=, needed + 1);
    Gap *gap = &gaps[spec->parallel.schedule];
    gap->time += 1 - (double)least_ps / (double)run.step_ps;
    gap->bytes += 1 - least_bytes / needed;
    gap->replay_bytes += 1 - replay_bytes / needed;
    gap->replay += 1 - (double)replay_ps / (double)run.step_ps;
    gap->count++;
}

static void check_space(const Spec *spec, GRand *rand, int points, Gap *gaps)
{
    SearchSpace *space = search_space_new(spec);
    if (search_space_count(space) > 0) {
        SearchTables *tables = search_tables_new(space);
        SearchWorker *worker = search_worker_new(space, tables);
        for (int k = 0; k < points; k++)
            check_point(worker, space, fixture_random_id(rand, space), gaps);
        search_worker_free(worker);
        search_tables_free(tables);
    }
    search_space_free(space);
}

static void print_gaps(const Gap *gaps)
{
    for (int i = 0; i < sim_schedule_words.count; i++)
        if (gaps[i].count > 0)
            g_test_message(
                "%-14s %5d points, bounds below by: time %.2f %%, replayed %.2f %%; memory %.2f %%, "
                "replayed %.2f %%",
                spec_word(&spec_words_schedule, i), gaps[i].count, 100 * gaps[i].time / gaps[i].count,
                100 * gaps[i].replay / gaps[i].count, 100 * gaps[i].bytes / gaps[i].count,
                100 * gaps[i].replay_bytes / gaps[i].count);
}

static void test_bounds(void)
{
    GRand *rand = g_rand_new_with_seed(20260101);
    Gap gaps[SPEC_SCHEDULE_FILE] = {{0}};
    for (int i = 0; i < DRAWS(80); i++) {
        g_autofree Spec *spec = fixture_space(rand, i, false);
        check_space(spec, rand, 120, gaps);
    }
    print_gaps(gaps);
    g_rand_free(rand);
}

/* Hosts that check collectives, wait for messages or send them one by one, in pipelines and without; software whose passes
 * are others where layers run again. */
static void test_hosts(void)
{
    static const char *const frameworks[] = {
        "nanotron-2025", "nanotron", "deepspeed", "megatron-llama-one-queue", "paxml", "internevo"};
    for (gsize f = 0; f < G_N_ELEMENTS(frameworks); f++) {
        GRand *rand = g_rand_new_with_seed(20260101);
        Gap gaps[SPEC_SCHEDULE_FILE] = {{0}};
        for (int i = 0; i < DRAWS(24); i++) {
            g_autofree Spec *spec = fixture_space_of(rand, i, false, frameworks[f]);
            check_space(spec, rand, 60, gaps);
        }
        g_assert_cmpint(gaps[sim_schedule_index("1f1b")].count, >, DRAWS(100));
        g_rand_free(rand);
    }
}

/* Forwards beside backwards of stages that differ: dense layers and experts, on links from quick to very slow. */
static void test_pairs(void)
{
    GRand *rand = g_rand_new_with_seed(5);
    Gap gaps[SPEC_SCHEDULE_FILE] = {{0}};
    for (int i = 0; i < DRAWS(60); i++) {
        g_autofree Spec *spec = fixture_space(rand, 4 * i + 3, false);
        spec->parallel.schedule = (SpecSchedule)SPEC_AUTO;
        spec->search.schedule = 1u << sim_schedule_index("dualpipe") | 1u << sim_schedule_index("dualpipev");
        spec->model.moe.dense_layers = g_rand_int_range(rand, 0, spec->model.layers);
        spec->cluster.scale_out_bytes_per_s_per_gpu /= 1 << g_rand_int_range(rand, 0, 8);
        check_space(spec, rand, 60, gaps);
    }
    print_gaps(gaps);
    g_assert_cmpint(gaps[sim_schedule_index("dualpipe")].count, >, DRAWS(100));
    g_assert_cmpint(gaps[sim_schedule_index("dualpipev")].count, >, DRAWS(100));
    g_rand_free(rand);
}

/* Gathers that begin with the step or with a chunk's first use, on links from quick to so slow that a pipeline fills past
 * little else: bounds are as near to the engine either way. */
static void test_gathers(void)
{
    static const SpecGathersBegin begins[] = {SPEC_GATHERS_STEP, SPEC_GATHERS_USE};
    double below[G_N_ELEMENTS(begins)] = {0};
    for (gsize b = 0; b < G_N_ELEMENTS(begins); b++) {
        GRand *rand = g_rand_new_with_seed(7);
        Gap gaps[SPEC_SCHEDULE_FILE] = {{0}};
        int count = 0;
        for (int i = 0; i < DRAWS(40); i++) {
            g_autofree Spec *spec = fixture_space_of(rand, i, false, "megatron-core");
            spec->execution.framework.data_parallel.gathers_begin = begins[b];
            spec->execution.overlap = SPEC_OVERLAP_PARAM_GATHER | SPEC_OVERLAP_GRAD_REDUCE;
            spec->search.zero = (SpecChoices){.count = 2, .value = {1, 2}};
            spec->cluster.scale_up_bytes_per_s /= 1 << g_rand_int_range(rand, 0, 6);
            spec->cluster.scale_out_bytes_per_s_per_gpu /= 1 << g_rand_int_range(rand, 0, 6);
            check_space(spec, rand, 40, gaps);
        }
        for (int s = 0; s < SPEC_SCHEDULE_FILE; s++) {
            below[b] += gaps[s].replay;
            count += gaps[s].count;
        }
        print_gaps(gaps);
        g_assert_cmpint(count, >, DRAWS(300));
        below[b] /= count;
        g_rand_free(rand);
    }
    g_test_message("below by %.2f %% with the step, %.2f %% with the first use", 100 * below[0],
                   100 * below[1]);
    g_assert_cmpfloat(below[1], <, below[0] + 0.01);
}

/* The replay of one point. */
static int64_t replay_of(SearchSpace *space, SearchId id)
{
    SearchTables *tables = search_tables_new(space);
    SearchWorker *worker = search_worker_new(space, tables);
    int64_t replay_ps = 0;
    double bytes = 0;
    fixture_fill_table(tables, &space->groups[id.group]);
    search_replay_point(worker, id, &replay_ps, &bytes);
    search_worker_free(worker);
    search_tables_free(tables);
    return replay_ps;
}

/* Passes beside gathers that take a share of the SMs last longer by it: never shorter than beside gathers that take none, and
 * somewhere longer. */
static void test_gathers_take_sms(void)
{
    GRand *rand = g_rand_new_with_seed(11);
    int points = 0, longer = 0;
    for (int i = 0; i < DRAWS(40); i++) {
        g_autofree Spec *spec = fixture_space_of(rand, i, false, "megatron-core"), *free_of = NULL;
        spec->execution.framework.data_parallel.gathers_begin = SPEC_GATHERS_STEP;
        spec->execution.overlap = SPEC_OVERLAP_PARAM_GATHER;
        spec->search.zero = (SpecChoices){.count = 1, .value = {1}};
        spec->cluster.scale_out_bytes_per_s_per_gpu /= 1 << g_rand_int_range(rand, 0, 4);
        free_of = g_memdup2(spec, sizeof *spec);
        SpecCollectiveModel *models[] = {&free_of->cluster.collectives,
                                         &free_of->cluster.accelerator.model.collectives};
        for (gsize k = 0; k < G_N_ELEMENTS(models); k++)
            models[k]->ring_sm_frac = models[k]->nvls_sm_frac = models[k]->net_sm_frac = 0;
        SearchSpace *taking = search_space_new(spec), *leaving = search_space_new(free_of);
        g_assert_cmpint(search_space_count(taking), ==, search_space_count(leaving));
        for (int k = 0; search_space_count(taking) > 0 && k < 12; k++, points++) {
            const SearchId id = fixture_random_id(rand, taking);
            const int64_t with_ps = replay_of(taking, id), without_ps = replay_of(leaving, id);
            g_assert_cmpint(with_ps, >=, without_ps);
            longer += with_ps > without_ps;
        }
        search_space_free(taking);
        search_space_free(leaving);
    }
    g_test_message("%d points, %d longer", points, longer);
    g_assert_cmpint(longer, >, points / 10);
    g_rand_free(rand);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/search/bounds-below-simulation", test_bounds);
    g_test_add_func("/search/bounds-of-hosts-below-simulation", test_hosts);
    g_test_add_func("/search/pairs-below-simulation", test_pairs);
    g_test_add_func("/search/gathers-below-simulation", test_gathers);
    g_test_add_func("/search/gathers-take-sms", test_gathers_take_sms);
    return g_test_run();
}
