/* Passes as programs against the closed forms that a step is made of: never shorter, and the same where nothing
 * overlaps. Over the layers of every published row, and over the same rows with other software, overlap and hosts. */
#include "tests/unit/draws.h"
#include "tests/unit/pass_fixture.h"

/* Rates are whole parts of 2^20 and the ops end on whole picoseconds. */
#define RATE_FRAC 2e-6
#define OP_S      2e-12

typedef struct {
    GRand *random;
    int layers, apart;
    unsigned beside;
} Count;

static void compare(double closed_s, double program_s, const PassFigure *figure)
{
    const double least_s = closed_s * (1 - RATE_FRAC) - OP_S * figure->ops;
    if (program_s < least_s)
        g_test_message("%d ops: closed %.12f program %.12f", figure->ops, closed_s, program_s);
    g_assert_cmpfloat(program_s, >=, least_s);
    if (!figure->overlaps)
        g_assert_cmpfloat(program_s, <=, closed_s * (1 + RATE_FRAC) + OP_S * figure->ops);
}

static void check_layer(const Spec *spec, const PassFigure *figure, void *data)
{
    Count *count = data;
    (void)spec;
    if (figure->hidden) /* beside another micro-batch, of which the program has none */
        return;
    for (int pass = 0; pass < COST_PASS_COUNT; pass++)
        compare(figure->cold_closed_s[pass], figure->cold_program_s[pass], figure);
    compare(figure->closed_s, figure->program_s, figure);
    count->layers++;
    count->beside |= figure->beside;
    count->apart += figure->program_s > figure->closed_s * 1.001;
}

#define PICK(random, list) (list)[g_rand_int_range(random, 0, (int)G_N_ELEMENTS(list))]

static void other_software(GPtrArray *sets, void *data)
{
    static const char *const FRAMEWORKS[] = {"megatron-core", "torchtitan", "deepspeed", "pytorch-fsdp",
                                             "meta-llama3"};
    static const char *const OVERLAPS[] = {"[]", "[\"tensor\"]", "[\"grad_reduce\",\"tensor\",\"pipeline\"]"};
    static const char *const RECOMPUTE[] = {"\"none\"", "\"selective\"", "\"full\""};
    static const char *const WAITS[] = {"each-kernel", "none"};
    static const char *const TRUTHS[] = {"true", "false"};
    const Count *count = data;
    GRand *random = count->random;
    g_ptr_array_add(sets, g_strdup_printf("execution.framework=\"%s\"", PICK(random, FRAMEWORKS)));
    g_ptr_array_add(sets, g_strdup_printf("execution.overlap=%s", PICK(random, OVERLAPS)));
    g_ptr_array_add(sets, g_strdup_printf("training.recompute=%s", PICK(random, RECOMPUTE)));
    g_ptr_array_add(sets, g_strdup_printf("execution.framework.host.kernel_host_s=%g",
                                          g_rand_int_range(random, 0, 4) * 5e-6));
    g_ptr_array_add(sets, g_strdup_printf("execution.framework.host.waits=%s", PICK(random, WAITS)));
    /* two old keys, so that torchtitan's pieces stay as it cuts them */
    g_ptr_array_add(
        sets, g_strdup_printf("execution.framework.tensor.chunked_tensor_overlap=%s", PICK(random, TRUTHS)));
    g_ptr_array_add(sets,
                    g_strdup_printf("execution.framework.tensor.local_chunk_gemms=%s", PICK(random, TRUTHS)));
    g_ptr_array_add(
        sets, g_strdup_printf("execution.framework.tensor.overlap_tensor_backward=%s", PICK(random, TRUTHS)));
}

static unsigned run_rows(PassVary vary, int least_rows)
{
    GError *error = NULL;
    g_autofree char *scenarios = orr_scenarios_dir(&error);
    g_assert_no_error(error);
    Count count = {.random = g_rand_new_with_seed(7)};
    const int rows = fixture_time_rows(scenarios, "measurements", vary, check_layer, &count) +
                     fixture_time_rows(scenarios, "blind", vary, check_layer, &count);
    g_test_message("%d rows, %d layers, %d of them more than 0.1 %% apart", rows, count.layers, count.apart);
    g_assert_cmpint(rows, >=, least_rows);
    g_assert_cmpint(count.layers, >, rows); /* and few of them skipped */
    g_rand_free(count.random);
    return count.beside;
}

static void test_rows(void)
{
    run_rows(NULL, 300);
}

static void test_random(void)
{
    const unsigned beside = run_rows(other_software, 100);
    g_assert_cmpuint(beside, ==, (2u << COST_BESIDE_NETWORK) - 1); /* every way to share occurs */
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (!SANITIZED) /* the random rows are these too, with other software */
        g_test_add_func("/pass-program/rows", test_rows);
    g_test_add_func("/pass-program/random", test_random);
    return g_test_run();
}
