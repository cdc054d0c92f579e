/* tests/unit/campaign/test_campaign.c - campaigns: published vectors, replicas against the exact formula (and
 * against wrong ones, which they must refute), Llama 3's 54 days, spare nodes by hand, what is refused. */
#include <math.h>
#include <string.h>

#include "campaign/campaign.h"
#include "spec/load.h"
#include "tests/unit/team_fixture.h"

#define LLAMA_MTBF_S (54 * 86400.0 / 419)

static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        g_error("%.10g is not within %g of %.10g", value, tolerance, expected);
}

static void test_formulas(void)
{
    const CampaignRates rates = {11135, 10, 0, 600, false}, hit = {11135, 10, 0, 600, true};
    assert_near(campaign_young_s(10, 11135), 471.9, .05);
    assert_near(campaign_daly_s(10, 11135), 465.3, .05);
    assert_near(campaign_availability_s(10, 11135, 600), 494.6, .05);
    assert_near(471.9 / campaign_cycle_s(&rates, 471.9), .9092, 5e-5);
    assert_near(471.9 / campaign_cycle_s(&hit, 471.9), .9079, 5e-5);
    assert_near(campaign_first_order(&rates, 471.9), .9037, 5e-5);
    assert_near(campaign_availability_s(10, 6600, 0), 373.5, .1); /* 24.9 steps of 15 s */
    const double best = campaign_best_interval_s(&rates, 1e6);
    for (double factor = .5; factor < 2; factor *= 1.1)
        g_assert_cmpfloat(campaign_cycle_s(&rates, best) / best, <=,
                          campaign_cycle_s(&rates, best * factor) / (best * factor) * (1 + 1e-12));
    assert_near(best, 465.3, .5); /* what Daly's series approximates */
}

enum { REPLICAS = 2000 };

/* Mean total time of replicas and its standard error; the parts of each add up. */
static double live(const CampaignRun *run, double *ret_error)
{
    g_autofree CampaignLife *lives = g_new(CampaignLife, REPLICAS);
    double mean = 0, squares = 0;
    campaign_live_all(run, 7, REPLICAS, 0, lives);
    for (int i = 0; i < REPLICAS; i++) {
        const CampaignLife *life = &lives[i];
        const double parts = life->checkpoint_s + life->lost_work_s + life->restart_s + life->loading_s +
                             life->waiting_s + run->interval_s * run->segments;
        assert_near(parts, life->total_s, 1e-9 * life->total_s);
        mean += life->total_s / REPLICAS;
    }
    for (int i = 0; i < REPLICAS; i++)
        squares += (lives[i].total_s - mean) * (lives[i].total_s - mean);
    *ret_error = sqrt(squares / (REPLICAS - 1) / REPLICAS);
    return mean;
}

static CampaignRun llama(double stall_s, double write_s, double restart_s, double interval_s, bool hit)
{
    const double segments = round(54 * 86400.0 / interval_s);
    return (CampaignRun){.rates = {LLAMA_MTBF_S, stall_s, write_s, restart_s, hit},
                         .interval_s = 54 * 86400.0 / segments,
                         .segments = segments,
                         .spares = -1};
}

/* Within 4 standard errors of the exact formula, in every mode, and more than 4 away from formulas that are wrong: another
 * rule for restarts, the first order, a checkpoint that counts before it is written, 1 % off in the rate of failures. */
