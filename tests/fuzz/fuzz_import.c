/* tests/fuzz/fuzz_import.c - bytes as a Hugging Face config.json: a model object, or a message. */
#include <stdint.h>

#include "spec/import_hf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse((const char *)data, size, "config.json", &error);
    if (doc == NULL) {
        g_error_free(error);
        return 0;
    }
    const OrrJson *root = orr_json_root(doc);
    if (spec_is_hf_config(root)) {
        g_autoptr(GPtrArray) changes = g_ptr_array_new_with_free_func(g_free),
                             harmless = g_ptr_array_new_with_free_func(g_free);
        OrrJsonDoc *model = spec_import_hf_said(root, "folder/config.json", changes, harmless, &error);
        if (model != NULL) {
            g_assert(orr_json_type(orr_json_root(model)) == ORR_JSON_OBJECT);
            orr_json_free(model);
        } else {
            g_assert(error != NULL);
            g_error_free(error);
        }
    }
    orr_json_free(doc);
    return 0;
}
