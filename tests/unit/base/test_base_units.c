/* Quantities at the door and on the page, tables, near words, files, the arena. */
#include <glib/gstdio.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"

static void test_parse(void)
{
    static const struct {
        const char *text;
        OrrUnit unit;
        double value;
    } cases[] = {
        {"80 GiB", ORR_UNIT_BYTES, 80.0 * 1073741824.0},
        {"80GB", ORR_UNIT_BYTES, 80e9},
        {" 1e9 ", ORR_UNIT_BYTES, 1e9},
        {"400 Gbit/s", ORR_UNIT_BYTES_PER_S, 50e9},
        {"200Gbps", ORR_UNIT_BYTES_PER_S, 25e9},
        {"800 Gb/s", ORR_UNIT_BYTES_PER_S, 100e9},
        {"800Gb/s", ORR_UNIT_BYTES_PER_S, 100e9},
        {"8 kb/s", ORR_UNIT_BYTES_PER_S, 1e3},
        {"8 Mb/s", ORR_UNIT_BYTES_PER_S, 1e6},
        {"1.6 Tb/s", ORR_UNIT_BYTES_PER_S, 200e9},
        {"25 GBps", ORR_UNIT_BYTES_PER_S, 25e9},
        {"3.35 TB/s", ORR_UNIT_BYTES_PER_S, 3.35e12},
        {"2.5 us", ORR_UNIT_SECONDS, 2.5e-6},
        {"30 days", ORR_UNIT_SECONDS, 2592000.0},
        {"12 h", ORR_UNIT_SECONDS, 43200.0},
        {"312 TFLOP/s", ORR_UNIT_FLOPS_PER_S, 312e12},
        {"2.25 PFLOPS", ORR_UNIT_FLOPS_PER_S, 2.25e15},
        {"15.6T", ORR_UNIT_TOKENS, 15.6e12},
        {"300B tokens", ORR_UNIT_TOKENS, 300e9},
        {"1.2 kW", ORR_UNIT_WATTS, 1200.0},
        {"5 %", ORR_UNIT_FRAC, 0.05},
        {"2.5 USD", ORR_UNIT_USD, 2.5},
        {"-3", ORR_UNIT_NONE, -3.0},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        GError *error = NULL;
        double value = -1;
        g_assert_true(orr_parse_quantity(cases[i].text, cases[i].unit, &value, &error));
        g_assert_no_error(error);
        g_assert_cmpfloat_with_epsilon(value, cases[i].value, fabs(cases[i].value) * 1e-15);
    }
    static const struct {
        const char *text;
        OrrUnit unit;
    } bad[] = {{"", ORR_UNIT_BYTES},        {"GB", ORR_UNIT_BYTES},      {"80 Gb", ORR_UNIT_BYTES},
               {"80 GB/s", ORR_UNIT_BYTES}, {"nan", ORR_UNIT_BYTES},     {"inf", ORR_UNIT_SECONDS},
               {"0x10", ORR_UNIT_BYTES},    {"1e400", ORR_UNIT_BYTES},   {"1e308 PB", ORR_UNIT_BYTES},
               {"5 s", ORR_UNIT_BYTES},     {"1,000", ORR_UNIT_SECONDS}, {"3 K", ORR_UNIT_NONE}};
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        GError *error = NULL;
        double value = 7;
        g_assert_false(orr_parse_quantity(bad[i].text, bad[i].unit, &value, &error));
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
        g_assert_true(value == 7);
        g_error_free(error);
    }
}

