/* program/servers_net.c - connections between workers and servers: who goes next, and how fast. */
#include <math.h>

#include "program/servers_state.h"

/* --- parts that wait --- */

/* Smaller leaves first: by arrival, or by layer and place in it. */
static int64_t key_of(Servers *s, int part)
{
    const bool priority = s->plan->scheme == SIM_SERVERS_PRIORITY;
    return priority ? part : s->sequence++;
}

static void swap(Connection *c, int a, int b)
{
    const int32_t part = c->waiting[a];
    const int64_t key = c->key[a];
    c->waiting[a] = c->waiting[b];
    c->key[a] = c->key[b];
    c->waiting[b] = part;
    c->key[b] = key;
}

static void heap_push(Connection *c, int32_t part, int64_t key)
{
    int at = c->waiting_count++;
    c->waiting[at] = part;
    c->key[at] = key;
    for (; at > 0 && c->key[(at - 1) / 2] > c->key[at]; at = (at - 1) / 2) {
        swap(c, at, (at - 1) / 2);
    }
}

static int32_t heap_pop(Connection *c)
{
    const int32_t part = c->waiting[0];
    int at = 0;
    c->waiting_count--;
    swap(c, 0, c->waiting_count);
    for (;;) {
        const int left = 2 * at + 1, right = left + 1;
        int least = at;
        if (left < c->waiting_count && c->key[left] < c->key[least]) {
            least = left;
        }
        if (right < c->waiting_count && c->key[right] < c->key[least]) {
            least = right;
        }
        if (least == at) {
            return part;
        }
        swap(c, at, least);
        at = least;
    }
}

/* --- handing over --- */

static bool is_local(const Servers *s, int worker, int server)
{
    return s->plan->servers[server].machine == worker;
}

static void note_on_way(Servers *s, Worker *worker, int direction, int by, double bytes)
{
    if (worker->on_way[direction] == 0) {
        worker->busy_since_ps[direction] = s->now_ps;
    }
    worker->on_way[direction] += by;
    worker->on_way_bytes[direction] += by * bytes;
    if (worker->on_way[direction] == 0) {
        worker->on_way_bytes[direction] = 0;
        servers_note(s, (int)(worker - s->workers), direction == PUSH ? SIM_SERVERS_PUSH : SIM_SERVERS_PULL,
                     worker->busy_since_ps[direction], s->now_ps);
        if (s->measuring) {
            worker->busy_ps[direction] += s->now_ps - MAX(worker->busy_since_ps[direction], s->window_ps);
        }
    }
}

/* The first part that waits on `connection` goes into the network, or straight to the server beside the worker. */
static void hand_over(Servers *s, int worker, int server, int direction, Connection *c)
{
    const int32_t part = heap_pop(c);
    const int32_t message = message_of(s, worker, part, direction);
    if (direction == PULL) {
        s->workers[worker].read = s->updates;
    }
    if (is_local(s, worker, server)) {
        servers_arrived(s, worker, part, direction);
        return;
    }
    c->handed[(c->handed_first + c->handed_count) % c->capacity] = part;
    c->handed_count++;
    note_on_way(s, &s->workers[worker], direction, 1, s->parts[part].bytes[direction]);
    s->stage[message] = STAGE_STARTS;
    if (s->plan->startup_ps > 0) {
        servers_at(s, message_event(s, message), s->plan->startup_ps);
    } else {
        servers_started(s, worker, part, direction);
    }
}

static bool has_credit(const Servers *s, int worker, int server, int direction, const Connection *c)
{
    const Worker *at = &s->workers[worker];
    const double bytes = s->parts[c->waiting[0]].bytes[direction];
    if (is_local(s, worker, server)) {
        return true;
    }
    if (s->plan->credit_bytes == 0) {
        return c->handed_count == 0;
    }
    return at->on_way[direction] == 0 || at->on_way_bytes[direction] + bytes <= (double)s->plan->credit_bytes;
}

/* The connection of a worker whose first part is the most urgent; -1: none waits. */
static int most_urgent(const Servers *s, int worker, int direction)
{
    int best = -1;
    int64_t key = 0;
    for (int server = 0; server < s->plan->server_count; server++) {
        const Connection *c = &s->connections[connection_of(s, worker, server, direction)];
        if (c->waiting_count > 0 && (best < 0 || c->key[0] < key)) {
            best = server;
            key = c->key[0];
        }
    }
    return best;
}

void servers_next(Servers *s, int worker, int server, int direction)
{
    for (;;) {
        const int at = s->plan->credit_bytes > 0 ? most_urgent(s, worker, direction) : server;
        Connection *c = at < 0 ? NULL : &s->connections[connection_of(s, worker, at, direction)];
        if (c == NULL || c->waiting_count == 0 || !has_credit(s, worker, at, direction, c)) {
            return;
        }
        hand_over(s, worker, at, direction, c);
    }
}

void servers_queue(Servers *s, int worker, int part, int direction)
{
    const int server = s->parts[part].server;
    heap_push(&s->connections[connection_of(s, worker, server, direction)], part, key_of(s, part));
    servers_next(s, worker, server, direction);
}

/* --- flowing --- */

/* The first of the parts handed over flows once its start-up is over. */
static void flow(Servers *s, int worker, int server, int direction)
{
    const int32_t id = connection_of(s, worker, server, direction);
    Connection *c = &s->connections[id];
    if (c->flows || c->handed_count == 0) {
        return;
    }
    const int part = c->handed[c->handed_first];
    if (s->stage[message_of(s, worker, part, direction)] != STAGE_STARTED) {
        return;
    }
    c->flows = true;
    c->left_bytes = s->parts[part].bytes[direction];
    c->rate = 0;
    c->since_ps = s->now_ps;
    c->active_index = s->active_count;
    s->active[s->active_count++] = id;
    s->rates_stale = true;
}

