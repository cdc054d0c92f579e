/* api/vary.c - a field and the values it takes. */
#include "api/vary.h"

#include <math.h>
#include <string.h>

enum { MAX_VALUES = 100000 };
#define MAX_VALUES_TEXT "100000"

static bool vary_error(GError **error, const char *text, const char *what)
{
    g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT,
                "--vary %s: %s; write it as key=a,b,c, key=a..b (doubling) or key=a..b:step, as in "
                "training.micro_batch=1..8",
                text, what);
    return false;
}

static bool read_finite(const char *text, double *ret_value)
{
    char *end = NULL;
    *ret_value = g_ascii_strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*ret_value);
}

/* Doubles from the first number up to the last, which is always in. */
static const char *expand_doubling(double first, double last, GPtrArray *values)
{
    if (!(first > 0.0) || !(last >= first))
        return "a range begins above 0 and does not go down";
    for (double value = first; value < last; value *= 2.0)
        g_ptr_array_add(values, g_strdup_printf("%.15g", value));
    g_ptr_array_add(values, g_strdup_printf("%.15g", last));
    return NULL;
}

/* Steps from the first number up to the last, which is always in. */
static const char *expand_steps(double first, double last, double step, GPtrArray *values)
{
    if (!(step > 0.0) || !(last >= first))
        return "a range does not go down, and its step is above 0";
    const double steps = ceil((last - first) / step * (1 - 1e-12)); /* 0.3 / 0.1 is three */
    if (!(steps < MAX_VALUES))
        return "there are more than " MAX_VALUES_TEXT " values";
    for (int i = 0; i < (int)steps; i++)
        g_ptr_array_add(values, g_strdup_printf("%.15g", first + step * i));
    g_ptr_array_add(values, g_strdup_printf("%.15g", last));
    return NULL;
}

static const char *expand_range(const char *from, const char *to, GPtrArray *values)
{
    g_auto(GStrv) ends = g_strsplit(to, ":", 2);
    double first = 0, last = 0, step = 0;
    if (!read_finite(from, &first) || ends[0] == NULL || !read_finite(ends[0], &last) ||
        (ends[1] != NULL && !read_finite(ends[1], &step)))
        return "a range goes from a number to a number";
    return ends[1] != NULL ? expand_steps(first, last, step, values) : expand_doubling(first, last, values);
}

static const char *expand_list(const char *list, GPtrArray *values)
{
    g_auto(GStrv) parts = g_strsplit(list, ",", MAX_VALUES + 1);
    for (char **part = parts; *part != NULL; part++) {
        if (g_strstrip(*part)[0] == '\0')
            return "a value is empty";
        g_ptr_array_add(values, g_strdup(*part));
    }
    return values->len > MAX_VALUES ? "there are more than " MAX_VALUES_TEXT " values" : NULL;
}

bool api_vary_parse(const char *text, ApiVary *ret_vary, GError **error)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0')
        return vary_error(error, text, "a key and its values are needed");
    g_autoptr(GPtrArray) values = g_ptr_array_new_with_free_func(g_free);
    const char *dots = strstr(equals, "..");
    const char *what = NULL;
    if (dots != NULL && strchr(equals, ',') == NULL) {
        g_autofree char *from = g_strndup(equals + 1, (gsize)(dots - equals - 1));
        what = expand_range(from, dots + 2, values);
    } else {
        what = expand_list(equals + 1, values);
    }
    if (what != NULL)
        return vary_error(error, text, what);
    ret_vary->key = g_strndup(text, (gsize)(equals - text));
    ret_vary->values = g_steal_pointer(&values);
    return true;
}

void api_vary_clear(ApiVary *vary)
{
    g_clear_pointer(&vary->key, g_free);
    if (vary->values != NULL)
        g_ptr_array_free(g_steal_pointer(&vary->values), TRUE);
}

static void clear(void *vary)
{
    api_vary_clear(vary);
}

GArray *api_vary_fields(void)
{
    GArray *fields = g_array_new(FALSE, TRUE, sizeof(ApiVary));
    g_array_set_clear_func(fields, clear);
    return fields;
}

char **api_vary_sets(char **sets, const char *key, const char *value)
{
    GPtrArray *all = g_ptr_array_new();
    for (char **set = sets; set != NULL && *set != NULL; set++)
        g_ptr_array_add(all, g_strdup(*set));
    g_ptr_array_add(all, g_strdup_printf("%s=%s", key, value));
    g_ptr_array_add(all, NULL);
    return (char **)g_ptr_array_free(all, FALSE);
}
