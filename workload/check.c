/* workload/check.c - see check.h. Tested: unit/workload/test_loop_check.c */
#include "workload/check.h"

#include <math.h>

#include "base/error.h"
#include "costmodel/flops.h"
#include "workload/costs.h"
#include "workload/sequences.h"

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

static bool holds(const WorkloadPhase *phase, int part)
{
    return part >= 0 && (phase->part == part || phase->other == part);
}

/* Of one turn that begins on idle GPUs: each phase when those that it waits for are over and its parts are free. */
static int64_t path_ps(const Workload *workload)
{
    int64_t end_ps[SPEC_MOST_PHASES] = {0}, free_ps[LOOP_MOST_PARTS] = {0}, last_ps = 0;
    for (int k = 0; k < workload->phase_count; k++) {
        const WorkloadPhase *phase = &workload->phase[k];
        int64_t begin_ps = 0;
        for (int j = 0; j < k; j++)
            if ((phase->phase->after & 1u << j) != 0)
                begin_ps = MAX(begin_ps, end_ps[j]);
        for (int p = 0; p < workload->part_count; p++)
            if (holds(phase, p))
                begin_ps = MAX(begin_ps, free_ps[p]);
        end_ps[k] = begin_ps + phase->ps;
        for (int p = 0; p < workload->part_count; p++)
            if (holds(phase, p))
                free_ps[p] = end_ps[k];
        last_ps = MAX(last_ps, end_ps[k]);
    }
    return MAX(1, last_ps);
}

/* Every turn begins on idle GPUs. */
static bool is_whole(const Workload *workload)
{
    return workload->staleness_steps == 0 && workload->phase[0].phase->kind == SPEC_PHASE_GENERATE;
}

/* Of a turn that stands alone: when nothing runs on the part. */
static int64_t idle_ps(const Workload *workload, int part)
{
    int64_t idle_ps = 0, at_ps = 0;
    for (int rest = workload->phase_count; rest > 0; rest--) {
        const WorkloadPhase *next = NULL;
        for (int k = 0; k < workload->phase_count; k++) {
            const WorkloadPhase *phase = &workload->phase[k];
            if (holds(phase, part) && phase->ps > 0 && phase->begin_ps >= at_ps &&
                (next == NULL || phase->begin_ps < next->begin_ps))
                next = phase;
        }
        if (next == NULL)
            break;
        idle_ps += next->begin_ps - at_ps;
        at_ps = next->begin_ps + next->ps;
    }
    return idle_ps + MAX(0, workload->step_ps - at_ps);
}

/* Phases begin when what they wait for is over, weights are no older than allowed, and parts are busy or idle. */
static bool check_order(const Workload *workload, GError **error)
{
    for (int k = 0; k < workload->phase_count; k++)
        if (workload->phase[k].begin_ps < workload->phase[k].ready_ps)
            return orr_fail(error, ORR_ERROR_INTERNAL,
                            "loop: %s begins %.9f s before what it waits for is over",
                            workload->phase[k].phase->name,
                            (double)(workload->phase[k].ready_ps - workload->phase[k].begin_ps) * 1e-12);
    if (workload->weights_age < 0 || workload->weights_age > workload->staleness_steps)
        return orr_fail(error, ORR_ERROR_INTERNAL,
                        "loop: weights of %d steps before generate, %d are allowed", workload->weights_age,
                        workload->staleness_steps);
    for (int p = 0; p < workload->part_count && is_whole(workload); p++)
        if (workload->part[p].busy_ps + idle_ps(workload, p) != workload->step_ps)
            return orr_fail(error, ORR_ERROR_INTERNAL,
                            "loop: part %d is busy for %.9f s and idle for %.9f s of a step of %.9f s", p,
                            (double)workload->part[p].busy_ps * 1e-12, (double)idle_ps(workload, p) * 1e-12,
                            (double)workload->step_ps * 1e-12);
    return true;
}

