/* spec/faults.h - what fails in a training run of weeks, what a failure costs, and where checkpoints go.
 *
 * A rate is the mean time between failures of one component; a component class has as many as there are GPUs or nodes.
 * 0: the class never fails.
 */
#ifndef ORR_SPEC_FAULTS_H
#define ORR_SPEC_FAULTS_H

#include <stdbool.h>

#include "spec/names.h"

typedef struct SpecStorage {
    char name[SPEC_NAME_SIZE];
    double read_bytes_per_s, write_bytes_per_s; /* write 0: no storage given */
    SpecSharedBy shared_by;                     /* all: of all nodes together; node: of each node */
    double node_bytes_per_s;                    /* most that one node moves; 0: no limit */
} SpecStorage;

typedef struct SpecCheckpoint {
    SpecCheckpointMode mode;
    double interval_s;      /* of work between two; 0: the best */
    double write_s, load_s; /* measured; 0: bytes over the storage's rate */
    double bytes;           /* 0: counted from the model's states */
    SpecStorage storage;    /* default the scenario's */
    bool broadcast;         /* one node reads, and sends to the others */
    bool one_writer;        /* rank 0's node writes all */
    int store_every;        /* peers: of so many copies one goes to storage */
} SpecCheckpoint;

enum { SPEC_MOST_FAILURES = 64 };

typedef struct SpecFaults {
    bool given; /* the scenario has `faults` */
    char name[SPEC_NAME_SIZE];
    double gpu_mtbf_s, gpu_memory_mtbf_s;                /* of one GPU */
    double node_mtbf_s, network_mtbf_s, software_mtbf_s; /* of one node */
    double spot_mtbf_s;                                  /* until one is taken back by who lends it */
    double rack_mtbf_s, pod_mtbf_s;                      /* of one that takes all its nodes with it */
    int rack_nodes, pod_nodes;
    double failures_s[SPEC_MOST_FAILURES]; /* a node fails at these times, and nothing else does */
    int failure_count;
    bool elastic; /* goes on with fewer nodes ... */
    bool replan;  /* ... and other degrees, where these are faster */
    double detection_s, reschedule_s, init_s, init_s_per_node, warmup_s;
    double manual_frac, response_s; /* failures that wait for a person, and how long on average */
    double repeat_frac;     /* of these waits: the job does not run behind it (a bad node again), once more */
    double rollback_mtbf_s; /* of training, between losses that diverge, of the job as a whole ... */
    double rollback_s;      /* ... and the work that is then thrown away, beyond the last checkpoint */
    double repair_s;        /* that a node with a hardware failure is away */
    int spares;             /* hot nodes beside the cluster; SPEC_UNSET while absent: as many as it takes */
    bool fails_in_restart;
    SpecCheckpoint checkpoint;
} SpecFaults;

#endif
