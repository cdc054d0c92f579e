/* tests/unit/report/test_snapshot.c - the memory snapshot of real runs keeps the schema of docs/REPORT.md: every free is of a
 * block that lives, with its size; time does not go back; the levels peak and end where the engine's do.
 */
#include <string.h>

#include "tests/unit/run_fixture.h"

static const ReportOptions spans = {.record = SIM_RECORD_SPANS};

static int64_t whole(const OrrJson *object, const char *key)
{
    const double value = orr_json_number_of(object, key, -1);
    g_assert_cmpfloat(value, >=, 0);
    g_assert_cmpfloat(value, <, 9007199254740992.0); /* exact as a double */
    return (int64_t)value;
}

static void check_frames(const OrrJson *block)
{
    const OrrJson *frame = orr_json_first(orr_json_member(block, "frames"));
    g_assert_nonnull(frame);
    g_assert_nonnull(orr_json_text_of(frame, "filename", NULL));
    g_assert_nonnull(orr_json_text_of(frame, "name", NULL));
    whole(frame, "line");
}

typedef struct Device {
    int64_t peak, last, ooms; /* bytes, bytes, events */
} Device;

/* Walks a device's events: matched, known, in order. */
static Device check_trace(const OrrJson *trace)
{
    g_autoptr(GHashTable) live = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    Device device = {0};
    int64_t now_us = 0;
    for (const OrrJson *event = orr_json_first(trace); event != NULL; event = orr_json_next(event)) {
        const char *action = orr_json_text_of(event, "action", "");
        const int64_t address = whole(event, "addr"), size = whole(event, "size");
        g_assert_cmpint(whole(event, "time_us"), >=, now_us);
        now_us = whole(event, "time_us");
        g_assert_cmpint(whole(event, "stream"), ==, 0);
        g_assert_cmpint(size, >, 0);
        check_frames(event);
        const int64_t *known = g_hash_table_lookup(live, &address);
        if (strcmp(action, "alloc") == 0) {
            g_assert_null(known);
            g_hash_table_insert(live, g_memdup2(&address, sizeof address), g_memdup2(&size, sizeof size));
            device.last += size;
        } else if (strcmp(action, "free_requested") == 0) {
            g_assert_cmpint(*known, ==, size);
        } else if (strcmp(action, "free_completed") == 0) {
            g_assert_cmpint(*known, ==, size);
            g_hash_table_remove(live, &address);
            device.last -= size;
        } else {
            g_assert_cmpstr(action, ==, "oom");
            whole(event, "device_free");
            device.ooms++;
        }
        device.peak = MAX(device.peak, device.last);
    }
    return device;
}

static int64_t segments_of(const OrrJson *root, int device)
{
    int64_t bytes = 0;
    for (const OrrJson *segment = orr_json_first(orr_json_member(root, "segments")); segment != NULL;
         segment = orr_json_next(segment)) {
        const OrrJson *block = orr_json_first(orr_json_member(segment, "blocks"));
        g_assert_cmpint(whole(segment, "total_size"), ==, whole(block, "size"));
        g_assert_cmpint(whole(segment, "address"), ==, whole(block, "address"));
        g_assert_cmpstr(orr_json_text_of(block, "state", ""), ==, "active_allocated");
        check_frames(block);
        if (whole(segment, "device") == device)
            bytes += whole(segment, "total_size");
    }
    return bytes;
}

static const struct {
    const char *name, *set;
    bool ooms;
} cases[] = {
    {"gpt3-175b", NULL, false},
    {"gpt3-175b-interleaved", NULL, false},
    {"gpt3-175b", "parallel.schedule=gpipe", true},
    {"deepseek-v3-pair", NULL, false},
    {"superoffload_gh200", NULL, false},
    {"gpt3-175b", "training.recompute=none", false},
    {"gpt3-175b", "training.micro_batch=8", true},
};

static void test_schema(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Run *run = run_example(cases[i].name, cases[i].set, &spans);
        const SimResult *result = &run->report.result;
        OrrJsonDoc *doc = run_written(run, report_write_snapshot, (ReportTraceAsk){.to_ps = G_MAXINT64});
        const OrrJson *root = orr_json_root(doc);
        int rank = 0;
        int64_t ooms = 0;
        for (const OrrJson *trace = orr_json_first(orr_json_member(root, "device_traces")); trace != NULL;
             trace = orr_json_next(trace), rank++) {
            const Device device = check_trace(trace);
            g_assert_cmpint(device.peak, ==, result->rank[rank].peak_bytes);
            g_assert_cmpint(device.last, ==, segments_of(root, rank));
            ooms += device.ooms;
        }
        g_assert_cmpint(rank, ==, result->ranks);
        g_assert_cmpint(ooms > 0, ==, cases[i].ooms);
        orr_json_free(doc);
        run_free(run);
    }
}

/* Only the asked ranks, told by the head; also where every rank is simulated. */
static void test_ranks(void)
{
    const ReportOptions unfolded = {.record = SIM_RECORD_SPANS, .unfold = true};
    Run *run = run_example("gpt3-175b", NULL, &unfolded);
    const bool ranks[8] = {false, false, true, false, false, true};
    OrrJsonDoc *doc = run_written(run, report_write_snapshot,
                                  (ReportTraceAsk){.ranks = ranks, .rank_count = 8, .to_ps = G_MAXINT64});
    const OrrJson *root = orr_json_root(doc),
                  *told = orr_json_member(orr_json_member(root, "orrery"), "ranks");
    g_assert_cmpint(orr_json_count(orr_json_member(root, "device_traces")), ==, 2);
    g_assert_cmpfloat(orr_json_number(orr_json_first(told)), ==, 2);
    g_assert_cmpfloat(orr_json_number(orr_json_next(orr_json_first(told))), ==, 5);
    g_assert_cmpint(check_trace(orr_json_first(orr_json_member(root, "device_traces"))).peak, ==,
                    run->report.result.rank[2].peak_bytes);
    orr_json_free(doc);
    run_free(run);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/snapshot/schema", test_schema);
    g_test_add_func("/snapshot/ranks", test_ranks);
    return g_test_run();
}
