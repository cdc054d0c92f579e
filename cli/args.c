/* cli/args.c - from a command line to a command's struct, by its flags. */
#include "cli/args.h"

#include <string.h>

#include "base/text.h"

static const struct {
    unsigned takes; /* 0: every command */
    CliFlag flag;
} common_flags[] = {
    {CLI_TAKES_SET,
     {"set", CLI_FLAG_TEXTS, offsetof(CliArgs, sets), "KEY=VALUE",
      "override a field of the scenario, as in --set parallel.tensor=4; x2 is twice what it has; "
      "cluster.groups.0.nodes is of the first entry of a list (repeatable)"}},
    {CLI_TAKES_FORMAT,
     {"format", CLI_FLAG_TEXT, offsetof(CliArgs, format_text), "FORMAT",
      "how the answer is written (default: text)"}},
    {CLI_TAKES_OUTPUT,
     {"output", CLI_FLAG_FILE, offsetof(CliArgs, output), "FILE",
      "write there instead of to standard output"}},
    {CLI_TAKES_QUIET,
     {"quiet", CLI_FLAG_SWITCH, offsetof(CliArgs, quiet), NULL, "no notes on standard error"}},
    {CLI_TAKES_PROGRESS,
     {"progress", CLI_FLAG_SWITCH, offsetof(CliArgs, progress), NULL,
      "how far it is, on standard error: a line of JSON each time, with the best so far of a search"}},
    {0, {"help", CLI_FLAG_SWITCH, offsetof(CliArgs, help), NULL, "show this help"}},
};

static const char *const format_list[] = {"text", "json", "csv"};
static const OrrWords format_words = {"a format", format_list, (int)G_N_ELEMENTS(format_list), 0};

const OrrWords *cli_formats(const CliCommand *command)
{
    return command->formats != NULL ? command->formats : &format_words;
}

char *cli_format_list(const CliCommand *command, const char *between)
{
    const OrrWords *words = cli_formats(command);
    GString *list = g_string_new(NULL);
    for (int i = 0; i < words->count; i++)
        g_string_append_printf(list, "%s%s", i > 0 ? between : "", orr_word(words, i));
    return g_string_free(list, FALSE);
}

char *cli_flag_value(const CliCommand *command, const CliFlag *flag)
{
    return strcmp(flag->name, "format") == 0 ? cli_format_list(command, "|") : g_strdup(flag->value);
}

CliFlag *cli_all_flags(const CliCommand *command, int *ret_count)
{
    CliFlag *flags = g_new0(CliFlag, G_N_ELEMENTS(common_flags) + (gsize)command->flag_count);
    int count = 0;
    for (int i = 0; i < command->flag_count; i++)
        flags[count++] = command->flags[i];
    for (gsize i = 0; i < G_N_ELEMENTS(common_flags); i++) {
        if (common_flags[i].takes == 0 || (command->takes & common_flags[i].takes) != 0)
            flags[count++] = common_flags[i].flag;
    }
    *ret_count = count;
    return flags;
}

static void *flag_target(CliArgs *args, const CliFlag *flag)
{
    return (char *)args + flag->offset;
}

static GOptionEntry *option_entries(const CliFlag *flags, int count, CliArgs *args)
{
    static const GOptionArg kinds[] = {[CLI_FLAG_SWITCH] = G_OPTION_ARG_NONE,
                                       [CLI_FLAG_TEXT] = G_OPTION_ARG_FILENAME,
                                       [CLI_FLAG_FILE] = G_OPTION_ARG_FILENAME,
                                       [CLI_FLAG_SHOWN] = G_OPTION_ARG_FILENAME,
                                       [CLI_FLAG_TEXTS] = G_OPTION_ARG_FILENAME_ARRAY};
    GOptionEntry *entries = g_new0(GOptionEntry, (gsize)count + 2);
    for (int i = 0; i < count; i++)
        entries[i] = (GOptionEntry){.long_name = flags[i].name,
                                    .short_name = strcmp(flags[i].name, "help") == 0 ? 'h' : 0,
                                    .arg = kinds[flags[i].kind],
                                    .arg_data = flag_target(args, &flags[i])};
    entries[count] = (GOptionEntry){
        .long_name = G_OPTION_REMAINING, .arg = G_OPTION_ARG_FILENAME_ARRAY, .arg_data = &args->words};
    return entries;
}

static bool input_error(GError **error, const CliCommand *command, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
static bool input_error(GError **error, const CliCommand *command, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    g_autofree char *message = g_strdup_vprintf(format, values);
    va_end(values);
    g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT, "%s: %s", command->name, message);
    return false;
}

/* GOption's own words, with a suggestion where it met a flag that nobody knows. */
static bool option_error(GError **error, const CliCommand *command, const CliFlag *flags, int count,
                         const GError *cause)
{
    static const char unknown[] = "Unknown option ";
    if (!g_str_has_prefix(cause->message, unknown)) {
        g_autofree char *message = g_strdup(cause->message);
        message[0] = g_ascii_tolower(message[0]);
        return input_error(error, command, "%s", message);
    }
    const char *given = cause->message + strlen(unknown);
    g_autofree char *word = g_strdup(given + strspn(given, "-"));
    g_autofree const char **names = g_new0(const char *, (gsize)count + 1);
    for (int i = 0; i < count; i++)
        names[i] = flags[i].name;
    word[strcspn(word, "=")] = '\0';
    const char *nearest = orr_nearest(word, names, count);
    if (nearest != NULL)
        return input_error(error, command, "unknown flag %s; did you mean --%s?", given, nearest);
    return input_error(error, command, "unknown flag %s; 'orrery help %s' lists its flags", given,
                       command->name);
}

