/* cli/cmd_plan.c - orrery plan: GPUs for a deadline or a budget, days for GPUs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crew.h"
#include "base/units.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "api/simulate.h"
#include "api/kinds.h"
#include "api/loops.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/team.h"
#include "api/vary.h"
#include "plots/plots.h"
#include "ledger/memory.h"
#include "plan/plan.h"
#include "workload/purchase.h"

typedef struct PlanArgs {
    CliArgs common;
    char *own_runs;
    char *deadline, *budget, *power, *gpus, *accelerators, *clusters, *frameworks, *machines, *rate,
        *parameters, *plot, *batch_range, *memory_reserve, *by;
    gboolean svg, ideal, whole_racks;
} PlanArgs;

/* What the command line asks, read. */
typedef struct Question {
    PlanOptions options;
    GArray *gpus; /* int; NULL: not given */
    bool partial; /* stopped before all was simulated */
} Question;

static bool read_quantity(const char *flag, const char *text, OrrUnit unit, double *ret_value, GError **error)
{
    if (text == NULL)
        return true;
    double value = 0;
    if (!orr_parse_quantity(text, unit, &value, error)) {
        g_prefix_error(error, "--%s: ", flag);
        return false;
    }
    if (!(value > 0))
        return orr_fail(error, ORR_ERROR_INPUT, "--%s: %s is not above 0", flag, text);
    *ret_value = value;
    return true;
}

static bool read_power(const char *text, double *ret_w, GError **error)
{
    double mw = 0;
    if (!read_quantity("power-mw", text, ORR_UNIT_NONE, &mw, error))
        return false;
    *ret_w = mw * 1e6;
    return true;
}

/* "64,128,256" or "64..1024" (doubling). */
static bool read_gpus(const char *text, Question *question, GError **error)
{
    if (text == NULL)
        return true;
    ApiVary vary = {NULL, NULL};
    g_autofree char *pair = g_strconcat("gpus=", text, NULL);
    if (!api_vary_parse(pair, &vary, NULL))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--gpus: %s is not a list of GPU counts; write 64,128,256 or 64..1024 (doubling)",
                        text);
    question->gpus = g_array_new(FALSE, FALSE, sizeof(int));
    bool ok = true;
    for (guint i = 0; ok && i < vary.values->len; i++) {
        char *end = NULL;
        const char *word = g_ptr_array_index(vary.values, i);
        const double value = g_ascii_strtod(word, &end);
        ok = *end == '\0' && value >= 1 && value <= 1e7 && value <= (int)value;
        const int count = ok ? (int)value : 0;
        if (ok)
            g_array_append_val(question->gpus, count);
        else
            orr_fail(error, ORR_ERROR_INPUT,
                     "--gpus: %s is not a number of GPUs; give a whole number from 1 to 10000000", word);
    }
    api_vary_clear(&vary);
    question->options.gpus = (const int *)(void *)question->gpus->data;
    question->options.gpus_count = (int)question->gpus->len;
    return ok;
}

static bool read_batch_range(const char *text, PlanOptions *options, GError **error)
{
    if (text == NULL)
        return true;
    const char *dots = strstr(text, "..");
    g_autofree char *low = dots != NULL ? g_strndup(text, (gsize)(dots - text)) : NULL;
    gint64 first = 0, last = 0;
    if (low == NULL || !g_ascii_string_to_signed(low, 10, 1, 100000000, &first, NULL) ||
        !g_ascii_string_to_signed(dots + 2, 10, 1, 100000000, &last, NULL) || first > last)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "--batch-range: \"%s\" is not a range of global batches in sequences; write it like 896..1152",
            text);
    options->batch_low = (int)first;
    options->batch_high = (int)last;
    return true;
}

static void show_progress(int done, int total, void *data)
{
    cli_progress_tell(data, total > 0 ? (double)done / total : 1, (CliBest){0});
}

