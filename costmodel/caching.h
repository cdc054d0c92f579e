/* costmodel/caching.h - PyTorch's caching allocator: which blocks it takes from the GPU, and which it hands out again.
 *
 * Blocks above 1 MiB alone. One request gets the smallest free block that holds it; what is left of that by more than
 * 1 MiB becomes a block of its own. Without one a segment is taken from the GPU: 20 MiB for requests below 10 MiB, else
 * whole units of 2 MiB. Free neighbours of one segment join. Source: c10/cuda/CUDACachingAllocator.cpp of PyTorch 2
 * (get_free_block, should_split, get_allocation_size), with its default settings. Ignored: that segments without a tensor go back before it fails.
 */
#ifndef ORR_COSTMODEL_CACHING_H
#define ORR_COSTMODEL_CACHING_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct CostCaching {
    GArray *blocks;    /* of all segments */
    GArray *free_list; /* indices of free blocks, by their bytes, then by index */
    int spare;         /* first of the unused entries of `blocks`; -1: none */
    int64_t reserved_bytes, used_bytes;
    int64_t peak_reserved_bytes, peak_used_bytes;
} CostCaching;

void cost_caching_init(CostCaching *caching);
void cost_caching_clear(CostCaching *caching);

/* A block of at least so many bytes; -1 where these are at most 1 MiB, which other segments serve. */
int cost_caching_take(CostCaching *caching, int64_t bytes);
/* Hands `block` back; nothing for -1. */
void cost_caching_give(CostCaching *caching, int block);

#endif
