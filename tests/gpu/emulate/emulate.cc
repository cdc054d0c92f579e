/* tests/gpu/emulate/emulate.cc - fibers for threads, the heap for device memory. */
#undef _FORTIFY_SOURCE /* its longjmp allows no jump to another stack */
#include "cuda_bf16.h"
#include "cuda_runtime.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

dim3 threadIdx, blockIdx, blockDim, gridDim;
bool emulate_reversed;
size_t emulate_memory_bytes = 1ull << 30;

#define STACK_BYTES (256 * 1024)
#define MAX_THREADS 1024 /* of a block */

struct Barrier {
    unsigned arrived, generation;
};

/* Jumps and not swapcontext, which asks the kernel for the signals' mask each time: four times as fast. No frame is left
 * behind by them. The address sanitizer cannot know that, and makes a system call and clears the stack's shadow at every
 * jump that it sees: twenty times as slow. It sees none of the compiler's own. */
#if defined(__SANITIZE_ADDRESS__) && defined(__x86_64__)
typedef void *Place[5];
#define SET_PLACE(place) __builtin_setjmp(place)
#define GO_TO(place)     __builtin_longjmp(place, 1)
#define JUMPS            __attribute__((noinline, no_sanitize_address))
#else
typedef jmp_buf Place;
#define SET_PLACE(place) _setjmp(place)
#define GO_TO(place)     _longjmp(place, 1)
#define JUMPS            __attribute__((noinline))
#endif

struct Fiber {
    ucontext_t context; /* where it began; it lives on through all blocks */
    Place place;        /* where it stands */
    std::vector<char> stack;
    bool begun, done, parked; /* parked: at the block's barrier, until its generation changes */
    unsigned generation;
};

struct Warp {
    Barrier barrier;
    float value[32];
    uint32_t a[32][4], b[32][2];
};

static std::vector<Fiber> fibers(MAX_THREADS); /* contexts point into themselves: never moved */
static std::vector<Warp> warps;
static Barrier block_barrier;
static unsigned current, alive;
static Place scheduler;
static const std::function<void()> *body_now;

JUMPS static void yield()
{
    if (SET_PLACE(fibers[current].place) == 0)
        GO_TO(scheduler);
}

JUMPS static void go_on(Fiber *fiber)
{
    if (SET_PLACE(scheduler) != 0)
        return;
    if (fiber->begun)
        GO_TO(fiber->place);
    fiber->begun = true;
    setcontext(&fiber->context);
}

static void wait_for(Barrier *barrier, unsigned expected)
{
    const unsigned generation = barrier->generation;
    if (++barrier->arrived >= expected) {
        barrier->arrived = 0;
        barrier->generation++;
        return;
    }
    while (barrier->generation == generation)
        yield();
}

void __syncthreads()
{
    fibers[current].generation = block_barrier.generation;
    fibers[current].parked = true;
    wait_for(&block_barrier, alive);
    fibers[current].parked = false;
}

static Warp *warp_of()
{
    return &warps[current / 32];
}

float __shfl_xor_sync(unsigned mask, float value, int lanes)
{
    (void)mask;
    Warp *warp = warp_of();
    const unsigned lane = current % 32;
    warp->value[lane] = value;
    wait_for(&warp->barrier, 32);
    const float got = warp->value[lane ^ (unsigned)lanes];
    wait_for(&warp->barrier, 32);
    return got;
}

static float half_of(uint32_t pair, int high)
{
    return __bfloat162float(__nv_bfloat16{(uint16_t)(pair >> (high ? 16 : 0))});
}

/* Element (row, k) of A and (k, col) of B as PTX deals them to the lanes. */
static float a_at(const Warp *warp, int row, int k)
{
    const int lane = row % 8 * 4 + k % 8 / 2, part = row / 8 + 2 * (k / 8);
    return half_of(warp->a[lane][part], k % 2);
}

static float b_at(const Warp *warp, int k, int col)
{
    return half_of(warp->b[col * 4 + k % 8 / 2][k / 8], k % 2);
}

