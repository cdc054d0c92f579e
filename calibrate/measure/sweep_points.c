/* calibrate/measure/sweep_points.c - which points a sweep measures: tables of sizes. */
#include <stdio.h>
#include <string.h>

#include "calibrate/measure/sweep_plan.h"

#define KIB           1024.0
#define MIB           (1024 * KIB)
#define GIB           (1024 * MIB)
#define DRIFT_EVERY   40
#define DRIFT_EDGE    8192
#define USABLE_MEMORY 0.85 /* of the GPU: the rest is the context's, the workspace's, another's */

/* --- attention and layers --- */

void cal_point_attention(const char *name, int64_t batch, int64_t seq, int64_t heads, int64_t kv_heads,
                         int64_t dim, bool causal, CalPoint *ret_point)
{
    CalPoint point = {.kind = CAL_POINT_KERNEL, .name = name};
    point.shape = (KrnShape){
        .batch = batch, .seq = seq, .heads = heads, .kv_heads = kv_heads, .head_dim = dim, .causal = causal};
    g_snprintf(point.id, sizeof point.id, "%s %dx%d heads %d/%d dim %d%s", name, (int)batch, (int)seq,
               (int)heads, (int)kv_heads, (int)dim, causal ? " causal" : "");
    *ret_point = point;
}

static void add_attention(CalPlan *plan, const char *name, int64_t seq, int64_t heads, int64_t kv_heads,
                          int64_t dim, bool causal)
{
    CalPoint point;
    cal_point_attention(name, MAX(16384 / seq, 1), seq, heads, kv_heads, dim, causal, &point);
    cal_plan_add(plan, point);
}

/* What frameworks run where it is there; else our own kernel, whose rows say that they are a floor. */
static void add_attentions(CalPlan *plan)
{
    const bool library = plan->stamp->cudnn[0] != '\0', full = plan->options->full;
    const char *const names[] = {library ? "cudnn_forward" : "flash_forward",
                                 library ? "cudnn_backward" : "flash_backward", "cudnn_forward_fp8",
                                 "cudnn_backward_fp8"};
    const size_t kinds = library && plan->stamp->capability >= 90 ? 4 : 2;
    for (size_t i = 0; i < kinds; i++)
        for (int64_t dim = 128; dim >= (full && i < 2 ? 64 : 128); dim /= 2)
            for (int64_t seq = full ? 512 : 2048; seq <= (full ? 16384 : 8192); seq *= full ? 2 : 4) {
                add_attention(plan, names[i], seq, 2048 / dim, 2048 / dim, dim, true);
                if (full)
                    add_attention(plan, names[i], seq, 2048 / dim, 2048 / dim, dim, false);
                if (full && dim == 128)
                    add_attention(plan, names[i], seq, 32, 8, dim, true);
            }
    add_attention(plan, "attention_unfused", 2048, 16, 16, 128, true);
    if (full)
        add_attention(plan, "attention_unfused", 1024, 16, 16, 64, true);
}

static void add_layers(CalPlan *plan)
{
    static const struct {
        int64_t batch, seq, heads, kv_heads, head_dim, hidden, ffn;
    } layers[] = {{1, 4096, 32, 8, 128, 4096, 14336},
                  {2, 2048, 16, 16, 128, 2048, 8192},
                  {1, 8192, 64, 8, 128, 8192, 28672}};
    for (size_t i = 0; i < (plan->options->full ? G_N_ELEMENTS(layers) : 2); i++) {
        CalPoint point = {.kind = CAL_POINT_KERNEL, .name = "transformer_layer"};
        point.shape = (KrnShape){.batch = layers[i].batch,
                                 .seq = layers[i].seq,
                                 .heads = layers[i].heads,
                                 .kv_heads = layers[i].kv_heads,
                                 .head_dim = layers[i].head_dim,
                                 .causal = true,
                                 .cols = layers[i].hidden,
                                 .n = layers[i].ffn,
                                 .library = plan->stamp->cudnn[0] != '\0'};
        g_snprintf(point.id, sizeof point.id, "transformer_layer %dx%d hidden %d ffn %d%s",
                   (int)layers[i].batch, (int)layers[i].seq, (int)layers[i].hidden, (int)layers[i].ffn,
                   point.shape.library ? " cudnn" : "");
        cal_plan_add(plan, point);
    }
}

/* --- kernels that move rows --- */