static bool check_loop(const Workload *workload, GError **error)
{
    const bool whole = is_whole(workload);
    const int64_t path = path_ps(workload);
    if (whole ? workload->step_ps != path : workload->step_ps > path)
        return orr_fail(error, ORR_ERROR_INTERNAL,
                        "loop: a step of %.9f s, and its longest path takes %.9f s",
                        (double)workload->step_ps * 1e-12, (double)path * 1e-12);
    for (int p = 0; p < workload->part_count; p++) {
        int64_t busy_ps = 0;
        for (int k = 0; k < workload->phase_count; k++)
            busy_ps += holds(&workload->phase[k], p) ? workload->phase[k].ps : 0;
        if (busy_ps != workload->part[p].busy_ps || busy_ps > workload->step_ps)
            return orr_fail(error, ORR_ERROR_INTERNAL,
                            "loop: phases of part %d take %.9f s, it is busy for %.9f s of a step", p,
                            (double)busy_ps * 1e-12, (double)workload->part[p].busy_ps * 1e-12);
    }
    return true;
}

/* Seconds below which no phase can be. */
static double least_s(const Workload *workload, const WorkloadPhase *phase, const Sequences *sequences)
{
    const SpecPhase *asked = phase->phase;
    const Spec *role = asked->role >= 0 ? workload->role[asked->role].spec : NULL;
    if (phase->given || role == NULL)
        return 0;
    const double peak = workload->part[phase->part].gpus * cost_peak_flops_per_s(role);
    if (asked->kind != SPEC_PHASE_SYNC)
        return workload_least_flops(workload->spec, &role->model, asked, sequences) / peak;
    const Spec *to = workload->role[asked->to].spec;
    const double shards = MAX(1, to->parallel.tensor * to->parallel.pipeline),
                 link = fmax(to->cluster.accelerator.scale_up_bytes_per_s,
                             to->cluster.scale_out_bytes_per_s_per_gpu);
    return phase->other != phase->part && link > 0 ? phase->bytes / shards / link : 0;
}

static bool check_phases(const Workload *workload, const Sequences *sequences, GError **error)
{
    for (int k = 0; k < workload->phase_count; k++) {
        const WorkloadPhase *phase = &workload->phase[k];
        const double seconds = (double)phase->ps * 1e-12, least = least_s(workload, phase, sequences);
        if (seconds < least * (1 - 1e-9))
            return orr_fail(error, ORR_ERROR_INTERNAL,
                            "loop: %s takes %.9f s, and cannot take less than %.9f", phase->phase->name,
                            seconds, least);
        if (!isnan(phase->tail_s) && !phase->given && (phase->tail_s < 0 || phase->tail_s > seconds))
            return orr_fail(error, ORR_ERROR_INTERNAL, "loop: a tail of %.9f s in %s, which takes %.9f s",
                            phase->tail_s, phase->phase->name, seconds);
    }
    return true;
}

/* What is trained on is what was generated: all of it, and no more than whole micro-batches and the busiest replica make of it. */
static bool check_tokens(const Workload *workload, const WorkloadPhase *phase, const Sequences *sequences,
                         GError **error)
{
    const Spec *role = workload->role[phase->phase->role].spec;
    const SpecWorkload *asked = &workload->spec->workload;
    const double replicas = MAX(1, role->parallel.data),
                 steps = phase->phase->kind == SPEC_PHASE_TRAIN ? phase->steps / fmax(1, asked->epochs) : 1,
                 each = fmax(sequences->mean, sequences->room),
                 written = fmax(sequences->count, replicas * steps) * each,
                 learned = steps * replicas * phase->microbatches * phase->tokens,
                 cut = steps * replicas * phase->microbatches * 2 * role->parallel.tensor *
                       role->parallel.context;
    if (learned >= sequences->count * sequences->mean * (1 - 1e-9) &&
        (sequences->room > 0 || learned <= written * fmax(workload->busiest_frac, 2) + cut))
        return true;
    return orr_fail(error, ORR_ERROR_INTERNAL, "loop: %s works on %.0f tokens, %.0f were generated",
                    phase->phase->name, learned, sequences->count * sequences->mean);
}

