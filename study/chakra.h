/* study/chakra.h - a simulated step as Chakra execution traces: a file for each rank that does something of its own.
 *
 * Nodes are the program's ops in the order of each stream. A pass is taken apart into what it computes between the collectives
 * of its layers; a collective that runs beside kernels hangs beside them. Who waits for another rank's message has a node that
 * receives it. Replicas of a pipeline rank differ in rank numbers and groups alone: without `all` the first one is written,
 * and the manifest says how the others follow from it.
 */
#ifndef ORR_STUDY_CHAKRA_H
#define ORR_STUDY_CHAKRA_H

#include "report/report.h"

typedef struct ChakraAsk {
    bool all; /* ranks, not one of each pipeline rank */
    /* Takes a file: false with an error ends the writing. */
    bool (*put)(const char *name, const GString *content, void *data, GError **error);
    void *data;
} ChakraAsk;

/* Files "step.RANK.et", "step.json" (groups of ranks) and "step.ranks.json" (the manifest). Fails where the step has parts that
 * Chakra has no nodes for: offload, parameter servers, replicas of several kinds. */
bool chakra_write(const Report *report, const ChakraAsk *ask, GError **error);

#endif
