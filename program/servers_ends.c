/* program/servers_ends.c - what begins at a worker or a server: a pass of a layer, a sum, an update, a copy inside the machine. */
#include <math.h>

#include "base/draws.h"
#include "program/servers_state.h"
#include "sim/picoseconds.h"

void servers_at(Servers *s, int32_t event, int64_t delay_ps)
{
    if (delay_ps > INT64_MAX / 2 - s->now_ps) {
        s->overflow = true;
        return;
    }
    sim_eventq_push(s->queue, event, s->now_ps + delay_ps);
}

int64_t servers_ps(double bytes, double bytes_per_s)
{
    return bytes_per_s > 0 ? sim_ps(bytes / bytes_per_s) : 0;
}

/* What an iteration takes over its mean. A normal one is never below a tenth. */
static double draw_factor(const SimServerPlan *plan, int worker, int iteration)
{
    const uint64_t stream = (uint64_t)worker, index = plan->spread_lasts ? 0 : (uint64_t)iteration * 2;
    switch (plan->spread) {
    case SIM_SPREAD_NORMAL: {
        const double radius = sqrt(-2 * log(orr_draw_at(plan->seed, stream, index)));
        const double normal = radius * cos(2 * G_PI * orr_draw_at(plan->seed, stream, index + 1));
        return fmax(0.1, 1 + plan->spread_frac * normal);
    }
    case SIM_SPREAD_EXPONENTIAL:
        return -log(orr_draw_at(plan->seed, stream, index));
    default:
        return 1;
    }
}

static bool may_start(const Servers *s, const Worker *worker)
{
    const int layers = s->plan->layer_count;
    if (worker->at >= layers || worker->iteration == 0) {
        return true;
    }
    if (worker->at == 0 && s->plan->mode == SIM_SERVERS_BOUNDED) {
        for (int i = 0; i < s->plan->workers; i++) {
            if (worker->iteration - s->workers[i].iteration > s->plan->staleness) {
                return false;
            }
        }
    }
    const bool all = s->plan->barrier || s->plan->scheme == SIM_SERVERS_NAIVE;
    return all ? worker->back == s->part_count : worker->layer_back[worker->at] == s->layer_parts[worker->at];
}

void servers_note(Servers *s, int index, SimServerOpKind kind, int64_t start_ps, int64_t end_ps)
{
    Worker *worker = &s->workers[index];
    const bool passes = kind == SIM_SERVERS_FORWARD || kind == SIM_SERVERS_BACKWARD;
    const int room = passes ? SIM_SERVERS_SHOWN_OPS : SIM_SERVERS_SHOWN_OPS * 3 / 4;
    if (index >= SIM_SERVERS_SHOWN_WORKERS || worker->iteration >= SIM_SERVERS_SHOWN_ITERATIONS ||
        s->op_count >= room) {
        return;
    }
    SimServerOp *last = passes && worker->last_op >= 0 ? &s->ops[worker->last_op] : NULL;
    if (last != NULL && last->kind == kind && last->iteration == worker->iteration &&
        last->end_ps == start_ps) {
        last->end_ps = end_ps;
        return;
    }
    worker->last_op = passes ? s->op_count : worker->last_op;
    s->ops[s->op_count++] = (SimServerOp){start_ps, end_ps, index, worker->iteration, kind};
}

void servers_start_compute(Servers *s, int index)
{
    Worker *worker = &s->workers[index];
    const int layers = s->plan->layer_count;
    if (worker->busy || !may_start(s, worker)) {
        return;
    }
    if (worker->at == 0) {
        worker->factor = draw_factor(s->plan, index, worker->iteration);
    }
    if (worker->at == layers) {
        worker->version = worker->read;
    }
    const bool forward = worker->at < layers;
    const SimServerLayer *layer = &s->plan->layers[forward ? worker->at : 2 * layers - 1 - worker->at];
    const int64_t mean_ps = forward ? layer->forward_ps : layer->backward_ps;
    const int64_t ps = s->plan->spread == SIM_SPREAD_NONE
                           ? mean_ps
                           : (int64_t)llround(fmin((double)mean_ps * worker->factor, 8e18));
    worker->busy = true;
    servers_note(s, index, forward ? SIM_SERVERS_FORWARD : SIM_SERVERS_BACKWARD, s->now_ps,
                 s->now_ps + MIN(ps, INT64_MAX - s->now_ps));
    worker->compute_ps += s->measuring ? ps : 0;
    servers_at(s, index, ps);
}

static int64_t local_ps(const Servers *s, int part, int direction)
{
    return (int64_t)llround(s->parts[part].bytes[direction] * s->plan->local_ps_per_byte);
}

/* Inside the worker parts go one after the other. */
void servers_pass_local(Servers *s, int worker, int part, int direction)
{
    Worker *at = &s->workers[worker];
    const int32_t message = message_of(s, worker, part, direction);
    const int64_t start_ps = MAX(s->now_ps, at->local_free_ps[direction]);
    at->local_free_ps[direction] = start_ps + local_ps(s, part, direction);
    s->stage[message] = STAGE_LOCAL;
    servers_at(s, message_event(s, message), at->local_free_ps[direction] - s->now_ps);
}

void servers_serve(Servers *s, int server, int32_t event, int64_t ps)
{
    const int64_t start_ps = MAX(s->now_ps, s->server_free_ps[server]);
    s->server_free_ps[server] = start_ps + ps;
    s->server_busy_ps[server] += s->measuring ? ps : 0;
    servers_at(s, event, s->server_free_ps[server] - s->now_ps);
}

void servers_part_back(Servers *s, int index, int part)
{
    Worker *worker = &s->workers[index];
    worker->back++;
    worker->layer_back[s->parts[part].layer]++;
    servers_start_compute(s, index);
}

void servers_arrived(Servers *s, int worker, int part, int direction)
{
    const SimServerPlan *plan = s->plan;
    const int32_t message = message_of(s, worker, part, direction);
    if (direction == PUSH) {
        const double bytes = s->parts[part].bytes[PUSH];
        const int64_t sum_ps = servers_ps(bytes, plan->sum_bytes_per_s);
        const int64_t update_ps =
            plan->mode == SIM_SERVERS_SYNC ? 0 : servers_ps(bytes, plan->update_bytes_per_s);
        s->stage[message] = STAGE_SUMMED;
        servers_serve(s, s->parts[part].server, message_event(s, message), sum_ps + update_ps);
    } else if (plan->local_ps_per_byte > 0) {
        servers_pass_local(s, worker, part, PULL);
    } else {
        servers_part_back(s, worker, part);
    }
}