static void test_replicas_agree(void)
{
    static const double cases[][4] = {{10, 0, 600, 471.9},
                                      {10, 0, 3000, 900},
                                      {60, 0, 1200, 2000},
                                      {1, 300, 600, 700},
                                      {5, 900, 2000, 1000}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        for (int hit = 0; hit < 2; hit++) {
            const CampaignRun run = llama(cases[i][0], cases[i][1], cases[i][2], cases[i][3], hit != 0);
            double error_s = 0;
            const double mean = live(&run, &error_s);
            assert_near(mean, campaign_total_s(&run.rates, run.interval_s, run.segments), 4 * error_s);
            CampaignRates wrong = run.rates;
            wrong.fails_in_restart = !wrong.fails_in_restart;
            g_assert_cmpfloat(fabs(mean - campaign_total_s(&wrong, run.interval_s, run.segments)), >,
                              4 * error_s);
            wrong = run.rates;
            wrong.mtbf_s *= 1.01;
            g_assert_cmpfloat(fabs(mean - campaign_total_s(&wrong, run.interval_s, run.segments)), >,
                              4 * error_s);
            wrong = run.rates;
            wrong.write_s = 0;
            if (run.rates.write_s > 0)
                g_assert_cmpfloat(fabs(mean - campaign_total_s(&wrong, run.interval_s, run.segments)), >,
                                  4 * error_s);
            else
                g_assert_cmpfloat(fabs(mean - run.interval_s * run.segments /
                                                  campaign_first_order(&run.rates, run.interval_s)),
                                  >, 4 * error_s);
        }
}

/* A restart that is nothing but loading: rounding leaves no time below zero for the rest of it. */
static void test_nothing_below_zero(void)
{
    for (int i = 1; i <= 200; i++) {
        const CampaignRates rates = {
            .mtbf_s = 12345.6 * i, .restart_s = 77.7, .stall_s = 1.1, .write_s = 3, .fails_in_restart = true};
        const CampaignMeans means = campaign_means(&rates, 600, 1e4, 0, 77.7);
        g_assert_cmpfloat(means.restart_s, >=, 0);
        g_assert_cmpfloat(means.restart_s, <, 1e-9 * means.total_s);
        g_assert_cmpfloat(means.lost_work_s, >=, 0);
    }
}

/* Where the exact mean goes: each part of campaign_means() within 4 standard errors of the replicas', and together all. */
static void test_means(void)
{
    for (int hit = 0; hit < 2; hit++) {
        CampaignRun run = llama(30, hit * 100, 900, 900, hit != 0);
        run.load_from_s = 300;
        run.load_s = 400;
        const CampaignMeans means =
            campaign_means(&run.rates, run.interval_s, run.segments, run.load_from_s, run.load_s);
        g_autofree CampaignLife *lives = g_new(CampaignLife, REPLICAS);
        const double expected[] = {means.total_s,   means.checkpoint_s, means.lost_work_s,
                                   means.restart_s, means.loading_s,    means.interruptions};
        campaign_live_all(&run, 11, REPLICAS, 0, lives);
        for (gsize part = 0; part < G_N_ELEMENTS(expected); part++) {
            double mean = 0, squares = 0;
            for (int pass = 0; pass < 2; pass++)
                for (int i = 0; i < REPLICAS; i++) {
                    const CampaignLife *life = &lives[i];
                    const double values[] = {life->total_s,     life->checkpoint_s,
                                             life->lost_work_s, life->restart_s,
                                             life->loading_s,   (double)life->interruptions};
                    if (pass == 0)
                        mean += values[part] / REPLICAS;
                    else
                        squares += (values[part] - mean) * (values[part] - mean);
                }
            assert_near(mean, expected[part],
                        4 * sqrt(squares / (REPLICAS - 1) / REPLICAS) + 1e-9 * expected[part]);
        }
        assert_near(means.checkpoint_s + means.lost_work_s + means.restart_s + means.loading_s +
                        run.interval_s * run.segments,
                    means.total_s, 1e-9 * means.total_s);
    }
}

/* Effective time above 90 %: 10 s for restarts up to 642 s, 30 s up to 296 s (where the first order crosses it), 60 s
 * never. */
static void test_llama3(void)
{
    static const double cases[][2] = {{10, 642}, {30, 296}};
    double error_s = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const double young = campaign_young_s(cases[i][0], LLAMA_MTBF_S);
        CampaignRates rates = {LLAMA_MTBF_S, cases[i][0], 0, cases[i][1], true};
        rates.restart_s = 0;
        assert_near((campaign_first_order(&rates, young) - .9) * LLAMA_MTBF_S, cases[i][1], .5);
        const CampaignRun run = llama(cases[i][0], 0, cases[i][1], young, true);
        const double mean = live(&run, &error_s);
        g_assert_cmpfloat(54 * 86400.0 / (mean + 4 * error_s), >, .9);
    }
    const CampaignRates free_restart = {LLAMA_MTBF_S, 60, 0, 0, true};
    const double best = campaign_best_interval_s(&free_restart, 54 * 86400.0);
    g_assert_cmpfloat(campaign_first_order(&free_restart, campaign_young_s(60, LLAMA_MTBF_S)), <, .9);
    const CampaignRun run = llama(60, 0, 0, best, true);
    const double mean = live(&run, &error_s);
    g_assert_cmpfloat(54 * 86400.0 / mean, <, .9);
}

static void test_threads(void)
{
    const CampaignRun run = llama(10, 0, 600, 500, true);
    CampaignLife one[100], many[100], other[100];
    campaign_live_all(&run, 3, 100, 1, one);
    campaign_live_all(&run, 3, 100, 5, many);
    campaign_live_all(&run, 4, 100, 5, other);
    g_assert_true(memcmp(one, many, sizeof one) == 0);
    g_assert_true(memcmp(one, other, sizeof one) != 0);
}

/* Stopped after some questions: the lives that are there are the first of all. */
static bool lose_patience(void *data)
{
    return g_atomic_int_add((gint *)data, -1) <= 0;
}

