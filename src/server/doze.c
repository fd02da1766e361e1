/* SPDX-License-Identifier: Apache-2.0 */
#include "server/doze.h"

/* A ring that is full to three quarters wakes us, which costs its program a system call: we come before. */
#define RECORDS_OF(slots) ((uint64_t)(slots) / 8 * 5)

uint64_t ttm_doze_next(struct ttm_doze *doze, uint64_t now_ns, uint32_t slots)
{
    const uint64_t elapsed_ns = now_ns - doze->read_ns;
    const uint64_t n = doze->records;
    /* By and by: a program that stood still for a moment goes on at full speed. */
    uint64_t next_ns = doze->last_ns + doze->last_ns / 4;

    if (n == 0)
        next_ns = doze->last_ns * 2; /* soon it is left alone until it wakes us */
    else if (elapsed_ns < TTM_DOZE_MOST_NS && elapsed_ns * RECORDS_OF(slots) / n < next_ns)
        next_ns = elapsed_ns * RECORDS_OF(slots) / n;
    if (next_ns < TTM_DOZE_NS)
        next_ns = TTM_DOZE_NS;
    if (next_ns > TTM_DOZE_MOST_NS)
        next_ns = TTM_DOZE_MOST_NS;
    *doze = (struct ttm_doze){.read_ns = now_ns, .last_ns = next_ns};
    return next_ns;
}
