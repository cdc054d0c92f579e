/* network/replay.c - a collective on a fabric. */
#include "network/replay.h"

#include <string.h>

#include "network/flows.h"
#include "network/ground.h"

/* The vertex at which a switch of the network's own sums up: the one whose farthest rank is nearest; -1: there is none. */
static int net_central_switch(const NetTopology *t, const int32_t *gpus, int count)
{
    g_autofree int *far = g_new0(int, t->vertex_count), *distance = g_new(int, t->vertex_count),
                   *queue = g_new(int, t->vertex_count);
    for (int i = 0; i < count; i++) {
        int head = 0, tail = 0;
        for (int v = 0; v < t->vertex_count; v++)
            distance[v] = -1;
        distance[gpus[i]] = 0;
        queue[tail++] = gpus[i];
        while (head < tail) {
            const int v = queue[head++];
            for (int e = t->out_of[v]; e < t->out_of[v + 1]; e++) {
                const NetLink *link = &t->links[t->out_links[e]];
                if (link->bytes_per_s == 0 || distance[link->to] >= 0 || t->vertices[link->to].gpu)
                    continue;
                distance[link->to] = distance[v] + 1;
                queue[tail++] = link->to;
            }
        }
        for (int v = 0; v < t->vertex_count; v++)
            far[v] = distance[v] < 0 ? G_MAXINT / 2 : MAX(far[v], distance[v]);
    }
    int best = -1;
    for (int v = t->gpus; v < t->vertex_count; v++)
        if (far[v] < G_MAXINT / 2 && (best < 0 || far[v] < far[best]))
            best = v;
    return best;
}

static bool place_switches(NetGround *g, GError **error)
{
    const int ranks = g->run->shape.ranks, switches = g->ranks - ranks,
              each = switches > 0 ? ranks / switches : 0;
    g_autofree int32_t *members = g_new(int32_t, ranks);
    for (int s = 0; s < switches; s++) {
        for (int i = 0; i < each; i++) /* switch s sums what ranks s, s + switches ... have */
            members[i] = g->vertex[s + i * switches];
        g->vertex[ranks + s] = net_central_switch(g->run->topology, members, each);
        if (g->vertex[ranks + s] < 0)
            return orr_fail(error, ORR_ERROR_INPUT, "%s: no switch that could sum reaches all %d ranks of %s",
                            g->run->topology->name, each, g->run->algorithm->name);
    }
    return true;
}

static bool place_ranks(NetGround *g, GError **error)
{
    const NetRun *run = g->run;
    if (run->shape.ranks > run->topology->gpus)
        return orr_fail(error, ORR_ERROR_INPUT, "%s has %d GPUs, not %d", run->topology->name,
                        run->topology->gpus, run->shape.ranks);
    for (int r = 0; r < run->shape.ranks; r++) {
        g->vertex[r] = run->place != NULL ? run->place[r] : r;
        if (g->vertex[r] < 0 || g->vertex[r] >= run->topology->gpus)
            return orr_fail(error, ORR_ERROR_INPUT, "rank %d is placed on GPU %d of %d", r, g->vertex[r],
                            run->topology->gpus);
    }
    return place_switches(g, error);
}

/* Flows at once. */
#define MOST_SLOTS (1 << 21)

/* --- flows: ranks go through their steps on their own --- */

/* A step of all ranks while some are in it: from the first rank that reaches it to the last that leaves. */
typedef struct Open {
    NetStep step;
    int32_t *awaited; /* [ranks] messages on their way or not sent yet */
    int32_t *held; /* [ranks] message to a rank that is not there yet: the last one, 1 + its index; 0: none */
    int32_t *before;  /* [messages] the one held before it, in the same way */
    int inside;       /* ranks that are not through */
    int64_t flows;    /* of all its messages */
    int64_t begun_ps; /* when the first of them was sent; -1 */
} Open;