static void test_stop(void)
{
    const CampaignRun run = llama(10, 0, 600, 500, true);
    CampaignLife whole[200], cut[200];
    campaign_live_all(&run, 3, 200, 1, whole);
    for (int threads = 1; threads <= 3; threads++)
        for (gint patience = 0; patience < 5; patience++) {
            gint left = patience;
            const OrrStop stop = {lose_patience, &left};
            const int64_t count =
                campaign_live_until(&run, 3, 200, &(CampaignCrew){.threads = threads, .stop = stop}, cut);
            g_assert_cmpint(count, >, 0);
            g_assert_cmpint(count, <, 200);
            g_assert_true(memcmp(whole, cut, (gsize)count * sizeof *cut) == 0);
        }
    g_assert_cmpint(campaign_live_until(&run, 3, 200, &(CampaignCrew){.threads = 2}, cut), ==, 200);
    g_assert_true(memcmp(whole, cut, sizeof cut) == 0);
}

static gpointer live_share(gpointer data)
{
    FixtureSeat *seat = data;
    campaign_live_team(seat->given, 3, 101, 2, &seat->team, seat->result);
    return NULL;
}

/* Processes that live parts of the replicas all have all of them, as one process has them. */
static void test_team(void)
{
    const CampaignRun run = llama(10, 0, 600, 500, true);
    CampaignLife alone[101], lives[FIXTURE_RANKS][101];
    void *const places[] = {lives[0], lives[1], lives[2], lives[3]};
    campaign_live_team(&run, 3, 101, 1, NULL, alone);
    for (int ranks = 1; ranks <= FIXTURE_RANKS; ranks++) {
        memset(lives, 0, sizeof lives);
        fixture_team(ranks, live_share, &run, places);
        for (int r = 0; r < ranks; r++)
            g_assert_true(memcmp(lives[r], alone, sizeof alone) == 0);
    }
}

/* No spare: each loss of a node waits for its repair less what detecting it took. One spare: for fewer. Enough: nobody. */
static void test_spares(void)
{
    CampaignRun run = llama(10, 0, 600, 500, false);
    run.causes[0] = (CampaignShare){1, 1, 0};
    run.cause_count = 1;
    run.repair_s = 3600;
    run.detection_s = 60;
    run.spares = 0;
    const CampaignLife none = campaign_live(&run, 1, 0);
    assert_near(none.waiting_s, (double)none.interruptions * 3540, 1e-6 * none.waiting_s);
    g_assert_cmpint(none.nodes_away, ==, 1);
    run.spares = 1;
    const CampaignLife one = campaign_live(&run, 1, 0);
    g_assert_cmpfloat(one.waiting_s, >, 0);
    g_assert_cmpfloat(one.waiting_s, <, none.waiting_s / 3);
    run.spares = -1;
    const CampaignLife all = campaign_live(&run, 1, 0);
    g_assert_cmpfloat(all.waiting_s, ==, 0);
    run.spares = (int)all.nodes_away;
    const CampaignLife enough = campaign_live(&run, 1, 0);
    g_assert_true(memcmp(&all, &enough, sizeof all) == 0);
}

/* One failure at 10,000 s of a run of 20 intervals of 1,800 s, each behind a stall of 10 s: five are saved, the rest is lost.
 * By hand, with the restart of 100 s; without checkpoints everything is done again. */
static void test_scripted(void)
{
    CampaignRun run = {.rates = {INFINITY, 10, 0, 100, true},
                       .interval_s = 1800,
                       .segments = 20,
                       .causes = {{1, 1}},
                       .cause_count = 1,
                       .repair_s = 7200,
                       .spares = 1,
                       .script_s = {10000},
                       .script_count = 1};
    CampaignLife life = campaign_live(&run, 1, 0);
    assert_near(life.total_s, 20 * 1810 + (10000 - 5 * 1810) + 100, 1e-6);
    assert_near(life.lost_work_s, 950, 1e-6);
    g_assert_cmpint(life.interruptions, ==, 1);
    g_assert_cmpint(life.nodes_away, ==, 1);
    /* On half the nodes at a half of the pace until the other is back, 7,200 s behind the failure: two intervals, the first
     * checkpoint behind its return at 10,000 + 100 + 2 x 3,610 s, and a start with it. */
    run.spares = 0;
    run.levels[0] = (CampaignLevel){{1}, .5};
    run.level_count = 1;
    life = campaign_live(&run, 1, 0);
    assert_near(life.total_s, 10000 + 100 + 2 * 3610 + 100 + 13 * 1810, 1e-6);
    assert_near(life.degraded_s, 2 * 1800, 1e-6);
    assert_near(life.waiting_s, 0, 0);
    run.level_count = 0; /* it waits instead */
    life = campaign_live(&run, 1, 0);
    assert_near(life.waiting_s, 7200, 1e-6);
    run.rates.stall_s = 0; /* no checkpoints: from zero */
    run.spares = -1;
    run.interval_s = 36000;
    run.segments = 1;
    life = campaign_live(&run, 1, 0);
    assert_near(life.total_s, 10000 + 100 + 36000, 1e-6);
    assert_near(life.lost_work_s, 10000, 1e-6);
}

