/* traffic/links.c - which links can be too small for all at once, and what each carries in a step. */
#include <math.h>
#include <string.h>

#include "traffic/rows.h"

#define MOST_LINKS 1000 /* instances; an op holds at most as many shares */

static const TrafficUser *user_of(const GArray *users, const GArray *loads, guint index)
{
    return &g_array_index(users, TrafficUser, g_array_index(loads, TrafficLoad, index).user);
}

static double sum_of(const GArray *users, const GArray *loads)
{
    double sum = 0;
    for (guint i = 0; i < loads->len; i++)
        sum += g_array_index(loads, TrafficLoad, i).load * user_of(users, loads, i)->most;
    return sum;
}

/* What leaves a GPU the engine has a resource for already: its NIC. */
static bool is_own_port(const NetTopology *t, int link, const GArray *users, const GArray *loads)
{
    const NetLink *l = &t->links[link];
    const TrafficUser *first = user_of(users, loads, 0);
    bool own = l->from < t->gpus && (double)l->bytes_per_s >= first->rate * (1 - 1e-9);
    for (guint i = 0; i < loads->len; i++)
        own = own && user_of(users, loads, i)->cls == first->cls;
    return own;
}

static char *text_of(const GArray *loads)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < loads->len; i++)
        g_string_append_printf(text, "%d:%.9g ", g_array_index(loads, TrafficLoad, i).user,
                               g_array_index(loads, TrafficLoad, i).load);
    return g_string_free(text, FALSE);
}

static void free_loads(gpointer data)
{
    if (*(GArray **)data != NULL)
        g_array_free(*(GArray **)data, TRUE);
}

/* [links] GArray of TrafficLoad in the order of users; NULL: nobody is on it. */
static GArray **loads_of_links(const NetTopology *t, const GArray *users)
{
    GArray **on = g_new0(GArray *, MAX(t->link_count, 1));
    for (guint u = 0; u < users->len; u++) {
        const TrafficMeeting *meeting = g_array_index(users, TrafficUser, u).meeting;
        for (int i = 0; i < meeting->link_count; i++) {
            GArray **loads = &on[meeting->links[i]];
            const TrafficLoad load = {(int)u, meeting->loads[i]};
            if (*loads == NULL)
                *loads = g_array_new(FALSE, FALSE, sizeof load);
            g_array_append_val(*loads, load);
        }
    }
    return on;
}

typedef struct SharedLink {
    GArray *loads;
    double sum;
    int link;
} SharedLink;

static int by_sum(const void *a, const void *b)
{
    const SharedLink *x = a, *y = b;
    return x->sum != y->sum ? (x->sum < y->sum) - (x->sum > y->sum) : x->link - y->link;
}

/* No load of `a` is more than that of `b`: whenever `a` is full `b` is too, so that it binds nobody. Both by user. */
static bool is_below(const GArray *a, const GArray *b)
{
    guint at = 0;
    for (guint i = 0; i < a->len; i++) {
        const TrafficLoad *load = &g_array_index(a, TrafficLoad, i);
        while (at < b->len && g_array_index(b, TrafficLoad, at).user < load->user)
            at++;
        if (at == b->len || g_array_index(b, TrafficLoad, at).user != load->user ||
            g_array_index(b, TrafficLoad, at).load < load->load)
            return false;
    }
    return true;
}

static bool binds(const GArray *kept, guint index)
{
    for (guint k = 0; k < index; k++)
        if (is_below(g_array_index(kept, SharedLink, index).loads, g_array_index(kept, SharedLink, k).loads))
            return false;
    return true;
}

