/* network/analytic.c - seconds of a collective by its steps, each message at the rate of its route. */
#include <string.h>

#include "network/flows.h"
#include "network/ground.h"

typedef struct Port {
    int64_t bytes, begin_ps;
    int step;
} Port;

/* What is sent in one step over one link, the first or the last one of a route; begins with the first message. */
static Port *load_port(Port *ports, int32_t link, int step, int64_t bytes, int64_t begin_ps)
{
    Port *port = &ports[link];
    if (port->step != step + 1)
        *port = (Port){.step = step + 1, .begin_ps = begin_ps};
    port->bytes += bytes;
    port->begin_ps = MIN(port->begin_ps, begin_ps);
    return port;
}

typedef struct Pass {
    NetGround *ground;
    Port *out, *in; /* [links] */
    int64_t *ready, *then;
    int64_t pace_ps; /* that the last step took of every rank; -1: not of every rank the same */
    int64_t last_ps,
        again_ps; /* when the last rank is through; of it, by steps that went as the one before */
    bool keeps;   /* routes of this step, which was sent before, as far as there is room */
} Pass;

/* Adaptive routing may spread what a GPU with several ports sends, in ways that are not known here. */
static bool port_binds(const NetGround *g, int rank)
{
    return g->run->routing != NET_ROUTE_ADAPTIVE || !g->run->topology->vertices[g->vertex[rank]].relays;
}

/* One flow of a message: its own time, and that of the ports with what else they carry in this step. */
static void load(Pass *pass, const NetMessage *m, int64_t bytes, int step, const NetRoute *route)
{
    const NetGround *g = pass->ground;
    const NetLink *links = g->run->topology->links;
    const int64_t begin = MAX(pass->ready[m->from], pass->ready[m->to]) + route->latency_ps;
    int64_t end = begin;
    if (bytes > 0 && route->hops > 0) {
        const int32_t first = route->links[0], last = route->links[route->hops - 1];
        const Port *out = load_port(pass->out, first, step, bytes, begin);
        const Port *in = load_port(pass->in, last, step, bytes, begin);
        end += net_transfer_ps((double)bytes, (double)route->cap);
        const int64_t sent = net_transfer_ps((double)out->bytes, (double)links[first].bytes_per_s);
        const int64_t got = net_transfer_ps((double)in->bytes, (double)links[last].bytes_per_s);
        if (port_binds(g, m->from))
            pass->then[m->from] = MAX(pass->then[m->from], out->begin_ps + sent);
        if (port_binds(g, m->to))
            pass->then[m->to] = MAX(pass->then[m->to], in->begin_ps + got);
    }
    pass->then[m->from] = MAX(pass->then[m->from], end);
    pass->then[m->to] = MAX(pass->then[m->to], end);
}

static bool message(Pass *pass, const NetMessage *m, int step, GError **error)
{
    NetGround *g = pass->ground;
    NetRoute route;
    if (net_ground_streams(g, m->from)) {
        if (!net_ground_from_switch(g, m->from, m->to, &route, error))
            return false;
        load(pass, m, 0, step, &route);
        return true;
    }
    const int split = net_route_flows(g->routes, g->vertex[m->from], g->vertex[m->to]);
    for (int i = 0; i < split; i++) {
        if (!net_ground_route(g, m->from, m->to, i, &route, error))
            return false;
        load(pass, m, m->bytes / split + (i < m->bytes % split), step, &route);
        if (g->log != NULL)
            net_route_log_add(g->log, step, &route, net_routes_found(g->routes));
    }
    return true;
}

/* Of a step that is sent so many times, from `index` on; when each ended is known already. */
static void note_step(NetGround *g, const NetStep *step, int index, int times)
{
    NetStepTrace trace = {.messages = step->count};
    for (int r = 0; r < g->ranks; r++) {
        int64_t sent = 0;
        for (int i = step->first_of[r]; i < step->first_of[r + 1]; i++) {
            sent += step->messages[i].bytes;
            trace.largest_bytes = MAX(trace.largest_bytes, step->messages[i].bytes);
        }
        trace.bytes += sent;
        g->sent[r] += sent * times;
        const int count = step->first_of[r + 1] - step->first_of[r];
        g->most_messages[r] = MAX(g->most_messages[r], count);
    }
    g->result->messages += (int64_t)step->count * times;
    for (int s = index; s < index + times; s++) {
        trace.end_ps = g->result->steps[s].end_ps;
        g->result->steps[s] = trace;
    }
}

