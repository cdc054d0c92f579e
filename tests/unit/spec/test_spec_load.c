/* From JSON to a Spec: defaults, derived fields, overrides, what is noted, auto, presets. */
#include <glib/gstdio.h>

#include "spec/import_hf.h"
#include "spec/resolve.h"
#include "tests/unit/test_spec_support.h"

static void test_defaults(void)
{
    g_autofree Spec *spec = test_spec(NULL, NULL, NULL, NULL);
    g_assert_cmpint(spec->model.head_dim, ==, 128);
    g_assert_cmpint(spec->model.kv_heads, ==, 8);
    g_assert_cmpint(spec->model.norm, ==, SPEC_NORM_LAYERNORM);
    g_assert_cmpint(spec->model.biases, ==, SPEC_BIASES_ALL);
    g_assert_cmpint(spec->model.max_positions, ==, 2048);
    g_assert_true(spec->model.causal && spec->model.tied_embeddings && !spec->model.gated_mlp);
    g_assert_cmpint(spec->model.moe.layer_step, ==, 1);
    g_assert_cmpfloat(spec->model.dropout_frac, ==, 0.0);
    g_assert_cmpfloat(spec->cluster.accelerator.memory_bytes, ==, 80.0 * 1073741824.0);
    g_assert_cmpfloat(spec->cluster.accelerator.peak_flops_per_s[SPEC_BF16], ==, 300e12);
    g_assert_cmpfloat(spec->cluster.scale_out_bytes_per_s_per_gpu, ==, 25e9);
    g_assert_cmpfloat(spec->cluster.scale_up_bytes_per_s, ==, 3e11);
    g_assert_cmpint(spec->cluster.scale_up_domain_gpus, ==, 8);
    g_assert_cmpint(spec_gpus(spec), ==, 64);
    g_assert_cmpint(spec->parallel.data, ==, 4);
    g_assert_cmpint(spec->parallel.expert_tensor, ==, 4);
    g_assert_cmpint(spec->parallel.virtual_stages, ==, 1);
    g_assert_cmpint(spec->parallel.schedule, ==, sim_schedule_index("1f1b"));
    g_assert_cmpint(spec->training.micro_batch, ==, 1);
    g_assert_cmpint(spec->training.precision, ==, SPEC_PRECISION_BF16);
    g_assert_cmpint(spec->training.optimizer, ==, SPEC_OPTIMIZER_ADAM);
    g_assert_cmpint(spec->training.recompute.mode, ==, SPEC_RECOMPUTE_NONE);
    g_assert_cmpint(spec->training.gradient_dtype, ==, SPEC_BF16);
    g_assert_cmpint(spec->training.gradient_reduce_dtype, ==, SPEC_FP32);
    g_assert_cmpint(spec->training.states.recipe, ==, SPEC_STATES_ZERO_FP16);
    g_assert_cmpint(spec->execution.attention, ==, SPEC_ATTENTION_FLASH2);
    g_assert_cmpuint(spec->execution.overlap, ==, 0);
    g_assert_cmpint(spec_microbatches(spec), ==, 128);
}

static bool has_note(const GPtrArray *notes, const char *note)
{
    for (guint i = 0; i < notes->len; i++)
        if (strcmp(g_ptr_array_index(notes, i), note) == 0)
            return true;
    return false;
}

