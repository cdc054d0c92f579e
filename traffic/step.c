/* traffic/step.c - a step on a fabric: planned, given its links, run beside what else is there, and compared with itself
 * alone. */
#include <math.h>
#include <string.h>

#include "program/join.h"
#include "step/step.h"
#include "spec/load.h"
#include "traffic/rows.h"

#define MOST_PARTIES (1 + SPEC_MAX_JOBS + SPEC_MAX_TRAFFIC)
/* Ops of all steps of the jobs beside. */
#define MOST_OPS 5e7

typedef struct Party {
    const char *name;
    Spec *spec, *on; /* as given, and on the fabric */
    Traffic *traffic;
    SimPlan plan;
    SimProgram program;
    int64_t alone_ps;
    TrafficMeeting *sends; /* of traffic that is no job */
    double bytes_per_s;
    int times;
} Party;

typedef struct Scene {
    Party parties[MOST_PARTIES];
    int count;
    OrrArena *arena;
    bool check;
    bool all_links;
} Scene;

static void scene_clear(Scene *scene)
{
    for (int i = scene->count - 1; i >= 0; i--) { /* others borrow the first one's fabric */
        Party *party = &scene->parties[i];
        if (i == 0 || party->sends == NULL)
            traffic_free(party->traffic);
        if (party->sends != NULL) {
            g_free(party->sends->links);
            g_free(party->sends->loads);
            g_free(party->sends);
        }
        g_free(party->spec);
        g_free(party->on);
    }
}

/* One step of a job with links of its own. */
static bool run_alone(Scene *scene, Party *party, bool unfold, GError **error)
{
    SimPlan plan;
    SimProgram program;
    SimResult result;
    g_autofree Spec *alone = g_new(Spec, 1);
    traffic_on(party->traffic, party->spec, false, alone);
    if (!sim_step_plan(alone, scene->arena, &plan, error) || !sim_step_fits_clock(alone, &plan, error) ||
        !sim_program_build(&plan, unfold, scene->arena, &program, error) ||
        !sim_engine_run(&program, 0, scene->arena, &result, error))
        return false;
    party->alone_ps = result.step_ps;
    return true;
}

static bool prepare(Scene *scene, Party *party, const NetTopology *fabric, bool unfold, GError **error)
{
    party->traffic = traffic_new(party->spec, fabric, error);
    if (party->traffic == NULL)
        return false;
    party->times = 1;
    party->on = g_new(Spec, 1);
    traffic_on(party->traffic, party->spec, true, party->on);
    return sim_step_plan(party->on, scene->arena, &party->plan, error) &&
           traffic_went_well(party->traffic, error) && sim_step_fits_clock(party->on, &party->plan, error) &&
           sim_program_build(&party->plan, unfold, scene->arena, &party->program, error) &&
           run_alone(scene, party, unfold, error);
}

static bool add_job(Scene *scene, const char *text, GError **error)
{
    Party *party = &scene->parties[scene->count++];
    party->spec = g_new0(Spec, 1);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "cluster.network.jobs", error);
    const bool read = doc != NULL && spec_load_json(orr_json_root(doc), "cluster.network.jobs", NULL, false,
                                                    party->spec, NULL, error);
    orr_json_free(doc);
    if (!read)
        return false;
    party->name = party->spec->name;
    return prepare(scene, party, traffic_links(scene->parties[0].traffic), false, error);
}

/* --- traffic that is no job --- */

static int vertex_named(const NetTopology *t, const char *name)
{
    for (int v = 0; v < t->vertex_count; v++)
        if (strcmp(t->vertices[v].name, name) == 0)
            return v;
    return -1;
}

/* The switch at the other end of a GPU's first link out of its node; -1: none. */
static int leaf_of(const NetTopology *t, int gpu)
{
    int leaf = -1, weight = 0;
    for (int e = t->out_of[gpu]; e < t->out_of[gpu + 1]; e++) {
        const NetLink *link = &t->links[t->out_links[e]];
        if (link->to >= t->gpus && link->bytes_per_s > 0 && link->weight > weight) {
            leaf = link->to;
            weight = link->weight;
        }
    }
    return leaf;
}

