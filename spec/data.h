/* spec/data.h - where a step's input comes from and how fast, and passes that only evaluate. */
#ifndef ORR_SPEC_DATA_H
#define ORR_SPEC_DATA_H

#include <stdbool.h>

typedef struct SpecData {
    bool given;                   /* the scenario has `data` */
    double bytes_per_token;       /* in storage */
    double tokens;                /* of the data set; 0: training.tokens, each read once */
    double front_end_bytes_per_s; /* of a node's way to storage; 0: as fast as the storage */
    double cache_bytes;   /* of a node's memory or disks: a data set that fits is read from storage once */
    int workers;          /* processes of a node that prepare input ... */
    double tokens_per_s;  /* ... this much each; 0: as fast as it takes */
    int prefetch;         /* steps ahead; 0: a step waits for its own input */
    int eval_every_steps; /* 0: no evaluation */
    double eval_tokens;
} SpecData;

#endif
