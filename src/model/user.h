/* SPDX-License-Identifier: Apache-2.0 */
/*
 * user - what the processes of one user have of the tables that all users share.
 *
 * A limit for each process does not keep a user with many processes from locking others out. So
 * there are limits for each user too; root and the owner of the registry have none of their own.
 *
 * One thread, no I/O, no clock.
 */
#ifndef TTM_MODEL_USER_H
#define TTM_MODEL_USER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/id_ranges.h"
#include "base/list.h"
#include "model/quota.h"

#define TTM_USER_ALLOCATIONS_MAX (1u << 22)
#define TTM_USER_SITES_MAX (1u << 16)
#define TTM_USER_ORIGIN_BYTES_MAX (64u << 20)
#define TTM_USER_DEVICES_MAX 2048u
#define TTM_USER_DEVICE_SETS_MAX 1024u
#define TTM_USER_CBS_MAX 65536u
#define TTM_USER_CORE_SETS_MAX 16384u

#define TTM_USER_NONE UINT32_MAX /* an id that no user has */

struct ttm_user {
    struct ttm_list link; /* among the users whose ids share a hash */
    uint32_t uid;
    uint32_t refs; /* of its processes */
    bool is_privileged;
    struct ttm_quota allocations; /* that are live */
    struct ttm_quota sites;
    struct ttm_quota origin_bytes;
    struct ttm_quota devices;     /* pairs of a process and a device that it uses */
    struct ttm_quota device_sets; /* pairs of a process and a set of several devices */
    struct ttm_quota cbs;
    struct ttm_quota core_sets;
    uint64_t counted; /* for ttm_snapshot_check alone */
};

#define TTM_USER_CHAINS 64 /* a power of two */

struct ttm_users {
    struct ttm_list chains[TTM_USER_CHAINS];
    uint32_t owner;                     /* privileged as root is; TTM_USER_NONE: there is none */
    const struct ttm_id_ranges *ranges; /* ids in one of these are one user; NULL: there are none */
    uint64_t seed;
};

/* A user that can choose its ids, as in a user namespace, does not know 'seed'. */
void ttm_users_init(struct ttm_users *users, uint64_t seed);

/* The user of that id, new if need be, with one reference more. Returns 0 or -ENOMEM. */
int ttm_users_ref(struct ttm_users *users, uint32_t uid, struct ttm_user **ret);

/* Releases one reference. With the last one the user is gone. */
void ttm_user_unref(struct ttm_user *user);

#endif /* TTM_MODEL_USER_H */
