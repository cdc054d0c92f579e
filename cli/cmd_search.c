/* cli/cmd_search.c - orrery search: the best configuration of what the scenario leaves "auto". */
#include <stdio.h>
#include <stdlib.h>

#include "base/crew.h"
#include "base/units.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "api/loops.h"
#include "api/simulate.h"
#include "api/kinds.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/team.h"
#include "base/file.h"
#include "ledger/memory.h"
#include "workload/split.h"
#include "search/choose.h"
#include "search/pareto.h"
#include "search/plain.h"
#include "search/scenario.h"
#include "search/search.h"
#include "search/walk.h"
#include "spec/load.h"

typedef struct SearchArgs {
    CliArgs common;
    char *own_runs;
    char *top, *jobs, *max_seconds, *accelerators, *clusters, *frameworks, *memory_reserve, *save, *save_all,
        *by;
    gboolean exhaustive, ideal;
} SearchArgs;

static void show_progress(const SearchNews *news, void *data)
{
    g_autofree char *what = news->best != NULL ? search_describe(news->result, news->best->id) : NULL;
    cli_progress_tell(data, news->done_frac,
                      (CliBest){what, news->best != NULL ? (double)news->best->step_ps * 1e-12 : 0});
}

static bool read_count(const char *flag, const char *text, int *ret_count, GError **error)
{
    gint64 count = 0;
    if (text == NULL)
        return true;
    if (!g_ascii_string_to_signed(text, 10, 1, 1000, &count, NULL))
        return orr_fail(error, ORR_ERROR_INPUT, "--%s: \"%s\" is not a whole number from 1 to 1000", flag,
                        text);
    *ret_count = (int)count;
    return true;
}

static bool read_seconds(const char *text, double *ret_seconds, GError **error)
{
    char *end = NULL;
    if (text == NULL)
        return true;
    const double seconds = g_ascii_strtod(text, &end);
    if (end == text || *end != '\0' || !(seconds > 0) || seconds > 1e9)
        return orr_fail(error, ORR_ERROR_INPUT, "--max-seconds: \"%s\" is not a number of seconds above 0",
                        text);
    *ret_seconds = seconds;
    return true;
}

static bool write_result(const SearchArgs *args, const SearchResult *result, const SpecSource *source,
                         GString *out, GError **error)
{
    switch (args->common.format) {
    case CLI_FORMAT_TEXT:
        search_write_text(result, out);
        return true;
    case CLI_FORMAT_JSON:
        return search_write_json(result, source, out, error);
    case CLI_FORMAT_CSV:
        search_write_csv(result, out);
        return true;
    }
    g_assert_not_reached();
}

/* --- what is saved --- */

/* What a saved scenario begins from. */
typedef struct Saved {
    const SpecSource *source;
    const char *cluster; /* in the place of its own; NULL: that itself */
} Saved;

/* Row `index` of the best, or that of what is plain behind them, as a scenario. */
static bool write_scenario(const SearchResult *result, const Saved *saved, int index, GString *out,
                           GError **error)
{
    g_autofree Spec *chosen = g_new(Spec, 1);
    const bool own = index < (int)result->best->len;
    const SearchResult *from = own ? result : &result->plain->result;
    search_point_dealt(from->space, g_array_index(from->best, SearchRun, own ? (guint)index : 0).id, chosen);
    return search_scenario_write(saved->source, result->space->spec, chosen, saved->cluster, out, error);
}

static bool save_all(const char *folder, const SearchResult *result, const Saved *from, bool quiet,
                     GError **error)
{
    const int count = (int)result->best->len + (result->plain != NULL ? 1 : 0);
    if (g_mkdir_with_parents(folder, 0777) != 0)
        return orr_fail(error, ORR_ERROR_IO, "--save-all %s: cannot make the folder", folder);
    for (int i = 0; i < count; i++) {
        const bool plain = i == (int)result->best->len;
        g_autofree char *name = plain ? g_strdup("recommended.json") : g_strdup_printf("%02d.json", i + 1);
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_autoptr(GString) text = g_string_new(NULL);
        if (!write_scenario(result, from, i, text, error) ||
            !orr_file_write(path, text->str, text->len, error))
            return false;
        cli_note(quiet, "orrery: wrote %s", path);
    }
    return true;
}