void mma_16816(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    Warp *warp = warp_of();
    const int lane = (int)(current % 32);
    memcpy(warp->a[lane], a, sizeof warp->a[lane]);
    memcpy(warp->b[lane], b, sizeof warp->b[lane]);
    wait_for(&warp->barrier, 32);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 16; k++)
            c[i] += a_at(warp, lane / 4 + 8 * (i / 2), k) * b_at(warp, k, 2 * (lane % 4) + i % 2);
    wait_for(&warp->barrier, 32);
}

static void start_fiber()
{
    for (;;) {
        (*body_now)();
        fibers[current].done = true;
        alive--;
        yield();
    }
}

/* A warp runs on until all of its threads are done or at the block's barrier: as far ahead of the others as it may. */
static void run_warp(unsigned warp, unsigned threads)
{
    for (bool moving = true; moving;) {
        moving = false;
        for (unsigned lane = 0; lane < 32 && 32 * warp + lane < threads; lane++) {
            Fiber *fiber = &fibers[32 * warp + (emulate_reversed ? 31 - lane : lane)];
            if (fiber->done || (fiber->parked && fiber->generation == block_barrier.generation))
                continue;
            current = (unsigned)(fiber - fibers.data());
            threadIdx = dim3(current);
            go_on(fiber);
            moving = true;
        }
    }
}

static void run_block(unsigned threads)
{
    alive = threads;
    block_barrier = Barrier{0, 0};
    warps.assign((threads + 31) / 32, Warp{});
    for (unsigned t = 0; t < threads; t++) {
        fibers[t].done = fibers[t].parked = false;
        if (fibers[t].begun)
            continue;
        fibers[t].stack.resize(STACK_BYTES);
        getcontext(&fibers[t].context);
        fibers[t].context.uc_stack.ss_sp = fibers[t].stack.data();
        fibers[t].context.uc_stack.ss_size = STACK_BYTES;
        fibers[t].context.uc_link = nullptr;
        makecontext(&fibers[t].context, start_fiber, 0);
    }
    const unsigned warp_count = (threads + 31) / 32;
    while (alive > 0)
        for (unsigned w = 0; w < warp_count; w++)
            run_warp(emulate_reversed ? warp_count - 1 - w : w, threads);
}

struct EmulatedGraph {
    std::vector<std::function<void()>> work;
};
static EmulatedGraph *captured;

bool emulate_defer(const std::function<void()> &work)
{
    if (captured != nullptr)
        captured->work.push_back(work);
    return captured != nullptr;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    (void)mode;
    captured = stream != nullptr ? new EmulatedGraph : nullptr;
    return captured != nullptr ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *ret_graph)
{
    (void)stream;
    *ret_graph = captured;
    captured = nullptr;
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *ret_ready, cudaGraph_t graph, unsigned long long flags)
{
    (void)flags;
    *ret_ready = new EmulatedGraph(*graph);
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t stream)
{
    (void)stream;
    for (const std::function<void()> &work : ready->work)
        work();
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t ready)
{
    delete ready;
    return cudaSuccess;
}

void emulate_launch(dim3 grid, dim3 block, const std::function<void()> &body)
{
    if (emulate_defer([=]() { emulate_launch(grid, block, body); }))
        return;
    if (block.x > MAX_THREADS)
        abort();
    gridDim = grid;
    blockDim = block;
    body_now = &body;
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                blockIdx = dim3(x, y, z);
                run_block(block.x);
            }
}

/* --- memory --- */

cudaError_t cudaMalloc(void *ret_pointer, size_t bytes)
{
    if (bytes > emulate_memory_bytes)
        return cudaErrorMemoryAllocation;
    void *memory = malloc(bytes + 1);
    memset(memory, 0xff, bytes);
    *(void **)ret_pointer = memory;
    return cudaSuccess;
}

cudaError_t cudaFree(void *pointer)
{
    free(pointer);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    (void)kind;
    memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    memset(to, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}

/* EMULATE_STUCK: after a product that failed the GPU does not answer any more. */
bool emulate_stuck;

cudaError_t cudaDeviceSynchronize()
{
    while (getenv("EMULATED_HUNG") != nullptr) /* as a stream with a collective that waits for a peer that is gone */
        sleep(1);
    return emulate_stuck ? cudaErrorLaunchFailure : cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaSuccess ? "no error" : error == cudaErrorLaunchFailure ? "the GPU is stuck" : "out of memory";
}
