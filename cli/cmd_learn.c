/* cli/cmd_learn.c - orrery learn: a recipe of one's own software from a trace of one of its steps. */
#include <string.h>

#include "api/simulate.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "study/trace_learn.h"

typedef struct LearnArgs {
    CliArgs common;
    char *scenario;
} LearnArgs;

/* execution.framework as the scenario says it; NULL: it does not. */
static const OrrJson *framework_of(const OrrJsonDoc *resolved)
{
    const OrrJson *execution = orr_json_member(orr_json_root(resolved), "execution");
    return execution != NULL && orr_json_type(execution) == ORR_JSON_OBJECT
               ? orr_json_member(execution, "framework")
               : NULL;
}

static bool learn(const LearnArgs *args, const GPtrArray *ranks, GString *out, GString *page, GError **error)
{
    const ReportOptions options = {.ideal = true};
    ApiSimulation *simulation = api_simulate(args->scenario, args->common.sets, &options, error);
    TraceLearned learned;
    if (simulation == NULL)
        return false;
    const char *text = simulation->source.resolved;
    OrrJsonDoc *resolved = orr_json_parse(text, strlen(text), args->scenario, error);
    const bool ok = resolved != NULL && trace_learn(ranks, &simulation->spec, &learned, error);
    if (ok) {
        trace_learned_json(&learned, framework_of(resolved), args->common.words[0], out);
        trace_learned_text(&learned, page);
    }
    orr_json_free(resolved);
    api_simulation_free(simulation);
    return ok;
}

static bool run(const CliArgs *common, GError **error)
{
    const LearnArgs *args = (const LearnArgs *)common;
    if (args->scenario == NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "learn: give --scenario FILE, which describes the run that was traced");
    TraceTable *table = trace_table_load(error);
    GPtrArray *ranks = table != NULL ? trace_read(common->words[0], table, error) : NULL;
    trace_table_free(table);
    if (ranks == NULL)
        return false;
    g_autoptr(GString) out = g_string_new(NULL), page = g_string_new(NULL);
    bool ok = learn(args, ranks, out, page, error) && cli_output_write(common->output, out, error);
    g_ptr_array_free(ranks, TRUE);
    if (ok && !common->quiet && common->output != NULL && strcmp(common->output, "-") != 0)
        ok = cli_output_write(NULL, page, error);
    return ok;
}

static const CliFlag flags[] = {
    {"scenario", CLI_FLAG_FILE, offsetof(LearnArgs, scenario), "SCENARIO.json",
     "the scenario of the run that was traced"},
};

const CliCommand cli_command_learn = {
    .name = "learn",
    .usage = "TRACE",
    .summary = "a recipe of one's own software from a trace of one step",
    .help =
        "Reads a trace as 'orrery trace' does and compares it with the step that --scenario predicts. It "
        "writes a "
        "profile of the software that makes both agree. The profile says how long each class of kernels "
        "takes "
        "over what the model says. It also has the gap between kernels and the idle time of a step. --output "
        "FILE "
        "takes the profile; a page says what was learned, and how far ops of one class differ. Runs of other "
        "sizes use it with execution.framework=FILE. What the scenario's own framework says besides is "
        "kept.\n"
        "\n"
        "One rank is enough. Several ranks tell the transfer of a collective from the wait for its last "
        "rank. "
        "What a trace does not teach: when communication begins, and how factors change with sizes.\n"
        "\n"
        "  orrery learn rank0.json.gz --scenario run.json --output my-software.json\n"
        "  orrery run larger.json --set execution.framework=my-software.json\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(LearnArgs),
    .run = run,
};
