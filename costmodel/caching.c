/* costmodel/caching.c - see caching.h. Tested: unit/costmodel/test_caching.c */
#include "costmodel/caching.h"

enum { MIB = 1 << 20, ROUND = 512, SMALL_SEGMENT = 20 * MIB, LARGE_REQUEST = 10 * MIB, LARGE_UNIT = 2 * MIB };

/* Neighbours lie in the same segment; -1: its end. */
typedef struct Block {
    int64_t bytes;
    int before, behind; /* of an unused entry `behind` is the next unused one */
    bool used;
} Block;

static Block *block_at(const CostCaching *caching, int index)
{
    return &g_array_index(caching->blocks, Block, index);
}

void cost_caching_init(CostCaching *caching)
{
    *caching = (CostCaching){.blocks = g_array_new(FALSE, FALSE, sizeof(Block)),
                             .free_list = g_array_new(FALSE, FALSE, sizeof(int)),
                             .spare = -1};
}

void cost_caching_clear(CostCaching *caching)
{
    g_array_free(caching->blocks, TRUE);
    g_array_free(caching->free_list, TRUE);
}

static int new_block(CostCaching *caching, Block block)
{
    int index = caching->spare;
    if (index >= 0) {
        caching->spare = block_at(caching, index)->behind;
        *block_at(caching, index) = block;
        return index;
    }
    g_array_append_val(caching->blocks, block);
    return (int)caching->blocks->len - 1;
}

static void forget_block(CostCaching *caching, int index)
{
    *block_at(caching, index) = (Block){.before = -1, .behind = caching->spare};
    caching->spare = index;
}

/* First place of the list whose block has at least `bytes` and, of equal ones, an index of at least `index`. */
static guint place_of(const CostCaching *caching, int64_t bytes, int index)
{
    guint low = 0, high = caching->free_list->len;
    while (low < high) {
        const guint middle = (low + high) / 2;
        const int at = g_array_index(caching->free_list, int, middle);
        const int64_t has = block_at(caching, at)->bytes;
        if (has < bytes || (has == bytes && at < index))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void list_block(CostCaching *caching, int index)
{
    const guint place = place_of(caching, block_at(caching, index)->bytes, index);
    g_array_insert_val(caching->free_list, place, index);
}

static void unlist_block(CostCaching *caching, int index)
{
    g_array_remove_index(caching->free_list, place_of(caching, block_at(caching, index)->bytes, index));
}

static int new_segment(CostCaching *caching, int64_t bytes)
{
    const int64_t segment =
        bytes < LARGE_REQUEST ? SMALL_SEGMENT : (bytes + LARGE_UNIT - 1) / LARGE_UNIT * LARGE_UNIT;
    caching->reserved_bytes += segment;
    caching->peak_reserved_bytes = MAX(caching->peak_reserved_bytes, caching->reserved_bytes);
    return new_block(caching, (Block){.bytes = segment, .before = -1, .behind = -1});
}

static void split(CostCaching *caching, int index, int64_t bytes)
{
    const Block whole = *block_at(caching, index);
    if (whole.bytes - bytes <= MIB)
        return;
    const int rest =
        new_block(caching, (Block){.bytes = whole.bytes - bytes, .before = index, .behind = whole.behind});
    if (whole.behind >= 0)
        block_at(caching, whole.behind)->before = rest;
    block_at(caching, index)->behind = rest;
    block_at(caching, index)->bytes = bytes;
    list_block(caching, rest);
}

int cost_caching_take(CostCaching *caching, int64_t bytes)
{
    if (bytes <= MIB)
        return -1;
    const int64_t rounded = (bytes + ROUND - 1) / ROUND * ROUND;
    const guint place = place_of(caching, rounded, 0);
    int index;
    if (place < caching->free_list->len) {
        index = g_array_index(caching->free_list, int, place);
        g_array_remove_index(caching->free_list, place);
    } else {
        index = new_segment(caching, rounded);
    }
    split(caching, index, rounded);
    Block *block = block_at(caching, index);
    block->used = true;
    caching->used_bytes += block->bytes;
    caching->peak_used_bytes = MAX(caching->peak_used_bytes, caching->used_bytes);
    return index;
}

/* Takes the block behind `index` into it, where that is free, out of the list if it is in it. */
static void join(CostCaching *caching, int index, bool listed)
{
    Block *block = block_at(caching, index);
    const int behind = block->behind;
    if (behind < 0 || block_at(caching, behind)->used)
        return;
    if (listed)
        unlist_block(caching, behind);
    block->bytes += block_at(caching, behind)->bytes;
    block->behind = block_at(caching, behind)->behind;
    if (block->behind >= 0)
        block_at(caching, block->behind)->before = index;
    forget_block(caching, behind);
}

void cost_caching_give(CostCaching *caching, int block)
{
    if (block < 0)
        return;
    Block *given = block_at(caching, block);
    given->used = false;
    caching->used_bytes -= given->bytes;
    const int before = given->before;
    join(caching, block, true);
    if (before < 0 || block_at(caching, before)->used) {
        list_block(caching, block);
        return;
    }
    unlist_block(caching, before);
    join(caching, before, false);
    list_block(caching, before);
}
