/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libttmem - tells tt-mem what a program allocates on its devices.
 *
 * Plain C, usable from C++ and from bindings; any thread may call any function at
 * any time, also from a signal handler. Nothing here blocks, prints, aborts or
 * fails: with tracking off, or no server, a call costs a few nanoseconds and does
 * nothing. errno is left as it was.
 *
 * Tracking is on from the start when the environment has
 * TT_ALLOC_TRACKING_ENABLED=1.
 */
#ifndef TTMEM_TTMEM_H
#define TTMEM_TTMEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TTMEM_EXPORT __attribute__((visibility("default")))
#else
#define TTMEM_EXPORT
#endif

/* The kinds of device memory; the first five are TT-Metal's BufferType. */
enum ttmem_region {
    TTMEM_DRAM = 0,
    TTMEM_L1 = 1,
    TTMEM_SYSTEM_MEMORY = 2,
    TTMEM_L1_SMALL = 3,
    TTMEM_TRACE = 4,
    TTMEM_CB = 5,
    TTMEM_KERNEL = 6,
};

enum ttmem_kernel_kind {
    TTMEM_KERNEL_APPLICATION = 0,
    TTMEM_KERNEL_FABRIC = 1,
    TTMEM_KERNEL_DISPATCH = 2,
};

enum ttmem_flags {
    TTMEM_ALIAS = 1, /* a view of memory that another allocation owns: adds nothing */
};

/*
 * An allocation that was just made. Its key is allocator, region and id; the same
 * key again without a ttmem_free() between replaces the first.
 */
struct ttmem_allocation {
    uint64_t id;              /* unique within allocator and region while it lives */
    uint64_t address;         /* on the device, below 2^40 as the sizes */
    uint64_t bytes;           /* requested */
    uint64_t footprint_bytes; /* taken: aligned size per bank x banks; 0: as requested */
    uint32_t devices;         /* a device id, or a number from ttmem_devices() */
    uint16_t allocator;       /* each device, mesh or submesh numbers its memory by itself */
    uint8_t region;           /* enum ttmem_region */
    uint8_t kind;             /* enum ttmem_kernel_kind */
    uint32_t flags;           /* enum ttmem_flags */
    uint32_t reserved;        /* 0 */
};

TTMEM_EXPORT void ttmem_alloc(const struct ttmem_allocation *allocation);
TTMEM_EXPORT void ttmem_free(uint16_t allocator, uint8_t region, uint64_t id);

/*
 * A number that stands for a set of devices (each 0 to 1023), to be used for
 * every allocation on a mesh. The same set gives the same number. 0 when tracking
 * is off or there are too many sets.
 */
TTMEM_EXPORT uint32_t ttmem_devices(const uint16_t *ids, uint32_t count);

/* Whether tracking is on. */
TTMEM_EXPORT int ttmem_is_enabled(void);

/* Switches tracking on or off. Returns 0 or a negative errno; on an error it stays off. */
TTMEM_EXPORT int ttmem_enable(void);
TTMEM_EXPORT void ttmem_disable(void);

#ifdef __cplusplus
}
#endif

#endif /* TTMEM_TTMEM_H */
