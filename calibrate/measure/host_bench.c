/* calibrate/measure/host_bench.c - memory, Adam on the processor, files. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1 /* O_DIRECT */
#endif
#include "calibrate/measure/host_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <linux/magic.h>
#include <sys/vfs.h>
#endif
#include <time.h>
#include <unistd.h>

#ifndef O_DIRECT
#define O_DIRECT 0
#endif

#define MAX_THREADS      256
#define MAX_FILE_THREADS 64
#define ALIGN            4096
#define BLOCK_BYTES      (8u << 20)

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- threads over a range --- */

typedef struct Arrays {
    float *a, *b, *c, *d;
    size_t count;
} Arrays;

typedef void (*RangeWork)(const Arrays *arrays, size_t first, size_t end);

typedef struct Share {
    const Arrays *arrays;
    RangeWork work;
    size_t first, end;
} Share;

static void *run_share(void *data)
{
    const Share *share = data;
    share->work(share->arrays, share->first, share->end);
    return NULL;
}

/* One thread a processor; false when none can be started. */
static bool in_threads(const Arrays *arrays, RangeWork work, int threads)
{
    pthread_t ids[MAX_THREADS];
    Share shares[MAX_THREADS];
    int started = 0;
    for (int i = 0; i < threads; i++) {
        const size_t each = arrays->count / (size_t)threads;
        shares[i] = (Share){arrays, work, each * (size_t)i,
                            i == threads - 1 ? arrays->count : each * (size_t)(i + 1)};
        if (pthread_create(&ids[i], NULL, run_share, &shares[i]) != 0)
            break;
        started++;
    }
    for (int i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
    return started == threads;
}

/* The widest vectors that the processor has, found when the program starts. */
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && __GNUC__ >= 12 &&                      \
    !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define WIDEST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WIDEST
#endif

WIDEST static void triad(const Arrays *x, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        x->a[i] = x->b[i] + 3 * x->c[i];
}

static void fill(const Arrays *x, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        x->a[i] = 1.0f / (float)(i % 97 + 1);
        x->b[i] = 0.5f - 1.0f / (float)(i % 89 + 1);
        x->c[i] = x->d == NULL ? 0.1f * x->a[i] : 0;
        if (x->d != NULL)
            x->d[i] = 0;
    }
}

/* a parameters, b gradients, c and d moments; the compiler makes vectors of it. Source: [Adam] */
WIDEST static void adam(const Arrays *x, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        const float m = 0.9f * x->c[i] + 0.1f * x->b[i];
        const float v = 0.95f * x->d[i] + 0.05f * x->b[i] * x->b[i];
        x->c[i] = m;
        x->d[i] = v;
        x->a[i] -= 1e-3f * m / (sqrtf(v) + 1e-8f);
    }
}

/* After one step from `fill`: the largest error of the parameters against fp64. */
static double adam_error(const Arrays *x)
{
    double worst = 0;
    for (size_t i = 0; i < x->count; i += 101) {
        const double b = 0.5f - 1.0f / (float)(i % 89 + 1), m = 0.1 * b, v = 0.05 * b * b;
        const double want = 1.0f / (float)(i % 97 + 1) - 1e-3 * m / (sqrt(v) + 1e-8);
        worst = fmax(worst, fabs(x->a[i] - want));
    }
    return worst;
}

void cal_host_name(char *ret_name, size_t size)
{
    g_autofree char *text = NULL;
    const char *at =
        g_file_get_contents("/proc/cpuinfo", &text, NULL, NULL) ? strstr(text, "model name") : NULL;
    at = at != NULL ? strstr(at, ": ") : NULL;
    g_snprintf(ret_name, size, "%.*s", at != NULL ? (int)MIN(strcspn(at + 2, "\n"), size - 1) : 1,
               at != NULL ? at + 2 : "?");
}

int cal_host_sockets(void)
{
    g_autofree char *text = NULL;
    guint64 seen = 0;
    int count = 0;
    if (!g_file_get_contents("/proc/cpuinfo", &text, NULL, NULL))
        return 1;
    for (const char *at = strstr(text, "physical id"); at != NULL; at = strstr(at + 1, "physical id")) {
        const char *number = strchr(at, ':');
        const guint64 id = number != NULL ? g_ascii_strtoull(number + 1, NULL, 10) : 64;
        if (id < 64 && (seen >> id & 1) == 0) {
            seen |= G_GUINT64_CONSTANT(1) << id;
            count++;
        }
    }
    return MAX(count, 1);
}

