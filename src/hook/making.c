/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/making.h"

#include <errno.h>

#include "hook/metal.h"

/* Of whoever began, while ttm_own.is_making. */
static __thread struct ttm_frame maker __attribute__((tls_model("initial-exec")));

void ttm_making_begin(const struct ttm_runtime *runtime, const void *caller)
{
    /* One within another is the same: the outer one's program keeps it. */
    if (ttm_making_is_under_way(runtime))
        return;
    const int saved_errno = errno;
    ttm_own.is_making = runtime->metal->frame_of(caller, &maker);
    errno = saved_errno;
}

bool ttm_making_goes_on(const struct ttm_runtime *runtime)
{
    const int saved_errno = errno;

    /* It may have returned, or have been left by an exception. */
    ttm_own.is_making = runtime->metal->has_frame(&maker);
    errno = saved_errno;
    return ttm_own.is_making;
}
