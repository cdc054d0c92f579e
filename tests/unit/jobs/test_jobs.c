/* tests/unit/jobs/test_jobs.c - jobs on one cluster: a trace worked by hand, work conserved and nobody forgotten
 * under every policy over drawn traces, what is refused. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "jobs/floor.h"
#include "jobs/trace.h"

static JobsTrace read(const char *text)
{
    JobsTrace trace;
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "trace", &error);
    g_assert_no_error(error);
    jobs_trace_read(orr_json_root(doc), "trace", &trace, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return trace;
}

#define FOUR                                                                                                 \
    "{\"schema\":1,\"pools\":[{\"name\":\"a100\",\"gpus\":8}],\"jobs\":[{\"arrive_s\":0,\"seconds\":100,"    \
    "\"gpus\":6},"                                                                                           \
    "{\"arrive_s\":10,\"seconds\":50,\"gpus\":4},{\"arrive_s\":20,\"seconds\":30,\"gpus\":2},"               \
    "{\"arrive_s\":30,\"seconds\":100,\"gpus\":4,\"least_gpus\":2,\"most_gpus\":8}]}"

static void check_times(const JobsTrace *trace, JobsPolicy policy, double patience_s, const double times[][2])
{
    g_autofree JobsRun *runs = g_new(JobsRun, trace->jobs->len);
    jobs_run(trace, policy, patience_s, runs);
    for (guint i = 0; i < trace->jobs->len; i++) {
        g_assert_cmpfloat(fabs(runs[i].start_s - times[i][0]), <, 1e-6);
        g_assert_cmpfloat(fabs(runs[i].end_s - times[i][1]), <, 1e-6);
    }
}

/* 8 GPUs. First fit: a (6) runs 0 to 100; b (4) waits for it; c (2) passes at 20; b and d start at 100. In order: c waits
 * behind b, so b and c start at 100; then 2 are free, d (4) waits for c at 130 (2 + 2). Without patience nobody passes. */
static void test_by_hand(void)
{
    JobsTrace trace = read(FOUR);
    const double first_fit[][2] = {{0, 100}, {100, 150}, {20, 50}, {100, 200}};
    const double fifo[][2] = {{0, 100}, {100, 150}, {100, 130}, {130, 230}};
    check_times(&trace, JOBS_FIRST_FIT, 1e9, first_fit);
    check_times(&trace, JOBS_FASTEST, 1e9, first_fit);
    check_times(&trace, JOBS_PACKING, 1e9, first_fit);
    check_times(&trace, JOBS_FIFO, 1e9, fifo);
    check_times(&trace, JOBS_FIRST_FIT, 0, fifo);
    /* d begins on 2 GPUs at 50, when c is done, at half of the pace: 25 of 100 until 100; there b takes 4 and d has 4, at
     * its pace, until 150; then 8 at twice the pace for the last 25. */
    const double adaptive[][2] = {{0, 100}, {100, 150}, {20, 50}, {50, 162.5}};
    check_times(&trace, JOBS_ADAPTIVE, 1e9, adaptive);
    const JobsResult result = jobs_run(&trace, JOBS_FIRST_FIT, 1e9, NULL);
    g_assert_cmpfloat(fabs(result.utilisation - (600 + 200 + 60 + 400) / (8 * 200.)), <, 1e-9);
    g_assert_cmpfloat(fabs(result.wait_s.mean - (90 + 70) / 4.), <, 1e-9);
    g_assert_cmpfloat(result.wait_s.most, ==, 90);
    jobs_trace_clear(&trace);
}

