/* spec/batches.h - batches and sequences that a run has before its own: the batch grows, sequences become longer. */
#ifndef ORR_SPEC_BATCHES_H
#define ORR_SPEC_BATCHES_H

enum { SPEC_MOST_BATCHES = 16 };

/* One entry of training.batch_schedule: until its tokens are trained. */
typedef struct SpecBatches {
    int global_batch;
    int by; /* grows by so many sequences up to the next entry's batch, each size as long; 0: it stays */
    int sequence_length;    /* 0: the run's own */
    double tokens, samples; /* one of them */
} SpecBatches;

struct SpecTraining;
/* The batch that entry `index` leads to; tokens that it lasts. */
int spec_batches_next(const struct SpecTraining *training, int index);
double spec_batches_tokens(const struct SpecTraining *training, int index);

#endif
