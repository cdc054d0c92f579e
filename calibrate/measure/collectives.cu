/* calibrate/measure/collectives.cu - NCCL over the GPUs of this process, or over the processes of a team, a GPU each.
 *
 * Alone, one thread enqueues every rank's call inside a group, as nccl-tests does with -g: at small sizes the time is
 * that of the launches. In a team each rank enqueues its own; all go through the same steps, rank 0 says which (agree,
 * share), and a repeat's time is the mean over ranks, as nccl-tests prints it. Sizes are nccl-tests': the whole buffer for
 * all-gather and reduce-scatter.
 */
#include "calibrate/measure/meter.cuh"

#include <math.h>
#include <stdio.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define LONG_CALL_S 0.02 /* one call says enough */
#define BESIDE      "gemm_beside_"
#define TOGETHER    "together_"

/* --- the team --- */

CalOutcome meter_agree(Meter *meter, CalOutcome own, char *reason, size_t reason_size)
{
    struct Word {
        int outcome;
        char reason[200];
    } word = {(int)own, ""};
    CalTeam *team = &meter->team;
    if (team->ranks == 1)
        return own;
    snprintf(word.reason, sizeof word.reason, "%.199s", own == CAL_MEASURED ? "" : reason);
    Word *all = (Word *)g_malloc0(sizeof *all * (size_t)team->ranks);
    bool ok = cal_team_gather(team, &word, sizeof word, all);
    for (int i = team->rank == 0 ? team->ranks - 1 : -1; ok && i >= 0; i--)
        if (all[i].outcome > (int)CAL_MEASURED && all[i].outcome >= word.outcome)
            word = all[i];
    g_free(all);
    ok = ok && cal_team_share(team, &word, sizeof word);
    snprintf(reason, reason_size, "%s", ok ? word.reason : "a rank of the team is gone");
    return ok ? (CalOutcome)word.outcome : CAL_BROKEN;
}

/* Sum over ranks of the numbers, at rank 0. */
static bool add_up(Meter *meter, double *values, int count)
{
    CalTeam *team = &meter->team;
    if (team->ranks == 1)
        return true;
    const size_t size = sizeof *values * (size_t)count;
    double *all = (double *)g_malloc0(size * (size_t)team->ranks);
    const bool ok = cal_team_gather(team, values, size, all);
    for (int i = 1; ok && team->rank == 0 && i < team->ranks; i++)
        for (int j = 0; j < count; j++)
            values[j] += all[(size_t)i * (size_t)count + (size_t)j];
    g_free(all);
    return ok;
}

/* --- communicators --- */

void meter_close_ranks(Meter *meter)
{
    for (int i = 0; i < meter->local_ranks; i++) {
        meter->nccl.comm_destroy(meter->comms[i]);
        cudaSetDevice(i % meter->gpus);
        cudaStreamDestroy(meter->streams[i]);
    }
    cudaSetDevice(0);
    meter->ranks = meter->local_ranks = 0;
}

static bool shares_gpus(const Meter *meter)
{
    const char *allowed = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    return meter->nccl.version >= CAL_NCCL_SHARED_GPU_VERSION && allowed != nullptr &&
           strcmp(allowed, "1") == 0;
}

/* This process's part of a group of `ranks`; returns NCCL's status. */
static int join(Meter *meter, int ranks)
{
    CalTeam *team = &meter->team;
    int devices[METER_MAX_GPUS];
    if (team->ranks == 1) {
        for (int i = 0; i < ranks; i++)
            devices[i] = i % meter->gpus;
        meter->local_ranks = ranks;
        return meter->nccl.comm_init_all(meter->comms, ranks, devices);
    }
    struct {
        CalNcclId id;
        int status;
    } first;
    memset(&first, 0, sizeof first);
    if (team->rank == 0)
        first.status = meter->nccl.unique_id(&first.id);
    if (!cal_team_share(team, &first, sizeof first))
        return 1;
    meter->local_ranks = team->rank < ranks && first.status == 0 ? 1 : 0;
    return meter->local_ranks > 0 ? meter->nccl.comm_init_rank(&meter->comms[0], ranks, first.id, team->rank)
                                  : first.status;
}

