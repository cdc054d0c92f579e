/* cli/team.h - the processes that `mpirun` started, as a team. */
#ifndef ORR_CLI_TEAM_H
#define ORR_CLI_TEAM_H

#include <stdbool.h>

#include <glib.h>
#include <pthread.h>

#include "base/team.h"

#define CLI_TEAM_PIECE (1u << 30) /* bytes of one broadcast */

typedef struct CliTeam {
    OrrTeam team;
    int processes; /* 1: this one alone, and `team` is not set */
    int on_node;   /* of them on this machine */
    void *module;
    const char *doing;  /* "sweeping": for who is told that it ended */
    const char *keeps;  /* folder that has what is done; NULL: none */
    gint done_permille; /* of the work, as told last */
    gint over;          /* nobody waits for an end any more */
    pthread_t waits;
} CliTeam;

/* Joins the others. Fails when several were started and this build has no MPI. From here on the struct stays where it is: when
 * one process dies, mpirun ends the others, and each of these says what it had. */
bool cli_team_open(CliTeam *ret_team, GError **error);
/* Leaves the others. Does not return where several failed, alike: the first tells the error, and only then do the others
 * end, since mpirun ends all processes with the first that fails. */
void cli_team_close(CliTeam *team, const GError *error);

#endif
