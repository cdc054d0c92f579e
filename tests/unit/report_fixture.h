/* tests/unit/report_fixture.h - a report filled by hand. */
#ifndef ORR_TESTS_REPORT_FIXTURE_H
#define ORR_TESTS_REPORT_FIXTURE_H

#include <string.h>

#include "base/json.h"
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
    SimOp ops[8];
    int32_t op_count;
    SimWork works[3];
    SimSpan spans[6];
    SimLevel levels[3];
    SimRankResult ranks[2];
} Fixture;

static inline SimInstr op(Fixture *f, SimTag tag, int work, int stage)
{
    f->ops[f->op_count] =
        (SimOp){.kind = SIM_OP, .tag = (uint8_t)tag, .work = work, .mem = -1, .stage = stage};
    return (SimInstr){.op = f->op_count++};
}

static inline SimInstr wait_for(int class, SimStream stream, int index)
{
    return (SimInstr){.op = SIM_ONLY_WAITS,
                      .wait_on = sim_wait_on(class, (int)stream),
                      .wait_count = index + 1,
                      .microbatch = -1};
}

static inline void put(Fixture *f, int class, SimStream stream, SimInstr instr)
{
    SimList *list = &f->classes[class].streams[stream];
    list->instrs = f->instrs[class][stream];
    f->instrs[class][stream][list->count++] = instr;
}

static inline void fill_program(Fixture *f)
{
    f->works[0].part_ps[SIM_PART_COMPUTE] = 9 * MS;
    f->works[0].part_ps[SIM_PART_TENSOR_COMM] = MS;
    f->works[1].part_ps[SIM_PART_PIPELINE_COMM] = 2 * MS + 1;
    f->works[2].part_ps[SIM_PART_COMPUTE] = 20 * MS;
    put(f, 0, SIM_STREAM_COMPUTE, op(f, SIM_TAG_FORWARD, 0, 0));
    put(f, 0, SIM_STREAM_SEND_NEXT, wait_for(-1, SIM_STREAM_COMPUTE, 0));
    put(f, 0, SIM_STREAM_SEND_NEXT, op(f, SIM_TAG_SEND_FORWARD, 1, 0));
    put(f, 1, SIM_STREAM_COMPUTE, wait_for(0, SIM_STREAM_SEND_NEXT, 1));
    put(f, 1, SIM_STREAM_COMPUTE, op(f, SIM_TAG_FORWARD, 0, 1));
    put(f, 1, SIM_STREAM_COMPUTE, op(f, SIM_TAG_BACKWARD, 2, 1));
    put(f, 1, SIM_STREAM_SEND_PREV, wait_for(-1, SIM_STREAM_COMPUTE, 2));
    put(f, 1, SIM_STREAM_SEND_PREV, op(f, SIM_TAG_SEND_BACKWARD, 1, 1));
    put(f, 0, SIM_STREAM_COMPUTE, wait_for(1, SIM_STREAM_SEND_PREV, 1));
    put(f, 0, SIM_STREAM_COMPUTE, op(f, SIM_TAG_BACKWARD, 2, 0));
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
    f->report.program = (SimProgram){.classes = 2,
                                     .replicas = 1,
                                     .class_list = f->classes,
                                     .ops = f->ops,
                                     .op_count = f->op_count,
                                     .works = f->works,
                                     .work_count = 3};
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

static inline void fill_spec(Spec *spec)
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

static inline void fill_stages(Fixture *f, int count)
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

static inline Fixture *fixture_new(void)
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

static inline void fixture_free(Fixture *f)
{
    g_ptr_array_free(f->source.profiles, TRUE);
    g_ptr_array_free(f->source.defaulted, TRUE);
    g_free(f);
}

static inline const char *line_of(const char *text, const char *needle)
{
    const char *found = strstr(text, needle);
    g_assert_nonnull(found);
    return found;
}

/* The picoseconds written behind "key": ... as text, not through a double. */
static inline int64_t ps_of(const char *text, const char *key)
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

static inline OrrJsonDoc *parse(const GString *text)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text->str, text->len, "report", &error);
    g_assert_no_error(error);
    return doc;
}

static inline double number_at(const OrrJson *object, const char *key)
{
    const OrrJson *node = orr_json_member(object, key);
    g_assert_nonnull(node);
    g_assert_cmpint(orr_json_type(node), ==, ORR_JSON_NUMBER);
    return orr_json_number(node);
}

#endif
