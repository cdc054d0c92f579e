/* tests/unit/test_spec_support.h - a whole scenario without presets, for tests to change one thing in. */
#ifndef ORR_TEST_SPEC_SUPPORT_H
#define ORR_TEST_SPEC_SUPPORT_H

#include <string.h>

#include "spec/load.h"

#define TEST_ACCELERATOR                                                                                     \
    "{\"name\":\"test-gpu\",\"memory_bytes\":\"80 GiB\",\"memory_bytes_per_s\":2e12,"                        \
    "\"peak_flops_per_s\":{\"fp32\":2e13,\"tf32\":1.5e14,\"fp16\":3e14,\"bf16\":\"300 TFLOP/s\"},"           \
    "\"sm_count\":100,\"l2_bytes\":4e7,\"power_w\":400,\"generation\":\"ampere\","                           \
    "\"scale_up_bytes_per_s\":3e11,\"host_link_bytes_per_s\":3e10,\"reference_node\":{\"gpus_per_node\":8,"  \
    "\"scale_up_domain_gpus\":8,\"scale_out_bytes_per_s_per_gpu\":\"200 Gbit/s\"}}"

#define TEST_FRAMEWORK "{\"name\":\"test-framework\",\"gradient_dtype\":\"bf16\",\"states\":\"zero-fp16\"}"

/* 64 GPUs: tensor 4, pipeline 4, data 4. */
#define TEST_SCENARIO                                                                                        \
    "{\"name\":\"test\",\"model\":{\"name\":\"m\",\"layers\":32,\"hidden\":4096,\"heads\":32,\"kv_heads\":"  \
    "8,"                                                                                                     \
    "\"ffn_hidden\":16384,\"vocab\":51200},"                                                                 \
    "\"cluster\":{\"accelerator\":" TEST_ACCELERATOR ",\"gpus_per_node\":8,\"nodes\":8},"                    \
    "\"training\":{\"sequence_length\":2048,\"global_batch\":512},"                                          \
    "\"parallel\":{\"tensor\":4,\"pipeline\":4},\"execution\":{\"framework\":" TEST_FRAMEWORK "}}"

/* Loads the scenario with `sets`; false with the message in `ret_message` (g_free). */
static inline bool test_load(const char *const *sets, bool allow_auto, Spec *ret_spec, SpecSource *ret_source,
                             char **ret_message)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(TEST_SCENARIO, strlen(TEST_SCENARIO), "test.json", &error);
    g_assert_no_error(error);
    const bool ok =
        spec_load_json(orr_json_root(doc), "test.json", sets, allow_auto, ret_spec, ret_source, &error);
    orr_json_free(doc);
    if (!ok) {
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
        *ret_message = g_strdup(error->message);
        g_error_free(error);
    }
    return ok;
}

/* The scenario with up to four overrides, which must load. */
static inline Spec *test_spec(const char *a, const char *b, const char *c, const char *d)
{
    const char *const sets[] = {a, b, c, d, NULL};
    Spec *spec = g_new0(Spec, 1);
    char *message = NULL;
    if (!test_load(sets, true, spec, NULL, &message))
        g_error("%s", message);
    return spec;
}

#endif
