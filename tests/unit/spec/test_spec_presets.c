/* Every preset and example of scenarios/ loads, and fits its own file name. */
#include <string.h>

#include "base/file.h"
#include "spec/load.h"
#include "spec/resolve.h"

typedef union Loaded {
    SpecModel model;
    SpecAccelerator accelerator;
    SpecCluster cluster;
    SpecFramework framework;
} Loaded;

static bool load_model(const char *name, Loaded *loaded, GError **error)
{
    return spec_load_model(name, &loaded->model, error) && g_str_equal(loaded->model.name, name);
}

static bool load_accelerator(const char *name, Loaded *loaded, GError **error)
{
    return spec_load_accelerator(name, &loaded->accelerator, error) &&
           g_str_equal(loaded->accelerator.name, name);
}

static bool load_cluster(const char *name, Loaded *loaded, GError **error)
{
    return spec_load_cluster(name, &loaded->cluster, error) && g_str_equal(loaded->cluster.name, name) &&
           loaded->cluster.accelerator.memory_bytes > 0 && loaded->cluster.gpus_per_node > 0 &&
           loaded->cluster.scale_up_domain_gpus > 0 && loaded->cluster.scale_out_bytes_per_s_per_gpu >= 0;
}

/* The file says under which name the profile goes today. */
static bool is_old_name(const char *name)
{
    g_autofree char *root = orr_scenarios_dir(NULL), *file = g_strconcat(name, ".json", NULL);
    g_autofree char *path = g_build_filename(root, "frameworks", file, NULL);
    OrrJsonDoc *doc = orr_json_read_file(path, NULL);
    const bool old = orr_json_member(orr_json_root(doc), "renamed_to") != NULL;
    orr_json_free(doc);
    return old;
}

static bool load_framework(const char *name, Loaded *loaded, GError **error)
{
    return spec_load_framework(name, &loaded->framework, error) &&
           (g_str_equal(loaded->framework.name, name) || is_old_name(name));
}

