/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/module.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/debug_file.h"

#define SYMBOLS_MAX (1 << 26)
#define UNSIZED_MAX 4096 /* how far a function reaches at most that does not say */

struct function {
    uint64_t address;
    uint64_t size;    /* at least 1 */
    const char *name; /* in the file */
};

struct ttm_module {
    Dwfl_Callbacks callbacks;
    Dwfl *dwfl;
    Dwfl_Module *mod;
    char *debug_folder;
    struct ttm_debug_links links; /* of the module, then those of its debug file */
    Dwarf *common;                /* what the file with the lines has in common with others */
    int common_fd;
    struct function *functions; /* by address, one at each */
    size_t count;
    bool has_lines;
};

/* ---- functions ---- */

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

/* ---- opening ---- */

/*
 * libdw asks for the debug file, and for what that has in common with other files. The latter is
 * opened by open_common(), which libdw does not replace if it cannot be read.
 */
static int find_debug_file(Dwfl_Module *mod, void **userdata, const char *mod_name, Dwarf_Addr base,
                           const char *file_name, const char *link, GElf_Word checksum,
                           char **ret_name)
{
    struct ttm_module *module = *userdata;
    struct ttm_debug_links links;
    (void)mod, (void)mod_name, (void)base, (void)file_name, (void)checksum, (void)ret_name;

    if (!module ||
        (link && (!module->links.debug.is_there || strcmp(link, module->links.debug.name) != 0)))
        return -1;
    const int fd = ttm_debug_file_open(&module->links, module->debug_folder, &links);
    if (fd < 0)
        return -1;
    module->links = links;
    return fd;
}

/* On success libdw owns 'fd'. */
static int report(struct ttm_module *module, const char *path, int fd)
{
    void **userdata = NULL;

    module->callbacks = (Dwfl_Callbacks){
        .find_elf = dwfl_linux_proc_find_elf, /* never asked: the file is given */
        .find_debuginfo = find_debug_file,
        .section_address = dwfl_offline_section_address,
    };
    module->dwfl = dwfl_begin(&module->callbacks);
    if (!module->dwfl)
        return -ENOMEM;
    module->mod = dwfl_report_elf(module->dwfl, path, path, fd, 0, true);
    if (!module->mod)
        return -ENOENT;
    (void)dwfl_module_info(module->mod, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
    if (userdata)
        *userdata = module;
    (void)dwfl_report_end(module->dwfl, NULL, NULL);
    return 0;
}

/* Returns false if lines need a file that is not there: libdw would open whatever is named. */
static bool open_common(struct ttm_module *module, Dwarf *lines)
{
    const char *name;
    const void *id;

    if (dwelf_dwarf_gnu_debugaltlink(lines, &name, &id) <= 0)
        return true;
    module->common_fd = ttm_debug_file_open_common(&module->links, module->debug_folder);
    if (module->common_fd < 0)
        return false;
    module->common = dwarf_begin(module->common_fd, DWARF_C_READ);
    if (module->common)
        dwarf_setalt(lines, module->common);
    return module->common;
}

static struct ttm_module *new_module(const char *debug_folder)
{
    struct ttm_module *module = calloc(1, sizeof(*module));

    if (!module)
        return NULL;
    module->common_fd = -1;
    module->debug_folder = strdup(debug_folder);
    if (!module->debug_folder) {
        free(module);
        return NULL;
    }
    return module;
}

int ttm_module_open(const char *path, const char *build_id, const char *debug_folder,
                    struct ttm_module **ret)
{
    struct ttm_debug_links links;
    Dwarf_Addr bias;

    (void)elf_version(EV_CURRENT);
    const int fd = ttm_debug_file_open_module(path, build_id, debug_folder, &links);
    if (fd < 0)
        return fd;
    struct ttm_module *module = new_module(debug_folder);
    int r = -ENOMEM;
    if (module) {
        module->links = links;
        r = report(module, path, fd);
    }
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
    Dwarf *lines = dwfl_module_getdwarf(module->mod, &bias);
    module->has_lines = lines && open_common(module, lines);
    *ret = module;
    return 0;
}

void ttm_module_free(struct ttm_module *module)
{
    if (!module)
        return;
    dwfl_end(module->dwfl);
    (void)dwarf_end(module->common);
    if (module->common_fd >= 0)
        (void)close(module->common_fd);
    free(module->functions);
    free(module->debug_folder);
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

#define ORIGINS_MAX 16 /* of a DIE; a file may have them in a circle */

/*
 * The attribute of a DIE or of the one it was made from. dwarf_attr_integrate() would also open
 * the file that a skeleton unit names.
 */
static const char *find_string(const Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute, origin;
    Dwarf_Die at = *die;

    for (int i = 0; i < ORIGINS_MAX; i++) {
        if (dwarf_attr(&at, name, &attribute))
            return dwarf_formstring(&attribute);
        if (!dwarf_attr(&at, DW_AT_abstract_origin, &origin) &&
            !dwarf_attr(&at, DW_AT_specification, &origin))
            return NULL;
        if (!dwarf_formref_die(&origin, &at))
            return NULL;
    }
    return NULL;
}

static const char *linkage_name(const Dwarf_Die *die)
{
    const char *name = find_string(die, DW_AT_linkage_name);

    if (!name)
        name = find_string(die, DW_AT_MIPS_linkage_name);
    return name ? name : find_string(die, DW_AT_name);
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