static const struct {
    const char *name;
    int64_t rows[3], cols[3]; /* the first in a quick sweep; the last is small: the ramp */
    int64_t table_rows;
} moves[] = {
    {"copy", {65536, 98304, 64}, {4096, 4096, 4096}, 0},
    {"triad", {65536, 98304, 64}, {4096, 4096, 4096}, 0},
    {"layer_norm", {16384, 8192, 64}, {4096, 8192, 4096}, 0},
    {"layer_norm_backward", {16384, 8192, 64}, {4096, 8192, 4096}, 0},
    {"rms_norm", {16384, 8192, 64}, {4096, 8192, 4096}, 0},
    {"rms_norm_backward", {16384, 8192, 64}, {4096, 8192, 4096}, 0},
    {"softmax", {32768, 65536, 64}, {2048, 4096, 2048}, 0},
    {"softmax_backward", {32768, 65536, 64}, {2048, 4096, 2048}, 0},
    {"gelu", {16384, 8192, 64}, {16384, 28672, 16384}, 0},
    {"gelu_backward", {16384, 8192, 64}, {16384, 28672, 16384}, 0},
    {"swiglu", {16384, 8192, 64}, {14336, 28672, 14336}, 0},
    {"swiglu_backward", {16384, 8192, 64}, {14336, 28672, 14336}, 0},
    {"dropout", {16384, 8192, 64}, {4096, 8192, 4096}, 0},
    {"residual_add", {16384, 8192, 64}, {4096, 8192, 4096}, 0},
    {"embedding", {16384, 8192, 256}, {4096, 8192, 4096}, 32000},
    {"embedding_backward", {16384, 8192, 256}, {4096, 8192, 4096}, 32000},
    {"cross_entropy", {8192, 8192, 64}, {32000, 128256, 32000}, 0},
    {"permute", {16384, 32768, 256}, {4096, 7168, 4096}, 0},
    {"router", {16384, 16384, 256}, {256, 64, 256}, 0},
    {"cast_fp8", {16384, 8192, 64}, {4096, 8192, 4096}, 0},
    {"cast_bf16", {16384, 8192, 64}, {4096, 8192, 4096}, 0},
    {"rope", {16384, 8192, 64}, {4096, 8192, 4096}, 0},
    {"grad_norm", {16384, 65536, 64}, {4096, 4096, 4096}, 0},
    {"adam_fp32", {16384, 65536, 64}, {4096, 4096, 4096}, 0},
    {"adam_mixed", {16384, 65536, 64}, {4096, 4096, 4096}, 0},
    /* What no kernel of our own does. */
    {"te_cast_fp8_both", {16384, 8192, 64}, {4096, 8192, 4096}, 0},
    {"te_cast_mxfp8", {16384, 8192, 64}, {4096, 8192, 4096}, 0},
};

/* Transformer Engine's, beside ours: where it works here, what frameworks run is measured. */
static const struct {
    const char *own, *library;
} in_library[] = {
    {"layer_norm", "te_layer_norm"}, {"layer_norm_backward", "te_layer_norm_backward"},
    {"rms_norm", "te_rms_norm"},     {"rms_norm_backward", "te_rms_norm_backward"},
    {"swiglu", "te_swiglu"},         {"swiglu_backward", "te_swiglu_backward"},
    {"cast_fp8", "te_cast_fp8"},
};

static bool has(const CalStamp *stamp, const char *kernel)
{
    g_auto(GStrv) names = g_strsplit(stamp->te_kernels, " ", -1);
    return g_strv_contains((const char *const *)names, kernel);
}

const char *cal_mover(const CalStamp *stamp, const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(in_library); i++)
        if (strcmp(in_library[i].own, name) == 0 && has(stamp, in_library[i].library))
            return in_library[i].library;
    return !g_str_has_prefix(name, "te_") || has(stamp, name) ? name : NULL;
}

static void add_move(CalPlan *plan, const char *name, int64_t rows, int64_t cols, int64_t table_rows)
{
    CalPoint point = {.kind = CAL_POINT_KERNEL, .name = name};
    point.shape = (KrnShape){.rows = rows, .cols = cols, .n = table_rows};
    g_snprintf(point.id, sizeof point.id, "%s %dx%d", name, (int)rows, (int)cols);
    cal_plan_add(plan, point);
}

