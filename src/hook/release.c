/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wheel puts SITE/ttnn/build/lib/libtt_metal.so and SITE/ttnn-0.81.1.dist-info:
 * the folder's name is the one place that has the version and needs no Python.
 */
#include "hook/release.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS_ABOVE 4  /* libtt_metal.so, lib, build, ttnn */
#define OLDEST_MINOR 79 /* as TTM_RELEASES_KNOWN has it in words */
#define NEWEST_MINOR 81

static bool site_of(const char *library, char *ret, size_t size)
{
    if ((size_t)snprintf(ret, size, "%s", library) >= size)
        return false;
    for (uint32_t i = 0; i < LEVELS_ABOVE; i++) {
        char *slash = strrchr(ret, '/');

        if (!slash)
            return false;
        *slash = '\0';
    }
    return *ret != '\0';
}

/* "ttnn-0.81.1.dist-info" gives "0.81.1". */
static bool version_in(const char *folder, char *ret, size_t size)
{
    static const char prefix[] = "ttnn-", suffix[] = ".dist-info";
    const size_t length = strlen(folder);

    if (length <= sizeof(prefix) + sizeof(suffix) - 2 ||
        strncmp(folder, prefix, sizeof(prefix) - 1) != 0 ||
        strcmp(folder + length - (sizeof(suffix) - 1), suffix) != 0)
        return false;
    (void)snprintf(ret, size, "%.*s", (int)(length - (sizeof(prefix) - 1) - (sizeof(suffix) - 1)),
                   folder + sizeof(prefix) - 1);
    return true;
}

static enum ttm_release_age age_of(const char *version)
{
    char *end;

    const unsigned long major = strtoul(version, &end, 10);
    if (end == version || *end != '.')
        return TTM_RELEASE_KNOWN;
    const unsigned long minor = strtoul(end + 1, NULL, 10);
    if (major > 0 || minor > NEWEST_MINOR)
        return TTM_RELEASE_NEWER;
    return minor < OLDEST_MINOR ? TTM_RELEASE_OLDER : TTM_RELEASE_KNOWN;
}

enum ttm_release_age ttm_release_name(void *library, char *ret, size_t size)
{
    struct link_map *map = NULL;

    return ttm_release_name_at(dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "", ret,
                               size);
}

enum ttm_release_age ttm_release_name_at(const char *library, char *ret, size_t size)
{
    static char site[PATH_MAX]; /* one caller at a time, whose stack is not ours to fill */
    char version[32] = "";

    (void)snprintf(ret, size, "TT-Metal");
    if (!site_of(library, site, sizeof(site)))
        return TTM_RELEASE_KNOWN;
    DIR *folder = opendir(site);
    if (!folder)
        return TTM_RELEASE_KNOWN;
    /* cppcheck-suppress readdirCalled ; nobody else reads this stream */
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        if (version_in(entry->d_name, version, sizeof(version)))
            break;
    }
    (void)closedir(folder);
    if (!*version)
        return TTM_RELEASE_KNOWN;
    (void)snprintf(ret, size, "ttnn %s", version);
    return age_of(version);
}