/* A sync carries all weights as their receiver stores them. */
static bool check_amounts(const Workload *workload, const Sequences *sequences, GError **error)
{
    for (int k = 0; k < workload->phase_count; k++) {
        const WorkloadPhase *phase = &workload->phase[k];
        const SpecPhaseKind kind = phase->phase->kind;
        if ((kind == SPEC_PHASE_TRAIN || kind == SPEC_PHASE_FORWARD) && phase->tokens > 0 &&
            !check_tokens(workload, phase, sequences, error))
            return false;
        if (kind == SPEC_PHASE_SYNC &&
            !near(phase->bytes, workload_weight_bytes(workload->role[phase->phase->to].spec)))
            return orr_fail(error, ORR_ERROR_INTERNAL, "loop: %s carries %.0f bytes, weights are %.0f",
                            phase->phase->name, phase->bytes,
                            workload_weight_bytes(workload->role[phase->phase->to].spec));
    }
    return true;
}

static bool check_rates(const Workload *workload, const Sequences *sequences, GError **error)
{
    const double step_s = (double)workload->step_ps * 1e-12, steps = workload->spec->workload.steps;
    int gpus = 0;
    for (int p = 0; p < workload->part_count; p++)
        gpus += workload->part[p].gpus;
    if (gpus != workload->gpus)
        return orr_fail(error, ORR_ERROR_INTERNAL, "loop: parts of %d GPUs, %d in all", gpus, workload->gpus);
    if (!near(workload->sequences, sequences->count) || workload->busiest_frac < 1)
        return orr_fail(error, ORR_ERROR_INTERNAL, "loop: %.0f sequences are trained on, %.0f are kept",
                        workload->sequences, sequences->count);
    if (!near(workload->tokens_per_s * step_s, sequences->count * sequences->mean) ||
        !near(workload->tokens_per_s_per_gpu * MAX(1, gpus), workload->tokens_per_s))
        return orr_fail(error, ORR_ERROR_INTERNAL, "loop: %.6g tokens a second make no step of %.6g tokens",
                        workload->tokens_per_s, sequences->count * sequences->mean);
    return !(steps > 0) ||
           (near(workload->days * 86400, steps * step_s) &&
            near(workload->gpu_hours * 3600, steps * step_s * gpus)) ||
           orr_fail(error, ORR_ERROR_INTERNAL, "loop: %.0f steps take no %.9f days", steps, workload->days);
}

/* What stays on a part's GPUs is there beside whoever trains. */
static bool check_memory(const Workload *workload, GError **error)
{
    const int roles = workload->spec->workload.role_count;
    for (int i = 0; i < roles; i++) {
        const WorkloadRole *role = &workload->role[i];
        double beside = 0;
        for (int j = 0; j < roles; j++)
            beside += j != i && workload->role[j].part == role->part && !workload->role[j].role->offloaded
                          ? workload->role[j].resting_bytes
                          : 0;
        if (role->capacity_bytes > 0 &&
            (role->needed_bytes < beside || (workload->fits && role->needed_bytes > role->capacity_bytes)))
            return orr_fail(error, ORR_ERROR_INTERNAL,
                            "loop: %s needs %.0f bytes of a GPU, others keep %.0f there, of %.0f",
                            role->role->name, role->needed_bytes, beside, role->capacity_bytes);
    }
    return true;
}

bool workload_check(const Workload *workload, GError **error)
{
    Sequences sequences;
    sequences_of(&workload->spec->workload, &sequences);
    return check_loop(workload, error) && check_order(workload, error) &&
           check_amounts(workload, &sequences, error) && check_phases(workload, &sequences, error) &&
           check_rates(workload, &sequences, error) && check_memory(workload, error);
}
