/* tests/unit/schedule/test_orders.c - schedules from files: what is read, what is refused, and that a written
 * schedule replays as the one that it was written from. */
#include "report/orders.h"

#include <glib/gstdio.h>

#include "report/report.h"
#include "search/choose.h"
#include "schedule/schedule.h"
#include "spec/orders.h"
#include "tests/unit/test_spec_support.h"

static char *folder;

static char *written(const char *name, const char *text)
{
    char *path = g_build_filename(folder, name, NULL);
    GError *error = NULL;
    g_file_set_contents(path, text, -1, &error);
    g_assert_no_error(error);
    return path;
}

static void test_shapes(void)
{
    static const struct {
        const char *text;
        int ranks, chunks, microbatches;
        SimPlacement placement;
        int64_t ops_of_rank_0;
    } CASES[] = {
        {"0F0 0B0", 1, 1, 1, SIM_PLACE_LOOP, 2},
        {"0F0,,0F1,\t0I0 ,0W0\r\n1F0\n\n", 2, 1, 2, SIM_PLACE_LOOP, 4},
        {"0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0", 2, 2, 1, SIM_PLACE_LOOP, 4},
        {"0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0", 2, 2, 1, SIM_PLACE_V, 4},
        {"0F0 (3F1;0B0)OVERLAP_F_B 3B1\n1F0 1B0 2F1 2B1", 2, 2, 2, SIM_PLACE_BIDIRECTIONAL, 3},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        OrrArena *arena = orr_arena_new();
        GError *error = NULL;
        SpecOrderTable table;
        spec_orders_parse(CASES[i].text, "t", arena, &table, &error);
        g_assert_no_error(error);
        g_assert_cmpint(table.orders.ranks, ==, CASES[i].ranks);
        g_assert_cmpint(table.orders.chunks, ==, CASES[i].chunks);
        g_assert_cmpint(table.orders.microbatches, ==, CASES[i].microbatches);
        g_assert_cmpint(table.orders.placement, ==, CASES[i].placement);
        g_assert_cmpint(table.rows[0].count, ==, CASES[i].ops_of_rank_0);
        orr_arena_free(arena);
    }
}

/* A scenario of 2 pipeline ranks and 2 micro-batches. */
static bool replays(const char *path, char **ret_message)
{
    g_autofree char *schedule = g_strconcat("parallel.schedule=", path, NULL);
    const char *const sets[] = {"cluster.nodes=1",
                                "parallel.tensor=1",
                                "parallel.pipeline=2",
                                "training.global_batch=8",
                                "model.hidden=1024",
                                "model.head_dim=32",
                                schedule,
                                NULL};
    g_autofree Spec *spec = g_new0(Spec, 1);
    if (!test_load(sets, true, spec, NULL, ret_message))
        return false;
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    Report report;
    const bool ok = report_run(spec, NULL, &(ReportOptions){.check = true}, arena, &report, &error);
    if (!ok) {
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
        *ret_message = g_strdup(error->message);
        g_error_free(error);
    }
    orr_arena_free(arena);
    return ok;
}

