/* step/direct_mix.c - see direct_mix.h.
 *
 * A list schedule on two resources. A copied piece takes the link for its copy, in the order of the forward, and the SMs for
 * its forward behind that; one that is read directly takes both for max(forward, read). All pairs (SMs free, link free) that
 * no other beats are carried from piece to piece, so the mix is the best of all.
 * Source: [MemFerry]: the abstract; the rest is derived     Tested: unit/step/test_offload_order.c
 */
#include "step/direct_mix.h"

#include "sim/engine.h"

#include <glib.h>

typedef struct {
    int64_t sm_ps, link_ps;
    int before;  /* state of the piece before */
    bool direct; /* this piece */
} Mix;

enum { STATES = 512 }; /* more than a model's layers ever leave unbeaten */

static void add_state(Mix *states, int *count, Mix state)
{
    int kept = 0;
    for (int i = 0; i < *count; i++) {
        if (states[i].sm_ps <= state.sm_ps && states[i].link_ps <= state.link_ps)
            return;
    }
    for (int i = 0; i < *count; i++) {
        if (states[i].sm_ps < state.sm_ps || states[i].link_ps < state.link_ps)
            states[kept++] = states[i];
    }
    if (kept < STATES)
        states[kept++] = state;
    *count = kept;
}

static void extend(const SimDirectPiece *piece, const Mix *mix, int index, Mix *states, int *count)
{
    Mix copied = {.before = index, .link_ps = sim_sum(MAX(mix->link_ps, piece->there_ps), piece->copy_ps)};
    copied.sm_ps = sim_sum(MAX(mix->sm_ps, copied.link_ps), piece->forward_ps);
    Mix direct = {.before = index, .direct = true};
    direct.sm_ps =
        sim_sum(MAX(MAX(mix->sm_ps, mix->link_ps), piece->there_ps), MAX(piece->forward_ps, piece->read_ps));
    direct.link_ps = direct.sm_ps;
    add_state(states, count, copied);
    add_state(states, count, direct);
}

int64_t sim_direct_mix(const SimDirectPiece *pieces, int count, OrrArena *arena, bool *ret_direct)
{
    Mix *states = ORR_ARENA_NEW(arena, Mix, (count + 1) * STATES);
    int *counts = ORR_ARENA_NEW(arena, int, count + 1);
    int best = 0;
    counts[0] = 1;
    for (int i = 0; i < count; i++) {
        for (int s = 0; s < counts[i]; s++)
            extend(&pieces[i], &states[i * STATES + s], s, &states[(i + 1) * STATES], &counts[i + 1]);
    }
    for (int s = 0; s < counts[count]; s++)
        best = states[count * STATES + s].sm_ps < states[count * STATES + best].sm_ps ? s : best;
    const int64_t end_ps = states[count * STATES + best].sm_ps;
    for (int i = count; i > 0; i--) {
        ret_direct[i - 1] = states[i * STATES + best].direct;
        best = states[i * STATES + best].before;
    }
    return end_ps;
}
