/* program/servers_setup.c - what a run over parameter servers starts from: layers cut into parts, parts dealt to servers. */
#include <math.h>

#include "program/servers_state.h"

/* Parts of a layer: 0 where it has nothing to send. */
static int parts_of(const SimServerPlan *plan, const SimServerLayer *layer)
{
    const int64_t bytes = MAX(layer->push_bytes, layer->pull_bytes), most = plan->partition_bytes;
    if (bytes <= 0) {
        return 0;
    }
    return most > 0 ? (int)((bytes + most - 1) / most) : 1;
}

/* The server that has least for its weight; of several the first. */
static int least_loaded(const SimServerPlan *plan, const double *load, double bytes)
{
    int best = -1;
    double least = 0;
    for (int i = 0; i < plan->server_count; i++) {
        const double weight = plan->servers[i].weight;
        const double would = weight > 0 ? (load[i] + bytes) / weight : INFINITY;
        if (weight > 0 && (best < 0 || would < least * (1 - 1e-12))) {
            best = i;
            least = would;
        }
    }
    return best;
}

static void cut_layers(Servers *s, OrrArena *arena)
{
    const SimServerPlan *plan = s->plan;
    double *load = ORR_ARENA_NEW(arena, double, plan->server_count);
    s->layer_parts = ORR_ARENA_NEW(arena, int, plan->layer_count);
    for (int i = 0; i < plan->layer_count; i++) {
        s->layer_parts[i] = parts_of(plan, &plan->layers[i]);
        s->part_count += s->layer_parts[i];
    }
    s->parts = ORR_ARENA_NEW(arena, Part, s->part_count);
    for (int i = 0, next = 0; i < plan->layer_count; i++) {
        const SimServerLayer *layer = &plan->layers[i];
        const double whole = (double)MAX(layer->push_bytes, layer->pull_bytes);
        const double size = plan->partition_bytes > 0 ? (double)plan->partition_bytes : whole;
        double left = whole;
        for (int k = 0; k < s->layer_parts[i]; k++, next++) {
            const double bytes = fmin(size, left);
            const int server = least_loaded(plan, load, bytes);
            load[server] += bytes;
            left -= bytes;
            s->parts[next] = (Part){.layer = i,
                                    .server = server,
                                    .bytes = {bytes * (double)layer->push_bytes / whole,
                                              bytes * (double)layer->pull_bytes / whole}};
        }
    }
}

static Links links_of(const Servers *s, int32_t id)
{
    const int machines = s->plan->machine_count, pod = s->plan->pod_machines;
    const int direction = id % DIRECTIONS, server = id / DIRECTIONS % s->plan->server_count;
    const int worker = id / DIRECTIONS / s->plan->server_count, other = s->plan->servers[server].machine;
    const int up = direction == PUSH ? worker : other, down = direction == PUSH ? other : worker;
    Links links = {.at = {up, machines + down}, .count = 2};
    if (pod > 0 && up / pod != down / pod) {
        links.at[2] = 2 * machines + up / pod;
        links.at[3] = 2 * machines + s->pods + down / pod;
        links.count = 4;
    }
    return links;
}

static void make_connections(Servers *s, OrrArena *arena)
{
    const int count = s->plan->workers * s->plan->server_count * DIRECTIONS;
    int *served = ORR_ARENA_NEW(arena, int, s->plan->server_count);
    for (int i = 0; i < s->part_count; i++) {
        served[s->parts[i].server]++;
    }
    s->connections = ORR_ARENA_NEW(arena, Connection, count);
    s->links = ORR_ARENA_NEW(arena, Links, count);
    for (int i = 0; i < count; i++) {
        const int parts = MAX(1, served[i / DIRECTIONS % s->plan->server_count]);
        s->links[i] = links_of(s, i);
        s->connections[i].capacity = parts;
        s->connections[i].waiting = ORR_ARENA_NEW(arena, int32_t, parts);
        s->connections[i].key = ORR_ARENA_NEW(arena, int64_t, parts);
        s->connections[i].handed = ORR_ARENA_NEW(arena, int32_t, parts);
    }
    s->active = ORR_ARENA_NEW(arena, int32_t, count + 1);
    s->frozen = ORR_ARENA_NEW(arena, bool, count);
    s->queue = sim_eventq_new(arena, connection_event(s, count));
}

/* Uplinks of a pod: for as many ports as it has at the rate of what hangs there, over the ratio. */
static double pod_rate(const SimServerPlan *plan, int pod)
{
    const int first = pod * plan->pod_machines, last = MIN(first + plan->pod_machines, plan->machine_count);
    double sum = 0;
    for (int i = first; i < last; i++) {
        sum += plan->machines[i].up_bytes_per_s > 0 ? plan->machines[i].up_bytes_per_s : INFINITY;
    }
    return sum / (last - first) * plan->pod_machines / plan->pod_over_ratio;
}

Servers *servers_new(const SimServerPlan *plan, OrrArena *arena)
{
    Servers *s = ORR_ARENA_NEW(arena, Servers, 1);
    s->plan = plan;
    cut_layers(s, arena);
    s->workers = ORR_ARENA_NEW(arena, Worker, plan->workers);
    for (int i = 0; i < plan->workers; i++) {
        s->workers[i].layer_back = ORR_ARENA_NEW(arena, int32_t, plan->layer_count);
        s->workers[i].first_iteration = -1;
        s->workers[i].last_op = -1;
    }
    s->stage = ORR_ARENA_NEW(arena, uint8_t, (size_t)plan->workers * (size_t)s->part_count * DIRECTIONS);
    s->arrived = ORR_ARENA_NEW(arena, int32_t, s->part_count);
    s->server_free_ps = ORR_ARENA_NEW(arena, int64_t, plan->server_count);
    s->server_busy_ps = ORR_ARENA_NEW(arena, int64_t, plan->server_count);
    s->up_bytes = ORR_ARENA_NEW(arena, double, plan->machine_count);
    s->down_bytes = ORR_ARENA_NEW(arena, double, plan->machine_count);
    s->pods =
        plan->pod_machines > 0 ? (plan->machine_count + plan->pod_machines - 1) / plan->pod_machines : 0;
    s->pod_rate = ORR_ARENA_NEW(arena, double, s->pods);
    for (int i = 0; i < s->pods; i++) {
        s->pod_rate[i] = pod_rate(plan, i) * 1e-12;
    }
    s->free_rate = ORR_ARENA_NEW(arena, double, 2 * (plan->machine_count + s->pods));
    s->users = ORR_ARENA_NEW(arena, int32_t, 2 * (plan->machine_count + s->pods));
    s->ops = ORR_ARENA_NEW(arena, SimServerOp, SIM_SERVERS_SHOWN_OPS);
    make_connections(s, arena);
    return s;
}
