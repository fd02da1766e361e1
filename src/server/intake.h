/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake - what a record or a telling of a tracked process says is done to the model,
 * the recording and those who watch.
 *
 * Every value is the word of somebody who may lie; what makes no sense is counted as
 * refused and does nothing else. The loop thread.
 */
#ifndef TTM_SERVER_INTAKE_H
#define TTM_SERVER_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

struct ttm_record;
struct ttm_told;
struct ttm_tracked;

/*
 * How many of the records, taken in that order, make no more work than a turn has time for; at least
 * one. '*ret_cost' is their cost.
 */
uint32_t ttm_intake_affordable(const struct ttm_tracked *tracked, const struct ttm_record *records,
                               const uint16_t *order, uint32_t n, uint32_t *ret_cost);

/* What was read from the rings, copied, and the order in which to take it; none is later than now. */
void ttm_intake_records(struct ttm_tracked *tracked, const struct ttm_record *records,
                        const uint16_t *order, uint32_t n);

/* The cost of an allocation that a process sends in a resync. */
uint32_t ttm_intake_cost_of_told(const struct ttm_tracked *tracked, const uint8_t *told);

/* Lives that are told and not known, as they were sent, at most TTM_FIND_MAX; their births may be read later. */
void ttm_intake_told(struct ttm_tracked *tracked, const uint8_t *const *told, uint32_t count);

/* What holds for devices when the process attaches. */
void ttm_intake_devices(struct ttm_tracked *tracked);

/* All that was in the rings at one moment has been read: births of names and ends from before it do not come. */
void ttm_intake_pass(struct ttm_tracked *tracked);

#endif /* TTM_SERVER_INTAKE_H */
