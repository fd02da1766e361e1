/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota - how much of one thing a user's processes have, and how much they may have.
 *
 * A table that a process fills has a pointer to the quota that counts its entries; NULL is no
 * limit. One thread.
 */
#ifndef TTM_MODEL_QUOTA_H
#define TTM_MODEL_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TTM_QUOTA_NONE UINT64_MAX

struct ttm_quota {
    uint64_t used;
    uint64_t max; /* TTM_QUOTA_NONE: no limit */
};

/* Whether there may be so many more. */
static inline bool ttm_quota_allows(const struct ttm_quota *quota, uint64_t more)
{
    return !quota || (quota->used <= quota->max && more <= quota->max - quota->used);
}

static inline void ttm_quota_add(struct ttm_quota *quota, uint64_t more)
{
    if (quota)
        quota->used += more;
}

static inline void ttm_quota_subtract(struct ttm_quota *quota, uint64_t fewer)
{
    if (quota)
        quota->used -= fewer;
}

#endif /* TTM_MODEL_QUOTA_H */
