/* tests/unit/study/test_simai.c - a step as SimAI's workload text: degrees, sizes by hand, times that add up to the step's. */
#include "study/simai.h"

#include <string.h>

#include "base/json.h"
#include "study/chakra_pass.h"

typedef struct Sums {
    double forward_ns, input_ns, tensor_bytes[2], reduced, gathered, experts, experts_sent;
    int lines;
} Sums;

static Spec *load(const char *model, const char *parallel)
{
    g_autofree char *text = g_strdup_printf(
        "{\"model\":{\"preset\":\"%s\",\"layers\":4},\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":2},"
        "\"training\":{\"global_batch\":16,\"micro_batch\":1,\"sequence_length\":2048},\"parallel\":%s}",
        model, parallel);
    GError *error = NULL;
    Spec *spec = g_new0(Spec, 1);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "here", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "here", NULL, false, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return spec;
}

/* Twelve words a line, as SimAI's reader takes them. */
static void add_line(const char *line, Sums *sums)
{
    g_auto(GStrv) words = g_strsplit(line, "\t", -1);
    g_assert_cmpuint(g_strv_length(words), ==, 12);
    g_assert_cmpstr(words[1], ==, "-1");
    g_assert_cmpstr(words[11], ==, "100");
    const double bytes[] = {g_ascii_strtod(words[4], NULL), g_ascii_strtod(words[7], NULL),
                            g_ascii_strtod(words[10], NULL)};
    for (int i = 0; i < 3; i++)
        g_assert_true((bytes[i] > 0) == !g_str_equal(words[3 + 3 * i], "NONE"));
    if (g_str_equal(words[0], "layer")) {
        sums->forward_ns += g_ascii_strtod(words[2], NULL);
        sums->input_ns += g_ascii_strtod(words[5], NULL);
        for (int i = 0; i < 2; i++)
            *(g_str_equal(words[3 + 3 * i], "ALLTOALL_EP") ? &sums->experts_sent : &sums->tensor_bytes[i]) +=
                bytes[i];
    }
    *(g_str_has_suffix(words[9], "_DP_EP")    ? &sums->experts
      : g_str_equal(words[0], "param_gather") ? &sums->gathered
                                              : &sums->reduced) += bytes[2];
    sums->lines++;
}

static Sums write(Report *report, const char *header)
{
    GError *error = NULL;
    Sums sums = {.lines = 0};
    g_autoptr(GString) out = g_string_new(NULL);
    simai_write(report, out, &error);
    g_assert_no_error(error);
    g_auto(GStrv) lines = g_strsplit(out->str, "\n", -1);
    g_assert_cmpstr(lines[0], ==, header);
    for (int i = 2; lines[i][0] != '\0'; i++)
        add_line(lines[i], &sums);
    g_assert_cmpint(sums.lines, ==, (int)g_ascii_strtoll(lines[1], NULL, 10));
    return sums;
}

static Report *simulate(const Spec *spec, OrrArena *arena)
{
    GError *error = NULL;
    Report *report = g_new0(Report, 1);
    report_run(spec, NULL, &(ReportOptions){.check = false}, arena, report, &error);
    g_assert_no_error(error);
    return report;
}

/* What a micro-batch computes on the first pipeline rank. */
static void find_pass_ns(const Report *report, double *ret_forward_ns, double *ret_backward_ns)
{
    const SimStage *stage = &report->plan.stages[0];
    *ret_forward_ns = *ret_backward_ns = 0;
    for (int i = 0; i < stage->segment_count; i++) {
        const SimSegment *segment = &stage->segments[i];
        *ret_forward_ns += chakra_computing_ps(&segment->forward) * 1e-3;
        *ret_backward_ns +=
            (chakra_computing_ps(&segment->recompute) + chakra_computing_ps(&segment->backward_input) +
             chakra_computing_ps(&segment->backward_weight)) *
            1e-3;
    }
}

