/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENTS_MAX 64 /* more are not looked at */

static bool is_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

int ttm_program_find(const char *name, const char *path, char ret[PATH_MAX])
{
    if (strchr(name, '/'))
        return snprintf(ret, PATH_MAX, "%s", name) < PATH_MAX && is_file(ret) ? 0 : -ENOENT;
    if (!path)
        path = "/bin:/usr/bin"; /* as the C library does */
    while (name[0]) {
        const size_t n = strcspn(path, ":");
        const int length =
            snprintf(ret, PATH_MAX, "%.*s%s%s", (int)n, path, n > 0 ? "/" : "", name);
        if (length > 0 && length < PATH_MAX && is_file(ret))
            return 0;
        if (path[n] == '\0')
            break;
        path += n + 1;
    }
    return -ENOENT;
}

static bool is_ours(const ElfW(Ehdr) * head)
{
    static const ElfW(Half) machine =
#if defined(__x86_64__)
        EM_X86_64;
#elif defined(__aarch64__)
        EM_AARCH64;
#elif defined(__riscv)
        EM_RISCV;
#else
        EM_NONE;
#endif

    return head->e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
           (machine == EM_NONE || head->e_machine == machine);
}

/* Of a program whose loader is named at 'at'. */
static enum ttm_program look_at_loader(int fd, const ElfW(Phdr) * at)
{
    char loader[PATH_MAX] = "";
    const size_t size = at->p_filesz < sizeof(loader) - 1 ? at->p_filesz : sizeof(loader) - 1;

    if (pread(fd, loader, size, (off_t)at->p_offset) < 0)
        return TTM_PROGRAM_ORDINARY;
    return strstr(loader, "ld-musl") ? TTM_PROGRAM_FOREIGN : TTM_PROGRAM_ORDINARY;
}

static enum ttm_program look_at_head(int fd)
{
    ElfW(Phdr) segment;
    ElfW(Ehdr) head;

    if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return TTM_PROGRAM_ORDINARY;
    if (!is_ours(&head))
        return TTM_PROGRAM_FOREIGN;
    if (head.e_phentsize != sizeof(segment) || head.e_phnum > SEGMENTS_MAX)
        return TTM_PROGRAM_ORDINARY;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        const off_t at = (off_t)(head.e_phoff + i * sizeof(segment));
        if (pread(fd, &segment, sizeof(segment), at) != sizeof(segment))
            return TTM_PROGRAM_ORDINARY;
        if (segment.p_type == PT_INTERP)
            return look_at_loader(fd, &segment);
    }
    return TTM_PROGRAM_STATIC;
}

enum ttm_program ttm_program_look(const char *file)
{
    struct stat st;
    const int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (stat(file, &st) == 0 && (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
                                 ((st.st_mode & S_ISGID) && st.st_gid != getegid()))) {
        if (fd >= 0)
            (void)close(fd);
        return TTM_PROGRAM_PRIVILEGED;
    }
    if (fd < 0)
        return TTM_PROGRAM_ORDINARY;
    const enum ttm_program found = look_at_head(fd);
    (void)close(fd);
    return found;
}
