/* step/servers.c - data parallelism without an all-reduce: parameter servers, and one process that drives all GPUs.
 *
 * The stage's passes become the layers of a run over parameter servers (program/servers.h); what that run takes beyond them
 * is what the step waits for. The optimizer and its states are the servers'.
 * A worker is a node (its GPUs reduce among themselves first and share its NICs), or, of one node, a GPU on its host link.
 * Servers on machines of their own have the places behind the workers'.
 */
#include <math.h>

#include "costmodel/activations.h"
#include "costmodel/states.h"
#include "costmodel/uplinks.h"
#include "step/fill.h"

/* Iterations that are left out: until queues of several layers repeat themselves, or workers have drifted apart. */
enum { WARM = 6, WARM_DRIFTING = 20, MOST_TRANSFERS = 20000000 };

/* Transfers of all iterations x connections whose shares each may move x machines that may be full one after the other:
 * some twenty seconds. */
#define MOST_SHARES 4e9

static int64_t forward_ps(const SimSegment *segment)
{
    return sim_work_duration_ps(&segment->forward);
}

static int64_t backward_ps(const SimSegment *segment)
{
    return sim_sum(sim_work_duration_ps(&segment->recompute),
                   sim_sum(sim_work_duration_ps(&segment->backward_input),
                           sim_work_duration_ps(&segment->backward_weight)));
}

/* All micro-batches but the last compute without sending: between the first forward and the last backward. */
static SimServerLayer *make_layers(const Step *step)
{
    const Spec *spec = step->spec;
    const SimStage *stage = &step->plan->stages[0];
    const double payload = step_payload_bytes(spec), weight = cost_weight_wire_bytes(spec);
    const bool both_ways = spec->parallel.compression.kind != SPEC_COMPRESSION_NONE;
    const double all = spec->parallel.compression.kind == SPEC_COMPRESSION_TOPK ? spec->parallel.data : 1;
    SimServerLayer *layers = ORR_ARENA_NEW(step->arena, SimServerLayer, stage->segment_count);
    int64_t pass_ps = 0;
    for (int i = 0; i < stage->segment_count; i++) {
        const SimSegment *segment = &stage->segments[i];
        const double count = cost_weights_count(&step->params[0][i].weights);
        layers[i] = (SimServerLayer){
            .forward_ps = sim_sum(forward_ps(segment), sim_ps(step_restore_s(spec, count, 1))),
            .backward_ps = sim_sum(backward_ps(segment), sim_ps(step_select_s(spec, count))),
            .push_bytes = llround(count * payload),
            .pull_bytes = llround(count * (both_ways ? fmin(weight, all * payload) : weight))};
        pass_ps = sim_sum(pass_ps, sim_sum(layers[i].forward_ps, layers[i].backward_ps));
    }
    SimServerLayer *last = &layers[stage->segment_count - 1];
    last->forward_ps = sim_sum(last->forward_ps, sim_product(step->plan->shape.microbatches - 1, pass_ps));
    return layers;
}

/* What the GPUs of a node take for a byte before it leaves the node, and again when it is back. */
static double local_ps_per_byte(const Spec *spec)
{
    const int ranks = spec->cluster.gpus_per_node;
    const double bytes = 64.0 * 1024 * 1024;
    if (spec->cluster.nodes < 2 || ranks < 2) {
        return 0;
    }
    const SimWork work =
        step_collective(spec,
                        &(CostCollective){.op = COST_REDUCE_SCATTER,
                                          .bytes = bytes,
                                          .group = {.ranks = ranks, .per_domain = ranks, .nic_sharers = 1}},
                        SIM_PART_DATA_COMM);
    return (double)sim_work_duration_ps(&work) / bytes;
}

static double nic_rate(const SpecCluster *cluster)
{
    const double host = cluster->accelerator.host_link_bytes_per_s;
    return cluster->nodes > 1 ? cluster->scale_out_bytes_per_s_per_gpu * cluster->gpus_per_node
           : host > 0         ? host
                              : cluster->scale_out_bytes_per_s_per_gpu;
}

