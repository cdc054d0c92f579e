/* report/run.c - simulates one step and gathers what a report says. Formats nothing. */
#include <math.h>

#include "base/units.h"
#include "costmodel/adapter.h"
#include "costmodel/lengths.h"
#include "costmodel/params.h"
#include "report/balance.h"
#include "report/groups.h"
#include "report/input.h"
#include "report/jitter.h"
#include "report/measured.h"
#include "report/offload.h"
#include "spec/run_length.h"
#include "step/frozen.h"
#include "step/step.h"
#include "step/textbook.h"
#include "traffic/fabric.h"

/* A GPU of pipeline rank `index`, of the kind `kind` of simulated ones. */
static void fill_stage(const Spec *spec, const SimPlan *plan, const SimResult *result, int index, int kind,
                       ReportStage *out)
{
    const SimRankResult *rank = &result->rank[index * (result->ranks / plan->shape.ranks) + kind];
    const SpecFramework *framework = &spec->execution.framework;
    const double dynamic = (double)rank->at_peak_bytes[SIM_MEM_ACTIVATIONS];
    *out = (ReportStage){
        .stage = index,
        .weights_bytes = (double)rank->at_peak_bytes[SIM_MEM_WEIGHTS],
        .gradients_bytes = (double)rank->at_peak_bytes[SIM_MEM_GRADIENTS],
        .optimizer_bytes = (double)rank->at_peak_bytes[SIM_MEM_OPTIMIZER],
        .activations_bytes = dynamic,
        .workspace_bytes = (double)rank->at_peak_bytes[SIM_MEM_WORKSPACE],
        .peak_bytes = (double)rank->peak_bytes,
        .host_bytes = (double)rank->host_peak_bytes,
        .peak_time_s = (double)rank->peak_time_ps * 1e-12,
        .capacity_bytes = spec->cluster.accelerator.memory_bytes,
    };
    const double workspace = out->workspace_bytes;
    const SimRankPlan *planned = &plan->ranks[index];
    const double moving = dynamic - (double)planned->static_bytes[SIM_MEM_ACTIVATIONS] + workspace;
    out->reserved_bytes = out->peak_bytes + framework->allocator.fragmentation_frac * moving +
                          (double)planned->stranded_bytes + spec_context_bytes(spec);
}

/* Of the kinds of replicas the one whose GPU of that pipeline rank has the least room. */
static void fill_tightest(const Report *report, int index, ReportStage *out)
{
    for (int k = 0; k < report->kinds.count; k++) {
        const SimKind *kind = &report->kinds.kinds[k];
        ReportStage stage;
        fill_stage(report->spec, &kind->plan, &report->result, index, k % report_ranks_a_stage(report),
                   &stage);
        if (report->spec->cluster.group_count > 0)
            stage.capacity_bytes =
                report->spec->cluster.groups[kind->group_of_rank[index]].accelerator.memory_bytes;
        if (k == 0 || stage.peak_bytes - stage.capacity_bytes > out->peak_bytes - out->capacity_bytes)
            *out = stage;
    }
}

static void fill_memory(const SimPlan *plan, OrrArena *arena, Report *report)
{
    const Spec *spec = report->spec;
    report->stage_count = plan->shape.ranks;
    report->stages = ORR_ARENA_NEW(arena, ReportStage, report->stage_count);
    const ReportStage *tightest = report->stages;
    for (int i = 0; i < report->stage_count; i++) {
        ReportStage *stage = &report->stages[i];
        if (report->kinds.count > 0)
            fill_tightest(report, i, stage);
        else
            fill_stage(spec, plan, &report->result, i, 0, stage);
        if (stage->peak_bytes - stage->capacity_bytes > tightest->peak_bytes - tightest->capacity_bytes)
            tightest = stage;
    }
    report->capacity_bytes = tightest->capacity_bytes;
    for (int i = 0; i < report->stage_count; i++) { /* against the capacity of the stage with least room */
        const ReportStage *stage = &report->stages[i];
        const double larger = stage->capacity_bytes - report->capacity_bytes;
        report->peak_bytes = fmax(report->peak_bytes, stage->peak_bytes - larger);
        report->reserved_bytes = fmax(report->reserved_bytes, stage->reserved_bytes - larger);
    }
    /* Fragmentation is elastic: the allocator gives cached blocks back before it fails. */
    report->needed_bytes = report->peak_bytes + spec_context_bytes(spec);
    report->fits = report->needed_bytes <= report->capacity_bytes;
    report->short_bytes = report->fits ? 0 : report->needed_bytes - report->capacity_bytes;
    report->memory_odds = NAN;
    report->memory_verdict = !report->fits                                      ? REPORT_MEMORY_NONE
                             : report->reserved_bytes <= report->capacity_bytes ? REPORT_MEMORY_FITS
                                                                                : REPORT_MEMORY_EDGE;
}

