/* tests/gpu/test_cudnn_graphs.cc - whether cuDNN itself, where it is installed, takes the graphs of kernels/cudnn_attention.cu.
 *
 * No GPU is needed: the library is given the properties of one (its ahead-of-time interface, 9.8 and later). An engine that
 * knows a graph generates and compiles its kernel, and then asks the driver to load it: the toolkit's stub of the driver
 * says no, which is as far as one comes without a GPU. A graph that no engine knows fails before, with another sentence:
 * what is expected to be refused is tried as well. Exit status 77: there is no such library here.
 */
#include "kernels/dnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOADS "cuLibraryLoadData" /* where the stub says no */

typedef struct Gpu {
    const char *name;
    int capability, sm_count;
    bool fp8;         /* its engines take e4m3 */
    bool narrow_back; /* and backward in e4m3 with heads of 64 */
} Gpu;

/* As cudaGetDeviceProperties tells them; what engines ask for is the capability, the SMs and the shared memory. */
static void *device_of(const DnnLibrary *library, const Gpu *gpu)
{
    char json[1024];
    void *device = nullptr;
    snprintf(json, sizeof json,
             "{\"maxGridSize\": [2147483647, 65535, 65535], \"maxBlockSize\": [1024, 1024, 64], \"regsPerBlock\": 65536, "
             "\"multiProcessorCount\": %d, \"warpSize\": 32, \"maxSharedMemoryPerBlock\": 49152, "
             "\"maxSharedMemoryPerBlockOptin\": %d, \"reservedSharedMemoryPerBlock\": 1024, \"maxRegistersPerSM\": 65536, "
             "\"maxCtasPerSM\": 32, \"maxThreadsPerBlock\": 1024, \"maxThreadsPerSM\": 2048, \"pciDeviceId\": 0, "
             "\"isTccDriver\": 0, \"supportCoopLaunch\": 1, \"totalGlobalMem\": 80000000000, \"smClockRateKHz\": 1500000, "
             "\"memClockRateKHz\": 2500000, \"l2CacheSize\": 50000000, \"cudaDeviceId\": 0, \"deviceVer\": %d, "
             "\"driverVer\": 13000, \"deviceName\": \"%s\"}",
             gpu->sm_count, gpu->capability >= 900 ? 232448 : 166912, gpu->capability, gpu->name);
    const bool ok =
        library->descriptor(DNN_DEVICE, &device) == 0 &&
        library->set(device, DNN_DEVICE_JSON, DNN_IS_CHAR, (int64_t)strlen(json), json) == 0 &&
        library->finish(device) == 0;
    return ok ? device : nullptr;
}

/* Whether an engine takes attention of this shape. */
static bool takes(const DnnLibrary *library, void *device, const KrnShape *shape, bool backward, char *why, size_t why_size)
{
    DnnGraph *graph = (DnnGraph *)calloc(1, sizeof *graph);
    int64_t workspace = 0;
    graph->library = library;
    graph->next_uid = 1000;
    if (backward)
        dnn_attention_backward(graph, shape);
    else
        dnn_attention_forward(graph, shape);
    const bool planned = !graph->failed && dnn_plan(graph, nullptr, device, &workspace) != nullptr;
    snprintf(why, why_size, "%s", graph->why);
    const bool ok = planned || strstr(graph->why, LOADS) != nullptr;
    dnn_graph_free(graph);
    free(graph);
    return ok;
}

/* One plain case and one with everything: heads that share keys, a mask, queries, keys and values beside each other. */
static int check(const DnnLibrary *library, void *device, const Gpu *gpu, bool fp8, bool backward)
{
    int failures = 0;
    for (int whole = 0; whole < 2; whole++) {
        KrnShape shape = {};
        char why[200];
        shape.batch = 2;
        shape.heads = 16;
        shape.kv_heads = whole ? 4 : 16;
        shape.seq = 2048;
        shape.head_dim = whole ? 128 : 64;
        shape.causal = shape.packed = whole != 0;
        shape.math = fp8 ? KRN_MATH_FP8 : KRN_MATH_BF16;
        const bool want = !fp8 || (gpu->fp8 && (!backward || whole || gpu->narrow_back));
        const bool got = takes(library, device, &shape, backward, why, sizeof why);
        printf("%s %s %s %s dim %d: %s %s\n", got == want ? "ok    " : "FAILED", gpu->name, fp8 ? "fp8" : "bf16",
               backward ? "backward" : "forward", (int)shape.head_dim, got ? "taken" : "refused", got == want ? "" : why);
        failures += got != want;
    }
    return failures;
}

int main()
{
    static const Gpu gpus[] = {{"NVIDIA A100", 800, 108, false, false},
                               {"NVIDIA H200", 900, 132, true, false},
                               {"NVIDIA B200", 1000, 148, true, true}};
    DnnLibrary library;
    char reason[200];
    int failures = 0;
    if (!dnn_load(&library, reason, sizeof reason) || library.version < 91900) {
        printf("skipped: %s\n", library.version > 0 ? "an older cuDNN" : reason);
        return 77;
    }
    for (const Gpu &gpu : gpus) {
        void *device = device_of(&library, &gpu);
        if (device == nullptr) {
            printf("skipped: this cuDNN takes no description of a GPU\n");
            return 77;
        }
        for (int way = 0; way < 4; way++)
            failures += check(&library, device, &gpu, (way & 1) != 0, (way & 2) != 0);
        library.release(device);
    }
    printf("%d failed\n", failures);
    return failures > 0;
}
