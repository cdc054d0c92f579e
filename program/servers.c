/* program/servers.c - workers, servers and the clock of a run over parameter servers. */
#include <math.h>

#include "program/servers_state.h"

void sim_servers_placement(int workers, int servers, double *ret_worker_frac, double *ret_server_frac)
{
    const double n = workers, k = MIN(servers, workers), all = n * n + k * n - 2 * k;
    *ret_worker_frac = (n - k) / all;
    *ret_server_frac = k > 0 ? 2 * (n - 1) / all * k / servers : 0;
}

/* --- worker's compute --- */

static void start_all(Servers *s)
{
    for (int i = 0; i < s->plan->workers; i++) {
        servers_start_compute(s, i);
    }
}

/* --- pushes --- */

static void push_part(Servers *s, int worker, int part)
{
    if (s->plan->local_ps_per_byte > 0) {
        servers_pass_local(s, worker, part, PUSH);
    } else {
        servers_queue(s, worker, part, PUSH);
    }
}

static void push_layer(Servers *s, int worker, int layer)
{
    int first = 0;
    for (int i = 0; i < layer; i++) {
        first += s->layer_parts[i];
    }
    for (int i = 0; i < s->layer_parts[layer]; i++) {
        push_part(s, worker, first + i);
    }
}

static void note_iteration(Servers *s, Worker *worker)
{
    const SimServerPlan *plan = s->plan;
    if (!s->measuring && worker->iteration == plan->warm_iterations) {
        s->measuring = true;
        s->window_ps = s->now_ps;
        for (int i = 0; i < plan->machine_count; i++) {
            s->up_bytes[i] = s->down_bytes[i] = 0;
        }
    }
    const int last = plan->warm_iterations + plan->iterations;
    if (s->measuring && worker->iteration <= last) {
        if (worker->first_iteration < 0) {
            worker->first_iteration = worker->iteration;
            worker->first_end_ps = s->now_ps;
            worker->compute_ps = 0;
        }
        worker->last_iteration = worker->iteration;
        worker->last_end_ps = s->now_ps;
        worker->compute_done_ps = worker->compute_ps;
    }
    s->finished += worker->iteration == last ? 1 : 0;
    s->done = s->finished >= (plan->mode == SIM_SERVERS_SYNC ? plan->workers : 1);
}

static void end_iteration(Servers *s, int index)
{
    Worker *worker = &s->workers[index];
    worker->at = 0;
    worker->iteration++;
    note_iteration(s, worker);
    if (s->plan->scheme == SIM_SERVERS_NAIVE) {
        for (int layer = s->plan->layer_count - 1; layer >= 0; layer--) {
            push_layer(s, index, layer);
        }
    }
    if (s->plan->mode == SIM_SERVERS_BOUNDED) {
        start_all(s);
    }
}

static void compute_ends(Servers *s, int index)
{
    Worker *worker = &s->workers[index];
    const int layers = s->plan->layer_count, layer = 2 * layers - 1 - worker->at;
    worker->busy = false;
    worker->at++;
    if (worker->at > layers) { /* a backward: its weights are used up, its gradient may leave */
        worker->back -= worker->layer_back[layer];
        worker->layer_back[layer] = 0;
        if (s->plan->scheme != SIM_SERVERS_NAIVE) {
            push_layer(s, index, layer);
        }
    }
    if (worker->at == 2 * layers) {
        end_iteration(s, index);
    }
    servers_start_compute(s, index);
}

/* --- servers --- */

static void note_staleness(Servers *s, const Worker *worker)
{
    const int64_t others = s->updates - worker->version;
    s->updates++;
    if (s->measuring) {
        s->iterations++;
        s->staleness_sum += (double)others;
        s->staleness_max = MAX(s->staleness_max, (int)others);
        s->staleness[MIN(others, SIM_STALENESS_BINS - 1)]++;
    }
}

/* A gradient of one worker is in the servers' sum. */
static void gradient_summed(Servers *s, int index, int part)
{
    const SimServerPlan *plan = s->plan;
    Worker *worker = &s->workers[index];
    if (plan->mode == SIM_SERVERS_SYNC) {
        s->arrived[part]++;
        if (s->arrived[part] == plan->workers) {
            s->arrived[part] = 0;
            servers_serve(s, s->parts[part].server, part_event(s, part),
                          servers_ps(s->parts[part].bytes[PUSH], plan->update_bytes_per_s));
        }
        return;
    }
    worker->gone++;
    const bool last = worker->gone == s->part_count;
    if (last) {
        worker->gone = 0;
        note_staleness(s, worker);
    }
    if (plan->scheme != SIM_SERVERS_NAIVE) {
        servers_queue(s, index, part, PULL);
        return;
    }
    for (int i = 0; last && i < s->part_count; i++) {
        servers_queue(s, index, i, PULL);
    }
}

/* Synchronous: the weights of a part are new. */
static void part_updated(Servers *s, int part)
{
    const bool naive = s->plan->scheme == SIM_SERVERS_NAIVE;
    s->applied++;
    const bool last = s->applied == s->part_count;
    if (last) {
        s->applied = 0;
    }
    for (int worker = 0; !naive && worker < s->plan->workers; worker++) {
        servers_queue(s, worker, part, PULL);
    }
    for (int worker = 0; naive && last && worker < s->plan->workers; worker++) {
        for (int i = 0; i < s->part_count; i++) {
            servers_queue(s, worker, i, PULL);
        }
    }
    if (last && s->measuring) {
        s->iterations += s->plan->workers;
        s->staleness[0] += s->plan->workers;
    }
}

