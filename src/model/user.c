/* SPDX-License-Identifier: Apache-2.0 */
#include "model/user.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

void ttm_users_init(struct ttm_users *users, uint64_t seed)
{
    *users = (struct ttm_users){.owner = TTM_USER_NONE, .seed = seed};
    for (uint32_t i = 0; i < TTM_USER_CHAINS; i++)
        ttm_list_init(&users->chains[i]);
}

static struct ttm_quota up_to(const struct ttm_user *user, uint64_t max)
{
    return (struct ttm_quota){.max = user->is_privileged ? TTM_QUOTA_NONE : max};
}

static struct ttm_user *new_user(const struct ttm_users *users, uint32_t uid)
{
    struct ttm_user *user = calloc(1, sizeof(*user));

    if (!user)
        return NULL;
    user->uid = uid;
    user->is_privileged = uid == 0 || (users->owner != TTM_USER_NONE && uid == users->owner);
    user->allocations = up_to(user, TTM_USER_ALLOCATIONS_MAX);
    user->sites = up_to(user, TTM_USER_SITES_MAX);
    user->origin_bytes = up_to(user, TTM_USER_ORIGIN_BYTES_MAX);
    user->devices = up_to(user, TTM_USER_DEVICES_MAX);
    user->device_sets = up_to(user, TTM_USER_DEVICE_SETS_MAX);
    user->cbs = up_to(user, TTM_USER_CBS_MAX);
    user->core_sets = up_to(user, TTM_USER_CORE_SETS_MAX);
    return user;
}

int ttm_users_ref(struct ttm_users *users, uint32_t uid, struct ttm_user **ret)
{
    if (users->ranges)
        uid = ttm_id_ranges_user(users->ranges, uid);
    struct ttm_list *chain =
        &users->chains[ttm_hash_u64(uid ^ users->seed) & (TTM_USER_CHAINS - 1)];

    TTM_LIST_FOR_EACH(pos, chain) {
        struct ttm_user *user = TTM_CONTAINER_OF(pos, struct ttm_user, link);
        if (user->uid == uid) {
            user->refs++;
            *ret = user;
            return 0;
        }
    }
    struct ttm_user *user = new_user(users, uid);
    if (!user)
        return -ENOMEM;
    user->refs = 1;
    ttm_list_append(chain, &user->link);
    *ret = user;
    return 0;
}

void ttm_user_unref(struct ttm_user *user)
{
    if (--user->refs > 0)
        return;
    ttm_list_remove(&user->link);
    free(user);
}