/* The step before the one at hand, where all ranks began it at once. */
typedef struct Common {
    NetStep step;
    int64_t begun_ps;
    int64_t shared; /* net_flows_shared() by then */
    int index;      /* -1: there is none */
} Common;

typedef struct Walk {
    NetGround *ground;
    NetFlows *flows;
    Open **open;  /* [steps] */
    int *at;      /* [ranks] step that a rank is in */
    int *sending; /* [ranks] flows of that step under way, messages that are held */
    int32_t *free_slots;
    int32_t slots, free_count;
    int32_t *from, *to, *step_of; /* [slots] */
    int64_t now_ps, skipped_ps;   /* of the flows; taken by steps that went as the one before */
    Common before;
    int closed; /* step that all ranks have left since the last flow ended; -1 */
} Walk;

static Open *open_step(Walk *w, int index)
{
    NetGround *g = w->ground;
    if (w->open[index] != NULL)
        return w->open[index];
    Open *open = g_new0(Open, 1);
    net_step_fill(&open->step, g->run->algorithm, &g->run->shape, g->run->bytes, index);
    open->awaited = g_new0(int32_t, g->ranks);
    open->held = g_new0(int32_t, g->ranks);
    open->before = g_new(int32_t, MAX(open->step.count, 1));
    for (int i = 0; i < open->step.count; i++) {
        const NetMessage *m = &open->step.messages[i];
        const int split = net_route_flows(g->routes, g->vertex[m->from], g->vertex[m->to]);
        open->awaited[m->to] += split;
        open->flows += split;
    }
    open->inside = g->ranks;
    open->begun_ps = -1;
    w->open[index] = open;
    return open;
}

static void close_step(Walk *w, int index)
{
    Open *open = w->open[index];
    NetStepTrace *trace = &w->ground->result->steps[index];
    trace->end_ps = w->now_ps + w->skipped_ps;
    w->closed = index;
    if (index == w->before.index) {
        const NetStep last = w->before.step;
        w->before.step = open->step;
        open->step = last;
    }
    net_step_clear(&open->step);
    g_free(open->awaited);
    g_free(open->held);
    g_free(open->before);
    g_free(open);
    w->open[index] = NULL;
}

static bool find_route(NetGround *g, const NetMessage *m, int step, int index, int flow, NetRoute *ret_route,
                       GError **error)
{
    if (g->log != NULL && net_route_log_find(g->log, step, index, ret_route))
        return true;
    return net_ground_streams(g, m->from) ? net_ground_from_switch(g, m->from, m->to, ret_route, error)
                                          : net_ground_route(g, m->from, m->to, flow, ret_route, error);
}

/* Message `index` of a step. */
static bool send_message(Walk *w, Open *open, int index, int step, GError **error)
{
    NetGround *g = w->ground;
    const NetMessage *m = &open->step.messages[index];
    const int split = net_route_flows(g->routes, g->vertex[m->from], g->vertex[m->to]);
    const bool streams = net_ground_streams(g, m->from);
    const int64_t bytes = streams ? 0 : m->bytes;
    if (open->begun_ps < 0)
        open->begun_ps = w->now_ps;
    for (int i = 0; i < split; i++) {
        NetRoute route;
        if (!find_route(g, m, step, index, i, &route, error))
            return false;
        const int32_t slot = w->free_slots[--w->free_count];
        w->from[slot] = m->from;
        w->to[slot] = m->to;
        w->step_of[slot] = step;
        w->sending[m->from]++;
        g->result->flows++;
        net_flows_start(w->flows, slot, route.links, route.hops, bytes / split + (i < bytes % split),
                        route.latency_ps);
    }
    return true;
}

/* What waits for a rank to be in this step. */
static bool send_held(Walk *w, Open *open, int rank, GError **error)
{
    int32_t next = open->held[rank];
    open->held[rank] = 0;
    while (next > 0) {
        const int index = next - 1;
        next = open->before[index];
        w->sending[open->step.messages[index].from]--;
        if (!send_message(w, open, index, w->at[rank], error))
            return false;
    }
    return true;
}

