/* search/team.h - one search on several processes.
 *
 * Every process runs the whole search and keeps the same lists; only bounding and simulating are dealt out, and what a
 * process found is exchanged before anything is decided. The answer is that of one process, to the byte. A group is
 * walked by the process that holds its table (search/costs.h), so tables are dealt out too.
 */
#ifndef ORR_SEARCH_TEAM_H
#define ORR_SEARCH_TEAM_H

#include "search/walk.h"

/* This process's share of what is numbered. */
static inline bool search_team_mine(const OrrTeam *team, int index)
{
    return team == NULL || index % team->ranks == team->rank;
}

/* Bounds of `groups` [count]: each known to the process that holds the group's table. */
void search_team_share_bounds(const OrrTeam *team, int64_t *bounds, const SearchGroup *groups, int count);
/* Walks of `groups` [count]. */
void search_team_share_walks(const OrrTeam *team, SearchWalk *walks, const int *groups, int count,
                             const SearchSpace *space);
/* Run i [count] is known to process i % ranks. */
void search_team_share_runs(const OrrTeam *team, SearchRun *runs, bool *ran, int count);
/* The first process's word for all. */
bool search_team_agree(const OrrTeam *team, bool word);

#endif
