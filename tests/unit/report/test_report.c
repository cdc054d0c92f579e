/* tests/unit/report/test_report.c - every writer of a report against one filled by hand. */
#include <string.h>

#include "base/json.h"
#include "report/page.h"
#include "report/parts.h"

#define GIB 1073741824.0
#define MS  INT64_C(1000000000) /* ps */

/* Two pipeline ranks, one micro-batch: forward 0 -> send -> forward 1, backward 1 -> send -> backward 0. */
typedef struct Fixture {
    Spec spec;
    SpecSource source;
    Report report;
    ReportStage stages[64];
    SimClass classes[2];
    SimInstr instrs[2][SIM_STREAM_COUNT][4];
    SimWork works[3];
    SimSpan spans[6];
    SimLevel levels[3];
    SimRankResult ranks[2];
} Fixture;

static SimInstr op(SimTag tag, int work, int stage)
{
    return (SimInstr){.kind = SIM_OP, .tag = (uint8_t)tag, .work = work, .mem = -1, .stage = stage};
}

static SimInstr wait_for(int class, SimStream stream, int index)
{
    return (SimInstr){.kind = SIM_WAIT,
                      .wait_stream = (uint8_t)stream,
                      .wait_class = class,
                      .wait_index = index,
                      .stage = -1,
                      .microbatch = -1};
}

static void put(Fixture *f, int class, SimStream stream, SimInstr instr)
{
    SimList *list = &f->classes[class].streams[stream];
    list->instrs = f->instrs[class][stream];
    f->instrs[class][stream][list->count++] = instr;
}

static void fill_program(Fixture *f)
{
    f->works[0].part_ps[SIM_PART_COMPUTE] = 9 * MS;
    f->works[0].part_ps[SIM_PART_TENSOR_COMM] = MS;
    f->works[1].part_ps[SIM_PART_PIPELINE_COMM] = 2 * MS + 1;
    f->works[2].part_ps[SIM_PART_COMPUTE] = 20 * MS;
    put(f, 0, SIM_STREAM_COMPUTE, op(SIM_TAG_FORWARD, 0, 0));
    put(f, 0, SIM_STREAM_SEND_NEXT, wait_for(-1, SIM_STREAM_COMPUTE, 0));
    put(f, 0, SIM_STREAM_SEND_NEXT, op(SIM_TAG_SEND_FORWARD, 1, 0));
    put(f, 1, SIM_STREAM_COMPUTE, wait_for(0, SIM_STREAM_SEND_NEXT, 1));
    put(f, 1, SIM_STREAM_COMPUTE, op(SIM_TAG_FORWARD, 0, 1));
    put(f, 1, SIM_STREAM_COMPUTE, op(SIM_TAG_BACKWARD, 2, 1));
    put(f, 1, SIM_STREAM_SEND_PREV, wait_for(-1, SIM_STREAM_COMPUTE, 2));
    put(f, 1, SIM_STREAM_SEND_PREV, op(SIM_TAG_SEND_BACKWARD, 1, 1));
    put(f, 0, SIM_STREAM_COMPUTE, wait_for(1, SIM_STREAM_SEND_PREV, 1));
    put(f, 0, SIM_STREAM_COMPUTE, op(SIM_TAG_BACKWARD, 2, 0));
    const int64_t s = 2 * MS + 1;
    const SimSpan spans[6] = {
        {0, 10 * MS, 0, SIM_STREAM_COMPUTE, SIM_TAG_FORWARD, 0, 0, 0},
        {10 * MS, 10 * MS + s, 0, SIM_STREAM_SEND_NEXT, SIM_TAG_SEND_FORWARD, 0, 0, 1},
        {10 * MS + s, 20 * MS + s, 1, SIM_STREAM_COMPUTE, SIM_TAG_FORWARD, 1, 0, 0},
        {20 * MS + s, 40 * MS + s, 1, SIM_STREAM_COMPUTE, SIM_TAG_BACKWARD, 1, 0, 2},
        {40 * MS + s, 40 * MS + 2 * s, 1, SIM_STREAM_SEND_PREV, SIM_TAG_SEND_BACKWARD, 1, 0, 1},
        {40 * MS + 2 * s, 60 * MS + 2 * s, 0, SIM_STREAM_COMPUTE, SIM_TAG_BACKWARD, 0, 0, 2},
    };
    memcpy(f->spans, spans, sizeof spans);
    const SimLevel levels[3] = {
        {0, 0, {5, 4, 3, 2, 1}}, {10 * MS + s, 1, {50, 40, 30, 20, 10}}, {60 * MS, 0, {0, 0, 3, 2, 1}}};
    memcpy(f->levels, levels, sizeof levels);
    f->report.program = (SimProgram){
        .classes = 2, .replicas = 1, .class_list = f->classes, .works = f->works, .work_count = 3};
    f->report.plan.shape.ranks = 2;
    f->report.result = (SimResult){.step_ps = 60 * MS + 2 * s,
                                   .ranks = 2,
                                   .critical_rank = 0,
                                   .rank = f->ranks,
                                   .ops = 6,
                                   .spans = f->spans,
                                   .span_count = 6,
                                   .levels = f->levels,
                                   .level_count = 3};
}

