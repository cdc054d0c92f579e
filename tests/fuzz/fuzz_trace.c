/* Bytes as a profiler's trace: either one sentence, or kernels whose instants add up to the step. */
#include <math.h>

#include "exchange/trace.h"
#include "study/trace_answer.h"
#include "tests/fuzz/door.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(TraceRank *rank)
{
    const TraceSums sums = trace_sums(rank);
    double fall_s = 0;
    for (int fall = 0; fall < TRACE_FALLS; fall++) {
        require(sums.fall_s[fall] >= 0);
        fall_s += sums.fall_s[fall];
    }
    require(fabs(fall_s - sums.step_s) <= 1e-9 * sums.step_s + 1e-12);
    g_autoptr(GPtrArray) ranks = g_ptr_array_new();
    g_autoptr(GString) out = g_string_new(NULL);
    g_ptr_array_add(ranks, rank);
    TraceAnswer answer = trace_answer(ranks, rank);
    require(answer.absolute_s == 0 && answer.unmatched_measured_s == 0);
    trace_answer_text(&answer, out);
    trace_answer_json(&answer, out);
    require(g_utf8_validate(out->str, (gssize)out->len, NULL));
    trace_answer_clear(&answer);
    answer = trace_answer_beside(ranks, ranks);
    require(answer.absolute_s == 0 && answer.unmatched_measured_s == 0 && answer.unmatched_predicted_s == 0);
    for (int kind = 0; kind < TRACE_CLASSES; kind++)
        require(sums.class_busy_s[kind] <= sums.class_s[kind] * (1 + 1e-9) + 1e-12);
    trace_answer_text(&answer, out);
    trace_answer_clear(&answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static TraceTable *table;
    GError *error = NULL;
    if (table == NULL)
        table = trace_table_load(NULL);
    TraceRank *rank = trace_rank_parse((const char *)data, size, "fuzz.json", table, &error);
    if (rank != NULL)
        check(rank);
    else
        check_error(error);
    trace_rank_free(rank);
    return 0;
}