static void fill_time(Report *report)
{
    const SimResult *result = &report->result;
    const SimRankResult *critical = &result->rank[result->critical_rank];
    double idle_ps = 0;
    report->step_ps = result->step_ps;
    for (int part = 0; part < SIM_PART_COUNT; part++) {
        report->part_ps[part] = critical->part_ps[part];
    }
    report->bubble_ps = critical->idle_ps;
    for (int rank = 0; rank < result->ranks; rank++) {
        idle_ps += (double)result->rank[rank].idle_ps;
    }
    report->bubble_frac = idle_ps / ((double)result->ranks * (double)result->step_ps);
}

/* Layers of each stage of one copy of the model. */
static CostFlops count_flops(const Report *report, OrrArena *arena)
{
    const SimPlan *plan = &report->plan;
    const int stages = sim_plan_model_stages(plan);
    int *layers = ORR_ARENA_NEW(arena, int, stages);
    for (int stage = 0; stage < stages; stage++) {
        layers[stage] = plan->stages[stage].layers;
    }
    return cost_flops(report->spec, layers, stages);
}

static void fill_rates(OrrArena *arena, Report *report)
{
    const Spec *spec = report->spec;
    const double step_s = (double)report->step_ps * 1e-12;
    const CostFlops flops = count_flops(report, arena);
    const double peak = report_groups_mean(spec, REPORT_MEAN_PEAK_FLOPS) * report->gpus;
    report->parameters = cost_parameters(&spec->model, 0, false);
    report->active_parameters = cost_parameters(&spec->model, 0, true);
    report->trained_parameters = cost_trained_parameters(spec);
    report->tokens_per_s = cost_trained_tokens(spec) / step_s;
    report->tokens_per_s_per_gpu = report->tokens_per_s / report->gpus;
    report->model_flops_per_s_per_gpu = flops.model / step_s / report->gpus;
    report->mfu = flops.model / step_s / peak;
    report->hfu = flops.hardware / step_s / peak;
    report->by_convention = cost_mfu_by_convention(spec, step_s);
    for (int i = 0; report->kinds.count > 0 && i < COST_CONVENTION_COUNT; i++)
        report->by_convention.mfu[i] *= cost_peak_flops_per_s(spec) * report->gpus / peak;
}

static int64_t late_by(double seconds)
{
    return MAX(0, sim_ps(seconds));
}

static int64_t slow_like(const Report *like, int64_t even_ps)
{
    return late_by((double)even_ps * 1e-12 * (double)like->late_ps[REPORT_LATE_STRAGGLERS] /
                   (double)report_even_ps(like));
}

int64_t report_late_like(const Report *report, int64_t even_ps)
{
    const int64_t steps_ps = even_ps + slow_like(report, even_ps), fetch_ps = late_by(report->input.fetch_s);
    return steps_ps + (report->spec->data.prefetch > 0 ? MAX(0, fetch_ps - steps_ps) : fetch_ps);
}

/* Whoever has the longest texts computes longer, in the share of the step that micro-batches take. */
static int64_t longest_texts(const Report *report)
{
    const int64_t *part_ps = report->part_ps;
    const int64_t batches_ps = part_ps[SIM_PART_COMPUTE] + part_ps[SIM_PART_RECOMPUTE] +
                               part_ps[SIM_PART_TENSOR_COMM] + part_ps[SIM_PART_EXPERT_COMM];
    return late_by(cost_lengths_wait_frac(report->spec) * (double)batches_ps * 1e-12);
}

