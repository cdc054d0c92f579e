/* tests/unit/exchange_fixture.h - what the tests of exports and imports share. */
#ifndef ORR_TESTS_EXCHANGE_FIXTURE_H
#define ORR_TESTS_EXCHANGE_FIXTURE_H

#include <string.h>

#include "study/compare.h"
#include "spec/load.h"

/* Prints what differs; a layout told stage by stage may say what the other derives. */
static inline int differences(const Spec *a, const Spec *b, const char *what)
{
    int counts_a[SPEC_MAX_STAGES], counts_b[SPEC_MAX_STAGES], found = 0;
    g_autoptr(GArray) fields = report_compare_specs(a, b);
    const int stages = a->parallel.pipeline * a->parallel.virtual_stages;
    const bool alike = stages == b->parallel.pipeline * b->parallel.virtual_stages &&
                       spec_stage_layers(a, counts_a, NULL) && spec_stage_layers(b, counts_b, NULL) &&
                       memcmp(counts_a, counts_b, (size_t)stages * sizeof counts_a[0]) == 0;
    for (guint i = 0; i < fields->len; i++) {
        const CompareField *field = &g_array_index(fields, CompareField, i);
        if (alike && strcmp(field->key, "parallel.stage_layers") == 0)
            continue;
        g_test_message("%s: %s: %s became %s", what, field->key, field->a, field->b);
        found++;
    }
    return found;
}

#endif
