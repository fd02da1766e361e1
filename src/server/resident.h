/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resident - what the circular buffers of a tracked process take of the cores: of all its
 * programs, and of those that were sent to each device last.
 *
 * The sums are made by model/cb_map.h; here is when. The loop thread.
 */
#ifndef TTM_SERVER_RESIDENT_H
#define TTM_SERVER_RESIDENT_H

#include <stdint.h>

struct ttm_birth;
struct ttm_tracked;

/*
 * A circular buffer whose cores are known takes part in the sums over cores. 'devices' is what the
 * process calls its devices: the id of one, or the number of a note.
 */
void ttm_resident_place(struct ttm_tracked *tracked, const struct ttm_birth *birth, int cores,
                        uint32_t devices);

/*
 * Makes the sums, if anything has changed since they were made, and records which programs were sent.
 * One call has a bounded cost: sums that it has no time for are made by the next one.
 */
void ttm_resident_sum(struct ttm_tracked *tracked);

#endif /* TTM_SERVER_RESIDENT_H */
