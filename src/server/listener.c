/* SPDX-License-Identifier: Apache-2.0 */
#include "server/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4096 /* or what the system allows */

static int fail(char *why, int r, const char *what, const char *path)
{
    (void)snprintf(why, TTM_LISTENER_WHY_SIZE, "cannot %s '%s': %s", what, path, strerror(-r));
    return r;
}

static int refuse(char *why, int r, const char *path, const char *reason)
{
    (void)snprintf(why, TTM_LISTENER_WHY_SIZE, "cannot listen on '%s': %s", path, reason);
    return r;
}

/*
 * The folder must not let others replace our socket: ours or root's, and
 * writable by nobody else unless it is sticky, as /tmp is.
 */
static int check_folder(const char *folder, const char *path, bool was_made, char *why)
{
    struct stat st;

    if (lstat(folder, &st) < 0)
        return fail(why, -errno, "look at", folder);
    if (S_ISLNK(st.st_mode)) { /* a link made by the administrator (/var/run) is followed */
        if (was_made || (st.st_uid != 0 && st.st_uid != geteuid()) || stat(folder, &st) < 0)
            return refuse(why, -EPERM, path, "its folder is a link of another user");
    }
    if (!S_ISDIR(st.st_mode))
        return refuse(why, -ENOTDIR, path, "its folder is not a folder");
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return refuse(why, -EPERM, path, "its folder belongs to another user");
    if ((st.st_mode & 022) && !(st.st_mode & S_ISVTX))
        return refuse(why, -EPERM, path, "others can write to its folder");
    return 0;
}

static int prepare_folder(const char *path, bool is_public, char *why)
{
    char folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
    const char *slash = strrchr(path, '/');

    if (!slash)
        return 0; /* the current folder: the user's own choice */
    const size_t length = slash == path ? 1 : (size_t)(slash - path);
    memcpy(folder, path, length);
    folder[length] = '\0';

    const bool was_made = mkdir(folder, is_public ? 0755 : 0700) == 0;
    if (!was_made && errno != EEXIST)
        return fail(why, -errno, "make the folder", folder);
    if (was_made && is_public)
        (void)chmod(folder, 0755); /* the umask may have taken the rest */
    return check_folder(folder, path, was_made, why);
}

/* The file may have been removed by a server that ended between our open and our lock. */
static bool is_still_there(int fd, const char *path)
{
    struct stat ours, theirs;

    return fstat(fd, &ours) == 0 && lstat(path, &theirs) == 0 && ours.st_ino == theirs.st_ino &&
           ours.st_dev == theirs.st_dev;
}

static int take_lock(const char *path, char *why)
{
    char lock_path[sizeof(((struct sockaddr_un *)0)->sun_path) + 8];

    (void)snprintf(lock_path, sizeof(lock_path), "%s.lock", path);
    while (true) {
        const int fd = open(lock_path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
            return fail(why, -errno, "open the lock file", lock_path);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            const int r = -errno;
            (void)close(fd);
            return r == -EWOULDBLOCK ? refuse(why, -EADDRINUSE, path, "another server is running")
                                     : fail(why, r, "lock", lock_path);
        }
        if (is_still_there(fd, lock_path))
            return fd;
        (void)close(fd);
    }
}

static void drop_lock(int fd, const char *path)
{
    char lock_path[sizeof(((struct sockaddr_un *)0)->sun_path) + 8];

    if (fd < 0)
        return;
    (void)snprintf(lock_path, sizeof(lock_path), "%s.lock", path);
    (void)unlink(lock_path); /* while it is still locked, so that nobody waits on a ghost */
    (void)close(fd);
}

/* Does anybody answer at that address? Returns 1 or 0, or a negative errno. */
static int is_answered(const struct sockaddr_un *addr)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r;

    if (fd < 0)
        return -errno;
    r = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 ? 1 : -errno;
    (void)close(fd);
    if (r == -EAGAIN) /* its queue is full, so there is one */
        return 1;
    return r == -ECONNREFUSED || r == -ENOENT ? 0 : r;
}

/* We hold the lock: what nobody answers on is left over from a server that was killed. */
static int remove_stale(const struct sockaddr_un *addr, char *why)
{
    struct stat st;

    if (lstat(addr->sun_path, &st) < 0)
        return errno == ENOENT ? 0 : fail(why, -errno, "look at", addr->sun_path);
    if (!S_ISSOCK(st.st_mode))
        return refuse(why, -EEXIST, addr->sun_path, "it exists and is not a socket");
    const int r = is_answered(addr);
    if (r > 0)
        return refuse(why, -EADDRINUSE, addr->sun_path, "another server answers there");
    if (r < 0)
        return fail(why, r, "reach", addr->sun_path);
    if (unlink(addr->sun_path) < 0)
        return fail(why, -errno, "remove the stale socket", addr->sun_path);
    return 0;
}

static int bind_socket(const struct sockaddr_un *addr, bool is_public, char *why)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r;

    if (fd < 0)
        return fail(why, -errno, "make a socket for", addr->sun_path);
    /* The file gets the mode of the socket, so it is never open for longer than it should be. */
    if (fchmod(fd, 0600) < 0 || bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0) {
        r = fail(why, -errno, "listen on", addr->sun_path);
        (void)close(fd);
        return r;
    }
    if ((is_public && chmod(addr->sun_path, 0666) < 0) || listen(fd, BACKLOG) < 0) {
        r = fail(why, -errno, "listen on", addr->sun_path);
        (void)unlink(addr->sun_path);
        (void)close(fd);
        return r;
    }
    return fd;
}

int ttm_listener_open(struct ttm_listener *listener, const char *path, bool is_public,
                      char why[TTM_LISTENER_WHY_SIZE])
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const size_t length = strlen(path);

    *listener = (struct ttm_listener){.fd = -1, .lock_fd = -1};
    if (length == 0 || length >= sizeof(addr.sun_path))
        return refuse(why, -ENAMETOOLONG, path, "a socket path has 1 to 107 bytes");
    memcpy(addr.sun_path, path, length + 1);
    memcpy(listener->path, path, length + 1);

    int r = prepare_folder(path, is_public, why);
    if (r < 0)
        return r;
    const int lock_fd = take_lock(path, why);
    if (lock_fd < 0)
        return lock_fd;
    r = remove_stale(&addr, why);
    if (r == 0)
        r = bind_socket(&addr, is_public, why);
    if (r < 0) {
        drop_lock(lock_fd, path);
        return r;
    }
    listener->fd = r;
    listener->lock_fd = lock_fd;
    return 0;
}

void ttm_listener_close(struct ttm_listener *listener)
{
    if (listener->fd < 0)
        return;
    (void)unlink(listener->path);
    (void)close(listener->fd);
    if (listener->leaves_lock)
        (void)close(listener->lock_fd);
    else
        drop_lock(listener->lock_fd, listener->path);
    listener->fd = -1;
    listener->lock_fd = -1;
}

static void remove_left_behind(const char *path)
{
    char lock_path[sizeof(((struct sockaddr_un *)0)->sun_path) + 8];

    if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return;
    (void)snprintf(lock_path, sizeof(lock_path), "%s.lock", path);
    const int fd = open(lock_path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_still_there(fd, lock_path)) {
        (void)unlink(path);
        (void)unlink(lock_path);
    }
    (void)close(fd);
}

void ttm_listener_remove_left_behind(const char *pattern)
{
    glob_t found;

    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        remove_left_behind(found.gl_pathv[i]);
    globfree(&found);
}
