/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module - one ELF file and what it knows of its addresses.
 *
 * Its function symbols are sorted once, when it is opened: libdw's own search goes
 * through all of them for each address. Lines come from DWARF where there is any,
 * here or in a separate debug file. Private to src/symbols; one thread.
 */
#ifndef TTM_SYMBOLS_MODULE_H
#define TTM_SYMBOLS_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ttm_module;

/* More functions inlined into one another than this are not told apart. */
#define TTM_MODULE_FRAMES_MAX 32

struct ttm_module_frame {
    const char *mangled; /* NULL: not known. The file's; borrowed as long as the module */
    const char *file;    /* likewise */
    const char *folder;  /* likewise; in which the compiler ran, and a relative 'file' begins */
    uint32_t line;
};

/*
 * Opens 'path', or the debug file of that build-id when it is gone or another one.
 * Returns 0; -ENOENT when there is none; -ESTALE when there is one with another
 * build-id; -ENOMEM. A file that is no ELF file is as good as none.
 */
int ttm_module_open(const char *path, const char *build_id, const char *debug_folder,
                    struct ttm_module **ret);

/* NULL is fine. */
void ttm_module_free(struct ttm_module *module);

/*
 * The functions at an address, innermost first; returns how many, 0 for none. All
 * but the last were inlined.
 */
size_t ttm_module_find(struct ttm_module *module, uint64_t address,
                       struct ttm_module_frame ret[TTM_MODULE_FRAMES_MAX]);

#endif /* TTM_SYMBOLS_MODULE_H */