/* --- where threads run --- */

#ifdef __linux__
int cal_host_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    return (int)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
}

/* "0-15,32-47" */
static void parse_list(const char *text, cpu_set_t *ret_set)
{
    CPU_ZERO(ret_set);
    while (g_ascii_isdigit(*text)) {
        char *end;
        const guint64 first = g_ascii_strtoull(text, &end, 10);
        const guint64 last = *end == '-' ? g_ascii_strtoull(end + 1, &end, 10) : first;
        for (guint64 i = first; i <= last && i < CPU_SETSIZE; i++)
            CPU_SET((size_t)i, ret_set);
        text = *end == ',' ? end + 1 : end;
    }
}

bool cal_host_bind(const char *sys, const char *bus_id)
{
    static __thread cpu_set_t before; /* of the thread that binds itself */
    static __thread bool bound;
    if (bus_id == NULL) {
        const bool ok = bound && sched_setaffinity(0, sizeof before, &before) == 0;
        bound = false;
        return ok;
    }
    g_autofree char *lower = g_ascii_strdown(bus_id, -1);
    g_autofree char *path = g_build_filename(sys, "bus", "pci", "devices", lower, "local_cpulist", NULL);
    g_autofree char *text = NULL;
    cpu_set_t local, both;
    if (bound || !g_file_get_contents(path, &text, NULL, NULL) ||
        sched_getaffinity(0, sizeof before, &before) != 0)
        return false;
    parse_list(text, &local);
    CPU_AND(&both, &local, &before);
    bound = CPU_COUNT(&both) > 0 && sched_setaffinity(0, sizeof both, &both) == 0;
    return bound;
}
#else
int cal_host_processors(void)
{
    return (int)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
}

bool cal_host_bind(const char *sys, const char *bus_id)
{
    (void)sys;
    (void)bus_id;
    return false;
}
#endif

static CalOutcome measure_memory(bool is_adam, int wanted, size_t count, double seconds,
                                 CalSample *ret_sample, char *reason, size_t reason_size)
{
    const int threads = MIN(wanted > 0 ? wanted : cal_host_processors(), MAX_THREADS);
    void *memory[4] = {NULL};
    bool ok = true;
    for (int i = 0; i < (is_adam ? 4 : 3); i++)
        ok = ok && posix_memalign(&memory[i], ALIGN, count * sizeof(float)) == 0;
    Arrays arrays = {memory[0], memory[1], memory[2], memory[3], count};
    ok = ok && in_threads(&arrays, fill, threads);
    if (!ok)
        g_snprintf(reason, reason_size, "no host memory or threads at this size");
    const double start_s = now_s();
    for (int i = 0; ok && i < CAL_MAX_SAMPLES && (i < 5 || now_s() - start_s < seconds); i++) {
        const double before_s = now_s();
        ok = in_threads(&arrays, is_adam ? adam : triad, threads);
        ret_sample->seconds[i] = now_s() - before_s;
        ret_sample->count = i + 1;
        if (i == 0 && is_adam) {
            ret_sample->error_frac = adam_error(&arrays);
            ret_sample->tolerance_frac = 1e-5;
        }
    }
    for (int i = 0; i < 4; i++)
        free(memory[i]);
    return ok ? CAL_MEASURED : CAL_SKIPPED;
}

/* --- files --- */

typedef struct Scratch {
    char *path;
    double bytes;
    int threads; /* each with a block under way: the queue's depth */
    bool reading, direct;
} Scratch;

typedef struct FileShare {
    const Scratch *scratch;
    int file, number;
    bool ok;
} FileShare;

static int open_scratch(Scratch *scratch, int flags)
{
    int file = scratch->direct ? open(scratch->path, flags | O_DIRECT, 0600) : -1;
    if (file < 0) {
        scratch->direct = false;
        file = open(scratch->path, flags, 0600);
    }
    return file;
}

