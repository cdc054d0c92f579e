/* tests/gpu/emulate/nccl.cc - NCCL for the emulation: the calls of a group are carried out when it ends. Built as a library
 * of its own, which the program loads as it would load NCCL. Numbers are fp32. Processes meet in a file of the temporary
 * folder that the unique id names: each writes its calls and what they send, all wait for each other, each carries out its
 * own. EMULATE_NCCL is the version that it says it is (22907). */
#include <atomic>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#define MAX_RANKS  16
#define BOX_BYTES  (4u << 20) /* of one rank's calls in a group */
#define WAIT_US    50
#define WAIT_TIMES 400000 /* 20 s */

/* What the processes share; zeroed when the file is made. */
struct Board {
    std::atomic<int> arrived;
    size_t used[MAX_RANKS];
    char box[MAX_RANKS][BOX_BYTES];
};

struct Comm {
    int rank, ranks;
    Board *board; /* null: all ranks are in this process */
    int turn;
};

/* Everybody has come here `turn` times. */
static bool meet(Comm *comm)
{
    comm->turn++;
    comm->board->arrived++;
    const char *patience = getenv("EMULATE_WAIT_MS");
    const int times = patience != nullptr ? atoi(patience) * 1000 / WAIT_US : WAIT_TIMES;
    for (int i = 0; i < times; i++) {
        if (comm->board->arrived >= comm->turn * comm->ranks)
            return true;
        usleep(WAIT_US);
    }
    return false;
}
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

/* One call in a rank's box, with what it sends behind it. */
struct Posted {
    Op op;
    int rank, peer;
    size_t count, bytes;
};

static size_t sent_bytes(const Call &call)
{
    return call.op == RECEIVE ? 0 : sizeof(float) * call.count * (call.op == REDUCE_SCATTER ? (size_t)call.comm->ranks : 1);
}

/* The calls of all ranks in place of this one's; false: a box is too small, or a rank did not come. */
static bool exchange(std::vector<Comm> *others)
{
    Comm *comm = calls[0].comm;
    Board *board = comm->board;
    char *at = board->box[comm->rank];
    for (const Call &call : calls) {
        const Posted posted = {call.op, comm->rank, call.peer, call.count, sent_bytes(call)};
        if ((size_t)(at - board->box[comm->rank]) + sizeof posted + posted.bytes > BOX_BYTES)
            return false;
        memcpy(at, &posted, sizeof posted);
        if (posted.bytes > 0)
            memcpy(at + sizeof posted, call.from, posted.bytes);
        at += sizeof posted + posted.bytes;
    }
    board->used[comm->rank] = (size_t)(at - board->box[comm->rank]);
    if (!meet(comm))
        return false;
    for (int rank = 0; rank < comm->ranks; rank++)
        others->push_back(Comm{rank, comm->ranks, board, 0});
    for (int rank = 0; rank < comm->ranks; rank++)
        for (size_t done = 0; rank != comm->rank && done < board->used[rank];) {
            Posted posted;
            memcpy(&posted, board->box[rank] + done, sizeof posted);
            calls.push_back(Call{posted.op, (const float *)(board->box[rank] + done + sizeof posted), nullptr,
                                 posted.count, posted.peer, &(*others)[(size_t)rank]});
            done += sizeof posted + posted.bytes;
        }
    return true;
}

extern "C" {
int ncclGetVersion(int *version)
{
    const char *text = getenv("EMULATE_NCCL");
    *version = text != nullptr ? atoi(text) : 22907;
    return 0;
}
int ncclGetUniqueId(char *id)
{
    memset(id, 0, 128);
    const char *folder = getenv("TMPDIR");
    snprintf(id, 128, "%s/emulated-nccl-XXXXXX", folder != nullptr ? folder : "/tmp");
    const int file = mkstemp(id);
    const bool ok = file >= 0 && ftruncate(file, sizeof(Board)) == 0;
    if (file >= 0)
        close(file);
    return ok ? 0 : 2;
}
struct Id {
    char bytes[128];
};
int ncclCommInitRank(void **comm, int ranks, Id id, int rank)
{
    const int file = open(id.bytes, O_RDWR);
    void *board = file >= 0 ? mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (file >= 0)
        close(file);
    if (board == MAP_FAILED || ranks > MAX_RANKS)
        return 2;
    Comm *own = new Comm{rank, ranks, (Board *)board, 0};
    *comm = own;
    const bool ok = meet(own);
    if (rank == 0)
        unlink(id.bytes); /* all have it open */
    return ok ? 0 : 6;
}
int ncclCommInitAll(void **comms, int count, const int *devices)
{
    int version;
    ncclGetVersion(&version);
    const char *shared = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    const bool may_share = version >= 23003 && shared != nullptr && strcmp(shared, "1") == 0;
    for (int i = 0; i < count; i++) {
        comms[i] = new Comm{i, count, nullptr, 0};
        for (int j = 0; j < i; j++)
            if (devices[i] == devices[j] && !may_share)
                return 4;
    }
    return 0;
}
int ncclCommDestroy(void *comm)
{
    Comm *own = (Comm *)comm;
    if (own->board != nullptr)
        munmap(own->board, sizeof(Board));
    delete own;
    return 0;
}
int ncclCommAbort(void *comm)
{
    unsetenv("EMULATED_HUNG");
    return ncclCommDestroy(comm);
}
int ncclGroupStart(void)
{
    in_group = true;
    return 0;
}
int ncclGroupEnd(void)
{
    std::vector<Comm> others;
    others.reserve(MAX_RANKS);
    Comm *comm = calls.empty() ? nullptr : calls[0].comm;
    const size_t own = calls.size();
    const char *dead = getenv("EMULATE_HANG_RANK"); /* this rank's process stops here for good */
    while (dead != nullptr && comm != nullptr && comm->rank == atoi(dead))
        pause();
    bool ok = comm == nullptr || comm->board == nullptr || exchange(&others);
    for (size_t i = 0; ok && i < own; i++)
        ok = carry_out(i);
    if (comm != nullptr && comm->board != nullptr)
        ok = meet(comm) && ok; /* nobody writes into a box that another still reads */
    calls.clear();
    in_group = false;
    if (!ok && comm != nullptr && comm->board != nullptr && getenv("EMULATE_WAIT_MS") != nullptr) {
        setenv("EMULATED_HUNG", "1", 1); /* the call is enqueued and never ends, as a real one is */
        return 0;
    }
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
