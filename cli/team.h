/* cli/team.h - the processes that `mpirun` started, as a team. */
#ifndef ORR_CLI_TEAM_H
#define ORR_CLI_TEAM_H

#include <stdbool.h>

#include "base/team.h"

#define CLI_TEAM_PIECE (1u << 30) /* bytes of one broadcast */

typedef struct CliTeam {
    OrrTeam team;
    int processes; /* 1: this one alone, and `team` is not set */
    int on_node;   /* of them on this machine */
    void *module;
} CliTeam;

/* Joins the others. Fails when several were started and this build has no MPI. */
bool cli_team_open(CliTeam *ret_team, GError **error);
/* Leaves the others. Does not return where several failed, alike: the first tells the error, and only then do the others
 * end, since mpirun ends all processes with the first that fails. */
void cli_team_close(CliTeam *team, const GError *error);

#endif
