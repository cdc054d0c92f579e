/* tests/unit/study/test_trace_predict.c - the kernels of a simulated step: they fill its passes, are those of the op lists, and a
 * trace of them is read back as it was. */
#include <math.h>
#include <string.h>

#include "report/kernels.h"
#include "study/trace_answer.h"
#include "study/trace_predict.h"
#include "tests/unit/run_fixture.h"

static const ReportOptions spans = {.record = SIM_RECORD_SPANS, .ideal = true};

/* Pipelines of either kind, sharded weights, offload, experts, one GPU, costs of layers without kernels. */
static const char *const examples[] = {"naive-4gpu",    "deepseek-v3-pair", "superoffload_gh200",
                                       "fsdp_8b_8h100", "gpt2-xl-1gpu",     "llama3-8b-dpo",
                                       "moe-by-layer",  "alexnet_2gpu"};

static void check_kernel(const TraceRank *a, const TraceRank *b, guint i)
{
    const TraceKernel *one = trace_kernel(a, i), *other = trace_kernel(b, i);
    g_assert_cmpint(one->begin_ps, ==, other->begin_ps);
    g_assert_cmpint(one->dur_ps, ==, other->dur_ps);
    g_assert_cmpint(one->launch_ps, ==, other->launch_ps);
    g_assert_cmpint(one->stream, ==, other->stream);
    g_assert_cmpint(one->ranks, ==, other->ranks);
    g_assert_cmpfloat(fabs(one->bytes - other->bytes), <=, 0.5 * MAX(one->ranks, 1));
    g_assert_cmpint(trace_kernel_class(a, one), ==, trace_kernel_class(b, other));
    g_assert_cmpstr(g_array_index(a->names, TraceName, one->name).text, ==,
                    g_array_index(b->names, TraceName, other->name).text);
    const TraceOp *op = &g_array_index(a->ops, TraceOp, one->op),
                  *read = &g_array_index(b->ops, TraceOp, other->op);
    g_assert_cmpstr(op->name, ==, read->name);
    g_assert_cmpstr(op->dims, ==, read->dims);
}

/* Written and read again it is the same, so that every sum of it is. */
static void test_round_trip(void)
{
    TraceTable *table = trace_table_load(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(examples); i++) {
        Run *run = run_example(examples[i], NULL, &spans);
        TraceRank *rank = trace_predict(&run->report, run->report.plan.shape.ranks - 1);
        g_autoptr(GString) text = g_string_new(NULL);
        GError *error = NULL;
        trace_rank_write(rank, run_put, text);
        OrrJsonDoc *doc =
            rank->kernels->len < 4000 ? orr_json_parse(text->str, text->len, "t.json", &error) : NULL;
        g_assert_no_error(error); /* strict JSON */
        orr_json_free(doc);
        TraceRank *read = trace_rank_parse(text->str, text->len, "t.json", table, &error);
        g_assert_no_error(error);
        g_assert_cmpint(read->kernels->len, ==, rank->kernels->len);
        g_assert_cmpint(read->rank, ==, rank->rank);
        g_assert_cmpint(read->world, ==, rank->world);
        for (guint k = 0; k < rank->kernels->len; k++)
            check_kernel(rank, read, k);
        g_autoptr(GPtrArray) ranks = g_ptr_array_new();
        g_ptr_array_add(ranks, read);
        TraceAnswer answer = trace_answer(ranks, rank);
        g_assert_cmpfloat(answer.absolute_s, ==, 0);
        g_assert_cmpfloat(answer.measured.step_s, ==, answer.predicted.step_s);
        g_assert_cmpfloat(answer.unmatched_measured_s + answer.unmatched_predicted_s, ==, 0);
        trace_answer_clear(&answer);
        trace_rank_free(read);
        trace_rank_free(rank);
        run_free(run);
    }
    trace_table_free(table);
}

/* Kernels of the compute stream follow each other inside the step, which is the simulated one. */
static void test_order(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(examples); i++) {
        Run *run = run_example(examples[i], NULL, &spans);
        TraceRank *rank = trace_predict(&run->report, 0);
        int64_t end_ps = 0;
        for (guint k = 0; k < rank->kernels->len; k++) {
            const TraceKernel *kernel = trace_kernel(rank, k);
            g_assert_cmpint(kernel->begin_ps, >=, 0);
            if (kernel->stream != 7)
                continue;
            g_assert_cmpint(kernel->begin_ps, >=, end_ps - 1);
            end_ps = kernel->begin_ps + kernel->dur_ps;
            g_assert_cmpint(end_ps, <=, run->report.result.end_ps + 1);
        }
        g_assert_cmpfloat_with_epsilon(trace_sums(rank).step_s, (double)report_ideal_ps(&run->report) * 1e-12,
                                       1e-3 * (double)run->report.step_ps * 1e-12);
        trace_rank_free(rank);
        run_free(run);
    }
}