/* A time with a unit from the start on; not a date, nor seconds, which are never meant. */
static bool check_deadline(const char *deadline, GError **error)
{
    double deadline_s = 0;
    if (deadline != NULL && strpbrk(deadline, "0123456789") != NULL &&
        strspn(deadline, "0123456789.eE+") == strlen(deadline))
        return orr_fail(error, ORR_ERROR_INPUT, "--deadline: %s has no unit; write it like \"%s days\"",
                        deadline, deadline);
    return deadline == NULL || orr_parse_quantity(deadline, ORR_UNIT_SECONDS, &deadline_s, NULL) ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "--deadline: \"%.80s\" is not a duration; write it like \"30 days\" or "
                    "\"12 weeks\"",
                    deadline);
}

static bool read_question(const PlanArgs *args, Question *question, GError **error)
{
    PlanOptions *options = &question->options;
    options->whole_racks = args->whole_racks != FALSE;
    if (!check_deadline(args->deadline, error))
        return false;
    return read_quantity("deadline", args->deadline, ORR_UNIT_SECONDS, &options->deadline_s, error) &&
           read_quantity("budget-usd", args->budget, ORR_UNIT_USD, &options->budget_usd, error) &&
           read_power(args->power, &options->power_w, error) &&
           search_goal_parse("--for", args->by, &options->by, error) &&
           read_quantity("textbook-rate", args->rate, ORR_UNIT_FLOPS_PER_S, &options->textbook_flops_per_s,
                         error) &&
           read_quantity("parameters", args->parameters, ORR_UNIT_TOKENS, &options->textbook_parameters,
                         error) &&
           ledger_reserve_parse(args->memory_reserve, &options->reserve, error) &&
           read_batch_range(args->batch_range, options, error) && read_gpus(args->gpus, question, error);
}

/* --- kinds of GPU --- */

/* A flag that would do nothing is told. */
static bool check_racks(const PlanArgs *args, const ApiKinds *kinds, GError **error)
{
    for (guint i = 0; i < kinds->list->len; i++)
        if (!args->whole_racks || g_array_index(kinds->list, ApiKind, i).spec->cluster.rack_gpus > 0)
            return true;
    return orr_fail(
        error, ORR_ERROR_INPUT,
        "--whole-racks: no machine says how many GPUs its racks hold; give cluster.rack_gpus, as in "
        "--set cluster.rack_gpus=72");
}

static bool run_plans(const PlanArgs *args, const Spec *base, const SpecSource *source, ApiKinds *kinds,
                      Question *question, GArray *plans, GError **error)
{
    if (args->accelerators == NULL && args->clusters == NULL && args->frameworks == NULL &&
        args->machines == NULL && !args->whole_racks) {
        Plan plan;
        if (!plan_run(base, &question->options, &plan, error))
            return false;
        question->partial = plan.partial;
        g_array_append_val(plans, plan);
        return true;
    }
    g_auto(GStrv) accelerators = cli_words(args->accelerators), clusters = cli_words(args->clusters),
                  frameworks = cli_words(args->frameworks);
    const ApiKindsAsk ask = {args->common.words[0], accelerators, clusters, frameworks, args->machines};
    if (!api_kinds_load(&ask, base, source, kinds, error) || !check_racks(args, kinds, error))
        return false;
    for (guint i = 0; i < kinds->list->len; i++) {
        Plan plan;
        if (i > 0 && orr_stop_asked(&question->options.stop)) {
            question->partial = true;
            break;
        }
        api_kind_plan(&g_array_index(kinds->list, ApiKind, i), &question->options, &plan);
        question->partial = question->partial || plan.partial;
        g_array_append_val(plans, plan);
    }
    return plan_any((const Plan *)(void *)plans->data, (int)plans->len, error);
}

/* --- the page and the plot --- */

