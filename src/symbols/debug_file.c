/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/debug_file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <gelf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/plain_file.h"

#define MODULE_MAX (INT64_C(16) << 30) /* a larger file is no module that somebody built */

/* ---- what an ELF file says of itself ---- */

/* "" if it is too long to be one. */
static void write_hex(const uint8_t *bytes, size_t length, char ret[TTM_BUILD_ID_HEX_MAX + 1])
{
    ret[0] = '\0';
    if (length > TTM_BUILD_ID_HEX_MAX / 2)
        return;
    for (size_t i = 0; i < length; i++)
        (void)snprintf(ret + i * 2, 3, "%02x", bytes[i]);
}

static void read_build_id(Elf *elf, char ret[TTM_BUILD_ID_HEX_MAX + 1])
{
    const void *id = NULL;
    const ssize_t length = dwelf_elf_gnu_build_id(elf, &id);

    write_hex(id, length > 0 ? (size_t)length : 0, ret);
}

static Elf_Data *find_section(Elf *elf, const char *name)
{
    Elf_Scn *section = NULL;
    size_t names;

    if (elf_getshdrstrndx(elf, &names) < 0)
        return NULL;
    while ((section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr header;
        const char *found = gelf_getshdr(section, &header) && header.sh_type != SHT_NOBITS
                                ? elf_strptr(elf, names, header.sh_name)
                                : NULL;
        if (found && strcmp(found, name) == 0)
            return elf_rawdata(section, NULL);
    }
    return NULL;
}

/* A name and its terminating zero, then the build-id of that file. */
static void read_common(Elf *elf, struct ttm_debug_link *ret)
{
    const Elf_Data *data = find_section(elf, ".gnu_debugaltlink");
    const size_t size = data && data->d_buf ? data->d_size : 0;
    const size_t length = size > 0 ? strnlen(data->d_buf, size) : 0;

    ret->is_there = size > 0; /* libdw follows it, whatever it is */
    if (length == size || length >= sizeof(ret->name))
        return;
    memcpy(ret->name, data->d_buf, length + 1);
    write_hex((const uint8_t *)data->d_buf + length + 1, size - length - 1, ret->build_id);
}

static void read_links(Elf *elf, const char *path, struct ttm_debug_links *ret)
{
    GElf_Word checksum;
    const char *name = dwelf_elf_gnu_debuglink(elf, &checksum);

    *ret = (struct ttm_debug_links){0};
    (void)snprintf(ret->path, sizeof(ret->path), "%s", path);
    read_build_id(elf, ret->build_id);
    memcpy(ret->debug.build_id, ret->build_id, sizeof(ret->build_id));
    ret->debug.is_there = name;
    if (name)
        (void)snprintf(ret->debug.name, sizeof(ret->debug.name), "%s", name);
    read_common(elf, &ret->common);
}

/* ---- opening ---- */

/* As ttm_debug_file_open_module() without a debug file. */
static int open_elf(const char *path, const char *build_id, struct ttm_debug_links *ret)
{
    struct stat st;
    const int fd = ttm_plain_file_open(path, &st);
    Elf *elf = NULL;
    int r = -ENOENT;

    if (fd >= 0 && st.st_size <= MODULE_MAX)
        elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    if (elf && elf_kind(elf) == ELF_K_ELF) {
        read_links(elf, path, ret);
        r = build_id[0] == '\0' || strcasecmp(ret->build_id, build_id) == 0 ? 0 : -ESTALE;
    }
    (void)elf_end(elf);
    if (r < 0 && fd >= 0)
        (void)close(fd);
    return r < 0 ? r : fd;
}

static bool is_build_id(const char *text)
{
    const size_t length = strlen(text);

    return length >= 4 && length <= TTM_BUILD_ID_HEX_MAX && length % 2 == 0 &&
           strspn(text, "0123456789abcdefABCDEF") == length;
}

/* The file of that build-id below the folder of debug files. */
static int open_by_build_id(const char *build_id, const char *debug_folder,
                            struct ttm_debug_links *ret)
{
    char path[PATH_MAX];

    if (!is_build_id(build_id))
        return -ENOENT;
    const int n = snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", debug_folder, build_id,
                           build_id + 2);
    return n < 0 || (size_t)n >= sizeof(path) ? -ENOENT : open_elf(path, build_id, ret);
}

int ttm_debug_file_open_module(const char *path, const char *build_id, const char *debug_folder,
                               struct ttm_debug_links *ret)
{
    const int fd = open_elf(path, build_id, ret);

    if (fd >= 0)
        return fd;
    const int debug_fd = open_by_build_id(build_id, debug_folder, ret);
    return debug_fd >= 0 ? debug_fd : fd;
}

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) : 0;
}

/* Beside the module, in .debug there, or at the same place below the folder of debug files. */
int ttm_debug_file_open(const struct ttm_debug_links *module, const char *debug_folder,
                        struct ttm_debug_links *ret)
{
    const char *const places[][2] = {{"", "/"}, {"", "/.debug/"}, {debug_folder, "/"}};
    const int folder = (int)folder_length(module->path);
    const char *name = module->debug.name;
    char path[PATH_MAX];
    int fd = open_by_build_id(module->build_id, debug_folder, ret);

    if (!module->debug.is_there || name[0] == '\0' || strchr(name, '/') || module->path[0] != '/')
        return fd;
    for (size_t i = 0; fd < 0 && i < sizeof(places) / sizeof(places[0]); i++) {
        const int n = snprintf(path, sizeof(path), "%s%.*s%s%s", places[i][0], folder, module->path,
                               places[i][1], name);
        if (n > 0 && (size_t)n < sizeof(path))
            fd = open_elf(path, module->build_id, ret);
    }
    return fd;
}

int ttm_debug_file_open_common(const struct ttm_debug_links *file, const char *debug_folder)
{
    const struct ttm_debug_link *common = &file->common;
    const bool is_absolute = common->name[0] == '/';
    const int folder = is_absolute ? 0 : (int)folder_length(file->path);
    struct ttm_debug_links unused;
    char path[PATH_MAX];

    if (!common->is_there || !is_build_id(common->build_id))
        return -ENOENT;
    const int fd = open_by_build_id(common->build_id, debug_folder, &unused);
    const int n = snprintf(path, sizeof(path), "%.*s%s%s", folder, file->path,
                           is_absolute ? "" : "/", common->name);
    return fd >= 0 || n < 0 || (size_t)n >= sizeof(path)
               ? fd
               : open_elf(path, common->build_id, &unused);
}