/* The step as it will be: the longest texts, slow GPUs and links, then input that does not arrive in that time. */
static bool stretch(const ReportOptions *options, OrrArena *arena, Report *report, GError **error)
{
    int64_t *late_ps = report->late_ps;
    if (options->textbook)
        return true;
    late_ps[REPORT_LATE_LENGTHS] = longest_texts(report);
    report->step_ps += late_ps[REPORT_LATE_LENGTHS];
    if (options->ideal)
        return true;
    if (options->like != NULL)
        late_ps[REPORT_LATE_STRAGGLERS] = slow_like(options->like, report->step_ps);
    else if (!report_jitter_fill(report, arena, error))
        return false;
    else if (report->jitter.told)
        late_ps[REPORT_LATE_STRAGGLERS] =
            late_by(report->jitter.mean_s - (double)report_ideal_ps(report) * 1e-12);
    report->step_ps += late_ps[REPORT_LATE_STRAGGLERS];
    if (!report_input_fill(report, error))
        return false;
    late_ps[REPORT_LATE_INPUT] = late_by(report->input.wait_s);
    report->step_ps += late_ps[REPORT_LATE_INPUT];
    return true;
}

double report_hours_usd(const Report *report)
{
    return report->usd - report->kwh * report->spec->cluster.usd_per_kwh;
}

void report_energy_fill(Report *report, double hours_usd, double kwh)
{
    const SpecCluster *cluster = &report->spec->cluster;
    report->kwh = kwh;
    report->usd = hours_usd + kwh * cluster->usd_per_kwh;
    report->co2_kg = report->kwh * cluster->co2_g_per_kwh / 1000;
}

void report_costs_fill(Report *report)
{
    const Spec *spec = report->spec;
    const double pue = spec->cluster.pue > 0 ? spec->cluster.pue : 1;
    const double watts = report_groups_step_w(report) * pue;
    report->step_w = watts * report->gpus;
    report->waiting_w = report_groups_mean(spec, REPORT_MEAN_WAITING_W) * pue * report->gpus;
    if (spec->training.tokens <= 0) {
        return;
    }
    const double hours = spec->training.tokens / report->tokens_per_s / 3600,
                 busy = (double)report_ideal_ps(report) / (double)report->step_ps;
    report->days = hours / 24;
    report->gpu_hours = hours * report->gpus;
    report_energy_fill(report, report->gpu_hours * report_groups_mean(spec, REPORT_MEAN_USD_PER_HOUR),
                       hours * (busy * report->step_w + (1 - busy) * report->waiting_w) / 1000);
}

/* Samples are dealt so that every rank has as many, some twice, and the last step may have fewer.
 * Source: PyTorch, torch.utils.data.DistributedSampler */
static void fill_epoch(Report *report)
{
    const SpecTraining *training = &report->spec->training;
    const int ranks = MAX(1, report->spec->parallel.data);
    if (training->samples <= 0)
        return;
    /* several packed texts are one sequence */
    const double texts =
        training->lengths.given && training->lengths.packed
            ? cost_trained_tokens(report->spec) / training->global_batch / spec_text_tokens(training)
            : 1;
    report->epoch_rank_samples = ceil(training->samples / ranks);
    report->epoch_steps = ceil(report->epoch_rank_samples * ranks / texts / training->global_batch);
    report->epoch_s = report->epoch_steps * (double)report->step_ps * 1e-12;
}

/* Whose circle it is: the engine knows ranks and ops, not files. */
static bool simulate(const Spec *spec, unsigned record, OrrArena *arena, Report *report, GError **error)
{
    if (sim_engine_run(&report->program, record, arena, &report->result, error)) {
        return true;
    }
    if (spec->parallel.schedule == SPEC_SCHEDULE_FILE) {
        g_prefix_error(error, "parallel.schedule: \"%s\": ", spec->parallel.schedule_file);
    }
    return false;
}

/* Passes of micro-batches through chunks of pipeline ranks; what one takes of memory and time while it is simulated. */
#define MOST_PASSES     7e6
#define MOST_OF_ALL     35e6 /* where many steps are simulated, one after the other */
#define BYTES_OF_A_PASS 600.0
#define SECONDS_A_PASS  3e-6

/* Work is estimated before it is begun: a batch of a billion would take the machine's memory first. */
static bool affordable(const Spec *spec, int steps, GError **error)
{
    char passes_text[ORR_TEXT_SIZE], bytes[ORR_TEXT_SIZE], seconds[ORR_TEXT_SIZE];
    const SpecParallel *parallel = &spec->parallel;
    const double passes =
        (double)spec_microbatches(spec) * parallel->pipeline * MAX(1, parallel->virtual_stages);
    if (passes > MOST_PASSES)
        steps = 1;
    else if (passes * MAX(1, steps) <= MOST_OF_ALL)
        return true;
    g_autofree char *often = steps > 1 ? g_strdup_printf(" some %d times", steps) : g_strdup("");
    return orr_fail(error, ORR_ERROR_INPUT,
                    "training.global_batch: %d sequences make %d micro-batches on %d pipeline ranks, %s "
                    "passes that would take some %s and %s to simulate%s; give a larger training.micro_batch "
                    "or a smaller batch",
                    spec->training.global_batch, spec_microbatches(spec), parallel->pipeline,
                    orr_text_count(passes_text, passes), orr_text_bytes(bytes, passes * BYTES_OF_A_PASS),
                    orr_text_seconds(seconds, passes * steps * SECONDS_A_PASS), often);
}