/* What a file calls it; else the cluster, or the accelerator, and the program that was named. */
static char **series_names(const PlanPage *page)
{
    char **names = g_new0(char *, (gsize)page->count + 1);
    for (int i = 0; i < page->count; i++) {
        const Plan *plan = &page->plans[i];
        const char *name = plan->name != NULL         ? plan->name
                           : plan->cluster[0] != '\0' ? plan->cluster
                                                      : plan->accelerator;
        names[i] =
            plan->framework != NULL ? g_strdup_printf("%s, %s", name, plan->framework) : g_strdup(name);
    }
    return names;
}

static GArray *plot_points(const PlanPage *page, char *const *names)
{
    GArray *points = g_array_new(FALSE, TRUE, sizeof(PlotScalingPoint));
    for (int i = 0; i < page->count; i++)
        for (guint p = 0; p < page->plans[i].points->len; p++) {
            const PlanPoint *point = &g_array_index(page->plans[i].points, PlanPoint, p);
            const double days = plan_days(point);
            const PlotScalingPoint shown = {.series = i,
                                            .name = names[i],
                                            .gpus = point->gpus,
                                            .days = days,
                                            .mfu = point->mfu,
                                            .days_low = days * point->days_low / point->days,
                                            .days_high = days * point->days_high / point->days,
                                            .usd = point->usd,
                                            .fits = point->fits,
                                            .chosen = (int)p == page->plans[i].chosen};
            if (point->reason == NULL && !isinf(days))
                g_array_append_val(points, shown);
        }
    return points;
}

static bool draw(const PlanArgs *args, const PlanPage *page, GError **error)
{
    if (args->plot == NULL || page->partial) /* curves over half of the counts would mislead */
        return true;
    g_auto(GStrv) names = series_names(page);
    g_autoptr(GArray) list = plot_points(page, names);
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(g_free);
    const PlotScalingPoint *points = (const PlotScalingPoint *)(void *)list->data;
    const PlotTarget target = {.folder = args->plot, .svg = args->svg, .files = files};
    const double deadline_days = page->options->deadline_s / 86400;
    if (!plot_scaling(page->spec->name, deadline_days, points, (int)list->len, &target, error) ||
        !plot_cost(page->spec->name, deadline_days, page->options->budget_usd, points, (int)list->len,
                   &target, error))
        return false;
    for (guint i = 0; i < files->len; i++)
        cli_note(args->common.quiet, "orrery: wrote %s", (const char *)g_ptr_array_index(files, i));
    return true;
}

static bool write_page(const CliArgs *common, const PlanPage *page, GError **error)
{
    g_autoptr(GString) out = g_string_new(NULL);
    if (common->format == CLI_FORMAT_JSON) {
        if (!plan_write_json(page, out, error))
            return false;
    } else if (common->format == CLI_FORMAT_CSV)
        plan_write_csv(page, out);
    else
        plan_write_text(page, out);
    return cli_output_write(common->output, out, error);
}

static void clear_plan(void *data)
{
    plan_clear(data);
}

/* A loop over several models: machines by size, each with its best split. */
static bool plan_loop(const PlanArgs *args, bool speaks, const Spec *spec, const SpecSource *source,
                      const Question *question, GError **error)
{
    Purchase purchase;
    g_autoptr(GString) out = g_string_new(NULL);
    const GArray *gpus = question->gpus;
    const bool machines = args->accelerators != NULL || args->clusters != NULL || args->frameworks != NULL ||
                          args->machines != NULL || args->whole_racks;
    if (!api_loop_alone(args->common.words[0],
                        "--accelerator, --cluster, --framework, --machines and --whole-racks", machines,
                        error))
        return false;
    if (!purchase_run(spec, source, gpus != NULL ? (const int *)(const void *)gpus->data : NULL,
                      gpus != NULL ? (int)gpus->len : 0, question->options.deadline_s,
                      question->options.budget_usd, &purchase, error)) {
        g_prefix_error(error, "%s: ", args->common.words[0]);
        return false;
    }
    if (args->common.format == CLI_FORMAT_JSON)
        purchase_write_json(&purchase, source, out);
    else if (args->common.format == CLI_FORMAT_CSV)
        purchase_write_csv(&purchase, out);
    else
        purchase_write_text(&purchase, out);
    return !speaks || cli_output_write(args->common.output, out, error);
}

