/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/traces.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LIBRARIES 2  /* libttmem-hook, libttmem-metal */
#define ROOM 128     /* frames; a longer trace that leads through us ends that much earlier */
#define OWN_FRAMES 8 /* in one trace */

typedef int (*backtrace_fn)(void **frames, int count);

static _Atomic(backtrace_fn) original;
static struct {
    uintptr_t start, end;
} hidden[LIBRARIES];
static _Atomic unsigned hidden_count;

struct search {
    uintptr_t inside, start, end;
};

static int find_library(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *search = context;
    uintptr_t start = UINTPTR_MAX, end = 0;

    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const uintptr_t at = info->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD)
            continue;
        start = at < start ? at : start;
        end = at + part->p_memsz > end ? at + part->p_memsz : end;
    }
    if (search->inside < start || search->inside >= end)
        return 0;
    search->start = start;
    search->end = end;
    return 1;
}

void ttm_traces_hide(const void *inside)
{
    struct search search = {.inside = (uintptr_t)inside};
    const unsigned count = atomic_load_explicit(&hidden_count, memory_order_relaxed);

    if (count == LIBRARIES || dl_iterate_phdr(find_library, &search) == 0)
        return;
    hidden[count].start = search.start;
    hidden[count].end = search.end;
    /* release: pairs with the acquire in is_hidden(). */
    atomic_store_explicit(&hidden_count, count + 1, memory_order_release);
}

static bool is_hidden(const void *address)
{
    const uintptr_t at = (uintptr_t)address;
    /* acquire: pairs with the release in ttm_traces_hide(). */
    const unsigned count = atomic_load_explicit(&hidden_count, memory_order_acquire);

    for (unsigned i = 0; i < count; i++) {
        if (at >= hidden[i].start && at < hidden[i].end)
            return true;
    }
    return false;
}

static backtrace_fn find_original(void)
{
    backtrace_fn call =
        atomic_load_explicit(&original, memory_order_relaxed); /* all find the same */

    if (!call) {
        void *found = dlsym(RTLD_NEXT, "backtrace");
        __builtin_memcpy(&call, &found, sizeof(call));
        atomic_store_explicit(&original, call, memory_order_relaxed);
    }
    return call;
}

int ttm_traces_take(void **frames, int count)
{
    const backtrace_fn call = find_original();
    void *room[ROOM + OWN_FRAMES], **all = room;
    int taken = 0, kept = 0;

    if (count > ROOM)
        all = frames;
    if (call && count > 0)
        taken = call(all, count > ROOM ? count : count + OWN_FRAMES);
    for (int i = 0; i < taken && kept < count; i++) {
        if (!is_hidden(all[i]))
            frames[kept++] = all[i];
    }
    return kept;
}

int backtrace(void **frames, int count);
__attribute__((visibility("default"))) int backtrace(void **frames, int count)
{
    return ttm_traces_take(frames, count);
}

/* Early: who asks for a trace may be in a signal handler. */
__attribute__((constructor)) static void begin(void)
{
    (void)find_original();
    ttm_traces_hide(&hidden);
}
