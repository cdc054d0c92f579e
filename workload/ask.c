/* workload/ask.c - the phases of a loop asked one by one, and the loop that they make. */
#include <math.h>

#include "answer/answer.h"
#include "base/error.h"
#include "sim/picoseconds.h"
#include "step/step.h"
#include "workload/check.h"
#include "workload/costs.h"
#include "workload/rollout.h"
#include "workload/workload.h"

typedef struct Asking {
    const WorkloadSplit *split; /* NULL: as the scenario says */
    const SpecWorkload *asked;
    const SpecSource *source;
    Sequences sequences;
    OrrArena *arena;
    Workload *workload;
    GError **error;
} Asking;

/* --- parts and roles --- */

static void name_part(const Workload *workload, const SpecWorkload *asked, WorkloadPart *part, int row,
                      OrrArena *arena)
{
    g_autoptr(GString) names = g_string_new(NULL);
    for (int i = 0; i < asked->role_count; i++)
        if (workload->role[i].part == row)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", asked->role[i].name);
    part->name = orr_arena_strdup(arena, names->str);
}

static int part_of(Workload *workload, int host, int nodes)
{
    for (int i = 0; i < workload->part_count; i++)
        if (workload->part[i].host == host)
            return i;
    g_assert(workload->part_count < LOOP_MOST_PARTS);
    workload->part[workload->part_count] =
        (WorkloadPart){.host = host, .nodes = nodes, .gpus = nodes * workload->spec->cluster.gpus_per_node};
    return workload->part_count++;
}

/* The role whose nodes a role runs on, and how many they are. */
static int host_of(const Asking *asking, int row, int *ret_nodes)
{
    const SpecWorkload *asked = asking->asked;
    const WorkloadSplit *split = asking->split;
    const int host = spec_role_host(asked, row), generator = workload_generator(asked);
    const bool generates = row == generator || (host >= 0 && host == generator);
    if (split != NULL && generates) {
        *ret_nodes = split->apart > 0 ? split->apart : split->nodes;
        return split->apart > 0 ? generator : -1;
    }
    *ret_nodes = host >= 0       ? asked->role[host].nodes
                 : split != NULL ? split->nodes
                                 : asking->workload->spec->cluster.nodes;
    return host;
}

/* Roles with nodes of their own are parts; the scenario's GPUs are one where some role uses them. */
static void fill_parts(const Asking *asking)
{
    const SpecWorkload *asked = asking->asked;
    Workload *workload = asking->workload;
    for (int i = 0; i < asked->role_count; i++) {
        int nodes = 0;
        const int host = host_of(asking, i, &nodes);
        workload->role[i] = (WorkloadRole){.role = &asked->role[i], .part = part_of(workload, host, nodes)};
    }
    for (int p = 0; p < workload->part_count; p++)
        name_part(workload, asked, &workload->part[p], p, asking->arena);
}

/* The role on the nodes of a split; NULL where its layout does not divide them. */
static Spec *resized(const Asking *asking, int row)
{
    Spec *spec = ORR_ARENA_NEW(asking->arena, Spec, 1);
    int nodes = 0;
    host_of(asking, row, &nodes);
    return workload_resize(asking->split->roles[row], nodes, spec, asking->asked->role[row].name,
                           asking->error)
               ? spec
               : NULL;
}

/* The role as a scenario, loaded once. */
static const Spec *role_spec(const Asking *asking, int row)
{
    WorkloadRole *role = &asking->workload->role[row];
    if (role->spec != NULL)
        return role->spec;
    const Spec *spec = asking->split != NULL
                           ? resized(asking, row)
                           : workload_load_role(asking->workload->spec, asking->source, row, (SpecRanks){0},
                                                asking->arena, asking->error);
    if (spec == NULL)
        return NULL;
    role->spec = spec;
    asking->workload->part[role->part].gpus = spec_gpus(spec);
    return spec;
}

static bool trains(const SpecWorkload *asked, int role)
{
    for (int i = 0; i < asked->phase_count; i++)
        if (asked->phase[i].kind == SPEC_PHASE_TRAIN && asked->phase[i].role == role)
            return true;
    return false;
}

