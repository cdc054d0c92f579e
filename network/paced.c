/* network/paced.c - streams that keep one pace: progressive filling, again whenever some are through. */
#include "network/paced.h"

#include <math.h>
#include <string.h>

/* Paces nearer than this are one. */
#define SAME 1e-9
/* Times that rates are worked out anew; after that all keep the pace they have, which is no faster. */
#define MOST_ROUNDS 64

typedef struct Route {
    int32_t stream, first, hops; /* links: first .. first + hops of the list */
    double weight;
} Route;

typedef struct Stream {
    int32_t first_route, routes;
    double limit; /* of its pace: 1, less behind a pause */
    double pace, left, time, first_pace;
    int32_t held_by; /* link; -1: none */
    bool frozen, paused;
} Stream;

struct NetPaced {
    const NetTopology *topology;
    double *capacity, *weights; /* [links] in full paces; of all routes */
    double *room, *rising;      /* [links] while filling: what is left, weights of those that still rise */
    double full_rate;
    bool lossless;
    GArray *routes, *streams, *links; /* Route, Stream, int32_t */
    int32_t *over_of, *over;          /* routes over link l: over[over_of[l]] .. */
    int32_t *crowded;                 /* links that cannot serve all of theirs */
    int crowded_count;
};

NetPaced *net_paced_new(const NetTopology *topology, double bytes_per_s, bool lossless)
{
    g_assert(bytes_per_s > 0);
    NetPaced *p = g_new0(NetPaced, 1);
    const gsize links = (gsize)MAX(topology->link_count, 1);
    p->topology = topology;
    p->lossless = lossless;
    p->full_rate = bytes_per_s;
    p->capacity = g_new0(double, links);
    p->weights = g_new0(double, links);
    p->room = g_new0(double, links);
    p->rising = g_new0(double, links);
    p->crowded = g_new0(int32_t, links);
    for (int l = 0; l < topology->link_count; l++)
        p->capacity[l] = (double)topology->links[l].bytes_per_s / bytes_per_s;
    p->routes = g_array_new(FALSE, FALSE, sizeof(Route));
    p->streams = g_array_new(FALSE, FALSE, sizeof(Stream));
    p->links = g_array_new(FALSE, FALSE, sizeof(int32_t));
    return p;
}

void net_paced_free(NetPaced *p)
{
    if (p == NULL)
        return;
    g_free(p->capacity);
    g_free(p->weights);
    g_free(p->room);
    g_free(p->rising);
    g_free(p->crowded);
    g_free(p->over_of);
    g_free(p->over);
    g_array_free(p->routes, TRUE);
    g_array_free(p->streams, TRUE);
    g_array_free(p->links, TRUE);
    g_free(p);
}

static Stream *stream_at(const NetPaced *p, int index)
{
    return &g_array_index(p->streams, Stream, index);
}

static const Route *route_at(const NetPaced *p, int index)
{
    return &g_array_index(p->routes, Route, index);
}

static const int32_t *links_of(const NetPaced *p, const Route *route)
{
    return &g_array_index(p->links, int32_t, route->first);
}

int net_paced_stream(NetPaced *p)
{
    const Stream stream = {
        .first_route = (int32_t)p->routes->len, .limit = 1, .left = 1, .held_by = -1, .first_pace = 1};
    g_array_append_val(p->streams, stream);
    return (int)p->streams->len - 1;
}

void net_paced_route(NetPaced *p, const int32_t *links, int hops, double weight)
{
    g_assert(p->streams->len > 0 && p->over == NULL);
    const Route route = {.stream = (int32_t)p->streams->len - 1,
                         .first = (int32_t)p->links->len,
                         .hops = hops,
                         .weight = weight};
    g_array_append_vals(p->links, links, (guint)hops);
    g_array_append_val(p->routes, route);
    stream_at(p, route.stream)->routes++;
    for (int h = 0; h < hops; h++)
        p->weights[links[h]] += weight;
}

int net_paced_streams(const NetPaced *p)
{
    return (int)p->streams->len;
}

double net_paced_time(const NetPaced *p, int stream)
{
    return stream_at(p, stream)->time;
}

