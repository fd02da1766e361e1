/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_names - functions in place of "module+0xoffset", as a server sends them.
 *
 * The files of the modules are looked at when the first name is asked for. A frame
 * whose module is gone, or not ours to read, stays as it is, with the module's base
 * name.
 */
#ifndef TTM_CLI_NATIVE_NAMES_H
#define TTM_CLI_NATIVE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

struct ttm_native_names;

/* Returns NULL only when memory is short; NULL names nothing. */
struct ttm_native_names *ttm_native_names_new(void);
void ttm_native_names_free(struct ttm_native_names *names);

/* The name of the frame in 'length' bytes at 'frame'; borrowed until the next call. */
const char *ttm_native_names_of(struct ttm_native_names *names, const char *frame, size_t length);

/* Appends it as a report has it, "decode.c:28 cache_kv". Returns whether it has a name. */
bool ttm_native_names_put(struct ttm_native_names *names, const char *frame, size_t length,
                          struct ttm_text *out);

#endif /* TTM_CLI_NATIVE_NAMES_H */