/* What the first process writes. */
static bool write_answer(const PlanArgs *args, const Spec *spec, const SpecSource *source,
                         const Question *question, const GArray *plans, GError **error)
{
    const PlanPage page = {.spec = spec,
                           .source = source,
                           .options = &question->options,
                           .plans = (const Plan *)(const void *)plans->data,
                           .count = (int)plans->len,
                           .partial = question->partial};
    return draw(args, &page, error) && write_page(&args->common, &page, error);
}

static bool answer(const PlanArgs *args, bool speaks, Question *question, GError **error)
{
    const CliArgs *common = &args->common;
    SpecSource source = {0};
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autoptr(GArray) plans = g_array_new(FALSE, TRUE, sizeof(Plan));
    g_array_set_clear_func(plans, clear_plan);
    ApiShipped shipped = {0};
    ApiKinds kinds = {0};
    if (args->svg && args->plot == NULL)
        return orr_fail(error, ORR_ERROR_INPUT, "--svg: goes with --plot FOLDER; leave it out");
    bool ok = api_shipped_load(!args->ideal, args->own_runs, &shipped, error);
    question->options.residuals = shipped.residuals;
    question->options.own = shipped.own;
    question->options.own_count = shipped.own_count;
    question->options.assumed = args->ideal ? NULL : &shipped.assumed;
    ok = ok && read_question(args, question, error) &&
         spec_load_file(common->words[0], (const char *const *)common->sets, true, spec, &source, error);
    if (ok && spec->workload.given)
        ok = plan_loop(args, speaks, spec, &source, question, error);
    else
        ok = ok && run_plans(args, spec, &source, &kinds, question, plans, error) &&
             (!speaks || write_answer(args, spec, &source, question, plans, error));
    api_shipped_clear(&shipped);
    api_kinds_clear(&kinds);
    spec_source_clear(&source);
    if (question->gpus != NULL)
        g_array_free(question->gpus, TRUE);
    return ok;
}

/* Of several processes the first one speaks, and all of them fail alike. */
static bool run(const CliArgs *common, GError **error)
{
    const PlanArgs *args = (const PlanArgs *)common;
    Question question = {.gpus = NULL};
    CliInterrupt interrupt = {0};
    CliTeam team;
    if (!cli_team_open(&team, error))
        return false;
    const bool several = team.processes > 1, speaks = !several || team.team.rank == 0;
    if (several) { /* mpirun ends its processes itself */
        question.options.team = &team.team;
        question.options.jobs = MAX(1, orr_crew_cores() / team.on_node);
    } else {
        cli_interrupt_hold(&interrupt);
        question.options.stop = cli_interrupt_stop(&interrupt);
    }
    CliProgress progress = cli_progress_begin("planning", common);
    if (speaks)
        question.options.progress = show_progress;
    question.options.progress_data = &progress;
    const bool ok = answer(args, speaks, &question, error);
    cli_team_close(&team, ok ? NULL : *error);
    if (ok && question.partial)
        exit(CLI_EXIT_INTERRUPTED);
    return ok;
}

