/* calibrate/measure/team.h - the processes of a job that measure collectives together, one a GPU: who they are, and a line between
 * rank 0 and each of the others. No CUDA and no MPI here.
 *
 * Ranks come from the environment that a launcher sets: torchrun (RANK, WORLD_SIZE, LOCAL_RANK), mpirun of Open MPI
 * (OMPI_COMM_WORLD_*) and of MPICH or Intel (PMI_RANK, PMI_SIZE, MPI_LOCALRANKID), srun (SLURM_PROCID,
 * SLURM_STEP_NUM_TASKS, SLURM_LOCALID). Rank 0 listens at MASTER_ADDR, else on the first node of Slurm's list, else on this
 * machine when all ranks are on it; the port is ORRERY_PORT, else the one after MASTER_PORT (torchrun keeps that one for
 * itself), else 29617. All ranks run on machines of one byte order.
 */
#ifndef ORR_CALIBRATE_TEAM_H
#define ORR_CALIBRATE_TEAM_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAL_MAX_RANKS 4096

typedef struct CalTeam {
    int rank, ranks; /* ranks 1: no team */
    int local_rank;  /* on its node */
    int nodes,
        ranks_per_node; /* known after joining; ranks_per_node 0: nodes have different numbers of ranks */
    char address[256];
    int port;
    double timeout_s; /* how long a rank waits for another's word, or for its part of a collective */
    int *lines;       /* sockets: rank 0 has one for each rank (its own -1), the others one */
} CalTeam;

/* True: alone (ranks 1) or one of several. False with a sentence: an environment that contradicts itself. */
bool cal_team_find(CalTeam *ret_team, char *reason, size_t reason_size);

/* Rank 0 waits for the others, these for rank 0, `timeout_s` at most. `node` tells nodes apart; ranks of a node must
 * follow each other. False with a sentence. */
bool cal_team_join(CalTeam *team, const char *node, double timeout_s, char *reason, size_t reason_size);
void cal_team_leave(CalTeam *team);

/* Starts this program `ranks` - 1 times more, as ranks 1 and up of a team of this machine, a GPU each; this process becomes
 * rank 0, and cal_team_join() lets them in. `arguments`: of the others, NULL at the end. False with a sentence. */
bool cal_team_spawn(CalTeam *team, int ranks, char *const *arguments, char *reason, size_t reason_size);

/* Ranks above 0: until rank 0 says something, however long that takes; false: it is gone. */
bool cal_team_wait(CalTeam *team);

/* Rank 0's bytes to everybody. False: a line is broken. */
bool cal_team_share(CalTeam *team, void *data, size_t size);
/* Everybody's `size` bytes to rank 0, in rank order into `ret_all` (of ranks x size bytes; others may give NULL). */
bool cal_team_gather(CalTeam *team, const void *own, size_t size, void *ret_all);

/* First host of Slurm's short form, "gpu[03-07,12],login1" -> "gpu03"; false: none. */
bool cal_team_first_host(const char *list, char *ret_host, size_t size);

#ifdef __cplusplus
}
#endif

#endif
