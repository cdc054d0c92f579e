/* cli/cmd_campaign.c - orrery campaign: weeks of training with failures, checkpoints and restarts. */
#include <stdlib.h>

#include "api/loops.h"
#include "base/units.h"
#include "campaign/effective.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/team.h"

enum { MOST_REPLICAS = 1000000 };

typedef struct CampaignArgs {
    CliArgs common;
    char *replicas, *seed, *days, *jobs;
    gboolean timeline, ideal;
} CampaignArgs;

static bool read_whole(const char *flag, const char *text, guint64 low, guint64 high, guint64 *ret_value,
                       GError **error)
{
    if (text == NULL || g_ascii_string_to_unsigned(text, 10, low, high, ret_value, NULL))
        return true;
    return orr_fail(error, ORR_ERROR_INPUT,
                    "--%s: \"%s\" is not a whole number from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT,
                    flag, text, low, high);
}

static bool read_options(const CampaignArgs *args, CampaignOptions *options, GError **error)
{
    guint64 replicas = 1000, seed = 1, jobs = 0;
    if (args->common.format == CLI_FORMAT_CSV)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "campaign: --format csv: one campaign is not a table; give text or json");
    if (!read_whole("replicas", args->replicas, 1, MOST_REPLICAS, &replicas, error) ||
        !read_whole("seed", args->seed, 0, G_MAXINT64, &seed, error) ||
        !read_whole("jobs", args->jobs, 0, 4096, &jobs, error))
        return false;
    if (args->days != NULL) {
        char *end = NULL;
        const double days = g_ascii_strtod(args->days, &end);
        if (end == args->days || *end != '\0' || !(days >= 0.01 && days <= 36500))
            return orr_fail(error, ORR_ERROR_INPUT, "--days: \"%s\" is not a number from 0.01 to 36500",
                            args->days);
        options->ideal_days = days;
    }
    options->curve = true;
    options->timeline = args->timeline != FALSE;
    options->replicas = (int64_t)replicas;
    options->seed = seed;
    options->crew.threads = (int)jobs;
    return true;
}

static void show_progress(double done_frac, void *data)
{
    cli_progress_tell(data, done_frac, (CliBest){0});
}

/* Every process of a team has all the replicas in the end; `speaks`: this one writes. */
static bool live(const CliArgs *common, CampaignOptions *options, CliTeam *team, bool speaks, GError **error)
{
    CliInterrupt interrupt;
    const ReportOptions report_options = {0};
    Campaign campaign;
    const ApiInput input = {.path = common->words[0], .loops = true};
    ApiSimulation *simulation = api_simulate_input(&input, common->sets, NULL, &report_options, error);
    if (simulation == NULL)
        return false;
    g_autofree Spec *whole = g_new0(Spec, 1);
    g_autofree Report *report = g_new(Report, 1);
    if (!api_simulation_lived(simulation, common->words[0], options->ideal_days,
                              ((const CampaignArgs *)common)->ideal, whole, report, error)) {
        api_simulation_free(simulation);
        return false;
    }
    g_autoptr(GString) out = g_string_new(NULL);
    CliProgress progress = cli_progress_begin("living through it", common);
    if (!speaks)
        progress.mode = CLI_PROGRESS_NONE;
    progress.done_permille = &team->done_permille;
    team->doing = "the campaigns";
    options->crew.progress = show_progress;
    options->crew.progress_data = &progress;
    if (options->crew.team == NULL) { /* before, nothing is known that could be told */
        cli_interrupt_hold(&interrupt);
        options->crew.stop = cli_interrupt_stop(&interrupt);
    }
    const bool ok = campaign_run(report, common->words[0], options, &campaign, error);
    if (ok && common->format == CLI_FORMAT_JSON)
        campaign_write_json(&campaign, out);
    else if (ok)
        campaign_write_text(&campaign, out);
    api_simulation_free(simulation);
    const bool written = ok && (!speaks || cli_output_write(common->output, out, error));
    if (written && campaign.options.replicas < campaign.asked_replicas)
        exit(CLI_EXIT_INTERRUPTED);
    return written;
}

/* Of several processes the first one speaks, and all of them fail alike. */
static bool run(const CliArgs *common, GError **error)
{
    CampaignOptions options = {0};
    CliTeam team;
    if (!read_options((const CampaignArgs *)common, &options, error) || !cli_team_open(&team, error))
        return false;
    const bool several = team.processes > 1, speaks = !several || team.team.rank == 0;
    if (several) {
        options.crew.team = &team.team;
        options.crew.threads = options.crew.threads > 0 ? options.crew.threads
                                                        : MAX(1, (int)g_get_num_processors() / team.on_node);
    }
    const bool ok = live(common, &options, &team, speaks, error);
    cli_team_close(&team, ok ? NULL : *error);
    return ok;
}

static const CliFlag flags[] = {
    {"replicas", CLI_FLAG_TEXT, offsetof(CampaignArgs, replicas), "N",
     "campaigns to live through (default: 1000)"},
    {"seed", CLI_FLAG_TEXT, offsetof(CampaignArgs, seed), "S", "of their random numbers (default: 1)"},
    {"days", CLI_FLAG_TEXT, offsetof(CampaignArgs, days), "DAYS",
     "days of training without a failure, in place of those that training.tokens take"},
    {"timeline", CLI_FLAG_SWITCH, offsetof(CampaignArgs, timeline), NULL,
     "in text, the first interruptions of one campaign (JSON has 200)"},
    {"ideal", CLI_FLAG_SWITCH, offsetof(CampaignArgs, ideal), NULL,
     "only what the scenario itself says: no failures and storage are assumed"},
    {"jobs", CLI_FLAG_TEXT, offsetof(CampaignArgs, jobs), "N",
     "threads, of each process (default: all cores); the numbers are the same on any number"},
};

const CliCommand cli_command_campaign = {
    .name = "campaign",
    .usage = "SCENARIO.json",
    .summary = "weeks of training with failures, checkpoints and restarts",
    .help = "Simulates the whole training run many times, from failure to failure. Reports days and "
            "goodput with their spread, interruptions by cause, and time lost by kind. Finds the "
            "checkpoint interval that loses least and what spare nodes bring. Young's, Daly's and the "
            "exact renewal formula are shown next to it. What fails and what it costs is the scenario's "
            "\"faults\", a preset or rates; \"storage\" is where checkpoints go. A scenario "
            "of 64 GPUs or more without them has what 'run' and 'plan' assume, so that days are alike. "
            "Ctrl-C ends with the replicas that are done (exit status 130). "
            "Of a loop of reinforcement learning it is workload.steps that are lived through, on the GPUs of "
            "all parts. "
            "Under mpirun the processes share the replicas; the numbers stay the same.\n\n"
            "  orrery campaign scenarios/examples/campaign-llama3-405b.json\n"
            "  orrery campaign gpt3.json --set faults=llama3-2024 --set storage=tectonic --replicas "
            "5000\n"
            "  orrery campaign gpt3.json --set faults=rsc-1 --set storage=tectonic --set "
            "faults.checkpoint.interval_s=1800\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET | CLI_TAKES_PROGRESS,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(CampaignArgs),
    .run = run,
};
