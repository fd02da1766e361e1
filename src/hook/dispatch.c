/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/dispatch.h"

#include "base/hot_code.h"

TTM_HOT_NEXT __attribute__((noinline)) bool ttm_dispatch_note_all(
    const struct ttm_dispatch *dispatch)
{
    /* acquire: pairs with the release in set_span(). */
    const struct ttm_device_span span = atomic_load_explicit(&dispatch->span, memory_order_acquire);

    if (__builtin_expect(span.count == 0, 0)) /* relaxed: as where it is written */
        return !atomic_load_explicit(&dispatch->is_scattered, memory_order_relaxed);
    ttmem_guest_dispatch(atomic_load_explicit(&dispatch->cells, memory_order_relaxed), span,
                         dispatch->program);
    return true;
}
