/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracked_env - the environment in which a program is tracked.
 *
 * Pure, but for finding the hook. Variables that are not named stay as they are.
 */
#ifndef TTM_CLI_TRACKED_ENV_H
#define TTM_CLI_TRACKED_ENV_H

#include <limits.h>
#include <stddef.h>

#include "base/text.h"

#define TTM_HOOK_NAME "libttmem-hook.so"

/*
 * The library that is loaded into programs: beside this program, as in a build
 * tree, or in the library folder it was installed with. Returns 0; -ENOENT when it
 * is in neither; -EINVAL when its path has a space or colon, which the loader takes
 * for the end of a name. The path is given in the last case too.
 */
int ttm_hook_find(char ret[PATH_MAX]);

/* Says in one line what ttm_hook_find() has come to, when it is an error. Returns it. */
int ttm_hook_say_missing(int r, const char *path);

/*
 * What LD_PRELOAD is to be, from what it was ('before', may be NULL): the hook in
 * front, and once only. A sanitizer's runtime stays in front of it, or it would end
 * the program.
 */
void ttm_preload_append(struct ttm_text *out, const char *hook, const char *before);

/*
 * What ASAN_OPTIONS is to be, from what it was ('before', may be NULL). A program that was built with
 * the shared runtime of AddressSanitizer ends at once when another library was preloaded; this option
 * is there for libraries that go into every program and take the place of nothing that the runtime
 * does. Not LD_PRELOAD with the runtime first: each child would get it too, built with it or not.
 * One who has set the option keeps it.
 */
void ttm_asan_options_append(struct ttm_text *out, const char *before);

/* Text as one word of a shell, in single quotes where it needs any. */
void ttm_shell_word_append(struct ttm_text *out, const char *text);

/* An environment made from another: strings that were not set here are borrowed from there. */
struct ttm_env {
    char **list; /* as execve() wants it; NULL: memory was short */
    size_t count;
    char **own; /* those that were set */
    size_t own_count;
};

/* On an error 'list' is NULL, and setting does nothing. */
void ttm_env_init(struct ttm_env *env, char *const *from);
void ttm_env_done(struct ttm_env *env);

/* Sets a variable, in place of all of its name. */
void ttm_env_set(struct ttm_env *env, const char *name, const char *value);

/* The value, or NULL. Borrowed until the next change. */
const char *ttm_env_get(const struct ttm_env *env, const char *name);

#endif /* TTM_CLI_TRACKED_ENV_H */
