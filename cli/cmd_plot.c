/* cli/cmd_plot.c - orrery plot: pictures of one scenario in a folder. */
#include <string.h>

#include "base/json.h"
#include "cli/campaign_plots.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/plot_errors.h"
#include "cli/plot_fabric.h"
#include "cli/plot_finetune.h"
#include "cli/plot_loop.h"
#include "api/simulate.h"
#include "api/vary.h"
#include "plots/campaign.h"

typedef struct PlotArgs {
    union {
        CliArgs common;
        CollectiveArgs machine; /* of the pictures of a fabric */
    };
    char *vary, *what;
    gboolean svg;
    char *width;
} PlotArgs;

/* "gpt3-175b-plots" for scenarios/examples/gpt3-175b.json. */
static char *default_folder(const char *scenario)
{
    if (scenario == NULL)
        return g_strdup("fabric-plots");
    g_autofree char *name = g_path_get_basename(scenario);
    if (g_str_has_suffix(name, ".json"))
        name[strlen(name) - strlen(".json")] = '\0';
    return g_strconcat(name, "-plots", NULL);
}

static bool cli_plot_loop_live(ApiSimulation *simulation, const char *where, const PlotTarget *target,
                               GError **error)
{
    return cli_plot_loop(simulation, where, target, error);
}

/* Of the step, of the campaign, or of the loop, which is the last. */
static const struct {
    const char *name;
    bool (*draw)(const Report *report, const PlotTarget *target, GError **error);
    bool (*draw_fabric)(const CollectiveArgs *args, const PlotTarget *target, GError **error);
    bool usual; /* drawn unless --what names others */
    CliCampaignPlot live;
} pictures[] = {
    {"pipeline", plot_pipeline, NULL, true, NULL},
    {"memory", plot_memory, NULL, true, NULL},
    {"waterfall", plot_waterfall, NULL, true, NULL},
    {"tornado", plot_tornado, NULL, false, NULL},
    {"roofline", plot_roofline, NULL, false, NULL},
    {"ranks", plot_ranks, NULL, false, NULL},
    {"errors", NULL, NULL, false, cli_plot_errors},
    {"utilisation", plot_utilisation, NULL, false, NULL},
    {"traffic", plot_traffic, NULL, false, NULL},
    {"workers", plot_workers, NULL, false, NULL},
    {"stragglers", plot_stragglers, NULL, false, NULL},
    {"finetune", NULL, NULL, false, NULL},
    {"goodput", NULL, NULL, false, cli_plot_goodput},
    {"interval", NULL, NULL, false, cli_plot_interval},
    {"interruptions", NULL, NULL, false, cli_plot_interruptions},
    {"spares", NULL, NULL, false, cli_plot_spares},
    {"topology", NULL, cli_plot_topology, false, NULL},
    {"busbw", NULL, cli_plot_busbw, false, NULL},
    {"loop", NULL, NULL, false, cli_plot_loop_live},
};

#define LOOP_BIT (1u << (G_N_ELEMENTS(pictures) - 1))

/* Bits of `pictures`. */
static bool read_what(const char *what, unsigned *ret_bits, GError **error)
{
    *ret_bits = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(pictures); i++)
        *ret_bits |= what == NULL && pictures[i].usual ? 1u << i : 0;
    g_auto(GStrv) names = g_strsplit(what != NULL ? what : "", ",", -1);
    for (int n = 0; names[n] != NULL; n++) {
        gsize i = 0;
        while (i < G_N_ELEMENTS(pictures) && strcmp(pictures[i].name, names[n]) != 0)
            i++;
        if (i == G_N_ELEMENTS(pictures)) {
            g_autoptr(GString) known = g_string_new(NULL);
            for (gsize k = 0; k < G_N_ELEMENTS(pictures); k++)
                g_string_append_printf(known, "%s%s", k > 0 ? ", " : "", pictures[k].name);
            return orr_fail(error, ORR_ERROR_INPUT,
                            "--what: no picture is named \"%s\" (--vary draws sweep); give some of %s",
                            names[n], known->str);
        }
        *ret_bits |= 1u << i;
    }
    return true;
}

