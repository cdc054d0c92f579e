/* base/arena.h - memory of one run: allocate while building, release all at once.
 *
 * Blocks grow geometrically; allocations are zeroed and aligned to 16 bytes; nothing is freed alone.
 * The arena owns everything allocated from it. An allocation that the machine refuses aborts (GLib's
 * rule).
 */
#ifndef ORR_BASE_ARENA_H
#define ORR_BASE_ARENA_H

#include <stddef.h>

typedef struct OrrArena OrrArena;

OrrArena *orr_arena_new(void);
void orr_arena_free(OrrArena *arena);

/* Gives back all that was handed out, and keeps room for what comes next. */
void orr_arena_clear(OrrArena *arena);

/* Reserves `size` bytes so that the next allocations are contiguous. Untouched pages of a large reserve cost nothing. */
void orr_arena_reserve(OrrArena *arena, size_t size);

/* Zeroed bytes; `size` 0 gives a valid pointer. */
void *orr_arena_alloc(OrrArena *arena, size_t size);
char *orr_arena_strdup(OrrArena *arena, const char *text);

/* Bytes handed out so far (for benchmarks and limits). */
size_t orr_arena_used_bytes(const OrrArena *arena);

#define ORR_ARENA_NEW(arena, type, count) ((type *)orr_arena_alloc((arena), sizeof(type) * (size_t)(count)))

#endif
