/* tests/gpu/emulate/nccl.cc - NCCL for the emulation: the calls of a group are carried out when it ends. Built as a library
 * of its own, which the program loads as it would load NCCL. Numbers are fp32. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

struct Comm {
    int rank, ranks;
};
enum Op { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, SEND, RECEIVE };
struct Call {
    Op op;
    const float *from;
    float *to;
    size_t count;
    int peer; /* or root */
    Comm *comm;
};

static std::vector<Call> calls;
static bool in_group;

static int add(Op op, const void *from, void *to, size_t count, int peer, void *comm)
{
    if (!in_group) /* one thread with several ranks would wait for ever */
        return 5;
    calls.push_back(Call{op, (const float *)from, (float *)to, count, peer, (Comm *)comm});
    return 0;
}

static const Call *of_rank(Op op, int rank)
{
    for (const Call &call : calls)
        if (call.op == op && call.comm->rank == rank)
            return &call;
    return nullptr;
}

/* Sum over ranks of element i of what they send. */
static float sum_at(const Call &call, size_t i)
{
    float sum = 0;
    for (int rank = 0; rank < call.comm->ranks; rank++) {
        const Call *other = of_rank(call.op, rank);
        sum += other->from[i];
    }
    return sum;
}

/* The n-th receive of a rank from a peer takes what the peer's n-th send to it gives. */
static bool receive(size_t index)
{
    const Call &call = calls[index];
    int before = 0;
    for (size_t i = 0; i < index; i++)
        before +=
            calls[i].op == RECEIVE && calls[i].comm->rank == call.comm->rank && calls[i].peer == call.peer;
    for (const Call &other : calls)
        if (other.op == SEND && other.comm->rank == call.peer && other.peer == call.comm->rank &&
            before-- == 0) {
            memcpy(call.to, other.from, sizeof(float) * call.count);
            return other.count == call.count;
        }
    return false;
}

static bool carry_out(size_t index)
{
    const Call &call = calls[index];
    if (call.op == SEND)
        return true;
    if (call.op == RECEIVE)
        return receive(index);
    for (int rank = 0; rank < call.comm->ranks; rank++)
        if (of_rank(call.op, rank) == nullptr || of_rank(call.op, rank)->count != call.count)
            return false;
    for (size_t i = 0; i < call.count; i++) {
        if (call.op == ALL_REDUCE || (call.op == REDUCE && call.comm->rank == call.peer))
            call.to[i] = sum_at(call, i);
        else if (call.op == REDUCE_SCATTER)
            call.to[i] = sum_at(call, (size_t)call.comm->rank * call.count + i);
        else if (call.op == BROADCAST)
            call.to[i] = of_rank(BROADCAST, call.peer)->from[i];
        for (int rank = 0; call.op == ALL_GATHER && rank < call.comm->ranks; rank++)
            call.to[(size_t)rank * call.count + i] = of_rank(ALL_GATHER, rank)->from[i];
    }
    return true;
}

extern "C" {
int ncclGetVersion(int *version)
{
    *version = 22907;
    return 0;
}
int ncclCommInitAll(void **comms, int count, const int *devices)
{
    for (int i = 0; i < count; i++) {
        comms[i] = new Comm{i, count};
        for (int j = 0; j < i; j++)
            if (devices[i] == devices[j])
                return 4;
    }
    return 0;
}
int ncclCommDestroy(void *comm)
{
    delete (Comm *)comm;
    return 0;
}
int ncclGroupStart(void)
{
    in_group = true;
    return 0;
}
int ncclGroupEnd(void)
{
    bool ok = true;
    for (size_t i = 0; i < calls.size(); i++)
        ok = carry_out(i) && ok;
    calls.clear();
    in_group = false;
    return ok ? 0 : 4;
}
int ncclAllReduce(const void *from, void *to, size_t count, int, int, void *comm, void *)
{
    return add(ALL_REDUCE, from, to, count, 0, comm);
}
int ncclAllGather(const void *from, void *to, size_t count, int, void *comm, void *)
{
    return add(ALL_GATHER, from, to, count, 0, comm);
}
int ncclReduceScatter(const void *from, void *to, size_t count, int, int, void *comm, void *)
{
    return add(REDUCE_SCATTER, from, to, count, 0, comm);
}
int ncclBroadcast(const void *from, void *to, size_t count, int, int root, void *comm, void *)
{
    return add(BROADCAST, from, to, count, root, comm);
}
int ncclReduce(const void *from, void *to, size_t count, int, int, int root, void *comm, void *)
{
    return add(REDUCE, from, to, count, root, comm);
}
int ncclSend(const void *from, size_t count, int, int peer, void *comm, void *)
{
    return add(SEND, from, nullptr, count, peer, comm);
}
int ncclRecv(void *to, size_t count, int, int peer, void *comm, void *)
{
    return add(RECEIVE, nullptr, to, count, peer, comm);
}
const char *ncclGetErrorString(int)
{
    return "the emulated NCCL was used wrongly";
}
}