/* "x2" is twice what the scenario has, set by set; x1 is the scenario. */
static void test_times(void)
{
    static const char *const sets[] = {"cluster.accelerator.peak_flops_per_s.bf16=x2",
                                       "cluster.scale_out_bytes_per_s_per_gpu=x0.5",
                                       "cluster.scale_out_bytes_per_s_per_gpu=x0.5",
                                       "training.global_batch=x2", NULL},
                             *const same[] = {"cluster.accelerator.memory_bytes=x1", NULL};
    static const struct {
        const char *set, *want;
    } bad[] = {
        {"cluster.nodes=x1.01", "not a whole number"},
        {"cluster.nodes=x0x2", "x0x2"},
        {"cluster.oversubscriptions=x2", "no number above 0"},
        {"parallel.schedule=x2", "no number above 0"},
    };
    g_autofree Spec *spec = g_new0(Spec, 1), *plain = g_new0(Spec, 1);
    char *message = NULL;
    g_assert_true(test_load(NULL, false, plain, NULL, &message));
    g_assert_true(test_load(sets, false, spec, NULL, &message));
    g_assert_cmpfloat(spec->cluster.accelerator.peak_flops_per_s[SPEC_BF16], ==, 600e12);
    g_assert_cmpfloat(spec->cluster.scale_out_bytes_per_s_per_gpu, ==, 6.25e9);
    g_assert_cmpint(spec->training.global_batch, ==, 2 * plain->training.global_batch);
    g_assert_true(test_load(same, false, spec, NULL, &message));
    g_assert_cmpfloat(spec->cluster.accelerator.memory_bytes, ==, plain->cluster.accelerator.memory_bytes);
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        const char *const one[] = {bad[i].set, NULL};
        g_assert_false(test_load(one, false, spec, NULL, &message));
        g_assert_nonnull(strstr(message, bad[i].want));
        g_clear_pointer(&message, g_free);
    }
}

static void test_source(void)
{
    static const char *const sets[] = {"training.micro_batch=2", NULL};
    g_autofree Spec *spec = g_new0(Spec, 1);
    SpecSource source = {0}, again = {0}, plain = {0};
    char *message = NULL;
    g_assert_true(test_load(sets, false, spec, &source, &message));
    g_assert_true(test_load(sets, false, spec, &again, &message));
    g_assert_true(test_load(NULL, false, spec, &plain, &message));
    g_assert_true(has_note(source.defaulted, "training.optimizer=adam"));
    g_assert_true(has_note(source.defaulted, "parallel.data=4"));
    g_assert_true(has_note(source.defaulted, "parallel.schedule=1f1b"));
    g_assert_true(has_note(source.defaulted, "model.head_dim=128"));
    g_assert_false(has_note(source.defaulted, "training.micro_batch=1"));
    g_assert_true(has_note(plain.defaulted, "training.micro_batch=1"));
    g_assert_cmpstr(source.scenario_hash, ==, again.scenario_hash);
    g_assert_cmpstr(source.scenario_hash, !=, plain.scenario_hash);
    g_assert_nonnull(strstr(source.resolved, "\"micro_batch\":2"));
    g_assert_cmpuint(source.profiles->len, ==, 0);
    spec_source_clear(&source);
    spec_source_clear(&again);
    spec_source_clear(&plain);
    spec_source_clear(&plain); /* twice is harmless */
}

