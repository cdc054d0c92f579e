/* tests/unit/sim/test_engine_random.c - random ops, resources and capacity events beside a solver that knows no
 * events of its own: at every instant it raises all rates from nothing, by bisection, in floating point. */
#include "tests/unit/draws.h"
#include "tests/unit/ops_fixture.h"

#include <math.h>

typedef struct {
    const SimProgram *program;
    double start, left, rate, end; /* of each op, by work; end < 0: not yet */
    bool running;
} Naive;

static double capacity_at(const SimProgram *program, int row, int instance, double now)
{
    double capacity = (double)program->resources[row].capacity;
    for (int64_t i = 0; i < program->capacity_event_count; i++) {
        const SimCapacityEvent *event = &program->capacity_events[i];
        if (event->resource == row && (event->instance < 0 || event->instance == instance) &&
            (double)event->time_ps <= now)
            capacity = (double)event->capacity;
    }
    return capacity;
}

static int number_of(const SimProgram *program, const SimShare *share, int rank)
{
    const SimResource *resource = &program->resources[share->resource];
    return share->instance > 0                  ? share->instance - 1
           : resource->instance_of_rank != NULL ? resource->instance_of_rank[rank]
                                                : rank;
}

static double weight_of(const SimWork *work)
{
    const SimShare *share;
    for (int k = 0; (share = sim_work_share(work, k)) != NULL; k++) {
        if (share->mode == SIM_SHARE_FAIR)
            return (double)share->amount;
    }
    return 1;
}

/* What the ops use of an instance when all levels that are not fixed stand at `level`. */
static double used(const SimProgram *program, const Naive *ops, int count, const bool *fixed, int row,
                   int instance, double level)
{
    double sum = 0;
    const SimShare *share;
    for (int i = 0; i < count; i++) {
        const SimWork *work = &program->works[i];
        for (int k = 0; ops[i].running && (share = sim_work_share(work, k)) != NULL; k++) {
            if (share->resource != row || number_of(program, share, i / SIM_STREAM_COUNT) != instance)
                continue;
            const double rate = fixed[i] ? ops[i].rate : fmin(1, level / weight_of(work));
            sum += (double)share->amount * (share->mode == SIM_SHARE_RESERVED ? 1 : rate);
        }
    }
    return sum;
}

/* Raises all levels together in small steps of bisection; whoever meets a full instance stops there. */
static void naive_rates(const SimProgram *program, Naive *ops, int count, int ranks, double now)
{
    bool fixed[MAX_RANKS * SIM_STREAM_COUNT] = {false};
    for (;;) {
        double lowest = 1e18;
        int at_row = -1, at_instance = 0;
        for (int row = 0; row < program->resource_count; row++) {
            for (int instance = 0; instance < ranks; instance++) {
                const double capacity = capacity_at(program, row, instance, now);
                if (used(program, ops, count, fixed, row, instance, 1e18) <=
                    capacity + 1e-9 + used(program, ops, count, fixed, row, instance, 0) * 1e-12)
                    continue;
                if (used(program, ops, count, fixed, row, instance, 1e18) -
                        used(program, ops, count, fixed, row, instance, 0) <
                    1e-9)
                    continue; /* nobody left who could give way */
                double low = 0, high = 1e7;
                for (int k = 0; k < 60; k++) {
                    const double middle = 0.5 * (low + high);
                    if (used(program, ops, count, fixed, row, instance, middle) <= capacity)
                        low = middle;
                    else
                        high = middle;
                }
                if (low < lowest) {
                    lowest = low;
                    at_row = row;
                    at_instance = instance;
                }
            }
        }
        if (at_row < 0)
            break;
        for (int i = 0; i < count; i++) {
            const SimShare *share;
            for (int k = 0;
                 ops[i].running && !fixed[i] && (share = sim_work_share(&program->works[i], k)) != NULL;
                 k++) {
                if (share->resource == at_row && share->mode == SIM_SHARE_FAIR &&
                    number_of(program, share, i / SIM_STREAM_COUNT) == at_instance) {
                    ops[i].rate = fmin(1, lowest / weight_of(&program->works[i]));
                    fixed[i] = true;
                }
            }
        }
    }
    for (int i = 0; i < count; i++) {
        if (!fixed[i])
            ops[i].rate = 1;
    }
}