/* More ranks than GPUs: several on each, where NCCL allows it. */
static CalOutcome open_ranks(Meter *meter, int ranks, char *reason, size_t reason_size)
{
    const bool alone = meter->team.ranks == 1;
    CalOutcome outcome = CAL_MEASURED;
    if (meter->nccl.library == nullptr) {
        snprintf(reason, reason_size, "no collectives: %s", meter->nccl_reason);
        outcome = CAL_SKIPPED;
    } else if (alone && (ranks > METER_MAX_GPUS || (ranks > meter->gpus && !shares_gpus(meter)))) {
        snprintf(reason, reason_size,
                 "%d ranks on %d GPUs need NCCL 2.30.3 or later and NCCL_MULTI_RANK_GPU_ENABLE=1", ranks,
                 meter->gpus);
        outcome = CAL_SKIPPED;
    }
    outcome = meter_agree(meter, outcome, reason, reason_size);
    if (outcome != CAL_MEASURED || meter->ranks == ranks)
        return outcome;
    meter_close_ranks(meter);
    const int status = join(meter, ranks);
    if (status != 0) {
        snprintf(reason, reason_size, "NCCL cannot join %d GPUs: %s", ranks, meter->nccl.error_text(status));
        meter->local_ranks = 0;
        outcome = CAL_SKIPPED;
    }
    for (int i = 0; i < meter->local_ranks; i++) {
        cudaSetDevice(i % meter->gpus);
        cudaStreamCreateWithFlags(&meter->streams[i], cudaStreamNonBlocking);
    }
    cudaSetDevice(0);
    meter->ranks = status == 0 ? ranks : 0;
    outcome = meter_agree(meter, outcome, reason, reason_size);
    if (outcome != CAL_MEASURED)
        meter_close_ranks(meter);
    return outcome;
}

/* --- one collective --- */

Collective::Collective(Meter *meter_, const char *op_, double bytes, int ranks_)
    : meter(meter_), op(op_), count((size_t)(bytes / 4)), ranks(ranks_)
{
    const bool alone = meter->team.ranks == 1;
    first = alone ? 0 : meter->team.rank;
    local = alone ? ranks : first < ranks ? 1 : 0;
    count = (count + (size_t)ranks - 1) / (size_t)ranks * (size_t)ranks;
    memset(from, 0, sizeof from);
    memset(to, 0, sizeof to);
}

Collective::~Collective()
{
    for (int i = 0; i < local && i < METER_MAX_GPUS; i++) {
        cudaSetDevice(i % meter->gpus);
        cudaFree(from[i]);
        cudaFree(to[i]);
    }
    cudaSetDevice(0);
}

CalOutcome Collective::open(char *reason, size_t reason_size)
{
    CalOutcome outcome = open_ranks(meter, ranks, reason, reason_size);
    cudaError_t error = cudaSuccess;
    if (outcome != CAL_MEASURED)
        return outcome;
    for (int i = 0; error == cudaSuccess && i < local; i++) {
        cudaSetDevice(i % meter->gpus);
        error = cudaMalloc(&from[i], 4 * count);
        if (error == cudaSuccess)
            error = cudaMalloc(&to[i], 4 * count);
        if (error == cudaSuccess)
            error = cudaMemset(from[i], 0, 4 * count);
        if (error == cudaSuccess)
            error = cudaDeviceSynchronize(); /* the ranks' streams do not wait for the one that clears */
    }
    cudaSetDevice(0);
    if (error != cudaSuccess)
        outcome = meter_failed(CAL_SKIPPED, "buffers", error, reason, reason_size);
    return meter_agree(meter, outcome, reason, reason_size);
}

/* Asked and not waited for: a stream whose peer is gone never ends. */
static cudaError_t wait_until(cudaStream_t stream, double end_s)
{
    cudaError_t state;
    while ((state = cudaStreamQuery(stream)) == cudaErrorNotReady && meter_now_s() < end_s)
        sched_yield();
    return state;
}

bool Collective::wait(char *why, size_t why_size)
{
    const double end_s = meter_now_s() + meter->team.timeout_s;
    bool ok = true;
    for (int i = 0; ok && i < local; i++) {
        cudaSetDevice(i % meter->gpus);
        const cudaError_t state = wait_until(meter->streams[i], end_s);
        ok = state == cudaSuccess;
        if (state == cudaErrorNotReady)
            snprintf(why, why_size, "NCCL %s: a rank did not take part within %.0f s", op,
                     meter->team.timeout_s);
        else if (!ok)
            snprintf(why, why_size, "NCCL %s: %s", op, cudaGetErrorString(state));
    }
    for (int i = 0; !ok && i < local; i++) {
        cudaSetDevice(i % meter->gpus);
        meter->nccl.comm_abort(meter->comms[i]);
        cudaStreamSynchronize(meter->streams[i]);
        cudaStreamDestroy(meter->streams[i]);
    }
    if (!ok)
        meter->ranks = meter->local_ranks = 0;
    cudaSetDevice(0);
    return ok;
}

