/* tests/unit/study/test_chakra.c - bytes of a Chakra node by hand, groups of ranks, and files of a whole step. What the
 * files say of a step is played by tests/cli/test_chakra.py. */
#include <string.h>

#include "base/json.h"
#include "exchange/chakra.h"
#include "study/chakra.h"
#include "study/chakra_ranks.h"

/* --- bytes --- */

static void compare(const GString *out, const char *bytes, gsize length)
{
    g_assert_cmpuint(out->len, ==, length);
    g_assert_true(memcmp(out->str, bytes, length) == 0);
}

static void bytes(void)
{
    static const char header[] = "\x07\x0a\x05"
                                 "0.0.4";
    static const char node[] = "\x22"         /* 34 bytes */
                               "\x08\xac\x02" /* id 300 */
                               "\x12\x03"
                               "fwd"                  /* name */
                               "\x18\x04"             /* computes */
                               "\x2a\x03\x07\xac\x02" /* behind 7 and 300, packed */
                               "\x38\x80\x01"         /* 128 us */
                               "\x52\x0e\x0a\x09"
                               "is_cpu_op"
                               "\xd8\x01\x00";
    const uint64_t deps[] = {7, 300};
    g_autoptr(GString) out = g_string_new(NULL);
    chakra_append_header(out);
    compare(out, header, sizeof header - 1);
    g_string_truncate(out, 0);
    chakra_append_node(
        out,
        &(ChakraNode){
            .id = 300, .name = "fwd", .kind = CHAKRA_COMPUTE, .deps = deps, .dep_count = 2, .micros = 128});
    compare(out, node, sizeof node - 1);
}

/* --- groups --- */

static Spec *load(const char *parallel)
{
    g_autofree char *text = g_strdup_printf(
        "{\"model\":{\"preset\":\"llama3-8b\",\"layers\":4},\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":2}"
        ","
        "\"training\":{\"global_batch\":16,\"micro_batch\":1,\"sequence_length\":2048},\"parallel\":%s}",
        parallel);
    GError *error = NULL;
    Spec *spec = g_new0(Spec, 1);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "here", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "here", NULL, false, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return spec;
}

/* 16 ranks as tensor, data, pipeline, from the inside: rank = t + 2 d + 8 p. */
static void groups(void)
{
    Spec *spec = load("{\"tensor\":2,\"data\":4,\"pipeline\":2}");
    ChakraRanks *ranks = chakra_ranks_new(spec);
    g_assert_cmpstr(chakra_ranks_group(ranks, CHAKRA_GROUP_ALL, 5), ==, "0");
    g_assert_cmpstr(chakra_ranks_group(ranks, CHAKRA_GROUP_TENSOR, 5), ==, "1");
    g_assert_cmpstr(chakra_ranks_group(ranks, CHAKRA_GROUP_REPLICAS, 5), ==, "2");
    g_assert_cmpstr(chakra_ranks_group(ranks, CHAKRA_GROUP_TENSOR, 4), ==, "1");
    g_assert_cmpstr(chakra_ranks_group(ranks, CHAKRA_GROUP_ENDS, 13), ==, "3");
    g_autofree char *json = chakra_ranks_json(ranks);
    g_assert_cmpstr(json, ==, "{\n  \"1\": [4, 5],\n  \"2\": [1, 3, 5, 7],\n  \"3\": [5, 13]\n}\n");
    g_assert_cmpint(chakra_ranks_stage(ranks, 13), ==, 1);
    g_assert_cmpint(chakra_ranks_at_stage(ranks, 13, 0), ==, 5);
    g_assert_cmpint(chakra_ranks_size(ranks, CHAKRA_GROUP_STAGE), ==, 8);
    chakra_ranks_free(ranks);
    g_free(spec);
}

/* --- a step --- */

static bool count_files(const char *name, const GString *content, void *data, GError **error)
{
    GString *names = data;
    (void)error;
    g_assert_cmpuint(content->len, >, 0);
    g_string_append_printf(names, "%s ", name);
    return true;
}

static bool refuse_second(const char *name, const GString *content, void *data, GError **error)
{
    int *left = data;
    (void)content;
    return (*left)-- > 0 || orr_fail(error, ORR_ERROR_INPUT, "no room for %s", name);
}

static void files(void)
{
    GError *error = NULL;
    Report report;
    int left = 1;
    Spec *spec = load("{\"tensor\":2,\"data\":4,\"pipeline\":2,\"zero\":1}");
    OrrArena *arena = orr_arena_new();
    report_run(spec, NULL, &(ReportOptions){.check = false}, arena, &report, &error);
    g_assert_no_error(error);
    g_autoptr(GString) one = g_string_new(NULL), all = g_string_new(NULL);
    g_assert_true(chakra_write(&report, &(ChakraAsk){.put = count_files, .data = one}, &error));
    g_assert_cmpstr(one->str, ==, "step.0.et step.8.et step.json step.ranks.json ");
    g_assert_true(chakra_write(&report, &(ChakraAsk){.all = true, .put = count_files, .data = all}, &error));
    g_assert_true(g_str_has_prefix(all->str, "step.0.et step.1.et "));
    g_assert_nonnull(strstr(all->str, " step.15.et step.json "));
    g_assert_false(chakra_write(&report, &(ChakraAsk){.put = refuse_second, .data = &left}, &error));
    g_assert_cmpstr(error->message, ==, "no room for step.8.et");
    g_error_free(error);
    orr_arena_free(arena);
    g_free(spec);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/chakra/bytes", bytes);
    g_test_add_func("/chakra/groups", groups);
    g_test_add_func("/chakra/files", files);
    return g_test_run();
}
