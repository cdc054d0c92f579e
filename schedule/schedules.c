/* schedule/schedules.c - the table of schedules, and where each stage lives. */
#include "schedule/schedules.h"

/* Of rows whose members are not given: a loop around the ranks, no traits, and a shape that says all. */
static const SimSchedule SCHEDULES[] = {
    {.name = "naive",
     .help = "one micro-batch at a time through all stages [Huang2019]",
     .fixed_chunks = 1,
     .generate = sim_schedule_naive,
     .traits = SIM_TRAIT_BASELINE},
    {.name = "gpipe",
     .help = "all forwards, then all backwards [Huang2019]",
     .fixed_chunks = 1,
     .generate = sim_schedule_gpipe,
     .traits = SIM_TRAIT_FORWARDS_FIRST | SIM_TRAIT_WHOLE_CHUNKS | SIM_TRAIT_COMMON},
    {.name = "1f1b",
     .help = "one forward, one backward (PipeDream-flush) [Narayanan2021]",
     .fixed_chunks = 1,
     .generate = sim_schedule_1f1b,
     .traits = SIM_TRAIT_USUAL | SIM_TRAIT_COMMON},
    {.name = "interleaved",
     .help = "1F1B over several chunks a rank (Megatron-LM) [Narayanan2021]",
     .check = sim_schedule_interleaved_check,
     .generate = sim_schedule_interleaved,
     .traits = SIM_TRAIT_USUAL | SIM_TRAIT_COMMON | SIM_TRAIT_NEEDS_CHUNKS | SIM_TRAIT_GROUPS,
     .one_chunk = "1f1b"},
    {.name = "breadth-first",
     .help = "all micro-batches of a chunk before the next chunk [LamyPoirier2022]",
     .generate = sim_schedule_breadth_first,
     .traits = SIM_TRAIT_FORWARDS_FIRST | SIM_TRAIT_WHOLE_CHUNKS,
     .one_chunk = "gpipe"},
    {.name = "zb-h1",
     .help = "zero bubble with the memory of 1F1B [Qi2024]",
     .fixed_chunks = 1,
     .generate = sim_schedule_zb_h1,
     .traits = SIM_TRAIT_SPLITS_BACKWARD},
    {.name = "zb-h2",
     .help = "zero bubble with twice the memory of 1F1B [Qi2024]",
     .fixed_chunks = 1,
     .generate = sim_schedule_zb_h2,
     .traits = SIM_TRAIT_SPLITS_BACKWARD},
    {.name = "zb-auto",
     .help = "zero bubble searched for the times at hand under a memory limit [Qi2024]",
     .fixed_chunks = 1,
     .generate = sim_schedule_zb_auto,
     .generate_all = sim_schedule_zb_auto_all,
     .traits = SIM_TRAIT_SPLITS_BACKWARD},
    {.name = "zb-v",
     .help = "zero bubble in V shape with the memory of 1F1B [Qi2024]",
     .placement = SIM_PLACE_V,
     .fixed_chunks = 2,
     .generate = sim_schedule_zb_v,
     .traits = SIM_TRAIT_SPLITS_BACKWARD},
    {.name = "v-half",
     .help = "V shape with about half the activations of 1F1B [Qi2024V]",
     .placement = SIM_PLACE_V,
     .fixed_chunks = 2,
     .generate = sim_schedule_v_half,
     .generate_ranks = sim_schedule_v_half_ranks,
     .traits = SIM_TRAIT_SPLITS_BACKWARD},
    {.name = "v-min",
     .help = "V shape with about a third of the activations of 1F1B [Qi2024V]",
     .placement = SIM_PLACE_V,
     .fixed_chunks = 2,
     .generate = sim_schedule_v_min,
     .generate_ranks = sim_schedule_v_min_ranks,
     .traits = SIM_TRAIT_SPLITS_BACKWARD},
    {.name = "dualpipe",
     .help = "from both ends, forward and backward overlapped [DeepSeekV3]",
     .placement = SIM_PLACE_BIDIRECTIONAL,
     .fixed_chunks = 2,
     .check = sim_schedule_dualpipe_check,
     .generate = sim_schedule_dualpipe,
     .traits = SIM_TRAIT_SPLITS_BACKWARD | SIM_TRAIT_PAIRS},
    {.name = "dualpipev",
     .help = "DualPipe cut in half: one copy of the model in V shape [DualPipe]",
     .placement = SIM_PLACE_V,
     .fixed_chunks = 2,
     .check = sim_schedule_dualpipev_check,
     .generate = sim_schedule_dualpipev,
     .traits = SIM_TRAIT_SPLITS_BACKWARD | SIM_TRAIT_PAIRS},
};

