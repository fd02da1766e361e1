/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes a preloaded hook out of a program and puts it back, for ttnn_loop.py: each call of TT-Metal
 * that the loader has bound to the hook goes through a word of the caller's module, which is pointed to
 * TT-Metal's own function and to the hook's in turns. So blocks without tracking are those of a program
 * that has no hook. Only while no other thread is in TT-Metal, and with all that was born since the
 * last switch ended.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define SLOTS_MAX 256

struct slot {
    void **word;
    void *hooked, *original;
};

static struct slot slots[SLOTS_MAX];
static int slot_count;

static const char *file_of(const void *address)
{
    Dl_info info;

    return dladdr(address, &info) && info.dli_fname ? info.dli_fname : "";
}

static bool is_of_hook(const void *address)
{
    const char *name = strrchr(file_of(address), '/');

    return name && (strstr(name, "libttmem-hook") || strstr(name, "libfloor-hook"));
}

static void look_at_slot(void *metal, void **word, const char *name)
{
    static const char metals[] = "_ZN2tt8tt_metal"; /* not what the hook has of the C library's */
    const bool is_metals = strncmp(name, metals, sizeof(metals) - 1) == 0;
    void *original = is_metals && is_of_hook(*word) ? dlsym(metal, name) : NULL;

    if (original && original != *word && slot_count < SLOTS_MAX)
        slots[slot_count++] = (struct slot){word, *word, original};
}

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
    return NULL;
}

static int look_at_module(struct dl_phdr_info *info, size_t size, void *metal)
{
    const ElfW(Rela) *relocations = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    size_t bytes = 0;

    (void)size;
    /* TT-Metal's and ttnn's own; the kernel's page is none. */
    if (!strstr(info->dlpi_name, "tt") || strstr(info->dlpi_name, "libttmem"))
        return 0;
    for (const ElfW(Dyn) *entry = dynamic_of(info); entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_JMPREL)
            relocations = (const ElfW(Rela) *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_PLTRELSZ)
            bytes = entry->d_un.d_val;
        else if (entry->d_tag == DT_SYMTAB)
            symbols = (const ElfW(Sym) *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_STRTAB)
            strings = (const char *)entry->d_un.d_ptr;
    }
    for (size_t i = 0; relocations && symbols && i < bytes / sizeof(*relocations); i++) {
        const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(relocations[i].r_info)];

        look_at_slot(metal, (void **)(info->dlpi_addr + relocations[i].r_offset),
                     strings + symbol->st_name);
    }
    return 0;
}

/* Once, after the loop has run: what was not called yet is not bound. Returns how many words there are. */
EXPORT int bench_slots_find(void);
EXPORT int bench_slots_find(void)
{
    void *metal = dlopen("libtt_metal.so", RTLD_NOLOAD | RTLD_LAZY);

    if (metal)
        (void)dl_iterate_phdr(look_at_module, metal);
    return slot_count;
}

EXPORT void bench_slots_set(bool is_hooked);
EXPORT void bench_slots_set(bool is_hooked)
{
    for (int i = 0; i < slot_count; i++)
        *slots[i].word = is_hooked ? slots[i].hooked : slots[i].original;
}
