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

/* Answers lie one behind the other, in the order of their questions: few touch few pages. */
typedef struct MemoTable {
    uint32_t count, room;
    char *kept;        /* key and answer each */
    uint32_t places[]; /* 0: free, else one more than the number of what lies there */
} MemoTable;

void orr_memo_free(void *data)
{
    MemoTable *table = data;
    g_free(table->kept);
    g_free(table);
}

void *orr_memo_place(OrrMemo *memo, const void *key, bool *ret_known)
{
    enum { FEW = 64 };
    const size_t bytes = memo->key_bytes + memo->answer_bytes;
    MemoTable *table = g_private_get(&memo->of_thread);
    if (table == NULL) {
        table = g_malloc0(sizeof *table + memo->places * sizeof table->places[0]);
        g_private_set(&memo->of_thread, table);
    }
    uint32_t *place = &table->places[hash_of(key, memo->key_bytes) & (memo->places - 1)];
    const bool taken = *place != 0;
    if (!taken) {
        if (table->count == table->room) {
            table->room = MAX(FEW, 2 * table->room);
            table->kept = g_realloc_n(table->kept, table->room, bytes);
        }
        *place = ++table->count;
    }
    char *kept = table->kept + (*place - 1) * bytes, *answer = kept + memo->key_bytes;
    *ret_known = taken && memcmp(kept, key, memo->key_bytes) == 0;
    if (!*ret_known) {
        memcpy(kept, key, memo->key_bytes);
        memset(answer, 0, memo->answer_bytes);
    }
    return answer;
}
