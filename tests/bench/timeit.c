/* tests/bench/timeit.c - wall time and memory of a program, from its start to its exit.
 *
 *   timeit COUNT PROGRAM [ARGUMENT...]
 *
 * Runs PROGRAM that many times, its stdout thrown away, and prints "MEDIAN_S MAX_RSS_BYTES": the median wall time
 * and the largest resident set of all the runs. Fails when the program does.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Seconds from start to exit, or a negative number when the program failed. */
static double run_once_s(char **command)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    const double start_s = now_s();
    pid_t child;
    int status = -1;
    if (posix_spawnp(&child, command[0], &actions, NULL, command, environ) == 0)
        waitpid(child, &status, 0);
    const double end_s = now_s();
    posix_spawn_file_actions_destroy(&actions);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? end_s - start_s : -1;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double max_rss_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
#ifdef __APPLE__
    return (double)usage.ru_maxrss;
#else
    return (double)usage.ru_maxrss * 1024;
#endif
}

int main(int argc, char **argv)
{
    const int count = argc > 2 ? atoi(argv[1]) : 0;
    if (count < 1) {
        fprintf(stderr, "usage: timeit COUNT PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    double *wall_s = calloc((size_t)count, sizeof *wall_s);
    if (wall_s == NULL)
        return 1;
    for (int i = 0; i < count; i++) {
        wall_s[i] = run_once_s(argv + 2);
        if (wall_s[i] < 0) {
            fprintf(stderr, "timeit: %s failed\n", argv[2]);
            free(wall_s);
            return 1;
        }
    }
    qsort(wall_s, (size_t)count, sizeof *wall_s, compare);
    const double median_s = 0.5 * (wall_s[(count - 1) / 2] + wall_s[count / 2]);
    printf("%.6f %.0f\n", median_s, max_rss_bytes());
    free(wall_s);
    return 0;
}
