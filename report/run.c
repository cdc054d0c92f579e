/* report/run.c - simulates one step and gathers what a report says. Formats nothing. */
#include <math.h>

#include "costmodel/params.h"
#include "report/balance.h"
#include "sim/step.h"

static void fill_stage(const Spec *spec, const SimPlan *plan, const SimResult *result, int index,
                       ReportStage *out)
{
    const SimRankResult *rank = &result->rank[index * (result->ranks / plan->shape.ranks)];
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
    };
    const double workspace = out->workspace_bytes;
    const SimRankPlan *planned = &plan->ranks[index];
    const double moving = dynamic - (double)planned->static_bytes[SIM_MEM_ACTIVATIONS] + workspace;
    out->reserved_bytes = out->peak_bytes + framework->allocator.fragmentation_frac * moving +
                          (double)planned->stranded_bytes + framework->allocator.context_bytes;
}

static void fill_memory(const SimPlan *plan, OrrArena *arena, Report *report)
{
    const Spec *spec = report->spec;
    report->capacity_bytes = spec->cluster.accelerator.memory_bytes;
    report->stage_count = plan->shape.ranks;
    report->stages = ORR_ARENA_NEW(arena, ReportStage, report->stage_count);
    for (int i = 0; i < report->stage_count; i++) {
        fill_stage(spec, plan, &report->result, i, &report->stages[i]);
        report->peak_bytes = fmax(report->peak_bytes, report->stages[i].peak_bytes);
        report->reserved_bytes = fmax(report->reserved_bytes, report->stages[i].reserved_bytes);
    }
    /* Fragmentation is elastic: the allocator gives cached blocks back before it fails. */
    const double needed = report->peak_bytes + spec->execution.framework.allocator.context_bytes;
    report->fits = needed <= report->capacity_bytes;
    report->short_bytes = report->fits ? 0 : needed - report->capacity_bytes;
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
    const double peak = cost_peak_flops_per_s(spec) * report->gpus;
    report->parameters = cost_parameters(&spec->model, 0, false);
    report->active_parameters = cost_parameters(&spec->model, 0, true);
    report->tokens_per_s = (double)spec->training.global_batch * spec->training.sequence_length / step_s;
    report->tokens_per_s_per_gpu = report->tokens_per_s / report->gpus;
    report->model_flops_per_s_per_gpu = flops.model / step_s / report->gpus;
    report->mfu = flops.model / step_s / peak;
    report->hfu = flops.hardware / step_s / peak;
    report->by_convention = cost_mfu_by_convention(spec, step_s);
}

static void fill_campaign(Report *report)
{
    const Spec *spec = report->spec;
    const SpecCluster *cluster = &spec->cluster;
    if (spec->training.tokens <= 0) {
        return;
    }
    const double hours = spec->training.tokens / report->tokens_per_s / 3600;
    const double pue = cluster->pue > 0 ? cluster->pue : 1;
    const double watts = (cluster->accelerator.power_w + cluster->host_power_w_per_gpu) * pue;
    report->days = hours / 24;
    report->gpu_hours = hours * report->gpus;
    report->usd = report->gpu_hours * cluster->usd_per_gpu_hour;
    report->kwh = report->gpu_hours * watts / 1000;
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

/* No step is shorter than its FLOPs at the peak of all GPUs: where one is, a time was lost to rounding or a value is absurd. */
static bool below_peak(const Report *report, GError **error)
{
    const Spec *spec = report->spec;
    if (report->step_ps > 0 && report->mfu <= 1) {
        return true;
    }
    g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT,
                "a step of %.4g s for %.4g FLOPs a GPU would be %.4g times the peak, which is no result: "
                "cluster.accelerator.peak_flops_per_s (%.4g) or the efficiency of its kernels "
                "(cluster.accelerator.model) cannot be",
                (double)report->step_ps * 1e-12,
                report->mfu * cost_peak_flops_per_s(spec) * (double)report->step_ps * 1e-12, report->mfu,
                cost_peak_flops_per_s(spec));
    return false;
}

bool report_run(const Spec *spec, const SpecSource *source, const ReportOptions *options, OrrArena *arena,
                Report *ret_report, GError **error)
{
    Report report = {.spec = spec, .source = source, .gpus = spec_gpus(spec)};
    const unsigned record = options->record | (options->check ? SIM_RECORD_SPANS | SIM_RECORD_LEVELS : 0u);
    if (!sim_step_plan(spec, arena, &report.plan, error) || !sim_step_fits_clock(spec, &report.plan, error) ||
        !sim_program_build(&report.plan, options->unfold, arena, &report.program, error) ||
        !simulate(spec, record, arena, &report, error)) {
        return false;
    }
    if (options->check && !sim_run_check(&report.program, &report.result, error)) {
        return false;
    }
    fill_time(&report);
    fill_memory(&report.plan, arena, &report);
    fill_rates(arena, &report);
    if (!below_peak(&report, error)) {
        return false;
    }
    report_balance_fill(arena, &report);
    fill_campaign(&report);
    *ret_report = report;
    return true;
}