/* Without GPUDirect a worker's bytes pass the host links of its GPUs as well. */
static double worker_rate(const SpecCluster *cluster)
{
    const double host = cluster->accelerator.host_link_bytes_per_s / MAX(cluster->host.gpus_per_pcie_root, 1);
    const bool copied = cluster->nodes > 1 && cluster->network.host_copies && host > 0;
    return copied ? fmin(nic_rate(cluster), host * cluster->gpus_per_node) : nic_rate(cluster);
}

/* What climbs out of a pod shares its uplinks; where the topology has no pods, each machine has its own. */
static void place_pods(const Spec *spec, SimServerPlan *plan)
{
    const CostUplinks uplinks = cost_uplinks(spec);
    if (uplinks.ratio > 1 && spec->cluster.nodes > 1) {
        plan->pod_machines = (int)MAX(1, uplinks.pod_gpus / spec->cluster.gpus_per_node);
        plan->pod_over_ratio = uplinks.ratio;
    }
}

static void place_servers(const Step *step, SimServerPlan *plan)
{
    const SpecServers *asked = &step->spec->parallel.servers;
    const bool own = asked->placement != SPEC_SERVERS_COLOCATED;
    const bool shared = asked->placement == SPEC_SERVERS_BYTEPS;
    const double worker = worker_rate(&step->spec->cluster), rate = nic_rate(&step->spec->cluster);
    double worker_frac = 1, server_frac = 1;
    plan->machine_count = plan->workers + (own ? asked->servers : 0);
    plan->server_count = asked->servers + (shared ? plan->workers : 0);
    if (shared) {
        sim_servers_placement(plan->workers, asked->servers, &worker_frac, &server_frac);
    }
    SimServerMachine *machines = ORR_ARENA_NEW(step->arena, SimServerMachine, plan->machine_count);
    SimServer *servers = ORR_ARENA_NEW(step->arena, SimServer, plan->server_count);
    for (int i = 0; i < plan->machine_count; i++) {
        const double own_nic = asked->nic_bytes_per_s > 0 ? asked->nic_bytes_per_s : rate;
        const double nic = i < plan->workers ? worker : own_nic;
        machines[i] = (SimServerMachine){.up_bytes_per_s = nic, .down_bytes_per_s = nic};
    }
    for (int i = 0; i < plan->server_count; i++) {
        const bool dedicated = own && i < asked->servers;
        servers[i].machine = dedicated ? plan->workers + i : own ? i - asked->servers : i;
        servers[i].weight = dedicated ? server_frac : worker_frac;
    }
    plan->machines = machines;
    plan->servers = servers;
}

static SimServerPlan server_plan(const Step *step)
{
    const Spec *spec = step->spec;
    const SpecServers *asked = &spec->parallel.servers;
    const bool drifts = asked->spread != SPEC_SPREAD_NONE || asked->mode != SPEC_SERVERS_SYNC;
    SimServerPlan plan = {.layers = make_layers(step),
                          .layer_count = step->plan->stages[0].segment_count,
                          .workers = spec->cluster.nodes > 1 ? spec->cluster.nodes : spec_gpus(spec),
                          .scheme = (SimServerScheme)asked->scheme,
                          .mode = (SimServerMode)asked->mode,
                          .staleness = asked->staleness,
                          .barrier = asked->barrier,
                          .partition_bytes = llround(asked->partition_bytes),
                          .credit_bytes = llround(asked->credit_bytes),
                          .startup_ps = sim_ps(asked->startup_s),
                          .flow_bytes_per_s = asked->flow_bytes_per_s,
                          .incast_frac = asked->incast_frac,
                          .sum_bytes_per_s = asked->sum_bytes_per_s,
                          .update_bytes_per_s = asked->update_bytes_per_s,
                          .local_ps_per_byte = local_ps_per_byte(spec),
                          .spread = (SimServerSpread)asked->spread,
                          .spread_frac = asked->spread_frac,
                          .spread_lasts = asked->spread_lasts,
                          .seed = (uint64_t)asked->seed,
                          .warm_iterations = drifts ? WARM_DRIFTING : WARM,
                          .iterations = asked->iterations};
    place_servers(step, &plan);
    place_pods(spec, &plan);
    return plan;
}