static bool read_width(const PlotArgs *args, int *ret_pixels, GError **error)
{
    guint64 pixels = 0;
    if (args->width == NULL)
        return true;
    if (args->svg)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--width is of a PNG: an SVG fits any width; leave --svg or --width out");
    if (!g_ascii_string_to_unsigned(args->width, 10, 300, 6000, &pixels, NULL))
        return orr_fail(error, ORR_ERROR_INPUT, "--width: \"%s\" is not a whole number from 300 to 6000",
                        args->width);
    *ret_pixels = (int)pixels;
    return true;
}

static bool draw_all(ApiSimulation *simulation, const CliArgs *args, unsigned bits, const PlotTarget *target,
                     GError **error)
{
    const char *where = args->words[0];
    for (gsize i = 0; i < G_N_ELEMENTS(pictures); i++)
        if ((bits & 1u << i) != 0 && pictures[i].draw_fabric == NULL &&
            !(pictures[i].live != NULL   ? pictures[i].live(simulation, where, target, error)
              : pictures[i].draw != NULL ? pictures[i].draw(&simulation->report, target, error)
                                         : cli_plot_finetune(simulation, where, args->sets, target, error)))
            return false;
    return true;
}

static bool draw_fabrics(const PlotArgs *args, unsigned bits, const PlotTarget *target, GError **error)
{
    for (gsize i = 0; i < G_N_ELEMENTS(pictures); i++)
        if ((bits & 1u << i) != 0 && pictures[i].draw_fabric != NULL &&
            !pictures[i].draw_fabric(&args->machine, target, error))
            return false;
    return true;
}

/* True: some of the pictures show a step, for which a scenario is needed. */
static bool shows_step(unsigned bits)
{
    for (gsize i = 0; i < G_N_ELEMENTS(pictures); i++)
        if ((bits & 1u << i) != 0 && pictures[i].draw_fabric == NULL)
            return true;
    return false;
}

/* Steps that the pictures simulate. */
static int steps_of(unsigned bits)
{
    for (gsize i = 0; i < G_N_ELEMENTS(pictures); i++)
        if ((bits & 1u << i) != 0 && pictures[i].draw == plot_tornado)
            return EXPLAIN_STEPS;
    return 0;
}

static bool add_point(GArray *points, const PlotArgs *args, const ApiVary *vary, const char *value,
                      GError **error)
{
    const ReportOptions options = {.unfold = false};
    g_auto(GStrv) sets = api_vary_sets(args->common.sets, vary->key, value);
    ApiSimulation *simulation = api_simulate(args->common.words[0], sets, &options, error);
    if (simulation == NULL)
        return false;
    const Report *report = &simulation->report;
    const PlotPoint point = {.value = g_strdup(value),
                             .fits = report->fits,
                             .mfu = report->mfu,
                             .step_s = (double)report->step_ps * 1e-12,
                             .reserved_bytes = report->reserved_bytes,
                             .capacity_bytes = report->capacity_bytes};
    g_array_append_val(points, point);
    api_simulation_free(simulation);
    return true;
}

static void point_clear(void *data)
{
    g_free(((PlotPoint *)data)->value);
}

/* Every value simulated; points of PlotPoint. */
static bool sweep_points(GArray *points, const PlotArgs *args, const ApiVary *vary, GError **error)
{
    for (guint i = 0; i < vary->values->len; i++) {
        if (!add_point(points, args, vary, g_ptr_array_index(vary->values, i), error))
            return false;
    }
    return true;
}