static void test_forms(void)
{
    g_autofree Spec *spec =
        test_spec("training.recompute={\"mode\":\"modules\",\"modules\":[\"layernorm\",\"moe_act\"]}",
                  "training.states={\"weights\":2,\"gradients\":4,\"master\":4,\"moments\":8}",
                  "model.biases=qkv", "execution.overlap=[\"grad_reduce\",\"tensor\"]");
    g_assert_cmpint(spec->training.recompute.mode, ==, SPEC_RECOMPUTE_MODULES);
    g_assert_cmpuint(spec->training.recompute.modules, ==, SPEC_MODULE_LAYERNORM | SPEC_MODULE_MOE_ACT);
    g_assert_cmpint(spec->training.states.recipe, ==, SPEC_STATES_CUSTOM);
    g_assert_cmpfloat(spec->training.states.moments_bytes, ==, 8.0);
    g_assert_cmpint(spec->model.biases, ==, SPEC_BIASES_QKV);
    g_assert_cmpuint(spec->execution.overlap, ==, SPEC_OVERLAP_GRAD_REDUCE | SPEC_OVERLAP_TENSOR);
    g_autofree Spec *cannot = test_spec("execution.overlap=[\"grad_reduce\",\"tensor\"]",
                                        "execution.framework.data_parallel.reductions=at-end",
                                        "execution.framework.name=old", NULL);
    g_assert_cmpuint(cannot->execution.overlap, ==, SPEC_OVERLAP_TENSOR);
    g_autofree Spec *other = test_spec("cluster.latency_s=2.5 us", "training.tokens=300B",
                                       "model.biases=false", "training.recompute=full");
    g_assert_cmpfloat(other->cluster.scale_out_latency_s, ==, 2.5e-6);
    g_assert_cmpfloat(other->training.tokens, ==, 300e9);
    g_assert_cmpint(other->model.biases, ==, SPEC_BIASES_NONE);
    static const struct {
        const char *set;
        double ratio;
    } ratios[] = {{"cluster.oversubscription=4", 4},   {"cluster.oversubscription=4:1", 4},
                  {"cluster.oversubscription=1:7", 7}, {"cluster.oversubscription=3:2", 1.5},
                  {"cluster.oversubscription=1:1", 1}, {"cluster.oversubscription=\"2\"", 2}};
    for (guint i = 0; i < G_N_ELEMENTS(ratios); i++) {
        g_autofree Spec *spec_of = test_spec(ratios[i].set, NULL, NULL, NULL);
        g_assert_cmpfloat(spec_of->cluster.oversubscription, ==, ratios[i].ratio);
    }
    g_autofree Spec *third = test_spec("training.recompute=full", "training.recompute.layers=3",
                                       "offload=none", "training.gradient_dtype=null");
    g_assert_cmpint(third->training.recompute.mode, ==, SPEC_RECOMPUTE_FULL);
    g_assert_cmpint(third->training.recompute.layers, ==, 3);
    g_assert_cmpint(third->training.gradient_dtype, ==, SPEC_BF16);
    g_autofree Spec *fourth = test_spec("parallel={\"tensor\":4,\"zero\":3,\"schedule\":{\"file\":\"mine\","
                                        "\"orders\":[\"0F0 0F1 0B0 0B1\"]}}",
                                        "training.global_batch=32", "offload.activation_layers=2", NULL);
    g_assert_cmpint(fourth->parallel.schedule, ==, SPEC_SCHEDULE_FILE);
    g_assert_cmpstr(fourth->parallel.schedule_file, ==, "mine");
    g_assert_cmpint(fourth->parallel.orders.microbatches, ==, 2);
    g_assert_cmpint(fourth->offload.activation_layers, ==, 2);
}

static void test_derived(void)
{
    g_autofree Spec *interleaved = test_spec("parallel.virtual_stages=2", NULL, NULL, NULL);
    g_assert_cmpint(interleaved->parallel.schedule, ==, sim_schedule_index("interleaved"));
    g_autofree Spec *v = test_spec("parallel.schedule=zb-v", NULL, NULL, NULL);
    g_assert_cmpint(v->parallel.virtual_stages, ==, 2);
    g_autofree Spec *moe =
        test_spec("model.moe={\"experts\":64,\"top_k\":2,\"expert_ffn_hidden\":1024,\"shared_experts\":2}",
                  "parallel.expert=4", NULL, NULL);
    g_assert_cmpint(moe->model.moe.shared_expert_ffn_hidden, ==, 2048);
    g_assert_cmpint(moe->parallel.expert_tensor, ==, 1); /* spread experts stay whole */
    g_autofree Spec *sliced =
        test_spec("model.moe={\"experts\":64,\"top_k\":2,\"expert_ffn_hidden\":1024}", NULL, NULL, NULL);
    g_assert_cmpint(sliced->parallel.expert_tensor, ==, 4); /* those that are not follow the tensor degree */
    /* ... whether expert x tensor would divide the 16 ranks or, as here, not */
    g_autofree Spec *wide = test_spec("model.moe={\"experts\":64,\"top_k\":2,\"expert_ffn_hidden\":1024}",
                                      "parallel.expert=16", NULL, NULL);
    g_assert_cmpint(wide->parallel.expert_tensor, ==, 1);
    g_autofree Spec *domain =
        test_spec("cluster.accelerator.reference_node.scale_up_domain_gpus=72", NULL, NULL, NULL);
    g_assert_cmpint(domain->cluster.scale_up_domain_gpus, ==, 72);
}

