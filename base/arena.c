/* base/arena.c - growing blocks of zeroed memory. Large blocks come from calloc, so that pages which
 * are never touched cost nothing. */
#if defined __linux__
#define _DEFAULT_SOURCE /* madvise */
#endif

#include "base/arena.h"

#include <glib.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined __linux__
#include <sys/mman.h>
#endif

#define ARENA_ALIGN      16u
#define ARENA_FIRST_SIZE ((size_t)4 * 1024)
#define ARENA_LAST_SIZE  ((size_t)64 * 1024 * 1024)
#define LARGE_PAGE       ((uintptr_t)2 * 1024 * 1024)

/* calloc's alignment is that of max_align_t, and so is that of what lies behind this. */
typedef struct ArenaBlock {
    struct ArenaBlock *previous;
    size_t size, used;
    _Alignas(ARENA_ALIGN) unsigned char bytes[];
} ArenaBlock;

struct OrrArena {
    ArenaBlock *top;
    size_t next_size;
    size_t used_bytes;
};

OrrArena *orr_arena_new(void)
{
    OrrArena *arena = g_new0(OrrArena, 1);
    arena->next_size = ARENA_FIRST_SIZE;
    return arena;
}

static void free_blocks(ArenaBlock *block)
{
    while (block != NULL) {
        ArenaBlock *previous = block->previous;
        free(block);
        block = previous;
    }
}

void orr_arena_free(OrrArena *arena)
{
    if (arena == NULL)
        return;
    free_blocks(arena->top);
    g_free(arena);
}

void orr_arena_clear(OrrArena *arena)
{
    ArenaBlock *top = arena->top;
    arena->used_bytes = 0;
    if (top == NULL)
        return;
    free_blocks(top->previous);
    memset(top->bytes, 0, top->used);
    top->previous = NULL;
    top->used = 0;
}

/* Large pages where the system has them: what is spread over gigabytes would else miss the translation of its addresses
 * as often as the cache. Only a hint. */
static void ask_for_large_pages(unsigned char *bytes, size_t size)
{
#if defined __linux__ && defined MADV_HUGEPAGE
    const uintptr_t mask = LARGE_PAGE - 1u, first = ((uintptr_t)bytes + mask) & ~mask,
                    end = ((uintptr_t)bytes + size) & ~mask;
    if (size >= 2 * LARGE_PAGE)
        (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
#else
    (void)bytes, (void)size;
#endif
}

static ArenaBlock *arena_block_new(size_t size)
{
    ArenaBlock *block = calloc(1, sizeof *block + size);
    if (block == NULL) { /* nothing above could go on: the sentence that GLib's own allocator would not say */
        g_printerr("orrery: out of memory: the system refused %" G_GSIZE_FORMAT " bytes\n", size);
        exit(EXIT_FAILURE);
    }
    g_assert(((uintptr_t)block->bytes & (ARENA_ALIGN - 1u)) == 0);
    ask_for_large_pages(block->bytes, size);
    block->size = size;
    return block;
}

/* Who asked for much will ask for more: many middling allocations then share large blocks, and these large pages. */
static void grow(OrrArena *arena)
{
    if (arena->next_size < ARENA_LAST_SIZE)
        arena->next_size *= 2;
}

void orr_arena_reserve(OrrArena *arena, size_t size)
{
    ArenaBlock *top = arena->top;
    if (top != NULL && top->size - top->used >= size)
        return;
    ArenaBlock *block = arena_block_new(size);
    block->previous = top;
    arena->top = block;
}

void *orr_arena_alloc(OrrArena *arena, size_t size)
{
    g_assert(arena != NULL);
    g_assert(size <= SIZE_MAX / 2);
    size_t bytes = size == 0 ? ARENA_ALIGN : (size + ARENA_ALIGN - 1u) & ~(size_t)(ARENA_ALIGN - 1u);
    arena->used_bytes += bytes;
    ArenaBlock *top = arena->top;
    if (top != NULL && top->size - top->used >= bytes) {
        void *result = top->bytes + top->used;
        top->used += bytes;
        return result;
    }
    if (top != NULL && bytes > arena->next_size / 4) { /* a block of its own, behind the open one */
        ArenaBlock *own = arena_block_new(bytes);
        own->used = bytes;
        own->previous = top->previous;
        top->previous = own;
        grow(arena);
        return own->bytes;
    }
    orr_arena_reserve(arena, MAX(arena->next_size, bytes));
    grow(arena);
    arena->top->used = bytes;
    return arena->top->bytes;
}

char *orr_arena_strdup(OrrArena *arena, const char *text)
{
    size_t length = strlen(text) + 1;
    return memcpy(orr_arena_alloc(arena, length), text, length);
}

size_t orr_arena_used_bytes(const OrrArena *arena)
{
    return arena->used_bytes;
}
