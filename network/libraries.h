/* network/libraries.h - which algorithms a communication library chooses among. */
#ifndef ORR_NETWORK_LIBRARIES_H
#define ORR_NETWORK_LIBRARIES_H

#include "network/algorithm.h"

typedef struct NetLibrary {
    const char *name;
    const char *source;            /* where its choices are from */
    const char *const *algorithms; /* "all-reduce ring" ..., NULL behind the last */
} NetLibrary;

const NetLibrary *net_libraries(int *ret_count);
/* NULL and a sentence that names them all. */
const NetLibrary *net_library_find(const char *name, GError **error);
/* Whether the library ever picks it. */
bool net_library_has(const NetLibrary *library, const NetAlgorithm *algorithm);

#endif
