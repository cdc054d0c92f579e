/* tests/unit/report/test_report_trace.c - trace and memory timeline of a report filled by hand. */
#include <string.h>

#include "base/json.h"
#include "report/parts.h"
#include "tests/unit/report_fixture.h"

static const OrrJson *event_named(const OrrJson *events, const char *ph, const char *name, int pid)
{
    for (const OrrJson *event = orr_json_first(events); event != NULL; event = orr_json_next(event)) {
        if (strcmp(orr_json_text(orr_json_member(event, "ph")), ph) == 0 &&
            strcmp(orr_json_text(orr_json_member(event, "name")), name) == 0 &&
            (int)number_at(event, "pid") == pid)
            return event;
    }
    return NULL;
}

static int count_events(const OrrJson *events, const char *ph)
{
    int count = 0;
    for (const OrrJson *event = orr_json_first(events); event != NULL; event = orr_json_next(event))
        count += strcmp(orr_json_text(orr_json_member(event, "ph")), ph) == 0;
    return count;
}

static bool put_text(const char *text, gsize length, void *data)
{
    g_string_append_len(data, text, (gssize)length);
    return true;
}

static void write_trace(const Report *report, GString *out)
{
    const ReportTraceAsk ask = {.to_ps = G_MAXINT64, .put = put_text, .data = out};
    report_write_trace(report, &ask);
}

static void test_trace(void)
{
    Fixture *f = fixture_new();
    g_autoptr(GString) out = g_string_new(NULL);
    write_trace(&f->report, out);
    OrrJsonDoc *doc = parse(out);
    const OrrJson *events = orr_json_member(orr_json_root(doc), "traceEvents");
    g_assert_cmpint(count_events(events, "X"), ==, 6);
    g_assert_cmpint(count_events(events, "C"), ==, 2); /* what is there from the beginning, of each rank */
    const OrrJson *backward = event_named(events, "X", "backward 0", 1);
    g_assert_nonnull(backward);
    g_assert_cmpint((int)number_at(backward, "tid"), ==, SIM_STREAM_COMPUTE);
    g_assert_cmpfloat(number_at(backward, "dur"), ==, 20000.0);
    g_assert_cmpfloat(number_at(orr_json_member(backward, "args"), "stage"), ==, 1);
    g_assert_nonnull(strstr(out->str, "\"ts\":22000.000001")); /* whole picoseconds survive */
    const OrrJson *level = event_named(events, "C", "memory (bytes)", 1);
    g_assert_nonnull(level); /* their bytes: unit/report/test_trace.c */
    orr_json_free(doc);
    fixture_free(f);
}

/* Two sends, two arrows, each from the send's own slice to the op that waited for it. */
static void test_trace_arrows(void)
{
    Fixture *f = fixture_new();
    g_autoptr(GString) out = g_string_new(NULL);
    write_trace(&f->report, out);
    OrrJsonDoc *doc = parse(out);
    const OrrJson *events = orr_json_member(orr_json_root(doc), "traceEvents");
    g_assert_cmpint(count_events(events, "s"), ==, 2);
    g_assert_cmpint(count_events(events, "f"), ==, 2);
    const OrrJson *out_of_0 = event_named(events, "s", "send", 0),
                  *into_1 = event_named(events, "f", "send", 1);
    g_assert_cmpfloat(number_at(out_of_0, "id"), ==, number_at(into_1, "id"));
    g_assert_cmpfloat(number_at(out_of_0, "ts"), ==, 10000.0);
    g_assert_cmpfloat(number_at(into_1, "ts"), ==, 12000.000001);
    const OrrJson *out_of_1 = event_named(events, "s", "send", 1),
                  *into_0 = event_named(events, "f", "send", 0);
    g_assert_cmpfloat(number_at(out_of_1, "id"), ==, number_at(into_0, "id"));
    g_assert_cmpint((int)number_at(out_of_1, "tid"), ==, SIM_STREAM_SEND_PREV);
    g_assert_cmpfloat(number_at(into_0, "ts"), ==, 44000.000002);
    orr_json_free(doc);
    fixture_free(f);
}

static void test_memory_csv(void)
{
    Fixture *f = fixture_new();
    g_autoptr(GString) out = g_string_new(NULL);
    report_write_memory(&f->report, 0, out);
    g_assert_cmpstr(
        out->str, ==,
        "time_s,rank,weights_bytes,gradients_bytes,optimizer_bytes,activations_bytes,workspace_bytes,"
        "total_bytes,host_bytes\n"
        "0.000000000000,0,3,2,1,5,4,15,0\n"
        "0.012000000001,1,30,20,10,50,40,150,0\n"
        "0.060000000000,0,3,2,1,0,0,6,0\n");
    fixture_free(f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/report/trace/events", test_trace);
    g_test_add_func("/report/trace/arrows", test_trace_arrows);
    g_test_add_func("/report/memory/csv", test_memory_csv);
    return g_test_run();
}
