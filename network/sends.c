/* network/sends.c - the messages of a step, as the generators append to them. */
#include <string.h>

#include "network/algorithm.h"

int net_log2_up(int n)
{
    int log = 0;
    while ((int64_t)1 << log < n)
        log++;
    return log;
}

int net_power_below(int n)
{
    int power = 1;
    while (power <= n / 2)
        power *= 2;
    return power;
}

void net_sends_clear(NetSends *sends)
{
    g_free(sends->pieces);
    memset(sends, 0, sizeof *sends);
}

void net_send(NetSends *sends, int peer, int first, int stride, int count, bool reduce)
{
    if (sends->count == sends->capacity) {
        sends->capacity = MAX(16, 2 * sends->capacity);
        sends->pieces = g_renew(NetPiece, sends->pieces, sends->capacity);
    }
    sends->pieces[sends->count++] =
        (NetPiece){.peer = peer, .first = first, .stride = stride, .count = count, .reduce = reduce};
}

void net_send_round(NetSends *sends, int peer, int first, int count, int modulus, bool reduce)
{
    const int here = MIN(count, modulus - first);
    net_send(sends, peer, first, 1, here, reduce);
    if (count > here)
        net_send(sends, peer, 0, 1, count - here, reduce);
}