/* Two jobs share a GPU; a job goes where it is fastest. */
static void test_sharing_and_speed(void)
{
    JobsTrace trace =
        read("{\"pools\":[{\"name\":\"x\",\"gpus\":1}],\"jobs\":[{\"seconds\":10,\"gpus\":1,\"share\":0.5},"
             "{\"seconds\":10,\"gpus\":1,\"share\":0.5},{\"seconds\":10,\"gpus\":1}]}");
    const double packed[][2] = {{0, 10}, {0, 10}, {10, 20}}, alone[][2] = {{0, 10}, {10, 20}, {20, 30}};
    check_times(&trace, JOBS_PACKING, 1e9, packed);
    check_times(&trace, JOBS_FIRST_FIT, 1e9, alone);
    jobs_trace_clear(&trace);
    trace = read("{\"pools\":[{\"name\":\"a\",\"gpus\":1},{\"name\":\"h\",\"gpus\":1}],\"jobs\":[{"
                 "\"seconds\":10,\"gpus\":1,"
                 "\"speed\":{\"h\":2}},{\"seconds\":10,\"gpus\":1,\"speed\":{\"h\":0}}]}");
    const double first[][2] = {{0, 10}, {10, 20}}, fastest[][2] = {{0, 5}, {0, 10}};
    check_times(&trace, JOBS_FIRST_FIT, 1e9, first);
    check_times(&trace, JOBS_FASTEST, 1e9, fastest);
    jobs_trace_clear(&trace);
}

/* 8 GPUs. a (6) runs 0 to 100; b (8) waits until then. c (2, 200 s) would delay it, d (2, 70 s) is done in time. */
static void test_backfill(void)
{
    JobsTrace trace =
        read("{\"pools\":[{\"gpus\":8}],\"jobs\":[{\"seconds\":100,\"gpus\":6},"
             "{\"arrive_s\":10,\"seconds\":50,\"gpus\":8},{\"arrive_s\":20,\"seconds\":200,\"gpus\":2},"
             "{\"arrive_s\":30,\"seconds\":70,\"gpus\":2}]}");
    const double backfill[][2] = {{0, 100}, {100, 150}, {150, 350}, {30, 100}},
                 first_fit[][2] = {{0, 100}, {220, 270}, {20, 220}, {100, 170}};
    check_times(&trace, JOBS_BACKFILL, 1e9, backfill);
    check_times(&trace, JOBS_BACKFILL, 0, backfill); /* nobody needs patience */
    check_times(&trace, JOBS_FIRST_FIT, 1e9, first_fit);
    jobs_trace_clear(&trace);
    trace = read(FOUR);
    const double as_first_fit[][2] = {{0, 100}, {100, 150}, {20, 50}, {100, 200}};
    check_times(&trace, JOBS_BACKFILL, 1e9, as_first_fit);
    jobs_trace_clear(&trace);
}

/* 8 GPUs, all of them reserved from 100 to 150. a and c are done before; b (4, 200 s) waits. Who does not know when jobs end
 * keeps all of them free from the beginning. */
static void test_reserved(void)
{
    JobsTrace trace =
        read("{\"pools\":[{\"gpus\":8}],\"jobs\":[{\"seconds\":50,\"gpus\":8,\"start_s\":100},"
             "{\"arrive_s\":10,\"seconds\":90,\"gpus\":4},{\"arrive_s\":20,\"seconds\":200,\"gpus\":4},"
             "{\"arrive_s\":20,\"seconds\":80,\"gpus\":2}]}");
    const double known[][2] = {{100, 150}, {10, 100}, {150, 350}, {20, 100}},
                 fifo[][2] = {{100, 150}, {10, 100}, {150, 350}, {150, 230}},
                 unknown[][2] = {{100, 150}, {150, 240}, {150, 350}, {240, 320}};
    check_times(&trace, JOBS_FIRST_FIT, 1e9, known);
    check_times(&trace, JOBS_BACKFILL, 1e9, known);
    check_times(&trace, JOBS_PACKING, 1e9, known);
    check_times(&trace, JOBS_FIFO, 1e9, fifo);
    check_times(&trace, JOBS_ADAPTIVE, 1e9, unknown);
    g_array_index(trace.jobs, Job, 0).start_s = 0; /* without it: now, and the others behind it */
    const double now[][2] = {{0, 50}, {50, 140}, {50, 250}, {140, 220}};
    check_times(&trace, JOBS_FIRST_FIT, 1e9, now);
    jobs_trace_clear(&trace);
    /* Reservations made in time are kept by every policy, in drawn traces; one behind all others disturbs nobody. */
    const JobsPool pools[] = {{(char *)"a", 64, 8}, {(char *)"b", 64, 8}};
    const JobsPaces model = {"m", {{1, 2, 4, 8, 16, 32, 64}, {2, 4, 8, 16, 32, 64, 128}}};
    for (int seed = 1; seed <= 10; seed++) {
        jobs_trace_draw(pools, 2, &model, 1, 200, 0.9, (uint64_t)seed, &trace);
        g_autofree JobsRun *plain = g_new(JobsRun, 201), *runs = g_new(JobsRun, 201);
        Job reserved = g_array_index(trace.jobs, Job, 0);
        const double last_s = g_array_index(trace.jobs, Job, 199).arrive_s;
        reserved.name = g_strdup("reserved");
        reserved.arrive_s = 0;
        reserved.start_s = last_s / 2;
        reserved.gpus = reserved.least = reserved.most = 32;
        g_array_prepend_val(trace.jobs, reserved);
        for (int policy = 0; policy < JOBS_POLICIES; policy++) {
            if (policy == JOBS_FGD) /* its nodes may be broken up */
                continue;
            jobs_run(&trace, (JobsPolicy)policy, 6 * 3600, runs);
            g_assert_cmpfloat(fabs(runs[0].start_s - reserved.start_s), <, 1e-6 * reserved.start_s);
        }
        g_array_index(trace.jobs, Job, 0).start_s = 1e9;
        jobs_run(&trace, JOBS_BACKFILL, 6 * 3600, runs);
        g_array_remove_index(trace.jobs, 0);
        jobs_run(&trace, JOBS_BACKFILL, 6 * 3600, plain);
        for (int i = 0; i < 200; i++)
            g_assert_cmpfloat(runs[i + 1].end_s, ==, plain[i].end_s);
        jobs_trace_clear(&trace);
    }
}

