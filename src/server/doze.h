/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doze - how long rings that were read are left alone.
 *
 * To wake up costs as much as some thousand records. A ring that fills up earlier
 * wakes us, and who asks gets what is in the rings. Pure, one thread.
 */
#ifndef TTM_SERVER_DOZE_H
#define TTM_SERVER_DOZE_H

#include <stdint.h>

#define TTM_DOZE_NS UINT64_C(10000000)
/* Where so little comes that this long does not fill a ring enough for it to wake us. */
#define TTM_DOZE_MOST_NS UINT64_C(160000000)

struct ttm_doze {
    uint64_t read_ns; /* when the rings were last read to their end */
    uint64_t last_ns; /* how long they were to be left alone then */
    uint64_t records; /* that were read since; whoever reads counts them */
};

/* The rings, of 'slots' records each, are empty at 'now_ns'. Returns how long to leave them alone. */
uint64_t ttm_doze_next(struct ttm_doze *doze, uint64_t now_ns, uint32_t slots);

#endif /* TTM_SERVER_DOZE_H */