static void test_auto(void)
{
    static const char *const keys[] = {
        "training.micro_batch", "training.recompute", "parallel.tensor",
        "parallel.context",     "parallel.pipeline",  "parallel.virtual_stages",
        "parallel.data",        "parallel.expert",    "parallel.expert_tensor",
        "parallel.zero",        "parallel.schedule",  "parallel.sequence_parallel",
        "execution.attention",  "execution.overlap"};
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autofree char *set = g_strconcat(keys[i], "=auto", NULL);
        g_autofree char *message = NULL;
        const char *const sets[] = {set, NULL};
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_assert_false(test_load(sets, false, spec, NULL, &message));
        g_test_message("%s", message);
        g_assert_true(g_str_has_prefix(message, "test.json: "));
        g_assert_nonnull(strstr(message, keys[i]));
        g_assert_nonnull(strstr(message, "\"auto\""));
        g_assert_true(test_load(sets, true, spec, NULL, &message));
    }
    g_autofree Spec *spec = test_spec("parallel.tensor=auto", "training.recompute=auto",
                                      "execution.overlap=auto", "parallel.virtual_stages=auto");
    g_assert_cmpint(spec->parallel.tensor, ==, SPEC_AUTO);
    g_assert_cmpint(spec->parallel.data, ==, SPEC_AUTO);
    g_assert_cmpint((int)spec->parallel.schedule, ==, SPEC_AUTO);
    g_assert_cmpint((int)spec->training.recompute.mode, ==, SPEC_AUTO);
    g_assert_cmpuint(spec->execution.overlap, ==, SPEC_OVERLAP_AUTO);
    spec->parallel.tensor = 2;
    spec->parallel.virtual_stages = 1;
    spec->parallel.schedule = sim_schedule_index("1f1b");
    GError *error = NULL;
    g_assert_true(spec_complete(spec, "point", &error));
    g_assert_no_error(error);
    g_assert_cmpint(spec->parallel.data, ==, 8);
    g_assert_cmpint(spec->parallel.expert_tensor, ==, 2);
    g_assert_true(spec_check(spec, "point", &error));
    g_autofree Spec *derived = test_spec("parallel.data=auto", NULL, NULL, NULL);
    g_assert_cmpint(derived->parallel.data, ==, 4); /* the GPU count leaves no choice */
}

/* Presets in a folder of their own. */
static void write_file(const char *root, const char *kind, const char *name, const char *text)
{
    g_autofree char *folder = g_build_filename(root, kind, NULL),
                    *path = g_build_filename(folder, name, NULL);
    g_mkdir_with_parents(folder, 0700);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void remove_tree(const char *root)
{
    g_autoptr(GDir) dir = g_dir_open(root, 0, NULL);
    for (const char *name = dir != NULL ? g_dir_read_name(dir) : NULL; name != NULL;
         name = g_dir_read_name(dir)) {
        g_autofree char *path = g_build_filename(root, name, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_DIR))
            remove_tree(path);
        else
            g_unlink(path);
    }
    g_rmdir(root);
}

#define MODEL_FILE                                                                                           \
    "{\"schema\":1,\"name\":\"tiny\",\"source\":{\"layers\":\"made "                                         \
    "up\"},\"layers\":8,\"hidden\":512,\"heads\":8,\"vocab\":1024}"
#define TINY_SCENARIO                                                                                        \
    "{\"model\":\"tiny\",\"cluster\":{\"preset\":\"box\",\"nodes\":2},"                                      \
    "\"training\":{\"sequence_length\":128,\"global_batch\":32},\"execution\":{\"framework\":\"plain\"}}"

static void write_presets(const char *root)
{
    write_file(root, "models", "tiny.json", MODEL_FILE);
    write_file(root, "accelerators", "chip.json", TEST_ACCELERATOR);
    write_file(
        root, "clusters", "box.json",
        "{\"schema\":1,\"name\":\"box\",\"source\":\"made up\",\"accelerator\":\"chip\",\"gpus_per_node\":4,"
        "\"collectives\":{\"ring_frac\":0.5}}");
    write_file(root, "frameworks", "plain.json", TEST_FRAMEWORK);
    write_file(root, "calibrations", "lab.json",
               "{\"stamp\":{\"date\":\"today\"},\"points\":[[1,2.5]],\"collectives\":{\"ring_frac\":0.75},"
               "\"model\":{\"memory_bound\":{\"norm_frac\":0.625}}}");
    write_file(root, "clusters", "broken.json", "{\"accelerator\":\"chip\",\"gpus_per_nod\":4}");
    write_file(root, "clusters", "loop.json", "{\"preset\":\"loop\"}");
}

