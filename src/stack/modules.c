/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/modules.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/bytes.h"
#include "stack/probe.h"
#include "wire/origin.h"

#define OURS_MAX 4
#define NOTES_BYTES_MAX 65536u

/* As in dlfcn.h of glibc 2.35; spelled out, so that we can be built with an older one. */
struct found_object {
    unsigned long long flags;
    void *map_start;
    void *map_end;
    struct link_map *link_map;
    void *eh_frame_header;
    unsigned long long reserved[7];
};

typedef int (*find_object_fn)(void *address, struct found_object *ret);

/* Written by ttm_modules_start() alone. */
static struct {
    find_object_fn find;
    uintptr_t ours[OURS_MAX];
    unsigned ours_count;
    char program[TTM_MODULE_PATH_MAX]; /* the loader has no name for it */
    uint16_t program_length;
    uintptr_t program_start; /* from its first segment to its last */
    uintptr_t program_end;
} loader;

/*
 * Finds out where the program itself lies. Its segments may have gaps between them, as linkers of
 * Ubuntu 22.04 leave; the loader then answers with the one segment that holds an address, and the
 * unwind tables lie in another.
 */
static void measure_program(void)
{
    const Elf64_Phdr *segments = (const Elf64_Phdr *)getauxval(AT_PHDR);
    const unsigned count = (unsigned)getauxval(AT_PHNUM);
    uintptr_t bias = 0, start = UINTPTR_MAX, end = 0;
    bool has_bias = false;

    for (unsigned i = 0; segments && i < count; i++) {
        const uintptr_t segment_end = segments[i].p_vaddr + segments[i].p_memsz;
        if (segments[i].p_type == PT_PHDR) {
            bias = (uintptr_t)segments - segments[i].p_vaddr;
            has_bias = true;
        }
        if (segments[i].p_type != PT_LOAD)
            continue;
        start = segments[i].p_vaddr < start ? segments[i].p_vaddr : start;
        end = segment_end > end ? segment_end : end;
    }
    loader.program_start = has_bias && end > 0 ? bias + start : 0;
    loader.program_end = has_bias ? bias + end : 0;
}

/* Which module an address lies in; of the program itself, all of it. Takes no lock. */
static bool find_object(uintptr_t address, struct found_object *ret)
{
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is a number here
    if (!loader.find || loader.find((void *)address, ret) != 0 || !ret->link_map)
        return false;
    if ((uintptr_t)ret->map_start >= loader.program_start &&
        (uintptr_t)ret->map_end <= loader.program_end) {
        ret->map_start =
            (void *)loader.program_start;          // NOLINT(performance-no-int-to-ptr): as above
        ret->map_end = (void *)loader.program_end; // NOLINT(performance-no-int-to-ptr): as above
    }
    return true;
}

int ttm_modules_start(const void *const ours[], unsigned count)
{
    void *symbol = dlsym(RTLD_DEFAULT, "_dl_find_object");

    loader.ours_count = 0;
    for (unsigned i = 0; i < count && loader.ours_count < OURS_MAX; i++)
        loader.ours[loader.ours_count++] = (uintptr_t)ours[i];

    const ssize_t n = readlink("/proc/self/exe", loader.program, sizeof(loader.program));
    loader.program_length = n > 0 ? (uint16_t)n : 0;
    measure_program();

    if (!symbol)
        return -ENOSYS;
    memcpy(&loader.find, &symbol, sizeof(symbol)); /* ISO C has no cast between the two */
    return 0;
}

static bool is_ours(const struct ttm_module *module)
{
    for (unsigned i = 0; i < loader.ours_count; i++)
        if (loader.ours[i] >= module->start && loader.ours[i] < module->end)
            return true;
    return false;
}

static struct ttm_module *add(struct ttm_modules *modules, const struct found_object *object)
{
    unsigned place = modules->count;

    if (place < TTM_MODULES_MAX) {
        modules->count++;
    } else {
        place = modules->oldest;
        modules->oldest = (modules->oldest + 1) % TTM_MODULES_MAX;
    }
    struct ttm_module *module = &modules->list[place];
    *module = (struct ttm_module){
        .start = (uintptr_t)object->map_start,
        .end = (uintptr_t)object->map_end,
        .bias = object->link_map->l_addr,
        .eh_frame_header = (uintptr_t)object->eh_frame_header,
        .handle = object->link_map,
    };
    module->is_ours = is_ours(module);
    modules->last = place;
    return module;
}

