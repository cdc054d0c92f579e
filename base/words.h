/* base/words.h - closed lists of words that stand for numbers: word i for i, or for bit i of a set. */
#ifndef ORR_BASE_WORDS_H
#define ORR_BASE_WORDS_H

#include <glib.h>

typedef struct OrrWords {
    const char *what;         /* "an optimizer", for messages */
    const char *const *first; /* word; the others by orr_word() */
    int count;
    gsize
        stride_bytes; /* from one word to the next, where they are members of a table's rows; 0: a plain list */
} OrrWords;

static inline const char *orr_word(const OrrWords *words, int index)
{
    const gsize stride = words->stride_bytes > 0 ? words->stride_bytes : sizeof(char *);
    g_assert(index >= 0 && index < words->count);
    return *(const char *const *)(const void *)((const char *)words->first + (gsize)index * stride);
}

#endif
