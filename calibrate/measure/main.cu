/* calibrate/measure/main.cu - orrery-calibrate: measures this machine's GPUs, links and host into one table.
 *
 * `orrery calibrate fit` turns the table into a profile, on this machine or another. Exit status: 0 done, 2 wrong use or
 * surroundings in which nothing can be measured, said in one sentence.
 */
#include "calibrate/measure/checks.h"
#include "calibrate/measure/host_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BUSY_FRAC    0.05
#define BUSY_BYTES   2e9
#define IDLE_SECONDS 3.0
#define LEAST_CHIP   80    /* compute capability 8.0: bf16 tensor cores */
#define FLUSH_TIMES  2     /* the L2 cache */
#define JOIN_SECONDS 120.0 /* until all ranks of a job have started; ORRERY_TIMEOUT says otherwise */

struct Arguments {
    CalSweepOptions options;
    const char *folder;
    int gpu;
    bool list, check, busy, help, quick, try_library;
};

static const char usage[] =
    "usage: orrery-calibrate [--quick | --full] [--output FILE] [option...]\n"
    "\n"
    "  --quick          few sizes, about two minutes (the default)\n"
    "  --full           every size, a quarter of an hour\n"
    "  --output FILE    the table (calibration.json); FILE.journal keeps what is done, and the same command "
    "goes on from it\n"
    "  --only TEXT      points whose name holds TEXT (\"gemm bf16\", \"all_reduce\")\n"
    "  --shapes FILE    the kernels of your own scenario, as `orrery run SCENARIO --kernels FILE` wrote "
    "them\n"
    "  --seconds S      spent on repeats of a point (0.2); ten repeats at least\n"
    "  --gpu N          the GPU for everything that needs one (0)\n"
    "  --folder DIR     where a file is written and read (the folder of FILE)\n"
    "  --list           print the points and stop\n"
    "  --check          every kernel at small size against the CPU, no timing (for compute-sanitizer)\n"
    "  --busy           measure although others use the GPU\n"
    "  --quiet          no progress\n"
    "\n"
    "Started by torchrun, mpirun or srun with a process a GPU, it measures the collectives between all of "
    "them: NCCL over\n"
    "nodes. Rank 0 writes the table. MASTER_ADDR says where rank 0 is when the launcher does not, "
    "ORRERY_PORT its port.\n";

static int fail(const char *text)
{
    fprintf(stderr, "orrery-calibrate: %s\n", text);
    return 2;
}

/* Value of "--name VALUE" or "--name=VALUE" at argv[*at]; null when it is another option. */
static const char *value_of(int argc, char **argv, int *at, const char *name)
{
    const size_t length = strlen(name);
    if (strncmp(argv[*at], name, length) != 0)
        return nullptr;
    if (argv[*at][length] == '=')
        return argv[*at] + length + 1;
    return argv[*at][length] == '\0' && *at + 1 < argc ? argv[++*at] : nullptr;
}

static bool flag_of(const char *argument, Arguments *arguments)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"--full", &arguments->options.full},   {"--quick", &arguments->quick},
                 {"--quiet", &arguments->options.quiet}, {"--list", &arguments->list},
                 {"--check", &arguments->check},         {"--busy", &arguments->busy},
                 {"--help", &arguments->help},           {"-h", &arguments->help},
                 {"--try", &arguments->try_library}};
    for (const auto &entry : flags)
        if (strcmp(argument, entry.name) == 0)
            return *entry.flag = true;
    return false;
}

/* False with a sentence. */
static bool read_arguments(int argc, char **argv, Arguments *arguments, char *reason, size_t reason_size)
{
    for (int i = 1; i < argc; i++) {
        const char *value = nullptr;
        if (flag_of(argv[i], arguments))
            continue;
        if ((value = value_of(argc, argv, &i, "--output")) != nullptr)
            arguments->options.output = value;
        else if ((value = value_of(argc, argv, &i, "--only")) != nullptr)
            arguments->options.only = value;
        else if ((value = value_of(argc, argv, &i, "--shapes")) != nullptr)
            arguments->options.shapes = value;
        else if ((value = value_of(argc, argv, &i, "--folder")) != nullptr)
            arguments->folder = value;
        else if ((value = value_of(argc, argv, &i, "--seconds")) != nullptr)
            arguments->options.seconds = g_ascii_strtod(value, nullptr);
        else if ((value = value_of(argc, argv, &i, "--gpu")) != nullptr)
            arguments->gpu = atoi(value);
        else {
            snprintf(reason, reason_size, "\"%.60s\" is not an option, or lacks its value; --help lists them",
                     argv[i]);
            return false;
        }
    }
    if (arguments->options.full && arguments->quick)
        snprintf(reason, reason_size, "--quick and --full exclude each other");
    return !(arguments->options.full && arguments->quick);
}

