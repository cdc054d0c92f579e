/* api/page.c - gathers what the report page shows. */
#include "api/page.h"

#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "html/loop.h"
#include "plots/plots.h"
#include "report/effective.h"

/* --- where the numbers come from --- */

static void profile_clear(void *data)
{
    HtmlProfile *profile = data;
    g_free(profile->name);
    g_free(profile->hash);
    g_free(profile->source);
}

/* A source for all, or lines "field: source". */
static char *source_text(const OrrJson *source)
{
    if (source == NULL || orr_json_type(source) == ORR_JSON_NULL)
        return g_strdup("");
    if (orr_json_type(source) == ORR_JSON_TEXT)
        return g_strdup(orr_json_text(source));
    g_autoptr(GString) text = g_string_new(NULL);
    const bool object = orr_json_type(source) == ORR_JSON_OBJECT;
    for (const OrrJson *field = object ? orr_json_first(source) : NULL; field != NULL;
         field = orr_json_next(field)) {
        g_autofree char *shown =
            orr_json_type(field) == ORR_JSON_TEXT ? g_strdup(orr_json_text(field)) : orr_json_dump(field);
        g_string_append_printf(text, "%s%s: %s", text->len > 0 ? "\n" : "", orr_json_key(field), shown);
    }
    return g_strdup(text->str);
}

/* What the profile's file says in "source"; empty where it cannot be read any more. */
static char *read_source(const char *name)
{
    g_autofree char *folder = orr_scenarios_dir(NULL), *file = g_strconcat(name, ".json", NULL);
    g_autofree char *path = folder != NULL ? g_build_filename(folder, file, NULL) : NULL;
    g_autofree char *text = NULL;
    if (path == NULL || !g_file_get_contents(path, &text, NULL, NULL))
        return g_strdup("");
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), name, NULL);
    char *source = source_text(doc != NULL ? orr_json_member(orr_json_root(doc), "source") : NULL);
    orr_json_free(doc);
    return source;
}

/* From "accelerators/a100-sxm4-80gb 1f2e...". */
static GArray *list_profiles(const SpecSource *source)
{
    GArray *profiles = g_array_new(FALSE, TRUE, sizeof(HtmlProfile));
    g_array_set_clear_func(profiles, profile_clear);
    for (guint i = 0; source->profiles != NULL && i < source->profiles->len; i++) {
        g_auto(GStrv) words = g_strsplit(g_ptr_array_index(source->profiles, i), " ", 2);
        const HtmlProfile profile = {g_strdup(words[0]), g_strdup(words[1] != NULL ? words[1] : ""),
                                     read_source(words[0])};
        g_array_append_val(profiles, profile);
    }
    return profiles;
}

/* --- what the whole run takes --- */

static void fact_clear(void *data)
{
    HtmlFact *fact = data;
    g_free(fact->label);
    g_free(fact->value);
    g_free(fact->note);
}

static void add_fact(GArray *facts, const char *label, char *value, char *note)
{
    const HtmlFact fact = {g_strdup(label), value, note};
    g_array_append_val(facts, fact);
}

/* Days and their parts, by the lines of `orrery run`; empty where the run has no length. */
static GArray *list_life(const ReportEffective *effective)
{
    GArray *facts = g_array_new(FALSE, TRUE, sizeof(HtmlFact));
    g_array_set_clear_func(facts, fact_clear);
    if (effective->why_not != NULL)
        add_fact(facts, "with faults", g_strdup(effective->why_not), NULL);
    if (!effective->told)
        return facts;
    add_fact(facts, "effective days", g_strdup_printf("%.2f days", effective->days), NULL);
    add_fact(facts, "goodput", g_strdup_printf("%.1f %%", 100 * effective->goodput),
             g_strdup("days of computing over effective days"));
    for (ReportLife part = 0; part < REPORT_LIFE_COUNT; part++)
        if (report_life_shown(effective, part))
            add_fact(facts, report_life_label(part), g_strdup_printf("%.2f days", effective->part_days[part]),
                     g_strdup_printf("%.1f %%", 100 * effective->part_days[part] / effective->days));
    add_fact(facts, "interruptions", g_strdup_printf("%.0f", effective->interruptions), g_strdup("mean"));
    add_fact(facts, "with", report_effective_basis(effective), NULL);
    return facts;
}

