/* network/ways_lists.c - lists of links that lead on, each kept once, and the links straight to a receiver. */
#include <string.h>

#include "network/ways.h"

int32_t net_weight_straight(const NetWays *ways, int v, int goal)
{
    const NetTopology *t = ways->topology;
    int32_t least = G_MAXINT32;
    for (int e = t->in_of[goal]; e < t->in_of[goal + 1]; e++) {
        const NetLink *link = &t->links[t->in_links[e]];
        if (link->from == v && link->bytes_per_s > 0)
            least = MIN(least, link->weight);
    }
    return least;
}

/* The one that holds the same, or a new one. */
int32_t net_ways_list(NetWays *ways, int32_t relay, int count)
{
    if (count == 0)
        return NET_NO_LINKS;
    if (count == 1)
        return -1 - ways->picks[0];
    for (int32_t place = ways->last_list[relay]; place >= 0;) {
        const int32_t *list = &g_array_index(ways->lists, int32_t, place);
        if (list[1] == count && memcmp(list + 2, ways->picks, sizeof(int32_t) * (gsize)count) == 0)
            return place + 1;
        place = list[0];
    }
    const int32_t place = (int32_t)ways->lists->len, head[2] = {ways->last_list[relay], count};
    g_array_append_vals(ways->lists, head, 2);
    g_array_append_vals(ways->lists, ways->picks, (guint)count);
    ways->last_list[relay] = place;
    return place + 1;
}