static const CliFlag flags[] = {
    CLI_FLAG_OWN_RUNS(PlanArgs),
    {"deadline", CLI_FLAG_TEXT, offsetof(PlanArgs, deadline), "TIME",
     "the fewest GPUs that train it in this time, as in \"30 days\""},
    {"budget-usd", CLI_FLAG_TEXT, offsetof(PlanArgs, budget), "USD",
     "the fastest that costs no more; with --deadline both are kept"},
    {"power-mw", CLI_FLAG_TEXT, offsetof(PlanArgs, power), "MW",
     "only counts that draw no more: boards at their limits, hosts' shares where given, times cluster.pue"},
    {"for", CLI_FLAG_TEXT, offsetof(PlanArgs, by), "WHAT",
     "the least days, cost or energy of all counts that keep what is asked; step (default): see above"},
    {"gpus", CLI_FLAG_TEXT, offsetof(PlanArgs, gpus), "COUNTS",
     "only these GPU counts: 512,1024 or 64..4096 (doubling)"},
    {"batch-range", CLI_FLAG_TEXT, offsetof(PlanArgs, batch_range), "LOW..HIGH",
     "the global batch may move between these, so that more GPU counts share it evenly"},
    CLI_FLAG_MEMORY_RESERVE(PlanArgs),
    {"accelerator", CLI_FLAG_TEXT, offsetof(PlanArgs, accelerators), "NAME[@USD],...",
     "these GPUs side by side, each in its reference node, with the price of a GPU-hour"},
    {"cluster", CLI_FLAG_TEXT, offsetof(PlanArgs, clusters), "NAME[@USD],...",
     "these clusters side by side, with the price of a GPU-hour"},
    {"framework", CLI_FLAG_TEXT, offsetof(PlanArgs, frameworks), "NAME,...",
     "these training programs side by side, on each machine, each with its own defaults"},
    {"machines", CLI_FLAG_FILE, offsetof(PlanArgs, machines), "FILE",
     "machines side by side, each with its cluster, framework, region and terms of payment "
     "(docs/PLANNING.md)"},
    {"whole-racks", CLI_FLAG_SWITCH, offsetof(PlanArgs, whole_racks), NULL,
     "rent, power and pay whole racks of cluster.rack_gpus GPUs"},
    {"textbook-rate", CLI_FLAG_TEXT, offsetof(PlanArgs, rate), "FLOP/s",
     "what the textbook estimate assumes that one GPU achieves (default: half of its dense peak)"},
    {"parameters", CLI_FLAG_TEXT, offsetof(PlanArgs, parameters), "COUNT",
     "parameters of the textbook estimate, as in 175e9 (default: counted from the model)"},
    {"plot", CLI_FLAG_FILE, offsetof(PlanArgs, plot), "FOLDER",
     "also draw days and MFU over GPU counts there, and days against dollars where there is a price"},
    {"ideal", CLI_FLAG_SWITCH, offsetof(PlanArgs, ideal), NULL,
     "days and costs of computing alone: no failures, checkpoints and restarts"},
    {"svg", CLI_FLAG_SWITCH, offsetof(PlanArgs, svg), NULL, "SVG instead of PNG, with --plot"},
};

const CliCommand cli_command_plan = {
    .name = "plan",
    .usage = "SCENARIO.json",
    .summary = "how many GPUs for a deadline or a budget; days, cost, energy",
    .help = "Simulates the scenario over GPU counts. The data-parallel degree varies; the model's "
            "degrees and the global batch stay. The micro-batch shrinks where a replica's share is no "
            "multiple of it. Answers how many GPUs a deadline needs, what a budget buys, or how long the "
            "scenario's own cluster takes; the textbook estimate 6 P T / (X t) stands beside it with "
            "what explains the difference. Tokens, price, power and PUE are scenario fields "
            "(training.tokens, cluster.usd_per_gpu_hour, cluster.pue). Ctrl-C ends with the GPU counts "
            "that are done (exit status 130). Under mpirun the processes choose "
            "what is \"auto\" together and give the same answer.\n\n"
            "  orrery plan scenarios/examples/plan-sc21-175b.json --deadline \"30 days\"\n"
            "  orrery plan gpt3.json --set cluster.usd_per_gpu_hour=1.8 --budget-usd 2e6\n"
            "  orrery plan gpt3.json --cluster dgx-a100-80gb@1.5,dgx-h100@2.5 --deadline \"30 days\"\n"
            "  orrery plan gpt3.json --framework megatron-core,torchtitan --gpus 1024\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET | CLI_TAKES_PROGRESS,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(PlanArgs),
    .run = run,
};