static bool is_small(const SimServerPlan *plan, GError **error)
{
    double parts = 0;
    for (int i = 0; i < plan->layer_count; i++) {
        const double bytes = (double)MAX(plan->layers[i].push_bytes, plan->layers[i].pull_bytes);
        parts += plan->partition_bytes > 0 ? ceil(bytes / (double)plan->partition_bytes) : bytes > 0;
    }
    const double connections = (double)plan->workers * plan->server_count;
    const double transfers = parts * plan->workers + connections;
    if (transfers > MOST_TRANSFERS)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "parallel.parameter_server.partition_bytes: %" G_GINT64_FORMAT
                        " makes %.3g transfers an iteration with %d workers; give larger parts",
                        plan->partition_bytes, transfers, plan->workers);
    const double shares = transfers * connections * plan->machine_count;
    const double most = floor(MOST_SHARES / shares) - plan->warm_iterations;
    return plan->iterations <= fmax(1, most) ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "parallel.parameter_server.iterations: %d with %d workers and %d servers would take "
                    "about %.0f s "
                    "to simulate; give %.0f, larger partition_bytes, or fewer workers",
                    plan->iterations, plan->workers, plan->server_count,
                    20 * shares * (plan->warm_iterations + plan->iterations) / MOST_SHARES, fmax(1, most));
}

/* What compresses and restores, in the layers above but not in the plan, counts as communication. */
static int64_t compute_ps(const Step *step)
{
    const SimStage *stage = &step->plan->stages[0];
    int64_t sum_ps = 0;
    for (int i = 0; i < stage->segment_count; i++) {
        sum_ps = sim_sum(sum_ps, forward_ps(&stage->segments[i]));
        sum_ps = sim_sum(sum_ps, backward_ps(&stage->segments[i]));
    }
    return sim_product(sum_ps, step->plan->shape.microbatches);
}

/* The optimizer is the servers'. */
static bool run_servers(Step *step, GError **error)
{
    const SimServerPlan plan = server_plan(step);
    SimServerResult *result = ORR_ARENA_NEW(step->arena, SimServerResult, 1);
    SimRankPlan *rank = &step->plan->ranks[0];
    if (!is_small(&plan, error) || !sim_servers_run(&plan, step->arena, result, error)) {
        return false;
    }
    result->compute_ps = MIN(result->step_ps, compute_ps(step));
    result->exposed_ps = result->step_ps - result->compute_ps;
    rank->optimizer = (SimWork){0};
    rank->optimizer.part_ps[SIM_PART_DATA_COMM] = result->exposed_ps;
    rank->static_bytes[SIM_MEM_OPTIMIZER] = 0;
    rank->moments_bytes = 0;
    step->plan->servers = result;
    return true;
}

/* torch.nn.DataParallel: GPU 0 sends weights to the others each step, takes their outputs and gradients, adds and steps.
 *   (n - 1)(weights + gradients + outputs) / B through its port
 * Ignored: that one process launches the kernels of all GPUs */
static void run_single_process(Step *step)
{
    const Spec *spec = step->spec;
    const SpecCluster *cluster = &spec->cluster;
    const SimStage *stage = &step->plan->stages[0];
    const double rate = cluster->scale_up_bytes_per_s > 0 ? cluster->scale_up_bytes_per_s
                                                          : cluster->accelerator.host_link_bytes_per_s;
    const double outputs = spec->model.list.text != NULL
                               ? (double)stage->segments[stage->segment_count - 1].activation_bytes
                               : cost_result_bytes(&step->shape);
    double count = 0;
    for (int i = 0; i < stage->segment_count; i++) {
        count += cost_weights_count(&step->params[0][i].weights);
    }
    const double bytes =
        (spec->parallel.data - 1) * (count * (cost_weight_wire_bytes(spec) + cost_gradient_wire_bytes(spec)) +
                                     outputs * step->plan->shape.microbatches);
    sim_work_spend(&step->plan->ranks[0].optimizer, SIM_PART_DATA_COMM, rate > 0 ? sim_ps(bytes / rate) : 0);
}

bool step_apply_scheme(Step *step, GError **error)
{
    switch (step->spec->parallel.data_scheme) {
    case SPEC_DATA_PARAMETER_SERVER:
        return run_servers(step, error);
    case SPEC_DATA_SINGLE_PROCESS:
        run_single_process(step);
        return true;
    default:
        return true;
    }
}
