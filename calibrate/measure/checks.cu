/* calibrate/measure/checks.cu - kernels at small size against the CPU: those of a sweep, and those of a library that may not
 * survive it.
 *
 * Transformer Engine throws what it does not take, past C, and a wrong layout of its tensors would crash. So each of its
 * kernels is first tried in a child process, which says its name before and what came of it after. A child that dies costs the
 * kernel that it died at, and the next child goes on behind it.
 */
#include "calibrate/measure/checks.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

#define PREFIX    "te_"
#define AFTER     "ORRERY_TRY_AFTER" /* a kernel's name: the child begins behind it */
#define TRIED     "try "
#define WORKS     "ok "
#define ABSENT    "none "
#define SMALL_ROW 96
#define SMALL_COL 1024

int meter_check_kernels(Meter *meter, const GArray *points)
{
    int wrong = 0;
    for (guint i = 0; i < points->len; i++) {
        const CalPoint *point = &g_array_index(points, CalPoint, i);
        const KrnKernel *kernel = point->kind == CAL_POINT_KERNEL ? krn_find(point->name) : nullptr;
        if (kernel == nullptr)
            continue;
        const KrnShape small = krn_small_shape(&point->shape);
        double error = 1;
        const KrnStatus status = krn_check(meter->context, kernel, &small, 1, &error);
        const bool ok = status == KRN_OK && error <= kernel->tolerance_frac;
        const bool absent = status == KRN_UNSUPPORTED; /* by this GPU or its libraries */
        const char *word = ok ? "ok" : absent ? "skip" : "WRONG";
        printf("%-5s %-60s %s%.3g\n", word, point->id,
               status == KRN_OK ? "" : krn_context_message(meter->context), error);
        wrong += !ok && !absent;
    }
    printf("%d wrong\n", wrong);
    return wrong;
}

/* --- the child --- */

static void try_kernel(KrnContext *context, const KrnKernel *kernel)
{
    KrnShape shape = {};
    double error = 1;
    shape.rows = SMALL_ROW;
    shape.cols = SMALL_COL;
    printf(TRIED "%s\n", kernel->name);
    fflush(stdout);
    if (krn_check(context, kernel, &shape, 1, &error) == KRN_OK && error <= kernel->tolerance_frac)
        printf(WORKS "%s\n", kernel->name);
    fflush(stdout);
}

int cal_try_kernels(void)
{
    const char *after = g_getenv(AFTER);
    char text[256];
    KrnContext *context = nullptr;
    int count;
    const KrnKernel *const *all = krn_kernels(&count);
    if (!krn_te_version(text, sizeof text)) {
        printf(ABSENT "%s\n", text);
        return 0;
    }
    if (cudaSetDevice(0) != cudaSuccess || krn_context_new(&context) != KRN_OK)
        return 1;
    for (int i = 0; i < count; i++) {
        if (!g_str_has_prefix(all[i]->name, PREFIX))
            continue;
        if (after == nullptr)
            try_kernel(context, all[i]);
        else if (strcmp(all[i]->name, after) == 0)
            after = nullptr;
    }
    krn_context_free(context);
    return 0;
}

/* --- the parent --- */

/* What a child said, of which the last line says where it ended; the name of the kernel at which it died, or "". */
static void read_child(const char *said, CalStamp *stamp, char *reason, size_t reason_size, char *died,
                       size_t died_size)
{
    char **lines = g_strsplit(said, "\n", -1);
    died[0] = '\0';
    for (int i = 0; lines[i] != nullptr; i++) {
        if (g_str_has_prefix(lines[i], ABSENT))
            g_strlcpy(reason, lines[i] + strlen(ABSENT), reason_size);
        if (g_str_has_prefix(lines[i], TRIED))
            g_strlcpy(died, lines[i] + strlen(TRIED), died_size);
        if (!g_str_has_prefix(lines[i], WORKS))
            continue;
        if (stamp->te_kernels[0] != '\0')
            g_strlcat(stamp->te_kernels, " ", sizeof stamp->te_kernels);
        g_strlcat(stamp->te_kernels, lines[i] + strlen(WORKS), sizeof stamp->te_kernels);
    }
    g_strfreev(lines);
}

/* Of what a child that broke off wrote on stderr: what an exception said ("  what():  ..."), else the last line. */
static void last_words(const char *complained, char *words, size_t size)
{
    char **lines = g_strsplit(complained != nullptr ? complained : "", "\n", -1);
    for (int i = 0; lines[i] != nullptr; i++) {
        const char *what = strstr(lines[i], "what():");
        const char *line = what != nullptr ? what + strlen("what():") : lines[i];
        if (line[0] != '\0')
            g_strlcpy(words, line + strspn(line, " "), size);
        if (what != nullptr)
            break;
    }
    g_strfreev(lines);
}

/* False: there is no next child to start. */
static bool run_child(CalStamp *stamp, char *after, size_t after_size, char *reason, size_t reason_size,
                      char *words, size_t words_size)
{
    char try_option[] = "--try";
    char *self = g_file_read_link("/proc/self/exe", nullptr), *said = nullptr;
    char *argv[] = {self, try_option, nullptr};
    char **environment = g_environ_setenv(g_get_environ(), AFTER, after, TRUE);
    char died[64] = "", *complained = nullptr;
    int status = 0;
    if (after[0] == '\0')
        environment = g_environ_unsetenv(environment, AFTER);
    const bool began = self != nullptr && g_spawn_sync(nullptr, argv, environment, G_SPAWN_DEFAULT, nullptr,
                                                       nullptr, &said, &complained, &status, nullptr);
    if (began)
        read_child(said, stamp, reason, reason_size, died, sizeof died);
    const bool broken = began && status != 0 && died[0] != '\0';
    if (broken) {
        g_snprintf(reason + strlen(reason), reason_size - strlen(reason), "%s%s",
                   reason[0] != '\0' ? ", " : "", died);
        g_strlcpy(after, died, after_size);
        if (words[0] == '\0')
            last_words(complained, words, words_size);
    }
    g_free(said);
    g_free(complained);
    g_free(self);
    g_strfreev(environment);
    return broken;
}

void cal_try_library(CalStamp *stamp, bool quiet)
{
    char after[64] = "", reason[256] = "", words[256] = "";
    stamp->te_kernels[0] = '\0';
    while (run_child(stamp, after, sizeof after, reason, sizeof reason, words, sizeof words))
        ;
    if (stamp->te_kernels[0] == '\0' ||
        !krn_te_version(stamp->transformer_engine, sizeof stamp->transformer_engine)) {
        stamp->te_kernels[0] = stamp->transformer_engine[0] = '\0';
        if (!quiet)
            fprintf(stderr,
                    "orrery-calibrate: norms, SwiGLU and casts by our own kernels: Transformer Engine %s\n",
                    reason[0] != '\0' ? reason : "takes none of them");
    } else if (after[0] != '\0' && !quiet) {
        fprintf(stderr, "orrery-calibrate: Transformer Engine breaks off at %s: by our own kernels%s%s\n",
                reason, words[0] != '\0' ? "; it said: " : "", words);
    }
}
