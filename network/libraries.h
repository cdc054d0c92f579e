/* network/libraries.h - which algorithm a communication library takes for an operation, a size and a machine. */
#ifndef ORR_NETWORK_LIBRARIES_H
#define ORR_NETWORK_LIBRARIES_H

#include "network/algorithm.h"

/* What a library decides by. */
typedef struct NetSituation {
    NetOp op;
    int ranks, nodes;
    int64_t bytes; /* as net_piece_bytes() counts them */
} NetSituation;

/* Bounds of 0 are none. */
typedef struct NetLibraryRule {
    NetOp op;
    const char *algorithm;
    bool
        chosen; /* its source says that it is taken; else one of several, which a tuner weighs or a user names */
    int64_t least_bytes, most_bytes;
    int least_ranks, most_ranks, least_nodes, most_nodes;
    bool power_of_two; /* as many nodes */
    const char *note;
} NetLibraryRule;

typedef struct NetLibrary {
    const char *name;
    const char *source; /* a key of docs/SOURCES.md */
    const NetLibraryRule *rules;
    int rule_count;
    const struct NetLibrary *base; /* decides where no rule has chosen; NULL: nobody */
} NetLibrary;

const NetLibrary *net_libraries(int *ret_count);
/* NULL and a sentence that names them all. */
const NetLibrary *net_library_find(const char *name, GError **error);
/* The first rule that names the choice; NULL: several are weighed. */
const NetLibraryRule *net_library_choice(const NetLibrary *library, const NetSituation *situation);
/* The choice, or one of those weighed. */
bool net_library_has(const NetLibrary *library, const NetAlgorithm *algorithm, const NetSituation *situation);
/* "of 8 ranks on 1 node, up to 16.00 MiB"; "always". To free. */
char *net_library_when(const NetLibraryRule *rule);

#endif
