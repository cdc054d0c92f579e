/* tests/unit/step/test_jitter.c - slow GPUs and links: every schedule against a critical path walked here, folded
 * replicas against every rank on its own, nothing slow against the plain step, what is refused. */
#include <math.h>
#include <string.h>

#include "report/jitter.h"
#include "step/paced.h"
#include "tests/unit/sim_fixture.h"

/* --- the critical path, walked without the engine --- */

typedef struct Walk {
    const SimPlan *plan;
    const SimOrder *orders;
    const int32_t *speed; /* [ranks] */
    int64_t *next;        /* [ranks] op that comes next */
    int64_t *free_ps;     /* [ranks] compute is idle from then on */
    int64_t *sends_ps;    /* [ranks][2] a way out is idle from then on */
    int64_t
        *arrived_ps; /* [2][stages][microbatches] at the next stage; -1: not yet. 0: forwards, 1: gradients */
} Walk;

static int64_t *arrival(const Walk *w, int direction, int stage, int microbatch)
{
    const int stages = w->plan->shape.ranks * w->plan->shape.chunks;
    return &w->arrived_ps[((int64_t)direction * stages + stage) * w->plan->shape.microbatches + microbatch];
}

static int copies(const Walk *w)
{
    return w->plan->schedule->placement == SIM_PLACE_BIDIRECTIONAL ? 2 : 1;
}

/* When what a pass needs is there; -1: not yet. The neighbour's result, or of a last stage its own forward. */
static int64_t ready_ps(const Walk *w, int direction, int stage, int microbatch)
{
    const int model = w->plan->shape.ranks * w->plan->shape.chunks / copies(w), within = stage % model;
    if (direction == 0)
        return within == 0 ? 0 : *arrival(w, 0, stage - 1, microbatch);
    return within == model - 1 ? *arrival(w, 0, stage, microbatch) : *arrival(w, 1, stage + 1, microbatch);
}

static void finish(Walk *w, int rank, int direction, int stage, int microbatch, int64_t end_ps)
{
    const SimPlan *plan = w->plan;
    const int model = plan->shape.ranks * plan->shape.chunks / copies(w), within = stage % model;
    const int other_stage = stage + (direction == 0 ? 1 : -1);
    int other = rank, chunk = 0;
    if (direction == 0 ? within < model - 1 : within > 0)
        sim_place_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks, other_stage, &other,
                     &chunk);
    int64_t *way_ps = &w->sends_ps[2 * rank + direction];
    if (other != rank && sim_work_duration_ps(&plan->stages[stage].send_next) > 0) {
        *way_ps = MAX(*way_ps, end_ps) + sim_work_duration_ps(&plan->stages[stage].send_next);
        end_ps = *way_ps;
    }
    *arrival(w, direction, stage, microbatch) = end_ps;
}

static int64_t scaled(const Walk *w, int rank, int64_t ps)
{
    return (int64_t)ceil((double)ps * SIM_FULL_RATE / w->speed[rank]);
}

/* One op of a rank, if what it needs is there. */
static bool advance(Walk *w, int rank)
{
    const SimScheduleShape *shape = &w->plan->shape;
    const SimPlacement placement = w->plan->schedule->placement;
    if (w->next[rank] == w->orders[rank].count)
        return false;
    const SimPassOp *op = &w->orders[rank].ops[w->next[rank]];
    const int stage = sim_stage_of(placement, shape->ranks, shape->chunks, rank, op->chunk);
    const bool forward = op->pass == SIM_PASS_FORWARD || op->pass == SIM_PASS_FORWARD_BACKWARD;
    const SimSegment *segment = &w->plan->stages[stage].segments[0];
    const int64_t forward_ps = sim_work_duration_ps(&segment->forward),
                  input_ps = sim_work_duration_ps(&segment->backward_input),
                  weight_ps = sim_work_duration_ps(&segment->backward_weight);
    int64_t start_ps = w->free_ps[rank], ready = 0;
    if (op->pass != SIM_PASS_BACKWARD_WEIGHT)
        ready = ready_ps(w, forward ? 0 : 1, stage, op->microbatch);
    int64_t back = 0;
    int stage2 = 0;
    if (op->pass == SIM_PASS_FORWARD_BACKWARD) {
        stage2 = sim_stage_of(placement, shape->ranks, shape->chunks, rank, op->chunk2);
        back = ready_ps(w, 1, stage2, op->microbatch2);
    }
    if (ready < 0 || back < 0)
        return false;
    start_ps = MAX(start_ps, MAX(ready, back));
    const int64_t lasts = op->pass == SIM_PASS_FORWARD           ? forward_ps
                          : op->pass == SIM_PASS_BACKWARD        ? input_ps + weight_ps
                          : op->pass == SIM_PASS_BACKWARD_INPUT  ? input_ps
                          : op->pass == SIM_PASS_BACKWARD_WEIGHT ? weight_ps
                                                                 : forward_ps + input_ps + weight_ps;
    const int64_t end_ps = start_ps + scaled(w, rank, lasts);
    w->free_ps[rank] = end_ps;
    if (forward)
        finish(w, rank, 0, stage, op->microbatch, end_ps);
    if (op->pass == SIM_PASS_FORWARD_BACKWARD)
        finish(w, rank, 1, stage2, op->microbatch2, end_ps);
    else if (!forward && op->pass != SIM_PASS_BACKWARD_WEIGHT)
        finish(w, rank, 1, stage, op->microbatch, end_ps);
    w->next[rank]++;
    return true;
}

