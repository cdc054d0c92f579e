/* The fit to measured training steps: a cluster whose factors are known, 3 % of noise on every step; rows that
 * cannot tell factors apart; rows that carry no fit; the profile in a run. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "calibrate/fit/fit_steps.h"
#include "tests/unit/calibrate_fixture.h"
#include "tests/unit/draws.h"

static bool predict(const Spec *spec, void *data, double *ret_s, GError **error)
{
    (void)data;
    const ReportOptions options = {0};
    Report report;
    OrrArena *arena = orr_arena_new();
    const bool ok = report_run(spec, NULL, &options, arena, &report, error);
    *ret_s = ok ? 1e-12 * (double)report.step_ps : 0;
    orr_arena_free(arena);
    return ok;
}

static char *scenario_with(const char *accelerator, int hidden, int micro_batch, int tensor, int nodes,
                           int batch_a_gpu, const char *attention)
{
    const int gpus = 8 * nodes, data = gpus / tensor;
    return g_strdup_printf(
        "{\"model\": {\"layers\": 16, \"hidden\": %d, \"heads\": %d, \"vocab\": 50304}, \"cluster\": "
        "{\"accelerator\": \"%s\", \"nodes\": %d, \"gpus_per_node\": 8}, \"training\": {\"sequence_length\": "
        "2048, "
        "\"global_batch\": %d, \"micro_batch\": %d}, \"parallel\": {\"tensor\": %d, \"sequence_parallel\": "
        "%s, "
        "\"data\": %d, \"zero\": 1}, \"execution\": {\"attention\": \"%s\"}}",
        hidden, hidden / 64, accelerator, nodes, data * micro_batch * batch_a_gpu, micro_batch, tensor,
        tensor > 1 ? "true" : "false", data, attention);
}

static char *scenario(const char *accelerator, int hidden, int micro_batch, int tensor, int nodes,
                      int batch_a_gpu)
{
    return scenario_with(accelerator, hidden, micro_batch, tensor, nodes, batch_a_gpu, "flash2");
}

/* A step that takes as long as by `knobs` turned by `factors`, and `noise_frac` more or less. */
static void add_step(GPtrArray *steps, const char *text, const CalKnob *knobs, const double *factors,
                     int count, double noise_frac, guint32 *state)
{
    CalStep *step = g_new0(CalStep, 1);
    g_autofree Spec *turned = g_new0(Spec, 1);
    GError *error = NULL;
    fixture_scenario(text, NULL, &step->spec);
    *turned = step->spec;
    for (int k = 0; k < count; k++)
        cal_knob_turn(&knobs[k], factors[k], turned);
    predict(turned, NULL, &step->measured_s, &error);
    g_assert_no_error(error);
    step->measured_s *= 1 + noise_frac * fixture_noise(state);
    g_snprintf(step->id, sizeof step->id, "step %u", steps->len);
    g_ptr_array_add(steps, step);
}

static const CalKnob knobs[] = {{.kind = CAL_KNOB_COMPUTE},
                                {.kind = CAL_KNOB_MEMORY},
                                {.kind = CAL_KNOB_SCALE_UP},
                                {.kind = CAL_KNOB_SCALE_OUT},
                                {.kind = CAL_KNOB_HOST, .framework = "megatron-core"}};
static const double truth[] = {0.88, 0.75, 0.7, 0.6, 0.65};

/* Wide and narrow, one node and many, little and much work between reductions, scores in memory or not; each measured
 * `repeats` times. */
static GPtrArray *varied_steps(guint32 seed, int repeats)
{
    static const int hiddens[] = {512, 2048, 8192}, tensors[] = {1, 8}, nodes[] = {1, 16};
    static const char *const attentions[] = {"flash2", "unfused"};
    GPtrArray *steps = g_ptr_array_new_with_free_func(g_free);
    for (int repeat = 0; repeat < repeats; repeat++)
        for (int i = 0; i < 48; i++) {
            const int work = i / 24 % 2 == 0 ? 1 : 4;
            g_autofree char *text = scenario_with("a100-sxm4-80gb", hiddens[i % 3], 2, tensors[i / 3 % 2],
                                                  nodes[i / 6 % 2], work, attentions[i / 12 % 2]);
            add_step(steps, text, knobs, truth, G_N_ELEMENTS(knobs), FIXTURE_NOISE_FRAC, &seed);
        }
    return steps;
}

static const CalKnobFit *fit_of(const CalStepFit *fit, const CalKnob *knob)
{
    for (int k = 0; k < fit->count; k++)
        if (fit->knobs[k].knob.kind == knob->kind)
            return &fit->knobs[k];
    g_assert_not_reached();
}