/* --- phases --- */

static void set_rows(const SequenceRows *rows, WorkloadPhase *phase)
{
    phase->microbatches = rows->microbatches;
    phase->tokens = rows->tokens;
}

/* Whether the role's model only scores, or only trains. */
static bool passes_alike(const SpecWorkload *asked, int role)
{
    unsigned kinds = 0;
    for (int i = 0; i < asked->phase_count; i++)
        if (asked->phase[i].role == role && asked->phase[i].kind != SPEC_PHASE_SYNC)
            kinds |= 1u << asked->phase[i].kind;
    return (kinds & (kinds - 1)) == 0;
}

/* The role at work on so many sequences. A forward alone and one with its backward are different traces: the next pass meets
 * other modules than the recorded ones and invalidates them.
 * Source: [DSChatTrace] runtime/zero/partitioned_param_coordinator.py: trace_prologue, is_complete_trace */
static Spec *batch_of(const Asking *asking, const Spec *role, int row, double sequences,
                      SequenceRows *ret_rows)
{
    Spec *spec = ORR_ARENA_NEW(asking->arena, Spec, 1);
    const int micro_batch = MAX(1, asking->workload->spec->training.micro_batch);
    *spec = *role;
    *ret_rows = sequences_rows(&asking->sequences, asking->asked, role, sequences, micro_batch);
    sequences_put(ret_rows, spec);
    SpecRecipeDataParallel *data_parallel = &spec->execution.framework.data_parallel;
    if (data_parallel->prefetches_by_trace && !passes_alike(asking->asked, row))
        data_parallel->prefetch_units = 0;
    return spec;
}

/* Of the stage that keeps most. */
static double kept_bytes(const Report *report)
{
    double most = 0;
    for (int i = 0; i < report->stage_count; i++)
        most = fmax(most, report->stages[i].weights_bytes + report->stages[i].optimizer_bytes);
    return most;
}

static void add_seconds(WorkloadPhase *phase, double seconds)
{
    phase->ps = sim_sum(phase->ps, sim_ps(seconds));
}

/* Nobody moves from GPUs that no other role uses. */
static bool rests(const Workload *workload, const WorkloadRole *own)
{
    int there = 0;
    for (int i = 0; i < workload->spec->workload.role_count; i++)
        there += workload->role[i].part == own->part;
    return own->role->offloaded && there > 1;
}

/* From the host's memory and back to it, where the role rests there. */
static void there_and_back(const Workload *workload, const WorkloadRole *own, const Spec *spec, double bytes,
                           WorkloadPhase *phase)
{
    const SpecHostMemory memory = own->role->host_memory;
    if (rests(workload, own))
        add_seconds(phase, workload_return_s(spec, memory, bytes) + workload_leave_s(spec, memory, bytes));
}

static bool ask_train(const Asking *asking, const Spec *role, WorkloadPhase *phase)
{
    SequenceRows rows;
    Report report;
    WorkloadRole *own = &asking->workload->role[phase->phase->role];
    const double sequences = asking->sequences.count / asking->asked->mini_batches;
    const Spec *spec = batch_of(asking, role, phase->phase->role, sequences, &rows);
    const AnswerAsk ask = {.run = {.record = 0}};
    g_autofree char *where = g_strdup_printf("workload.roles.%s", own->role->name);
    if (!sequences_check_dealt(&asking->sequences, asking->asked, role, where, asking->error) ||
        !spec_check(spec, where, asking->error) ||
        !answer_ask(spec, NULL, &ask, asking->arena, &report, asking->error))
        return false;
    phase->steps = asking->asked->mini_batches * asking->asked->epochs;
    phase->ps = sim_product(report.step_ps, phase->steps);
    set_rows(&rows, phase);
    asking->workload->busiest_frac = rows.busiest_frac;
    own->needed_bytes = report.needed_bytes;
    own->capacity_bytes = report.capacity_bytes;
    own->resting_bytes = kept_bytes(&report);
    there_and_back(asking->workload, own, role, own->resting_bytes, phase);
    return true;
}

