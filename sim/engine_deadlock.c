/* sim/engine_deadlock.c - says who waits for whom when nothing can go on. */
#include "sim/engine_state.h"

/* The stream and the next op that it would run. */
static void describe(const Engine *e, int32_t index, GString *text)
{
    const Slot *slot = &e->slots[index];
    g_string_append_printf(text, "rank %d %s", slot->rank,
                           sim_program_streams(e->program, NULL)[slot->stream].name);
    const List *list = &e->lists[slot->list];
    int32_t next = slot->pc;
    while (next < list->count && list->instrs[next].op == SIM_ONLY_WAITS)
        next++;
    if (next == list->count) {
        g_string_append(text, slot->state == SLOT_DONE ? " (done)" : " (at its end)");
        return;
    }
    const SimInstr *instr = &list->instrs[next];
    const SimOp *op = &e->program->ops[instr->op];
    g_string_append_printf(text, " (%s", sim_tag_label((SimTag)op->tag));
    if (op->stage >= 0)
        g_string_append_printf(text, " of stage %d", op->stage);
    if (instr->microbatch >= 0)
        g_string_append_printf(text, ", micro-batch %d", instr->microbatch);
    g_string_append_c(text, ')');
}

/* The collective for whose other members the slot waits; SIM_NONE. */
static int32_t joined_by(const Engine *e, int32_t index)
{
    const Slot *slot = &e->slots[index];
    return slot->state == SLOT_ARRIVED ? sim_collective_of(e, slot, sim_slot_op(e, slot)) : SIM_NONE;
}

/* What `index` waits for; SIM_NONE when that will never come from anyone. */
static int32_t blocker_of(const Engine *e, int32_t index)
{
    const Slot *slot = &e->slots[index];
    if (slot->state == SLOT_WAITING)
        return sim_wait_target(e, index, sim_slot_instr(e, slot));
    if (slot->state != SLOT_ARRIVED)
        return SIM_NONE;
    const int32_t joined = joined_by(e, index);
    const Collective *collective = &e->collectives[joined];
    for (int32_t i = 0; i < collective->member_count; i++) {
        int32_t member = e->members[collective->first_member + i];
        if (member == SIM_NONE || joined_by(e, member) != joined)
            return member;
    }
    return SIM_NONE;
}

/* The first op that stands still, and a resource of capacity 0 that it needs. */
static bool explain_standstill(const Engine *e, GError **error)
{
    for (int32_t i = 0; e->instance_count > 0 && i < e->slot_count; i++) {
        const Slot *slot = &e->slots[i];
        const OpInfo *op = slot->state == SLOT_RUNNING ? sim_slot_op(e, slot) : NULL;
        for (int k = 0; op != NULL && k < op->share_count; k++) {
            const Share *share = &e->shares[op->first_share + k];
            const int32_t at = sim_instance_of(e, share, slot->rank);
            if (at < 0 || sim_capacity_of(e, share->row, at) > 0)
                continue;
            GString *text = g_string_new("the step never ends: ");
            describe(e, i, text);
            g_string_append_printf(text, " stands still, for the capacity of \"%s\" stays 0",
                                   e->program->resources[share->row].name);
            g_set_error_literal(error, ORR_ERROR, ORR_ERROR_INPUT, text->str);
            g_string_free(text, TRUE);
            return true;
        }
    }
    return false;
}

void sim_engine_explain_deadlock(const Engine *e, GError **error)
{
    if (explain_standstill(e, error))
        return;
    int32_t at = 0;
    while (e->slots[at].state == SLOT_DONE)
        at++;
    /* Walk until the chain ends or has surely entered its cycle, then tell that. */
    int32_t last = at;
    for (int32_t i = 0; i < e->slot_count && blocker_of(e, at) != SIM_NONE; i++)
        at = blocker_of(e, at);
    bool cycle = blocker_of(e, at) != SIM_NONE;
    int32_t start = cycle ? at : last;
    GString *text = g_string_new("the order of operations cannot be carried out: ");
    describe(e, start, text);
    int told = 0;
    for (at = start; told < 8; told++) {
        int32_t next = blocker_of(e, at);
        if (next == SIM_NONE)
            break;
        g_string_append(text, told == 0 ? " waits for " : ", which waits for ");
        at = next;
        if (cycle && at == start) {
            g_string_append(text, told == 0 ? "itself" : "the first");
            break;
        }
        describe(e, at, text);
    }
    if (told == 8)
        g_string_append(text, ", and so on");
    else if (!cycle && e->slots[at].state == SLOT_ARRIVED)
        g_string_append(text, ", whose group has a member that never joins");
    else if (!cycle)
        g_string_append(text, ", which never comes to it");
    g_set_error_literal(error, ORR_ERROR, ORR_ERROR_INPUT, text->str);
    g_string_free(text, TRUE);
}