/* A full sweep follows the ramp from the first size down to the last, and up to the second. */
static void add_moves(CalPlan *plan)
{
    for (size_t i = 0; i < G_N_ELEMENTS(moves); i++) {
        const int64_t *rows = moves[i].rows, *cols = moves[i].cols, table_rows = moves[i].table_rows;
        const char *name = cal_mover(plan->stamp, moves[i].name);
        if (name == NULL)
            continue;
        for (int64_t count = rows[0]; count > rows[2]; count /= plan->options->full ? 2 : count)
            add_move(plan, name, count, cols[0], table_rows);
        if (plan->options->full)
            add_move(plan, name, rows[1], cols[1], table_rows);
        add_move(plan, name, rows[2], cols[2], table_rows);
        for (int64_t count = rows[1] / 2; plan->options->full && count >= rows[1] / 64; count /= 2)
            if (cols[1] != cols[0])
                add_move(plan, name, count, cols[1], table_rows);
    }
}

/* --- links, host --- */

static void add_sized(CalPlan *plan, CalPointKind kind, const char *name, double bytes, int gpus)
{
    CalPoint point = {.kind = kind, .name = name, .bytes = bytes, .gpus = gpus};
    char ranks[24] = "";
    if (kind == CAL_POINT_INTERFERENCE && gpus > 1)
        g_snprintf(ranks, sizeof ranks, " %d gpus", gpus);
    if (bytes > 0)
        g_snprintf(point.id, sizeof point.id, "%s%s %.0f", name, ranks, bytes);
    else
        g_snprintf(point.id, sizeof point.id, "%s%s", name, ranks);
    cal_plan_add(plan, point);
}

static void add_links(CalPlan *plan)
{
    static const char *const latencies[] = {"launch", "launch_and_wait", "event", "stream_wait"};
    static const char *const copies[] = {"h2d_pinned",   "d2h_pinned",    "both_pinned",     "h2d_pageable",
                                         "d2h_pageable", "both_pageable", "device_to_device"};
    const bool full = plan->options->full;
    for (size_t i = 0; i < G_N_ELEMENTS(latencies); i++)
        add_sized(plan, CAL_POINT_LATENCY, latencies[i], 0, 1);
    for (size_t i = 0; i < G_N_ELEMENTS(copies); i++)
        for (double bytes = 64 * KIB; bytes <= GIB; bytes *= full ? 4 : 64)
            add_sized(plan, CAL_POINT_COPY, copies[i], bytes, 1);
    for (double bytes = 64 * KIB; bytes <= GIB && plan->stamp->gpus > 1; bytes *= full ? 4 : 64) {
        add_sized(plan, CAL_POINT_COPY, "peer_to_peer", bytes, 2);
        add_sized(plan, CAL_POINT_COPY, "peer_to_peer_both", bytes, 2);
    }
}

static const char *const collective_ops[] = {"all_reduce", "all_gather", "reduce_scatter", "alltoall",
                                             "broadcast",  "reduce",     "send_recv"};

static void add_collective(CalPlan *plan, const char *op, double bytes, int ranks, int nodes, bool shared)
{
    CalPoint point = {.kind = CAL_POINT_COLLECTIVE,
                      .name = op,
                      .bytes = bytes,
                      .gpus = ranks,
                      .nodes = nodes,
                      .shared = shared};
    char where[40] = "";
    if (nodes > 0)
        g_snprintf(where, sizeof where, " %d nodes", nodes);
    g_snprintf(point.id, sizeof point.id, "%s%s %d %s %.0f", op, where, ranks,
               shared ? "ranks on 1 gpu" : "gpus", bytes);
    /* Two buffers a rank; NCCL takes some of its own. */
    if (4 * bytes * (shared ? ranks : 1) <= USABLE_MEMORY * plan->stamp->memory_bytes)
        cal_plan_add(plan, point);
}

static void add_sizes(CalPlan *plan, const char *op, int ranks, int nodes)
{
    const bool full = plan->options->full;
    for (double bytes = KIB; bytes <= (full ? 8 * GIB : GIB); bytes *= full ? 2 : 16)
        add_collective(plan, op, bytes, ranks, nodes, false);
}

/* Groups of 2, 4 ... all GPUs; one GPU has nobody to speak to. */
static void add_collectives(CalPlan *plan)
{
    const int gpus = plan->stamp->gpus;
    for (int ranks = 2; ranks <= gpus; ranks = ranks < gpus && 2 * ranks > gpus ? gpus : 2 * ranks) {
        if (!plan->options->full && ranks != gpus)
            continue;
        for (size_t i = 0; i < G_N_ELEMENTS(collective_ops); i++)
            if (strcmp(collective_ops[i], "send_recv") != 0 || ranks == 2 || ranks == gpus)
                add_sizes(plan, collective_ops[i], ranks, 0);
    }
    for (size_t i = 0; gpus == 1 && plan->stamp->shares_gpus && i < G_N_ELEMENTS(collective_ops); i++)
        for (int ranks = 2; ranks <= 4; ranks *= 2)
            for (double bytes = KIB; bytes <= 64 * MIB; bytes *= plan->options->full ? 4 : 256)
                add_collective(plan, collective_ops[i], bytes, ranks, 0, true);
}

