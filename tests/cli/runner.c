/* tests/cli/runner.c - runs the real program and looks at what came of it. */
#include "tests/cli/runner.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/wait.h>

CliRun cli_run(const char *folder, const char *const *words)
{
    const char *binary = g_getenv("ORRERY_BINARY");
    if (binary == NULL)
        g_error("set ORRERY_BINARY to the program that is tested");
    GPtrArray *argv = g_ptr_array_new();
    g_ptr_array_add(argv, (char *)binary);
    for (const char *const *word = words; *word != NULL; word++)
        g_ptr_array_add(argv, (char *)*word);
    g_ptr_array_add(argv, NULL);
    CliRun run = {.status = -1};
    GError *error = NULL;
    int status = 0;
    g_autofree char *out = NULL;
    g_spawn_sync(folder, (char **)argv->pdata, NULL, G_SPAWN_DEFAULT, NULL, NULL, &out, &run.err, &status,
                 &error);
    g_assert_no_error(error);
    g_ptr_array_free(argv, TRUE);
    run.out = g_steal_pointer(&out);
    run.out_length = strlen(run.out);
    if (WIFEXITED(status))
        run.status = WEXITSTATUS(status);
    return run;
}

void cli_run_clear(CliRun *run)
{
    g_clear_pointer(&run->out, g_free);
    g_clear_pointer(&run->err, g_free);
}

static void fail(const CliRun *run, const char *name, const char *what)
{
    g_error("%s: %s\nstatus %d\nstdout: %.300s\nstderr: %s", name, what, run->status, run->out, run->err);
}

void cli_assert_refused(const CliRun *run, const char *name, const char *expect)
{
    if (run->status != 2)
        fail(run, name, "exit status is not 2");
    if (run->out[0] != '\0')
        fail(run, name, "something on standard output");
    if (!g_str_has_prefix(run->err, "orrery: "))
        fail(run, name, "the message does not begin with \"orrery: \"");
    const char *end = strchr(run->err, '\n');
    if (end == NULL || end[1] != '\0')
        fail(run, name, "the message is not one line");
    if (expect != NULL && strstr(run->err, expect) == NULL) {
        g_autofree char *what = g_strdup_printf("\"%s\" is not in the message", expect);
        fail(run, name, what);
    }
}

void cli_assert_done(const CliRun *run, const char *name)
{
    if (run->status != 0)
        fail(run, name, "exit status is not 0");
    if (run->err[0] != '\0')
        fail(run, name, "something on standard error");
}

char *cli_scratch_new(void)
{
    GError *error = NULL;
    char *folder = g_dir_make_tmp("orrery-cli-XXXXXX", &error);
    g_assert_no_error(error);
    return folder;
}

void cli_scratch_free(char *folder)
{
    GDir *dir = g_dir_open(folder, 0, NULL);
    for (const char *name = dir != NULL ? g_dir_read_name(dir) : NULL; name != NULL;
         name = g_dir_read_name(dir)) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_DIR))
            cli_scratch_free(g_strdup(path));
        else
            g_unlink(path);
    }
    if (dir != NULL)
        g_dir_close(dir);
    g_rmdir(folder);
    g_free(folder);
}

int cli_count_files(const char *folder)
{
    int count = 0;
    GDir *dir = g_dir_open(folder, 0, NULL);
    g_assert_nonnull(dir);
    while (g_dir_read_name(dir) != NULL)
        count++;
    g_dir_close(dir);
    return count;
}

char *cli_source(const char *path)
{
    const char *source = g_getenv("ORRERY_SOURCE");
    if (source == NULL)
        g_error("set ORRERY_SOURCE to the source tree");
    return g_build_filename(source, path, NULL);
}

OrrJsonDoc *cli_parse(const char *text, const char *name)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), name, &error);
    g_assert_no_error(error);
    return doc;
}

char *cli_contents(const char *folder, const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    char *text = NULL;
    GError *error = NULL;
    g_file_get_contents(path, &text, NULL, &error);
    g_assert_no_error(error);
    return text;
}

char *cli_shell(const char *script, const char *path)
{
    g_autofree char *example = cli_source("scenarios/examples/gpt3-175b.json");
    const char *argv[] = {"/bin/sh", "-c", script, "sh", g_getenv("ORRERY_BINARY"), example, NULL};
    g_auto(GStrv) environment = g_get_environ();
    if (path != NULL)
        environment = g_environ_setenv(environment, "PATH", path, TRUE);
    char *out = NULL;
    GError *error = NULL;
    g_spawn_sync(NULL, (char **)argv, environment, G_SPAWN_DEFAULT, NULL, NULL, &out, NULL, NULL, &error);
    g_assert_no_error(error);
    return out;
}