/* --- the page --- */

static void write_page(const ApiPageAsk *ask, const ApiSimulation *simulation, const ApiSimulation *other,
                       GString *out)
{
    const Report *report = &simulation->report;
    const ExplainLoss largest = plot_largest_loss(report);
    const char *const names[2] = {ask->input.path, ask->compare};
    Explanation explanation = report_explain(report);
    Comparison comparison = {0};
    ApiOthers others = {0};
    GArray *profiles = list_profiles(&simulation->source);
    GArray *life = list_life(&report->effective);
    if (other != NULL)
        comparison = report_compare(report, &other->report, names, true);
    if (ask->search)
        others = api_others_search(&ask->input, ask->sets, report, report->reserve_bytes, ask->seconds,
                                   ask->progress, ask->progress_data);
    const HtmlInput input = {.report = report,
                             .command = ask->command,
                             .explanation = &explanation,
                             .largest = &largest,
                             .comparison = other != NULL ? &comparison : NULL,
                             .cells = others.cells,
                             .front = others.front,
                             .search_note = others.note,
                             .profiles = profiles,
                             .life = life};
    html_write(&input, out);
    g_array_free(profiles, TRUE);
    g_array_free(life, TRUE);
    report_explain_clear(&explanation);
    if (other != NULL)
        report_compare_clear(&comparison);
    if (ask->search)
        api_others_clear(&others);
}

static void write_loop(const ApiPageAsk *ask, const ApiSimulation *simulation, GString *out)
{
    const Workload *workload = simulation->workload;
    GArray *profiles = list_profiles(&simulation->source);
    WorkloadExplanation explanation;
    Splits splits;
    workload_explain(workload, &simulation->source, simulation->arena, &explanation);
    const bool dealt = ask->search && workload_generator(&workload->spec->workload) >= 0 &&
                       splits_search(&simulation->spec, &simulation->source, 10, &splits, NULL);
    const HtmlLoop loop = {.workload = workload,
                           .source = &simulation->source,
                           .explanation = &explanation,
                           .splits = dealt ? &splits : NULL,
                           .profiles = profiles,
                           .command = ask->command};
    html_loop_write(&loop, out);
    g_array_free(profiles, TRUE);
}

bool api_page(const ApiPageAsk *ask, GString *out, GError **error)
{
    const ReportOptions options = {.record = SIM_RECORD_SPANS | SIM_RECORD_LEVELS, .steps = EXPLAIN_STEPS},
                        plain = {0};
    ApiSimulation *simulation = api_simulate_input(&ask->input, ask->sets, &ask->reserve, &options, error);
    ApiSimulation *other = simulation != NULL && ask->compare != NULL
                               ? api_simulate_reserved(ask->compare, NULL, &ask->reserve, &plain, error)
                               : NULL;
    const bool is_loop = simulation != NULL && simulation->workload != NULL;
    bool ok = simulation != NULL && (ask->compare == NULL || other != NULL);
    if (ok && is_loop && ask->compare != NULL)
        ok = orr_fail(error, ORR_ERROR_INPUT,
                      "--compare: %s is a loop over several models; give two scenarios of one step",
                      ask->input.path);
    if (ok && !is_loop && !ask->ideal)
        ok = api_simulation_live(ask->input.path, simulation, error) &&
             (other == NULL || api_simulation_live(ask->compare, other, error));
    if (ok && is_loop)
        write_loop(ask, simulation, out);
    else if (ok)
        write_page(ask, simulation, other, out);
    api_simulation_free(simulation);
    api_simulation_free(other);
    return ok;
}
