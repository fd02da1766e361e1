/* SPDX-License-Identifier: Apache-2.0 */
#include "query/locate.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SYSTEM_SOCKET "/run/tt-mem/tt-mem.sock"

/* '*ret_denied': somebody may be there, and we may not ask. */
static bool is_answered(const char *path, bool *ret_denied)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return false;
    memcpy(addr.sun_path, path, strlen(path) + 1);
    const bool answered =
        connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 || errno == EAGAIN;
    *ret_denied = !answered && errno == EACCES;
    (void)close(fd);
    return answered;
}

static bool is_listed(const struct ttm_places *places, const char *path)
{
    for (size_t i = 0; i < places->count; i++) {
        if (strcmp(places->paths[i], path) == 0)
            return true;
    }
    return false;
}

static int add_if_answered(struct ttm_places *places, const char *path, bool is_inside_command)
{
    bool is_denied = false;

    if (strlen(path) >= TTM_SOCKET_PATH_SIZE || is_listed(places, path))
        return 0;
    /* A server that turns us away is worth a line that says so; another user's command is not. */
    if (!is_answered(path, &is_denied) && (!is_denied || is_inside_command))
        return 0;
    void *grown = realloc(places->paths, (places->count + 1) * sizeof(places->paths[0]));
    if (!grown)
        return -ENOMEM;
    places->paths = grown;
    memcpy(places->paths[places->count++], path, strlen(path) + 1);
    return 0;
}

/* The server of 'folder', and those inside other commands beside it. */
static int add_folder(struct ttm_places *places, const char *folder)
{
    char pattern[512];
    glob_t found;
    int r;

    (void)snprintf(pattern, sizeof(pattern), "%s/tt-mem.sock", folder);
    r = add_if_answered(places, pattern, false);
    (void)snprintf(pattern, sizeof(pattern), "%s/tt-mem.run.*.sock", folder);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0) {
        for (size_t i = 0; r == 0 && i < found.gl_pathc; i++)
            r = add_if_answered(places, found.gl_pathv[i], true);
        globfree(&found);
    }
    return r;
}

/* Anybody can make a folder in /tmp that has our name. */
static bool is_own_folder(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & 022) == 0;
}

int ttm_locate_servers(struct ttm_places *ret)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char own[64];
    int r = 0;

    *ret = (struct ttm_places){0};
    if (runtime && runtime[0] == '/')
        r = add_folder(ret, runtime);
    if (r == 0)
        r = add_folder(ret, "/run/tt-mem");
    (void)snprintf(own, sizeof(own), "/tmp/tt-mem-%u", (unsigned)geteuid());
    if (r == 0 && is_own_folder(own))
        r = add_folder(ret, own);
    if (r < 0)
        ttm_places_done(ret);
    return r;
}

void ttm_places_done(struct ttm_places *places)
{
    free(places->paths);
    *places = (struct ttm_places){0};
}

int ttm_locate_default(char ret[TTM_SOCKET_PATH_SIZE], bool *ret_public)
{
    const char *chosen = getenv("TTMEM_SOCKET");
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int n;

    *ret_public = geteuid() == 0;
    if (chosen && chosen[0])
        n = snprintf(ret, TTM_SOCKET_PATH_SIZE, "%s", chosen);
    else if (*ret_public)
        n = snprintf(ret, TTM_SOCKET_PATH_SIZE, "%s", SYSTEM_SOCKET);
    else if (runtime && runtime[0] == '/')
        n = snprintf(ret, TTM_SOCKET_PATH_SIZE, "%s/tt-mem.sock", runtime);
    else
        n = snprintf(ret, TTM_SOCKET_PATH_SIZE, "/tmp/tt-mem-%u/tt-mem.sock", (unsigned)geteuid());
    return n < TTM_SOCKET_PATH_SIZE ? 0 : -ENAMETOOLONG;
}

int ttm_locate_run(unsigned choice, int pid, char ret[TTM_SOCKET_PATH_SIZE])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char own[64];
    const char *folders[2];
    unsigned count = 0;

    (void)snprintf(own, sizeof(own), "/tmp/tt-mem-%u", (unsigned)geteuid());
    if (runtime && runtime[0] == '/')
        folders[count++] = runtime;
    else if (geteuid() == 0)
        folders[count++] = "/run/tt-mem";
    folders[count++] = own;
    if (choice >= count)
        return -ENOENT;
    const int n =
        snprintf(ret, TTM_SOCKET_PATH_SIZE, "%s/tt-mem.run.%d.sock", folders[choice], pid);
    return n < TTM_SOCKET_PATH_SIZE ? 0 : -ENAMETOOLONG;
}