/* All ops start at 0. */
static void naive_run(const SimProgram *program, Naive *ops, int count, int ranks)
{
    double now = 0;
    for (;;) {
        double next = 1e18;
        naive_rates(program, ops, count, ranks, now);
        for (int i = 0; i < count; i++) {
            if (ops[i].running && ops[i].rate > 0)
                next = fmin(next, now + ops[i].left / ops[i].rate);
        }
        for (int64_t i = 0; i < program->capacity_event_count; i++) {
            if ((double)program->capacity_events[i].time_ps > now)
                next = fmin(next, (double)program->capacity_events[i].time_ps);
        }
        if (next > 1e17)
            return;
        for (int i = 0; i < count; i++) {
            if (!ops[i].running)
                continue;
            ops[i].left -= (next - now) * ops[i].rate;
            if (ops[i].left < 1e-6) {
                ops[i].end = next;
                ops[i].running = false;
            }
        }
        now = next;
    }
}

static void random_shares(SimWork *work, GRand *random, int ranks)
{
    const int count = (int)fixture_random(random, 0, 3);
    const int64_t amount = fixture_random(random, 100, 1000);
    for (int k = 0, row = 0; k < count && row < 4; k++, row += (int)fixture_random(random, 1, 2)) {
        sim_work_hold(work, row, SIM_SHARE_FAIR,
                      fixture_random(random, 0, 3) > 0 ? amount : fixture_random(random, 100, 1000));
        if (fixture_random(random, 0, 3) == 0)
            work->shares[k].instance = 1 + (int)fixture_random(random, 0, row < 2 ? ranks - 1 : 1);
    }
    if (fixture_random(random, 0, 3) == 0 && count < SIM_WORK_SHARES)
        sim_work_hold(work, 4, SIM_SHARE_RESERVED, fixture_random(random, 1, 100));
    else if (count < SIM_WORK_SHARES && fixture_random(random, 0, 1))
        sim_work_hold(work, 4, SIM_SHARE_FAIR, 800);
}

static void test_random(void)
{
    static const int32_t HALVES[MAX_RANKS] = {0, 0, 0, 1, 1, 1}, ALL[MAX_RANKS] = {0};
    GRand *random = g_rand_new_with_seed(77);
    int contended = 0;
    for (int round = 0; round < DRAWS(300); round++) {
        OrrArena *arena = orr_arena_new();
        const int ranks = (int)fixture_random(random, 4, MAX_RANKS);
        const SimResource resources[] = {{.name = "a", .capacity = fixture_random(random, 500, 1500)},
                                         {.name = "b", .capacity = fixture_random(random, 500, 1500)},
                                         {.name = "c",
                                          .capacity = fixture_random(random, 800, 3000),
                                          .instance_of_rank = HALVES,
                                          .instances = 2},
                                         {.name = "d",
                                          .capacity = fixture_random(random, 1500, 5000),
                                          .instance_of_rank = ALL,
                                          .instances = 2},
                                         {.name = "e", .capacity = 1000}};
        const SimCapacityEvent events[] = {{fixture_random(random, 1, 500000), 0, -1, 700},
                                           {fixture_random(random, 500000, 900000), 2, 1, 2000}};
        Ops ops;
        ops_init(&ops, ranks, resources, G_N_ELEMENTS(resources));
        ops.program.capacity_events = events;
        ops.program.capacity_event_count = fixture_random(random, 0, 2);
        Naive naive[MAX_RANKS * SIM_STREAM_COUNT] = {{0}};
        for (int i = 0; i < ranks * SIM_STREAM_COUNT; i++) {
            const int64_t duration_ps = fixture_random(random, 100000, 2000000);
            if (fixture_random(random, 0, 2) == 0)
                continue;
            random_shares(add_op(&ops, i / SIM_STREAM_COUNT, i % SIM_STREAM_COUNT, duration_ps), random,
                          ranks);
            naive[i] = (Naive){.left = (double)duration_ps, .running = true};
        }
        const SimResult result = run(&ops.program, arena);
        contended += result.rate_count > 0;
        naive_run(&ops.program, naive, ranks * SIM_STREAM_COUNT, ranks);
        for (int64_t i = 0; i < result.span_count; i++) {
            const SimSpan *span = &result.spans[i];
            const double expected = naive[span->work].end;
            if (fabs((double)span->end_ps - expected) > 1e-4 * expected + 10)
                g_test_message("round %d op %d: %.0f, not %" G_GINT64_FORMAT, round, span->work, expected,
                               span->end_ps);
            g_assert_cmpfloat(fabs((double)span->end_ps - expected), <=, 1e-4 * expected + 10);
        }
        orr_arena_free(arena);
    }
    g_assert_cmpint(6 * contended, >, 5 * DRAWS(300));
    g_rand_free(random);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine-random/naive", test_random);
    return g_test_run();
}