static bool save(const SearchArgs *args, const SearchResult *result, const Saved *from, GError **error)
{
    if (args->save == NULL && args->save_all == NULL)
        return true;
    if (result->best->len == 0)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--save: no configuration fits, so there is nothing to write");
    if (args->save != NULL) {
        g_autoptr(GString) text = g_string_new(NULL);
        if (!write_scenario(result, from, 0, text, error) || !cli_output_write(args->save, text, error))
            return false;
    }
    return args->save_all == NULL || save_all(args->save_all, result, from, args->common.quiet, error);
}

/* Keeps the ledger's reserve, or what was asked; *ret_spare: it may go where nothing fits. */
static bool set_reserve(const SearchArgs *args, const LedgerResiduals *residuals, Spec *spec, bool *ret_spare,
                        GError **error)
{
    LedgerReserveAsk ask;
    if (!ledger_reserve_parse(args->memory_reserve, &ask, error) || !ledger_reserve_check(&ask, spec, error))
        return false;
    *ret_spare = !ask.given && spec->search.reserve_memory_bytes <= 0;
    spec->search.reserve_memory_bytes = ledger_reserve_bytes(residuals, &ask, spec);
    return true;
}

static bool search(const SearchArgs *args, const SearchOptions *asked, Spec *spec, SpecSource *source,
                   GString *out, GError **error)
{
    SearchOptions own = *asked;
    const SearchOptions *options = &own;
    SearchResult result;
    bool spare = false;
    if (!search_has_auto(spec))
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: no field is \"auto\", so there is nothing to search; give \"auto\" for one, such as "
            "--set parallel.tensor=auto",
            args->common.words[0]);
    ApiShipped shipped;
    if (!api_shipped_load(!args->ideal, args->own_runs, &shipped, error))
        return false;
    own.assumed = args->ideal ? NULL : &shipped.assumed;
    if (!set_reserve(args, shipped.residuals, spec, &spare, error) ||
        !search_goal_check(own.by, spec, shipped.own_count, error) ||
        !search_run_reserved(spec, options, spare, &result, error)) {
        g_prefix_error(error, "%s: ", args->common.words[0]);
        api_shipped_clear(&shipped);
        return false;
    }
    result.residuals = shipped.residuals;
    result.own = shipped.own;
    result.own_count = shipped.own_count;
    result.assumed = args->ideal ? NULL : &shipped.assumed;
    search_find_plain(&result, options);
    const bool first = options->team == NULL || options->team->rank == 0;
    const bool ok = !first || (save(args, &result, &(Saved){source, NULL}, error) &&
                               write_result(args, &result, source, out, error));
    search_result_clear(&result);
    api_shipped_clear(&shipped);
    return ok;
}

/* --- several machines --- */

/* Each of --accelerator and --cluster under each --framework; the scenario's own machine where none is named. */
static bool list_kinds(const SearchArgs *args, const Spec *base, const SpecSource *source, ApiKinds *kinds,
                       GError **error)
{
    g_auto(GStrv) accelerators = cli_words(args->accelerators), clusters = cli_words(args->clusters),
                  frameworks = cli_words(args->frameworks);
    const ApiKindsAsk ask = {args->common.words[0], accelerators, clusters, frameworks, NULL};
    if (!api_kinds_load(&ask, base, source, kinds, error))
        return false;
    for (guint i = 0; i < kinds->list->len; i++) {
        const ApiKind *kind = &g_array_index(kinds->list, ApiKind, i);
        if (kind->reason != NULL)
            return orr_fail(error, ORR_ERROR_INPUT, "--framework %s: %s", kind->framework, kind->reason);
    }
    return true;
}

/* `kinds` outlives the answer: its specs point into it. */
static bool write_front(const SearchArgs *args, const SearchOptions *options, const ApiKinds *kinds,
                        GString *out, GError **error)
{
    SearchPareto front;
    g_autofree const Spec **specs = g_new0(const Spec *, kinds->list->len);
    LedgerResiduals *residuals = NULL;
    bool ok = ledger_residuals_shipped(&residuals, error), spare = false;
    for (guint i = 0; ok && i < kinds->list->len; i++) {
        Spec *spec = g_array_index(kinds->list, ApiKind, i).spec;
        specs[i] = spec;
        ok = set_reserve(args, residuals, spec, &spare, error);
    }
    ledger_residuals_free(residuals);
    if (!ok || !search_pareto_run(specs, (int)kinds->list->len, options, &front, error))
        return false;
    if (args->common.format == CLI_FORMAT_JSON)
        search_pareto_write_json(&front, out);
    else if (args->common.format == CLI_FORMAT_CSV)
        search_pareto_write_csv(&front, out);
    else
        search_pareto_write_text(&front, out);
    const ApiKind *kind = &g_array_index(kinds->list, ApiKind, 0); /* to be saved, it is the only one */
    ok = save(args, &front.machines[0].result, &(Saved){kind->source, kind->cluster_json}, error);
    search_pareto_clear(&front);
    return ok;
}