/* A step in which all ranks went on by the same time repeats itself when it is sent again, over the same routes. False: these
 * are wanted and not kept yet. */
static bool repeat(Pass *pass, int index)
{
    NetRouteLog *log = pass->ground->log;
    if (log != NULL && !net_route_log_again(log, index) && !pass->keeps) {
        net_route_log_keep(log, index, net_routes_found(pass->ground->routes));
        pass->keeps = true;
        return false;
    }
    pass->again_ps += pass->pace_ps;
    pass->last_ps += pass->pace_ps;
    return true;
}

static bool run_step(Pass *pass, const NetStep *step, int index, GError **error)
{
    const NetGround *g = pass->ground;
    memcpy(pass->then, pass->ready, sizeof(int64_t) * (gsize)g->ranks);
    for (int i = 0; i < step->count; i++)
        if (!message(pass, &step->messages[i], index, error))
            return false;
    pass->pace_ps = pass->then[0] - pass->ready[0];
    for (int r = 0; r < g->ranks; r++)
        if (pass->then[r] - pass->ready[r] != pass->pace_ps)
            pass->pace_ps = -1;
    memcpy(pass->ready, pass->then, sizeof(int64_t) * (gsize)g->ranks);
    for (int r = 0; r < g->ranks; r++)
        pass->last_ps = MAX(pass->last_ps, pass->ready[r] + pass->again_ps);
    return true;
}

/* A step and those after it that are known to be like it; returns how many, 0: it failed. */
static int run_alike(Pass *pass, const NetStep *step, int index, bool again, GError **error)
{
    NetGround *g = pass->ground;
    const NetRun *run = g->run;
    const int times =
        run->every_step ? 1 : 1 + net_steps_alike(run->algorithm, &run->shape, run->bytes, index);
    for (int s = index; s < index + times; s++) {
        again = pass->pace_ps >= 0 && (again || s > index);
        pass->keeps = pass->keeps && again;
        if (!(again && repeat(pass, s)) && !run_step(pass, step, s, error))
            return 0;
        g->result->steps[s].end_ps = pass->last_ps;
        if (pass->last_ps >= NET_LONGEST_PS) {
            net_ground_too_long(g, error);
            return 0;
        }
    }
    note_step(g, step, index, times);
    return times;
}

/* `steps`: two, at hand and before. */
static bool run_steps(Pass *pass, NetStep *steps, GError **error)
{
    NetGround *g = pass->ground;
    const NetRun *run = g->run;
    pass->pace_ps = -1;
    for (int s = 0, at = 0, times = 0; s < g->result->step_count; s += times, at = 1 - at) {
        net_step_fill(&steps[at], run->algorithm, &run->shape, run->bytes, s);
        times = run_alike(pass, &steps[at], s, s > 0 && net_step_same(&steps[at], &steps[1 - at]), error);
        if (times == 0)
            return false;
    }
    g->result->analytic_ps = pass->last_ps;
    return true;
}

bool net_analytic(NetGround *g, GError **error)
{
    Pass pass = {.ground = g};
    pass.out = g_new0(Port, g->run->topology->link_count);
    pass.in = g_new0(Port, g->run->topology->link_count);
    pass.ready = g_new0(int64_t, g->ranks);
    pass.then = g_new0(int64_t, g->ranks);
    NetStep steps[2] = {{0}};
    const bool ok = run_steps(&pass, steps, error);
    net_step_clear(&steps[0]);
    net_step_clear(&steps[1]);
    g_free(pass.out);
    g_free(pass.in);
    g_free(pass.ready);
    g_free(pass.then);
    return ok;
}
