/* tests/unit/search/test_axes.c - one list of what may be "auto": the field tables and the axes name the same fields, and
 * every axis is seen by all that fold over the list. */
#include <string.h>

#include "api/chosen.h"
#include "search/axes.h"
#include "search/choose.h"
#include "search/search.h"
#include "search/write_internal.h"
#include "spec/fields.h"
#include "tests/unit/search_fixture.h"

/* Dealt out over the GPUs of a mixed cluster, by another search (search/mixed.h); or what the framework does (spec/). */
static bool is_elsewhere(const char *key)
{
    return strcmp(key, "parallel.stage_layers") == 0 || strcmp(key, "parallel.replica_microbatches") == 0 ||
           strcmp(key, "execution.compiled") == 0;
}

/* The fields of a table, and of the tables in it, that take "auto" are axes; gives their number. */
static int count_fields(const SpecTable *table, const char *path)
{
    int count = 0;
    for (int i = 0; i < table->count; i++) {
        const SpecField *field = &table->fields[i];
        g_autofree char *key = g_strdup_printf("%s%s%s", path, path[0] != '\0' ? "." : "", field->key);
        if (field->type == SPEC_TYPE_OBJECT && field->table != NULL)
            count += count_fields(field->table, key);
        if ((field->flags & SPEC_FIELD_AUTO) == 0 || is_elsewhere(key) || strcmp(key, "offload") == 0)
            continue;
        if (search_axis(key) == NULL)
            g_error("%s may be \"auto\", and is not a row of search/axes.c", key);
        count++;
    }
    return count;
}

/* A precision is asked for in another way; the rest of the axes are fields that take "auto". */
static void test_fields(void)
{
    int count = 0, own = 0;
    const SearchAxis *axes = search_axes(&count);
    for (int i = 0; i < count; i++)
        own += !axes[i].follows && strcmp(axes[i].key, "training.precision") != 0;
    g_assert_cmpint(count_fields(&spec_table_scenario, "") + count_fields(&spec_table_offload, "offload"), ==,
                    own);
}

static Spec *fixed_spec(void)
{
    GError *error = NULL;
    static const char text[] =
        "{\"model\":{\"layers\":4,\"hidden\":512,\"heads\":8,\"ffn_hidden\":2048,\"vocab\":32000,"
        "\"moe\":{\"experts\":8,\"top_k\":2,\"expert_ffn_hidden\":1024}},"
        "\"cluster\":{\"preset\":\"dgx-a100-80gb\",\"nodes\":1},"
        "\"training\":{\"sequence_length\":4096,\"global_batch\":16},"
        "\"parallel\":{\"tensor\":2,\"pipeline\":2,\"expert\":1}}";
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "fixed", &error);
    g_assert_no_error(error);
    Spec *spec = g_new0(Spec, 1);
    spec_load_json(orr_json_root(doc), "fixed", NULL, true, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return spec;
}

static void set_auto(const SearchAxis *axis, Spec *spec)
{
    const int automatic = SPEC_AUTO;
    if (strcmp(axis->key, "parallel.order") == 0)
        g_strlcpy(spec->parallel.order, "auto", sizeof spec->parallel.order);
    else if (strcmp(axis->key, "execution.overlap") == 0)
        spec->execution.overlap |= (unsigned)SPEC_OVERLAP_AUTO;
    else if (strcmp(axis->key, "training.recompute") == 0)
        spec->training.recompute.mode = (SpecRecomputeMode)SPEC_AUTO;
    else if (strcmp(axis->key, "training.precision") == 0)
        spec->search.precision = 1u << SPEC_PRECISION_BF16;
    else
        memcpy((char *)spec + axis->offset, &automatic, sizeof automatic);
}

static bool lists(const GPtrArray *chosen, const char *key)
{
    for (guint i = 0; i < chosen->len; i++) {
        const char *text = g_ptr_array_index(chosen, i);
        if (g_str_has_prefix(text, key) && text[strlen(key)] == '=')
            return true;
    }
    return false;
}

/* One field left to be chosen is seen, chosen, told, and written. */
static void test_each(void)
{
    int count = 0;
    const SearchAxis *axes = search_axes(&count);
    for (int i = 0; i < count; i++) {
        g_autofree Spec *asked = fixed_spec(), *chosen = g_new0(Spec, 1);
        GError *error = NULL;
        if (axes[i].follows)
            continue;
        g_assert_false(search_has_auto(asked));
        set_auto(&axes[i], asked);
        g_assert_true(search_has_auto(asked));
        g_autoptr(GPtrArray) told = g_ptr_array_new_with_free_func(g_free);
        g_assert_true(api_choose_reserved(asked, 0, NULL, chosen, told, &error));
        g_assert_no_error(error);
        g_assert_true(lists(told, axes[i].key));
        g_autoptr(GString) text = g_string_new(NULL);
        OrrJsonWriter w;
        orr_jw_init(&w, text, true);
        orr_jw_begin(&w, NULL, '{');
        search_write_choice(&w, asked, chosen);
        orr_jw_end(&w, '}');
        OrrJsonDoc *doc = orr_json_parse(text->str, text->len, "choice", &error);
        g_assert_no_error(error);
        g_auto(GStrv) path = g_strsplit(axes[i].key, ".", 2);
        const OrrJson *section = orr_json_member(orr_json_root(doc), path[0]);
        g_assert_nonnull(section);
        g_assert_nonnull(orr_json_member(section, path[1]));
        orr_json_free(doc);
    }
}

/* Groups say what their points have, and a point of a search is a row with all columns. */
static void test_groups(void)
{
    GRand *rand = g_rand_new_with_seed(3);
    int count = 0;
    const SearchAxis *axes = search_axes(&count);
    for (int number = 0; number < 12; number++) {
        g_autofree Spec *asked = fixture_space(rand, number, true), *spec = g_new(Spec, 1);
        SearchSpace *space = search_space_new(asked);
        for (int g = 0; g < space->group_count; g++) {
            *spec = *asked;
            search_apply_group(space, &space->groups[g], spec);
            for (int i = 0; i < count; i++)
                if (axes[i].grouped && !axes[i].indexed)
                    g_assert_cmpint(search_axis_of_group(&axes[i], &space->groups[g]), ==,
                                    search_axis_value(&axes[i], spec));
        }
        search_space_free(space);
    }
    g_rand_free(rand);
}

static void test_names(void)
{
    int count = 0;
    const SearchAxis *axes = search_axes(&count);
    unsigned places = 0;
    for (int i = 0; i < count; i++) {
        const unsigned place = axes[i].place > 0 ? 1u << axes[i].place : 0;
        g_assert_true(search_axis(axes[i].key) == &axes[i]); /* once each */
        g_assert_cmpuint(places & place, ==, 0);
        places |= place;
        for (int a = 0; a < SEARCH_AXES_ALONG && axes[i].along[a] != NULL; a++)
            g_assert_true(search_axis(axes[i].along[a])->grouped);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/search/axes/fields", test_fields);
    g_test_add_func("/search/axes/each", test_each);
    g_test_add_func("/search/axes/groups", test_groups);
    g_test_add_func("/search/axes/names", test_names);
    return g_test_run();
}