/* Policies named after a system, each on what tells it from its neighbour; all by hand. */
static void test_systems(void)
{
    /* One GPU, three jobs at once: the shortest first. */
    JobsTrace trace = read("{\"pools\":[{\"gpus\":1}],\"jobs\":[{\"seconds\":10,\"gpus\":1},"
                           "{\"seconds\":30,\"gpus\":1},{\"seconds\":20,\"gpus\":1}]}");
    const double shortest[][2] = {{0, 10}, {30, 60}, {10, 30}};
    check_times(&trace, JOBS_LUCID, 1e9, shortest);
    jobs_trace_clear(&trace);
    /* Two jobs of two rounds on one GPU take turns; in the third round both have had half, and the first to come goes on. */
    trace = read("{\"pools\":[{\"gpus\":1}],\"jobs\":[{\"seconds\":720,\"gpus\":1},"
                 "{\"seconds\":720,\"gpus\":1}]}");
    const double turns[][2] = {{0, 1080}, {360, 1440}};
    check_times(&trace, JOBS_GAVEL, 1e9, turns);
    g_autofree JobsRun *runs = g_new(JobsRun, 2);
    jobs_run(&trace, JOBS_GAVEL, 1e9, runs);
    g_assert_cmpfloat(fabs(runs[0].waited_s - 360), <, 1e-6);
    g_assert_cmpfloat(fabs(runs[1].waited_s - 720), <, 1e-6);
    jobs_trace_clear(&trace);
    /* Five GPUs: the largest sum of paces doubles the first job twice (4 and 1); the harmonic mean would rather have 2 and 2.
     * First 25 s at 4 and 1, then 75 left at 4: 43.75. */
    trace = read("{\"pools\":[{\"gpus\":5}],\"jobs\":[{\"seconds\":100,\"gpus\":1,\"most_gpus\":4},"
                 "{\"seconds\":100,\"gpus\":1,\"most_gpus\":4}]}");
    const double sum[][2] = {{0, 25}, {0, 43.75}}, harmonic[][2] = {{0, 50}, {0, 50}};
    check_times(&trace, JOBS_ADAPTIVE, 1e9, sum);
    check_times(&trace, JOBS_POLLUX, 1e9, harmonic);
    check_times(&trace, JOBS_SIA, 1e9, harmonic);
    jobs_trace_clear(&trace);
    /* Two kinds: the second job gains four times on h and takes it from the first, which comes back at 5 (5 of its 10 are
     * done by 2.5, 7.5 by 5, the rest by 6.25): sia alone moves jobs that run. */
    trace = read("{\"pools\":[{\"name\":\"a\",\"gpus\":1},{\"name\":\"h\",\"gpus\":1}],\"jobs\":["
                 "{\"seconds\":10,\"gpus\":1,\"speed\":{\"h\":2}},"
                 "{\"arrive_s\":2.5,\"seconds\":10,\"gpus\":1,\"speed\":{\"h\":4}}]}");
    const double moved[][2] = {{0, 6.25}, {2.5, 5}}, fastest[][2] = {{0, 5}, {2.5, 12.5}};
    check_times(&trace, JOBS_SIA, 1e9, moved);
    check_times(&trace, JOBS_FASTEST, 1e9, fastest);
    jobs_trace_clear(&trace);
}

