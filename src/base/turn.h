/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turn - when it is whose turn, of many that each do something once per interval.
 *
 * Those that begin together would do it together ever after: nothing for a while, then
 * all at once. So each has a place within the interval, and keeps it.
 */
#ifndef TTM_BASE_TURN_H
#define TTM_BASE_TURN_H

#include <stdint.h>

/* The first turn of the one of that number: within one interval from now, by 'places' in it. */
static inline uint64_t ttm_turn_first(uint64_t now_ns, uint64_t interval_ns, uint64_t number,
                                      uint64_t places)
{
    return now_ns + interval_ns * (1 + number % places) / places;
}

/*
 * The next turn after the one at 'due_ns', later than now: whole intervals from there, so
 * that being late now and then moves nobody to the place of another.
 */
static inline uint64_t ttm_turn_next(uint64_t due_ns, uint64_t interval_ns, uint64_t now_ns)
{
    if (interval_ns == 0 || now_ns < due_ns)
        return due_ns + interval_ns;
    return due_ns + ((now_ns - due_ns) / interval_ns + 1) * interval_ns;
}

#endif /* TTM_BASE_TURN_H */
