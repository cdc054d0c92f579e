/* unit/costmodel/test_lengths_file.c - texts' lengths from a file: the step of their histogram, and what is refused. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "report/report.h"
#include "spec/load.h"

static char *folder;

/* A scenario in the folder whose training.lengths are these. */
static bool load(const char *lengths, Spec *spec, GError **error)
{
    g_autofree char *text = g_strdup_printf(
        "{\"model\":\"llama2-7b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},\"training\":{\"sequence_"
        "length\":1024,\"global_batch\":32,\"micro_batch\":2,\"lengths\":%s},\"parallel\":{\"data\":8,"
        "\"zero\":3},"
        "\"execution\":{\"framework\":\"pytorch-fsdp2\"}}",
        lengths);
    g_autofree char *path = g_build_filename(folder, "scenario.json", NULL);
    g_assert_true(orr_file_write(path, text, strlen(text), NULL));
    return spec_load_file(path, NULL, false, spec, NULL, error);
}

static void put(const char *text, size_t length)
{
    g_autofree char *path = g_build_filename(folder, "lengths.jsonl", NULL);
    g_assert_true(orr_file_write(path, text, length, NULL));
}

static Report run(const char *lengths, OrrArena *arena)
{
    static const ReportOptions checked = {.check = true};
    g_autofree Spec *spec = g_new0(Spec, 1);
    GError *error = NULL;
    Report report;
    load(lengths, spec, &error);
    g_assert_no_error(error);
    report_run(spec, NULL, &checked, arena, &report, &error);
    g_assert_no_error(error);
    report.spec = NULL;
    return report;
}

/* Every way to write a line, padded and packed: the histogram's step to the picosecond and the byte. */
static void test_equal(void)
{
    static const char *const files[] = {
        "100\n300\n300\n900\n",
        "\xef\xbb\xbf"
        "900\r\n\r\n  300\r\n100\r\n300",
        "{\"length\":300,\"text\":\"a\\nb\"}\n{\"tokens\":900}\n{\"num_tokens\":100}\n3e2\n",
    };
    static const char *const ends[] = {"", ",\"packed\":false", ",\"packed\":false,\"max\":500"};
    for (gsize k = 0; k < G_N_ELEMENTS(ends); k++) {
        OrrArena *arena = orr_arena_new();
        g_autofree char *counted = g_strdup_printf("{\"histogram\":[[100,1],[300,2],[900,1]]%s}", ends[k]);
        g_autofree char *named = g_strdup_printf("{\"file\":\"lengths.jsonl\"%s}", ends[k]);
        const Report want = run(counted, arena);
        for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
            put(files[i], strlen(files[i]));
            const Report report = run(named, arena);
            g_assert_cmpint(report.step_ps, ==, want.step_ps);
            g_assert_cmpfloat(report.peak_bytes, ==, want.peak_bytes);
            g_assert_cmpfloat(report.tokens_per_s, ==, want.tokens_per_s);
        }
        orr_arena_free(arena);
    }
}

static void test_input_ids(void)
{
    static const char text[] = "{\"input_ids\":[5,6,7]}\n{\"input_ids\":[1,2,3,4,5,6,7]}\n";
    g_autofree Spec *spec = g_new0(Spec, 1);
    put(text, strlen(text));
    g_assert_true(load("{\"file\":\"lengths.jsonl\"}", spec, NULL));
    g_assert_cmpint(spec->training.lengths.histogram_count, ==, 2);
    g_assert_cmpfloat(spec->training.lengths.histogram_tokens[0], ==, 3);
    g_assert_cmpfloat(spec->training.lengths.histogram_tokens[1], ==, 7);
}

/* Of thousands of lengths 64 stay, with the mean as it was and the sum of squares nearly so. */
static void test_many(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    double sum = 0, squares = 0, texts = 0, binned = 0, binned_squares = 0;
    for (int i = 0; i < 6000; i++) {
        const int tokens = 1 + (int)(20 * exp(6.0 * ((i * 2741) % 6000) / 6000));
        g_string_append_printf(text, "%d\n", tokens);
        sum += tokens;
        squares += (double)tokens * tokens;
    }
    put(text->str, text->len);
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_assert_true(load("{\"file\":\"lengths.jsonl\"}", spec, NULL));
    const SpecLengths *lengths = &spec->training.lengths;
    g_assert_cmpint(lengths->histogram_count, ==, SPEC_LENGTHS_MOST);
    for (int i = 0; i < lengths->histogram_count; i++) {
        const double tokens = lengths->histogram_tokens[i], weight = lengths->histogram_weight[i];
        texts += weight;
        binned += weight * tokens;
        binned_squares += weight * tokens * tokens;
    }
    g_assert_cmpfloat(texts, ==, 6000);
    g_assert_cmpfloat_with_epsilon(binned, sum, 1e-6 * sum);
    g_assert_cmpfloat_with_epsilon(binned_squares, squares, 1e-3 * squares);
}

static void test_refused(void)
{
    static const struct {
        const char *file, *lengths, *says;
    } cases[] = {
        {"100\nabc\n", NULL, "lengths.jsonl: line 2: abc is not a number of tokens; give a whole number"},
        {"0\n", NULL, "line 1: 0 is no"},
        {"-5\n", NULL, "line 1: -5 is no"},
        {"1.5\n", NULL, "line 1: 1.5 is no"},
        {"2e9\n", NULL, "line 1: 2e9 is no"},
        {"5 6\n", NULL, "line 1: 5 6 is no"},
        {"7\n\n{\"text\":\"a\"}\n", NULL, "line 3: {\"text\":\"a\"} is no"},
        {"{\"input_ids\":[]}\n", NULL, "line 1"},
        {"\n \n", NULL, "has no line"},
        {"", NULL, "has no line"},
        {"5\n", "{\"file\":\"none.txt\"}", "\"none.txt\" is not a file"},
        {"5\n", "{\"file\":\"\"}", "is not a file"},
        {"5\n", "{\"file\":7}", "give the path of a file"},
        {"5\n", "{\"file\":\"lengths.jsonl\",\"mean\":5}", "has both file and mean"},
        {"5\n", "{\"file\":\"lengths.jsonl\",\"histogram\":[[5,1]]}", "has both file and histogram"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_autoptr(GError) error = NULL;
        put(cases[i].file, strlen(cases[i].file));
        g_assert_false(
            load(cases[i].lengths != NULL ? cases[i].lengths : "{\"file\":\"lengths.jsonl\"}", spec, &error));
        if (strstr(error->message, cases[i].says) == NULL || strchr(error->message, '\n') != NULL)
            g_error("%d says: %s", (int)i, error->message);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    folder = g_dir_make_tmp("orrery-lengths-XXXXXX", NULL);
    g_test_add_func("/lengths-file/equal", test_equal);
    g_test_add_func("/lengths-file/input-ids", test_input_ids);
    g_test_add_func("/lengths-file/many", test_many);
    g_test_add_func("/lengths-file/refused", test_refused);
    const int failed = g_test_run();
    static const char *const files[] = {"scenario.json", "lengths.jsonl"};
    for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(folder, files[i], NULL);
        g_remove(path);
    }
    g_rmdir(folder);
    g_free(folder);
    return failed;
}
