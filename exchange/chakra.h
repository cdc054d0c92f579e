/* exchange/chakra.h - Chakra execution traces, as ASTRA-sim and the tools of MLCommons read them.
 *
 * A file is a protobuf message GlobalMetadata and then one Node after the other, each behind its length as a varint.
 * Source: mlcommons/chakra schema/protobuf/et_def.proto, src/third_party/utils/protolib.py; attributes as
 * src/feeder/et_feeder_node.cpp reads them
 */
#ifndef ORR_EXCHANGE_CHAKRA_H
#define ORR_EXCHANGE_CHAKRA_H

#include <glib.h>
#include <stdint.h>

/* Numbers of the schema. */
typedef enum { CHAKRA_COMPUTE = 4, CHAKRA_SEND = 5, CHAKRA_RECEIVE = 6, CHAKRA_COLLECTIVE = 7 } ChakraKind;

typedef enum {
    CHAKRA_ALL_REDUCE = 0,
    CHAKRA_ALL_GATHER = 2,
    CHAKRA_BROADCAST = 5,
    CHAKRA_ALL_TO_ALL = 6,
    CHAKRA_REDUCE_SCATTER = 7
} ChakraCollective;

typedef struct ChakraNode {
    uint64_t id;
    const char *name;
    ChakraKind kind;
    const uint64_t *deps; /* nodes that come before, all with smaller numbers */
    int dep_count;
    uint64_t micros;             /* computing */
    int64_t bytes;               /* of a message; of a collective what a rank puts in */
    ChakraCollective collective; /* with `group`, the number of its ranks' group as text */
    const char *group;
    int32_t from, to, tag; /* ranks of a message */
} ChakraNode;

void chakra_append_header(GString *out);
void chakra_append_node(GString *out, const ChakraNode *node);

#endif