static void fill_spec(Spec *spec)
{
    g_strlcpy(spec->name, "two \"stages\"", sizeof spec->name);
    g_strlcpy(spec->model.name, "tiny", sizeof spec->model.name);
    g_strlcpy(spec->cluster.name, "bench", sizeof spec->cluster.name);
    g_strlcpy(spec->cluster.accelerator.name, "gpu", sizeof spec->cluster.accelerator.name);
    spec->cluster.accelerator.peak_flops_per_s[SPEC_BF16] = 312e12;
    spec->model.layers = 4;
    spec->cluster.gpus_per_node = 8;
    spec->cluster.nodes = 2;
    spec->training = (SpecTraining){.sequence_length = 2048,
                                    .global_batch = 1536,
                                    .micro_batch = 1,
                                    .tokens = 300e9,
                                    .precision = SPEC_PRECISION_BF16,
                                    .recompute = {.mode = SPEC_RECOMPUTE_SELECTIVE}};
    spec->parallel = (SpecParallel){.tensor = 4,
                                    .sequence_parallel = 1,
                                    .context = 1,
                                    .pipeline = 2,
                                    .virtual_stages = 1,
                                    .data = 2,
                                    .expert = 1,
                                    .expert_tensor = 1,
                                    .zero = 1,
                                    .schedule = sim_schedule_index("1f1b")};
}

static void fill_stages(Fixture *f, int count)
{
    for (int i = 0; i < count; i++) {
        ReportStage *stage = &f->stages[i];
        *stage = (ReportStage){.stage = i,
                               .weights_bytes = 8 * GIB,
                               .gradients_bytes = 4 * GIB,
                               .optimizer_bytes = 10 * GIB,
                               .activations_bytes = (count - i) * 0.5 * GIB,
                               .workspace_bytes = 1 * GIB};
        stage->peak_bytes = 23 * GIB + stage->activations_bytes;
        stage->reserved_bytes = stage->peak_bytes + 2 * GIB;
    }
    f->report.stages = f->stages;
    f->report.stage_count = count;
    f->report.peak_bytes = f->stages[0].peak_bytes;
    f->report.reserved_bytes = f->stages[0].reserved_bytes;
}

static Fixture *fixture_new(void)
{
    Fixture *f = g_new0(Fixture, 1);
    fill_spec(&f->spec);
    f->source = (SpecSource){
        .scenario_hash = "0123456789abcdef", .profiles = g_ptr_array_new(), .defaulted = g_ptr_array_new()};
    g_ptr_array_add(f->source.profiles, "accelerators/gpu 00ff");
    g_ptr_array_add(f->source.defaulted, "training.optimizer=adam");
    Report *report = &f->report;
    report->spec = &f->spec;
    report->source = &f->source;
    report->parameters = report->active_parameters = 175e9;
    report->gpus = 16;
    report->fits = true;
    report->memory_verdict = REPORT_MEMORY_FITS;
    report->memory_odds = 1;
    report->verbose = true;
    report->step_ps = 64 * MS + 2;
    report->tokens_per_s = 229064.5;
    report->tokens_per_s_per_gpu = 14316.53;
    report->model_flops_per_s_per_gpu = 160e12;
    report->mfu = 0.512;
    report->hfu = 0.54;
    report->by_convention.mfu[COST_CONVENTION_MEGATRON] = 0.52;
    report->bubble_frac = 0.25;
    report->part_ps[SIM_PART_COMPUTE] = 27 * MS + 7;
    report->part_ps[SIM_PART_TENSOR_COMM] = 3 * MS - 7;
    report->part_ps[SIM_PART_OTHER] = 1;
    report->bubble_ps = 34 * MS + 1;
    report->capacity_bytes = 80 * GIB;
    report->days = 33.9;
    report->gpu_hours = 13017.6;
    fill_stages(f, 2);
    fill_program(f);
    return f;
}

