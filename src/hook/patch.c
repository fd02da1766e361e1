/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words that hold the address of a function lie in two places. Those of direct calls
 * are in .got.plt, which TT-Metal leaves writable. Those of virtual calls are in
 * vtables, which the loader has made read-only after it had filled them in: their
 * page is made writable for the moment of the store, as the loader did.
 *
 * A thread that was inside one of the functions when the words changed is not known to
 * the gate, and until it has left nothing may be read of buffers (quiesce.h).
 */
#include "hook/patch.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hook/caller.h"
#include "hook/devices.h"
#include "hook/quiesce.h"
#include "hook/runtime.h"
#include "hook/traces.h"

#if defined(__x86_64__)
#define IS_SLOT(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#define IS_ADDRESS(type) ((type) == R_X86_64_64)
#elif defined(__aarch64__)
#define IS_SLOT(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#define IS_ADDRESS(type) ((type) == R_AARCH64_ABS64)
#else
#define IS_UNKNOWN_MACHINE
#define IS_SLOT(type) ((void)(type), false)
#define IS_ADDRESS(type) ((void)(type), false)
#endif

#define NAME_OF(label, name) #name,
static const char *const names[] = {TTM_INTERPOSED(NAME_OF)};
#undef NAME_OF

struct module {
    uintptr_t base;
    uintptr_t relro, relro_end; /* what the loader has made read-only */
    const Elf64_Sym *symbols;
    const char *strings;
    size_t strings_size;
    const Elf64_Rela *slots, *relocations;
    size_t slot_count, relocation_count;
};

struct install {
    void *own[TTM_HOOK_COUNT]; /* our functions */
    const void *own_base;
    const void *inside_metal; /* an address; NULL: TT-Metal is not loaded */
    int changed;
    int error;
};

/* Not by their names alone: a program that was linked with TT-Metal would find its functions. */
static bool find_own(struct install *install)
{
    Dl_info info;
    void *handle = dladdr(&names, &info) ? dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY) : NULL;

    if (!handle)
        return false;
    install->own_base = info.dli_fbase;
    for (uint32_t i = 0; i < TTM_HOOK_COUNT; i++) {
        install->own[i] = dlsym(handle, names[i]);
        if (!install->own[i])
            return false;
    }
    return true;
}

/* glibc has made these addresses absolute, other loaders have not. */
static const void *at(uintptr_t base, Elf64_Addr address)
{
    const uintptr_t where = address < base ? base + address : address;

    return (const void *)where; // NOLINT(performance-no-int-to-ptr)
}

static void read_dynamic(struct module *module, const Elf64_Dyn *entry)
{
    bool is_rela = true;

    for (; entry->d_tag != DT_NULL; entry++) {
        const Elf64_Addr value = entry->d_un.d_ptr;

        switch (entry->d_tag) {
        case DT_SYMTAB:
            module->symbols = at(module->base, value);
            break;
        case DT_STRTAB:
            module->strings = at(module->base, value);
            break;
        case DT_STRSZ:
            module->strings_size = value;
            break;
        case DT_JMPREL:
            module->slots = at(module->base, value);
            break;
        case DT_PLTRELSZ:
            module->slot_count = value / sizeof(Elf64_Rela);
            break;
        case DT_RELA:
            module->relocations = at(module->base, value);
            break;
        case DT_RELASZ:
            module->relocation_count = value / sizeof(Elf64_Rela);
            break;
        case DT_PLTREL:
            is_rela = value == DT_RELA;
            break;
        default:
            break;
        }
    }
    if (!is_rela || !module->slots)
        module->slot_count = 0;
    if (!module->relocations)
        module->relocation_count = 0;
}

/* Returns whether it has what is needed to read its relocations. */
static bool read_module(const struct dl_phdr_info *info, struct module *ret)
{
    const Elf64_Dyn *dynamic = NULL;

    *ret = (struct module){.base = info->dlpi_addr};
    for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr *segment = &info->dlpi_phdr[i];

        if (segment->p_type == PT_DYNAMIC)
            dynamic = at(0, info->dlpi_addr + segment->p_vaddr);
        if (segment->p_type == PT_GNU_RELRO) {
            /* Whole pages, as the loader protects them. */
            const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
            ret->relro = (info->dlpi_addr + segment->p_vaddr) & ~(page - 1);
            ret->relro_end = (info->dlpi_addr + segment->p_vaddr + segment->p_memsz) & ~(page - 1);
        }
    }
    if (dynamic)
        read_dynamic(ret, dynamic);
    return ret->symbols && ret->strings;
}

/* What a symbol is called; "" where it lies outside of what is known. */
static const char *name_of(const struct module *module, size_t symbol)
{
    const size_t offset = module->symbols[symbol].st_name;

    return offset < module->strings_size ? module->strings + offset : "";
}

