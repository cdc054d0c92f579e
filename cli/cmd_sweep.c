/* cli/cmd_sweep.c - orrery sweep: a tidy table of runs, one row for every combination of values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/sweep.h"
#include "base/crew.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/team.h"
#include "report/page.h"

#define GIB 1073741824.0

typedef struct SweepArgs {
    CliArgs common;
    char *own_runs;
    char **vary;
    gboolean ideal;
    char *jobs, *journal, *part, *slurm;
} SweepArgs;

/* --- the table --- */

static const char *last_part(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot != NULL ? dot + 1 : key;
}

static void write_text(const GArray *fields, const GArray *rows, GString *out)
{
    enum { FIXED = 9 };
    static const char *const fixed[FIXED] = {"step", "tokens/s/GPU", "MFU",    "bubble", "memory",
                                             "days", "effective",    "chosen", "why not"};
    const int columns = (int)fields->len + FIXED;
    g_autoptr(GPtrArray) headers = g_ptr_array_new();
    for (guint i = 0; i < fields->len; i++)
        g_ptr_array_add(headers, (void *)last_part(g_array_index(fields, ApiVary, i).key));
    for (int i = 0; i < FIXED; i++)
        g_ptr_array_add(headers, (void *)fixed[i]);
    OrrTable *table = orr_table_new((const char *const *)headers->pdata, columns);
    for (guint r = 0; r < rows->len; r++) {
        const ApiSweepRow *row = &g_array_index(rows, ApiSweepRow, r);
        char cell[FIXED - 2][ORR_TEXT_SIZE] = {{0}};
        g_autoptr(GPtrArray) cells = g_ptr_array_new();
        for (guint i = 0; i < fields->len; i++)
            g_ptr_array_add(cells, row->values[i]);
        if (row->reason == NULL) {
            orr_text_seconds(cell[0], row->step_s);
            g_snprintf(cell[1], ORR_TEXT_SIZE, "%.4g", row->tokens_per_s_per_gpu);
            if (isnan(row->mfu)) { /* a loop over several models */
                g_strlcpy(cell[4], row->verdict, ORR_TEXT_SIZE);
            } else {
                g_snprintf(cell[2], ORR_TEXT_SIZE, "%.1f %%", row->mfu * 100);
                g_snprintf(cell[3], ORR_TEXT_SIZE, "%.1f %%", row->bubble_frac * 100);
                g_snprintf(cell[4], ORR_TEXT_SIZE, "%.1f GiB%s", row->occupied_bytes / GIB,
                           row->fits ? "" : ", does not fit");
            }
            if (row->days > 0)
                g_snprintf(cell[5], ORR_TEXT_SIZE, "%.1f", row->days);
            if (row->effective_days > 0)
                g_snprintf(cell[6], ORR_TEXT_SIZE, "%.1f", row->effective_days);
        }
        for (int i = 0; i < FIXED - 2; i++)
            g_ptr_array_add(cells, cell[i]);
        g_ptr_array_add(cells, row->chosen != NULL ? row->chosen : (char *)"");
        g_ptr_array_add(cells, row->reason != NULL ? row->reason : (char *)"");
        orr_table_row(table, (const char *const *)cells->pdata);
    }
    report_page_table(table, out, 0);
    orr_table_free(table);
    const guint64 all = api_sweep_count(fields);
    if (rows->len < all)
        g_string_append_printf(out, "Partial: stopped after %u of %" G_GUINT64_FORMAT " runs\n", rows->len,
                               all);
}

/* --- the command --- */

static bool read_fields(const SweepArgs *args, GArray *fields, GError **error)
{
    for (char **text = args->vary; text != NULL && *text != NULL; text++) {
        ApiVary vary = {NULL, NULL};
        if (!api_vary_parse(*text, &vary, error))
            return false;
        g_array_append_val(fields, vary);
    }
    return api_sweep_fields_check(fields, error);
}

static bool show_progress(double done_frac, void *data)
{
    cli_progress_tell(data, done_frac, (CliBest){0});
    return true;
}

/* "3/16": the third of sixteen. */
static bool read_part(const SweepArgs *args, ApiSweepAsk *ask, GError **error)
{
    const char *slash = args->part != NULL ? strchr(args->part, '/') : NULL;
    g_autofree char *first = slash != NULL ? g_strndup(args->part, (gsize)(slash - args->part)) : NULL;
    guint64 part = 0, parts = 0;
    if (args->part == NULL)
        return true;
    if (slash == NULL || !g_ascii_string_to_unsigned(slash + 1, 10, 1, API_SWEEP_MOST, &parts, NULL) ||
        !g_ascii_string_to_unsigned(first, 10, 1, parts, &part, NULL))
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "--part: \"%.40s\" is not a part of a sweep; write it like 3/16, the third of sixteen",
            args->part);
    if (args->journal == NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--part: give --journal FOLDER too, the folder that collects all parts");
    ask->part = (int)part - 1;
    ask->parts = (int)parts;
    return true;
}

