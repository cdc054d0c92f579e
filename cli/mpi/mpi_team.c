/* cli/mpi/mpi_team.c - the processes of one `mpirun` as a team. A module of its own, loaded when several processes
 * were started, so that a build with MPI runs where there is none (cli/team.c). */
#include <mpi.h>
#include <string.h>

#include "cli/team.h"

static void exchange_bytes(void *data, const GByteArray *mine, GByteArray **all)
{
    int ranks = 0, rank = 0;
    (void)data;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    g_autofree guint *sizes = g_new0(guint, (gsize)ranks);
    MPI_Allgather(&mine->len, 1, MPI_UNSIGNED, sizes, 1, MPI_UNSIGNED, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; r++) { /* one after the other: a whole exchange may be too large for an int */
        g_byte_array_set_size(all[r], sizes[r]);
        if (r == rank && mine->len > 0)
            memcpy(all[r]->data, mine->data, mine->len);
        for (guint at = 0; at < sizes[r]; at += CLI_TEAM_PIECE)
            MPI_Bcast(all[r]->data + at, (int)MIN(sizes[r] - at, CLI_TEAM_PIECE), MPI_BYTE, r,
                      MPI_COMM_WORLD);
    }
}

bool orr_mpi_open(OrrTeam *ret_team);
void orr_mpi_close(void);

bool orr_mpi_open(OrrTeam *ret_team)
{
    int given = 0;
    *ret_team = (OrrTeam){.ranks = 1, .exchange = exchange_bytes};
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS ||
        given < MPI_THREAD_FUNNELED)
        return false;
    MPI_Comm_rank(MPI_COMM_WORLD, &ret_team->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ret_team->ranks);
    return true;
}

void orr_mpi_close(void)
{
    MPI_Finalize();
}