static bool search_machines(const SearchArgs *args, const SearchOptions *options, const Spec *base,
                            const SpecSource *source, GString *out, GError **error)
{
    CampaignAssumed assumed;
    SearchOptions own = *options;
    ApiKinds kinds = {0};
    if (!args->ideal && campaign_assumed_load(&assumed, NULL))
        own.assumed = &assumed;
    if (args->own_runs != NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--own-runs: corrects the runs of one machine; leave out --accelerator, --cluster, "
                        "--framework and search.nodes, or this");
    bool ok = list_kinds(args, base, source, &kinds, error);
    if (ok && (args->save != NULL || args->save_all != NULL) &&
        (kinds.list->len > 1 || search_pareto_asked(base)))
        ok = orr_fail(error, ORR_ERROR_INPUT,
                      "--save: give one machine, not several kinds or numbers of nodes");
    ok = ok && write_front(args, &own, &kinds, out, error);
    api_kinds_clear(&kinds);
    return ok;
}

/* A loop over several models: nodes for training and for generation. */
static bool search_splits(const SearchArgs *args, const Spec *spec, const SpecSource *source, int top,
                          GString *out, GError **error)
{
    Splits splits;
    const bool machines = args->accelerators != NULL || args->clusters != NULL || args->frameworks != NULL;
    if (!api_loop_alone(args->common.words[0], "--accelerator, --cluster, --framework and --for",
                        machines || args->by != NULL, error))
        return false;
    if (args->save != NULL || args->save_all != NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--save: writes one step's configuration; leave it out for a workload");
    if (!splits_search(spec, source, top > 0 ? top : 5, &splits, error)) {
        g_prefix_error(error, "%s: ", args->common.words[0]);
        return false;
    }
    if (args->common.format == CLI_FORMAT_JSON)
        splits_write_json(&splits, source, out);
    else if (args->common.format == CLI_FORMAT_CSV)
        splits_write_csv(&splits, out);
    else
        splits_write_text(&splits, out);
    return true;
}

static bool load_and_search(const SearchArgs *args, SearchOptions *options, GError **error)
{
    const CliArgs *common = &args->common;
    const bool first = options->team == NULL || options->team->rank == 0;
    if (!read_count("top", args->top, &options->top, error) ||
        !read_count("jobs", args->jobs, &options->jobs, error) ||
        !read_seconds(args->max_seconds, &options->max_seconds, error) ||
        !search_goal_parse("--for", args->by, &options->by, error))
        return false;
    const CliOutput outputs[] = {{"--save", args->save, NULL}, {"the table", common->output, NULL}};
    if (args->save != NULL && !cli_outputs_check(outputs, (int)G_N_ELEMENTS(outputs), error))
        return false;
    g_autofree Spec *spec = g_new0(Spec, 1);
    SpecSource source;
    if (!spec_load_file(common->words[0], (const char *const *)common->sets, true, spec, &source, error))
        return false;
    g_autoptr(GString) out = g_string_new(NULL);
    const bool several = search_pareto_asked(spec) || args->accelerators != NULL || args->clusters != NULL ||
                         args->frameworks != NULL;
    const bool ok = (spec->workload.given ? search_splits(args, spec, &source, options->top, out, error)
                     : several            ? search_machines(args, options, spec, &source, out, error)
                                          : search(args, options, spec, &source, out, error)) &&
                    (!first || cli_output_write(common->output, out, error));
    spec_source_clear(&source);
    return ok;
}

/* Of several processes the first one speaks, and all of them fail alike. */
static bool run(const CliArgs *common, GError **error)
{
    const SearchArgs *args = (const SearchArgs *)common;
    CliTeam team;
    if (!cli_team_open(&team, error))
        return false;
    const bool several = team.processes > 1, speaks = !several || team.team.rank == 0;
    CliProgress progress = cli_progress_begin("searching", common);
    if (!speaks)
        progress.mode = CLI_PROGRESS_NONE;
    if (several)
        progress.done_permille = &team.done_permille;
    team.doing = "the search";
    SearchOptions options = {.exhaustive = args->exhaustive,
                             .progress = several || progress.mode != CLI_PROGRESS_NONE ? show_progress : NULL,
                             .progress_data = &progress,
                             .team = several ? &team.team : NULL};
    if (several)
        options.jobs = MAX(1, orr_crew_cores() / team.on_node);
    CliInterrupt interrupt = {0};
    if (!several) { /* mpirun ends its processes itself */
        cli_interrupt_hold(&interrupt);
        options.stop = cli_interrupt_stop(&interrupt);
    }
    const bool ok = load_and_search(args, &options, error);
    cli_team_close(&team, ok ? NULL : *error);
    if (ok && interrupt.seen != 0)
        exit(CLI_EXIT_INTERRUPTED);
    return ok;
}

static const CliFlag flags[] = {
    CLI_FLAG_OWN_RUNS(SearchArgs),
    {"top", CLI_FLAG_TEXT, offsetof(SearchArgs, top), "N",
     "configurations to report (and to prove), 5 by default"},
    {"jobs", CLI_FLAG_TEXT, offsetof(SearchArgs, jobs), "N", "threads; all cores by default (same answer)"},
    {"max-seconds", CLI_FLAG_TEXT, offsetof(SearchArgs, max_seconds), "S",
     "stop then, with the best so far and how far from it the rest may be (the gap); so does Ctrl-C"},
    {"accelerator", CLI_FLAG_TEXT, offsetof(SearchArgs, accelerators), "NAME[@USD],...",
     "these GPUs side by side, each in its reference node, with the price of a GPU-hour"},
    {"cluster", CLI_FLAG_TEXT, offsetof(SearchArgs, clusters), "NAME[@USD],...",
     "these clusters side by side, with the price of a GPU-hour"},
    {"framework", CLI_FLAG_TEXT, offsetof(SearchArgs, frameworks), "NAME,...",
     "these training programs side by side, on each machine, each with its own defaults"},
    {"for", CLI_FLAG_TEXT, offsetof(SearchArgs, by), "WHAT",
     "what is best: step (default), or the days with failures, the cost or the energy of all tokens"},
    {"save", CLI_FLAG_FILE, offsetof(SearchArgs, save), "FILE",
     "write the best configuration as a complete scenario"},
    {"save-all", CLI_FLAG_FILE, offsetof(SearchArgs, save_all), "FOLDER",
     "write every one that is reported, 01.json the best"},
    CLI_FLAG_MEMORY_RESERVE(SearchArgs),
    {"exhaustive", CLI_FLAG_SWITCH, offsetof(SearchArgs, exhaustive), NULL,
     "simulate every point instead of proving that most cannot win (same answer, slower)"},
    {"ideal", CLI_FLAG_SWITCH, offsetof(SearchArgs, ideal), NULL,
     "days and costs of computing alone: no failures, checkpoints and restarts"},
};

const CliCommand cli_command_search = {
    .name = "search",
    .usage = "SCENARIO.json",
    .summary = "the best configuration of every field that is \"auto\", with proof",
    .help = "Looks through every valid assignment of the scenario's \"auto\" fields and reports the "
            "fastest that fit in memory. Listed too: those that trade time for memory, those that "
            "just miss the memory, and what a faster machine would bring. Bounds that are never "
            "above the simulated time leave out what cannot win; the report counts how many points "
            "each bound left out and how many ran in the simulator. Ranges and limits stand in the "
            "scenario's `search` object (orrery help search). Under mpirun the processes share the "
            "work and give the same answer. With `search.nodes`, --cluster, --accelerator or "
            "--framework every machine is searched. The answer is then the best of each, and the front of "
            "time, memory "
            "and cost over all. Of a scenario with a workload the nodes are divided between training and "
            "generation, in every way and layout.\n\n"
            "  orrery search scenarios/examples/search-mt-nlg-530b.json\n"
            "  orrery search gpt3.json --set parallel.tensor=auto --set parallel.pipeline=auto --top "
            "10\n"
            "  orrery search gpt3.json --set training.micro_batch=auto --save best.json && orrery "
            "run best.json\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET | CLI_TAKES_PROGRESS,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(SearchArgs),
    .run = run,
};