static void test_print(void)
{
    char text[ORR_TEXT_SIZE];
    static const struct {
        double value;
        const char *text;
    } seconds[] = {{13.75, "13.75 s"}, {0.0042, "4.2 ms"}, {33.9 * 86400, "33.9 days"},
                   {0, "0 s"},         {2.5e-6, "2.5 us"}, {0.99996, "1 s"},
                   {1e-12, "1 ps"},    {7200, "2 h"},      {-0.0042, "-4.2 ms"},
                   {1800, "30 min"},   {999.96e-6, "1 ms"}},
      bytes[] = {{76.29 * 1073741824, "76.29 GiB"}, {512, "512 B"}, {1048576, "1.00 MiB"}, {0, "0 B"}};
    for (guint i = 0; i < G_N_ELEMENTS(seconds); i++)
        g_assert_cmpstr(orr_text_seconds(text, seconds[i].value), ==, seconds[i].text);
    for (guint i = 0; i < G_N_ELEMENTS(bytes); i++)
        g_assert_cmpstr(orr_text_bytes(text, bytes[i].value), ==, bytes[i].text);
    g_assert_cmpstr(orr_text_si(text, 4.51e18, "FLOP"), ==, "4.51 EFLOP");
    g_assert_cmpstr(orr_text_si(text, 312e12, "FLOP/s"), ==, "312 TFLOP/s");
    g_assert_cmpstr(orr_text_si(text, 999.9e9, "B/s"), ==, "1 TB/s");
    g_assert_cmpstr(orr_text_count(text, 175.2e9), ==, "175.2 B");
    g_assert_cmpstr(orr_text_count(text, 12), ==, "12");
}

static void test_table(void)
{
    static const char *const headers[] = {"name", "time", "note"};
    static const char *const first[] = {"gpt", "13.75 s", "a,b"}, *const second[] = {"caf\u00e9", "4.2 ms",
                                                                                     "say \"hi\""};
    OrrTable *table = orr_table_new(headers, 3);
    orr_table_row(table, first);
    orr_table_row(table, second);
    GString *out = g_string_new(NULL);
    orr_table_print(table, out, 2);
    g_assert_cmpstr(out->str, ==,
                    "  name     time  note\n"
                    "  ----  -------  --------\n"
                    "  gpt   13.75 s  a,b\n"
                    "  caf\u00e9   4.2 ms  say \"hi\"\n");
    g_string_truncate(out, 0);
    orr_table_print_within(table, out, 2, 24);
    g_assert_cmpstr(out->str, ==,
                    "  name     time\n"
                    "  ----  -------\n"
                    "  gpt   13.75 s\n"
                    "  caf\u00e9   4.2 ms\n"
                    "\n"
                    "  name  note\n"
                    "  ----  --------\n"
                    "  gpt   a,b\n"
                    "  caf\u00e9  say \"hi\"\n");
    g_string_truncate(out, 0);
    orr_table_csv(table, out);
    g_assert_cmpstr(out->str, ==,
                    "name,time,note\ngpt,13.75 s,\"a,b\"\ncaf\u00e9,4.2 ms,\"say \"\"hi\"\"\"\n");
    g_string_truncate(out, 0);
    orr_text_bar(out, 0.5, 4);
    orr_text_bar(out, 2.0, 2);
    orr_text_bar(out, NAN, 1);
    orr_text_bar(out, 0.9999, 1);
    g_assert_cmpstr(out->str, ==, "\u2588\u2588  \u2588\u2588 \u2588");
    g_string_free(out, TRUE);
    orr_table_free(table);
}

static void test_nearest(void)
{
    static const char *const keys[] = {"tensor",
                                       "pipeline",
                                       "global_batch",
                                       "zero",
                                       "sequence_length",
                                       "scale_up_bytes_per_s",
                                       "scale_out_bytes_per_s_per_gpu"};
    static const struct {
        const char *word, *nearest;
    } cases[] = {{"tesnor", "tensor"},
                 {"Pipeline", "pipeline"},
                 {"batch", "global_batch"},
                 {"zero_stage", "zero"},
                 {"seqence_length", "sequence_length"},
                 {"scale_out_bytes_per_s", "scale_out_bytes_per_s_per_gpu"},
                 {"scale_upp_bytes_per_s", "scale_up_bytes_per_s"},
                 {"banana", NULL},
                 {"x", NULL},
                 {"", NULL}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpstr(orr_nearest(cases[i].word, keys, G_N_ELEMENTS(keys)), ==, cases[i].nearest);
}

static void test_file(void)
{
    GError *error = NULL;
    g_autofree char *folder = g_dir_make_tmp("orrery-XXXXXX", &error);
    g_assert_no_error(error);
    g_autofree char *path = g_build_filename(folder, "out.txt", NULL),
                    *link = g_build_filename(folder, "link", NULL);
    g_assert_true(orr_file_write(path, "one", 3, &error));
    g_assert_cmpint(symlink(path, link), ==, 0);
    g_assert_true(orr_file_write(link, "two2", 4, &error));
    g_assert_no_error(error);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, "two2");
    g_assert_true(g_file_test(link, G_FILE_TEST_IS_SYMLINK));
    g_assert_true(orr_file_write("/dev/null", "x", 1, &error));
    struct stat info;
    g_assert_true(stat("/dev/null", &info) == 0 && S_ISCHR(info.st_mode));
    g_assert_false(orr_file_write("/nonexistent/dir/file", "x", 1, &error));
    g_assert_error(error, ORR_ERROR, ORR_ERROR_IO);
    g_clear_error(&error);
    g_assert_false(orr_file_write(folder, "x", 1, &error));
    g_assert_error(error, ORR_ERROR, ORR_ERROR_IO);
    g_clear_error(&error);
    g_unlink(link);
    g_unlink(path);
    g_assert_cmpint(g_rmdir(folder), ==, 0); /* no temporary file left behind */
    g_autofree char *hash = orr_hash_text("abc", 3);
    g_assert_cmpstr(hash, ==, "ba7816bf8f01cfea");
}

