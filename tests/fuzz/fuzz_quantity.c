/* tests/fuzz/fuzz_quantity.c - text into the reader of quantities ("80 GiB"): a finite number or a message. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = g_strndup((const char *)data, size);
    for (int unit = ORR_UNIT_NONE; unit <= ORR_UNIT_USD; unit++) {
        double value = 0;
        GError *error = NULL;
        if (orr_parse_quantity(text, (OrrUnit)unit, &value, &error)) {
            g_assert(isfinite(value));
            char shown[ORR_TEXT_SIZE];
            g_assert(strlen(orr_text_bytes(shown, value)) < ORR_TEXT_SIZE);
            g_assert(strlen(orr_text_seconds(shown, value)) < ORR_TEXT_SIZE);
            g_assert(strlen(orr_text_si(shown, value, "B")) < ORR_TEXT_SIZE);
            g_assert(strlen(orr_text_count(shown, value)) < ORR_TEXT_SIZE);
        } else {
            g_assert(error != NULL);
            g_error_free(error);
        }
    }
    g_free(text);
    return 0;
}