static GArray *simulate_rows(const SweepArgs *args, const GArray *fields, CliTeam *team,
                             CliInterrupt *interrupt, GError **error)
{
    guint64 jobs = 0;
    const bool several = team->processes > 1, speaks = !several || team->team.rank == 0;
    if (args->jobs != NULL && !g_ascii_string_to_unsigned(args->jobs, 10, 1, 4096, &jobs, NULL)) {
        orr_fail(error, ORR_ERROR_INPUT, "--jobs: \"%s\" is not a whole number from 1 to 4096", args->jobs);
        return NULL;
    }
    CliProgress progress = cli_progress_begin("sweeping", &args->common);
    if (!speaks)
        progress.mode = CLI_PROGRESS_NONE;
    progress.done_permille = &team->done_permille;
    team->doing = "its part of the sweep";
    team->keeps = args->journal;
    ApiSweepAsk ask = {.input = {.path = args->common.words[0], .own_runs = args->own_runs, .loops = true},
                       .sets = args->common.sets,
                       .fields = fields,
                       .ideal = args->ideal,
                       .threads = (int)jobs,
                       .journal = args->journal,
                       .team = several ? &team->team : NULL,
                       .progress = show_progress,
                       .progress_data = &progress,
                       .stop = several ? (OrrStop){NULL, NULL} : cli_interrupt_stop(interrupt)};
    if (several && jobs == 0)
        ask.threads = MAX(1, orr_crew_cores() / team->on_node);
    if (!read_part(args, &ask, error))
        return NULL;
    if (several && ask.parts > 0) {
        orr_fail(error, ORR_ERROR_INPUT, "--part: the processes of mpirun do a part each; leave it out");
        return NULL;
    }
    return api_sweep(&ask, error);
}

/* Where no combination runs, the scenario or a key is wrong. */
static bool any_ran(const SweepArgs *args, const GArray *fields, const GArray *rows, GError **error)
{
    const guint64 all = api_sweep_count(fields);
    if (rows->len < all) { /* the others might */
        cli_note(args->part != NULL && args->common.quiet,
                 "orrery: sweep: %s %u of %" G_GUINT64_FORMAT " runs%s",
                 args->part != NULL ? "there are" : "stopped after", rows->len, all,
                 args->journal != NULL ? "; the same command goes on from there" : "");
        return true;
    }
    for (guint i = 0; i < rows->len; i++)
        if (g_array_index(rows, ApiSweepRow, i).reason == NULL)
            return true;
    return orr_fail(error, ORR_ERROR_INPUT, "%s: none of %u combinations can run; the first: %s",
                    args->common.words[0], rows->len, g_array_index(rows, ApiSweepRow, 0).reason);
}

/* The command again, a task of the array for each part, and one that reads all of them. */
static bool write_slurm(const SweepArgs *args, GString *out, GError **error)
{
    guint64 parts = 0;
    if (!g_ascii_string_to_unsigned(args->slurm, 10, 1, 100000, &parts, NULL))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--slurm: \"%.40s\" is not a number of tasks from 1 to 100000", args->slurm);
    if (args->journal == NULL || args->part != NULL)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "--slurm: needs --journal FOLDER, on a file system of all nodes, and gives each task its "
            "own --part");
    g_autoptr(GString) command = g_string_new("orrery sweep");
    const struct {
        const char *flag;
        char *const *values;
    } lists[] = {{NULL, args->common.words}, {"--set", args->common.sets}, {"--vary", args->vary}};
    const struct {
        const char *flag, *value;
    } ones[] = {{"--own-runs", args->own_runs}, {"--jobs", args->jobs}, {"--journal", args->journal}};
    for (gsize l = 0; l < G_N_ELEMENTS(lists); l++)
        for (char *const *value = lists[l].values; value != NULL && *value != NULL; value++) {
            g_autofree char *quoted = g_shell_quote(*value);
            g_string_append_printf(command, "%s%s %s", lists[l].flag != NULL ? " " : "",
                                   lists[l].flag != NULL ? lists[l].flag : "", quoted);
        }
    for (gsize i = 0; i < G_N_ELEMENTS(ones); i++)
        if (ones[i].value != NULL) {
            g_autofree char *quoted = g_shell_quote(ones[i].value);
            g_string_append_printf(command, " %s %s", ones[i].flag, quoted);
        }
    if (args->ideal)
        g_string_append(command, " --ideal");
    g_string_append_printf(
        out,
        "#!/bin/bash\n#SBATCH --job-name=orrery-sweep\n#SBATCH --array=1-%" G_GUINT64_FORMAT
        "\n#SBATCH --ntasks=1\n# Tasks that are killed: submit the script again, rows that are "
        "done stay done.\n# When all are over: %s --format csv --output sweep.csv\n"
        "%s --quiet --part \"$SLURM_ARRAY_TASK_ID/%" G_GUINT64_FORMAT "\" --format csv --output /dev/null\n",
        parts, command->str, command->str, parts);
    return true;
}

