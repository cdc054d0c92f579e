/* tests/unit/pass_program.c - see pass_program.h. */
#include "tests/unit/pass_program.h"

#include <math.h>

#include "sim/engine.h"

#define NONE (-1)

enum { SMS }; /* the only resource: collectives reserve a part, kernels use what is left */

typedef struct {
    GArray *instrs[SIM_STREAM_COUNT];
    GArray *ops, *works;            /* one of each an op */
    int32_t last[SIM_STREAM_COUNT]; /* op of a stream; NONE */
    int32_t pass;                   /* number of it, over all rounds */
} PassWriter;

/* `stream` goes on when `on` is through with what it has been given so far. */
static void wait_for(PassWriter *w, SimStream stream, SimStream on)
{
    if (w->last[on] == NONE)
        return;
    const SimInstr wait = {.op = SIM_ONLY_WAITS,
                           .wait_on = sim_wait_on(-1, (int)on),
                           .wait_count = w->last[on] + 1,
                           .microbatch = NONE};
    g_array_append_val(w->instrs[stream], wait);
}

static void run(PassWriter *w, SimStream stream, double seconds, SimShareMode mode, double sm_frac)
{
    SimWork work = {.part_ps = {[SIM_PART_COMPUTE] = sim_ps(fmax(seconds, 0))}};
    const int64_t amount = (int64_t)floor(sm_frac * SIM_FULL_RATE);
    if (amount > 0)
        sim_work_hold(&work, SMS, mode, amount);
    const SimOp op = {.kind = SIM_OP, .work = (int32_t)w->works->len, .mem = NONE, .stage = NONE};
    const SimInstr instr = {.op = (int32_t)w->ops->len, .microbatch = w->pass};
    g_array_append_val(w->works, work);
    g_array_append_val(w->ops, op);
    w->last[stream] = (int32_t)w->instrs[stream]->len;
    g_array_append_val(w->instrs[stream], instr);
}

static void run_kernel(PassWriter *w, double seconds)
{
    run(w, SIM_STREAM_COMPUTE, seconds, SIM_SHARE_FAIR, 1);
}

static void launch(PassWriter *w, const CostPassSteps *steps, double seconds)
{
    if (seconds <= 0)
        return;
    if (steps->blocking)
        wait_for(w, SIM_STREAM_HOST, SIM_STREAM_COMPUTE);
    run(w, SIM_STREAM_HOST, seconds, SIM_SHARE_FAIR, 0);
}

static double launches_s(const CostPassStep *step)
{
    return step->runs ? step->launches * step->launch_s + step->check_s : 0;
}

/* A kernel behind each launch. */
static void write_alone(PassWriter *w, const CostPassSteps *steps, const CostPassStep *step)
{
    const int kernels = step->check_s > 0 || step->launches == 0 ? 1 : step->launches;
    for (int i = 0; i < kernels; i++) {
        launch(w, steps, launches_s(step) / kernels);
        wait_for(w, SIM_STREAM_COMPUTE, SIM_STREAM_HOST);
        run_kernel(w, (step->gpu_s + step->gap_s + step->wait_s) / kernels);
    }
}

/* The product cut in parts, each behind its transfer. */
static void write_pieces(PassWriter *w, const CostPassStep *comm, double comm_s)
{
    for (int i = 0; i < comm->parts; i++) {
        run(w, SIM_STREAM_DATA, comm_s / comm->parts, SIM_SHARE_RESERVED, comm->sm_frac);
        wait_for(w, SIM_STREAM_COMPUTE, SIM_STREAM_DATA);
        run_kernel(w, comm->part_s);
    }
}

/* A step and the collectives beside it, `last_comm` of them the last, `comm_s` in all. */
static void write_together(PassWriter *w, const CostPassSteps *steps, int index,
                           const CostPassStep *last_comm, double comm_s)
{
    const CostPassStep *step = &steps->step[index];
    double host_s = 0;
    for (int i = 0; i < steps->count; i++) {
        const CostPassStep *comm = &steps->step[i];
        host_s +=
            comm->runs && comm->beside != COST_BESIDE_NOTHING && comm->under == index ? launches_s(comm) : 0;
    }
    launch(w, steps, host_s + (steps->blocking ? launches_s(step) : 0));
    wait_for(w, SIM_STREAM_DATA, SIM_STREAM_HOST);
    wait_for(w, SIM_STREAM_DATA, SIM_STREAM_COMPUTE);
    if (!steps->blocking)
        launch(w, steps, launches_s(step));
    wait_for(w, SIM_STREAM_COMPUTE, SIM_STREAM_HOST);
    if (last_comm->beside == COST_BESIDE_PIECES) {
        write_pieces(w, last_comm, comm_s);
    } else {
        run(w, SIM_STREAM_DATA, comm_s, SIM_SHARE_RESERVED, last_comm->sm_frac);
        if (last_comm->beside == COST_BESIDE_LATER)
            wait_for(w, SIM_STREAM_COMPUTE, SIM_STREAM_DATA);
        if (last_comm->beside == COST_BESIDE_NETWORK)
            run(w, SIM_STREAM_COMPUTE, step->gpu_s, SIM_SHARE_FAIR, 0);
        else
            run_kernel(w, last_comm->beside == COST_BESIDE_OWN_PART ? last_comm->part_s : step->gpu_s);
    }
    wait_for(w, SIM_STREAM_COMPUTE, SIM_STREAM_DATA);
    run_kernel(w, step->gap_s + step->wait_s + last_comm->wait_s +
                      (last_comm->beside == COST_BESIDE_OWN_PART ? last_comm->rest_s : 0));
}