const OrrWords sim_schedule_words = {.what = "a pipeline schedule",
                                     .first = &SCHEDULES[0].name,
                                     .count = (int)G_N_ELEMENTS(SCHEDULES),
                                     .stride_bytes = sizeof(SimSchedule)};

const SimSchedule *sim_schedules(int *ret_count)
{
    *ret_count = (int)G_N_ELEMENTS(SCHEDULES);
    return SCHEDULES;
}

const SimSchedule *sim_schedule_at(int index)
{
    return index >= 0 && index < (int)G_N_ELEMENTS(SCHEDULES) ? &SCHEDULES[index] : NULL;
}

int sim_schedule_index(const char *name)
{
    for (int i = 0; i < (int)G_N_ELEMENTS(SCHEDULES); i++)
        if (g_strcmp0(SCHEDULES[i].name, name) == 0)
            return i;
    return -1;
}

const SimSchedule *sim_schedule_find(const char *name)
{
    return sim_schedule_at(sim_schedule_index(name));
}

int sim_schedule_usual(int chunks)
{
    for (int i = 0; i < (int)G_N_ELEMENTS(SCHEDULES); i++)
        if (sim_schedule_has(&SCHEDULES[i], SIM_TRAIT_USUAL) &&
            sim_schedule_has(&SCHEDULES[i], SIM_TRAIT_NEEDS_CHUNKS) == (chunks > 1))
            return i;
    g_assert_not_reached();
}

/* Orders that alternate, then those that split the backward, then V shapes, pairs, piles of activations; last what is
 * there to compare with and what a simulation has to find. */
static int simplicity(const SimSchedule *schedule)
{
    const bool marks[] = {sim_schedule_needs_times(schedule),
                          sim_schedule_has(schedule, SIM_TRAIT_BASELINE),
                          sim_schedule_has(schedule, SIM_TRAIT_FORWARDS_FIRST),
                          sim_schedule_has(schedule, SIM_TRAIT_PAIRS),
                          schedule->placement == SIM_PLACE_BIDIRECTIONAL,
                          schedule->placement != SIM_PLACE_LOOP,
                          sim_schedule_has(schedule, SIM_TRAIT_SPLITS_BACKWARD)};
    int weight = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(marks); i++)
        weight = 2 * weight + (marks[i] ? 1 : 0);
    return weight;
}

void sim_schedules_by_simplicity(int *ret_rows)
{
    for (int i = 0; i < (int)G_N_ELEMENTS(SCHEDULES); i++) {
        int at = i;
        for (; at > 0 && simplicity(&SCHEDULES[ret_rows[at - 1]]) > simplicity(&SCHEDULES[i]); at--)
            ret_rows[at] = ret_rows[at - 1];
        ret_rows[at] = i;
    }
}

void sim_schedule_orders(const SimSchedule *schedule, const SimScheduleShape *shape, OrrArena *arena,
                         SimOrder *ret_orders)
{
    if (schedule->generate_ranks != NULL) {
        schedule->generate_ranks(shape, arena, ret_orders);
        return;
    }
    for (int r = 0; r < shape->ranks; r++)
        schedule->generate(shape, r, arena, &ret_orders[r]);
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