/* A layer at work, or one more copy of the logits for log-softmax. */
static void keep_outputs(const Spec *spec, double tokens, WorkloadRole *own)
{
    const double logits = workload_logits_bytes(spec, tokens);
    own->output_bytes = logits > 0 ? logits + workload_cache_bytes(spec, tokens) : 0;
    own->scoring_bytes = spec_context_bytes(spec) + fmax(logits, workload_layer_bytes(spec));
    own->capacity_bytes = spec->cluster.accelerator.memory_bytes;
}

static bool ask_forward(const Asking *asking, const Spec *role, WorkloadPhase *phase)
{
    SequenceRows rows;
    SimPlan plan;
    WorkloadRole *own = &asking->workload->role[phase->phase->role];
    const Spec *spec = batch_of(asking, role, phase->phase->role, asking->sequences.count, &rows);
    g_autofree char *where = g_strdup_printf("workload.roles.%s", own->role->name);
    if (!spec_check(spec, where, asking->error) || !sim_step_plan(spec, asking->arena, &plan, asking->error))
        return false;
    phase->ps = workload_forward_ps(&plan);
    set_rows(&rows, phase);
    own->resting_bytes = fmax(own->resting_bytes, workload_held_bytes(role));
    if (asking->asked->keeps_outputs)
        keep_outputs(spec, (double)rows.microbatches * rows.tokens, own);
    if (own->role->offloaded && own->role->host_memory == SPEC_HOST_FRESH &&
        !trains(asking->asked, phase->phase->role))
        there_and_back(asking->workload, own, role, workload_held_bytes(role), phase);
    else if (rests(asking->workload, own)) /* its copy in the host's memory stays, or training comes */
        add_seconds(phase, workload_return_s(role, own->role->host_memory, workload_held_bytes(role)));
    return true;
}

static bool ask_generation(const Asking *asking, const Spec *role, WorkloadPhase *phase)
{
    RolloutAnswer answer;
    WorkloadRole *own = &asking->workload->role[phase->phase->role];
    const bool streams = asking->asked->in_flight && asking->asked->staleness_steps > 0;
    if (asking->split != NULL && asking->split->answer != NULL)
        answer = *asking->split->answer;
    else if (!rollout_ask(role, asking->asked, &asking->sequences, streams, &answer, asking->error)) {
        g_prefix_error(asking->error, "workload.roles.%s: ", own->role->name);
        return false;
    }
    phase->ps = sim_ps(answer.seconds);
    if (asking->asked->generation.seconds < 0)
        there_and_back(asking->workload, own, role, answer.weights_bytes, phase);
    if (answer.peak_bytes > 0 && !trains(asking->asked, phase->phase->role)) {
        own->needed_bytes = answer.peak_bytes;
        own->capacity_bytes = role->cluster.accelerator.memory_bytes;
    }
    if (role->execution.framework.engine.keeps_cache && !own->role->offloaded)
        own->resting_bytes = answer.cache_bytes;
    phase->tail_s = answer.tail_s;
    phase->why = answer.why;
    phase->given = asking->asked->generation.seconds >= 0;
    return true;
}

static bool ask_sync(const Asking *asking, const Spec *role, WorkloadPhase *phase)
{
    const Spec *to = role_spec(asking, phase->phase->to);
    if (to == NULL)
        return false;
    phase->other = asking->workload->role[phase->phase->to].part;
    const double seconds =
        workload_sync_s(role, to, phase->other == phase->part, asking->asked->sync.way, &phase->bytes);
    phase->given = asking->asked->sync.seconds >= 0;
    phase->ps = sim_ps(phase->given ? asking->asked->sync.seconds : seconds);
    return true;
}

static bool computes(const SpecPhase *phase)
{
    return phase->kind == SPEC_PHASE_TRAIN || phase->kind == SPEC_PHASE_FORWARD;
}

/* What forwards and training take depends on their nodes and layout alone, and on who shares their GPUs: other splits may have
 * asked it. */
static const WorkloadKept *kept_of(const Asking *asking, const SpecPhase *phase)
{
    return asking->split != NULL && asking->split->kept != NULL && computes(phase)
               ? asking->split->kept[phase->role]
               : NULL;
}