static int64_t walk(const SimPlan *plan, const int32_t *speed, OrrArena *arena)
{
    const int ranks = plan->shape.ranks, stages = ranks * plan->shape.chunks;
    Walk w = {.plan = plan, .orders = sim_plan_orders(plan, arena), .speed = speed};
    w.next = ORR_ARENA_NEW(arena, int64_t, ranks);
    w.free_ps = ORR_ARENA_NEW(arena, int64_t, ranks);
    w.sends_ps = ORR_ARENA_NEW(arena, int64_t, 2 * ranks);
    memset(w.next, 0, sizeof(int64_t) * (size_t)ranks);
    memset(w.free_ps, 0, sizeof(int64_t) * (size_t)ranks);
    memset(w.sends_ps, 0, sizeof(int64_t) * 2 * (size_t)ranks);
    const int64_t points = 2 * (int64_t)stages * plan->shape.microbatches;
    w.arrived_ps = ORR_ARENA_NEW(arena, int64_t, points);
    memset(w.arrived_ps, 0xff, sizeof(int64_t) * (size_t)points);
    int64_t step_ps = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < ranks; r++)
            while (advance(&w, r))
                moved = true;
    }
    for (int r = 0; r < ranks; r++) {
        g_assert_cmpint(w.next[r], ==, w.orders[r].count);
        step_ps = MAX(step_ps, MAX(w.free_ps[r], MAX(w.sends_ps[2 * r], w.sends_ps[2 * r + 1])));
    }
    return step_ps;
}

/* Each schedule, one slow rank after the other in one of three replicas: the step is the critical path's, and the bound that
 * a slow rank does all its work is kept. */
static void test_every_schedule(void)
{
    GRand *random = g_rand_new_with_seed(5);
    int tried = 0, slowed = 0;
    for (int s = 0; sim_schedule_at(s) != NULL; s++)
        for (int trial = 0; trial < 6; trial++) {
            const SimSchedule *schedule = sim_schedule_at(s);
            Pipeline pipeline = {.schedule = schedule->name,
                                 .ranks = 4,
                                 .chunks = schedule->fixed_chunks > 0 ? schedule->fixed_chunks : 2,
                                 .microbatches = 8 + 4 * (trial % 3),
                                 .forward_ps = fixture_random(random, 500, 1500) * 1000,
                                 .input_ps = fixture_random(random, 500, 1500) * 1000,
                                 .weight_ps = fixture_random(random, 300, 1500) * 1000,
                                 .hop_ps = trial % 2 == 0 ? 0 : fixture_random(random, 1, 200) * 1000};
            pipeline.pair_ps = pipeline.forward_ps + pipeline.input_ps + pipeline.weight_ps;
            OrrArena *arena = orr_arena_new();
            GError *error = NULL;
            SimPlan plan = fixture_plan(arena, &pipeline);
            plan.data = 3;
            if (schedule->check != NULL && !schedule->check(&plan.shape, &error)) {
                g_clear_error(&error);
                orr_arena_free(arena);
                continue;
            }
            for (int slow = -1; slow < pipeline.ranks; slow++) {
                SimPace columns[12];
                int32_t speed[4];
                SimPacedStep step;
                for (int c = 0; c < 12; c++)
                    columns[c] = SIM_FULL_PACE;
                for (int r = 0; r < 4; r++)
                    speed[r] = r == slow ? (int32_t)(.9 * SIM_FULL_RATE) : SIM_FULL_RATE;
                if (slow >= 0)
                    columns[slow * 3 + 1].speed = speed[slow];
                sim_run_columns(&plan, NULL, columns, NULL, NULL, arena, &step, &error);
                g_assert_no_error(error);
                g_assert_cmpint(step.kinds, ==, slow < 0 ? 1 : 2);
                const int64_t expected = walk(&plan, speed, arena);
                if (llabs(step.step_ps - expected) > 2000) /* rounded up an op */
                    g_error("%s, rank %d slow: %" G_GINT64_FORMAT " ps, the path takes %" G_GINT64_FORMAT,
                            schedule->name, slow, step.step_ps, expected);
                slowed += slow >= 0 &&
                          step.step_ps > walk(&plan, (int32_t[]){1 << 20, 1 << 20, 1 << 20, 1 << 20}, arena);
                tried++;
            }
            orr_arena_free(arena);
        }
    g_assert_cmpint(tried, >, 200);
    g_assert_cmpint(slowed, >, tried / 2);
    g_rand_free(random);
}

