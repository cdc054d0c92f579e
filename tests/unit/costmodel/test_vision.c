/* unit/costmodel/test_vision.c - a vision tower before the language model: counts by hand, and that off is off. */
#include <math.h>
#include <string.h>

#include "costmodel/adapter.h"
#include "costmodel/flops.h"
#include "costmodel/vision.h"
#include "report/report.h"
#include "spec/load.h"

static void load(const char *model, const char *parallel, const char *const *sets, Spec *spec)
{
    g_autofree char *text =
        g_strdup_printf("{\"model\":\"%s\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},"
                        "\"training\":{\"sequence_length\":4096,\"global_batch\":16,\"micro_batch\":1,"
                        "\"recompute\":\"full\"},\"parallel\":%s,\"execution\":{\"framework\":\"generic\"}}",
                        model, parallel);
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "test", sets, false, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
}

/* On 8 H100, checked against all invariants. */
static Report ask(const char *model, const char *parallel, const char *const *sets, OrrArena *arena,
                  Spec *spec)
{
    static const ReportOptions checked = {.check = true};
    GError *error = NULL;
    Report report;
    load(model, parallel, sets, spec);
    report_run(spec, NULL, &checked, arena, &report, &error);
    g_assert_no_error(error);
    return report;
}

static const char SHARDED[] = "{\"data\":8,\"zero\":2}";

/* Qwen2.5-VL 7B: 8,292,166,656, of which 676,550,144 lie before the language model; the projector's are 1,280 of its norm,
 * 5,120 x 5,120 + 5,120 and 5,120 x 3,584 + 3,584. */
static void test_parameters(void)
{
    static const double ALL = 8292166656.0, VISION = 676550144.0,
                        PROJECTOR = 1280 + 5120.0 * 5120 + 5120 + 5120.0 * 3584 + 3584;
    static const struct {
        const char *freeze;
        double trained;
    } cases[] = {
        {"training.freeze=null", ALL},
        {"training.freeze={\"vision\":true}", ALL - VISION + PROJECTOR},
        {"training.freeze={\"projector\":true}", ALL - PROJECTOR},
        {"training.freeze={\"vision\":true,\"projector\":true}", ALL - VISION},
        {"training.freeze={\"embedding\":true,\"layers\":28,\"head\":true,\"vision\":true}", PROJECTOR}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        OrrArena *arena = orr_arena_new();
        const char *const sets[] = {cases[i].freeze, "training.images={\"per_sequence\":1,\"patches\":1024}",
                                    NULL};
        const Report report = ask("qwen2.5-vl-7b", SHARDED, sets, arena, spec);
        g_assert_cmpfloat(report.parameters, ==, ALL);
        g_assert_cmpfloat(report.trained_parameters, ==, cases[i].trained);
        orr_arena_free(arena);
    }
}

/* A tower that is frozen and sees no image is none, to the picosecond, whatever the layout; what it weighs is held. */
static void test_off(void)
{
    static const char *const layouts[] = {
        SHARDED, "{\"tensor\":4,\"sequence_parallel\":true,\"data\":2,\"zero\":1}",
        "{\"pipeline\":4,\"tensor\":2}", "{\"pipeline\":2,\"tensor\":2,\"data\":2}"};
    for (gsize i = 0; i < G_N_ELEMENTS(layouts); i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        OrrArena *arena = orr_arena_new();
        const char *const frozen[] = {"training.freeze={\"vision\":true,\"projector\":true}", NULL};
        const Report without = ask("qwen2.5-7b", layouts[i], NULL, arena, spec),
                     with = ask("qwen2.5-vl-7b", layouts[i], frozen, arena, spec);
        g_assert_cmpint(with.step_ps, ==, without.step_ps);
        g_assert_cmpfloat(with.peak_bytes, >=, without.peak_bytes);
        orr_arena_free(arena);
    }
}

/* Each image costs time; more is trained, more time and memory is taken. */
static void test_ladder(void)
{
    static const char *const rungs[] = {"training.freeze={\"vision\":true,\"projector\":true}",
                                        "training.freeze={\"vision\":true}", "training.freeze=null"};
    double step = 0, peak = 0;
    for (gsize i = 0; i < 2 * G_N_ELEMENTS(rungs); i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        OrrArena *arena = orr_arena_new();
        g_autofree char *images =
            g_strdup_printf("training.images={\"per_sequence\":%d,\"patches\":4096}", i % 2 == 0 ? 1 : 3);
        const char *const sets[] = {rungs[i / 2], images, NULL};
        const Report report = ask("qwen2.5-vl-7b", SHARDED, sets, arena, spec);
        g_test_message("%s %s: %.0f ps, %.3f GiB", rungs[i / 2], images, (double)report.step_ps,
                       report.peak_bytes / 0x1p30);
        if (i % 2 == 1)
            g_assert_cmpfloat((double)report.step_ps, >, step);
        if (i % 2 == 0 && i > 0)
            g_assert_cmpfloat(report.peak_bytes, >, peak);
        step = (double)report.step_ps;
        peak = i % 2 == 0 ? report.peak_bytes : peak;
        orr_arena_free(arena);
    }
}

/* One image of 576 patches of LLaVA: 2 p v w of patches; 24 layers of 8 p w^2 + 4 p p w + 4 p w f; the projector's two
 * products. Frozen, it runs forward alone. */
static void test_flops(void)
{
    const double p = 576, w = 1024, f = 4096, h = 4096;
    const double tower = 2 * p * 588 * w + 24 * (8 * p * w * w + 4 * p * p * w + 4 * p * w * f);
    const double projector = 2 * p * w * f + 2 * p * f * h;
    double flops[3];
    static const char *const freezes[] = {"training.freeze={\"vision\":true,\"projector\":true}",
                                          "training.freeze={\"vision\":true}", "training.freeze=null"};
    g_autofree Spec *spec = g_new0(Spec, 1);
    const char *const none[] = {freezes[0], NULL};
    load("llava-1.5-7b", SHARDED, none, spec);
    const double text = cost_flops(spec, NULL, 0).model / spec->training.global_batch;
    for (int i = 0; i < 3; i++) {
        const char *const sets[] = {freezes[i], "training.images={\"per_sequence\":1,\"patches\":576}", NULL};
        load("llava-1.5-7b", SHARDED, sets, spec);
        flops[i] = cost_flops(spec, NULL, 0).model / spec->training.global_batch - text;
    }
    g_assert_cmpfloat_with_epsilon(flops[0] / (tower + projector), 1, 1e-6);
    g_assert_cmpfloat_with_epsilon(flops[1] / (tower + 2 * projector + 2 * p * f * h), 1, 1e-6);
    g_assert_cmpfloat_with_epsilon(flops[2] / (3 * (tower + projector) - 2 * p * 588 * w), 1, 1e-6);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vision/parameters", test_parameters);
    g_test_add_func("/vision/off", test_off);
    g_test_add_func("/vision/ladder", test_ladder);
    g_test_add_func("/vision/flops", test_flops);
    return g_test_run();
}