/* `i` counts this process's ranks. */
static int send_and_receive(const Collective *c, int i)
{
    const CalNccl *nccl = &c->meter->nccl;
    const CalNcclComm comm = c->meter->comms[i];
    const cudaStream_t stream = c->meter->streams[i];
    const int rank = c->first + i;
    int status = nccl->send(c->from[i], c->count, CAL_NCCL_FLOAT, (rank + 1) % c->ranks, comm, stream);
    if (status == 0)
        status =
            nccl->receive(c->to[i], c->count, CAL_NCCL_FLOAT, (rank + c->ranks - 1) % c->ranks, comm, stream);
    return status;
}

static int all_to_all(const Collective *c, int i)
{
    const CalNccl *nccl = &c->meter->nccl;
    const CalNcclComm comm = c->meter->comms[i];
    const cudaStream_t stream = c->meter->streams[i];
    const size_t each = c->count / (size_t)c->ranks;
    int status = 0;
    for (int peer = 0; status == 0 && peer < c->ranks; peer++) {
        status =
            nccl->send((float *)c->from[i] + (size_t)peer * each, each, CAL_NCCL_FLOAT, peer, comm, stream);
        if (status == 0)
            status = nccl->receive((float *)c->to[i] + (size_t)peer * each, each, CAL_NCCL_FLOAT, peer, comm,
                                   stream);
    }
    return status;
}

static int call(const Collective *c, int i)
{
    const CalNccl *nccl = &c->meter->nccl;
    const CalNcclComm comm = c->meter->comms[i];
    const cudaStream_t stream = c->meter->streams[i];
    const void *from = c->from[i];
    void *to = c->to[i];
    const size_t each = c->count / (size_t)c->ranks;
    if (strcmp(c->op, "all_reduce") == 0)
        return nccl->all_reduce(from, to, c->count, CAL_NCCL_FLOAT, CAL_NCCL_SUM, comm, stream);
    if (strcmp(c->op, "all_gather") == 0)
        return nccl->all_gather(from, to, each, CAL_NCCL_FLOAT, comm, stream);
    if (strcmp(c->op, "reduce_scatter") == 0)
        return nccl->reduce_scatter(from, to, each, CAL_NCCL_FLOAT, CAL_NCCL_SUM, comm, stream);
    if (strcmp(c->op, "broadcast") == 0)
        return nccl->broadcast(from, to, c->count, CAL_NCCL_FLOAT, 0, comm, stream);
    if (strcmp(c->op, "reduce") == 0)
        return nccl->reduce(from, to, c->count, CAL_NCCL_FLOAT, CAL_NCCL_SUM, 0, comm, stream);
    return strcmp(c->op, "alltoall") == 0 ? all_to_all(c, i) : send_and_receive(c, i);
}

bool Collective::enqueue(char *why, size_t why_size)
{
    int status = meter->nccl.group_start();
    for (int i = 0; status == 0 && i < local; i++)
        status = call(this, i);
    const int ended = meter->nccl.group_end();
    status = status != 0 ? status : ended;
    if (status != 0)
        snprintf(why, why_size, "NCCL %s: %s", op, meter->nccl.error_text(status));
    return status == 0;
}

/* --- is the answer right? --- */

/* Rank r sends r + i mod 7 in element i: what element i of rank r's answer must be; NaN: nothing is said of it. */
static double wanted(const char *op, int ranks, size_t count, int rank, size_t i)
{
    const size_t each = count / (size_t)ranks;
    const double sum = 0.5 * ranks * (ranks - 1);
    if (strcmp(op, "all_reduce") == 0)
        return sum + ranks * (double)(i % 7);
    if (strcmp(op, "reduce") == 0)
        return rank == 0 ? sum + ranks * (double)(i % 7) : NAN;
    if (strcmp(op, "broadcast") == 0)
        return (double)(i % 7);
    if (strcmp(op, "all_gather") == 0)
        return (double)(i / each) + (double)(i % each % 7);
    if (strcmp(op, "reduce_scatter") == 0)
        return i < each ? sum + ranks * (double)(((size_t)rank * each + i) % 7) : NAN;
    if (strcmp(op, "alltoall") == 0)
        return (double)(i / each) + (double)(((size_t)rank * each + i % each) % 7);
    return (double)((rank + ranks - 1) % ranks) + (double)(i % 7);
}

