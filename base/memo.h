/* base/memo.h - answers of a pure function, kept for when it is asked the same again.
 *
 * A table of fixed size for each thread, gone with it; each of its places holds the last question that fell there. What is
 * answered does not depend on what was kept.
 */
#ifndef ORR_BASE_MEMO_H
#define ORR_BASE_MEMO_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct OrrMemo {
    GPrivate of_thread;
    size_t key_bytes, answer_bytes; /* multiples of 8 */
    size_t places;                  /* a power of two */
} OrrMemo;

#define ORR_MEMO(Key, Answer, count)                                                                         \
    {                                                                                                        \
        .of_thread = G_PRIVATE_INIT(orr_memo_free), .key_bytes = sizeof(Key),                                \
        .answer_bytes = sizeof(Answer), .places = (count)                                                    \
    }

void orr_memo_free(void *data); /* a thread's table */

/* Where the answer to `key` is; if not `ret_known` it is all zero, and the caller puts it there before anything else is asked.
 * Keys are compared byte by byte: padding that differs costs a miss, nothing else. */
void *orr_memo_place(OrrMemo *memo, const void *key, bool *ret_known);

#endif