/* Loads of links when every GPU of the job sends at `rate`. */
static TrafficMeeting *storage_loads(const Scene *scene, const SpecTraffic *asked, double rate,
                                     GError **error)
{
    const Party *job = &scene->parties[0];
    const NetTopology *t = traffic_links(job->traffic);
    const int storage = asked->to[0] != '\0' ? vertex_named(t, asked->to) : -1;
    if (asked->to[0] != '\0' && storage < 0) {
        orr_fail(error, ORR_ERROR_INPUT,
                 "cluster.network.traffic.to: %s has no vertex \"%s\"; its last one is %s", t->name,
                 asked->to, t->vertices[t->vertex_count - 1].name);
        return NULL;
    }
    g_autofree double *loads = g_new0(double, MAX(t->link_count, 1));
    for (int rank = 0; rank < spec_gpus(job->spec); rank++) {
        const int gpu = traffic_vertex(&job->traffic->place, rank),
                  to = storage >= 0 ? storage : leaf_of(t, gpu);
        const int32_t *links;
        const int hops = to < 0 ? -1 : net_route(job->traffic->routes, gpu, to, 0, &links);
        if (hops < 0) {
            orr_fail(error, ORR_ERROR_INPUT, "cluster.network.traffic: no way leads from %s to storage",
                     t->vertices[gpu].name);
            return NULL;
        }
        for (int h = 0; h < hops; h++)
            loads[links[h]] += rate / (double)t->links[links[h]].bytes_per_s;
    }
    TrafficMeeting *meeting = g_new0(TrafficMeeting, 1);
    meeting->up = meeting->out = meeting->fastest = 1;
    meeting->across = true;
    meeting->links = g_new(int32_t, MAX(t->link_count, 1));
    meeting->loads = g_new(double, MAX(t->link_count, 1));
    for (int l = 0; l < t->link_count; l++) {
        if (loads[l] > 0) {
            meeting->links[meeting->link_count] = l;
            meeting->loads[meeting->link_count++] = loads[l];
        }
    }
    return meeting;
}

/* A class with one op. */
static void sending_program(Scene *scene, Party *party, double bytes)
{
    SimWork *work = ORR_ARENA_NEW(scene->arena, SimWork, 1);
    SimResource *nic = ORR_ARENA_NEW(scene->arena, SimResource, 1);
    SimMemDelta *mem = ORR_ARENA_NEW(scene->arena, SimMemDelta, 1);
    SimOp *op = ORR_ARENA_NEW(scene->arena, SimOp, 1);
    SimInstr *instr = ORR_ARENA_NEW(scene->arena, SimInstr, 1);
    SimClass *cls = ORR_ARENA_NEW(scene->arena, SimClass, 1);
    work->part_ps[SIM_PART_OTHER] = sim_ps(bytes / party->bytes_per_s);
    work->scale_out_bytes = llround(fmin(bytes, 8e18));
    /* Of links it gets as much as others whose NIC sends as fast. */
    *nic = (SimResource){.name = "storage NIC", .capacity = SIM_WHOLE_RESOURCE};
    sim_work_hold(work, 0, SIM_SHARE_FAIR,
                  MAX(lround(SIM_WHOLE_RESOURCE * party->bytes_per_s / party->traffic->out_bytes_per_s), 1));
    *op = (SimOp){.kind = SIM_OP, .tag = SIM_TAG_OFFLOAD, .mem = -1, .stage = -1};
    *instr = (SimInstr){.op = 0, .microbatch = -1};
    cls->streams[SIM_STREAM_COMPUTE] = (SimList){.instrs = instr, .count = 1};
    party->program = scene->parties[0].program; /* the same tables */
    party->program.classes = 1;
    party->program.class_list = cls;
    party->program.ops = op;
    party->program.works = work;
    party->program.mems = mem;
    party->program.op_count = 1;
    party->program.work_count = party->program.mem_count = 1;
    party->program.group_count = 0;
    party->program.resources = nic;
    party->program.resource_count = 1;
    party->program.rank_speed = NULL;
    party->alone_ps = sim_work_duration_ps(work);
}

static bool add_traffic(Scene *scene, const SpecTraffic *asked, GError **error)
{
    const Party *job = &scene->parties[0];
    const SpecNetwork *network = &job->spec->cluster.network;
    Party *party = &scene->parties[scene->count];
    const bool front = asked->links == SPEC_TRAFFIC_FRONT_END;
    if (front && network->front_end_bytes_per_s <= 0)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "cluster.network.front_end_bytes_per_s: not given, but traffic \"%s\" goes over the front end; "
            "give a node's rate, such as \"25 GB/s\"",
            asked->name);
    const double most = front ? network->front_end_bytes_per_s / job->spec->cluster.gpus_per_node
                              : job->traffic->out_bytes_per_s;
    *party = (Party){.name = asked->name, .traffic = job->traffic, .times = 1};
    party->bytes_per_s = asked->bytes_per_s_per_gpu > 0 ? fmin(asked->bytes_per_s_per_gpu, most) : most;
    if (front)
        party->sends = g_new0(TrafficMeeting, 1);
    else
        party->sends = storage_loads(scene, asked, party->bytes_per_s, error);
    if (party->sends == NULL)
        return false;
    scene->count++;
    sending_program(scene, party, asked->bytes_per_gpu);
    return true;
}