/* Largest error of this process's ranks, into the sample; the team's at rank 0. */
static CalOutcome check_collective(Meter *meter, const char *op, int ranks, CalSample *sample, char *reason,
                                   size_t reason_size)
{
    Collective small(meter, op, 4096.0 * ranks, ranks);
    CalOutcome outcome = small.open(reason, reason_size);
    if (outcome != CAL_MEASURED)
        return outcome;
    float *host = (float *)g_malloc(4 * small.count);
    for (int r = 0; r < small.local; r++) {
        for (size_t i = 0; i < small.count; i++)
            host[i] = (float)(small.first + r) + (float)(i % 7);
        cudaSetDevice(r % meter->gpus);
        cudaMemcpy(small.from[r], host, 4 * small.count, cudaMemcpyHostToDevice);
        cudaDeviceSynchronize(); /* a copy from pageable memory may return before it has arrived */
    }
    cudaSetDevice(0);
    const bool ok =
        small.local == 0 || (small.enqueue(reason, reason_size) && small.wait(reason, reason_size));
    for (int r = 0; ok && r < small.local; r++) {
        cudaSetDevice(r % meter->gpus);
        cudaMemcpy(host, small.to[r], 4 * small.count, cudaMemcpyDeviceToHost);
        for (size_t i = 0; i < small.count; i++) {
            const double off = fabs(host[i] - wanted(op, ranks, small.count, small.first + r, i));
            sample->error_frac = off > sample->error_frac ? off : sample->error_frac; /* not so for NaN */
        }
    }
    cudaSetDevice(0);
    g_free(host);
    sample->tolerance_frac = 1e-3;
    outcome = meter_agree(meter, ok ? CAL_MEASURED : CAL_SKIPPED, reason, reason_size);
    return outcome == CAL_MEASURED && !add_up(meter, &sample->error_frac, 1) ? CAL_BROKEN : outcome;
}

/* --- timing --- */

/* `inner` calls between two looks at the host's clock, so that the wait at the end is small beside them. */
static double time_calls_s(Collective *c, int inner, char *why, size_t why_size)
{
    const double start_s = meter_now_s();
    for (int i = 0; i < inner && c->local > 0; i++)
        if (!c->enqueue(why, why_size))
            return -1;
    return c->wait(why, why_size) ? (meter_now_s() - start_s) / inner : -1;
}

/* Rank 0's time of one call, known to all: the first call connects the ranks; short ones are timed five at a time. */
static CalOutcome time_once(Meter *meter, Collective *collective, double *ret_s, char *reason,
                            size_t reason_size)
{
    bool ok = time_calls_s(collective, 1, reason, reason_size) >= 0;
    for (int calls = 1; ok && calls <= 5; calls += 4) {
        const double each_s = time_calls_s(collective, calls, reason, reason_size);
        double shared_s = each_s;
        ok = each_s >= 0;
        const CalOutcome outcome = meter_agree(meter, ok ? CAL_MEASURED : CAL_SKIPPED, reason, reason_size);
        if (outcome != CAL_MEASURED)
            return outcome;
        if (!cal_team_share(&meter->team, &shared_s, sizeof shared_s)) {
            snprintf(reason, reason_size, "a rank of the team is gone");
            return CAL_BROKEN;
        }
        *ret_s = shared_s;
        if (shared_s > LONG_CALL_S)
            return CAL_MEASURED;
    }
    return ok ? CAL_MEASURED : meter_agree(meter, CAL_SKIPPED, reason, reason_size);
}

