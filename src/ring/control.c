/* SPDX-License-Identifier: Apache-2.0 */
#include "ring/control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file_limit.h"
#include "base/own_fd.h"

#define PAGE 4096u
/* What readlink() says of such a memfd. */
#define LINK_TEXT "/memfd:" TTM_CONTROL_NAME " (deleted)"

int ttm_control_new(bool is_wanted)
{
    const uint32_t wanted = 1;

    if (!ttm_file_limit_allows(PAGE))
        return -EFBIG;
    if (!ttm_own_fd_is_allowed())
        return -EMFILE;
    int fd = memfd_create(TTM_CONTROL_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return -errno;
    fd = ttm_own_fd_move_up(fd);
    if (fd < 0)
        return fd;
    if (ftruncate(fd, PAGE) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0 ||
        (is_wanted &&
         pwrite(fd, &wanted, sizeof(wanted), offsetof(struct ttm_control, is_wanted)) < 0)) {
        const int r = -errno;
        (void)close(fd);
        return r;
    }
    return fd;
}

int ttm_control_map(int fd, struct ttm_control **ret)
{
    void *mem = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (mem == MAP_FAILED)
        return -errno;
    struct ttm_control *control = mem;
    control->bytes = sizeof(*control);
    atomic_store_explicit(&control->nudge_fd, -1, memory_order_relaxed);
    /* release: pairs with the acquire in ttm_control_open(); the rest is there. */
    atomic_store_explicit(&control->magic, TTM_CONTROL_MAGIC, memory_order_release);
    *ret = control;
    return 0;
}

bool ttm_control_read_wanted(int fd)
{
    uint32_t is_wanted = 0;

    return pread(fd, &is_wanted, sizeof(is_wanted), offsetof(struct ttm_control, is_wanted)) ==
               (ssize_t)sizeof(is_wanted) &&
           is_wanted != 0;
}

static bool is_device_of(const struct statx *st, const struct stat *known)
{
    return st->stx_dev_major == major(known->st_dev) && st->stx_dev_minor == minor(known->st_dev);
}

/*
 * Opens what the fd of another process refers to, if it lies in the same file system as 'known':
 * that of all memfds, or that of all pipes, into which nobody can put a file of another kind. A
 * process can show any file under any name in its /proc/PID/fd, by mounts in a namespace of its
 * own, and merely to open such a file could block or have effects. O_PATH asks nothing of a file,
 * and DONT_SYNC nothing of a file system. 'ret' is what was found out of the file.
 *
 * Returns an fd, or a negative errno: -EBADMSG for a file of another file system.
 */
static int open_like(const struct stat *known, const char *path, int flags, struct statx *ret)
{
    char self[64];
    *ret = (struct statx){0};
    const int found = open(path, O_PATH | O_CLOEXEC);

    if (found < 0)
        return -errno;
    int fd = -EBADMSG;
    if (statx(found, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, ret) == 0 &&
        is_device_of(ret, known)) {
        (void)snprintf(self, sizeof(self), "/proc/self/fd/%d", found);
        fd = open(self, flags | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
            fd = -errno;
    }
    (void)close(found);
    return fd;
}

/* Any memfd, to know the file system of all of them. */
static int stat_memfd(struct stat *ret)
{
    const int fd = memfd_create(TTM_CONTROL_NAME "-probe", MFD_CLOEXEC);

    if (fd < 0)
        return -errno;
    const int r = fstat(fd, ret) < 0 ? -errno : 0;
    (void)close(fd);
    return r;
}

/* Opens the control page among the files of a process. */
static int find_page(const char *root, pid_t pid, int flags)
{
    char folder[4096], path[4352], target[sizeof(LINK_TEXT) + 8];
    struct stat memfd = {0};
    struct statx page;
    int found = stat_memfd(&memfd);

    if (found < 0)
        return found;
    found = -ENOENT;
    (void)snprintf(folder, sizeof(folder), "%s/proc/%d/fd", root, (int)pid);
    DIR *dir = opendir(folder);
    if (!dir)
        return errno == ENOENT ? -ESRCH : -errno;
    /* cppcheck-suppress readdirCalled ; the folder is ours alone */
    for (const struct dirent *entry; found == -ENOENT && (entry = readdir(dir));) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        const ssize_t n = readlink(path, target, sizeof(target));
        if (n != (ssize_t)strlen(LINK_TEXT) || memcmp(target, LINK_TEXT, (size_t)n) != 0)
            continue;
        found = open_like(&memfd, path, flags, &page);
    }
    (void)closedir(dir);
    return found;
}

int ttm_control_open(const char *root, pid_t pid, enum ttm_control_use use,
                     struct ttm_control_view *ret)
{
    const bool is_written = use == TTM_CONTROL_SWITCH;
    const int fd = find_page(root, pid, is_written ? O_RDWR : O_RDONLY);
    void *mem = MAP_FAILED;
    int r = -EBADMSG;

    if (fd < 0)
        return fd;
    /* Sealed, so that the process cannot take the page away while we look at it. */
    const int seals = fcntl(fd, F_GET_SEALS);
    struct stat st;
    if (seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &st) == 0 && st.st_size >= (off_t)PAGE) {
        mem = mmap(NULL, PAGE, is_written ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
        r = mem == MAP_FAILED ? -errno : 0;
    }
    (void)close(fd);
    if (r < 0)
        return r;
    struct ttm_control *control = mem;
    /* acquire: pairs with the release in ttm_control_map(). */
    const uint64_t magic = atomic_load_explicit(&control->magic, memory_order_acquire);
    if (magic != 0 && (magic != TTM_CONTROL_MAGIC || control->bytes < sizeof(*control))) {
        (void)munmap(mem, PAGE);
        return -EBADMSG;
    }
    *ret = (struct ttm_control_view){.control = control, .pid = pid};
    return 0;
}

void ttm_control_close(struct ttm_control_view *view)
{
    if (view->control)
        (void)munmap(view->control, PAGE);
    view->control = NULL;
}

uint32_t ttm_control_state(const struct ttm_control_view *view)
{
    return atomic_load_explicit(&view->control->state, memory_order_acquire); /* only a look */
}

/* Any pipe, to know the file system of all of them. */
static int stat_pipe(struct stat *ret)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    const int r = fstat(fds[0], ret) < 0 ? -errno : 0;
    (void)close(fds[0]);
    (void)close(fds[1]);
    return r;
}