static bool check_format(const CliCommand *command, CliArgs *args, GError **error)
{
    const OrrWords *words = cli_formats(command);
    g_autofree const char **list = g_new0(const char *, (gsize)words->count);
    for (int i = 0; i < words->count; i++) {
        list[i] = orr_word(words, i);
        if (strcmp(args->format_text, list[i]) == 0) {
            args->format = (CliFormat)i;
            return true;
        }
    }
    const char *nearest = orr_nearest(args->format_text, list, words->count);
    g_autofree char *all = cli_format_list(command, ", ");
    return input_error(error, command, "--format %s: formats are %s%s%s%s", args->format_text, all,
                       nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "",
                       nearest != NULL ? "?" : "");
}

static bool check_texts(const CliCommand *command, const CliFlag *flags, int count, CliArgs *args,
                        GError **error)
{
    for (int i = 0; i < count; i++) {
        if (flags[i].kind == CLI_FLAG_SWITCH || flags[i].kind == CLI_FLAG_TEXTS)
            continue;
        const char *text = *(char **)flag_target(args, &flags[i]);
        if (text != NULL && text[0] == '\0')
            return input_error(error, command, "--%s is empty; give it a value, as in --%s %s", flags[i].name,
                               flags[i].name, flags[i].value);
    }
    if (args->format_text == NULL)
        return true;
    return check_format(command, args, error);
}

static bool check_words(const CliCommand *command, const CliArgs *args, GError **error)
{
    const int count = args->words != NULL ? (int)g_strv_length(args->words) : 0;
    if (count < command->min_words)
        return input_error(error, command, "%s is missing; 'orrery help %s' shows how to call it",
                           command->usage, command->name);
    if (command->max_words >= 0 && count > command->max_words)
        return input_error(error, command, "\"%s\" is one word too many; usage: orrery %s %s",
                           args->words[command->max_words], command->name, command->usage);
    for (int i = 0; i < count; i++) {
        if (args->words[i][0] == '\0')
            return input_error(error, command, "a word of the command line is empty; usage: orrery %s %s",
                               command->name, command->usage);
    }
    return true;
}

static const CliFlag *flag_of(const CliFlag *flags, int count, const char *word)
{
    for (int i = 0; i < count; i++)
        if (g_str_has_prefix(word, "--") && strcmp(word + strlen("--"), flags[i].name) == 0)
            return &flags[i];
    return NULL;
}

/* "--output --quiet" would write to a file of that name; --output=--quiet does so where it is meant. */
static bool check_values(const CliCommand *command, const CliFlag *flags, int count, int argc, char **argv,
                         GError **error)
{
    for (int i = 1; i + 1 < argc && strcmp(argv[i], "--") != 0; i++) {
        const CliFlag *flag = flag_of(flags, count, argv[i]);
        if (flag == NULL || flag->kind == CLI_FLAG_SWITCH || flag->kind == CLI_FLAG_SHOWN)
            continue;
        i++; /* its value */
        if (flag_of(flags, count, argv[i]) != NULL)
            return input_error(error, command, "--%s lacks its value before %s; give it, as in --%s %s",
                               flag->name, argv[i], flag->name, flag->value);
    }
    return true;
}

/* argv with "--memory" as "--memory=-" where no FILE follows it; g_free the array. */
static char **with_shown(const CliFlag *flags, int count, int argc, char **argv)
{
    char **copy = g_new0(char *, (gsize)argc + 1);
    for (int i = 0; i < argc; i++) {
        const bool alone = i + 1 == argc || g_str_has_prefix(argv[i + 1], "--");
        const CliFlag *flag = flag_of(flags, count, argv[i]);
        g_autofree char *whole = g_strconcat(argv[i], "=-", NULL);
        copy[i] =
            alone && flag != NULL && flag->kind == CLI_FLAG_SHOWN ? (char *)g_intern_string(whole) : argv[i];
    }
    return copy;
}

bool cli_args_parse(const CliCommand *command, int argc, char **argv, CliArgs *args, GError **error)
{
    int count = 0;
    g_autofree CliFlag *flags = cli_all_flags(command, &count);
    if (!check_values(command, flags, count, argc, argv, error))
        return false;
    g_autofree GOptionEntry *entries = option_entries(flags, count, args);
    g_autofree char **copy = with_shown(flags, count, argc, argv); /* GOption removes what it has read */
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_help_enabled(context, FALSE);
    g_option_context_add_main_entries(context, entries, NULL);
    g_autoptr(GError) cause = NULL;
    char **rest = copy;
    if (!g_option_context_parse(context, &argc, &rest, &cause))
        return option_error(error, command, flags, count, cause);
    return args->help ||
           (check_texts(command, flags, count, args, error) && check_words(command, args, error));
}

void cli_args_clear(const CliCommand *command, CliArgs *args)
{
    int count = 0;
    g_autofree CliFlag *flags = cli_all_flags(command, &count);
    for (int i = 0; i < count; i++) {
        if (flags[i].kind == CLI_FLAG_TEXTS)
            g_clear_pointer((char ***)flag_target(args, &flags[i]), g_strfreev);
        else if (flags[i].kind != CLI_FLAG_SWITCH)
            g_clear_pointer((char **)flag_target(args, &flags[i]), g_free);
    }
    g_clear_pointer(&args->words, g_strfreev);
}

char **cli_words(const char *list)
{
    char **words = list != NULL ? g_strsplit(list, ",", -1) : NULL;
    for (char **word = words; word != NULL && *word != NULL; word++)
        g_strstrip(*word);
    return words;
}
