/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug_file - opens a module and the files that have its debug information.
 *
 * A module names its debug files itself, and libdw would open whatever it names: it would wait
 * for ever for a FIFO. So libdw is asked to open nothing. The files are found here, only regular
 * files are opened, and a file is used only if its build-id is right. Nothing is fetched from the
 * network. Private to src/symbols; one thread.
 */
#ifndef TTM_SYMBOLS_DEBUG_FILE_H
#define TTM_SYMBOLS_DEBUG_FILE_H

#include <limits.h>
#include <stdbool.h>

#define TTM_BUILD_ID_HEX_MAX 128

/* Another file that an ELF file names: its debug file, or what it has in common with others. */
struct ttm_debug_link {
    bool is_there;
    char name[PATH_MAX];
    char build_id[TTM_BUILD_ID_HEX_MAX + 1]; /* in hex; "" if it names none */
};

/* What an ELF file says of itself. */
struct ttm_debug_links {
    char path[PATH_MAX]; /* where it was found */
    char build_id[TTM_BUILD_ID_HEX_MAX + 1];
    struct ttm_debug_link debug;  /* .gnu_debuglink; its build-id is the file's own */
    struct ttm_debug_link common; /* .gnu_debugaltlink */
};

/*
 * Opens the module, or else its debug file, which has the same addresses. Returns an fd that is
 * open for reading; -ENOENT if there is no such ELF file; -ESTALE if there is one with another
 * build-id ('build_id' "" takes any).
 */
int ttm_debug_file_open_module(const char *path, const char *build_id, const char *debug_folder,
                               struct ttm_debug_links *ret);

/* Opens the debug file of that module. Returns as above; 'ret' are the debug file's own links. */
int ttm_debug_file_open(const struct ttm_debug_links *module, const char *debug_folder,
                        struct ttm_debug_links *ret);

/* Opens what that file has in common with others. Returns as above. */
int ttm_debug_file_open_common(const struct ttm_debug_links *file, const char *debug_folder);

#endif /* TTM_SYMBOLS_DEBUG_FILE_H */
