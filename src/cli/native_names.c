/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/native_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "symbols/symbols.h"

#define FRAME_MAX 1200    /* a path of a module and an offset */
#define MODULES_MAX 4096u /* of all processes; then all are forgotten */

/* A file as it is now: a path leads to another one in a container, or once a program was built anew. */
struct file {
    dev_t device;
    ino_t inode;
    struct timespec changed;
    struct ttm_symbols *symbols; /* of it alone */
    uint32_t module;
};

/* What a process has mapped. */
struct module {
    int32_t pid;
    char *path;
    uint32_t file; /* + 1; 0: it is not there, or another one */
};

struct ttm_native_names {
    int32_t pid;
    struct module *modules;
    struct file *files;
    uint32_t module_count, module_room, file_count, file_room;
    char frame[FRAME_MAX];
};

struct ttm_native_names *ttm_native_names_new(void)
{
    return calloc(1, sizeof(struct ttm_native_names));
}

static void forget(struct ttm_native_names *names)
{
    for (uint32_t i = 0; i < names->module_count; i++)
        free(names->modules[i].path);
    for (uint32_t i = 0; i < names->file_count; i++)
        ttm_symbols_free(names->files[i].symbols);
    names->module_count = names->file_count = 0;
}

void ttm_native_names_free(struct ttm_native_names *names)
{
    if (!names)
        return;
    forget(names);
    free(names->modules);
    free(names->files);
    free(names);
}

void ttm_native_names_choose(struct ttm_native_names *names, int32_t pid)
{
    if (names)
        names->pid = pid;
}

/* Room for one more of 'size' bytes at '*list', or false. */
static bool make_room(void **list, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room)
        return true;
    const uint32_t more = *room ? *room * 2 : 16;
    void *grown = realloc(*list, more * size);
    if (!grown)
        return false;
    *list = grown;
    *room = more;
    return true;
}

/* ---- which file ---- */

static bool ends_in(const char *line, const char *path, const char *rest)
{
    const char *at = strchr(line, '/');
    const size_t length = strlen(path);

    return at && strncmp(at, path, length) == 0 && strcmp(at + length, rest) == 0;
}

/*
 * Whether the file that a process has mapped from this path is there no longer: whatever is at the
 * path now, if anything, is another one. Device and inode would tell as well, but are not the same
 * in both places on file systems in layers. What cannot be read or is not mapped tells nothing.
 */
static bool is_replaced(int32_t pid, const char *path)
{
    char name[64], *line = NULL;
    char *real = realpath(path, NULL); /* which the kernel shows, where the loader had a link */
    bool is_mapped = false, is_deleted = false;
    size_t room = 0;

    (void)snprintf(name, sizeof(name), "/proc/%d/maps", pid);
    FILE *maps = pid > 0 ? fopen(name, "re") : NULL;
    while (maps && !is_mapped && getline(&line, &room, maps) > 0) {
        is_mapped = ends_in(line, path, "\n") || (real && ends_in(line, real, "\n"));
        is_deleted |=
            ends_in(line, path, " (deleted)\n") || (real && ends_in(line, real, " (deleted)\n"));
    }
    free(line);
    free(real);
    if (maps)
        (void)fclose(maps);
    return is_deleted && !is_mapped;
}

/* Its place in the list + 1; 0 when there is none or memory is short. */
static uint32_t find_file(struct ttm_native_names *names, const char *path)
{
    char own[FRAME_MAX + 64]; /* where the process has it */
    struct stat st;

    (void)snprintf(own, sizeof(own), "/proc/%d/root%s", names->pid, path);
    if (names->pid > 0)
        path = own;
    if (stat(path, &st) < 0)
        return 0;
    for (uint32_t i = 0; i < names->file_count; i++) {
        const struct file *file = &names->files[i];
        if (file->inode == st.st_ino && file->device == st.st_dev &&
            file->changed.tv_sec == st.st_mtim.tv_sec &&
            file->changed.tv_nsec == st.st_mtim.tv_nsec)
            return i + 1;
    }
    struct file file = {
        .device = st.st_dev,
        .inode = st.st_ino,
        .changed = st.st_mtim,
        .symbols = ttm_symbols_new(NULL),
    };
    if (!file.symbols || ttm_symbols_module(file.symbols, path, NULL, &file.module) < 0 ||
        !make_room((void **)&names->files, names->file_count, &names->file_room, sizeof(file))) {
        ttm_symbols_free(file.symbols);
        return 0;
    }
    names->files[names->file_count++] = file;
    return names->file_count;
}

/* NULL: it is not there, another one, or memory is short. */
static const struct file *file_of(struct ttm_native_names *names, const char *path)
{
    /* A process has some hundred of them, and few that allocate. */
    for (uint32_t i = 0; i < names->module_count; i++) {
        const struct module *module = &names->modules[i];
        if (module->pid == names->pid && strcmp(module->path, path) == 0)
            return module->file ? &names->files[module->file - 1] : NULL;
    }
    if (names->module_count == MODULES_MAX)
        forget(names);
    struct module module = {.pid = names->pid, .path = strdup(path)};
    if (!module.path || !make_room((void **)&names->modules, names->module_count,
                                   &names->module_room, sizeof(module))) {
        free(module.path);
        return NULL;
    }
    module.file = is_replaced(names->pid, path) ? 0 : find_file(names, path);
    names->modules[names->module_count++] = module;
    return module.file ? &names->files[module.file - 1] : NULL;
}

/* ---- which name ---- */

static const char *without_folders(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Copies the frame, which may have to be shown as it is, and finds what is there; NULL: not known. */
static const struct ttm_symbol *find(struct ttm_native_names *names, const char *frame,
                                     size_t length)
{
    const struct ttm_symbol *symbol;
    char *end;

    if (length >= FRAME_MAX)
        length = FRAME_MAX - 1;
    memcpy(names->frame, frame, length);
    names->frame[length] = '\0';
    char *plus = strrchr(names->frame, '+');
    if (!plus || plus == names->frame || names->frame[0] != '/')
        return NULL;
    const uint64_t offset = strtoull(plus + 1, &end, 16);
    if (*end != '\0' || offset == 0)
        return NULL;
    *plus = '\0';
    const struct file *file = file_of(names, names->frame);
    *plus = '+';
    /* A return address lies behind the call. */
    if (!file || ttm_symbols_resolve(file->symbols, file->module, offset - 1, &symbol) < 0 ||
        !symbol->frames[0].is_resolved)
        return NULL;
    return symbol;
}

const char *ttm_native_names_of(struct ttm_native_names *names, const char *frame, size_t length)
{
    if (!names)
        return "?";
    const struct ttm_symbol *symbol = find(names, frame, length);
    return symbol ? symbol->frames[symbol->count - 1].name : without_folders(names->frame);
}

bool ttm_native_names_put(struct ttm_native_names *names, const char *frame, size_t length,
                          struct ttm_text *out)
{
    const struct ttm_symbol *symbol = names ? find(names, frame, length) : NULL;

    if (!symbol)
        return false;
    const struct ttm_symbol_frame *inner = &symbol->frames[0];
    if (!inner->file || inner->line == 0) {
        /* Without lines the last is the function that is really there. */
        ttm_text_append_safe(out, symbol->frames[symbol->count - 1].name);
        return true;
    }
    ttm_text_append_safe(out, without_folders(inner->file));
    ttm_text_format(out, ":%u ", inner->line);
    ttm_text_append_safe(out, inner->name);
    return true;
}