static void fixture_free(Fixture *f)
{
    g_ptr_array_free(f->source.profiles, TRUE);
    g_ptr_array_free(f->source.defaulted, TRUE);
    g_free(f);
}

static const char *line_of(const char *text, const char *needle)
{
    const char *found = strstr(text, needle);
    g_assert_nonnull(found);
    return found;
}

/* The picoseconds written behind "key": ... as text, not through a double. */
static int64_t ps_of(const char *text, const char *key)
{
    g_autofree char *needle = g_strdup_printf("\"%s\": ", key);
    const char *at = line_of(text, needle) + strlen(needle);
    char *end = NULL;
    const int64_t seconds = g_ascii_strtoll(at, &end, 10);
    g_assert_true(*end == '.');
    const char *decimals = end + 1;
    const int64_t rest = g_ascii_strtoll(decimals, &end, 10);
    g_assert_cmpint(end - decimals, ==, 12);
    return seconds * 1000000000000 + rest;
}

static OrrJsonDoc *parse(const GString *text)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text->str, text->len, "report", &error);
    g_assert_no_error(error);
    return doc;
}

static double number_at(const OrrJson *object, const char *key)
{
    const OrrJson *node = orr_json_member(object, key);
    g_assert_nonnull(node);
    g_assert_cmpint(orr_json_type(node), ==, ORR_JSON_NUMBER);
    return orr_json_number(node);
}

/* The key names are a contract. */
static void test_json_keys(void)
{
    static const char *const keys[] = {"schema",
                                       "scenario",
                                       "stamp",
                                       "model",
                                       "gpus",
                                       "fits",
                                       "step_s",
                                       "tokens_per_s",
                                       "tokens_per_s_per_gpu",
                                       "model_flops_per_s_per_gpu",
                                       "mfu",
                                       "hfu",
                                       "mfu_by_convention",
                                       "bubble_frac",
                                       "interval",
                                       "time",
                                       "memory",
                                       "training",
                                       "chosen"};
    static const char *const time_keys[] = {
        "compute_s",   "recompute_s", "tensor_comm_s", "context_comm_s", "expert_comm_s", "pipeline_comm_s",
        "data_comm_s", "offload_s",   "optimizer_s",   "bubble_s",       "other_s"};
    static const char *const stage_keys[] = {"stage",           "weights_bytes",     "gradients_bytes",
                                             "optimizer_bytes", "activations_bytes", "workspace_bytes",
                                             "reserved_bytes",  "peak_bytes"};
    Fixture *f = fixture_new();
    g_autoptr(GString) out = g_string_new(NULL);
    report_write_json(&f->report, out);
    OrrJsonDoc *doc = parse(out);
    const OrrJson *root = orr_json_root(doc);
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++)
        g_assert_nonnull(orr_json_member(root, keys[i]));
    const OrrJson *time = orr_json_member(root, "time"), *memory = orr_json_member(root, "memory");
    g_assert_cmpint(orr_json_count(time), ==, G_N_ELEMENTS(time_keys));
    for (gsize i = 0; i < G_N_ELEMENTS(time_keys); i++)
        g_assert_nonnull(orr_json_member(time, time_keys[i]));
    const OrrJson *stage = orr_json_first(orr_json_member(memory, "stages"));
    for (gsize i = 0; i < G_N_ELEMENTS(stage_keys); i++)
        number_at(stage, stage_keys[i]);
    g_assert_cmpfloat(number_at(stage, "weights_bytes"), ==, 8 * GIB);
    g_assert_cmpstr(orr_json_text(orr_json_member(root, "scenario")), ==, "two \"stages\"");
    g_assert_cmpfloat(number_at(root, "mfu"), ==, 0.512);
    const OrrJson *training = orr_json_member(root, "training");
    g_assert_cmpfloat(number_at(training, "days"), ==, 33.9);
    g_assert_cmpint(orr_json_type(orr_json_member(training, "usd")), ==, ORR_JSON_NULL);
    orr_json_free(doc);
    fixture_free(f);
}

static void test_json_times_add_up(void)
{
    Fixture *f = fixture_new();
    g_autoptr(GString) out = g_string_new(NULL);
    report_write_json(&f->report, out);
    ReportTime times[REPORT_TIME_COUNT];
    report_times(f->report.part_ps, f->report.bubble_ps, times);
    int64_t sum = 0;
    for (int i = 0; i < REPORT_TIME_COUNT; i++)
        sum += ps_of(out->str, times[i].key);
    g_assert_cmpint(sum, ==, ps_of(out->str, "step_s"));
    g_assert_cmpint(sum, ==, f->report.step_ps);
    fixture_free(f);
}

