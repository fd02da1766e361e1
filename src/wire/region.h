/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region - the kinds of device memory, kernels and architectures, by number.
 *
 * The numbers go over the wire and into files: they are only ever added to. The
 * first five regions are TT-Metal's BufferType, the architectures its ARCH.
 */
#ifndef TTM_WIRE_REGION_H
#define TTM_WIRE_REGION_H

#include <stdint.h>

enum ttm_region {
    TTM_REGION_DRAM = 0,
    TTM_REGION_L1 = 1,
    TTM_REGION_SYSTEM_MEMORY = 2,
    TTM_REGION_L1_SMALL = 3,
    TTM_REGION_TRACE = 4,
    TTM_REGION_CB = 5,
    TTM_REGION_KERNEL = 6,
    TTM_REGION_COUNT
};

/* Of a kernel. A buffer has an enum ttm_buffer_kind; a circular buffer has kind 0. */
enum ttm_kernel_kind {
    TTM_KERNEL_APPLICATION = 0,
    TTM_KERNEL_FABRIC = 1,
    TTM_KERNEL_DISPATCH = 2,
    TTM_KERNEL_KIND_COUNT
};

/* Whose a buffer is. As a number of its own region it is below TTM_KERNEL_KIND_COUNT. */
enum ttm_buffer_kind {
    TTM_BUFFER_OF_USER = 0,
    TTM_BUFFER_OF_PROGRAM = 1, /* a cached program keeps it to run again */
    TTM_BUFFER_KIND_COUNT
};

enum ttm_arch {
    TTM_ARCH_UNKNOWN = 0,
    TTM_ARCH_GRAYSKULL = 1,
    TTM_ARCH_WORMHOLE_B0 = 2,
    TTM_ARCH_BLACKHOLE = 3,
    TTM_ARCH_QUASAR = 4,
    TTM_ARCH_COUNT
};

/* How we know of a process. */
enum ttm_source {
    TTM_SOURCE_ORIGINAL = 0, /* the original protocol */
    TTM_SOURCE_TRACKED = 1,  /* libttmem */
    TTM_SOURCE_RUNTIME = 2,  /* upstream's shared memory */
    TTM_SOURCE_COUNT
};

/* Device ids are 0 to 1023. */
#define TTM_DEVICE_COUNT 1024

/* "DRAM", "L1_SMALL"; "?" for a number that is none. */
const char *ttm_region_name(unsigned region);

/* Returns the region of that name, or -EINVAL. */
int ttm_region_parse(const char *name);

/* "application", "fabric", "dispatch". */
const char *ttm_kernel_kind_name(unsigned kind);

/* How many kinds an allocation in that region can have. */
static inline unsigned ttm_region_kinds(unsigned region)
{
    if (region == TTM_REGION_KERNEL)
        return TTM_KERNEL_KIND_COUNT;
    return region < TTM_REGION_CB ? TTM_BUFFER_KIND_COUNT : 1;
}

/* True if a cached program, and not a tensor of the user, keeps such a buffer. */
static inline int ttm_is_buffer_of_program(unsigned region, unsigned kind)
{
    return region < TTM_REGION_CB && kind == TTM_BUFFER_OF_PROGRAM;
}

/* "wormhole_b0", or "unknown". */
const char *ttm_arch_name(unsigned arch);

/* "original", "tracked", "runtime". */
const char *ttm_source_name(unsigned source);

#endif /* TTM_WIRE_REGION_H */