static void test_presets(void)
{
    static const struct {
        const char *kind;
        bool (*load)(const char *name, Loaded *loaded, GError **error);
    } kinds[] = {{"models", load_model},
                 {"accelerators", load_accelerator},
                 {"clusters", load_cluster},
                 {"frameworks", load_framework}};
    for (guint k = 0; k < G_N_ELEMENTS(kinds); k++) {
        GError *error = NULL;
        g_autoptr(GPtrArray) names = spec_preset_names(kinds[k].kind, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(names->len, >, 0);
        g_autofree Loaded *loaded = g_new0(Loaded, 1);
        for (guint i = 0; i < names->len; i++) {
            const char *name = g_ptr_array_index(names, i);
            const bool ok = kinds[k].load(name, loaded, &error);
            g_assert_no_error(error);
            if (!ok)
                g_error("%s/%s.json: loads, but not as what its file name says", kinds[k].kind, name);
        }
    }
}

/* Megatron overlaps messages between pipeline ranks of several chunks alone; Meta's never block. */
static void test_messages(void)
{
    static const struct {
        const char *framework;
        unsigned overlap;
        const char *schedule;
        bool waits;
    } cases[] = {{"megatron-core", 0, "1f1b", true},
                 {"megatron-core", SPEC_OVERLAP_PIPELINE, "1f1b", true},
                 {"megatron-core", 0, "interleaved", true},
                 {"megatron-core", SPEC_OVERLAP_PIPELINE, "interleaved", false},
                 {"megatron-core-2024", SPEC_OVERLAP_PIPELINE, "1f1b", true},
                 {"deepspeed", SPEC_OVERLAP_PIPELINE, "1f1b", false},
                 {"meta-llama3", 0, "1f1b", false}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_assert_true(spec_load_framework(cases[i].framework, &spec->execution.framework, NULL));
        spec->execution.overlap = cases[i].overlap;
        spec->parallel.schedule = sim_schedule_index(cases[i].schedule);
        spec->parallel.virtual_stages = g_str_equal(cases[i].schedule, "interleaved") ? 2 : 1;
        g_assert_true(spec_waits_for_sends(spec) == cases[i].waits);
    }
}

/* Megatron aligns gathers of interleaved stages alone; software without hooks on first uses begins them with the step. */
static void test_gathers(void)
{
    static const struct {
        const char *framework;
        SpecGathersBegin begin; /* STEP: the framework's own */
        const char *schedule;
        int pipeline;
        bool on_use;
    } cases[] = {{"megatron-core", SPEC_GATHERS_STEP, "1f1b", 4, true},
                 {"megatron-core", SPEC_GATHERS_STEP, "1f1b", 1, false},
                 {"megatron-core", SPEC_GATHERS_STEP, "interleaved", 4, false},
                 {"megatron-core", SPEC_GATHERS_STEP, "dualpipe", 4, false},
                 {"megatron-core", SPEC_GATHERS_USE, "interleaved", 4, true},
                 {"megatron-core", SPEC_GATHERS_VALIDATION, "1f1b", 4, false},
                 {"megatron-core-2026", SPEC_GATHERS_STEP, "1f1b", 4, true},
                 {"torchtitan", SPEC_GATHERS_STEP, "1f1b", 4, false}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_assert_true(spec_load_framework(cases[i].framework, &spec->execution.framework, NULL));
        if (cases[i].begin != SPEC_GATHERS_STEP)
            spec->execution.framework.data_parallel.gathers_begin = cases[i].begin;
        spec->execution.overlap = SPEC_OVERLAP_PARAM_GATHER;
        spec->parallel.schedule = sim_schedule_index(cases[i].schedule);
        spec->parallel.virtual_stages = g_str_equal(cases[i].schedule, "interleaved") ? 2 : 1;
        spec->parallel.pipeline = cases[i].pipeline;
        g_assert_true(spec_gathers_on_use(spec) == cases[i].on_use);
        spec->execution.overlap = 0;
        g_assert_false(spec_gathers_on_use(spec));
    }
}

static void test_examples(void)
{
    g_autofree char *root = orr_scenarios_dir(NULL);
    g_assert_nonnull(root);
    g_autoptr(GPtrArray) names = spec_preset_names("examples", NULL);
    g_assert_cmpuint(names->len, >, 0);
    g_autofree Spec *spec = g_new0(Spec, 1);
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *file = g_strconcat(g_ptr_array_index(names, i), ".json", NULL);
        g_autofree char *path = g_build_filename(root, "examples", file, NULL);
        GError *error = NULL;
        SpecSource source = {0};
        spec_load_file(path, NULL, true, spec, &source, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(strlen(source.scenario_hash), ==, 16);
        spec_source_clear(&source);
    }
}

/* Boards of four have no switch, and four superchips share their node's power; one node of four may be half of a larger
 * one; what a scenario says goes before. */
static void test_boards(void)
{
    static const struct {
        const char *cluster;
        SpecTopology topology;
        double power_cap_w;
    } CASES[] = {
        {"{\"accelerator\":\"h200-sxm5-141gb\",\"gpus_per_node\":4,\"nodes\":2}", SPEC_TOPOLOGY_MESH, 0},
        {"{\"accelerator\":\"h200-sxm5-141gb\",\"gpus_per_node\":4}", SPEC_TOPOLOGY_SWITCH, 0},
        {"{\"accelerator\":\"h200-sxm5-141gb\",\"nodes\":2}", SPEC_TOPOLOGY_SWITCH, 0},
        {"{\"accelerator\":\"gh200-96gb\",\"gpus_per_node\":4}", SPEC_TOPOLOGY_MESH, 680},
        {"{\"accelerator\":\"gh200-96gb\",\"nodes\":4}", SPEC_TOPOLOGY_SWITCH, 0},
        {"{\"accelerator\":\"gh200-96gb\",\"gpus_per_node\":4,\"topology\":\"switch\"}", SPEC_TOPOLOGY_SWITCH,
         0},
        {"{\"accelerator\":{\"preset\":\"gh200-96gb\",\"power_cap_w\":600},\"gpus_per_node\":4}",
         SPEC_TOPOLOGY_MESH, 600},
        {"{\"accelerator\":\"mi300x-192gb\"}", SPEC_TOPOLOGY_MESH, 0},
        {"{\"accelerator\":\"tpu-v6e\"}", SPEC_TOPOLOGY_TORUS2D, 0},
        {"{\"accelerator\":\"tpu-v6e\",\"topology\":\"switch\"}", SPEC_TOPOLOGY_SWITCH, 0},
        {"{\"accelerator\":\"tpu-v5p\"}", SPEC_TOPOLOGY_TORUS3D, 0},
    };
    for (guint i = 0; i < G_N_ELEMENTS(CASES); i++) {
        GError *error = NULL;
        OrrJsonDoc *doc = orr_json_parse(CASES[i].cluster, strlen(CASES[i].cluster), "boards", &error);
        SpecCluster cluster;
        spec_load_cluster_json(orr_json_root(doc), "boards", &cluster, &error);
        orr_json_free(doc);
        g_assert_no_error(error);
        g_assert_cmpint(cluster.topology, ==, CASES[i].topology);
        g_assert_cmpfloat(cluster.accelerator.power_cap_w, ==, CASES[i].power_cap_w);
    }
}

static Spec *load_text(const char *text)
{
    GError *error = NULL;
    Spec *spec = g_new0(Spec, 1);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "test", NULL, false, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return spec;
}

#define OFFLOADS "\"offload\":{\"scheme\":\"zero-offload\"},"
#define V100S(more, offload)                                                                                 \
    "{\"model\":\"gpt3-1.3b\",\"cluster\":{\"accelerator\":\"v100-sxm2-32gb\",\"gpus_per_node\":8" more      \
    "},\"training\":{\"sequence_length\":1024,\"global_batch\":64,\"micro_batch\":4,\"precision\":\"fp16\"}" \
    ","                                                                                                      \
    "\"parallel\":{\"zero\":2}," offload "\"execution\":{\"framework\":\"deepspeed\"}}"

/* Eight V100s without a host offload to that of a DGX-1; a host that is given stays, and nobody else gets one. */
static void test_assumed_host(void)
{
    SpecCluster dgx;
    g_assert_true(spec_load_cluster("dgx-1", &dgx, NULL));
    g_autofree Spec *none = load_text(V100S("", "")), *assumed = load_text(V100S("", OFFLOADS)),
                    *own = load_text(V100S(
                        ",\"host\":{\"cores\":8,\"dram_bytes\":1e12,\"dram_bytes_per_s\":1e11}", OFFLOADS));
    g_assert_false(none->cluster.host_assumed);
    g_assert_cmpfloat(none->cluster.host.dram_bytes, ==, 0);
    g_assert_true(assumed->cluster.host_assumed);
    g_assert_true(memcmp(&assumed->cluster.host, &dgx.host, sizeof(SpecHost)) == 0);
    g_assert_false(own->cluster.host_assumed);
    g_assert_cmpfloat(own->cluster.host.dram_bytes, ==, 1e12);
}

/* host_of of every accelerator is a cluster that has a host. */
static void test_usual_hosts(void)
{
    g_autofree char *root = orr_scenarios_dir(NULL), *folder = g_build_filename(root, "accelerators", NULL);
    GDir *files = g_dir_open(folder, 0, NULL);
    int count = 0;
    for (const char *file = g_dir_read_name(files); file != NULL; file = g_dir_read_name(files)) {
        g_autofree char *name = g_strndup(file, strlen(file) - strlen(".json"));
        SpecAccelerator accelerator;
        SpecCluster cluster;
        g_assert_true(spec_load_accelerator(name, &accelerator, NULL));
        if (accelerator.reference_host[0] == '\0')
            continue;
        g_assert_true(spec_load_cluster(accelerator.reference_host, &cluster, NULL));
        g_assert_cmpfloat(cluster.host.dram_bytes, >, 0);
        count++;
    }
    g_dir_close(files);
    g_assert_cmpint(count, >=, 29);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/spec/presets/all", test_presets);
    g_test_add_func("/spec/presets/examples", test_examples);
    g_test_add_func("/spec/presets/messages", test_messages);
    g_test_add_func("/spec/presets/gathers", test_gathers);
    g_test_add_func("/spec/presets/boards", test_boards);
    g_test_add_func("/spec/presets/assumed-host", test_assumed_host);
    g_test_add_func("/spec/presets/usual-hosts", test_usual_hosts);
    return g_test_run();
}
