/* tests/unit/sim/test_eventq.c - the queue of events against a list that is searched from the front. */
#include "sim/eventq.h"

#include <glib.h>

typedef struct {
    int events, rounds;
    int pops, keeps; /* one round in so many is a pop; all but one in so many of the others a push */
    int64_t step_ps; /* times are multiples of it, */
    int steps;       /* less than so many of them ahead */
    int bits;        /* ... and shifted by fewer than so many, at random */
} QueueCase;

static int64_t later(GRand *random, const QueueCase *c)
{
    return (int64_t)g_rand_int_range(random, 0, c->steps) * c->step_ps
           << g_rand_int_range(random, 0, c->bits);
}

/* Against a list searched from the front: earliest first, first in first out, anything may be taken out. */
static void check_queue(const QueueCase *c)
{
    GRand *random = g_rand_new_with_seed(11);
    OrrArena *arena = orr_arena_new();
    SimEventq *queue = sim_eventq_new(arena, c->events);
    int64_t *time_of = ORR_ARENA_NEW(arena, int64_t, c->events),
            *order_of = ORR_ARENA_NEW(arena, int64_t, c->events);
    bool *in = ORR_ARENA_NEW(arena, bool, c->events);
    int64_t order = 0, now = 0;
    for (int round = 0; round < c->rounds; round++) {
        int32_t event = g_rand_int_range(random, 0, c->events);
        if (g_rand_int_range(random, 0, c->pops) > 0) {
            sim_eventq_remove(queue, event);
            in[event] = g_rand_int_range(random, 0, c->keeps) > 0;
            if (!in[event])
                continue;
            time_of[event] = now + later(random, c);
            order_of[event] = order++;
            sim_eventq_push(queue, event, time_of[event]);
            continue;
        }
        int32_t expected = -1, popped;
        for (int32_t i = 0; i < c->events; i++) {
            if (in[i] && (expected < 0 || time_of[i] < time_of[expected] ||
                          (time_of[i] == time_of[expected] && order_of[i] < order_of[expected])))
                expected = i;
        }
        if (expected >= 0 && time_of[expected] == now && g_rand_int_range(random, 0, 2) > 0) {
            g_assert_true(sim_eventq_pop_at(queue, now, &popped));
        } else {
            g_assert_true(sim_eventq_pop(queue, &now, &popped) == (expected >= 0));
            if (expected < 0)
                continue;
        }
        g_assert_cmpint(popped, ==, expected);
        g_assert_cmpint(now, ==, time_of[expected]);
        in[expected] = false;
    }
    orr_arena_free(arena);
    g_rand_free(random);
}

static void test_eventq(void)
{
    static const QueueCase CASES[] = {
        {200, 50000, 3, 8, 1, 40, 1},       /* few instants, much taken out */
        {3000, 30000, 3, 8, 1, 4, 1},       /* hundreds of events an instant */
        {3000, 30000, 3, 8, 1000, 2000, 1}, /* more instants than are remembered */
        {3000, 30000, 2, 100, 1, 300, 1},   /* close together: more than are sorted at once */
        {1000, 30000, 4, 8, 7, 50, 40},     /* from picoseconds to months */
        {500, 50000, 50, 100, 1, 100000, 20},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++)
        check_queue(&CASES[i]);
}

/* Instants of one time that do not know of each other, more of them than are sorted at once. */
static void test_eventq_one_time(void)
{
    enum { ROUNDS = 200, TIMES = 1024 };
    OrrArena *arena = orr_arena_new();
    SimEventq *queue = sim_eventq_new(arena, TIMES * ROUNDS);
    int32_t next = 0, popped = -1;
    int64_t now = 0;
    for (int round = 0; round < ROUNDS; round++) { /* each time pushes the others out of what is remembered */
        for (int64_t t = 0; t < TIMES; t++)
            sim_eventq_push(queue, next++, 1000000 + 3 * t);
    }
    for (int64_t t = 0; t < TIMES; t++) {
        for (int round = 0; round < ROUNDS; round++) {
            g_assert_true(round == 0 ? sim_eventq_pop(queue, &now, &popped)
                                     : sim_eventq_pop_at(queue, now, &popped));
            g_assert_cmpint(popped, ==, round * TIMES + t);
            g_assert_cmpint(now, ==, 1000000 + 3 * t);
        }
        g_assert_false(sim_eventq_pop_at(queue, now, &popped));
    }
    g_assert_false(sim_eventq_pop(queue, &now, &popped));
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/eventq/order", test_eventq);
    g_test_add_func("/eventq/one-time", test_eventq_one_time);
    return g_test_run();
}