static CalOutcome time_collective(Meter *meter, Collective *collective, double seconds, CalSample *sample,
                                  char *reason, size_t reason_size)
{
    bool ok = true;
    double once_s = 0;
    CalOutcome outcome = time_once(meter, collective, &once_s, reason, reason_size);
    if (outcome != CAL_MEASURED)
        return outcome;
    CalRepeats repeats = cal_plan_repeats(once_s, seconds); /* rank 0's */
    if (!cal_team_share(&meter->team, &repeats, sizeof repeats)) {
        snprintf(reason, reason_size, "a rank of the team is gone");
        return CAL_BROKEN;
    }
    for (int i = 0; i < repeats.count; i++) {
        char go = 1;
        if (!cal_team_share(&meter->team, &go, 1)) { /* all begin a repeat together */
            snprintf(reason, reason_size, "a rank of the team is gone");
            return CAL_BROKEN;
        }
        const double each_s = ok ? time_calls_s(collective, repeats.inner, reason, reason_size) : 0;
        ok = ok && each_s >= 0;
        sample->seconds[i] = collective->local > 0 ? each_s : 0;
    }
    sample->count = repeats.count;
    outcome = meter_agree(meter, ok ? CAL_MEASURED : CAL_SKIPPED, reason, reason_size);
    if (outcome == CAL_MEASURED && !add_up(meter, sample->seconds, sample->count))
        return CAL_BROKEN;
    for (int i = 0; meter->team.ranks > 1 && i < sample->count; i++)
        sample->seconds[i] /= collective->ranks;
    return outcome;
}

/* What every rank does at a point. */
static CalOutcome measure(Meter *meter, const char *op, double bytes, int ranks, double seconds,
                          CalSample *sample, char *reason, size_t reason_size)
{
    if (strncmp(op, BESIDE, strlen(BESIDE)) == 0)
        return meter_beside_collective(meter, op + strlen(BESIDE), bytes, ranks, sample, reason, reason_size);
    if (strncmp(op, TOGETHER, strlen(TOGETHER)) == 0)
        return meter_together(meter, op, bytes, ranks, seconds, sample, reason, reason_size);
    CalOutcome outcome = check_collective(meter, op, ranks, sample, reason, reason_size);
    if (outcome != CAL_MEASURED)
        return outcome;
    Collective collective(meter, op, bytes, ranks);
    outcome = collective.open(reason, reason_size);
    if (outcome == CAL_MEASURED)
        outcome = time_collective(meter, &collective, seconds, sample, reason, reason_size);
    cal_nvml_read(&meter->nvml, &sample->state);
    sample->bytes = bytes;
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess)
        outcome = meter_failed(CAL_BROKEN, "the GPU stopped", error, reason, reason_size);
    return meter_agree(meter, outcome, reason, reason_size);
}

/* Rank 0 to the others: which point comes next; no op: none. */
struct Order {
    char op[48];
    double bytes, seconds;
    int ranks;
};

CalOutcome meter_collective(Meter *meter, const CalPoint *point, double seconds, CalSample *ret_sample,
                            char *reason, size_t reason_size)
{
    Order order = {"", point->bytes, seconds, point->gpus};
    snprintf(order.op, sizeof order.op, "%s", point->name);
    if (!cal_team_share(&meter->team, &order, sizeof order)) {
        snprintf(reason, reason_size, "a rank of the team is gone");
        return CAL_BROKEN;
    }
    return measure(meter, point->name, point->bytes, point->gpus, seconds, ret_sample, reason, reason_size);
}

bool meter_follow(Meter *meter, char *reason, size_t reason_size)
{
    CalSample *sample = (CalSample *)g_malloc(sizeof *sample);
    CalOutcome outcome = CAL_MEASURED;
    bool here = true;
    while (outcome != CAL_BROKEN) {
        Order order;
        memset(sample, 0, sizeof *sample);
        here = cal_team_wait(&meter->team) && cal_team_share(&meter->team, &order, sizeof order);
        if (!here || order.op[0] == '\0' || order.ranks < 1 || order.ranks > meter->team.ranks)
            break;
        order.op[sizeof order.op - 1] = '\0';
        outcome =
            measure(meter, order.op, order.bytes, order.ranks, order.seconds, sample, reason, reason_size);
    }
    g_free(sample);
    if (!here)
        snprintf(reason, reason_size, "rank %d: rank 0 is gone", meter->team.rank);
    return here && outcome != CAL_BROKEN;
}

void meter_dismiss(Meter *meter)
{
    Order order;
    memset(&order, 0, sizeof order);
    if (meter->team.ranks > 1 && meter->team.lines != nullptr)
        cal_team_share(&meter->team, &order, sizeof order);
}