/* Blocks number, number + threads, number + 2 threads ... */
static void *move_blocks(void *data)
{
    FileShare *share = data;
    const Scratch *scratch = share->scratch;
    void *block = NULL;
    share->ok = posix_memalign(&block, ALIGN, BLOCK_BYTES) == 0;
    if (share->ok)
        memset(block, 0x5a, BLOCK_BYTES);
    const double stride = (double)BLOCK_BYTES * scratch->threads;
    for (double at = (double)BLOCK_BYTES * share->number; share->ok && at < scratch->bytes; at += stride)
        share->ok =
            (scratch->reading ? pread(share->file, block, BLOCK_BYTES, (off_t)at)
                              : pwrite(share->file, block, BLOCK_BYTES, (off_t)at)) == (ssize_t)BLOCK_BYTES;
    free(block);
    return NULL;
}

static bool move_all(Scratch *scratch)
{
    pthread_t ids[MAX_FILE_THREADS];
    FileShare shares[MAX_FILE_THREADS];
    const int file = open_scratch(scratch, scratch->reading ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC);
    bool ok = file >= 0;
    int started = 0;
    for (; ok && started < scratch->threads; started++) {
        shares[started] = (FileShare){scratch, file, started, false};
        if (pthread_create(&ids[started], NULL, move_blocks, &shares[started]) != 0)
            break;
    }
    ok = ok && started == scratch->threads;
    for (int i = 0; i < started; i++) {
        pthread_join(ids[i], NULL);
        ok = ok && shares[i].ok;
    }
    ok = ok && (scratch->reading || fsync(file) == 0);
    return file >= 0 && close(file) == 0 && ok;
}

/* Recent kernels take O_DIRECT on tmpfs and give the memory that the file is in. */
static bool in_memory(const char *folder)
{
#ifdef __linux__
    struct statfs about;
    return statfs(folder, &about) == 0 && (about.f_type == TMPFS_MAGIC || about.f_type == RAMFS_MAGIC);
#else
    (void)folder;
    return false;
#endif
}

static CalOutcome measure_file(const CalPoint *point, bool reading, const char *folder, double seconds,
                               CalSample *ret_sample, char *reason, size_t reason_size)
{
    if (in_memory(folder)) {
        g_snprintf(reason, reason_size, "%s: is in memory, no disk would be timed; --folder names another",
                   folder);
        return CAL_SKIPPED;
    }
    Scratch scratch = {.path = g_build_filename(folder, "orrery-calibrate.scratch", NULL),
                       .bytes = point->bytes,
                       .threads = CLAMP(point->threads, 1, MAX_FILE_THREADS),
                       .direct = O_DIRECT != 0};
    bool ok = !reading || move_all(&scratch);
    scratch.reading = reading;
    const double start_s = now_s();
    for (int i = 0; ok && i < CAL_MAX_SAMPLES && (i < 2 || now_s() - start_s < seconds); i++) {
        const double before_s = now_s();
        ok = move_all(&scratch);
        ret_sample->seconds[i] = now_s() - before_s;
        ret_sample->count = i + 1;
    }
    if (!ok)
        g_snprintf(reason, reason_size, "%s: %s", folder, g_strerror(errno));
    unlink(scratch.path);
    g_free(scratch.path);
    if (ok && reading && !scratch.direct) {
        g_snprintf(reason, reason_size,
                   "%s: the file system allows no direct reading, the kernel's memory would be timed",
                   folder);
        return CAL_SKIPPED;
    }
    return ok ? CAL_MEASURED : CAL_SKIPPED;
}

CalOutcome cal_host_measure(const CalPoint *point, const char *folder, double seconds, CalSample *ret_sample,
                            char *reason, size_t reason_size)
{
    const bool is_adam = strcmp(point->name, "cpu_adam") == 0,
               is_triad = strcmp(point->name, "host_triad") == 0;
    ret_sample->bytes = point->bytes;
    if (is_adam || is_triad)
        return measure_memory(is_adam, point->threads, (size_t)(point->bytes / (is_adam ? 28 : 12)), seconds,
                              ret_sample, reason, reason_size);
    return measure_file(point, strcmp(point->name, "file_read") == 0, folder, seconds, ret_sample, reason,
                        reason_size);
}