static bool take(const Asking *asking, const WorkloadKept *kept, WorkloadPhase *phase)
{
    WorkloadRole *own = &asking->workload->role[phase->phase->role];
    const WorkloadRole before = *own;
    *phase = kept->phase[phase - asking->workload->phase];
    *own = kept->role;
    own->role = before.role;
    own->spec = before.spec;
    own->part = before.part;
    if (phase->phase->kind == SPEC_PHASE_TRAIN)
        asking->workload->busiest_frac = kept->busiest_frac;
    return role_spec(asking, phase->phase->role) != NULL;
}

static bool ask_phase(const Asking *asking, WorkloadPhase *phase)
{
    const SpecPhase *asked = phase->phase;
    const WorkloadKept *kept = kept_of(asking, asked);
    const Spec *role = NULL;
    if (kept != NULL)
        return take(asking, kept, phase);
    if (asked->role >= 0) {
        phase->part = asking->workload->role[asked->role].part;
        role = role_spec(asking, asked->role);
        if (role == NULL)
            return false;
    }
    bool ok = true;
    switch (asked->kind) {
    case SPEC_PHASE_GENERATE:
        ok = ask_generation(asking, role, phase);
        break;
    case SPEC_PHASE_FORWARD:
        ok = ask_forward(asking, role, phase);
        break;
    case SPEC_PHASE_TRAIN:
        ok = ask_train(asking, role, phase);
        break;
    case SPEC_PHASE_SYNC:
        ok = ask_sync(asking, role, phase);
        break;
    case SPEC_PHASE_GIVEN:
        break;
    }
    if (ok && asked->seconds >= 0) {
        phase->ps = sim_ps(asked->seconds);
        phase->given = true;
    }
    return ok;
}

/* --- the loop --- */

int workload_loop_phases(const Workload *workload, LoopPhase phases[LOOP_MOST_PHASES])
{
    for (int i = 0; i < workload->phase_count; i++) {
        const WorkloadPhase *phase = &workload->phase[i];
        phases[i] = (LoopPhase){.part = phase->part,
                                .other = phase->other,
                                .ps = phase->ps,
                                .after = phase->phase->after,
                                .generates = phase->phase->kind == SPEC_PHASE_GENERATE};
    }
    return workload->phase_count;
}

/* The longest phase of the part that is busiest. */
static void fill_bound(Workload *workload)
{
    workload->bound_part = 0;
    for (int p = 1; p < workload->part_count; p++)
        if (workload->part[p].busy_ps > workload->part[workload->bound_part].busy_ps)
            workload->bound_part = p;
    int64_t most_ps = -1;
    for (int i = 0; i < workload->phase_count; i++) {
        const WorkloadPhase *phase = &workload->phase[i];
        if (phase->ps > most_ps && (phase->part == workload->bound_part || workload->staleness_steps == 0)) {
            workload->bound_phase = i;
            most_ps = phase->ps;
        }
    }
}

static bool run_loop(const Asking *asking, bool check)
{
    Workload *workload = asking->workload;
    LoopPhase phases[LOOP_MOST_PHASES];
    LoopResult result;
    const int count = workload_loop_phases(workload, phases);
    if (!loop_fits_clock(phases, count, workload->staleness_steps))
        return orr_fail(
            asking->error, ORR_ERROR_INPUT,
            "workload.phases: together they take longer than the clock of a loop holds, some tens "
            "of hours; give fewer prompts or more nodes");
    if (check && !loop_check(phases, count, workload->part_count, workload->staleness_steps, asking->error))
        return false;
    loop_run(phases, count, workload->part_count, workload->staleness_steps, &result);
    workload->step_ps = MAX(1, result.step_ps);
    workload->weights_age = result.weights_age;
    for (int i = 0; i < count; i++) {
        workload->phase[i].begin_ps = result.begin_ps[i];
        workload->phase[i].ready_ps = result.ready_ps[i];
    }
    for (int p = 0; p < workload->part_count; p++)
        workload->part[p].busy_ps = result.busy_ps[p];
    fill_bound(workload);
    return true;
}

