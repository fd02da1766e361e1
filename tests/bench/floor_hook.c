/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no tracker of a decode loop can do without, for bench_ttnn.py: it stands in for the
 * functions that libttmem-hook.so stands in for in that loop, reads the clock and the facts of a
 * buffer, and writes a record of 64 bytes. Nothing is kept, checked or read by anybody.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"

#define EXPORT __attribute__((visibility("default")))
#define RECORDS 8192u

struct record {
    _Alignas(64) uint64_t time_ns, id, address, bytes;
    uint32_t region, op;
};

typedef uint64_t (*method_fn)(void *, void *);
typedef void (*track_fn)(void *, const void *);
typedef void (*enqueue_fn)(void *, void *, bool);
typedef uint64_t (*number_fn)(const void *);
typedef int (*type_fn)(const void *);

static struct {
    method_fn allocate, release;
    track_fn track;
    enqueue_fn enqueue;
    number_fn id, address, size;
    type_fn type;
} metal;

static struct record ring[RECORDS];
static _Atomic uint64_t tail;

static void *find(const char *name)
{
    void *library = dlopen("libtt_metal.so", RTLD_NOLOAD | RTLD_LAZY);
    void *function = library ? dlsym(library, name) : NULL;

    if (!function)
        abort();
    return function;
}

/* A data pointer from dlsym() is a function here. */
#define FIND(member, name) (metal.member = (__typeof__(metal.member))(uintptr_t)find(#name))

static __attribute__((noinline, cold)) void begin(void)
{
    FIND(allocate, _ZN2tt8tt_metal13AllocatorImpl15allocate_bufferEPNS0_6BufferE);
    FIND(release, _ZN2tt8tt_metal13AllocatorImpl17deallocate_bufferEPNS0_6BufferE);
    FIND(track, _ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE);
    FIND(
        enqueue,
        _ZN2tt8tt_metal11distributed19EnqueueMeshWorkloadERNS1_16MeshCommandQueueERNS1_12MeshWorkloadEb);
    FIND(id, _ZNK2tt8tt_metal6Buffer9unique_idEv);
    FIND(address, _ZNK2tt8tt_metal6Buffer7addressEv);
    FIND(size, _ZNK2tt8tt_metal6Buffer4sizeEv);
    FIND(type, _ZNK2tt8tt_metal6Buffer11buffer_typeEv);
}

static inline void begin_once(void)
{
    if (__builtin_expect(!metal.type, 0))
        begin();
}

static inline void write_record(uint32_t op, const void *buffer)
{
    const uint64_t at = atomic_load_explicit(&tail, memory_order_relaxed);
    struct record *record = &ring[at % RECORDS];

    record->time_ns = ttm_clock_monotonic_ns();
    record->id = metal.id(buffer);
    record->region = (uint32_t)metal.type(buffer);
    record->op = op;
    atomic_store_explicit(&tail, at + 1, memory_order_release);
}

EXPORT uint64_t _ZN2tt8tt_metal13AllocatorImpl15allocate_bufferEPNS0_6BufferE(void *self,
                                                                              void *buffer);
EXPORT uint64_t _ZN2tt8tt_metal13AllocatorImpl15allocate_bufferEPNS0_6BufferE(void *self,
                                                                              void *buffer)
{
    begin_once();
    return metal.allocate(self, buffer);
}

EXPORT void _ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE(void *self,
                                                                         const void *buffer);
EXPORT void _ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE(void *self,
                                                                         const void *buffer)
{
    begin_once();
    struct record *record = &ring[atomic_load_explicit(&tail, memory_order_relaxed) % RECORDS];
    record->address = metal.address(buffer);
    record->bytes = metal.size(buffer);
    write_record(1, buffer);
    metal.track(self, buffer);
}

EXPORT uint64_t _ZN2tt8tt_metal13AllocatorImpl17deallocate_bufferEPNS0_6BufferE(void *self,
                                                                                void *buffer);
EXPORT uint64_t _ZN2tt8tt_metal13AllocatorImpl17deallocate_bufferEPNS0_6BufferE(void *self,
                                                                                void *buffer)
{
    begin_once();
    write_record(2, buffer);
    return metal.release(self, buffer);
}

EXPORT void
_ZN2tt8tt_metal11distributed19EnqueueMeshWorkloadERNS1_16MeshCommandQueueERNS1_12MeshWorkloadEb(
    void *queue, void *workload, bool is_blocking);
EXPORT void
_ZN2tt8tt_metal11distributed19EnqueueMeshWorkloadERNS1_16MeshCommandQueueERNS1_12MeshWorkloadEb(
    void *queue, void *workload, bool is_blocking)
{
    static _Atomic(const void *) last;

    begin_once();
    atomic_store_explicit(&last, *(const void *const *)workload, memory_order_relaxed);
    metal.enqueue(queue, workload, is_blocking);
}
