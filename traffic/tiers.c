/* traffic/tiers.c - what links carry in a step, link by link and by tier: kinds of vertices at either end. */
#include <string.h>

#include "traffic/rows.h"

static double link_bytes(const NetTopology *t, const double *bytes, TrafficDimension d, int l)
{
    return bytes[(gsize)d * (gsize)t->link_count + (gsize)l];
}

static void summarise_link(const NetTopology *t, const double *bytes, int l, TrafficLink *out)
{
    *out = (TrafficLink){.bytes_per_s = (double)t->links[l].bytes_per_s};
    g_strlcpy(out->from, t->vertices[t->links[l].from].name, sizeof out->from);
    g_strlcpy(out->to, t->vertices[t->links[l].to].name, sizeof out->to);
    for (TrafficDimension d = 0; d < TRAFFIC_DIMENSIONS; d++) {
        out->by_dimension[d] = link_bytes(t, bytes, d, l);
        out->bytes += out->by_dimension[d];
    }
    out->busy_frac = out->bytes > 0 ? out->bytes / out->bytes_per_s : 0;
}

/* The links that take longest for what they carry; of equal ones the first. */
static void add_busiest(const TrafficLink *link, TrafficSummary *summary)
{
    TrafficLink *busiest = summary->busiest;
    int at = summary->busiest_count;
    while (at > 0 && link->busy_frac > busiest[at - 1].busy_frac * (1 + 1e-12))
        at--;
    if (link->bytes <= 0 || at == TRAFFIC_BUSIEST)
        return;
    summary->busiest_count = MIN(summary->busiest_count + 1, TRAFFIC_BUSIEST);
    memmove(&busiest[at + 1], &busiest[at], sizeof *link * (size_t)(summary->busiest_count - at - 1));
    busiest[at] = *link;
}

/* GPUs are of one kind; a switch is of the kind that its name begins with, up to a digit. */
static void kind_of(const NetVertex *vertex, char *kind, gsize size)
{
    const gsize letters = strcspn(vertex->name, "0123456789");
    g_strlcpy(kind, vertex->gpu ? "gpu" : vertex->name, size);
    if (!vertex->gpu && letters > 0 && letters < size)
        kind[letters] = '\0';
}

static TrafficTier *tier_of(const NetTopology *t, const NetLink *link, GHashTable *seen, GPtrArray *tiers)
{
    TrafficTier *tier = g_new0(TrafficTier, 1);
    kind_of(&t->vertices[link->from], tier->from, sizeof tier->from);
    kind_of(&t->vertices[link->to], tier->to, sizeof tier->to);
    char *name = g_strdup_printf("%s-%s", tier->from, tier->to);
    TrafficTier *known = g_hash_table_lookup(seen, name);
    if (known != NULL) {
        g_free(name);
        g_free(tier);
        return known;
    }
    g_hash_table_insert(seen, name, tier);
    g_ptr_array_add(tiers, tier);
    return tier;
}

static void add_to_tier(const TrafficLink *link, TrafficTier *tier)
{
    tier->links++;
    tier->used += link->bytes > 0;
    tier->bytes_per_s += link->bytes_per_s;
    tier->bytes += link->bytes;
    tier->busiest_frac = MAX(tier->busiest_frac, link->busy_frac);
    for (TrafficDimension d = 0; d < TRAFFIC_DIMENSIONS; d++)
        tier->by_dimension[d] += link->by_dimension[d];
}

static gint by_busiest(gconstpointer a, gconstpointer b)
{
    const TrafficTier *x = *(TrafficTier *const *)a, *y = *(TrafficTier *const *)b;
    return (x->busiest_frac < y->busiest_frac) - (x->busiest_frac > y->busiest_frac);
}

static void keep(GPtrArray *tiers, const GArray *links, OrrArena *arena, TrafficSummary *summary)
{
    g_ptr_array_sort(tiers, by_busiest);
    summary->tier_count = (int)tiers->len;
    summary->tiers = ORR_ARENA_NEW(arena, TrafficTier, MAX(tiers->len, 1));
    for (guint i = 0; i < tiers->len; i++)
        summary->tiers[i] = *(const TrafficTier *)tiers->pdata[i];
    summary->link_count = (int)links->len;
    summary->links = ORR_ARENA_NEW(arena, TrafficLink, MAX(links->len, 1));
    if (links->len > 0)
        memcpy(summary->links, links->data, sizeof(TrafficLink) * links->len);
}

void traffic_summarise_links(const NetTopology *t, const double *bytes, OrrArena *arena,
                             TrafficSummary *summary)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) tiers = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) links = g_array_new(FALSE, FALSE, sizeof(TrafficLink));
    for (int l = 0; l < t->link_count; l++) {
        TrafficLink link;
        summarise_link(t, bytes, l, &link);
        add_busiest(&link, summary);
        add_to_tier(&link, tier_of(t, &t->links[l], seen, tiers));
        if (summary->all_links && link.bytes > 0)
            g_array_append_val(links, link);
    }
    keep(tiers, links, arena, summary);
}

void traffic_finish_links(TrafficSummary *summary, double step_s)
{
    const double each = step_s > 0 ? 1 / step_s : 0;
    for (int i = 0; i < summary->busiest_count; i++)
        summary->busiest[i].busy_frac *= each;
    for (int i = 0; i < summary->link_count; i++)
        summary->links[i].busy_frac *= each;
    for (int i = 0; i < summary->tier_count; i++) {
        TrafficTier *tier = &summary->tiers[i];
        tier->busiest_frac *= each;
        tier->busy_frac = tier->bytes_per_s > 0 ? tier->bytes / tier->bytes_per_s * each : 0;
    }
}