/* --- surroundings --- */

static void version_text(int version, char *text, size_t size)
{
    snprintf(text, size, "%d.%d", version / 1000, version % 1000 / 10);
}

/* GPUs of another kind have no part in what several measure together. */
static int like_gpus(const Arguments *arguments, int count)
{
    char other[201];
    const int alike = meter_like_gpus(count, other, sizeof other);
    if (alike < count && !arguments->options.quiet)
        fprintf(stderr,
                "orrery-calibrate: GPU %d is another kind (%s): it and those behind it are left out\n", alike,
                other);
    return alike;
}

/* False with a sentence when nothing can be measured here. */
static bool find_gpu(const Arguments *arguments, CalStamp *stamp, char *reason, size_t reason_size)
{
    int count = 0, runtime = 0, driver = 0;
    char needs[16], has[16];
    const cudaError_t error = cudaGetDeviceCount(&count);
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    version_text(runtime, needs, sizeof needs);
    version_text(driver, has, sizeof has);
    if (error == cudaErrorInsufficientDriver && driver > 0)
        snprintf(reason, reason_size,
                 "the driver is too old: it knows CUDA %s, this program is built with %s", has, needs);
    else if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice ||
             (error == cudaSuccess && count == 0))
        snprintf(reason, reason_size,
                 "there is no NVIDIA GPU here, or its driver is not loaded (nvidia-smi lists GPUs)");
    else if (error != cudaSuccess)
        snprintf(reason, reason_size, "the GPU does not answer: %s", cudaGetErrorString(error));
    else if (arguments->gpu < 0 || arguments->gpu >= count)
        snprintf(reason, reason_size, "there is no GPU %d; GPUs 0 to %d are here", arguments->gpu, count - 1);
    else
        stamp->gpus = like_gpus(arguments, count);
    version_text(runtime, stamp->cuda, sizeof stamp->cuda);
    snprintf(stamp->driver, sizeof stamp->driver, "CUDA %s", has);
    return stamp->gpus > 0;
}

static void read_device(int gpu, CalStamp *stamp, char *bus_id, int bus_id_size)
{
    cudaDeviceProp properties;
    cudaGetDeviceProperties(&properties, gpu);
    cudaDeviceGetPCIBusId(bus_id, bus_id_size, gpu);
    snprintf(stamp->device, sizeof stamp->device, "%.127s", properties.name);
    for (int i = 0; i < 16; i++)
        snprintf(stamp->uuid + 2 * i, 3, "%02x", (unsigned char)properties.uuid.bytes[i]);
    stamp->sm_count = properties.multiProcessorCount;
    stamp->capability = 10 * properties.major + properties.minor;
    stamp->memory_bytes = (double)properties.totalGlobalMem;
    stamp->l2_bytes = properties.l2CacheSize;
}