static void test_json_chosen(void)
{
    Fixture *f = fixture_new();
    g_autoptr(GPtrArray) chosen = g_ptr_array_new();
    g_ptr_array_add(chosen, "training.micro_batch=2");
    g_ptr_array_add(chosen, "parallel.schedule=1f1b");
    g_ptr_array_add(chosen, "parallel.sequence_parallel=true");
    f->report.chosen = chosen;
    g_autoptr(GString) out = g_string_new(NULL);
    report_write_json(&f->report, out);
    OrrJsonDoc *doc = parse(out);
    const OrrJson *object = orr_json_member(orr_json_root(doc), "chosen");
    g_assert_cmpfloat(number_at(object, "training.micro_batch"), ==, 2);
    g_assert_cmpstr(orr_json_text(orr_json_member(object, "parallel.schedule")), ==, "1f1b");
    g_assert_true(orr_json_bool(orr_json_member(object, "parallel.sequence_parallel")));
    orr_json_free(doc);
    fixture_free(f);
}

/* Each column is a path of the JSON and holds the same value. */
static void test_csv_is_the_json(void)
{
    Fixture *f = fixture_new();
    g_strlcpy(f->spec.name, "plain", sizeof f->spec.name); /* no quotes: cells can be split at commas */
    g_autoptr(GString) csv = g_string_new(NULL), json = g_string_new(NULL);
    report_write_csv(&f->report, true, csv);
    report_write_json(&f->report, json);
    OrrJsonDoc *doc = parse(json);
    g_auto(GStrv) lines = g_strsplit(csv->str, "\n", -1);
    g_assert_cmpint(g_strv_length(lines), ==, 3); /* header, row, nothing behind the last line end */
    g_auto(GStrv) keys = g_strsplit(g_strchomp(lines[0]), ",", -1);
    g_auto(GStrv) cells = g_strsplit(g_strchomp(lines[1]), ",", -1);
    g_assert_cmpint(g_strv_length(keys), ==, g_strv_length(cells));
    for (int i = 0; keys[i] != NULL; i++) {
        g_auto(GStrv) path = g_strsplit(keys[i], ".", -1);
        const OrrJson *node = orr_json_root(doc);
        for (char **key = path; *key != NULL && orr_json_type(node) == ORR_JSON_OBJECT; key++)
            node = orr_json_member(node, *key);
        g_assert_nonnull(node);
        if (orr_json_type(node) == ORR_JSON_NUMBER)
            g_assert_cmpfloat(g_ascii_strtod(cells[i], NULL), ==, orr_json_number(node));
        else if (orr_json_type(node) == ORR_JSON_TEXT)
            g_assert_cmpstr(cells[i], ==, orr_json_text(node));
        else if (orr_json_type(node) == ORR_JSON_NULL)
            g_assert_cmpstr(cells[i], ==, "");
        else
            g_assert_cmpstr(cells[i], ==, orr_json_bool(node) ? "true" : "false");
    }
    g_autoptr(GString) row = g_string_new(NULL);
    report_write_csv(&f->report, false, row);
    g_assert_true(g_str_has_suffix(csv->str, row->str));
    orr_json_free(doc);
    fixture_free(f);
}