/* Parameters within 2 % where the rows determine them so well, and within their own error everywhere; times within 2 %. */
static void test_recovery(void)
{
    g_autofree CalStepFit *fit = g_new0(CalStepFit, 1);
    g_autoptr(GPtrArray) steps = varied_steps(7, 5);
    g_autoptr(GString) log = g_string_new(NULL);
    GError *error = NULL;
    int sharp = 0;
    cal_fit_steps(steps, predict, NULL, NULL, fit, &error);
    g_assert_no_error(error);
    cal_step_fit_print(fit, log);
    g_test_message("%s", log->str);
    for (size_t k = 0; k < G_N_ELEMENTS(knobs); k++) {
        const CalKnobFit *got = fit_of(fit, &knobs[k]);
        g_test_message("wanted x %.3f, got x %.3f +- %.1f %%", truth[k], got->factor, 100 * got->std_frac);
        g_assert_true(got->fitted);
        g_assert_cmpfloat(fabs(log1p(got->factor / truth[k] - 1)), <, 2.5 * got->std_frac);
        if (got->std_frac < 0.008) { /* 2 % is then at least as far */
            fixture_within(got->factor, truth[k], 0.02);
            sharp++;
        }
    }
    g_assert_cmpint(sharp, >=, 1);
    g_assert_false(fit_of(fit, &(CalKnob){.kind = CAL_KNOB_LATENCY})->fitted &&
                   fabs(fit_of(fit, &(CalKnob){.kind = CAL_KNOB_LATENCY})->factor - 1) > 0.2);
    g_assert_cmpfloat(fit->noise_frac, >, 0.02);
    g_assert_cmpfloat(fit->noise_frac, <, 0.04);
    g_assert_cmpfloat(fit->before.median_frac, >, 0.1);
    g_assert_cmpfloat(fit->unseen.median_frac, <, 0.03); /* the noise itself has 2 % at the median */
    /* Steps without noise, of sizes that were not measured. */
    guint32 seed = 0;
    g_autoptr(GPtrArray) others = g_ptr_array_new_with_free_func(g_free);
    for (int tensor = 1; tensor <= 4; tensor *= 4)
        for (int nodes = 2; nodes <= 8; nodes *= 4) {
            g_autofree char *text = scenario("a100-sxm4-80gb", 3072, 1, tensor, nodes, 2);
            add_step(others, text, knobs, truth, G_N_ELEMENTS(knobs), 0, &seed);
        }
    for (guint i = 0; i < others->len; i++) {
        CalStep *step = g_ptr_array_index(others, i);
        double predicted_s = 0;
        for (int k = 0; k < fit->count; k++)
            if (fit->knobs[k].fitted)
                cal_knob_turn(&fit->knobs[k].knob, fit->knobs[k].factor, &step->spec);
        predict(&step->spec, NULL, &predicted_s, &error);
        fixture_within(predicted_s, step->measured_s, 0.02);
    }
}

/* One size, only longer: whatever takes its time takes more of it. */
static void test_alike(void)
{
    g_autofree CalStepFit *fit = g_new0(CalStepFit, 1);
    g_autoptr(GPtrArray) steps = g_ptr_array_new_with_free_func(g_free);
    guint32 state = 3;
    GError *error = NULL;
    int told = 0;
    for (int work = 8; work < 16; work++) {
        g_autofree char *text = scenario("a100-sxm4-80gb", 8192, 2, 8, 1, work);
        add_step(steps, text, knobs, truth, G_N_ELEMENTS(knobs), 0.01, &state);
    }
    cal_fit_steps(steps, predict, NULL, NULL, fit, &error);
    g_assert_no_error(error);
    for (int k = 0; k < fit->count; k++)
        told += fit->knobs[k].fitted;
    g_assert_cmpint(told, ==, 1);
    const CalKnobFit *compute = fit_of(fit, &knobs[0]), *links = fit_of(fit, &knobs[2]),
                     *network = fit_of(fit, &knobs[3]);
    g_assert_true(compute->fitted);
    g_test_message("scale-up: %s; scale-out: %s", links->why, network->why);
    g_assert_nonnull(strstr(links->why, "cannot be told apart from compute"));
    g_assert_nonnull(strstr(network->why, "too little felt"));
    g_assert_cmpfloat(fit->unseen.median_frac, <, 0.02); /* steps like these are predicted all the same */
}