/* Which of our functions has the name; TTM_HOOK_COUNT for none of them. */
static uint32_t point_of(const char *name)
{
    static const char prefix[] = "_ZN2tt8tt_metal";

    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
        return TTM_HOOK_COUNT;
    for (uint32_t i = 0; i < TTM_HOOK_COUNT; i++) {
        if (strcmp(name, names[i]) == 0)
            return i;
    }
    return TTM_HOOK_COUNT;
}

/* Returns 1 when the word was changed, 0 when it was ours already, or a negative errno. */
static int point_to(const struct module *module, uintptr_t where, void *function)
{
    _Atomic uintptr_t *word = (_Atomic uintptr_t *)where; // NOLINT(performance-no-int-to-ptr)
    const bool is_read_only = where >= module->relro && where < module->relro_end;
    const uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *page = (void *)(where & ~(size - 1)); // NOLINT(performance-no-int-to-ptr)

    if (atomic_load_explicit(word, memory_order_relaxed) == (uintptr_t)function)
        return 0;
    if (is_read_only && mprotect(page, size, PROT_READ | PROT_WRITE) < 0)
        return -errno;
    /* release: what our functions need was loaded before. Who calls reads the word and no more. */
    atomic_store_explicit(word, (uintptr_t)function, memory_order_release);
    if (is_read_only)
        (void)mprotect(page, size, PROT_READ);
    return 1;
}

static void patch(struct install *install, const struct module *module, const Elf64_Rela *list,
                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t type = (uint32_t)ELF64_R_TYPE(list[i].r_info);

        if (!IS_SLOT(type) && !IS_ADDRESS(type))
            continue;
        const char *name = name_of(module, ELF64_R_SYM(list[i].r_info));
        const uintptr_t where = module->base + list[i].r_offset;
        if (list[i].r_addend != 0)
            continue;
        if (strcmp(name, "backtrace") == 0)
            (void)point_to(module, where, (void *)(uintptr_t)ttm_traces_take);
        const uint32_t point = point_of(name);
        if (point == TTM_HOOK_COUNT)
            continue;
        const int r = point_to(module, where, install->own[point]);
        if (r < 0)
            install->error = r;
        else
            install->changed += r;
    }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool is_own(const struct install *install, const struct dl_phdr_info *info)
{
    return info->dlpi_addr == (uintptr_t)install->own_base;
}

static int find_metal(struct dl_phdr_info *info, size_t size, void *context)
{
    struct install *install = context;

    (void)size;
    if (is_own(install, info) ||
        strncmp(base_name(info->dlpi_name), "libtt_metal", strlen("libtt_metal")) != 0)
        return 0;
    for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD)
            install->inside_metal = at(0, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        if (install->inside_metal)
            return 1;
    }
    return 0;
}

static int patch_module(struct dl_phdr_info *info, size_t size, void *context)
{
    struct install *install = context;
    struct module module;

    (void)size;
    if (is_own(install, info) || !read_module(info, &module))
        return 0;
    patch(install, &module, module.slots, module.slot_count);
    patch(install, &module, module.relocations, module.relocation_count);
    return 0;
}

/* Those that were inside an original when the words changed. */
static void let_others_leave(const struct ttm_runtime *runtime)
{
    struct ttm_code functions[TTM_HOOK_COUNT];
    uint32_t count = 0;

    for (uint32_t i = 0; i < TTM_HOOK_COUNT; i++) {
        const uintptr_t start = (uintptr_t)runtime->originals[i];
        const ElfW(Sym) *symbol = NULL;
        Dl_info info;

        if (start != 0 &&
            dladdr1(runtime->originals[i], &info, (void **)&symbol, RTLD_DL_SYMENT) != 0 && symbol)
            functions[count++] = (struct ttm_code){start, start + symbol->st_size};
    }
    (void)ttm_quiesce(functions, count); /* in vain: then as exact as can be */
}

static int install_all(void)
{
    struct install install = {0};

#ifdef IS_UNKNOWN_MACHINE
    return -ENOTSUP;
#endif
    if (!find_own(&install))
        return -ENOENT;
    if (dl_iterate_phdr(find_metal, &install) == 0)
        return 0;
    /* The functions that ours call in turn are found first. */
    const struct ttm_runtime *runtime =
        ttm_runtime_of(install.inside_metal, TTM_HOOK_TRACK_ALLOCATE);
    if (!runtime->metal)
        return -ENOTSUP;
    (void)dl_iterate_phdr(patch_module, &install);
    if (install.changed > 0) {
        let_others_leave(runtime);
        ttm_devices_discover(runtime);
    }
    return install.error < 0 ? install.error : install.changed;
}

int ttmem_hook_install(void)
{
    const int saved_errno = errno;
    const int r = install_all();

    errno = saved_errno;
    return r;
}
