/* base/memo.c - see memo.h. Tested: unit/base/test_memo.c */
#include "base/memo.h"

#include <stdint.h>
#include <string.h>

static uint64_t hash_of(const void *key, size_t bytes)
{
    uint64_t hash = 0x9E3779B97F4A7C15u;
    for (size_t at = 0; at < bytes; at += sizeof hash) {
        uint64_t word;
        memcpy(&word, (const char *)key + at, sizeof word);
        hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
        hash ^= hash >> 32;
    }
    return hash;
}

void *orr_memo_place(OrrMemo *memo, const void *key, bool *ret_known)
{
    /* each place: 1 if it is taken, the key, the answer */
    const size_t place_bytes = sizeof(uint64_t) + memo->key_bytes + memo->answer_bytes;
    char *table = g_private_get(&memo->of_thread);
    if (table == NULL) {
        table = g_malloc0_n(memo->places, place_bytes);
        g_private_set(&memo->of_thread, table);
    }
    char *place = table + (hash_of(key, memo->key_bytes) & (memo->places - 1)) * place_bytes;
    uint64_t *taken = (uint64_t *)(void *)place;
    char *kept = place + sizeof *taken, *answer = kept + memo->key_bytes;
    *ret_known = *taken != 0 && memcmp(kept, key, memo->key_bytes) == 0;
    if (!*ret_known) {
        *taken = 1;
        memcpy(kept, key, memo->key_bytes);
        memset(answer, 0, memo->answer_bytes);
    }
    return answer;
}