GArray *traffic_shared_links(const NetTopology *t, const GArray *users, TrafficSummary *summary)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GArray) kept = g_array_new(FALSE, FALSE, sizeof(SharedLink));
    GArray *chosen = g_array_new(FALSE, FALSE, sizeof(GArray *)), **on = loads_of_links(t, users);
    g_array_set_clear_func(chosen, free_loads);
    for (int l = 0; l < t->link_count; l++) {
        if (on[l] == NULL)
            continue;
        const SharedLink one = {on[l], sum_of(users, on[l]), l};
        const bool alone = on[l]->len < 2 && user_of(users, on[l], 0)->dimension != TRAFFIC_BESIDE;
        if (!alone && one.sum > 1 + 1e-9 && !is_own_port(t, l, users, on[l]) &&
            g_hash_table_add(seen, text_of(on[l])))
            g_array_append_val(kept, one);
    }
    g_array_sort(kept, by_sum);
    for (guint i = 0; i < kept->len; i++) {
        if (!binds(kept, i))
            continue;
        if (chosen->len == MOST_LINKS) {
            summary->left_out_links++;
            summary->left_out_frac = MAX(summary->left_out_frac, g_array_index(kept, SharedLink, i).sum - 1);
            continue;
        }
        GArray *loads = g_array_copy(g_array_index(kept, SharedLink, i).loads);
        g_array_append_val(chosen, loads);
    }
    for (int l = 0; l < t->link_count; l++)
        if (on[l] != NULL)
            g_array_free(on[l], TRUE);
    g_free(on);
    summary->shared_links = (int)chosen->len;
    return chosen;
}

/* --- what links carry in a step of the first party: [dimension x links + link] --- */

static double *carried(const NetTopology *t, const GArray *users)
{
    double *bytes = g_new0(double, (gsize)t->link_count *TRAFFIC_DIMENSIONS + 1);
    for (guint u = 0; u < users->len; u++) {
        const TrafficUser *user = &g_array_index(users, TrafficUser, u);
        const gsize base = (gsize)user->dimension * (gsize)t->link_count;
        for (int i = 0; user->party == 0 && i < user->meeting->link_count; i++) {
            const int l = user->meeting->links[i];
            bytes[base + (gsize)l] +=
                user->meeting->loads[i] * (double)t->links[l].bytes_per_s / user->rate * user->bytes;
        }
    }
    return bytes;
}

static double sum_over(const NetTopology *t, const double *bytes, const int32_t *links, int first, int end)
{
    double sum = 0;
    for (int d = 0; d < TRAFFIC_DIMENSIONS; d++)
        for (int e = first; e < end; e++)
            sum += bytes[(gsize)d * (gsize)t->link_count + (gsize)links[e]];
    return sum;
}

static bool conserved(const NetTopology *t, const double *bytes, GError **error)
{
    for (int v = t->gpus; v < t->vertex_count; v++) {
        const double in = sum_over(t, bytes, t->in_links, t->in_of[v], t->in_of[v + 1]),
                     out = sum_over(t, bytes, t->out_links, t->out_of[v], t->out_of[v + 1]);
        if (fabs(in - out) > 1e-6 * MAX(in, out) + 1)
            return orr_fail(error, ORR_ERROR_INTERNAL, "%s: %s gets %.0f bytes and sends %.0f", t->name,
                            t->vertices[v].name, in, out);
    }
    return true;
}

bool traffic_summarise(const NetTopology *t, const GArray *users, int replicas, bool check, OrrArena *arena,
                       TrafficSummary *summary, GError **error)
{
    g_autofree double *bytes = carried(t, users);
    if (check && !conserved(t, bytes, error))
        return false;
    for (int d = 0; d < TRAFFIC_DIMENSIONS; d++)
        summary->dimensions[d] = (TrafficOfDimension){.slowest = 1, .fastest = 1};
    summary->alike = true;
    for (guint u = 0; u < users->len; u++) {
        const TrafficUser *user = &g_array_index(users, TrafficUser, u);
        TrafficOfDimension *of = &summary->dimensions[user->dimension];
        if (user->party != 0)
            continue;
        of->slowest = MAX(of->slowest, user->meeting->out);
        of->fastest = of->across ? MIN(of->fastest, user->meeting->fastest) : user->meeting->fastest;
        of->across = true;
        of->bytes += llround(user->bytes * replicas);
        summary->alike = summary->alike && user->meeting->fastest >= user->meeting->out * (1 - 1e-9);
    }
    traffic_summarise_links(t, bytes, arena, summary);
    return true;
}
