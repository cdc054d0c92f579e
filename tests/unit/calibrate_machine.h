/* tests/unit/calibrate_machine.h - a GPU node that is known, in the place of one that is measured: a cost model
 * with moved parameters answers a sweep's points, with noise, and with what goes wrong on machines. */
#ifndef ORR_TEST_CALIBRATE_MACHINE_H
#define ORR_TEST_CALIBRATE_MACHINE_H

#include "tests/unit/calibrate_fixture.h"
#include "costmodel/collective.h"
#include "costmodel/memory_bound.h"

#define LAYER_MFU        0.6
#define PROBE_NOISE_FRAC 0.005 /* one product again: what makes a size off by 3 % is the same each time */

/* --- a machine that is known --- */

typedef struct Machine {
    SpecCluster cluster;
    guint32 seed, state; /* of the noise */
    int calls;           /* points measured */
    int killed_at;       /* the point at which the power fails; 0: never */
    bool no_memory;      /* products of more than 8192 rows */
    bool faults; /* 5 % outliers, a throttled stretch, two wrong kernels, three sizes without memory */
    int hot_at;  /* from this point on everything takes a tenth longer; 0: never */
} Machine;

/* An H200 node unlike the preset's: slower memory, tensor cores, rings and kernels. */
static void machine_init(Machine *machine)
{
    const char *seed =
        g_getenv("ORRERY_TEST_SEED"); /* another noise, for a look at how sure the figures are */
    *machine = (Machine){.seed = seed != NULL ? (guint32)g_ascii_strtoull(seed, NULL, 10) : 1};
    machine->state = machine->seed;
    GError *error = NULL;
    spec_load_cluster("dgx-h200", &machine->cluster, &error);
    g_assert_no_error(error);
    SpecKernelModel *model = &machine->cluster.accelerator.model;
    model->gemm_shared.memory_frac *= 0.8;
    model->gemm_shared.tile_s *= 1.5;
    model->gemm[SPEC_BF16].peak_frac *= 0.85;
    model->gemm[SPEC_BF16].backward_weight_frac *= 0.9;
    model->gemm[SPEC_FP8].peak_frac *= 0.9;
    model->attention[SPEC_ATTENTION_CUDNN].peak_frac *= 1.2;
    model->attention[SPEC_ATTENTION_CUDNN].backward_peak_frac *= 0.9;
    model->attention[SPEC_ATTENTION_CUDNN].fp8_frac *= 1.15;
    model->memory_bound.elementwise_frac *= 0.85;
    model->memory_bound.norm_frac *= 0.7;
    model->memory_bound.optimizer_frac *= 0.9;
    model->memory_bound.latency_s *= 1.7;
    model->collectives.ring_frac *= 0.85;
    model->collectives.nvls_frac *= 0.9;
    model->collectives.simple_hop_s *= 1.4;
    model->collectives.ring_sm_frac = 0.22;
    model->collectives.nvls_sm_frac = 0.08;
    model->collectives.alltoall_sm_frac = 0.3;
}

static double attention_s(const SpecAccelerator *accelerator, const CalPoint *point)
{
    const KrnShape *s = &point->shape;
    const CostAttention attention = {.batch = (double)s->batch,
                                     .q_tokens = (double)s->seq,
                                     .kv_tokens = (double)s->seq,
                                     .heads = (double)s->heads,
                                     .kv_heads = (double)s->kv_heads,
                                     .qk_head_dim = (double)s->head_dim,
                                     .v_head_dim = (double)s->head_dim,
                                     .causal = s->causal,
                                     .backward = strstr(point->name, "backward") != NULL,
                                     .kernel = SPEC_ATTENTION_CUDNN,
                                     .dtype = g_str_has_suffix(point->name, "_fp8") ? SPEC_FP8 : SPEC_BF16};
    return cost_attention_s(accelerator, &attention);
}

static CostMemoryKernel move_of(const char *name)
{
    if (strstr(name, "norm") != NULL)
        return COST_MEMORY_NORM;
    if (g_str_has_prefix(name, "softmax"))
        return COST_MEMORY_SOFTMAX;
    if (g_str_has_prefix(name, "adam"))
        return COST_MEMORY_OPTIMIZER;
    if (g_str_has_prefix(name, "embedding") || g_str_has_prefix(name, "permute"))
        return COST_MEMORY_PERMUTE;
    if (g_str_has_prefix(name, "cast"))
        return COST_MEMORY_CAST;
    return g_str_has_prefix(name, "cross") ? COST_MEMORY_CROSS_ENTROPY : COST_MEMORY_ELEMENTWISE;
}

/* Seconds of a collective by its name in the tables; negative: none of the model's. */
static double collective_s(const SpecCluster *cluster, const CalPoint *point)
{
    static const struct {
        const char *name;
        CostCollectiveOp op;
    } ops[] = {{"all_reduce", COST_ALL_REDUCE},
               {"all_gather", COST_ALL_GATHER},
               {"reduce_scatter", COST_REDUCE_SCATTER},
               {"alltoall", COST_ALL_TO_ALL},
               {"broadcast", COST_BROADCAST},
               {"reduce", COST_REDUCE},
               {"send_recv", COST_SEND_RECV}};
    for (size_t i = 0; i < G_N_ELEMENTS(ops); i++)
        if (strcmp(ops[i].name, point->name) == 0) {
            const CostCollective collective = {
                ops[i].op, point->bytes, {.ranks = point->gpus, .per_domain = point->gpus, .nic_sharers = 1}};
            return cost_collective_s(cluster, &collective);
        }
    g_assert_not_reached();
}

