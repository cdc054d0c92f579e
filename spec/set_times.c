/* spec/set_times.c - see set_times.h. Tested: unit/spec/test_spec_load.c */
#include "spec/set_times.h"

#include <math.h>
#include <string.h>

#include "spec/read.h"

static bool factor_of(const char *set, double *ret_factor)
{
    const char *equals = strchr(set, '=');
    char *end = NULL;
    if (equals == NULL || equals[1] != 'x' || !g_ascii_isdigit(equals[2]))
        return false;
    *ret_factor = g_ascii_strtod(equals + 2, &end);
    return *end == '\0' && isfinite(*ret_factor) && strpbrk(equals + 2, "xX") == NULL;
}

bool spec_set_is_times(const char *set)
{
    double factor = 0;
    return factor_of(set, &factor);
}

/* Numbers of an object that has no table: peaks by type. */
static bool custom_number(const Spec *spec, const char *path, double *ret_value)
{
    static const char peaks[] = "cluster.accelerator.peak_flops_per_s.";
    for (int i = 0; g_str_has_prefix(path, peaks) && i < spec_words_dtype.count; i++)
        if (g_str_equal(path + strlen(peaks), spec_word(&spec_words_dtype, i))) {
            *ret_value = spec->cluster.accelerator.peak_flops_per_s[i];
            return *ret_value > 0;
        }
    return false;
}

/* A name may be "x2". */
static bool is_text(const char *path)
{
    g_auto(GStrv) keys = g_strsplit(path, ".", -1);
    const SpecTable *table = &spec_table_scenario;
    const SpecField *field = NULL;
    for (int i = 0; table != NULL && keys[i] != NULL; i++) {
        field = spec_table_find(table, keys[i]);
        table = field != NULL && field->type == SPEC_TYPE_OBJECT ? field->table : NULL;
    }
    return field != NULL && field->type == SPEC_TYPE_NAME;
}

/* The number at a key path; `whole`: of a count. */
static bool number_at(const Spec *spec, const char *path, double *ret_value, bool *ret_whole)
{
    g_auto(GStrv) keys = g_strsplit(path, ".", -1);
    const SpecTable *table = &spec_table_scenario;
    const char *at = (const char *)spec;
    for (int i = 0; table != NULL && keys[i] != NULL; i++) {
        const SpecField *field = spec_table_find(table, keys[i]);
        if (field == NULL)
            return false;
        at += field->offset;
        table = field->type == SPEC_TYPE_OBJECT ? field->table : NULL;
        if (keys[i + 1] != NULL)
            continue;
        *ret_whole = field->type == SPEC_TYPE_INT;
        if (field->type == SPEC_TYPE_INT)
            *ret_value = *(const int *)(const void *)at;
        else if (field->type == SPEC_TYPE_DOUBLE)
            *ret_value = *(const double *)(const void *)at;
        return (field->type == SPEC_TYPE_INT || field->type == SPEC_TYPE_DOUBLE) && *ret_value > 0;
    }
    return false;
}

char *spec_set_times(const Spec *spec, const char *set, GError **error)
{
    const char *equals = strchr(set, '=');
    g_autofree char *path = g_strndup(set, (gsize)(equals - set));
    double factor = 0, value = 0;
    bool whole = false;
    factor_of(set, &factor);
    if (is_text(path))
        return g_strdup(set);
    if (!number_at(spec, path, &value, &whole) && !custom_number(spec, path, &value)) {
        orr_fail(
            error, ORR_ERROR_INPUT,
            "--set %s: the scenario has no number above 0 there to take times %g; give the number itself",
            set, factor);
        return NULL;
    }
    const double product = value * factor;
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    if (whole && product != floor(product)) {
        orr_fail(error, ORR_ERROR_INPUT, "--set %s: %g times %g is not a whole number", set, value, factor);
        return NULL;
    }
    return g_strdup_printf("%s=%s", path, g_ascii_formatd(text, sizeof text, "%.17g", product));
}