/* A message begins when its sender and its receiver are both in its step. */
static bool begin_step(Walk *w, int rank, GError **error)
{
    const int at = w->at[rank];
    if (at == w->ground->result->step_count)
        return true;
    Open *open = open_step(w, at);
    for (int i = open->step.first_of[rank]; i < open->step.first_of[rank + 1]; i++) {
        const int to = open->step.messages[i].to;
        if (w->at[to] == at) {
            if (!send_message(w, open, i, at, error))
                return false;
            continue;
        }
        open->before[i] = open->held[to];
        open->held[to] = i + 1;
        w->sending[rank]++;
    }
    return send_held(w, open, rank, error);
}

/* Moves a rank on as far as it can go now. */
static bool move_on(Walk *w, int rank, GError **error)
{
    while (w->at[rank] < w->ground->result->step_count) {
        const int step = w->at[rank];
        Open *open = open_step(w, step);
        if (w->sending[rank] > 0 || open->awaited[rank] > 0)
            return true;
        w->at[rank]++;
        if (--open->inside == 0)
            close_step(w, step);
        if (!begin_step(w, rank, error))
            return false;
    }
    return true;
}

/* --- steps that go as the one before --- */

/* Links have carried the messages of a step so many times more. */
static bool carry_again(Walk *w, const Open *open, int index, int times, GError **error)
{
    NetGround *g = w->ground;
    for (int i = 0; i < open->step.count; i++) {
        const NetMessage *m = &open->step.messages[i];
        const int split = net_route_flows(g->routes, g->vertex[m->from], g->vertex[m->to]);
        g->result->flows += (int64_t)split * times;
        g->result->repeated_flows += (int64_t)split * times;
        for (int f = 0; f < split && !net_ground_streams(g, m->from); f++) {
            NetRoute route;
            if (!find_route(g, m, index, i, f, &route, error))
                return false;
            const int64_t bytes = m->bytes / split + (f < m->bytes % split);
            net_flows_carry(w->flows, route.links, route.hops, bytes * times);
        }
    }
    return true;
}

/* Number of following steps with the same sends as step `index`. */
static int count_likes(Walk *w, int index)
{
    const NetRun *run = w->ground->run;
    NetStep next = {0};
    int likes = net_steps_alike(run->algorithm, &run->shape, run->bytes, index);
    while (index + likes + 1 < w->ground->result->step_count) {
        net_step_fill(&next, run->algorithm, &run->shape, run->bytes, index + likes + 1);
        if (!net_step_same(&next, &w->open[index]->step))
            break;
        likes += 1 + net_steps_alike(run->algorithm, &run->shape, run->bytes, index + likes + 1);
    }
    net_step_clear(&next);
    return likes;
}

/* The step at hand becomes one that is `steps` further on, each of which takes as long as the one before. */
static void step_over(Walk *w, int index, int steps, int64_t each_ps)
{
    NetGround *g = w->ground;
    for (int s = 0; s < steps; s++) {
        w->skipped_ps += each_ps;
        g->result->steps[index + s].end_ps = w->now_ps + w->skipped_ps;
    }
    for (int r = 0; r < g->ranks; r++)
        w->at[r] += steps;
    for (int32_t slot = 0; slot < w->slots; slot++)
        w->step_of[slot] += steps;
    w->open[index + steps] = w->open[index];
    w->open[index] = NULL;
}

/* All ranks are in the step, all its messages were sent in this instant and are under way, and nothing else is. */
static bool begins_at_once(const Walk *w, const Open *open)
{
    return open != NULL && open->inside == w->ground->ranks && open->flows > 0 &&
           open->begun_ps == w->now_ps && open->flows == w->slots - w->free_count;
}