static void test_arena(void)
{
    OrrArena *arena = orr_arena_new();
    GRand *rand = g_rand_new_with_seed(3);
    enum { COUNT = 3000 };
    unsigned char *blocks[COUNT];
    size_t sizes[COUNT];
    for (int i = 0; i < COUNT; i++) {
        sizes[i] = (size_t)g_rand_int_range(rand, 0, i % 100 == 0 ? 300000 : 200);
        blocks[i] = orr_arena_alloc(arena, sizes[i]);
        g_assert_true(((uintptr_t)blocks[i] & 15u) == 0);
        for (size_t b = 0; b < sizes[i]; b++)
            g_assert_true(blocks[i][b] == 0);
        memset(blocks[i], i & 255, sizes[i]);
    }
    for (int i = 0; i < COUNT; i++)
        for (size_t b = 0; b < sizes[i]; b++)
            g_assert_true(blocks[i][b] == (i & 255));
    g_assert_cmpstr(orr_arena_strdup(arena, "caf\u00e9"), ==, "caf\u00e9");
    g_assert_true(orr_arena_used_bytes(arena) > 0);
    orr_arena_free(arena);
    g_rand_free(rand);
}

/* What was given back is handed out zeroed again. */
static void test_arena_clear(void)
{
    enum { COUNT = 4096 };
    static const unsigned char ZERO[48];
    OrrArena *arena = orr_arena_new();
    orr_arena_clear(arena);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            unsigned char *bytes = orr_arena_alloc(arena, sizeof ZERO);
            g_assert_true(memcmp(bytes, ZERO, sizeof ZERO) == 0);
            memset(bytes, 0xa5, sizeof ZERO);
        }
        g_assert_cmpuint(orr_arena_used_bytes(arena), ==, COUNT * sizeof ZERO);
        orr_arena_clear(arena);
        g_assert_cmpuint(orr_arena_used_bytes(arena), ==, 0);
    }
    orr_arena_free(arena);
}

/* What was reserved comes in one row. */
static void test_arena_reserve(void)
{
    enum { SIZE = 1024, COUNT = 1024 };
    OrrArena *arena = orr_arena_new();
    (void)orr_arena_alloc(arena, SIZE);
    orr_arena_reserve(arena, (size_t)SIZE * COUNT);
    const unsigned char *first = orr_arena_alloc(arena, SIZE);
    for (int i = 1; i < COUNT; i++)
        g_assert_true((unsigned char *)orr_arena_alloc(arena, SIZE) == first + (size_t)SIZE * (size_t)i);
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/base/units/parse", test_parse);
    g_test_add_func("/base/units/print", test_print);
    g_test_add_func("/base/text/table", test_table);
    g_test_add_func("/base/text/nearest", test_nearest);
    g_test_add_func("/base/file", test_file);
    g_test_add_func("/base/arena", test_arena);
    g_test_add_func("/base/arena-clear", test_arena_clear);
    g_test_add_func("/base/arena-reserve", test_arena_reserve);
    return g_test_run();
}