static void read_surroundings(int argc, char **argv, CalStamp *stamp)
{
    krn_gemm_version(stamp->cublaslt, sizeof stamp->cublaslt);
    stamp->cpus = cal_host_processors();
    cal_host_name(stamp->cpu, sizeof stamp->cpu);
    stamp->sockets = cal_host_sockets();
    stamp->dram_bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    const time_t now = time(nullptr);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(stamp->date, sizeof stamp->date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (gethostname(stamp->host, sizeof stamp->host - 1) != 0)
        snprintf(stamp->host, sizeof stamp->host, "?");
    const char *sys = g_getenv("ORRERY_SYS"); /* another tree, for tests and containers */
    cal_nics_read(sys != nullptr ? sys : "/sys", g_getenv("NCCL_IB_HCA"), &stamp->nics);
    for (int i = 0; i < argc; i++)
        g_strlcat(stamp->command, i == 0 ? "orrery-calibrate" : argv[i], sizeof stamp->command),
            g_strlcat(stamp->command, i + 1 < argc ? " " : "", sizeof stamp->command);
}

/* GPUs that this process may see, without asking CUDA, which would then stay with them; 0: not known. */
static int count_visible()
{
    const char *visible = g_getenv("CUDA_VISIBLE_DEVICES");
    int count = 0;
    if (visible != nullptr && visible[0] != '\0') {
        char **names = g_strsplit(visible, ",", -1);
        count = (int)g_strv_length(names);
        g_strfreev(names);
        return count;
    }
    GDir *dir = g_dir_open("/proc/driver/nvidia/gpus", 0, nullptr);
    while (dir != nullptr && g_dir_read_name(dir) != nullptr)
        count++;
    if (dir != nullptr)
        g_dir_close(dir);
    return count;
}

/* The GPU of a rank: its number on the node, or 0 where the launcher shows each process its own. */
static bool choose_team_gpu(const CalTeam *team, Arguments *arguments, char *reason, size_t reason_size)
{
    const int count = count_visible();
    const char *shared = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    if (team->ranks == 1 || count == 1)
        return true;
    arguments->gpu = count > 0 ? team->local_rank % count : team->local_rank;
    if (count == 0 || team->local_rank < count || (shared != nullptr && strcmp(shared, "1") == 0))
        return true;
    snprintf(reason, reason_size,
             "rank %d is number %d on this node, which has %d GPUs; start a process a GPU, or set "
             "NCCL_MULTI_RANK_GPU_ENABLE=1 with NCCL 2.30.3 or later",
             team->rank, team->local_rank, count);
    return false;
}

/* A GPU that others use gives times that are not its own. */
static bool is_idle(const Meter *meter, int gpu, char *reason, size_t reason_size)
{
    double busy_frac = 0, used_bytes = 0;
    const double end_s = meter_now_s() + IDLE_SECONDS; /* a run that has just ended is still in the average */
    do {
        cal_nvml_others(&meter->nvml, &busy_frac, &used_bytes);
        if (busy_frac <= BUSY_FRAC && used_bytes <= BUSY_BYTES)
            return true;
        g_usleep(100000);
    } while (meter_now_s() < end_s);
    snprintf(reason, reason_size,
             "GPU %d is in use (busy %.0f %% of the time, %.1f GiB taken); wait for it, or measure anyway "
             "with --busy",
             gpu, busy_frac > 0 ? 100 * busy_frac : 0, used_bytes / 1073741824.0);
    return false;
}

/* --- the meter --- */

static CalOutcome measure(void *self, const CalPoint *point, double seconds, CalSample *ret_sample,
                          char *reason, size_t reason_size)
{
    Meter *meter = (Meter *)self;
    switch (point->kind) {
    case CAL_POINT_KERNEL:
    case CAL_POINT_DRIFT:
        return meter_kernel(meter, point, seconds, ret_sample, reason, reason_size);
    case CAL_POINT_LATENCY:
        return meter_latency(meter, point, seconds, ret_sample, reason, reason_size);
    case CAL_POINT_COPY:
        return meter_copy(meter, point, seconds, ret_sample, reason, reason_size);
    case CAL_POINT_COLLECTIVE:
        return meter_collective(meter, point, seconds, ret_sample, reason, reason_size);
    case CAL_POINT_TOGETHER:
        return meter_collective(meter, point, seconds, ret_sample, reason, reason_size);
    case CAL_POINT_INTERFERENCE:
        return meter_interference(meter, point, seconds, ret_sample, reason, reason_size);
    default:
        return cal_host_measure(point, meter->folder, seconds, ret_sample, reason, reason_size);
    }
}

static bool open_meter(Meter *meter, const Arguments *arguments, CalStamp *stamp, char *reason,
                       size_t reason_size)
{
    char nvml_reason[160];
    read_device(arguments->gpu, stamp, meter->bus_id, sizeof meter->bus_id);
    if (stamp->capability < LEAST_CHIP) {
        snprintf(reason, reason_size, "%s is of compute capability %d.%d; 8.0 or later is needed",
                 stamp->device, stamp->capability / 10, stamp->capability % 10);
        return false;
    }
    if (cal_nvml_load(meter->bus_id, &meter->nvml, nvml_reason, sizeof nvml_reason))
        snprintf(stamp->driver, sizeof stamp->driver, "%.30s", meter->nvml.driver),
            cal_nvml_limits(&meter->nvml, &stamp->limits);
    else if (!arguments->options.quiet)
        fprintf(stderr, "orrery-calibrate: %s\n", nvml_reason);
    if (!arguments->busy && !is_idle(meter, arguments->gpu, reason, reason_size))
        return false;
    if (cal_nccl_load(&meter->nccl, meter->nccl_reason, sizeof meter->nccl_reason))
        cal_nccl_version_text(meter->nccl.version, stamp->nccl, sizeof stamp->nccl);
    const char *shared = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    stamp->shares_gpus =
        meter->nccl.version >= CAL_NCCL_SHARED_GPU_VERSION && shared != nullptr && strcmp(shared, "1") == 0;
    const cudaError_t error = cudaSetDevice(0); /* GPU 0 of this process is the chosen one */
    if (error != cudaSuccess) {
        meter_failed(CAL_BROKEN, "the GPU cannot be used", error, reason, reason_size);
        return false;
    }
    cudaStreamCreateWithFlags(&meter->stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&meter->side, cudaStreamNonBlocking);
    meter->gpus = meter->team.ranks > 1 ? 1 : stamp->gpus;
    meter->flush_bytes = (int64_t)(FLUSH_TIMES * stamp->l2_bytes);
    if (cudaMalloc(&meter->flush, (size_t)meter->flush_bytes) != cudaSuccess)
        meter->flush = nullptr;
    else
        cudaMemset(meter->flush, 0, (size_t)meter->flush_bytes);
    if (krn_context_new(&meter->context) == KRN_OK) {
        if (!krn_dnn_version(meter->context, stamp->cudnn, sizeof stamp->cudnn) && meter->team.rank == 0 &&
            !arguments->options.quiet)
            fprintf(stderr,
                    "orrery-calibrate: no cuDNN 9: attention by our own kernel is a floor, not fitted\n");
        if (meter->team.ranks == 1) /* the ranks of a team measure collectives alone */
            cal_try_library(stamp, arguments->options.quiet);
        return true;
    }
    snprintf(reason, reason_size, "%s", krn_context_message(meter->context));
    return false;
}

static void close_meter(Meter *meter)
{
    meter_close_ranks(meter);
    krn_context_free(meter->context);
    cudaFree(meter->flush);
    if (meter->stream != nullptr)
        cudaStreamDestroy(meter->stream);
    if (meter->side != nullptr)
        cudaStreamDestroy(meter->side);
    cal_nccl_unload(&meter->nccl);
    cal_nvml_unload(&meter->nvml);
}

static void list_points(const GArray *points)
{
    for (guint i = 0; i < points->len; i++)
        printf("%s\n", g_array_index(points, CalPoint, i).id);
}

static int sweep(Meter *meter, const CalStamp *stamp, const GArray *points, const CalSweepOptions *options)
{
    const CalMeter over_cuda = {meter, measure};
    GError *error = nullptr;
    if (cal_sweep_run(&over_cuda, stamp, points, options, &error))
        return 0;
    const int status = fail(error->message);
    g_clear_error(&error);
    return status;
}

/* Numbers one GPU alone 0: CUDA must not have been touched before. Of the GPUs that a job was given, the one at that
 * place; beyond them nothing is visible. */
static void choose_gpu(int gpu)
{
    const char *visible = g_getenv("CUDA_VISIBLE_DEVICES");
    if (gpu <= 0)
        return;
    if (visible == nullptr || visible[0] == '\0') {
        char text[16];
        snprintf(text, sizeof text, "%d", gpu);
        g_setenv("CUDA_VISIBLE_DEVICES", text, TRUE);
        return;
    }
    char **names = g_strsplit(visible, ",", -1);
    g_setenv("CUDA_VISIBLE_DEVICES", gpu < (int)g_strv_length(names) ? names[gpu] : "-1", TRUE);
    g_strfreev(names);
}

static double patience_s()
{
    const char *timeout = g_getenv("ORRERY_TIMEOUT");
    return timeout != nullptr && atof(timeout) > 0 ? atof(timeout) : JOIN_SECONDS;
}

/* Whether a point is of several GPUs that speak to each other. */
static bool has_links(const GArray *points)
{
    for (guint i = 0; i < points->len; i++) {
        const CalPoint *point = &g_array_index(points, CalPoint, i);
        if ((point->kind == CAL_POINT_COLLECTIVE || point->kind == CAL_POINT_INTERFERENCE ||
             point->kind == CAL_POINT_TOGETHER) &&
            point->gpus > 1 && !point->shared)
            return true;
    }
    return false;
}

/* One thread that starts all GPUs' calls is what would be timed below some MiB: each GPU gets a process of its own, as in
 * training. Where none can be started the rows say so. */
static void start_team(Meter *meter, const Arguments *arguments, CalStamp *stamp, const GArray *points)
{
    char reason[256] = "";
    char quiet[] = "--quiet", busy[] = "--busy";
    char *options[] = {quiet, arguments->busy ? busy : nullptr, nullptr};
    if (meter->team.ranks > 1 || stamp->gpus < 2 || meter->nccl.library == nullptr || !has_links(points))
        return;
    stamp->one_process = !cal_team_spawn(&meter->team, stamp->gpus, options, reason, sizeof reason) ||
                         !cal_team_join(&meter->team, stamp->host, patience_s(), reason, sizeof reason);
    if (stamp->one_process) {
        fprintf(stderr, "orrery-calibrate: collectives by one process for all GPUs (%s)\n", reason);
        meter->team.ranks = 1;
    }
}

/* Joins the ranks of a job; alone there is nothing to do. */
static bool join_team(Meter *meter, CalStamp *stamp, char *reason, size_t reason_size)
{
    const char *node = g_getenv("ORRERY_NODE"); /* where hostnames do not tell nodes apart */
    if (meter->team.ranks == 1)
        return true;
    if (!cal_team_join(&meter->team, node != nullptr ? node : stamp->host, patience_s(), reason, reason_size))
        return false;
    stamp->gpus = meter->team.ranks;
    stamp->nodes = meter->team.nodes;
    stamp->ranks_per_node = meter->team.ranks_per_node;
    return true;
}

static int lead(Meter *meter, const Arguments *arguments, CalStamp *stamp)
{
    const CalSweepOptions *options = &arguments->options;
    GError *error = nullptr;
    GArray *points = options->shapes != nullptr ? cal_sweep_points_of(options->shapes, stamp, options, &error)
                                                : cal_sweep_points(stamp, options);
    if (points == nullptr) {
        const int status = fail(error->message);
        g_clear_error(&error);
        return status;
    }
    if (!arguments->list && !arguments->check)
        start_team(meter, arguments, stamp, points);
    if (arguments->list)
        list_points(points);
    const int status = arguments->list    ? 0
                       : arguments->check ? (meter_check_kernels(meter, points) > 0 ? 1 : 0)
                                          : sweep(meter, stamp, points, &arguments->options);
    g_array_unref(points);
    meter_dismiss(meter);
    return status;
}

static int follow(Meter *meter)
{
    char reason[256] = "";
    return meter_follow(meter, reason, sizeof reason) ? 0 : fail(reason);
}

/* From the arguments to the exit status. */
static int measure_all(int argc, char **argv, Arguments *arguments, Meter *meter)
{
    CalStamp stamp = {};
    char reason[256] = "";
    if (!cal_team_find(&meter->team, reason, sizeof reason) ||
        !choose_team_gpu(&meter->team, arguments, reason, sizeof reason))
        return fail(reason);
    choose_gpu(arguments->gpu);
    arguments->gpu = 0;
    if (!find_gpu(arguments, &stamp, reason, sizeof reason))
        return fail(reason);
    read_surroundings(argc, argv, &stamp);
    int status = 2;
    if (!open_meter(meter, arguments, &stamp, reason, sizeof reason) ||
        !join_team(meter, &stamp, reason, sizeof reason))
        fail(reason);
    else
        status = meter->team.rank > 0 ? follow(meter) : lead(meter, arguments, &stamp);
    close_meter(meter);
    cal_team_leave(&meter->team);
    return status;
}

int main(int argc, char **argv)
{
    Arguments arguments = {};
    char reason[256] = "";
    arguments.options.output = "calibration.json";
    if (!read_arguments(argc, argv, &arguments, reason, sizeof reason))
        return fail(reason);
    if (arguments.help) {
        fputs(usage, stdout);
        return 0;
    }
    if (arguments.try_library)
        return cal_try_kernels();
    Meter *meter = (Meter *)g_malloc0(sizeof *meter);
    char *folder = g_path_get_dirname(arguments.options.output);
    meter->folder = arguments.folder != nullptr ? arguments.folder : folder;
    const int status = measure_all(argc, argv, &arguments, meter);
    g_free(folder);
    g_free(meter);
    return status;
}
