/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/own.h"

#include <sys/mman.h>

#include "hook/hot.h"

__thread struct ttm_own ttm_own __attribute__((tls_model("initial-exec")));

void ttm_own_set_slot(struct ttm_slot *slot)
{
    ttm_own.slot = slot;
}

/* A page to itself, see ttm_hot_begin(). */
static union {
    _Alignas(TTM_HOT_PAGE) struct ttm_hot hot;
    char bytes[TTM_HOT_PAGE];
} hot_page __attribute__((used));
extern struct ttm_hot ttm_hot __attribute__((alias("hot_page")));

void ttm_hot_begin(void)
{
    (void)madvise(&hot_page, sizeof(hot_page), MADV_WIPEONFORK);
}
