/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols - which function and line an address belongs to.
 *
 * Works outside the program that the addresses are from, from what the recording
 * has of its modules: path and build-id. A module that is gone or another one by
 * now is not guessed about; its frames read "libfoo.so+0x1234". Files are opened
 * when the first address of theirs is asked for, and no more of them is read than
 * that takes; answers are kept.
 *
 * One thread. Reads ELF files through libdw, which takes care with broken ones; a
 * file that shrinks while it is read can still end the program, as it is mapped.
 * Only regular files are opened, also those that a module names (debug_file.h).
 */
#ifndef TTM_SYMBOLS_SYMBOLS_H
#define TTM_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ttm_symbols;

/*
 * 'debug_folder' has separate debug files by build-id; NULL: /usr/lib/debug. Returns
 * NULL only when memory is short.
 */
struct ttm_symbols *ttm_symbols_new(const char *debug_folder);

/* NULL is fine. What it has handed out is gone with it. */
void ttm_symbols_free(struct ttm_symbols *symbols);

/*
 * Makes a module known; nothing is opened yet. 'build_id' is in hex, NULL or ""
 * when there is none: then the file is taken for what it is now. The same module
 * gives the same number. Returns 0 or -ENOMEM.
 */
int ttm_symbols_module(struct ttm_symbols *symbols, const char *path, const char *build_id,
                       uint32_t *ret);

/* What came of a module, once an address of it was asked for. */
enum ttm_symbols_state {
    TTM_SYMBOLS_UNOPENED,
    TTM_SYMBOLS_FOUND,
    TTM_SYMBOLS_GONE,    /* no such file, or it cannot be read, or it is no ELF file */
    TTM_SYMBOLS_CHANGED, /* there is one, with another build-id */
};

enum ttm_symbols_state ttm_symbols_module_state(const struct ttm_symbols *symbols, uint32_t module);

/* One function; several at one address when some were inlined. */
struct ttm_symbol_frame {
    const char *name; /* for people: "ttnn::matmul", or "libfoo.so+0x1234" */
    const char *full; /* demangled, with arguments; the same as 'name' when not resolved */
    const char *file; /* with the compiler's folder where it is relative; NULL: not known */
    uint32_t line;    /* 0: not known */
    bool is_inlined;  /* into the next frame */
    bool is_resolved; /* 'name' is a function's */
};

struct ttm_symbol {
    uint32_t count;                        /* at least 1 */
    const struct ttm_symbol_frame *frames; /* innermost first */
};

/*
 * 'offset' is the address less the module's load bias (dlpi_addr), that is, the
 * address in the ELF file. Of a return address pass one less: the call is what is
 * of interest, not what follows it.
 *
 * Borrowed until ttm_symbols_free(). Returns 0, -EINVAL for a module that is none,
 * or -ENOMEM.
 */
int ttm_symbols_resolve(struct ttm_symbols *symbols, uint32_t module, uint64_t offset,
                        const struct ttm_symbol **ret);

#endif /* TTM_SYMBOLS_SYMBOLS_H */
