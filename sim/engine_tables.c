/* sim/engine_tables.c - the standard rows of streams, tiers and memory kinds, what ops are called, and reading works. */
#include "sim/engine.h"

static const char *const tag_labels[SIM_TAG_COUNT] = {
    [SIM_TAG_FORWARD] = "forward",
    [SIM_TAG_BACKWARD] = "backward",
    [SIM_TAG_BACKWARD_INPUT] = "backward input",
    [SIM_TAG_BACKWARD_WEIGHT] = "backward weight",
    [SIM_TAG_FORWARD_BACKWARD] = "forward and backward",
    [SIM_TAG_SEND_FORWARD] = "send activation",
    [SIM_TAG_SEND_BACKWARD] = "send gradient",
    [SIM_TAG_GRAD_REDUCE] = "reduce gradients",
    [SIM_TAG_PARAM_GATHER] = "gather parameters",
    [SIM_TAG_EMBEDDING_REDUCE] = "reduce tied embedding",
    [SIM_TAG_GRAD_NORM] = "gradient norm",
    [SIM_TAG_OPTIMIZER] = "optimizer",
    [SIM_TAG_OVERHEAD] = "step overhead",
    [SIM_TAG_OFFLOAD] = "offload",
};

static const SimStreamRow standard_streams[SIM_STREAM_COUNT] = {
    [SIM_STREAM_COMPUTE] = {"compute", SIM_RUNS_KERNELS},
    [SIM_STREAM_REDUCE] = {"data comm (reductions)", SIM_RUNS_COLLECTIVES},
    [SIM_STREAM_DATA] = {"data comm", SIM_RUNS_COLLECTIVES},
    [SIM_STREAM_SEND_NEXT] = {"send to next stage", SIM_RUNS_MESSAGES},
    [SIM_STREAM_SEND_PREV] = {"send to previous stage", SIM_RUNS_MESSAGES},
    [SIM_STREAM_H2D] = {"host to device", SIM_RUNS_COPIES},
    [SIM_STREAM_D2H] = {"device to host", SIM_RUNS_COPIES},
    [SIM_STREAM_HOST] = {"host", SIM_RUNS_HOST},
    [SIM_STREAM_NVME_READ] = {"disk read", SIM_RUNS_STORAGE},
    [SIM_STREAM_NVME_WRITE] = {"disk write", SIM_RUNS_STORAGE},
};

static const SimTier standard_tiers[SIM_TIER_COUNT] = {
    [SIM_TIER_GPU] = {.name = "GPU memory"},
    [SIM_TIER_HOST] = {.name = "host memory"},
    [SIM_TIER_NVME] = {.name = "disks"},
};

static const SimMemKind standard_mem_kinds[SIM_MEM_COUNT] = {
    [SIM_MEM_ACTIVATIONS] = {"activations", SIM_TIER_GPU},
    [SIM_MEM_WORKSPACE] = {"workspace", SIM_TIER_GPU},
    [SIM_MEM_WEIGHTS] = {"weights", SIM_TIER_GPU},
    [SIM_MEM_GRADIENTS] = {"gradients", SIM_TIER_GPU},
    [SIM_MEM_OPTIMIZER] = {"optimizer", SIM_TIER_GPU},
    [SIM_MEM_HOST] = {"host", SIM_TIER_HOST},
    [SIM_MEM_NVME] = {"nvme", SIM_TIER_NVME},
};

const char *sim_tag_label(SimTag tag)
{
    g_assert((unsigned)tag < SIM_TAG_COUNT);
    return tag_labels[tag];
}

static void set_count(int *ret_count, int count)
{
    if (ret_count != NULL)
        *ret_count = count;
}

const SimStreamRow *sim_standard_streams(int *ret_count)
{
    set_count(ret_count, SIM_STREAM_COUNT);
    return standard_streams;
}

const SimTier *sim_standard_tiers(int *ret_count)
{
    set_count(ret_count, SIM_TIER_COUNT);
    return standard_tiers;
}