double net_paced_first_pace(const NetPaced *p, int stream)
{
    return stream_at(p, stream)->first_pace;
}

const double *net_paced_weights(const NetPaced *p)
{
    return p->weights;
}

/* Which routes go over a crowded link. */
static void index_routes(NetPaced *p)
{
    const int links = p->topology->link_count;
    p->over_of = g_new0(int32_t, links + 1);
    for (int l = 0; l < links; l++)
        if (p->weights[l] > p->capacity[l] * (1 + SAME))
            p->crowded[p->crowded_count++] = l;
    for (guint i = 0; i < p->links->len; i++)
        p->over_of[g_array_index(p->links, int32_t, i) + 1]++;
    for (int l = 0; l < links; l++)
        p->over_of[l + 1] += p->over_of[l];
    p->over = g_new(int32_t, MAX(p->links->len, 1));
    g_autofree int32_t *at = g_memdup2(p->over_of, sizeof(int32_t) * (gsize)(links + 1));
    for (guint r = 0; r < p->routes->len; r++)
        for (int h = 0; h < route_at(p, (int)r)->hops; h++)
            p->over[at[links_of(p, route_at(p, (int)r))[h]]++] = (int32_t)r;
}

static void freeze(NetPaced *p, int index, double pace, int32_t held_by)
{
    Stream *s = stream_at(p, index);
    s->frozen = true;
    s->pace = pace;
    s->held_by = held_by;
    for (int r = s->first_route; r < s->first_route + s->routes; r++) {
        const Route *route = route_at(p, r);
        const int32_t *links = links_of(p, route);
        for (int h = 0; h < route->hops; h++) {
            p->room[links[h]] -= route->weight * pace;
            p->rising[links[h]] -= route->weight;
        }
    }
}

/* Pace at which the crowded link is full; infinite: nobody on it rises any more. */
static double level_of(const NetPaced *p, int32_t link)
{
    return p->rising[link] > SAME ? MAX(p->room[link], 0) / p->rising[link] : INFINITY;
}

static void begin(NetPaced *p)
{
    for (int l = 0; l < p->topology->link_count; l++) {
        p->room[l] = p->capacity[l];
        p->rising[l] = 0;
    }
    for (guint i = 0; i < p->routes->len; i++) {
        const Route *route = route_at(p, (int)i);
        const Stream *s = stream_at(p, route->stream);
        for (int h = 0; s->left > 0 && h < route->hops; h++)
            p->rising[links_of(p, route)[h]] += route->weight;
    }
    for (guint i = 0; i < p->streams->len; i++) {
        Stream *s = stream_at(p, (int)i);
        s->frozen = s->left <= 0;
        s->pace = s->frozen ? 0 : s->pace;
    }
}

static void freeze_limited(NetPaced *p, double level)
{
    for (guint i = 0; i < p->streams->len; i++) {
        const Stream *s = stream_at(p, (int)i);
        if (!s->frozen && s->limit <= level)
            freeze(p, (int)i, s->limit, s->limit < 1 ? s->held_by : -1);
    }
}

/* All paces rise together until a link is full, or the limit of a stream is reached. */
static void fill(NetPaced *p)
{
    begin(p);
    for (;;) {
        double level = INFINITY, limit = INFINITY;
        for (int i = 0; i < p->crowded_count; i++)
            level = MIN(level, level_of(p, p->crowded[i]));
        for (guint i = 0; i < p->streams->len; i++)
            if (!stream_at(p, (int)i)->frozen)
                limit = MIN(limit, stream_at(p, (int)i)->limit);
        if (limit == INFINITY)
            return;
        if (limit <= level * (1 + SAME)) {
            freeze_limited(p, limit);
            continue;
        }
        for (int i = 0; i < p->crowded_count; i++) {
            const int32_t l = p->crowded[i];
            if (level_of(p, l) > level * (1 + SAME))
                continue;
            for (int32_t k = p->over_of[l]; k < p->over_of[l + 1]; k++)
                if (!stream_at(p, route_at(p, p->over[k])->stream)->frozen)
                    freeze(p, route_at(p, p->over[k])->stream, level, l);
        }
    }
}

