/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metal - asking TT-Metal, in its own language.
 *
 * TT-Metal returns containers and throws, so this part is C++ and a library of its
 * own, libttmem-metal.so. It is loaded when a libtt_metal.so has been found, and not
 * before: a preloaded library that needs libstdc++ would bring the system's into
 * programs that come with another one. No exception of a question leaves it; what a
 * guarded call throws passes on untouched.
 */
#ifndef TTM_HOOK_METAL_H
#define TTM_HOOK_METAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttmem/ttmem.h>

#include "hook/runtime.h"

struct _Unwind_Context;
struct _Unwind_Exception;
struct ttm_registers;

#ifdef __cplusplus
extern "C" {
#endif

#define TTM_CHIPS_MAX 256u  /* of one mesh; more are left out */
#define TTM_RANGES_MAX 128u /* of cores; a set with more is cut */

#define TTM_LAYOUT_INTERLEAVED 0 /* TensorMemoryLayout */

struct ttm_buffer_facts {
    uint64_t id;
    uint64_t bytes;       /* as the user asked */
    uint64_t page_bytes;  /* of one that is spread page by page over all banks; 0: it is not */
    uint64_t address;     /* 0: it takes no memory of a device, or has no place yet */
    const void *core_map; /* where it keeps its places in single cores; NULL: not asked */
    uint32_t banks;       /* that it lies in; 0: in all */
    uint8_t region;
};

/* The chips behind a device or a mesh, each with its Device. */
struct ttm_chips {
    uint32_t count;
    uint16_t ids[TTM_CHIPS_MAX];
    const void *devices[TTM_CHIPS_MAX];
};

struct ttm_core_set {
    uint32_t count;
    struct ttmem_core_range ranges[TTM_RANGES_MAX];
};

/* Where in its mesh a program runs: both corners included. */
struct ttm_mesh_range {
    uint32_t first_row, first_column, last_row, last_column;
};

struct ttm_kernel_facts {
    uint64_t bytes; /* of its binaries, as they lie in a core */
    uint8_t kind;   /* enum ttmem_kernel_kind */
    struct ttm_core_set cores;
};

/* What surrounds a guarded call. 'after' when it returned, or NULL; 'failed' when it threw. */
struct ttm_guard {
    ttm_handler before, after, failed;
};

typedef void (*ttm_buffer_visitor)(const void *buffer, void *context);
typedef void (*ttm_mesh_visitor)(const void *mesh, void *context);
typedef void (*ttm_kernel_visitor)(const struct ttm_kernel_facts *kernel, void *context);
typedef void (*ttm_scratchpad_visitor)(uint32_t bytes, const struct ttm_core_set *cores,
                                       void *context);

/* Each returns false, and leaves '*ret' alone, when TT-Metal cannot answer. */
/* A call that is under way: the stack pointer of whoever called, and the start of its function. */
struct ttm_frame {
    uintptr_t end;
    uintptr_t function;
};

struct ttm_metal {
    /* 'has_place': it is announced, and has an address. */
    bool (*buffer_read)(const struct ttm_runtime *, const void *buffer, bool has_place,
                        struct ttm_buffer_facts *ret);
    /*
     * What it takes of each bank. The same for all that have the same allocator, region, bytes and
     * page_bytes, where that is not 0.
     */
    bool (*buffer_bank_bytes)(const struct ttm_runtime *, const void *buffer, uint64_t *ret);
    /* An IDevice. */
    bool (*buffer_device)(const struct ttm_runtime *, const void *buffer, const void **ret);
    bool (*buffer_key)(const struct ttm_runtime *, const void *buffer, uint64_t *ret_id,
                       uint8_t *ret_region);
    /* Every buffer in an allocator's live set. */
    bool (*each_buffer)(const struct ttm_runtime *, const void *allocator, ttm_buffer_visitor,
                        void *context);
    bool (*banks)(const struct ttm_runtime *, const void *allocator, uint8_t region,
                  uint32_t *ret_count, uint64_t *ret_bytes);
    /* Free bytes and the largest free block, in each bank. */
    bool (*room)(const struct ttm_runtime *, const void *allocator, uint8_t region,
                 uint64_t *ret_free, uint64_t *ret_largest);
    /* Of DRAM, which is what all that is allocated is aligned to; not 0. */
    bool (*alignment)(const struct ttm_runtime *, const void *allocator, uint32_t *ret);
    /* Where circular buffers begin in L1. */
    bool (*l1_base)(const struct ttm_runtime *, const void *allocator, uint64_t *ret);
    /* The allocator of a device or mesh. */
    bool (*allocator_of)(const struct ttm_runtime *, const void *device, const void **ret);
    /* Every mesh that is open, submeshes too, the same one more than once. */
    bool (*each_mesh)(const struct ttm_runtime *, ttm_mesh_visitor, void *context);
    bool (*chips_of)(const struct ttm_runtime *, const void *device, struct ttm_chips *ret);
    bool (*chips_of_mesh_impl)(const struct ttm_runtime *, const void *impl, struct ttm_chips *ret);
    bool (*chips_within)(const struct ttm_runtime *, const void *mesh,
                         const struct ttm_mesh_range *, const struct ttm_chips *all,
                         struct ttm_chips *ret);
    /* What there is to know of a chip; 'device' is its Device, 'id' is set already. */
    bool (*chip_describe)(const struct ttm_runtime *, const void *device, struct ttmem_device *ret);
    bool (*program_id)(const struct ttm_runtime *, const void *program, uint64_t *ret);
    bool (*mesh_range)(const struct ttm_runtime *, const void *range, struct ttm_mesh_range *ret);
    bool (*core_set)(const struct ttm_runtime *, const void *ranges, struct ttm_core_set *ret);
    bool (*each_kernel)(const struct ttm_runtime *, const void *program, const void *device,
                        uint64_t build_key, ttm_kernel_visitor, void *context);
    bool (*each_scratchpad)(const struct ttm_runtime *, const void *program, ttm_scratchpad_visitor,
                            void *context);
    /* Calls a method, and 'failed' if it throws. */
    uint64_t (*guarded)(const struct ttm_runtime *, void *self, void *argument, ttm_method,
                        ttm_handler failed);
    /*
     * The registers of the frame that is being unwound, where it goes on; from the context that a
     * personality routine is given. Here, as the unwinder is the one that C++ comes with.
     */
    void (*unwound_frame)(struct _Unwind_Context *, struct ttm_registers *ret);
    /* The frame of this thread that goes on at 'address'. Returns whether it was found. */
    bool (*frame_of)(const void *address, struct ttm_frame *ret);
    /* True if it is on the stack of this thread: its function has not returned. */
    bool (*has_frame)(const struct ttm_frame *frame);
    /*
     * What an exception on its way says, in one line and without the backtrace that TT-Metal adds. False
     * for one that is not a std::exception, or not of this C++.
     */
    bool (*exception_reason)(const struct _Unwind_Exception *, char *ret, size_t size);
};

/* Loads libttmem-metal.so from where this library lies; NULL when it cannot. Once. */
const struct ttm_metal *ttm_metal_load(void);

/* The one name that libttmem-metal.so exports. */
extern const struct ttm_metal ttm_metal_table;

#ifdef __cplusplus
}
#endif

#endif /* TTM_HOOK_METAL_H */