static bool load_tiny(const char *path, const char *const *sets, Spec *ret_spec, SpecSource *ret_source,
                      GError **error)
{
    return spec_load_file(path, sets, false, ret_spec, ret_source, error);
}

static void check_presets(const char *path)
{
    GError *error = NULL;
    g_autofree Spec *spec = g_new0(Spec, 1);
    SpecSource source = {0};
    load_tiny(path, NULL, spec, &source, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(spec->model.name, ==, "tiny");
    g_assert_cmpstr(spec->cluster.name, ==, "box");
    g_assert_cmpstr(spec->cluster.accelerator.name, ==, "test-gpu");
    g_assert_cmpint(spec_gpus(spec), ==, 8);
    g_assert_cmpfloat(spec->cluster.collectives.ring_frac, ==, 0.5);
    g_assert_cmpuint(source.profiles->len, ==, 4);
    g_assert_true(g_str_has_prefix(g_ptr_array_index(source.profiles, 0), "models/tiny "));
    spec_source_clear(&source);
    static const char *const overrides[] = {"model.layers=4",
                                            "cluster.accelerator.memory_bytes=40 GB",
                                            "execution.framework.host.kernel_host_s=3 us",
                                            "execution.framework.defaults.attention=unfused",
                                            "cluster.calibration=lab",
                                            NULL};
    g_assert_cmpint(spec->execution.attention, ==, SPEC_ATTENTION_FLASH2); /* the profile's */
    static const char *const hopper[] = {"execution.framework.defaults.attention_since_hopper=cudnn",
                                         "cluster.accelerator.generation=hopper", NULL};
    load_tiny(path, hopper, spec, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpint(spec->execution.attention, ==, SPEC_ATTENTION_CUDNN);
    load_tiny(path, overrides, spec, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpint(spec->model.layers, ==, 4);
    g_assert_cmpint(spec->model.hidden, ==, 512);
    g_assert_cmpfloat(spec->cluster.accelerator.memory_bytes, ==, 40e9);
    g_assert_cmpint(spec->cluster.accelerator.sm_count, ==, 100);
    g_assert_cmpfloat(spec->execution.framework.host.kernel_host_s, ==, 3e-6);
    g_assert_cmpint(spec->execution.attention, ==, SPEC_ATTENTION_UNFUSED);
    g_assert_cmpfloat(spec->cluster.collectives.ring_frac, ==, 0.75); /* calibration before preset */
    g_assert_cmpfloat(spec->cluster.accelerator.model.memory_bound.norm_frac, ==, 0.625);
    static const char *const field_first[] = {"cluster.calibration=lab", "cluster.collectives.ring_frac=0.25",
                                              "cluster.collectives.fitted=1", NULL};
    load_tiny(path, field_first, spec, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpfloat(spec->cluster.collectives.ring_frac, ==, 0.25); /* scenario before calibration */
}

static void check_preset_errors(const char *path)
{
    static const struct {
        const char *set, *message;
    } cases[] = {
        {"model=tiny2", "model: \"tiny2\" is not one of the models; did you mean \"tiny\"?"},
        {"cluster=broken",
         "broken.json: gpus_per_nod: unknown key (value 4); did you mean \"gpus_per_node\"?"},
        {"cluster=loop", "starts from itself"},
        {"cluster.calibration=nowhere", "cluster.calibration: \"nowhere\" is not one of the calibrations"},
        {"model=./absent.json", "is not a file"},
        {"model=7", "model: 7 is a number; give a preset's name"},
        {"execution.framework=plian", "did you mean \"plain\"?"},
        {"cluster.accelerator=", "is not one of the accelerators"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *const sets[] = {cases[i].set, NULL};
        GError *error = NULL;
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_assert_false(load_tiny(path, sets, spec, NULL, &error));
        g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, cases[i].message));
        g_error_free(error);
    }
}

/* Names as people remember them. */
static void test_suggestions(void)
{
    static const struct {
        const char *kind, *name, *meant;
    } cases[] = {
        {"clusters", "dgx1-v100", "\"dgx-1\" or \"dgx-1-p100\""},
        {"clusters", "DGX_H100", "\"dgx-h100\""},
        {"models", "llama-3-8b-instruct", "\"llama3-8b\""},
        {"models", "gpt3-175", "\"gpt3-175b\""},
        {"accelerators", "h100", "one of \"h100-nvl-94gb\", \"h100-pcie-80gb\", \"h100-sxm5-"},
        {"accelerators", "H200", "\"h200-sxm5-141gb\""}, /* not gh200-96gb */
        {"accelerators", "RTX 4090", "\"rtx-4090-24gb\""},
        {"accelerators", "3090", "\"rtx-3090-24gb\""},
        {"accelerators", "h", NULL},
        {"clusters", "zzzzzzzz", NULL},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GPtrArray) names = spec_preset_names(cases[i].kind, NULL);
        g_autofree char *meant = spec_preset_suggestion(names, cases[i].name);
        g_test_message("%s: %s", cases[i].name, meant);
        if (cases[i].meant == NULL)
            g_assert_null(meant);
        else
            g_assert_true(meant != NULL && g_str_has_prefix(meant, cases[i].meant));
    }
}

/* A model by the name that Hugging Face gives it, with its owner or without, is the preset of its shape. */
static void test_hugging_face_names(void)
{
    static const char *const names[][2] = {{"Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"},
                                           {"meta-llama/Llama-3.1-70B", "llama3-70b"},
                                           {"Mixtral-8x7B-v0.1", "mixtral-8x7b"}};
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        SpecModel model, preset;
        GError *error = NULL;
        g_assert_true(spec_load_model(names[i][0], &model, &error));
        g_assert_no_error(error);
        g_assert_true(spec_load_model(names[i][1], &preset, &error));
        g_assert_cmpint(model.hidden, ==, preset.hidden);
        g_assert_cmpint(model.layers, ==, preset.layers);
    }
    SpecModel model;
    GError *error = NULL;
    g_assert_false(spec_load_model("nobody/nothing-3b", &model, &error));
    g_assert_nonnull(strstr(error->message, "no preset has its shape; download its config.json"));
    g_error_free(error);
}

static void test_presets(void)
{
    g_autofree char *root = g_dir_make_tmp("orrery-XXXXXX", NULL);
    g_autofree char *before = g_strdup(g_getenv("ORRERY_SCENARIOS"));
    g_setenv("ORRERY_SCENARIOS", root, TRUE);
    write_presets(root);
    write_file(root, "mine", "tiny.json", TINY_SCENARIO);
    g_autofree char *path = g_build_filename(root, "mine", "tiny.json", NULL);
    check_presets(path);
    check_preset_errors(path);
    g_autoptr(GPtrArray) names = spec_preset_names("clusters", NULL);
    g_assert_cmpuint(names->len, ==, 3);
    g_assert_cmpstr(g_ptr_array_index(names, 0), ==, "box");
    SpecModel model;
    GError *error = NULL;
    spec_load_model("tiny", &model, &error);
    g_assert_no_error(error);
    g_assert_cmpint(model.ffn_hidden, ==, 2048);
    SpecAccelerator accelerator;
    spec_load_accelerator("chip", &accelerator, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(accelerator.generation.name, ==, "ampere");
    SpecFramework framework;
    g_assert_false(spec_load_framework("plan", &framework, &error));
    g_assert_nonnull(strstr(error->message, "\"plain\""));
    g_error_free(error);
    remove_tree(root);
    if (before != NULL)
        g_setenv("ORRERY_SCENARIOS", before, TRUE);
    else
        g_unsetenv("ORRERY_SCENARIOS");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/spec/load/defaults", test_defaults);
    g_test_add_func("/spec/load/source", test_source);
    g_test_add_func("/spec/load/times", test_times);
    g_test_add_func("/spec/load/forms", test_forms);
    g_test_add_func("/spec/load/derived", test_derived);
    g_test_add_func("/spec/load/auto", test_auto);
    g_test_add_func("/spec/load/presets", test_presets);
    g_test_add_func("/spec/load/hugging-face-names", test_hugging_face_names);
    g_test_add_func("/spec/load/suggestions", test_suggestions);
    return g_test_run();
}
