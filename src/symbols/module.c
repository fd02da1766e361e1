/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/module.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUILD_ID_HEX_MAX 128
#define SYMBOLS_MAX (1 << 26)
#define UNSIZED_MAX 4096 /* how far a function reaches at most that does not say */

struct function {
    uint64_t address;
    uint64_t size;    /* at least 1 */
    const char *name; /* in the file */
};

struct ttm_module {
    Dwfl_Callbacks callbacks;
    char *debug_path; /* where libdw looks for debug files */
    Dwfl *dwfl;
    Dwfl_Module *mod;
    struct function *functions; /* by address, one at each */
    size_t count;
    bool has_lines;
};

/* ---- opening ---- */

static void write_hex(const uint8_t *bytes, size_t length, char *ret)
{
    for (size_t i = 0; i < length; i++)
        (void)snprintf(ret + i * 2, 3, "%02x", bytes[i]);
    ret[length * 2] = '\0';
}

/* Returns 0 when the file is an ELF file of that build-id (any, for ""); -ENOENT; -ESTALE. */
static int check_build_id(int fd, const char *build_id)
{
    char hex[BUILD_ID_HEX_MAX + 1] = "";
    const void *id = NULL;
    int r = 0;

    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    if (!elf)
        return -ENOENT;
    if (elf_kind(elf) != ELF_K_ELF)
        r = -ENOENT;
    if (r == 0 && build_id[0] != '\0') {
        const ssize_t length = dwelf_elf_gnu_build_id(elf, &id);
        if (length > 0 && length <= BUILD_ID_HEX_MAX / 2)
            write_hex(id, (size_t)length, hex);
        if (strcasecmp(hex, build_id) != 0)
            r = -ESTALE;
    }
    (void)elf_end(elf);
    return r;
}

/* An fd on a regular file of that build-id, or a negative errno as above. */
static int open_checked(const char *path, const char *build_id)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int r;

    if (fd < 0)
        return -ENOENT;
    r = fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ? -ENOENT : check_build_id(fd, build_id);
    if (r < 0) {
        (void)close(fd);
        return r;
    }
    return fd;
}

static bool is_build_id(const char *text)
{
    const size_t length = strlen(text);

    return length >= 4 && length <= BUILD_ID_HEX_MAX && length % 2 == 0 &&
           strspn(text, "0123456789abcdefABCDEF") == length;
}

/* The file itself, or else its debug file, which has the same addresses. */
static int open_file(const char *path, const char *build_id, const char *debug_folder)
{
    char debug[PATH_MAX];
    const int fd = open_checked(path, build_id);

    if (fd >= 0 || !is_build_id(build_id))
        return fd;
    const int n = snprintf(debug, sizeof(debug), "%s/.build-id/%.2s/%s.debug", debug_folder,
                           build_id, build_id + 2);
    if (n < 0 || (size_t)n >= sizeof(debug))
        return fd;
    const int debug_fd = open_checked(debug, build_id);
    return debug_fd >= 0 ? debug_fd : fd;
}

