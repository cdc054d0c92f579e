/* unit/step/test_frozen.c - what holds of frozen weights in a run, and that a run which breaks any of it is told so: each case
 * spoils one figure of a run that was fine. */
#include <string.h>

#include "report/report.h"
#include "spec/load.h"
#include "step/frozen.h"

typedef struct Run {
    Spec spec;
    Report report;
    OrrArena *arena;
} Run;

/* Llama 2 7B on 8 H100, replicated or sharded. */
static Run *run_of(const char *training, const char *parallel)
{
    static const ReportOptions checked = {.check = true, .record = SIM_RECORD_SPANS | SIM_RECORD_LEVELS};
    Run *run = g_new0(Run, 1);
    GError *error = NULL;
    g_autofree char *text = g_strdup_printf(
        "{\"model\":\"llama2-7b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},\"training\":{"
        "\"sequence_length\":1024,\"global_batch\":32,\"micro_batch\":1,%s},\"parallel\":{%s},"
        "\"execution\":{\"framework\":\"pytorch-fsdp2\"}}",
        training, parallel);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "test", NULL, false, &run->spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    run->arena = orr_arena_new();
    report_run(&run->spec, NULL, &checked, run->arena, &run->report, &error);
    g_assert_no_error(error);
    return run;
}

static void run_free(Run *run)
{
    orr_arena_free(run->arena);
    g_free(run);
}

#define LORA "\"task\":\"lora\",\"adapter\":{\"rank\":16,\"targets\":\"all-linear\"}"
#define HALF "\"freeze\":{\"layers\":16,\"embedding\":true}"

/* More goes out than the gradients of what is trained. */
static void reduce_all(Run *run)
{
    SimWork *works =
        g_memdup2(run->report.program.works, (gsize)run->report.program.work_count * sizeof *works);
    for (int64_t i = 0; i < run->report.result.span_count; i++)
        if (run->report.result.spans[i].tag == SIM_TAG_GRAD_REDUCE) {
            works[run->report.result.spans[i].work].scale_up_bytes *= 2;
            break;
        }
    run->report.program.works = works;
}

static SimClass *own_classes(Run *run)
{
    SimClass *classes =
        g_memdup2(run->report.program.class_list, (gsize)run->report.program.classes * sizeof *classes);
    run->report.program.class_list = classes;
    return classes;
}

/* Optimizer states and gradients of all weights. */
static void update_all(Run *run)
{
    own_classes(run)->static_bytes[SIM_MEM_OPTIMIZER] += (int64_t)1 << 36;
}

static void grade_all(Run *run)
{
    own_classes(run)->static_bytes[SIM_MEM_GRADIENTS] += (int64_t)1 << 36;
}

static void drop(Run *run)
{
    own_classes(run)->static_bytes[SIM_MEM_WEIGHTS] /= 10;
}

static void leave(Run *run)
{
    run->report.result.levels[run->report.result.level_count / 2].bytes[SIM_MEM_WEIGHTS] -= (int64_t)1 << 36;
}

/* More than is gathered. */
static void widen(Run *run)
{
    run->report.result.levels[run->report.result.level_count / 2].bytes[SIM_MEM_WEIGHTS] += (int64_t)1 << 36;
}

static void grade(Run *run)
{
    run->report.result.levels[run->report.result.level_count / 2].bytes[SIM_MEM_GRADIENTS] += (int64_t)1
                                                                                              << 36;
}

static void test_spoiled(void)
{
    static const struct {
        void (*spoil)(Run *run);
        const char *says;
    } cases[] = {{reduce_all, "bytes of gradients of stage"},
                 {update_all, "bytes of optimizer states"},
                 {grade_all, "bytes of gradients, its"},
                 {drop, "the frozen ones alone"},
                 {leave, "bytes of weights at"},
                 {widen, "gathered or fetched"},
                 {grade, "more than its trained weights have"}};
    static const char *const trainings[] = {LORA, HALF};
    static const char *const splits[] = {"\"data\":8,\"zero\":0", "\"data\":8,\"zero\":3",
                                         "\"data\":2,\"tensor\":2,\"pipeline\":2,\"zero\":1"};
    for (gsize t = 0; t < G_N_ELEMENTS(trainings); t++)
        for (gsize s = 0; s < G_N_ELEMENTS(splits); s++)
            for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
                Run *run = run_of(trainings[t], splits[s]);
                Report *report = &run->report;
                g_autoptr(GError) error = NULL;
                const SimWork *works = report->program.works;
                const SimClass *classes = report->program.class_list;
                step_check_frozen(&run->spec, &report->plan, &report->program, &report->result, &error);
                g_assert_no_error(error);
                cases[i].spoil(run);
                g_assert_false(
                    step_check_frozen(&run->spec, &report->plan, &report->program, &report->result, &error));
                g_test_message("%s", error->message);
                g_assert_nonnull(strstr(error->message, cases[i].says));
                if (report->program.works != works)
                    g_free((void *)report->program.works);
                if (report->program.class_list != classes)
                    g_free((void *)report->program.class_list);
                run_free(run);
            }
}

/* Where all is trained there is nothing to hold. */
static void test_all_trained(void)
{
    Run *run = run_of("\"task\":\"sft\"", "\"data\":8,\"zero\":0");
    leave(run);
    g_assert_true(
        step_check_frozen(&run->spec, &run->report.plan, &run->report.program, &run->report.result, NULL));
    run_free(run);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/frozen/spoiled", test_spoiled);
    g_test_add_func("/frozen/all-trained", test_all_trained);
    return g_test_run();
}