/* Two users take turns on one GPU, whatever number of jobs they have; gavel's shares are the jobs'. */
static void test_tickets(void)
{
    JobsTrace trace = read("{\"pools\":[{\"gpus\":1}],\"jobs\":[{\"seconds\":720,\"gpus\":1,\"user\":\"u\"},"
                           "{\"seconds\":720,\"gpus\":1,\"user\":\"u\"},{\"seconds\":720,\"gpus\":1}]}");
    const double fair[][2] = {{0, 1080}, {1440, 2160}, {360, 1440}};
    check_times(&trace, JOBS_GANDIVA_FAIR, 1e9, fair);
    jobs_trace_clear(&trace);
    /* The first gains 1.2 on h and the second 2: h costs 1.2, so that the first is as well off on a and the second buys. */
    trace = read(
        "{\"pools\":[{\"name\":\"a\",\"gpus\":1},{\"name\":\"h\",\"gpus\":1}],\"jobs\":[{\"seconds\":100,"
        "\"gpus\":1,\"speed\":{\"h\":1.2}},{\"seconds\":100,\"gpus\":1,\"speed\":{\"h\":2}}]}");
    const double traded[][2] = {{0, 100}, {0, 50}}, grabbed[][2] = {{0, 100 / 1.2}, {0, 100}};
    check_times(&trace, JOBS_GANDIVA_FAIR, 1e9, traded);
    check_times(&trace, JOBS_FASTEST, 1e9, grabbed);
    jobs_trace_clear(&trace);
    /* h at twice the price is charged twice: the buyer's 360 s of h are 720 s of a, which the third's turn follows. Its round
     * on a ends at 720, when it was charged 360 and the second 720 from before; both run on, for nobody waits. */
    trace = read(
        "{\"pools\":[{\"name\":\"a\",\"gpus\":1},{\"name\":\"h\",\"gpus\":1}],\"jobs\":["
        "{\"seconds\":1440,\"gpus\":1,\"speed\":{\"h\":4}},{\"seconds\":720,\"gpus\":1,\"speed\":{\"h\":2}},"
        "{\"seconds\":360,\"gpus\":1,\"speed\":{\"h\":1}}]}");
    g_autofree JobsRun *runs = g_new(JobsRun, 3);
    jobs_run(&trace, JOBS_GANDIVA_FAIR, 1e9, runs);
    g_assert_cmpint(runs[0].pool, ==, 1);
    g_assert_cmpfloat_with_epsilon(runs[0].end_s, 360, 1e-6);
    g_assert_cmpfloat_with_epsilon(runs[2].start_s, 360, 1e-6);
    jobs_trace_clear(&trace);
}

/* Nodes of two GPUs. Halves share a GPU and leave whole nodes to the job of two; where GPUs are taken as they come, it would
 * wait. Fragments by hand: kinds 0.5 (three jobs of four) and 2 (one of four); a half taken leaves 1.5 on its node, of which
 * the job of two can use none: 1.5 / 4. */