/* A step that begins at once goes as the one before if that did too, sent the same and met nobody on any link: where
 * links are shared the last picosecond may hang on the order in which flows began. */
static bool repeat(Walk *w, GError **error)
{
    NetGround *g = w->ground;
    const int index = w->closed + 1;
    const Common before = w->before;
    w->closed = -1;
    w->before.index = -1;
    if (g->run->every_step || g->run->routing == NET_ROUTE_ADAPTIVE)
        return true;
    const Open *open = w->open[index];
    if (!begins_at_once(w, open))
        return true;
    w->before.index = index;
    w->before.begun_ps = w->now_ps;
    w->before.shared = net_flows_shared(w->flows);
    if (before.index != index - 1 || before.shared != w->before.shared ||
        !net_step_same(&before.step, &open->step))
        return true;
    const int likes = count_likes(w, index);
    if (likes == 0)
        return true;
    if (!carry_again(w, open, index, likes, error))
        return false;
    step_over(w, index, likes, w->now_ps - before.begun_ps);
    w->before.index += likes;
    return true;
}

static bool too_many(const NetGround *g, GError **error)
{
    return orr_fail(error, ORR_ERROR_INPUT,
                    "--ranks: messages of %s meet on links of %s, so that no step goes as the one before: "
                    "after %" G_GINT64_FORMAT
                    " flows this was given up; an algorithm of fewer steps, such as hierarchical-halving, or "
                    "--fidelity analytic would do",
                    g->run->algorithm->name, g->run->topology->name, g->run->most_flows);
}

static bool walk(Walk *w, GError **error)
{
    NetGround *g = w->ground;
    int32_t slot = 0;
    for (int r = 0; r < g->ranks; r++)
        if (!begin_step(w, r, error))
            return false;
    for (int r = 0; r < g->ranks; r++)
        if (!move_on(w, r, error))
            return false;
    while (net_flows_next(w->flows, &w->now_ps, &slot)) {
        const int from = w->from[slot], to = w->to[slot];
        if (w->now_ps + w->skipped_ps >= NET_LONGEST_PS)
            return net_ground_too_long(g, error);
        if (g->run->most_flows > 0 && g->result->flows - g->result->repeated_flows > g->run->most_flows)
            return too_many(g, error);
        w->free_slots[w->free_count++] = slot;
        w->sending[from]--;
        w->open[w->step_of[slot]]->awaited[to]--;
        if (!move_on(w, from, error) || !move_on(w, to, error))
            return false;
        if (w->closed >= 0 && !repeat(w, error))
            return false;
    }
    g->result->flow_ps = w->now_ps + w->skipped_ps;
    return true;
}

static void fullest(NetGround *g, const NetFlows *flows)
{
    double most = 0;
    for (int l = 0; l < g->run->topology->link_count; l++) {
        const int64_t carried = net_flows_carried(flows, l);
        const double load = (double)carried / (double)MAX(g->run->topology->links[l].bytes_per_s, 1);
        if (load > most) {
            most = load;
            g->result->fullest_link = l;
            g->result->fullest_link_bytes = carried;
        }
    }
}

