/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python loads libtt_metal.so with RTLD_LOCAL, so RTLD_NEXT does not find it. The
 * caller's module does: its own scope has the library that it was linked with, and
 * not us. Two libraries (two versions in one process) each get their own calls back
 * that way; the first one is tracked.
 */
#include "hook/runtime.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client/guest.h"
#include "hook/caller.h"
#include "hook/metal.h"
#include "hook/release.h"

#define MODULES_MAX 32u

#define NAME_OF(label, name) #name,
static const char *const interposed_names[] = {TTM_INTERPOSED(NAME_OF)};
#undef NAME_OF

#define NAME_OF(label, name, is_required) #name,
static const char *const asked_names[] = {TTM_ASKED(NAME_OF)};
#undef NAME_OF

#define IS_REQUIRED(label, name, is_required) is_required,
static const bool asked_required[] = {TTM_ASKED(IS_REQUIRED)};
#undef IS_REQUIRED

/* What is not heard without it; NULL for what a release may be without. */
static const char *const heard_by[TTM_HOOK_COUNT] = {
    [TTM_HOOK_ALLOCATE_BUFFER] = "buffers",
    [TTM_HOOK_TRACK_ALLOCATE] = "buffers",
    [TTM_HOOK_DEALLOCATE_BUFFER] = "frees",
    [TTM_HOOK_DEALLOCATE_BUFFERS] = "the end of meshes",
    [TTM_HOOK_ALLOCATOR_END] = "the end of meshes",
    [TTM_HOOK_ALLOCATE_CBS] = "circular buffers",
    [TTM_HOOK_TRACK_CB] = "circular buffers",
    [TTM_HOOK_DEALLOCATE_CBS] = "circular buffers",
    [TTM_HOOK_ALLOCATE_DFBS] = "dataflow buffers",
    [TTM_HOOK_MARK_ADDRESS] = "dataflow buffers",
    [TTM_HOOK_ALLOCATE_SCRATCHPADS] = "scratchpads",
    [TTM_HOOK_VALIDATE_CBS] = "clashes in L1",
    [TTM_HOOK_VALIDATE_DFBS] = "clashes in L1",
    [TTM_HOOK_COMPILE_FINISHED] = "kernels",
    [TTM_HOOK_PROGRAM_END] = "the end of programs",
    [TTM_HOOK_ADD_PROGRAM] = "the chips of programs",
    [TTM_HOOK_WORKLOAD_END] = "the chips of programs",
    [TTM_HOOK_ENQUEUE] = "which programs run",
    [TTM_HOOK_MESH_INITIALIZED] = "devices without buffers",
    [TTM_HOOK_DEVICE_CLOSE] = "closed devices",
};

/* Without these, what is born would never end, which is worse than to know nothing. */
static const enum ttm_hook_point needed[] = {
    TTM_HOOK_ALLOCATE_BUFFER,
    TTM_HOOK_TRACK_ALLOCATE,
    TTM_HOOK_DEALLOCATE_BUFFER,
    TTM_HOOK_PROGRAM_END,
};

/* A loaded file that calls us, and whom it means. Never changes once it is known. */
struct module {
    uintptr_t start, length;
    const struct ttm_runtime *runtime;
    bool is_ttnn; /* its operations, which put the programs they make into a cache */
};

struct ttm_first_caller ttm_first_callers[TTM_HOOK_COUNT - TTM_HOT_POINTS];
_Alignas(64) struct ttm_runtime ttm_runtimes[TTM_RUNTIMES_MAX];
static struct module modules[MODULES_MAX];
static _Atomic uint32_t module_count;
static const void *runtime_bases[TTM_RUNTIMES_MAX];
static uint32_t runtime_count;
static const struct ttm_runtime *_Atomic tracked;
static const struct ttm_runtime nothing;

/* What there is to say; written before 'has_news' is set, each time a runtime is found. */
static char release[64];
static char trouble[256];
static _Atomic bool has_news;

/* Guards all of the above but for the reading of modules[0 .. module_count - 1]. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct search {
    uintptr_t address;
    struct module found;
    char path[4096];
};

/* "_ttnncpp.so" has the operations, "_ttnn.cpython-310-x86_64-linux-gnu.so" what Python calls. */
static bool is_ttnn(const char *path)
{
    const char *slash = strrchr(path, '/');

    return strncmp(slash ? slash + 1 : path, "_ttnn", strlen("_ttnn")) == 0;
}

static int look_at_module(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *search = context;
    uintptr_t start = UINTPTR_MAX, end = 0;

    (void)size;
    for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

        if (segment->p_type != PT_LOAD)
            continue;
        const uintptr_t at = info->dlpi_addr + segment->p_vaddr;
        start = at < start ? at : start;
        end = at + segment->p_memsz > end ? at + segment->p_memsz : end;
    }
    if (search->address < start || search->address >= end)
        return 0;
    search->found.start = start;
    search->found.length = end - start;
    search->found.is_ttnn = is_ttnn(info->dlpi_name);
    (void)snprintf(search->path, sizeof(search->path), "%s", info->dlpi_name);
    return 1;
}