static void test_fragments(void)
{
    JobsTrace trace =
        read("{\"pools\":[{\"gpus\":4,\"node_gpus\":2}],\"jobs\":[{\"seconds\":10,\"gpus\":1,\"share\":0.5},"
             "{\"seconds\":10,\"gpus\":1,\"share\":0.5},{\"seconds\":10,\"gpus\":2},"
             "{\"seconds\":10,\"gpus\":1,\"share\":0.5}]}");
    const double placed[][2] = {{0, 10}, {0, 10}, {0, 10}, {0, 10}};
    check_times(&trace, JOBS_FGD, 1e9, placed);
    JobsFloor *floor = jobs_floor_new(&trace);
    g_assert_cmpfloat_with_epsilon(jobs_floor_fragments(floor), 0, 1e-12);
    g_assert_cmpint(jobs_floor_take(floor, 0), ==, 0);
    g_assert_cmpfloat_with_epsilon(jobs_floor_fragments(floor), 1.5 / 4, 1e-12);
    g_assert_cmpint(jobs_floor_take(floor, 1), ==, 0); /* on the same GPU: 1 / 4 is less than 1.5 / 4 more */
    g_assert_cmpfloat_with_epsilon(jobs_floor_fragments(floor), 1. / 4, 1e-12);
    g_assert_cmpint(jobs_floor_take(floor, 2), ==, 0);
    jobs_floor_leave(floor, 2);
    jobs_floor_leave(floor, 0);
    jobs_floor_leave(floor, 1);
    g_assert_cmpfloat_with_epsilon(jobs_floor_fragments(floor), 0, 1e-12);
    jobs_floor_free(floor);
    jobs_trace_clear(&trace);
    /* Three quarters on each of two GPUs leave two quarters, which packing adds up to a half, and no GPU has. */
    trace = read("{\"pools\":[{\"gpus\":2}],\"jobs\":[{\"seconds\":10,\"gpus\":1,\"share\":0.75},"
                 "{\"seconds\":10,\"gpus\":1,\"share\":0.75},{\"seconds\":10,\"gpus\":1,\"share\":0.5}]}");
    const double packed[][2] = {{0, 10}, {0, 10}, {0, 10}}, apart[][2] = {{0, 10}, {0, 10}, {10, 20}};
    check_times(&trace, JOBS_PACKING, 1e9, packed);
    check_times(&trace, JOBS_FGD, 1e9, apart);
    jobs_trace_clear(&trace);
    /* Five GPUs are a whole node of two, another, and one of a third; a node and a half are not there beside it. */
    trace = read("{\"pools\":[{\"gpus\":6,\"node_gpus\":2}],\"jobs\":[{\"seconds\":10,\"gpus\":5},"
                 "{\"seconds\":10,\"gpus\":1},{\"seconds\":10,\"gpus\":3}]}");
    const double nodes[][2] = {{0, 10}, {0, 10}, {10, 20}};
    check_times(&trace, JOBS_FGD, 1e9, nodes);
    jobs_trace_clear(&trace);
    /* A cluster that is too large to look at GPU by GPU for each job. */
    trace =
        read("{\"pools\":[{\"gpus\":10000000,\"node_gpus\":1}],\"jobs\":[{\"seconds\":10,\"gpus\":9000000},"
             "{\"seconds\":10,\"gpus\":900},{\"seconds\":10,\"gpus\":1,\"share\":0.1}]}");
    const gint64 begun_us = g_get_monotonic_time();
    const double large[][2] = {{0, 10}, {0, 10}, {0, 10}};
    check_times(&trace, JOBS_FGD, 1e9, large);
    g_assert_cmpint(g_get_monotonic_time() - begun_us, <, 30 * G_USEC_PER_SEC);
    jobs_trace_clear(&trace);
}

/* What moments hold over time is what jobs hold, and their waiting is the jobs' waiting. */
static void check_moments(const JobsTrace *trace, JobsPolicy policy, const JobsResult *result)
{
    g_autoptr(GArray) moments = g_array_new(FALSE, FALSE, sizeof(JobsMoment));
    const JobsResult watched = jobs_watch(trace, policy, 3600, moments);
    double held_gpu_s = 0, waited_s = 0;
    for (guint i = 0; i + 1 < moments->len; i++) {
        const JobsMoment *moment = &g_array_index(moments, JobsMoment, i);
        held_gpu_s += moment->held_gpus * (moment[1].at_s - moment->at_s);
        waited_s += moment->waiting * (moment[1].at_s - moment->at_s);
    }
    g_assert_cmpfloat(watched.makespan_s, ==, result->makespan_s);
    g_assert_cmpfloat(fabs(held_gpu_s / result->held_gpu_s - 1), <, 1e-6);
    g_assert_cmpfloat(fabs(waited_s - result->wait_s.mean * trace->jobs->len), <, 1e-6 * (1 + waited_s));
    g_assert_cmpint(g_array_index(moments, JobsMoment, moments->len - 1).waiting, ==, 0);
}