/* Each rank is in one step at a time, so its flows at once are those of its fullest step. */
static bool net_replay_flows(NetGround *g, GError **error)
{
    int64_t slots = 1;
    const int split = g->run->routing == NET_ROUTE_E_ECMP ? NET_E_ECMP_FLOWS : 1;
    for (int r = 0; r < g->ranks; r++)
        slots += (int64_t)g->most_messages[r] * split;
    /* Other ways than those seen weigh the same, so they have at most NET_WEIGHT_ACROSS times as many links. */
    const bool varied = g->run->routing == NET_ROUTE_E_ECMP || g->run->routing == NET_ROUTE_ADAPTIVE;
    const int hops = varied ? MIN(NET_MAX_HOPS, NET_WEIGHT_ACROSS * MAX(g->longest, 1)) : MAX(g->longest, 1);
    if (slots > MOST_SLOTS || slots * hops > G_MAXINT32 / 2)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s over %d ranks has %" G_GINT64_FORMAT
                        " flows at once, too many to simulate; use --fidelity analytic",
                        g->run->algorithm->name, g->run->shape.ranks, slots);
    OrrArena *arena = orr_arena_new();
    Walk w = {.ground = g, .slots = (int32_t)slots, .before.index = -1, .closed = -1};
    w.flows = net_flows_new(g->run->topology, (int32_t)slots, hops, arena);
    w.open = ORR_ARENA_NEW(arena, Open *, g->result->step_count + 1);
    w.at = ORR_ARENA_NEW(arena, int, g->ranks);
    w.sending = ORR_ARENA_NEW(arena, int, g->ranks);
    w.from = ORR_ARENA_NEW(arena, int32_t, slots);
    w.to = ORR_ARENA_NEW(arena, int32_t, slots);
    w.step_of = ORR_ARENA_NEW(arena, int32_t, slots);
    w.free_slots = ORR_ARENA_NEW(arena, int32_t, slots);
    for (int64_t s = slots - 1; s >= 0; s--)
        w.free_slots[w.free_count++] = (int32_t)s;
    if (g->run->routing == NET_ROUTE_ADAPTIVE) {
        if (g->routes != g->run->routes)
            net_routes_free(g->routes);
        g->routes = net_routes_new(g->run->topology, g->run->routing, g->run->seed, net_flows_on(w.flows));
    }
    const bool ok = walk(&w, error);
    if (ok)
        fullest(g, w.flows);
    for (int s = 0; !ok && s < g->result->step_count; s++)
        if (w.open[s] != NULL)
            close_step(&w, s);
    net_step_clear(&w.before.step);
    orr_arena_free(arena);
    return ok;
}

void net_result_clear(NetResult *result)
{
    g_free(result->steps);
    memset(result, 0, sizeof *result);
}

static bool run_both(NetGround *g, bool flows, GError **error)
{
    if (!place_ranks(g, error))
        return false;
    const NetRun *run = g->run;
    g->routes = run->routes != NULL ? run->routes : net_routes_plain(run->topology, run->routing, run->seed);
    NetResult *result = g->result;
    g->log = flows ? net_route_log_new(run, result->step_count) : NULL;
    if (!net_analytic(g, error))
        return false;
    result->sent_least = INT64_MAX;
    for (int r = 0; r < run->shape.ranks; r++) {
        result->sent_least = MIN(result->sent_least, g->sent[r]);
        result->sent_most = MAX(result->sent_most, g->sent[r]);
    }
    return !flows || net_replay_flows(g, error);
}

NetRoutes *net_routes_plain(const NetTopology *topology, NetRouting routing, uint64_t seed)
{
    return net_routes_new(topology, routing == NET_ROUTE_ADAPTIVE ? NET_ROUTE_SHORTEST : routing, seed, NULL);
}

bool net_run(const NetRun *run, bool flows, NetResult *ret_result, GError **error)
{
    NetResult result = {.flow_ps = -1, .fullest_link = -1, .step_count = run->algorithm->steps(&run->shape)};
    NetGround g = {.run = run, .result = &result};
    g.ranks = run->shape.ranks + net_algorithm_switches(run->algorithm, &run->shape);
    g.vertex = g_new0(int32_t, g.ranks);
    g.sent = g_new0(int64_t, g.ranks);
    g.most_messages = g_new0(int, g.ranks);
    result.steps = g_new0(NetStepTrace, result.step_count + 1);
    const bool ok = run_both(&g, flows, error);
    if (g.routes != run->routes)
        net_routes_free(g.routes);
    net_route_log_free(g.log);
    g_free(g.vertex);
    g_free(g.sent);
    g_free(g.most_messages);
    if (ok)
        *ret_result = result;
    else
        net_result_clear(&result);
    return ok;
}
