/* sim/schedules.c - the table of schedules, and where each stage lives. */
#include "sim/schedules.h"

#include <string.h>

static const SimSchedule SCHEDULES[] = {
    {"naive", "one micro-batch at a time through all stages [Huang2019]", SIM_PLACE_LOOP, 1, NULL,
     sim_schedule_naive, NULL},
    {"gpipe", "all forwards, then all backwards [Huang2019]", SIM_PLACE_LOOP, 1, NULL, sim_schedule_gpipe,
     NULL},
    {"1f1b", "one forward, one backward (PipeDream-flush) [Narayanan2021]", SIM_PLACE_LOOP, 1, NULL,
     sim_schedule_1f1b, NULL},
    {"interleaved", "1F1B over several chunks a rank (Megatron-LM) [Narayanan2021]", SIM_PLACE_LOOP, 0,
     sim_schedule_interleaved_check, sim_schedule_interleaved, NULL},
    {"breadth-first", "all micro-batches of a chunk before the next chunk [LamyPoirier2022]", SIM_PLACE_LOOP,
     0, NULL, sim_schedule_breadth_first, NULL},
    {"zb-h1", "zero bubble with the memory of 1F1B [Qi2024]", SIM_PLACE_LOOP, 1, NULL, sim_schedule_zb_h1,
     NULL},
    {"zb-h2", "zero bubble with twice the memory of 1F1B [Qi2024]", SIM_PLACE_LOOP, 1, NULL,
     sim_schedule_zb_h2, NULL},
    {"zb-auto", "zero bubble searched for the times at hand under a memory limit [Qi2024]", SIM_PLACE_LOOP, 1,
     NULL, sim_schedule_zb_auto, sim_schedule_zb_auto_all},
    {"zb-v", "zero bubble in V shape with the memory of 1F1B [Qi2024]", SIM_PLACE_V, 2, NULL,
     sim_schedule_zb_v, NULL},
    {"v-half", "V shape with about half the activations of 1F1B [Qi2024V]", SIM_PLACE_V, 2, NULL,
     sim_schedule_v_half, NULL},
    {"v-min", "V shape with about a third of the activations of 1F1B [Qi2024V]", SIM_PLACE_V, 2, NULL,
     sim_schedule_v_min, NULL},
    {"dualpipe", "from both ends, forward and backward overlapped [DeepSeekV3]", SIM_PLACE_BIDIRECTIONAL, 2,
     sim_schedule_dualpipe_check, sim_schedule_dualpipe, NULL},
    {"dualpipev", "DualPipe cut in half: one copy of the model in V shape [DualPipe]", SIM_PLACE_V, 2,
     sim_schedule_dualpipev_check, sim_schedule_dualpipev, NULL},
};

const SimSchedule *sim_schedules(int *ret_count)
{
    *ret_count = (int)G_N_ELEMENTS(SCHEDULES);
    return SCHEDULES;
}

const SimSchedule *sim_schedule_find(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(SCHEDULES); i++) {
        if (strcmp(SCHEDULES[i].name, name) == 0)
            return &SCHEDULES[i];
    }
    return NULL;
}

int sim_stage_of(SimPlacement placement, int ranks, int chunks, int rank, int chunk)
{
    g_assert(rank >= 0 && rank < ranks && chunk >= 0 && chunk < chunks);
    if (placement == SIM_PLACE_LOOP)
        return chunk * ranks + rank;
    g_assert(chunks == 2);
    return chunk == 0 ? rank : 2 * ranks - 1 - rank;
}

void sim_place_of(SimPlacement placement, int ranks, int chunks, int stage, int *ret_rank, int *ret_chunk)
{
    g_assert(stage >= 0 && stage < ranks * chunks);
    *ret_chunk = stage / ranks;
    if (placement == SIM_PLACE_LOOP || stage < ranks)
        *ret_rank = stage % ranks;
    else
        *ret_rank = 2 * ranks - 1 - stage;
}

SimOrder sim_order_new(OrrArena *arena, int64_t capacity)
{
    return (SimOrder){.ops = ORR_ARENA_NEW(arena, SimPassOp, capacity), .count = 0};
}

void sim_order_add(SimOrder *order, SimPass pass, int chunk, int microbatch)
{
    order->ops[order->count++] = (SimPassOp){.pass = (uint8_t)pass,
                                             .chunk = (int16_t)chunk,
                                             .microbatch = microbatch,
                                             .chunk2 = -1,
                                             .microbatch2 = -1};
}

void sim_order_add_pair(SimOrder *order, int chunk, int microbatch, int chunk2, int microbatch2)
{
    order->ops[order->count++] = (SimPassOp){.pass = SIM_PASS_FORWARD_BACKWARD,
                                             .chunk = (int16_t)chunk,
                                             .microbatch = microbatch,
                                             .chunk2 = (int16_t)chunk2,
                                             .microbatch2 = microbatch2};
}
