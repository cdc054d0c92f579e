/* api/kinds.c - see kinds.h. Tested: cli/test_cli_plan.c */
#include "api/kinds_internal.h"

#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "spec/load.h"

static bool read_price(const char *flag, const char *text, double *ret_usd, GError **error)
{
    if (!orr_parse_quantity(text, ORR_UNIT_USD, ret_usd, error)) {
        g_prefix_error(error, "--%s: ", flag);
        return false;
    }
    return *ret_usd > 0 || orr_fail(error, ORR_ERROR_INPUT, "--%s: %s is not above 0", flag, text);
}

/* --- training programs --- */

static void base_free(void *data)
{
    ApiBase *base = data;
    spec_source_clear(&base->own);
    g_free(base->reason);
    g_free(base);
}

static bool add_framework(const ApiKindsAsk *ask, const char *name, const ApiBase *plain, ApiKinds *kinds,
                          GError **error)
{
    g_autofree char *chosen = g_strdup_printf("execution.framework=%s", name);
    g_autofree SpecFramework *framework = g_new0(SpecFramework, 1);
    for (guint i = 0; i < kinds->bases->len; i++)
        if (g_str_equal(((const ApiBase *)g_ptr_array_index(kinds->bases, i))->framework, name))
            return orr_fail(error, ORR_ERROR_INPUT, "--framework: %.80s stands there twice; name it once",
                            name);
    if (!spec_load_framework(name, framework, error)) {
        g_prefix_error(error, "--framework: ");
        return false;
    }
    api_base_add(plain, ask->where, (const char *const[]){chosen, NULL}, kinds)->framework =
        g_intern_string(name);
    return true;
}

static bool add_frameworks(const ApiKindsAsk *ask, const Spec *spec, const SpecSource *source,
                           ApiKinds *kinds, GError **error)
{
    g_autofree ApiBase *plain = g_new0(ApiBase, 1);
    plain->spec = *spec;
    plain->source = source;
    if (ask->frameworks == NULL)
        g_ptr_array_add(kinds->bases, g_memdup2(plain, sizeof *plain));
    for (char *const *name = ask->frameworks; name != NULL && *name != NULL; name++)
        if (!add_framework(ask, g_strstrip(*name), plain, kinds, error))
            return false;
    return true;
}

/* --- kinds of GPU --- */

static bool add_word(const char *key, const char *word, const ApiBase *base, ApiKinds *kinds, GError **error)
{
    const char *at = strrchr(word, '@');
    g_autofree char *name = at != NULL ? g_strndup(word, (gsize)(at - word)) : g_strdup(word);
    double price = 0;
    if (at != NULL && !read_price(key, at + 1, &price, error))
        return false;
    g_autoptr(GString) text = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, text, true);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_text(&w, g_str_equal(key, "cluster") ? "preset" : "accelerator", name);
    if (price > 0)
        orr_jw_number(&w, "usd_per_gpu_hour", price);
    orr_jw_end(&w, '}');
    g_autofree char *where = g_strdup_printf("--%s", key);
    OrrJsonDoc *doc = orr_json_parse(text->str, text->len, where, error);
    const bool ok = doc != NULL && api_kind_add(base, orr_json_root(doc), where, kinds, error);
    orr_json_free(doc);
    return ok;
}

static bool add_words(const char *key, char *const *words, const ApiBase *base, ApiKinds *kinds,
                      GError **error)
{
    for (char *const *word = words; word != NULL && *word != NULL; word++)
        if (!add_word(key, g_strstrip(*word), base, kinds, error))
            return false;
    return true;
}

static guint count_of(char *const *words)
{
    return words != NULL ? g_strv_length((char **)words) : 0;
}

static bool count_kinds(const ApiKindsAsk *ask, GError **error)
{
    const guint machines = count_of(ask->accelerators) + count_of(ask->clusters),
                count = MAX(1, machines) * MAX(1, count_of(ask->frameworks));
    return count <= API_KINDS_MOST ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "%s: %u machines side by side, more than %d; name fewer, or ask several times",
                    machines == 0                  ? "--framework"
                    : count_of(ask->clusters) == 0 ? "--accelerator"
                                                   : "--cluster",
                    count, API_KINDS_MOST);
}

static void kind_clear(void *data)
{
    ApiKind *kind = data;
    g_free(kind->spec);
    g_free(kind->cluster_json);
    g_free(kind->reason);
    g_free(kind->name);
}

void api_kinds_clear(ApiKinds *kinds)
{
    g_clear_pointer(&kinds->list, g_array_unref);
    g_clear_pointer(&kinds->bases, g_ptr_array_unref);
}

bool api_kinds_load(const ApiKindsAsk *ask, const Spec *base, const SpecSource *source, ApiKinds *ret_kinds,
                    GError **error)
{
    ApiKinds kinds = {g_ptr_array_new_with_free_func(base_free), g_array_new(FALSE, TRUE, sizeof(ApiKind))};
    g_array_set_clear_func(kinds.list, kind_clear);
    bool ok = count_kinds(ask, error) && add_frameworks(ask, base, source, &kinds, error);
    const guint programs = kinds.bases->len;
    for (guint i = 0; ok && i < programs; i++) {
        const ApiBase *of = g_ptr_array_index(kinds.bases, i);
        ok = add_words("accelerator", ask->accelerators, of, &kinds, error) &&
             add_words("cluster", ask->clusters, of, &kinds, error);
        if (ok && ask->accelerators == NULL && ask->clusters == NULL && ask->machines == NULL)
            api_kind_own(of, &kinds);
    }
    ok =
        ok && (ask->machines == NULL || api_machines_add(ask->machines, ask->where, programs, &kinds, error));
    if (!ok)
        api_kinds_clear(&kinds);
    else
        *ret_kinds = kinds;
    return ok;
}

void api_kind_plan(const ApiKind *kind, const PlanOptions *options, Plan *ret_plan)
{
    g_autoptr(GError) reason = NULL;
    PlanOptions own = *options;
    own.cluster_json = kind->cluster_json;
    own.terms = kind->terms;
    if (kind->reason != NULL)
        orr_fail(&reason, ORR_ERROR_INPUT, "%s", kind->reason);
    if (reason != NULL || !plan_run(kind->spec, &own, ret_plan, &reason))
        plan_drop(kind->spec, reason, ret_plan);
    ret_plan->framework = kind->framework;
    ret_plan->source = kind->source;
    ret_plan->name = g_strdup(kind->name);
    ret_plan->machine = kind->machine;
    ret_plan->terms = kind->terms;
}