static bool add_others(Scene *scene, bool unfold, GError **error)
{
    const Party *job = &scene->parties[0];
    const SpecNetwork *network = &job->spec->cluster.network;
    if (network->job_count + network->traffic_count > 0 && (unfold || job->program.replicas > 1))
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "cluster.network: other jobs and traffic are simulated with one rank of each kind; leave "
            "out --unfold, and what makes ranks differ");
    for (int i = 0; i < network->job_count; i++) {
        if (!add_job(scene, network->jobs[i], error))
            return false;
        if (scene->parties[scene->count - 1].program.replicas > 1)
            return orr_fail(
                error, ORR_ERROR_INPUT,
                "cluster.network.jobs: ranks of %s differ, so that one cannot stand for its likes",
                scene->parties[scene->count - 1].name);
    }
    for (int i = 0; i < network->traffic_count; i++)
        if (!add_traffic(scene, &network->traffic[i], error))
            return false;
    return true;
}

/* Two jobs on one domain of the fabric. */
static bool apart(const Scene *scene, GError **error)
{
    const int gpus = traffic_links(scene->parties[0].traffic)->gpus;
    g_autofree int *owner = g_new0(int, gpus);
    for (int i = 0; i < scene->count; i++) {
        const Party *party = &scene->parties[i];
        for (int rank = 0; party->spec != NULL && rank < spec_gpus(party->spec); rank++) {
            const int gpu = traffic_vertex(&party->traffic->place, rank);
            if (owner[gpu] > 0)
                return orr_fail(
                    error, ORR_ERROR_INPUT,
                    "cluster.network.jobs: \"%s\" and \"%s\" are both on GPU %d of the fabric; give one of "
                    "them another first_node or node_stride",
                    scene->parties[owner[gpu] - 1].name, party->name, gpu);
            owner[gpu] = i + 1;
        }
    }
    return true;
}

/* --- all of them --- */

static int64_t instructions_of(const SimProgram *program)
{
    int64_t count = 0;
    for (int c = 0; c < program->classes; c++)
        for (int s = 0; s < SIM_MAX_STREAMS; s++)
            count += program->class_list[c].streams[s].count;
    return count;
}

/* Other jobs go on with their next steps until this one's is over. */
static bool choose_times(Scene *scene, int64_t until_ps, GError **error)
{
    double ops = 0;
    for (int i = 1; i < scene->count; i++) {
        Party *party = &scene->parties[i];
        if (party->sends != NULL || party->alone_ps <= 0)
            continue;
        const double times = ceil((double)until_ps / (double)party->alone_ps) + 1;
        ops += times * (double)instructions_of(&party->program);
        if (ops > MOST_OPS)
            return orr_fail(
                error, ORR_ERROR_INPUT,
                "cluster.network.jobs: \"%s\" makes %.0f steps during one of \"%s\", too many to simulate; "
                "give jobs whose steps are more alike",
                party->name, times, scene->parties[0].name);
        party->times = (int)times;
    }
    return true;
}

static bool join(Scene *scene, SimProgram *program, TrafficSummary *summary, GError **error)
{
    SimProgram programs[MOST_PARTIES];
    TrafficParty parties[MOST_PARTIES];
    int times[MOST_PARTIES], classes = 0;
    for (int i = 0; i < scene->count; i++) {
        const Party *party = &scene->parties[i];
        const bool job = party->spec != NULL;
        programs[i] = party->program;
        times[i] = party->times;
        parties[i] =
            (TrafficParty){.traffic = party->traffic,
                           .plan = job ? &party->plan : NULL,
                           .sends = party->sends,
                           .bytes_per_s = party->bytes_per_s,
                           .first_class = classes,
                           .classes = party->program.classes,
                           .replicas = job ? party->plan.tensor * party->plan.context * party->plan.data : 1};
        classes += party->program.classes;
    }
    *program = programs[0];
    return (scene->count == 1 ||
            sim_program_join(programs, times, scene->count, scene->arena, program, error)) &&
           traffic_add_links(parties, scene->count, scene->arena, program, scene->check, summary, error);
}

/* The earliest end of a job beside; INT64_MAX: there is none. */
static int64_t first_end_ps(const Scene *scene, const SimResult *result)
{
    int64_t first_ps = INT64_MAX;
    for (int i = 1, cls = scene->parties[0].program.classes; i < scene->count; i++) {
        const Party *party = &scene->parties[i];
        int64_t end_ps = 0;
        for (int c = 0; c < party->program.classes; c++, cls++)
            end_ps = MAX(end_ps, result->rank[cls].end_ps);
        if (party->spec != NULL)
            first_ps = MIN(first_ps, end_ps);
    }
    return first_ps;
}

