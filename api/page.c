/* api/page.c - gathers what the report page shows. */
#include "api/page.h"

#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "plots/plots.h"

/* --- where the numbers come from --- */

static void profile_clear(void *data)
{
    HtmlProfile *profile = data;
    g_free(profile->name);
    g_free(profile->hash);
    g_free(profile->source);
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
    char *source = g_strdup(doc != NULL ? orr_json_text_of(orr_json_root(doc), "source", "") : "");
    if (doc != NULL)
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
                             .profiles = profiles};
    html_write(&input, out);
    g_array_free(profiles, TRUE);
    report_explain_clear(&explanation);
    if (other != NULL)
        report_compare_clear(&comparison);
    if (ask->search)
        api_others_clear(&others);
}

bool api_page(const ApiPageAsk *ask, GString *out, GError **error)
{
    const ReportOptions options = {.record = SIM_RECORD_SPANS | SIM_RECORD_LEVELS}, plain = {0};
    ApiSimulation *simulation = api_simulate_input(&ask->input, ask->sets, &ask->reserve, &options, error);
    ApiSimulation *other = simulation != NULL && ask->compare != NULL
                               ? api_simulate_reserved(ask->compare, NULL, &ask->reserve, &plain, error)
                               : NULL;
    const bool ok = simulation != NULL && (ask->compare == NULL || other != NULL);
    if (ok)
        write_page(ask, simulation, other, out);
    api_simulation_free(simulation);
    api_simulation_free(other);
    return ok;
}
