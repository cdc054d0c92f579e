/* tests/cli/test_cli_generate.c - generate: two views that exclude each other, and contexts that the model has. */
#include <string.h>

#include "tests/cli/runner.h"

#define EXAMPLE "generate-llama3-8b" /* 8,192 positions */

static void test_views(void)
{
    static const struct {
        const char *words[6], *expect;
    } refused[] = {
        {{"--batch", "8", "--prompts", "5", NULL}, "--prompts: not with --batch"},
        {{"--context", "1024", "--answer-tokens", "5", NULL},
         "--answer-tokens: not with --batch or --context"},
        {{"--batch", "8", "--check", NULL}, "--check: not with --batch"},
        {{"--context", "8193", NULL}, "--context: 8193 tokens, but the model has 8192 positions"},
        {{"--batch", "0", NULL}, "--batch: \"0\" is not a number from 1"},
        {{"--prompts", "1.5", NULL}, "--prompts: \"1.5\" is not a whole number"},
        {{"--answer-log-sd", "6", NULL}, "--answer-log-sd: 6; give at most 5"},
        {{"--format", "csv", NULL}, "--format csv"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(refused); i++) {
        const char *words[8] = {"generate", EXAMPLE};
        for (int w = 0; refused[i].words[w] != NULL; w++)
            words[w + 2] = refused[i].words[w];
        CliRun run = cli_run(NULL, words);
        cli_assert_refused(&run, refused[i].expect, refused[i].expect);
        cli_run_clear(&run);
    }
}

/* Of the usual contexts those are shown that the model has. */
static void test_contexts(void)
{
    CliRun usual = cli_run(NULL, CLI_WORDS("generate", EXAMPLE, "--batch", "8"));
    cli_assert_done(&usual, "usual contexts");
    g_assert_nonnull(strstr(usual.out, "at 8192 tokens"));
    g_assert_null(strstr(usual.out, "at 32768 tokens"));
    cli_run_clear(&usual);
    CliRun longer =
        cli_run(NULL, CLI_WORDS("generate", EXAMPLE, "--batch", "8", "--set", "model.max_positions=65536"));
    cli_assert_done(&longer, "a longer model");
    g_assert_nonnull(strstr(longer.out, "at 32768 tokens"));
    cli_run_clear(&longer);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/generate/views", test_views);
    g_test_add_func("/cli/generate/contexts", test_contexts);
    return g_test_run();
}
