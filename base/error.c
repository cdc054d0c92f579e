/* base/error.c - the quark of ORR_ERROR. */
#include "base/error.h"

GQuark orr_error_quark(void)
{
    return g_quark_from_static_string("orr-error-quark");
}