/* --- scenarios --- */

static Report run_report(const char *text, const char *jitter, Spec *spec, OrrArena *arena)
{
    static const ReportOptions ideal = {.ideal = true};
    GError *error = NULL;
    Report report;
    const char *sets[] = {NULL, NULL};
    g_autofree char *set = jitter != NULL ? g_strdup_printf("jitter=%s", jitter) : NULL;
    sets[0] = set;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "jitter", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "jitter", sets, false, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    report_run(spec, NULL, &ideal, arena, &report, &error);
    g_assert_no_error(error);
    return report;
}

static const char *const scenarios[] = {"{\"model\":\"gpt3-1.3b\",\"cluster\":{\"preset\":\"dgx-a100-80gb\","
                                        "\"nodes\":4},\"training\":{\"sequence_length\":"
                                        "2048,\"global_batch\":64,\"micro_batch\":1},\"parallel\":{"
                                        "\"tensor\":2,\"pipeline\":4,\"data\":4,\"zero\":1}}",
                                        "{\"model\":\"gpt3-1.3b\",\"cluster\":{\"preset\":\"dgx-a100-80gb\","
                                        "\"nodes\":2},\"training\":{\"sequence_length\":"
                                        "2048,\"global_batch\":64,\"micro_batch\":2},\"parallel\":{"
                                        "\"tensor\":2,\"context\":2,\"data\":4,\"zero\":3}}",
                                        "{\"model\":\"gpt3-1.3b\",\"cluster\":{\"preset\":\"dgx-a100-80gb\","
                                        "\"nodes\":4},\"training\":{\"sequence_length\":"
                                        "2048,\"global_batch\":64,\"micro_batch\":1},\"parallel\":{"
                                        "\"tensor\":2,\"pipeline\":2,\"virtual_stages\":3,"
                                        "\"schedule\":\"interleaved\",\"data\":8,\"zero\":2},\"execution\":{"
                                        "\"overlap\":[\"grad_reduce\",\"param_gather\"]}}"};