void servers_started(Servers *s, int worker, int part, int direction)
{
    s->stage[message_of(s, worker, part, direction)] = STAGE_STARTED;
    flow(s, worker, s->parts[part].server, direction);
}

int servers_flow_ends(Servers *s, int32_t id)
{
    Connection *c = &s->connections[id];
    const int direction = id % DIRECTIONS, server = id / DIRECTIONS % s->plan->server_count;
    const int worker = id / DIRECTIONS / s->plan->server_count;
    const int part = c->handed[c->handed_first];
    const Links *links = &s->links[id];
    s->up_bytes[links->at[0]] += s->parts[part].bytes[direction];
    s->down_bytes[links->at[1] - s->plan->machine_count] += s->parts[part].bytes[direction];
    c->flows = false;
    c->handed_first = (c->handed_first + 1) % c->capacity;
    c->handed_count--;
    s->active_count--;
    s->active[c->active_index] = s->active[s->active_count];
    s->connections[s->active[c->active_index]].active_index = c->active_index;
    s->rates_stale = true;
    note_on_way(s, &s->workers[worker], direction, -1, s->parts[part].bytes[direction]);
    flow(s, worker, server, direction);
    return part;
}

/* --- rates: max-min fair --- */

static void set_rate(Servers *s, int32_t id, double rate)
{
    Connection *c = &s->connections[id];
    s->frozen[id] = true;
    if (fabs(rate - c->rate) <= 1e-12 * rate) {
        return;
    }
    c->left_bytes = fmax(0, c->left_bytes - c->rate * (double)(s->now_ps - c->since_ps));
    c->since_ps = s->now_ps;
    c->rate = rate;
    sim_eventq_remove(s->queue, connection_event(s, id));
    const double ps = ceil(c->left_bytes / rate - 1e-3);
    if (ps > 9e18 - (double)s->now_ps) {
        s->overflow = true;
        return;
    }
    servers_at(s, connection_event(s, id), (int64_t)ps);
}

static void start_filling(Servers *s)
{
    const int machines = s->plan->machine_count;
    for (int i = 0; i < 2 * (machines + s->pods); i++) {
        s->users[i] = 0;
    }
    for (int i = 0; i < s->active_count; i++) {
        const Links *links = &s->links[s->active[i]];
        for (int k = 0; k < links->count; k++) {
            s->users[links->at[k]]++;
        }
        s->frozen[s->active[i]] = false;
    }
    for (int m = 0; m < machines; m++) {
        const SimServerMachine *machine = &s->plan->machines[m];
        const double crowd = 1 + s->plan->incast_frac * MAX(0, s->users[machines + m] - 1);
        s->free_rate[m] = machine->up_bytes_per_s > 0 ? machine->up_bytes_per_s * 1e-12 : INFINITY;
        s->free_rate[machines + m] =
            machine->down_bytes_per_s > 0 ? machine->down_bytes_per_s * 1e-12 / crowd : INFINITY;
    }
    for (int p = 0; p < s->pods; p++) {
        s->free_rate[2 * machines + p] = s->free_rate[2 * machines + s->pods + p] = s->pod_rate[p];
    }
}

/* The least share that any link in use can give each of its flows. */
static double least_share(const Servers *s)
{
    double least = s->plan->flow_bytes_per_s > 0 ? s->plan->flow_bytes_per_s * 1e-12 : 1e12;
    for (int i = 0; i < 2 * (s->plan->machine_count + s->pods); i++) {
        if (s->users[i] > 0) {
            least = fmin(least, s->free_rate[i] / s->users[i]);
        }
    }
    return least;
}

/* A flow over a link that is full is settled at `share`, which is gone from all of its links. */
static bool settle(Servers *s, int32_t id, double share)
{
    const Links *links = &s->links[id];
    bool full = false;
    for (int k = 0; k < links->count; k++) {
        full = full || s->users[links->at[k]] <= 0;
    }
    if (!full) {
        return false;
    }
    set_rate(s, id, share);
    for (int k = 0; k < links->count; k++) {
        const int at = links->at[k];
        s->free_rate[at] = fmax(0, s->free_rate[at] - share);
        s->users[at] += s->users[at] > 0 ? -1 : 1;
    }
    return true;
}

/* Flows of the links that give least (all, where the limit of a connection is less) are settled; their share is gone. */
void servers_rates(Servers *s)
{
    const int links = 2 * (s->plan->machine_count + s->pods);
    int left = s->active_count;
    if (!s->rates_stale) {
        return;
    }
    s->rates_stale = false;
    start_filling(s);
    while (left > 0) {
        const double share = least_share(s), full = share * (1 + 1e-9);
        const bool capped = s->plan->flow_bytes_per_s > 0 && full >= s->plan->flow_bytes_per_s * 1e-12;
        for (int i = 0; i < links; i++) { /* marks the links that are full: negative users */
            if (s->users[i] > 0 && (capped || share >= 1e12 || s->free_rate[i] <= full * s->users[i])) {
                s->users[i] = -s->users[i];
            }
        }
        for (int i = 0; i < s->active_count; i++) {
            if (!s->frozen[s->active[i]] && settle(s, s->active[i], share)) {
                left--;
            }
        }
    }
}