static const void *base_of(const void *address)
{
    Dl_info info;

    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

static bool is_ours(const void *address)
{
    return base_of(address) == base_of(&nothing);
}

/* A handle that stays open, so that nothing we keep a pointer into is ever unloaded. */
static void *handle_of(const char *path)
{
    return *path ? dlopen(path, RTLD_NOLOAD | RTLD_LAZY) : NULL;
}

/* The library whose functions the module with that path calls; NULL when there is none. */
static void *library_behind(const char *path)
{
    static const char *const probe = "_ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE";
    void *handle = handle_of(path);
    void *function = handle ? dlsym(handle, probe) : NULL;
    Dl_info info;

    if (!function || is_ours(function))
        function = dlsym(RTLD_NEXT, probe); /* a program that was linked with it */
    if (!function || is_ours(function) || !dladdr(function, &info))
        return NULL;
    return handle_of(info.dli_fname);
}

static void learn_fields(struct ttm_runtime *runtime)
{
    const struct ttm_buffer_methods methods = {
        .type = runtime->asked[TTM_ASK_BUFFER_TYPE],
        .layout = runtime->asked[TTM_ASK_BUFFER_LAYOUT],
        .id = runtime->asked[TTM_ASK_BUFFER_UNIQUE_ID],
        .size = runtime->asked[TTM_ASK_BUFFER_SIZE],
        .page_size = runtime->asked[TTM_ASK_BUFFER_PAGE_SIZE],
        .address = runtime->asked[TTM_ASK_BUFFER_ADDRESS],
        .core_addresses = runtime->asked[TTM_ASK_BUFFER_CORE_ADDRESSES],
    };

    ttm_buffer_fields_learn(&methods, &runtime->fields);
}

void ttm_runtime_see_core_map(const struct ttm_runtime *runtime, const char *body, const void *map)
{
    struct ttm_buffer_fields *fields = &ttm_runtimes[runtime - ttm_runtimes].fields;

    ttm_buffer_fields_see_core_map(fields, body, map);
    /* relaxed, both: it is 0 or what it is. */
    __atomic_store_n(&ttm_hot.fields.core_count,
                     __atomic_load_n(&fields->core_count, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

/* Returns the name of a function that is missing and needed, or NULL. */
static const char *resolve(void *library, struct ttm_runtime *runtime)
{
    const char *missing = NULL;

    for (uint32_t i = 0; i < TTM_HOOK_COUNT; i++)
        runtime->originals[i] = dlsym(library, interposed_names[i]);
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]) && !missing; i++) {
        if (!runtime->originals[needed[i]])
            missing = interposed_names[needed[i]];
    }
    for (uint32_t i = 0; i < TTM_ASK_COUNT; i++) {
        runtime->asked[i] = dlsym(library, asked_names[i]);
        if (!runtime->asked[i] && asked_required[i] && !missing)
            missing = asked_names[i];
    }
    learn_fields(runtime);
    return missing;
}

/* "ttnn 0.90.1 is tracked in part, without: circular buffers, kernels", where it is. */
static void say_what_is_not_heard(const struct ttm_runtime *runtime)
{
    const char *said = NULL;

    for (uint32_t i = 0; i < TTM_HOOK_COUNT; i++) {
        if (runtime->originals[i] || !heard_by[i] || heard_by[i] == said)
            continue;
        const size_t length = strlen(trouble);
        if (!said)
            (void)snprintf(trouble, sizeof(trouble), "%s is tracked in part, without: %s", release,
                           heard_by[i]);
        else
            (void)snprintf(trouble + length, sizeof(trouble) - length, ", %s", heard_by[i]);
        said = heard_by[i];
    }
}

static const char *why_not(enum ttm_release_age age)
{
    switch (age) {
    case TTM_RELEASE_OLDER:
        return "it is too old, the hook knows " TTM_RELEASES_KNOWN;
    case TTM_RELEASE_NEWER:
        return "it is too new, the hook knows " TTM_RELEASES_KNOWN;
    case TTM_RELEASE_KNOWN:
        break;
    }
    return "it is not as " TTM_RELEASES_KNOWN ", which the hook knows";
}

void ttm_runtime_put_at_hand(const struct ttm_runtime *runtime)
{
    ttm_hot.fields = runtime->fields;
    memcpy(ttm_hot.originals, runtime->originals, sizeof(ttm_hot.originals));
}

/* Sets up the runtime that will be tracked, and says what it is and what it lacks. */
static void track(void *library, struct ttm_runtime *runtime, const char *missing)
{
    const enum ttm_release_age age = ttm_release_name(library, release, sizeof(release));

    if (missing) {
        (void)snprintf(trouble, sizeof(trouble), "%s is not tracked: %s", release, why_not(age));
    } else {
        runtime->metal = ttm_metal_load();
        if (!runtime->metal)
            (void)snprintf(trouble, sizeof(trouble),
                           "%s is not tracked: libttmem-metal.so cannot be loaded", release);
    }
    if (!runtime->metal)
        return;
    say_what_is_not_heard(runtime);
    ttm_runtime_put_at_hand(runtime);
    /* release: pairs with the acquire in ttm_runtime_tracked(). */
    atomic_store_explicit(&tracked, runtime, memory_order_release);
}

static const struct ttm_runtime *runtime_in(void *library)
{
    /* Something that every version has, to know the library by. */
    const void *base = base_of(dlsym(library, interposed_names[TTM_HOOK_TRACK_ALLOCATE]));

    for (uint32_t i = 0; i < runtime_count; i++) {
        if (runtime_bases[i] == base)
            return &ttm_runtimes[i];
    }
    if (runtime_count == TTM_RUNTIMES_MAX)
        return &nothing;
    struct ttm_runtime *runtime = &ttm_runtimes[runtime_count];
    const char *missing = resolve(library, runtime);
    runtime_bases[runtime_count++] = base;
    if (runtime_count == 1)
        track(library, runtime, missing);
    else
        (void)snprintf(trouble, sizeof(trouble),
                       "libtt_metal.so is loaded twice: only the first one is tracked");
    atomic_store_explicit(&has_news, true, memory_order_release);
    return runtime;
}

static const struct module *find_module(uintptr_t caller)
{
    const uint32_t count = atomic_load_explicit(&module_count, memory_order_acquire);

    /* acquire: pairs with the release in learn(); the module is there. */
    for (uint32_t i = 0; i < count; i++) {
        if (caller - modules[i].start < modules[i].length)
            return &modules[i];
    }
    return NULL;
}

/* The first call from a module. */
static const struct ttm_runtime *learn(uintptr_t caller)
{
    static struct search search; /* under the lock: too large for somebody else's stack */
    const uint32_t count = atomic_load_explicit(&module_count, memory_order_relaxed); /* ours */

    const struct module *known = find_module(caller);
    if (known) /* another thread was faster */
        return known->runtime;
    search.address = caller;
    if (dl_iterate_phdr(look_at_module, &search) != 1)
        return runtime_count ? &ttm_runtimes[0] : &nothing;
    void *library = library_behind(search.path);
    search.found.runtime = library ? runtime_in(library) : &nothing;
    if (!library && runtime_count)
        search.found.runtime = &ttm_runtimes[0];
    if (count < MODULES_MAX) {
        modules[count] = search.found;
        /* release: pairs with the acquire in find_module(). */
        atomic_store_explicit(&module_count, count + 1, memory_order_release);
    }
    return search.found.runtime;
}

/* The module is from now on the one that is looked at first, if there is none yet. */
static void come_first(const struct module *module, enum ttm_hook_point point)
{
    _Atomic uint32_t *length = ttm_first_caller_length(point);

    if (!module || module->runtime != ttm_runtimes || module->length > UINT32_MAX ||
        atomic_load_explicit(length, memory_order_relaxed) != 0) /* under the lock */
        return;
    *ttm_first_caller_start(point) = module->start;
    /* release: pairs with the acquire in ttm_runtime_of(). */
    atomic_store_explicit(length, (uint32_t)module->length, memory_order_release);
}

const struct ttm_runtime *ttm_caller_look_up(uintptr_t address, enum ttm_hook_point point)
{
    const struct module *module = find_module(address);

    /* relaxed: once there is a first one, it stays. */
    if (module && (module->runtime != ttm_runtimes ||
                   atomic_load_explicit(ttm_first_caller_length(point), memory_order_relaxed)))
        return module->runtime;
    const int saved_errno = errno;
    pthread_mutex_lock(&lock);
    const struct ttm_runtime *runtime = learn(address);
    come_first(find_module(address), point);
    pthread_mutex_unlock(&lock);
    /* Not under the lock: it may switch tracking on, which waits for other threads. */
    if (atomic_exchange_explicit(&has_news, false, memory_order_acquire))
        ttm_runtime_say();
    errno = saved_errno;
    return runtime;
}

bool ttm_caller_is_ttnn(const void *caller)
{
    const struct module *module = find_module((uintptr_t)caller);

    return module && module->is_ttnn;
}

void ttm_runtime_say(void)
{
    char copied_release[sizeof(release)], copied_trouble[sizeof(trouble)];

    pthread_mutex_lock(&lock);
    memcpy(copied_release, release, sizeof(release));
    memcpy(copied_trouble, trouble, sizeof(trouble));
    pthread_mutex_unlock(&lock);
    if (copied_release[0])
        ttmem_guest_say(copied_release, copied_trouble);
}

const struct ttm_runtime *ttm_runtime_tracked(void)
{
    /* acquire: pairs with the release in track(). */
    return atomic_load_explicit(&tracked, memory_order_acquire);
}

void ttm_runtime_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}