/* Folded by their paces or every rank on its own: the same picosecond, for slow GPUs, ports and NICs. */
static void test_folded_is_unfolded(void)
{
    GRand *random = g_rand_new_with_seed(3);
    for (gsize s = 0; s < G_N_ELEMENTS(scenarios); s++)
        for (int trial = 0; trial < 6; trial++) {
            g_autofree Spec *spec = g_new0(Spec, 1);
            OrrArena *arena = orr_arena_new();
            GError *error = NULL;
            const Report report = run_report(scenarios[s], NULL, spec, arena);
            const SimPlan *plan = &report.plan;
            const int ranks = plan->shape.ranks * plan->tensor * plan->context * plan->data;
            SimPace *paces = ORR_ARENA_NEW(arena, SimPace, ranks);
            SimPace *columns = ORR_ARENA_NEW(arena, SimPace, plan->shape.ranks * plan->data);
            SimPacedStep folded, all;
            for (int r = 0; r < ranks; r++)
                paces[r] = SIM_FULL_PACE;
            for (int i = 0; i < trial; i++) {
                SimPace *pace = &paces[g_rand_int_range(random, 0, ranks)];
                const int part = trial < 3 ? 0 : g_rand_int_range(random, 0, 3);
                if (part == 0)
                    pace->speed = (int32_t)(SIM_FULL_RATE * g_rand_double_range(random, .5, 1));
                else if (part == 1)
                    pace->scale_up = g_rand_int_range(random, 100, SIM_WHOLE_RESOURCE);
                else
                    pace->scale_out = g_rand_int_range(random, 100, SIM_WHOLE_RESOURCE);
            }
            sim_paces_of_columns(plan, paces, columns);
            sim_run_columns(plan, NULL, columns, NULL, NULL, arena, &folded, &error);
            g_assert_no_error(error);
            sim_run_paces(plan, paces, NULL, arena, &all, &error);
            g_assert_no_error(error);
            if (trial == 0)
                g_assert_cmpint(folded.step_ps, ==, report.step_ps);
            if (folded.step_ps != all.step_ps)
                g_error("scenario %d, %d slow parts: folded %" G_GINT64_FORMAT ", unfolded %" G_GINT64_FORMAT,
                        (int)s, trial, folded.step_ps, all.step_ps);
            g_assert_cmpint(folded.ranks, <=, all.ranks);
            orr_arena_free(arena);
        }
    g_rand_free(random);
}

static ReportJitter jitter_of(const char *jitter)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    Report report = run_report(scenarios[0], jitter, spec, arena);
    const int64_t step_ps = report.step_ps;
    report_jitter_fill(&report, arena, &error);
    g_assert_no_error(error);
    g_assert_cmpint(report.step_ps, ==, step_ps); /* the step of the report is of GPUs that are alike */
    g_assert_cmpint(report.jitter.p50_ps, <=, report.jitter.p99_ps);
    g_assert_cmpint(report.jitter.p99_ps, <=, report.jitter.worst_ps);
    g_assert_cmpint(report.jitter.p50_ps, >=, step_ps);
    orr_arena_free(arena);
    return report.jitter;
}

static void test_report(void)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    const Report plain = run_report(scenarios[0], NULL, spec, arena);
    const ReportJitter
        none = jitter_of("{}"),
        zero = jitter_of("{\"rank_spread_frac\":0,\"step_noise_frac\":0,\"slow\":[{\"rank\":3,\"frac\":0}]}"),
        one = jitter_of("{\"slow\":[{\"rank\":13,\"frac\":0.1}]}"),
        noisy = jitter_of("{\"step_noise_frac\":0.02,\"steps\":50}"),
        again = jitter_of("{\"step_noise_frac\":0.02,\"steps\":50}"),
        other = jitter_of("{\"step_noise_frac\":0.02,\"steps\":50,\"seed\":2}"),
        hot = jitter_of("{\"thermal_swing_frac\":0.05,\"steps\":50}");
    g_assert_cmpint(none.p99_ps, ==, plain.step_ps);
    g_assert_cmpint(none.p50_ps, ==, plain.step_ps);
    g_assert_cmpint(zero.p99_ps, ==, plain.step_ps);
    g_assert_cmpint(one.p50_ps, ==, one.p99_ps);
    g_assert_cmpint(one.slowest_gpu, ==, 13);
    g_assert_cmpint(one.slowest_node, ==, 1);
    g_assert_cmpfloat(fabs(one.slowest_frac - .1), <, 1e-5);
    /* A healthy node brings the plain step back; replicas that do not wait lose only the slow one's part. */
    g_assert_cmpfloat(fabs(one.evict_gain_frac - ((double)one.p50_ps / (double)plain.step_ps - 1)), <, 1e-9);
    g_assert_cmpfloat(one.async_gain_frac, <, one.evict_gain_frac);
    g_assert_cmpfloat(one.async_gain_frac, >, .7 * one.evict_gain_frac);
    g_assert_cmpfloat(fabs((1 + one.evict_gain_frac) * .75 - 1 - one.backup_gain_frac), <,
                      1e-9); /* of 4 replicas */
    g_assert_cmpint(noisy.p99_ps, >, noisy.p50_ps);
    g_assert_cmpint(noisy.p50_ps, ==, again.p50_ps);
    g_assert_cmpint(noisy.p50_ps, !=, other.p50_ps);
    g_assert_cmpint(hot.worst_ps, <=, llround((double)plain.step_ps / .95) + 1000);
    g_assert_cmpint(hot.worst_ps, >, plain.step_ps);
    orr_arena_free(arena);
}

