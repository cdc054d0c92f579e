/* tests/unit/study/test_trace_answer.c - a trace added up: hand-worked classes and waterfalls. */
#include <math.h>
#include <string.h>

#include "study/trace_answer.h"

static void add(TraceRank *rank, const char *name, TraceClass kind, double begin_us, double dur_us,
                double launch_us)
{
    TraceKernel kernel = {.begin_ps = (int64_t)(begin_us * 1e6),
                          .dur_ps = (int64_t)(dur_us * 1e6),
                          .launch_ps = launch_us < 0 ? TRACE_NO_LAUNCH : (int64_t)(launch_us * 1e6),
                          .name = trace_rank_name(rank, name, kind),
                          .op = -1};
    g_array_append_val(rank->kernels, kernel);
}

static void is_us(double seconds, double us)
{
    g_assert_cmpfloat_with_epsilon(seconds * 1e6, us, 1e-6);
}

/*  us   0    10   20   30   40   50   60   70   80
 *  gemm ##########     ##########
 *  nccl      ###wwww=========           (waits 10 of 25)
 *  copy                          #####            ####
 */
static TraceRank *example(void)
{
    TraceRank *rank = trace_rank_new("a.json");
    add(rank, "gemm", TRACE_PRODUCTS, 0, 10, -1);
    add(rank, "nccl", TRACE_ALL_REDUCE, 5, 25, -1);
    g_array_index(rank->kernels, TraceKernel, 1).wait_ps = 10000000;
    add(rank, "gemm", TRACE_PRODUCTS, 20, 10, 1);
    add(rank, "copy", TRACE_COPIES, 35, 5, 32); /* launched when nothing ran any more: the host was late */
    add(rank, "norm", TRACE_NORMS, 50, 4, 36);  /* launched long before: a gap */
    return rank;
}

static void test_sums(void)
{
    TraceRank *rank = example();
    const TraceSums sums = trace_sums(rank);
    g_assert_cmpint(sums.steps, ==, 1);
    g_assert_false(sums.marked);
    is_us(sums.step_s, 54);
    is_us(sums.class_s[TRACE_PRODUCTS], 20);
    is_us(sums.class_s[TRACE_ALL_REDUCE], 25);
    is_us(sums.class_busy_s[TRACE_PRODUCTS], 20);
    is_us(sums.class_busy_s[TRACE_ALL_REDUCE], 25); /* waiting too */
    is_us(sums.fall_s[TRACE_FALL_COMPUTE], 24);
    is_us(sums.fall_s[TRACE_FALL_SKEW], 5);          /* 10 to 15; from 5 on beside a product */
    is_us(sums.fall_s[TRACE_FALL_COMMUNICATION], 5); /* 15 to 20 */
    is_us(sums.fall_s[TRACE_FALL_COPIES], 5);
    is_us(sums.fall_s[TRACE_FALL_HOST], 5);
    is_us(sums.fall_s[TRACE_FALL_GAPS], 10);
    is_us(sums.communication_s, 25);
    is_us(sums.beside_s, 15);
    trace_rank_free(rank);
}

/* Two streams multiply at once, from 10 to 20. */
static void test_at_once(void)
{
    TraceRank *rank = trace_rank_new("a.json");
    g_autoptr(GPtrArray) ranks = g_ptr_array_new();
    g_autoptr(GString) text = g_string_new(NULL);
    g_ptr_array_add(ranks, rank);
    add(rank, "gemm", TRACE_PRODUCTS, 0, 20, -1);
    add(rank, "gemm", TRACE_PRODUCTS, 10, 25, -1);
    add(rank, "norm", TRACE_NORMS, 12, 3, -1);
    TraceAnswer answer = trace_answer(ranks, NULL);
    is_us(answer.measured.class_s[TRACE_PRODUCTS], 45);
    is_us(answer.measured.class_busy_s[TRACE_PRODUCTS], 35);
    is_us(answer.measured.class_busy_s[TRACE_NORMS], 3);
    trace_answer_text(&answer, text);
    g_assert_nonnull(strstr(text->str, "Of products several run at once: one or more run for 0.035 ms."));
    g_assert_null(strstr(text->str, "Of norms"));
    trace_answer_clear(&answer);
    trace_rank_free(rank);
}