/* Writes into the pipe of the helper, if that fd still is the pipe it was. */
static void nudge(const struct ttm_control_view *view, const char *root)
{
    const int number = atomic_load_explicit(&view->control->nudge_fd, memory_order_acquire);
    const uint64_t inode = atomic_load_explicit(&view->control->nudge_inode, memory_order_relaxed);
    char path[4352];
    struct stat pipe = {0};
    struct statx st;

    if (number < 0 || inode == 0 || stat_pipe(&pipe) < 0)
        return;
    (void)snprintf(path, sizeof(path), "%s/proc/%d/fd/%d", root, (int)view->pid, number);
    const int fd = open_like(&pipe, path, O_WRONLY, &st);
    if (fd < 0)
        return;
    if (st.stx_ino == inode)
        (void)!write(fd, "", 1);
    (void)close(fd);
}

void ttm_control_switch(const struct ttm_control_view *view, const char *root, bool is_wanted)
{
    /* seq_cst: comes before our look at the helper, who publishes its pipe before it looks here. */
    atomic_store_explicit(&view->control->is_wanted, is_wanted, memory_order_seq_cst);
    nudge(view, root);
}

/* Whether it says so on purpose, or has something to report. */
static bool is_off(const struct ttm_control_view *view)
{
    const struct ttm_control *control = view->control;
    /* acquire: pairs with the release in ttm_control_map(). */
    const bool is_used = atomic_load_explicit(&control->magic, memory_order_acquire) != 0;
    const bool is_wanted =
        atomic_load_explicit(&control->is_wanted, memory_order_relaxed) != 0; /* only a look */

    return ttm_control_state(view) == TTM_CONTROL_OFF && (is_used || !is_wanted);
}

size_t ttm_control_list_off(const char *root, pid_t *ret_pids, size_t max)
{
    char folder[4096];
    size_t count = 0;

    (void)snprintf(folder, sizeof(folder), "%s/proc", root);
    DIR *dir = opendir(folder);
    if (!dir)
        return 0;
    /* cppcheck-suppress readdirCalled ; the folder is ours alone */
    for (const struct dirent *entry; count < max && (entry = readdir(dir));) {
        struct ttm_control_view view;
        char *end;
        const long pid = strtol(entry->d_name, &end, 10);
        if (pid <= 0 || *end != '\0' ||
            ttm_control_open(root, (pid_t)pid, TTM_CONTROL_READ, &view) < 0)
            continue;
        if (is_off(&view))
            ret_pids[count++] = (pid_t)pid;
        ttm_control_close(&view);
    }
    (void)closedir(dir);
    return count;
}
