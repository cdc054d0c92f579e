/* program/servers.h - training over parameter servers: workers that push gradients and pull weights.
 *
 * A simulation of its own beside the engine, with the same clock (int64_t picoseconds) and the same event queue. The
 * engine's streams walk lists that are written before the run; here the order of transfers is decided while it runs: a
 * queue serves the layer that the next forward needs first, credit decides how many parts may be on their way, workers
 * drift apart and servers answer whoever comes. No list written beforehand can say that.
 *
 * Machines have a NIC with two directions. A worker and a server each sit on a machine; where they share one, what
 * passes between them takes no NIC. A worker has one connection to each server in each direction; those which send
 * at one instant share the NICs, and the uplinks of pods, that they cross max-min fair.
 *
 * One iteration of a worker: fp_1 .. fp_L, bp_L .. bp_1. The gradient of layer i may leave when bp_i has ended, fp_i of
 * the next iteration starts when all parts of layer i have come back.
 * Source: [PengByteScheduler2019], [JiangBytePS2020], [ZhangPoseidon2017] (wait-free backpropagation), [HoSSP2013]
 * Ignored: hashes that put flows on one uplink, packet loss beyond the incast factor, memory traffic of the workers' copies.
 */
#ifndef ORR_PROGRAM_SERVERS_H
#define ORR_PROGRAM_SERVERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

typedef enum {
    SIM_SERVERS_NAIVE,    /* all pushes when the backward has ended, all pulls when all pushes have */
    SIM_SERVERS_WFBP,     /* each layer when its gradient is there, first come, first served */
    SIM_SERVERS_PRIORITY, /* parts of layers, those of the first layer first */
} SimServerScheme;

typedef enum {
    SIM_SERVERS_SYNC,    /* a part comes back when the servers have the gradients of all workers */
    SIM_SERVERS_ASYNC,   /* ... when the servers have applied the worker's own */
    SIM_SERVERS_BOUNDED, /* as async; a worker waits while it is `staleness` iterations ahead of the last one */
} SimServerMode;

typedef enum { SIM_SPREAD_NONE, SIM_SPREAD_NORMAL, SIM_SPREAD_EXPONENTIAL } SimServerSpread;

typedef struct SimServerLayer { /* in forward order */
    int64_t forward_ps, backward_ps;
    int64_t push_bytes, pull_bytes; /* of one worker */
} SimServerLayer;

typedef struct SimServerMachine {
    double up_bytes_per_s, down_bytes_per_s; /* of its NIC; 0: no limit */
} SimServerMachine;

typedef struct SimServer {
    int32_t machine;
    double weight; /* part of the bytes that it serves, in any unit */
} SimServer;

typedef struct SimServerPlan {
    const SimServerLayer *layers;
    int layer_count;
    const SimServerMachine *machines; /* worker i sits on machine i; servers anywhere */
    int machine_count, workers;
    int pod_machines;      /* neighbours below uplinks that others share; 0: nothing is oversubscribed */
    double pod_over_ratio; /* the rate below over that of the uplinks, each way */
    const SimServer *servers;
    int server_count;
    SimServerScheme scheme;
    SimServerMode mode;
    int staleness;             /* bounded */
    bool barrier;              /* no forward before all parts of all layers are back */
    int64_t partition_bytes;   /* of gradients; 0: layers go whole */
    int64_t credit_bytes;      /* of a worker in one direction on their way; 0: one part on each connection */
    int64_t startup_ps;        /* of each transfer, before its bytes flow */
    double flow_bytes_per_s;   /* most that one connection carries (TCP); 0: no limit */
    double incast_frac;        /* each further flow into a NIC: capacity over 1 + this x (flows - 1) */
    double sum_bytes_per_s;    /* gradients that a server adds up; 0: no time */
    double update_bytes_per_s; /* gradients that its optimizer applies; 0: no time */
    double local_ps_per_byte;  /* inside a worker of several GPUs, before a push and behind a pull each */
    SimServerSpread spread;    /* of the time of a worker's iteration */
    double spread_frac;        /* normal: standard deviation over the mean */
    bool spread_lasts;         /* drawn once a worker, not anew every iteration */
    uint64_t seed;
    int warm_iterations,
        iterations; /* left out, and measured behind them: of all, or apart of the first that is done */
} SimServerPlan;

typedef enum {
    SIM_SERVERS_FORWARD,
    SIM_SERVERS_BACKWARD,
    SIM_SERVERS_PUSH,
    SIM_SERVERS_PULL
} SimServerOpKind;

/* What a worker does for a while: all layers of a pass that follow each other; a push (a pull) of any part is on its way. */
typedef struct SimServerOp {
    int64_t start_ps, end_ps;
    int32_t worker,
        iteration; /* of a push or pull: the one that the worker had come to when the last part was through */
    SimServerOpKind kind;
} SimServerOp;

/* The first workers and iterations of a run are kept as a timeline. */
#define SIM_SERVERS_SHOWN_WORKERS    8
#define SIM_SERVERS_SHOWN_ITERATIONS 4
#define SIM_SERVERS_SHOWN_OPS        4096

#define SIM_STALENESS_BINS 64

typedef struct SimServerResult {
    int64_t step_ps;          /* workers over iterations of all of them a second */
    int64_t compute_ps;       /* of it, mean over workers */
    int64_t exposed_ps;       /* step less compute: waiting for pulls and for others */
    int64_t push_ps, pull_ps; /* a worker has a push (a pull) on its way, mean over workers, a step */
    int64_t server_ps;        /* the busiest server adds up and applies, a step */
    int parts;                /* of the model, as it goes over the wire */
    double nic_up_bytes, nic_down_bytes; /* through the busiest NIC in a step */
    double sent_bytes, received_bytes;   /* over all NICs and the whole run: equal */
    int64_t iterations;                  /* measured, of all workers */
    double staleness_mean;               /* updates of others between a worker's pull and its own update */
    int staleness_max;
    int64_t
        staleness[SIM_STALENESS_BINS]; /* iterations with so many; the last bin holds those with more, too */
    SimServerOp *ops; /* by the time of being told: passes at their start, pushes and pulls at their end */
    int op_count;
} SimServerResult;

/* Runs to the end. Fails (ORR_ERROR_INPUT) on times that the clock cannot hold. */
bool sim_servers_run(const SimServerPlan *plan, OrrArena *arena, SimServerResult *ret_result, GError **error);

/* Parts of M bytes on each of n GPU machines and on each of k <= n CPU machines by which all take least to push and pull them.
 * Source: [JiangBytePS2020] theorem 1 */
void sim_servers_placement(int workers, int servers, double *ret_worker_frac, double *ret_server_frac);

#endif
