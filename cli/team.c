/* cli/team.c - finds out whether several processes were started, and loads cli/mpi/ beside the binary if so. Tested:
 * cli/test_mpirun.sh
 */
#include "cli/team.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/output.h"

static int number_of(const char *const *names, int count, int otherwise)
{
    for (int i = 0; i < count; i++) {
        const char *text = g_getenv(names[i]);
        gint64 number = 0;
        if (text != NULL && g_ascii_string_to_signed(text, 10, 0, G_MAXINT, &number, NULL))
            return (int)number;
    }
    return otherwise;
}

/* What Open MPI, MPICH and MVAPICH tell the processes that they start. */
static int processes(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"};
    return number_of(names, (int)G_N_ELEMENTS(names), 1);
}

static int processes_on_node(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                        "MV2_COMM_WORLD_LOCAL_SIZE"};
    return MAX(1, number_of(names, (int)G_N_ELEMENTS(names), 1));
}

/* Beside the binary, or where `install` puts it. */
static void *load_module(void)
{
    static const char *const places[] = {"orrery_mpi.so", "../" ORRERY_LIBRARIES "/orrery/orrery_mpi.so"};
    g_autofree char *binary = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *folder = binary != NULL ? g_path_get_dirname(binary) : NULL;
    for (gsize i = 0; folder != NULL && i < G_N_ELEMENTS(places); i++) {
        g_autofree char *path = g_build_filename(folder, places[i], NULL);
        void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (module != NULL)
            return module;
    }
    return NULL;
}

static sigset_t endings(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    return set;
}

/* mpirun's way to end those that are left. */
static void *wait_for_end(void *data)
{
    const CliTeam *team = data;
    const sigset_t set = endings();
    int signal = 0;
    sigwait(&set, &signal);
    if (g_atomic_int_get(&team->over) != 0)
        return NULL;
    fprintf(stderr, "orrery: process %d of %d ends because another one died: %d.%d %% of %s was done%s%s\n",
            team->team.rank, team->processes, g_atomic_int_get(&team->done_permille) / 10,
            g_atomic_int_get(&team->done_permille) % 10, team->doing != NULL ? team->doing : "the work",
            team->keeps != NULL ? ", and the same command goes on from what is in " : "",
            team->keeps != NULL ? team->keeps : "");
    _exit(128 + SIGTERM);
}

bool cli_team_open(CliTeam *ret_team, GError **error)
{
    *ret_team = (CliTeam){.processes = MAX(1, processes()), .on_node = processes_on_node()};
    if (ret_team->processes == 1)
        return true;
    bool (*open_team)(OrrTeam *) = NULL;
    ret_team->module = load_module();
    if (ret_team->module != NULL) /* POSIX: an object pointer that becomes a function's */
        *(void **)&open_team = dlsym(ret_team->module, "orr_mpi_open");
    if (open_team == NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%d processes were started, but this build has no MPI, so each would do everything; "
                        "install Open MPI (libopenmpi-dev) and build again, or run without mpirun",
                        ret_team->processes);
    const sigset_t set = endings();
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* of all threads, which come later */
    if (!open_team(&ret_team->team))
        return orr_fail(error, ORR_ERROR_INPUT, "MPI could not be started in this process");
    if (pthread_create(&ret_team->waits, NULL, wait_for_end, ret_team) != 0)
        return orr_fail(error, ORR_ERROR_IO, "MPI: no thread can be made");
    return true;
}

void cli_team_close(CliTeam *team, const GError *error)
{
    void (*close_team)(void) = NULL;
    if (team->module == NULL)
        return;
    const int status = error == NULL ? 0 : team->team.rank == 0 ? cli_error_tell(error) : 2;
    *(void **)&close_team = dlsym(team->module, "orr_mpi_close");
    if (close_team != NULL)
        close_team();
    g_atomic_int_set(&team->over, 1);
    pthread_kill(team->waits, SIGTERM);
    pthread_join(team->waits, NULL);
    team->module = NULL;
    if (error != NULL)
        exit(status);
}