/* Under every policy: each job ends, at or after its arrival and no sooner than its fastest; all work is done; held GPU-hours
 * fit into the cluster; the same seed gives the same bytes. 10,000 jobs are run. */
static void test_drawn(void)
{
    const JobsPool pools[] = {{(char *)"a", 64, 8}, {(char *)"h", 32, 8}};
    JobsPaces models[2] = {{.name = "one"}, {.name = "two"}};
    for (int m = 0; m < 2; m++)
        for (int i = 0; i < JOBS_DOUBLINGS; i++) {
            models[m].paces[0][i] = pow(2, i * (.95 - .2 * m));
            models[m].paces[1][i] = models[m].paces[0][i] * (2 + m);
        }
    for (uint64_t seed = 1; seed <= 3; seed++) {
        JobsTrace trace, again;
        jobs_trace_draw(pools, 2, models, 2, seed == 1 ? 10000 : 500, seed == 3 ? 2 : .9, seed, &trace);
        jobs_trace_draw(pools, 2, models, 2, seed == 1 ? 10000 : 500, seed == 3 ? 2 : .9, seed, &again);
        for (int policy = 0; policy < JOBS_POLICIES; policy++) {
            g_autofree JobsRun *runs = g_new(JobsRun, trace.jobs->len);
            const gint64 begun_us = g_get_monotonic_time();
            const JobsResult result = jobs_run(&trace, (JobsPolicy)policy, 3600, runs);
            g_test_message("%s: %u jobs in %.2f s", jobs_policy_name((JobsPolicy)policy), trace.jobs->len,
                           (double)(g_get_monotonic_time() - begun_us) * 1e-6);
            const JobsResult second = jobs_run(&again, (JobsPolicy)policy, 3600, NULL);
            g_assert_cmpfloat(result.completion_s.mean, ==, second.completion_s.mean);
            check_moments(&trace, (JobsPolicy)policy, &result);
            g_assert_cmpfloat(fabs(result.done_gpu_s / result.work_gpu_s - 1), <, 1e-6);
            g_assert_cmpfloat(result.utilisation, >, .1);
            g_assert_cmpfloat(result.utilisation, <=, 1 + 1e-9);
            g_assert_cmpfloat(result.fairness, <=, 1 + 1e-9);
            for (guint i = 0; i < trace.jobs->len; i++) {
                const Job *job = &g_array_index(trace.jobs, Job, i);
                g_assert_cmpfloat(runs[i].start_s, >=, job->arrive_s);
                g_assert_cmpfloat(runs[i].end_s, >, runs[i].start_s);
                g_assert_cmpfloat(fabs(runs[i].done_s / job->work_s - 1), <, 1e-6);
            }
        }
        jobs_trace_clear(&trace);
        jobs_trace_clear(&again);
    }
}