const SimMemKind *sim_standard_mem_kinds(int *ret_count)
{
    set_count(ret_count, SIM_MEM_COUNT);
    return standard_mem_kinds;
}

const SimStreamRow *sim_program_streams(const SimProgram *program, int *ret_count)
{
    if (program->stream_count == 0)
        return sim_standard_streams(ret_count);
    set_count(ret_count, program->stream_count);
    return program->streams;
}

const SimTier *sim_program_tiers(const SimProgram *program, int *ret_count)
{
    if (program->tier_count == 0)
        return sim_standard_tiers(ret_count);
    set_count(ret_count, program->tier_count);
    return program->tiers;
}

const SimMemKind *sim_program_mem_kinds(const SimProgram *program, int *ret_count)
{
    if (program->mem_kind_count == 0)
        return sim_standard_mem_kinds(ret_count);
    set_count(ret_count, program->mem_kind_count);
    return program->mem_kinds;
}

int64_t sim_work_duration_ps(const SimWork *work)
{
    int64_t duration_ps = 0;
    for (int part = 0; part < SIM_PART_COUNT; part++)
        duration_ps = sim_sum(duration_ps, work->part_ps[part]);
    return duration_ps;
}

int64_t sim_work_compute_ps(const SimWork *work)
{
    static const SimPart COMPUTES[] = {SIM_PART_COMPUTE, SIM_PART_RECOMPUTE, SIM_PART_OPTIMIZER};
    int64_t compute_ps = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(COMPUTES); i++)
        compute_ps = sim_sum(compute_ps, work->part_ps[COMPUTES[i]]);
    return compute_ps;
}

int64_t sim_duration_at_speed_ps(int64_t duration_ps, int64_t compute_ps, int32_t speed)
{
    g_assert(speed > 0);
    const int64_t whole = compute_ps / speed, rest = compute_ps % speed;
    if (whole > INT64_MAX / 2 / SIM_FULL_RATE)
        return INT64_MAX;
    const int64_t scaled_ps = whole * SIM_FULL_RATE + (rest * SIM_FULL_RATE + speed - 1) / speed;
    const int64_t other_ps = duration_ps - compute_ps;
    return other_ps > INT64_MAX - scaled_ps ? INT64_MAX : other_ps + scaled_ps;
}

void sim_work_spend(SimWork *work, SimPart part, int64_t ps)
{
    work->part_ps[part] = sim_sum(work->part_ps[part], ps);
}

void sim_work_repeat(SimWork *work, int64_t times)
{
    for (int part = 0; part < SIM_PART_COUNT; part++)
        work->part_ps[part] = sim_product(work->part_ps[part], times);
    work->scale_up_bytes = sim_product(work->scale_up_bytes, times);
    work->scale_out_bytes = sim_product(work->scale_out_bytes, times);
    work->second_bytes = sim_product(work->second_bytes, times);
}

void sim_work_add(SimWork *sum, const SimWork *term)
{
    for (int part = 0; part < SIM_PART_COUNT; part++)
        sim_work_spend(sum, (SimPart)part, term->part_ps[part]);
    sum->scale_up_bytes = sim_sum(sum->scale_up_bytes, term->scale_up_bytes);
    sum->scale_out_bytes = sim_sum(sum->scale_out_bytes, term->scale_out_bytes);
    sum->second_bytes = sim_sum(sum->second_bytes, term->second_bytes);
}

void sim_work_hold(SimWork *work, int resource, SimShareMode mode, int64_t amount)
{
    int at = 0;
    while (at < SIM_WORK_SHARES && work->shares[at].amount > 0)
        at++;
    g_assert(at < SIM_WORK_SHARES && amount > 0);
    work->shares[at] =
        (SimShare){.amount = amount, .resource = (int16_t)resource, .mode = (uint8_t)mode, .instance = 0};
}

const SimShare *sim_work_share(const SimWork *work, int index)
{
    int own = 0;
    while (own < SIM_WORK_SHARES && work->shares[own].amount > 0)
        own++;
    if (index < own)
        return &work->shares[index];
    return index - own < work->more_share_count ? &work->more_shares[index - own] : NULL;
}