struct ttm_module *ttm_modules_find(struct ttm_modules *modules, uintptr_t address)
{
    struct ttm_module *last = &modules->list[modules->last];
    struct found_object object;

    if (address - last->start < last->end - last->start)
        return last;
    for (unsigned i = 0; i < modules->count; i++) {
        struct ttm_module *module = &modules->list[i];
        if (address - module->start < module->end - module->start) {
            modules->last = i;
            return module;
        }
    }
    if (!find_object(address, &object))
        return NULL;
    return add(modules, &object);
}

bool ttm_modules_are_current(const struct ttm_modules *modules)
{
    struct found_object object;

    for (unsigned i = 0; i < modules->count; i++) {
        const struct ttm_module *module = &modules->list[i];
        if (!find_object(module->start, &object) || object.link_map != module->handle ||
            (uintptr_t)object.map_start != module->start ||
            (uintptr_t)object.map_end != module->end)
            return false;
    }
    return true;
}

/* The build-id among the notes (ELF's, not ours) from 'at' on, NULL for none. */
static const uint8_t *find_build_id(uintptr_t at, uintptr_t end, uint8_t *ret_length)
{
    while (end - at >= sizeof(Elf64_Nhdr) && at < end) {
        const uint64_t name_size = ttm_load_u32(at), size = ttm_load_u32(at + 4);
        const uint32_t type = ttm_load_u32(at + 8);
        const uintptr_t name = at + sizeof(Elf64_Nhdr);
        const uintptr_t bytes = name + (name_size + 3) / 4 * 4;

        if (name_size > NOTES_BYTES_MAX || size > NOTES_BYTES_MAX || bytes + size > end)
            return NULL;
        if (type == NT_GNU_BUILD_ID && name_size == 4 && ttm_load_u32(name) == 0x00554e47 &&
            size <= TTM_BUILD_ID_MAX) { /* "GNU" */
            *ret_length = (uint8_t)size;
            return (const uint8_t *)bytes;
        }
        at = bytes + (size + 3) / 4 * 4;
    }
    return NULL;
}

/* The program headers lie behind the ELF header, at the start of the first mapping. */
static const uint8_t *module_build_id(const struct ttm_module *module, uint8_t *ret_length)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)module->start;

    if (module->end - module->start < sizeof(*header) ||
        !ttm_probe(module->start, sizeof(*header)) ||
        memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_phentsize != sizeof(Elf64_Phdr))
        return NULL;
    const uintptr_t table = module->start + header->e_phoff;
    const size_t table_bytes = header->e_phnum * sizeof(Elf64_Phdr);
    if (header->e_phoff > module->end - module->start || table_bytes > module->end - table ||
        !ttm_probe(table, table_bytes))
        return NULL;

    const Elf64_Phdr *segments = (const Elf64_Phdr *)table;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        const uintptr_t at = module->bias + segments[i].p_vaddr;
        const uint64_t size = segments[i].p_memsz;

        if (segments[i].p_type != PT_NOTE || at < module->start || at >= module->end ||
            size > NOTES_BYTES_MAX || size > module->end - at || !ttm_probe(at, size))
            continue;
        const uint8_t *id = find_build_id(at, at + size, ret_length);
        if (id)
            return id;
    }
    return NULL;
}

uint32_t ttm_module_make_note(struct ttm_module *module, ttm_stack_note_fn note, uint8_t *scratch)
{
    /* A module that has gone since it came into the list must not be asked for its name. */
    struct found_object object;
    if (!find_object(module->start, &object) || object.link_map != module->handle)
        return 0;

    const char *name = object.link_map->l_name;
    struct ttm_module_note content = {
        .bias = module->bias,
        .start = module->start,
        .end = module->end,
        .path = {loader.program, loader.program_length},
    };
    if (name && name[0] != '\0')
        content.path = (struct ttm_note_text){name, (uint16_t)strnlen(name, UINT16_MAX)};
    content.build_id = module_build_id(module, &content.build_id_length);

    const size_t size = ttm_module_note_encode(&content, scratch);
    module->note = note(TTM_NOTE_MODULE, scratch, (uint32_t)size);
    module->has_note = true;
    return module->note;
}