/* One pass alone lasts as long as its span at least, and its kernels are those of that time in the whole step. */
static void test_pass(void)
{
    static const SimTag tags[] = {SIM_TAG_FORWARD, SIM_TAG_BACKWARD, SIM_TAG_FORWARD_BACKWARD};
    Run *run = run_example("deepseek-v3-pair", NULL, &spans);
    const int middle = run->report.plan.shape.ranks / 2;
    TraceRank *whole = trace_predict(&run->report, middle);
    double exchanges_s[G_N_ELEMENTS(tags)];
    for (gsize i = 0; i < G_N_ELEMENTS(tags); i++) {
        TraceRank *pass = trace_predict_pass(&run->report, middle, tags[i]);
        const TraceStep step = g_array_index(pass->steps, TraceStep, 0);
        double all_s[TRACE_CLASSES] = {0};
        for (guint k = 0; k < whole->kernels->len; k++) {
            const TraceKernel *kernel = trace_kernel(whole, k);
            if (kernel->begin_ps >= step.begin_ps && kernel->begin_ps < step.end_ps)
                all_s[trace_kernel_class(whole, kernel)] += (double)kernel->dur_ps * 1e-12;
        }
        const TraceSums sums = trace_sums(pass);
        /* an exchange that nobody waits for may end behind the pass */
        g_assert_cmpfloat(sums.step_s, >=, (double)(step.end_ps - step.begin_ps) * 1e-12 - 1e-9);
        g_assert_cmpfloat_with_epsilon(sums.class_s[TRACE_PRODUCTS], all_s[TRACE_PRODUCTS], 1e-9);
        g_assert_cmpfloat_with_epsilon(sums.class_s[TRACE_ATTENTION], all_s[TRACE_ATTENTION], 1e-9);
        exchanges_s[i] = sums.class_s[TRACE_ALL_TO_ALL];
        trace_rank_free(pass);
    }
    trace_rank_free(whole);
    run_free(run);
    /* Those of a pair hide, at the pace that they have beside compute. */
    double alone_s = 0;
    run = run_example("deepseek-v3-pair", "execution.overlap=[\"grad_reduce\",\"param_gather\"]", &spans);
    for (int i = 0; i < 2; i++) {
        TraceRank *pass = trace_predict_pass(&run->report, middle, tags[i]);
        alone_s += trace_sums(pass).class_s[TRACE_ALL_TO_ALL];
        trace_rank_free(pass);
    }
    g_assert_cmpfloat_with_epsilon(exchanges_s[2] / alone_s, 1.5, 1e-3);
    run_free(run);
    run = run_example("fsdp_8b_8h100", NULL, &spans);
    g_assert_null(trace_predict_pass(&run->report, 0, SIM_TAG_FORWARD_BACKWARD));
    run_free(run);
}

typedef struct Sums {
    double class_s[2]; /* products, attention */
} Sums;

static void add_op(const CostOp *op, double seconds, int count, void *data)
{
    Sums *sums = data;
    if (op->kind == COST_OP_GEMM || op->kind == COST_OP_ATTENTION)
        sums->class_s[op->kind == COST_OP_ATTENTION] += seconds * count;
}

/* On one GPU without recomputation products and attention are those of the lists, once a micro-batch. */
static void test_kernels(void)
{
    Run *run = run_example("gpt2-xl-1gpu", "training.recompute=none", &spans);
    Sums listed = {{0}};
    report_visit_kernels(&run->report, add_op, &listed);
    TraceRank *rank = trace_predict(&run->report, 0);
    const TraceSums sums = trace_sums(rank);
    const double microbatches = (double)spec_microbatches(run->spec);
    g_assert_cmpfloat_with_epsilon(sums.class_s[TRACE_PRODUCTS], microbatches * listed.class_s[0],
                                   1e-3 * sums.class_s[TRACE_PRODUCTS]);
    g_assert_cmpfloat_with_epsilon(sums.class_s[TRACE_ATTENTION], microbatches * listed.class_s[1],
                                   1e-3 * sums.class_s[TRACE_ATTENTION]);
    trace_rank_free(rank);
    run_free(run);
}

static void test_rank(void)
{
    Run *run = run_example("gpt3-175b-interleaved", NULL, &spans);
    const Report *report = &run->report;
    const int stage_gpus = report->gpus / report->plan.shape.ranks;
    g_assert_cmpint(trace_pipeline_rank(report, 0, report->gpus), ==, 0);
    g_assert_cmpint(trace_pipeline_rank(report, stage_gpus, report->gpus), ==, 1);
    g_assert_cmpint(trace_pipeline_rank(report, report->gpus - 1, report->gpus), ==,
                    report->plan.shape.ranks - 1);
    g_assert_cmpint(trace_pipeline_rank(report, stage_gpus, report->gpus * 2), ==, 0);
    run_free(run);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/study/trace_predict/round_trip", test_round_trip);
    g_test_add_func("/study/trace_predict/order", test_order);
    g_test_add_func("/study/trace_predict/pass", test_pass);
    g_test_add_func("/study/trace_predict/kernels", test_kernels);
    g_test_add_func("/study/trace_predict/rank", test_rank);
    return g_test_run();
}