static void write_pass(PassWriter *w, const SimPassRun *pass)
{
    const CostPassSteps *steps = pass->steps;
    if (pass->meets)
        wait_for(w, SIM_STREAM_HOST, SIM_STREAM_COMPUTE);
    for (int i = 0; i < steps->count; i++) {
        const CostPassStep *step = &steps->step[i], *comm = NULL;
        double comm_s = 0;
        for (int k = 0; k < steps->count; k++) {
            const CostPassStep *other = &steps->step[k];
            if (other->runs && other->beside != COST_BESIDE_NOTHING && other->under == i) {
                comm = other;
                comm_s += other->gpu_s;
            }
        }
        if (comm != NULL)
            write_together(w, steps, i, comm, comm_s);
        else if (step->runs && step->beside == COST_BESIDE_NOTHING)
            write_alone(w, steps, step);
        if (step->runs && step->idle_s > 0) {
            wait_for(w, SIM_STREAM_HOST, SIM_STREAM_COMPUTE);
            run(w, SIM_STREAM_HOST, step->idle_s, SIM_SHARE_FAIR, 0);
            wait_for(w, SIM_STREAM_COMPUTE, SIM_STREAM_HOST);
            run_kernel(w, 0);
        }
    }
    w->pass++;
}

/* When the GPU ends each pass of the last round. */
static void read_ends(const SimResult *result, int count, int rounds, OrrArena *arena, int64_t *ret_ps)
{
    int64_t *end_ps = ORR_ARENA_NEW(arena, int64_t, count * rounds + 1);
    for (int64_t i = 0; i < result->span_count; i++) {
        const SimSpan *span = &result->spans[i];
        if (span->stream == SIM_STREAM_COMPUTE)
            end_ps[span->microbatch + 1] = MAX(end_ps[span->microbatch + 1], span->end_ps);
    }
    for (int i = 1; i <= count * rounds; i++)
        end_ps[i] = MAX(end_ps[i], end_ps[i - 1]);
    for (int i = 0; i < count; i++)
        ret_ps[i] = end_ps[count * (rounds - 1) + i + 1] - end_ps[count * (rounds - 1) + i];
}

bool sim_pass_program_run(const SimPassRun *runs, int count, int rounds, OrrArena *arena, int64_t *ret_ps,
                          GError **error)
{
    static const SimResource RESOURCES[] = {[SMS] = {.name = "SMs", .capacity = SIM_FULL_RATE}};
    PassWriter writer = {.ops = g_array_new(FALSE, FALSE, sizeof(SimOp)),
                         .works = g_array_new(FALSE, FALSE, sizeof(SimWork))};
    SimClass gpu = {.static_bytes = {0}};
    for (int s = 0; s < SIM_STREAM_COUNT; s++) {
        writer.instrs[s] = g_array_new(FALSE, FALSE, sizeof(SimInstr));
        writer.last[s] = NONE;
    }
    for (int i = 0; i < rounds * count; i++)
        write_pass(&writer, &runs[i % count]);
    for (int s = 0; s < SIM_STREAM_COUNT; s++)
        gpu.streams[s] = (SimList){.instrs = (const SimInstr *)(void *)writer.instrs[s]->data,
                                   .count = writer.instrs[s]->len};
    const SimProgram program = {.classes = 1,
                                .replicas = 1,
                                .class_list = &gpu,
                                .ops = (const SimOp *)(void *)writer.ops->data,
                                .op_count = (int32_t)writer.ops->len,
                                .works = (const SimWork *)(void *)writer.works->data,
                                .work_count = writer.works->len,
                                .resources = RESOURCES,
                                .resource_count = 1,
                                .rate_grain = 1};
    SimResult result;
    const bool ok = sim_engine_run(&program, SIM_RECORD_SPANS, arena, &result, error);
    if (ok)
        read_ends(&result, count, rounds, arena, ret_ps);
    for (int s = 0; s < SIM_STREAM_COUNT; s++)
        g_array_free(writer.instrs[s], TRUE);
    g_array_free(writer.ops, TRUE);
    g_array_free(writer.works, TRUE);
    return ok;
}