/* Kernels at whole microseconds, many at one time: the waterfall is that of looking at every microsecond. */
static void test_instants(void)
{
    enum { US = 200, KERNELS = 60 };
    GRand *draws = g_rand_new_with_seed(7);
    for (int round = 0; round < 50; round++) {
        int running[4][US + 1] = {{0}}, falls[TRACE_FALLS] = {0}, last = 0, first = US;
        TraceRank *rank = trace_rank_new("random");
        for (int i = 0; i < KERNELS; i++) {
            const int begin = g_rand_int_range(draws, 0, US - 20), dur = g_rand_int_range(draws, 0, 5);
            const int kind = g_rand_int_range(draws, 0, 3),
                      wait = kind == 1 ? g_rand_int_range(draws, 0, dur + 1) : 0;
            static const TraceClass kinds[] = {TRACE_PRODUCTS, TRACE_ALL_REDUCE, TRACE_COPIES};
            add(rank, "kernel", kinds[kind], begin, dur, -1);
            g_array_index(rank->kernels, TraceKernel, i).wait_ps = wait * 1000000;
            for (int us = begin; us < begin + dur; us++)
                running[kind == 1 && us < begin + wait ? 3 : kind][us]++;
            first = MIN(first, begin);
            last = MAX(last, begin + dur);
        }
        for (int us = first; us < last; us++)
            falls[running[0][us] > 0   ? TRACE_FALL_COMPUTE
                  : running[1][us] > 0 ? TRACE_FALL_COMMUNICATION
                  : running[3][us] > 0 ? TRACE_FALL_SKEW
                  : running[2][us] > 0 ? TRACE_FALL_COPIES
                                       : TRACE_FALL_GAPS]++;
        trace_rank_sort(rank);
        for (guint i = 1; i < rank->kernels->len; i++)
            g_assert_cmpint(trace_kernel(rank, i - 1)->begin_ps, <=, trace_kernel(rank, i)->begin_ps);
        const TraceSums sums = trace_sums(rank);
        for (int fall = 0; fall < TRACE_FALLS; fall++)
            is_us(sums.fall_s[fall], falls[fall]);
        trace_rank_free(rank);
    }
    g_rand_free(draws);
    g_assert_cmpuint(sizeof(TraceKernel), <=, 64); /* 1 GB of a trace has two millions of them */
}

/* Kernels belong to the step that launched them; what lies before and behind the marks is left out. */
static void test_steps(void)
{
    TraceRank *rank = trace_rank_new("a.json");
    const TraceStep steps[] = {{4, 100000000, 200000000}, {5, 200000000, 300000000}};
    g_array_append_vals(rank->steps, steps, 2);
    add(rank, "gemm", TRACE_PRODUCTS, 90, 50, 80); /* warm-up */
    add(rank, "gemm", TRACE_PRODUCTS, 150, 30, 110);
    add(rank, "gemm", TRACE_PRODUCTS, 190, 40, 190);
    add(rank, "gemm", TRACE_PRODUCTS, 310, 20, 290); /* runs behind the mark, launched before */
    add(rank, "gemm", TRACE_PRODUCTS, 340, 20, 305);
    TraceSums sums = trace_sums(rank);
    g_assert_cmpint(sums.steps, ==, 2);
    is_us(sums.class_s[TRACE_PRODUCTS], 45);
    /* the kernels' window, 150 to 330, is shorter than the host's 200 */
    is_us(sums.step_s, 100);
    is_us(sums.fall_s[TRACE_FALL_COMPUTE], 45);
    is_us(sums.fall_s[TRACE_FALL_HOST], (10 + 80 + 20) / 2.0);
    trace_rank_free(rank);
}

static void test_answer(void)
{
    TraceRank *measured = example(), *predicted = trace_rank_new("p.json");
    g_autoptr(GPtrArray) ranks = g_ptr_array_new();
    g_ptr_array_add(ranks, measured);
    add(predicted, "product", TRACE_PRODUCTS, 0, 14, -1);
    add(predicted, "all-reduce", TRACE_ALL_REDUCE, 14, 22, -1);
    add(predicted, "copy", TRACE_COPIES, 36, 5, -1);
    add(predicted, "embedding", TRACE_ELEMENTWISE, 41, 4, -1);
    TraceAnswer answer = trace_answer(ranks, predicted);
    /* products -6, all-reduces +7 on the 15 that it does not wait, norms -4, element-wise +4 */
    is_us(answer.error_s, 1);
    is_us(answer.absolute_s, 21);
    g_assert_true(answer.cancelled);
    is_us(answer.unmatched_measured_s, 20 + 4); /* products of other names, norms */
    is_us(answer.unmatched_predicted_s, 14 + 4);
    g_autoptr(GString) text = g_string_new(NULL), json = g_string_new(NULL), csv = g_string_new(NULL);
    trace_answer_text(&answer, text);
    trace_answer_json(&answer, json);
    trace_answer_csv(&answer, csv);
    g_assert_nonnull(strstr(text->str, "right by cancellation"));
    g_assert_nonnull(strstr(text->str, "Collectives wait 0.010 ms besides"));
    g_assert_nonnull(strstr(json->str, "\"cancelled\": true"));
    g_assert_nonnull(strstr(json->str, "\"wait_s\": 1e-05"));
    g_assert_nonnull(strstr(csv->str, "class,all-reduce,1,1.5e-05,2.2e-05,0.466"));
    trace_answer_clear(&answer);

    answer = trace_answer(ranks, measured); /* beside itself */
    g_assert_cmpfloat(answer.absolute_s, ==, 0);
    g_assert_false(answer.cancelled);
    g_assert_cmpfloat(answer.unmatched_measured_s + answer.unmatched_predicted_s, ==, 0);
    trace_answer_clear(&answer);
    trace_rank_free(measured);
    trace_rank_free(predicted);
}

