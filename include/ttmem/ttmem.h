/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libttmem - tells tt-mem what a program allocates on its devices.
 *
 * Plain C, usable from C++ and from bindings; any thread may call any function at
 * any time, also from a signal handler. Nothing here blocks, prints, aborts or
 * fails: with tracking off, or no server, a call costs a few nanoseconds and does
 * nothing. errno is left as it was. Text is UTF-8, cut after 255 bytes; NULL is as "".
 * The child of a fork() is a process of its own, by whatever call it was made.
 *
 * Tracking is on from the start when the environment has
 * TT_ALLOC_TRACKING_ENABLED=1; 'tt-mem enable PID' and 'tt-mem disable PID' switch
 * it while the program runs.
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

/* ---- allocations ---- */

/* The kinds of device memory; the first five are TT-Metal's BufferType. */
enum ttmem_region {
    TTMEM_DRAM = 0,
    TTMEM_L1 = 1,
    TTMEM_SYSTEM_MEMORY = 2,
    TTMEM_L1_SMALL = 3,
    TTMEM_TRACE = 4,
    TTMEM_CB = 5,
    TTMEM_KERNEL = 6,
    TTMEM_REGIONS = 7
};

enum ttmem_kernel_kind {
    TTMEM_KERNEL_APPLICATION = 0,
    TTMEM_KERNEL_FABRIC = 1,
    TTMEM_KERNEL_DISPATCH = 2
};

/* Of a buffer: whose it is. */
enum ttmem_buffer_kind {
    TTMEM_BUFFER_OF_USER = 0,
    TTMEM_BUFFER_OF_PROGRAM = 1 /* a program in the program cache keeps it to run again */
};

enum ttmem_flags {
    TTMEM_ALIAS = 1 /* a view of memory that another allocation owns: adds nothing */
};

/*
 * An allocation that was just made. Its key is allocator, region and id; the same
 * key again without a ttmem_free() between replaces the first.
 *
 * Circular buffers and kernels belong to a program and end with it. Their key is
 * program, region and id, the id being the number within the program: from 0 on,
 * without gaps, at most 65535. One program is told of by one thread at a time.
 */
struct ttmem_allocation {
    uint64_t id;              /* unique within allocator and region while it lives */
    uint64_t address;         /* on the device, below 2^40 as the sizes */
    uint64_t bytes;           /* requested */
    uint64_t footprint_bytes; /* taken: aligned size per bank x banks; 0: as requested */
    uint64_t program;         /* of a circular buffer or kernel; 0: it belongs to none */
    uint32_t devices;         /* a device id, or a number from ttmem_devices() */
    uint32_t cores;           /* of a circular buffer: a number from ttmem_cores(), 0: not known */
    uint16_t allocator;       /* each device, mesh or submesh numbers its memory by itself */
    uint8_t region;           /* enum ttmem_region */
    uint8_t kind;       /* of a kernel enum ttmem_kernel_kind, of a buffer ttmem_buffer_kind */
    uint32_t flags;     /* enum ttmem_flags */
    uint32_t banks;     /* it is spread over, on each device; 0 or over 1023: not known */
    uint32_t reserved1; /* 0 */
    uint64_t reserved2; /* 0 */
};

TTMEM_EXPORT void ttmem_alloc(const struct ttmem_allocation *allocation);
TTMEM_EXPORT void ttmem_free(uint16_t allocator, uint8_t region, uint64_t id);

/*
 * A number that stands for a set of devices (each 0 to 1023), to be used for
 * every allocation on a mesh. The same set gives the same number. 0 when tracking
 * is off or there are too many sets.
 */
TTMEM_EXPORT uint32_t ttmem_devices(const uint16_t *ids, uint32_t count);

/* Cores, corners included, in the coordinates that kernels see. */
struct ttmem_core_range {
    uint8_t start_x, start_y, end_x, end_y;
};

/* A number that stands for a set of cores; 0 when tracking is off or there are too many sets. */
TTMEM_EXPORT uint32_t ttmem_cores(const struct ttmem_core_range *ranges, uint32_t count);

/* ---- programs ---- */

/* The program is gone, and with it all that belonged to it; or what it had in one region. */
TTMEM_EXPORT void ttmem_program_end(uint64_t program);
TTMEM_EXPORT void ttmem_program_free(uint64_t program, uint8_t region);

/* The program was sent to run there: its circular buffers are what those cores hold now. */
TTMEM_EXPORT void ttmem_program_dispatch(uint64_t program, uint32_t devices);

/* ---- devices ---- */