static void message_moves(Servers *s, int32_t message)
{
    const int direction = message % DIRECTIONS, part = message / DIRECTIONS % s->part_count;
    const int worker = message / DIRECTIONS / s->part_count;
    switch ((Stage)s->stage[message]) {
    case STAGE_LOCAL:
        s->stage[message] = STAGE_IDLE;
        if (direction == PUSH) {
            servers_queue(s, worker, part, PUSH);
        } else {
            servers_part_back(s, worker, part);
        }
        return;
    case STAGE_STARTS:
        servers_started(s, worker, part, direction);
        return;
    case STAGE_SUMMED:
        s->stage[message] = STAGE_IDLE;
        gradient_summed(s, worker, part);
        return;
    default:
        g_assert_not_reached();
    }
}

static void handle(Servers *s, int32_t event)
{
    if (event < s->plan->workers) {
        compute_ends(s, event);
    } else if (event < part_event(s, 0)) {
        message_moves(s, event - s->plan->workers);
    } else if (event < connection_event(s, 0)) {
        part_updated(s, event - part_event(s, 0));
    } else {
        const int32_t id = event - connection_event(s, 0);
        const int direction = id % DIRECTIONS, server = id / DIRECTIONS % s->plan->server_count;
        const int worker = id / DIRECTIONS / s->plan->server_count;
        const int part = servers_flow_ends(s, id);
        servers_arrived(s, worker, part, direction);
        servers_next(s, worker, server, direction);
    }
}

/* --- the run --- */

static bool run(Servers *s)
{
    int32_t event = 0;
    start_all(s);
    while (!s->done && !s->overflow && sim_eventq_pop(s->queue, &s->now_ps, &event)) {
        do {
            handle(s, event);
        } while (sim_eventq_pop_at(s->queue, s->now_ps, &event));
        servers_rates(s);
    }
    return s->done && !s->overflow;
}

/* Fraction of the measuring window in which a worker's link was busy, transfers in flight at its end included. */
static double busy_frac(const Servers *s, const Worker *worker, int direction)
{
    const int64_t open_ps = s->now_ps - MAX(worker->busy_since_ps[direction], s->window_ps);
    const int64_t busy_ps = worker->busy_ps[direction] + (worker->on_way[direction] > 0 ? open_ps : 0);
    return (double)busy_ps / (double)(s->now_ps - s->window_ps);
}

static void fill_workers(const Servers *s, SimServerResult *out)
{
    const int workers = s->plan->workers;
    double rate = 0, compute = 0, push = 0, pull = 0;
    for (int i = 0; i < workers; i++) {
        const Worker *worker = &s->workers[i];
        const double took = (double)(worker->last_end_ps - worker->first_end_ps);
        const int count = worker->last_iteration - worker->first_iteration;
        if (worker->first_iteration < 0 || count == 0) {
            continue;
        }
        rate += count / took;
        compute += (double)worker->compute_done_ps / took / workers;
        push += busy_frac(s, worker, PUSH) / workers;
        pull += busy_frac(s, worker, PULL) / workers;
    }
    out->step_ps = (int64_t)llround(workers / rate);
    const double step = (double)out->step_ps;
    out->compute_ps = MIN(out->step_ps, (int64_t)llround(fmin(1, compute) * step));
    out->exposed_ps = out->step_ps - out->compute_ps;
    out->push_ps = (int64_t)llround(push * step);
    out->pull_ps = (int64_t)llround(pull * step);
}

static void fill_result(const Servers *s, SimServerResult *out)
{
    const double window = (double)(s->now_ps - s->window_ps);
    *out = (SimServerResult){
        .parts = s->part_count, .iterations = s->iterations, .ops = s->ops, .op_count = s->op_count};
    fill_workers(s, out);
    const double step = (double)out->step_ps;
    for (int i = 0; i < s->plan->server_count; i++) {
        const double busy = fmin(1, (double)s->server_busy_ps[i] / window);
        out->server_ps = MAX(out->server_ps, (int64_t)llround(busy * step));
    }
    for (int i = 0; i < s->plan->machine_count; i++) {
        out->nic_up_bytes = fmax(out->nic_up_bytes, s->up_bytes[i] / window * step);
        out->nic_down_bytes = fmax(out->nic_down_bytes, s->down_bytes[i] / window * step);
        out->sent_bytes += s->up_bytes[i];
        out->received_bytes += s->down_bytes[i];
    }
    out->staleness_mean = s->iterations > 0 ? s->staleness_sum / (double)s->iterations : 0;
    out->staleness_max = s->staleness_max;
    for (int i = 0; i < SIM_STALENESS_BINS; i++) {
        out->staleness[i] = s->staleness[i];
    }
}

bool sim_servers_run(const SimServerPlan *plan, OrrArena *arena, SimServerResult *ret_result, GError **error)
{
    Servers *s = servers_new(plan, arena);
    if (!run(s)) {
        return orr_fail(error, ORR_ERROR_INPUT,
                        "parameter servers: the run takes longer than the clock holds (9,223,372 s)");
    }
    fill_result(s, ret_result);
    return true;
}
