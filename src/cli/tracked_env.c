/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tracked_env.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

/* ---- the hook ---- */

/* The folder of this program, without a slash behind it. */
static int find_own_folder(char ret[PATH_MAX])
{
    const ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);

    if (n <= 0)
        return -ENOENT;
    ret[n] = '\0';
    char *slash = strrchr(ret, '/');
    if (!slash)
        return -ENOENT;
    *slash = '\0';
    return 0;
}

/* TTM_LIBDIR is the library folder as seen from the folder of programs, or absolute. */
static const char *const hook_folders[] = {".", TTM_LIBDIR};

int ttm_hook_find(char ret[PATH_MAX])
{
    char own[PATH_MAX], path[3 * PATH_MAX];

    if (find_own_folder(own) < 0)
        return -ENOENT;
    for (size_t i = 0; i < sizeof(hook_folders) / sizeof(hook_folders[0]); i++) {
        const char *folder = hook_folders[i];
        const bool is_absolute = folder[0] == '/';
        (void)snprintf(path, sizeof(path), "%s%s%s/%s", is_absolute ? "" : own,
                       is_absolute ? "" : "/", folder, TTM_HOOK_NAME);
        if (access(path, R_OK) == 0 && realpath(path, ret))
            return strpbrk(ret, ": ") ? -EINVAL : 0;
    }
    return -ENOENT;
}

int ttm_hook_say_missing(int r, const char *path)
{
    if (r == -EINVAL)
        ttm_log("cannot load '%s' into programs: its path has a space or a colon", path);
    else if (r < 0)
        ttm_log("cannot find %s beside tt-mem or in its library folder: only programs on libttmem "
                "are tracked",
                TTM_HOOK_NAME);
    return r;
}

/* ---- LD_PRELOAD ---- */

static const char separators[] = ": ";

static bool has_entry(const char *list, const char *wanted)
{
    const size_t length = strlen(wanted);

    while (*list) {
        list += strspn(list, separators);
        const size_t n = strcspn(list, separators);
        if (n == length && strncmp(list, wanted, n) == 0)
            return true;
        list += n;
    }
    return false;
}

/* A runtime that refuses to start when it is not the first library. */
static bool is_sanitizer(const char *entry, size_t length)
{
    static const char *const names[] = {"libasan",  "libtsan",   "liblsan",
                                        "libubsan", "libhwasan", "libclang_rt"};
    size_t base = length;

    while (base > 0 && entry[base - 1] != '/')
        base--;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const size_t n = strlen(names[i]);
        if (length - base >= n && strncmp(entry + base, names[i], n) == 0)
            return true;
    }
    return false;
}

void ttm_preload_append(struct ttm_text *out, const char *hook, const char *before)
{
    const char *rest = before ? before : "";

    if (has_entry(rest, hook)) {
        ttm_text_append(out, rest);
        return;
    }
    rest += strspn(rest, separators);
    while (true) {
        const size_t n = strcspn(rest, separators);
        if (!is_sanitizer(rest, n))
            break;
        ttm_text_append_bytes(out, rest, n);
        ttm_text_append(out, ":");
        rest += n;
        rest += strspn(rest, separators);
    }
    ttm_text_append(out, hook);
    if (*rest) {
        ttm_text_append(out, ":");
        ttm_text_append(out, rest);
    }
}

/* ---- ASAN_OPTIONS ---- */

#define LINK_ORDER "verify_asan_link_order"

void ttm_asan_options_append(struct ttm_text *out, const char *before)
{
    const bool has_any = before && before[0];

    if (has_any)
        ttm_text_append(out, before);
    if (!has_any || !strstr(before, LINK_ORDER))
        ttm_text_format(out, "%s%s=0", has_any ? ":" : "", LINK_ORDER);
}

void ttm_shell_word_append(struct ttm_text *out, const char *text)
{
    bool is_plain = text[0] != '\0';

    for (const char *c = text; *c && is_plain; c++)
        is_plain = isalnum((unsigned char)*c) || strchr("_-./:=+,@%", *c);
    if (is_plain) {
        ttm_text_append(out, text);
        return;
    }
    ttm_text_append(out, "'");
    for (; *text; text++) {
        if (*text == '\'')
            ttm_text_append(out, "'\\''");
        else
            ttm_text_append_bytes(out, text, 1);
    }
    ttm_text_append(out, "'");
}

/* ---- an environment ---- */

static size_t count_strings(char *const *list)
{
    size_t count = 0;

    while (list[count])
        count++;
    return count;
}

void ttm_env_init(struct ttm_env *env, char *const *from)
{
    const size_t count = count_strings(from);

    *env = (struct ttm_env){.count = count};
    env->list = malloc((count + 1) * sizeof(env->list[0]));
    if (env->list)
        memcpy(env->list, from, (count + 1) * sizeof(env->list[0]));
}

void ttm_env_done(struct ttm_env *env)
{
    for (size_t i = 0; i < env->own_count; i++)
        free(env->own[i]);
    free(env->own);
    free(env->list);
    *env = (struct ttm_env){0};
}

/* Where the value begins when the string sets that variable, else NULL. */
static char *value_in(char *string, const char *name)
{
    const size_t n = strlen(name);

    return strncmp(string, name, n) == 0 && string[n] == '=' ? string + n + 1 : NULL;
}

const char *ttm_env_get(const struct ttm_env *env, const char *name)
{
    for (size_t i = 0; env->list && i < env->count; i++) {
        const char *value = value_in(env->list[i], name);
        if (value)
            return value;
    }
    return NULL;
}

static void drop(struct ttm_env *env, const char *name)
{
    size_t kept = 0;

    for (size_t i = 0; i < env->count; i++) {
        if (!value_in(env->list[i], name))
            env->list[kept++] = env->list[i];
    }
    env->list[kept] = NULL;
    env->count = kept;
}

static void fail(struct ttm_env *env)
{
    free(env->list);
    env->list = NULL;
}

void ttm_env_set(struct ttm_env *env, const char *name, const char *value)
{
    if (!env->list)
        return;
    char *string = malloc(strlen(name) + strlen(value) + 2);
    char **own = realloc(env->own, (env->own_count + 1) * sizeof(own[0]));
    if (own)
        env->own = own;
    if (!string || !own) {
        free(string);
        fail(env);
        return;
    }
    (void)sprintf(string, "%s=%s", name, value);
    own[env->own_count++] = string;
    drop(env, name);
    char **grown = realloc(env->list, (env->count + 2) * sizeof(grown[0]));
    if (!grown) {
        fail(env);
        return;
    }
    env->list = grown;
    grown[env->count++] = string;
    grown[env->count] = NULL;
}