static int compare_functions(const void *a, const void *b)
{
    const struct function *x = a, *y = b;

    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    /* Of several names at one place the same one whatever their order in the file. */
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool is_function(const GElf_Sym *sym, GElf_Word section, const char *name)
{
    const unsigned type = GELF_ST_TYPE(sym->st_info);

    return name && name[0] != '\0' && section != SHN_UNDEF && sym->st_shndx != SHN_UNDEF &&
           (type == STT_FUNC || type == STT_GNU_IFUNC);
}

/* How far a function may reach that does not say: not into another section. */
static uint64_t left_of_section(Elf *elf, GElf_Word section, uint64_t address)
{
    GElf_Shdr header;
    Elf_Scn *scn = elf && section < SHN_LORESERVE ? elf_getscn(elf, section) : NULL;

    if (!scn || !gelf_getshdr(scn, &header) || address < header.sh_addr ||
        address - header.sh_addr >= header.sh_size)
        return 1;
    const uint64_t left = header.sh_size - (address - header.sh_addr);
    return left < UNSIZED_MAX ? left : UNSIZED_MAX;
}

static int list_functions(struct ttm_module *module)
{
    const int total = dwfl_module_getsymtab(module->mod);

    if (total <= 0 || total > SYMBOLS_MAX)
        return 0; /* none: addresses stay numbers */
    module->functions = malloc((size_t)total * sizeof(module->functions[0]));
    if (!module->functions)
        return -ENOMEM;
    for (int i = 1; i < total; i++) {
        GElf_Sym sym;
        GElf_Addr address;
        GElf_Word section;
        Elf *elf = NULL;
        Dwarf_Addr bias = 0;
        const char *name =
            dwfl_module_getsym_info(module->mod, i, &sym, &address, &section, &elf, &bias);
        if (!name || !is_function(&sym, section, name))
            continue;
        const uint64_t size =
            sym.st_size > 0 ? sym.st_size : left_of_section(elf, section, address - bias);
        module->functions[module->count++] =
            (struct function){.address = address, .size = size, .name = name};
    }
    if (module->count == 0)
        return 0;
    qsort(module->functions, module->count, sizeof(module->functions[0]), compare_functions);
    size_t kept = 1;
    for (size_t i = 1; i < module->count; i++) {
        if (module->functions[i].address != module->functions[kept - 1].address)
            module->functions[kept++] = module->functions[i];
    }
    module->count = kept;
    struct function *fitted = realloc(module->functions, kept * sizeof(fitted[0]));
    if (fitted)
        module->functions = fitted;
    return 0;
}

/* On success libdw owns 'fd'. */
static int report(struct ttm_module *module, const char *path, int fd, const char *debug_folder)
{
    const size_t room = strlen(debug_folder) + sizeof("-:.debug:");

    module->debug_path = malloc(room);
    if (!module->debug_path)
        return -ENOMEM;
    /* The first colon: beside the file; without a check of the whole file's checksum ("-"). */
    (void)snprintf(module->debug_path, room, "-:.debug:%s", debug_folder);
    module->callbacks = (Dwfl_Callbacks){
        .find_elf = dwfl_linux_proc_find_elf, /* never asked: the file is given */
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address,
        .debuginfo_path = &module->debug_path,
    };
    module->dwfl = dwfl_begin(&module->callbacks);
    if (!module->dwfl)
        return -ENOMEM;
    module->mod = dwfl_report_elf(module->dwfl, path, path, fd, 0, true);
    if (!module->mod)
        return -ENOENT;
    (void)dwfl_report_end(module->dwfl, NULL, NULL);
    return 0;
}

int ttm_module_open(const char *path, const char *build_id, const char *debug_folder,
                    struct ttm_module **ret)
{
    struct ttm_module *module;
    Dwarf_Addr bias;
    int r;

    (void)elf_version(EV_CURRENT);
    const int fd = open_file(path, build_id, debug_folder);
    if (fd < 0)
        return fd;
    module = calloc(1, sizeof(*module));
    r = module ? report(module, path, fd, debug_folder) : -ENOMEM;
    if (r < 0) {
        (void)close(fd);
        ttm_module_free(module);
        return r;
    }
    r = list_functions(module);
    if (r < 0) {
        ttm_module_free(module);
        return r;
    }
    module->has_lines = dwfl_module_getdwarf(module->mod, &bias);
    *ret = module;
    return 0;
}

void ttm_module_free(struct ttm_module *module)
{
    if (!module)
        return;
    dwfl_end(module->dwfl);
    free(module->functions);
    free(module->debug_path);
    free(module);
}

/* ---- finding ---- */

static const struct function *find_function(const struct ttm_module *module, uint64_t address)
{
    size_t low = 0, high = module->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (module->functions[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    const struct function *function = &module->functions[low - 1];
    /* Behind its end there may be something that has no name. */
    return address - function->address < function->size ? function : NULL;
}

static const char *linkage_name(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    const char *name = NULL;

    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
        dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
        name = dwarf_formstring(&attribute);
    return name ? name : dwarf_diename(die);
}

static const char *folder_of(Dwarf_Die *unit)
{
    Dwarf_Attribute attribute;

    return dwarf_attr(unit, DW_AT_comp_dir, &attribute) ? dwarf_formstring(&attribute) : NULL;
}

/* From where 'die' was inlined. */
static void call_site(Dwarf_Die *die, Dwarf_Die *unit, struct ttm_module_frame *ret)
{
    Dwarf_Attribute attribute;
    Dwarf_Word number;
    Dwarf_Files *files;
    size_t count;

    ret->file = NULL;
    ret->folder = folder_of(unit);
    ret->line = 0;
    if (dwarf_attr(die, DW_AT_call_file, &attribute) && dwarf_formudata(&attribute, &number) == 0 &&
        dwarf_getsrcfiles(unit, &files, &count) == 0 && number < count)
        ret->file = dwarf_filesrc(files, (size_t)number, NULL, NULL);
    if (dwarf_attr(die, DW_AT_call_line, &attribute) && dwarf_formudata(&attribute, &number) == 0 &&
        number <= UINT32_MAX)
        ret->line = (uint32_t)number;
}

/* Fills in names and call sites from the innermost scope outwards; returns how many. */
static size_t walk_scopes(Dwarf_Die *scopes, int scope_count, Dwarf_Die *unit,
                          struct ttm_module_frame *frames)
{
    size_t count = 0;

    for (int i = 0; i < scope_count && count < TTM_MODULE_FRAMES_MAX; i++) {
        const int tag = dwarf_tag(&scopes[i]);
        if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
            continue;
        frames[count++].mangled = linkage_name(&scopes[i]);
        if (tag == DW_TAG_subprogram)
            break;
        if (count < TTM_MODULE_FRAMES_MAX)
            call_site(&scopes[i], unit, &frames[count]);
    }
    return count;
}

/* With DWARF: the line, and the functions that were inlined there. Returns how many. */
static size_t find_lines(struct ttm_module *module, uint64_t address,
                         struct ttm_module_frame *frames)
{
    Dwarf_Addr bias = 0;
    Dwarf_Die *scopes = NULL;
    int line = 0;

    frames[0] = (struct ttm_module_frame){0};
    Dwfl_Line *at = dwfl_module_getsrc(module->mod, address);
    if (at) {
        frames[0].file = dwfl_lineinfo(at, NULL, &line, NULL, NULL, NULL);
        frames[0].line = line > 0 ? (uint32_t)line : 0;
    }
    Dwarf_Die *unit = dwfl_module_addrdie(module->mod, address, &bias);
    if (!unit)
        return 0;
    frames[0].folder = folder_of(unit);
    /* Scopes as they were written; those of the first one, where it was inlined to. */
    size_t count = 0;
    if (dwarf_getscopes(unit, address - bias, &scopes) > 0) {
        Dwarf_Die *outward = NULL;
        const int outward_count = dwarf_getscopes_die(&scopes[0], &outward);
        if (outward_count > 0)
            count = walk_scopes(outward, outward_count, unit, frames);
        free(outward);
    }
    free(scopes);
    return count;
}

size_t ttm_module_find(struct ttm_module *module, uint64_t address,
                       struct ttm_module_frame ret[TTM_MODULE_FRAMES_MAX])
{
    const struct function *function = find_function(module, address);
    size_t count = 0;

    ret[0] = (struct ttm_module_frame){0};
    if (module->has_lines)
        count = find_lines(module, address, ret);
    if (count == 0) {
        if (!function)
            return 0;
        ret[0].mangled = function->name; /* with the line, if there is one */
        return 1;
    }
    /* The symbol's name has the arguments, which a DIE may lack. */
    if (function)
        ret[count - 1].mangled = function->name;
    return ret[count - 1].mangled ? count : 0;
}