static void write_files(const GPtrArray *files, CliFormat format, GString *out)
{
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    if (format == CLI_FORMAT_JSON)
        orr_jw_begin(&w, NULL, '[');
    else if (format == CLI_FORMAT_CSV)
        g_string_append(out, "file\n");
    for (guint i = 0; i < files->len; i++) {
        if (format == CLI_FORMAT_JSON)
            orr_jw_text(&w, NULL, g_ptr_array_index(files, i));
        else
            g_string_append_printf(out, "%s\n", (const char *)g_ptr_array_index(files, i));
    }
    if (format == CLI_FORMAT_JSON) {
        orr_jw_end(&w, ']');
        g_string_append_c(out, '\n');
    }
}

/* Workers of parameter servers in the place of pipeline ranks, of which there are none. */
static unsigned bits_of_servers(unsigned bits)
{
    for (gsize i = 0; i < G_N_ELEMENTS(pictures); i++) {
        if (pictures[i].draw == plot_pipeline)
            bits &= ~(1u << i);
        if (pictures[i].draw == plot_workers)
            bits |= 1u << i;
    }
    return bits;
}

/* Everything of a step is simulated before anything is drawn: a bad value leaves no files. */
static bool plot_step(const PlotArgs *args, unsigned bits, const PlotTarget *target, GError **error)
{
    ApiVary vary = {NULL, NULL};
    if (args->vary != NULL && !api_vary_parse(args->vary, &vary, error))
        return false;
    const bool sweeps = args->vary != NULL;
    const ReportOptions options = {.record = SIM_RECORD_SPANS | SIM_RECORD_LEVELS, .steps = steps_of(bits)};
    const ApiInput input = {.path = args->common.words[0],
                            .loops = !sweeps && (args->what == NULL || bits == LOOP_BIT)};
    ApiSimulation *simulation = api_simulate_input(&input, args->common.sets, NULL, &options, error);
    if (simulation != NULL && simulation->workload != NULL)
        bits = LOOP_BIT;
    g_autoptr(GArray) points = g_array_new(FALSE, TRUE, sizeof(PlotPoint));
    g_array_set_clear_func(points, point_clear);
    if (simulation != NULL && args->what == NULL && simulation->report.plan.servers != NULL)
        bits = bits_of_servers(bits);
    const bool ok =
        simulation != NULL && (!sweeps || sweep_points(points, args, &vary, error)) &&
        draw_all(simulation, &args->common, bits, target, error) &&
        (!sweeps || plot_sweep(simulation->report.spec->name, vary.key,
                               (const PlotPoint *)(void *)points->data, (int)points->len, target, error));
    api_simulation_free(simulation);
    api_vary_clear(&vary);
    return ok;
}

static bool run(const CliArgs *common, GError **error)
{
    const PlotArgs *args = (const PlotArgs *)common;
    unsigned bits = 0;
    int width = 0;
    if (!read_what(args->what, &bits, error) || !read_width(args, &width, error))
        return false;
    const char *scenario = common->words != NULL ? common->words[0] : NULL;
    const bool step = shows_step(bits);
    if (step && scenario == NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "plot: SCENARIO.json is missing; only --what topology,busbw goes without");
    if (!step && (scenario != NULL || args->vary != NULL))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "plot: a fabric is drawn from --cluster and --ranks, not from a scenario or --vary");
    g_autofree char *folder = common->output != NULL ? g_strdup(common->output) : default_folder(scenario);
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(g_free);
    const PlotTarget target = {.folder = folder, .svg = args->svg, .width = width, .files = files};
    if ((step && !plot_step(args, bits, &target, error)) || !draw_fabrics(args, bits, &target, error))
        return false;
    g_autoptr(GString) out = g_string_new(NULL);
    write_files(files, common->format, out);
    return cli_output_write(NULL, out, error);
}

#define MACHINE(name, field, value, help)                                                                    \
    {                                                                                                        \
        name, CLI_FLAG_TEXT, offsetof(PlotArgs, machine.field), value, help                                  \
    }

