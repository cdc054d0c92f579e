/* tests/fuzz/fuzz_json.c - bytes into the JSON reader; what it accepts must survive writing and reading again. */
#include <stdint.h>
#include <string.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse((const char *)data, size, "fuzz", &error);
    if (doc == NULL) {
        g_assert(error != NULL && error->message[0] != '\0');
        g_error_free(error);
        return 0;
    }
    char *text = orr_json_dump(orr_json_root(doc));
    OrrJsonDoc *again = orr_json_parse(text, strlen(text), "again", &error);
    g_assert_no_error(error);
    char *text_again = orr_json_dump(orr_json_root(again));
    g_assert_cmpstr(text, ==, text_again);

    g_free(orr_json_show(orr_json_root(doc)));
    if (!orr_json_set(again, "a.b.c", text, &error))
        g_clear_error(&error);
    if (orr_json_type(orr_json_root(doc)) == ORR_JSON_OBJECT)
        orr_json_free(orr_json_merge(orr_json_root(doc), orr_json_root(again), "merged"));
    orr_json_free(again);
    orr_json_free(doc);
    g_free(text_again);
    g_free(text);
    return 0;
}