static void test_refusals(void)
{
    g_autofree CalStepFit *fit = g_new0(CalStepFit, 1);
    g_autoptr(GPtrArray) steps = g_ptr_array_new_with_free_func(g_free);
    guint32 state = 11;
    GError *error = NULL;
    const double one = 1;
    for (int tensor = 1; tensor <= 2; tensor++) {
        g_autofree char *text = scenario("a100-sxm4-80gb", 4096, 2, tensor, 1, 4);
        add_step(steps, text, knobs, &one, 1, 0, &state);
    }
    g_assert_false(cal_fit_steps(steps, predict, NULL, NULL, fit, &error));
    g_assert_nonnull(strstr(error->message, "2 measured steps are too few"));
    g_clear_error(&error);
    g_autofree char *other = scenario("h100-sxm5-80gb", 4096, 2, 1, 1, 4);
    add_step(steps, other, knobs, &one, 1, 0, &state);
    g_assert_false(cal_fit_steps(steps, predict, NULL, NULL, fit, &error));
    g_assert_nonnull(strstr(error->message, "one profile is of one accelerator"));
    g_clear_error(&error);
    g_ptr_array_remove_index(steps, 2);
    /* The presets are right and the clock is bad: a fit would only follow the clock. */
    for (int tensor = 4; tensor <= 8; tensor *= 2) {
        g_autofree char *text = scenario("a100-sxm4-80gb", 4096, 2, tensor, 1, 4);
        add_step(steps, text, knobs, &one, 1, 0, &state);
    }
    const double clock[] = {1.3, 0.75, 1, 1};
    for (guint i = 0; i < steps->len; i++)
        ((CalStep *)g_ptr_array_index(steps, i))->measured_s *= clock[i];
    g_assert_false(cal_fit_steps(steps, predict, NULL, NULL, fit, &error));
    g_test_message("%s", error->message);
    g_assert_true(strstr(error->message, "too alike to fit") != NULL ||
                  strstr(error->message, "tell no factor") != NULL);
    g_clear_error(&error);
}

/* The profile of a fit, loaded by its name: the same step as with the factors turned by hand. */
static void test_profile(void)
{
    g_autofree CalStepFit *fit = g_new0(CalStepFit, 1);
    g_autofree Spec *spec = g_new0(Spec, 1), *plain = g_new0(Spec, 1);
    g_autoptr(GPtrArray) steps = varied_steps(5, 1);
    g_autoptr(GString) json = g_string_new(NULL);
    GError *error = NULL;
    cal_fit_steps(steps, predict, NULL, NULL, fit, &error);
    g_assert_no_error(error);
    cal_step_fit_write(fit, steps, "a test", json);
    g_autofree char *folder = g_dir_make_tmp("orrery-test-steps-XXXXXX", &error);
    g_autofree char *path = g_build_filename(folder, "profile.json", NULL),
                    *set = g_strconcat("cluster.calibration=", path, NULL);
    g_assert_true(g_file_set_contents(path, json->str, -1, NULL));
    g_autofree char *text = scenario("a100-sxm4-80gb", 4096, 1, 2, 2, 2);
    double by_profile_s, by_hand_s;
    fixture_scenario(text, set, spec);
    fixture_scenario(text, NULL, plain);
    predict(spec, NULL, &by_profile_s, &error);
    for (int k = 0; k < fit->count; k++)
        if (fit->knobs[k].fitted)
            cal_knob_turn(&fit->knobs[k].knob, fit->knobs[k].factor, plain);
    predict(plain, NULL, &by_hand_s, &error);
    g_assert_no_error(error);
    fixture_within(by_profile_s, by_hand_s, 1e-3); /* the profile's blocks have four digits */
    g_assert_true(fit_of(fit, &knobs[4])->fitted);
    fixture_within(spec->execution.framework.host.kernel_host_s,
                   ((CalStep *)g_ptr_array_index(steps, 0))->spec.execution.framework.host.kernel_host_s /
                       fit_of(fit, &knobs[4])->factor,
                   1e-9);
    /* A framework that the profile does not speak of, and one that overrides it. */
    fixture_scenario(text, NULL, plain);
    const char *sets[] = {set, "execution.framework=nanotron", NULL},
               *over[] = {set, "execution.framework.host.kernel_host_s=1e-6", NULL};
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "scenario", &error);
    SpecFramework nanotron;
    g_assert_true(spec_load_framework("nanotron", &nanotron, &error));
    g_assert_true(spec_load_json(orr_json_root(doc), "scenario", sets, false, spec, NULL, &error));
    fixture_within(spec->execution.framework.host.kernel_host_s, nanotron.host.kernel_host_s, 1e-12);
    g_assert_true(spec_load_json(orr_json_root(doc), "scenario", over, false, spec, NULL, &error));
    fixture_within(spec->execution.framework.host.kernel_host_s, 1e-6, 1e-12);
    g_assert_true(
        g_file_set_contents(path, "{\"frameworks\": {\"megatron-core\": {\"kernel_host\": 1}}}", -1, NULL));
    g_assert_false(spec_load_json(orr_json_root(doc), "scenario", sets, false, spec, NULL, &error));
    g_assert_nonnull(strstr(error->message, "kernel_host_s"));
    g_clear_error(&error);
    orr_json_free(doc);
    g_unlink(path);
    g_rmdir(folder);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (!SANITIZED) /* "profile" fits the same knobs */
        g_test_add_func("/steps/recovery", test_recovery);
    g_test_add_func("/steps/alike", test_alike);
    g_test_add_func("/steps/refusals", test_refusals);
    g_test_add_func("/steps/profile", test_profile);
    return g_test_run();
}
