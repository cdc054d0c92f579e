/* step/buckets.c - see buckets.h. */
#include "step/buckets.h"

#include <stdbool.h>

int sim_deal_buckets(const double *elements, int count, double most, int *ret_bucket, double *ret_offset)
{
    double held = 0;
    int bucket = 0;
    for (int i = 0; i < count; i++) {
        if (most > 0 && held > 0 && held + elements[i] > most) {
            bucket++;
            held = 0;
        }
        ret_bucket[i] = bucket;
        ret_offset[i] = held;
        held += elements[i];
    }
    return count > 0 ? bucket + 1 : 0;
}

int sim_fill_buckets(const double *elements, int count, double least, int *ret_bucket)
{
    double held = 0;
    int buckets = 0;
    bool open = false;
    for (int i = count - 1; i >= 0; i--) {
        buckets += !open;
        open = true;
        held += elements[i];
        ret_bucket[i] = buckets;
        if (least > 0 && held >= least) {
            held = 0;
            open = false;
        }
    }
    for (int i = 0; i < count; i++)
        ret_bucket[i] = buckets - ret_bucket[i];
    return buckets;
}