static void fill_rates(const Asking *asking)
{
    Workload *workload = asking->workload;
    const Sequences *sequences = &asking->sequences;
    const double step_s = (double)workload->step_ps * 1e-12;
    double usd_per_hour = 0;
    workload->sequences = sequences->count;
    workload->answer_tokens = sequences->answer;
    workload->sequence_tokens = sequences->mean;
    workload->longest_tokens = sequences->longest;
    for (int p = 0; p < workload->part_count; p++)
        workload->gpus += workload->part[p].gpus;
    for (int p = 0; p < workload->part_count; p++)
        usd_per_hour += workload->part[p].gpus * workload->spec->cluster.usd_per_gpu_hour;
    workload->tokens_per_s = sequences->count * sequences->mean / step_s;
    workload->tokens_per_s_per_gpu = workload->tokens_per_s / MAX(1, workload->gpus);
    if (asking->asked->steps > 0) {
        const double hours = asking->asked->steps * step_s / 3600;
        workload->days = hours / 24;
        workload->gpu_hours = hours * workload->gpus;
        workload->usd = hours * usd_per_hour;
    }
}

static WorkloadPhase *next_phase(Workload *workload, const SpecPhase *asked)
{
    WorkloadPhase *phase = &workload->phase[workload->phase_count++];
    *phase = (WorkloadPhase){.phase = asked, .part = -1, .other = -1, .tail_s = NAN};
    return phase;
}

static Asking asking_of(const Spec *spec, const SpecSource *source, const WorkloadSplit *split,
                        OrrArena *arena, GError **error)
{
    Workload *workload = ORR_ARENA_NEW(arena, Workload, 1);
    Asking asking = {.split = split,
                     .asked = &spec->workload,
                     .source = source,
                     .arena = arena,
                     .workload = workload,
                     .error = error};
    workload->spec = spec;
    workload->busiest_frac = 1;
    workload->staleness_steps = (int)fmin(LOOP_MOST_STALENESS, ceil(spec->workload.staleness_steps));
    sequences_of(&spec->workload, &asking.sequences);
    fill_parts(&asking);
    return asking;
}

/* A batch that replicas cannot share costs nothing to find, and is most of what a search refuses: it is looked for first. */
void workload_keep(const Spec *spec, const SpecSource *source, const WorkloadSplit *split, int role,
                   OrrArena *arena, WorkloadKept *ret_kept, GError **error)
{
    const Asking asking = asking_of(spec, source, split, arena, error);
    Workload *workload = asking.workload;
    g_autofree char *where = g_strdup_printf("workload.roles.%s", spec->workload.role[role].name);
    const Spec *own = role_spec(&asking, role);
    bool ok = own != NULL && (!trains(asking.asked, role) ||
                              sequences_check_dealt(&asking.sequences, asking.asked, own, where, error));
    for (int i = 0; ok && i < spec->workload.phase_count; i++) {
        WorkloadPhase *phase = next_phase(workload, &spec->workload.phase[i]);
        if (computes(phase->phase) && phase->phase->role == role)
            ok = ask_phase(&asking, phase);
    }
    *ret_kept =
        (WorkloadKept){.refused = !ok, .role = workload->role[role], .busiest_frac = workload->busiest_frac};
    memcpy(ret_kept->phase, workload->phase, sizeof ret_kept->phase);
}

bool workload_ask(const Spec *spec, const SpecSource *source, const WorkloadAsk *ask, OrrArena *arena,
                  Workload *ret_workload, GError **error)
{
    const Asking asking = asking_of(spec, source, ask->split, arena, error);
    Workload *workload = asking.workload;
    for (int i = 0; i < spec->workload.phase_count; i++)
        if (!ask_phase(&asking, next_phase(workload, &spec->workload.phase[i])))
            return false;
    if (!run_loop(&asking, ask->check))
        return false;
    workload_fill_memory(workload);
    fill_rates(&asking);
    *ret_workload = *workload;
    return !ask->check || workload_check(workload, error);
}