static const CliFlag flags[] = {
    {"vary", CLI_FLAG_TEXT, offsetof(PlotArgs, vary), "KEY=VALUES",
     "also plot MFU and memory against a field: key=a,b,c, key=a..b (doubling) or key=a..b:step"},
    {"what", CLI_FLAG_TEXT, offsetof(PlotArgs, what), "NAMES",
     "these pictures only; of a step: pipeline, memory, waterfall, tornado, roofline, ranks, errors, "
     "utilisation, traffic, workers, "
     "stragglers, finetune; of a workload: loop; of weeks of training: goodput, interval, interruptions, "
     "spares; of a fabric: "
     "topology, busbw"},
    MACHINE("cluster", cluster, "NAME", "topology, busbw: a cluster preset"),
    MACHINE("ranks", ranks, "COUNT", "topology, busbw: how many GPUs"),
    MACHINE("topology", topology, "NAME|FILE", "topology: of `orrery list topologies`, or a file"),
    MACHINE("dims", dims, "AxB...", "topology: sides of a grid"),
    MACHINE("rate", rate, "BYTES/s", "topology: every port's rate instead of the cluster's"),
    {"fail", CLI_FLAG_TEXTS, offsetof(PlotArgs, machine.fail), "A-B[=FRAC]",
     "topology: the link between two vertices fails, or has this part of its rate; repeatable"},
    MACHINE("op", op, "NAME", "busbw: the collective (all-reduce)"),
    MACHINE("bytes", bytes, "SIZES", "busbw: 1KiB..1GiB (doubling) or a list"),
    {"width", CLI_FLAG_TEXT, offsetof(PlotArgs, width), "PIXELS",
     "of a PNG, 300 to 6000 (default: 1200), text and lines with it; an SVG fits any width"},
    {"svg", CLI_FLAG_SWITCH, offsetof(PlotArgs, svg), NULL, "SVG instead of PNG"},
};

const CliCommand cli_command_plot = {
    .name = "plot",
    .usage = "[SCENARIO.json]",
    .summary = "pictures of a step or a fabric: pipeline, memory, where the peak goes",
    .help =
        "Simulates the scenario and draws with gnuplot, into the folder --output (default: "
        "NAME-plots), each picture with the CSV that it shows. pipeline: what every pipeline rank "
        "does when. memory: over the step and at its peak, against the capacity. waterfall: from the "
        "accelerator's peak down to the MFU. sweep, with --vary: MFU and memory against one field. "
        "--what draws weeks of training too: goodput over GPUs or over the checkpoint interval, the "
        "interruptions of one campaign, days over spare nodes. stragglers shows which stages and "
        "replicas are slow. tornado: what the best and the worst value of each field would do to the "
        "step. roofline: what products and attention reach, below the GPU's peak and bandwidth. ranks: "
        "which GPU does what. errors: the published runs that the interval comes from. utilisation: how "
        "busy GPU, copies and host are. traffic: what the links of a fabric carry. workers: those of "
        "parameter servers. finetune: memory of full "
        "fine-tuning, LoRA and QLoRA. A scenario with a workload is drawn as its loop: what each part of the "
        "machine does when. Without a scenario: "
        "topology (a fabric) and busbw (bus bandwidth of what "
        "NCCL chooses, against size, a line a number of nodes). Prints the files written.\n\n"
        "  orrery plot scenarios/examples/gpt3-175b.json --output plots-gpt3\n"
        "  orrery plot gpt3.json --width 2400\n"
        "  orrery plot gpt3.json --vary training.micro_batch=1..8\n"
        "  orrery plot scenarios/examples/zero_offload_10b_v100.json --what utilisation\n"
        "  orrery plot scenarios/examples/gpt3-175b.json --what tornado\n"
        "  orrery plot scenarios/examples/campaign-llama3-405b.json --what goodput,interval,spares\n"
        "  orrery plot scenarios/examples/llama2-70b-lora.json --what finetune --set model=llama2-7b\n"
        "  orrery plot --what topology --cluster dgx-h100 --ranks 64\n"
        "  orrery plot --what busbw --cluster aws-p5 --ranks 512\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 0,
    .max_words = 1,
    .args_size = sizeof(PlotArgs),
    .run = run,
};