static void test_refusals(void)
{
    static const struct {
        const char *name, *text, *says;
    } CASES[] = {
        {"a.csv", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", NULL},
        {"b.json", "{\"orders\":[\"0F0 0F1 0I0 0W0 0B1\",\"1F0 1B0 1F1 1B1\"]}", NULL},
        {"c.csv", "0F0,0G1\n1F0\n", "rank 0, op 2: \"0G1\" is not an op; give stage, F, B, I or W"},
        {"d.csv", "0F0\n1F0,1SEND_B0\n", "rank 1, op 2: \"1SEND_B0\" is not an op"},
        {"e.csv", "0F0\n1F99999999999\n", "\"1F99999999999\" is not an op"},
        {"f.csv", "0F0\n9999F0\n", "\"9999F0\" is not an op"},
        {"g.csv", "0F0,(0F1;0B0)\n1F0\n", "is not a pair"},
        {"h.csv", "0F0,(0B0;0F1)OVERLAP_F_B\n1F0\n", "is not a pair of a forward and a whole backward"},
        {"i.csv", "0F0\n\n1F0\n", "rank 1 has no ops"},
        {"j.csv", "0F0\n1F0,2F0\n", "3 model stages on 2 ranks; give every rank the same number"},
        {"k.csv", "1F0,1B0\n0F0,0B0\n", "give stage s to rank s modulo 2"},
        {"l.csv", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n2F0,2B0,2F1,2B1\n",
         "orders for 3 pipeline ranks; give 3"},
        {"m.csv", "0F0,0B0\n1F0,1B0\n", "orders for 1 micro-batches, but global_batch 8"},
        {"n.csv", "0F0,2F0,2B0,0B0,0F1,2F1,2B1,0B1\n1F0,3F0,3B0,1B0,1F1,3F1,3B1,1B1\n", NULL},
        {"o.csv", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n",
         "rank 1 never runs the backward of stage 1, micro-batch 1; list it once"},
        {"p.csv", "0F0,0F1,0I0,0W0,0I1\n1F0,1B0,1F1,1B1\n",
         "rank 0 never runs the weight backward of stage 0, micro-batch 1"},
        {"q.csv", "0F0,0F1,0B0,0B0,0B1\n1F0,1B0,1F1,1B1\n",
         "rank 0 runs the backward of stage 0, micro-batch 0 twice; list it once"},
        {"r.csv", "0B0,0F0,0F1,0B1\n1F0,1B0,1F1,1B1\n", "micro-batch 0 before the pass that it needs"},
        {"s.csv", "0F0,0F1,0W0,0I0,0B1\n1F0,1B0,1F1,1B1\n",
         "weight backward of stage 0, micro-batch 0 before"},
        {"t.csv", "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n", "which waits for the first"},
        {"u.json", "{\"orders\":[\"0F0 0B0\"],\"order\":[]}", "order: unknown key"},
        {"v.json", "{\"schema\":1}", "orders: missing"},
        {"w.json", "{\"orders\":[1]}", "rank 0 is a number; give one line of ops"},
        {"x.json", "{\"orders\":\"0F0\"}", "orders: text"},
        {"y.csv", "", "rank 0 has no ops"},
        {"z.csv", "0F0,3F0,3B0,0B0,0F1,3F1,3B1,0B1\n2F0,1F0,2B0,1B0,1F1,2F1,2B1,1B1\n",
         "before that of the stage before it"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autofree char *path = written(CASES[i].name, CASES[i].text), *message = NULL;
        const bool ok = replays(path, &message);
        g_test_message("%s: %s", CASES[i].name, ok ? "runs" : message);
        if (CASES[i].says == NULL) {
            g_assert_true(ok);
            continue;
        }
        g_assert_false(ok);
        g_assert_nonnull(strstr(message, CASES[i].says));
        g_assert_nonnull(strstr(message, CASES[i].name));
        g_assert_null(strchr(message, '\n'));
    }
    g_autofree char *message = NULL;
    g_assert_false(replays("nowhere/mine.json", &message));
    g_assert_nonnull(strstr(message, "\"nowhere/mine.json\" is not a file"));
}

/* A circle is told as ranks and passes. */
static void test_deadlock(void)
{
    g_autofree char *path = written("circle.csv", "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n"), *message = NULL;
    g_assert_false(replays(path, &message));
    g_assert_nonnull(strstr(message, "circle.csv"));
    g_assert_nonnull(strstr(message, "rank 0 compute (backward of stage 0, micro-batch 0)"));
    g_assert_nonnull(strstr(message, "rank 1 compute (forward of stage 1, micro-batch 1)"));
}

static Report run_spec(const Spec *spec, OrrArena *arena)
{
    GError *error = NULL;
    Report report;
    report_run(spec, NULL, &(ReportOptions){.check = true}, arena, &report, &error);
    g_assert_no_error(error);
    return report;
}

static void round_trip(const SimSchedule *schedule, int pipeline, int microbatches, int chunks,
                       const char *framework, const char *overlap)
{
    const int data = 8 / pipeline;
    g_autofree char *named = g_strdup_printf("parallel.schedule=%s", schedule->name);
    g_autofree char *ranks = g_strdup_printf("parallel.pipeline=%d", pipeline);
    g_autofree char *batch = g_strdup_printf("training.global_batch=%d", microbatches * data);
    g_autofree char *virtual = g_strdup_printf("parallel.virtual_stages=%d", chunks);
    const char *sets[] = {"cluster.nodes=1",
                          "parallel.tensor=1",
                          overlap,
                          framework,
                          "parallel.zero=1",
                          ranks,
                          batch,
                          virtual,
                          named,
                          NULL};
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autofree char *message = NULL;
    if (!test_load(sets, true, spec, NULL, &message))
        g_error("%s", message);
    for (int csv = 0; csv < 2; csv++) {
        OrrArena *arena = orr_arena_new();
        GError *error = NULL;
        g_autoptr(GString) text = g_string_new(NULL);
        report_write_orders(spec, csv != 0, text, &error);
        g_assert_no_error(error);
        g_autofree char *path = written(csv ? "trip.csv" : "trip.json", text->str);
        g_autofree char *from_file = g_strconcat("parallel.schedule=", path, NULL);
        g_autofree Spec *again = g_new0(Spec, 1);
        sets[G_N_ELEMENTS(sets) - 2] = from_file;
        if (!test_load(sets, true, again, NULL, &message))
            g_error("%s: %s", schedule->name, message);
        const Report a = run_spec(spec, arena), b = run_spec(again, arena);
        g_assert_cmpint(a.step_ps, ==, b.step_ps);
        for (int r = 0; r < a.result.ranks; r++) {
            g_assert_cmpint(a.result.rank[r].idle_ps, ==, b.result.rank[r].idle_ps);
            g_assert_cmpint(a.result.rank[r].peak_bytes, ==, b.result.rank[r].peak_bytes);
        }
        orr_arena_free(arena);
    }
}

static void test_round_trips(void)
{
    int count = 0, trips = 0;
    const SimSchedule *schedules = sim_schedules(&count);
    for (int i = 0; i < count; i++) {
        for (int pipeline = 2; pipeline <= 8; pipeline *= 2) {
            for (int microbatches = pipeline; microbatches <= 4 * pipeline; microbatches *= 2) {
                const bool two_copies = schedules[i].placement == SIM_PLACE_BIDIRECTIONAL;
                const int chunks = two_copies || schedules[i].fixed_chunks == 1 ? 1 : 2;
                const SimScheduleShape shape = {
                    .ranks = pipeline, .chunks = two_copies ? 2 : chunks, .microbatches = microbatches};
                if (schedules[i].check != NULL && !schedules[i].check(&shape, NULL))
                    continue;
                round_trip(&schedules[i], pipeline, microbatches, chunks, "execution.framework=megatron-core",
                           "execution.overlap=[\"grad_reduce\"]");
                trips++;
            }
        }
    }
    g_assert_cmpint(trips, >, 90);
}

/* What software does beside the orders of a named schedule (messages that are waited for, hosts that run ahead, heads that
 * are deferred) it does beside the same orders from a file. */
static void test_habits(void)
{
    static const char *const frameworks[] = {
        "execution.framework=megatron-core", "execution.framework=deepspeed",
        "execution.framework=megatron-deepspeed", "execution.framework=torchtitan",
        "execution.framework=nanotron"};
    static const char *const overlaps[] = {
        "execution.overlap=[]", "execution.overlap=[\"grad_reduce\",\"param_gather\",\"pipeline\"]"};
    static const char *const names[] = {"1f1b", "gpipe", "interleaved", "breadth-first", "zb-h1", "zb-v"};
    int count = 0;
    const SimSchedule *schedules = sim_schedules(&count);
    for (int i = 0; i < count; i++)
        for (gsize n = 0; n < G_N_ELEMENTS(names); n++)
            for (gsize f = 0; strcmp(schedules[i].name, names[n]) == 0 && f < G_N_ELEMENTS(frameworks); f++)
                for (gsize o = 0; o < G_N_ELEMENTS(overlaps); o++)
                    round_trip(&schedules[i], 4, 8, schedules[i].fixed_chunks == 1 ? 1 : 2, frameworks[f],
                               overlaps[o]);
}

/* Experts without any overlap of their own: DualPipeV's pairs hide the exchange that the same stages show under ZB-V, and
 * so does a file of its orders. */
static void test_pairs_hide_exchange(void)
{
    static const char *const SCHEDULES[] = {"dualpipev", "zb-v"};
    double exchange_ps[2] = {0};
    int64_t step_ps = 0;
    OrrArena *arena = orr_arena_new();
    for (int i = 0; i < 3; i++) {
        g_autofree char *path = g_build_filename(folder, "pairs.csv", NULL);
        g_autofree char *parallel = g_strdup_printf(
            "parallel={\"tensor\":1,\"pipeline\":4,\"expert\":8,\"zero\":1,\"schedule\":\"%s\"}",
            i < 2 ? SCHEDULES[i] : path);
        g_autofree Spec *spec = test_spec("model.moe={\"experts\":16,\"top_k\":4,\"expert_ffn_hidden\":2048}",
                                          parallel, "training.global_batch=256", "execution.overlap=[]");
        const Report report = run_spec(spec, arena);
        if (i == 2) {
            g_assert_cmpint(report.step_ps, ==, step_ps);
            break;
        }
        exchange_ps[i] = (double)report.result.rank[1].part_ps[SIM_PART_EXPERT_COMM];
        if (i == 0) {
            g_autoptr(GString) text = g_string_new(NULL);
            g_assert_true(report_write_orders(spec, true, text, NULL));
            g_free(written("pairs.csv", text->str));
            step_ps = report.step_ps;
        }
    }
    g_assert_cmpfloat(exchange_ps[1], >, 0);
    g_assert_cmpfloat(exchange_ps[0], <, 0.7 * exchange_ps[1]);
    orr_arena_free(arena);
}

/* The shape is checked where it can be, and a search is told that there is nothing to search. */
static void test_auto(void)
{
    g_autofree char *path = written("auto.csv", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"), *message = NULL;
    g_autofree char *set = g_strconcat("parallel.schedule=", path, NULL);
    const char *const sets[] = {set, "training.micro_batch=auto", NULL};
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_assert_false(test_load(sets, true, spec, NULL, &message));
    g_assert_nonnull(strstr(message, "is written for one shape of pipeline"));
    /* A measurement row with a file and nothing to choose goes through the same door as the others. */
    const char *const whole[] = {
        "cluster.nodes=1", "parallel.tensor=1", "parallel.pipeline=2", "training.global_batch=8", set, NULL};
    g_autofree Spec *complete = g_new0(Spec, 1), *chosen = g_new0(Spec, 1);
    GError *error = NULL;
    g_assert_true(test_load(whole, true, complete, NULL, &message));
    g_assert_true(search_choose(complete, chosen, &error));
    g_assert_cmpstr(chosen->parallel.orders.text, ==, complete->parallel.orders.text);
    complete->execution.attention = (SpecAttention)SPEC_AUTO;
    g_assert_false(search_choose(complete, chosen, &error));
    g_assert_nonnull(strstr(error->message, "can be run but not searched"));
    g_error_free(error);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    folder = g_dir_make_tmp("orrery-orders-XXXXXX", NULL);
    g_assert_nonnull(folder);
    g_test_add_func("/orders/shapes", test_shapes);
    g_test_add_func("/orders/refusals", test_refusals);
    g_test_add_func("/orders/deadlock", test_deadlock);
    g_test_add_func("/orders/round-trips", test_round_trips);
    g_test_add_func("/orders/pairs", test_pairs_hide_exchange);
    g_test_add_func("/orders/habits", test_habits);
    g_test_add_func("/orders/auto", test_auto);
    const int failed = g_test_run();
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    for (const char *file; dir != NULL && (file = g_dir_read_name(dir)) != NULL;) {
        g_autofree char *path = g_build_filename(folder, file, NULL);
        g_unlink(path);
    }
    g_rmdir(folder);
    g_free(folder);
    return failed;
}