/* Of 16,384 ranks a replica of each of two kinds is simulated. */
static void test_large(void)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    Report report = run_report(
        "{\"model\":\"llama3-405b\",\"cluster\":{\"preset\":\"llama3-24k\",\"nodes\":2048},\"training\":{"
        "\"sequence_"
        "length\":8192,\"global_batch\":2048,\"micro_batch\":1},\"parallel\":{\"tensor\":8,\"pipeline\":16,"
        "\"data\":128,\"zero\":1,\"first_stage_layers\":7,\"last_stage_layers\":7}}",
        "{\"slow\":[{\"rank\":9000,\"frac\":0.1}]}", spec, arena);
    const gint64 start_us = g_get_monotonic_time();
    report_jitter_fill(&report, arena, &error);
    g_assert_no_error(error);
    g_assert_cmpint(report.jitter.simulated_ranks, ==, 2 * 16);
    g_test_message("%.3f s", (double)(g_get_monotonic_time() - start_us) * 1e-6);
    orr_arena_free(arena);
}

static void test_refused(void)
{
    static const char *const cases[][2] = {{"{\"rank_spread_frac\":-1}", "rank_spread_frac"},
                                           {"{\"slow\":[{\"rank\":1}]}", "slow"},
                                           {"{\"slow\":[{\"rank\":1,\"node\":2,\"frac\":0.1}]}", "slow"},
                                           {"{\"slow\":[{\"gpu\":1,\"frac\":0.1}]}", "names no part"},
                                           {"{\"slow\":[{\"rank\":1,\"frac\":1}]}", "0.99"},
                                           {"{\"slow\":7}", "list"},
                                           {"{\"seed\":-1}", "seed"},
                                           {"{\"speed\":1}", "speed"},
                                           {"3", "jitter"},
                                           {"no-such", "no-such"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_autofree char *set = g_strdup_printf("jitter=%s", cases[i][0]);
        const char *sets[] = {set, NULL};
        GError *error = NULL;
        OrrJsonDoc *doc = orr_json_parse(scenarios[0], strlen(scenarios[0]), "jitter", NULL);
        g_assert_false(spec_load_json(orr_json_root(doc), "jitter", sets, false, spec, NULL, &error));
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
        g_assert_nonnull(strstr(error->message, cases[i][1]));
        g_clear_error(&error);
        orr_json_free(doc);
    }
    static const char *const late[][2] = {
        {"{\"slow\":[{\"node\":4,\"frac\":0.1}]}", "node 4 is not there; give 0 to 3"},
        {"{\"slow\":[{\"link\":1,\"frac\":0.1}]}", "link 1 does not slow what tensor"},
        {"{\"slow\":[{\"link\":1,\"frac\":0.1},{\"rank\":2,\"frac\":0.1}]}", "give {\"rank\": 1"}};
    for (gsize i = 0; i < G_N_ELEMENTS(late); i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        OrrArena *arena = orr_arena_new();
        GError *error = NULL;
        Report report = run_report(scenarios[0], late[i][0], spec, arena);
        g_assert_false(report_jitter_fill(&report, arena, &error));
        g_assert_nonnull(strstr(error->message, late[i][1]));
        g_clear_error(&error);
        orr_arena_free(arena);
    }
}

/* The scenario with more in its cluster. */
static char *with_cluster(const char *text, const char *more)
{
    g_auto(GStrv) parts = g_strsplit(text, "},\"training\"", 2);
    return g_strdup_printf("%s,%s},\"training\"%s", parts[0], more, parts[1]);
}

static ReportJitter jitter_on(const char *text, const char *jitter, int64_t *ret_step_ps)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    Report report = run_report(text, jitter, spec, arena);
    report_jitter_fill(&report, arena, &error);
    g_assert_no_error(error);
    *ret_step_ps = report.step_ps;
    orr_arena_free(arena);
    return report.jitter;
}

#define CROWDED                                                                                              \
    "\"oversubscription\":4,\"network\":{\"fidelity\":\"flow\",\"topology\":\"leaf-spine\",\"leaf_gpus\":8," \
    "\"routing\":\"ecmp\",\"seed\":%d}"

/* GPUs that are alike take the picoseconds of the step on the fabric, links that kinds share included; a slow one takes
 * more. */
