/* calibrate/measure/host_bench.c - memory, Adam on the processor, files. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1 /* O_DIRECT */
#endif
#include "calibrate/measure/host_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef O_DIRECT
#define O_DIRECT 0
#endif

#define MAX_THREADS 256
#define ALIGN       4096
#define BLOCK_BYTES (8u << 20)

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

static CalOutcome measure_memory(bool is_adam, size_t count, double seconds, CalSample *ret_sample,
                                 char *reason, size_t reason_size)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const int threads = (int)CLAMP(processors, 1, MAX_THREADS);
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
    void *block;
    bool direct;
} Scratch;

static int open_scratch(Scratch *scratch, int flags)
{
    int file = scratch->direct ? open(scratch->path, flags | O_DIRECT, 0600) : -1;
    if (file < 0) {
        scratch->direct = false;
        file = open(scratch->path, flags, 0600);
    }
    return file;
}

static bool write_all(Scratch *scratch, double bytes)
{
    const int file = open_scratch(scratch, O_WRONLY | O_CREAT | O_TRUNC);
    bool ok = file >= 0;
    for (double done = 0; ok && done < bytes; done += BLOCK_BYTES)
        ok = write(file, scratch->block, BLOCK_BYTES) == (ssize_t)BLOCK_BYTES;
    ok = ok && fsync(file) == 0;
    return file >= 0 && close(file) == 0 && ok;
}

static bool read_all(Scratch *scratch, double bytes)
{
    const int file = open_scratch(scratch, O_RDONLY);
    bool ok = file >= 0;
    for (double done = 0; ok && done < bytes; done += BLOCK_BYTES)
        ok = read(file, scratch->block, BLOCK_BYTES) == (ssize_t)BLOCK_BYTES;
    return file >= 0 && close(file) == 0 && ok;
}

static CalOutcome measure_file(bool reading, double bytes, const char *folder, double seconds,
                               CalSample *ret_sample, char *reason, size_t reason_size)
{
    Scratch scratch = {g_build_filename(folder, "orrery-calibrate.scratch", NULL), NULL, O_DIRECT != 0};
    bool ok = posix_memalign(&scratch.block, ALIGN, BLOCK_BYTES) == 0;
    if (ok) {
        memset(scratch.block, 0x5a, BLOCK_BYTES);
        ok = !reading || write_all(&scratch, bytes);
    }
    const double start_s = now_s();
    for (int i = 0; ok && i < CAL_MAX_SAMPLES && (i < 2 || now_s() - start_s < seconds); i++) {
        const double before_s = now_s();
        ok = reading ? read_all(&scratch, bytes) : write_all(&scratch, bytes);
        ret_sample->seconds[i] = now_s() - before_s;
        ret_sample->count = i + 1;
    }
    if (!ok)
        g_snprintf(reason, reason_size, "%s: %s", folder, g_strerror(errno));
    unlink(scratch.path);
    free(scratch.block);
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
        return measure_memory(is_adam, (size_t)(point->bytes / (is_adam ? 28 : 12)), seconds, ret_sample,
                              reason, reason_size);
    return measure_file(strcmp(point->name, "file_read") == 0, point->bytes, folder, seconds, ret_sample,
                        reason, reason_size);
}