/* Llama 3 8B's layer has 218,112,000 parameters: 4096 x (4096 x 2 + 1024 x 2 + 3 x 14336 + 2); two layers on the first of two
 * pipeline ranks, and 128256 x 4096 of the embedding; half of each on a tensor rank but the norms. */
static void dense(void)
{
    Spec *spec = load("llama3-8b", "{\"tensor\":2,\"data\":4,\"pipeline\":2,\"zero\":1}");
    OrrArena *arena = orr_arena_new();
    Report *report = simulate(spec, arena);
    const Sums sums =
        write(report, "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 2 vpp: 1 ga: 4 "
                      "all_gpus: 16 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 8388608");
    const double params =
        2 * (4096.0 * (4096 * 2 + 1024 * 2 + 3 * 14336) / 2 + 2 * 4096) + 128256.0 * 4096 / 2;
    double forward_ns, backward_ns;
    find_pass_ns(report, &forward_ns, &backward_ns);
    g_assert_cmpfloat_with_epsilon(sums.forward_ns, 4 * forward_ns, 4 * 64);
    g_assert_cmpfloat_with_epsilon(sums.input_ns, 4 * backward_ns, 4 * 64);
    g_assert_cmpfloat_with_epsilon(sums.gathered, 2 * params, 1e-4 * params);
    g_assert_cmpfloat_with_epsilon(sums.reduced, 2 * params, 1e-4 * params);
    /* Each of 2048 x 4096 values of two bytes, in four micro-batches: four collectives a layer and one of the embedding;
     * backwards gather the inputs of two products a layer anew. */
    g_assert_cmpfloat(sums.tensor_bytes[0], ==, 4 * (2 * 4 + 1) * 2048.0 * 4096 * 2);
    g_assert_cmpfloat(sums.tensor_bytes[1], ==, 4 * (2 * 6 + 1) * 2048.0 * 4096 * 2);
    g_assert_cmpfloat(sums.experts, ==, 0);
    orr_arena_free(arena);
    g_free(report);
    g_free(spec);
}

/* Mixtral 8x7B: eight experts of 3 x 4096 x 14336 a layer, four on each of two expert ranks. */
static void experts(void)
{
    Spec *spec = load("mixtral-8x7b", "{\"tensor\":1,\"data\":16,\"expert\":2,\"zero\":0}");
    OrrArena *arena = orr_arena_new();
    Report *report = simulate(spec, arena);
    const Sums sums =
        write(report, "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ep: 2 pp: 1 vpp: 1 ga: 1 "
                      "all_gpus: 16 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0");
    const double params = 4 * 4 * 3 * 4096.0 * 14336;
    g_assert_cmpfloat_with_epsilon(sums.experts, 2 * params, 1e-4 * params);
    g_assert_cmpfloat(sums.experts_sent, >, 0);
    g_assert_cmpfloat(sums.gathered, ==, 0);
    orr_arena_free(arena);
    g_free(report);
    g_free(spec);
}

static void refusals(void)
{
    static const char *const cases[][2] = {
        {"{\"data\":16,\"zero\":3}", "gathers of parameters in forwards"},
        {"{\"data\":8,\"context\":2}", "rings of contexts"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Spec *spec = load("llama3-8b", cases[i][0]);
        OrrArena *arena = orr_arena_new();
        Report *report = simulate(spec, arena);
        GError *error = NULL;
        g_autoptr(GString) out = g_string_new(NULL);
        g_assert_false(simai_write(report, out, &error));
        g_assert_nonnull(strstr(error->message, cases[i][1]));
        g_assert_cmpuint(out->len, ==, 0);
        g_error_free(error);
        orr_arena_free(arena);
        g_free(report);
        g_free(spec);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/simai/dense", dense);
    g_test_add_func("/simai/experts", experts);
    g_test_add_func("/simai/refusals", refusals);
    return g_test_run();
}
