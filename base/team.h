/* base/team.h - processes that work on one thing together, as those of one `mpirun`: who one is, and how bytes go round. */
#ifndef ORR_BASE_TEAM_H
#define ORR_BASE_TEAM_H

#include <glib.h>

typedef struct OrrTeam {
    int rank, ranks;
    /* Every process gives its own bytes and appends those of all processes, by rank, to `all`. */
    void (*exchange)(void *data, const GByteArray *mine, GByteArray **all);
    void *data;
} OrrTeam;

#endif