/* Over 1, 2, 4 ... all nodes of a team; quick: all. Nodes of different sizes: all ranks only. Groups of 2, 4 ... ranks of
 * the first node come before: without them, what a collective takes once and what a step takes cannot be told apart. */
static void add_team(CalPlan *plan)
{
    const int nodes = plan->stamp->nodes, each = plan->stamp->ranks_per_node;
    for (int ranks = 2; plan->options->full && ranks < each; ranks *= 2)
        for (size_t i = 0; i < G_N_ELEMENTS(collective_ops); i++)
            add_sizes(plan, collective_ops[i], ranks, 1);
    for (int some = plan->options->full && each > 0 ? 1 : nodes; some <= nodes;
         some = some < nodes && 2 * some > nodes ? nodes : 2 * some)
        for (size_t i = 0; i < G_N_ELEMENTS(collective_ops); i++)
            if (some == nodes || some * each > 1)
                add_sizes(plan, collective_ops[i], some == nodes ? plan->stamp->gpus : some * each, some);
}

/* One thread, as a plain save does it, and several, as an offload engine does. */
static void add_file(CalPlan *plan, const char *name, int threads)
{
    CalPoint point = {.kind = CAL_POINT_HOST, .name = name, .bytes = GIB, .threads = threads};
    g_snprintf(point.id, sizeof point.id, "%s %.0f %d threads", name, point.bytes, threads);
    cal_plan_add(plan, point);
}

/* Of the host's memory; threads 0: one a processor. */
static void add_host(CalPlan *plan, const char *name, double bytes, int threads)
{
    CalPoint point = {.kind = CAL_POINT_HOST, .name = name, .bytes = bytes, .threads = threads};
    char of[24] = "";
    if (threads > 0)
        g_snprintf(of, sizeof of, " %d threads", threads);
    g_snprintf(point.id, sizeof point.id, "%s %.0f%s", name, bytes, of);
    cal_plan_add(plan, point);
}

/* What ranks do at once: copies of 2, 4 ... GPUs, Adam of all ranks, a layer on all GPUs until they are warm. */
static void add_together(CalPlan *plan)
{
    static const char *const copies[] = {"together_h2d", "together_d2h", "together_both"};
    const int gpus = plan->stamp->gpus;
    for (size_t i = 0; i < G_N_ELEMENTS(copies); i++)
        for (int ranks = plan->options->full ? 2 : gpus; ranks <= gpus && ranks > 1;
             ranks = ranks < gpus && 2 * ranks > gpus ? gpus : 2 * ranks) {
            CalPoint point = {
                .kind = CAL_POINT_TOGETHER, .name = copies[i], .bytes = 64 * MIB, .gpus = ranks};
            g_snprintf(point.id, sizeof point.id, "%s %d gpus %.0f", copies[i], ranks, point.bytes);
            cal_plan_add(plan, point);
        }
    CalPoint adam = {
        .kind = CAL_POINT_TOGETHER, .name = "together_cpu_adam", .bytes = 28 * 16 * MIB, .gpus = gpus};
    adam.threads = MAX(plan->stamp->cpus / MAX(gpus, 1), 1);
    g_snprintf(adam.id, sizeof adam.id, "%s %d gpus %d threads", adam.name, gpus, adam.threads);
    cal_plan_add(plan, adam);
    CalPoint layer = {.kind = CAL_POINT_TOGETHER, .name = "together_layer", .gpus = gpus};
    g_snprintf(layer.id, sizeof layer.id, "%s %d gpus", layer.name, gpus);
    cal_plan_add(plan, layer);
}

