/* cli/commands.h - the table of commands: one row here, one file cli/cmd_NAME.c there.
 *
 * A command owns a struct of what its command line said, which begins with CliArgs; its flags say where
 * each value goes. Parsing, help, the manual page and the shell completion all come from these rows.
 */
#ifndef ORR_CLI_COMMANDS_H
#define ORR_CLI_COMMANDS_H

#include <stddef.h>

#include "base/error.h"
#include "base/words.h"

typedef enum { CLI_FORMAT_TEXT, CLI_FORMAT_JSON, CLI_FORMAT_CSV } CliFormat;

/* What every command line may say; the first member of each command's own struct. */
typedef struct CliArgs {
    char **words; /* what is left besides the flags, NULL-terminated */
    char **sets;  /* --set key.path=value, NULL-terminated; NULL: none */
    char *output; /* NULL: standard output */
    char *format_text;
    CliFormat format;
    gboolean quiet, progress, help;
} CliArgs;

typedef enum {
    CLI_FLAG_SWITCH, /* gboolean */
    CLI_FLAG_TEXT,   /* char* */
    CLI_FLAG_FILE,   /* char*; completed as a path */
    CLI_FLAG_SHOWN,  /* the same; "-", standard output, where another flag or nothing follows */
    CLI_FLAG_TEXTS,  /* char**; repeatable */
} CliFlagKind;

typedef struct CliFlag {
    const char *name;
    CliFlagKind kind;
    size_t offset;     /* in the command's struct */
    const char *value; /* "FILE", for help; NULL for a switch */
    const char *help;
} CliFlag;

static inline bool cli_flag_is_file(const CliFlag *flag)
{
    return flag->kind == CLI_FLAG_FILE || flag->kind == CLI_FLAG_SHOWN;
}

/* A row of `flags` for a struct with a member char *memory_reserve. */
/* The user's own measured runs: a member `own_runs`. */
#define CLI_FLAG_OWN_RUNS(type)                                                                              \
    {                                                                                                        \
        "own-runs", CLI_FLAG_FILE, offsetof(type, own_runs), "FILE",                                         \
            "correct steps, days and costs by measured runs of your own, from one on (orrery help "          \
            "measurement)"                                                                                   \
    }
#define CLI_FLAG_MEMORY_RESERVE(type)                                                                        \
    {                                                                                                        \
        "memory-reserve", CLI_FLAG_TEXT, offsetof(type, memory_reserve), "FRAC|BYTES",                       \
            "memory of a GPU to keep free, as 0.1 or \"8 GiB\" (default: what 98 % of published runs took "  \
            "beyond their prediction)"                                                                       \
    }

typedef enum {
    CLI_TAKES_SET = 1,
    CLI_TAKES_FORMAT = 2,
    CLI_TAKES_OUTPUT = 4,
    CLI_TAKES_QUIET = 8,
    CLI_TAKES_PROGRESS = 16,
} CliTakes;

typedef struct CliCommand {
    const char *name;
    const char *usage;       /* the words behind the name: "SCENARIO.json" */
    const char *summary;     /* one line */
    const char *help;        /* paragraphs: what it does, examples */
    unsigned takes;          /* CliTakes: which of the common flags */
    const OrrWords *formats; /* words of --format, in the order of CliFormat at first; NULL: those alone */
    const CliFlag *flags;
    int flag_count;
    int min_words, max_words; /* max -1: any number */
    size_t args_size;
    bool (*run)(const CliArgs *args, GError **error);
} CliCommand;

extern const CliCommand cli_command_run, cli_command_plot, cli_command_validate, cli_command_list,
    cli_command_generate, cli_command_help, cli_command_calibrate, cli_command_plan, cli_command_sweep,
    cli_command_compare, cli_command_search, cli_command_explain, cli_command_export, cli_command_import,
    cli_command_collective, cli_command_campaign, cli_command_jobs, cli_command_report, cli_command_trace,
    cli_command_replay, cli_command_mcp, cli_command_serve, cli_command_learn;

/* In the order of the overview. */
const CliCommand *const *cli_commands(int *ret_count);
/* NULL when there is none of that name. */
const CliCommand *cli_command_find(const char *name);
/* Names of all commands, NULL-terminated; g_free the array only. */
const char **cli_command_names(void);

/* What `list` lists, with `between` between them; g_free. */
char *cli_list_kinds(const char *between);

#endif
