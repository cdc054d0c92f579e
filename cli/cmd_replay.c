/* cli/cmd_replay.c - orrery replay: the program of a step, read from a file and run. */
#include "base/file.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "study/program_text.h"

/* A file of this size holds some 30 million instructions. */
#define MOST_BYTES ((size_t)1 << 30)

typedef struct ReplayArgs {
    CliArgs common;
    gboolean check;
} ReplayArgs;

/* A tier that is too small is a result, which a note tells. */
static bool replay(const ReplayArgs *args, OrrArena *arena, GString *out, GError **error)
{
    const CliArgs *common = &args->common;
    const char *path = common->words[0];
    ProgramText program;
    SimResult result = {0};
    bool fits = true;
    g_autoptr(GString) text = orr_text_read(path, MOST_BYTES, error);
    if (text == NULL || !program_text_read(text->str, text->len, path, arena, &program, error))
        return false;
    if (!program_text_run(&program, args->check, arena, &result, &fits, error)) {
        g_prefix_error(error, "%s: ", path);
        return false;
    }
    if (common->format == CLI_FORMAT_JSON)
        program_answer_json(&program, &result, out);
    else
        program_answer_text(&program, &result, out);
    if (!fits)
        cli_note(common->quiet, "orrery: a tier holds more than its capacity: this step does not fit");
    if (args->check)
        cli_note(common->quiet, "orrery: every invariant holds for %d ranks and %" G_GINT64_FORMAT " ops",
                 result.ranks, result.ops);
    return true;
}

static bool run(const CliArgs *common, GError **error)
{
    OrrArena *arena = orr_arena_new();
    g_autoptr(GString) out = g_string_new(NULL);
    const bool ok =
        replay((const ReplayArgs *)common, arena, out, error) && cli_output_write(common->output, out, error);
    orr_arena_free(arena);
    return ok;
}

static const CliFlag flags[] = {
    {"check", CLI_FLAG_SWITCH, offsetof(ReplayArgs, check), NULL, "verify the invariants of the run"},
};

static const char *const format_words[] = {"text", "json"};
static const OrrWords formats = {
    .what = "a format", .first = format_words, .count = G_N_ELEMENTS(format_words)};

const CliCommand cli_command_replay = {
    .name = "replay",
    .usage = "PROGRAM",
    .summary = "run the program of a step that `orrery run --program` wrote, or another tool",
    .help = "Reads a program and runs it: ops on streams of ranks, what each waits for, collectives and "
            "the resources that ops share. `orrery run --program FILE` writes one, and its replay takes the "
            "same picoseconds. Change the text to try what no scenario says, or write it with a tool of your "
            "own. docs/PROGRAM.md describes each line. \"-\" is standard input.\n\n"
            "  orrery run gpt3-175b --program gpt3.txt\n"
            "  orrery replay gpt3.txt --check\n",
    .takes = CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .formats = &formats,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(ReplayArgs),
    .run = run,
};
