/* spec/check_internal.h - what the spec/check*.c files share. */
#ifndef ORR_SPEC_CHECK_INTERNAL_H
#define ORR_SPEC_CHECK_INTERNAL_H

#include "spec/load.h"

typedef struct Check {
    const Spec *spec;
    const char *where;
    GError **error;
} Check;

/* Chosen, not "auto". */
static inline bool spec_check_known(int degree)
{
    return degree > 0;
}

/* Sets "<where>: <message>" and returns false. */
bool spec_check_fail(const Check *check, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* spec/check_pipeline.c: optimizer's norm, orders, schedule, layout of layers, offload and search. */
bool spec_check_pipeline(const Check *check);

#endif
