/* SPDX-License-Identifier: Apache-2.0 */
/*
 * early_ends - ends of lives that were read before their births.
 *
 * Birth and end may be in the rings of two threads. Who reads the end first keeps it
 * here until the birth comes, so that both are told; one whose birth was lost is
 * forgotten after a while. One thread.
 */
#ifndef TTM_SERVER_EARLY_ENDS_H
#define TTM_SERVER_EARLY_ENDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/u64_map.h"
#include "model/quota.h"

#define TTM_EARLY_ENDS_MAX (1u << 17) /* of each age */

struct ttm_early_end {
    uint64_t time_ns;
    uint8_t how; /* enum ttm_end */
};

struct ttm_early_age {
    struct ttm_u64_map places; /* serial: place */
    struct ttm_early_end *ends;
    uint32_t count;
    uint32_t room;
};

struct ttm_early_ends {
    struct ttm_quota *quota;      /* that counts them, NULL: none */
    struct ttm_early_age ages[2]; /* since the last call of ttm_early_ends_age(), and before */
};

/* 'seed': any number that the process does not know. 'quota' is borrowed. */
void ttm_early_ends_init(struct ttm_early_ends *early, uint64_t seed, struct ttm_quota *quota);
void ttm_early_ends_done(struct ttm_early_ends *early);

/* Returns 0, -ENOMEM or -ENOSPC. */
int ttm_early_ends_add(struct ttm_early_ends *early, uint64_t serial,
                       const struct ttm_early_end *end);

/* Returns whether there is an end of that life; it is not in there any more afterwards. */
bool ttm_early_ends_take(struct ttm_early_ends *early, uint64_t serial, struct ttm_early_end *ret);

bool ttm_early_ends_has(const struct ttm_early_ends *early, uint64_t serial);

/* Forgets what was there at the last call. */
void ttm_early_ends_age(struct ttm_early_ends *early);

#endif /* TTM_SERVER_EARLY_ENDS_H */
