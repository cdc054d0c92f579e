/* cli/cmd_plan.c - orrery plan: GPUs for a deadline or a budget, days for GPUs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "api/simulate.h"
#include "api/kinds.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "api/vary.h"
#include "plots/plots.h"
#include "ledger/memory.h"
#include "plan/plan.h"
#include "workload/purchase.h"

typedef struct PlanArgs {
    CliArgs common;
    char *own_runs;
    char *deadline, *budget, *power, *gpus, *accelerators, *clusters, *rate, *parameters, *plot, *batch_range,
        *memory_reserve, *by;
    gboolean svg, ideal;
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
                        "--gpus: %s is no list of GPU counts; write 64,128,256 or 64..1024 (doubling)", text);
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
                     "--gpus: %s is no number of GPUs; give a whole number from 1 to 10000000", word);
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
            "--batch-range: \"%s\" is no range of global batches in sequences; write it like 896..1152",
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
                    "--deadline: \"%.80s\" is no time that training may take; write it like \"30 days\" or "
                    "\"12 weeks\"",
                    deadline);
}

static bool read_question(const PlanArgs *args, Question *question, GError **error)
{
    PlanOptions *options = &question->options;
    options->progress = show_progress;
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

static bool add_kinds(const char *key, const char *list, const Spec *base, Question *question, GArray *plans,
                      GError **error)
{
    g_auto(GStrv) words = g_strsplit(list != NULL ? list : "", ",", -1);
    for (char **word = words; *word != NULL; word++) {
        if (plans->len > 0 && orr_stop_asked(&question->options.stop)) {
            question->partial = true;
            break;
        }
        Plan plan;
        if (!api_kind_plan(key, g_strstrip(*word), base, &question->options, &plan, error))
            return false;
        question->partial = question->partial || plan.partial;
        g_array_append_val(plans, plan);
    }
    return true;
}

static bool run_plans(const PlanArgs *args, const Spec *base, Question *question, GArray *plans,
                      GError **error)
{
    if (args->accelerators == NULL && args->clusters == NULL) {
        Plan plan;
        if (!plan_run(base, &question->options, &plan, error))
            return false;
        question->partial = plan.partial;
        g_array_append_val(plans, plan);
        return true;
    }
    if (!add_kinds("accelerator", args->accelerators, base, question, plans, error) ||
        !add_kinds("cluster", args->clusters, base, question, plans, error))
        return false;
    return plan_any((const Plan *)(void *)plans->data, (int)plans->len, error);
}

/* --- the page and the plot --- */

static bool draw(const PlanArgs *args, const PlanPage *page, GError **error)
{
    if (args->plot == NULL || page->partial) /* curves over half of the counts would mislead */
        return true;
    g_autoptr(GArray) points = g_array_new(FALSE, TRUE, sizeof(PlotScalingPoint));
    for (int i = 0; i < page->count; i++) {
        const Plan *plan = &page->plans[i];
        for (guint p = 0; p < plan->points->len; p++) {
            const PlanPoint *point = &g_array_index(plan->points, PlanPoint, p);
            const PlotScalingPoint shown = {.series = i,
                                            .name =
                                                plan->cluster[0] != '\0' ? plan->cluster : plan->accelerator,
                                            .gpus = point->gpus,
                                            .days = plan_days(point),
                                            .mfu = point->mfu,
                                            .fits = point->fits,
                                            .chosen = (int)p == plan->chosen};
            if (point->reason == NULL)
                g_array_append_val(points, shown);
        }
    }
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(g_free);
    const PlotTarget target = {.folder = args->plot, .svg = args->svg, .files = files};
    if (!plot_scaling(page->spec->name, page->options->deadline_s / 86400,
                      (const PlotScalingPoint *)(void *)points->data, (int)points->len, &target, error))
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
static bool plan_loop(const PlanArgs *args, const Spec *spec, const SpecSource *source,
                      const Question *question, GError **error)
{
    Purchase purchase;
    g_autoptr(GString) out = g_string_new(NULL);
    const GArray *gpus = question->gpus;
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
    return cli_output_write(args->common.output, out, error);
}

static bool run(const CliArgs *common, GError **error)
{
    const PlanArgs *args = (const PlanArgs *)common;
    Question question = {.gpus = NULL};
    SpecSource source = {0};
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autoptr(GArray) plans = g_array_new(FALSE, TRUE, sizeof(Plan));
    g_array_set_clear_func(plans, clear_plan);
    ApiShipped shipped = {0};
    CliProgress progress = cli_progress_begin("planning", common);
    bool ok = api_shipped_load(!args->ideal, args->own_runs, &shipped, error);
    question.options.residuals = shipped.residuals;
    question.options.own = shipped.own;
    question.options.own_count = shipped.own_count;
    question.options.assumed = args->ideal ? NULL : &shipped.assumed;
    question.options.progress_data = &progress;
    CliInterrupt interrupt;
    cli_interrupt_hold(&interrupt);
    question.options.stop = cli_interrupt_stop(&interrupt);
    ok = ok && read_question(args, &question, error) &&
         spec_load_file(common->words[0], (const char *const *)common->sets, true, spec, &source, error) &&
         (spec->workload.given ? plan_loop(args, spec, &source, &question, error)
                               : run_plans(args, spec, &question, plans, error));
    if (ok && !spec->workload.given) {
        const PlanPage page = {.spec = spec,
                               .source = &source,
                               .options = &question.options,
                               .plans = (const Plan *)(void *)plans->data,
                               .count = (int)plans->len,
                               .partial = question.partial};
        ok = draw(args, &page, error) && write_page(common, &page, error);
    }
    api_shipped_clear(&shipped);
    spec_source_clear(&source);
    if (question.gpus != NULL)
        g_array_free(question.gpus, TRUE);
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
    {"textbook-rate", CLI_FLAG_TEXT, offsetof(PlanArgs, rate), "FLOP/s",
     "what the textbook estimate assumes that one GPU achieves (default: half of its dense peak)"},
    {"parameters", CLI_FLAG_TEXT, offsetof(PlanArgs, parameters), "COUNT",
     "parameters of the textbook estimate, as in 175e9 (default: counted from the model)"},
    {"plot", CLI_FLAG_FILE, offsetof(PlanArgs, plot), "FOLDER",
     "also draw days and MFU over GPU counts there"},
    {"ideal", CLI_FLAG_SWITCH, offsetof(PlanArgs, ideal), NULL,
     "days and costs of computing alone: no failures, checkpoints and restarts"},
    {"svg", CLI_FLAG_SWITCH, offsetof(PlanArgs, svg), NULL, "SVG instead of PNG"},
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
            "that are done (exit status 130).\n\n"
            "  orrery plan scenarios/examples/plan-sc21-175b.json --deadline \"30 days\"\n"
            "  orrery plan gpt3.json --set cluster.usd_per_gpu_hour=1.8 --budget-usd 2e6\n"
            "  orrery plan gpt3.json --cluster dgx-a100-80gb@1.5,dgx-h100@2.5 --deadline \"30 days\"\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET | CLI_TAKES_PROGRESS,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(PlanArgs),
    .run = run,
};
