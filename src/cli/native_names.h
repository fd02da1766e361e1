/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_names - functions in place of "module+0xoffset", as a server sends them.
 *
 * The file of a module is looked at when the first name of it is asked for, and what was found
 * is kept. A frame whose module is gone, not ours to read or another one by now stays as
 * it is, with the module's base name. One thread; never in a server, as a file that shrinks while
 * it is read can end the program.
 */
#ifndef TTM_CLI_NATIVE_NAMES_H
#define TTM_CLI_NATIVE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct ttm_native_names;

/* Returns NULL only when memory is short; NULL names nothing. */
struct ttm_native_names *ttm_native_names_new(void);
void ttm_native_names_free(struct ttm_native_names *names);

/*
 * Says whose frames the following are, as a program may have been built anew while it runs: then
 * the file is another one than the process has. 0, as at first: that is not known, and files are
 * taken for what they are now. NULL is fine for 'names'.
 */
void ttm_native_names_choose(struct ttm_native_names *names, int32_t pid);

/* The name of the frame in 'length' bytes at 'frame'; borrowed until the next call. */
const char *ttm_native_names_of(struct ttm_native_names *names, const char *frame, size_t length);

/*
 * Appends it as a Python line is shown in a list, "decode.c:28 cache_kv": without what it was
 * inlined into, which a report has. Returns whether it has a name.
 */
bool ttm_native_names_put(struct ttm_native_names *names, const char *frame, size_t length,
                          struct ttm_text *out);

#endif /* TTM_CLI_NATIVE_NAMES_H */