/* Copies at peers: a failure of one node costs what is behind the last copy, one of two nodes all since the last copy in
 * storage. By hand: 12 intervals of 100 s without stalls, each fourth stored, failures at 950 s. */
static void test_peers(void)
{
    CampaignRun run = {.rates = {INFINITY, 0, 0, 50, true},
                       .interval_s = 100,
                       .segments = 12,
                       .causes = {{1, 1}},
                       .cause_count = 1,
                       .spares = -1,
                       .load_from_s = 10,
                       .load_s = 20,
                       .store_every = 4,
                       .stored_load_s = 30,
                       .script_s = {950},
                       .script_count = 1};
    const CampaignLife one = campaign_live(&run, 1, 0);
    assert_near(one.total_s, 1200 + 50 + 50, 1e-9);
    run.causes[0].nodes = 2;
    const CampaignLife two = campaign_live(&run, 1, 0);
    assert_near(two.lost_work_s, 150, 1e-9); /* back to 800 */
    assert_near(two.loading_s, 30, 1e-9);
    assert_near(two.total_s, 1200 + 150 + 60, 1e-9);
    run.stored_write_s = 120; /* the one at 800 is being written yet */
    const CampaignLife late = campaign_live(&run, 1, 0);
    assert_near(late.lost_work_s, 550, 1e-9);
}

/* Random campaigns with everything on: the parts add up, elastic ones wait less than others, and more spare nodes never make
 * the mean longer by more than its error. */
static void test_random_lives(void)
{
    GRand *random = g_rand_new_with_seed(9);
    for (int trial = 0; trial < 60; trial++) {
        CampaignRun run = llama(g_rand_double_range(random, 0, 30), 0, g_rand_double_range(random, 60, 900),
                                g_rand_double_range(random, 300, 3000), g_rand_boolean(random));
        run.load_from_s = 20;
        run.load_s = run.stored_load_s = g_rand_double_range(random, 0, run.rates.restart_s - 20);
        run.causes[0] = (CampaignShare){g_rand_double_range(random, 0, .8), 1, 0};
        run.causes[1] = (CampaignShare){.9, g_rand_int_range(random, 1, 9), 0};
        run.causes[2] = (CampaignShare){1, 0, 0};
        run.cause_count = 3;
        run.repair_s = g_rand_double_range(random, 100, 40000);
        run.spares = g_rand_int_range(random, 0, 6);
        run.store_every = trial % 2 * g_rand_int_range(random, 1, 30);
        double waited_s[2] = {0};
        for (int elastic = 0; elastic < 2; elastic++) {
            run.levels[0] = (CampaignLevel){{4}, .9};
            run.levels[1] = (CampaignLevel){{16}, .5};
            run.level_count = 2 * elastic;
            for (uint64_t replica = 0; replica < 20; replica++) {
                const CampaignLife life = campaign_live(&run, 3, replica);
                assert_near(life.checkpoint_s + life.lost_work_s + life.restart_s + life.loading_s +
                                life.waiting_s + life.degraded_s + run.interval_s * run.segments,
                            life.total_s, 1e-9 * life.total_s);
                g_assert_cmpfloat(life.checkpoint_s, >=, -1e-6);
                g_assert_cmpfloat(life.lost_work_s, >=, 0);
                g_assert_cmpfloat(life.degraded_s, >=, 0);
                waited_s[elastic] += life.waiting_s;
            }
        }
        g_assert_cmpfloat(waited_s[1], <=, waited_s[0]);
    }
    g_rand_free(random);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/campaign/formulas", test_formulas);
    g_test_add_func("/campaign/replicas-agree", test_replicas_agree);
    g_test_add_func("/campaign/means", test_means);
    g_test_add_func("/campaign/nothing-below-zero", test_nothing_below_zero);
    g_test_add_func("/campaign/llama3", test_llama3);
    g_test_add_func("/campaign/team", test_team);
    g_test_add_func("/campaign/threads", test_threads);
    g_test_add_func("/campaign/stop", test_stop);
    g_test_add_func("/campaign/spares", test_spares);
    g_test_add_func("/campaign/scripted", test_scripted);
    g_test_add_func("/campaign/peers", test_peers);
    g_test_add_func("/campaign/random-lives", test_random_lives);
    return g_test_run();
}