static void add_rest(CalPlan *plan)
{
    const int gpus = plan->stamp->gpus;
    add_sized(plan, CAL_POINT_INTERFERENCE, "gemm_beside_d2h", 256 * MIB, 1);
    add_sized(plan, CAL_POINT_INTERFERENCE, "gemm_beside_device_copy", 256 * MIB, 1);
    static const char *const beside[] = {"gemm_beside_all_reduce", "gemm_beside_all_gather",
                                         "gemm_beside_reduce_scatter", "gemm_beside_alltoall"};
    for (size_t i = 0; gpus > 1 && i < G_N_ELEMENTS(beside); i++)
        for (double bytes = 256 * MIB; bytes >= (plan->options->full ? 16 * MIB : 256 * MIB); bytes /= 2)
            add_sized(plan, CAL_POINT_INTERFERENCE, beside[i], bytes, gpus);
    add_host(plan, "host_triad", 3 * 256 * MIB, 0);
    add_host(plan, "host_triad", 3 * 256 * MIB, 1);
    add_host(plan, "cpu_adam", 28 * 16 * MIB, 0);
    for (int threads = plan->options->full ? 1 : 8; threads <= 32; threads *= plan->options->full ? 4 : 32) {
        add_file(plan, "file_write", threads);
        add_file(plan, "file_read", threads);
    }
}

/* How often a full sweep comes by a point. One measurement is good to some 3 % whatever its repeats say, because what makes
 * it off holds as long as they do; a parameter that few points speak of needs it several times, minutes apart. Interference is
 * a quotient of two times and decides a share by some points an algorithm. */
static int rounds_of(const CalPoint *point)
{
    static const char *const few[] = {"softmax", "adam", "cross_entropy", "permute", "embedding"};
    switch (point->kind) {
    case CAL_POINT_INTERFERENCE:
        return point->gpus > 1 ? 16 : 1;
    case CAL_POINT_COLLECTIVE:
        if (strcmp(point->name, "alltoall") == 0 || strcmp(point->name, "all_reduce") == 0)
            return point->nodes > 1 ? 4 : 3;
        return point->nodes > 1 ? 4 : point->nodes > 0 ? 2 : 1;
    case CAL_POINT_KERNEL:
        for (size_t i = 0; i < G_N_ELEMENTS(few); i++)
            if (g_str_has_prefix(point->name, few[i]))
                return 3;
        return strcmp(point->name, "gemm") == 0 && point->shape.math == KRN_MATH_FP8 && !point->shape.precise
                   ? 2
                   : 1;
    default:
        return 1;
    }
}

/* Later rounds come after everything else, so that they see other clocks and another network. */
static void add_rounds(CalPlan *plan)
{
    const guint count = plan->points->len;
    bool more = plan->options->full;
    for (int round = 2; more; round++) {
        more = false;
        for (guint i = 0; i < count; i++) {
            CalPoint point = g_array_index(plan->points, CalPoint, i);
            if (rounds_of(&point) < round)
                continue;
            more = true;
            char *once = g_strdup(point.id);
            g_snprintf(point.id, sizeof point.id, "%s round %d", once, round);
            g_free(once);
            point.round = round;
            g_array_append_val(plan->points, point);
        }
    }
}

static bool has_product(const GArray *points)
{
    for (guint i = 0; i < points->len; i++)
        if (strcmp(g_array_index(points, CalPoint, i).name, "gemm") == 0)
            return true;
    return false;
}

/* A product long enough to be throttled (8192 cubed: 1.5 ms on a Hopper GPU) before the first point, after every so many
 * and after the last: what lies between two of them was measured at clocks between theirs. */
static GArray *with_drift(GArray *points)
{
    GArray *all = g_array_new(FALSE, TRUE, sizeof(CalPoint));
    CalPoint probe = {.kind = CAL_POINT_DRIFT, .name = "gemm"};
    probe.shape = (KrnShape){.m = DRIFT_EDGE, .n = DRIFT_EDGE, .k = DRIFT_EDGE, .groups = 1};
    const bool probed = has_product(points);
    for (guint i = 0; i <= points->len; i++) {
        if (probed && (i % DRIFT_EVERY == 0 || i == points->len)) {
            g_snprintf(probe.id, sizeof probe.id, "drift %u", i);
            g_array_append_val(all, probe);
        }
        if (i < points->len)
            g_array_append_val(all, g_array_index(points, CalPoint, i));
    }
    g_array_unref(points);
    return all;
}

GArray *cal_sweep_points(const CalStamp *stamp, const CalSweepOptions *options)
{
    CalPlan plan = {g_array_new(FALSE, TRUE, sizeof(CalPoint)), stamp, options};
    if (stamp->nodes > 0) {
        add_team(&plan);
        add_rounds(&plan);
        return plan.points;
    }
    cal_plan_products(&plan);
    add_attentions(&plan);
    add_layers(&plan);
    add_moves(&plan);
    add_links(&plan);
    add_collectives(&plan);
    add_rest(&plan);
    add_together(&plan);
    add_rounds(&plan);
    return with_drift(plan.points);
}