/* More than all that the GPUs can do: a peak is wrong, and so is every figure of the report. */
static bool possible(const Report *report, GError **error)
{
    char peak[ORR_TEXT_SIZE];
    const double scale =
        report->spec->model.time_frac; /* a layer list's times, as the user has measured them */
    if (report->mfu <= 1 + 1e-9 || scale < 1)
        return true;
    return orr_fail(
        error, ORR_ERROR_INPUT,
        "cluster.accelerator.peak_flops_per_s: %s in %s would make an MFU of %.3g %%, above 100 %%; give the "
        "dense peak of the data sheet",
        orr_text_si(peak, cost_peak_flops_per_s(report->spec), "FLOP/s"),
        spec_word(&spec_words_precision, (int)report->spec->training.precision), 100 * report->mfu);
}

/* That a level does not fit is a result: the check of capacities is for those that do. A run on a fabric was checked there. */
static bool check(const Report *report, OrrArena *arena, GError **error)
{
    SimProgram program = report->program;
    if (report->offload.on && !(report->offload.host_fits && report->offload.nvme_fits))
        sim_program_unbounded(&program, arena);
    return (report->network.on || sim_run_check(&program, &report->result, error)) &&
           step_check_frozen(report->spec, &report->plan, &program, &report->result, error);
}

static bool plan_and_run(const ReportOptions *options, unsigned record, OrrArena *arena, Report *report,
                         GError **error)
{
    const Spec *spec = report->spec;
    if (options->textbook && !step_textbook_fits(spec, error))
        return false;
    if (spec->cluster.network.fidelity == SPEC_FIDELITY_FLOW && !options->analytic)
        return traffic_step(spec, options->unfold, options->check, options->links, record, arena,
                            &report->plan, &report->program, &report->result, &report->network, error);
    if (!traffic_names_topology(spec, error))
        return false;
    if (spec->cluster.group_count > 0) {
        if (!sim_kinds_plan(spec, options->unfold, arena, &report->kinds, error) ||
            !sim_kinds_program(&report->kinds, options->unfold, arena, &report->program, error))
            return false;
        report->plan = report->kinds.kinds[0].plan;
        return simulate(spec, record, arena, report, error);
    }
    if (spec->execution.measured_passes != NULL)
        return report_measured_program(spec, options->unfold, arena, report, error) &&
               simulate(spec, record, arena, report, error);
    if (!sim_step_plan(spec, arena, &report->plan, error))
        return false;
    if (options->textbook)
        step_textbook(&report->plan);
    return sim_step_fits_clock(spec, &report->plan, error) &&
           sim_program_build(&report->plan, options->unfold, arena, &report->program, error) &&
           simulate(spec, record, arena, report, error);
}

bool report_run(const Spec *spec, const SpecSource *source, const ReportOptions *options, OrrArena *arena,
                Report *ret_report, GError **error)
{
    Report report = {.spec = spec, .source = source, .gpus = spec_gpus(spec), .textbook = options->textbook};
    const unsigned record = options->record | (options->check ? SIM_RECORD_SPANS | SIM_RECORD_LEVELS : 0u);
    if (!affordable(spec, options->steps, error))
        return false;
    if (!plan_and_run(options, record, arena, &report, error))
        return false;
    fill_time(&report);
    fill_memory(&report.plan, arena, &report);
    report_offload_fill(&report.plan, &report);
    report_groups_fill(&report);
    if (options->check && !check(&report, arena, error))
        return false;
    if ((!options->ideal && !options->textbook && !report_measured_fill(&report, error)) ||
        !stretch(options, arena, &report, error))
        return false;
    fill_rates(arena, &report);
    if (!possible(&report, error))
        return false;
    report_balance_fill(arena, &report);
    report_costs_fill(&report);
    fill_epoch(&report);
    *ret_report = report;
    return true;
}