/* Share of its rate that a product loses: 256 MiB over 8 GPUs of a Hopper node are reduced in the switch. */
static double lost_beside(const Machine *machine, const char *name)
{
    const SpecCollectiveModel *links = &machine->cluster.accelerator.model.collectives;
    if (strstr(name, "alltoall") != NULL)
        return links->alltoall_sm_frac;
    if (strstr(name, "all_reduce") != NULL)
        return links->nvls_sm_frac;
    return strstr(name, "copy") != NULL || strstr(name, "d2h") != NULL ? 0.05 : links->ring_sm_frac;
}

#define HOT_FIRST 130 /* points of the throttled stretch */
#define HOT_LAST  260

/* What goes wrong on machines: one point in twenty is half as long again, the SMs lose a quarter for a while, two kernels
 * compute something else in half of the time, three sizes do not fit. False: this one does not fit. */
static bool spoil(Machine *machine, const CalPoint *point, double *t_s, CalSample *sample)
{
    static const char *const wrong[] = {"rms_norm_backward", "gemm bf16 NN 4096x4096x12288"};
    static const char *const large[] = {"gemm bf16 TN 16384x57344x8192", "gemm bf16 TN 16384x28672x8192",
                                        "gemm bf16 TN 16384x8192x28672"};
    for (size_t i = 0; i < G_N_ELEMENTS(large); i++)
        if (strcmp(point->id, large[i]) == 0)
            return false;
    const bool by_clock = point->kind == CAL_POINT_KERNEL || point->kind == CAL_POINT_DRIFT;
    if (by_clock && machine->calls >= HOT_FIRST && machine->calls <= HOT_LAST)
        *t_s *= 1.25;
    if (point->kind != CAL_POINT_DRIFT && fixture_noise_state(machine->seed + 99, point->id) % 20 == 0)
        *t_s *= 1.5;
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++)
        if (g_str_has_prefix(point->id, wrong[i])) {
            *t_s *= 0.5;
            sample->error_frac = 0.7;
        }
    return true;
}

/* Below the GPUs: what the machine's links, memory, cores and disks reach. */
#define HOST_PINNED     0.8  /* of the link */
#define HOST_PAGEABLE   0.11 /* of the link */
#define HOST_DUPLEX     0.9
#define HOST_ROOT       1.2 /* of what one GPU copies alone: a port that two share */
#define HOST_STREAM     4e11
#define HOST_CORE       1.1e10
#define HOST_READ       2e10
#define HOST_WRITE      9e9
#define CHIP_SPREAD     0.02
#define SUSTAINED_SPEED 0.88 /* of the first pass */

static double host_s(const SpecAccelerator *accelerator, const CalPoint *point)
{
    const char *name = point->name;
    const double alone = HOST_PINNED * accelerator->host_link_bytes_per_s;
    double rate = alone;
    if (strstr(name, "pageable") != NULL)
        rate = HOST_PAGEABLE * accelerator->host_link_bytes_per_s;
    else if (strcmp(name, "both_pinned") == 0)
        rate = HOST_DUPLEX * alone;
    else if (strcmp(name, "together_cpu_adam") == 0)
        rate = fmin(HOST_CORE * point->threads, HOST_STREAM / point->gpus);
    else if (g_str_has_prefix(name, "together_"))
        rate = fmin(alone, HOST_ROOT * alone / MIN(point->gpus, 2));
    else if (strcmp(name, "host_triad") == 0)
        rate = point->threads > 0 ? HOST_CORE * point->threads : HOST_STREAM;
    else if (g_str_has_prefix(name, "file"))
        rate = strcmp(name, "file_read") == 0 ? HOST_READ : HOST_WRITE;
    return point->bytes / rate;
}

/* Chips whose speed has the spread above: the quantiles of a normal distribution. */
static CalOutcome warm_layer(CalSample *sample)
{
    static const double deviates[8] = {-1.517, -0.944, -0.528, -0.169, 0.169, 0.528, 0.944, 1.517};
    sample->count = 8;
    for (int i = 0; i < 8; i++)
        sample->seconds[i] = 5e-3 / (1 + CHIP_SPREAD * deviates[i]);
    sample->first_s = 5e-3 * SUSTAINED_SPEED;
    sample->state.sm_clock_hz = 1.5e9;
    return CAL_MEASURED;
}

