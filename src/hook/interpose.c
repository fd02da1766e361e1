/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How we get called: this library has functions by the names of TT-Metal's. Loaded
 * before it, by LD_PRELOAD or by dlopen() with RTLD_GLOBAL, ours are found first;
 * a process that has TT-Metal already can have the slots of its calls pointed here.
 * What is to be done is in buffers.c, layouts.c and their neighbours; here the
 * original is found and called in any case.
 *
 * A listener has nothing to do afterwards and ends in a jump to the original, so
 * that a backtrace which TT-Metal puts into its error messages stays as it is.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/hot_code.h"
#include "hook/allocators.h"
#include "hook/buffers.h"
#include "hook/caller.h"
#include "hook/devices.h"
#include "hook/gate.h"
#include "hook/lanes.h"
#include "hook/layouts.h"
#include "hook/making.h"
#include "hook/opening.h"
#include "hook/programs.h"
#include "hook/runtime.h"
#include "hook/tracking.h"
#include "hook/workloads.h"

#define EXPORT __attribute__((visibility("default")))
/*
 * What each operation of a program calls. These lie beside each other and have their handlers
 * inside: the caches are small, and what they have forgotten costs by the line and the jump.
 */
#define HOT TTM_HOT_NEXT __attribute__((flatten))
#define COLD __attribute__((noinline, cold))
/* Of the runtime that is tracked, as ttm_hot has it. */
#define ORIGINAL(type, point) ((type)(uintptr_t)ttm_hot.originals[TTM_HOOK_##point])
#define CALLER __builtin_return_address(0)

/* Only the runtime that is tracked has a 'metal'; another one is called and no more. */
static inline __attribute__((always_inline)) uint64_t call(const void *caller,
                                                           enum ttm_hook_point point, void *self,
                                                           void *argument,
                                                           const struct ttm_guard *guard)
{
    const struct ttm_runtime *runtime = ttm_runtime_of(caller, point);
    /* The name says the type; a data pointer from dlsym() is a function here. */
    const ttm_method original = (ttm_method)(uintptr_t)runtime->originals[point];

    if (!original) /* nobody could have called it */
        return 0;
    if (!runtime->metal)
        return original(self, argument);
    guard->before(runtime, self, argument);
    const uint64_t result =
        runtime->metal->guarded(runtime, self, argument, original, guard->failed);
    if (guard->after)
        guard->after(runtime, self, argument);
    return result;
}