/* What is known of a device; 0 and "" for what is not. */
struct ttmem_device {
    uint16_t id;
    uint8_t arch; /* as TT-Metal's ARCH: 1 grayskull, 2 wormhole_b0, 3 blackhole, 4 quasar */
    uint8_t reserved1;
    uint32_t core_count;                /* that run kernels */
    uint64_t asic_id;                   /* unique to the chip */
    uint64_t bank_bytes[TTMEM_REGIONS]; /* of one bank; capacity = bank_bytes x bank_count */
    uint32_t bank_count[TTMEM_REGIONS];
    uint32_t reserved2;
    char board[32]; /* "n150" */
};

/* Said again with other numbers, the newer ones hold. */
TTMEM_EXPORT void ttmem_device_open(const struct ttmem_device *device);

/* Ends everything that was allocated there, on all its devices. */
TTMEM_EXPORT void ttmem_device_close(uint16_t id);

/* Ends everything of an allocator at once, as closing its device or mesh does. */
TTMEM_EXPORT void ttmem_allocator_close(uint16_t allocator);

/* ---- what people say about it ---- */

/*
 * Gives a live allocation a name and a context; NULL leaves either as it is.
 * Nothing happens when it is not live.
 */
TTMEM_EXPORT void ttmem_name(uint16_t allocator, uint8_t region, uint64_t id, const char *name,
                             const char *context);

/*
 * The same for who knows where it lies and not which allocator it is from, as
 * bindings do. Where several are live at that address of that device (a mesh and its submesh
 * number their memory each by itself), it is the one with that id, or the newest
 * when none has it. The one before is found at once when it has the same allocator and
 * the id is given; else all that is live is looked through. Returns 1, or 0 when nothing
 * is live there or tracking is off.
 */
TTMEM_EXPORT int ttmem_name_at(uint16_t device, uint8_t region, uint64_t address, uint64_t id,
                               const char *name, const char *context);

/*
 * The same for an id that no other live allocation of the process has, whatever its region and
 * allocator, as those of TT-Metal's buffers: found at once, unless allocators take turns.
 */
TTMEM_EXPORT int ttmem_name_unique(uint64_t id, uint64_t address, const char *name,
                                   const char *context);

/*
 * What this thread is about: every allocation until the matching pop carries it,
 * "model_init/attention" when they nest. At most 64 deep; deeper ones are counted
 * and add nothing.
 */
TTMEM_EXPORT void ttmem_context_push(const char *name);
TTMEM_EXPORT void ttmem_context_pop(void);

/*
 * In place of all that was pushed: the whole path, "" or NULL for none. For those
 * who keep contexts by themselves, as a thread that runs many tasks in turn has to.
 */
TTMEM_EXPORT void ttmem_context_set(const char *path);

/* A moment in the program's life, "warm-up done". */
TTMEM_EXPORT void ttmem_mark(const char *name);

/* From now on the peaks that the server shows of this process are those since this call. */
TTMEM_EXPORT void ttmem_reset_peaks(void);

enum ttmem_failure_kind {
    TTMEM_OUT_OF_MEMORY = 0,
    TTMEM_CB_CLASH = 1 /* circular buffers would have grown into L1 buffers */
};

/* An allocation that could not be made. Sizes are per bank. */
struct ttmem_failed_allocation {
    uint64_t wanted_bytes;      /* of the whole allocation */
    uint64_t bank_wanted_bytes; /* of a clash: the address where the circular buffers would end */
    uint64_t bank_free_bytes;
    uint64_t bank_largest_bytes; /* the largest free block */
    uint32_t devices;            /* as in struct ttmem_allocation */
    uint16_t allocator;
    uint8_t region;
    uint8_t kind; /* enum ttmem_failure_kind */
    uint64_t reserved[2];
};

TTMEM_EXPORT void ttmem_failure(const struct ttmem_failed_allocation *failure);

/* ---- on and off ---- */

/* Whether tracking is on. */
TTMEM_EXPORT int ttmem_is_enabled(void);

/*
 * Switches tracking on or off. Returns 0 or a negative errno; on an error it stays
 * off. What is allocated or freed while it is off is not known afterwards: it
 * begins anew with nothing live.
 *
 * ttmem_enable() is when the environment is read for where a server is, also where
 * tracking is on already: after a change of TTMEM_SOCKET it is called again.
 */
TTMEM_EXPORT int ttmem_enable(void);
TTMEM_EXPORT void ttmem_disable(void);

#ifdef __cplusplus
}
#endif

#endif /* TTMEM_TTMEM_H */