static CalOutcome measure(void *self, const CalPoint *point, double seconds, CalSample *ret_sample,
                          char *reason, size_t reason_size)
{
    Machine *machine = self;
    const SpecAccelerator *accelerator = &machine->cluster.accelerator;
    const KrnShape *s = &point->shape;
    double t_s = 1e-5;
    machine->state =
        fixture_noise_state(machine->seed, point->id); /* whatever else the sweep holds, and in which order */
    g_assert_cmpfloat(seconds, >, 0);
    machine->calls++;
    if (machine->calls == machine->killed_at) {
        g_strlcpy(reason, "the GPU stopped", reason_size);
        return CAL_BROKEN;
    }
    if (machine->no_memory && s->m > 8192) {
        g_strlcpy(reason, "out of memory at this size", reason_size);
        return CAL_SKIPPED;
    }
    if (strstr(point->name, "gemm") != NULL && s->m > 0) {
        t_s = fixture_gemm_s(accelerator, s, strcmp(point->name, "grouped_gemm_streams") == 0);
        ret_sample->flops = 2.0 * (double)s->m * (double)s->n * (double)s->k * (double)s->groups;
    } else if (strcmp(point->name, "together_layer") == 0) {
        return warm_layer(ret_sample);
    } else if (point->kind == CAL_POINT_COPY || point->kind == CAL_POINT_HOST ||
               point->kind == CAL_POINT_TOGETHER) {
        t_s = host_s(accelerator, point);
    } else if (g_str_has_prefix(point->name, "cudnn_")) {
        t_s = attention_s(accelerator, point);
        ret_sample->flops = 1; /* says nothing here */
    } else if (point->kind == CAL_POINT_COLLECTIVE) {
        t_s = collective_s(&machine->cluster, point);
    } else if (point->kind == CAL_POINT_KERNEL && s->rows > 0) {
        ret_sample->bytes = 6.0 * (double)s->rows * (double)s->cols;
        t_s = cost_memory_bound_s(accelerator, move_of(point->name), ret_sample->bytes);
    } else if (point->kind == CAL_POINT_INTERFERENCE) {
        t_s = 1.5e-3;
        ret_sample->beside_s = t_s / (1 - lost_beside(machine, point->name)) *
                               (1 + FIXTURE_NOISE_FRAC * fixture_noise(&machine->state));
        ret_sample->other_s = 2e-3 * (1 + FIXTURE_NOISE_FRAC * fixture_noise(&machine->state));
        ret_sample->other_beside_s = 2e-3 * 1.3 * (1 + FIXTURE_NOISE_FRAC * fixture_noise(&machine->state));
    } else if (point->kind == CAL_POINT_KERNEL && strcmp(point->name, "transformer_layer") == 0) {
        t_s = 5e-3;
        ret_sample->flops = LAYER_MFU * t_s * accelerator->peak_flops_per_s[SPEC_BF16];
        ret_sample->parts_s = 0.96 * t_s;
    }
    const double noise = point->kind == CAL_POINT_DRIFT ? PROBE_NOISE_FRAC : FIXTURE_NOISE_FRAC;
    t_s *= 1 + (machine->hot_at > 0 ? 0 : noise * fixture_noise(&machine->state));
    t_s *= machine->hot_at > 0 && machine->calls >= machine->hot_at ? 1.1 : 1;
    if (machine->faults && !spoil(machine, point, &t_s, ret_sample)) {
        g_strlcpy(reason, "out of memory at this size", reason_size);
        return CAL_SKIPPED;
    }
    ret_sample->count = 12;
    for (int i = 0; i < ret_sample->count; i++)
        ret_sample->seconds[i] = t_s * (1 + 0.001 * (i % 3 - 1));
    ret_sample->tolerance_frac = 0.03;
    ret_sample->error_frac = MAX(ret_sample->error_frac, 0.001);
    ret_sample->state.power_w = 650;
    return CAL_MEASURED;
}

static CalStamp stamp_of(const Machine *machine)
{
    CalStamp stamp = {
        .device = "NVIDIA H200", .uuid = "a-stand-in", .nccl = "2.29.7", .gpus = 8, .capability = 90};
    if (machine->cluster.accelerator.generation.compute_capability == 100) {
        g_strlcpy(stamp.device, "NVIDIA B200", sizeof stamp.device);
        stamp.capability = 100;
    }
    stamp.sm_count = (int)machine->cluster.accelerator.sm_count;
    stamp.cpus = 112;
    stamp.sockets = 2;
    stamp.dram_bytes = 2e12;
    g_strlcpy(stamp.cudnn, "9.19.0", sizeof stamp.cudnn);
    stamp.memory_bytes = machine->cluster.accelerator.memory_bytes;
    g_strlcpy(stamp.command, "a model with noise, not a GPU", sizeof stamp.command);
    return stamp;
}

static inline char *scratch_folder(void)
{
    GError *error = NULL;
    char *folder = g_dir_make_tmp("orrery-test-sweep-XXXXXX", &error);
    g_assert_no_error(error);
    return folder;
}

static inline void sweep_into(Machine *machine, const char *path, bool full, bool expect_ok)
{
    const CalStamp stamp = stamp_of(machine);
    const CalSweepOptions options = {.full = full, .output = path, .quiet = true};
    g_assert_cmpint(fixture_sweep((CalMeter){machine, measure}, &stamp, &options, expect_ok), ==, expect_ok);
}

#endif
