/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/region.h"

#include <errno.h>
#include <string.h>

static const char *const region_names[TTM_REGION_COUNT] = {
    [TTM_REGION_DRAM] = "DRAM",
    [TTM_REGION_L1] = "L1",
    [TTM_REGION_SYSTEM_MEMORY] = "SYSTEM_MEMORY",
    [TTM_REGION_L1_SMALL] = "L1_SMALL",
    [TTM_REGION_TRACE] = "TRACE",
    [TTM_REGION_CB] = "CB",
    [TTM_REGION_KERNEL] = "KERNEL",
};

const char *ttm_region_name(unsigned region)
{
    return region < TTM_REGION_COUNT ? region_names[region] : "?";
}

int ttm_region_parse(const char *name)
{
    for (int i = 0; i < TTM_REGION_COUNT; i++) {
        if (strcmp(region_names[i], name) == 0)
            return i;
    }
    return -EINVAL;
}

const char *ttm_kernel_kind_name(unsigned kind)
{
    static const char *const names[TTM_KERNEL_KIND_COUNT] = {"application", "fabric", "dispatch"};

    return kind < TTM_KERNEL_KIND_COUNT ? names[kind] : "?";
}

const char *ttm_arch_name(unsigned arch)
{
    static const char *const names[TTM_ARCH_COUNT] = {"unknown", "grayskull", "wormhole_b0",
                                                      "blackhole", "quasar"};

    return arch < TTM_ARCH_COUNT ? names[arch] : "unknown";
}

const char *ttm_source_name(unsigned source)
{
    static const char *const names[TTM_SOURCE_COUNT] = {"original", "tracked", "runtime"};

    return source < TTM_SOURCE_COUNT ? names[source] : "?";
}