static void test_refused(void)
{
    static const char *const cases[][2] = {
        {"[]", "not an object"},
        {"{}", "pools: missing"},
        {"{\"pools\":[{\"gpus\":8}]}", "jobs: is not a list"},
        {"{\"pools\":[{\"gpus\":0}],\"jobs\":[{}]}", "pools[0].gpus"},
        {"{\"pools\":[{\"gpus\":8}],\"jobs\":[{\"gpus\":2}]}", "jobs[0].seconds: missing"},
        {"{\"pools\":[{\"gpus\":8}],\"jobs\":[{\"seconds\":-1,\"gpus\":2}]}", "jobs[0].seconds"},
        {"{\"pools\":[{\"gpus\":8}],\"jobs\":[{\"seconds\":1,\"gpus\":9}]}", "fit into no pool"},
        {"{\"pools\":[{\"gpus\":8}],\"jobs\":[{\"seconds\":1,\"gpus\":2.5}]}", "not a whole number"},
        {"{\"pools\":[{\"gpus\":8}],\"jobs\":[{\"seconds\":1,\"gpus\":2,\"size\":1}]}",
         "unknown key \"size\""},
        {"{\"pools\":[{\"gpus\":8}],\"jobs\":[{\"seconds\":1,\"gpus\":2,\"least_gpus\":4}]}",
         "must not fall"},
        {"{\"pools\":[{\"gpus\":8}],\"jobs\":[{\"seconds\":1,\"gpus\":2,\"speed\":{\"b\":1}}]}",
         "no pool is called"},
        {"{\"pools\":[{\"gpus\":8}],\"jobs\":[{\"seconds\":1,\"gpus\":\"x\"}]}", "\"x\" is not a number"},
        {"{\"pools\":[{\"gpus\":8}],\"jobs\":[{\"seconds\":1,\"gpus\":1,\"arrive_s\":5,\"start_s\":2}]}",
         "give a later time"},
        {"{\"schema\":2,\"pools\":[{\"gpus\":8}],\"jobs\":[{\"seconds\":1,\"gpus\":1}]}", "schema"},
        {"{\"pools\":[{\"name\":\"a\",\"gpus\":8},{\"name\":\"a\",\"gpus\":8}],\"jobs\":[{}]}",
         "pools[0] as well"},
        {"{\"pools\":[{\"name\":\"a\",\"gpus\":8}],\"jobs\":[{\"seconds\":1,\"gpus\":1,\"speed\":{\"a\":1e-"
         "300}}]}",
         "never end"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        JobsTrace trace;
        GError *error = NULL;
        OrrJsonDoc *doc = orr_json_parse(cases[i][0], strlen(cases[i][0]), "trace", NULL);
        g_assert_false(jobs_trace_read(orr_json_root(doc), "trace.json", &trace, &error));
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
        g_assert_nonnull(strstr(error->message, cases[i][1]));
        g_clear_error(&error);
        orr_json_free(doc);
    }
}

/* GPU-hours of GPU-seconds; the text names both pools once. */
static void test_written(void)
{
    JobsTrace trace = read("{\"pools\":[{\"name\":\"a\",\"gpus\":3},{\"name\":\"h\",\"gpus\":5}],\"jobs\":[{"
                           "\"seconds\":10,\"gpus\":1}]}");
    const JobsResult result = {.work_gpu_s = 7200, .done_gpu_s = 3600, .held_gpu_s = 10800};
    g_autoptr(GString) out = g_string_new(NULL);
    jobs_write_text(&trace, &result, 1, 80, out);
    g_assert_nonnull(strstr(out->str, "1 jobs on 3 a and 5 h: 2 GPU-hours of work\n"));
    g_string_truncate(out, 0);
    jobs_write_json(&trace, &result, 1, out);
    OrrJsonDoc *doc = orr_json_parse(out->str, out->len, "jobs", NULL);
    const OrrJson *row = orr_json_first(orr_json_member(orr_json_root(doc), "policies"));
    g_assert_cmpfloat(orr_json_number(orr_json_member(row, "work_gpu_hours")), ==, 2);
    g_assert_cmpfloat(orr_json_number(orr_json_member(row, "done_gpu_hours")), ==, 1);
    g_assert_cmpfloat(orr_json_number(orr_json_member(row, "held_gpu_hours")), ==, 3);
    orr_json_free(doc);
    jobs_trace_clear(&trace);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/jobs/by-hand", test_by_hand);
    g_test_add_func("/jobs/systems", test_systems);
    g_test_add_func("/jobs/backfill", test_backfill);
    g_test_add_func("/jobs/reserved", test_reserved);
    g_test_add_func("/jobs/tickets", test_tickets);
    g_test_add_func("/jobs/fragments", test_fragments);
    g_test_add_func("/jobs/sharing-and-speed", test_sharing_and_speed);
    g_test_add_func("/jobs/drawn", test_drawn);
    g_test_add_func("/jobs/written", test_written);
    g_test_add_func("/jobs/refused", test_refused);
    return g_test_run();
}
