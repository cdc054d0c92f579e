/* step/buckets.h - gradients dealt to buckets tensor by tensor: from the first on, as picotron does, or from the last. */
#ifndef ORR_STEP_BUCKETS_H
#define ORR_STEP_BUCKETS_H

/* Deals `count` tensors of `elements` each to buckets of at most `most` (0: one bucket), in order: a bucket that the next tensor
 * would overflow is closed without it, and a tensor larger than a bucket is one by itself. ret_bucket: of each tensor, from 0;
 * ret_offset: elements of its bucket before it. Returns how many buckets there are (0 of no tensors).
 * Source: [Picotron] data_parallel/bucket.py      Tested: unit/step/test_buckets.c */
int sim_deal_buckets(const double *elements, int count, double most, int *ret_bucket, double *ret_offset);

/* Fills buckets from the last of `count` tensors on: the tensor with which one holds `least` elements closes it (0: one
 * bucket). ret_bucket as above, from 0 in the order of the tensors. Returns how many buckets there are.
 * Source: [MegatronCore] param_and_grad_buffer.py      Tested: unit/step/test_buckets.c */
int sim_fill_buckets(const double *elements, int count, double least, int *ret_bucket);

#endif
