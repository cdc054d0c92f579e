/* program/servers_state.h - the state of a run over parameter servers; only program/servers*.c include it. */
#ifndef ORR_PROGRAM_SERVERS_STATE_H
#define ORR_PROGRAM_SERVERS_STATE_H

#include "sim/eventq.h"
#include "program/servers.h"

enum { PUSH, PULL, DIRECTIONS };

typedef struct {
    int layer, server;
    double bytes[DIRECTIONS];
} Part;

/* What a worker and a server say to each other in one direction: parts that wait, by key, and those handed over, which
 * cannot be overtaken. */
typedef struct {
    int32_t *waiting; /* heap of parts */
    int64_t *key;     /* [parts of the server], beside `waiting` */
    int32_t waiting_count, capacity;
    int32_t *handed; /* ring of as many */
    int32_t handed_first, handed_count;
    bool flows;
    double left_bytes, rate; /* of the part that flows, bytes a picosecond */
    int64_t since_ps;
    int32_t active_index;
} Connection;

typedef enum { STAGE_IDLE, STAGE_LOCAL, STAGE_STARTS, STAGE_STARTED, STAGE_SUMMED } Stage;

typedef struct {
    int32_t at; /* ops done of an iteration: fp_1 .. fp_L, bp_L .. bp_1 */
    int32_t iteration;
    bool busy;
    double factor;       /* on the compute times */
    int32_t back, gone;  /* parts pulled for this iteration; pushes that the servers have applied */
    int32_t *layer_back; /* [layers] */
    int64_t read;        /* updates of all when its last part was handed to the pull ... */
    int64_t version;     /* ... that the gradients being computed rest on */
    int64_t local_free_ps[DIRECTIONS];
    double on_way_bytes[DIRECTIONS];
    int32_t on_way[DIRECTIONS];
    int64_t busy_since_ps[DIRECTIONS], busy_ps[DIRECTIONS], compute_ps, compute_done_ps;
    int32_t last_op;                   /* of its passes in `ops`, -1: none */
    int64_t first_end_ps, last_end_ps; /* of iterations in the window */
    int32_t first_iteration, last_iteration;
} Worker;

/* What a connection shares with others: the NICs at its ends, and of pods apart the uplinks of both. */
typedef struct {
    int32_t at[4]; /* of `free_rate` */
    int32_t count;
} Links;

typedef struct {
    const SimServerPlan *plan;
    SimEventq *queue;
    Part *parts;
    int part_count, *layer_parts; /* [layers] how many */
    Worker *workers;
    Connection *connections; /* [workers][servers][directions] */
    uint8_t *stage;          /* [workers][parts][directions] */
    int32_t *arrived;        /* [parts] workers whose gradient is added up */
    int32_t applied;         /* parts that the servers have updated, naive and synchronous */
    int64_t *server_free_ps, *server_busy_ps;
    double *up_bytes, *down_bytes; /* [machines] */
    int32_t *active;               /* connections that flow */
    int32_t active_count;
    int32_t pods;
    double *pod_rate;  /* [pods] of their uplinks, each way, bytes a picosecond */
    Links *links;      /* [connections] */
    double *free_rate; /* [2 machines + 2 pods] of the solver: up, then down */
    int32_t *users;
    bool *frozen; /* [connections] */
    bool rates_stale;
    int64_t now_ps, sequence, updates;
    int finished; /* workers that have done all of their iterations */
    bool measuring, done, overflow;
    int64_t window_ps;
    int64_t iterations;
    double staleness_sum;
    int staleness_max;
    int64_t staleness[SIM_STALENESS_BINS];
    SimServerOp *ops; /* [SIM_SERVERS_SHOWN_OPS] */
    int op_count;
} Servers;

/* Event numbers: workers, messages, parts, connections. */
static inline int32_t message_of(const Servers *s, int worker, int part, int direction)
{
    return (worker * s->part_count + part) * DIRECTIONS + direction;
}

static inline int32_t connection_of(const Servers *s, int worker, int server, int direction)
{
    return (worker * s->plan->server_count + server) * DIRECTIONS + direction;
}

static inline int32_t message_event(const Servers *s, int32_t message)
{
    return s->plan->workers + message;
}

static inline int32_t part_event(const Servers *s, int part)
{
    return s->plan->workers + s->plan->workers * s->part_count * DIRECTIONS + part;
}

static inline int32_t connection_event(const Servers *s, int32_t connection)
{
    return part_event(s, s->part_count) + connection;
}

/* servers_setup.c */
Servers *servers_new(const SimServerPlan *plan, OrrArena *arena);

/* servers_ends.c */
void servers_at(Servers *s, int32_t event, int64_t delay_ps);
/* Into the timeline, where it has room. */
void servers_note(Servers *s, int worker, SimServerOpKind kind, int64_t start_ps, int64_t end_ps);
/* What bytes take at a rate; 0 where none is given. */
int64_t servers_ps(double bytes, double bytes_per_s);
/* The worker's next pass of a layer, if it is free and has the weights. */
void servers_start_compute(Servers *s, int worker);
/* A part between the worker's GPUs and its network card, one after the other. */
void servers_pass_local(Servers *s, int worker, int part, int direction);
/* Work of a server's processor, one after the other; `event` is its end. */
void servers_serve(Servers *s, int server, int32_t event, int64_t ps);
/* New weights of a part are at the worker. */
void servers_part_back(Servers *s, int worker, int part);
/* A part is through the network. */
void servers_arrived(Servers *s, int worker, int part, int direction);

/* servers_net.c */
/* A part waits for its connection, and goes when credit and connection let it. */
void servers_queue(Servers *s, int worker, int part, int direction);
/* Its start-up is over. */
void servers_started(Servers *s, int worker, int part, int direction);
/* The part that a connection carries is over; returns it. */
int servers_flow_ends(Servers *s, int32_t connection);
/* What a connection's next parts do once one has left it. */
void servers_next(Servers *s, int worker, int server, int direction);
/* Settles all rates after what happened at one instant. */
void servers_rates(Servers *s);

#endif