static void summarise_others(const Scene *scene, const SimResult *result, TrafficSummary *summary)
{
    for (int i = 1, cls = scene->parties[0].program.classes; i < scene->count; i++) {
        const Party *party = &scene->parties[i];
        int64_t end_ps = 0;
        for (int c = 0; c < party->program.classes; c++, cls++)
            end_ps = MAX(end_ps, result->rank[cls].end_ps);
        g_strlcpy(summary->beside[summary->beside_count].name, party->name, sizeof summary->beside[0].name);
        summary->beside[summary->beside_count].end_ps = end_ps / party->times;
        summary->beside[summary->beside_count++].alone_ps = party->alone_ps;
    }
}

/* That a level does not fit is a result: the check of capacities is for those that do. */
static bool check_run(const Scene *scene, const SimProgram *program, const SimResult *result, GError **error)
{
    SimProgram checked = *program;
    if (program->tier_count > 0 && sim_run_overfills(program, result))
        sim_program_unbounded(&checked, scene->arena);
    return sim_run_check(&checked, result, error);
}

/* Long enough that no job beside is through before this one's step is. */
static bool run(Scene *scene, unsigned record, SimProgram *program, SimResult *result,
                TrafficSummary *summary, GError **error)
{
    const Party *own = &scene->parties[0];
    int64_t until_ps = own->alone_ps;
    for (;;) {
        const TrafficSummary fresh = {.on = true, .alone_ps = own->alone_ps, .all_links = scene->all_links};
        *summary = fresh;
        if (!choose_times(scene, until_ps, error) || !join(scene, program, summary, error) ||
            !sim_engine_run(program, record | (scene->check ? SIM_RECORD_SPANS | SIM_RECORD_LEVELS : 0u),
                            scene->arena, result, error))
            return false;
        int64_t end_ps = 0;
        for (int r = 0; r < own->program.classes * own->program.replicas; r++)
            end_ps = MAX(end_ps, result->rank[r].end_ps);
        if (first_end_ps(scene, result) >= end_ps)
            break;
        until_ps = sim_product(MAX(until_ps, end_ps), 2);
    }
    if (scene->check && !check_run(scene, program, result, error))
        return false;
    summarise_others(scene, result, summary);
    summary->classes = program->classes;
    program->classes = own->program.classes;
    sim_result_cut(result, own->program.classes * own->program.replicas, program->skewed);
    return true;
}

static void finish_summary(const Scene *scene, const SimResult *result, TrafficSummary *summary)
{
    const double step_s = (double)result->step_ps * 1e-12;
    summary->step_ps = result->step_ps;
    g_strlcpy(summary->topology, traffic_links(scene->parties[0].traffic)->name, sizeof summary->topology);
    traffic_finish_links(summary, step_s);
}

static bool never_over(const TrafficSummary *summary, GError **error)
{
    for (int i = 0; i < summary->busiest_count; i++)
        if (summary->busiest[i].busy_frac > 1 + 1e-6)
            return orr_fail(error, ORR_ERROR_INTERNAL, "%s-%s carries %g times what it can in a step",
                            summary->busiest[i].from, summary->busiest[i].to, summary->busiest[i].busy_frac);
    return true;
}

bool traffic_furnish(Traffic *traffic, const SimPlan *plan, SimProgram *program, OrrArena *arena,
                     GError **error)
{
    const TrafficParty party = {.traffic = traffic,
                                .plan = plan,
                                .classes = program->classes,
                                .replicas = plan->tensor * plan->context * plan->data};
    TrafficSummary unread = {0};
    return traffic_add_links(&party, 1, arena, program, false, &unread, error);
}

bool traffic_step(const Spec *spec, bool unfold, bool check, bool all_links, unsigned record, OrrArena *arena,
                  SimPlan *ret_plan, SimProgram *ret_program, SimResult *ret_result,
                  TrafficSummary *ret_summary, GError **error)
{
    g_autofree Scene *scene = g_new0(Scene, 1);
    Party *own = &scene->parties[0];
    scene->arena = arena;
    scene->check = check;
    scene->all_links = all_links;
    scene->count = 1;
    own->spec = g_memdup2(spec, sizeof *spec);
    own->name = spec->name;
    const bool ok = prepare(scene, own, NULL, unfold, error) && add_others(scene, unfold, error) &&
                    apart(scene, error) && run(scene, record, ret_program, ret_result, ret_summary, error);
    if (ok) {
        *ret_plan = own->plan;
        finish_summary(scene, ret_result, ret_summary);
    }
    const bool fine = ok && (!check || never_over(ret_summary, error));
    scene_clear(scene);
    return fine;
}