/* Who shares a link with the held-up route before the link that holds it goes no faster. True: somebody was slowed. */
static bool pause_behind(NetPaced *p, const Route *held, int32_t by)
{
    const int32_t *links = links_of(p, held);
    const double rate = held->weight * stream_at(p, held->stream)->pace;
    bool slowed = false;
    int at = 0;
    while (at < held->hops && links[at] != by)
        at++;
    for (int h = 0; at < held->hops && h < at; h++) {
        for (int32_t k = p->over_of[links[h]]; k < p->over_of[links[h] + 1]; k++) {
            const Route *behind = route_at(p, p->over[k]);
            Stream *s = stream_at(p, behind->stream);
            if (s->left <= 0 || behind->stream == held->stream ||
                behind->weight * s->pace <= rate * (1 + SAME))
                continue;
            s->limit = MIN(s->limit, rate / behind->weight);
            s->held_by = links[h];
            s->paused = slowed = true;
        }
    }
    return slowed;
}

static bool pause(NetPaced *p)
{
    bool slowed = false;
    for (guint r = 0; r < p->routes->len; r++) {
        const Route *route = route_at(p, (int)r);
        const Stream *s = stream_at(p, route->stream);
        if (s->left > 0 && s->held_by >= 0)
            slowed = pause_behind(p, route, s->held_by) || slowed;
    }
    return slowed;
}

static void settle(NetPaced *p)
{
    for (guint i = 0; i < p->streams->len; i++) {
        stream_at(p, (int)i)->limit = 1;
        stream_at(p, (int)i)->paused = false;
        stream_at(p, (int)i)->held_by = -1;
    }
    fill(p);
    for (int round = 0; p->lossless && round < MOST_ROUNDS && pause(p); round++)
        fill(p);
}

/* Until the next streams are through, at most for ever. False: none is left. */
static bool advance(NetPaced *p, bool last, double *now)
{
    double until = INFINITY;
    bool any = false;
    for (guint i = 0; i < p->streams->len; i++) {
        const Stream *s = stream_at(p, (int)i);
        any = any || s->left > 0;
        if (s->left > 0 && s->pace > 0)
            until = MIN(until, s->left / s->pace);
    }
    for (guint i = 0; any && i < p->streams->len; i++) {
        Stream *s = stream_at(p, (int)i);
        if (s->left <= 0)
            continue;
        const double own = s->pace > 0 ? s->left / s->pace : INFINITY;
        if (last || own <= until * (1 + SAME)) {
            s->time = *now + own;
            s->left = 0;
        } else {
            s->left -= until * s->pace;
        }
    }
    *now += until;
    return any && !last;
}

void net_paced_solve(NetPaced *p)
{
    double now = 0;
    index_routes(p);
    settle(p);
    for (guint i = 0; i < p->streams->len; i++)
        stream_at(p, (int)i)->first_pace = stream_at(p, (int)i)->pace;
    for (int round = 1; advance(p, round >= MOST_ROUNDS, &now) && now < INFINITY; round++)
        settle(p);
}

bool net_paced_check(const NetPaced *p, GError **error)
{
    const NetTopology *t = p->topology;
    for (int l = 0; l < t->link_count; l++) {
        double used = 0;
        for (int32_t k = p->over_of[l]; k < p->over_of[l + 1]; k++)
            used +=
                route_at(p, p->over[k])->weight * stream_at(p, route_at(p, p->over[k])->stream)->first_pace;
        if (used > p->capacity[l] * (1 + 1e-6))
            return orr_fail(error, ORR_ERROR_INTERNAL, "%s: %g bytes/s on the link %s-%s, which carries %g",
                            t->name, used * p->full_rate, t->vertices[t->links[l].from].name,
                            t->vertices[t->links[l].to].name, p->capacity[l] * p->full_rate);
    }
    for (guint i = 0; i < p->streams->len; i++) {
        const Stream *s = stream_at(p, (int)i);
        if (!(s->time >= 1 - 1e-6) || s->first_pace > 1)
            return orr_fail(error, ORR_ERROR_INTERNAL, "%s: stream %u takes %g times as long as alone",
                            t->name, i, s->time);
    }
    return true;
}