/* clang-format off */
#define GUARDED(point, name, guard)                                  \
    EXPORT uint64_t name(void *self, void *argument);                \
    EXPORT uint64_t name(void *self, void *argument)                 \
    {                                                                \
        return call(CALLER, TTM_HOOK_##point, self, argument, guard); \
    }

GUARDED(DEALLOCATE_BUFFERS, _ZN2tt8tt_metal13AllocatorImpl18deallocate_buffersEv,
        &ttm_buffer_release_of_all)
GUARDED(ALLOCATOR_END, _ZN2tt8tt_metal13AllocatorImplD2Ev, &ttm_buffer_release_of_all)
GUARDED(ALLOCATE_CBS,
        _ZN2tt8tt_metal6detail11ProgramImpl25allocate_circular_buffersEPKNS0_7IDeviceE,
        &ttm_layout_of_cbs)
GUARDED(ALLOCATE_DFBS,
        _ZN2tt8tt_metal6detail11ProgramImpl25allocate_dataflow_buffersEPKNS0_7IDeviceE,
        &ttm_layout_of_dfbs)
GUARDED(ALLOCATE_SCRATCHPADS,
        _ZN2tt8tt_metal6detail11ProgramImpl20allocate_scratchpadsEPKNS0_7IDeviceE,
        &ttm_layout_of_scratchpads)
GUARDED(VALIDATE_CBS,
        _ZN2tt8tt_metal6detail11ProgramImpl31validate_circular_buffer_regionEPKNS0_7IDeviceE,
        &ttm_layout_check)
GUARDED(VALIDATE_DFBS,
        _ZN2tt8tt_metal6detail11ProgramImpl31validate_dataflow_buffer_regionEPKNS0_7IDeviceE,
        &ttm_layout_check)
GUARDED(DEVICE_CLOSE, _ZN2tt8tt_metal6Device5closeEv, &ttm_device_closing)
GUARDED(MESH_CLOSE, _ZN2tt8tt_metal11distributed14MeshDeviceImpl10close_implEPNS1_10MeshDeviceE,
        &ttm_mesh_closing)
/* clang-format on */

/*
 * The two that every operation calls have no handler of C++ around the original, which is a call
 * more; instead the unwinder calls a function of ours for an exception that passes. Its encoding
 * says that its place is relative to where it is said, in 32 bits.
 */
#define UNWOUND_BY(function) __asm__ volatile(".cfi_personality 0x1b, " #function)
/* Calls it, and not by a jump, which would leave the unwinder no frame. */
static inline __attribute__((always_inline)) uint64_t call_in_frame(ttm_method method, void *self,
                                                                    void *argument)
{
    const uint64_t result = method(self, argument);

    __asm__ volatile("" : : "r"(result));
    return result;
}

static COLD uint64_t allocate_slowly(const void *caller, void *self, void *buffer)
{
    const struct ttm_runtime *runtime = ttm_runtime_of(caller, TTM_HOOK_ALLOCATE_BUFFER);
    const ttm_method original = (ttm_method)(uintptr_t)runtime->originals[TTM_HOOK_ALLOCATE_BUFFER];

    UNWOUND_BY(ttm_buffers_allocation_unwound);
    if (!runtime->metal)
        return original ? original(self, buffer) : 0;
    ttm_buffers_allocating(runtime, self, buffer);
    return call_in_frame(original, self, buffer); /* what is tracked has it */
}

EXPORT uint64_t _ZN2tt8tt_metal13AllocatorImpl15allocate_bufferEPNS0_6BufferE(void *self,
                                                                              void *buffer);
EXPORT HOT uint64_t _ZN2tt8tt_metal13AllocatorImpl15allocate_bufferEPNS0_6BufferE(void *self,
                                                                                  void *buffer)
{
    UNWOUND_BY(ttm_buffers_allocation_unwound);
    if (__builtin_expect(!ttm_lanes_enter(self), 0))
        return allocate_slowly(CALLER, self, buffer);
    ttm_own.newborn = buffer;
    return call_in_frame(ORIGINAL(ttm_method, ALLOCATE_BUFFER), self, buffer);
}

static COLD uint64_t deallocate_slowly(const void *caller, void *self, void *buffer)
{
    const struct ttm_runtime *runtime = ttm_runtime_of(caller, TTM_HOOK_DEALLOCATE_BUFFER);
    const ttm_method original =
        (ttm_method)(uintptr_t)runtime->originals[TTM_HOOK_DEALLOCATE_BUFFER];

    UNWOUND_BY(ttm_buffers_release_unwound);
    if (!runtime->metal)
        return original ? original(self, buffer) : 0;
    ttm_buffers_releasing(runtime, self, buffer);
    const uint64_t result = original(self, buffer);
    ttm_buffers_released();
    return result;
}

static COLD void end_slowly(const void *self, const void *buffer)
{
    ttm_buffers_end(ttm_runtime_tracked(), self, buffer);
}

/* Apart, so that its frame is never that of one who is on the long way. */
static HOT __attribute__((noinline)) uint64_t deallocate_in_lane(void *self, void *buffer)
{
    UNWOUND_BY(ttm_buffers_lane_unwound);
    if (__builtin_expect(!ttm_lanes_end(buffer), 0))
        end_slowly(self, buffer);
    const uint64_t result = ORIGINAL(ttm_method, DEALLOCATE_BUFFER)(self, buffer);
    ttm_lanes_leave();
    return result;
}

EXPORT uint64_t _ZN2tt8tt_metal13AllocatorImpl17deallocate_bufferEPNS0_6BufferE(void *self,
                                                                                void *buffer);
EXPORT HOT uint64_t _ZN2tt8tt_metal13AllocatorImpl17deallocate_bufferEPNS0_6BufferE(void *self,
                                                                                    void *buffer)
{
    return __builtin_expect(ttm_lanes_enter(self), 1) ? deallocate_in_lane(self, buffer)
                                                      : deallocate_slowly(CALLER, self, buffer);
}

typedef void (*track_allocate_fn)(void *, const void *);

static COLD void announce_slowly(const void *caller, void *self, const void *buffer)
{
    const struct ttm_runtime *runtime = ttm_runtime_of(caller, TTM_HOOK_TRACK_ALLOCATE);
    const track_allocate_fn original =
        (track_allocate_fn)(uintptr_t)runtime->originals[TTM_HOOK_TRACK_ALLOCATE];

    if (runtime->metal)
        ttm_buffers_announced(runtime, buffer);
    if (original)
        original(self, buffer);
}

EXPORT void _ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE(void *self,
                                                                         const void *buffer);
EXPORT HOT void _ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE(void *self,
                                                                             const void *buffer)
{
    if (__builtin_expect(ttm_lanes_announced(buffer), 1))
        ORIGINAL(track_allocate_fn, TRACK_ALLOCATE)(self, buffer);
    else
        announce_slowly(CALLER, self, buffer);
}

typedef void (*track_cb_fn)(void *, const void *, uint64_t, uint64_t, bool, const void *);

EXPORT void
_ZN2tt8tt_metal12GraphTracker17track_allocate_cbERKNS0_12CoreRangeSetEmmbPKNS0_7IDeviceE(
    void *self, const void *core_ranges, uint64_t address, uint64_t bytes, bool is_global,
    const void *device);
EXPORT void
_ZN2tt8tt_metal12GraphTracker17track_allocate_cbERKNS0_12CoreRangeSetEmmbPKNS0_7IDeviceE(
    void *self, const void *core_ranges, uint64_t address, uint64_t bytes, bool is_global,
    const void *device)
{
    const struct ttm_runtime *runtime = ttm_runtime_of(CALLER, TTM_HOOK_TRACK_CB);
    const track_cb_fn original = (track_cb_fn)(uintptr_t)runtime->originals[TTM_HOOK_TRACK_CB];

    if (runtime->metal)
        ttm_layouts_cb(runtime, core_ranges, address, bytes, is_global, device);
    if (original)
        original(self, core_ranges, address, bytes, is_global, device);
}

typedef void (*mark_address_fn)(void *, uint64_t, uint64_t, uint64_t);

EXPORT void _ZN2tt8tt_metal6detail11ProgramImpl23CircularBufferAllocator12mark_addressEmmm(
    void *self, uint64_t address, uint64_t bytes, uint64_t base);
EXPORT void _ZN2tt8tt_metal6detail11ProgramImpl23CircularBufferAllocator12mark_addressEmmm(
    void *self, uint64_t address, uint64_t bytes, uint64_t base)
{
    const struct ttm_runtime *runtime = ttm_runtime_of(CALLER, TTM_HOOK_MARK_ADDRESS);
    const mark_address_fn original =
        (mark_address_fn)(uintptr_t)runtime->originals[TTM_HOOK_MARK_ADDRESS];

    if (runtime->metal)
        ttm_layouts_dfb(self, address, bytes);
    if (original)
        original(self, address, bytes, base);
}

typedef void (*method_fn)(void *);

EXPORT void _ZN2tt8tt_metal6detail11ProgramImpl27deallocate_circular_buffersEv(void *self);
EXPORT void _ZN2tt8tt_metal6detail11ProgramImpl27deallocate_circular_buffersEv(void *self)
{
    const struct ttm_runtime *runtime = ttm_runtime_of(CALLER, TTM_HOOK_DEALLOCATE_CBS);
    const method_fn original = (method_fn)(uintptr_t)runtime->originals[TTM_HOOK_DEALLOCATE_CBS];

    if (runtime->metal)
        ttm_programs_free_cbs(self);
    if (original)
        original(self);
}

EXPORT void _ZN2tt8tt_metal6detail11ProgramImplD1Ev(void *self);
EXPORT void _ZN2tt8tt_metal6detail11ProgramImplD1Ev(void *self)
{
    const struct ttm_runtime *runtime = ttm_runtime_of(CALLER, TTM_HOOK_PROGRAM_END);
    const method_fn original = (method_fn)(uintptr_t)runtime->originals[TTM_HOOK_PROGRAM_END];

    /* First, as another program may have the same address a moment after. */
    if (runtime->metal)
        ttm_programs_end(self);
    if (original)
        original(self);
}

typedef void (*compile_finished_fn)(const void *, const void *, uint64_t);

EXPORT void
_ZN2tt8tt_metal9Inspector24program_compile_finishedEPKNS0_6detail11ProgramImplEPKNS0_7IDeviceEm(
    const void *program, const void *device, uint64_t build_key);
EXPORT void
_ZN2tt8tt_metal9Inspector24program_compile_finishedEPKNS0_6detail11ProgramImplEPKNS0_7IDeviceEm(
    const void *program, const void *device, uint64_t build_key)
{
    const struct ttm_runtime *runtime = ttm_runtime_of(CALLER, TTM_HOOK_COMPILE_FINISHED);
    const compile_finished_fn original =
        (compile_finished_fn)(uintptr_t)runtime->originals[TTM_HOOK_COMPILE_FINISHED];

    if (runtime->metal)
        ttm_layouts_kernels(runtime, program, device, build_key);
    if (original)
        original(program, device, build_key);
}

typedef void (*merge_range_fn)(void *, const void *);

EXPORT void _ZN2tt8tt_metal11distributed22MeshCoordinateRangeSet5mergeERKNS1_19MeshCoordinateRangeE(
    void *self, const void *range);
/* ttnn puts together on which devices a program runs that it has not found in its cache. */
EXPORT void _ZN2tt8tt_metal11distributed22MeshCoordinateRangeSet5mergeERKNS1_19MeshCoordinateRangeE(
    void *self, const void *range)
{
    const struct ttm_runtime *runtime = ttm_runtime_of(CALLER, TTM_HOOK_MERGE_RANGE);
    const merge_range_fn original =
        (merge_range_fn)(uintptr_t)runtime->originals[TTM_HOOK_MERGE_RANGE];

    /* Anybody else does so for a workload of his own, and his buffers are his own. */
    if (runtime->metal && ttm_caller_is_ttnn(CALLER))
        ttm_making_begin(runtime, CALLER);
    if (original)
        original(self, range);
}

typedef void (*add_program_fn)(void *, const void *, void *);

EXPORT void
_ZN2tt8tt_metal11distributed16MeshWorkloadImpl11add_programERKNS1_19MeshCoordinateRangeEONS0_7ProgramE(
    void *self, const void *range, void *program);
EXPORT void
_ZN2tt8tt_metal11distributed16MeshWorkloadImpl11add_programERKNS1_19MeshCoordinateRangeEONS0_7ProgramE(
    void *self, const void *range, void *program)
{
    const struct ttm_runtime *runtime = ttm_runtime_of(CALLER, TTM_HOOK_ADD_PROGRAM);
    const add_program_fn original =
        (add_program_fn)(uintptr_t)runtime->originals[TTM_HOOK_ADD_PROGRAM];

    /* A Program begins with the pointer to its ProgramImpl, which it is about to give away. */
    if (runtime->metal)
        ttm_workloads_add(runtime, self, *(const void *const *)program, range);
    if (original)
        original(self, range, program);
}

EXPORT void _ZN2tt8tt_metal11distributed16MeshWorkloadImplD1Ev(void *self);
EXPORT void _ZN2tt8tt_metal11distributed16MeshWorkloadImplD1Ev(void *self)
{
    const struct ttm_runtime *runtime = ttm_runtime_of(CALLER, TTM_HOOK_WORKLOAD_END);
    const method_fn original = (method_fn)(uintptr_t)runtime->originals[TTM_HOOK_WORKLOAD_END];

    if (runtime->metal)
        ttm_workloads_end(self);
    if (original)
        original(self);
}

typedef void (*enqueue_fn)(void *, void *, bool);

static COLD void enqueue_slowly(const void *caller, void *queue, void *workload, bool is_blocking)
{
    const struct ttm_runtime *runtime = ttm_runtime_of(caller, TTM_HOOK_ENQUEUE);
    const enqueue_fn original = (enqueue_fn)(uintptr_t)runtime->originals[TTM_HOOK_ENQUEUE];

    /* A MeshWorkload is a pointer to its MeshWorkloadImpl. */
    if (runtime->metal)
        ttm_workloads_dispatch(*(const void *const *)workload);
    if (original)
        original(queue, workload, is_blocking);
}

EXPORT void
_ZN2tt8tt_metal11distributed19EnqueueMeshWorkloadERNS1_16MeshCommandQueueERNS1_12MeshWorkloadEb(
    void *queue, void *workload, bool is_blocking);
EXPORT HOT void
_ZN2tt8tt_metal11distributed19EnqueueMeshWorkloadERNS1_16MeshCommandQueueERNS1_12MeshWorkloadEb(
    void *queue, void *workload, bool is_blocking)
{
    if (__builtin_expect(ttm_lanes_dispatch(*(const void *const *)workload), 1))
        ORIGINAL(enqueue_fn, ENQUEUE)(queue, workload, is_blocking);
    else
        enqueue_slowly(CALLER, queue, workload, is_blocking);
}

typedef void (*mesh_initialized_fn)(const void *);

EXPORT void _ZN2tt8tt_metal9Inspector23mesh_device_initializedEPKNS0_11distributed14MeshDeviceImplE(
    const void *impl);
EXPORT void _ZN2tt8tt_metal9Inspector23mesh_device_initializedEPKNS0_11distributed14MeshDeviceImplE(
    const void *impl)
{
    const struct ttm_runtime *runtime = ttm_runtime_of(CALLER, TTM_HOOK_MESH_INITIALIZED);
    const mesh_initialized_fn original =
        (mesh_initialized_fn)(uintptr_t)runtime->originals[TTM_HOOK_MESH_INITIALIZED];

    if (runtime->metal)
        ttm_devices_open(runtime, impl);
    if (original)
        original(impl);
}

/* Comes before a device is opened, or anything else is asked of the devices. */
EXPORT void _ZN2tt8tt_metal12MetalEnvImpl23initialize_base_objectsEv(void *self);
EXPORT void _ZN2tt8tt_metal12MetalEnvImpl23initialize_base_objectsEv(void *self)
{
    const struct ttm_runtime *runtime = ttm_runtime_of(CALLER, TTM_HOOK_FIND_DEVICES);
    const method_fn original = (method_fn)(uintptr_t)runtime->originals[TTM_HOOK_FIND_DEVICES];

    UNWOUND_BY(ttm_opening_search_unwound);
    if (original)
        original(self);
    __asm__ volatile("" : : : "memory"); /* a call, and no jump that leaves no frame */
}

#if defined(__x86_64__)

struct l1_bank_remap {
    const uint32_t *data;
    uint64_t count;
};

/* All that open a device: the memory for what they return, which devices, and five options. */
typedef void *(*open_fn)(void *ret, uintptr_t which, uint64_t l1_small, uint64_t trace,
                         uint64_t queues, const void *dispatch, struct l1_bank_remap remap,
                         uint64_t worker_l1);

/* Calls the original, from a frame that an exception is heard in. */
#define OPENING(point, name)                                                                       \
    EXPORT void *name(void *ret, uintptr_t which, uint64_t l1_small, uint64_t trace,               \
                      uint64_t queues, const void *dispatch, struct l1_bank_remap remap,           \
                      uint64_t worker_l1);                                                         \
    EXPORT void *name(void *ret, uintptr_t which, uint64_t l1_small, uint64_t trace,               \
                      uint64_t queues, const void *dispatch, struct l1_bank_remap remap,           \
                      uint64_t worker_l1)                                                          \
    {                                                                                              \
        const struct ttm_runtime *runtime = ttm_runtime_of(CALLER, TTM_HOOK_##point);              \
        const open_fn original = (open_fn)(uintptr_t)runtime->originals[TTM_HOOK_##point];         \
                                                                                                   \
        UNWOUND_BY(ttm_opening_unwound);                                                           \
        if (runtime->metal)                                                                        \
            ttm_opening_begin();                                                                   \
        void *result =                                                                             \
            original ? original(ret, which, l1_small, trace, queues, dispatch, remap, worker_l1)   \
                     : ret;                                                                        \
        __asm__ volatile("" : : "r"(result));                                                      \
        return result;                                                                             \
    }

/* clang-format off */
OPENING(CREATE_MESH,
        _ZN2tt8tt_metal11distributed10MeshDevice6createERKNS1_16MeshDeviceConfigEmmmRKNS0_18DispatchCoreConfigESt4spanIKjLm18446744073709551615EEm)
OPENING(CREATE_UNIT_MESH,
        _ZN2tt8tt_metal11distributed10MeshDevice16create_unit_meshEimmmRKNS0_18DispatchCoreConfigESt4spanIKjLm18446744073709551615EEm)
OPENING(CREATE_UNIT_MESHES,
        _ZN2tt8tt_metal11distributed10MeshDevice18create_unit_meshesERKSt6vectorIiSaIiEEmmmRKNS0_18DispatchCoreConfigESt4spanIKjLm18446744073709551615EEm)
/* clang-format on */

#endif
