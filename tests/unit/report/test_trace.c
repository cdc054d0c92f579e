/* tests/unit/report/test_trace.c - a trace of real runs: its memory counters are the engine's levels, slices of a
 * thread follow each other, arrows come in pairs, and a part of it is that part.
 */
#include <math.h>
#include <string.h>

#include "tests/unit/run_fixture.h"

static const ReportOptions spans = {.record = SIM_RECORD_SPANS | SIM_RECORD_LEVELS};

static const OrrJson *events_of(const OrrJsonDoc *doc)
{
    return orr_json_first(orr_json_member(orr_json_root(doc), "traceEvents"));
}

static bool is(const OrrJson *event, const char *kind)
{
    return strcmp(orr_json_text_of(event, "ph", ""), kind) == 0;
}

static int64_t time_ps(const OrrJson *event, const char *key)
{
    return llround(orr_json_number_of(event, key, -1) * 1e6);
}

static const char *const examples[] = {"gpt3-175b-interleaved", "deepseek-v3-pair", "superoffload_gh200"};

/* The engine's next level of the rank that differs from the last one; NULL: none. */
static const SimLevel *next_level(const SimResult *result, int rank, int64_t *next, const SimLevel **last)
{
    for (; *next < result->level_count; (*next)++) {
        const SimLevel *level = &result->levels[*next];
        if (level->rank != rank ||
            (*last != NULL && memcmp(level->bytes, (*last)->bytes, sizeof level->bytes) == 0))
            continue;
        (*next)++;
        *last = level;
        return level;
    }
    return NULL;
}

/* Every level that the engine recorded is a counter, in the order of each rank's time. */
static void test_levels(void)
{
    static const SimMem kinds[] = {SIM_MEM_WEIGHTS, SIM_MEM_ACTIVATIONS, SIM_MEM_WORKSPACE};
    static const char *const keys[] = {"weights", "activations", "workspace"};
    for (gsize i = 0; i < G_N_ELEMENTS(examples); i++) {
        Run *run = run_example(examples[i], NULL, &spans);
        const SimResult *result = &run->report.result;
        OrrJsonDoc *doc = run_written(run, report_write_trace, (ReportTraceAsk){.to_ps = G_MAXINT64});
        g_autofree int64_t *next = g_new0(int64_t, (gsize)result->ranks);
        g_autofree const SimLevel **last = g_new0(const SimLevel *, (gsize)result->ranks);
        int64_t counters = 0;
        for (const OrrJson *event = events_of(doc); event != NULL; event = orr_json_next(event)) {
            if (!is(event, "C"))
                continue;
            const int rank = (int)orr_json_number_of(event, "pid", -1);
            const SimLevel *level = next_level(result, rank, &next[rank], &last[rank]);
            g_assert_cmpint(time_ps(event, "ts"), ==, level->time_ps);
            for (gsize kind = 0; kind < G_N_ELEMENTS(kinds); kind++)
                g_assert_cmpfloat(orr_json_number_of(orr_json_member(event, "args"), keys[kind], -1), ==,
                                  (double)level->bytes[kinds[kind]]);
            counters++;
        }
        g_assert_cmpint(counters, >, result->ranks);
        for (int rank = 0; rank < result->ranks; rank++)
            g_assert_null(next_level(result, rank, &next[rank], &last[rank]));
        orr_json_free(doc);
        run_free(run);
    }
}

static void test_threads_and_arrows(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(examples); i++) {
        Run *run = run_example(examples[i], NULL, &spans);
        OrrJsonDoc *doc = run_written(run, report_write_trace, (ReportTraceAsk){.to_ps = G_MAXINT64});
        const gsize lanes = (gsize)run->report.result.ranks * SIM_MAX_STREAMS;
        g_autofree int64_t *end_ps = g_new0(int64_t, lanes);
        g_autoptr(GHashTable) open = g_hash_table_new(NULL, NULL);
        int64_t slices = 0;
        for (const OrrJson *event = events_of(doc); event != NULL; event = orr_json_next(event)) {
            if (is(event, "X")) {
                const int lane = (int)orr_json_number_of(event, "pid", -1) * SIM_MAX_STREAMS +
                                 (int)orr_json_number_of(event, "tid", -1);
                g_assert_cmpint(time_ps(event, "ts"), >=, end_ps[lane]);
                end_ps[lane] = time_ps(event, "ts") + time_ps(event, "dur");
                slices++;
            }
            const gpointer id = GINT_TO_POINTER((int)orr_json_number_of(event, "id", 0));
            if (is(event, "s"))
                g_assert_true(g_hash_table_add(open, id));
            if (is(event, "f"))
                g_assert_true(g_hash_table_remove(open, id));
        }
        g_assert_cmpuint(g_hash_table_size(open), ==, 0);
        g_assert_cmpint(slices, ==, run->report.result.span_count);
        orr_json_free(doc);
        run_free(run);
    }
}

/* Ranks and a stretch of time: no more and no less than what lies in them. */
static void test_part(void)
{
    Run *run = run_example("gpt3-175b-interleaved", NULL, &spans);
    const SimResult *result = &run->report.result;
    const bool ranks[3] = {false, true, true};
    const int64_t from_ps = result->end_ps / 3, to_ps = result->end_ps / 2;
    OrrJsonDoc *doc =
        run_written(run, report_write_trace,
                    (ReportTraceAsk){.ranks = ranks, .rank_count = 3, .from_ps = from_ps, .to_ps = to_ps});
    int64_t slices = 0, expected = 0;
    for (const OrrJson *event = events_of(doc); event != NULL; event = orr_json_next(event)) {
        const int rank = (int)orr_json_number_of(event, "pid", -1);
        g_assert_true(rank == 1 || rank == 2);
        if (!is(event, "X"))
            continue;
        slices++;
        g_assert_cmpint(time_ps(event, "ts"), <=, to_ps);
        g_assert_cmpint(time_ps(event, "ts") + time_ps(event, "dur"), >=, from_ps);
    }
    for (int64_t i = 0; i < result->span_count; i++) {
        const SimSpan *span = &result->spans[i];
        expected +=
            (span->rank == 1 || span->rank == 2) && span->end_ps >= from_ps && span->start_ps <= to_ps;
    }
    g_assert_cmpint(slices, ==, expected);
    g_assert_cmpint(slices, >, 0);
    orr_json_free(doc);
    run_free(run);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/trace/levels", test_levels);
    g_test_add_func("/trace/threads-and-arrows", test_threads_and_arrows);
    g_test_add_func("/trace/part", test_part);
    return g_test_run();
}