static void add_product(TraceRank *rank, const char *dims, double begin_us, double dur_us)
{
    add(rank, "gemm", TRACE_PRODUCTS, begin_us, dur_us, -1);
    g_array_index(rank->kernels, TraceKernel, rank->kernels->len - 1).op =
        trace_rank_op(rank, "aten::mm", dims, "");
}

static const TraceOpRow *find_row(const TraceAnswer *answer, const char *text)
{
    for (guint i = 0; i < answer->ops->len; i++)
        if (g_str_equal(g_array_index(answer->ops, TraceOpRow, i).text, text))
            return &g_array_index(answer->ops, TraceOpRow, i);
    return NULL;
}

/* Without shapes the n-th product of each of two steps is the n-th predicted; with one more of them nobody knows which. */
static void test_by_order(void)
{
    TraceRank *predicted = trace_rank_new("p"), *measured = trace_rank_new("m");
    const TraceStep steps[] = {{0, 0, 100000000}, {1, 100000000, 200000000}};
    g_autoptr(GPtrArray) ranks = g_ptr_array_new();
    g_ptr_array_add(ranks, measured);
    add_product(predicted, "[[8,4],[4,2]]", 0, 10);
    add_product(predicted, "[[8,2],[2,6]]", 10, 30);
    g_array_append_vals(measured->steps, steps, 2);
    add(measured, "nvjet_a", TRACE_PRODUCTS, 0, 12, -1);
    add(measured, "nvjet_b", TRACE_PRODUCTS, 20, 33, -1);
    add(measured, "nvjet_a", TRACE_PRODUCTS, 100, 14, -1);
    add(measured, "nvjet_b", TRACE_PRODUCTS, 120, 37, -1);
    TraceAnswer answer = trace_answer(ranks, predicted);
    const TraceOpRow *first = find_row(&answer, "products 8x2x4"),
                     *second = find_row(&answer, "products 8x6x2");
    g_assert_nonnull(first);
    g_assert_nonnull(second);
    is_us(first->measured_s, 13);
    is_us(second->measured_s, 35);
    is_us(answer.unmatched_measured_s, 0);
    trace_answer_clear(&answer);
    add(measured, "nvjet_c", TRACE_PRODUCTS, 180, 1, -1);
    answer = trace_answer(ranks, predicted);
    is_us(answer.unmatched_measured_s, (12 + 33 + 14 + 37 + 1) / 2.0);
    trace_answer_clear(&answer);
    trace_rank_free(predicted);
    trace_rank_free(measured);
}

/* Two recordings: products by their sizes whatever their kernels are, all else by the kernel's name; the mean of the other's
 * ranks. */
static void test_beside(void)
{
    TraceRank *before = trace_rank_new("before"), *after[2];
    g_autoptr(GPtrArray) ranks = g_ptr_array_new(), others = g_ptr_array_new();
    g_ptr_array_add(ranks, before);
    add_product(before, "[[8,4],[4,2]]", 0, 10);
    add(before, "gelu", TRACE_ELEMENTWISE, 10, 4, -1);
    add(before, "copy", TRACE_ELEMENTWISE, 14, 3, -1);
    for (int i = 0; i < 2; i++) {
        after[i] = trace_rank_new("after");
        g_ptr_array_add(others, after[i]);
        add_product(after[i], "[[8,4],[4,2]]", 0, 6 + 2 * i);
        add(after[i], "gelu", TRACE_ELEMENTWISE, 8, 5, -1);
        add(after[i], "fused", TRACE_ELEMENTWISE, 13, 1, -1);
    }
    TraceAnswer answer = trace_answer_beside(ranks, others);
    g_autoptr(GString) text = g_string_new(NULL), json = g_string_new(NULL), csv = g_string_new(NULL);
    is_us(find_row(&answer, "products 8x2x4")->predicted_s, 7);
    is_us(find_row(&answer, "elementwise gelu")->measured_s, 4);
    is_us(find_row(&answer, "elementwise gelu")->predicted_s, 5);
    is_us(answer.unmatched_measured_s, 3);
    is_us(answer.unmatched_predicted_s, 1);
    is_us(answer.predicted.step_s, 14);
    trace_answer_text(&answer, text);
    trace_answer_json(&answer, json);
    trace_answer_csv(&answer, csv);
    g_assert_nonnull(strstr(text->str, "beside (ms)"));
    g_assert_null(strstr(text->str, "predicted"));
    g_assert_null(strstr(json->str, "predicted"));
    g_assert_nonnull(strstr(json->str, "\"change_frac\": -0.3"));
    g_assert_nonnull(strstr(csv->str, "measured_s,beside_s,change_frac"));
    trace_answer_clear(&answer);
    trace_rank_free(before);
    trace_rank_free(after[0]);
    trace_rank_free(after[1]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/study/trace/sums", test_sums);
    g_test_add_func("/study/trace/at-once", test_at_once);
    g_test_add_func("/study/trace/instants", test_instants);
    g_test_add_func("/study/trace/steps", test_steps);
    g_test_add_func("/study/trace/answer", test_answer);
    g_test_add_func("/study/trace/by-order", test_by_order);
    g_test_add_func("/study/trace/beside", test_beside);
    return g_test_run();
}
