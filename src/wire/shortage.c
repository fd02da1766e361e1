/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/shortage.h"

enum ttm_shortage ttm_shortage_of(const struct ttm_shortage_facts *facts)
{
    if (facts->kind != TTM_FAILURE_OUT_OF_MEMORY || facts->wanted_bytes == 0 ||
        facts->largest_block_bytes >= facts->wanted_bytes)
        return TTM_SHORTAGE_NONE;
    return facts->free_bytes >= facts->wanted_bytes ? TTM_SHORTAGE_FRAGMENTED
                                                    : TTM_SHORTAGE_EXHAUSTED;
}

const char *ttm_shortage_name(enum ttm_shortage shortage)
{
    return shortage == TTM_SHORTAGE_FRAGMENTED ? "fragmented" : "exhausted";
}
