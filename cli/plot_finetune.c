/* cli/plot_finetune.c - the picture of full fine-tuning, LoRA and QLoRA of one scenario. */
#include "cli/plot_finetune.h"

#include "api/simulate.h"

enum { WAYS = 3, MOST_OWN = 4 };

static const struct {
    const char *name, *sets[MOST_OWN];
} ways[WAYS] = {
    {"all weights", {"training.task=sft", "training.adapter=null", "training.reference=none", NULL}},
    {"LoRA", {"training.task=lora", "training.adapter.base_dtype=bf16", "training.reference=none", NULL}},
    {"QLoRA", {"training.task=qlora", "training.adapter.base_dtype=nf4", "training.reference=none", NULL}},
};

static char **sets_of(char *const *sets, int way, bool adapts)
{
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    for (char *const *set = sets; set != NULL && *set != NULL; set++)
        g_strv_builder_add(builder, *set);
    if (!adapts && way > 0)
        g_strv_builder_add(builder, "training.adapter={\"rank\":16,\"targets\":\"all-linear\"}");
    for (int i = 0; ways[way].sets[i] != NULL; i++)
        g_strv_builder_add(builder, ways[way].sets[i]);
    return g_strv_builder_end(builder);
}

static bool ask(const char *scenario, char *const *sets, int way, bool adapts, PlotTuning *tuning,
                GError **error)
{
    const ReportOptions options = {.unfold = false};
    g_auto(GStrv) own = sets_of(sets, way, adapts);
    ApiSimulation *simulation = api_simulate(scenario, own, &options, error);
    if (simulation == NULL)
        return false;
    const Report *report = &simulation->report;
    int fullest = 0;
    for (int i = 1; i < report->stage_count; i++)
        if (report->stages[i].peak_bytes > report->stages[fullest].peak_bytes)
            fullest = i;
    *tuning = (PlotTuning){ways[way].name, report->stages[fullest], (double)report->step_ps * 1e-12};
    api_simulation_free(simulation);
    return true;
}

bool cli_plot_finetune(const ApiSimulation *given, const char *scenario, char *const *sets,
                       const PlotTarget *target, GError **error)
{
    PlotTuning tunings[WAYS];
    for (int way = 0; way < WAYS; way++)
        if (!ask(scenario, sets, way, given->report.spec->training.adapter.given, &tunings[way], error))
            return false;
    return plot_finetune(given->report.spec->name, tunings, WAYS, target, error);
}