static void assert_page(const char *text)
{
    g_assert_true(g_utf8_validate(text, -1, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        if (g_utf8_strlen(*line, -1) > REPORT_PAGE_WIDTH)
            g_error("%ld columns: %s", g_utf8_strlen(*line, -1), *line);
    }
}

static void test_text_says_it(void)
{
    Fixture *f = fixture_new();
    g_autoptr(GString) out = g_string_new(NULL);
    report_write_text(&f->report, out);
    assert_page(out->str);
    static const char *const said[] = {"two \"stages\"",
                                       "STEP 64",
                                       "229,064 tokens/s",
                                       "51.2 %",
                                       "tp4 sp pp2 dp2",
                                       "1,536 sequences of 2,048 tokens",
                                       "Fits:",
                                       "33.9 days",
                                       "13,018 GPU-hours",
                                       "0123456789abcdef",
                                       "training: optimizer=adam"};
    for (gsize i = 0; i < G_N_ELEMENTS(said); i++) {
        if (strstr(out->str, said[i]) == NULL)
            g_error("\"%s\" is missing in\n%s", said[i], out->str);
    }
    f->report.fits = false;
    f->report.memory_verdict = REPORT_MEMORY_NONE;
    f->report.short_bytes = 3 * GIB;
    g_string_truncate(out, 0);
    report_write_text(&f->report, out);
    g_assert_nonnull(strstr(out->str, "DOES NOT FIT: stage 0 lacks 3.00 GiB"));
    fixture_free(f);
}

/* Long names, long pipelines, huge and tiny numbers: never wider than the page, never endless. */
static void test_text_stays_on_the_page(void)
{
    Fixture *f = fixture_new();
    memset(f->spec.name, 'x', sizeof f->spec.name - 1);
    memset(f->spec.model.name, 'y', sizeof f->spec.model.name - 1);
    memset(f->spec.cluster.name, 'z', sizeof f->spec.cluster.name - 1);
    f->spec.name[5] = '\n'; /* a name cannot break the page */
    for (int i = 0; i < 200; i++)
        g_ptr_array_add(f->source.defaulted, "execution.framework.host.kernel_host_s=0.000005");
    fill_stages(f, 64);
    const int64_t steps_ps[] = {0, 1, 5 * MS, INT64_C(9000000000000000000)};
    for (gsize i = 0; i < G_N_ELEMENTS(steps_ps); i++) {
        memset(f->report.part_ps, 0, sizeof f->report.part_ps);
        f->report.bubble_ps = steps_ps[i] / 3;
        f->report.part_ps[SIM_PART_COMPUTE] = steps_ps[i] - steps_ps[i] / 3;
        f->report.step_ps = steps_ps[i];
        g_autoptr(GString) out = g_string_new(NULL);
        report_write_text(&f->report, out);
        assert_page(out->str);
        g_assert_nonnull(strstr(out->str, "of 64 stages shown"));
        g_assert_true(g_str_has_prefix(out->str, "xxxxx?xxxxx"));
    }
    fixture_free(f);
}

static void test_text_collapses_equal_stages(void)
{
    Fixture *f = fixture_new();
    fill_stages(f, 8);
    for (int i = 1; i < 7; i++) {
        f->stages[i] = f->stages[1];
        f->stages[i].stage = i;
    }
    g_autoptr(GString) out = g_string_new(NULL);
    report_write_text(&f->report, out);
    g_assert_nonnull(strstr(out->str, "1 to 6"));
    g_assert_null(strstr(out->str, "stages shown"));
    fixture_free(f);
}

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

static void test_apportion(void)
{
    for (int round = 0; round < 2000; round++) {
        int64_t values[7], units[7], total = 0, sum = 0;
        for (int i = 0; i < 7; i++) {
            values[i] = g_test_rand_int_range(0, 4) == 0 ? 0 : g_test_rand_int_range(1, G_MAXINT32);
            total += values[i];
        }
        const int64_t wanted = g_test_rand_int_range(1, 5000);
        report_page_apportion(values, 7, total, wanted, units);
        for (int i = 0; i < 7; i++) {
            const double exact = total > 0 ? (double)values[i] / (double)total * (double)wanted : 0.0;
            g_assert_cmpfloat(ABS((double)units[i] - exact), <, 1.0);
            sum += units[i];
        }
        g_assert_cmpint(sum, ==, total > 0 ? wanted : 0);
    }
}

static void test_whole(void)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},
                 {7, "7"},
                 {999, "999"},
                 {1000, "1,000"},
                 {-1234567, "-1,234,567"},
                 {999.6, "1,000"},
                 {1e15, "1,000,000,000,000,000"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        char text[ORR_TEXT_SIZE];
        g_assert_cmpstr(report_page_whole(text, cases[i].value), ==, cases[i].text);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/report/json/keys", test_json_keys);
    g_test_add_func("/report/json/times-add-up", test_json_times_add_up);
    g_test_add_func("/report/json/chosen", test_json_chosen);
    g_test_add_func("/report/csv/is-the-json", test_csv_is_the_json);
    g_test_add_func("/report/text/says-it", test_text_says_it);
    g_test_add_func("/report/text/stays-on-the-page", test_text_stays_on_the_page);
    g_test_add_func("/report/text/collapses-equal-stages", test_text_collapses_equal_stages);
    g_test_add_func("/report/trace/events", test_trace);
    g_test_add_func("/report/trace/arrows", test_trace_arrows);
    g_test_add_func("/report/memory/csv", test_memory_csv);
    g_test_add_func("/report/page/apportion", test_apportion);
    g_test_add_func("/report/page/whole", test_whole);
    return g_test_run();
}