static bool write_rows(const SweepArgs *args, const GArray *fields, const GArray *rows, GError **error)
{
    g_autoptr(GString) out = g_string_new(NULL);
    if (args->common.format == CLI_FORMAT_JSON)
        api_sweep_json(fields, rows, out);
    else if (args->common.format == CLI_FORMAT_CSV)
        api_sweep_csv(fields, rows, out);
    else
        write_text(fields, rows, out);
    return cli_output_write(args->common.output, out, error);
}

/* Of several processes the first one speaks, and all of them fail alike. */
static bool run(const CliArgs *common, GError **error)
{
    const SweepArgs *args = (const SweepArgs *)common;
    g_autoptr(GArray) fields = api_vary_fields();
    CliTeam team;
    if (!read_fields(args, fields, error))
        return false;
    if (args->slurm != NULL) {
        g_autoptr(GString) script = g_string_new(NULL);
        return write_slurm(args, script, error) && cli_output_write(common->output, script, error);
    }
    if (!cli_team_open(&team, error))
        return false;
    CliInterrupt interrupt = {0};
    if (team.processes == 1) /* mpirun ends its processes itself */
        cli_interrupt_hold(&interrupt);
    g_autoptr(GArray) rows = simulate_rows(args, fields, &team, &interrupt, error);
    const bool ok = rows != NULL && any_ran(args, fields, rows, error) &&
                    ((team.processes > 1 && team.team.rank > 0) || write_rows(args, fields, rows, error));
    cli_team_close(&team, ok ? NULL : *error);
    if (ok && (interrupt.seen != 0 || (args->part == NULL && rows->len < api_sweep_count(fields))))
        exit(CLI_EXIT_INTERRUPTED);
    return ok;
}

static const CliFlag flags[] = {
    CLI_FLAG_OWN_RUNS(SweepArgs),
    {"vary", CLI_FLAG_TEXTS, offsetof(SweepArgs, vary), "KEY=VALUES",
     "a field and its values, key=a,b,c, key=a..b (doubling) or key=a..b:step; repeatable: every "
     "combination, at "
     "most a million"},
    {"ideal", CLI_FLAG_SWITCH, offsetof(SweepArgs, ideal), NULL,
     "days and costs of computing alone: no failures, checkpoints and restarts"},
    {"jobs", CLI_FLAG_TEXT, offsetof(SweepArgs, jobs), "N", "threads; all cores by default (same table)"},
    {"journal", CLI_FLAG_FILE, offsetof(SweepArgs, journal), "FOLDER",
     "keep each row there when it is done; the same command goes on where a killed one stopped"},
    {"part", CLI_FLAG_TEXT, offsetof(SweepArgs, part), "K/N",
     "only each Nth run, from the Kth on, with what the journal has of the others"},
    {"slurm", CLI_FLAG_TEXT, offsetof(SweepArgs, slurm), "N",
     "print a Slurm script of an array of N tasks instead, each of which does a part"},
};

const CliCommand cli_command_sweep = {
    .name = "sweep",
    .usage = "SCENARIO.json",
    .summary = "a tidy table of runs over values of some fields",
    .help =
        "Simulates the scenario for every combination of the varied fields, one row each. Columns "
        "are the values, step time and its parts, throughput, MFU, memory, days of computing, "
        "effective days and costs. Effective days have failures, checkpoints and restarts in them; "
        "costs go by them. A combination that cannot run keeps its row, with the reason in the last "
        "column. Ctrl-C ends with the rows that are done (exit status 130). With --journal nothing that "
        "is done is lost, "
        "whatever ends it; under mpirun the processes share the runs. Where tensor, pipeline "
        "or nodes vary, leave parallel.data out of the scenario or add --set parallel.data=auto. A loop of "
        "reinforcement learning has no MFU, parts or single memory: these columns are empty.\n\n"
        "  orrery sweep gpt3.json --vary training.micro_batch=1..8\n"
        "  orrery sweep gpt3.json --set parallel.data=auto --vary parallel.tensor=1..8 \\\n"
        "      --vary training.recompute=none,selective,full --format csv --output sweep.csv\n"
        "  orrery sweep gpt3.json --vary training.micro_batch=1..8 --journal sweep.rows\n"
        "  orrery sweep scenarios/examples/rl-grpo-qwen3-30b-a3b-h100.json \\\n"
        "      --vary workload.roles.rollout.parallel.tensor=1..8\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET | CLI_TAKES_PROGRESS,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(SweepArgs),
    .run = run,
};