static void test_on_flows(void)
{
    int missed = 0; /* steps that would be shorter without the links */
    for (gsize s = 0; s < G_N_ELEMENTS(scenarios); s++)
        for (int seed = 0; seed < 4; seed++) {
            g_autofree char *more = g_strdup_printf(CROWDED, seed), *text = with_cluster(scenarios[s], more);
            g_autofree Spec *spec = g_new0(Spec, 1);
            OrrArena *arena = orr_arena_new();
            GError *error = NULL;
            const Report report = run_report(text, NULL, spec, arena);
            g_assert_true(report.network.on);
            SimPace *columns = ORR_ARENA_NEW(arena, SimPace, report.plan.shape.ranks * report.plan.data);
            for (int c = 0; c < report.plan.shape.ranks * report.plan.data; c++)
                columns[c] = SIM_FULL_PACE;
            SimPacedStep bare;
            sim_run_columns(&report.plan, NULL, columns, NULL, NULL, arena, &bare, &error);
            g_assert_no_error(error);
            missed += bare.step_ps < report.step_ps;
            int64_t step_ps;
            const ReportJitter none = jitter_on(text, "{}", &step_ps),
                               zero = jitter_on(text,
                                                "{\"rank_spread_frac\":0,\"slow\":[{\"rank\":3,\"frac\":0}]}",
                                                &step_ps),
                               slow = jitter_on(text, "{\"slow\":[{\"rank\":3,\"frac\":0.2}]}", &step_ps),
                               slower = jitter_on(text, "{\"slow\":[{\"rank\":3,\"frac\":0.4}]}", &step_ps);
            g_assert_cmpint(none.p50_ps, ==, report.step_ps);
            g_assert_cmpint(zero.p99_ps, ==, report.step_ps);
            g_assert_cmpint(slow.p50_ps, >, report.step_ps);
            g_assert_cmpint(slower.p50_ps, >, slow.p50_ps);
            orr_arena_free(arena);
        }
    g_assert_cmpint(missed, >, 0);
}

/* Where nobody shares a link, slow GPUs and NICs cost on flows what they cost without. */
static void test_flows_alone(void)
{
    int alike = 0;
    static const char *const slow[] = {"{\"slow\":[{\"rank\":5,\"frac\":0.15}]}",
                                       "{\"slow\":[{\"nic\":2,\"frac\":0.5}]}",
                                       "{\"rank_spread_frac\":0.03,\"step_noise_frac\":0.02,\"steps\":5}"};
    for (gsize s = 0; s < G_N_ELEMENTS(scenarios); s++)
        for (gsize i = 0; i < G_N_ELEMENTS(slow); i++) {
            g_autofree char *text = with_cluster(scenarios[s], "\"network\":{\"fidelity\":\"flow\"}");
            int64_t alone_ps, flow_ps;
            const ReportJitter alone = jitter_on(scenarios[s], slow[i], &alone_ps),
                               flow = jitter_on(text, slow[i], &flow_ps);
            if (flow_ps != alone_ps) /* somebody shares a link */
                continue;
            alike++;
            g_assert_cmpint(flow.p50_ps, ==, alone.p50_ps);
            g_assert_cmpint(flow.worst_ps, ==, alone.worst_ps);
        }
    g_assert_cmpint(alike, >=, 6);
}

/* What a job sends besides is simulated with ranks that are alike. */
static void test_flows_beside(void)
{
    g_autofree char *text =
        with_cluster(scenarios[0], "\"network\":{\"fidelity\":\"flow\",\"traffic\":[{\"name\":"
                                   "\"saved\",\"links\":\"fabric\",\"bytes_per_gpu\":1e9}]}");
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    Report report = run_report(text, "{}", spec, arena);
    g_assert_false(report_jitter_fill(&report, arena, &error));
    g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
    g_assert_nonnull(strstr(error->message, "cluster.network.traffic is simulated only"));
    g_clear_error(&error);
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/jitter/every-schedule", test_every_schedule);
    g_test_add_func("/jitter/folded-is-unfolded", test_folded_is_unfolded);
    g_test_add_func("/jitter/report", test_report);
    g_test_add_func("/jitter/large", test_large);
    g_test_add_func("/jitter/refused", test_refused);
    g_test_add_func("/jitter/on-flows", test_on_flows);
    g_test_add_func("/jitter/flows-alone", test_flows_alone);
    g_test_add_func("/jitter/flows-beside", test_flows_beside);
    return g_test_run();
}
